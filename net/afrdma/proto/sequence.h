/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Sequence state of a stream: struct afr_tx for the send direction of a connection, struct afr_rx
 * for its receive direction. It records what was written, sent, received and consumed, and on which
 * path. tx.c and rx.c implement the rules about offsets, cursors and epochs (PM1-PM7, PC1-PC7, PE1
 * and PE2 in afrdma-internals.rst), except for those listed below. These two files know nothing of
 * locks, nor of how a path carries bytes.
 *
 * An epoch is one attach to one link. The client numbers the epochs of a connection 1, 2, 3, ...
 * The server takes the number from ATTACH, so it skips epochs for which no ATTACH was sent. A
 * direction enters the link by MOVE. When the link is lost or left, RESUME from the receiver makes
 * the direction continue on TCP.
 *
 * Some rules cannot be enforced here, and every caller must keep them (mutations of the model in
 * selftests/unit/model.h break such rules to show what goes wrong):
 * - In each epoch an end sends ATTACH or ATTACHED on TCP before RESUME. Exception: a server that
 *   has attached, but loses the link before it has built ATTACHED, sends only RESUME. An end
 *   samples the consumer cursor in ATTACH and ATTACHED by afr_rx_report() before it posts the first
 *   immediate of the epoch, even if it writes the frame to TCP after that immediate.
 * - From the time when a server builds an ATTACHED that is no refusal, or a client reads it, until
 *   afr_rx_close(), the consumer cursor is reported by immediate only. CREDIT frames may be sent
 *   again behind RESUME, not before (PC3).
 * - afr_rx_close() counts the consumer cursor as reported, so one RESUME has to follow it. If this
 *   end knows that ATTACH was refused or never sent, a CREDIT has to follow instead. If the
 *   connection is aborted, or leaves the link by DETACH because both streams are complete, neither
 *   has to follow. The client opens the next epoch only after it has built its RESUME for the last
 *   epoch and has received the peer's RESUME, or if the last ATTACH was refused or never sent.
 * - The receiver of RESUME closes the epoch, too. It also fences the link, unless both ends leave
 *   the link by DETACH.
 * - On a negotiated connection, an end shuts down TCP for writing only after its FIN has been
 *   acknowledged and its FINACK written, and after it has left the link. Until it has left the
 *   link, it may have to report with RESUME that the link is lost (PE4). If the link was lost, the
 *   end has left it when the epoch is closed and RESUME written. Otherwise it has left the link
 *   when two things are true: its own DETACH has completed, and the peer's DETACH was polled or is
 *   not awaited any longer (detach_timeout_ms). For a client that has given up waiting for the
 *   answer to ATTACH, the second suffices, since it cannot post a DETACH.
 *
 * Functions that check what the peer sent return 0 or the AFR_REASON_* with which to abort the
 * connection; if they refuse, they change nothing. The caller serialises the calls that change
 * struct afr_tx by conn->tx.lock, and those that change struct afr_rx by conn->rx.lock.
 */
#ifndef AFR_PROTO_SEQUENCE_H
#define AFR_PROTO_SEQUENCE_H

#include "portable.h"
#include "reason.h"

#define AFR_NO_FIN	U64_MAX
#define AFR_NO_URGENT	U64_MAX

/* The path of a direction; values are those of enum afrdma_path in the uapi. */
enum afr_where {
	AFR_ON_TCP,		/* DATA frames */
	AFR_ON_LINK,		/* RDMA writes of the current epoch */
	AFR_SUSPENDED,		/* has left the link: suspended until RESUME or FINACK comes */
};

/*
 * Send sequence state. Invariants: una <= sent <= written, consumed <= sent,
 * sent <= consumed + window, written - una <= ring.
 */
struct afr_tx {
	u64	written;	/* end of the bytes that the application has written */
	u64	sent;		/* SND.NXT (RFC 9293): next offset to send */
	u64	una;		/* SND.UNA: lowest offset that the send ring still holds */
	/* the peer's consumer cursor, as last reported; una if only TCP limits this end */
	u64	consumed;
	u64	start;		/* S: offset at which the direction last entered a link */
	u64	fin;		/* end of the stream, AFR_NO_FIN while it is open */
	u64	urgent;		/* offset of the last urgent byte, AFR_NO_URGENT if none */
	u64	hold;		/* on a link, bytes from here on wait for URGENTACK */
	u32	ring;		/* size of the send ring */
	/* SND.WND: size of the peer's receive ring; AFR_WINDOW_INITIAL until its HELLO comes */
	u32	window;
	u32	epoch;		/* current or last epoch, 0 before the first */
	u8	where;		/* enum afr_where */
	bool	open;		/* the current epoch is open */
	bool	finacked;	/* FINACK has come: the peer has received everything up to fin */
};

void afr_tx_init(struct afr_tx *tx, u32 ring, u32 window);
void afr_tx_set_window(struct afr_tx *tx, u32 window);

u32 afr_tx_space(const struct afr_tx *tx);
void afr_tx_write(struct afr_tx *tx, u32 len);
void afr_tx_urgent(struct afr_tx *tx);
void afr_tx_urgent_ack(struct afr_tx *tx, u64 offset);
bool afr_tx_urgent_unsent(const struct afr_tx *tx);
u32 afr_tx_ready(const struct afr_tx *tx);
bool afr_tx_writable(const struct afr_tx *tx);
bool afr_tx_blocked(const struct afr_tx *tx);
void afr_tx_sent(struct afr_tx *tx, u32 len);
void afr_tx_tcp_accepted(struct afr_tx *tx, u32 len);

int afr_tx_credit(struct afr_tx *tx, u64 consumed);
int afr_tx_credit_imm(struct afr_tx *tx, u16 cursor);

u32 afr_tx_open(struct afr_tx *tx);
bool afr_tx_may_move(const struct afr_tx *tx);
u64 afr_tx_move(struct afr_tx *tx);
void afr_tx_leave(struct afr_tx *tx);
int afr_tx_resume(struct afr_tx *tx, u32 epoch, u64 received, u64 consumed);

void afr_tx_fin(struct afr_tx *tx);
int afr_tx_finack(struct afr_tx *tx, u64 end);

/*
 * Receive sequence state. Invariants: consumed <= visible <= consumed + ring,
 * reported <= consumed, visible <= fin.
 */
struct afr_rx {
	u64	visible;	/* RCV.NXT (RFC 9293): end of the contiguous bytes received */
	u64	consumed;	/* consumer cursor: end of the bytes that the reader has taken */
	u64	reported;	/* consumed, as last reported to the sender */
	u64	start;		/* S of the current epoch, valid if moved */
	u64	landed;		/* bytes that RDMA writes of the current epoch have placed */
	u64	fin;		/* end of the stream, AFR_NO_FIN while unknown */
	u32	ring;		/* size of the receive ring */
	/* size of the peer's send ring, which keeps bytes sent on a link until reported (PM6) */
	u32	peer_ring;
	u32	epoch;		/* current or last epoch, 0 before the first */
	bool	open;		/* the current epoch is open */
	bool	moved;		/* MOVE of the current epoch has come */
	bool	blocked;	/* BLOCKED was received, and no newer cursor reported since */
	bool	finack_requested;	/* afr_rx_finack_due() has returned true */
};

void afr_rx_init(struct afr_rx *rx, u32 ring);
int afr_rx_data(const struct afr_rx *rx, u64 offset, u32 len);
void afr_rx_data_received(struct afr_rx *rx, u32 len);

void afr_rx_open(struct afr_rx *rx, u32 epoch);
int afr_rx_write_received(struct afr_rx *rx, u32 epoch, u32 len);
int afr_rx_move(struct afr_rx *rx, u32 epoch, u64 start);
u64 afr_rx_close(struct afr_rx *rx);

int afr_rx_fin(struct afr_rx *rx, u64 end);
bool afr_rx_finack_due(struct afr_rx *rx);
u32 afr_rx_lowat_max(const struct afr_rx *rx);
void afr_rx_set_peer_ring(struct afr_rx *rx, u32 ring);
bool afr_rx_eof(const struct afr_rx *rx);

u32 afr_rx_readable(const struct afr_rx *rx);
void afr_rx_consume(struct afr_rx *rx, u32 len);
void afr_rx_blocked(struct afr_rx *rx);
bool afr_rx_credit_due(const struct afr_rx *rx, bool imm);
u64 afr_rx_report(struct afr_rx *rx);
u16 afr_rx_report_imm(struct afr_rx *rx);

#ifdef AFR_DEBUG_CHECKS
bool afr_tx_sane(const struct afr_tx *tx);
bool afr_rx_sane(const struct afr_rx *rx);
#endif

#endif /* AFR_PROTO_SEQUENCE_H */
