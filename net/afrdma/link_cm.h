/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * The queue pair of a link and its rdma_cm handshake. Only the link worker calls these functions,
 * with two exceptions: afr_link_accept() calls afr_link_cm_take(), and request_work() of
 * cm_listener.c also calls afr_link_cm_reject().
 */
#ifndef AFR_LINK_CM_H
#define AFR_LINK_CM_H

struct afr_link;
struct rdma_cm_id;

/* active */
void afr_link_cm_resolve(struct afr_link *link);
void afr_link_cm_connect(struct afr_link *link);
void afr_link_cm_retry(struct afr_link *link);
void afr_link_cm_stale(struct afr_link *link);

/* passive */
void afr_link_cm_take(struct afr_link *link, struct rdma_cm_id *id);
void afr_link_cm_accept(struct afr_link *link);

/*
 * Taking the link down. afr_link_cm_drain(), afr_link_cm_close() and afr_link_cm_end() are also
 * called before another connect attempt.
 */
void afr_link_cm_drain(struct afr_link *link);
void afr_link_cm_close(struct afr_link *link);
bool afr_link_cm_may_send(struct afr_link *link);
void afr_link_cm_end(struct afr_link *link);

/* passive; also for a connect request that is refused before a link is created */
void afr_link_cm_reject(struct rdma_cm_id *id, enum afr_reason reason);

#endif /* AFR_LINK_CM_H */
