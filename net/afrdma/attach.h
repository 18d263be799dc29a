/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Attaching a connection to a link: find or make a link, join it, register the rings, and exchange
 * ATTACH and ATTACHED, which contain the addresses to write to. The state is an enum
 * afr_attach_state (conn.h). Only the connection worker changes it, and only the worker calls these
 * functions.
 */
#ifndef AFR_ATTACH_H
#define AFR_ATTACH_H

#include "conn.h"

/* client */
void afr_attach_start(struct afr_conn *conn);
void afr_attach_joined(struct afr_conn *conn);
void afr_attach_cancel(struct afr_conn *conn);
void afr_attach_overdue(struct afr_conn *conn);
bool afr_attach_drop_unsent(struct afr_conn *conn);
void afr_attach_withdraw(struct afr_conn *conn);

/* server */
void afr_attach_answer(struct afr_conn *conn);
void afr_attach_refuse(struct afr_conn *conn, enum afr_reason reason);

/* client */
void afr_attach_refused(struct afr_conn *conn, u32 reason);

/*
 * Both ends, when leaving a link: first close the epoch, then release everything else. Only
 * continue_on_tcp() calls the third function, after the other two.
 */
u64 afr_attach_close_epoch(struct afr_conn *conn, bool resume);
void afr_attach_end(struct afr_conn *conn);
void afr_attach_note_left(struct afr_conn *conn, enum afr_reason reason);

/* incoming frames */
int afr_attach_rx_attach(struct afr_conn *conn, const struct afr_frame *frame);
int afr_attach_rx_attached(struct afr_conn *conn, const struct afr_frame *frame);

void afr_attach_set_state(struct afr_conn *conn, enum afr_attach_state state);

#endif /* AFR_ATTACH_H */
