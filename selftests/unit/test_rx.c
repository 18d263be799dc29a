// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
#include "../../net/afrdma/proto/sequence.h"
#include "../../net/afrdma/proto/cursor.h"
#include "../../net/afrdma/proto/wire.h"
#include "tap.h"

#define RING	16384u
#define HUGE	(1ull << 62)

static struct afr_rx rx_of(u32 ring, u32 visible, u32 consumed)
{
	struct afr_rx rx;

	afr_rx_init(&rx, ring);
	afr_rx_data_received(&rx, visible);
	afr_rx_consume(&rx, consumed);
	return rx;
}

/* Returns the receive state of a direction that moved to the link of epoch 1 at offset 100. */
static struct afr_rx rx_on_link(void)
{
	struct afr_rx rx = rx_of(RING, 100, 0);

	afr_rx_open(&rx, 1);
	afr_rx_move(&rx, 1, 100);
	return rx;
}

/* A call that refuses what the peer has sent must not change anything. */
#define RX_REFUSES(rx, call, why) do { \
	struct afr_rx before_ = (rx); \
	EXPECT_EQ(call, AFR_REASON_##why); \
	EXPECT(!memcmp(&before_, &(rx), sizeof(rx))); \
	} while (0)

TEST(rx_sane__sees_what_is_broken)
{
	struct afr_rx good = rx_on_link(), rx;

	afr_rx_write_received(&good, 1, 50);
	afr_rx_consume(&good, 20);
#define BROKEN(change) do { rx = good; change; EXPECT(!afr_rx_sane(&rx)); } while (0)
	EXPECT(afr_rx_sane(&good));
	BROKEN(rx.consumed = 151);
	BROKEN(rx.ring = 129);
	BROKEN(rx.reported = 21);
	BROKEN(rx.fin = 149);
	BROKEN(rx.open = false);
	BROKEN(rx.landed = 51);
	BROKEN(rx.finack_requested = true);
#undef BROKEN
}

TEST(rx_init__empty)
{
	struct afr_rx rx = rx_of(RING, 0, 0);

	EXPECT(afr_rx_sane(&rx));
	EXPECT_EQ(afr_rx_readable(&rx), 0);
	EXPECT(!afr_rx_eof(&rx));
	EXPECT(!afr_rx_finack_due(&rx));
}

TEST(rx_data__only_the_next_offset)
{
	struct afr_rx rx = rx_of(RING, 100, 0);

	EXPECT_EQ(afr_rx_data(&rx, 100, 5), 0);
	RX_REFUSES(rx, afr_rx_data(&rx, 99, 5), DATA_OFFSET);
	RX_REFUSES(rx, afr_rx_data(&rx, 101, 5), DATA_OFFSET);
	RX_REFUSES(rx, afr_rx_data(&rx, HUGE, 5), DATA_OFFSET);
}

TEST(rx_data__up_to_the_window)
{
	struct afr_rx rx = rx_of(RING, 100, 40);

	EXPECT_EQ(afr_rx_data(&rx, 100, RING - 60), 0);
	RX_REFUSES(rx, afr_rx_data(&rx, 100, RING - 59), WINDOW_EXCEEDED);
	RX_REFUSES(rx, afr_rx_data(&rx, 100, U32_MAX), WINDOW_EXCEEDED);
}

TEST(rx_data__counts_what_landed_ahead_of_it)
{
	struct afr_rx rx = rx_of(RING, 100, 0);

	afr_rx_open(&rx, 1);
	EXPECT_EQ(afr_rx_write_received(&rx, 1, 1000), 0);
	EXPECT_EQ(afr_rx_data(&rx, 100, RING - 1100), 0);
	RX_REFUSES(rx, afr_rx_data(&rx, 100, RING - 1099), WINDOW_EXCEEDED);
}

TEST(rx_data__up_to_the_end)
{
	struct afr_rx rx = rx_of(RING, 100, 0);

	EXPECT_EQ(afr_rx_fin(&rx, 110), 0);
	EXPECT_EQ(afr_rx_data(&rx, 100, 10), 0);
	RX_REFUSES(rx, afr_rx_data(&rx, 100, 11), DATA_AFTER_FIN);
	RX_REFUSES(rx, afr_rx_data(&rx, 100, U32_MAX), DATA_AFTER_FIN);
}

TEST(rx_data__not_while_on_a_link)
{
	struct afr_rx rx = rx_on_link();

	RX_REFUSES(rx, afr_rx_data(&rx, 100, 1), MOVE_DATA);
	afr_rx_close(&rx);
	EXPECT_EQ(afr_rx_data(&rx, 100, 1), 0);
}

TEST(rx_landed__before_move_is_only_counted)
{
	struct afr_rx rx = rx_of(RING, 100, 0);

	afr_rx_open(&rx, 1);
	EXPECT_EQ(afr_rx_write_received(&rx, 1, 50), 0);
	EXPECT_EQ(rx.visible, 100);
	afr_rx_data_received(&rx, 20);
	EXPECT_EQ(afr_rx_move(&rx, 1, 120), 0);
	EXPECT_EQ(rx.visible, 170);
	EXPECT_EQ(afr_rx_write_received(&rx, 1, 5), 0);
	EXPECT_EQ(rx.visible, 175);
}

TEST(rx_landed__of_a_closed_epoch)
{
	struct afr_rx rx = rx_on_link();

	afr_rx_write_received(&rx, 1, 50);
	afr_rx_close(&rx);
	EXPECT_EQ(afr_rx_write_received(&rx, 1, 50), 0);
	EXPECT_EQ(rx.visible, 150);
	afr_rx_open(&rx, 2);
	EXPECT_EQ(afr_rx_write_received(&rx, 1, RING * 2), 0);
	EXPECT_EQ(rx.landed, 0);
}

TEST(rx_landed__up_to_the_window)
{
	struct afr_rx rx = rx_on_link();

	afr_rx_consume(&rx, 10);
	RX_REFUSES(rx, afr_rx_write_received(&rx, 1, RING - 89), WINDOW_EXCEEDED);
	EXPECT_EQ(afr_rx_write_received(&rx, 1, RING - 90), 0);
	RX_REFUSES(rx, afr_rx_write_received(&rx, 1, 1), WINDOW_EXCEEDED);
	EXPECT_EQ(afr_rx_write_received(&rx, 1, 0), 0);
}

TEST(rx_landed__accumulates_before_move)
{
	struct afr_rx rx = rx_of(RING, 100, 0);

	afr_rx_open(&rx, 1);
	EXPECT_EQ(afr_rx_write_received(&rx, 1, RING - 100), 0);
	RX_REFUSES(rx, afr_rx_write_received(&rx, 1, 1), WINDOW_EXCEEDED);
}

TEST(rx_landed__up_to_the_end)
{
	struct afr_rx rx = rx_on_link();

	EXPECT_EQ(afr_rx_fin(&rx, 200), 0);
	RX_REFUSES(rx, afr_rx_write_received(&rx, 1, 101), DATA_AFTER_FIN);
	EXPECT_EQ(afr_rx_write_received(&rx, 1, 100), 0);
	RX_REFUSES(rx, afr_rx_write_received(&rx, 1, 1), DATA_AFTER_FIN);
}

TEST(rx_move__only_where_the_stream_is)
{
	struct afr_rx rx = rx_of(RING, 100, 0);

	afr_rx_open(&rx, 1);
	RX_REFUSES(rx, afr_rx_move(&rx, 1, 99), MOVE_BAD);
	RX_REFUSES(rx, afr_rx_move(&rx, 1, 101), MOVE_BAD);
	RX_REFUSES(rx, afr_rx_move(&rx, 1, HUGE), MOVE_BAD);
	RX_REFUSES(rx, afr_rx_move(&rx, 2, 100), MOVE_BAD);
	EXPECT_EQ(afr_rx_move(&rx, 1, 100), 0);
	RX_REFUSES(rx, afr_rx_move(&rx, 1, 100), MOVE_BAD);
}

TEST(rx_move__of_a_closed_epoch)
{
	struct afr_rx rx = rx_of(RING, 100, 0);

	afr_rx_open(&rx, 1);
	afr_rx_close(&rx);
	EXPECT_EQ(afr_rx_move(&rx, 1, 100), 0);
	EXPECT(!rx.moved);
	RX_REFUSES(rx, afr_rx_move(&rx, 2, 100), MOVE_BAD);
	afr_rx_open(&rx, 2);
	EXPECT_EQ(afr_rx_move(&rx, 1, 7), 0);
	EXPECT(!rx.moved);
}

TEST(rx_move__before_the_first_epoch)
{
	struct afr_rx rx = rx_of(RING, 0, 0);

	RX_REFUSES(rx, afr_rx_move(&rx, 1, 0), MOVE_BAD);
}

TEST(rx_fin__counts_bytes_landed_before_move)
{
	struct afr_rx rx = rx_of(RING, 100, 0);

	afr_rx_open(&rx, 1);
	EXPECT_EQ(afr_rx_write_received(&rx, 1, 50), 0);
	RX_REFUSES(rx, afr_rx_fin(&rx, 149), FIN_BAD);
	EXPECT_EQ(afr_rx_fin(&rx, 150), 0);
	RX_REFUSES(rx, afr_rx_write_received(&rx, 1, 1), DATA_AFTER_FIN);
	/* With one byte of DATA in front of them, the 50 that have landed would end beyond FIN. */
	RX_REFUSES(rx, afr_rx_data(&rx, 100, 1), DATA_AFTER_FIN);
	EXPECT_EQ(afr_rx_move(&rx, 1, 100), 0);
	EXPECT_EQ(rx.visible, 150);
}

TEST(rx_close__tells_x_and_consumed)
{
	struct afr_rx rx = rx_on_link();

	afr_rx_write_received(&rx, 1, 50);
	afr_rx_consume(&rx, 30);
	afr_rx_blocked(&rx);
	EXPECT_EQ(afr_rx_close(&rx), 150);
	EXPECT_EQ(rx.reported, 30);
	EXPECT(!rx.blocked && !rx.open && !rx.moved);
}

TEST(rx_close__without_move_forgets_what_landed)
{
	struct afr_rx rx = rx_of(RING, 100, 0);

	afr_rx_open(&rx, 1);
	afr_rx_write_received(&rx, 1, 50);
	EXPECT_EQ(afr_rx_close(&rx), 100);
	EXPECT_EQ(rx.landed, 0);
	EXPECT_EQ(afr_rx_data(&rx, 100, RING - 100), 0);
}

TEST(rx_close__without_news_remembers_blocked)
{
	struct afr_rx rx = rx_on_link();

	afr_rx_blocked(&rx);
	afr_rx_close(&rx);
	EXPECT(rx.blocked);
}

TEST(rx_fin__below_what_was_received)
{
	struct afr_rx rx = rx_of(RING, 100, 0);

	RX_REFUSES(rx, afr_rx_fin(&rx, 99), FIN_BAD);
	EXPECT_EQ(afr_rx_fin(&rx, 100), 0);
}

TEST(rx_fin__again)
{
	struct afr_rx rx = rx_of(RING, 100, 0);

	EXPECT_EQ(afr_rx_fin(&rx, 200), 0);
	EXPECT_EQ(afr_rx_fin(&rx, 200), 0);
	RX_REFUSES(rx, afr_rx_fin(&rx, 201), FIN_BAD);
	RX_REFUSES(rx, afr_rx_fin(&rx, 199), FIN_BAD);
}

TEST(rx_finack_due__once_when_all_is_received)
{
	struct afr_rx rx = rx_of(RING, 100, 0);

	EXPECT(!afr_rx_finack_due(&rx));
	afr_rx_fin(&rx, 110);
	EXPECT(!afr_rx_finack_due(&rx));
	afr_rx_data_received(&rx, 10);
	EXPECT(afr_rx_finack_due(&rx));
	EXPECT(!afr_rx_finack_due(&rx));
}

TEST(rx_finack_due__empty_stream)
{
	struct afr_rx rx = rx_of(RING, 0, 0);

	afr_rx_fin(&rx, 0);
	EXPECT(afr_rx_finack_due(&rx));
	EXPECT(afr_rx_eof(&rx));
}

/*
 * A reader may wait for afr_rx_lowat_max() bytes, so they must always arrive. In the worst case
 * the peer has the smallest send ring, its writers sleep until a third of that ring is free, and
 * the cursor that the peer knows is almost one unit behind (PC5, PM6).
 */
TEST(rx_lowat_max__always_comes)
{
	u32 ring;

	for (ring = AFR_RING_MIN; ring <= AFR_RING_MAX; ring *= 2) {
		struct afr_rx rx = rx_of(ring, 0, 0);
		u32 held = AFR_RING_MIN - AFR_RING_MIN / 3 + 1;

		EXPECT(afr_rx_lowat_max(&rx) <= held - (afr_cursor_unit(ring) - 1));
		EXPECT(afr_rx_lowat_max(&rx) >= AFR_RING_MIN / 3);
	}
}

TEST(rx_eof__only_after_the_last_byte)
{
	struct afr_rx rx = rx_of(RING, 100, 99);

	afr_rx_fin(&rx, 100);
	EXPECT(!afr_rx_eof(&rx));
	afr_rx_consume(&rx, 1);
	EXPECT(afr_rx_eof(&rx));
}

TEST(rx_credit_due__at_half_the_ring)
{
	struct afr_rx rx = rx_of(RING, RING, RING / 2 - 1);

	EXPECT(!afr_rx_credit_due(&rx, false));
	EXPECT(!afr_rx_credit_due(&rx, true));
	afr_rx_consume(&rx, 1);
	EXPECT(afr_rx_credit_due(&rx, false));
	EXPECT(afr_rx_credit_due(&rx, true));
}

TEST(rx_credit_due__any_unit_when_blocked)
{
	struct afr_rx rx = rx_of(1 << 20, 1 << 20, 0);

	afr_rx_blocked(&rx);
	EXPECT(!afr_rx_credit_due(&rx, false));
	afr_rx_consume(&rx, 63);
	EXPECT(!afr_rx_credit_due(&rx, false));
	EXPECT(!afr_rx_credit_due(&rx, true));
	afr_rx_consume(&rx, 1);
	EXPECT(afr_rx_credit_due(&rx, false));
	EXPECT(afr_rx_credit_due(&rx, true));
}

TEST(rx_credit_due__a_rounded_cursor_that_differs)
{
	struct afr_rx rx = rx_of(1 << 20, 1 << 20, 60);

	EXPECT_EQ(afr_rx_report(&rx), 60);
	afr_rx_blocked(&rx);
	afr_rx_consume(&rx, 3);
	EXPECT(!afr_rx_credit_due(&rx, true));
	afr_rx_consume(&rx, 1);
	EXPECT(afr_rx_credit_due(&rx, true));
	EXPECT(!afr_rx_credit_due(&rx, false));
}

TEST(rx_report__answers_blocked_only_with_a_new_cursor)
{
	struct afr_rx rx = rx_of(RING, 100, 70);

	afr_rx_blocked(&rx);
	EXPECT_EQ(afr_rx_report(&rx), 70);
	EXPECT(!rx.blocked && rx.reported == 70);
	EXPECT(!afr_rx_credit_due(&rx, false));
	afr_rx_blocked(&rx);
	EXPECT_EQ(afr_rx_report(&rx), 70);
	EXPECT(rx.blocked);
}

TEST(rx_report_imm__counts_what_the_rounded_cursor_says)
{
	struct afr_rx rx = rx_of(1 << 20, 1000, 1000);

	EXPECT_EQ(afr_rx_report_imm(&rx), 15);
	EXPECT_EQ(rx.reported, 960);
	EXPECT_EQ(afr_rx_report(&rx), 1000);
	EXPECT_EQ(afr_rx_report_imm(&rx), 15);
	EXPECT_EQ(rx.reported, 1000);
}

TEST(rx_report_imm__without_news_remembers_blocked)
{
	struct afr_rx rx = rx_of(1 << 20, 1000, 63);

	afr_rx_blocked(&rx);
	EXPECT_EQ(afr_rx_report_imm(&rx), 0);
	EXPECT(rx.blocked);
	afr_rx_consume(&rx, 1);
	EXPECT_EQ(afr_rx_report_imm(&rx), 1);
	EXPECT(!rx.blocked);
}
