/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Receives frames from TCP. */
#ifndef AFR_FRAME_RX_H
#define AFR_FRAME_RX_H

#include "conn.h"

bool afr_frame_rx_may_read(struct afr_conn *conn);
bool afr_frame_rx_drains(struct afr_conn *conn);
bool afr_frame_rx_run(struct afr_conn *conn);

#endif /* AFR_FRAME_RX_H */
