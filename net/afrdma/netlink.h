/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* The generic netlink family "afrdma", which smctl uses. */
#ifndef AFR_NETLINK_H
#define AFR_NETLINK_H

int afr_netlink_init(unsigned int family);
void afr_netlink_exit(void);

#endif /* AFR_NETLINK_H */
