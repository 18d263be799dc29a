// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
#include "../../net/afrdma/proto/cursor.h"
#include "../../net/afrdma/proto/wire.h"
#include "tap.h"

TEST(cursor_unit__never_more_than_2_to_14_units)
{
	u32 ring;

	EXPECT_EQ(afr_cursor_unit(1), 1);
	EXPECT_EQ(afr_cursor_unit(1 << 14), 1);
	EXPECT_EQ(afr_cursor_unit(1 << 15), 2);
	EXPECT_EQ(afr_cursor_unit(1 << 20), 64);
	for (ring = AFR_RING_MIN; ring <= AFR_RING_MAX; ring *= 2)
		EXPECT_EQ(ring / afr_cursor_unit(ring), 1 << 14);
	/*
	 * The largest unit must be small: afr_rx_lowat_max() subtracts it (less one byte) from two
	 * thirds of the peer's send ring, which may have only AFR_RING_MIN bytes.
	 */
	EXPECT(afr_cursor_unit(AFR_RING_MAX) <= AFR_RING_MIN / 4);
}

TEST(cursor_encode__rounds_down)
{
	EXPECT_EQ(afr_cursor_encode(127, 1 << 20), 1);
	EXPECT_EQ(afr_cursor_encode(128, 1 << 20), 2);
	EXPECT_EQ(afr_cursor_encode(64 * 65536ull, 1 << 20), 0);
}

/*
 * A cursor that has advanced by at most the ring size is decoded to its value rounded down to a
 * unit, even if its 16 bits have wrapped. Tries about 1000 advances for each base and ring size.
 */
TEST(cursor_decode__every_honest_advance)
{
	static const u64 bases[] = { 0, 65000, 65536, (1ull << 32) - 3, 1ull << 61 };
	unsigned int b, order;

	for (b = 0; b < 5; b++) {
		for (order = 14; order <= 26; order++) {
			u32 ring = 1u << order, unit = afr_cursor_unit(ring);
			u64 last = bases[b] * unit + unit / 2, step;

			for (step = 0; step <= ring; step += 1 + ring / 1021) {
				u64 now = last + step, got;

				got = afr_cursor_decode(last, afr_cursor_encode(now, ring), ring);
				EXPECT_EQ(got, now - now % unit);
			}
		}
	}
}

TEST(cursor_decode__same_value_is_no_advance)
{
	EXPECT_EQ(afr_cursor_decode(1000, afr_cursor_encode(1000, 1 << 14), 1 << 14), 1000);
	EXPECT_EQ(afr_cursor_decode(100, afr_cursor_encode(100, 1 << 20), 1 << 20), 64);
}

/* PC4: of the 2^16 values, only 2^14 + 1 decode to a cursor within the ring. */
TEST(cursor_decode__three_of_four_forged_values_are_beyond_the_ring)
{
	u32 ring = 1 << 16, within = 0, cursor;
	u64 last = 123456789;

	for (cursor = 0; cursor < 65536; cursor++)
		within += afr_cursor_decode(last, cursor, ring) <= last + ring;
	EXPECT_EQ(within, (1 << 14) + 1);
}
