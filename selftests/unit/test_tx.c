// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
#include "../../net/afrdma/proto/sequence.h"
#include "../../net/afrdma/proto/cursor.h"
#include "../../net/afrdma/proto/wire.h"
#include "tap.h"

#define RING	16384u
#define HUGE	(1ull << 62)

static struct afr_tx tx_of(u32 ring, u32 window, u32 written, u32 sent)
{
	struct afr_tx tx;

	afr_tx_init(&tx, ring, window);
	afr_tx_write(&tx, written);
	afr_tx_sent(&tx, sent);
	return tx;
}

/*
 * Returns the send state of a direction that moved to the link of epoch 1 at offset 100; 600 bytes
 * are written, 500 of them sent.
 */
static struct afr_tx tx_on_link(void)
{
	struct afr_tx tx = tx_of(RING, RING, 600, 100);

	afr_tx_tcp_accepted(&tx, 100);
	afr_tx_open(&tx);
	afr_tx_move(&tx);
	afr_tx_sent(&tx, 400);
	return tx;
}

/* A call that refuses a report of the peer must not change anything. */
#define TX_REFUSES(tx, call, why) do { \
	struct afr_tx before_ = (tx); \
	EXPECT_EQ(call, AFR_REASON_##why); \
	EXPECT(!memcmp(&before_, &(tx), sizeof(tx))); \
	} while (0)

TEST(tx_init__empty)
{
	struct afr_tx tx = tx_of(RING, AFR_WINDOW_INITIAL, 0, 0);

	EXPECT(afr_tx_sane(&tx));
	EXPECT_EQ(afr_tx_space(&tx), RING);
	EXPECT_EQ(afr_tx_ready(&tx), 0);
	EXPECT(!afr_tx_blocked(&tx));
	EXPECT_EQ(tx.where, AFR_ON_TCP);
}

TEST(tx_sane__sees_what_is_broken)
{
	struct afr_tx good = tx_on_link(), tx;

#define BROKEN(change) do { tx = good; change; EXPECT(!afr_tx_sane(&tx)); } while (0)
	EXPECT(afr_tx_sane(&good));
	BROKEN(tx.una = tx.sent + 1);
	BROKEN(tx.sent = tx.written + 1);
	BROKEN(tx.consumed = tx.sent + 1);
	BROKEN(tx.window = 499);
	BROKEN(tx.ring = 499);
	BROKEN(tx.fin = 599);
	BROKEN(tx.finacked = true);
	BROKEN(tx.open = false);
	BROKEN(tx.where = AFR_SUSPENDED);
	BROKEN(tx.where = 3);
	BROKEN(tx.start = 101);
	BROKEN(tx.consumed = 101);
#undef BROKEN
}

TEST(tx_set_window__opens_what_was_blocked)
{
	struct afr_tx tx = tx_of(4 * RING, RING, 2 * RING, RING);

	EXPECT(afr_tx_blocked(&tx));
	afr_tx_set_window(&tx, 2 * RING);
	EXPECT(!afr_tx_blocked(&tx));
	EXPECT_EQ(afr_tx_ready(&tx), RING);
}

TEST(tx_space__full_and_freed)
{
	struct afr_tx tx = tx_of(RING, RING, RING, 10);

	EXPECT_EQ(afr_tx_space(&tx), 0);
	afr_tx_tcp_accepted(&tx, 10);
	EXPECT_EQ(afr_tx_space(&tx), 10);
}

TEST(tx_ready__the_smaller_of_bytes_and_window)
{
	struct afr_tx tx = tx_of(2 * RING, RING, 100, 0);

	EXPECT_EQ(afr_tx_ready(&tx), 100);
	afr_tx_write(&tx, RING);
	EXPECT_EQ(afr_tx_ready(&tx), RING);
	afr_tx_sent(&tx, RING);
	EXPECT_EQ(afr_tx_ready(&tx), 0);
	EXPECT_EQ(afr_tx_credit(&tx, 50), 0);
	EXPECT_EQ(afr_tx_ready(&tx), 50);
}

TEST(tx_ready__nothing_on_hold)
{
	struct afr_tx tx = tx_on_link();

	EXPECT_EQ(afr_tx_ready(&tx), 100);
	afr_tx_leave(&tx);
	EXPECT_EQ(afr_tx_ready(&tx), 0);
	EXPECT(!afr_tx_blocked(&tx));
}

TEST(tx_urgent__goes_at_once_on_tcp)
{
	struct afr_tx tx = tx_of(RING, RING, 10, 0);

	afr_tx_urgent(&tx);
	EXPECT_EQ(tx.urgent, 9);
	EXPECT_EQ(afr_tx_ready(&tx), 10);
}

TEST(tx_urgent__waits_on_a_link_for_the_ack)
{
	struct afr_tx tx = tx_on_link();	/* 600 written, 500 sent */

	afr_tx_urgent(&tx);
	afr_tx_write(&tx, 50);
	EXPECT_EQ(afr_tx_ready(&tx), 99);
	afr_tx_sent(&tx, 99);
	EXPECT_EQ(afr_tx_ready(&tx), 0);
	EXPECT(!afr_tx_blocked(&tx));
	afr_tx_urgent_ack(&tx, 598);	/* below the urgent offset, which is 599 */
	EXPECT_EQ(afr_tx_ready(&tx), 0);
	afr_tx_urgent_ack(&tx, 599);
	EXPECT_EQ(afr_tx_ready(&tx), 51);
}

TEST(tx_urgent__a_second_one_waits_for_its_own_ack)
{
	struct afr_tx tx = tx_on_link();

	afr_tx_urgent(&tx);
	afr_tx_write(&tx, 50);
	afr_tx_urgent(&tx);
	EXPECT_EQ(tx.urgent, 649);
	afr_tx_urgent_ack(&tx, 599);
	EXPECT_EQ(afr_tx_ready(&tx), 149);
	afr_tx_urgent_ack(&tx, 649);
	EXPECT_EQ(afr_tx_ready(&tx), 150);
}

TEST(tx_urgent__off_the_link_nothing_is_held)
{
	struct afr_tx tx = tx_on_link();

	afr_tx_urgent(&tx);
	afr_tx_leave(&tx);
	EXPECT_EQ(afr_tx_resume(&tx, 1, 500, 400), 0);
	EXPECT_EQ(afr_tx_ready(&tx), 100);
	afr_tx_sent(&tx, 100);
	afr_tx_tcp_accepted(&tx, 100);
	afr_tx_write(&tx, 10);
	afr_tx_open(&tx);
	afr_tx_move(&tx);
	EXPECT_EQ(afr_tx_ready(&tx), 10);
}

TEST(tx_writable__a_third_of_the_ring)
{
	struct afr_tx tx = tx_of(RING, RING, RING, RING);

	EXPECT(!afr_tx_writable(&tx));
	afr_tx_tcp_accepted(&tx, RING / 3 - 1);
	EXPECT(!afr_tx_writable(&tx));
	afr_tx_tcp_accepted(&tx, 1);
	EXPECT(afr_tx_writable(&tx));
}

TEST(tx_blocked__by_the_window)
{
	struct afr_tx tx = tx_of(2 * RING, RING, RING, RING);

	EXPECT(!afr_tx_blocked(&tx));
	afr_tx_write(&tx, 1);
	EXPECT(afr_tx_blocked(&tx));
	afr_tx_credit(&tx, 1);
	EXPECT(!afr_tx_blocked(&tx));
}

TEST(tx_blocked__by_a_full_send_ring_on_a_link_only)
{
	struct afr_tx tx = tx_of(RING, 4 * RING, 0, 0);

	afr_tx_open(&tx);
	afr_tx_move(&tx);
	afr_tx_write(&tx, RING);
	EXPECT(!afr_tx_blocked(&tx));
	afr_tx_sent(&tx, RING);
	EXPECT(afr_tx_blocked(&tx));
	afr_tx_credit(&tx, RING / 3 - 1);
	EXPECT(afr_tx_blocked(&tx));
	afr_tx_credit(&tx, RING / 3);
	EXPECT(!afr_tx_blocked(&tx));

	tx = tx_of(RING, 4 * RING, RING, RING);
	EXPECT(!afr_tx_blocked(&tx));
}

TEST(tx_blocked__nobody_waits_for_room_behind_the_end)
{
	struct afr_tx tx = tx_of(RING, 4 * RING, 0, 0);

	afr_tx_open(&tx);
	afr_tx_move(&tx);
	afr_tx_write(&tx, RING);
	afr_tx_sent(&tx, RING);
	afr_tx_fin(&tx);
	EXPECT(!afr_tx_blocked(&tx));
}

TEST(tx_tcp_accepted__frees_bytes_that_tcp_has_taken)
{
	struct afr_tx tx = tx_of(RING, RING, 300, 200);

	afr_tx_tcp_accepted(&tx, 150);
	EXPECT_EQ(tx.una, 150);
	EXPECT_EQ(tx.sent, 200);
}

TEST(tx_credit__older_news_is_ignored)
{
	struct afr_tx tx = tx_of(RING, RING, 300, 300);

	EXPECT_EQ(afr_tx_credit(&tx, 200), 0);
	EXPECT_EQ(afr_tx_credit(&tx, 100), 0);
	EXPECT_EQ(tx.consumed, 200);
}

TEST(tx_credit__beyond_what_was_sent)
{
	struct afr_tx tx = tx_of(RING, RING, 300, 200);

	TX_REFUSES(tx, afr_tx_credit(&tx, 201), CREDIT_BAD);
	TX_REFUSES(tx, afr_tx_credit(&tx, HUGE), CREDIT_BAD);
	TX_REFUSES(tx, afr_tx_credit(&tx, U64_MAX), CREDIT_BAD);
	EXPECT_EQ(afr_tx_credit(&tx, 200), 0);
}

TEST(tx_credit__frees_on_a_link_but_not_on_tcp)
{
	struct afr_tx tx = tx_of(RING, RING, 300, 200);

	afr_tx_credit(&tx, 200);
	EXPECT_EQ(tx.una, 0);

	tx = tx_on_link();
	afr_tx_credit(&tx, 50);
	EXPECT_EQ(tx.una, 100);
	afr_tx_credit(&tx, 300);
	EXPECT_EQ(tx.una, 300);
	afr_tx_leave(&tx);
	afr_tx_credit(&tx, 400);
	EXPECT_EQ(tx.una, 400);
}

TEST(tx_credit_imm__advances_in_an_open_epoch)
{
	struct afr_tx tx = tx_on_link();

	EXPECT_EQ(afr_tx_credit_imm(&tx, 250), 0);
	EXPECT_EQ(tx.consumed, 250);
	TX_REFUSES(tx, afr_tx_credit_imm(&tx, 501), CREDIT_BAD);
	TX_REFUSES(tx, afr_tx_credit_imm(&tx, 249), CREDIT_BAD);
}

TEST(tx_credit_imm__closed_epoch)
{
	struct afr_tx tx = tx_of(RING, RING, 300, 300);

	EXPECT_EQ(afr_tx_credit_imm(&tx, 250), 0);
	EXPECT_EQ(tx.consumed, 0);
	tx = tx_on_link();
	afr_tx_leave(&tx);
	EXPECT_EQ(afr_tx_credit_imm(&tx, 250), 0);
	EXPECT_EQ(afr_tx_credit_imm(&tx, 60000), 0);
	EXPECT_EQ(tx.consumed, 0);
}

TEST(tx_credit_imm__rounded_below_what_is_known)
{
	struct afr_tx tx = tx_of(1 << 20, 1 << 20, 1 << 20, 1000);

	afr_tx_credit(&tx, 1000);
	afr_tx_open(&tx);
	EXPECT_EQ(afr_tx_credit_imm(&tx, 1000 / 64), 0);
	EXPECT_EQ(tx.consumed, 1000);
}

TEST(tx_credit_imm__16_bits_wrap_for_ever)
{
	struct afr_tx tx = tx_of(RING, RING, 0, 0);
	u64 offset;

	afr_tx_open(&tx);
	afr_tx_move(&tx);
	for (offset = 0; offset < 1 << 20; offset += 1000) {
		afr_tx_write(&tx, 1000);
		afr_tx_sent(&tx, 1000);
		EXPECT_EQ(afr_tx_credit_imm(&tx, afr_cursor_encode(offset + 700, RING)), 0);
		EXPECT_EQ(tx.consumed, offset + 700);
	}
}

TEST(tx_open__counts_from_one_and_only_when_closed)
{
	struct afr_tx tx = tx_of(RING, RING, 10, 0);

	EXPECT_EQ(afr_tx_open(&tx), 1);
	EXPECT_EQ(afr_tx_open(&tx), 0);
	EXPECT_EQ(tx.epoch, 1);
	afr_tx_leave(&tx);
	EXPECT_EQ(afr_tx_open(&tx), 2);
}

TEST(tx_open__not_on_hold)
{
	struct afr_tx tx = tx_on_link();

	afr_tx_leave(&tx);
	EXPECT_EQ(afr_tx_open(&tx), 0);
	EXPECT_EQ(afr_tx_resume(&tx, 1, 100, 0), 0);
	EXPECT_EQ(afr_tx_open(&tx), 2);
}

TEST(tx_may_move__needs_an_open_epoch_and_all_data_taken_by_tcp)
{
	struct afr_tx tx = tx_of(RING, RING, 10, 4);

	EXPECT(!afr_tx_may_move(&tx));
	afr_tx_open(&tx);
	EXPECT(!afr_tx_may_move(&tx));
	afr_tx_tcp_accepted(&tx, 3);
	EXPECT(!afr_tx_may_move(&tx));
	afr_tx_tcp_accepted(&tx, 1);
	EXPECT(afr_tx_may_move(&tx));
	afr_tx_move(&tx);
	EXPECT(!afr_tx_may_move(&tx));
}

TEST(tx_may_move__not_when_the_whole_stream_is_sent)
{
	struct afr_tx tx = tx_of(RING, RING, 10, 10);

	afr_tx_tcp_accepted(&tx, 10);
	afr_tx_open(&tx);
	EXPECT(afr_tx_may_move(&tx));
	afr_tx_fin(&tx);
	EXPECT(!afr_tx_may_move(&tx));
}

TEST(tx_move__starts_at_sent)
{
	struct afr_tx tx = tx_on_link();

	EXPECT_EQ(tx.start, 100);
	EXPECT_EQ(tx.where, AFR_ON_LINK);
	EXPECT_EQ(afr_tx_ready(&tx), 100);
}

TEST(tx_leave__holds_only_what_had_entered)
{
	struct afr_tx tx = tx_on_link();

	afr_tx_leave(&tx);
	EXPECT_EQ(tx.where, AFR_SUSPENDED);
	afr_tx_leave(&tx);
	EXPECT_EQ(tx.where, AFR_SUSPENDED);

	tx = tx_of(RING, RING, 10, 0);
	afr_tx_open(&tx);
	afr_tx_leave(&tx);
	EXPECT_EQ(tx.where, AFR_ON_TCP);
	EXPECT_EQ(afr_tx_ready(&tx), 10);
}

TEST(tx_resume__goes_on_at_x)
{
	struct afr_tx tx = tx_on_link();

	afr_tx_leave(&tx);
	EXPECT_EQ(afr_tx_resume(&tx, 1, 300, 200), 0);
	EXPECT_EQ(tx.where, AFR_ON_TCP);
	EXPECT_EQ(tx.sent, 300);
	EXPECT_EQ(tx.una, 300);
	EXPECT_EQ(tx.consumed, 200);
	EXPECT_EQ(afr_tx_ready(&tx), 300);
}

TEST(tx_resume__goes_on_at_s_when_x_is_below)
{
	struct afr_tx tx = tx_on_link();

	afr_tx_leave(&tx);
	EXPECT_EQ(afr_tx_resume(&tx, 1, 40, 30), 0);
	EXPECT_EQ(tx.sent, 100);
	EXPECT_EQ(tx.consumed, 30);
}

TEST(tx_resume__implies_leave)
{
	struct afr_tx tx = tx_on_link();

	EXPECT_EQ(afr_tx_resume(&tx, 1, 500, 500), 0);
	EXPECT(!tx.open);
	EXPECT_EQ(tx.where, AFR_ON_TCP);
	EXPECT_EQ(tx.sent, 500);
}

TEST(tx_resume__outside_what_is_held)
{
	struct afr_tx tx = tx_on_link();

	afr_tx_credit(&tx, 300);
	TX_REFUSES(tx, afr_tx_resume(&tx, 1, 299, 0), RESUME_BAD);
	TX_REFUSES(tx, afr_tx_resume(&tx, 1, 501, 0), RESUME_BAD);
	TX_REFUSES(tx, afr_tx_resume(&tx, 1, HUGE, 0), RESUME_BAD);
	TX_REFUSES(tx, afr_tx_resume(&tx, 1, 400, 401), RESUME_BAD);
	EXPECT_EQ(afr_tx_resume(&tx, 1, 300, 300), 0);
}

TEST(tx_resume__twice)
{
	struct afr_tx tx = tx_on_link();

	afr_tx_leave(&tx);
	EXPECT_EQ(afr_tx_resume(&tx, 1, 200, 100), 0);
	afr_tx_sent(&tx, 250);
	afr_tx_tcp_accepted(&tx, 250);
	EXPECT_EQ(afr_tx_resume(&tx, 1, 200, 150), 0);
	EXPECT_EQ(tx.sent, 450);
	EXPECT_EQ(tx.consumed, 150);
}

TEST(tx_resume__of_another_epoch_tells_only_consumed)
{
	struct afr_tx tx = tx_on_link();

	EXPECT_EQ(afr_tx_resume(&tx, 2, 200, 150), 0);
	EXPECT(tx.where == AFR_ON_LINK && tx.open && tx.sent == 500);
	EXPECT_EQ(tx.consumed, 150);
	EXPECT_EQ(afr_tx_resume(&tx, 7, 200, HUGE), 0);
	EXPECT_EQ(tx.consumed, 150);
}

TEST(tx_resume__before_the_direction_entered)
{
	struct afr_tx tx = tx_of(RING, RING, 300, 200);

	afr_tx_open(&tx);
	EXPECT_EQ(afr_tx_resume(&tx, 1, 90, 80), 0);
	EXPECT(!tx.open);
	EXPECT_EQ(tx.sent, 200);
	EXPECT_EQ(tx.consumed, 80);
}

TEST(tx_fin__idempotent)
{
	struct afr_tx tx = tx_of(RING, RING, 300, 200);

	afr_tx_fin(&tx);
	EXPECT_EQ(tx.fin, 300);
	afr_tx_fin(&tx);
	EXPECT_EQ(tx.fin, 300);
}

TEST(tx_finack__frees_everything)
{
	struct afr_tx tx = tx_on_link();

	afr_tx_sent(&tx, 100);
	afr_tx_fin(&tx);
	EXPECT_EQ(afr_tx_finack(&tx, 600), 0);
	EXPECT(tx.finacked);
	EXPECT_EQ(afr_tx_space(&tx), RING);
	EXPECT_EQ(afr_tx_ready(&tx), 0);
	EXPECT_EQ(afr_tx_finack(&tx, 600), 0);
}

/* A suspended direction does not need RESUME after FINACK (PE2). */
TEST(tx_finack__ends_a_suspension)
{
	struct afr_tx tx = tx_on_link();

	afr_tx_sent(&tx, 100);
	afr_tx_fin(&tx);
	afr_tx_leave(&tx);
	EXPECT_EQ(afr_tx_finack(&tx, 600), 0);
	EXPECT_EQ(tx.where, AFR_ON_TCP);
	EXPECT_EQ(afr_tx_resume(&tx, 1, 600, 600), 0);
	EXPECT_EQ(tx.sent, 600);
}

TEST(tx_finack__of_what_was_not_named_or_not_sent)
{
	struct afr_tx tx = tx_on_link();

	TX_REFUSES(tx, afr_tx_finack(&tx, 600), FINACK_BAD);
	TX_REFUSES(tx, afr_tx_finack(&tx, AFR_NO_FIN), FINACK_BAD);
	afr_tx_fin(&tx);
	TX_REFUSES(tx, afr_tx_finack(&tx, 600), FINACK_BAD);
	afr_tx_sent(&tx, 100);
	TX_REFUSES(tx, afr_tx_finack(&tx, 599), FINACK_BAD);
	EXPECT_EQ(afr_tx_finack(&tx, 600), 0);
}
