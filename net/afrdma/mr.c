// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Memory regions: mapping and registration of rings.
 *
 * Every page is mapped for DMA once. The page list of a mirrored ring contains the DMA addresses
 * of all pages, and then all of them again (R2). Its entries need no struct page, because
 * ib_map_mr_sg() uses only DMA addresses and lengths. The region begins at address 0, so that a
 * position in the ring is an address in the region, and the peer learns no kernel address.
 *
 * A region is freed with its attach and registered only once, so that a key is not reused (R4).
 * Relaxed ordering is never requested: the bytes of a write are in memory when it completes (O2).
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "link.h"
#include "link_queue.h"
#include "mr.h"
#include "ring_mem.h"
#include "trace.h"

struct afr_mr {
	struct afr_mr_view	view;
	struct afr_link		*link;	/* referenced: keeps protection domain and device */
	struct ib_mr		*mr;
	bool			remote;	/* of a receive ring, which the peer writes to */
	bool			registered;
	u64			id;
	enum dma_data_direction	dir;
	unsigned int		pages;
	unsigned int		mapped;
	u64			dma[];
};

static atomic64_t mr_ids = ATOMIC64_INIT(0);

static struct ib_device *mr_device(const struct afr_mr *mr)
{
	return mr->link->pd->device;
}

/*
 * Would the CPU have to sync the DMA mapping? A ring cannot be synced, since the device accesses it
 * at any time. Drivers that copy with the CPU need no syncs.
 */
static bool needs_sync(struct ib_device *ib, u64 dma)
{
	return !ib_uses_virt_dma(ib) && dma_need_sync(ib->dma_device, dma);
}

static int map_pages(struct afr_mr *mr, struct afr_ring_mem *mem)
{
	struct ib_device *ib = mr_device(mr);
	u64 dma;

	for (; mr->mapped < mr->pages; mr->mapped++) {
		dma = ib_dma_map_page(ib, mem->pages[mr->mapped], 0, PAGE_SIZE, mr->dir);
		if (ib_dma_mapping_error(ib, dma))
			return -ENOMEM;
		mr->dma[mr->mapped] = dma;
		if (needs_sync(ib, dma)) {
			ib_dma_unmap_page(ib, dma, PAGE_SIZE, mr->dir);
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

static void unmap_pages(struct afr_mr *mr)
{
	while (mr->mapped)
		ib_dma_unmap_page(mr_device(mr), mr->dma[--mr->mapped], PAGE_SIZE, mr->dir);
}

/* Gives the region a list of @n entries: all pages of the ring, once or twice in a row. */
static int map_list(struct afr_mr *mr, unsigned int n)
{
	struct scatterlist *sg = kvcalloc(n, sizeof(*sg), GFP_KERNEL);
	unsigned int i;
	int ret;

	if (!sg)
		return -ENOMEM;
	sg_init_table(sg, n);
	for (i = 0; i < n; i++) {
		sg_dma_address(&sg[i]) = mr->dma[i % mr->pages];
		sg_dma_len(&sg[i]) = PAGE_SIZE;
		sg[i].length = PAGE_SIZE;
	}
	ret = ib_map_mr_sg(mr->mr, sg, n, NULL, PAGE_SIZE);
	kvfree(sg);
	if (ret < 0)
		return ret;
	return ret == n ? 0 : -EIO;
}

/*
 * When rxe retries an unacknowledged write, it executes later local operations again, and a REG_MR
 * that is executed twice breaks the queue pair. But rxe delays LOCAL_INV until everything before
 * it is acknowledged. So a LOCAL_INV of the new region, which invalidates nothing, is posted
 * before REG_MR, and keeps REG_MR out of retries.
 */
static bool retries_local_ops(const struct afr_mr *mr)
{
	return mr_device(mr)->ops.driver_id == RDMA_DRIVER_RXE;
}

/* Posts the registration, and waits for its completion. */
static int register_list(struct afr_mr *mr)
{
	struct ib_send_wr fence = {
		.opcode = IB_WR_LOCAL_INV,
		.ex.invalidate_rkey = mr->mr->rkey,
	};
	struct ib_reg_wr wr = { .wr.opcode = IB_WR_REG_MR };

	mr->mr->iova = 0;
	ib_update_fast_reg_key(mr->mr, get_random_u8());
	wr.mr = mr->mr;
	wr.key = mr->remote ? mr->mr->rkey : mr->mr->lkey;
	wr.access = mr->remote ? IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE : 0;
	fence.next = &wr.wr;
	return afr_link_queue_run(mr->link, retries_local_ops(mr) ? &fence : &wr.wr);
}

/* Maps the ring and allocates its region, mirrored if the device allows so many pages. */
static int open_mr(struct afr_mr *mr, struct afr_ring_mem *mem)
{
	unsigned int max = mr_device(mr)->attrs.max_fast_reg_page_list_len;
	unsigned int n = 2 * mr->pages <= max ? 2 * mr->pages : mr->pages;
	struct ib_mr *ibmr;
	int ret;

	if (n > max)
		return -EIO;
	ret = map_pages(mr, mem);
	if (ret)
		return ret;
	ibmr = ib_alloc_mr(mr->link->pd, IB_MR_TYPE_MEM_REG, n);
	if (IS_ERR(ibmr))
		return PTR_ERR(ibmr) == -ENOMEM ? -ENOMEM : -EIO;
	mr->mr = ibmr;
	ret = map_list(mr, n);
	if (ret)
		return ret;
	mr->view.span = n * PAGE_SIZE;
	return 0;
}

/* Frees a region, even if open_mr() has failed in the middle. */
static void close_mr(struct afr_mr *mr)
{
	if (mr->mr)
		ib_dereg_mr(mr->mr);
	unmap_pages(mr);
	trace_afrdma_mr_destroy(mr->id);
	afr_link_put(mr->link);
	kvfree(mr);
}

/**
 * afr_mr_map() - map a ring for the device of a link
 * @link: link, referenced by the caller
 * @mem: ring, pinned until afr_mr_free()
 * @remote_write: true for a receive ring, which the peer writes to; false for a send ring, which
 *	the device only reads
 *
 * Context: process. Nothing may write to a receive ring meanwhile: if its DMA mapping turns out to
 * need syncing, unmapping it again may overwrite the ring.
 * Return: the region, or ERR_PTR(): -ENOTCONN: the link is not up; -ENOMEM; -EOPNOTSUPP: the
 * device needs DMA syncing; -EIO: the device refused the region, or allows fewer pages in a region
 * than the ring has; or the error of ib_map_mr_sg().
 */
struct afr_mr *afr_mr_map(struct afr_link *link, struct afr_ring_mem *mem, bool remote_write)
{
	unsigned int pages = mem->size >> PAGE_SHIFT;
	struct afr_mr *mr;
	int ret;

	if (WARN_ON_ONCE(!mem->pinned))
		return ERR_PTR(-EIO);
	/* a link that is not up may have no protection domain */
	if (!afr_link_is_up(link))
		return ERR_PTR(-ENOTCONN);
	mr = kvzalloc(struct_size(mr, dma, pages), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	afr_link_get(link);
	mr->link = link;
	mr->remote = remote_write;
	mr->pages = pages;
	mr->dir = remote_write ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	mr->id = atomic64_inc_return(&mr_ids);
	trace_afrdma_mr_create(mr->id);
	ret = open_mr(mr, mem);
	if (ret) {
		close_mr(mr);
		return ERR_PTR(ret);
	}
	return mr;
}

/**
 * afr_mr_register() - give the device, and for a receive ring the peer, access to the ring
 * @mr: region, mapped
 *
 * Context: process. Sleeps until the registration and all work requests posted before it have
 * completed (R4).
 * Return: 0; -ENOTCONN: the link was lost, perhaps because the device refused the registration.
 */
int afr_mr_register(struct afr_mr *mr)
{
	int ret = register_list(mr);

	if (ret)
		return ret;
	mr->registered = true;
	mr->view.lkey = mr->mr->lkey;
	mr->view.rkey = mr->mr->rkey;
	return 0;
}

/**
 * afr_mr_free() - revoke access to a ring, and free its region
 * @mr: region, or NULL
 *
 * Call this only if one of these conditions is met (PE5):
 * - either ring: the link is drained (down() was called);
 * - send ring: the local DETACH has completed, or no write was posted;
 * - receive ring: the peer's DETACH was polled, the peer has refused the attach, or the peer never
 *   learned the key;
 * - receive ring: the caller has given up waiting for the peer's DETACH. The peer may still write,
 *   but once this function has revoked the key, the device refuses the writes.
 *
 * Context: process. Sleeps.
 */
void afr_mr_free(struct afr_mr *mr)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV };

	if (!mr)
		return;
	if (mr->remote && mr->registered) {
		wr.ex.invalidate_rkey = mr->mr->rkey;
		/* this fails on a lost link; then ib_dereg_mr() ends the peer's access */
		afr_link_queue_run(mr->link, &wr);
	}
	close_mr(mr);
}

/**
 * afr_mr_view() - get what a work request or the peer needs to know about a region
 * @mr: region
 *
 * Context: any.
 * Return: the view, which does not change between afr_mr_register() and afr_mr_free().
 */
const struct afr_mr_view *afr_mr_view(const struct afr_mr *mr)
{
	return &mr->view;
}
