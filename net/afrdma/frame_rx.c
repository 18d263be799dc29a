// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Receives frames from TCP: reads header and fixed body of each frame, passes the frame to its
 * handler, and reads the bytes of DATA into the receive ring. Bytes for which the ring has no
 * space or page stay in TCP.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/nospec.h>
#include <linux/uio.h>

#include "attach.h"
#include "close.h"
#include "conn_rings.h"
#include "frame_rx.h"
#include "frame_tx.h"
#include "move.h"
#include "rdma_tx.h"
#include "recv.h"
#include "tcp_sock.h"
#include "urgent.h"

#define BUDGET		(512 * 1024)	/* bytes read before the worker is queued again */
#define RX_SEGMENTS	17		/* pages in which one read of up to 16 pages can lie */

static int on_data(struct afr_conn *conn, const struct afr_frame *frame)
{
	int bad;

	if (test_bit(AFR_F_ORPHAN, &conn->flags)) {
		conn->in.skip = frame->length;	/* no program will read it (PE7) */
		afr_conn_abort(conn, AFR_REASON_ORPHAN_DATA);
		return 0;
	}
	/*
	 * The send direction of this end is in fallback mode, or may be soon. It then sends no
	 * CREDIT, so the peer may exceed the window; read_data() stops reading TCP at a full ring.
	 */
	if (afr_conn_tx_mode(conn) != AFR_MODE_FRAMED) {
		if (frame->offset != conn->rx.seq.visible)
			return AFR_REASON_DATA_OFFSET;
		if (frame->length > conn->rx.seq.fin - conn->rx.seq.visible)
			return AFR_REASON_DATA_AFTER_FIN;
		conn->in.data = frame->length;
		return 0;
	}
	spin_lock_bh(&conn->rx.lock);
	bad = afr_rx_data(&conn->rx.seq, frame->offset, frame->length);
	spin_unlock_bh(&conn->rx.lock);
	conn->in.data = frame->length;
	return bad;
}

static int on_credit(struct afr_conn *conn, const struct afr_frame *frame)
{
	int bad;

	spin_lock_bh(&conn->tx.lock);
	bad = afr_tx_credit(&conn->tx.seq, frame->offset);
	clear_bit(AFR_F_BLOCKED_SENT, &conn->flags);
	spin_unlock_bh(&conn->tx.lock);
	return bad;
}

static int on_blocked(struct afr_conn *conn, const struct afr_frame *frame)
{
	bool due, imm;

	spin_lock_bh(&conn->rx.lock);
	afr_rx_blocked(&conn->rx.seq);
	imm = conn->rx.credit_imm;
	due = afr_rx_credit_due(&conn->rx.seq, imm);
	spin_unlock_bh(&conn->rx.lock);
	if (due && imm)
		afr_rdma_tx_credit(conn);
	else if (due)
		afr_frame_tx_request(conn, AFR_FRAME_CREDIT);
	return 0;
}

static int on_fin(struct afr_conn *conn, const struct afr_frame *frame)
{
	int bad;

	spin_lock_bh(&conn->rx.lock);
	bad = afr_rx_fin(&conn->rx.seq, frame->offset);
	spin_unlock_bh(&conn->rx.lock);
	if (!bad)
		afr_conn_changed(conn);
	return bad;
}

static int on_finack(struct afr_conn *conn, const struct afr_frame *frame)
{
	int bad = AFR_REASON_FINACK_BAD;

	spin_lock_bh(&conn->tx.lock);
	/* on TCP, the peer cannot have received bytes that the local TCP has not taken yet */
	if (conn->tx.seq.where != AFR_ON_TCP || conn->tx.seq.una == conn->tx.seq.written)
		bad = afr_tx_finack(&conn->tx.seq, frame->offset);
	spin_unlock_bh(&conn->tx.lock);
	if (!bad)
		afr_conn_changed(conn);
	return bad;
}

static int on_error(struct afr_conn *conn, const struct afr_frame *frame)
{
	return AFR_REASON_PEER_ERROR;
}

static int (*const handlers[])(struct afr_conn *conn, const struct afr_frame *frame) = {
	[AFR_FRAME_DATA]	= on_data,
	[AFR_FRAME_CREDIT]	= on_credit,
	[AFR_FRAME_ATTACH]	= afr_attach_rx_attach,
	[AFR_FRAME_ATTACHED]	= afr_attach_rx_attached,
	[AFR_FRAME_BLOCKED]	= on_blocked,
	[AFR_FRAME_MOVE]	= afr_move_rx_move,
	[AFR_FRAME_RESUME]	= afr_move_rx_resume,
	[AFR_FRAME_FIN]		= on_fin,
	[AFR_FRAME_FINACK]	= on_finack,
	[AFR_FRAME_URGENT]	= afr_urgent_rx,
	[AFR_FRAME_ERROR]	= on_error,
	[AFR_FRAME_URGENTACK]	= afr_urgent_rx_ack,
	[AFR_FRAME_SERVICE]	= afr_move_rx_service,
};

static_assert(ARRAY_SIZE(handlers) == AFR_FRAME_NEXT, "a handler for the last type");

/*
 * Handles a frame whose header and fixed body were read. Returns 0, or the AFR_REASON_* for an
 * abort.
 */
static int on_frame(struct afr_conn *conn, const struct afr_frame *frame)
{
	u8 type;

	afr_netns_count(conn->an->net, AFR_STAT_FRAMES_RECEIVED);
	if (frame->type < AFR_FRAME_NEXT) {
		type = array_index_nospec(frame->type, AFR_FRAME_NEXT);
		if (handlers[type])
			return handlers[type](conn, frame);
	}
	/* an unknown optional frame: the parser has refused all other unknown frames */
	conn->in.skip = frame->length;
	return 0;
}

/*
 * Reads the rest of a frame's header or, once the header is complete, of its fixed body, and no
 * byte more. When both are complete, calls on_frame(). If the parser refuses the frame, or
 * on_frame() returns a reason, aborts the connection. Returns the bytes read, or 0 or an error of
 * afr_tcp_sock_recv().
 */
static int read_head(struct afr_conn *conn)
{
	unsigned int need = sizeof(struct afr_wire_frame);
	struct afr_frame frame;
	struct kvec vec;
	int ret, used;

	used = afr_frame_parse(conn->in.head, conn->in.len, &frame, &need);
	if (WARN_ON_ONCE(used || need <= conn->in.len || need > sizeof(conn->in.head)))
		return -EPROTO;
	vec.iov_base = conn->in.head + conn->in.len;
	vec.iov_len = need - conn->in.len;
	ret = afr_tcp_sock_recv(conn, &vec, 1, vec.iov_len);
	if (ret <= 0)
		return ret;
	conn->in.len += ret;

	used = afr_frame_parse(conn->in.head, conn->in.len, &frame, &need);
	if (used < 0) {
		afr_close_refuse(conn, AFR_REASON_FRAME_BAD);
		return ret;
	}
	if (!used)
		return ret;
	conn->in.len = 0;
	used = on_frame(conn, &frame);
	if (used)
		afr_close_refuse(conn, used);
	return ret;
}

/* Reads and discards bytes of an unknown frame, of DATA for an orphan, or at the end of HELLO. */
static int read_skip(struct afr_conn *conn)
{
	u8 drop[64];
	struct kvec vec = { drop, min_t(size_t, conn->in.skip, sizeof(drop)) };
	int ret = afr_tcp_sock_recv(conn, &vec, 1, vec.iov_len);

	if (ret > 0)
		conn->in.skip -= ret;
	return ret;
}

/*
 * Returns how many bytes may be read into the ring, from rx.seq.visible on. Until data_end(),
 * rx.busy keeps their pages from being freed.
 */
static u32 data_begin(struct afr_conn *conn)
{
	u32 room;

	spin_lock_bh(&conn->rx.lock);
	room = conn->rx.seq.ring - afr_rx_readable(&conn->rx.seq);
	conn->rx.busy = true;
	spin_unlock_bh(&conn->rx.lock);
	return min3(conn->in.data, room, (u32)((RX_SEGMENTS - 1) * PAGE_SIZE));
}

/* Ends a read of DATA: makes @got bytes visible to the program, none if @got is 0 or an error. */
static void data_end(struct afr_conn *conn, int got)
{
	bool all;

	spin_lock_bh(&conn->rx.lock);
	conn->rx.busy = false;
	if (got > 0) {
		afr_rx_data_received(&conn->rx.seq, got);
		conn->rx.bytes[AFR_ON_TCP] += got;
	}
	all = conn->rx.seq.visible == conn->rx.seq.fin;
	spin_unlock_bh(&conn->rx.lock);
	if (got <= 0)
		return;
	conn->in.data -= got;
	afr_netns_add(conn->an->net, AFR_STAT_RX_BYTES_TCP, got);
	afr_conn_readable(conn);
	if (all)
		afr_conn_changed(conn);		/* FIN came before these last bytes */
}

/* Reads up to @len bytes from TCP to their place in the receive ring. */
static int data_into_ring(struct afr_conn *conn, u32 len)
{
	struct bio_vec bv[RX_SEGMENTS];
	struct kvec vec[RX_SEGMENTS];
	u64 at = conn->rx.seq.visible;	/* while the path is TCP, only the worker changes it */
	unsigned int n, i;
	int backed;

	backed = afr_conn_rings_back_rcv(conn, len);
	if (backed < 0) {	/* the bytes stay in TCP; later there may be a page for them */
		afr_conn_timer(conn, AFR_T_PAGE_RETRY,
			       backed == -ENOMEM ? AFR_RING_MEM_RETRY_MS : AFR_RING_MEM_LIMIT_MS);
		return -EAGAIN;
	}
	n = afr_ring_mem_bvec(&conn->rx.mem, at, backed, bv, RX_SEGMENTS, &len);
	for (i = 0; i < n; i++) {
		vec[i].iov_base = page_address(bv[i].bv_page) + bv[i].bv_offset;
		vec[i].iov_len = bv[i].bv_len;
	}
	return afr_tcp_sock_recv(conn, vec, n, len);
}

static int read_data(struct afr_conn *conn)
{
	u32 len = data_begin(conn);
	int ret = -EAGAIN;

	if (len) {
		clear_bit(AFR_F_STALLED, &conn->flags);
		ret = data_into_ring(conn, len);
	}
	data_end(conn, ret);
	if (len)
		return ret;
	set_bit(AFR_F_STALLED, &conn->flags);
	smp_mb__after_atomic();	/* set before testing: the program may have read meanwhile (O1) */
	if (afr_recv_readable(conn) < conn->rx.seq.ring)
		afr_conn_schedule(conn);
	return ret;
}

/**
 * afr_frame_rx_drains() - are frames still read although the TCP connection is dead?
 * @conn: connection
 *
 * They are if a send has got the error from TCP and requested the abort: bytes that had arrived
 * before the error can still be read, as in TCP.
 *
 * Context: connection worker.
 * Return: true if so, until the end of the TCP stream is reached or the abort is done.
 */
bool afr_frame_rx_drains(struct afr_conn *conn)
{
	enum afr_reason reason = READ_ONCE(conn->abort_reason);

	return (reason == AFR_REASON_RESET || reason == AFR_REASON_TCP_ERROR) &&
	       !test_bit(AFR_F_ABORTED, &conn->flags) &&
	       !test_bit(AFR_F_TCP_EOF, &conn->flags) && afr_tcp_sock_ended(conn);
}

/**
 * afr_frame_rx_may_read() - may HELLO and frames be read?
 * @conn: connection
 *
 * Once the connection has to abort, they may be read only while afr_close_abort_deferred() or
 * afr_frame_rx_drains() is true.
 *
 * Context: connection worker.
 * Return: true if so.
 */
bool afr_frame_rx_may_read(struct afr_conn *conn)
{
	return !test_bit(AFR_F_ABORT, &conn->flags) || afr_close_abort_deferred(conn) ||
	       afr_frame_rx_drains(conn);
}

/**
 * afr_frame_rx_run() - read and handle frames from TCP, as far as ring and budget allow
 * @conn: connection, receive direction framed
 *
 * Context: connection worker.
 * Return: true if the budget is used up and there may be more.
 */
bool afr_frame_rx_run(struct afr_conn *conn)
{
	int budget = BUDGET, ret;

	lockdep_assert_held(&conn->worker.mutex);	/* protects conn->in */
	while (budget > 0 && afr_frame_rx_may_read(conn)) {
		if (afr_tcp_sock_idle(conn))
			return false;
		if (conn->in.data)
			ret = read_data(conn);
		else if (conn->in.skip)
			ret = read_skip(conn);
		else
			ret = read_head(conn);
		if (ret == -EAGAIN)
			return false;
		if (ret <= 0) {
			afr_close_tcp_eof(conn, ret);
			return false;
		}
		budget -= ret;
	}
	return budget <= 0;
}
