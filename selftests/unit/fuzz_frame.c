// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Fuzzer of a framed stream: HELLO, then frames. Each stream is read twice, in pieces of random
 * sizes; the result must not depend on the sizes. They are computed from the first byte of the
 * input. As in the module, the parser of frames tells how many bytes of a frame to read.
 */
#include "fuzz.h"
#include "../../net/afrdma/proto/frame.h"
#include "../../net/afrdma/proto/hello.h"

#define PROOF	afr_hello_proof(0x5eed, false)

struct reader {
	u8		head[sizeof(struct afr_wire_hello)];
	unsigned int	head_len, need;
	u32		skip;		/* bytes to skip: HELLO tail, DATA or unknown body */
	bool		framed, ended;
	struct edge	edge;
	u64		digest;		/* of the values that were parsed */
};

static void digest(struct reader *r, u64 value)
{
	r->digest = (r->digest ^ value) * 0x9b60f2c1a7d3e585ull;
	r->digest ^= r->digest >> 29;
}

/* Writing a parsed frame must produce the same bytes. */
static void check_frame(const u8 *head, int used, const struct afr_frame *f)
{
	u8 again[AFR_FRAME_HEAD_MAX];

	MUST(f->length <= AFR_FRAME_BODY_MAX);
	MUST(afr_frame_write(again, f) == (unsigned int)used);
	MUST(!memcmp(again, head, used));
	MUST(afr_frame_name(f->type));
}

/*
 * Parses header and fixed body of a frame from the bytes in r->head. Sets r->need to the number of
 * bytes that r->head must contain at the next call.
 */
static void take_frame(struct reader *r)
{
	struct afr_frame f;
	unsigned int need = 0;
	const u8 *head = edge_put(&r->edge, r->head, r->head_len);
	int used = afr_frame_parse(head, r->head_len, &f, &need);

	if (used == 0) {
		MUST(need > r->head_len && need <= AFR_FRAME_HEAD_MAX);
		r->need = need;
	} else if (used < 0) {
		MUST(used == -EPROTO);
		r->ended = true;
		digest(r, 0xbad);
	} else {
		MUST((unsigned int)used == r->head_len);
		check_frame(head, used, &f);
		digest(r, f.type);
		digest(r, f.offset);
		r->skip = f.length;
		r->head_len = 0;
		r->need = sizeof(struct afr_wire_frame);
	}
}

/* Parses HELLO from the bytes in r->head. */
static void take_hello(struct reader *r)
{
	struct afr_hello hello;
	const u8 *head = edge_put(&r->edge, r->head, r->head_len);

	switch (afr_hello_parse(head, r->head_len, PROOF, &hello)) {
	case AFR_HELLO_MORE:
		MUST(r->head_len < sizeof(struct afr_wire_hello));
		break;
	case AFR_HELLO_YES:
		r->framed = true;
		r->skip = hello.length - sizeof(struct afr_wire_hello);
		r->head_len = 0;
		r->need = sizeof(struct afr_wire_frame);
		digest(r, hello.ring);
		break;
	default:
		r->ended = true;
		digest(r, 0x9043);
	}
}

/* Reads at most @len bytes of the stream; returns how many were read. */
static size_t take(struct reader *r, const u8 *bytes, size_t len)
{
	size_t n;

	if (r->skip) {
		n = min(len, (size_t)r->skip);
		r->skip -= n;
		return n;
	}
	/* HELLO is read byte by byte, a frame up to the length that its parser needs. */
	n = r->framed ? min(len, (size_t)(r->need - r->head_len)) : 1;
	memcpy(r->head + r->head_len, bytes, n);
	r->head_len += n;
	if (!r->framed)
		take_hello(r);
	else if (r->head_len == r->need)
		take_frame(r);
	return n;
}

/* Reads a stream in pieces of random sizes; returns the digest of the parsed values. */
static u64 read_stream(const u8 *stream, size_t size, u32 seed)
{
	struct reader r = {
		.need = sizeof(struct afr_wire_frame),
		.edge = edge_of(sizeof(struct afr_wire_hello)),
	};
	size_t at = 0;

	while (at < size && !r.ended) {
		size_t piece, got;

		seed = seed * 1664525 + 1013904223;
		piece = seed ? 1 + (seed >> 24) % 40 : size;
		for (piece = min(piece, size - at); piece && !r.ended; piece -= got, at += got)
			got = take(&r, stream + at, piece);
	}
	digest(&r, r.head_len + r.skip);
	free(r.edge.block);
	return r.digest;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct afr_hello good = { .proof = PROOF, .ring = AFR_RING_MIN, .length = 64 };
	u8 stream[sizeof(struct afr_wire_hello) + 512];
	struct afr_wire_hello wire;
	size_t len = 0;
	u64 first;

	if (!size || size > 512)
		return -1;
	/* If the first byte is even, a valid HELLO precedes the other bytes of the input. */
	if (!(data[0] & 1)) {
		afr_hello_write(&wire, &good);
		memcpy(stream, &wire, sizeof(wire));
		len = sizeof(wire);
	}
	memcpy(stream + len, data + 1, size - 1);
	len += size - 1;

	first = read_stream(stream, len, data[0]);
	MUST(first == read_stream(stream, len, ~(u32)data[0]));
	return 0;
}
