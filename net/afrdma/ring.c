// SPDX-License-Identifier: GPL-2.0
/* Sizes of rings, pages of rings, shares of ring memory. */
#include "ring.h"
#include "wire.h"

/**
 * afr_ring_size() - size of a ring that is to hold @bytes
 * @bytes: bytes wanted
 * @least: lower bound, a power of two of at least AFR_RING_MIN: rings are made of whole pages
 * @most: upper bound; anything below @least counts as @least
 *
 * Only powers of two are allowed, so that a position is a mask of an offset. The peer's ring
 * may be smaller than a page of ours.
 *
 * Returns: the smallest power of two of at least @bytes, or the largest one
 * allowed when @bytes is beyond it.
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
 * afr_ring_unused() - pages of a ring that hold nothing
 * @from: the ring is in use from this offset
 * @end: to this one, at most @size behind
 * @size: bytes in the ring, at least a page
 * @shift: a page is 1 << @shift bytes
 *
 * A page that is in use in part, at either end, is in use.
 *
 * Returns: the pages, none of them twice.
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
 * afr_ring_share() - how much more one of many may take of what they share
 * @free: pages that nobody has
 * @held: pages that this one has
 * @weight: it may have at most so many times what is left free then
 *
 * The dynamic threshold of Choudhury and Hahne ("Dynamic queue length thresholds for
 * shared-memory packet switches", 1998). With weight 1 the first that takes all it may has
 * half, the next half of the rest: something is always left, and no setting is needed.
 *
 * Returns: pages.
 */
u64 afr_ring_share(u64 free, u64 held, u32 weight)
{
	return weight * free > held ? (weight * free - held) / (weight + 1) : 0;
}
