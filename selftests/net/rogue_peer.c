// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Runs one case: starts the victim, opens the connection unless the row does so, calls the row's
 * act() and judges the result. Also contains functions with which rows open connections, send and
 * receive.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>

#include "rogue.h"

#define VICTIM_PORT	7001
#define ROGUE_PORT	7002
#define RING		(256 * 1024)
#define STREAM_MAX	HEAR_MAX
#define START_SECONDS	10

/* Records an error of the case; only the first call has an effect. */
void wrong(struct peer *p, const char *format, ...)
{
	va_list args;

	if (p->why[0])
		return;
	va_start(args, format);
	vsnprintf(p->why, sizeof(p->why), format, args);
	va_end(args);
}

/* ---- sending ---- */

void peer_raw(struct peer *p, const void *data, size_t len, size_t chunk)
{
	if (p->raw_len + len > STREAM_MAX) {
		wrong(p, "the row sends more than STREAM_MAX bytes");
		return;
	}
	memcpy(p->raw + p->raw_len, data, len);
	p->raw_len += len;
	/* This fails after a reset by the victim; whether the case fails is decided later. */
	tcp_send(&p->tcb, data, len, chunk);
}

/* Sends the first @len bytes of rogue's stream without framing. */
void peer_raw_bytes(struct peer *p, size_t len)
{
	u8 *buf = malloc(len);

	for (size_t i = 0; i < len; i++)
		buf[i] = rogue_byte(i);
	peer_raw(p, buf, len, MSS);
	free(buf);
}

void peer_default_hello(struct peer *p, struct afr_wire_hello *hello)
{
	struct afr_hello h = {
		.proof = afr_hello_proof(p->nonce, !p->as_client),
		.ring = RING,
		.length = sizeof(*hello),
	};

	memset(h.instance, 0xee, sizeof(h.instance));
	memset(h.secret, 0x55, sizeof(h.secret));
	afr_hello_write(hello, &h);
}

void peer_hello(struct peer *p)
{
	struct afr_wire_hello hello;

	peer_default_hello(p, &hello);
	peer_raw(p, &hello, sizeof(hello), MSS);
}

void peer_frame(struct peer *p, const struct afr_frame *frame)
{
	u8 buf[AFR_FRAME_HEAD_MAX];

	peer_raw(p, buf, afr_frame_write(buf, frame), MSS);
}

void peer_offset_frame(struct peer *p, u8 type, u64 offset)
{
	struct afr_frame frame = { .type = type, .offset = offset };

	peer_frame(p, &frame);
}

/* Sends the next @len stream bytes as DATA with any @offset; does not count them as sent. */
void peer_data_at(struct peer *p, u64 offset, size_t len)
{
	struct afr_frame frame = { .type = AFR_FRAME_DATA, .offset = offset, .length = len };
	u8 *buf = malloc(AFR_FRAME_HEAD_MAX + len);
	size_t head = afr_frame_write(buf, &frame);

	for (size_t i = 0; i < len; i++)
		buf[head + i] = rogue_byte(p->offset + i);
	peer_raw(p, buf, head + len, MSS);
	free(buf);
}

/* Sends the next @len stream bytes in one DATA frame. */
void peer_data(struct peer *p, size_t len)
{
	if (p->stream_len + len > STREAM_MAX) {
		wrong(p, "the row sends more than STREAM_MAX bytes");
		return;
	}
	for (size_t i = 0; i < len; i++)
		p->stream[p->stream_len + i] = rogue_byte(p->offset + i);
	peer_data_at(p, p->offset, len);
	p->offset += len;
	p->stream_len += len;
}

void peer_fin(struct peer *p)
{
	peer_offset_frame(p, AFR_FRAME_FIN, p->offset);
}

/* ---- receiving ---- */

static void take_hello(struct peer *p)
{
	u64 proof = afr_hello_proof(p->nonce, p->as_client);

	switch (afr_hello_parse(p->tcb.in, p->tcb.in_len, proof, &p->hello)) {
	case AFR_HELLO_MORE:
		break;
	case AFR_HELLO_YES:
		p->hello_seen = true;
		p->parsed = p->hello.length;
		break;
	case AFR_HELLO_NO:
	case AFR_HELLO_BAD:
		wrong(p, "the victim's first bytes are not a HELLO");
	}
}

/* Compares the bytes of a DATA frame with the victim's stream. */
static void take_stream(struct peer *p, const struct afr_frame *frame, const u8 *data)
{
	if (frame->offset != p->heard) {
		wrong(p, "the victim's DATA is at %llu, expected %llu",
		      (unsigned long long)frame->offset, (unsigned long long)p->heard);
		return;
	}
	for (u32 i = 0; i < frame->length; i++) {
		if (data[i] == victim_byte(p->heard + i))
			continue;
		wrong(p, "the victim's stream is wrong at %llu",
		      (unsigned long long)p->heard + i);
		return;
	}
	p->heard += frame->length;
}

/* Parses one frame. Returns false if it is incomplete or malformed. */
static bool take_frame(struct peer *p)
{
	const u8 *at = p->tcb.in + p->parsed;
	size_t left = p->tcb.in_len - p->parsed;
	struct afr_frame frame;
	unsigned int need;
	int used = afr_frame_parse(at, left, &frame, &need);

	if (used < 0)
		wrong(p, "the victim sent a malformed frame of type %u", at[0]);
	if (used <= 0 || left < used + (size_t)frame.length)
		return false;
	p->parsed += used + frame.length;
	if (frame.type < ARRAY_SIZE(p->frames)) {
		p->frames[frame.type]++;
		p->last[frame.type] = frame;
	}
	if (frame.type == AFR_FRAME_DATA)
		take_stream(p, &frame, at + used);
	if (frame.type == AFR_FRAME_FIN)
		p->fin = frame.offset;
	return true;
}

/* Parses the bytes that have arrived from a victim on AF_RDMA. */
static void take_all(struct peer *p)
{
	if (!rogue.rdma || p->why[0])
		return;
	if (!p->hello_seen)
		take_hello(p);
	while (p->hello_seen && !p->why[0] && take_frame(p))
		;
}

/*
 * Receives until a victim on AF_RDMA has sent @count frames of @type. Returns false if @seconds
 * pass, RST arrives or an error is recorded before that, and at once if the victim uses a TCP
 * socket.
 */
bool peer_await_frame(struct peer *p, u8 type, unsigned int count, double seconds)
{
	double end = now() + seconds;

	while (rogue.rdma) {
		take_all(p);
		if (p->frames[type] >= count)
			return true;
		if (now() > end || p->tcb.reset || p->why[0])
			break;
		tcp_turn(&p->tcb, 10);
	}
	return false;
}

bool peer_await_hello(struct peer *p, double seconds)
{
	double end = now() + seconds;

	while (rogue.rdma) {
		take_all(p);
		if (p->hello_seen)
			return true;
		if (now() > end || p->tcb.reset || p->why[0])
			break;
		tcp_turn(&p->tcb, 10);
	}
	return false;
}

/*
 * Must all bytes and the FIN of a victim on AF_RDMA arrive in frames? Only in rows with
 * EXPECT_STREAM and without RAW_BACK, and only if the window in rogue's HELLO has space for all
 * bytes: if there are more, a victim that gets no CREDIT stops at the end of the window.
 */
static bool wants_frames(const struct peer *p)
{
	return rogue.rdma && p->row->expect == EXPECT_STREAM && !(p->row->flags & RAW_BACK) &&
	       p->row->sends <= SAY_MAX;
}

static bool has_all_frames(const struct peer *p)
{
	return p->fin == p->row->sends && p->heard == p->fin;
}

/*
 * Sends FINACK for the victim's FIN, as the module does, so that the victim's connection ends at
 * once and sends nothing in the next case.
 */
static void answer_fin(struct peer *p)
{
	if (p->fin == AFR_NO_END || p->finacked || p->heard < p->fin || p->tcb.fin_sent)
		return;
	p->finacked = true;
	peer_offset_frame(p, AFR_FRAME_FINACK, p->fin);
}

/*
 * Receives until the victim has ended, all its frames have come if wants_frames(), and nothing
 * more arrives, but for at most @seconds. Answers TCP FIN by TCP FIN. In rows with EXPECT_STREAM
 * or EXPECT_EITHER and without RAW_BACK, also answers the victim's FIN frame by FINACK.
 */
void peer_settle(struct peer *p, double seconds)
{
	bool framed = !(p->row->flags & RAW_BACK) &&
		      (p->row->expect == EXPECT_STREAM || p->row->expect == EXPECT_EITHER);
	bool all = wants_frames(p);
	/* with EXPECT_SURVIVE nothing that arrives now is checked, so short waits are enough */
	int turn = p->row->expect == EXPECT_SURVIVE ? 1 : 5;
	double end = now() + seconds;
	unsigned int quiet = 0;

	while (now() < end && quiet < 3) {
		bool came = tcp_turn(&p->tcb, turn);

		if (framed) {
			take_all(p);
			answer_fin(p);
		}
		if (p->tcb.peer_fin)
			tcp_fin(&p->tcb);
		if (came || victim_state(&p->victim) != VICTIM_ENDED || (all && !has_all_frames(p)))
			quiet = 0;
		else
			quiet++;
	}
}

/* ---- opening ---- */

static unsigned int default_options(struct peer *p, u8 *to)
{
	struct afr_tcp_option opt = { .nonce = p->nonce };

	if (!p->as_client) {
		opt.nonce = afr_tcp_option_answer(p->nonce);
		opt.server = true;
	}
	to[0] = 2;	/* MSS 1460 */
	to[1] = 4;
	to[2] = 1460 >> 8;
	to[3] = 1460 & 0xff;
	afr_tcp_option_write(to + 4, &opt);
	return 4 + AFR_OPT_LEN;
}

static bool connect_victim(struct peer *p, const u8 *options, unsigned int len)
{
	if (tcp_connect(&p->tcb, options, len))
		return true;
	wrong(p, "the victim does not accept a TCP connection");
	return false;
}

/*
 * If the victim's SYN has not come yet, waits for it and, unless the victim uses a TCP socket,
 * reads the nonce from it.
 */
static bool await_victim(struct peer *p)
{
	struct afr_tcp_option opt;

	if (p->tcb.syns)
		return true;
	if (!tcp_await_syn(&p->tcb)) {
		wrong(p, "the victim does not connect");
		return false;
	}
	if (!rogue.rdma)
		return true;
	if (afr_tcp_option_find(p->tcb.syn_options, p->tcb.syn_options_len, &opt)) {
		wrong(p, "no option in the victim's SYN");
		return false;
	}
	p->nonce = opt.nonce;
	return true;
}

/* Does the TCP handshake with @options. */
bool peer_open_options(struct peer *p, const u8 *options, unsigned int len)
{
	if (p->as_client)
		return connect_victim(p, options, len);
	if (!await_victim(p))
		return false;
	if (tcp_answer_syn(&p->tcb, options, len))
		return true;
	wrong(p, "the victim does not finish the TCP handshake");
	return false;
}

/* Checks the option in the victim's SYN-ACK. */
static void check_answer(struct peer *p)
{
	struct afr_tcp_option opt;

	if (!rogue.rdma || !p->as_client)
		return;
	if (afr_tcp_option_find(p->tcb.syn_options, p->tcb.syn_options_len, &opt))
		wrong(p, "no option in the victim's SYN-ACK");
	else if (!opt.server || opt.nonce != afr_tcp_option_answer(p->nonce))
		wrong(p, "the option in the victim's SYN-ACK does not answer that of the SYN");
}

/*
 * Waits until the victim's connect() has returned. If rogue caused an error before that, connect()
 * could fail, and the victim would report no reason.
 */
static bool await_connected(struct peer *p)
{
	double end = now() + rogue.patience;

	while (victim_state(&p->victim) == VICTIM_STARTING) {
		if (now() > end) {
			wrong(p, "the victim's connect() does not return");
			return false;
		}
		tcp_turn(&p->tcb, 1);
	}
	return true;
}

/* Does the TCP handshake with a correct option. */
bool peer_open(struct peer *p)
{
	u8 options[40];

	if (!p->as_client && !await_victim(p))
		return false;
	if (!peer_open_options(p, options, default_options(p, options)))
		return false;
	check_answer(p);
	return p->as_client || await_connected(p);
}

/* ---- the verdict ---- */

/* Are the bytes that the victim has read a prefix of @of? */
static bool is_prefix(struct peer *p, const u8 *of, size_t len)
{
	struct victim_report *r = p->victim.report;

	return r->heard_len <= len && !memcmp(r->heard, of, r->heard_len);
}

/* The victim must have read exactly @bytes, and then the end of the stream. */
static void want_all(struct peer *p, const u8 *bytes, size_t len, const char *what)
{
	struct victim_report *r = p->victim.report;
	size_t i = 0;

	if (r->err) {
		wrong(p, "the victim got %s, reason %u; expected %zu %s bytes and the end",
		      strerror(r->err), r->reason, len, what);
		return;
	}
	while (i < len && i < r->heard_len && r->heard[i] == bytes[i])
		i++;
	if (i < len || r->heard_len != len)
		wrong(p, "the victim read %zu bytes, not %zu %s bytes; they differ from %zu on",
		      r->heard_len, len, what, i);
}

/*
 * The victim must have read a prefix of @bytes and then got ECONNRESET or EPROTO, with the row's
 * reason if the row has one. SO_ERROR must not report an error after that.
 */
static void want_error(struct peer *p, const u8 *bytes, size_t len)
{
	struct victim_report *r = p->victim.report;

	if (r->err != ECONNRESET && r->err != EPROTO)
		wrong(p, "the victim got %s after %zu bytes, expected ECONNRESET or EPROTO",
		      r->err ? strerror(r->err) : "the end of the stream", r->heard_len);
	else if (!is_prefix(p, bytes, len))
		wrong(p, "the victim read %zu bytes, not a prefix of those sent", r->heard_len);
	else if (r->err_again)
		wrong(p, "the victim got %s twice", strerror(r->err_again));
	else if (rogue.rdma && p->row->reason && r->reason != p->row->reason)
		wrong(p, "the reason is %u, expected %u", r->reason, p->row->reason);
}

/* Checks that all bytes of the victim have arrived, without framing. */
static void want_victim_bytes(struct peer *p)
{
	for (size_t i = 0; i < p->row->sends; i++)
		if (i >= p->tcb.in_len || p->tcb.in[i] != victim_byte(i)) {
			wrong(p, "of the victim's %u bytes %zu arrived, and byte %zu is wrong",
			      p->row->sends, p->tcb.in_len, i);
			return;
		}
}

/*
 * Judges a case whose victim uses a TCP socket: everything after the TCP handshake is data, and the
 * victim sends no frames.
 */
static void judge_tcp(struct peer *p)
{
	if (p->row->expect == EXPECT_SURVIVE)
		return;
	want_all(p, p->raw, p->raw_len, "unframed");
	want_victim_bytes(p);
}

static void judge(struct peer *p)
{
	struct victim_report *r = p->victim.report;

	switch (p->row->expect) {
	case EXPECT_PLAIN:
		want_all(p, p->raw, p->raw_len, "unframed");
		/* not checked if rogue has accepted the victim's offer: the victim sends frames */
		if (p->as_client || p->row->flags & OPEN_SELF)
			want_victim_bytes(p);
		break;
	case EXPECT_STREAM:
		want_all(p, p->stream, p->stream_len, "stream");
		if (wants_frames(p) && !has_all_frames(p))
			wrong(p, "of the victim's %u bytes %llu arrived, its FIN is at %lld",
			      p->row->sends, (unsigned long long)p->heard, (long long)p->fin);
		break;
	case EXPECT_ERROR:
		want_error(p, p->stream, p->stream_len);
		break;
	case EXPECT_EITHER:
		if (r->err)
			want_error(p, p->stream, p->stream_len);
		else
			want_all(p, p->stream, p->stream_len, "stream");
		break;
	case EXPECT_PLAIN_OR_ERROR:
		if (r->err)
			want_error(p, p->raw, p->raw_len);
		else
			want_all(p, p->raw, p->raw_len, "unframed");
		break;
	case EXPECT_SURVIVE:
		break;
	}
}

/* ---- running a case ---- */

static u8 raw_room[STREAM_MAX], stream_room[STREAM_MAX];
static u8 *in_room;

static void prepare(struct peer *p, const struct rogue_row *row, bool as_client)
{
	static u16 next_port = 20000;

	*p = (struct peer) {
		.row = row, .as_client = as_client, .raw = raw_room, .stream = stream_room,
		.nonce = rnd(), .fin = AFR_NO_END,
	};
	/* As client, rogue takes the next port, so that it refuses segments of earlier cases. */
	if (++next_port < 20000)
		next_port = 20000;
	p->tcb.in = in_room;
	tcp_init(&p->tcb, &rogue.tun, as_client ? next_port : ROGUE_PORT,
		 as_client ? VICTIM_PORT : 0);
	in_room = p->tcb.in;
}

/*
 * Waits until the violation has reset the connection; only then may the victim read. Otherwise it
 * could read to the end of the stream and close before its module detects the violation.
 */
static void await_reset(struct peer *p)
{
	double end = now() + rogue.patience;

	while (rogue.rdma && !p->tcb.reset && now() < end)
		tcp_turn(&p->tcb, 10);
}

/*
 * Opens the connection unless the row has OPEN_SELF, sends HELLO unless the row has OPEN_SELF or
 * NO_HELLO, and calls the row's act(). Then lets a victim with SLEEPY read.
 */
static void act(struct peer *p, unsigned int i)
{
	unsigned int flags = p->row->flags;

	if (!(flags & OPEN_SELF) && !peer_open(p))
		return;
	if (!(flags & (OPEN_SELF | NO_HELLO)))
		peer_hello(p);
	p->row->act(p, i);
	if (flags & SLEEPY && p->row->expect == EXPECT_ERROR)
		await_reset(p);
	__atomic_store_n(&p->victim.report->read_now, 1, __ATOMIC_RELEASE);
}

/*
 * Sends a TCP FIN, unless the victim is on AF_RDMA and its connection must end by a FIN frame or
 * by an error. Then waits for the victim to end.
 */
static void finish(struct peer *p)
{
	bool fallback = p->row->expect == EXPECT_PLAIN || p->row->expect == EXPECT_SURVIVE ||
			p->row->expect == EXPECT_PLAIN_OR_ERROR;

	if (!rogue.rdma || fallback)
		tcp_fin(&p->tcb);
	peer_settle(p, rogue.patience);
}

static void report_stall(struct peer *p)
{
	struct victim_report *r = p->victim.report;

	wrong(p, "no end in %.1f s: state %u, %zu bytes read, %u unacknowledged, window %u",
	      rogue.patience, r->state, r->heard_len, p->tcb.snd_nxt - p->tcb.snd_una,
	      p->tcb.peer_window);
}

/* Runs case @i of a row. Returns NULL, or what is wrong. */
const char *peer_run(const struct rogue_row *row, unsigned int i, bool as_client)
{
	static char why[400];
	static struct peer p;
	struct victim_plan plan = {
		.listens = as_client, .rdma = rogue.rdma, .sends = row->sends,
		.sleepy = row->flags & SLEEPY, .urgent = row->flags & URGENT_FIRST,
		.lingers = row->flags & LINGERS, .times_out = row->flags & TIMES_OUT,
		.oob_early = row->flags & OOB_EARLY, .closes = row->flags & CLOSES,
		.stalls = row->flags & STALLS, .lowat = row->flags & LOWAT,
		.crosses = row->flags & CROSSES, .relistens = row->flags & RELISTENS,
		.port = as_client ? VICTIM_PORT : ROGUE_PORT,
	};

	prepare(&p, row, as_client);
	victim_start(&p.victim, &rogue.tun, &plan);
	act(&p, i);
	finish(&p);
	if (victim_state(&p.victim) != VICTIM_ENDED)
		report_stall(&p);
	else if (!p.why[0])
		(rogue.rdma ? judge : judge_tcp)(&p);
	/* End the connection, so that none of its segments arrive during the next case. */
	tcp_rst(&p.tcb);
	if (!victim_join(&p.victim, START_SECONDS))
		wrong(&p, "the victim does not end");
	munmap(p.victim.report, sizeof(*p.victim.report));
	snprintf(why, sizeof(why), "%s", p.why);
	return why[0] ? why : NULL;
}
