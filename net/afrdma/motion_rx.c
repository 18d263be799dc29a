// SPDX-License-Identifier: GPL-2.0
/*
 * The receiver's books: see motion.h for what they mean, and motion_tx.c for the
 * other half.
 */
#include "motion.h"
#include "cursor.h"
#include "wire.h"

#ifdef AFR_DEBUG_CHECKS
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
#endif

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
	rx->peer_ring = AFR_RING_MIN;
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
	AFR_CHECK(afr_rx_sane(rx));
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
	AFR_CHECK(afr_rx_sane(rx));
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
	AFR_CHECK(afr_rx_sane(rx));
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
 * consumed as told (PC7). RESUME tells visible and consumed as they are when it is
 * written: a reader may meanwhile have consumed DATA beyond what was visible here.
 *
 * Returns: X, if RESUME is written at once.
 */
u64 afr_rx_close(struct afr_motion_rx *rx)
{
	rx->open = false;
	rx->moved = false;
	rx->landed = 0;
	tell(rx, rx->consumed);
	AFR_CHECK(afr_rx_sane(rx));
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
	AFR_CHECK(afr_rx_sane(rx));
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
 * afr_rx_set_peer_ring() - HELLO told the size of the sender's ring
 * @rx: the books
 * @ring: a power of two, not below AFR_RING_MIN
 */
void afr_rx_set_peer_ring(struct afr_motion_rx *rx, u32 ring)
{
	rx->peer_ring = ring;
}

/**
 * afr_rx_lowat_max() - most unread bytes a reader may wait for
 * @rx: the books
 *
 * The sender's writers sleep while less than a third of its ring is free
 * (afr_tx_writable()), and it sees the cursor rounded down by less than a unit (PC5).
 *
 * Returns: the bound for SO_RCVLOWAT and for what MSG_PEEK waits for.
 */
u32 afr_rx_lowat_max(const struct afr_motion_rx *rx)
{
	u32 most = min(rx->ring, rx->peer_ring - rx->peer_ring / 3);

	return most - afr_cursor_unit(rx->ring) + 1;
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
	AFR_CHECK(afr_rx_sane(rx));
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
 * At half of the smaller ring, which is what bounds the sender. That alone would deadlock
 * with a reader that waits for more than half, so a blocked sender is told of less (PC6).
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
	if (news >= min(rx->ring, rx->peer_ring) / 2)
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
	AFR_CHECK(afr_rx_sane(rx));
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
	AFR_CHECK(afr_rx_sane(rx));
	return afr_cursor_encode(rx->consumed, rx->ring);
}
