// SPDX-License-Identifier: GPL-2.0
/*
 * The connection worker: reads HELLO and frames, takes steps of attach, move and close, handles
 * timers, and then sends the frames and bytes that are due. Its runs for one connection exclude
 * each other by worker.mutex. The exception is register_rings(), which releases the mutex while it
 * waits, so that other runs can read frames and send.
 *
 * conn.c runs it, until afr_conn_finish(), in these contexts:
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
 *     saves the switch to a work item and back (afr_conn_incoming(), afr_conn_wait_end()).
 *   - in a shutdown() that shuts down the receive direction, or comes after one that did
 *     (afr_shutdown()), and in close() (afr_conn_orphan()).
 *   - in a non-blocking send while the send direction falls back, and in a receive in fallback
 *     mode that finds that TCP has ended without FIN (afr_conn_run_wait()).
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

/* Runs the worker once; conn.c holds worker.mutex. */
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
			/* sampled first: an end that is seen later may follow bytes not read yet */
			ended = afr_tcp_sock_ended(conn);
			more = afr_frame_rx_run(conn);
		} while (more && test_bit(AFR_F_ABORT, &conn->flags) &&
			 afr_frame_rx_drains(conn));
		if (!more && ended && !test_bit(AFR_F_TCP_EOF, &conn->flags))
			afr_close_blocked_sender(conn);
	}
	steps = conn->attach.state == AFR_DETACHED || afr_conn_in_attach_work(conn);
	if (!steps) {
		set_bit(AFR_F_RESCHEDULE_ATTACH, &conn->flags);	/* steps may wait for the peer */
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

/**
 * afr_worker_init() - pass the worker to conn.c, which cannot call it by name
 *
 * Context: module load.
 */
void afr_worker_init(void)
{
	afr_conn_set_worker(run);
}
