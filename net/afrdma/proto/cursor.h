/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * A 64-bit consumer cursor in the 16 bits that an immediate has for it.
 *
 * The unit is ring / 2^14, at least one byte, so a ring has at most 2^14 units. Of the 2^16 values
 * that an immediate can carry, only those at most 2^14 units ahead of the last cursor can be
 * correct while the epoch is open; every other value is then a protocol violation (PC4).
 */
#ifndef AFR_PROTO_CURSOR_H
#define AFR_PROTO_CURSOR_H

#include "portable.h"

#define AFR_CURSOR_UNITS_SHIFT	14

/* Returns the bytes per cursor unit of a ring of @ring bytes. */
static inline u32 afr_cursor_unit(u32 ring)
{
	return max(1u, ring >> AFR_CURSOR_UNITS_SHIFT);
}

/* Encodes @consumed, a cursor on a ring of @ring bytes, rounded down to a unit (PC5). */
static inline u16 afr_cursor_encode(u64 consumed, u32 ring)
{
	return consumed / afr_cursor_unit(ring);
}

/**
 * afr_cursor_decode() - decode the cursor in an immediate
 * @last: newest cursor that the peer has reported before, in bytes
 * @cursor: 16 bits from the immediate
 * @ring: size of the ring that the cursor refers to
 *
 * The caller checks that the result is not above SND.NXT.
 *
 * Context: any.
 * Return: the cursor in bytes, never below @last rounded down to a unit.
 */
static inline u64 afr_cursor_decode(u64 last, u16 cursor, u32 ring)
{
	u64 units = last / afr_cursor_unit(ring);

	units += (u16)(cursor - (u16)units);
	return units * afr_cursor_unit(ring);
}

#endif /* AFR_PROTO_CURSOR_H */
