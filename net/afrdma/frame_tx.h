/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Outgoing frames. Every kind of control frame has a bit in conn->out.pending. Its contents are
 * taken from the sequence state at the moment it is written, so nothing queues up, and the reader
 * of incoming frames never waits for space to answer (PC9). DATA frames, which are the TCP path,
 * are sent when no control frame is pending.
 *
 * HELLO and FINACK wait to be piggybacked on a segment with DATA or FIN, which most often follow:
 * until the program waits for the peer, or for AFR_PIGGYBACK_MS.
 */
#ifndef AFR_FRAME_TX_H
#define AFR_FRAME_TX_H

#include "conn.h"

/* Any context. The next afr_frame_tx_push(), on whichever CPU, sends this frame. */
static inline void afr_frame_tx_request(struct afr_conn *conn, unsigned int type)
{
	smp_mb__before_atomic();	/* the state it is built from is visible before the bit */
	set_bit(type, &conn->out.pending);
}

#define AFR_PENDING_HELLO	0	/* bit of out.pending: no frame type has this number */
/* Bits of what waits to be piggybacked. */
#define AFR_PENDING_PIGGYBACK	(BIT(AFR_PENDING_HELLO) | BIT(AFR_FRAME_FINACK))
#define AFR_PIGGYBACK_MS	1

void afr_frame_tx_check_blocked(struct afr_conn *conn);
void afr_frame_tx_push(struct afr_conn *conn);
void afr_frame_tx_flush(struct afr_conn *conn);
bool afr_frame_tx_drain_early(struct afr_conn *conn);
bool afr_frame_tx_idle(struct afr_conn *conn);

#endif /* AFR_FRAME_TX_H */
