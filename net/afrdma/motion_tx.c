// SPDX-License-Identifier: GPL-2.0
/*
 * The sender's books: see motion.h for what they mean, and the protocol model for
 * why each rule is needed. Rule labels (PM, PC, PE) are the model's.
 *
 * Offsets that come from the peer are at most 2^62 (frame.h), and every check
 * subtracts only what was compared before, so nothing here overflows.
 */
#include "motion.h"
#include "cursor.h"

#ifdef AFR_DEBUG_CHECKS
/**
 * afr_tx_sane() - do the sender's books hold together
 * @tx: the books
 *
 * Returns: true if every relation promised in motion.h holds.
 */
bool afr_tx_sane(const struct afr_motion_tx *tx)
{
	if (tx->una > tx->sent || tx->sent > tx->written)
		return false;
	if (tx->consumed > tx->sent || tx->sent - tx->consumed > tx->window)
		return false;
	if (tx->written - tx->una > tx->ring)
		return false;
	if (tx->fin != AFR_NO_FIN && tx->fin != tx->written)
		return false;
	if (tx->where == AFR_ON_LINK && tx->sent > tx->hold)
		return false;
	if (tx->finacked && (tx->una != tx->fin || tx->where != AFR_ON_TCP))
		return false;

	switch (tx->where) {
	case AFR_ON_TCP:
		return true;
	case AFR_ON_LINK:
		return tx->open && tx->start <= tx->una && tx->consumed <= tx->una;
	case AFR_ON_HOLD:
		return !tx->open && tx->start <= tx->una && tx->consumed <= tx->una;
	}
	return false;
}
#endif

/**
 * afr_tx_init() - books of a direction nothing was sent in
 * @tx: the books
 * @ring: size of the send ring
 * @window: AFR_WINDOW_INITIAL, until the peer's HELLO tells
 */
void afr_tx_init(struct afr_motion_tx *tx, u32 ring, u32 window)
{
	memset(tx, 0, sizeof(*tx));
	tx->fin = AFR_NO_FIN;
	tx->urgent = AFR_NO_URGENT;
	tx->hold = AFR_NO_URGENT;
	tx->ring = ring;
	tx->window = window;
	tx->where = AFR_ON_TCP;
}

/**
 * afr_tx_set_window() - the peer's HELLO came
 * @tx: the books
 * @window: size of its receive ring, at least AFR_WINDOW_INITIAL
 */
void afr_tx_set_window(struct afr_motion_tx *tx, u32 window)
{
	tx->window = window;
	AFR_CHECK(afr_tx_sane(tx));
}

/**
 * afr_tx_space() - room for the application
 * @tx: the books
 *
 * Returns: free bytes of the send ring.
 */
u32 afr_tx_space(const struct afr_motion_tx *tx)
{
	return tx->ring - (u32)(tx->written - tx->una);
}

/**
 * afr_tx_write() - the application handed over bytes, they are in the send ring
 * @tx: the books, fin not yet set
 * @len: how many, at most afr_tx_space()
 */
void afr_tx_write(struct afr_motion_tx *tx, u32 len)
{
	tx->written += len;
	AFR_CHECK(afr_tx_sane(tx));
}

/**
 * afr_tx_urgent() - the last byte written is urgent
 * @tx: the books, something was written
 *
 * Bytes that are held back already stay so: those behind them, too.
 */
void afr_tx_urgent(struct afr_motion_tx *tx)
{
	tx->urgent = tx->written - 1;
	if (tx->where == AFR_ON_LINK && tx->hold == AFR_NO_URGENT)
		tx->hold = tx->urgent;
	AFR_CHECK(afr_tx_sane(tx));
}

/**
 * afr_tx_urgent_ack() - the peer knows of an urgent byte
 * @tx: the books
 * @offset: which; of a later one it may not know yet
 */
void afr_tx_urgent_ack(struct afr_motion_tx *tx, u64 offset)
{
	if (tx->hold != AFR_NO_URGENT && offset >= tx->hold)
		tx->hold = offset < tx->urgent ? tx->urgent : AFR_NO_URGENT;
	AFR_CHECK(afr_tx_sane(tx));
}

static u64 may_go(const struct afr_motion_tx *tx)
{
	return tx->where == AFR_ON_LINK ? min(tx->written, tx->hold) : tx->written;
}

static u32 window_left(const struct afr_motion_tx *tx)
{
	return tx->window - (u32)(tx->sent - tx->consumed);
}

/**
 * afr_tx_ready() - bytes that may be promised now on the path the direction is on
 * @tx: the books
 *
 * Both paths obey the peer's window (PC1, PC2): a parser that had to stop at
 * DATA would also stop at the CREDIT or RESUME behind it.
 *
 * Returns: bytes, 0 on hold or without window.
 */
u32 afr_tx_ready(const struct afr_motion_tx *tx)
{
	if (tx->where == AFR_ON_HOLD)
		return 0;
	return min((u32)(may_go(tx) - tx->sent), window_left(tx));
}

/**
 * afr_tx_writable() - is there enough room to wake a writer for
 * @tx: the books
 *
 * A third of the ring, as TCP does, so that writers are not woken for crumbs. One
 * definition: whoever waits for more than afr_tx_blocked() knows of waits for ever.
 *
 * Returns: true if a sleeping writer or poller is to be woken.
 */
bool afr_tx_writable(const struct afr_motion_tx *tx)
{
	return afr_tx_space(tx) >= tx->ring / 3;
}

/**
 * afr_tx_blocked() - can only the peer's reader bring us on
 * @tx: the books
 *
 * While true the peer must be told once by BLOCKED for each value of
 * tx->consumed, or it may wait for half a ring to be read while its reader waits
 * for more than is there (PC6). On a link that holds for a full send ring as
 * well: one of less than half the peer's would never be freed (PM6).
 *
 * Returns: true if nothing may be sent, and bytes wait for window or writers for
 * room on a link.
 */
bool afr_tx_blocked(const struct afr_motion_tx *tx)
{
	if (tx->where == AFR_ON_HOLD || afr_tx_ready(tx))
		return false;
	if (may_go(tx) > tx->sent)
		return true;
	return tx->where == AFR_ON_LINK && tx->fin == AFR_NO_FIN && !afr_tx_writable(tx);
}

/**
 * afr_tx_sent() - bytes were promised on the path
 * @tx: the books
 * @len: how many, at most afr_tx_ready()
 */
void afr_tx_sent(struct afr_motion_tx *tx, u32 len)
{
	tx->sent += len;
	AFR_CHECK(afr_tx_sane(tx));
}

/**
 * afr_tx_taken() - TCP took promised bytes and answers for them from here on
 * @tx: the books, where is AFR_ON_TCP
 * @len: how many, at most sent - una
 */
void afr_tx_taken(struct afr_motion_tx *tx, u32 len)
{
	tx->una += len;
	AFR_CHECK(afr_tx_sane(tx));
}

/* Off TCP the peer's cursor, never our own completion, frees the ring (PM6). */
static void learn_consumed(struct afr_motion_tx *tx, u64 consumed)
{
	if (consumed <= tx->consumed)
		return;
	tx->consumed = consumed;
	if (tx->where != AFR_ON_TCP)
		tx->una = max(tx->una, consumed);
}

/**
 * afr_tx_credit() - the peer told how far its reader has come
 * @tx: the books
 * @consumed: absolute cursor; less than what is known is old news
 *
 * Returns: 0, or AFR_REASON_CREDIT_BAD beyond what was sent (I1, I2).
 */
int afr_tx_credit(struct afr_motion_tx *tx, u64 consumed)
{
	if (consumed > tx->sent)
		return AFR_REASON_CREDIT_BAD;
	learn_consumed(tx, consumed);
	AFR_CHECK(afr_tx_sane(tx));
	return 0;
}

/**
 * afr_tx_credit_imm() - the same by the 16 bits of an immediate
 * @tx: the books
 * @cursor: from an immediate of the current epoch; the caller drops those that
 *	came for the slot of another epoch
 *
 * With at most 2^14 units outstanding, an honest value is never ambiguous and
 * three forged ones of four are found out (PC4). Once the epoch is closed its
 * cursors may be older than what RESUME told, and would look like a huge advance
 * (PM3).
 *
 * Returns: 0, or AFR_REASON_CREDIT_BAD beyond what was sent.
 */
int afr_tx_credit_imm(struct afr_motion_tx *tx, u16 cursor)
{
	if (!tx->open)
		return 0;
	return afr_tx_credit(tx, afr_cursor_decode(tx->consumed, cursor, tx->window));
}

/**
 * afr_tx_open() - begin the next epoch
 * @tx: the books
 *
 * The client calls it for the ATTACH it sends, the server for the one it got.
 *
 * Returns: the number of the epoch, or 0 (and nothing changed) while one is open
 * or the direction is still on hold for the last.
 */
u32 afr_tx_open(struct afr_motion_tx *tx)
{
	if (tx->open || tx->where != AFR_ON_TCP)
		return 0;
	tx->open = true;
	return ++tx->epoch;
}

/**
 * afr_tx_may_move() - may this direction enter the link of the current epoch
 * @tx: the books
 *
 * A frame that TCP has taken in part must be finished first, and MOVE queued
 * behind it: the receiver expects to be exactly at S when MOVE arrives.
 *
 * Returns: true if afr_tx_move() may be called.
 */
bool afr_tx_may_move(const struct afr_motion_tx *tx)
{
	return tx->open && tx->where == AFR_ON_TCP && tx->una == tx->sent &&
	       tx->sent != tx->fin;
}

/**
 * afr_tx_move() - enter the link
 * @tx: the books, afr_tx_may_move() is true
 *
 * Returns: S, the first offset that travels on the link.
 */
u64 afr_tx_move(struct afr_motion_tx *tx)
{
	tx->where = AFR_ON_LINK;
	tx->hold = AFR_NO_URGENT;	/* URGENT is on TCP, before MOVE */
	tx->start = tx->sent;
	AFR_CHECK(afr_tx_sane(tx));
	return tx->start;
}

/**
 * afr_tx_leave() - stop using the link of the current epoch
 * @tx: the books
 *
 * For a link that died, or behind the DETACH of a voluntary move (PM7). What
 * was written to the link and not yet consumed stays in the ring until RESUME.
 */
void afr_tx_leave(struct afr_motion_tx *tx)
{
	tx->open = false;
	if (tx->where == AFR_ON_LINK)
		tx->where = AFR_ON_HOLD;
	AFR_CHECK(afr_tx_sane(tx));
}

/**
 * afr_tx_resume() - the peer left a link and told what it has
 * @tx: the books
 * @epoch: which link
 * @received: X, contiguous bytes it holds or has consumed
 * @consumed: its reader's cursor (PC7: repairs a credit lost with the link)
 *
 * Goes on at max(X, S): the DATA below S is still on its way by TCP (PM4). A
 * RESUME that is not awaited rewinds nothing (PM2).
 *
 * Returns: 0, or AFR_REASON_RESUME_BAD if the peer claims what cannot be.
 */
int afr_tx_resume(struct afr_motion_tx *tx, u32 epoch, u64 received, u64 consumed)
{
	u64 next = max(received, tx->start);

	if (epoch != tx->epoch || tx->where == AFR_ON_TCP) {
		if (epoch == tx->epoch)
			tx->open = false;
		if (consumed <= tx->sent)
			learn_consumed(tx, consumed);
		AFR_CHECK(afr_tx_sane(tx));
		return 0;
	}
	if (next < tx->una || next > tx->sent || consumed > received)
		return AFR_REASON_RESUME_BAD;

	tx->open = false;
	tx->where = AFR_ON_TCP;
	tx->una = next;
	tx->sent = next;
	learn_consumed(tx, consumed);
	AFR_CHECK(afr_tx_sane(tx));
	return 0;
}

/**
 * afr_tx_fin() - the application ends the stream
 * @tx: the books
 */
void afr_tx_fin(struct afr_motion_tx *tx)
{
	tx->fin = tx->written;
	AFR_CHECK(afr_tx_sane(tx));
}

/**
 * afr_tx_finack() - the peer has received the whole stream
 * @tx: the books
 * @end: the end it acknowledges
 *
 * Frees everything and ends a wait for RESUME, which may never come: the peer may
 * be done and gone (PE2).
 *
 * Returns: 0, or AFR_REASON_FINACK_BAD for another end, or before all was sent.
 */
int afr_tx_finack(struct afr_motion_tx *tx, u64 end)
{
	if (tx->fin == AFR_NO_FIN || end != tx->fin || tx->sent != tx->fin)
		return AFR_REASON_FINACK_BAD;

	tx->finacked = true;
	tx->where = AFR_ON_TCP;
	tx->una = tx->sent;
	AFR_CHECK(afr_tx_sane(tx));
	return 0;
}
