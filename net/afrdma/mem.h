/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ring memory: a power-of-two byte ring of single pages, each allocated when a
 * byte first needs it, zeroed, charged to the memory cgroup of the socket.
 *
 * One producer and one consumer at a time, serialised by their callers (the
 * producer side: the app for a send ring, the control reader for a receive ring
 * on TCP; the peer's device once the ring is registered). Pinning may run beside a
 * producer; beside a consumer only if the caller has set @pinned under the
 * consumer's lock before. Offsets are absolute.
 */
#ifndef AFR_MEM_H
#define AFR_MEM_H

#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/types.h>

#include "wire.h"

struct afr_net;
struct bio_vec;
struct iov_iter;
struct mem_cgroup;
struct page;

/* The smallest ring, and what each has whatever the limits say: that none stands still. */
#define AFR_MEM_LEAST	max_t(u32, PAGE_SIZE, AFR_RING_MIN)

struct afr_mem {
	struct page	**pages;	/* NULL until the first byte */
	u32		size;		/* bytes, a power of two >= AFR_MEM_LEAST */
	atomic_t	held;		/* pages */
	bool		pinned;		/* registered: pages stay until afr_mem_unpin() */
	struct afr_net	*an;
	struct mem_cgroup *memcg;	/* charged for the pages; may be NULL */
};

static inline unsigned long afr_mem_pages(const struct afr_mem *mem)
{
	return mem->size >> PAGE_SHIFT;
}

void afr_mem_init(struct afr_mem *mem, struct afr_net *an, u32 size, struct mem_cgroup *memcg);
void afr_mem_destroy(struct afr_mem *mem);
/* Module load. */
void afr_mem_setup(void);

/* Any context. The ring of who does not ask: @wanted bytes, or less if memory is short. */
u32 afr_mem_ring(struct afr_net *an, u32 wanted);

/* What rings of RDMA may still take, @pinned pages being taken or promised to them. */
unsigned long afr_mem_free(const struct afr_net *an, unsigned long pinned);

#define AFR_MEM_RETRY_MS	10	/* after -ENOMEM: when to try again */
#define AFR_MEM_LIMIT_MS	500	/* the same where a limit forbids a page */

/*
 * Process context. Back what follows offset with pages: bytes, or -ENOMEM; or -EDQUOT, when
 * the limits (mem_max) give no more than AFR_MEM_LEAST, and the ring holds that.
 */
int afr_mem_back(struct afr_mem *mem, u64 offset, u32 len);
/*
 * After -EDQUOT, under the lock of the books: is there still no page at @offset? Then only
 * bytes that leave the ring bring one.
 */
bool afr_mem_starved(const struct afr_mem *mem, u64 offset);
/* Back the whole ring and keep it so, for registration. */
int afr_mem_pin(struct afr_mem *mem);
void afr_mem_unpin(struct afr_mem *mem);
/*
 * [from, to) was consumed, and the producer knows of nothing behind @from yet: free its
 * pages, unless pinned, but those that hold some of [to, end), which is left. @end is
 * @from + size while the producer is busy. Not in hard irq.
 */
void afr_mem_release(struct afr_mem *mem, u64 from, u64 to, u64 end);
/*
 * Free all that hold nothing of [from, end), unless pinned; the producer is kept off. Not in
 * hard irq.
 */
void afr_mem_trim(struct afr_mem *mem, u64 from, u64 end);

/* Copy between the ring and @iter; the range is backed. Returns bytes copied. */
size_t afr_mem_copy_in(struct afr_mem *mem, u64 offset, size_t len, struct iov_iter *iter);
size_t afr_mem_copy_out(const struct afr_mem *mem, u64 offset, size_t len, struct iov_iter *iter);
/*
 * Describe at most @len bytes from @offset in at most @max kernel segments; returns
 * segments, *@bytes covered. The range is backed.
 */
unsigned int afr_mem_bvec(const struct afr_mem *mem, u64 offset, u32 len,
			  struct bio_vec *bv, unsigned int max, u32 *bytes);

#endif /* AFR_MEM_H */
