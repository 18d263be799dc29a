// SPDX-License-Identifier: GPL-2.0
/* The program's side of receiving. */
#include "recv.h"

#include <linux/uio.h>

#include "control.h"
#include "path_rdma.h"

/**
 * afr_recv_readable() - what can be read now
 * @conn: connection
 *
 * Context: any.
 * Return: bytes.
 */
u32 afr_recv_readable(struct afr_conn *conn)
{
	u32 n;

	spin_lock_bh(&conn->rx_lock);
	n = afr_rx_readable(&conn->rx);
	spin_unlock_bh(&conn->rx_lock);
	return n;
}

/**
 * afr_recv_fin() - has the peer named its end, and has all of it arrived?
 * @conn: connection
 *
 * Context: any.
 * Return: true if so.
 */
bool afr_recv_fin(struct afr_conn *conn)
{
	bool fin;

	spin_lock_bh(&conn->rx_lock);
	fin = conn->rx.visible == conn->rx.fin;
	spin_unlock_bh(&conn->rx_lock);
	return fin;
}

/**
 * afr_recv_copy() - bytes of the stream to the program
 * @conn: connection, the peer's direction framed
 * @skip: start so many bytes after the cursor (MSG_PEEK)
 * @iter: where to, NULL to drop
 * @len: at most
 *
 * The bytes can change under us while the peer holds the key of the ring: they
 * are copied once and never looked at.
 *
 * Context: process, one reader at a time.
 * Return: bytes copied or -EFAULT.
 */
ssize_t afr_recv_copy(struct afr_conn *conn, u64 skip, struct iov_iter *iter, size_t len)
{
	u32 readable = afr_recv_readable(conn);
	size_t n;

	if (skip >= readable)
		return 0;
	n = min_t(size_t, len, readable - skip);
	if (!n || !iter)
		return n;
	n = afr_mem_copy_out(&conn->rcv, conn->rx.consumed + skip, n, iter);
	return n ? n : -EFAULT;
}

/**
 * afr_recv_consume() - the reader is done with bytes
 * @conn: connection
 * @len: how many, at most what is readable
 *
 * Context: process, one reader at a time.
 */
void afr_recv_consume(struct afr_conn *conn, size_t len)
{
	bool due, imm;

	spin_lock_bh(&conn->rx_lock);
	/* pages go before the cursor gives the peer their place in the ring */
	afr_mem_release(&conn->rcv, conn->rx.consumed, conn->rx.consumed + len,
			conn->rx_busy ? conn->rx.consumed + conn->rx.ring : conn->rx.visible);
	afr_rx_consume(&conn->rx, len);
	imm = conn->credit_imm;
	due = afr_rx_credit_due(&conn->rx, imm);
	spin_unlock_bh(&conn->rx_lock);

	if (due && imm) {
		afr_path_rdma_credit(conn);
	} else if (due) {
		afr_control_want(conn, AFR_WANT_CREDIT);
		afr_control_push(conn);
	}
	if (test_bit(AFR_F_STALLED, &conn->flags))
		afr_conn_schedule(conn);
}

/**
 * afr_recv_refuse() - the program wants no more bytes, and sends none
 * @conn: connection
 *
 * Bytes that have come stay readable; more of them reset the connection.
 *
 * Context: process.
 */
void afr_recv_refuse(struct afr_conn *conn)
{
	spin_lock_bh(&conn->rx_lock);
	if (!test_and_set_bit(AFR_F_DEAF, &conn->flags))
		conn->deaf_at = conn->rx.visible;
	spin_unlock_bh(&conn->rx_lock);
}
