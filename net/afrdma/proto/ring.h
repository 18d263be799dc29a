/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Arithmetic for rings: positions in a power-of-two ring addressed by absolute offsets, ring
 * sizes, the unused pages of a ring, and shares of the memory that all rings have in common.
 */
#ifndef AFR_PROTO_RING_H
#define AFR_PROTO_RING_H

#include "portable.h"
#include "wire.h"

u32 afr_ring_size(u64 bytes, u32 least, u32 most);

/*
 * Pages [first, last) of a stream, counted from offset 0. Modulo the number of pages in the ring,
 * the page numbers are page indices in the ring.
 */
struct afr_ring_pages {
	u64	first, last;
};

struct afr_ring_pages afr_ring_unused(u64 from, u64 end, u32 size, unsigned int shift);
u64 afr_ring_share(u64 free, u64 held, u32 weight);

/* Is @ring a valid ring size for a peer? */
static inline bool afr_ring_is_valid(u32 ring)
{
	return ring >= AFR_RING_MIN && ring <= AFR_RING_MAX && !(ring & (ring - 1));
}

/* Returns the position of stream offset @offset in a ring of @size bytes. */
static inline u32 afr_ring_pos(u64 offset, u32 size)
{
	return offset & (size - 1);
}

/* Returns how many of the @len bytes from @offset on come before the end of the ring. */
static inline u32 afr_ring_run(u64 offset, u32 len, u32 size)
{
	return min(len, size - afr_ring_pos(offset, size));
}

#endif /* AFR_PROTO_RING_H */
