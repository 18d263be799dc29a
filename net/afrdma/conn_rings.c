// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Pages of the rings of a connection.
 *
 * The limits on rings on TCP (ring_mem.c) refuse a page only to a ring that is not pinned and
 * already has AFR_RING_MEM_MIN bytes of pages. The producer (the sender or the worker) then frees
 * the empty pages of its ring. If the ring now has less than AFR_RING_MEM_MIN bytes of pages, or
 * pinning has allocated the refused page meanwhile, the producer tries again. Otherwise it waits
 * until bytes of the ring are consumed, which frees more of its pages: the path consumes the bytes
 * of the send ring, and the program those of the receive ring. The sender is also woken when its
 * ring is pinned, and the worker also tries again after AFR_RING_MEM_LIMIT_MS, in case other rings
 * have freed pages.
 *
 * In this file, "charged" and "uncharge" refer to the quotas of ring_quota.c.
 */
#include "compat.h"
#include "conn_rings.h"

#include <net/sock.h>

/*
 * Frees the empty pages of the send ring, and sets @freed if they may have been charged. Returns
 * true if the sender still has to wait for a page: then afr_conn_rings_wake_sender() wakes it.
 */
static bool snd_starved(struct afr_conn *conn, bool *freed)
{
	bool starved;

	spin_lock_bh(&conn->tx.lock);
	*freed |= afr_conn_rings_snd_charged(conn);
	afr_ring_mem_trim(&conn->tx.mem, conn->tx.seq.una, conn->tx.seq.written);
	starved = afr_ring_mem_starved(&conn->tx.mem, conn->tx.seq.written);
	if (starved)
		set_bit(AFR_F_NO_PAGES, &conn->flags);
	spin_unlock_bh(&conn->tx.lock);
	return starved;
}

/*
 * The allocation of a page has failed. If the receive ring holds unread bytes, sets AFR_F_STALLED,
 * so that the program does not wait for more bytes (afr_recvmsg_target()), and wakes the program.
 */
static void rcv_no_memory(struct afr_conn *conn)
{
	bool unread;

	spin_lock_bh(&conn->rx.lock);
	unread = conn->rx.seq.visible != conn->rx.seq.consumed;
	if (unread)
		set_bit(AFR_F_STALLED, &conn->flags);
	spin_unlock_bh(&conn->rx.lock);
	if (unread)
		afr_conn_readable(conn);
}

/*
 * Frees the empty pages of the receive ring. If the worker still has to wait for a page, returns
 * true and wakes the program, which may be waiting for more bytes than the ring has pages for.
 */
static bool rcv_starved(struct afr_conn *conn)
{
	bool starved;

	spin_lock_bh(&conn->rx.lock);
	afr_ring_mem_trim(&conn->rx.mem, conn->rx.seq.consumed, conn->rx.seq.visible);
	starved = afr_ring_mem_starved(&conn->rx.mem, conn->rx.seq.visible);
	if (starved)
		set_bit(AFR_F_STALLED, &conn->flags);
	spin_unlock_bh(&conn->rx.lock);
	if (starved)
		afr_conn_readable(conn);
	return starved;
}

/**
 * afr_conn_rings_back_snd() - allocate pages for bytes that the program sends
 * @conn: connection, conn->tx.busy set
 * @n: bytes to be written behind conn->tx.seq.written
 * @freed: set to true if charged pages may have been freed: when tx.busy is clear again, the caller
 *	calls afr_conn_rings_freed()
 *
 * Context: process, one sender at a time.
 * Return: how many of the bytes have pages; -ENOMEM: the allocation failed, try again later;
 * -EAGAIN: a limit refuses a page; the sender is woken when this ring is pinned, or has less than
 * AFR_RING_MEM_MIN bytes of pages (AFR_F_NO_PAGES).
 */
int afr_conn_rings_back_snd(struct afr_conn *conn, u32 n, bool *freed)
{
	int backed;

	do
		backed = afr_ring_mem_populate(&conn->tx.mem, conn->tx.seq.written, n);
	while (backed == -EDQUOT && !snd_starved(conn, freed));
	return backed == -EDQUOT ? -EAGAIN : backed;
}

/**
 * afr_conn_rings_back_rcv() - allocate pages for bytes that TCP has received
 * @conn: connection, conn->rx.busy set
 * @n: bytes to be read from TCP into the ring, from conn->rx.seq.visible on
 *
 * Context: connection worker.
 * Return: how many of the bytes have pages; -ENOMEM: the allocation failed, try again later;
 * -EAGAIN: a limit refuses a page; the worker is scheduled when the program reads
 * (AFR_F_STALLED).
 */
int afr_conn_rings_back_rcv(struct afr_conn *conn, u32 n)
{
	int backed;

	lockdep_assert_held(&conn->worker.mutex);
	do
		backed = afr_ring_mem_populate(&conn->rx.mem, conn->rx.seq.visible, n);
	while (backed == -EDQUOT && !rcv_starved(conn));
	if (backed == -ENOMEM)
		rcv_no_memory(conn);
	return backed == -EDQUOT ? -EAGAIN : backed;
}

/**
 * afr_conn_rings_wake_sender() - wake a sender that waits for a page, if it can get one now
 * @conn: connection
 *
 * Called when TCP has taken bytes of the send ring, after RESUME, when the ring was pinned or
 * unpinned, and in each run of the worker. A failed allocation schedules such a run
 * AFR_RING_MEM_RETRY_MS later, which lets the sender try again. Not needed when a cursor frees
 * bytes on a link: a pinned ring has all its pages.
 *
 * Context: process, conn->tx.lock not held.
 */
void afr_conn_rings_wake_sender(struct afr_conn *conn)
{
	bool enough, memory;
	long early;

	if (!test_bit(AFR_F_NO_PAGES, &conn->flags))
		return;
	spin_lock_bh(&conn->tx.lock);
	memory = !test_bit(AFR_F_NO_MEMORY, &conn->flags);
	early = memory ? 0 : (long)(conn->tx.retry_at - jiffies);
	if (early > 0) {
		/* again: the worker's kernel timer may have expired early, for another reason */
		afr_conn_schedule_delayed(conn, early);
		enough = false;
	} else if (conn->tx.busy || !memory) {
		enough = true;		/* a sender is active, or the delay is over: let it try */
	} else {
		afr_ring_mem_trim(&conn->tx.mem, conn->tx.seq.una, conn->tx.seq.written);
		enough = !afr_ring_mem_starved(&conn->tx.mem, conn->tx.seq.written);
	}
	if (enough) {
		clear_bit(AFR_F_NO_MEMORY, &conn->flags);
		clear_bit(AFR_F_NO_PAGES, &conn->flags);
	}
	spin_unlock_bh(&conn->tx.lock);
	if (enough)
		afr_conn_writable(conn);
}

/**
 * afr_conn_rings_pin() - allocate and pin all pages of both rings, for a device
 * @conn: connection
 *
 * Pages of an unpinned ring may be freed under tx.lock or rx.lock, so the rings are marked as
 * pinned under these locks.
 *
 * Context: connection worker.
 * Return: 0, -EDQUOT, -ENOBUFS (share of the peer), -EUSERS (share of the user) or -ENOMEM. The
 * caller has to call afr_conn_rings_unpin() in the end, after an error, too.
 */
int afr_conn_rings_pin(struct afr_conn *conn)
{
	int err;

	lockdep_assert_held(&conn->worker.mutex);
	err = afr_ring_quota_charge(&conn->attach.quota, conn->an, &conn->peer.remote,
				    sk_uid(conn->tcp->sk), &conn->tx.mem, &conn->rx.mem);
	if (err)
		return err;
	clear_bit(AFR_F_RINGS_CHARGED, &conn->flags);
	spin_lock_bh(&conn->tx.lock);
	conn->tx.mem.pinned = true;
	spin_lock(&conn->rx.lock);
	conn->rx.mem.pinned = true;
	spin_unlock(&conn->rx.lock);
	spin_unlock_bh(&conn->tx.lock);
	err = afr_ring_mem_pin(&conn->tx.mem);
	if (err)
		return err;
	afr_conn_rings_wake_sender(conn);
	return afr_ring_mem_pin(&conn->rx.mem);
}

/**
 * afr_conn_rings_uncharge() - uncharge pages of unpinned rings that were charged and are free now
 * @conn: connection; nothing happens unless its rings were unpinned
 *
 * Called when the rings are unpinned, in each run of the worker, and by afr_conn_rings_freed()
 * after afr_conn_finish().
 *
 * Context: process, without spinlocks.
 */
void afr_conn_rings_uncharge(struct afr_conn *conn)
{
	unsigned long pages;

	if (!test_bit(AFR_F_RINGS_CHARGED, &conn->flags))
		return;
	spin_lock_bh(&conn->tx.lock);
	/* RESUME and FINACK advance SND.UNA without freeing pages; an abort drops all bytes */
	if (!conn->tx.busy)
		afr_ring_mem_trim(&conn->tx.mem, afr_conn_aborted(conn) ? conn->tx.seq.written :
				  conn->tx.seq.una, conn->tx.seq.written);
	spin_unlock_bh(&conn->tx.lock);
	pages = afr_ring_mem_on_rdma(&conn->tx.mem) + afr_ring_mem_on_rdma(&conn->rx.mem);
	if (pages || test_and_clear_bit(AFR_F_RINGS_CHARGED, &conn->flags))
		afr_ring_quota_uncharge(&conn->attach.quota, pages);
}

/**
 * afr_conn_rings_freed() - uncharge the pages that a call of the program may have freed
 * @conn: connection
 *
 * Schedules the worker, which uncharges them. After afr_conn_finish() no further run of the worker
 * begins, so then this function uncharges them itself.
 *
 * Context: process, without spinlocks.
 */
void afr_conn_rings_freed(struct afr_conn *conn)
{
	afr_conn_schedule(conn);
	smp_mb();	/* the caller freed pages before this test; pairs with afr_conn_finish() */
	if (test_bit(AFR_F_FINISHED, &conn->flags))
		afr_conn_rings_uncharge(conn);	/* no worker will do it */
}

/**
 * afr_conn_rings_snd_charged() - are pages of the unpinned send ring still charged?
 * @conn: connection
 *
 * snd_starved() and data_taken() call this before they free pages of the ring, in the same
 * critical section of tx.lock, so that the rings are not unpinned between the call and the
 * freeing. afr_send_copy() calls it after it has cleared tx.busy, which may have kept pages from
 * being freed when the rings were unpinned.
 *
 * Context: any.
 * Return: true if so: then the worker has to run (afr_conn_rings_freed()), but not before the
 * caller has freed its pages, if it frees any.
 */
bool afr_conn_rings_snd_charged(const struct afr_conn *conn)
{
	return test_bit(AFR_F_RINGS_CHARGED, &conn->flags) && afr_ring_mem_on_rdma(&conn->tx.mem);
}

/**
 * afr_conn_rings_unpin() - unpin the rings, and free the pages that hold no bytes
 * @conn: connection; no device writes to its receive ring or reads its send ring any more
 *
 * An idle connection keeps no page. If a sender is active, the empty pages of the send ring are
 * freed later, by the path or by afr_conn_rings_uncharge(). A charged page that a ring keeps stays
 * charged until it is freed.
 *
 * Context: connection worker.
 */
void afr_conn_rings_unpin(struct afr_conn *conn)
{
	lockdep_assert_held(&conn->worker.mutex);
	/*
	 * Before the rings are unpinned: a read that frees charged pages after this function has
	 * released conn->rx.lock schedules the worker only if it finds the flag set.
	 */
	set_bit(AFR_F_RINGS_CHARGED, &conn->flags);
	spin_lock_bh(&conn->tx.lock);
	afr_ring_mem_unpin(&conn->tx.mem);
	if (!conn->tx.busy)
		afr_ring_mem_trim(&conn->tx.mem, conn->tx.seq.una, conn->tx.seq.written);
	spin_lock(&conn->rx.lock);
	afr_ring_mem_unpin(&conn->rx.mem);
	afr_ring_mem_trim(&conn->rx.mem, conn->rx.seq.consumed, conn->rx.seq.visible);
	spin_unlock(&conn->rx.lock);
	spin_unlock_bh(&conn->tx.lock);
	afr_conn_rings_uncharge(conn);
	afr_conn_rings_wake_sender(conn);
}
