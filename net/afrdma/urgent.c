// SPDX-License-Identifier: GPL-2.0
/* Urgent data, at both ends. */
#include "urgent.h"

#include <linux/uio.h>

#include "control.h"
#include "send.h"

/**
 * afr_urgent_came() - URGENT came
 * @conn: connection
 * @frame: parsed URGENT
 *
 * As in TCP a later mark takes the place of an earlier one, whose byte becomes one
 * like others, unless the reader stands before it. A mark at what was read already is
 * old news.
 *
 * Context: the work.
 * Return: 0.
 */
int afr_urgent_came(struct afr_conn *conn, const struct afr_frame *frame)
{
	bool news;

	spin_lock_bh(&conn->rx_lock);
	news = frame->offset >= conn->rx.consumed &&
	       (conn->urgent == AFR_NO_URGENT || frame->offset > conn->urgent);
	if (news) {
		if (conn->urgent == conn->rx.consumed)
			WRITE_ONCE(conn->urgent_gone, conn->urgent);
		WRITE_ONCE(conn->urgent, frame->offset);
		conn->urgent_read = false;
	}
	conn->urgent_ack = frame->offset;
	spin_unlock_bh(&conn->rx_lock);
	if (afr_conn_framed(conn))
		afr_control_want(conn, AFR_WANT_URGENTACK);
	if (news)
		afr_conn_urgent(conn);
	return 0;
}

/**
 * afr_urgent_acked() - URGENTACK came: bytes may go that were held back
 * @conn: connection
 * @frame: parsed URGENTACK
 *
 * Context: the work, which kicks the path when it has read all frames.
 * Return: 0.
 */
int afr_urgent_acked(struct afr_conn *conn, const struct afr_frame *frame)
{
	spin_lock_bh(&conn->tx_lock);
	afr_tx_urgent_ack(&conn->tx, frame->offset);
	spin_unlock_bh(&conn->tx_lock);
	return 0;
}

/**
 * afr_urgent_mark() - where the reader has to stop
 * @conn: connection, the peer's direction framed
 *
 * Context: any.
 * Return: offset of the urgent byte, read or not; AFR_NO_URGENT if there is none at or
 * behind the reader's cursor.
 */
u64 afr_urgent_mark(struct afr_conn *conn)
{
	u64 mark;

	if (READ_ONCE(conn->urgent) == AFR_NO_URGENT)
		return AFR_NO_URGENT;
	spin_lock_bh(&conn->rx_lock);
	if (conn->urgent != AFR_NO_URGENT && conn->urgent < conn->rx.consumed)
		WRITE_ONCE(conn->urgent, AFR_NO_URGENT);
	mark = conn->urgent;
	spin_unlock_bh(&conn->rx_lock);
	return mark;
}

static bool arrived(const struct afr_conn *conn, u64 mark)
{
	return READ_ONCE(conn->rx.visible) > mark;
}

/**
 * afr_urgent_waits() - is there an urgent byte to read?
 * @conn: connection
 *
 * Context: any.
 * Return: true if so: EPOLLPRI.
 */
bool afr_urgent_waits(struct afr_conn *conn)
{
	u64 mark = afr_urgent_mark(conn);

	return mark != AFR_NO_URGENT && !READ_ONCE(conn->urgent_read) && arrived(conn, mark);
}

/**
 * afr_urgent_take() - read the urgent byte
 * @conn: connection
 * @to: where to
 * @peek: leave it
 *
 * Context: process, one reader at a time.
 * Return: bytes; -EINVAL without an urgent byte, or when it was read; -EAGAIN when its
 * mark came and it has not; -EFAULT.
 */
int afr_urgent_take(struct afr_conn *conn, struct iov_iter *to, bool peek)
{
	u64 mark = afr_urgent_mark(conn);
	size_t n = 0;

	if (mark == AFR_NO_URGENT || READ_ONCE(conn->urgent_read))
		return -EINVAL;
	if (!arrived(conn, mark))
		return -EAGAIN;
	if (iov_iter_count(to)) {
		n = afr_mem_copy_out(&conn->rcv, mark, 1, to);
		if (!n)
			return -EFAULT;
	}
	spin_lock_bh(&conn->rx_lock);
	/* a later mark may have come meanwhile, and its byte is unread */
	if (!peek && conn->urgent == mark)
		conn->urgent_read = true;
	spin_unlock_bh(&conn->rx_lock);
	return n;
}
