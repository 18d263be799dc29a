/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Outgoing frames. Every type of control frame has a bit in conn->out.pending. A frame is built
 * from the state of the connection when it is written, so frames do not queue up, and the worker,
 * which reads incoming frames, never waits for space to answer one (PC9). DATA frames, which are
 * the TCP path, are sent when no control frame can be sent.
 *
 * HELLO and FINACK wait to be piggybacked on a segment with another frame: DATA or FIN usually
 * follows. The wait ends when the program waits for the peer, when both directions are complete,
 * or after AFR_PIGGYBACK_MS.
 */
#ifndef AFR_FRAME_TX_H
#define AFR_FRAME_TX_H

#include "conn.h"

/* Any context. The next afr_frame_tx_push(), on whichever CPU, finds this frame pending. */
static inline void afr_frame_tx_request(struct afr_conn *conn, unsigned int type)
{
	smp_mb__before_atomic();	/* the frame's source data is visible before the bit */
	set_bit(type, &conn->out.pending);
}

#define AFR_PENDING_HELLO	0	/* bit of out.pending: no frame type has this number */
/* Bits of the frames that wait to be piggybacked. */
#define AFR_PENDING_PIGGYBACK	(BIT(AFR_PENDING_HELLO) | BIT(AFR_FRAME_FINACK))
#define AFR_PIGGYBACK_MS	1

void afr_frame_tx_check_blocked(struct afr_conn *conn);
void afr_frame_tx_push(struct afr_conn *conn);
void afr_frame_tx_flush(struct afr_conn *conn);
bool afr_frame_tx_drain_early(struct afr_conn *conn);
bool afr_frame_tx_idle(struct afr_conn *conn);
u8 afr_frame_tx_attach_step(struct afr_conn *conn);

#endif /* AFR_FRAME_TX_H */
