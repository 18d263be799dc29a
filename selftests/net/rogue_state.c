// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Well-formed frames, most of which the state of the connection does not permit; only
 * attach_with_reason() sends a malformed one. Also TCP's RST, and TCP's FIN instead of FINACK.
 *
 * In a row with flag SLEEPY the victim reads only after the row has sent everything. Otherwise the
 * victim could make room in a window that the row fills, or read to the end of the stream before
 * the last frame arrives.
 */
#define _GNU_SOURCE
#include "rogue.h"

#define BYTES	1000

static void send_rest(struct peer *p)
{
	peer_data(p, BYTES);
	peer_fin(p);
}

/* ---- DATA ---- */

static void data_misplaced(struct peer *p, unsigned int i)
{
	const u64 values[] = { BYTES + 1, BYTES - 1, 0, BYTES * 2, 1ull << 40, 1ull << 62 };

	peer_data(p, BYTES);
	peer_data_at(p, values[i], 10);
	send_rest(p);
}

static void data_replayed(struct peer *p, unsigned int i)
{
	(void)i;
	peer_data(p, BYTES);
	peer_data_at(p, p->offset - BYTES, BYTES);
	send_rest(p);
}

/*
 * Returns the size of the victim's receive ring, from its HELLO, or 0 if no HELLO comes. With
 * --family tcp there is neither, and the result is 16 KiB.
 */
static u32 victim_ring(struct peer *p)
{
	if (!rogue.rdma)
		return 16 * 1024;
	if (!peer_await_hello(p, rogue.patience)) {
		wrong(p, "no HELLO from the victim");
		return 0;
	}
	return p->hello.ring;
}

/* Fills the window of a victim that does not read. Every byte within the window is legal. */
static void fill_window(struct peer *p)
{
	u32 left = victim_ring(p);

	while (left && !p->why[0]) {
		u32 part = left < 60000 ? left : 60000;

		peer_data(p, part);
		left -= part;
	}
}

static void window_full(struct peer *p, unsigned int i)
{
	(void)i;
	fill_window(p);
	peer_fin(p);
}

static void window_exceeded(struct peer *p, unsigned int i)
{
	static const u32 more[] = { 1, 100, 20000 };

	fill_window(p);
	peer_data_at(p, p->offset, more[i]);
}

/* ---- FIN and FINACK ---- */

static void data_after_fin(struct peer *p, unsigned int i)
{
	peer_data(p, BYTES);
	peer_fin(p);
	peer_data_at(p, p->offset, i ? 1000 : 1);
}

/* Sends FIN before the last bytes of the stream, which is legal. */
static void fin_ahead(struct peer *p, unsigned int i)
{
	(void)i;
	peer_data(p, 10);
	peer_offset_frame(p, AFR_FRAME_FIN, p->offset + BYTES);
	peer_data(p, BYTES);
}

/* Sends FIN before the last bytes of the stream, then these bytes and one beyond the end. */
static void past_fin_ahead(struct peer *p, unsigned int i)
{
	(void)i;
	peer_data(p, 10);
	peer_offset_frame(p, AFR_FRAME_FIN, p->offset + BYTES);
	peer_data_at(p, p->offset, BYTES + 1);
}

static void fin_below(struct peer *p, unsigned int i)
{
	peer_data(p, BYTES);
	peer_offset_frame(p, AFR_FRAME_FIN, i ? 0 : p->offset - 1);
	send_rest(p);
}

static void fin_twice(struct peer *p, unsigned int i)
{
	(void)i;
	peer_data(p, BYTES);
	peer_fin(p);
	peer_fin(p);
}

/* Sends a second FIN with a different end offset. */
static void fin_changed(struct peer *p, unsigned int i)
{
	peer_data(p, BYTES);
	peer_offset_frame(p, AFR_FRAME_FIN, p->offset + 10);
	peer_offset_frame(p, AFR_FRAME_FIN, p->offset + (i ? 20 : 0));
}

/* Sends FINACK to a victim that has sent no FIN. */
static void finack_unasked(struct peer *p, unsigned int i)
{
	static const u64 ends[] = { 0, 1, 500, 1ull << 40 };

	peer_offset_frame(p, AFR_FRAME_FINACK, ends[i]);
	send_rest(p);
}

/* ---- CREDIT and BLOCKED ---- */

/* Sends CREDIT for bytes that the victim has not sent. */
static void credit_beyond(struct peer *p, unsigned int i)
{
	static const u64 values[] = { 501, 1000, 1ull << 32, 1ull << 61 };

	peer_await_frame(p, AFR_FRAME_DATA, 1, rogue.patience);
	peer_offset_frame(p, AFR_FRAME_CREDIT, values[i]);
	send_rest(p);
}

/* Sends CREDIT with the current cursor, then with older and older ones, which must be ignored. */
static void credit_backwards(struct peer *p, unsigned int i)
{
	(void)i;
	peer_await_frame(p, AFR_FRAME_DATA, 1, rogue.patience);
	for (u64 n = p->heard; n; n /= 2)
		peer_offset_frame(p, AFR_FRAME_CREDIT, n);
	peer_offset_frame(p, AFR_FRAME_CREDIT, 0);
	send_rest(p);
}

/* Sends no CREDIT: the victim must stop at the end of the window, and still read all bytes. */
static void no_credit(struct peer *p, unsigned int i)
{
	double end = now() + 0.5;

	(void)i;
	/* the victim sends no URGENT, so each call just receives for 50 ms */
	while (rogue.rdma && now() < end)
		peer_await_frame(p, AFR_FRAME_URGENT, 1, 0.05);
	if (p->heard > 256 * 1024)
		wrong(p, "the victim sent %llu bytes into a window of 262144",
		      (unsigned long long)p->heard);
	send_rest(p);
}

static void blocked_false(struct peer *p, unsigned int i)
{
	static const u64 values[] = { 0, 1, 1ull << 32, 1ull << 62 };

	peer_offset_frame(p, AFR_FRAME_BLOCKED, values[i]);
	send_rest(p);
}

/* ---- ATTACH, ATTACHED, MOVE, RESUME without RDMA ---- */

/* A well-formed ATTACH or ATTACHED for a link that does not exist. */
static struct afr_frame attach(u8 type, u32 epoch)
{
	return (struct afr_frame) {
		.type = type,
		.attach = {
			.epoch = epoch, .link = 0x1234, .addr = 0x7f0000000000, .rkey = 0x1234,
			.ring = 256 * 1024, .span = 256 * 1024, .flags = AFR_ATTACH_ACTIVE,
		},
	};
}

/* Sends ATTACH for a link that does not exist. */
static void unknown_link(struct peer *p, unsigned int i)
{
	struct afr_frame f = attach(AFR_FRAME_ATTACH, 1);

	(void)i;
	peer_frame(p, &f);
	/* the victim must refuse ATTACH at once, not after attach_timeout_ms */
	if (rogue.rdma && (!peer_await_frame(p, AFR_FRAME_ATTACHED, 1, rogue.patience) ||
			   !p->last[AFR_FRAME_ATTACHED].attach.reason))
		wrong(p, "no refusal of an unknown link");
	send_rest(p);
}

/*
 * Sends a first ATTACH with an epoch above 1. That is legal: a client may have given up the
 * earlier epochs before it sent ATTACH for them.
 */
static void attach_epoch(struct peer *p, unsigned int i)
{
	static const u32 epochs[] = { 2, 7, 0x80000000, 0xffffffff };
	struct afr_frame f = attach(AFR_FRAME_ATTACH, epochs[i]);

	peer_frame(p, &f);
	send_rest(p);
}

/* Sends a second ATTACH, of the same or the next epoch; does not await the answer to the first. */
static void attach_twice(struct peer *p, unsigned int i)
{
	struct afr_frame f = attach(AFR_FRAME_ATTACH, 1);

	peer_frame(p, &f);
	f.attach.epoch += i;
	peer_frame(p, &f);
	send_rest(p);
}

static void attach_ring_changed(struct peer *p, unsigned int i)
{
	struct afr_frame f = attach(AFR_FRAME_ATTACH, 1);

	f.attach.ring = f.attach.span = i ? 1 << 20 : 1 << 15;
	peer_frame(p, &f);
	send_rest(p);
}

static void attach_consumed(struct peer *p, unsigned int i)
{
	struct afr_frame f = attach(AFR_FRAME_ATTACH, 1);

	f.attach.consumed = i ? 1ull << 40 : 501;
	peer_frame(p, &f);
	send_rest(p);
}

static void attach_with_reason(struct peer *p, unsigned int i)
{
	struct afr_frame f = attach(AFR_FRAME_ATTACH, 1);

	(void)i;
	f.attach.reason = AFR_REASON_NO_MEMORY;
	peer_frame(p, &f);
	send_rest(p);
}

/* Sends ATTACH on a one-way connection: HELLO was late, so the victim sends in fallback mode. */
static void attach_one_way(struct peer *p, unsigned int i)
{
	struct afr_frame f = attach(AFR_FRAME_ATTACH, 1);
	double end = now() + rogue.patience;

	(void)i;
	while (rogue.rdma && p->tcb.in_len < p->row->sends && now() < end)
		tcp_turn(&p->tcb, 10);
	peer_hello(p);
	peer_frame(p, &f);
	send_rest(p);
}

/* Sends DATA after FIN on a one-way connection: there the victim checks FIN, but no window. */
static void data_after_fin_one_way(struct peer *p, unsigned int i)
{
	double end = now() + rogue.patience;

	while (rogue.rdma && p->tcb.in_len < p->row->sends && now() < end)
		tcp_turn(&p->tcb, 10);
	peer_hello(p);
	data_after_fin(p, i);
}

/* Sends ATTACH as server, although only a client may send it. */
static void attach_by_server(struct peer *p, unsigned int i)
{
	struct afr_frame f = attach(AFR_FRAME_ATTACH, 1);

	(void)i;
	peer_frame(p, &f);
	send_rest(p);
}

static void attached_unasked(struct peer *p, unsigned int i)
{
	struct afr_frame f = attach(AFR_FRAME_ATTACHED, 1);

	f.attach.reason = i ? AFR_REASON_NO_MEMORY : 0;
	peer_frame(p, &f);
	send_rest(p);
}

/* Sends MOVE without ATTACH. */
static void move_unattached(struct peer *p, unsigned int i)
{
	static const u64 starts[] = { 0, 10, 1ull << 40 };
	struct afr_frame f = { .type = AFR_FRAME_MOVE, .move.epoch = 1, .move.start = starts[i] };

	peer_data(p, 10);
	peer_frame(p, &f);
	send_rest(p);
}

/* Sends MOVE for an attach that will be refused, then DATA on TCP. */
static void move_refused(struct peer *p, unsigned int i)
{
	struct afr_frame f = attach(AFR_FRAME_ATTACH, 1);
	struct afr_frame move = { .type = AFR_FRAME_MOVE, .move.epoch = 1 };

	(void)i;
	peer_frame(p, &f);
	peer_frame(p, &move);
	send_rest(p);
}

/* Sends RESUME for an epoch without a link. */
static void resume_unasked(struct peer *p, unsigned int i)
{
	struct afr_frame f = { .type = AFR_FRAME_RESUME, .resume.epoch = i % 3 + 1 };

	f.resume.received = i < 3 ? 0 : 1ull << 40;
	f.resume.consumed = i < 6 ? 0 : 1ull << 40;
	peer_data(p, 10);
	peer_frame(p, &f);
	send_rest(p);
}

/* Sends RESUME right after ATTACH, as if the link had been lost at once. */
static void resume_attach(struct peer *p, unsigned int i)
{
	struct afr_frame f = attach(AFR_FRAME_ATTACH, 1);
	struct afr_frame resume = { .type = AFR_FRAME_RESUME, .resume.epoch = 1 };

	(void)i;
	peer_frame(p, &f);
	peer_frame(p, &resume);
	send_rest(p);
}

/* ---- frames ERROR and URGENT, TCP's RST and FIN, DATA for an orphan ---- */

static void error_frame(struct peer *p, unsigned int i)
{
	static const u32 reasons[] = { 0, AFR_REASON_FRAME_BAD, 9999, 0xffffffff };
	struct afr_frame f = { .type = AFR_FRAME_ERROR, .reason = reasons[i] };

	peer_data(p, 10);
	peer_frame(p, &f);
}

static void urgent(struct peer *p, unsigned int i)
{
	static const u64 offsets[] = { 0, 5, 10, 1ull << 40 };

	peer_data(p, 10);
	peer_offset_frame(p, AFR_FRAME_URGENT, offsets[i]);
	send_rest(p);
}

static void reset(struct peer *p, unsigned int i)
{
	if (i)
		peer_data(p, BYTES);
	tcp_rst(&p->tcb);
}

/* Answers the victim's FIN with a TCP FIN instead of FINACK. */
static void fin_unanswered(struct peer *p, unsigned int i)
{
	(void)i;
	send_rest(p);
	peer_await_frame(p, AFR_FRAME_FIN, 1, rogue.patience);
	tcp_fin(&p->tcb);
}

/* Sends DATA after FIN to a victim that has read to the end of the stream and closed its socket. */
static void data_to_orphan(struct peer *p, unsigned int i)
{
	peer_data(p, BYTES);
	peer_fin(p);
	peer_await_frame(p, AFR_FRAME_FIN, 1, rogue.patience);
	for (unsigned int n = 0; n <= i * 20; n++)
		peer_data_at(p, p->offset, 1000);
}

#define VIOLATION(why)	EXPECT_ERROR, AFR_REASON_##why

const struct rogue_row state_rows[] = {
	{ "data_offset", AS_BOTH, data_misplaced, 6, VIOLATION(DATA_OFFSET), 0 },
	{ "data_replayed", AS_BOTH, data_replayed, 1, VIOLATION(DATA_OFFSET), 0 },
	{ "window_full", AS_BOTH | SLEEPY, window_full, 1, EXPECT_STREAM, 0, 0 },
	{ "window_exceeded", AS_BOTH | SLEEPY, window_exceeded, 3, VIOLATION(WINDOW_EXCEEDED), 0 },
	{ "data_after_fin", AS_BOTH | SLEEPY, data_after_fin, 2, VIOLATION(DATA_AFTER_FIN), 0 },
	{ "fin_ahead", AS_BOTH, fin_ahead, 1, EXPECT_STREAM, 0, 500 },
	{ "past_fin_ahead", AS_BOTH, past_fin_ahead, 1, VIOLATION(DATA_AFTER_FIN), 0 },
	{ "fin_below", AS_BOTH, fin_below, 2, VIOLATION(FIN_BAD), 0 },
	{ "fin_twice", AS_BOTH | SLEEPY, fin_twice, 1, EXPECT_EITHER, 0, 0 },
	{ "fin_changed", AS_BOTH | SLEEPY, fin_changed, 2, VIOLATION(FIN_BAD), 0 },
	{ "finack_unasked", AS_BOTH, finack_unasked, 4, VIOLATION(FINACK_BAD), 500 },
	{ "credit_beyond", AS_BOTH, credit_beyond, 4, VIOLATION(CREDIT_BAD), 500 },
	{ "credit_backwards", AS_BOTH, credit_backwards, 1, EXPECT_STREAM, 0, 500 },
	{ "no_credit", AS_BOTH, no_credit, 1, EXPECT_STREAM, 0, SAY_MAX * 2 },
	{ "blocked_false", AS_BOTH, blocked_false, 4, EXPECT_STREAM, 0, 500 },
	{ "unknown_link", AS_CLIENT, unknown_link, 1, EXPECT_STREAM, 0, 500 },
	{ "attach_epoch", AS_CLIENT | SHORT_TIMERS, attach_epoch, 4, EXPECT_STREAM, 0, 0 },
	{ "attach_twice", AS_CLIENT | SHORT_TIMERS, attach_twice, 2, EXPECT_EITHER, 0, 0 },
	{ "attach_ring_changed", AS_CLIENT, attach_ring_changed, 2, VIOLATION(ATTACH_BAD), 0 },
	{ "attach_consumed", AS_CLIENT, attach_consumed, 2, VIOLATION(ATTACH_BAD), 500 },
	{ "attach_with_reason", AS_CLIENT, attach_with_reason, 1, EXPECT_ERROR, 0, 0 },
	{ "attach_one_way", AS_CLIENT | NO_HELLO | SHORT_TIMERS | RAW_BACK, attach_one_way, 1,
	  VIOLATION(ATTACH_BAD), 100 },
	{ "data_after_fin_one_way", AS_CLIENT | NO_HELLO | SHORT_TIMERS | RAW_BACK | SLEEPY,
	  data_after_fin_one_way, 2, VIOLATION(DATA_AFTER_FIN), 100 },
	{ "attach_by_server", AS_SERVER, attach_by_server, 1, VIOLATION(ATTACH_BAD), 0 },
	{ "attached_unasked", AS_BOTH, attached_unasked, 2, VIOLATION(ATTACH_BAD), 0 },
	{ "move_unattached", AS_BOTH, move_unattached, 3, EXPECT_EITHER, 0, 0 },
	{ "move_refused", AS_CLIENT | SHORT_TIMERS, move_refused, 1, EXPECT_EITHER, 0, 0 },
	{ "resume_unasked", AS_BOTH, resume_unasked, 9, EXPECT_EITHER, 0, 0 },
	{ "resume_attach", AS_CLIENT | SHORT_TIMERS, resume_attach, 1, EXPECT_EITHER, 0, 0 },
	{ "error_frame", AS_BOTH, error_frame, 4, VIOLATION(PEER_ERROR), 500 },
	{ "urgent_frame", AS_BOTH, urgent, 4, EXPECT_EITHER, 0, 500 },
	{ "reset", AS_BOTH, reset, 2, EXPECT_SURVIVE, 0, 500 },
	{ "fin_unanswered", AS_BOTH, fin_unanswered, 1, EXPECT_STREAM, 0, 500 },
	{ "data_to_orphan", AS_BOTH, data_to_orphan, 2, EXPECT_STREAM, 0, 0 },
	{ }
};
