// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Floods of frames; DATA frames of the largest size; random bytes and frames; corrupted frames and
 * handshakes.
 */
#define _GNU_SOURCE
#include "rogue.h"

#define FLOOD	20000

static unsigned int flood_size(void)
{
	/*
	 * To a victim on a TCP socket, frames are data. In flood_blocked_unread() the victim does
	 * not read, and its receive buffer has no room for FLOOD frames.
	 */
	return rogue.quick || !rogue.rdma ? FLOOD / 20 : FLOOD;
}

/* Sends @count copies of @frame, with as many in each segment as fit. */
static void flood(struct peer *p, const struct afr_frame *frame, unsigned int count)
{
	u8 one[AFR_FRAME_HEAD_MAX], buf[MSS];
	unsigned int len = afr_frame_write(one, frame), fit = MSS / len;

	for (unsigned int i = 0; i < fit; i++)
		memcpy(buf + i * len, one, len);
	while (count && !p->tcb.reset && !p->why[0]) {
		unsigned int part = count < fit ? count : fit;

		peer_raw(p, buf, part * len, MSS);
		count -= part;
	}
}

static void flood_frames(struct peer *p, unsigned int i)
{
	const struct afr_frame frames[] = {
		{ .type = AFR_FRAME_BLOCKED },
		{ .type = AFR_FRAME_CREDIT },
		{ .type = 200, .flags = AFR_FRAME_OPTIONAL },
	};

	flood(p, &frames[i], flood_size());
	peer_data(p, 1000);
	peer_fin(p);
}

/* Sends many BLOCKED. The victim does not read; it must not queue an answer to each of them. */
static void flood_blocked_unread(struct peer *p, unsigned int i)
{
	const struct afr_frame blocked = { .type = AFR_FRAME_BLOCKED, .offset = 1000 };

	(void)i;
	peer_data(p, 1000);
	flood(p, &blocked, flood_size());
	peer_fin(p);
}

/* Sends ATTACH after ATTACH, each of the next epoch and for the same unknown link. */
static void flood_attach(struct peer *p, unsigned int i)
{
	struct afr_frame f = {
		.type = AFR_FRAME_ATTACH,
		.attach = { .link = 1, .ring = 256 * 1024, .span = 256 * 1024 },
	};

	(void)i;
	for (unsigned int n = 1; n <= flood_size() / 20 && !p->tcb.reset; n++) {
		f.attach.epoch = n;
		peer_frame(p, &f);
	}
	peer_data(p, 1000);
	peer_fin(p);
}

/* Sends DATA frames with one byte of payload each. */
static void tiny_data(struct peer *p, unsigned int i)
{
	u8 buf[MSS];
	unsigned int len = 0;

	(void)i;
	for (unsigned int n = 0; n < flood_size() / 4; n++) {
		struct afr_frame f = { .type = AFR_FRAME_DATA, .offset = n, .length = 1 };

		len += afr_frame_write(buf + len, &f);
		p->stream[n] = buf[len++] = rogue_byte(n);
		if (len + 17 > MSS) {
			peer_raw(p, buf, len, MSS);
			len = 0;
		}
	}
	peer_raw(p, buf, len, MSS);
	p->offset = p->stream_len = flood_size() / 4;
	peer_fin(p);
}

static void biggest_data(struct peer *p, unsigned int i)
{
	(void)i;
	for (int n = 0; n < 3; n++)
		peer_data(p, AFR_FRAME_BODY_MAX - sizeof(struct afr_wire_offset));
	peer_fin(p);
}

/* ---- random frames ---- */

static void random_bytes(struct peer *p, unsigned int i)
{
	u8 buf[MSS];

	(void)i;
	for (size_t n = 0; n < sizeof(buf); n++)
		buf[n] = rnd();
	peer_raw(p, buf, sizeof(buf), 1 + rnd() % MSS);
}

/* Returns a random value for a field: small, a power of two, all ones or arbitrary. */
static u64 random_field(void)
{
	switch (rnd() % 5) {
	case 0: return 0;
	case 1: return rnd() % 2000;
	case 2: return 1ull << (rnd() % 64);
	case 3: return ~0ull;
	default: return rnd();
	}
}

/*
 * Returns a frame of a random known type, with random fields. If it is DATA, it has no bytes, and
 * the callers do not send it.
 */
static struct afr_frame random_frame(void)
{
	struct afr_frame f = { .type = 1 + rnd() % (AFR_FRAME_NEXT - 1),
			       .flags = rnd() % 8 ? 0 : 1 };

	switch (f.type) {
	case AFR_FRAME_ATTACH:
	case AFR_FRAME_ATTACHED:
		f.attach.epoch = random_field();
		f.attach.reason = rnd() % 3 ? 0 : random_field();
		f.attach.link = random_field();
		f.attach.addr = random_field();
		f.attach.ring = rnd() % 3 ? 256 * 1024 : random_field();
		f.attach.span = rnd() % 3 ? f.attach.ring : random_field();
		f.attach.channel = random_field();
		f.attach.flags = rnd() % 4;
		f.attach.consumed = rnd() % 2 ? 0 : random_field();
		break;
	case AFR_FRAME_MOVE:
		f.move.epoch = rnd() % 2 ? 1 : random_field();
		f.move.start = random_field();
		break;
	case AFR_FRAME_RESUME:
		f.resume.epoch = rnd() % 2 ? 1 : random_field();
		f.resume.received = random_field();
		f.resume.consumed = random_field();
		break;
	case AFR_FRAME_ERROR:
		f.reason = random_field();
		break;
	case AFR_FRAME_SERVICE:
		f.port = random_field();
		break;
	default:
		f.offset = random_field();
	}
	return f;
}

static void random_frames(struct peer *p, unsigned int i)
{
	(void)i;
	for (int n = 0; n < 30 && !p->tcb.reset; n++) {
		struct afr_frame f = random_frame();

		if (f.type == AFR_FRAME_DATA)
			peer_data(p, 1 + rnd() % 500);
		else
			peer_frame(p, &f);
	}
}

/* Sends HELLO and frames that are valid but for one inverted bit, which may be in HELLO. */
static void one_bit(struct peer *p, unsigned int i)
{
	u8 buf[sizeof(struct afr_wire_hello) + 400];
	struct afr_frame frames[] = {
		{ .type = AFR_FRAME_DATA, .length = 50 },
		{ .type = AFR_FRAME_BLOCKED, .offset = 50 },
		{ .type = AFR_FRAME_DATA, .offset = 50, .length = 50 },
		{ .type = AFR_FRAME_CREDIT },
		{ .type = AFR_FRAME_FIN, .offset = 100 },
	};
	unsigned int len = sizeof(struct afr_wire_hello);

	(void)i;
	peer_default_hello(p, (struct afr_wire_hello *)buf);
	for (size_t n = 0; n < ARRAY_SIZE(frames); n++) {
		len += afr_frame_write(buf + len, &frames[n]);
		for (u32 j = 0; j < frames[n].length; j++)
			buf[len++] = rogue_byte(frames[n].offset + j);
	}
	buf[rnd() % len] ^= 1u << (rnd() % 8);
	peer_raw(p, buf, len, rnd() % 2 ? MSS : 1 + rnd() % 20);
}

/* ---- handshakes and frames, corrupted in a few places ---- */

struct bytes {
	u8 at[1000];
	unsigned int len;
};

/* Inserts @len bytes at @at, if there is room for them. */
static void insert(struct bytes *b, unsigned int at, const u8 *from, unsigned int len)
{
	if (b->len + len > sizeof(b->at))
		return;
	memmove(b->at + at + len, b->at + at, b->len - at);
	memmove(b->at + at, from, len);
	b->len += len;
}

/*
 * Changes a byte at or after offset @first or, only without @keep, removes or adds bytes there.
 * Sometimes nothing changes, for example if the new value of the byte is the old one.
 */
static void spoil(struct bytes *b, unsigned int first, bool keep)
{
	static const u8 values[] = { 0, 1, 2, 0x7f, 0x80, 0xfe, 0xff };
	unsigned int at, len;
	u8 some[16];

	if (first >= b->len)	/* earlier calls have left no byte at or after offset @first */
		first = 0;
	at = first + rnd() % (b->len - first);
	len = 1 + rnd() % (b->len - at);
	switch (rnd() % (keep ? 3 : 6)) {
	case 0:
		b->at[at] ^= 1u << (rnd() % 8);
		break;
	case 1:
		b->at[at] = values[rnd() % sizeof(values)];
		break;
	case 2:
		b->at[at] = rnd();
		break;
	case 3:		/* bytes removed */
		memmove(b->at + at, b->at + at + len, b->len - at - len);
		b->len -= len < b->len - first ? len : 0;
		break;
	case 4:		/* bytes repeated */
		memcpy(some, b->at + at, len < sizeof(some) ? len : sizeof(some));
		insert(b, at, some, len < sizeof(some) ? len : sizeof(some));
		break;
	case 5:		/* bytes inserted */
		for (size_t n = 0; n < sizeof(some); n++)
			some[n] = rnd();
		insert(b, at, some, 1 + rnd() % sizeof(some));
		break;
	}
}

/* Appends random frames, half of them valid DATA, and a FIN. */
static void put_frames(struct bytes *b)
{
	u64 offset = 0;

	for (int n = rnd() % 8; n >= 0; n--) {
		struct afr_frame f = random_frame();

		if (rnd() % 2)
			f = (struct afr_frame) { .type = AFR_FRAME_DATA, .offset = offset,
						 .length = 1 + rnd() % 60 };
		if (f.type == AFR_FRAME_DATA && !f.length)
			continue;
		b->len += afr_frame_write(b->at + b->len, &f);
		for (u32 j = 0; j < f.length; j++)
			b->at[b->len++] = rogue_byte(offset++);
	}
	b->len += afr_frame_write(b->at + b->len, &(struct afr_frame) {
		.type = AFR_FRAME_FIN, .offset = offset });
}

/*
 * Does the TCP handshake with the AF_RDMA option. Often corrupts the option, and sets *@spoiled to
 * whether it did. Sends no other option, so the option list has fewer than 18 bytes: some kernels
 * drop segments with a malformed list of 18 bytes or more. Returns false if the handshake fails.
 */
static bool open_spoiled(struct peer *p, bool *spoiled)
{
	struct bytes option = { .len = AFR_OPT_LEN };
	struct afr_tcp_option opt = { .server = !p->as_client };
	u8 valid[AFR_OPT_LEN];

	/* As server, rogue needs the nonce in the victim's SYN first. */
	if (!p->as_client && !tcp_await_syn(&p->tcb)) {
		wrong(p, "the victim does not connect");
		return false;
	}
	if (!p->as_client && !afr_tcp_option_find(p->tcb.syn_options, p->tcb.syn_options_len, &opt))
		p->nonce = opt.nonce;
	opt.server = !p->as_client;
	opt.nonce = p->as_client ? p->nonce : afr_tcp_option_answer(p->nonce);
	afr_tcp_option_write(option.at, &opt);
	memcpy(valid, option.at, sizeof(valid));
	/*
	 * Byte 0, the option kind, stays: TCP might interpret another kind. Where TCP drops a
	 * segment with a malformed option list, byte 1, the length, stays as well.
	 */
	for (int n = rnd() % 3; n > 0; n--)
		spoil(&option, has_tcp_ao() ? 2 : 1, true);
	*spoiled = memcmp(valid, option.at, sizeof(valid));
	return peer_open_options(p, option.at, option.len);
}

/* Sends a corrupted option or HELLO, and often corrupted frames as well. */
static void spoiled_handshake(struct peer *p, unsigned int i)
{
	struct bytes out = { .len = sizeof(struct afr_wire_hello) }, valid;
	bool spoiled;

	(void)i;
	if (!open_spoiled(p, &spoiled))
		return;
	peer_default_hello(p, (struct afr_wire_hello *)out.at);
	valid = out;
	/* usually keep magic and proof, without which the victim parses no frames */
	for (int n = rnd() % 4 - 1; n > 0; n--)
		spoil(&out, rnd() % 3 ? AFR_HELLO_MAGIC_LEN + 8 : 0, false);
	while (!spoiled && out.len == valid.len && !memcmp(out.at, valid.at, out.len))
		spoil(&out, AFR_HELLO_MAGIC_LEN + 8, false);
	put_frames(&out);
	for (int n = rnd() % 4; n > 0; n--)
		spoil(&out, sizeof(struct afr_wire_hello) < out.len ?
		      sizeof(struct afr_wire_hello) : 0, false);
	peer_raw(p, out.at, out.len, rnd() % 2 ? MSS : 1 + rnd() % 100);
}

const struct rogue_row flood_rows[] = {
	{ "flood_frames", AS_BOTH, flood_frames, 3, EXPECT_STREAM, 0, 500 },
	{ "flood_blocked_unread", AS_BOTH | SLEEPY, flood_blocked_unread, 1, EXPECT_STREAM, 0,
	  500 },
	{ "flood_attach", AS_CLIENT | SHORT_TIMERS, flood_attach, 1, EXPECT_EITHER, 0, 0 },
	{ "tiny_data", AS_BOTH, tiny_data, 1, EXPECT_STREAM, 0, 500 },
	{ "biggest_data", AS_BOTH, biggest_data, 1, EXPECT_STREAM, 0, 500 },
	{ "random_bytes", AS_BOTH | RANDOM, random_bytes, 50, EXPECT_SURVIVE, 0, 500 },
	{ "random_frames", AS_BOTH | RANDOM, random_frames, 200, EXPECT_SURVIVE, 0, 500 },
	{ "one_bit", AS_BOTH | NO_HELLO | RANDOM, one_bit, 200, EXPECT_SURVIVE, 0, 500 },
	{ "spoiled_handshake", AS_BOTH | OPEN_SELF | RANDOM,
	  spoiled_handshake, 200, EXPECT_SURVIVE, 0, 500 },
	{ }
};
