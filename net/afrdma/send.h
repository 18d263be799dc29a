/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Sending: copies bytes from the program to the send ring and starts their way to TCP or the link;
 * sends BLOCKED and FIN; reports the space in the ring and the bytes that are queued.
 */
#ifndef AFR_SEND_H
#define AFR_SEND_H

#include "conn.h"

struct iov_iter;

ssize_t afr_send_copy(struct afr_conn *conn, struct iov_iter *iter, size_t len,
		      int flags);
ssize_t afr_send_early(struct afr_conn *conn, struct iov_iter *iter, size_t len,
		       int flags);
bool afr_send_early_allowed(const struct afr_conn *conn);
void afr_send_kick(struct afr_conn *conn);
bool afr_send_has_deferred(struct afr_conn *conn);
void afr_send_uncork(struct afr_conn *conn);
void afr_send_blocked(struct afr_conn *conn);
void afr_send_fin(struct afr_conn *conn);

bool afr_send_has_space(struct afr_conn *conn);
bool afr_send_await_space(struct afr_conn *conn);
u64 afr_send_queued(struct afr_conn *conn, u64 *unsent);
bool afr_send_done(struct afr_conn *conn);

#endif /* AFR_SEND_H */
