// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
#include "../../net/afrdma/proto/link_credit.h"
#include "tap.h"

TEST(credit_init__depths_that_can_work)
{
	struct afr_link_credit c;

	EXPECT_EQ(afr_link_credit_init(&c, 3, 3), 0);
	EXPECT_EQ(afr_link_credit_init(&c, 1 << 14, 1 << 14), 0);
	EXPECT_EQ(afr_link_credit_init(&c, 3, 1 << 14), 0);
}

TEST(credit_init__depths_that_deadlock_or_wrap)
{
	struct afr_link_credit c;

	EXPECT_EQ(afr_link_credit_init(&c, 2, 16), -EPROTO);
	EXPECT_EQ(afr_link_credit_init(&c, 16, 2), -EPROTO);
	EXPECT_EQ(afr_link_credit_init(&c, 0, 0), -EPROTO);
	EXPECT_EQ(afr_link_credit_init(&c, 16, (1 << 14) + 1), -EPROTO);
	EXPECT_EQ(afr_link_credit_init(&c, 0xffff, 16), -EPROTO);
}

TEST(credit_available__keeps_the_reserve_back)
{
	struct afr_link_credit c;

	afr_link_credit_init(&c, 8, 3);
	EXPECT_EQ(afr_link_credit_available(&c, 0), 3);
	EXPECT_EQ(afr_link_credit_available(&c, AFR_LINK_CREDIT_RESERVE), 2);
	afr_link_credit_use(&c);
	afr_link_credit_use(&c);
	EXPECT_EQ(afr_link_credit_available(&c, 0), 1);
	EXPECT_EQ(afr_link_credit_available(&c, AFR_LINK_CREDIT_RESERVE), 0);
	afr_link_credit_use(&c);
	EXPECT_EQ(afr_link_credit_available(&c, 0), 0);
	EXPECT_EQ(afr_link_credit_available(&c, AFR_LINK_CREDIT_RESERVE), 0);
}

TEST(credit_grant__gives_back_what_was_used)
{
	struct afr_link_credit c;

	afr_link_credit_init(&c, 8, 4);
	afr_link_credit_use(&c);
	afr_link_credit_use(&c);
	EXPECT_EQ(afr_link_credit_grant(&c, 6), 0);
	EXPECT_EQ(afr_link_credit_available(&c, 0), 4);
	EXPECT_EQ(afr_link_credit_grant(&c, 6), 0);
	EXPECT_EQ(afr_link_credit_available(&c, 0), 4);
}

TEST(credit_grant__refuses_more_than_the_depth)
{
	struct afr_link_credit c;

	afr_link_credit_init(&c, 8, 4);
	EXPECT_EQ(afr_link_credit_grant(&c, 5), -EPROTO);
	afr_link_credit_use(&c);
	EXPECT_EQ(afr_link_credit_grant(&c, 6), -EPROTO);
	EXPECT_EQ(afr_link_credit_available(&c, 0), 3);
	EXPECT_EQ(afr_link_credit_grant(&c, 5), 0);
}

TEST(credit_grant__refuses_to_go_back)
{
	struct afr_link_credit c;

	afr_link_credit_init(&c, 8, 4);
	EXPECT_EQ(afr_link_credit_grant(&c, 3), -EPROTO);
	EXPECT_EQ(afr_link_credit_grant(&c, 0), -EPROTO);
	EXPECT_EQ(afr_link_credit_grant(&c, 0xffff), -EPROTO);
	EXPECT_EQ(afr_link_credit_available(&c, 0), 4);
}

TEST(credit_due__a_quarter_and_at_least_two)
{
	struct afr_link_credit c;
	int i;

	afr_link_credit_init(&c, 3, 3);
	EXPECT(!afr_link_credit_due(&c));
	afr_link_credit_repost(&c);
	EXPECT(!afr_link_credit_due(&c));
	afr_link_credit_repost(&c);
	EXPECT(afr_link_credit_due(&c));

	afr_link_credit_init(&c, 64, 64);
	for (i = 0; i < 15; i++)
		afr_link_credit_repost(&c);
	EXPECT(!afr_link_credit_due(&c));
	afr_link_credit_repost(&c);
	EXPECT(afr_link_credit_due(&c));
}

TEST(credit_announce__tells_once)
{
	struct afr_link_credit c;

	afr_link_credit_init(&c, 3, 3);
	afr_link_credit_repost(&c);
	afr_link_credit_repost(&c);
	EXPECT_EQ(afr_link_credit_announce(&c), 5);
	EXPECT(!afr_link_credit_due(&c));
	EXPECT_EQ(afr_link_credit_announce(&c), 5);
}

/*
 * One end sends 200000 messages, and both ends announce their receives: every 16-bit counter wraps
 * at least twice.
 */
TEST(credit_announce__two_ends_for_200000_messages)
{
	struct afr_link_credit a, b;
	u32 i;

	afr_link_credit_init(&a, 5, 7);
	afr_link_credit_init(&b, 7, 5);
	for (i = 0; i < 200000; i++) {
		if (!afr_link_credit_available(&a, AFR_LINK_CREDIT_RESERVE)) {
			EXPECT(!"data stopped");
			return;
		}
		afr_link_credit_use(&a);
		afr_link_credit_repost(&b);
		if (afr_link_credit_due(&b) && afr_link_credit_available(&b, 0)) {
			EXPECT_EQ(afr_link_credit_grant(&a, afr_link_credit_announce(&b)), 0);
			afr_link_credit_use(&b);
			afr_link_credit_repost(&a);
		}
		if (afr_link_credit_due(&a) && afr_link_credit_available(&a, 0)) {
			EXPECT_EQ(afr_link_credit_grant(&b, afr_link_credit_announce(&a)), 0);
			afr_link_credit_use(&a);
			afr_link_credit_repost(&b);
		}
	}
	EXPECT(a.used < 65535);
}
