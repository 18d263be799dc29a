/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Frames. After HELLO, a framed direction of the TCP connection consists of frames only. */
#ifndef AFR_PROTO_FRAME_H
#define AFR_PROTO_FRAME_H

#include "portable.h"
#include "wire.h"

/* Header and fixed body of one frame, in host byte order. */
struct afr_frame {
	u8	type;
	u8	flags;
	u32	length;		/* DATA: stream bytes that follow; unknown type: bytes to skip */
	union {
		u64	offset;	/* DATA, CREDIT, BLOCKED, FIN, FINACK, URGENT, URGENTACK */
		u32	reason;	/* ERROR */
		u16	port;	/* SERVICE */
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

/* Largest size of header and fixed body of a known frame. */
#define AFR_FRAME_HEAD_MAX	(sizeof(struct afr_wire_frame) + sizeof(struct afr_wire_attach))

int afr_frame_parse(const u8 *buf, unsigned int len, struct afr_frame *out,
		    unsigned int *need);
unsigned int afr_frame_write(u8 *to, const struct afr_frame *frame);
const char *afr_frame_name(u8 type);

#endif /* AFR_PROTO_FRAME_H */
