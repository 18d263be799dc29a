/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Moving the directions of a connection to its link, and off it again: a matter of
 * the books (motion.h). The steps of an attach (attach.h) are driven from here.
 */
#ifndef AFR_MOVE_H
#define AFR_MOVE_H

#include "conn.h"

/* The work. Look at what happened (link up, link lost, detached, timers) and take the next step. */
void afr_move_run(struct afr_conn *conn);
/*
 * The work. Both directions have ended, or the connection is aborted: leave the
 * link. Call again until conn->attach is AFR_DETACHED.
 */
void afr_move_detach(struct afr_conn *conn);

/* Frames of the peer, the work: 0 or the AFR_REASON_* to end with. */
int afr_move_move(struct afr_conn *conn, const struct afr_frame *frame);
int afr_move_resume(struct afr_conn *conn, const struct afr_frame *frame);
int afr_move_service(struct afr_conn *conn, const struct afr_frame *frame);

/* Process context. An RDMA device came: connections that are on TCP look again. */
void afr_move_device_came(void);

/* Any context: has this connection moved enough to deserve a link? Client only. */
void afr_move_consider(struct afr_conn *conn);

/* An administrator's will: no RDMA, or (again) RDMA. 0, or -EOPNOTSUPP if it is not framed. */
int afr_move_keep_tcp(struct afr_conn *conn, bool keep);
/* The program's will: AFRDMA_RDMA_*. */
void afr_move_set_wish(struct afr_conn *conn, u8 wish);

#endif /* AFR_MOVE_H */
