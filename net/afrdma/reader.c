// SPDX-License-Identifier: GPL-2.0
/* Frames in, and the work. */
#include "reader.h"

#include <linux/bvec.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/uio.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "attach.h"
#include "control.h"
#include "end.h"
#include "hook.h"
#include "move.h"
#include "path_rdma.h"
#include "recv.h"
#include "rings.h"
#include "send.h"
#include "stats.h"
#include "trace.h"
#include "urgent.h"

#define BUDGET		(512 * 1024)	/* bytes a work reads before others get their turn */
#define RX_SEGMENTS	17		/* pages of one read: 64 KiB and a misaligned start */

/* Not kernel_recvmsg(): a security module would ask who happens to do the work. */
static int inner_recv(struct afr_conn *conn, struct kvec *vec, unsigned int n, size_t len)
{
	struct msghdr msg = {};

	iov_iter_kvec(&msg.msg_iter, READ, vec, n, len);
	return READ_ONCE(conn->inner->ops)->recvmsg(conn->inner, &msg, len,
						    MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* --- what the first bytes are ------------------------------------------- */

/*
 * The first bytes of the receive queue, which stay there. Not MSG_PEEK: that begins where
 * SO_PEEK_OFF says, which is the program's.
 */
static unsigned int queue_copy(struct sock *isk, u8 *buf, unsigned int len)
{
	unsigned int got = 0, n;
	struct sk_buff *skb;
	u32 offset;

	sock_owned_by_me(isk);
	skb_queue_walk(&isk->sk_receive_queue, skb) {
		offset = tcp_sk(isk)->copied_seq + got - TCP_SKB_CB(skb)->seq;
		if (TCP_SKB_CB(skb)->tcp_flags & TCPHDR_SYN)
			offset--;
		if (offset >= skb->len)
			continue;
		n = min(len - got, skb->len - offset);
		if (skb_copy_bits(skb, offset, buf + got, n))
			break;
		got += n;
		if (got == len)
			break;
	}
	return got;
}

/* Bytes that are there, of @len at most; 0 at the end of TCP, -EAGAIN, or TCP's error. */
static int inner_look(struct afr_conn *conn, u8 *buf, unsigned int len)
{
	struct sock *isk = conn->inner->sk;
	int ret;

	lock_sock(isk);
	ret = queue_copy(isk, buf, len);
	if (!ret && !sock_flag(isk, SOCK_DONE)) {
		ret = sock_error(isk);
		if (!ret && !(isk->sk_shutdown & RCV_SHUTDOWN))
			ret = isk->sk_state == TCP_CLOSE ? -ENOTCONN : -EAGAIN;
	}
	release_sock(isk);
	return ret;
}

/* @tx and @rx: what the directions are, or are about to become. */
static void negotiated(struct afr_conn *conn, enum afr_mode tx, enum afr_mode rx,
		       enum afr_reason reason, enum afr_stat stat)
{
	WRITE_ONCE(conn->reason, reason);
	afr_stat_inc(conn->an->net, stat);
	trace_afrdma_conn_negotiated(conn->id, tx, rx, reason);
	afr_conn_timer(conn, AFR_T_HELLO, 0);
}

/*
 * Our output is raw: at once, or when TCP has taken what was written early. Input does not
 * wait for that: the peer may read only when we do.
 */
static void output_raw(struct afr_conn *conn)
{
	bool whole = afr_conn_tx_mode(conn) != AFR_UNDECIDED || afr_control_early(conn);

	if (whole && afr_conn_rx_mode(conn) == AFR_RAW) {
		/* no frame is the program's (I13) */
		AFR_CHECK(!conn->out_len && !conn->in_len);
		conn->front_ops->plain(conn);
		return;
	}
	if (whole)
		afr_conn_set_tx_mode(conn, AFR_RAW);
	afr_conn_changed(conn);
}

/* What follows is read as nothing any more, also while an abort waits (afr_end_waits()). */
static void refuse(struct afr_conn *conn, enum afr_reason reason)
{
	set_bit(AFR_F_INNER_EOF, &conn->flags);
	afr_conn_abort(conn, reason);
}

/* Are raw bytes on their way out? No frame can follow them any more. */
static bool raw_waits(const struct afr_conn *conn)
{
	return afr_conn_tx_mode(conn) == AFR_UNDECIDED &&
	       test_bit(AFR_F_EARLY_OVER, &conn->flags);
}

/* The peer's first bytes are the application's. */
static void found_raw(struct afr_conn *conn, enum afr_reason reason)
{
	if (afr_conn_tx_mode(conn) == AFR_FRAMED) {
		afr_conn_set_rx_mode(conn, AFR_RAW);
		spin_lock_bh(&conn->tx_lock);
		/* from here on TCP's window is the credit */
		afr_tx_credit(&conn->tx, conn->tx.una);
		spin_unlock_bh(&conn->tx_lock);
		negotiated(conn, AFR_FRAMED, AFR_RAW, AFR_REASON_HALF_FRAMED, AFR_STAT_CONN_HALF);
		afr_conn_changed(conn);
		return;
	}
	negotiated(conn, AFR_RAW, AFR_RAW, reason, AFR_STAT_CONN_PLAIN);
	afr_conn_set_rx_mode(conn, AFR_RAW);
	output_raw(conn);
}

/* The peer ended without a byte. An error was told to us, and is meant for the program. */
static void found_end(struct afr_conn *conn, int err)
{
	if (err)
		WRITE_ONCE(conn->inner->sk->sk_err, -err);
	found_raw(conn, AFR_REASON_NO_HELLO);
}

/* The sender's ring, as far as its HELLO tells. */
static u32 send_ring_of(const struct afr_hello *hello)
{
	u32 order = hello->features & AFR_FEATURE_SEND_RING;

	return order < ilog2(AFR_RING_MIN) || order > ilog2(AFR_RING_MAX) ? AFR_RING_MIN :
									    1u << order;
}

/* Learn from HELLO who the peer is; when our own output is free, answer. */
static void found_hello(struct afr_conn *conn, const struct afr_hello *hello)
{
	struct afr_peer *peer = &conn->peer;

	afr_stat_inc(conn->an->net, AFR_STAT_HELLO_RECEIVED);
	memcpy(peer->instance, hello->instance, sizeof(peer->instance));
	memcpy(peer->secret, hello->secret, sizeof(peer->secret));
	peer->port = hello->port;
	afr_conn_names(conn, &peer->local, &peer->remote);
	conn->in_skip = hello->length - sizeof(struct afr_wire_hello);

	spin_lock_bh(&conn->tx_lock);
	afr_tx_set_window(&conn->tx, hello->ring);
	spin_unlock_bh(&conn->tx_lock);
	spin_lock_bh(&conn->rx_lock);
	afr_rx_set_peer_ring(&conn->rx, send_ring_of(hello));
	spin_unlock_bh(&conn->rx_lock);
	if (afr_conn_tx_mode(conn) == AFR_UNDECIDED && !raw_waits(conn)) {
		conn->my_port = afr_service_port(conn->an, conn->inner->sk->sk_family);
		afr_control_want(conn, AFR_WANT_HELLO);
		afr_conn_set_tx_mode(conn, AFR_FRAMED);
	}
	afr_conn_set_rx_mode(conn, AFR_FRAMED);
	afr_hook_make_room(conn);
	if (afr_conn_tx_mode(conn) == AFR_FRAMED)
		negotiated(conn, AFR_FRAMED, AFR_FRAMED, AFR_REASON_NOT_YET, AFR_STAT_CONN_FRAMED);
	else
		negotiated(conn, AFR_RAW, AFR_FRAMED, AFR_REASON_HALF_FRAMED, AFR_STAT_CONN_HALF);
	afr_conn_decided(conn);
}

/* With the answer goes a listener for links, and who makes it gives it his namespace. */
static bool may_answer(struct afr_conn *conn)
{
	return afr_conn_in_worker(conn) || afr_conn_tx_mode(conn) != AFR_UNDECIDED ||
	       afr_service_listens(conn->an);
}

/*
 * The client has sent nothing for hello_timeout_ms: start our output raw. Our first raw byte
 * tells the client that TCP's window is its credit. With nothing to send we stay undecided: if
 * HELLO came after a silent decision, the client would wait for CREDIT, which a raw direction
 * cannot carry. Half a HELLO can neither be delivered nor awaited (PA5).
 */
static void hello_late(struct afr_conn *conn, int seen)
{
	if (seen > 0) {
		refuse(conn, AFR_REASON_HELLO_CUT);
		return;
	}
	if (afr_conn_tx_mode(conn) != AFR_UNDECIDED)
		return;
	if (!afr_send_waits(conn)) {
		afr_conn_timer(conn, AFR_T_HELLO, READ_ONCE(conn->an->set.hello_timeout_ms));
		return;
	}
	afr_stat_inc(conn->an->net, AFR_STAT_HELLO_TIMEOUT);
	WRITE_ONCE(conn->reason, AFR_REASON_HELLO_TIMEOUT);
	output_raw(conn);
}

static void hello_step(struct afr_conn *conn)
{
	u8 buf[sizeof(struct afr_wire_hello)];
	struct kvec vec = { buf, sizeof(buf) };
	/* before the look, or an end behind new bytes is taken for theirs */
	bool ended = afr_hook_ended(conn);
	struct afr_hello hello;
	int seen, err = 0;

	seen = inner_look(conn, buf, sizeof(buf));
	if (seen < 0 && seen != -EAGAIN) {
		err = seen;
		ended = true;
	}
	switch (afr_hello_parse(buf, max(seen, 0), afr_hello_proof(conn->nonce, !conn->server),
				&hello)) {
	case AFR_HELLO_MORE:
		if (ended && seen > 0)
			refuse(conn, AFR_REASON_HELLO_CUT);
		else if (ended && afr_conn_tx_mode(conn) == AFR_FRAMED)
			afr_end_inner(conn, err);
		else if (ended)
			found_end(conn, err);
		else if (afr_conn_timer_due(conn, AFR_T_HELLO))
			hello_late(conn, seen);
		return;
	case AFR_HELLO_YES:
		if (!may_answer(conn)) {
			afr_conn_schedule(conn);
			return;
		}
		inner_recv(conn, &vec, 1, sizeof(buf));
		found_hello(conn, &hello);
		return;
	case AFR_HELLO_NO:
		found_raw(conn, AFR_REASON_NO_HELLO);
		return;
	case AFR_HELLO_BAD:
		refuse(conn, AFR_REASON_HELLO_BAD);
		return;
	}
}

/* --- frames ------------------------------------------------------------- */

static int on_data(struct afr_conn *conn, const struct afr_frame *frame)
{
	int bad;

	if (test_bit(AFR_F_ORPHAN, &conn->flags)) {
		conn->in_skip = frame->length;	/* nobody will read them (PE7) */
		afr_conn_abort(conn, AFR_REASON_ORPHAN_DATA);
		return 0;
	}
	/* half-framed: the sender had no window to obey, reading stops when the ring is full */
	if (afr_conn_tx_mode(conn) != AFR_FRAMED) {
		if (frame->offset != conn->rx.visible)
			return AFR_REASON_DATA_OFFSET;
		if (frame->length > conn->rx.fin - conn->rx.visible)
			return AFR_REASON_DATA_AFTER_FIN;
		conn->in_data = frame->length;
		return 0;
	}
	spin_lock_bh(&conn->rx_lock);
	bad = afr_rx_data(&conn->rx, frame->offset, frame->length);
	spin_unlock_bh(&conn->rx_lock);
	conn->in_data = frame->length;
	return bad;
}

static int on_credit(struct afr_conn *conn, const struct afr_frame *frame)
{
	int bad;

	spin_lock_bh(&conn->tx_lock);
	bad = afr_tx_credit(&conn->tx, frame->offset);
	clear_bit(AFR_F_BLOCKED_TOLD, &conn->flags);
	spin_unlock_bh(&conn->tx_lock);
	return bad;
}

static int on_blocked(struct afr_conn *conn, const struct afr_frame *frame)
{
	bool due, imm;

	spin_lock_bh(&conn->rx_lock);
	afr_rx_blocked(&conn->rx);
	imm = conn->credit_imm;
	due = afr_rx_credit_due(&conn->rx, imm);
	spin_unlock_bh(&conn->rx_lock);
	if (due && imm)
		afr_path_rdma_credit(conn);
	else if (due)
		afr_control_want(conn, AFR_WANT_CREDIT);
	return 0;
}

static int on_fin(struct afr_conn *conn, const struct afr_frame *frame)
{
	int bad;

	spin_lock_bh(&conn->rx_lock);
	bad = afr_rx_fin(&conn->rx, frame->offset);
	spin_unlock_bh(&conn->rx_lock);
	if (!bad)
		afr_conn_changed(conn);
	return bad;
}

static int on_finack(struct afr_conn *conn, const struct afr_frame *frame)
{
	int bad = AFR_REASON_FINACK_BAD;

	spin_lock_bh(&conn->tx_lock);
	/* on TCP the peer cannot have what TCP has not taken yet */
	if (conn->tx.where != AFR_ON_TCP || conn->tx.una == conn->tx.written)
		bad = afr_tx_finack(&conn->tx, frame->offset);
	spin_unlock_bh(&conn->tx_lock);
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
	[AFR_FRAME_ATTACH]	= afr_attach_asked,
	[AFR_FRAME_ATTACHED]	= afr_attach_answered,
	[AFR_FRAME_BLOCKED]	= on_blocked,
	[AFR_FRAME_MOVE]	= afr_move_move,
	[AFR_FRAME_RESUME]	= afr_move_resume,
	[AFR_FRAME_FIN]		= on_fin,
	[AFR_FRAME_FINACK]	= on_finack,
	[AFR_FRAME_URGENT]	= afr_urgent_came,
	[AFR_FRAME_ERROR]	= on_error,
	[AFR_FRAME_URGENTACK]	= afr_urgent_acked,
	[AFR_FRAME_SERVICE]	= afr_move_service,
};

/* A whole head is in @in: returns 0, or why the connection ends. */
static int on_frame(struct afr_conn *conn, const struct afr_frame *frame)
{
	afr_stat_inc(conn->an->net, AFR_STAT_FRAMES_RECEIVED);
	if (frame->type < ARRAY_SIZE(handlers) && handlers[frame->type])
		return handlers[frame->type](conn, frame);
	conn->in_skip = frame->length;	/* unknown and optional, or the parser had refused it */
	return 0;
}

/*
 * Read the rest of a frame head, no byte more. Returns bytes read, or what recv
 * said (0: end of TCP). Calls on_frame() when the head is whole.
 */
static int read_head(struct afr_conn *conn)
{
	unsigned int need = sizeof(struct afr_wire_frame);
	struct afr_frame frame;
	struct kvec vec;
	int ret, used;

	used = afr_frame_parse(conn->in, conn->in_len, &frame, &need);
	if (WARN_ON_ONCE(used || need <= conn->in_len || need > sizeof(conn->in)))
		return -EPROTO;
	vec.iov_base = conn->in + conn->in_len;
	vec.iov_len = need - conn->in_len;
	ret = inner_recv(conn, &vec, 1, vec.iov_len);
	if (ret <= 0)
		return ret;
	conn->in_len += ret;

	used = afr_frame_parse(conn->in, conn->in_len, &frame, &need);
	if (used < 0) {
		refuse(conn, AFR_REASON_FRAME_BAD);
		return ret;
	}
	if (!used)
		return ret;
	conn->in_len = 0;
	used = on_frame(conn, &frame);
	if (used)
		refuse(conn, used);
	return ret;
}

static int read_skip(struct afr_conn *conn)
{
	u8 drop[64];
	struct kvec vec = { drop, min_t(size_t, conn->in_skip, sizeof(drop)) };
	int ret = inner_recv(conn, &vec, 1, vec.iov_len);

	if (ret > 0)
		conn->in_skip -= ret;
	return ret;
}

/* How much may be read at rx.visible; nobody takes the pages away until data_end(). */
static u32 data_begin(struct afr_conn *conn)
{
	u32 room;

	spin_lock_bh(&conn->rx_lock);
	room = conn->rx.ring - afr_rx_readable(&conn->rx);
	conn->rx_busy = true;
	spin_unlock_bh(&conn->rx_lock);
	return min3(conn->in_data, room, (u32)((RX_SEGMENTS - 1) * PAGE_SIZE));
}

static void data_end(struct afr_conn *conn, int got)
{
	bool all;

	spin_lock_bh(&conn->rx_lock);
	conn->rx_busy = false;
	if (got > 0) {
		afr_rx_arrived(&conn->rx, got);
		conn->rx_bytes[AFR_ON_TCP] += got;
	}
	all = conn->rx.visible == conn->rx.fin;
	spin_unlock_bh(&conn->rx_lock);
	if (got <= 0)
		return;
	conn->in_data -= got;
	afr_stat_add(conn->an->net, AFR_STAT_RX_BYTES_TCP, got);
	afr_conn_readable(conn);
	if (all)
		afr_conn_changed(conn);		/* FIN came before */
}

/* Read @len bytes from TCP to their place in the ring. */
static int data_into_ring(struct afr_conn *conn, u32 len)
{
	struct bio_vec bv[RX_SEGMENTS];
	struct kvec vec[RX_SEGMENTS];
	u64 at = conn->rx.visible;	/* ours to move while the direction is on TCP */
	unsigned int n, i;
	int backed;

	backed = afr_rings_back_rcv(conn, len);
	if (backed < 0) {	/* the bytes stay in TCP; another socket may free pages later */
		afr_conn_timer(conn, AFR_T_MEMORY,
			       backed == -ENOMEM ? AFR_MEM_RETRY_MS : AFR_MEM_LIMIT_MS);
		return -EAGAIN;
	}
	n = afr_mem_bvec(&conn->rcv, at, backed, bv, RX_SEGMENTS, &len);
	for (i = 0; i < n; i++) {
		vec[i].iov_base = page_address(bv[i].bv_page) + bv[i].bv_offset;
		vec[i].iov_len = bv[i].bv_len;
	}
	return inner_recv(conn, vec, n, len);
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
	smp_mb__after_atomic();	/* then look again: the program may have read meanwhile (O1) */
	if (afr_recv_readable(conn) < conn->rx.ring)
		afr_conn_schedule(conn);
	return ret;
}

/* TCP is dead, as a sender was told. What had come before is still to be read, as with TCP. */
static bool reads_last(struct afr_conn *conn)
{
	enum afr_reason reason = READ_ONCE(conn->abort_reason);

	return (reason == AFR_REASON_RESET || reason == AFR_REASON_TCP_ERROR) &&
	       !test_bit(AFR_F_ABORTED, &conn->flags) &&
	       !test_bit(AFR_F_INNER_EOF, &conn->flags) && afr_hook_ended(conn);
}

static bool reads(struct afr_conn *conn)
{
	return !test_bit(AFR_F_ABORT, &conn->flags) || afr_end_waits(conn) || reads_last(conn);
}

/* Returns true when the budget is used up and there may be more. */
static bool read_frames(struct afr_conn *conn)
{
	int budget = BUDGET, ret;

	while (budget > 0 && reads(conn)) {
		if (afr_hook_silent(conn))
			return false;
		if (conn->in_data)
			ret = read_data(conn);
		else if (conn->in_skip)
			ret = read_skip(conn);
		else
			ret = read_head(conn);
		if (ret == -EAGAIN)
			return false;
		if (ret <= 0) {
			afr_end_inner(conn, ret);
			return false;
		}
		budget -= ret;
	}
	return budget <= 0;
}

/* --- the work ----------------------------------------------------------- */

static void run(struct afr_conn *conn)
{
	bool more = false, may = reads(conn), steps;

	AFR_CHECK(test_bit(AFR_F_STARTED, &conn->flags));	/* books and rings are there (I6) */
	afr_conn_timer_due(conn, AFR_T_MEMORY);	/* it only had to bring us here */
	afr_rings_tell_sender(conn);
	if (afr_conn_timer_due(conn, AFR_T_SAY))
		set_bit(AFR_F_SAY, &conn->flags);
	if (may && afr_conn_rx_mode(conn) == AFR_UNDECIDED)
		hello_step(conn);
	if (may && raw_waits(conn))
		output_raw(conn);
	if (!test_bit(AFR_F_ALIVE, &conn->flags))
		return;		/* became plain */
	if (afr_conn_rx_mode(conn) == AFR_FRAMED && !test_bit(AFR_F_INNER_EOF, &conn->flags)) {
		do
			more = read_frames(conn);
		while (more && test_bit(AFR_F_ABORT, &conn->flags) && reads_last(conn));
		if (!more && !test_bit(AFR_F_INNER_EOF, &conn->flags))
			afr_end_unread(conn);
	}
	steps = conn->attach == AFR_DETACHED || afr_conn_may_wait(conn);
	if (!steps) {
		afr_conn_schedule_link(conn);	/* steps to and from a link may wait for the peer */
	} else if (afr_conn_framed(conn)) {
		afr_move_consider(conn);
		afr_move_run(conn);
	}
	if (afr_conn_tx_mode(conn) == AFR_FRAMED)
		afr_send_kick(conn);
	if (steps)
		afr_end_run(conn);
	if (afr_conn_tx_mode(conn) == AFR_FRAMED)
		afr_send_blocked(conn);
	afr_control_push(conn);
	if (!test_bit(AFR_F_ALIVE, &conn->flags))
		return;		/* finished */
	if (READ_ONCE(conn->want) & AFR_WANT_LAZY && !test_bit(AFR_F_ABORTED, &conn->flags) &&
	    !test_bit(AFR_F_TCP_FULL, &conn->flags))
		afr_conn_timer(conn, AFR_T_SAY, AFR_SAY_MS);
	if (more)
		afr_conn_schedule(conn);
}

/**
 * afr_reader_init() - hand the work down to conn.c
 *
 * Context: module load.
 */
void afr_reader_init(void)
{
	afr_conn_set_work(run);
}
