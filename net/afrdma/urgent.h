/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Urgent data: one byte of the stream that URGENT names, before the byte can arrive.
 * On TCP the frame goes first; on a link, where nothing orders the two, the sender
 * holds the byte back until URGENTACK (motion.h).
 */
#ifndef AFR_URGENT_H
#define AFR_URGENT_H

#include "conn.h"

/* Frames. */
int afr_urgent_came(struct afr_conn *conn, const struct afr_frame *frame);
int afr_urgent_acked(struct afr_conn *conn, const struct afr_frame *frame);

/* The mark of the peer's stream, if it is not read past: its offset, else AFR_NO_URGENT. */
u64 afr_urgent_mark(struct afr_conn *conn);
/* Has the urgent byte arrived, and has nobody read it? */
bool afr_urgent_waits(struct afr_conn *conn);
/* recv(MSG_OOB): 1, 0 if there is room for none; -EINVAL without one, -EAGAIN before it came. */
int afr_urgent_take(struct afr_conn *conn, struct iov_iter *to, bool peek);

#endif /* AFR_URGENT_H */
