/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Keepalive of a link, probes for the loss of its last message, and its idle time. */
#ifndef AFR_LINK_KEEPALIVE_H
#define AFR_LINK_KEEPALIVE_H

#include "link_queue.h"

void afr_link_keepalive_tail(struct timer_list *timer);

void afr_link_keepalive_start(struct afr_link *link);
void afr_link_keepalive_check(struct afr_link *link);
void afr_link_keepalive_idle(struct afr_link *link);

#endif /* AFR_LINK_KEEPALIVE_H */
