/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Notification of added RDMA devices and changed GIDs. */
#ifndef AFR_ARRIVAL_H
#define AFR_ARRIVAL_H

#include <linux/types.h>

int afr_arrival_init(void (*came)(bool added));
void afr_arrival_exit(void);

#endif /* AFR_ARRIVAL_H */
