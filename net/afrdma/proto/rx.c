// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Updates the receive sequence state, struct afr_rx of sequence.h, when HELLO, a frame or a write
 * of the peer arrives, when the program reads bytes, when the consumer cursor is reported to the
 * sender, and when an epoch begins or ends. Tells when the cursor has to be reported, and when
 * FINACK has to be sent. The counterpart is tx.c.
 */
#include "cursor.h"
#include "sequence.h"
#include "wire.h"

#ifdef AFR_DEBUG_CHECKS
/**
 * afr_rx_sane() - does every invariant of the receive sequence state hold (I1, I4, I5)?
 * @rx: receive sequence state
 *
 * Context: any, conn->rx.lock held.
 * Return: true if so.
 */
bool afr_rx_sane(const struct afr_rx *rx)
{
	if (rx->consumed > rx->visible || rx->visible - rx->consumed > rx->ring)
		return false;
	if (rx->reported > rx->consumed || rx->visible > rx->fin)
		return false;
	if (!rx->open && (rx->moved || rx->landed))
		return false;
	if (rx->moved && rx->visible != rx->start + rx->landed)
		return false;
	return !rx->finack_requested || rx->visible == rx->fin;
}
#endif

/**
 * afr_rx_init() - initialise the receive sequence state
 * @rx: receive sequence state
 * @ring: size of the receive ring, which the local HELLO reports to the peer
 *
 * Context: any; nothing else uses @rx yet.
 */
void afr_rx_init(struct afr_rx *rx, u32 ring)
{
	memset(rx, 0, sizeof(*rx));
	rx->fin = AFR_NO_FIN;
	rx->ring = ring;
	rx->peer_ring = AFR_RING_MIN;
}

/*
 * Checks @len bytes at @from, which is not below consumed, against window and FIN. Returns 0 or an
 * AFR_REASON_*.
 */
static int check_space(const struct afr_rx *rx, u64 from, u64 len)
{
	u64 ahead = from - rx->consumed;

	if (len > rx->fin || from > rx->fin - len)
		return AFR_REASON_DATA_AFTER_FIN;
	if (ahead > rx->ring || len > rx->ring - ahead)
		return AFR_REASON_WINDOW_EXCEEDED;
	return 0;
}

/**
 * afr_rx_data() - check the header of a DATA frame
 * @rx: receive sequence state
 * @offset: offset in the header
 * @len: bytes of the stream in the frame
 *
 * If the sender has moved the direction to a link, but its MOVE was not read yet, its writes may
 * have overtaken this frame. In the stream, their bytes follow those of the frame, so they count
 * against window and FIN, too (I1).
 *
 * Context: any, conn->rx.lock held.
 * Return: 0 if the bytes may be read into the ring, or AFR_REASON_MOVE_DATA, DATA_OFFSET,
 * DATA_AFTER_FIN or WINDOW_EXCEEDED.
 */
int afr_rx_data(const struct afr_rx *rx, u64 offset, u32 len)
{
	if (rx->moved)
		return AFR_REASON_MOVE_DATA;
	if (offset != rx->visible)
		return AFR_REASON_DATA_OFFSET;
	return check_space(rx, offset, len + rx->landed);
}

/**
 * afr_rx_data_received() - account for bytes of a DATA frame that were read into the ring
 * @rx: receive sequence state
 * @len: bytes, which need not be all of the frame
 *
 * Context: any, conn->rx.lock held.
 */
void afr_rx_data_received(struct afr_rx *rx, u32 len)
{
	rx->visible += len;
	AFR_CHECK(afr_rx_sane(rx));
}

/**
 * afr_rx_open() - begin an epoch
 * @rx: receive sequence state, no epoch open
 * @epoch: result of afr_tx_open() at this end
 *
 * Context: any, conn->rx.lock held.
 */
void afr_rx_open(struct afr_rx *rx, u32 epoch)
{
	rx->epoch = epoch;
	rx->open = true;
	rx->moved = false;
	rx->landed = 0;
}

/**
 * afr_rx_write_received() - account for a write of the peer into the ring
 * @rx: receive sequence state
 * @epoch: epoch whose ATTACH or ATTACHED gave the peer the channel id that the immediate names
 * @len: bytes of the write; 0 if it carries only a cursor
 *
 * A write arrives with its length but without its offset. The offset follows from S and from the
 * bytes that were written before in this epoch (PM1), so until MOVE has come, the bytes are only
 * counted. Completions of a closed epoch are ignored (PM3).
 *
 * Context: any, conn->rx.lock held.
 * Return: 0, or AFR_REASON_WINDOW_EXCEEDED or DATA_AFTER_FIN.
 */
int afr_rx_write_received(struct afr_rx *rx, u32 epoch, u32 len)
{
	u64 waiting = rx->moved ? 0 : rx->landed;
	int bad;

	if (!rx->open || epoch != rx->epoch || !len)
		return 0;
	bad = check_space(rx, rx->visible, waiting + len);
	if (bad)
		return bad;

	rx->landed += len;
	if (rx->moved)
		rx->visible += len;
	AFR_CHECK(afr_rx_sane(rx));
	return 0;
}

/**
 * afr_rx_move() - handle MOVE: the direction has entered the link
 * @rx: receive sequence state
 * @epoch: epoch in the frame
 * @start: S, the first offset that is sent on the link
 *
 * A MOVE of an epoch that is already closed is ignored (PM2).
 *
 * Context: any, conn->rx.lock held.
 * Return: 0, or AFR_REASON_MOVE_BAD, WINDOW_EXCEEDED or DATA_AFTER_FIN.
 */
int afr_rx_move(struct afr_rx *rx, u32 epoch, u64 start)
{
	int bad;

	if (epoch < rx->epoch || (epoch == rx->epoch && !rx->open))
		return 0;
	if (epoch != rx->epoch || rx->moved || start != rx->visible)
		return AFR_REASON_MOVE_BAD;
	bad = check_space(rx, start, rx->landed);
	if (bad)
		return bad;

	rx->moved = true;
	rx->start = start;
	rx->visible = start + rx->landed;
	AFR_CHECK(afr_rx_sane(rx));
	return 0;
}

/*
 * If @cursor is above the last cursor reported, counts it as reported to the sender; that also
 * answers an earlier BLOCKED. Otherwise does nothing: the BLOCKED stays unanswered.
 */
static void mark_reported(struct afr_rx *rx, u64 cursor)
{
	if (cursor <= rx->reported)
		return;
	rx->reported = cursor;
	rx->blocked = false;
}

/**
 * afr_rx_close() - close the current epoch
 * @rx: receive sequence state
 *
 * Called only when no write is awaited any more: the link is fenced and drained (PM3), the
 * writer's DETACH was polled (PM7), the attach failed, or a client has given up waiting for
 * ATTACHED. A connection that has ended or was aborted waits for the writer's DETACH no longer
 * than detach_timeout_ms. Bytes that landed without their MOVE are dropped: the sender continues
 * at S.
 *
 * The consumer cursor counts as reported from now on (PC7), so the caller sends RESUME, or CREDIT
 * if the peer never used the epoch; for exceptions see sequence.h. RESUME is built later, from
 * visible and consumed as they are then: by that time more DATA may have arrived on TCP and been
 * read.
 *
 * Context: any, conn->rx.lock held.
 * Return: X, the received offset that a RESUME written at once would contain.
 */
u64 afr_rx_close(struct afr_rx *rx)
{
	rx->open = false;
	rx->moved = false;
	rx->landed = 0;
	mark_reported(rx, rx->consumed);
	AFR_CHECK(afr_rx_sane(rx));
	return rx->visible;
}

/**
 * afr_rx_fin() - handle FIN: the end of the stream is known
 * @rx: receive sequence state
 * @end: length of the stream; DATA and writes below it may still arrive (PE1)
 *
 * Context: any, conn->rx.lock held.
 * Return: 0, or AFR_REASON_FIN_BAD if @end is below what was received (including writes whose MOVE
 * has not come), or differs from that of an earlier FIN.
 */
int afr_rx_fin(struct afr_rx *rx, u64 end)
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
 * afr_rx_finack_due() - should FINACK be sent now?
 * @rx: receive sequence state
 *
 * FINACK is sent when all bytes are received, not when they are consumed: a sleeping reader must
 * not keep the sender's ring in use (PE2).
 *
 * Context: any, conn->rx.lock held.
 * Return: true once, when all bytes up to fin have been received.
 */
bool afr_rx_finack_due(struct afr_rx *rx)
{
	if (rx->finack_requested || rx->visible != rx->fin)
		return false;
	rx->finack_requested = true;
	return true;
}

/**
 * afr_rx_set_peer_ring() - set the size of the sender's ring, from HELLO
 * @rx: receive sequence state
 * @ring: a power of two, at least AFR_RING_MIN, which is assumed before HELLO
 *
 * Context: any, conn->rx.lock held.
 */
void afr_rx_set_peer_ring(struct afr_rx *rx, u32 ring)
{
	rx->peer_ring = ring;
}

/**
 * afr_rx_lowat_max() - get the largest number of unread bytes that a reader may wait for
 * @rx: receive sequence state
 *
 * A reader that waits for more might wait forever: the receive ring cannot hold that many bytes, or
 * the peer's writer sleeps before it has written them. On a link, bytes stay in the sender's ring
 * until they are reported as consumed (PM6), and a sleeping writer is woken only when a third of
 * that ring is free (afr_tx_writable()). So the reader can rely on two thirds of that ring only.
 * The sender may also treat consumed bytes, at most one less than a unit, as still in either ring,
 * because immediates round the cursor down (PC5).
 *
 * Context: any; only the ring sizes are read.
 * Return: the limit for SO_RCVLOWAT and for the bytes that MSG_PEEK waits for.
 */
u32 afr_rx_lowat_max(const struct afr_rx *rx)
{
	u32 most = min(rx->ring, rx->peer_ring - rx->peer_ring / 3);

	return most - afr_cursor_unit(rx->ring) + 1;
}

/**
 * afr_rx_eof() - has the reader consumed the whole stream?
 * @rx: receive sequence state
 *
 * Context: any, conn->rx.lock held.
 * Return: true if FIN has come and everything before it was consumed (PE1).
 */
bool afr_rx_eof(const struct afr_rx *rx)
{
	return rx->consumed == rx->fin;
}

/**
 * afr_rx_readable() - count the bytes that the reader may take
 * @rx: receive sequence state
 *
 * Context: any, conn->rx.lock held.
 * Return: bytes from @rx->consumed on.
 */
u32 afr_rx_readable(const struct afr_rx *rx)
{
	return rx->visible - rx->consumed;
}

/**
 * afr_rx_consume() - account for bytes that the reader has taken
 * @rx: receive sequence state
 * @len: bytes, at most afr_rx_readable()
 *
 * Context: any, conn->rx.lock held.
 */
void afr_rx_consume(struct afr_rx *rx, u32 len)
{
	rx->consumed += len;
	AFR_CHECK(afr_rx_sane(rx));
}

/**
 * afr_rx_blocked() - handle BLOCKED: remember it until a newer cursor is reported (PC6)
 * @rx: receive sequence state
 *
 * Context: any, conn->rx.lock held.
 */
void afr_rx_blocked(struct afr_rx *rx)
{
	rx->blocked = true;
}

/* Returns the consumer cursor rounded down to a unit, as an immediate contains it (PC5). */
static u64 rounded(const struct afr_rx *rx)
{
	return rx->consumed - rx->consumed % afr_cursor_unit(rx->ring);
}

/**
 * afr_rx_credit_due() - should the consumer cursor be reported in a message of its own now?
 * @rx: receive sequence state
 * @imm: true: cursors are reported by immediate, rounded down to a unit; false: by CREDIT (PC3)
 *
 * On a link, the smaller one of the sender's ring and the receive ring limits the sender. A report
 * is due when at least half of that size was consumed and not reported. On TCP only the receive
 * ring limits the sender, but the same rule applies. With this rule alone, sender and reader could
 * wait for each other if the reader waits for more than half a ring. So after BLOCKED, a report is
 * due as soon as one unit is consumed (PC6).
 *
 * Context: any, conn->rx.lock held.
 * Return: true if so: the caller posts a write, or requests CREDIT. The cursor is not counted as
 * reported here, but by afr_rx_report_imm(), or by afr_rx_report() when CREDIT is built.
 */
bool afr_rx_credit_due(const struct afr_rx *rx, bool imm)
{
	u64 cursor = imm ? rounded(rx) : rx->consumed;
	u64 news;

	if (cursor <= rx->reported)
		return false;
	news = cursor - rx->reported;
	if (news >= min(rx->ring, rx->peer_ring) / 2)
		return true;
	/* by immediate: the rounded cursor is above the reported one, so a unit was completed */
	return rx->blocked && (imm || news >= afr_cursor_unit(rx->ring));
}

/**
 * afr_rx_report() - get the cursor for CREDIT, RESUME, ATTACH or ATTACHED, count it as reported
 * @rx: receive sequence state
 *
 * Context: any, conn->rx.lock held.
 * Return: the consumer cursor in bytes.
 */
u64 afr_rx_report(struct afr_rx *rx)
{
	mark_reported(rx, rx->consumed);
	AFR_CHECK(afr_rx_sane(rx));
	return rx->consumed;
}

/**
 * afr_rx_report_imm() - get the cursor for the immediate of a write, count it as reported
 * @rx: receive sequence state
 *
 * Every write of a connection carries the cursor, whether a report is due or not. The caller
 * samples the cursor and posts the write in one critical section: if a newer cursor were posted
 * first, the peer would decode the older one as a huge advance, and treat it as a violation.
 *
 * Context: any, conn->rx.lock held.
 * Return: the cursor in 16 bits.
 */
u16 afr_rx_report_imm(struct afr_rx *rx)
{
	mark_reported(rx, rounded(rx));
	AFR_CHECK(afr_rx_sane(rx));
	return afr_cursor_encode(rx->consumed, rx->ring);
}
