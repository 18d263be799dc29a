/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Frames. After HELLO, a framed direction of the TCP connection consists of frames only. A frame is
 * a header, the fixed body of its type, and with DATA the bytes of the stream. This file has the
 * types, the layouts on the wire (big-endian, see wire.h), and a frame in host byte order.
 *
 * AFR_FRAME(number, NAME, layout, "meaning"): a type, whose fixed body is struct afr_wire_<layout>.
 * Numbers are part of the wire format: append, never renumber.
 */
#define AFR_FRAMES \
	AFR_FRAME(1, DATA, offset, "bytes of the stream") \
	AFR_FRAME(2, CREDIT, offset, "the end that sends it has consumed up to this offset") \
	AFR_FRAME(3, ATTACH, attach, "client: offers its receive ring on a link") \
	AFR_FRAME(4, ATTACHED, attach, "server: offers its receive ring, or refuses ATTACH") \
	AFR_FRAME(5, BLOCKED, offset, "the sender lacks window, or space in its send ring") \
	AFR_FRAME(6, MOVE, move, "from this offset on, the direction uses the link") \
	AFR_FRAME(7, RESUME, resume, "an end has left the link and reports what it received") \
	AFR_FRAME(8, FIN, offset, "the stream ends here") \
	AFR_FRAME(9, FINACK, offset, "the whole stream was received") \
	AFR_FRAME(10, URGENT, offset, "urgent byte at this offset") \
	AFR_FRAME(11, ERROR, error, "an end aborts the connection, for this reason") \
	AFR_FRAME(12, URGENTACK, offset, "acknowledges URGENT at this offset") \
	AFR_FRAME(13, SERVICE, service, "server: port of its cm listener (AFR_FRAME_OPTIONAL)")

#ifndef AFR_PROTO_FRAME_H
#define AFR_PROTO_FRAME_H

#include "portable.h"
#include "wire.h"

enum afr_frame_type {
#define AFR_FRAME(number, name, layout, meaning) AFR_FRAME_##name = number,
	AFR_FRAMES
#undef AFR_FRAME
	AFR_FRAME_NEXT		/* the first number that is not in use */
};

#define AFR_FRAME(number, name, layout, meaning) + 1
static_assert(0 AFR_FRAMES == AFR_FRAME_NEXT - 1, "as many frame types as the last number");
#undef AFR_FRAME

#define AFR_FRAME_OPTIONAL	0x01	/* flags: skip the frame if its type is unknown */
#define AFR_FRAME_BODY_MAX	(64 * 1024 + 8)	/* body of any frame */

struct afr_wire_frame {
	u8	type;		/* enum afr_frame_type */
	u8	flags;		/* AFR_FRAME_* */
	__be16	reserved;	/* 0 */
	__be32	length;		/* of the body that follows */
} __packed;
static_assert(sizeof(struct afr_wire_frame) == 8, "frame header size");

struct afr_wire_offset {
	__be64	offset;
} __packed;
static_assert(sizeof(struct afr_wire_offset) == 8, "offset size");

#define AFR_ATTACH_ACTIVE	0x1	/* flags: the sender is the end that connected the link */

/* In a refusal, only epoch, link and reason have a meaning. */
struct afr_wire_attach {
	__be32	epoch;		/* counts attaches of this connection, from 1 */
	__be32	reason;		/* ATTACHED: reason of a refusal, 0 = attached; ATTACH: 0 */
	__be64	link;		/* link id, chosen by the end that connected the link */
	__be64	addr;		/* address of the sender's receive ring for RDMA writes */
	__be32	rkey;		/* key of this ring for RDMA writes */
	__be32	ring;		/* size of this ring, as in HELLO */
	__be16	channel;	/* channel id for the immediates of writes to this ring */
	__be16	flags;		/* AFR_ATTACH_* */
	__be32	span;		/* bytes writable at addr: ring, or 2 * ring if mirrored */
	__be64	consumed;	/* consumer cursor; cursors in immediates continue from it */
} __packed;
static_assert(sizeof(struct afr_wire_attach) == 48, "ATTACH size");

struct afr_wire_move {
	__be32	epoch;
	__be32	reserved;
	__be64	start;		/* S: first offset that is carried by the link */
} __packed;
static_assert(sizeof(struct afr_wire_move) == 16, "MOVE size");

struct afr_wire_resume {
	__be32	epoch;
	__be32	reason;		/* why the sender left the link */
	__be64	received;	/* RCV.NXT: contiguous bytes received, consumed ones included */
	__be64	consumed;	/* consumer cursor */
} __packed;
static_assert(sizeof(struct afr_wire_resume) == 24, "RESUME size");

struct afr_wire_error {
	__be32	reason;
} __packed;
static_assert(sizeof(struct afr_wire_error) == 4, "ERROR size");

struct afr_wire_service {
	__be16	port;		/* rdma_cm service port of the server's cm listener, never 0 */
	__be16	reserved;
} __packed;
static_assert(sizeof(struct afr_wire_service) == 4, "SERVICE size");

/* The fixed body of any type. */
union afr_wire_body {
#define AFR_FRAME(number, name, layout, meaning) struct afr_wire_##layout name;
	AFR_FRAMES
#undef AFR_FRAME
};

/* Largest size of header and fixed body of a known frame. */
#define AFR_FRAME_HEAD_MAX	(sizeof(struct afr_wire_frame) + sizeof(union afr_wire_body))

/* Header and fixed body of one frame, in host byte order. */
struct afr_frame {
	u8	type;
	u8	flags;
	u32	length;		/* DATA: stream bytes that follow; unknown type: bytes to skip */
	union {			/* by layout */
		u64	offset;
		u32	reason;	/* error */
		u16	port;	/* service */
		struct {
			u32	epoch, reason;
			u64	link, addr;
			u32	rkey, ring, span;
			u16	channel, flags;
			u64	consumed;
		} attach;
		struct {
			u32	epoch;
			u64	start;
		} move;
		struct {
			u32	epoch, reason;
			u64	received, consumed;
		} resume;
	};
};

int afr_frame_parse(const u8 *buf, unsigned int len, struct afr_frame *out,
		    unsigned int *need);
unsigned int afr_frame_write(u8 *to, const struct afr_frame *frame);
const char *afr_frame_name(u8 type);

#endif /* AFR_PROTO_FRAME_H */
