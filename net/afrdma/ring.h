/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Index arithmetic of a power-of-two ring addressed by absolute offsets, and of the memory
 * that rings share.
 */
#ifndef AFR_RING_H
#define AFR_RING_H

#include "pure.h"

/* Smallest allowed ring of at least @bytes: a power of two within [@least, @most]. */
u32 afr_ring_size(u64 bytes, u32 least, u32 most);

/* Pages [first, last), counted from offset 0: modulo those of the ring they are places in it. */
struct afr_ring_pages {
	u64	first, last;
};

/* The pages, of 1 << @shift bytes, of a ring in use at [from, end) that hold none of it. */
struct afr_ring_pages afr_ring_unused(u64 from, u64 end, u32 size, unsigned int shift);

/* Of @free pages, how many may who has @held of them take: at most @weight times the rest. */
u64 afr_ring_share(u64 free, u64 held, u32 weight);

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
