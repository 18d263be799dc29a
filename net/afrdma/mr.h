/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory regions: one per ring and attach (FRWR). A receive ring is registered
 * for REMOTE_WRITE only, a send ring for local reads only; never the global rkey.
 * Where the device allows, a ring is registered twice in a row, so that no write
 * ever wraps.
 */
#ifndef AFR_MR_H
#define AFR_MR_H

#include <linux/types.h>

struct afr_link;
struct afr_mem;
struct afr_mr;

/* What a post or the peer needs to know of a registered ring. */
struct afr_mr_view {
	u64	addr;	/* address of ring position 0 */
	u32	lkey;
	u32	rkey;
	u32	span;	/* bytes from addr: ring size, or twice that when mirrored */
};

/* Map @mem (pinned) for the device of @link; then register it, which waits for the device. */
struct afr_mr *afr_mr_map(struct afr_link *link, struct afr_mem *mem, bool remote_write);
int afr_mr_register(struct afr_mr *mr);
/*
 * Invalidate and free. The caller has proof that nobody writes any more: the
 * peer's DETACH was polled, or the link is drained (PE5). Sleeps. NULL is fine.
 */
void afr_mr_free(struct afr_mr *mr);
const struct afr_mr_view *afr_mr_view(const struct afr_mr *mr);

#endif /* AFR_MR_H */
