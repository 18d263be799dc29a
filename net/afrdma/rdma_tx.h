/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * The RDMA path sends the bytes of the local send ring straight into the peer's receive ring, by
 * RDMA WRITE_WITH_IMM (on iWARP by a write and a SEND). The immediate or the SEND contains the
 * peer's channel id and the consumer cursor of the opposite direction.
 */
#ifndef AFR_RDMA_TX_H
#define AFR_RDMA_TX_H

#include "conn.h"

void afr_rdma_tx_push(struct afr_conn *conn);
void afr_rdma_tx_push_locked(struct afr_conn *conn);
void afr_rdma_tx_credit(struct afr_conn *conn);
void afr_rdma_tx_detach(struct afr_conn *conn);

/* Upcalls from the link to the connection. */
extern const struct afr_channel_ops afr_rdma_tx_channel_ops;

#endif /* AFR_RDMA_TX_H */
