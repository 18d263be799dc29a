// SPDX-License-Identifier: GPL-2.0
/*
 * Pages for the rings of a connection.
 *
 * A producer that the limits refuse a page has AFR_MEM_LEAST in its ring. Pages that hold
 * nothing are freed first, and it tries again; if there are none, the ring holds bytes, and who
 * takes them away brings a page: the path for a sender, the program for the work.
 */
#include "rings.h"

#include <net/sock.h>

/* Does the sender wait for what its ring holds? The path tells it when some is gone. */
static bool snd_starved(struct afr_conn *conn)
{
	bool starved;

	spin_lock_bh(&conn->tx_lock);
	afr_mem_trim(&conn->snd, conn->tx.una, conn->tx.written);
	starved = afr_mem_starved(&conn->snd, conn->tx.written);
	if (starved)
		set_bit(AFR_F_NO_PAGES, &conn->flags);
	spin_unlock_bh(&conn->tx_lock);
	return starved;
}

/* Does the work wait for the program to read? That may wait for more than will come. */
static bool rcv_starved(struct afr_conn *conn)
{
	bool starved;

	spin_lock_bh(&conn->rx_lock);
	afr_mem_trim(&conn->rcv, conn->rx.consumed, conn->rx.visible);
	starved = afr_mem_starved(&conn->rcv, conn->rx.visible);
	if (starved)
		set_bit(AFR_F_STALLED, &conn->flags);
	spin_unlock_bh(&conn->rx_lock);
	if (starved)
		afr_conn_readable(conn);
	return starved;
}

/**
 * afr_rings_back_snd() - pages for what a program sends
 * @conn: connection
 * @n: bytes
 *
 * Context: process, one sender at a time, tx_busy set.
 * Return: for how many of them; -ENOMEM; -EAGAIN, and the sender is told of the next page.
 */
int afr_rings_back_snd(struct afr_conn *conn, u32 n)
{
	int backed;

	do
		backed = afr_mem_back(&conn->snd, conn->tx.written, n);
	while (backed == -EDQUOT && !snd_starved(conn));
	return backed == -EDQUOT ? -EAGAIN : backed;
}

/**
 * afr_rings_back_rcv() - pages for what the peer has sent on TCP
 * @conn: connection
 * @n: bytes
 *
 * Context: the work, rx_busy set.
 * Return: for how many of them; -ENOMEM; -EAGAIN, and the work is run when the program reads.
 */
int afr_rings_back_rcv(struct afr_conn *conn, u32 n)
{
	int backed;

	do
		backed = afr_mem_back(&conn->rcv, conn->rx.visible, n);
	while (backed == -EDQUOT && !rcv_starved(conn));
	return backed == -EDQUOT ? -EAGAIN : backed;
}

/**
 * afr_rings_tell_sender() - is there a page now for a sender that waits for one?
 * @conn: connection; bytes have left the send ring, or its pinning is over, or a failed
 *	allocation may be tried again
 *
 * Context: process, without tx_lock.
 */
void afr_rings_tell_sender(struct afr_conn *conn)
{
	bool tell = true;

	if (!test_bit(AFR_F_NO_PAGES, &conn->flags))
		return;
	spin_lock_bh(&conn->tx_lock);
	if (!conn->tx_busy) {	/* else one is looking already */
		afr_mem_trim(&conn->snd, conn->tx.una, conn->tx.written);
		tell = !afr_mem_starved(&conn->snd, conn->tx.written);
	}
	if (tell)
		clear_bit(AFR_F_NO_PAGES, &conn->flags);
	spin_unlock_bh(&conn->tx_lock);
	if (tell)
		afr_conn_writable(conn);
}

/**
 * afr_rings_pin() - both rings whole, for a device
 * @conn: connection
 *
 * Pages may leave a ring while it is not pinned, under the lock of its books: pin under it.
 *
 * Context: the work.
 * Return: 0; -EDQUOT, -ENOBUFS (the peer's share), -EUSERS (the user's) or -ENOMEM, and
 * afr_rings_unpin() is to follow all the same.
 */
int afr_rings_pin(struct afr_conn *conn)
{
	int err;

	err = afr_share_take(&conn->share, conn->an, &conn->peer.remote,
			     sock_i_uid(conn->inner->sk), &conn->snd, &conn->rcv);
	if (err)
		return err;
	spin_lock_bh(&conn->tx_lock);
	conn->snd.pinned = true;
	spin_lock(&conn->rx_lock);
	conn->rcv.pinned = true;
	spin_unlock(&conn->rx_lock);
	spin_unlock_bh(&conn->tx_lock);
	err = afr_mem_pin(&conn->snd);
	if (err)
		return err;
	afr_rings_tell_sender(conn);
	return afr_mem_pin(&conn->rcv);
}

/**
 * afr_rings_unpin() - no device uses the rings any more
 * @conn: connection; nobody writes to its ring, nobody reads its send ring
 *
 * Of an idle connection nothing stays. A sender that is busy just now has the pages freed by
 * the path, when that has sent what it wrote.
 *
 * Context: the work.
 */
void afr_rings_unpin(struct afr_conn *conn)
{
	spin_lock_bh(&conn->tx_lock);
	afr_mem_unpin(&conn->snd);
	if (!conn->tx_busy)
		afr_mem_trim(&conn->snd, conn->tx.una, conn->tx.written);
	spin_lock(&conn->rx_lock);
	afr_mem_unpin(&conn->rcv);
	afr_mem_trim(&conn->rcv, conn->rx.consumed, conn->rx.visible);
	spin_unlock(&conn->rx_lock);
	spin_unlock_bh(&conn->tx_lock);
	afr_share_give(&conn->share);
	afr_rings_tell_sender(conn);
}
