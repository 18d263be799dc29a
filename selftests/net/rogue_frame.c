// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Frames with wrong lengths, flags or fields, frames of unknown types, a known type with
 * AFR_FRAME_OPTIONAL, frames cut short or split, and a missing FIN. Valid frames follow each
 * complete frame that the victim must refuse: if it accepts a wrong flag or field or an unknown
 * type, it reads to the end of the stream or ends with another reason, and the row fails.
 */
#define _GNU_SOURCE
#include <endian.h>

#include "../frame_samples.h"
#include "rogue.h"

#define BYTES	1000
#define TYPES	(AFR_FRAME_NEXT - 1)

/* A well-formed frame of @type. DATA, MOVE and FIN are at the next offset. */
static struct afr_frame model(const struct peer *p, u8 type)
{
	struct afr_frame f = frame_samples[type];

	switch (type) {
	case AFR_FRAME_DATA:
	case AFR_FRAME_FIN:
		f.offset = p->offset;
		break;
	case AFR_FRAME_ATTACHED:
		f.attach.flags = 0;
		break;
	case AFR_FRAME_MOVE:
		f.move.start = p->offset;
		break;
	}
	return f;
}

/*
 * Encodes the frame that model() makes for @type into @buf; if @type is DATA, its payload follows.
 * Returns the length.
 */
static unsigned int model_bytes(struct peer *p, u8 type, u8 *buf)
{
	struct afr_frame f = model(p, type);
	unsigned int len = afr_frame_write(buf, &f);

	for (unsigned int i = 0; type == AFR_FRAME_DATA && i < f.length; i++)
		buf[len++] = rogue_byte(p->offset + i);
	return len;
}

/* Sends DATA and FIN, both valid, after the frame that the row tests. */
static void send_rest(struct peer *p)
{
	peer_data(p, BYTES);
	peer_fin(p);
}

#define BUF	(AFR_FRAME_HEAD_MAX + 16)

/* ---- header ---- */

static void set_length(u8 *frame, u32 length)
{
	length = htobe32(length);
	memcpy(frame + 4, &length, 4);
}

static u32 get_length(const u8 *frame)
{
	u32 length;

	memcpy(&length, frame + 4, 4);
	return be32toh(length);
}

#define LENGTHS	7	/* number of wrong lengths for each type */

/* Sends a frame of type @i / LENGTHS + 1 with one of LENGTHS wrong lengths. */
static void false_length(struct peer *p, unsigned int i)
{
	u8 type = i / LENGTHS + 1, buf[BUF];
	unsigned int len = model_bytes(p, type, buf);
	u32 right = type == AFR_FRAME_DATA ? 8 : get_length(buf);
	const u32 lengths[LENGTHS] = {
		0, 1, right - 1, type == AFR_FRAME_DATA ? right : right + 1,
		AFR_FRAME_BODY_MAX + 1, 0x80000000, 0xffffffff,
	};

	set_length(buf, lengths[i % LENGTHS]);
	peer_raw(p, buf, len, MSS);
	send_rest(p);
}

static void false_reserved(struct peer *p, unsigned int i)
{
	u8 type = i % TYPES + 1, buf[BUF];
	unsigned int len = model_bytes(p, type, buf);

	buf[i < TYPES ? 2 : 3] = 0x80;
	peer_raw(p, buf, len, MSS);
	send_rest(p);
}

static void false_flags(struct peer *p, unsigned int i)
{
	u8 type = i / 7 + 1, buf[BUF];
	unsigned int len = model_bytes(p, type, buf);

	buf[1] = 2u << (i % 7);
	peer_raw(p, buf, len, MSS);
	send_rest(p);
}

static const u8 unknown_types[] = { 0, AFR_FRAME_NEXT, AFR_FRAME_NEXT + 1, 64, 127, 128, 254, 255 };

/* An unknown type without AFR_FRAME_OPTIONAL ends the connection. */
static void unknown_critical(struct peer *p, unsigned int i)
{
	struct afr_frame f = { .type = unknown_types[i] };

	peer_frame(p, &f);
	send_rest(p);
}

/* An unknown type with AFR_FRAME_OPTIONAL is skipped, up to a body of AFR_FRAME_BODY_MAX bytes. */
static void unknown_optional(struct peer *p, unsigned int i)
{
	static const u32 lengths[] = { 0, 1, 7, 8, 1000, 65535, AFR_FRAME_BODY_MAX };
	struct afr_frame f = {
		.type = unknown_types[i / 7], .flags = AFR_FRAME_OPTIONAL,
		.length = lengths[i % 7],
	};
	u8 *body = calloc(1, AFR_FRAME_BODY_MAX);

	peer_data(p, 10);
	peer_frame(p, &f);
	peer_raw(p, body, f.length, MSS);
	free(body);
	send_rest(p);
}

/* A body above AFR_FRAME_BODY_MAX ends the connection, even with AFR_FRAME_OPTIONAL. */
static void unknown_too_long(struct peer *p, unsigned int i)
{
	struct afr_frame f = {
		.type = unknown_types[i], .flags = AFR_FRAME_OPTIONAL,
		.length = AFR_FRAME_BODY_MAX + 1,
	};

	peer_frame(p, &f);
	send_rest(p);
}

/* ---- incomplete and split frames, and a missing FIN ---- */

/*
 * Number of cases of cut() per frame type: the largest size in bytes of a header plus fixed body.
 * Case n sends the first n bytes of the frame, or all but its last byte if the frame is not longer
 * than n bytes.
 */
#define CUTS	AFR_FRAME_HEAD_MAX

static void cut(struct peer *p, unsigned int i)
{
	u8 type = i / CUTS + 1, buf[BUF];
	unsigned int len = model_bytes(p, type, buf), at = i % CUTS;

	peer_data(p, 10);
	model_bytes(p, type, buf);
	peer_raw(p, buf, at < len ? at : len - 1, MSS);
	/* the victim may have read the beginning of the payload */
	if (type == AFR_FRAME_DATA && at > 16)
		for (unsigned int n = 16; n < (at < len ? at : len - 1); n++)
			p->stream[p->stream_len++] = buf[n];
	tcp_fin(&p->tcb);
}

/* Sends a TCP FIN directly after HELLO or after a whole DATA frame, without a FIN frame. */
static void ends_without_fin(struct peer *p, unsigned int i)
{
	if (i)
		peer_data(p, BYTES);
	tcp_fin(&p->tcb);
}

/* The connection ends within the body of an unknown frame, which the victim skips. */
static void unknown_cut(struct peer *p, unsigned int i)
{
	struct afr_frame f = {
		.type = unknown_types[i], .flags = AFR_FRAME_OPTIONAL, .length = 1000,
	};

	peer_data(p, 10);
	peer_frame(p, &f);
	peer_raw_bytes(p, 1 + 100 * i);
	tcp_fin(&p->tcb);
}

/* Sends DATA and FIN byte by byte. */
static void dribble(struct peer *p, unsigned int i)
{
	struct afr_frame f = { .type = AFR_FRAME_DATA, .length = 100 };
	u8 buf[AFR_FRAME_HEAD_MAX + 100];
	unsigned int len = afr_frame_write(buf, &f);

	(void)i;
	for (int n = 0; n < 100; n++)
		p->stream[n] = buf[len++] = rogue_byte(n);
	p->offset = p->stream_len = 100;
	peer_raw(p, buf, len, 1);
	f = (struct afr_frame) { .type = AFR_FRAME_FIN, .offset = 100 };
	peer_raw(p, buf, afr_frame_write(buf, &f), 1);
}

/* ---- fields ---- */

#define FAR	((1ull << 62) + 1)

/* Offsets above 2^62, which no stream reaches. */
static void far_offset(struct peer *p, unsigned int i)
{
	static const u8 types[] = { AFR_FRAME_DATA, AFR_FRAME_CREDIT, AFR_FRAME_BLOCKED,
				    AFR_FRAME_FIN, AFR_FRAME_FINACK, AFR_FRAME_URGENT,
				    AFR_FRAME_URGENTACK };
	struct afr_frame f = model(p, types[i / 2]);

	f.offset = i % 2 ? U64_MAX : FAR;
	peer_frame(p, &f);
	if (f.type == AFR_FRAME_DATA)
		peer_raw_bytes(p, f.length);
	send_rest(p);
}

static void falsify_attach(struct afr_frame *f, unsigned int i)
{
	switch (i) {
	case 0: f->attach.epoch = 0; break;
	case 1: f->attach.ring = f->attach.span = 0; break;
	case 2: f->attach.ring = f->attach.span = 8192; break;
	case 3: f->attach.ring = f->attach.span = 100000; break;
	case 4: f->attach.ring = f->attach.span = 1u << 31; break;
	case 5: f->attach.span = 0; break;
	case 6: f->attach.span = f->attach.ring * 3; break;
	case 7: f->attach.span = f->attach.ring - 1; break;
	case 8: f->attach.channel = AFR_CHANNEL_MAX + 1; break;
	case 9: f->attach.channel = 0xffff; break;
	case 10: f->attach.flags = 2; break;
	case 11: f->attach.flags = 0x8000; break;
	case 12: f->attach.addr = U64_MAX - f->attach.span + 1; break;
	case 13: f->attach.consumed = FAR; break;
	case 14: f->attach.consumed = U64_MAX; break;
	}
}

#define ATTACH_BENDS	15

static void false_attach(struct peer *p, unsigned int i)
{
	struct afr_frame f = model(p, i < ATTACH_BENDS ? AFR_FRAME_ATTACH : AFR_FRAME_ATTACHED);

	falsify_attach(&f, i % ATTACH_BENDS);
	peer_frame(p, &f);
	send_rest(p);
}

static void false_move(struct peer *p, unsigned int i)
{
	struct afr_frame f = model(p, AFR_FRAME_MOVE);
	u8 buf[BUF];
	unsigned int len;

	if (i == 0)
		f.move.epoch = 0;
	if (i == 1)
		f.move.start = FAR;
	len = afr_frame_write(buf, &f);
	if (i == 2)
		buf[sizeof(struct afr_wire_frame) + 7] = 1;	/* reserved */
	peer_raw(p, buf, len, MSS);
	send_rest(p);
}

static void false_resume(struct peer *p, unsigned int i)
{
	struct afr_frame f = model(p, AFR_FRAME_RESUME);

	if (i == 0)
		f.resume.epoch = 0;
	if (i == 1)
		f.resume.received = FAR;
	if (i == 2)
		f.resume.consumed = FAR;
	peer_frame(p, &f);
	send_rest(p);
}

/* AFR_FRAME_OPTIONAL has no effect on a known type. */
static void optional_mark(struct peer *p, unsigned int i)
{
	struct afr_frame f = model(p, AFR_FRAME_BLOCKED);

	(void)i;
	f.flags = AFR_FRAME_OPTIONAL;
	peer_frame(p, &f);
	send_rest(p);
}

#define BAD	EXPECT_ERROR, AFR_REASON_FRAME_BAD

const struct rogue_row frame_rows[] = {
	{ "frame_length", AS_BOTH, false_length, TYPES * LENGTHS, BAD, 0 },
	{ "frame_reserved", AS_BOTH, false_reserved, TYPES * 2, BAD, 0 },
	{ "frame_flags", AS_BOTH, false_flags, TYPES * 7, BAD, 0 },
	{ "frame_unknown_critical", AS_BOTH, unknown_critical, 8, EXPECT_ERROR, 0, 500 },
	{ "frame_unknown_optional", AS_BOTH, unknown_optional, 56, EXPECT_STREAM, 0, 500 },
	{ "frame_unknown_too_long", AS_BOTH, unknown_too_long, 8, BAD, 500 },
	{ "frame_cut", AS_BOTH, cut, TYPES * CUTS, EXPECT_ERROR, 0, 0 },
	{ "frame_ends_without_fin", AS_BOTH, ends_without_fin, 2, EXPECT_ERROR,
	  AFR_REASON_TCP_EOF, 0 },
	{ "frame_unknown_cut", AS_BOTH, unknown_cut, 4, EXPECT_ERROR, AFR_REASON_TCP_EOF, 0 },
	{ "frame_dribble", AS_BOTH, dribble, 1, EXPECT_STREAM, 0, 500 },
	{ "frame_far_offset", AS_BOTH, far_offset, 14, BAD, 0 },
	{ "frame_attach", AS_BOTH, false_attach, 2 * ATTACH_BENDS, BAD, 0 },
	{ "frame_move", AS_BOTH, false_move, 3, BAD, 0 },
	{ "frame_resume", AS_BOTH, false_resume, 3, BAD, 0 },
	{ "frame_optional_mark", AS_BOTH, optional_mark, 1, EXPECT_STREAM, 0, 500 },
	{ }
};
