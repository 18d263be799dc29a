/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Why a connection is on TCP. The reason is kept in conn->reason; where the peer has told
 * it, with AFR_REASON_PEER.
 */
#ifndef AFR_FALLBACK_H
#define AFR_FALLBACK_H

#include "conn.h"
#include "trace.h"

/* What bars this connection from RDMA, attached or not; what forbids to begin. */
enum afr_reason afr_fallback_barred(struct afr_conn *conn);
enum afr_reason afr_fallback_forbidden(struct afr_conn *conn);

/* The work. An attempt came so far, or ended; we left the link; RESUME tells why the peer did. */
void afr_fallback_note(struct afr_conn *conn, enum afr_trace_step step, u32 reason);
void afr_fallback_left(struct afr_conn *conn, enum afr_reason reason);
void afr_fallback_peer_left(struct afr_conn *conn, u32 reason);

/* Process context, without locks. Why is it not on RDMA, now? As conn->reason. */
u32 afr_fallback_reason(struct afr_conn *conn);

#endif /* AFR_FALLBACK_H */
