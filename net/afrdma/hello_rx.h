/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Receives HELLO, and decides the modes that are still undecided. */
#ifndef AFR_HELLO_RX_H
#define AFR_HELLO_RX_H

#include "conn.h"

void afr_hello_rx_step(struct afr_conn *conn);
void afr_hello_rx_tx_fallback(struct afr_conn *conn);
bool afr_hello_rx_early_pending(const struct afr_conn *conn);

#endif /* AFR_HELLO_RX_H */
