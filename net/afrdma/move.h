/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Moving a connection onto its link and off it again; the send direction enters the link in
 * frame_tx.c. afr_move_run() also calls the steps of an attach (attach.h).
 */
#ifndef AFR_MOVE_H
#define AFR_MOVE_H

#include "conn.h"

void afr_move_run(struct afr_conn *conn);
void afr_move_detach(struct afr_conn *conn);

/* incoming frames */
int afr_move_rx_move(struct afr_conn *conn, const struct afr_frame *frame);
int afr_move_rx_resume(struct afr_conn *conn, const struct afr_frame *frame);
int afr_move_rx_service(struct afr_conn *conn, const struct afr_frame *frame);

void afr_move_device_added(bool added);
void afr_move_check_upgrade(struct afr_conn *conn);
int afr_move_keep_tcp(struct afr_conn *conn, bool keep);
void afr_move_set_policy(struct afr_conn *conn, u8 policy);

#endif /* AFR_MOVE_H */
