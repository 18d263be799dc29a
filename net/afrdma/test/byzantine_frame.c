// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Injections that alter, add or omit frames, HELLO and the private data of rdma_cm. */
#include "../proto/wire.h"
#include "inject.h"

/* Encodes the frame again, with one field falsified. */
static unsigned int field(const struct afr_injection *inj, const struct afr_frame *frame,
			  u8 *out, unsigned int len)
{
	struct afr_frame bent = *frame;
	u64 value = 0;

	/* the tests run on little-endian machines only */
	memcpy(&value, (u8 *)&bent + inj->offset, inj->size);
	value = afr_inject_bend(value);
	memcpy((u8 *)&bent + inj->offset, &value, inj->size);
	return afr_frame_write(out, &bent);
}

/* Falsifies bytes of the encoded frame or HELLO. */
static unsigned int spoil(const struct afr_injection *inj, const struct afr_frame *frame,
			  u8 *out, unsigned int len)
{
	afr_inject_bytes(inj, out, len);
	return len;
}

static unsigned int twice(const struct afr_injection *inj, const struct afr_frame *frame,
			  u8 *out, unsigned int len)
{
	if (frame->type == AFR_FRAME_DATA || 2 * len > sizeof(struct afr_wire_hello))
		return len;
	memcpy(out + len, out, len);
	return 2 * len;
}

/* Omits the frame or HELLO. */
static unsigned int mute(const struct afr_injection *inj, const struct afr_frame *frame, u8 *out,
			 unsigned int len)
{
	return 0;
}

#define FIELD(title, kind, kind2, member, text)						\
	{ .name = title, .what = text, .frame = field, .type = AFR_FRAME_##kind,	\
	  .type2 = AFR_FRAME_##kind2, .offset = offsetof(struct afr_frame, member),	\
	  .size = sizeof_field(struct afr_frame, member) }
#define ANY(title, function, text) \
	{ .name = title, .what = text, .frame = function }
#define MUTE(title, kind, text) \
	{ .name = title, .what = text, .frame = mute, .type = kind }
#define HELLO(title, member, text)							\
	{ .name = title, .what = text, .frame = spoil, .type = AFR_BYZANTINE_HELLO,		\
	  .offset = offsetof(struct afr_wire_hello, member),				\
	  .size = sizeof_field(struct afr_wire_hello, member) }
#define MORE(title, kind, text) \
	{ .name = title, .what = text, .more = true, .type = AFR_FRAME_##kind }
#define CM(title, wire, member, text)							\
	{ .name = title, .what = text, .cm = sizeof(struct wire),			\
	  .offset = offsetof(struct wire, member), .size = sizeof_field(struct wire, member) }

const struct afr_injection afr_byzantine_frame_injections[] = {
	FIELD("credit", CREDIT, CREDIT, offset, "the cursor in CREDIT"),
	FIELD("blocked", BLOCKED, BLOCKED, offset, "the offset in BLOCKED"),
	FIELD("data", DATA, DATA, offset, "the offset in DATA"),
	FIELD("fin", FIN, FIN, offset, "the end in FIN"),
	FIELD("finack", FINACK, FINACK, offset, "the end in FINACK"),
	FIELD("move_epoch", MOVE, MOVE, move.epoch, "the epoch in MOVE"),
	FIELD("move_start", MOVE, MOVE, move.start, "the offset in MOVE"),
	FIELD("resume_epoch", RESUME, RESUME, resume.epoch, "the epoch in RESUME"),
	FIELD("resume_reason", RESUME, RESUME, resume.reason, "the reason in RESUME"),
	FIELD("resume_received", RESUME, RESUME, resume.received, "X in RESUME"),
	FIELD("resume_consumed", RESUME, RESUME, resume.consumed, "the cursor in RESUME"),
	FIELD("attach_epoch", ATTACH, ATTACHED, attach.epoch, "the epoch in ATTACH(ED)"),
	FIELD("attach_reason", ATTACH, ATTACHED, attach.reason, "the reason"),
	FIELD("attach_link", ATTACH, ATTACHED, attach.link, "the link"),
	FIELD("attach_addr", ATTACH, ATTACHED, attach.addr, "the address of our ring"),
	FIELD("attach_rkey", ATTACH, ATTACHED, attach.rkey, "its key"),
	FIELD("attach_ring", ATTACH, ATTACHED, attach.ring, "its size"),
	FIELD("attach_span", ATTACH, ATTACHED, attach.span, "its span"),
	FIELD("attach_channel", ATTACH, ATTACHED, attach.channel, "our channel id"),
	FIELD("attach_flags", ATTACH, ATTACHED, attach.flags, "the flags"),
	FIELD("attach_consumed", ATTACH, ATTACHED, attach.consumed, "our cursor"),
	ANY("frame_bit", spoil, "one bit of any frame"),
	{ .name = "frame_type", .what = "the type of any frame", .frame = spoil, .size = 1 },
	ANY("frame_twice", twice, "each frame twice"),
	MUTE("mute_hello", AFR_BYZANTINE_HELLO, "no HELLO"),
	MUTE("mute_attach", AFR_FRAME_ATTACH, "no ATTACH"),
	MUTE("mute_attached", AFR_FRAME_ATTACHED, "no ATTACHED"),
	MUTE("mute_move", AFR_FRAME_MOVE, "no MOVE"),
	MUTE("mute_resume", AFR_FRAME_RESUME, "no RESUME"),
	MUTE("mute_credit", AFR_FRAME_CREDIT, "no CREDIT"),
	MUTE("mute_blocked", AFR_FRAME_BLOCKED, "no BLOCKED"),
	MUTE("mute_fin", AFR_FRAME_FIN, "no FIN"),
	MUTE("mute_finack", AFR_FRAME_FINACK, "no FINACK"),
	{ .name = "hello_bit", .what = "one bit of HELLO", .frame = spoil,
	  .type = AFR_BYZANTINE_HELLO },
	HELLO("hello_instance", instance, "who we are"),
	HELLO("hello_secret", secret, "the secret the peer shall present"),
	HELLO("hello_port", port, "CM port"),
	HELLO("hello_ring", ring, "the size of our ring"),
	HELLO("hello_features", features, "features, and the size of our send ring"),
	MORE("more_attach", ATTACH, "ATTACH that is not awaited"),
	MORE("more_attached", ATTACHED, "ATTACHED"),
	MORE("more_move", MOVE, "MOVE"),
	MORE("more_resume", RESUME, "RESUME"),
	MORE("more_credit", CREDIT, "CREDIT"),
	MORE("more_blocked", BLOCKED, "BLOCKED"),
	MORE("more_fin", FIN, "FIN"),
	MORE("more_finack", FINACK, "FINACK"),
	MORE("more_urgent", URGENT, "URGENT"),
	MORE("more_urgentack", URGENTACK, "URGENTACK"),
	CM("req_depth", afr_wire_cm_req, depth, "receives, in the connect request"),
	CM("req_secret", afr_wire_cm_req, secret, "the secret in it"),
	CM("req_instance", afr_wire_cm_req, instance, "who asks"),
	CM("req_link", afr_wire_cm_req, link, "the id of the link in it"),
	CM("req_magic", afr_wire_cm_req, magic, "its first bytes"),
	CM("req_version", afr_wire_cm_req, version, "its version"),
	CM("rep_depth", afr_wire_cm_rep, depth, "receives, in the answer"),
	CM("rep_reason", afr_wire_cm_rep, reason, "the reason in it"),
	CM("rep_instance", afr_wire_cm_rep, instance, "who answers"),
	CM("rep_link", afr_wire_cm_rep, link, "the id of the link in it"),
	{ .name = "mute_rep", .what = "no answer", .cm = sizeof(struct afr_wire_cm_rep) },
	{ }
};
