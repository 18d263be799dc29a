/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A 64-bit cursor told in 16 bits.
 *
 * The unit is ring / 2^14, at least one byte, so a ring never has more than
 * 2^14 units: of the 2^16 values an immediate can carry, at most a quarter can
 * be an honest advance, the rest is certainly a violation (rule PC4).
 */
#ifndef AFR_CURSOR_H
#define AFR_CURSOR_H

#include "pure.h"

#define AFR_CURSOR_UNITS_SHIFT	14

/** afr_cursor_unit() - bytes per cursor unit of a ring of @ring bytes */
static inline u32 afr_cursor_unit(u32 ring)
{
	return max(1u, ring >> AFR_CURSOR_UNITS_SHIFT);
}

/** afr_cursor_encode() - the 16 bits that tell @consumed, rounded down */
static inline u16 afr_cursor_encode(u64 consumed, u32 ring)
{
	return consumed / afr_cursor_unit(ring);
}

/**
 * afr_cursor_decode() - the 64-bit cursor that @cursor stands for
 * @last: newest cursor known for this direction, in bytes
 * @cursor: what the immediate said
 * @ring: size of the ring the cursor runs on
 *
 * The result is never below @last rounded down to a unit. The caller checks
 * that it is not above what was sent.
 *
 * Return: bytes.
 */
static inline u64 afr_cursor_decode(u64 last, u16 cursor, u32 ring)
{
	u64 units = last / afr_cursor_unit(ring);

	units += (u16)(cursor - (u16)units);
	return units * afr_cursor_unit(ring);
}

#endif /* AFR_CURSOR_H */
