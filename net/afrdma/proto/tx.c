// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Updates the send sequence state, struct afr_tx of sequence.h, on writes of the program,
 * transmissions, moves between TCP and a link, and reports of the peer. Tells what may be sent.
 * For the rules PM, PC and PE see afrdma-internals.rst.
 *
 * Offsets in the peer's frames are at most 2^62 (frame.c), and are compared with the state before
 * they are stored in it. One member of the state is subtracted from another only if an invariant
 * guarantees that the result is not negative. So nothing here overflows.
 */
#include "cursor.h"
#include "sequence.h"

#ifdef AFR_DEBUG_CHECKS
/**
 * afr_tx_sane() - does every invariant of the send sequence state hold?
 * @tx: send sequence state
 *
 * Context: any, conn->tx.lock held.
 * Return: true if so.
 */
bool afr_tx_sane(const struct afr_tx *tx)
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
	case AFR_SUSPENDED:
		return !tx->open && tx->start <= tx->una && tx->consumed <= tx->una;
	}
	return false;
}
#endif

/**
 * afr_tx_init() - initialise the send sequence state
 * @tx: send sequence state
 * @ring: size of the send ring
 * @window: AFR_WINDOW_INITIAL; the peer's HELLO contains the real one
 *
 * Context: any; nothing else uses @tx yet.
 */
void afr_tx_init(struct afr_tx *tx, u32 ring, u32 window)
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
 * afr_tx_set_window() - set the window that the peer's HELLO contains
 * @tx: send sequence state
 * @window: size of the peer's receive ring, at least AFR_WINDOW_INITIAL
 *
 * Context: any, conn->tx.lock held.
 */
void afr_tx_set_window(struct afr_tx *tx, u32 window)
{
	tx->window = window;
	AFR_CHECK(afr_tx_sane(tx));
}

/**
 * afr_tx_space() - get the free space of the send ring
 * @tx: send sequence state
 *
 * Context: any, conn->tx.lock held.
 * Return: bytes.
 */
u32 afr_tx_space(const struct afr_tx *tx)
{
	return tx->ring - (u32)(tx->written - tx->una);
}

/**
 * afr_tx_write() - account for bytes that the application has written into the send ring
 * @tx: send sequence state, fin is AFR_NO_FIN
 * @len: bytes, at most afr_tx_space()
 *
 * Context: any, conn->tx.lock held.
 */
void afr_tx_write(struct afr_tx *tx, u32 len)
{
	tx->written += len;
	AFR_CHECK(afr_tx_sane(tx));
}

/**
 * afr_tx_urgent() - make the last byte written urgent
 * @tx: send sequence state; the byte has not been sent yet
 *
 * URGENT must reach the peer before the urgent byte does. On TCP, URGENT is written first; on a
 * link, the urgent byte and all bytes behind it are held back until URGENTACK. Bytes that are
 * already held back for an earlier urgent byte, and those behind them, stay held back.
 *
 * Context: any, conn->tx.lock held.
 */
void afr_tx_urgent(struct afr_tx *tx)
{
	tx->urgent = tx->written - 1;
	if (tx->where == AFR_ON_LINK && tx->hold == AFR_NO_URGENT)
		tx->hold = tx->urgent;
	AFR_CHECK(afr_tx_sane(tx));
}

/**
 * afr_tx_urgent_ack() - handle URGENTACK: release bytes that were held back
 * @tx: send sequence state
 * @offset: urgent offset that the peer acknowledges; if the last urgent byte is above it, that
 *	byte and all bytes behind it stay held back
 *
 * Context: any, conn->tx.lock held.
 */
void afr_tx_urgent_ack(struct afr_tx *tx, u64 offset)
{
	if (tx->hold != AFR_NO_URGENT && offset >= tx->hold)
		tx->hold = offset < tx->urgent ? tx->urgent : AFR_NO_URGENT;
	AFR_CHECK(afr_tx_sane(tx));
}

/**
 * afr_tx_urgent_unsent() - is the last urgent byte still to be sent?
 * @tx: send sequence state
 *
 * Context: any, conn->tx.lock held.
 * Return: true if so.
 */
bool afr_tx_urgent_unsent(const struct afr_tx *tx)
{
	return tx->urgent != AFR_NO_URGENT && tx->urgent >= tx->sent;
}

/* Returns the offset up to which the current path may send, if the window allows it. */
static u64 send_limit(const struct afr_tx *tx)
{
	return tx->where == AFR_ON_LINK ? min(tx->written, tx->hold) : tx->written;
}

static u32 window_left(const struct afr_tx *tx)
{
	return tx->window - (u32)(tx->sent - tx->consumed);
}

/**
 * afr_tx_ready() - count the bytes that may be sent now on the current path
 * @tx: send sequence state
 *
 * Both paths obey the peer's window (PC1, PC2). If the TCP path did not, the peer's reader of
 * frames would have to stop at a DATA frame when the receive ring is full, and could not reach a
 * CREDIT or RESUME behind that frame. But on a one-way connection, and for early bytes, frame_tx.c
 * and hello_rx.c pass SND.UNA to afr_tx_credit() as the cursor, so only TCP's window limits this
 * end.
 *
 * Context: any, conn->tx.lock held; without the lock the result is only a hint.
 * Return: bytes; 0 if the direction is suspended or the window is full.
 */
u32 afr_tx_ready(const struct afr_tx *tx)
{
	if (tx->where == AFR_SUSPENDED)
		return 0;
	return min((u32)(send_limit(tx) - tx->sent), window_left(tx));
}

/**
 * afr_tx_writable() - is there enough free space to wake a writer or a poller?
 * @tx: send sequence state
 *
 * The threshold is a third of the ring, as in TCP, so that writers are not woken for a few bytes.
 * No writer may wait for more than a third: when a third is free and all bytes were sent,
 * afr_tx_blocked() is false, so no BLOCKED would be sent, and that writer could wait forever.
 *
 * Context: any, conn->tx.lock held.
 * Return: true if so.
 */
bool afr_tx_writable(const struct afr_tx *tx)
{
	return afr_tx_space(tx) >= tx->ring / 3;
}

/**
 * afr_tx_blocked() - does the direction wait for the peer to report a newer cursor?
 * @tx: send sequence state
 *
 * Each send path checks this after it has sent what it can, and each cursor received restarts the
 * path. While the direction is blocked, the worker sends BLOCKED, but does not repeat it until a
 * frame reports the peer's cursor, or an immediate reports a newer one. Without BLOCKED, a peer
 * that sends no data reports nothing until half of the smaller ring (this end's send ring or the
 * peer's receive ring) has been read, while its reader may wait for more bytes than have arrived
 * (PC6). On a link, a send ring that is too full also blocks the direction: until FIN, only the
 * peer's cursor frees space in that ring (PM6).
 *
 * Context: any, conn->tx.lock held.
 * Return: false if the direction is suspended (it waits for RESUME), or if bytes may be sent now;
 * otherwise true if bytes wait for the window, or if the direction is on a link, has not ended,
 * and has too little free space in its send ring to wake writers (afr_tx_writable()).
 */
bool afr_tx_blocked(const struct afr_tx *tx)
{
	if (tx->where == AFR_SUSPENDED || afr_tx_ready(tx))
		return false;
	if (send_limit(tx) > tx->sent)
		return true;
	return tx->where == AFR_ON_LINK && tx->fin == AFR_NO_FIN && !afr_tx_writable(tx);
}

/**
 * afr_tx_sent() - account for bytes passed to the path: in DATA, as a write, or unframed
 * @tx: send sequence state
 * @len: bytes, at most afr_tx_ready()
 *
 * Bytes go out unframed if a server's program wrote them before the mode was decided, and the
 * direction is about to fall back.
 *
 * Context: any, conn->tx.lock held.
 */
void afr_tx_sent(struct afr_tx *tx, u32 len)
{
	tx->sent += len;
	AFR_CHECK(afr_tx_sane(tx));
}

/**
 * afr_tx_tcp_accepted() - account for bytes of the stream that TCP has accepted
 * @tx: send sequence state; @tx->where is AFR_ON_TCP
 * @len: bytes, at most sent - una
 *
 * TCP delivers them from now on, so the send ring need not hold them. On a link the peer's reports
 * advance SND.UNA instead.
 *
 * Context: any, conn->tx.lock held.
 */
void afr_tx_tcp_accepted(struct afr_tx *tx, u32 len)
{
	tx->una += len;
	AFR_CHECK(afr_tx_sane(tx));
}

/*
 * Applies the peer's cursor. Unless the direction is on TCP, the cursor frees the send ring; a
 * local completion never does (PM6).
 */
static void apply_consumed(struct afr_tx *tx, u64 consumed)
{
	if (consumed <= tx->consumed)
		return;
	tx->consumed = consumed;
	if (tx->where != AFR_ON_TCP)
		tx->una = max(tx->una, consumed);
}

/**
 * afr_tx_credit() - apply a consumer cursor that the peer has reported
 * @tx: send sequence state
 * @consumed: absolute cursor, or SND.UNA if only TCP's window limits this end; ignored if it is not
 *	above the last one
 *
 * Context: any, conn->tx.lock held.
 * Return: 0, or AFR_REASON_CREDIT_BAD if the cursor is above SND.NXT (I2, I4).
 */
int afr_tx_credit(struct afr_tx *tx, u64 consumed)
{
	if (consumed > tx->sent)
		return AFR_REASON_CREDIT_BAD;
	apply_consumed(tx, consumed);
	AFR_CHECK(afr_tx_sane(tx));
	return 0;
}

/**
 * afr_tx_credit_imm() - apply a consumer cursor from an immediate
 * @tx: send sequence state
 * @cursor: 16 bits from an immediate for the channel of the current epoch, which may be closed
 *	already; the link layer passes on no other immediates
 *
 * At most 2^14 units are outstanding, so a correct value is never ambiguous, and three of four
 * forged values are detected (PC4). After the epoch was closed, a late immediate may contain an
 * older cursor than RESUME did. Decoded, that cursor would look like a huge advance, so cursors of
 * a closed epoch are ignored (PM3).
 *
 * Context: any, conn->tx.lock held.
 * Return: 0, or AFR_REASON_CREDIT_BAD if the cursor is above SND.NXT.
 */
int afr_tx_credit_imm(struct afr_tx *tx, u16 cursor)
{
	if (!tx->open)
		return 0;
	return afr_tx_credit(tx, afr_cursor_decode(tx->consumed, cursor, tx->window));
}

/**
 * afr_tx_open() - begin the next epoch
 * @tx: send sequence state
 *
 * The client calls it for the ATTACH that it sends, the server for the ATTACH that it has received.
 *
 * Context: any, conn->tx.lock held.
 * Return: the number of the epoch; 0, and nothing has changed, if an epoch is open or the direction
 * is still suspended for the last one.
 */
u32 afr_tx_open(struct afr_tx *tx)
{
	if (tx->open || tx->where != AFR_ON_TCP)
		return 0;
	tx->open = true;
	return ++tx->epoch;
}

/**
 * afr_tx_may_move() - may this direction enter the link of the current epoch?
 * @tx: send sequence state
 *
 * TCP must first have taken every byte that was put into DATA frames, so that MOVE follows them:
 * when MOVE arrives, RCV.NXT of the receiver must be exactly S. A direction that has sent its whole
 * stream does not move any more.
 *
 * Context: any, conn->tx.lock held.
 * Return: true if afr_tx_move() may be called.
 */
bool afr_tx_may_move(const struct afr_tx *tx)
{
	return tx->open && tx->where == AFR_ON_TCP && tx->una == tx->sent &&
	       tx->sent != tx->fin;
}

/**
 * afr_tx_move() - enter the link
 * @tx: send sequence state, afr_tx_may_move() is true
 *
 * Context: any, conn->tx.lock held.
 * Return: S for the MOVE frame: the first offset that is sent on the link.
 */
u64 afr_tx_move(struct afr_tx *tx)
{
	tx->where = AFR_ON_LINK;
	/*
	 * No byte is held back here: the caller enters the link only after URGENT was written to
	 * TCP. So the peer reads URGENT before MOVE, and its program sees no byte of the link
	 * before MOVE.
	 */
	tx->hold = AFR_NO_URGENT;
	tx->start = tx->sent;
	AFR_CHECK(afr_tx_sane(tx));
	return tx->start;
}

/**
 * afr_tx_leave() - stop using the link of the current epoch
 * @tx: send sequence state
 *
 * There are three cases: the link is lost; the connection has left the link by DETACH (PM7); or the
 * attach fails or is given up. A direction on the link becomes suspended: until RESUME or FINACK,
 * the send ring keeps those bytes from @tx->start (S) on that the peer has not reported as
 * consumed. A direction on TCP stays there.
 *
 * Context: any, conn->tx.lock held.
 */
void afr_tx_leave(struct afr_tx *tx)
{
	tx->open = false;
	if (tx->where == AFR_ON_LINK)
		tx->where = AFR_SUSPENDED;
	AFR_CHECK(afr_tx_sane(tx));
}

/**
 * afr_tx_resume() - handle RESUME: the peer has left the link
 * @tx: send sequence state
 * @epoch: epoch that the peer has closed
 * @received: X, the peer's RCV.NXT
 * @consumed: the peer's consumer cursor (PC7: repairs a credit that was lost with the link)
 *
 * The direction continues on TCP at max(X, S): TCP was given the bytes below S, and delivers them
 * even if X is smaller than S (PM4). The caller need not have called afr_tx_leave() before.
 *
 * If RESUME is of another epoch, or the direction is on TCP, nothing is sent again, and X is not
 * checked (PM2): only @consumed is applied, if it is not above SND.NXT, and the epoch is closed if
 * it is the current one.
 *
 * Context: any, conn->tx.lock held.
 * Return: 0, or AFR_REASON_RESUME_BAD if max(X, S) is not within [SND.UNA, SND.NXT], or @consumed
 * is above X.
 */
int afr_tx_resume(struct afr_tx *tx, u32 epoch, u64 received, u64 consumed)
{
	u64 next = max(received, tx->start);

	if (epoch != tx->epoch || tx->where == AFR_ON_TCP) {
		if (epoch == tx->epoch)
			tx->open = false;
		if (consumed <= tx->sent)
			apply_consumed(tx, consumed);
		AFR_CHECK(afr_tx_sane(tx));
		return 0;
	}
	if (next < tx->una || next > tx->sent || consumed > received)
		return AFR_REASON_RESUME_BAD;

	tx->open = false;
	tx->where = AFR_ON_TCP;
	tx->una = next;
	tx->sent = next;
	apply_consumed(tx, consumed);
	AFR_CHECK(afr_tx_sane(tx));
	return 0;
}

/**
 * afr_tx_fin() - end the stream behind the last byte written
 * @tx: send sequence state
 *
 * Idempotent.
 *
 * Context: any, conn->tx.lock held.
 */
void afr_tx_fin(struct afr_tx *tx)
{
	tx->fin = tx->written;
	AFR_CHECK(afr_tx_sane(tx));
}

/**
 * afr_tx_finack() - handle FINACK: the peer has received the whole stream
 * @tx: send sequence state
 * @end: end of the stream that the peer acknowledges
 *
 * Frees the whole send ring, and ends a wait for RESUME, which may never come: the peer may have
 * finished and closed the connection (PE2).
 *
 * Context: any, conn->tx.lock held.
 * Return: 0, or AFR_REASON_FINACK_BAD if @end is not the end of the stream, or not all was sent.
 */
int afr_tx_finack(struct afr_tx *tx, u64 end)
{
	if (tx->fin == AFR_NO_FIN || end != tx->fin || tx->sent != tx->fin)
		return AFR_REASON_FINACK_BAD;

	tx->finacked = true;
	tx->where = AFR_ON_TCP;
	tx->una = tx->sent;
	AFR_CHECK(afr_tx_sane(tx));
	return 0;
}
