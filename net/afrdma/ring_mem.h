/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Ring memory: a ring of bytes, a power of two in size, made of single pages. A page is allocated
 * when a byte needs it, or when the ring is pinned; it comes zeroed, and is charged to the memory
 * cgroup of the socket.
 *
 * There is at most one producer and one consumer at a time; the callers see to that. The producer
 * of a send ring is the program. The producer of a receive ring is the connection worker;
 * beside it, the peer may write to the ring by RDMA, but only while the ring is pinned. Pinning may
 * run concurrently with a producer. But if a consumer or a producer may free pages meanwhile, the
 * caller must have set @pinned under the consumer's lock before. Offsets are absolute (offsets in
 * the stream).
 */
#ifndef AFR_RING_MEM_H
#define AFR_RING_MEM_H

#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/types.h>

#include "proto/wire.h"

struct afr_net;
struct bio_vec;
struct iov_iter;
struct mem_cgroup;
struct page;

/*
 * Size of the smallest ring. Except for pinning, the limits on ring memory never refuse a ring its
 * first pages up to this size, so that every ring can make progress.
 */
#define AFR_RING_MEM_MIN	max_t(u32, PAGE_SIZE, AFR_RING_MIN)

struct afr_ring_mem {
	struct page	**pages;	/* NULL until the first page is needed */
	u32		size;		/* bytes, a power of two >= AFR_RING_MEM_MIN */
	atomic_t	held;		/* number of pages allocated */
	atomic_t	rdma;		/* how many of them were charged for RDMA (ring_quota.c) */
	bool		pinned;		/* for a device: pages stay until afr_ring_mem_unpin() */
	int		node;		/* NUMA node of the program */
	struct afr_net	*an;
	struct mem_cgroup *memcg;	/* charged for the pages; may be NULL */
};

static inline unsigned long afr_ring_mem_pages(const struct afr_ring_mem *mem)
{
	return mem->size >> PAGE_SHIFT;
}

void afr_ring_mem_init(struct afr_ring_mem *mem, struct afr_net *an, u32 size, int node,
		       struct mem_cgroup *memcg);
void afr_ring_mem_destroy(struct afr_ring_mem *mem);
void afr_ring_mem_setup(void);

u32 afr_ring_mem_default_size(struct afr_net *an, u32 wanted);
unsigned long afr_ring_mem_available(const struct afr_net *an, unsigned long all);

#define AFR_RING_MEM_RETRY_MS	10	/* delay before a retry after -ENOMEM */
/* Delay before a retry after -EDQUOT; for a receive ring only: a sender waits to be woken. */
#define AFR_RING_MEM_LIMIT_MS	500

int afr_ring_mem_populate(struct afr_ring_mem *mem, u64 offset, u32 len);
bool afr_ring_mem_starved(const struct afr_ring_mem *mem, u64 offset);
int afr_ring_mem_pin(struct afr_ring_mem *mem);
void afr_ring_mem_unpin(struct afr_ring_mem *mem);
unsigned long afr_ring_mem_on_rdma(const struct afr_ring_mem *mem);
void afr_ring_mem_release(struct afr_ring_mem *mem, u64 from, u64 to, u64 end);
void afr_ring_mem_trim(struct afr_ring_mem *mem, u64 from, u64 end);

size_t afr_ring_mem_copy_in(struct afr_ring_mem *mem, u64 offset, size_t len,
			    struct iov_iter *iter);
size_t afr_ring_mem_copy_out(const struct afr_ring_mem *mem, u64 offset, size_t len,
			     struct iov_iter *iter);
unsigned int afr_ring_mem_bvec(const struct afr_ring_mem *mem, u64 offset, u32 len,
			       struct bio_vec *bv, unsigned int max, u32 *bytes);

#endif /* AFR_RING_MEM_H */
