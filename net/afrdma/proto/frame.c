// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Parses and writes frames, driven by a table of the frame types. Each call of the parser copies
 * header and fixed body out of the buffer once and checks the copies, so it reads no byte twice.
 */
#include "frame.h"
#include "ring.h"

#define OFFSET_MAX	(1ull << 62)	/* the sum of two offsets never overflows */

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
	/* a frame with a reason is a refusal: it has no ring to check, and must be ATTACHED */
	if (f->attach.reason)
		return f->type == AFR_FRAME_ATTACHED;

	return afr_ring_is_valid(f->attach.ring) && f->attach.channel <= AFR_CHANNEL_MAX &&
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
	out->attach.channel = be16_to_cpu(wire.channel);
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
		.channel = cpu_to_be16(f->attach.channel),
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

static const struct frame_type_info {
	const char	*name;
	u8		body;	/* bytes of the fixed body */
	/* Reads the fixed body. Returns false if a field can never be valid. */
	bool		(*get)(const u8 *body, struct afr_frame *out);
	void		(*put)(u8 *body, const struct afr_frame *f);
} frame_types[AFR_FRAME_NEXT] = {
#define AFR_FRAME(number, name, layout, meaning) \
	[number] = { #name, sizeof(struct afr_wire_##layout), get_##layout, put_##layout },
	AFR_FRAMES
#undef AFR_FRAME
};

static const struct frame_type_info *type_info(u8 type)
{
	if (!type || type >= AFR_FRAME_NEXT)
		return NULL;
	return &frame_types[array_index_nospec(type, AFR_FRAME_NEXT)];
}

/* DATA has at least one byte of the stream behind its fixed body; other frames have none. */
static bool length_ok(const struct frame_type_info *fact, u8 type, u32 length)
{
	return type == AFR_FRAME_DATA ? length > fact->body : length == fact->body;
}

/**
 * afr_frame_parse() - parse header and fixed body of one frame
 * @buf: bytes of the TCP stream from the beginning of the frame on
 * @len: bytes in @buf
 * @out: filled if the result is positive, undefined otherwise
 * @need: set if the result is 0: number of bytes, more than @len, that @buf must have for the next
 *	call
 *
 * Refused are: a length that does not fit the type, or is above AFR_FRAME_BODY_MAX; a reserved
 * field that is not 0; an unknown flag; an unknown type without AFR_FRAME_OPTIONAL; DATA without
 * bytes; and fields that can never be valid, such as offsets above 2^62, epoch 0, a ring size that
 * is no power of two or out of bounds, a span that is neither ring nor 2 * ring, or a channel id
 * above AFR_CHANNEL_MAX. An ATTACHED with a reason describes no ring: its ring size, span and
 * channel id are not checked.
 *
 * Context: any.
 * Return: size of header and fixed body, behind which @out->length more bytes follow: those of
 * DATA, or the body of an unknown optional frame; 0 if more bytes are needed; -EPROTO if the frame
 * is refused.
 */
int afr_frame_parse(const u8 *buf, unsigned int len, struct afr_frame *out,
		    unsigned int *need)
{
	const struct frame_type_info *fact;
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

	fact = type_info(head.type);
	if (!fact)
		return head.flags & AFR_FRAME_OPTIONAL ? (int)sizeof(head) : -EPROTO;
	if (!length_ok(fact, head.type, out->length))
		return -EPROTO;
	if (len < sizeof(head) + fact->body) {
		*need = sizeof(head) + fact->body;
		return 0;
	}
	if (!fact->get(buf + sizeof(head), out))
		return -EPROTO;
	out->length -= fact->body;
	return sizeof(head) + fact->body;
}

/**
 * afr_frame_write() - write header and fixed body of one frame
 * @to: AFR_FRAME_HEAD_MAX bytes, of any alignment
 * @frame: contents; length is used only for DATA and for unknown types: the bytes of the stream,
 *	or of the body, that the caller appends
 *
 * Context: any.
 * Return: bytes written.
 */
unsigned int afr_frame_write(u8 *to, const struct afr_frame *frame)
{
	const struct frame_type_info *fact = type_info(frame->type);
	struct afr_wire_frame head = {
		.type = frame->type,
		.flags = frame->flags,
	};
	u32 length = frame->length;

	if (fact)
		length = fact->body + (frame->type == AFR_FRAME_DATA ? length : 0);
	head.length = cpu_to_be32(length);
	memcpy(to, &head, sizeof(head));
	if (!fact)
		return sizeof(head);
	fact->put(to + sizeof(head), frame);
	return sizeof(head) + fact->body;
}

/**
 * afr_frame_name() - get the name of a frame type
 * @type: number, possibly from the peer
 *
 * Context: any.
 * Return: "DATA", "CREDIT" and so on; "unknown" for an unknown type.
 */
const char *afr_frame_name(u8 type)
{
	const struct frame_type_info *fact = type_info(type);

	return fact ? fact->name : "unknown";
}
