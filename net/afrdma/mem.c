// SPDX-License-Identifier: GPL-2.0
/*
 * Ring memory.
 *
 * The producer puts pages in and the consumer takes them out, without a lock
 * between them. That is safe because of what each may touch: the producer only
 * positions inside the window, and the consumer, while the producer is busy, only a page
 * that lies as a whole in [from, to) of one release, where the producer has not yet been
 * told of anything beyond @from. A page the consumer leaves in the middle meanwhile stays,
 * for its first bytes may be in use for the next round, until the ring is empty or trimmed.
 *
 * Limits. All rings together have at most mem_max pages, of the namespace and of the host,
 * but each ring has AFR_MEM_LEAST bytes of them whatever the limits say, as TCP's sockets have
 * tcp_rmem[0]: a ring that holds so much has bytes to get rid of, and goes on when it has. So
 * nobody waits for the memory of others.
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

#include "mem.h"
#include "netns.h"
#include "pure.h"
#include "ring.h"
#include "stats.h"

#define LEAST_PAGES	(AFR_MEM_LEAST / PAGE_SIZE)
#define RING_LEAST	(256u * 1024)	/* bytes */
#define RING_PART	512
#define RING_CONNS	32

static unsigned long mem_max;
module_param(mem_max, ulong, 0644);
MODULE_PARM_DESC(mem_max, "pages of ring memory, all namespaces together (default: a quarter of memory)");

static atomic_long_t all_pages = ATOMIC_LONG_INIT(0);
static atomic_long_t all_promised = ATOMIC_LONG_INIT(0);

static void give_page(struct afr_mem *mem)
{
	atomic_dec(&mem->held);
	atomic_long_dec(&all_pages);
	atomic_long_dec(&mem->an->ring_pages);
}

/*
 * Rings of RDMA keep their pages as long as they are attached, those of TCP for moments: a
 * quarter is left for these, or connections that are idle would stop others for good.
 */
static unsigned long rdma_share(unsigned long most)
{
	return most - most / 4;
}

static bool within(long pages, unsigned long most, bool pin)
{
	return pages <= (pin ? rdma_share(most) : most);
}

/*
 * One more page: false when the namespace or the host is at its limit. That is none to the
 * first pages of a ring, but who pins it all does not begin what the limit will end.
 */
static bool take_page(struct afr_mem *mem, bool pin)
{
	struct afr_net *an = mem->an;
	bool fits;

	fits = within(atomic_long_inc_return(&an->ring_pages), READ_ONCE(an->set.mem_max), pin);
	fits &= within(atomic_long_inc_return(&all_pages), READ_ONCE(mem_max), pin);
	fits |= !pin && atomic_read(&mem->held) < LEAST_PAGES;
	atomic_inc(&mem->held);
	if (!fits)
		give_page(mem);
	return fits;
}

static unsigned long spare(const atomic_long_t *promised, unsigned long most)
{
	unsigned long taken = atomic_long_read(promised);

	most = rdma_share(most);
	return most > taken ? most - taken : 0;
}

/**
 * afr_mem_ring() - how large a ring to make for a socket that does not say
 * @an: namespace
 * @wanted: bytes, net.afrdma.sndbuf or rcvbuf; at most AFR_RING_MAX
 *
 * A stream is the faster the more it can have in flight, but many share one pipe: rings become
 * smaller with every RING_CONNS connections that have some. And none gets more than one of
 * RING_PART parts of what rings of RDMA have not been promised yet. Not below RING_LEAST for
 * either.
 *
 * Context: Any.
 * Return: bytes.
 */
u32 afr_mem_ring(struct afr_net *an, u32 wanted)
{
	unsigned long pages = min(spare(&an->ring_promised, READ_ONCE(an->set.mem_max)),
				  spare(&all_promised, READ_ONCE(mem_max))) / RING_PART;
	u32 part = min_t(unsigned long, pages, SZ_1G / PAGE_SIZE) * PAGE_SIZE;

	wanted = roundup_pow_of_two(wanted);	/* as it would become */
	part = min(part, wanted / (1 + atomic_read(&an->rings) / (2 * RING_CONNS)));
	return min(wanted, part > RING_LEAST ? (u32)rounddown_pow_of_two(part) : RING_LEAST);
}

/**
 * afr_mem_free() - what rings of RDMA may still take
 * @an: namespace
 * @pinned: pages that they have, or are just taking
 *
 * Context: Any.
 * Return: pages.
 */
unsigned long afr_mem_free(const struct afr_net *an, unsigned long pinned)
{
	unsigned long ours = rdma_share(READ_ONCE(an->set.mem_max));
	unsigned long all = rdma_share(READ_ONCE(mem_max));

	ours -= min(ours, max_t(unsigned long, atomic_long_read(&an->ring_pages), pinned));
	all -= min(all, max_t(unsigned long, atomic_long_read(&all_pages), pinned));
	return min(ours, all);
}

static unsigned long ring_index(const struct afr_mem *mem, u64 offset)
{
	return (offset & (mem->size - 1)) >> PAGE_SHIFT;
}

static gfp_t ring_gfp(const struct afr_mem *mem)
{
	gfp_t gfp = GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY;

	return mem->memcg ? gfp | __GFP_ACCOUNT : gfp;
}

static void promise(const struct afr_mem *mem, long pages)
{
	atomic_add(pages > 0 ? 1 : -1, &mem->an->rings);
	atomic_long_add(pages, &mem->an->ring_promised);
	if (net_eq(mem->an->net, &init_net))	/* in others there is no RDMA */
		atomic_long_add(pages, &all_promised);
}

/**
 * afr_mem_init() - a ring that owns no memory yet
 * @mem: the ring
 * @an: namespace whose mem_max bounds the pages
 * @size: bytes, a power of two >= AFR_MEM_LEAST
 * @memcg: charged for the pages, or NULL; the caller keeps it alive until
 *	afr_mem_destroy()
 *
 * Context: Any.
 */
void afr_mem_init(struct afr_mem *mem, struct afr_net *an, u32 size, struct mem_cgroup *memcg)
{
	mem->pages = NULL;
	mem->size = size;
	atomic_set(&mem->held, 0);
	mem->pinned = false;
	mem->an = an;
	mem->memcg = memcg;
	promise(mem, afr_mem_pages(mem));
}

static void drop_page(struct afr_mem *mem, unsigned long i)
{
	struct page *page = mem->pages[i];

	if (!page)
		return;
	AFR_CHECK(!mem->pinned);	/* a device may write to it (I9) */
	mem->pages[i] = NULL;
	__free_page(page);
	give_page(mem);
}

static void drop_pages(struct afr_mem *mem, struct afr_ring_pages gone)
{
	if (mem->pinned || !mem->pages)
		return;
	for (; gone.first < gone.last; gone.first++)
		drop_page(mem, gone.first & (afr_mem_pages(mem) - 1));
}

/**
 * afr_mem_destroy() - free everything
 * @mem: the ring, no longer registered with a device
 *
 * Context: Process. Nobody else uses the ring.
 */
void afr_mem_destroy(struct afr_mem *mem)
{
	if (!mem->an)
		return;		/* never made */
	WARN_ON_ONCE(mem->pinned);
	afr_mem_trim(mem, 0, 0);
	WARN_ON_ONCE(atomic_read(&mem->held));
	promise(mem, -(long)afr_mem_pages(mem));
	mem->an = NULL;
	kvfree(mem->pages);
	mem->pages = NULL;
}

static int back_page(struct afr_mem *mem, unsigned long i, bool pin)
{
	struct page *page;

	if (mem->pages[i])
		return 0;
	if (!take_page(mem, pin))
		return -EDQUOT;
	page = alloc_page(ring_gfp(mem) | __GFP_ZERO);
	if (!page) {
		give_page(mem);
		return -ENOMEM;
	}
	/* a sender and the pinning work may both find the place empty */
	if (cmpxchg(&mem->pages[i], NULL, page)) {
		__free_page(page);
		give_page(mem);
		return 0;
	}
	afr_stat_inc(mem->an->net, AFR_STAT_RING_PAGES);
	return 0;
}

static int back_range(struct afr_mem *mem, u64 offset, u32 len, bool pin)
{
	u32 done = 0;
	int err = 0;

	if (!READ_ONCE(mem->pages)) {
		struct page **pages = kvcalloc(afr_mem_pages(mem), sizeof(*pages), ring_gfp(mem));

		if (!pages)
			return -ENOMEM;
		if (cmpxchg(&mem->pages, NULL, pages))
			kvfree(pages);
	}
	while (done < len) {
		err = back_page(mem, ring_index(mem, offset + done), pin);
		if (err)
			break;
		done += min_t(u32, len - done, PAGE_SIZE - offset_in_page(offset + done));
	}
	return done ? done : err;
}

static int back(struct afr_mem *mem, u64 offset, u32 len, bool pin)
{
	struct mem_cgroup *old;
	int ret;

	/* A workqueue would charge nobody (T18). */
	old = set_active_memcg(mem->memcg);
	ret = back_range(mem, offset, len, pin);
	set_active_memcg(old);
	if (ret < 0)
		afr_stat_inc(mem->an->net, AFR_STAT_RING_NO_MEMORY);
	return ret;
}

/**
 * afr_mem_back() - make [offset, offset + len) backed by pages, as far as there are any
 * @mem: the ring
 * @offset: absolute offset
 * @len: bytes, at most the size of the ring
 *
 * A part is better than nothing: producers that held parts and waited would wait for each other.
 *
 * Context: Process, the producer. May sleep.
 * Return: bytes from @offset on that are backed; instead of none -ENOMEM, or -EDQUOT when
 * namespace or host are at mem_max and the ring holds AFR_MEM_LEAST.
 */
int afr_mem_back(struct afr_mem *mem, u64 offset, u32 len)
{
	return len ? back(mem, offset, len, false) : 0;
}

/**
 * afr_mem_starved() - does a producer wait for what the consumer takes, and not for others?
 * @mem: the ring
 * @offset: where the producer wants to go on, and afr_mem_back() said -EDQUOT
 *
 * Context: Any, under the lock under which the consumer releases, behind afr_mem_trim().
 * Return: false if there is a page meanwhile, or one would be given.
 */
bool afr_mem_starved(const struct afr_mem *mem, u64 offset)
{
	return mem->pages && !READ_ONCE(mem->pages[ring_index(mem, offset)]) &&
	       atomic_read(&mem->held) >= LEAST_PAGES;
}

/**
 * afr_mem_pin() - back the whole ring and keep it so
 * @mem: the ring
 *
 * Context: Process; the caller keeps producer and consumer off.
 * Return: 0, -ENOMEM or -EDQUOT; on failure the ring is not pinned.
 */
int afr_mem_pin(struct afr_mem *mem)
{
	u32 done;
	int ret;

	/* First, so that no release takes away what is being put in. */
	mem->pinned = true;
	for (done = 0; done < mem->size; done += ret) {
		ret = back(mem, done, mem->size - done, true);
		if (ret < 0) {
			mem->pinned = false;
			return ret;
		}
	}
	return 0;
}

/**
 * afr_mem_unpin() - the device has let go of the ring
 * @mem: the ring
 *
 * The pages stay until they are released, or afr_mem_trim() looks for those that hold nothing.
 *
 * Context: Process; the caller keeps producer and consumer off.
 */
void afr_mem_unpin(struct afr_mem *mem)
{
	mem->pinned = false;
}

/**
 * afr_mem_release() - [from, to) was consumed
 * @mem: the ring
 * @from: the consumer's cursor as the producer knows it
 * @to: the consumer's cursor now; not told to the producer before this returns
 * @end: what is left ends here; @from + size if the producer may be about to put in more
 *
 * Frees the pages of [from, to) that hold nothing of [to, end); all pages when that is empty.
 *
 * Context: Process or softirq, the consumer, under the lock of the books.
 */
void afr_mem_release(struct afr_mem *mem, u64 from, u64 to, u64 end)
{
	struct afr_ring_pages gone = afr_ring_unused(to, end, mem->size, PAGE_SHIFT);

	if (to != end)	/* those before went in earlier releases */
		gone.first = max(gone.first, (from >> PAGE_SHIFT) + afr_mem_pages(mem));
	drop_pages(mem, gone);
}

/**
 * afr_mem_trim() - free what holds nothing
 * @mem: the ring
 * @from: the consumer's cursor
 * @end: the producer's
 *
 * Context: Process or softirq, under the lock of the books, the producer kept off.
 */
void afr_mem_trim(struct afr_mem *mem, u64 from, u64 end)
{
	drop_pages(mem, afr_ring_unused(from, end, mem->size, PAGE_SHIFT));
}

/* One step of a walk over [offset, offset + left): page, start in it, bytes in it. */
static struct page *step(const struct afr_mem *mem, u64 offset, size_t left,
			 size_t *start, size_t *bytes)
{
	*start = offset_in_page(offset);
	*bytes = min_t(size_t, left, PAGE_SIZE - *start);
	return mem->pages[ring_index(mem, offset)];
}

/**
 * afr_mem_copy_in() - copy from @iter into the ring
 * @mem: the ring
 * @offset: absolute offset
 * @len: bytes; [offset, offset + len) is backed
 * @iter: source
 *
 * Context: Process, the producer. May fault.
 * Return: bytes copied, less than @len if the source faulted or ended.
 */
size_t afr_mem_copy_in(struct afr_mem *mem, u64 offset, size_t len, struct iov_iter *iter)
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
	afr_stat_add(mem->an->net, AFR_STAT_COPIED_IN, done);
	return done;
}

/**
 * afr_mem_copy_out() - copy from the ring to @iter
 * @mem: the ring
 * @offset: absolute offset
 * @len: bytes; [offset, offset + len) is backed
 * @iter: destination
 *
 * Context: Process, the consumer. May fault.
 * Return: bytes copied, less than @len if the destination faulted or is full.
 */
size_t afr_mem_copy_out(const struct afr_mem *mem, u64 offset, size_t len, struct iov_iter *iter)
{
	size_t start, bytes, copied, done = 0;
	struct page *page;

	while (done < len) {
		page = step(mem, offset + done, len - done, &start, &bytes);
		/* by value: older kernels would hand the page itself to a pipe */
		copied = copy_to_iter(page_address(page) + start, bytes, iter);
		done += copied;
		if (copied != bytes)
			break;
	}
	afr_stat_add(mem->an->net, AFR_STAT_COPIED_OUT, done);
	return done;
}

/**
 * afr_mem_bvec() - describe ring bytes for a kernel copy
 * @mem: the ring
 * @offset: absolute offset
 * @len: bytes wanted; [offset, offset + len) is backed
 * @bv: segments, each inside one page
 * @max: room in @bv
 * @bytes: out: bytes described
 *
 * Context: Any.
 * Return: segments used.
 */
unsigned int afr_mem_bvec(const struct afr_mem *mem, u64 offset, u32 len,
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
 * afr_mem_setup() - the limit of the host, if the parameter does not say
 *
 * Context: Module load.
 */
void afr_mem_setup(void)
{
	if (!mem_max)
		mem_max = totalram_pages() / 4;
}
