/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * A memory region: the registration (FRWR) of one ring for one attach. A receive ring is registered
 * for remote writes, which require the permission for local writes as well, and a send ring for
 * local reads; neither has other permissions, and the global rkey is never used. The region maps
 * the ring twice in a row (mirrored), so that a write may cross the end of the ring. If the device
 * does not allow that many pages in a region, the region maps the ring only once.
 */
#ifndef AFR_MR_H
#define AFR_MR_H

#include <linux/types.h>

struct afr_link;
struct afr_ring_mem;
struct afr_mr;

/* What a work request or the peer needs to know about a registered ring. */
struct afr_mr_view {
	u64	addr;	/* address of ring position 0 */
	u32	lkey;
	u32	rkey;
	u32	span;	/* bytes from addr: ring size, or twice that when mirrored */
};

struct afr_mr *afr_mr_map(struct afr_link *link, struct afr_ring_mem *mem, bool remote_write);
int afr_mr_register(struct afr_mr *mr);
void afr_mr_free(struct afr_mr *mr);
const struct afr_mr_view *afr_mr_view(const struct afr_mr *mr);

#endif /* AFR_MR_H */
