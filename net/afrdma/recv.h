/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Receiving: hands bytes of the receive ring to the program and returns credit to the peer. */
#ifndef AFR_RECV_H
#define AFR_RECV_H

#include "conn.h"

struct iov_iter;

ssize_t afr_recv_copy(struct afr_conn *conn, u64 skip, struct iov_iter *iter, size_t len);
void afr_recv_consume(struct afr_conn *conn, size_t len);
void afr_recv_refuse(struct afr_conn *conn);
u32 afr_recv_readable(struct afr_conn *conn);
bool afr_recv_fin(struct afr_conn *conn);

#endif /* AFR_RECV_H */
