/* SPDX-License-Identifier: GPL-2.0 */
/* Notification of added RDMA devices. */
#ifndef AFR_ARRIVAL_H
#define AFR_ARRIVAL_H

int afr_arrival_init(void (*came)(void));
void afr_arrival_exit(void);

#endif /* AFR_ARRIVAL_H */
