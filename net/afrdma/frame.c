// SPDX-License-Identifier: GPL-2.0
/*
 * The framed stream in bytes. What a frame type is, is said in one table; the
 * parser copies a body out of the buffer once, so that nothing is read twice,
 * and judges the copy.
 */
#include "frame.h"

#define OFFSET_MAX	(1ull << 62)	/* sums of two offsets never overflow */

/* How a body is laid out. */
enum body_kind {
	BODY_OFFSET,
	BODY_DATA,
	BODY_ATTACH,
	BODY_MOVE,
	BODY_RESUME,
	BODY_ERROR,
	BODY_SERVICE,
};

struct frame_fact {
	const char	*name;
	u8		body;	/* fixed bytes behind the header */
	u8		kind;	/* enum body_kind */
};

#define FACT(type, wire, body_kind) \
	[AFR_FRAME_##type] = { #type, sizeof(struct afr_wire_##wire), BODY_##body_kind }

static const struct frame_fact frame_facts[] = {
	FACT(DATA, data, DATA),
	FACT(CREDIT, offset, OFFSET),
	FACT(ATTACH, attach, ATTACH),
	FACT(ATTACHED, attach, ATTACH),
	FACT(BLOCKED, offset, OFFSET),
	FACT(MOVE, move, MOVE),
	FACT(RESUME, resume, RESUME),
	FACT(FIN, offset, OFFSET),
	FACT(FINACK, offset, OFFSET),
	FACT(URGENT, offset, OFFSET),
	FACT(ERROR, error, ERROR),
	FACT(URGENTACK, offset, OFFSET),
	FACT(SERVICE, service, SERVICE),
};

static const struct frame_fact *fact_of(u8 type)
{
	if (type >= sizeof(frame_facts) / sizeof(frame_facts[0]))
		return NULL;
	return frame_facts[type].name ? &frame_facts[type] : NULL;
}

static bool ring_ok(u32 ring)
{
	return ring >= AFR_RING_MIN && ring <= AFR_RING_MAX && !(ring & (ring - 1));
}

/**
 * afr_hello_proof() - what a HELLO carries to prove it is meant for this connection
 * @client_nonce: nonce of the client's TCP option
 * @from_server: who sends the HELLO
 *
 * The server's nonce is a function of the client's, so the one stands for both.
 * Not a secret from someone on the path, who could rewrite all of TCP anyway: it
 * keeps an application's bytes from being taken for a HELLO (rule PA5).
 *
 * Returns: the 64 bits of afr_wire_hello.proof.
 */
u64 afr_hello_proof(u32 client_nonce, bool from_server)
{
	u64 mix = (u64)client_nonce << 1 | from_server;

	/* Steps that can each be undone: different inputs, different proofs. */
	mix = (mix + 0x5a3c96e17b2d48f1ull) * 0xd6e8a7153f94c26bull;
	mix ^= mix >> 31;
	mix *= 0x8cb92f4d7a61e305ull;
	mix ^= mix >> 29;
	return mix;
}

static bool hello_ok(const struct afr_hello *hello, const struct afr_wire_hello *wire)
{
	return hello->length >= sizeof(*wire) && hello->length <= AFR_HELLO_MAX &&
	       be16_to_cpu(wire->version) == AFR_WIRE_VERSION &&
	       ring_ok(hello->ring) && !wire->reserved;
}

/**
 * afr_hello_parse() - judge the first bytes of a direction
 * @buf: what has arrived of it, from the first byte on
 * @len: how many
 * @proof: afr_hello_proof() of the sender of the direction
 * @out: filled on AFR_HELLO_YES only
 *
 * Rules PA1 and PA5: the reader looks, and the first byte that differs settles
 * it. Once all of magic and proof match, the bytes cannot be an application's.
 *
 * Returns: enum afr_hello_verdict.
 */
enum afr_hello_verdict afr_hello_parse(const u8 *buf, unsigned int len, u64 proof,
				       struct afr_hello *out)
{
	const unsigned int settled = offsetof(struct afr_wire_hello, length);
	struct afr_wire_hello wire = { .proof = cpu_to_be64(proof) };
	struct afr_hello hello = { 0 };

	memcpy(wire.magic, AFR_HELLO_MAGIC, AFR_HELLO_MAGIC_LEN);
	if (memcmp(buf, &wire, min(len, settled)))
		return AFR_HELLO_NO;
	if (len < sizeof(wire))
		return AFR_HELLO_MORE;

	memcpy(&wire, buf, sizeof(wire));
	hello.proof = proof;
	hello.length = be16_to_cpu(wire.length);
	hello.features = be32_to_cpu(wire.features);
	hello.ring = be32_to_cpu(wire.ring);
	hello.port = be16_to_cpu(wire.port);
	memcpy(hello.instance, wire.instance, sizeof(hello.instance));
	memcpy(hello.secret, wire.secret, sizeof(hello.secret));
	if (!hello_ok(&hello, &wire))
		return AFR_HELLO_BAD;
	*out = hello;
	return AFR_HELLO_YES;
}

/**
 * afr_hello_write() - write the fixed part of a HELLO
 * @to: where
 * @hello: what; its length counts a tail the caller may add
 */
void afr_hello_write(struct afr_wire_hello *to, const struct afr_hello *hello)
{
	memcpy(to->magic, AFR_HELLO_MAGIC, AFR_HELLO_MAGIC_LEN);
	to->proof = cpu_to_be64(hello->proof);
	to->length = cpu_to_be16(hello->length);
	to->version = cpu_to_be16(AFR_WIRE_VERSION);
	to->features = cpu_to_be32(hello->features);
	memcpy(to->instance, hello->instance, sizeof(to->instance));
	memcpy(to->secret, hello->secret, sizeof(to->secret));
	to->ring = cpu_to_be32(hello->ring);
	to->port = cpu_to_be16(hello->port);
	to->reserved = 0;
}

static bool get_offset(const u8 *body, struct afr_frame *out)
{
	struct afr_wire_offset wire;

	memcpy(&wire, body, sizeof(wire));
	out->offset = be64_to_cpu(wire.offset);
	return out->offset <= OFFSET_MAX;
}

static bool attach_ok(const struct afr_frame *f)
{
	if (!f->attach.epoch || f->attach.consumed > OFFSET_MAX)
		return false;
	if (f->attach.flags & ~AFR_ATTACH_ACTIVE)
		return false;
	/* A refusal has no ring to describe. */
	if (f->attach.reason)
		return f->type == AFR_FRAME_ATTACHED;

	return ring_ok(f->attach.ring) && f->attach.slot <= AFR_SLOT_MAX &&
	       (f->attach.span == f->attach.ring ||
		f->attach.span == 2 * f->attach.ring) &&
	       f->attach.addr <= U64_MAX - f->attach.span;
}

static bool get_attach(const u8 *body, struct afr_frame *out)
{
	struct afr_wire_attach wire;

	memcpy(&wire, body, sizeof(wire));
	out->attach.epoch = be32_to_cpu(wire.epoch);
	out->attach.reason = be32_to_cpu(wire.reason);
	out->attach.link = be64_to_cpu(wire.link);
	out->attach.addr = be64_to_cpu(wire.addr);
	out->attach.rkey = be32_to_cpu(wire.rkey);
	out->attach.ring = be32_to_cpu(wire.ring);
	out->attach.span = be32_to_cpu(wire.span);
	out->attach.slot = be16_to_cpu(wire.slot);
	out->attach.flags = be16_to_cpu(wire.flags);
	out->attach.consumed = be64_to_cpu(wire.consumed);
	return attach_ok(out);
}

static bool get_move(const u8 *body, struct afr_frame *out)
{
	struct afr_wire_move wire;

	memcpy(&wire, body, sizeof(wire));
	out->move.epoch = be32_to_cpu(wire.epoch);
	out->move.start = be64_to_cpu(wire.start);
	return out->move.epoch && !wire.reserved && out->move.start <= OFFSET_MAX;
}

static bool get_resume(const u8 *body, struct afr_frame *out)
{
	struct afr_wire_resume wire;

	memcpy(&wire, body, sizeof(wire));
	out->resume.epoch = be32_to_cpu(wire.epoch);
	out->resume.reason = be32_to_cpu(wire.reason);
	out->resume.received = be64_to_cpu(wire.received);
	out->resume.consumed = be64_to_cpu(wire.consumed);
	return out->resume.epoch && out->resume.received <= OFFSET_MAX &&
	       out->resume.consumed <= OFFSET_MAX;
}

static bool get_error(const u8 *body, struct afr_frame *out)
{
	struct afr_wire_error wire;

	memcpy(&wire, body, sizeof(wire));
	out->reason = be32_to_cpu(wire.reason);
	return true;
}

static bool get_service(const u8 *body, struct afr_frame *out)
{
	struct afr_wire_service wire;

	memcpy(&wire, body, sizeof(wire));
	out->port = be16_to_cpu(wire.port);
	return out->port && !wire.reserved;
}

static bool get_body(const u8 *body, u8 kind, struct afr_frame *out)
{
	switch (kind) {
	case BODY_OFFSET:
	case BODY_DATA:
		return get_offset(body, out);
	case BODY_ATTACH:
		return get_attach(body, out);
	case BODY_MOVE:
		return get_move(body, out);
	case BODY_RESUME:
		return get_resume(body, out);
	case BODY_ERROR:
		return get_error(body, out);
	case BODY_SERVICE:
		return get_service(body, out);
	}
	return false;
}

/* DATA carries at least one byte of the stream, the others exactly their body. */
static bool length_ok(const struct frame_fact *fact, u32 length)
{
	if (fact->kind == BODY_DATA)
		return length > fact->body;
	return length == fact->body;
}

/**
 * afr_frame_parse() - parse header and fixed body of one frame
 * @buf: the stream from the start of a frame
 * @len: bytes that have arrived of it
 * @out: filled when a positive number is returned, undefined otherwise
 * @need: told, when 0 is returned, how many bytes must be there before it is
 *	worth calling again; always more than @len
 *
 * Returns: bytes taken by header and fixed body (the bytes of DATA, and the body
 * of an unknown optional frame, follow: @out->length of them); 0 when more bytes
 * are needed; -EPROTO for what can never be right.
 */
int afr_frame_parse(const u8 *buf, unsigned int len, struct afr_frame *out,
		    unsigned int *need)
{
	const struct frame_fact *fact;
	struct afr_wire_frame head;

	if (len < sizeof(head)) {
		*need = sizeof(head);
		return 0;
	}
	memcpy(&head, buf, sizeof(head));
	memset(out, 0, sizeof(*out));
	out->type = head.type;
	out->flags = head.flags;
	out->length = be32_to_cpu(head.length);
	if (head.reserved || (head.flags & ~AFR_FRAME_OPTIONAL) ||
	    out->length > AFR_FRAME_BODY_MAX)
		return -EPROTO;

	fact = fact_of(head.type);
	if (!fact)
		return head.flags & AFR_FRAME_OPTIONAL ? (int)sizeof(head) : -EPROTO;
	if (!length_ok(fact, out->length))
		return -EPROTO;
	if (len < sizeof(head) + fact->body) {
		*need = sizeof(head) + fact->body;
		return 0;
	}
	if (!get_body(buf + sizeof(head), fact->kind, out))
		return -EPROTO;
	out->length -= fact->body;
	return sizeof(head) + fact->body;
}

static void put_offset(u8 *body, const struct afr_frame *f)
{
	struct afr_wire_offset wire = { .offset = cpu_to_be64(f->offset) };

	memcpy(body, &wire, sizeof(wire));
}

static void put_attach(u8 *body, const struct afr_frame *f)
{
	struct afr_wire_attach wire = {
		.epoch = cpu_to_be32(f->attach.epoch),
		.reason = cpu_to_be32(f->attach.reason),
		.link = cpu_to_be64(f->attach.link),
		.addr = cpu_to_be64(f->attach.addr),
		.rkey = cpu_to_be32(f->attach.rkey),
		.ring = cpu_to_be32(f->attach.ring),
		.slot = cpu_to_be16(f->attach.slot),
		.flags = cpu_to_be16(f->attach.flags),
		.span = cpu_to_be32(f->attach.span),
		.consumed = cpu_to_be64(f->attach.consumed),
	};

	memcpy(body, &wire, sizeof(wire));
}

static void put_move(u8 *body, const struct afr_frame *f)
{
	struct afr_wire_move wire = {
		.epoch = cpu_to_be32(f->move.epoch),
		.start = cpu_to_be64(f->move.start),
	};

	memcpy(body, &wire, sizeof(wire));
}

static void put_resume(u8 *body, const struct afr_frame *f)
{
	struct afr_wire_resume wire = {
		.epoch = cpu_to_be32(f->resume.epoch),
		.reason = cpu_to_be32(f->resume.reason),
		.received = cpu_to_be64(f->resume.received),
		.consumed = cpu_to_be64(f->resume.consumed),
	};

	memcpy(body, &wire, sizeof(wire));
}

static void put_error(u8 *body, const struct afr_frame *f)
{
	struct afr_wire_error wire = { .reason = cpu_to_be32(f->reason) };

	memcpy(body, &wire, sizeof(wire));
}

static void put_service(u8 *body, const struct afr_frame *f)
{
	struct afr_wire_service wire = { .port = cpu_to_be16(f->port) };

	memcpy(body, &wire, sizeof(wire));
}

static void put_body(u8 *body, u8 kind, const struct afr_frame *f)
{
	switch (kind) {
	case BODY_OFFSET:
	case BODY_DATA:
		put_offset(body, f);
		break;
	case BODY_ATTACH:
		put_attach(body, f);
		break;
	case BODY_MOVE:
		put_move(body, f);
		break;
	case BODY_RESUME:
		put_resume(body, f);
		break;
	case BODY_ERROR:
		put_error(body, f);
		break;
	case BODY_SERVICE:
		put_service(body, f);
		break;
	}
}

/**
 * afr_frame_write() - write header and fixed body of one frame
 * @to: AFR_FRAME_HEAD_MAX bytes, of any alignment
 * @frame: what; length counts only for DATA (the bytes the caller adds) and for
 *	types that are not in the table (the body the caller adds)
 *
 * Returns: bytes written.
 */
unsigned int afr_frame_write(u8 *to, const struct afr_frame *frame)
{
	const struct frame_fact *fact = fact_of(frame->type);
	struct afr_wire_frame head = {
		.type = frame->type,
		.flags = frame->flags,
	};
	u32 length = frame->length;

	if (fact)
		length = fact->body + (fact->kind == BODY_DATA ? length : 0);
	head.length = cpu_to_be32(length);
	memcpy(to, &head, sizeof(head));
	if (!fact)
		return sizeof(head);
	put_body(to + sizeof(head), fact->kind, frame);
	return sizeof(head) + fact->body;
}

/**
 * afr_frame_name() - name of a frame type
 * @type: from the wire
 *
 * Returns: "DATA", "CREDIT" and so on; "unknown" for what is not in the table.
 */
const char *afr_frame_name(u8 type)
{
	const struct frame_fact *fact = fact_of(type);

	return fact ? fact->name : "unknown";
}
