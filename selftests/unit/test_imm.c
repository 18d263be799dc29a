// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
#include "../../net/afrdma/proto/imm.h"
#include "tap.h"

TEST(imm_pack__channel_and_cursor_can_be_read_back)
{
	static const u16 values[] = { 0, 1, 0x7fff, 0x8000, AFR_CHANNEL_MAX, AFR_CHANNEL_DETACH,
				      AFR_CHANNEL_CREDITS };
	unsigned int i, k;

	for (i = 0; i < 7; i++) {
		for (k = 0; k < 7; k++) {
			u32 imm = afr_imm_pack(values[i], values[k]);

			EXPECT_EQ(afr_imm_channel(imm), values[i]);
			EXPECT_EQ(afr_imm_cursor(imm), values[k]);
		}
	}
}

TEST(imm_pack__slot_is_the_high_half)
{
	EXPECT_EQ(afr_imm_pack(0x1234, 0xabcd), 0x1234abcdll);
}
