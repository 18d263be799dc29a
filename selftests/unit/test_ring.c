// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
#include "../../net/afrdma/proto/ring.h"
#include "../../net/afrdma/proto/wire.h"
#include "tap.h"

TEST(ring_size__rounds_up_to_a_power_of_two)
{
	EXPECT_EQ(afr_ring_size(AFR_RING_MIN, AFR_RING_MIN, AFR_RING_MAX), AFR_RING_MIN);
	EXPECT_EQ(afr_ring_size(AFR_RING_MIN + 1, AFR_RING_MIN, AFR_RING_MAX), 2 * AFR_RING_MIN);
	EXPECT_EQ(afr_ring_size(2 * AFR_RING_MIN, AFR_RING_MIN, AFR_RING_MAX), 2 * AFR_RING_MIN);
	EXPECT_EQ(afr_ring_size(100000, AFR_RING_MIN, AFR_RING_MAX), 131072);
}

TEST(ring_size__never_below_the_smallest)
{
	EXPECT_EQ(afr_ring_size(0, AFR_RING_MIN, AFR_RING_MAX), AFR_RING_MIN);
	EXPECT_EQ(afr_ring_size(1, AFR_RING_MIN, AFR_RING_MAX), AFR_RING_MIN);
	EXPECT_EQ(afr_ring_size(1 << 20, AFR_RING_MIN, 0), AFR_RING_MIN);
	EXPECT_EQ(afr_ring_size(1 << 20, AFR_RING_MIN, AFR_RING_MIN - 1), AFR_RING_MIN);
}

TEST(ring_size__never_above_most)
{
	EXPECT_EQ(afr_ring_size(U64_MAX, AFR_RING_MIN, 1 << 20), 1 << 20);
	EXPECT_EQ(afr_ring_size(U64_MAX, AFR_RING_MIN, (1 << 20) + 1), 1 << 20);
	EXPECT_EQ(afr_ring_size(U64_MAX, AFR_RING_MIN, (1 << 21) - 1), 1 << 20);
	EXPECT_EQ(afr_ring_size(U64_MAX, AFR_RING_MIN, U32_MAX), AFR_RING_MAX);
}

TEST(ring_size__whole_pages)
{
	EXPECT_EQ(afr_ring_size(AFR_RING_MIN, 65536, AFR_RING_MAX), 65536);
	EXPECT_EQ(afr_ring_size(65537, 65536, AFR_RING_MAX), 131072);
	EXPECT_EQ(afr_ring_size(1 << 20, 65536, AFR_RING_MIN), 65536);
}

TEST(ring_pos__wraps_at_any_offset)
{
	EXPECT_EQ(afr_ring_pos(0, 16384), 0);
	EXPECT_EQ(afr_ring_pos(16383, 16384), 16383);
	EXPECT_EQ(afr_ring_pos(16384, 16384), 0);
	EXPECT_EQ(afr_ring_pos((1ull << 62) + 5, 16384), 5);
	EXPECT_EQ(afr_ring_pos(U64_MAX, AFR_RING_MAX), AFR_RING_MAX - 1);
}

TEST(ring_run__stops_at_the_end_of_the_ring)
{
	EXPECT_EQ(afr_ring_run(0, 16384, 16384), 16384);
	EXPECT_EQ(afr_ring_run(0, 16385, 16384), 16384);
	EXPECT_EQ(afr_ring_run(16383, 100, 16384), 1);
	EXPECT_EQ(afr_ring_run(16384, 100, 16384), 100);
	EXPECT_EQ(afr_ring_run(5, 0, 16384), 0);
}

static void expect_unused(u64 from, u64 end, u32 size, unsigned int shift, u64 first, u64 last)
{
	struct afr_ring_pages unused = afr_ring_unused(from, end, size, shift);

	EXPECT_EQ(unused.first, first);
	EXPECT_EQ(unused.last, last);
}

TEST(ring_unused__all_of_an_empty_ring)
{
	expect_unused(0, 0, 16384, 12, 0, 4);
	expect_unused(5, 5, 16384, 12, 0, 4);
	expect_unused(4095, 4095, 16384, 12, 0, 4);
	expect_unused(4096, 4096, 16384, 12, 1, 5);
	expect_unused(70000, 70000, 65536, 16, 1, 2);
}

TEST(ring_unused__not_what_is_used_in_part)
{
	expect_unused(0, 1, 16384, 12, 1, 4);
	expect_unused(4095, 4097, 16384, 12, 2, 4);
	expect_unused(4096, 8192, 16384, 12, 2, 5);
	expect_unused(4097, 8192, 16384, 12, 2, 5);
	expect_unused(100, 200, 65536, 16, 1, 1);
	expect_unused(100, 65636, 131072, 16, 2, 2);
}

TEST(ring_unused__none_of_a_full_ring)
{
	struct afr_ring_pages unused;

	for (u64 from = 0; from < 3 * 4096; from += 1023) {
		unused = afr_ring_unused(from, from + 16384, 16384, 12);
		EXPECT(unused.first >= unused.last);
	}
	/* all free bytes share a page with the first used byte */
	unused = afr_ring_unused(4095, 4095 + 16384 - 4095, 16384, 12);
	EXPECT(unused.first >= unused.last);
}

/* afr_ring_unused() returns exactly the pages in which no byte is used, each of them once. */
TEST(ring_unused__as_counted_byte_by_byte)
{
	for (u64 from = 1 << 15; from < (1 << 15) + 64; from++) {
		for (u64 end = from; end <= from + 32; end++) {
			struct afr_ring_pages unused = afr_ring_unused(from, end, 32, 3);
			unsigned int used = 0, free = 0;

			for (u64 at = from; at < end; at++)
				used |= 1u << (at >> 3 & 3);
			for (; unused.first < unused.last; unused.first++) {
				EXPECT(!(free & 1u << (unused.first & 3)));
				free |= 1u << (unused.first & 3);
			}
			EXPECT_EQ(used ^ free, 15);
		}
	}
}

TEST(ring_share__leaves_a_part_for_others)
{
	EXPECT_EQ(afr_ring_share(1000, 0, 1), 500);
	EXPECT_EQ(afr_ring_share(500, 500, 1), 0);
	EXPECT_EQ(afr_ring_share(500, 499, 1), 0);
	EXPECT_EQ(afr_ring_share(500, 400, 1), 50);
	EXPECT_EQ(afr_ring_share(500, 0, 1), 250);
	EXPECT_EQ(afr_ring_share(1000, 0, 4), 800);
	EXPECT_EQ(afr_ring_share(200, 800, 4), 0);
	EXPECT_EQ(afr_ring_share(0, 0, 4), 0);
	EXPECT_EQ(afr_ring_share(0, 1000, 1), 0);
}
