// SPDX-License-Identifier: GPL-2.0
/* Sizes of rings. */
#include "ring.h"
#include "wire.h"

/**
 * afr_ring_size() - size of a ring that is to hold @bytes
 * @bytes: bytes wanted
 * @most: upper bound; anything below AFR_RING_MIN counts as AFR_RING_MIN
 *
 * Only powers of two are allowed, so that a position is a mask of an offset.
 *
 * Returns: the smallest power of two of at least @bytes, or the largest one
 * allowed when @bytes is beyond it.
 */
u32 afr_ring_size(u64 bytes, u32 most)
{
	u32 size = AFR_RING_MIN;

	most = min(most, AFR_RING_MAX);
	while (size < bytes && size <= most / 2)
		size *= 2;
	return size;
}
