// SPDX-License-Identifier: GPL-2.0
#include "../../net/afrdma/ring.h"
#include "../../net/afrdma/wire.h"
#include "tap.h"

TEST(ring_size__rounds_up_to_a_power_of_two)
{
	EXPECT_EQ(afr_ring_size(AFR_RING_MIN, AFR_RING_MAX), AFR_RING_MIN);
	EXPECT_EQ(afr_ring_size(AFR_RING_MIN + 1, AFR_RING_MAX), 2 * AFR_RING_MIN);
	EXPECT_EQ(afr_ring_size(2 * AFR_RING_MIN, AFR_RING_MAX), 2 * AFR_RING_MIN);
	EXPECT_EQ(afr_ring_size(100000, AFR_RING_MAX), 131072);
}

TEST(ring_size__never_below_the_smallest)
{
	EXPECT_EQ(afr_ring_size(0, AFR_RING_MAX), AFR_RING_MIN);
	EXPECT_EQ(afr_ring_size(1, AFR_RING_MAX), AFR_RING_MIN);
	EXPECT_EQ(afr_ring_size(1 << 20, 0), AFR_RING_MIN);
	EXPECT_EQ(afr_ring_size(1 << 20, AFR_RING_MIN - 1), AFR_RING_MIN);
}

TEST(ring_size__never_above_most)
{
	EXPECT_EQ(afr_ring_size(U64_MAX, 1 << 20), 1 << 20);
	EXPECT_EQ(afr_ring_size(U64_MAX, (1 << 20) + 1), 1 << 20);
	EXPECT_EQ(afr_ring_size(U64_MAX, (1 << 21) - 1), 1 << 20);
	EXPECT_EQ(afr_ring_size(U64_MAX, U32_MAX), AFR_RING_MAX);
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
