/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Urgent data: one byte of the stream, whose offset an URGENT frame announces before the byte can
 * arrive. On TCP the frame is sent before the byte, and before a later MOVE. But if the byte is
 * written while the direction is on a link, nothing orders it behind the frame. So the sender
 * holds back that byte, and those behind it, until URGENTACK comes (afr_tx_urgent()).
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
