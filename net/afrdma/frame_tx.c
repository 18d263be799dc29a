// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Sends on TCP: HELLO, control frames, and DATA frames, which carry the stream while its path is
 * TCP; also early bytes, see next_early(). Frames are built one at a time into conn->out and
 * written to the TCP socket without waiting for space. If TCP does not take all bytes of a frame,
 * sk_write_space schedules the worker, which writes the rest. Before a frame is built, the send
 * direction may enter the link (try_move()).
 */
#include "frame_tx.h"

#include <linux/bvec.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/uio.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "conn_rings.h"
#include "proto/hello.h"
#include "test/byzantine.h"
#include "trace.h"
#include "tx_policy.h"

#define DATA_MAX	(AFR_FRAME_BODY_MAX - sizeof(struct afr_wire_offset))
#define DATA_SEGMENTS	(DATA_MAX / PAGE_SIZE + 1)

/*
 * Each build_ function, except build_pending() and build_data(), is for one type of control frame.
 * It fills in a frame from the state of the connection, or returns false if the frame is not needed
 * or must not be sent now. It changes nothing else, except that afr_rx_report() counts a cursor in
 * the frame as reported. All further changes are left to the _built and _skipped functions. All
 * these functions run under conn->tx.lock.
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
	frame->resume.epoch = conn->attach.resume_epoch;
	frame->resume.reason = conn->attach.resume_reason;
	spin_lock(&conn->rx.lock);
	/* current offsets: DATA may have arrived and been read since the epoch was closed */
	frame->resume.received = conn->rx.seq.visible;
	frame->resume.consumed = afr_rx_report(&conn->rx.seq);
	spin_unlock(&conn->rx.lock);
	return true;
}

/* RESUME was built and is the next frame to be written: CREDIT and the next epoch may follow. */
static void resume_built(struct afr_conn *conn, const struct afr_frame *frame)
{
	spin_lock(&conn->rx.lock);
	afr_conn_set_credit_imm(conn, false);	/* CREDIT may be sent again, behind RESUME (PC3) */
	spin_unlock(&conn->rx.lock);
	/* the next attach may begin: afr_attach_start() starts none while RESUME is pending */
	afr_conn_schedule(conn);
}

static void fill_attach(struct afr_conn *conn, struct afr_frame *frame)
{
	const struct afr_mr_view *view = afr_mr_view(conn->attach.rcv_mr);

	frame->attach.epoch = conn->tx.seq.epoch;
	frame->attach.reason = AFR_REASON_NONE;
	frame->attach.link = afr_link_id(conn->attach.channel.link);
	frame->attach.addr = view->addr;
	frame->attach.rkey = view->rkey;
	frame->attach.ring = conn->rx.seq.ring;
	frame->attach.span = view->span;
	frame->attach.channel = conn->attach.channel.id;
	frame->attach.flags = afr_link_active(conn->attach.channel.link) ? AFR_ATTACH_ACTIVE : 0;
	spin_lock(&conn->rx.lock);
	frame->attach.consumed = afr_rx_report(&conn->rx.seq);
	spin_unlock(&conn->rx.lock);
}

/*
 * Builds no ATTACH once the send direction has ended: the peer may shut down TCP after it has read
 * FIN, and then cannot answer. ATTACH stays pending until afr_attach_withdraw() drops it.
 */
static bool build_attach(struct afr_conn *conn, struct afr_frame *frame)
{
	if (conn->attach.state != AFR_ATTACHING || conn->tx.seq.fin != AFR_NO_FIN)
		return false;
	frame->type = AFR_FRAME_ATTACH;
	fill_attach(conn, frame);
	return true;
}

static void attach_skipped(struct afr_conn *conn)
{
	if (conn->attach.state != AFR_ATTACHING)
		return;
	set_bit(AFR_FRAME_ATTACH, &conn->out.pending);
	afr_conn_schedule_attach(conn);
}

/*
 * A refusal contains the reason, and repeats epoch and link of the ATTACH. The client does not use
 * the other fields; ring and span are set to valid values nevertheless.
 */
static void fill_refusal(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->attach.epoch = conn->attach.request.attach.epoch;
	frame->attach.reason = conn->attach.answer;
	frame->attach.link = conn->attach.request.attach.link;
	frame->attach.ring = conn->rx.seq.ring;
	frame->attach.span = conn->rx.seq.ring;
}

static bool build_attached(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_ATTACHED;
	if (conn->attach.answer) {
		fill_refusal(conn, frame);
		return true;
	}
	if (conn->attach.state != AFR_ATTACHED && conn->attach.state != AFR_LEAVING)
		return false;
	fill_attach(conn, frame);
	return true;
}

static void attached_built(struct afr_conn *conn, const struct afr_frame *frame)
{
	if (frame->attach.reason)
		return;
	spin_lock(&conn->rx.lock);
	afr_conn_set_credit_imm(conn, true);	/* no CREDIT between this frame and RESUME (PC3) */
	spin_unlock(&conn->rx.lock);
	/* in AFR_LEAVING this end posts no data, but sends ATTACHED: the client waits for it */
	if (conn->attach.state == AFR_ATTACHED)
		afr_conn_allow_post(conn);
	afr_tx_policy_uncork(conn);
}

static bool build_urgent(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_URGENT;
	frame->offset = conn->tx.seq.urgent;
	return true;
}

static bool build_move(struct afr_conn *conn, struct afr_frame *frame)
{
	if (!conn->tx.seq.open)
		return false;
	frame->type = AFR_FRAME_MOVE;
	frame->move.epoch = conn->tx.seq.epoch;
	frame->move.start = conn->attach.move_start;
	return true;
}

/*
 * No CREDIT is sent once FINACK was requested: the whole stream has arrived, so the peer needs no
 * more credit, and TCP may be shut down after FINACK.
 */
static bool build_credit(struct afr_conn *conn, struct afr_frame *frame)
{
	bool due;

	frame->type = AFR_FRAME_CREDIT;
	spin_lock(&conn->rx.lock);
	due = !conn->rx.credit_imm && !conn->rx.seq.finack_requested;
	if (due)
		frame->offset = afr_rx_report(&conn->rx.seq);
	spin_unlock(&conn->rx.lock);
	return due;
}

static bool build_finack(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_FINACK;
	frame->offset = conn->rx.seq.fin;
	return true;
}

static bool build_fin(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_FIN;
	frame->offset = conn->tx.seq.fin;
	return true;
}

static bool build_blocked(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_BLOCKED;
	frame->offset = conn->tx.seq.sent;
	return afr_tx_blocked(&conn->tx.seq);
}

static void blocked_skipped(struct afr_conn *conn)
{
	clear_bit(AFR_F_BLOCKED_SENT, &conn->flags);
}

static bool build_urgentack(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_URGENTACK;
	spin_lock(&conn->rx.lock);
	frame->offset = conn->rx.urgent_ack;
	spin_unlock(&conn->rx.lock);
	return !conn->rx.seq.finack_requested;	/* TCP may be shut down after FINACK */
}

/*
 * SERVICE announces the cm listener when a device was added after HELLO, and keeps TCP alive
 * (move.c). Peers that do not know the frame skip it.
 */
static bool build_service(struct afr_conn *conn, struct afr_frame *frame)
{
	frame->type = AFR_FRAME_SERVICE;
	frame->flags = AFR_FRAME_OPTIONAL;
	frame->port = conn->cm_port;
	/*
	 * TCP may be shut down once FINACK is requested and the send direction has ended. The port
	 * is 0 if device_added() could not get one (afr_cm_listener_port()): then there is nothing
	 * to announce.
	 */
	return frame->port && (!conn->rx.seq.finack_requested || conn->tx.seq.fin == AFR_NO_FIN);
}

/*
 * In the order of sending. built() follows a build() that has returned true, and skipped() one that
 * has returned false, without a release of tx.lock.
 */
static const struct frame_kind {
	u8 type;	/* enum afr_frame_type: the bit of out.pending */
	bool (*build)(struct afr_conn *conn, struct afr_frame *frame);
	void (*built)(struct afr_conn *conn, const struct afr_frame *frame);
	void (*skipped)(struct afr_conn *conn);
} kinds[] = {
	{ AFR_FRAME_ERROR, build_error },
	{ AFR_FRAME_RESUME, build_resume, .built = resume_built },
	{ AFR_FRAME_ATTACH, build_attach, .skipped = attach_skipped },
	{ AFR_FRAME_ATTACHED, build_attached, .built = attached_built },
	{ AFR_FRAME_URGENT, build_urgent },
	{ AFR_FRAME_MOVE, build_move },
	{ AFR_FRAME_CREDIT, build_credit },
	{ AFR_FRAME_FINACK, build_finack },
	{ AFR_FRAME_FIN, build_fin },
	{ AFR_FRAME_BLOCKED, build_blocked, .skipped = blocked_skipped },
	{ AFR_FRAME_URGENTACK, build_urgentack },
	{ AFR_FRAME_SERVICE, build_service },
};

static_assert(ARRAY_SIZE(kinds) == AFR_FRAME_NEXT - 2, "a row for each type but 0 and DATA");

static bool build_pending(struct afr_conn *conn, struct afr_frame *frame)
{
	const struct frame_kind *kind;

	for (kind = kinds; kind < kinds + ARRAY_SIZE(kinds); kind++) {
		if (!test_and_clear_bit(kind->type, &conn->out.pending))
			continue;
		if (kind->build(conn, frame)) {
			if (kind->built)
				kind->built(conn, frame);
			return true;
		}
		if (kind->skipped)
			kind->skipped(conn);
	}
	return false;
}

/**
 * afr_frame_tx_attach_step() - how far has ATTACH or ATTACHED of the current attach come?
 * @conn: connection
 *
 * detach_overdue() of move.c uses the result. next_frame() calls this as well, before it builds a
 * frame, so that TCP's sequence numbers are compared before they can wrap.
 *
 * Context: process.
 * Return: enum afr_frame_step.
 */
u8 afr_frame_tx_attach_step(struct afr_conn *conn)
{
	const struct tcp_sock *tp = tcp_sk(conn->tcp->sk);
	/* the step is read before frame_end; pairs with note_attach() */
	u8 was = smp_load_acquire(&conn->attach.frame_step), step = was;

	if (step == AFR_FRAME_BUILT && !before(READ_ONCE(tp->snd_nxt), conn->attach.frame_end))
		step = AFR_FRAME_SENT;
	if (step == AFR_FRAME_SENT && !before(READ_ONCE(tp->snd_una), conn->attach.frame_end))
		step = AFR_FRAME_ACKED;
	if (step != was)	/* cmpxchg(): does not undo a change by another thread */
		cmpxchg(&conn->attach.frame_step, was, step);
	return step;
}

/* If @frame, which is sent next, is ATTACH or ATTACHED, notes where in TCP's stream it ends. */
static void note_attach(struct afr_conn *conn, const struct afr_frame *frame)
{
	if (frame->type != AFR_FRAME_ATTACH && frame->type != AFR_FRAME_ATTACHED)
		return;
	conn->attach.frame_end = READ_ONCE(tcp_sk(conn->tcp->sk)->write_seq) + conn->out.len;
	/* frame_end is visible before the step; pairs with afr_frame_tx_attach_step() */
	smp_store_release(&conn->attach.frame_step, AFR_FRAME_BUILT);
}

/*
 * Moves the send direction to the link if possible: only at a frame boundary, when TCP has taken
 * every byte that was put into DATA frames. A pending URGENT is written to TCP first, so the peer
 * reads URGENT before MOVE. Until the peer has read MOVE, its program cannot read any byte that
 * came by the link. So the peer knows which byte is urgent before its program can read that byte.
 */
static void try_move(struct afr_conn *conn)
{
	if (!conn->attach.may_post || test_bit(AFR_FRAME_URGENT, &conn->out.pending) ||
	    !afr_tx_may_move(&conn->tx.seq))
		return;
	conn->attach.move_start = afr_tx_move(&conn->tx.seq);
	conn->moves++;
	set_bit(AFR_FRAME_MOVE, &conn->out.pending);
	/* the worker posts the bytes from S on, unless another thread has posted them before */
	afr_conn_schedule(conn);
	afr_netns_count(conn->an->net, AFR_STAT_MOVE_TX);
	trace_afrdma_conn_move(conn->id, true, AFR_ON_LINK, conn->tx.seq.epoch,
			       conn->attach.move_start);
}

/* Are there bytes to send in DATA? Without conn->tx.lock the result is only a hint. */
static bool data_ready(const struct afr_conn *conn)
{
	return conn->tx.seq.where == AFR_ON_TCP && afr_tx_ready(&conn->tx.seq);
}

static bool build_data(struct afr_conn *conn, struct afr_frame *frame)
{
	if (conn->tx.seq.where != AFR_ON_TCP)
		return false;
	frame->length = min_t(u32, afr_tx_ready(&conn->tx.seq), DATA_MAX);
	if (!frame->length || afr_tx_policy_holds_back(conn, frame->length))
		return false;
	frame->type = AFR_FRAME_DATA;
	frame->offset = conn->tx.seq.sent;
	afr_tx_sent(&conn->tx.seq, frame->length);
	conn->out.data = frame->length;
	return true;
}

/*
 * The peer checks the proof, which depends on the client's nonce and the sender's role. A client
 * has to present the server's secret when it connects a link to the server.
 */
static void write_hello(struct afr_conn *conn)
{
	struct afr_hello hello = {
		.proof = afr_hello_proof(conn->nonce, conn->server),
		.ring = conn->rx.seq.ring,
		.features = ilog2(conn->tx.seq.ring) & AFR_FEATURE_SEND_RING,
		.port = conn->server ? conn->cm_port : 0,
		.length = sizeof(struct afr_wire_hello),
	};

	memcpy(hello.instance, conn->an->instance, sizeof(hello.instance));
	if (conn->server)
		afr_netns_secret(conn->an, conn->peer.instance, &conn->peer.local,
				 &conn->peer.remote, hello.secret);
	afr_hello_write((struct afr_wire_hello *)conn->out.buf, &hello);
	conn->out.len = afr_byzantine_frame(conn->id, NULL, conn->out.buf,
					    sizeof(struct afr_wire_hello));
	afr_netns_count(conn->an->net, AFR_STAT_HELLO_SENT);
}

/* Other threads may set more bits at any time, and call afr_frame_tx_push() after that. */
static unsigned long pending(const struct afr_conn *conn)
{
	return READ_ONCE(conn->out.pending);
}

/* Is there nothing to send but frames that wait to be piggybacked? */
static bool only_piggyback(struct afr_conn *conn)
{
	unsigned long frames = pending(conn);

	return frames && !(frames & ~AFR_PENDING_PIGGYBACK) &&
	       !test_bit(AFR_F_FLUSH, &conn->flags) && !data_ready(conn);
}

/* Builds the next frame in conn->out. Returns false when there is none to be sent now. */
static bool next_frame(struct afr_conn *conn)
{
	struct afr_frame frame = {};
	bool found, last;

	lockdep_assert_held(&conn->out.mutex);
	conn->out.done = 0;
	conn->out.len = 0;
	afr_frame_tx_attach_step(conn);
	if (!conn->out.more && only_piggyback(conn))
		return false;
	if (test_and_clear_bit(AFR_PENDING_HELLO, &conn->out.pending)) {
		write_hello(conn);
		conn->out.more = pending(conn) || data_ready(conn);
		return true;
	}

	spin_lock_bh(&conn->tx.lock);
	try_move(conn);
	found = afr_byzantine_more(conn->id, &frame) || build_pending(conn, &frame) ||
		build_data(conn, &frame);
	last = found && conn->tx.seq.sent == conn->tx.seq.fin;
	spin_unlock_bh(&conn->tx.lock);
	if (last && afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK)
		afr_conn_schedule(conn);	/* run_one_way() shuts down TCP after this frame */
	if (!found) {
		clear_bit(AFR_F_FLUSH, &conn->flags);
		return false;
	}
	conn->out.more = pending(conn) || data_ready(conn);
	conn->out.len = afr_frame_write(conn->out.buf, &frame);
	conn->out.len = afr_byzantine_frame(conn->id, &frame, conn->out.buf, conn->out.len);
	note_attach(conn, &frame);
	afr_netns_count(conn->an->net, AFR_STAT_FRAMES_SENT);
	return true;
}

/* Describes what TCP has not taken yet of the frame, or of the early bytes of next_early(). */
static unsigned int frame_segments(struct afr_conn *conn, struct kvec *vec, u32 *bytes)
{
	struct bio_vec bv[DATA_SEGMENTS];
	unsigned int n = 0, i, segments;
	u32 data;

	*bytes = conn->out.len - conn->out.done;
	if (*bytes) {
		vec[n].iov_base = conn->out.buf + conn->out.done;
		vec[n++].iov_len = *bytes;
	}
	if (!conn->out.data)
		return n;

	/* the bytes that TCP has not taken begin at SND.UNA, which advances as TCP takes bytes */
	segments = afr_ring_mem_bvec(&conn->tx.mem, conn->tx.seq.una, conn->out.data, bv,
				     DATA_SEGMENTS, &data);
	for (i = 0; i < segments; i++) {
		vec[n].iov_base = page_address(bv[i].bv_page) + bv[i].bv_offset;
		vec[n++].iov_len = bv[i].bv_len;
	}
	*bytes += data;
	return n;
}

/* TCP has taken @len stream bytes: advances SND.UNA, releases pages and wakes senders. */
static void data_taken(struct afr_conn *conn, u32 len)
{
	bool framed = afr_conn_tx_mode(conn) == AFR_MODE_FRAMED;
	u64 una = conn->tx.seq.una;
	bool charged;

	conn->out.data -= len;
	spin_lock_bh(&conn->tx.lock);
	charged = afr_conn_rings_snd_charged(conn);
	/* pages are released before SND.UNA makes their space available to senders */
	afr_ring_mem_release(&conn->tx.mem, una, una + len,
			     conn->tx.busy ? una + conn->tx.seq.ring : conn->tx.seq.written);
	afr_tx_tcp_accepted(&conn->tx.seq, len);
	/* the peer sends unframed, so no CREDIT comes: only the TCP window limits this end */
	if (afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK)
		afr_tx_credit(&conn->tx.seq, conn->tx.seq.una);
	if (framed)
		conn->tx.bytes[AFR_ON_TCP] += len;
	spin_unlock_bh(&conn->tx.lock);
	if (framed)
		afr_netns_add(conn->an->net, AFR_STAT_TX_BYTES_TCP, len);
	/*
	 * The worker uncharges the pages. It can still be scheduled, since afr_conn_finish() is not
	 * called while TCP takes bytes.
	 */
	if (charged)
		afr_conn_schedule(conn);
	afr_conn_rings_wake_sender(conn);
	afr_conn_writable(conn);
}

/*
 * Sends the frame, or the early bytes of next_early(), without waiting. Returns 0 when TCP has
 * taken all of it, -EAGAIN if TCP has no space, or TCP's error.
 */
static int send_frame(struct afr_conn *conn)
{
	struct kvec vec[1 + DATA_SEGMENTS];
	u32 bytes, head;
	unsigned int n;
	int ret;

	while (conn->out.done < conn->out.len || conn->out.data) {
		struct msghdr msg = {
			.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL |
				     (conn->out.more ? MSG_MORE : 0) |
				     (conn->out.oob ? MSG_OOB : 0),
		};

		n = frame_segments(conn, vec, &bytes);
		/* not kernel_sendmsg(): its security hook would check an unrelated task */
		iov_iter_kvec(&msg.msg_iter, WRITE, vec, n, bytes);
		ret = READ_ONCE(conn->tcp->ops)->sendmsg(conn->tcp, &msg, bytes);
		if (ret < 0)
			return ret;
		conn->out.held = conn->out.more;
		head = min_t(u32, ret, conn->out.len - conn->out.done);
		conn->out.done += head;
		if (ret > head)
			data_taken(conn, ret - head);
	}
	return 0;
}

/*
 * Prepares the next early bytes, which a server's program wrote while the send direction was
 * undecided. As the direction falls back, they are sent without a frame header. The last urgent
 * byte is sent by itself: TCP may take only a part of a longer write, and would mark the end of
 * that part as urgent. Only the TCP window limits early bytes. Returns false when none is left.
 */
static bool next_early(struct afr_conn *conn)
{
	struct afr_tx *tx = &conn->tx.seq;
	u64 most = DATA_MAX;

	spin_lock_bh(&conn->tx.lock);
	set_bit(AFR_F_NO_EARLY_TX, &conn->flags);
	afr_tx_credit(tx, tx->una);
	if (!conn->out.data) {
		if (tx->urgent != AFR_NO_URGENT && tx->urgent > tx->sent)
			most = min(most, tx->urgent - tx->sent);
		else if (tx->urgent == tx->sent)
			most = 1;
		conn->out.data = min_t(u64, afr_tx_ready(tx), most);
		afr_tx_sent(tx, conn->out.data);
	}
	conn->out.oob = conn->out.data && tx->una == tx->urgent;
	spin_unlock_bh(&conn->tx.lock);
	return conn->out.data;
}

/**
 * afr_frame_tx_drain_early() - send early bytes to TCP before the send direction falls back
 * @conn: connection, send direction undecided
 *
 * From the first call on, the program cannot write until the direction is in fallback mode. If TCP
 * fails, the remaining bytes are lost with the connection. Sending may then have consumed sk_err of
 * the TCP socket, so the error is stored there again, for the program's next call.
 *
 * Context: connection worker.
 * Return: true when no sender is copying bytes, and TCP has all bytes or has failed; false: the
 * worker will run again.
 */
bool afr_frame_tx_drain_early(struct afr_conn *conn)
{
	struct sock *tcp_sk = conn->tcp->sk;
	int ret = 0, had = READ_ONCE(tcp_sk->sk_err);
	bool more;

	mutex_lock(&conn->out.mutex);
	while (!ret && next_early(conn))
		ret = send_frame(conn);
	conn->out.oob = false;
	mutex_unlock(&conn->out.mutex);
	if (ret == -EAGAIN)
		return false;	/* sk_write_space schedules the worker */
	if (ret && (ret != -EPIPE || had == EPIPE))
		WRITE_ONCE(tcp_sk->sk_err, -ret);
	spin_lock_bh(&conn->tx.lock);
	/* a sender that still copies bytes, or has just added some, schedules the worker */
	more = conn->tx.busy || (conn->tx.seq.una != conn->tx.seq.written && !ret);
	spin_unlock_bh(&conn->tx.lock);
	return !more;
}

/**
 * afr_frame_tx_check_blocked() - schedule BLOCKED if the send direction is blocked
 * @conn: connection, conn->tx.lock held, after everything that can be sent was sent
 *
 * Usually the direction can continue within a jiffy, so the worker is scheduled to run one jiffy
 * later. That run, or an earlier one, sends BLOCKED if the direction is still blocked (PC6).
 *
 * Context: any.
 */
void afr_frame_tx_check_blocked(struct afr_conn *conn)
{
	lockdep_assert_held(&conn->tx.lock);
	if (afr_tx_blocked(&conn->tx.seq) && !test_bit(AFR_F_BLOCKED_SENT, &conn->flags))
		afr_conn_schedule_delayed(conn, 1);
}

static void push(struct afr_conn *conn)
{
	int ret;

	do {
		ret = send_frame(conn);
	} while (!ret && next_frame(conn));
	conn->out.more = false;
	if (conn->out.held && (!ret || ret == -EAGAIN)) {
		conn->out.held = false;
		tcp_sock_set_nodelay(conn->tcp->sk);	/* pushes what MSG_MORE held back */
	}
	if (ret == -EAGAIN)
		set_bit(AFR_F_TCP_FULL, &conn->flags);
	else if (test_and_clear_bit(AFR_F_TCP_FULL, &conn->flags))
		afr_conn_schedule(conn);	/* the worker may have to start AFR_T_PIGGYBACK */
	spin_lock_bh(&conn->tx.lock);
	afr_frame_tx_check_blocked(conn);
	spin_unlock_bh(&conn->tx.lock);
	if (!ret || ret == -EAGAIN || test_bit(AFR_F_ABORT, &conn->flags))
		return;
	/*
	 * EPIPE has two causes. Another caller has consumed sk_err: assume a reset. Or a reset
	 * came behind the peer's FIN, and TCP has set sk_err to EPIPE. Both are handled as
	 * ECONNRESET; in the second case errno_of() makes it EPIPE again for the program.
	 */
	if (ret == -EPIPE)
		ret = -ECONNRESET;
	WRITE_ONCE(conn->err, -ret);
	afr_conn_abort(conn, ret == -ECONNRESET ? AFR_REASON_RESET : AFR_REASON_TCP_ERROR);
}

/**
 * afr_frame_tx_push() - send pending frames and DATA
 * @conn: connection; nothing happens before the send direction is framed, nor after an abort
 *
 * Writes as many bytes as TCP takes without waiting; when TCP has space again, sk_write_space
 * schedules the worker to continue. If conn->out.mutex is taken, its holder sends the frames. If
 * the holder is afr_frame_tx_idle(), which sends nothing, the worker sends them soon.
 *
 * Context: process, conn->out.mutex not held.
 */
void afr_frame_tx_push(struct afr_conn *conn)
{
	if (afr_conn_tx_mode(conn) != AFR_MODE_FRAMED || test_bit(AFR_F_ABORTED, &conn->flags))
		return;
	/* whoever holds the mutex and clears the flag sees frames requested before this call */
	smp_mb__before_atomic();
	set_bit(AFR_F_PUSH_AGAIN, &conn->flags);
	/* set the flag before trying the lock; pairs with the barrier behind mutex_unlock() */
	smp_mb__after_atomic();
	while (test_bit(AFR_F_PUSH_AGAIN, &conn->flags) && mutex_trylock(&conn->out.mutex)) {
		clear_bit(AFR_F_PUSH_AGAIN, &conn->flags);
		/* clear the flag before push() reads out.pending; pairs with the first barrier */
		smp_mb__after_atomic();
		/* do_abort() sets AFR_F_ABORTED, and then waits for this mutex */
		if (!test_bit(AFR_F_ABORTED, &conn->flags))
			push(conn);
		mutex_unlock(&conn->out.mutex);
		smp_mb();	/* unlock before the flag is tested again */
	}
}

/**
 * afr_frame_tx_flush() - send pending frames, including those that wait to be piggybacked
 * @conn: connection; nothing happens if no frame waits to be piggybacked
 *
 * Context: process, conn->out.mutex not held.
 */
void afr_frame_tx_flush(struct afr_conn *conn)
{
	if (!(pending(conn) & AFR_PENDING_PIGGYBACK))
		return;
	set_bit(AFR_F_FLUSH, &conn->flags);
	afr_frame_tx_push(conn);
}

/**
 * afr_frame_tx_idle() - has TCP taken all frames?
 * @conn: connection
 *
 * Context: process.
 * Return: true if no frame is pending or partly written.
 */
bool afr_frame_tx_idle(struct afr_conn *conn)
{
	bool idle;

	mutex_lock(&conn->out.mutex);
	idle = !pending(conn) && conn->out.done == conn->out.len && !conn->out.data;
	mutex_unlock(&conn->out.mutex);
	return idle;
}
