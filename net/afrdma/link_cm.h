/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Links: the queue pair, and the handshake by rdma_cm. Steps of the work of a
 * link; only link.c includes this.
 */
#ifndef AFR_LINK_CM_H
#define AFR_LINK_CM_H

struct afr_link;
struct rdma_cm_id;

/*
 * Active: address and route, then queue pair and connect; once more when the peer
 * took us for our former self.
 */
void afr_link_cm_resolve(struct afr_link *link);
void afr_link_cm_connect(struct afr_link *link);
void afr_link_cm_retry(struct afr_link *link);
void afr_link_cm_stale(struct afr_link *link);

/* Passive. */
void afr_link_cm_take(struct afr_link *link, struct rdma_cm_id *id);
void afr_link_cm_accept(struct afr_link *link);

/* The end: fence and drain; free queue pair and queues; free the id when its messages can go. */
void afr_link_cm_drain(struct afr_link *link);
void afr_link_cm_close(struct afr_link *link);
bool afr_link_cm_may_send(struct afr_link *link);
void afr_link_cm_end(struct afr_link *link);

#endif /* AFR_LINK_CM_H */
