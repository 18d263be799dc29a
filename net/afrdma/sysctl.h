/* SPDX-License-Identifier: GPL-2.0 */
/* net.afrdma.*: struct afr_settings of each network namespace. */
#ifndef AFR_SYSCTL_H
#define AFR_SYSCTL_H

int afr_sysctl_init(void);
void afr_sysctl_exit(void);

#endif /* AFR_SYSCTL_H */
