/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Fault injection: turns this host into a Byzantine peer, to test what a hostile peer can do to a
 * host with the unmodified module. All functions but afr_byzantine_init() are called where
 * messages leave the host. Without CONFIG_AFRDMA_BYZANTINE=y, all functions are inline and have no
 * effect. The injections are listed in byzantine_link.c and byzantine_frame.c.
 */
#ifndef AFR_TEST_BYZANTINE_H
#define AFR_TEST_BYZANTINE_H

#include <linux/types.h>

struct afr_frame;
struct afr_link;
struct afr_link_send;
struct ib_rdma_wr;

#ifdef AFR_BYZANTINE
void afr_byzantine_init(void);
bool afr_byzantine_post(struct afr_link *link, struct ib_rdma_wr *wr);
void afr_byzantine_flood(struct afr_link *link,
			 int (*post)(struct afr_link *link, struct ib_rdma_wr *wr, u32 imm,
				     const struct afr_link_send *ctx));
unsigned int afr_byzantine_frame(u64 conn, const struct afr_frame *frame, u8 *out,
				 unsigned int len);
bool afr_byzantine_more(u64 conn, struct afr_frame *frame);
bool afr_byzantine_cm(void *data, unsigned int len);
#else
static inline void afr_byzantine_init(void)
{
}

static inline bool afr_byzantine_post(struct afr_link *link, struct ib_rdma_wr *wr)
{
	return false;
}

static inline void afr_byzantine_flood(struct afr_link *link,
				       int (*post)(struct afr_link *link, struct ib_rdma_wr *wr,
						   u32 imm, const struct afr_link_send *ctx))
{
}

static inline unsigned int afr_byzantine_frame(u64 conn, const struct afr_frame *frame, u8 *out,
					       unsigned int len)
{
	return len;
}

static inline bool afr_byzantine_more(u64 conn, struct afr_frame *frame)
{
	return false;
}

static inline bool afr_byzantine_cm(void *data, unsigned int len)
{
	return false;
}
#endif

#endif /* AFR_TEST_BYZANTINE_H */
