/* SPDX-License-Identifier: GPL-2.0 */
/* The immediate of a write: who it is for, and how far our reader has come. */
#ifndef AFR_IMM_H
#define AFR_IMM_H

#include "pure.h"
#include "wire.h"

static inline u32 afr_imm_pack(u16 slot, u16 cursor)
{
	return (u32)slot << 16 | cursor;
}

static inline u16 afr_imm_slot(u32 imm)
{
	return imm >> 16;
}

static inline u16 afr_imm_cursor(u32 imm)
{
	return imm & 0xffff;
}

#endif /* AFR_IMM_H */
