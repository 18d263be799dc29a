/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A module that lies, for tests of what a hostile peer can do to an honest one.
 * The hooks stand where things leave this host. Only a build that asks for it
 * (CONFIG_AFRDMA_ROGUE=y) has them; in all others each is nothing, and the
 * compiler sees it. rogue.c has the list of lies.
 */
#ifndef AFR_ROGUE_H
#define AFR_ROGUE_H

#include <linux/types.h>

struct afr_frame;
struct afr_link;
struct afr_link_mark;
struct ib_rdma_wr;

#ifdef AFR_ROGUE
void afr_rogue_init(void);
/* A message is about to be posted, under link->lock: bend it. True: it is swallowed. */
bool afr_rogue_post(struct afr_link *link, struct ib_rdma_wr *wr);
/* Credits or slots came back, under link->lock: post what nobody asked for. */
void afr_rogue_flood(struct afr_link *link,
		     int (*post)(struct afr_link *link, struct ib_rdma_wr *wr, u32 imm,
				 const struct afr_link_mark *mark));
/* @out holds a frame, or (NULL) a HELLO, of @len bytes: returns its length now, 0 = none. */
unsigned int afr_rogue_frame(u64 conn, const struct afr_frame *frame, u8 *out, unsigned int len);
/* Make up a frame that nobody asked for. */
bool afr_rogue_more(u64 conn, struct afr_frame *frame);
/* Private data of rdma_cm is about to be sent. True: say nothing at all. */
bool afr_rogue_cm(void *data, unsigned int len);
#else
static inline void afr_rogue_init(void)
{
}

static inline bool afr_rogue_post(struct afr_link *link, struct ib_rdma_wr *wr)
{
	return false;
}

static inline void afr_rogue_flood(struct afr_link *link,
				   int (*post)(struct afr_link *link, struct ib_rdma_wr *wr,
					       u32 imm, const struct afr_link_mark *mark))
{
}

static inline unsigned int afr_rogue_frame(u64 conn, const struct afr_frame *frame, u8 *out,
					   unsigned int len)
{
	return len;
}

static inline bool afr_rogue_more(u64 conn, struct afr_frame *frame)
{
	return false;
}

static inline bool afr_rogue_cm(void *data, unsigned int len)
{
	return false;
}
#endif

#endif /* AFR_ROGUE_H */
