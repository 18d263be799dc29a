// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Computes ring sizes, the unused pages of a ring, and shares of ring memory. */
#include "ring.h"

/**
 * afr_ring_size() - choose the size of a ring
 * @bytes: bytes that it should hold
 * @least: lower bound, a power of two, at least AFR_RING_MIN and a page: a ring has whole pages
 * @most: upper bound, limited to AFR_RING_MAX; if it is below @least, the size is @least
 *
 * Sizes are powers of two, so that a bit mask turns an offset into a position. The lower bound of
 * a page holds for rings of this host only: a peer with smaller pages may have smaller rings.
 *
 * Context: any.
 * Return: the smallest power of two that is at least @bytes and @least. If that is above @most,
 * the result is the largest power of two up to @most, but never less than @least.
 */
u32 afr_ring_size(u64 bytes, u32 least, u32 most)
{
	u32 size = least;

	most = min(most, AFR_RING_MAX);
	while (size < bytes && size <= most / 2)
		size *= 2;
	return size;
}

/**
 * afr_ring_unused() - find the pages of a ring that hold no bytes of the stream
 * @from: offset of the first byte in the ring
 * @end: offset behind the last byte in the ring: at least @from, at most @from + @size
 * @size: size of the ring in bytes, at least a page
 * @shift: a page is 1 << @shift bytes
 *
 * A page counts as used even if bytes of the stream fill only a part of it.
 *
 * Context: any.
 * Return: the unused pages, as a range [first, last) of absolute page numbers, offset >> @shift.
 * If there are none, first may even be above last. Modulo the number of pages in the ring, the
 * numbers are page indices, each of which occurs at most once.
 */
struct afr_ring_pages afr_ring_unused(u64 from, u64 end, u32 size, unsigned int shift)
{
	u64 lap = size >> shift;
	struct afr_ring_pages unused = {
		.first = (end + (1u << shift) - 1) >> shift,
		.last = (from >> shift) + lap,
	};

	if (from == end)
		unused.first = from >> shift;
	return unused;
}

/**
 * afr_ring_share() - how many more pages may a holder take from the shared memory?
 * @free: pages that are free
 * @held: pages that the holder has
 * @weight: the holder may have at most @weight times the pages that are then still free
 *
 * This is the dynamic threshold of Choudhury and Hahne ("Dynamic queue length thresholds for
 * shared-memory packet switches", 1998). With weight 1 the first holder gets at most half of the
 * memory, the second holder at most half of what is left, and so on. So some memory stays free as
 * long as every holder keeps to this limit. ring_quota.c exempts the only connection of a holder.
 *
 * Context: any.
 * Return: pages.
 */
u64 afr_ring_share(u64 free, u64 held, u32 weight)
{
	return weight * free > held ? (weight * free - held) / (weight + 1) : 0;
}
