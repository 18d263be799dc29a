/* SPDX-License-Identifier: GPL-2.0 */
/* RDMA devices that come, for those who wait for one. */
#ifndef AFR_ARRIVAL_H
#define AFR_ARRIVAL_H

/* @came is called in a worker, until afr_arrival_exit() returns. */
int afr_arrival_init(void (*came)(void));
void afr_arrival_exit(void);

#endif /* AFR_ARRIVAL_H */
