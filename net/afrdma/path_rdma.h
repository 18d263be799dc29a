/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rdma path: RDMA WRITE_WITH_IMM straight from our send ring into the peer's
 * receive ring, each carrying our reader's cursor for the other direction.
 */
#ifndef AFR_PATH_RDMA_H
#define AFR_PATH_RDMA_H

#include "conn.h"

/* Any context but hard irq. Post what the window, the link's credits and the direction allow. */
void afr_path_rdma_push(struct afr_conn *conn);
void afr_path_rdma_push_locked(struct afr_conn *conn);		/* the same, under tx_lock */
/* Any context but hard irq. Tell our reader's cursor by a write without data, if that is due. */
void afr_path_rdma_credit(struct afr_conn *conn);
/* Any context but hard irq. Post DETACH, now or when it is the port's turn, and nothing else. */
void afr_path_rdma_detach(struct afr_conn *conn);

/* What the link tells the connection. */
extern const struct afr_port_ops afr_path_rdma_port_ops;

#endif /* AFR_PATH_RDMA_H */
