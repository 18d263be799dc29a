/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* The end of connections, orphans included: orderly or by abort. */
#ifndef AFR_CLOSE_H
#define AFR_CLOSE_H

#include "conn.h"

void afr_close_run(struct afr_conn *conn);
bool afr_close_abort_deferred(struct afr_conn *conn);
void afr_close_tcp_eof(struct afr_conn *conn, int err);
void afr_close_blocked_sender(struct afr_conn *conn);
bool afr_close_one_way_done(const struct afr_conn *conn);
u8 afr_close_tcp_state(struct afr_conn *conn);
void afr_close_refuse(struct afr_conn *conn, enum afr_reason reason);

#endif /* AFR_CLOSE_H */
