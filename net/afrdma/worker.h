/* SPDX-License-Identifier: GPL-2.0 */
/* The connection worker, which conn.c runs. */
#ifndef AFR_WORKER_H
#define AFR_WORKER_H

void afr_worker_init(void);

#endif /* AFR_WORKER_H */
