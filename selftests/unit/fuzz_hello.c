// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Fuzzer of the first bytes of a direction, parsed at every length. If the first byte of the input
 * is odd, the other bytes are combined with a valid HELLO by exclusive or, since a fuzzer cannot
 * guess magic and proof.
 */
#include "fuzz.h"
#include "../../net/afrdma/proto/hello.h"

#define PROOF	afr_hello_proof(0x5eed, false)

/* Writing a parsed HELLO must produce the same bytes. */
static void check_yes(const u8 *bytes, const struct afr_hello *hello)
{
	struct afr_wire_hello wire;

	MUST(hello->length >= sizeof(wire) && hello->length <= AFR_HELLO_MAX);
	MUST(hello->ring >= AFR_RING_MIN && hello->ring <= AFR_RING_MAX);
	MUST(!(hello->ring & (hello->ring - 1)));
	afr_hello_write(&wire, hello);
	MUST(!memcmp(&wire, bytes, sizeof(wire)));
}

/* Parses the first 0, 1, 2 ... bytes: a verdict other than AFR_HELLO_MORE must not change. */
static void check_all_lengths(const u8 *bytes, size_t size)
{
	enum afr_hello_verdict last = AFR_HELLO_MORE, verdict;
	size_t settled = offsetof(struct afr_wire_hello, length);
	struct edge edge = edge_of(size);
	struct afr_hello hello;
	size_t len;

	for (len = 0; len <= size; len++) {
		verdict = afr_hello_parse(edge_put(&edge, bytes, len), len, PROOF, &hello);
		MUST(last == AFR_HELLO_MORE || verdict == last);
		if (last == AFR_HELLO_MORE && verdict == AFR_HELLO_NO)
			MUST(len && len <= settled);
		if (last == AFR_HELLO_MORE &&
		    (verdict == AFR_HELLO_YES || verdict == AFR_HELLO_BAD))
			MUST(len == sizeof(struct afr_wire_hello));
		if (verdict == AFR_HELLO_YES)
			check_yes(bytes, &hello);
		last = verdict;
	}
	MUST(size < sizeof(struct afr_wire_hello) || last != AFR_HELLO_MORE);
	free(edge.block);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct afr_hello good = { .proof = PROOF, .ring = AFR_RING_MIN, .length = 64 };
	u8 bytes[sizeof(struct afr_wire_hello) + 8] = { 0 };
	struct afr_wire_hello wire;
	size_t i;

	if (!size || size > sizeof(bytes))
		return -1;
	if (data[0] & 1) {
		afr_hello_write(&wire, &good);
		memcpy(bytes, &wire, sizeof(wire));
	}
	for (i = 1; i < size; i++)
		bytes[i - 1] ^= data[i];
	check_all_lengths(bytes, data[0] & 1 ? sizeof(bytes) : size - 1);
	return 0;
}
