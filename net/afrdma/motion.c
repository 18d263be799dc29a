// SPDX-License-Identifier: GPL-2.0
/*
 * The books of one direction: see motion.h for what they mean, and the protocol
 * model for why each rule is needed. Rule labels (PM, PC, PE) are the model's.
 *
 * Offsets that come from the peer are at most 2^62 (frame.h), and every check
 * subtracts only what was compared before, so nothing here overflows.
 */
#include "motion.h"
#include "cursor.h"
#include "wire.h"

#ifdef AFR_DEBUG_CHECKS
#ifdef __KERNEL__
#include <linux/bug.h>
#define CHECK(ok)	WARN_ON_ONCE(!(ok))
#elif !defined(CHECK)
#define CHECK(ok)	assert(ok)
#endif

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

/**
 * afr_rx_sane() - do the receiver's books hold together
 * @rx: the books
 *
 * Returns: true if every relation promised in motion.h holds (I1 to I4).
 */
bool afr_rx_sane(const struct afr_motion_rx *rx)
{
	if (rx->consumed > rx->visible || rx->visible - rx->consumed > rx->ring)
		return false;
	if (rx->reported > rx->consumed || rx->visible > rx->fin)
		return false;
	if (!rx->open && (rx->moved || rx->landed))
		return false;
	if (rx->moved && rx->visible != rx->start + rx->landed)
		return false;
	return !rx->eof_told || rx->visible == rx->fin;
}
#else
#define CHECK(ok)	((void)0)
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
	CHECK(afr_tx_sane(tx));
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
	CHECK(afr_tx_sane(tx));
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
	return min((u32)(tx->written - tx->sent), window_left(tx));
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
	if (tx->written > tx->sent)
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
	CHECK(afr_tx_sane(tx));
}

/**
 * afr_tx_taken() - TCP took promised bytes and answers for them from here on
 * @tx: the books, where is AFR_ON_TCP
 * @len: how many, at most sent - una
 */
void afr_tx_taken(struct afr_motion_tx *tx, u32 len)
{
	tx->una += len;
	CHECK(afr_tx_sane(tx));
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
	CHECK(afr_tx_sane(tx));
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
	tx->start = tx->sent;
	CHECK(afr_tx_sane(tx));
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
	CHECK(afr_tx_sane(tx));
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
		CHECK(afr_tx_sane(tx));
		return 0;
	}
	if (next < tx->una || next > tx->sent || consumed > received)
		return AFR_REASON_RESUME_BAD;

	tx->open = false;
	tx->where = AFR_ON_TCP;
	tx->una = next;
	tx->sent = next;
	learn_consumed(tx, consumed);
	CHECK(afr_tx_sane(tx));
	return 0;
}

/**
 * afr_tx_fin() - the application ends the stream
 * @tx: the books
 */
void afr_tx_fin(struct afr_motion_tx *tx)
{
	tx->fin = tx->written;
	CHECK(afr_tx_sane(tx));
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
	CHECK(afr_tx_sane(tx));
	return 0;
}

/**
 * afr_rx_init() - books of a direction nothing was received in
 * @rx: the books
 * @ring: size of the receive ring, as told in HELLO
 */
void afr_rx_init(struct afr_motion_rx *rx, u32 ring)
{
	memset(rx, 0, sizeof(*rx));
	rx->fin = AFR_NO_FIN;
	rx->ring = ring;
}

/* May @len bytes stand from @from on, which is at least consumed? */
static int room_for(const struct afr_motion_rx *rx, u64 from, u64 len)
{
	u64 ahead = from - rx->consumed;

	if (len > rx->fin || from > rx->fin - len)
		return AFR_REASON_DATA_AFTER_FIN;
	if (ahead > rx->ring || len > rx->ring - ahead)
		return AFR_REASON_WINDOW_EXCEEDED;
	return 0;
}

/**
 * afr_rx_data() - judge the header of a DATA frame
 * @rx: the books
 * @offset: where it says its bytes are
 * @len: how many
 *
 * Bytes that overtook it on a link the direction is about to enter are above it,
 * and count against the window as well (I1).
 *
 * Returns: 0 if the bytes may be read into the ring, or AFR_REASON_MOVE_DATA,
 * DATA_OFFSET, DATA_AFTER_FIN or WINDOW_EXCEEDED.
 */
int afr_rx_data(const struct afr_motion_rx *rx, u64 offset, u32 len)
{
	if (rx->moved)
		return AFR_REASON_MOVE_DATA;
	if (offset != rx->visible)
		return AFR_REASON_DATA_OFFSET;
	return room_for(rx, offset, len + rx->landed);
}

/**
 * afr_rx_arrived() - bytes announced by DATA are in the ring
 * @rx: the books
 * @len: how many of them
 */
void afr_rx_arrived(struct afr_motion_rx *rx, u32 len)
{
	rx->visible += len;
	CHECK(afr_rx_sane(rx));
}

/**
 * afr_rx_open() - begin an epoch
 * @rx: the books, no epoch open
 * @epoch: what afr_tx_open() returned at this end
 */
void afr_rx_open(struct afr_motion_rx *rx, u32 epoch)
{
	rx->epoch = epoch;
	rx->open = true;
	rx->moved = false;
	rx->landed = 0;
}

/**
 * afr_rx_landed() - a write landed in the ring
 * @rx: the books
 * @epoch: of the slot it came for
 * @len: its bytes; 0 for a credit alone
 *
 * The completion says how much, never where: that follows from S and from what
 * landed before in this epoch (PM1). Of a closed epoch it is neither bytes nor
 * anything else (PM3).
 *
 * Returns: 0, or AFR_REASON_WINDOW_EXCEEDED or DATA_AFTER_FIN.
 */
int afr_rx_landed(struct afr_motion_rx *rx, u32 epoch, u32 len)
{
	u64 waiting = rx->moved ? 0 : rx->landed;
	int bad;

	if (!rx->open || epoch != rx->epoch || !len)
		return 0;
	bad = room_for(rx, rx->visible, waiting + len);
	if (bad)
		return bad;

	rx->landed += len;
	if (rx->moved)
		rx->visible += len;
	CHECK(afr_rx_sane(rx));
	return 0;
}

/**
 * afr_rx_move() - the direction has entered the link
 * @rx: the books
 * @epoch: which
 * @start: S, the first offset that travels there
 *
 * A MOVE that arrives after its link was closed says nothing any more (PM2).
 *
 * Returns: 0, or AFR_REASON_MOVE_BAD, WINDOW_EXCEEDED or DATA_AFTER_FIN.
 */
int afr_rx_move(struct afr_motion_rx *rx, u32 epoch, u64 start)
{
	int bad;

	if (epoch < rx->epoch || (epoch == rx->epoch && !rx->open))
		return 0;
	if (epoch != rx->epoch || rx->moved || start != rx->visible)
		return AFR_REASON_MOVE_BAD;
	bad = room_for(rx, start, rx->landed);
	if (bad)
		return bad;

	rx->moved = true;
	rx->start = start;
	rx->visible = start + rx->landed;
	CHECK(afr_rx_sane(rx));
	return 0;
}

static void tell(struct afr_motion_rx *rx, u64 cursor)
{
	if (cursor <= rx->reported)
		return;
	rx->reported = cursor;
	rx->blocked = false;
}

/**
 * afr_rx_close() - close the books of the current epoch
 * @rx: the books
 *
 * Only when nothing can land any more: the link is fenced and drained (PM3), or
 * the writer's DETACH was polled (PM7). What landed without its MOVE is dropped,
 * the sender goes on at S. The caller sends RESUME in every case: this counts
 * consumed as told (PC7).
 *
 * Returns: X for RESUME.
 */
u64 afr_rx_close(struct afr_motion_rx *rx)
{
	rx->open = false;
	rx->moved = false;
	rx->landed = 0;
	tell(rx, rx->consumed);
	CHECK(afr_rx_sane(rx));
	return rx->visible;
}

/**
 * afr_rx_fin() - the stream ends
 * @rx: the books
 * @end: its length; DATA and writes below it may still come (PE1)
 *
 * Returns: 0, or AFR_REASON_FIN_BAD below what was received, or for another end
 * than was named before.
 */
int afr_rx_fin(struct afr_motion_rx *rx, u64 end)
{
	u64 waiting = rx->moved ? 0 : rx->landed;

	if (rx->fin != AFR_NO_FIN)
		return end == rx->fin ? 0 : AFR_REASON_FIN_BAD;
	if (end < rx->visible + waiting)
		return AFR_REASON_FIN_BAD;

	rx->fin = end;
	CHECK(afr_rx_sane(rx));
	return 0;
}

/**
 * afr_rx_finack_due() - must FINACK be sent now
 * @rx: the books
 *
 * At received, not at consumed: a sleeping reader must not keep the sender's ring
 * alive (PE2).
 *
 * Returns: true once, when all bytes up to fin are here.
 */
bool afr_rx_finack_due(struct afr_motion_rx *rx)
{
	if (rx->eof_told || rx->visible != rx->fin)
		return false;
	rx->eof_told = true;
	return true;
}

/**
 * afr_rx_lowat_max() - most unread bytes a reader may wait for
 * @rx: the books
 *
 * The sender's ring may be as small as AFR_RING_MIN, its writers sleep while less
 * than a third of it is free (afr_tx_writable()), and it sees the cursor rounded down
 * by less than a unit (PC5).
 *
 * Returns: the bound for SO_RCVLOWAT and for what MSG_PEEK waits for.
 */
u32 afr_rx_lowat_max(const struct afr_motion_rx *rx)
{
	return AFR_RING_MIN - AFR_RING_MIN / 3 - afr_cursor_unit(rx->ring) + 1;
}

/**
 * afr_rx_eof() - has the reader consumed everything there will ever be
 * @rx: the books
 *
 * Returns: true at the end of the stream, which only FIN can tell (PE1).
 */
bool afr_rx_eof(const struct afr_motion_rx *rx)
{
	return rx->consumed == rx->fin;
}

/**
 * afr_rx_readable() - bytes the reader may take
 * @rx: the books
 *
 * Returns: bytes from rx->consumed on.
 */
u32 afr_rx_readable(const struct afr_motion_rx *rx)
{
	return rx->visible - rx->consumed;
}

/**
 * afr_rx_consume() - the reader took bytes
 * @rx: the books
 * @len: how many, at most afr_rx_readable()
 */
void afr_rx_consume(struct afr_motion_rx *rx, u32 len)
{
	rx->consumed += len;
	CHECK(afr_rx_sane(rx));
}

/**
 * afr_rx_blocked() - the sender said BLOCKED
 * @rx: the books
 */
void afr_rx_blocked(struct afr_motion_rx *rx)
{
	rx->blocked = true;
}

/* The reader's cursor as an immediate can tell it: rounded down (PC5). */
static u64 rounded(const struct afr_motion_rx *rx)
{
	return rx->consumed - rx->consumed % afr_cursor_unit(rx->ring);
}

/**
 * afr_rx_credit_due() - is it time for a message to tell the sender
 * @rx: the books
 * @imm: news travels by immediate; else by CREDIT. One channel per epoch (PC3)
 *
 * Half the ring alone would deadlock with a reader that waits for more than half,
 * so a blocked sender is told of less (PC6).
 *
 * Returns: true if afr_rx_report_imm() or afr_rx_report() should follow.
 */
bool afr_rx_credit_due(const struct afr_motion_rx *rx, bool imm)
{
	u64 cursor = imm ? rounded(rx) : rx->consumed;
	u64 news;

	if (cursor <= rx->reported)
		return false;
	news = cursor - rx->reported;
	if (news >= rx->ring / 2)
		return true;
	/* A rounded cursor that differs is a unit by itself. */
	return rx->blocked && (imm || news >= afr_cursor_unit(rx->ring));
}

/**
 * afr_rx_report() - tell the sender by CREDIT, or inside ATTACH or ATTACHED
 * @rx: the books
 *
 * Returns: the cursor to send.
 */
u64 afr_rx_report(struct afr_motion_rx *rx)
{
	tell(rx, rx->consumed);
	CHECK(afr_rx_sane(rx));
	return rx->consumed;
}

/**
 * afr_rx_report_imm() - tell the sender by an immediate
 * @rx: the books
 *
 * Sample and post in one critical section: a cursor that is overtaken by a newer
 * one runs backwards, which the sender takes for a violation.
 *
 * Returns: the 16 bits to send; with every write, due or not.
 */
u16 afr_rx_report_imm(struct afr_motion_rx *rx)
{
	tell(rx, rounded(rx));
	CHECK(afr_rx_sane(rx));
	return afr_cursor_encode(rx->consumed, rx->ring);
}
