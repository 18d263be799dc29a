/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Pages of the rings of a connection. While no device uses the rings, pages are allocated as
 * needed. Before the rings are registered for an attach, all pages are allocated and pinned; they
 * stay pinned until the attach ends.
 */
#ifndef AFR_CONN_RINGS_H
#define AFR_CONN_RINGS_H

#include "conn.h"

int afr_conn_rings_back_snd(struct afr_conn *conn, u32 n, bool *freed);
int afr_conn_rings_back_rcv(struct afr_conn *conn, u32 n);
void afr_conn_rings_wake_sender(struct afr_conn *conn);

int afr_conn_rings_pin(struct afr_conn *conn);
void afr_conn_rings_uncharge(struct afr_conn *conn);
void afr_conn_rings_unpin(struct afr_conn *conn);
void afr_conn_rings_freed(struct afr_conn *conn);
bool afr_conn_rings_snd_charged(const struct afr_conn *conn);

#endif /* AFR_CONN_RINGS_H */
