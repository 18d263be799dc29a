// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
#include "../../net/afrdma/proto/hello.h"
#include "tap.h"

#define PROOF	0x1122334455667788ull

static const struct afr_hello hello = {
	.proof = PROOF, .features = 5, .ring = 65536, .length = 64, .port = 4791,
	.instance = "instance 0123456", .secret = "secret 012345678",
};

/* Parses exactly @len bytes on the heap, so that ASan detects reads beyond them. */
static enum afr_hello_verdict judge(const void *bytes, unsigned int len, struct afr_hello *out)
{
	u8 *copy = malloc(len + !len);
	enum afr_hello_verdict got;

	memcpy(copy, bytes, len);
	got = afr_hello_parse(copy + !len, len, PROOF, out);
	free(copy);
	return got;
}

TEST(hello_proof__depends_on_nonce_and_role)
{
	u32 nonce;

	EXPECT(afr_hello_proof(0, false) != afr_hello_proof(0, true));
	for (nonce = 0; nonce < 100000; nonce++) {
		u64 proof = afr_hello_proof(nonce, false);

		EXPECT(proof != afr_hello_proof(nonce, true));
		EXPECT(proof != afr_hello_proof(nonce + 1, false));
		EXPECT(proof != afr_hello_proof(nonce + 1, true));
		EXPECT(proof >> 32 && (u32)proof);
	}
}

TEST(hello_parse__whole)
{
	struct afr_wire_hello wire;
	struct afr_hello out;
	u8 more[100] = { 0 };

	afr_hello_write(&wire, &hello);
	EXPECT_EQ(judge(&wire, sizeof(wire), &out), AFR_HELLO_YES);
	EXPECT(!memcmp(&out, &hello, sizeof(out)));
	memcpy(more, &wire, sizeof(wire));
	EXPECT_EQ(judge(more, sizeof(more), &out), AFR_HELLO_YES);
}

TEST(hello_parse__every_prefix_waits)
{
	struct afr_wire_hello wire;
	struct afr_hello out;
	unsigned int len;

	afr_hello_write(&wire, &hello);
	for (len = 0; len < sizeof(wire); len++)
		EXPECT_EQ(judge(&wire, len, &out), AFR_HELLO_MORE);
}

TEST(hello_parse__first_differing_byte_of_magic_or_proof_decides)
{
	struct afr_wire_hello wire;
	struct afr_hello out;
	unsigned int at, len;

	for (at = 0; at < 16; at++) {
		afr_hello_write(&wire, &hello);
		((u8 *)&wire)[at] ^= 0x20;
		for (len = 0; len <= at; len++)
			EXPECT_EQ(judge(&wire, len, &out), AFR_HELLO_MORE);
		for (; len <= sizeof(wire); len++)
			EXPECT_EQ(judge(&wire, len, &out), AFR_HELLO_NO);
	}
	EXPECT_EQ(judge("GET / HTTP/1.1", 14, &out), AFR_HELLO_NO);
	EXPECT_EQ(judge("\x16\x03\x01", 3, &out), AFR_HELLO_NO);
}

TEST(hello_parse__right_proof_and_wrong_rest)
{
	struct afr_hello bad = hello, out = { .port = 1 };
	static const u32 rings[] = { 0, AFR_RING_MIN - 1, AFR_RING_MIN / 2, AFR_RING_MIN + 1,
				     3 * AFR_RING_MIN, 2 * AFR_RING_MAX, U32_MAX };
	struct afr_wire_hello wire;
	unsigned int i;

	for (i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		bad.ring = rings[i];
		afr_hello_write(&wire, &bad);
		EXPECT_EQ(judge(&wire, sizeof(wire), &out), AFR_HELLO_BAD);
	}
	afr_hello_write(&wire, &hello);
	wire.version = cpu_to_be16(2);
	EXPECT_EQ(judge(&wire, sizeof(wire), &out), AFR_HELLO_BAD);
	afr_hello_write(&wire, &hello);
	wire.reserved = cpu_to_be16(1);
	EXPECT_EQ(judge(&wire, sizeof(wire), &out), AFR_HELLO_BAD);
	EXPECT_EQ(out.port, 1);
}

TEST(hello_parse__lengths)
{
	static const struct { u16 length; enum afr_hello_verdict want; } rows[] = {
		{ 0, AFR_HELLO_BAD }, { 63, AFR_HELLO_BAD }, { 64, AFR_HELLO_YES },
		{ 65, AFR_HELLO_YES }, { AFR_HELLO_MAX, AFR_HELLO_YES },
		{ AFR_HELLO_MAX + 1, AFR_HELLO_BAD }, { 0xffff, AFR_HELLO_BAD },
	};
	struct afr_hello in = hello, out;
	struct afr_wire_hello wire;
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		in.length = rows[i].length;
		afr_hello_write(&wire, &in);
		EXPECT_EQ(judge(&wire, sizeof(wire), &out), rows[i].want);
		if (rows[i].want == AFR_HELLO_YES)
			EXPECT_EQ(out.length, in.length);
	}
}

TEST(hello_write__is_big_endian)
{
	struct afr_wire_hello wire;

	afr_hello_write(&wire, &hello);
	EXPECT(!memcmp(&wire, "\xf7" "AFRDMA\x01" "\x11\x22\x33\x44\x55\x66\x77\x88"
		       "\x00\x40\x00\x01\x00\x00\x00\x05", 24));
}
