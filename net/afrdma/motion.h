/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The books of one direction of a stream: what was written, sent, received,
 * consumed, and on which path. Moves between paths are rules about offsets and
 * epochs (PM1-PM8, PC1-PC7 and PE1-PE2 of the protocol model); all of them live
 * here, free of locks and of knowledge how a path carries bytes.
 *
 * An epoch is one attach of one link. Both ends number them 1, 2, 3 ... per
 * connection. A direction enters a link by MOVE and leaves it, when the link is
 * lost, by the receiver's RESUME.
 *
 * What the books cannot enforce, and every caller must keep (selftests/unit/model.c
 * shows how each of these fails):
 * - On TCP an end says of one epoch first ATTACH or ATTACHED, then RESUME, and CREDIT
 *   only behind RESUME. Cursors in ATTACH and ATTACHED are sampled by afr_rx_report()
 *   when the epoch is opened, before the first immediate, not when the frame is
 *   written.
 * - From the moment both afr_rx_open() was called and the peer's slot is known,
 *   until afr_rx_close(), news of the reader goes by immediate or not at all.
 * - Every afr_rx_close() is followed by one RESUME, also when an attach was refused.
 *   The client opens the next epoch only when it has written its RESUME for the
 *   last one and has got the peer's.
 * - RESUME has reason 0 when a DETACH was polled: its writer's link lives. With a
 *   reason the link is lost, and its receiver fences and closes too. An end that
 *   said RESUME for a DETACH and then loses the link says so by a second one,
 *   unless the peer's RESUME has come.
 * - An end shuts the inner TCP for writing when its FIN and its FINACK are through and
 *   its DETACH has completed *and* the peer's has been polled, or is not waited for any
 *   longer (detach_timeout_ms), or the link is closed and RESUME written: until then it
 *   may have to say that the link died.
 *
 * Functions that check what the peer said return 0 or the AFR_REASON_* the
 * connection ends with, and change nothing when they refuse.
 * The caller serialises: tx books under the connection's tx lock, rx books under
 * its rx lock.
 */
#ifndef AFR_MOTION_H
#define AFR_MOTION_H

#include "pure.h"
#include "reason.h"

#define AFR_NO_FIN	U64_MAX
#define AFR_NO_URGENT	U64_MAX

/* Where the bytes of a direction go; values as enum afrdma_path of the uapi. */
enum afr_where {
	AFR_ON_TCP,		/* DATA frames */
	AFR_ON_LINK,		/* RDMA writes of the current epoch */
	AFR_ON_HOLD,		/* link lost, waiting for the peer's RESUME */
};

/*
 * Sender's books. Always una <= sent <= written, consumed <= sent,
 * sent <= consumed + window, written - una <= ring.
 */
struct afr_motion_tx {
	u64	written;	/* end of what the application handed over */
	u64	sent;		/* next offset to promise on the path */
	u64	una;		/* lowest offset the send ring still holds */
	u64	consumed;	/* peer's consumer cursor, as told */
	u64	start;		/* S: where this direction entered the current epoch */
	u64	fin;		/* end of the stream, AFR_NO_FIN while it is open */
	u64	urgent;		/* offset of the last urgent byte, AFR_NO_URGENT before one */
	u64	hold;		/* on a link nothing goes from here on, AFR_NO_URGENT = all */
	u32	ring;		/* size of the send ring */
	u32	window;		/* size of the peer's receive ring */
	u32	epoch;		/* current or last epoch, 0 before the first */
	u8	where;		/* enum afr_where */
	bool	open;		/* the current epoch is open */
	bool	finacked;	/* the peer has received everything up to fin */
};

void afr_tx_init(struct afr_motion_tx *tx, u32 ring, u32 window);
/* HELLO told the true size of the peer's ring (never below AFR_WINDOW_INITIAL). */
void afr_tx_set_window(struct afr_motion_tx *tx, u32 window);

/* Free bytes of the send ring. */
u32 afr_tx_space(const struct afr_motion_tx *tx);
/* The application handed over @len bytes (<= space, and only while fin is AFR_NO_FIN). */
void afr_tx_write(struct afr_motion_tx *tx, u32 len);
/*
 * The last byte written is urgent: URGENT has to reach the peer before the byte does.
 * On TCP it is written first; on a link the byte waits until the peer has it.
 */
void afr_tx_urgent(struct afr_motion_tx *tx);
/* URGENTACK(@offset) came. */
void afr_tx_urgent_ack(struct afr_motion_tx *tx, u64 offset);
/* Bytes that may be promised now on the current path: 0 on hold or without window. */
u32 afr_tx_ready(const struct afr_motion_tx *tx);
/* Is there enough free to wake a writer or a poller for? They must not wait for more. */
bool afr_tx_writable(const struct afr_motion_tx *tx);
/*
 * Only the peer's reader can bring us on: there are bytes to send and no window;
 * or, on a link, writers wait for room that nothing but the peer's cursor makes.
 * Say BLOCKED once for each value of @tx->consumed while this is true: to be asked
 * after every post and again after every cursor that came.
 */
bool afr_tx_blocked(const struct afr_motion_tx *tx);
/* @len bytes were promised: put into a DATA frame, or posted as a write. */
void afr_tx_sent(struct afr_motion_tx *tx, u32 len);
/*
 * On TCP: TCP has taken @len promised bytes and answers for them, so the ring
 * need not hold them (una moves). On a link only the peer's cursor moves una.
 */
void afr_tx_taken(struct afr_motion_tx *tx, u32 len);

/*
 * The peer says its reader consumed up to @consumed (older news is ignored):
 * CREDIT_BAD beyond sent.
 */
int afr_tx_credit(struct afr_motion_tx *tx, u64 consumed);
/* The same, told by an immediate of the current epoch (cursor.h); ignored when no epoch is open. */
int afr_tx_credit_imm(struct afr_motion_tx *tx, u16 cursor);

/*
 * The next epoch begins: returns its number. Only while no epoch is open and the
 * direction is on TCP, else 0.
 */
u32 afr_tx_open(struct afr_motion_tx *tx);
/*
 * May this direction enter the link now: epoch open, on TCP, every promised byte
 * taken, not finished.
 */
bool afr_tx_may_move(const struct afr_motion_tx *tx);
/* Enter the link: returns S for the MOVE frame. */
u64 afr_tx_move(struct afr_motion_tx *tx);
/*
 * The link of the current epoch is lost: stop using it. On hold if the direction had
 * entered it, else it stays on TCP.
 */
void afr_tx_leave(struct afr_motion_tx *tx);
/*
 * RESUME(epoch, received, consumed) came. Of another than the current epoch, or
 * the direction is not on that link or on hold for it: only @consumed is taken
 * (if it is plausible) and 0 returned. Otherwise the direction goes on, on TCP,
 * at max(received, S); RESUME_BAD if that is not within [una, sent].
 * Implies afr_tx_leave() when that was not yet called.
 */
int afr_tx_resume(struct afr_motion_tx *tx, u32 epoch, u64 received, u64 consumed);

/* The application ends the stream: fin = written. Idempotent. */
void afr_tx_fin(struct afr_motion_tx *tx);
/*
 * FINACK(@end): FINACK_BAD unless it is our fin and all was sent. Everything is freed,
 * a hold ends (where = TCP, una = sent = written).
 */
int afr_tx_finack(struct afr_motion_tx *tx, u64 end);

/*
 * Receiver's books. Always consumed <= visible <= consumed + ring,
 * reported <= consumed, visible <= fin.
 */
struct afr_motion_rx {
	u64	visible;	/* contiguous bytes received: the reader may go this far */
	u64	consumed;	/* reader's cursor */
	u64	reported;	/* consumed, as last told to the sender */
	u64	start;		/* S of the current epoch, once moved */
	u64	landed;		/* bytes that landed in the current epoch */
	u64	fin;		/* end of the stream, AFR_NO_FIN while unknown */
	u32	ring;		/* size of the receive ring */
	u32	peer_ring;	/* size of the sender's ring: what it can hold unread on a link */
	u32	epoch;		/* current or last epoch, 0 before the first */
	bool	open;		/* the current epoch is open */
	bool	moved;		/* MOVE of the current epoch has come */
	bool	blocked;	/* the sender said BLOCKED and has not been answered */
	bool	eof_told;	/* FINACK was asked for by afr_rx_finack_due() */
};

void afr_rx_init(struct afr_motion_rx *rx, u32 ring);
/*
 * DATA(offset, len) header: DATA_OFFSET, WINDOW_EXCEEDED, DATA_AFTER_FIN, MOVE_DATA or
 * 0: the bytes may be read into the ring.
 */
int afr_rx_data(const struct afr_motion_rx *rx, u64 offset, u32 len);
/* @len of the bytes announced by DATA are in the ring. */
void afr_rx_arrived(struct afr_motion_rx *rx, u32 len);

void afr_rx_open(struct afr_motion_rx *rx, u32 epoch);
/*
 * A write of @len bytes landed on the link of @epoch. Of a closed epoch: ignored.
 * Before MOVE it is only counted. WINDOW_EXCEEDED, DATA_AFTER_FIN or 0.
 */
int afr_rx_landed(struct afr_motion_rx *rx, u32 epoch, u32 len);
/* MOVE(epoch, start): of a closed epoch ignored; MOVE_BAD, WINDOW_EXCEEDED, DATA_AFTER_FIN or 0. */
int afr_rx_move(struct afr_motion_rx *rx, u32 epoch, u64 start);
/*
 * The link of the current epoch is fenced and drained: close the books. Returns X,
 * if RESUME is written at once; consumed is told by RESUME too, so it counts as reported.
 */
u64 afr_rx_close(struct afr_motion_rx *rx);

/* FIN(@end): FIN_BAD below visible (+ what landed), or another end than before. */
int afr_rx_fin(struct afr_motion_rx *rx, u64 end);
/* Everything up to fin has been received, and FINACK not yet asked for: ask once. */
bool afr_rx_finack_due(struct afr_motion_rx *rx);
/*
 * Most unread bytes a reader may wait for (SO_RCVLOWAT, MSG_PEEK): more may never
 * stand unread, since on a link the sender holds every unread byte in its own
 * ring (PC5 and PM6).
 */
u32 afr_rx_lowat_max(const struct afr_motion_rx *rx);
/* HELLO told how large the sender's ring is; AFR_RING_MIN until then. */
void afr_rx_set_peer_ring(struct afr_motion_rx *rx, u32 ring);
/* The reader has consumed everything there will ever be. */
bool afr_rx_eof(const struct afr_motion_rx *rx);

/* Bytes the reader may take. */
u32 afr_rx_readable(const struct afr_motion_rx *rx);
void afr_rx_consume(struct afr_motion_rx *rx, u32 len);
/* The sender said BLOCKED; remembered until there is something to report (PC6). */
void afr_rx_blocked(struct afr_motion_rx *rx);
/*
 * Is it time to tell the sender (by a message of its own)? When half the ring is
 * freed and unreported; or, when the sender is blocked, as soon as one cursor
 * unit is. @imm: news travels by immediate (rounded down to a unit), else by CREDIT.
 */
bool afr_rx_credit_due(const struct afr_motion_rx *rx, bool imm);
/*
 * Tell it now: the cursor for CREDIT (bytes). Counts as reported, clears blocked if
 * anything was news.
 */
u64 afr_rx_report(struct afr_motion_rx *rx);
/* Tell it now by immediate: 16 bits of cursor. Counts as reported what the rounded cursor says. */
u16 afr_rx_report_imm(struct afr_motion_rx *rx);

#ifdef AFR_DEBUG_CHECKS
/* Does every relation stated above hold? Asserted after each change when built with checks. */
bool afr_tx_sane(const struct afr_motion_tx *tx);
bool afr_rx_sane(const struct afr_motion_rx *rx);
#endif

#endif /* AFR_MOTION_H */
