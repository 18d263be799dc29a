/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * The 32-bit immediate of a write: the receiver's channel id in the high half, and the writer's
 * consumer cursor in the low half (cursor.h). For announcements and DETACH see AFR_CHANNEL_* in
 * wire.h.
 */
#ifndef AFR_PROTO_IMM_H
#define AFR_PROTO_IMM_H

#include "portable.h"
#include "wire.h"

static inline u32 afr_imm_pack(u16 id, u16 cursor)
{
	return (u32)id << 16 | cursor;
}

static inline u16 afr_imm_channel(u32 imm)
{
	return imm >> 16;
}

static inline u16 afr_imm_cursor(u32 imm)
{
	return imm & 0xffff;
}

#endif /* AFR_PROTO_IMM_H */
