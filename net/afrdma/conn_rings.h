/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages of the rings of a connection: allocated as needed while no device uses the rings; all
 * allocated and pinned before the rings are registered for an attach, until it ends.
 */
#ifndef AFR_CONN_RINGS_H
#define AFR_CONN_RINGS_H

#include "conn.h"

int afr_conn_rings_back_snd(struct afr_conn *conn, u32 n);
int afr_conn_rings_back_rcv(struct afr_conn *conn, u32 n);
void afr_conn_rings_wake_sender(struct afr_conn *conn);

int afr_conn_rings_pin(struct afr_conn *conn);
void afr_conn_rings_unpin(struct afr_conn *conn);

#endif /* AFR_CONN_RINGS_H */
