/* SPDX-License-Identifier: GPL-2.0 */
/* Index arithmetic of a power-of-two ring addressed by absolute offsets. */
#ifndef AFR_RING_H
#define AFR_RING_H

#include "pure.h"

/* Smallest allowed ring of at least @bytes: a power of two within [AFR_RING_MIN, @most]. */
u32 afr_ring_size(u64 bytes, u32 most);

/* Position of @offset in a ring of @size bytes. */
static inline u32 afr_ring_pos(u64 offset, u32 size)
{
	return offset & (size - 1);
}

/* Longest run from @offset, at most @len, that does not cross the end of the ring. */
static inline u32 afr_ring_run(u64 offset, u32 len, u32 size)
{
	return min(len, size - afr_ring_pos(offset, size));
}

#endif /* AFR_RING_H */
