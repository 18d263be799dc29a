// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Receiving. Both paths place bytes in the receive ring; here the program reads them. The space
 * that this frees is reported to the peer by an immediate or a CREDIT frame.
 */
#include "recv.h"

#include <linux/uio.h>

#include "conn_rings.h"
#include "frame_tx.h"
#include "rdma_tx.h"

/**
 * afr_recv_readable() - how many bytes can be read now
 * @conn: connection
 *
 * Context: any but hard irq.
 * Return: bytes.
 */
u32 afr_recv_readable(struct afr_conn *conn)
{
	u32 n;

	spin_lock_bh(&conn->rx.lock);
	n = afr_rx_readable(&conn->rx.seq);
	spin_unlock_bh(&conn->rx.lock);
	return n;
}

/**
 * afr_recv_fin() - has the peer's FIN come, and every byte before it?
 * @conn: connection
 *
 * Context: any but hard irq.
 * Return: true if so; the bytes need not have been read yet.
 */
bool afr_recv_fin(struct afr_conn *conn)
{
	bool fin;

	spin_lock_bh(&conn->rx.lock);
	fin = conn->rx.seq.visible == conn->rx.seq.fin;
	spin_unlock_bh(&conn->rx.lock);
	return fin;
}

/**
 * afr_recv_copy() - copy bytes of the stream to the program, without consuming them
 * @conn: connection, receive direction framed
 * @skip: start this many bytes after the consumer cursor (MSG_PEEK)
 * @iter: destination; NULL: copy nothing (MSG_TRUNC)
 * @len: maximum number of bytes
 *
 * While the peer has the key of the ring, it can change the bytes at any time. That does no harm,
 * because the module only copies them and never interprets them.
 *
 * Context: process, one reader at a time (lock_sock() of the AF_RDMA socket).
 * Return: number of bytes copied, or with a NULL @iter, of bytes that could be copied; 0 if there
 * are none; or -EFAULT.
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
	n = afr_ring_mem_copy_out(&conn->rx.mem, conn->rx.seq.consumed + skip, n, iter);
	return n ? n : -EFAULT;
}

/**
 * afr_recv_consume() - advance the consumer cursor, and report it to the peer if that is due
 * @conn: connection
 * @len: number of bytes, at most what is readable
 *
 * Frees the pages of consumed bytes, unless the ring is pinned, see afr_ring_mem_release().
 *
 * Context: process, one reader at a time (lock_sock() of the AF_RDMA socket).
 */
void afr_recv_consume(struct afr_conn *conn, size_t len)
{
	bool due, imm;

	spin_lock_bh(&conn->rx.lock);
	/* pages are released before the cursor lets the peer use their place in the ring */
	afr_ring_mem_release(&conn->rx.mem, conn->rx.seq.consumed, conn->rx.seq.consumed + len,
			     conn->rx.busy ? conn->rx.seq.consumed + conn->rx.seq.ring :
					     conn->rx.seq.visible);
	afr_rx_consume(&conn->rx.seq, len);
	imm = conn->rx.credit_imm;
	due = afr_rx_credit_due(&conn->rx.seq, imm);
	spin_unlock_bh(&conn->rx.lock);

	if (due && imm) {
		afr_rdma_tx_credit(conn);
	} else if (due) {
		afr_frame_tx_request(conn, AFR_FRAME_CREDIT);
		afr_frame_tx_push(conn);
	}
	if (test_bit(AFR_F_STALLED, &conn->flags))
		afr_conn_schedule(conn);
	if (test_bit(AFR_F_RINGS_CHARGED, &conn->flags))
		afr_conn_rings_freed(conn);
}

/**
 * afr_recv_refuse() - refuse further bytes, because the program has shut down both directions
 * @conn: connection
 *
 * Bytes in the receive ring stay readable. Bytes that come into the ring later reset the
 * connection, even if the TCP socket had received them before this call; on a plain TCP connection
 * they would stay readable. To make this rare, afr_shutdown() calls afr_worker_run() first, and the
 * worker moves bytes from the TCP socket to the ring. Some may remain: afr_worker_run() returns at
 * once if a run is in progress or the connection is not detached, and a run leaves bytes for which
 * the ring has no space or no page.
 *
 * Context: process.
 */
void afr_recv_refuse(struct afr_conn *conn)
{
	spin_lock_bh(&conn->rx.lock);
	if (!test_and_set_bit(AFR_F_RX_REFUSED, &conn->flags))
		conn->rx.refused_from = conn->rx.seq.visible;
	spin_unlock_bh(&conn->rx.lock);
}
