/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Checks the routes and IPsec policies of the TCP connection, which RDMA would bypass (B5). */
#ifndef AFR_ROUTE_H
#define AFR_ROUTE_H

#include "conn.h"

enum afr_reason afr_route_denied(struct afr_conn *conn);
void afr_route_invalidate(struct afr_conn *conn);
void afr_route_watch(bool on);
void afr_route_exit(void);

#endif /* AFR_ROUTE_H */
