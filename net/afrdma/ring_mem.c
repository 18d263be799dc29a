// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Ring memory: allocation, limits, copying.
 *
 * The producer allocates pages and the consumer frees them, without a lock between them. This is
 * safe because the consumer never frees a page that the producer may use. The producer accesses
 * only positions in its window. While the producer is active, the consumer frees pages only in
 * afr_ring_mem_release(), and only those that lie completely in [@from, @to). The producer knows
 * no consumer cursor above @from yet, so these pages are not in its window. If @from is in the
 * middle of a page, that page is kept, because the producer may already have written bytes of the
 * next lap to the start of the page. If it has not, the page stays until the ring is empty or
 * trimmed, unless the next lap uses it before.
 *
 * Limits: rings on RDMA have at most three quarters of mem_max pages, and rings on TCP a quarter,
 * per namespace and per host. Neither can use the part of the other one: idle connections on RDMA
 * keep their pages, and connections on TCP keep unread bytes, so with a common limit, each could
 * block the other for ever. ring_quota.c charges rings before they are pinned. Here each page that
 * is allocated for a ring that is not pinned is counted as a page of a ring on TCP, until it is
 * freed or the ring is pinned. But these limits never refuse such a ring its first pages,
 * AFR_RING_MEM_MIN bytes in all; TCP likewise grants tcp_rmem[0] to each socket. So a ring that is
 * refused another page has at least that many. When the bytes in these pages are consumed, the ring
 * can again have that many pages for new bytes: no ring waits for another one to free memory.
 */
#include <linux/bvec.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "netns.h"
#include "proto/portable.h"
#include "proto/ring.h"
#include "ring_mem.h"

#define LEAST_PAGES	(AFR_RING_MEM_MIN / PAGE_SIZE)
/* Constants of afr_ring_mem_default_size(). */
#define RING_LEAST	(256u * 1024)	/* bytes */
#define RING_PART	512
#define RING_CONNS	32

static unsigned long mem_max;
module_param(mem_max, ulong, 0644);
MODULE_PARM_DESC(mem_max,
		 "maximum number of pages of ring memory, in all network namespaces together (default: a quarter of memory)");

static atomic_long_t all_tcp = ATOMIC_LONG_INIT(0);
static atomic_long_t all_promised = ATOMIC_LONG_INIT(0);

/* Returns how many of @most pages the rings on RDMA may have. */
static unsigned long rdma_share(unsigned long most)
{
	return most - most / 4;
}

static bool fits_tcp(const struct afr_net *an)
{
	unsigned long ours = READ_ONCE(an->set.mem_max), all = READ_ONCE(mem_max);

	return atomic_long_read(&an->ring_tcp) <= ours - rdma_share(ours) &&
	       atomic_long_read(&all_tcp) <= all - rdma_share(all);
}

static void count_tcp(struct afr_net *an, int pages)
{
	atomic_long_add(pages, &an->ring_tcp);
	atomic_long_add(pages, &all_tcp);
}

/* @tcp: the page is counted as one of a ring on TCP; otherwise ring_quota.c has charged it. */
static void uncharge_page(struct afr_ring_mem *mem, bool tcp)
{
	if (tcp)
		count_tcp(mem->an, -1);
	else
		atomic_dec(&mem->rdma);
	atomic_dec(&mem->held);
	atomic_long_dec(&mem->an->ring_pages);
}

/*
 * Counts one more page and returns true. But with @tcp, if the rings on TCP of the namespace or
 * the host are at their limit and the ring already has AFR_RING_MEM_MIN bytes of pages, counts
 * nothing and returns false.
 */
static bool charge_page(struct afr_ring_mem *mem, bool tcp)
{
	struct afr_net *an = mem->an;
	bool first = atomic_inc_return(&mem->held) <= LEAST_PAGES;

	atomic_long_inc(&an->ring_pages);
	if (!tcp) {
		atomic_inc(&mem->rdma);
		return true;
	}
	count_tcp(an, 1);
	if (first || fits_tcp(an))
		return true;
	uncharge_page(mem, true);
	return false;
}

/* Returns the share of rings on RDMA in @most pages, less the pages @promised to existing rings. */
static unsigned long spare(const atomic_long_t *promised, unsigned long most)
{
	unsigned long taken = atomic_long_read(promised);

	most = rdma_share(most);
	return most > taken ? most - taken : 0;
}

/**
 * afr_ring_mem_default_size() - choose the size of a ring for a socket that sets none itself
 * @an: namespace
 * @wanted: bytes, net.afrdma.sndbuf or rcvbuf, or less if a device limits the size of rings; at
 *	most AFR_RING_MAX
 *
 * A larger ring makes a single stream faster, but many streams share the capacity of the path, so
 * the more connections have rings, the smaller a new ring is: half of @wanted from RING_CONNS
 * connections on, a quarter from twice as many on, and so on. Also, a ring gets at most
 * 1/RING_PART of the memory that is available to rings on RDMA and not promised to other rings.
 * Neither rule makes it smaller than RING_LEAST. Rings of other namespaces do not make those of the
 * initial one smaller.
 *
 * Context: any.
 * Return: bytes, a power of two.
 */
u32 afr_ring_mem_default_size(struct afr_net *an, u32 wanted)
{
	bool host = net_eq(an->net, &init_net);
	unsigned long pages = min(spare(&an->ring_promised, READ_ONCE(an->set.mem_max)),
				  spare(host ? &an->ring_promised : &all_promised,
					READ_ONCE(mem_max))) / RING_PART;
	u32 part = min_t(unsigned long, pages, SZ_1G / PAGE_SIZE) * PAGE_SIZE;

	wanted = roundup_pow_of_two(wanted);	/* ring sizes are powers of two */
	part = min(part, wanted / (1 + atomic_read(&an->rings) / (2 * RING_CONNS)));
	return min(wanted, part > RING_LEAST ? (u32)rounddown_pow_of_two(part) : RING_LEAST);
}

/**
 * afr_ring_mem_available() - how many more pages may rings on RDMA have?
 * @an: namespace
 * @all: pages that are charged for rings on RDMA on this host; @an->ring_charged of them are @an's
 *
 * Context: any.
 * Return: pages.
 */
unsigned long afr_ring_mem_available(const struct afr_net *an, unsigned long all)
{
	unsigned long ours = rdma_share(READ_ONCE(an->set.mem_max));
	unsigned long most = rdma_share(READ_ONCE(mem_max));

	return min(ours - min(ours, an->ring_charged), most - min(most, all));
}

static unsigned long ring_index(const struct afr_ring_mem *mem, u64 offset)
{
	return (offset & (mem->size - 1)) >> PAGE_SHIFT;
}

static gfp_t ring_gfp(const struct afr_ring_mem *mem)
{
	gfp_t gfp = GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY;

	return mem->memcg ? gfp | __GFP_ACCOUNT : gfp;
}

static void account_ring(const struct afr_ring_mem *mem, long pages)
{
	atomic_add(pages > 0 ? 1 : -1, &mem->an->rings);
	atomic_long_add(pages, &mem->an->ring_promised);
	atomic_long_add(pages, &all_promised);
}

/**
 * afr_ring_mem_init() - initialise a ring without pages
 * @mem: ring
 * @an: namespace whose mem_max limits the pages
 * @size: bytes, a power of two >= AFR_RING_MEM_MIN
 * @node: NUMA node from which kernel threads allocate pages, if it has free ones
 * @memcg: charged for the pages, or NULL; the caller keeps it alive until afr_ring_mem_destroy()
 *
 * Context: any.
 */
void afr_ring_mem_init(struct afr_ring_mem *mem, struct afr_net *an, u32 size, int node,
		       struct mem_cgroup *memcg)
{
	mem->pages = NULL;
	mem->size = size;
	atomic_set(&mem->held, 0);
	atomic_set(&mem->rdma, 0);
	mem->pinned = false;
	mem->node = node;
	mem->an = an;
	mem->memcg = memcg;
	account_ring(mem, afr_ring_mem_pages(mem));
}

static void drop_page(struct afr_ring_mem *mem, unsigned long i)
{
	struct page *page = mem->pages[i];

	if (!page)
		return;
	AFR_CHECK(!mem->pinned);	/* a device may use pinned pages (I9) */
	mem->pages[i] = NULL;
	uncharge_page(mem, page_private(page));
	__free_page(page);
}

static void drop_pages(struct afr_ring_mem *mem, struct afr_ring_pages gone)
{
	if (mem->pinned || !mem->pages)
		return;
	for (; gone.first < gone.last; gone.first++)
		drop_page(mem, gone.first & (afr_ring_mem_pages(mem) - 1));
}

/**
 * afr_ring_mem_destroy() - free all memory of a ring
 * @mem: ring, no longer registered with a device; or all zero
 *
 * Context: process. Nothing else uses the ring.
 */
void afr_ring_mem_destroy(struct afr_ring_mem *mem)
{
	if (!mem->an)
		return;		/* afr_ring_mem_init() was not called */
	WARN_ON_ONCE(mem->pinned);
	afr_ring_mem_trim(mem, 0, 0);
	WARN_ON_ONCE(atomic_read(&mem->held));
	account_ring(mem, -(long)afr_ring_mem_pages(mem));
	mem->an = NULL;
	kvfree(mem->pages);
	mem->pages = NULL;
}

/*
 * A program gets pages as its memory policy says, normally of the node on which it runs. A kernel
 * thread may run on any node.
 */
static struct page *alloc_ring_page(const struct afr_ring_mem *mem)
{
	gfp_t gfp = ring_gfp(mem) | __GFP_ZERO;

	return current->flags & PF_KTHREAD ? alloc_pages_node(mem->node, gfp, 0) : alloc_page(gfp);
}

static int populate_page(struct afr_ring_mem *mem, unsigned long i)
{
	bool tcp = !READ_ONCE(mem->pinned);
	struct page *page;

	if (mem->pages[i])
		return 0;
	if (!charge_page(mem, tcp))
		return -EDQUOT;
	page = alloc_ring_page(mem);
	if (!page) {
		uncharge_page(mem, tcp);
		return -ENOMEM;
	}
	set_page_private(page, tcp);	/* for uncharge_page() */
	/* a sender and a worker that pins the ring may both find no page here */
	if (cmpxchg(&mem->pages[i], NULL, page)) {
		__free_page(page);
		uncharge_page(mem, tcp);
		return 0;
	}
	afr_netns_count(mem->an->net, AFR_STAT_RING_PAGES);
	return 0;
}

static int populate_range(struct afr_ring_mem *mem, u64 offset, u32 len)
{
	u32 done = 0;
	int err = 0;

	if (!READ_ONCE(mem->pages)) {
		struct page **pages = kvcalloc(afr_ring_mem_pages(mem), sizeof(*pages),
					       ring_gfp(mem));

		if (!pages)
			return -ENOMEM;
		if (cmpxchg(&mem->pages, NULL, pages))
			kvfree(pages);
	}
	while (done < len) {
		err = populate_page(mem, ring_index(mem, offset + done));
		if (err)
			break;
		done += min_t(u32, len - done, PAGE_SIZE - offset_in_page(offset + done));
	}
	return done ? done : err;
}

/* Allocates pages by populate_range(), charged to the memory cgroup of the ring. */
static int back(struct afr_ring_mem *mem, u64 offset, u32 len)
{
	struct mem_cgroup *old;
	int ret;

	/* without this, allocations in a workqueue would not be charged (T18) */
	old = set_active_memcg(mem->memcg);
	ret = populate_range(mem, offset, len);
	set_active_memcg(old);
	if (ret < 0)
		afr_netns_count(mem->an->net, AFR_STAT_RING_NO_MEMORY);
	return ret;
}

/**
 * afr_ring_mem_populate() - allocate the pages of [offset, offset + len), or only the first of them
 * @mem: ring
 * @offset: absolute offset
 * @len: bytes, at most the size of the ring
 *
 * If only the first pages can be allocated, that counts as success, and the producer goes on with
 * them: producers that kept some pages and waited for more could wait for each other forever.
 *
 * Context: process, the producer. May sleep.
 * Return: number of bytes from @offset on that have pages. If there are none: -ENOMEM; or -EDQUOT
 * if the ring is not pinned and has at least AFR_RING_MEM_MIN bytes of pages, and the rings on TCP
 * of the namespace or the host are at their limit.
 */
int afr_ring_mem_populate(struct afr_ring_mem *mem, u64 offset, u32 len)
{
	return len ? back(mem, offset, len) : 0;
}

/**
 * afr_ring_mem_starved() - must a producer wait until the consumer frees a page of this ring?
 * @mem: ring
 * @offset: where the producer continues, and for which afr_ring_mem_populate() returned an error
 *
 * Context: any, holding the lock that the consumer holds in afr_ring_mem_release(); after
 * afr_ring_mem_trim().
 * Return: false if the page of @offset has been allocated meanwhile, or the ring has so few pages
 * that the limits do not keep afr_ring_mem_populate() from allocating another one.
 */
bool afr_ring_mem_starved(const struct afr_ring_mem *mem, u64 offset)
{
	return mem->pages && !READ_ONCE(mem->pages[ring_index(mem, offset)]) &&
	       atomic_read(&mem->held) >= LEAST_PAGES;
}

/**
 * afr_ring_mem_pin() - allocate all pages of a ring, and keep them until afr_ring_mem_unpin()
 * @mem: ring, to be registered with a device; charged by afr_ring_quota_charge()
 *
 * Context: process. No release or trim may run concurrently, unless the caller has set
 * @mem->pinned under the consumer's lock before.
 * Return: 0; or -ENOMEM, and the ring is not pinned.
 */
int afr_ring_mem_pin(struct afr_ring_mem *mem)
{
	unsigned long i;
	u32 done;
	int ret;

	/* first: populate_page() then applies no limit, as the quota was charged before */
	mem->pinned = true;
	for (done = 0; done < mem->size; done += ret) {
		ret = back(mem, done, mem->size - done);
		if (ret < 0) {
			mem->pinned = false;
			return ret;
		}
	}
	for (i = 0; i < afr_ring_mem_pages(mem); i++) {
		if (!page_private(mem->pages[i]))
			continue;
		set_page_private(mem->pages[i], false);
		count_tcp(mem->an, -1);
		atomic_inc(&mem->rdma);
	}
	return 0;
}

/**
 * afr_ring_mem_on_rdma() - how many pages of a ring are charged for RDMA?
 * @mem: ring
 *
 * Context: any.
 * Return: all pages while the ring is pinned, otherwise @mem->rdma.
 */
unsigned long afr_ring_mem_on_rdma(const struct afr_ring_mem *mem)
{
	return mem->pinned ? afr_ring_mem_pages(mem) : atomic_read(&mem->rdma);
}

/**
 * afr_ring_mem_unpin() - allow the pages of a ring to be freed again
 * @mem: ring, no longer registered with a device
 *
 * Keeps the pages: afr_ring_mem_release() and afr_ring_mem_trim() free them.
 *
 * Context: process, under the lock under which the consumer releases.
 */
void afr_ring_mem_unpin(struct afr_ring_mem *mem)
{
	mem->pinned = false;
}

/**
 * afr_ring_mem_release() - free the pages of consumed bytes, unless the ring is pinned
 * @mem: ring
 * @from: consumer's cursor as known to the producer
 * @to: consumer's cursor now, which the producer must not learn before this returns
 * @end: end of the bytes that the ring still holds; @from + size while a producer is active
 *
 * Frees the pages of [from, to) that hold no bytes of [to, end), or all pages of the ring if
 * @to == @end.
 *
 * Context: process or softirq, the consumer, under the lock of its sequence state (conn->tx.lock or
 * conn->rx.lock).
 */
void afr_ring_mem_release(struct afr_ring_mem *mem, u64 from, u64 to, u64 end)
{
	struct afr_ring_pages gone = afr_ring_unused(to, end, mem->size, PAGE_SHIFT);

	/*
	 * Limits @gone to the pages of [from, to). @gone numbers a page as in the next lap: its
	 * number in [from, to) plus the number of pages in the ring. Any other unused page that is
	 * still allocated stays until the ring is empty or trimmed, or the next lap uses it.
	 */
	if (to != end)
		gone.first = max(gone.first, (from >> PAGE_SHIFT) + afr_ring_mem_pages(mem));
	drop_pages(mem, gone);
}

/**
 * afr_ring_mem_trim() - free all pages that hold no bytes, unless the ring is pinned
 * @mem: ring
 * @from: consumer's cursor, or @end if no byte in the ring is needed any more
 * @end: producer's cursor
 *
 * Context: process or softirq, under the lock of the sequence state, unless nothing else uses the
 * ring; no producer is active, except the caller itself.
 */
void afr_ring_mem_trim(struct afr_ring_mem *mem, u64 from, u64 end)
{
	drop_pages(mem, afr_ring_unused(from, end, mem->size, PAGE_SHIFT));
}

/*
 * Returns the page that contains @offset. Sets @start to the position of @offset in that page, and
 * @bytes to the number of bytes from @start to the end of the page, but to at most @left.
 */
static struct page *step(const struct afr_ring_mem *mem, u64 offset, size_t left,
			 size_t *start, size_t *bytes)
{
	*start = offset_in_page(offset);
	*bytes = min_t(size_t, left, PAGE_SIZE - *start);
	return mem->pages[ring_index(mem, offset)];
}

/**
 * afr_ring_mem_copy_in() - copy from @iter into the ring
 * @mem: ring
 * @offset: absolute offset
 * @len: bytes; all their pages are allocated
 * @iter: source
 *
 * Context: process, the producer. May fault.
 * Return: bytes copied, less than @len if the source faulted or ended.
 */
size_t afr_ring_mem_copy_in(struct afr_ring_mem *mem, u64 offset, size_t len,
			    struct iov_iter *iter)
{
	size_t start, bytes, copied, done = 0;
	struct page *page;

	while (done < len) {
		page = step(mem, offset + done, len - done, &start, &bytes);
		copied = copy_page_from_iter(page, start, bytes, iter);
		done += copied;
		if (copied != bytes)
			break;
	}
	afr_netns_add(mem->an->net, AFR_STAT_COPIED_IN, done);
	return done;
}

/**
 * afr_ring_mem_copy_out() - copy from the ring to @iter
 * @mem: ring
 * @offset: absolute offset
 * @len: bytes; all their pages are allocated
 * @iter: destination
 *
 * Context: process, the consumer. May fault.
 * Return: bytes copied, less than @len if the destination faulted or is full.
 */
size_t afr_ring_mem_copy_out(const struct afr_ring_mem *mem, u64 offset, size_t len,
			     struct iov_iter *iter)
{
	size_t start, bytes, copied, done = 0;
	struct page *page;

	while (done < len) {
		page = step(mem, offset + done, len - done, &start, &bytes);
		/* copy_page_to_iter() of older kernels would put the page itself into a pipe */
		copied = copy_to_iter(page_address(page) + start, bytes, iter);
		done += copied;
		if (copied != bytes)
			break;
	}
	afr_netns_add(mem->an->net, AFR_STAT_COPIED_OUT, done);
	return done;
}

/**
 * afr_ring_mem_bvec() - describe bytes of a ring as kernel segments
 * @mem: ring
 * @offset: absolute offset
 * @len: maximum number of bytes; all their pages are allocated
 * @bv: out: segments, each within one page
 * @max: number of elements in @bv
 * @bytes: out: number of bytes described
 *
 * Context: any.
 * Return: number of segments used.
 */
unsigned int afr_ring_mem_bvec(const struct afr_ring_mem *mem, u64 offset, u32 len,
			       struct bio_vec *bv, unsigned int max, u32 *bytes)
{
	size_t start, piece, done = 0;
	unsigned int n = 0;

	while (n < max && done < len) {
		bv[n].bv_page = step(mem, offset + done, len - done, &start, &piece);
		bv[n].bv_offset = start;
		bv[n].bv_len = piece;
		done += piece;
		n++;
	}
	*bytes = done;
	return n;
}

/**
 * afr_ring_mem_setup() - choose the limit of the host, unless the module parameter sets it
 *
 * Context: module load.
 */
void afr_ring_mem_setup(void)
{
	if (!mem_max)
		mem_max = totalram_pages() / 4;
}
