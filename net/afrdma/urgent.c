// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Urgent data: handles URGENT and URGENTACK, tells where a read has to stop and whether an urgent
 * byte can be read, and reads that byte for recv(MSG_OOB).
 */
#include "urgent.h"

#include <linux/uio.h>

#include "frame_tx.h"
#include "send.h"

/**
 * afr_urgent_rx() - handle URGENT
 * @conn: connection
 * @frame: parsed URGENT
 *
 * As in TCP, a later urgent offset replaces an earlier one. The earlier byte becomes an ordinary
 * byte of the stream. But if it was the next byte to read when the later offset came, a read
 * without SO_OOBINLINE skips it. An offset that is below the consumer cursor, or not above the
 * current urgent offset, is only acknowledged. A one-way connection cannot acknowledge.
 *
 * Context: connection worker.
 * Return: 0.
 */
int afr_urgent_rx(struct afr_conn *conn, const struct afr_frame *frame)
{
	bool news;

	spin_lock_bh(&conn->rx.lock);
	news = frame->offset >= conn->rx.seq.consumed &&
	       (conn->rx.urgent == AFR_NO_URGENT || frame->offset > conn->rx.urgent);
	if (news) {
		if (conn->rx.urgent == conn->rx.seq.consumed)
			WRITE_ONCE(conn->rx.urgent_skip, conn->rx.urgent);
		WRITE_ONCE(conn->rx.urgent, frame->offset);
		conn->rx.urgent_read = false;
	}
	conn->rx.urgent_ack = frame->offset;
	spin_unlock_bh(&conn->rx.lock);
	if (afr_conn_negotiated(conn))
		afr_frame_tx_request(conn, AFR_FRAME_URGENTACK);
	if (news)
		afr_conn_urgent(conn);
	return 0;
}

/**
 * afr_urgent_rx_ack() - handle URGENTACK: bytes that were held back may be sent
 * @conn: connection
 * @frame: parsed URGENTACK
 *
 * Context: connection worker, which restarts the send path later in the same run.
 * Return: 0.
 */
int afr_urgent_rx_ack(struct afr_conn *conn, const struct afr_frame *frame)
{
	spin_lock_bh(&conn->tx.lock);
	afr_tx_urgent_ack(&conn->tx.seq, frame->offset);
	spin_unlock_bh(&conn->tx.lock);
	return 0;
}

/**
 * afr_urgent_offset() - get the urgent offset, at which the reader has to stop
 * @conn: connection that was started, receive direction not in fallback mode
 *
 * Context: any but hard irq.
 * Return: offset of the urgent byte, even if recv(MSG_OOB) has read it; AFR_NO_URGENT if there is
 * none, or the consumer cursor is past it.
 */
u64 afr_urgent_offset(struct afr_conn *conn)
{
	u64 urgent;

	if (READ_ONCE(conn->rx.urgent) == AFR_NO_URGENT)
		return AFR_NO_URGENT;
	spin_lock_bh(&conn->rx.lock);
	if (conn->rx.urgent != AFR_NO_URGENT && conn->rx.urgent < conn->rx.seq.consumed)
		WRITE_ONCE(conn->rx.urgent, AFR_NO_URGENT);
	urgent = conn->rx.urgent;
	spin_unlock_bh(&conn->rx.lock);
	return urgent;
}

/* Has the byte at @urgent arrived? If so, the lock ensures that the caller sees it in the ring. */
static bool arrived(struct afr_conn *conn, u64 urgent)
{
	bool here;

	spin_lock_bh(&conn->rx.lock);
	here = conn->rx.seq.visible > urgent;
	spin_unlock_bh(&conn->rx.lock);
	return here;
}

/**
 * afr_urgent_readable() - has an urgent byte arrived that was not read yet?
 * @conn: connection
 *
 * Context: any but hard irq.
 * Return: true if so; poll reports EPOLLPRI.
 */
bool afr_urgent_readable(struct afr_conn *conn)
{
	u64 urgent = afr_urgent_offset(conn);

	return urgent != AFR_NO_URGENT && !READ_ONCE(conn->rx.urgent_read) && arrived(conn, urgent);
}

/**
 * afr_urgent_read() - read the urgent byte for recv(MSG_OOB)
 * @conn: connection
 * @to: destination
 * @peek: leave the byte unread
 *
 * Context: process, one reader at a time.
 * Return: 1, or 0 if @to has no space; -EINVAL if there is no urgent byte, or it was read already;
 * -EAGAIN if only URGENT has come and not the byte; -EFAULT.
 */
int afr_urgent_read(struct afr_conn *conn, struct iov_iter *to, bool peek)
{
	u64 urgent = afr_urgent_offset(conn);
	size_t n = 0;

	if (urgent == AFR_NO_URGENT || READ_ONCE(conn->rx.urgent_read))
		return -EINVAL;
	if (!arrived(conn, urgent))
		return -EAGAIN;
	if (iov_iter_count(to)) {
		n = afr_ring_mem_copy_out(&conn->rx.mem, urgent, 1, to);
		if (!n)
			return -EFAULT;
	}
	spin_lock_bh(&conn->rx.lock);
	/* a later urgent offset may have come in the meantime, and its byte is unread */
	if (!peek && conn->rx.urgent == urgent)
		conn->rx.urgent_read = true;
	spin_unlock_bh(&conn->rx.lock);
	return n;
}
