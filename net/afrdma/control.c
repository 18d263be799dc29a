// SPDX-License-Identifier: GPL-2.0
/* Frames out: the control channel and the tcp path. */
#include "control.h"

#include <linux/bvec.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/uio.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "rings.h"
#include "rogue.h"
#include "stats.h"
#include "trace.h"

#define DATA_MAX	(AFR_FRAME_BODY_MAX - sizeof(struct afr_wire_data))
#define DATA_SEGMENTS	(DATA_MAX / PAGE_SIZE + 1)

/*
 * One function per kind fills in the frame from the books; false: no longer
 * worth saying. All run under tx_lock.
 */
static bool build_error(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_ERROR;
	frame->reason = conn->abort_reason;
	return true;
}

static bool build_resume(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_RESUME;
	frame->resume.epoch = conn->resume_epoch;
	frame->resume.reason = conn->resume_reason;
	spin_lock(&conn->rx_lock);
	/* as they are now: DATA below S may have come, and been read, since the epoch was closed */
	frame->resume.received = conn->rx.visible;
	frame->resume.consumed = afr_rx_report(&conn->rx);
	conn->credit_imm = false;	/* CREDIT may follow this frame, never precede it (PC3) */
	spin_unlock(&conn->rx_lock);
	afr_conn_schedule(conn);	/* now the next epoch may begin, if nothing else comes */
	return true;
}

static void fill_attach(struct afr_conn *conn, struct afr_frame *frame)
{
	const struct afr_mr_view *view = afr_mr_view(conn->rcv_mr);

	frame->attach.epoch = conn->tx.epoch;
	frame->attach.reason = AFR_REASON_NONE;
	frame->attach.link = afr_link_id(conn->port.link);
	frame->attach.addr = view->addr;
	frame->attach.rkey = view->rkey;
	frame->attach.ring = conn->rx.ring;
	frame->attach.span = view->span;
	frame->attach.slot = conn->port.slot;
	frame->attach.flags = afr_link_active(conn->port.link) ? AFR_ATTACH_ACTIVE : 0;
	spin_lock(&conn->rx_lock);
	frame->attach.consumed = afr_rx_report(&conn->rx);
	spin_unlock(&conn->rx_lock);
}

/* Behind our FIN the peer may shut TCP, and could not answer: afr_attach_take_back(). */
static bool build_attach(struct afr_conn *conn, struct afr_frame *frame)
{
	if (conn->attach != AFR_ATTACHING)
		return false;
	if (conn->tx.fin != AFR_NO_FIN) {
		set_bit(AFR_WANT_ATTACH, &conn->want);
		afr_conn_schedule_link(conn);
		return false;
	}
	frame->type = AFR_FRAME_ATTACH;
	fill_attach(conn, frame);
	return true;
}

/* The refusal of an ATTACH names what it refuses; the rest only has to be well formed. */
static void fill_refusal(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->attach.epoch = conn->attach_req.attach.epoch;
	frame->attach.reason = conn->attach_reason;
	frame->attach.link = conn->attach_req.attach.link;
	frame->attach.ring = conn->rx.ring;
	frame->attach.span = conn->rx.ring;
}

static bool build_attached(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_ATTACHED;
	if (conn->attach_reason) {
		fill_refusal(conn, frame);
		return true;
	}
	if (conn->attach != AFR_ATTACHED && conn->attach != AFR_LEAVING)
		return false;
	fill_attach(conn, frame);
	spin_lock(&conn->rx_lock);
	conn->credit_imm = true;	/* no CREDIT follows this frame (PC3) */
	spin_unlock(&conn->rx_lock);
	/* who leaves already says so all the same: the client waits for it before it leaves, too */
	conn->may_post = conn->attach == AFR_ATTACHED;
	conn->corked = false;
	return true;
}

static bool build_urgent(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_URGENT;
	frame->offset = conn->tx.urgent;
	return true;
}

static bool build_move(struct afr_conn *conn, struct afr_frame *frame)
{
	if (!conn->tx.open)
		return false;
	frame->type = AFR_FRAME_MOVE;
	frame->move.epoch = conn->tx.epoch;
	frame->move.start = conn->move_start;
	return true;
}

/* With the whole stream here nobody waits for room, and TCP may be shut behind FINACK. */
static bool build_credit(struct afr_conn *conn, struct afr_frame *frame)
{
	bool say;

	frame->type = AFR_FRAME_CREDIT;
	spin_lock(&conn->rx_lock);
	say = !conn->credit_imm && !conn->rx.eof_told;
	if (say)
		frame->offset = afr_rx_report(&conn->rx);
	spin_unlock(&conn->rx_lock);
	return say;
}

static bool build_finack(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_FINACK;
	frame->offset = conn->rx.fin;
	return true;
}

static bool build_fin(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_FIN;
	frame->offset = conn->tx.fin;
	return true;
}

static bool build_blocked(struct afr_conn *conn, struct afr_frame *frame)
{
	if (!afr_tx_blocked(&conn->tx)) {
		clear_bit(AFR_F_BLOCKED_TOLD, &conn->flags);	/* not after all */
		return false;
	}
	frame->type = AFR_FRAME_BLOCKED;
	frame->offset = conn->tx.sent;
	return true;
}

static bool build_urgentack(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_URGENTACK;
	spin_lock(&conn->rx_lock);
	frame->offset = conn->urgent_ack;
	spin_unlock(&conn->rx_lock);
	return !conn->rx.eof_told;	/* TCP may be shut behind FINACK */
}

/* For an end that has a device since HELLO. Peers that do not know the frame skip it. */
static bool build_service(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_SERVICE;
	frame->flags = AFR_FRAME_OPTIONAL;
	frame->port = conn->my_port;
	/*
	 * TCP is shut when both directions are whole, ours not before it has ended. Without a
	 * port there is nothing to tell: no program of this host has a socket any more.
	 */
	return frame->port && (!conn->rx.eof_told || conn->tx.fin == AFR_NO_FIN);
}

static bool (*const builders[])(struct afr_conn *conn, struct afr_frame *frame) = {
	[AFR_WANT_ERROR]	= build_error,
	[AFR_WANT_RESUME]	= build_resume,
	[AFR_WANT_ATTACH]	= build_attach,
	[AFR_WANT_ATTACHED]	= build_attached,
	[AFR_WANT_URGENT]	= build_urgent,
	[AFR_WANT_MOVE]		= build_move,
	[AFR_WANT_CREDIT]	= build_credit,
	[AFR_WANT_FINACK]	= build_finack,
	[AFR_WANT_FIN]		= build_fin,
	[AFR_WANT_BLOCKED]	= build_blocked,
	[AFR_WANT_URGENTACK]	= build_urgentack,
	[AFR_WANT_SERVICE]	= build_service,
};

static bool build_wanted(struct afr_conn *conn, struct afr_frame *frame)
{
	unsigned int want;

	for (want = AFR_WANT_ERROR; want < ARRAY_SIZE(builders); want++)
		if (test_and_clear_bit(want, &conn->want) && builders[want](conn, frame))
			return true;
	return false;
}

/*
 * A frame boundary with every promised byte taken is where a direction may enter the
 * link. URGENT goes first: on the link its byte could overtake it.
 */
static void consider_move(struct afr_conn *conn)
{
	if (!conn->may_post || test_bit(AFR_WANT_URGENT, &conn->want) ||
	    !afr_tx_may_move(&conn->tx))
		return;
	conn->move_start = afr_tx_move(&conn->tx);
	conn->moves++;
	set_bit(AFR_WANT_MOVE, &conn->want);
	afr_conn_schedule(conn);	/* the worker posts: the caller may only write frames */
	afr_stat_inc(conn->an->net, AFR_STAT_MOVE_TX);
	trace_afrdma_conn_move(conn->id, true, AFR_ON_LINK, conn->tx.epoch, conn->move_start);
}

/**
 * afr_control_waits() - do few bytes wait for more?
 * @conn: connection, tx_lock held
 * @ready: bytes that could go
 *
 * The last send had MSG_MORE, or TCP_CORK is set: until a send without, until there is much,
 * an end or an urgent byte, or for 200 ms, as tcp(7) says. Whoever asks too early asks again.
 *
 * Context: any.
 * Return: true if so.
 */
bool afr_control_waits(struct afr_conn *conn, u32 ready)
{
	lockdep_assert_held(&conn->tx_lock);
	if (!conn->more || ready >= afr_control_little(conn) || conn->tx.fin != AFR_NO_FIN ||
	    !time_before(jiffies, conn->more_end))
		return false;
	afr_conn_look_again(conn, conn->more_end - jiffies);
	return true;
}

/* Without the lock it is a guess. */
static bool data_ready(const struct afr_conn *conn)
{
	return conn->tx.where == AFR_ON_TCP && afr_tx_ready(&conn->tx);
}

static bool build_data(struct afr_conn *conn, struct afr_frame *frame)
{
	if (conn->tx.where != AFR_ON_TCP)
		return false;
	frame->length = min_t(u32, afr_tx_ready(&conn->tx), DATA_MAX);
	if (!frame->length || afr_control_waits(conn, frame->length))
		return false;
	frame->type = AFR_FRAME_DATA;
	frame->offset = conn->tx.sent;
	afr_tx_sent(&conn->tx, frame->length);
	conn->out_data = frame->length;
	return true;
}

/*
 * The proof is checked by a reader that knows both nonces; the secret is what we
 * want to see when the peer connects a link to us.
 */
static void write_hello(struct afr_conn *conn)
{
	struct afr_hello hello = {
		.proof = afr_hello_proof(conn->nonce, conn->server),
		.ring = conn->rx.ring,
		.features = ilog2(conn->tx.ring) & AFR_FEATURE_SEND_RING,
		.port = conn->server ? conn->my_port : 0,
		.length = sizeof(struct afr_wire_hello),
	};

	memcpy(hello.instance, conn->an->instance, sizeof(hello.instance));
	if (conn->server)
		afr_net_secret(conn->an, conn->peer.instance, &conn->peer.local,
			       &conn->peer.remote, hello.secret);
	afr_hello_write((struct afr_wire_hello *)conn->out, &hello);
	conn->out_len = afr_rogue_frame(conn->id, NULL, conn->out, sizeof(struct afr_wire_hello));
	afr_stat_inc(conn->an->net, AFR_STAT_HELLO_SENT);
}

/* Nothing but what may wait for company? */
static bool only_lazy(struct afr_conn *conn)
{
	return conn->want && !(conn->want & ~AFR_WANT_LAZY) &&
	       !test_bit(AFR_F_SAY, &conn->flags) && !data_ready(conn);
}

/* Put the next frame into @out; false when there is nothing to say. */
static bool next_frame(struct afr_conn *conn)
{
	struct afr_frame frame = {};
	bool found;

	lockdep_assert_held(&conn->ctl_mutex);
	conn->out_done = 0;
	conn->out_len = 0;
	if (!conn->out_more && only_lazy(conn))
		return false;
	if (test_and_clear_bit(AFR_WANT_HELLO, &conn->want)) {
		write_hello(conn);
		conn->out_more = conn->want || data_ready(conn);
		return true;
	}

	spin_lock_bh(&conn->tx_lock);
	consider_move(conn);
	found = afr_rogue_more(conn->id, &frame) || build_wanted(conn, &frame) ||
		build_data(conn, &frame);
	spin_unlock_bh(&conn->tx_lock);
	if (!found) {
		clear_bit(AFR_F_SAY, &conn->flags);
		return false;
	}
	conn->out_more = conn->want || data_ready(conn);
	conn->out_len = afr_frame_write(conn->out, &frame);
	conn->out_len = afr_rogue_frame(conn->id, &frame, conn->out, conn->out_len);
	afr_stat_inc(conn->an->net, AFR_STAT_FRAMES_SENT);
	return true;
}

/* Describe what is left of the frame. */
static unsigned int frame_segments(struct afr_conn *conn, struct kvec *vec, u32 *bytes)
{
	struct bio_vec bv[DATA_SEGMENTS];
	unsigned int n = 0, i, segments;
	u32 data;

	*bytes = conn->out_len - conn->out_done;
	if (*bytes) {
		vec[n].iov_base = conn->out + conn->out_done;
		vec[n++].iov_len = *bytes;
	}
	if (!conn->out_data)
		return n;

	/* promised and not taken: what TCP has taken is exactly what una passed */
	segments = afr_mem_bvec(&conn->snd, conn->tx.una, conn->out_data, bv, DATA_SEGMENTS, &data);
	for (i = 0; i < segments; i++) {
		vec[n].iov_base = page_address(bv[i].bv_page) + bv[i].bv_offset;
		vec[n++].iov_len = bv[i].bv_len;
	}
	*bytes += data;
	return n;
}

static void data_taken(struct afr_conn *conn, u32 len)
{
	bool framed = afr_conn_tx_mode(conn) == AFR_FRAMED;
	u64 una = conn->tx.una;

	conn->out_data -= len;
	spin_lock_bh(&conn->tx_lock);
	/* pages go before una tells the program that there is room */
	afr_mem_release(&conn->snd, una, una + len,
			conn->tx_busy ? una + conn->tx.ring : conn->tx.written);
	afr_tx_taken(&conn->tx, len);
	/* half-framed: the peer cannot send CREDIT, TCP's own window is the credit */
	if (afr_conn_rx_mode(conn) == AFR_RAW)
		afr_tx_credit(&conn->tx, conn->tx.una);
	if (framed)
		conn->tx_bytes[AFR_ON_TCP] += len;
	spin_unlock_bh(&conn->tx_lock);
	if (framed)
		afr_stat_add(conn->an->net, AFR_STAT_TX_BYTES_TCP, len);
	afr_rings_tell_sender(conn);
	afr_conn_writable(conn);
}

/* Returns 0 when the frame is out, -EAGAIN when TCP is full, or its error. */
static int send_frame(struct afr_conn *conn)
{
	struct kvec vec[1 + DATA_SEGMENTS];
	u32 bytes, head;
	unsigned int n;
	int ret;

	while (conn->out_done < conn->out_len || conn->out_data) {
		struct msghdr msg = {
			.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL |
				     (conn->out_more ? MSG_MORE : 0) |
				     (conn->out_oob ? MSG_OOB : 0),
		};

		n = frame_segments(conn, vec, &bytes);
		/* not kernel_sendmsg(): a security module would ask who happens to do this */
		iov_iter_kvec(&msg.msg_iter, WRITE, vec, n, bytes);
		ret = READ_ONCE(conn->inner->ops)->sendmsg(conn->inner, &msg, bytes);
		if (ret < 0)
			return ret;
		conn->out_held = conn->out_more;
		head = min_t(u32, ret, conn->out_len - conn->out_done);
		conn->out_done += head;
		if (ret > head)
			data_taken(conn, ret - head);
	}
	return 0;
}

/*
 * The next bytes that were written early, without a head, an urgent one by itself: TCP may
 * take a part of others, and mark its end. False when there are none. TCP's window is the
 * credit.
 */
static bool next_early(struct afr_conn *conn)
{
	struct afr_motion_tx *tx = &conn->tx;
	u64 most = DATA_MAX;

	spin_lock_bh(&conn->tx_lock);
	set_bit(AFR_F_EARLY_OVER, &conn->flags);
	afr_tx_credit(tx, tx->una);
	if (!conn->out_data) {
		if (tx->urgent != AFR_NO_URGENT && tx->urgent > tx->sent)
			most = min(most, tx->urgent - tx->sent);
		else if (tx->urgent == tx->sent)
			most = 1;
		conn->out_data = min_t(u64, afr_tx_ready(tx), most);
		afr_tx_sent(tx, conn->out_data);
	}
	conn->out_oob = conn->out_data && tx->una == tx->urgent;
	spin_unlock_bh(&conn->tx_lock);
	return conn->out_data;
}

/**
 * afr_control_early() - our output will be raw: what the program wrote early goes first
 * @conn: connection, our direction undecided
 *
 * From now on the program waits for the decision. What TCP refuses is lost with the
 * connection; the error goes back to where the program's call finds it.
 *
 * Context: the work.
 * Return: true when nothing is left; else the work is run again.
 */
bool afr_control_early(struct afr_conn *conn)
{
	struct sock *isk = conn->inner->sk;
	int ret = 0, had = READ_ONCE(isk->sk_err);
	bool busy, left;

	mutex_lock(&conn->ctl_mutex);
	while (!ret && next_early(conn))
		ret = send_frame(conn);
	conn->out_oob = false;
	mutex_unlock(&conn->ctl_mutex);
	if (ret == -EAGAIN)
		return false;	/* sk_write_space */
	if (ret && (ret != -EPIPE || had == EPIPE))
		WRITE_ONCE(isk->sk_err, -ret);
	spin_lock_bh(&conn->tx_lock);
	busy = conn->tx_busy;
	left = conn->tx.una != conn->tx.written;
	spin_unlock_bh(&conn->tx_lock);
	if (busy || (left && !ret)) {
		afr_conn_look_again(conn, 1);	/* one who began before has ended now, or will */
		return false;
	}
	return true;
}

/**
 * afr_control_blocked() - does the direction stand still, and the peer does not know?
 * @conn: connection, tx_lock held, all was pushed that can be
 *
 * Most blockades are over within a jiffy: the work looks again (PC6).
 *
 * Context: any.
 */
void afr_control_blocked(struct afr_conn *conn)
{
	lockdep_assert_held(&conn->tx_lock);
	if (afr_tx_blocked(&conn->tx) && !test_bit(AFR_F_BLOCKED_TOLD, &conn->flags))
		afr_conn_look_again(conn, 1);
}

static void push(struct afr_conn *conn)
{
	int ret;

	do {
		ret = send_frame(conn);
	} while (!ret && next_frame(conn));
	conn->out_more = false;
	if (conn->out_held && (!ret || ret == -EAGAIN)) {
		conn->out_held = false;
		tcp_sock_set_nodelay(conn->inner->sk);	/* no more came: send what there is */
	}
	assign_bit(AFR_F_TCP_FULL, &conn->flags, ret == -EAGAIN);
	spin_lock_bh(&conn->tx_lock);
	afr_control_blocked(conn);
	spin_unlock_bh(&conn->tx_lock);
	if (!ret || ret == -EAGAIN || test_bit(AFR_F_ABORT, &conn->flags))
		return;
	if (ret == -EPIPE)
		ret = -ECONNRESET;	/* somebody else has heard of it before */
	WRITE_ONCE(conn->err, -ret);
	afr_conn_abort(conn, ret == -ECONNRESET ? AFR_REASON_RESET : AFR_REASON_TCP_ERROR);
}

/**
 * afr_control_push() - write wanted frames and DATA
 * @conn: connection; nothing happens before our direction is framed
 *
 * Context: process, ctl_mutex not held. Whoever finds the mutex taken leaves
 * the work to its holder.
 */
void afr_control_push(struct afr_conn *conn)
{
	if (afr_conn_tx_mode(conn) != AFR_FRAMED || test_bit(AFR_F_ABORTED, &conn->flags))
		return;
	set_bit(AFR_F_PUSH_AGAIN, &conn->flags);
	smp_mb__after_atomic();	/* the holder clears it before it looks for work */
	while (test_bit(AFR_F_PUSH_AGAIN, &conn->flags) && mutex_trylock(&conn->ctl_mutex)) {
		clear_bit(AFR_F_PUSH_AGAIN, &conn->flags);
		smp_mb__after_atomic();	/* pairs with the one above: push() sees the wants */
		push(conn);
		mutex_unlock(&conn->ctl_mutex);
		smp_mb__after_atomic();	/* the unlock, then a look at who came meanwhile */
	}
}

/**
 * afr_control_say() - write wanted frames, also those that wait for company
 * @conn: connection
 *
 * Context: process, ctl_mutex not held.
 */
void afr_control_say(struct afr_conn *conn)
{
	if (!(READ_ONCE(conn->want) & AFR_WANT_LAZY))
		return;
	set_bit(AFR_F_SAY, &conn->flags);
	afr_control_push(conn);
}

/**
 * afr_control_idle() - has TCP taken everything we want to say?
 * @conn: connection
 *
 * Context: process.
 * Return: true if so.
 */
bool afr_control_idle(struct afr_conn *conn)
{
	bool idle;

	mutex_lock(&conn->ctl_mutex);
	idle = !conn->want && conn->out_done == conn->out_len && !conn->out_data;
	mutex_unlock(&conn->ctl_mutex);
	return idle;
}
