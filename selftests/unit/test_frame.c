// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
#include "../frame_samples.h"
#include "tap.h"

/* Parses exactly @len bytes on the heap, so that ASan detects reads beyond them. */
static int parse(const void *bytes, unsigned int len, struct afr_frame *out, unsigned int *need)
{
	u8 *copy = malloc(len + !len);
	int got;

	memcpy(copy, bytes, len);
	got = afr_frame_parse(copy + !len, len, out, need);
	free(copy);
	return got;
}

/* Valid frames with remarkable values, and the sample of every type. */
static const struct afr_frame good[] = {
	{ .type = AFR_FRAME_DATA, .length = 1, .offset = 77 },
	{ .type = AFR_FRAME_DATA, .length = 64 * 1024, .offset = 1ull << 62 },
	{ .type = AFR_FRAME_CREDIT, .offset = 0 },
	{ .type = AFR_FRAME_ATTACH, .attach = { .epoch = 1, .link = 2, .addr = 3, .rkey = 4,
		.ring = 16384, .span = 16384, .channel = AFR_CHANNEL_MAX,
		.flags = AFR_ATTACH_ACTIVE, .consumed = 1ull << 62 } },
	{ .type = AFR_FRAME_ATTACHED, .attach = { .epoch = U32_MAX, .link = U64_MAX,
		.addr = U64_MAX - 2 * 65536, .rkey = U32_MAX, .ring = 65536, .span = 131072 } },
	{ .type = AFR_FRAME_ATTACHED, .attach = { .epoch = 1, .reason = 31 } },
	{ .type = AFR_FRAME_BLOCKED, .offset = 5 },
	{ .type = AFR_FRAME_MOVE, .flags = AFR_FRAME_OPTIONAL, .move = { .epoch = 3, .start = 9 } },
	{ .type = AFR_FRAME_RESUME, .resume = { .epoch = 3, .reason = 50, .received = 9,
		.consumed = 8 } },
	{ .type = AFR_FRAME_FIN, .offset = 1ull << 40 },
	{ .type = AFR_FRAME_FINACK, .offset = 1ull << 40 },
	{ .type = AFR_FRAME_URGENT, .offset = 6 },
	{ .type = AFR_FRAME_URGENTACK, .offset = 7 },
	{ .type = AFR_FRAME_ERROR, .reason = U32_MAX },
	{ .type = AFR_FRAME_SERVICE, .flags = AFR_FRAME_OPTIONAL, .port = 0xfffe },
#define AFR_FRAME(number, name, layout, meaning) \
	{ .type = number, SAMPLE_##layout, .length = number == AFR_FRAME_DATA },
	AFR_FRAMES
#undef AFR_FRAME
};

#define GOOD (sizeof(good) / sizeof(good[0]))

TEST(frame_parse__reads_back_what_was_written)
{
	u8 bytes[1 + AFR_FRAME_HEAD_MAX];
	struct afr_frame out;
	unsigned int i, need;

	for (i = 0; i < GOOD; i++) {
		int len = afr_frame_write(bytes + 1, &good[i]);

		EXPECT_EQ(parse(bytes + 1, len, &out, &need), len);
		EXPECT(!memcmp(&out, &good[i], sizeof(out)));
	}
}

TEST(frame_parse__every_prefix_tells_what_it_needs)
{
	u8 bytes[AFR_FRAME_HEAD_MAX];
	struct afr_frame out;
	unsigned int i, need, at;

	for (i = 0; i < GOOD; i++) {
		unsigned int len = afr_frame_write(bytes, &good[i]);

		for (at = 0; at < len; at++) {
			need = 0;
			EXPECT_EQ(parse(bytes, at, &out, &need), 0);
			EXPECT_EQ(need, at < 8 ? 8 : len);
		}
	}
}

TEST(frame_parse__wrong_lengths)
{
	u8 bytes[AFR_FRAME_HEAD_MAX] = { 0 };
	struct afr_frame out;
	unsigned int i, need;
	u32 length;

	for (i = 0; i < GOOD; i++) {
		unsigned int body = afr_frame_write(bytes, &good[i]) - 8;

		for (length = 0; length < 80; length++) {
			bytes[6] = 0;
			bytes[7] = length;
			bytes[5] = 0;
			if (good[i].type == AFR_FRAME_DATA ? length > 8 : length == body)
				continue;
			EXPECT_EQ(parse(bytes, 8, &out, &need), -EPROTO);
			EXPECT_EQ(parse(bytes, 8 + body, &out, &need), -EPROTO);
		}
	}
}

TEST(frame_parse__longest_body)
{
	u8 bytes[16] = { AFR_FRAME_DATA, 0, 0, 0, 0, 1, 0, 8 };
	struct afr_frame out;
	unsigned int need;

	EXPECT_EQ(parse(bytes, 16, &out, &need), 16);
	EXPECT_EQ(out.length, 65536);
	bytes[7] = 9;
	EXPECT_EQ(parse(bytes, 16, &out, &need), -EPROTO);
	bytes[4] = 0xff;
	EXPECT_EQ(parse(bytes, 8, &out, &need), -EPROTO);
}

TEST(frame_parse__unknown_types)
{
	u8 bytes[16] = { AFR_FRAME_NEXT, AFR_FRAME_OPTIONAL, 0, 0, 0, 0, 0, 5 };
	struct afr_frame out;
	unsigned int need, type;

	for (type = AFR_FRAME_NEXT; type < 257; type++) {
		bytes[0] = type;
		bytes[1] = AFR_FRAME_OPTIONAL;
		EXPECT_EQ(parse(bytes, 8, &out, &need), 8);
		EXPECT(out.type == (u8)type && out.length == 5);
		bytes[1] = 0;
		EXPECT_EQ(parse(bytes, 16, &out, &need), -EPROTO);
	}
	bytes[1] = AFR_FRAME_OPTIONAL;
	memcpy(bytes + 4, "\x00\x01\x00\x09", 4);
	EXPECT_EQ(parse(bytes, 16, &out, &need), -EPROTO);
	memcpy(bytes + 4, "\x00\x00\x00\x00", 4);
	EXPECT_EQ(parse(bytes, 8, &out, &need), 8);
}

TEST(frame_parse__unknown_flags_and_reserved_fields)
{
	u8 bytes[AFR_FRAME_HEAD_MAX];
	struct afr_frame out;
	unsigned int i, need, bit;
	int len;

	for (i = 0; i < GOOD; i++) {
		len = afr_frame_write(bytes, &good[i]);
		for (bit = 1; bit < 8; bit++) {
			bytes[1] = 1 << bit;
			EXPECT_EQ(parse(bytes, len, &out, &need), -EPROTO);
		}
		len = afr_frame_write(bytes, &good[i]);
		bytes[2] = 1;
		EXPECT_EQ(parse(bytes, len, &out, &need), -EPROTO);
		len = afr_frame_write(bytes, &good[i]);
		bytes[3] = 0x80;
		EXPECT_EQ(parse(bytes, len, &out, &need), -EPROTO);
	}
	len = afr_frame_write(bytes, &good[7]);
	bytes[8 + 4] = 1;
	EXPECT_EQ(parse(bytes, len, &out, &need), -EPROTO);
}

/* Writes @frame and parses the bytes; returns the result of the parser. */
static int reparse(const struct afr_frame *frame)
{
	u8 bytes[AFR_FRAME_HEAD_MAX];
	struct afr_frame out;
	unsigned int need;

	return parse(bytes, afr_frame_write(bytes, frame), &out, &need);
}

/* Returns a pointer to offset @n (0 or 1) of the frame, or NULL if it has no such offset. */
static u64 *offset_of(struct afr_frame *f, unsigned int n)
{
	switch (f->type) {
#define AFR_FRAME(number, name, layout, meaning) \
	case number: { u64 *offsets[2] = { OFFSETS_##layout(f) }; return offsets[n]; }
	AFR_FRAMES
#undef AFR_FRAME
	}
	return NULL;
}

TEST(frame_parse__offsets_beyond_2_to_62)
{
	static const u64 far[] = { (1ull << 62) + 1, 1ull << 63, U64_MAX };
	unsigned int i, k, n, tried = 0;

	for (i = 0; i < 3; i++) {
		for (k = 0; k < GOOD; k++) {
			for (n = 0; n < 2; n++) {
				struct afr_frame f = good[k];
				u64 *offset = offset_of(&f, n);

				if (!offset)
					continue;
				*offset = far[i];
				EXPECT_EQ(reparse(&f), -EPROTO);
				tried++;
			}
		}
	}
	EXPECT_EQ(tried, 3 * (GOOD - 4 + 2));	/* 4 frames have no offset, 2 have two */
}

TEST(frame_parse__epoch_zero)
{
	struct afr_frame f;

	f = good[3];
	f.attach.epoch = 0;
	EXPECT_EQ(reparse(&f), -EPROTO);
	f = good[5];
	f.attach.epoch = 0;
	EXPECT_EQ(reparse(&f), -EPROTO);
	f = good[7];
	f.move.epoch = 0;
	EXPECT_EQ(reparse(&f), -EPROTO);
	f = good[8];
	f.resume.epoch = 0;
	EXPECT_EQ(reparse(&f), -EPROTO);
}

TEST(frame_parse__attach_fields_that_can_never_be_right)
{
	static const u32 rings[] = { 0, 1, 8192, 16385, 3 << 14, 2 * AFR_RING_MAX, 1u << 31 };
	struct afr_frame f;
	unsigned int i;

	for (i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		f = good[3];
		f.attach.ring = rings[i];
		f.attach.span = rings[i];
		EXPECT_EQ(reparse(&f), -EPROTO);
	}
	f = good[3];
	f.attach.span = 0;
	EXPECT_EQ(reparse(&f), -EPROTO);
	f.attach.span = 16383;
	EXPECT_EQ(reparse(&f), -EPROTO);
	f.attach.span = 4 * 16384;
	EXPECT_EQ(reparse(&f), -EPROTO);
	f = good[3];
	f.attach.channel = AFR_CHANNEL_MAX + 1;
	EXPECT_EQ(reparse(&f), -EPROTO);
	f = good[3];
	f.attach.flags = 2;
	EXPECT_EQ(reparse(&f), -EPROTO);
	f = good[3];
	f.attach.reason = 31;
	EXPECT_EQ(reparse(&f), -EPROTO);
	f = good[3];
	f.attach.addr = U64_MAX - 16383;
	EXPECT_EQ(reparse(&f), -EPROTO);
}

TEST(frame_parse__the_ring_of_a_refusal_is_not_checked)
{
	struct afr_frame f = good[5];

	f.attach.ring = 3;
	f.attach.span = 1;
	f.attach.channel = 0xffff;
	EXPECT(reparse(&f) > 0);
	f.attach.flags = 0x8000;
	EXPECT_EQ(reparse(&f), -EPROTO);
}

TEST(frame_parse__a_service_has_a_port)
{
	u8 bytes[AFR_FRAME_HEAD_MAX];
	struct afr_frame f = { .type = AFR_FRAME_SERVICE }, out;
	unsigned int need;
	int len;

	EXPECT_EQ(reparse(&f), -EPROTO);
	f.port = 1;
	EXPECT_EQ(reparse(&f), 12);	/* also without AFR_FRAME_OPTIONAL */
	len = afr_frame_write(bytes, &f);
	bytes[len - 1] = 1;		/* reserved */
	EXPECT_EQ(parse(bytes, len, &out, &need), -EPROTO);
}

TEST(frame_write__is_big_endian)
{
	u8 bytes[AFR_FRAME_HEAD_MAX];

	EXPECT_EQ(afr_frame_write(bytes, &good[0]), 16);
	EXPECT(!memcmp(bytes, "\x01\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x4d",
		       16));
	EXPECT_EQ(afr_frame_write(bytes, &good[8]), 32);
	EXPECT(!memcmp(bytes, "\x07\x00\x00\x00\x00\x00\x00\x18\x00\x00\x00\x03\x00\x00\x00\x32",
		       16));
}

TEST(frame_write__unknown_type_is_a_header)
{
	struct afr_frame f = { .type = 99, .flags = AFR_FRAME_OPTIONAL, .length = 7 }, out;
	u8 bytes[AFR_FRAME_HEAD_MAX];
	unsigned int need;

	EXPECT_EQ(afr_frame_write(bytes, &f), 8);
	EXPECT_EQ(parse(bytes, 8, &out, &need), 8);
	EXPECT(!memcmp(&out, &f, sizeof(f)));
}

/* The numbers are part of the wire format. A new type does not change those before it. */
TEST(frame_name__numbers_never_change)
{
	static const char *const names[] = {
		"unknown", "DATA", "CREDIT", "ATTACH", "ATTACHED", "BLOCKED", "MOVE", "RESUME",
		"FIN", "FINACK", "URGENT", "ERROR", "URGENTACK", "SERVICE",
	};
	unsigned int type;

	for (type = 0; type < sizeof(names) / sizeof(names[0]); type++)
		EXPECT(!strcmp(afr_frame_name(type), names[type]));
}

TEST(frame_name__table)
{
	EXPECT(!strcmp(afr_frame_name(AFR_FRAME_DATA), "DATA"));
	EXPECT(!strcmp(afr_frame_name(AFR_FRAME_ERROR), "ERROR"));
	EXPECT(!strcmp(afr_frame_name(0), "unknown"));
	EXPECT(!strcmp(afr_frame_name(AFR_FRAME_NEXT), "unknown"));
	EXPECT(!strcmp(afr_frame_name(255), "unknown"));
}
