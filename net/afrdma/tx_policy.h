/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Send policy: the length of pieces and writes, when a few bytes wait for more bytes or for a
 * completion, and which writes are latency-sensitive or bulk.
 */
#ifndef AFR_TX_POLICY_H
#define AFR_TX_POLICY_H

#include "conn.h"

size_t afr_tx_policy_piece(struct afr_conn *conn, size_t len);
void afr_tx_policy_note_more(struct afr_conn *conn, bool more);
bool afr_tx_policy_holds_back(struct afr_conn *conn, u32 ready);
bool afr_tx_policy_is_latency(const struct afr_conn *conn, u32 len);
u32 afr_tx_policy_write_len(struct afr_conn *conn, bool *report, bool *bulk);
void afr_tx_policy_posted(struct afr_conn *conn, bool report, bool bulk);
void afr_tx_policy_uncork(struct afr_conn *conn);
void afr_tx_policy_rx_data(struct afr_conn *conn);

#endif /* AFR_TX_POLICY_H */
