// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The connection worker: reads HELLO and frames, takes steps of attach, move and close, handles
 * timers, and then sends the frames and bytes that are due. Its runs for one connection exclude
 * each other by worker.mutex. The exception is register_rings(), which releases the mutex while it
 * waits, so that other runs can read frames and send.
 *
 * The worker runs, until afr_conn_finish(), in these contexts:
 * - workqueue afrdma: the usual place. afr_conn_schedule() queues it when TCP reports an event, a
 *   timer expires, or other code has work for the worker, for which that code usually sets a flag.
 * - workqueue afrdma_fallback: used instead while a direction is in fallback mode, or about to be.
 *   The worker may then have to wait for calls that hold lock_sock() of the TCP socket.
 * - workqueue afrdma_attached: takes the steps of attach, move and close while the connection is
 *   not detached. These may wait for the device and the peer. In any other context, a run for
 *   such a connection reads frames and sends, but leaves the steps to this workqueue
 *   (AFR_F_RESCHEDULE_ATTACH).
 * - inline in a call of the program, only while the connection is detached:
 *   - in a call that waits to read or for HELLO, when TCP has bytes or changes its state. This
 *     saves the switch to a work item and back (afr_conn_incoming(), afr_worker_wait_end()).
 *   - in a shutdown() that shuts down the receive direction, or comes after one that did
 *     (afr_shutdown()), and in close() (afr_release()).
 *   - in a non-blocking send while the send direction falls back, and in a receive in fallback
 *     mode that finds that TCP has ended without FIN (afr_worker_run_wait()).
 *   An inline run must not create sockets, see afr_conn_in_work_item().
 */
#include "close.h"
#include "conn_rings.h"
#include "frame_rx.h"
#include "frame_tx.h"
#include "hello_rx.h"
#include "move.h"
#include "send.h"
#include "tcp_sock.h"
#include "worker.h"

/* Runs the worker once. The caller holds worker.mutex. */
static void run(struct afr_conn *conn)
{
	bool more = false, may = afr_frame_rx_may_read(conn), steps;

	AFR_CHECK(test_bit(AFR_F_STARTED, &conn->flags));	/* fully initialised (I6) */
	afr_conn_timer_due(conn, AFR_T_PAGE_RETRY);	/* the timer only has to run the worker */
	afr_conn_rings_wake_sender(conn);
	if (afr_conn_timer_due(conn, AFR_T_PIGGYBACK))
		set_bit(AFR_F_FLUSH, &conn->flags);
	if (may && afr_conn_rx_mode(conn) == AFR_MODE_UNDECIDED)
		afr_hello_rx_step(conn);
	if (may && afr_hello_rx_early_pending(conn))
		afr_hello_rx_tx_fallback(conn);
	if (!test_bit(AFR_F_ACTIVE, &conn->flags))
		return;		/* fell back to TCP */
	if (afr_conn_rx_mode(conn) == AFR_MODE_FRAMED && !test_bit(AFR_F_TCP_EOF, &conn->flags)) {
		bool ended;

		do {
			/* sampled before the read: an end seen after it may follow unread bytes */
			ended = afr_tcp_sock_ended(conn);
			more = afr_frame_rx_run(conn);
		} while (more && test_bit(AFR_F_ABORT, &conn->flags) &&
			 afr_frame_rx_drains(conn));
		if (!more && ended && !test_bit(AFR_F_TCP_EOF, &conn->flags))
			afr_close_blocked_sender(conn);
	}
	steps = conn->attach.state == AFR_DETACHED || afr_conn_in_attach_work(conn);
	if (!steps) {
		/* the steps can block until the peer acts, so attach_work has to take them */
		set_bit(AFR_F_RESCHEDULE_ATTACH, &conn->flags);
	} else if (afr_conn_negotiated(conn)) {
		afr_move_check_upgrade(conn);
		afr_move_run(conn);
	}
	if (afr_conn_tx_mode(conn) == AFR_MODE_FRAMED)
		afr_send_kick(conn);
	if (steps)
		afr_close_run(conn);
	if (afr_conn_tx_mode(conn) == AFR_MODE_FRAMED)
		afr_send_blocked(conn);
	afr_frame_tx_push(conn);
	afr_conn_rings_uncharge(conn);
	if (!test_bit(AFR_F_ACTIVE, &conn->flags))
		return;		/* finished */
	if (READ_ONCE(conn->out.pending) & AFR_PENDING_PIGGYBACK &&
	    !test_bit(AFR_F_ABORTED, &conn->flags) &&
	    !test_bit(AFR_F_TCP_FULL, &conn->flags))
		afr_conn_timer(conn, AFR_T_PIGGYBACK, AFR_PIGGYBACK_MS);
	if (more)
		afr_conn_schedule(conn);
}

/* Runs the worker once, if it may still run, and unlocks worker.mutex, which the caller locked. */
static void run_locked(struct afr_conn *conn)
{
	if (test_bit(AFR_F_ACTIVE, &conn->flags))
		run(conn);
	afr_conn_worker_unlock(conn);
}

/*
 * Tries to lock worker.mutex. If that fails, its holder may have missed the event for which the
 * caller wants to run, so the holder will schedule the worker when it unlocks the mutex.
 */
static bool try_lock_run(struct afr_conn *conn)
{
	if (mutex_trylock(&conn->worker.mutex))
		return true;
	set_bit(AFR_F_RESCHEDULE, &conn->flags);
	smp_mb__after_atomic();	/* set before trying again; pairs with afr_conn_worker_unlock() */
	return mutex_trylock(&conn->worker.mutex);
}

/*
 * run_attach_work() may hold worker.mutex for long, and so may a thread of a program that runs
 * the worker inline and gets no processor time. A work item of queue afrdma must wait for neither,
 * see the queues in conn.c. So run_work() only tries to lock the mutex. If that fails, the holder
 * queues the work item again when it unlocks the mutex.
 */
static void run_work(struct work_struct *work)
{
	struct afr_conn *conn = container_of(work, struct afr_conn, worker.work);

	if (try_lock_run(conn))
		run_locked(conn);
	afr_conn_put(conn);	/* taken by afr_conn_schedule() */
}

/*
 * Does not wait for a thread of a program that runs the worker inline; two tests exclude that. Such
 * a run begins only while the connection is detached (afr_worker_run()), and starts no attach
 * (afr_attach_start()), so at a client the state stays AFR_DETACHED until the run ends. At a
 * server, the run may read ATTACH and change the state, but AFR_F_INLINE is set until it has
 * returned.
 *
 * Nor does an inline run begin between the tests and mutex_lock(): the state becomes AFR_DETACHED
 * again only in attach_work, or in a run that also aborts and finishes the connection.
 */
static void run_attach_work(struct work_struct *work)
{
	struct afr_conn *conn = container_of(work, struct afr_conn, worker.attach_work);
	bool locked = true;

	/* the state first: an inline run that changes it has set the flag before */
	if (smp_load_acquire(&conn->attach.state) != AFR_DETACHED &&
	    !test_bit(AFR_F_INLINE, &conn->flags))
		mutex_lock(&conn->worker.mutex);
	else
		locked = try_lock_run(conn);
	if (locked)
		run_locked(conn);
	afr_conn_put(conn);	/* taken by afr_conn_schedule_attach() */
}

/**
 * afr_worker_init() - initialise the work items of a new connection
 * @conn: from afr_conn_alloc()
 *
 * Context: process.
 */
void afr_worker_init(struct afr_conn *conn)
{
	INIT_WORK(&conn->worker.work, run_work);
	INIT_WORK(&conn->worker.attach_work, run_attach_work);
}

/**
 * afr_worker_run() - run the worker inline, if no run is in progress and @conn is detached
 * @conn: connection, the caller holds a reference
 *
 * Otherwise schedules a work item: the caller does not wait for a run in progress, and a thread of
 * a program must not hold worker.mutex of a connection that is not detached, since it may get no
 * processor time, and then nothing could answer a peer that leaves the link.
 *
 * Context: process, without any lock.
 */
void afr_worker_run(struct afr_conn *conn)
{
	if (READ_ONCE(conn->attach.state) != AFR_DETACHED ||
	    !mutex_trylock(&conn->worker.mutex)) {
		afr_conn_schedule(conn);
		return;
	}
	if (conn->attach.state != AFR_DETACHED) {
		set_bit(AFR_F_RESCHEDULE, &conn->flags);
		afr_conn_worker_unlock(conn);
		return;
	}
	set_bit(AFR_F_INLINE, &conn->flags);
	smp_mb__after_atomic();	/* set before the state changes; pairs with run_attach_work() */
	if (test_bit(AFR_F_ACTIVE, &conn->flags))
		run(conn);
	clear_bit(AFR_F_INLINE, &conn->flags);
	afr_conn_worker_unlock(conn);
}

/**
 * afr_worker_run_wait() - wait until no run of the worker is in progress, then run it inline
 * @conn: connection that falls back or is one-way; as it has no link, its worker does not wait for
 *	the peer
 *
 * Context: process, without any lock.
 */
void afr_worker_run_wait(struct afr_conn *conn)
{
	mutex_lock(&conn->worker.mutex);
	AFR_CHECK(conn->attach.state == AFR_DETACHED);
	run_locked(conn);
}

/**
 * afr_worker_wait_end() - end a wait to read or for HELLO, and run the worker inline if requested
 * @conn: connection, afr_worker_wait_begin() was called
 *
 * Context: process, without any lock.
 */
void afr_worker_wait_end(struct afr_conn *conn)
{
	/* this call still counts in readers, so events during this run need no work item */
	if (test_and_clear_bit(AFR_F_RUN_INLINE, &conn->flags))
		afr_worker_run(conn);
	atomic_dec(&conn->worker.readers);
	smp_mb__after_atomic();	/* decrement before testing; pairs with afr_conn_incoming() */
	if (test_and_clear_bit(AFR_F_RUN_INLINE, &conn->flags))
		afr_worker_run(conn);
}
