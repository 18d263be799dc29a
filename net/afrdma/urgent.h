/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Urgent data: one byte of the stream, whose offset an URGENT frame announces before the byte can
 * arrive. On TCP the frame is sent first. On a link nothing orders frame and byte, so the sender
 * holds the byte back until URGENTACK (proto/sequence.h).
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
