/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* The sysctls net.afrdma.*: the settings of each network namespace (struct afr_settings). */
#ifndef AFR_SYSCTL_H
#define AFR_SYSCTL_H

int afr_sysctl_init(void);
void afr_sysctl_exit(void);

#endif /* AFR_SYSCTL_H */
