// SPDX-License-Identifier: GPL-2.0
/* The program's side of sending. */
#include "send.h"

#include <linux/uio.h>

#include "control.h"
#include "path_rdma.h"

/* Long sends go in pieces, so that the path works while the next piece is copied. */
#define PIECE	(64u * 1024)

static u32 space(struct afr_conn *conn)
{
	u32 n;

	spin_lock_bh(&conn->tx_lock);
	n = conn->tx.fin == AFR_NO_FIN ? afr_tx_space(&conn->tx) : 0;
	spin_unlock_bh(&conn->tx_lock);
	return n;
}

/**
 * afr_send_some() - take bytes of the program into the send ring
 * @conn: connection, our direction framed
 * @iter: where they come from
 * @len: how many are left
 *
 * Context: process, one sender at a time.
 * Return: bytes taken (> 0), -EAGAIN without room, -ENOMEM, -EDQUOT or -EFAULT.
 */
ssize_t afr_send_some(struct afr_conn *conn, struct iov_iter *iter, size_t len)
{
	u32 n = min3((size_t)space(conn), len, (size_t)PIECE);
	u64 at = conn->tx.written;	/* ours alone to move */
	int err;

	if (!n)
		return -EAGAIN;
	err = afr_mem_back(&conn->snd, at, n);
	if (err)
		return err;
	n = afr_mem_copy_in(&conn->snd, at, n, iter);
	if (!n)
		return -EFAULT;

	spin_lock_bh(&conn->tx_lock);
	afr_tx_write(&conn->tx, n);
	spin_unlock_bh(&conn->tx_lock);
	return n;
}

/* Once per blockade: the receiver remembers it (PC6). */
static void say_blocked(struct afr_conn *conn)
{
	bool blocked;

	spin_lock_bh(&conn->tx_lock);
	blocked = afr_tx_blocked(&conn->tx) &&
		  !test_and_set_bit(AFR_F_BLOCKED_TOLD, &conn->flags);
	spin_unlock_bh(&conn->tx_lock);
	if (!blocked)
		return;
	afr_control_want(conn, AFR_WANT_BLOCKED);
	afr_control_push(conn);
}

/**
 * afr_send_kick() - let the path take what it can
 * @conn: connection
 *
 * Context: process.
 */
void afr_send_kick(struct afr_conn *conn)
{
	if (READ_ONCE(conn->tx.where) == AFR_ON_LINK)
		afr_path_rdma_push(conn);
	else
		afr_control_push(conn);
	/* the push may have moved the direction */
	if (READ_ONCE(conn->tx.where) == AFR_ON_LINK)
		afr_path_rdma_push(conn);
	say_blocked(conn);
}

/**
 * afr_send_fin() - end the stream behind what was written
 * @conn: connection, our direction framed
 *
 * Context: process. The FIN frame names the offset, so it may overtake bytes.
 */
void afr_send_fin(struct afr_conn *conn)
{
	bool first;

	spin_lock_bh(&conn->tx_lock);
	first = conn->tx.fin == AFR_NO_FIN;
	afr_tx_fin(&conn->tx);
	spin_unlock_bh(&conn->tx_lock);
	if (!first)
		return;
	afr_control_want(conn, AFR_WANT_FIN);
	afr_send_kick(conn);
	afr_control_push(conn);
}

/**
 * afr_send_room() - is a sleeping writer worth waking?
 * @conn: connection
 *
 * Context: any.
 * Return: true if so.
 */
bool afr_send_room(struct afr_conn *conn)
{
	bool room;

	spin_lock_bh(&conn->tx_lock);
	room = afr_tx_writable(&conn->tx);
	spin_unlock_bh(&conn->tx_lock);
	return room;
}

/**
 * afr_send_queued() - bytes the peer is not known to have
 * @conn: connection
 * @unsent: of these, not handed to the path yet
 *
 * Context: any.
 * Return: bytes.
 */
u64 afr_send_queued(struct afr_conn *conn, u64 *unsent)
{
	u64 queued;

	spin_lock_bh(&conn->tx_lock);
	queued = conn->tx.written - max(conn->tx.una, conn->tx.consumed);
	*unsent = conn->tx.written - conn->tx.sent;
	spin_unlock_bh(&conn->tx_lock);
	return queued;
}

/**
 * afr_send_done() - has the peer received everything up to our FIN?
 * @conn: connection
 *
 * Context: any.
 * Return: true if so.
 */
bool afr_send_done(struct afr_conn *conn)
{
	bool done;

	spin_lock_bh(&conn->tx_lock);
	done = conn->tx.finacked;
	spin_unlock_bh(&conn->tx_lock);
	return done;
}
