/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Urgent data: one byte of the stream. In a framed direction, an URGENT frame announces its offset
 * before the byte can arrive. If the program writes the byte while the direction is not on a link,
 * the frame is sent before the byte. If the direction then enters a link, the frame is also sent
 * before MOVE, and the peer's program sees bytes of the link only after MOVE. If the program
 * writes the byte while the direction is on a link, nothing orders the byte behind the frame. So
 * the sender holds back that byte, and those behind it, until URGENTACK comes (afr_tx_urgent()).
 */
#ifndef AFR_URGENT_H
#define AFR_URGENT_H

#include "conn.h"

int afr_urgent_rx(struct afr_conn *conn, const struct afr_frame *frame);
int afr_urgent_rx_ack(struct afr_conn *conn, const struct afr_frame *frame);

u64 afr_urgent_offset(struct afr_conn *conn);
bool afr_urgent_readable(struct afr_conn *conn);
int afr_urgent_read(struct afr_conn *conn, struct iov_iter *to, bool peek);

#endif /* AFR_URGENT_H */
