/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* The connection worker: its work items, and inline runs by calls of the program. */
#ifndef AFR_WORKER_H
#define AFR_WORKER_H

#include "conn.h"

void afr_worker_init(struct afr_conn *conn);
void afr_worker_run(struct afr_conn *conn);
void afr_worker_run_wait(struct afr_conn *conn);

/*
 * Process context. Called before a wait for bytes or for the decision of a mode. The caller also
 * has to end the wait when afr_conn_must_run_inline() becomes true. After the wait, it has to call
 * afr_worker_wait_end().
 */
static inline void afr_worker_wait_begin(struct afr_conn *conn)
{
	atomic_inc(&conn->worker.readers);
}

void afr_worker_wait_end(struct afr_conn *conn);

#endif /* AFR_WORKER_H */
