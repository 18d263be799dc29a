/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Why a connection is on TCP; and the fallback of a connection that was not started. The reason is
 * kept in conn->reason, with AFR_REASON_PEER if the peer reported it.
 */
#ifndef AFR_FALLBACK_H
#define AFR_FALLBACK_H

#include "conn.h"
#include "trace.h"

enum afr_reason afr_fallback_denied(struct afr_conn *conn);
enum afr_reason afr_fallback_attach_denied(struct afr_conn *conn);

void afr_fallback_note(struct afr_conn *conn, enum afr_trace_step step, u32 reason);
void afr_fallback_left(struct afr_conn *conn, enum afr_reason reason);
void afr_fallback_peer_left(struct afr_conn *conn, u32 reason);

u32 afr_fallback_reason(struct afr_conn *conn);

void afr_fallback_set(struct afr_conn *conn, enum afr_reason reason);
void afr_fallback_set_modes(struct afr_conn *conn, enum afr_mode mode);

#endif /* AFR_FALLBACK_H */
