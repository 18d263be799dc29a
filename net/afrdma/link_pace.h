/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Pacing: bulk leaves space on its link for latency-sensitive messages. */
#ifndef AFR_LINK_PACE_H
#define AFR_LINK_PACE_H

#include "link_queue.h"

u32 afr_link_pace_bulk_max(const struct afr_channel *channel);

void afr_link_pace_init(struct afr_link *link);
void afr_link_pace_latency(struct afr_channel *channel);
void afr_link_pace_forget(struct afr_channel *channel);
int afr_link_pace_admit(struct afr_channel *channel, u32 len, struct afr_link_send *ctx);
void afr_link_pace_done(struct afr_link *link, const struct afr_link_send *ctx);
struct afr_channel *afr_link_pace_next(struct afr_link *link);

#endif /* AFR_LINK_PACE_H */
