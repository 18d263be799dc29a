// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Builds the work requests of messages, and manages receives, with and without immediates. */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "link_wr.h"

#define NOTE_SIZE	sizeof(struct afr_wire_note)
/* Bytes: not less than the largest write that siw copies into its header (MAX_HDR_INLINE). */
#define SIW_SHORT	64

/*
 * siw may corrupt a write of at most SIW_SHORT bytes that crosses a page boundary, unless the part
 * on each page has an SGE of its own. Regions begin at page-aligned addresses, so the boundaries
 * are at multiples of PAGE_SIZE.
 */
static void split_short(struct afr_link_wr *message, struct ib_send_wr *write)
{
	const struct ib_sge *sge = write->sg_list;
	u32 first = PAGE_SIZE - offset_in_page(sge->addr);

	if (sge->length > SIW_SHORT || sge->length <= first)
		return;
	message->data[0] = (struct ib_sge){ sge->addr, first, sge->lkey };
	message->data[1] = (struct ib_sge){ sge->addr + first, sge->length - first, sge->lkey };
	write->sg_list = message->data;
	write->num_sge = 2;
}

/**
 * afr_link_wr_build() - build the work requests of a message
 * @message: memory for them
 * @write: source and target of the data, if there is any, and flags
 * @imm: the immediate
 * @iwarp: build a SEND, behind a write if there is data, instead of a write with immediate
 *
 * On iWARP, when the SEND is delivered, the bytes written before it have been placed (RFC 5040).
 *
 * Context: any.
 * Return: what to post: @write, the SEND, or a chain of both. Only the last one may be signaled.
 * The result is valid as long as @message and @write.
 */
struct ib_send_wr *afr_link_wr_build(struct afr_link_wr *message, struct ib_send_wr *write,
				     u32 imm, bool iwarp)
{
	struct ib_send_wr *send = &message->send;

	if (!iwarp) {
		write->opcode = IB_WR_RDMA_WRITE_WITH_IMM;
		write->ex.imm_data = cpu_to_be32(imm);
		return write;
	}
	message->note.imm = cpu_to_be32(imm);
	message->note.len = cpu_to_be32(write->num_sge ? write->sg_list->length : 0);
	/* Inline: the device driver reads the note at its virtual address during the post (R3). */
	message->sge.addr = (uintptr_t)&message->note;
	message->sge.length = NOTE_SIZE;
	memset(send, 0, sizeof(*send));
	send->opcode = IB_WR_SEND;
	send->send_flags = write->send_flags | IB_SEND_INLINE;
	send->sg_list = &message->sge;
	send->num_sge = 1;
	if (!write->num_sge)
		return send;
	split_short(message, write);
	write->opcode = IB_WR_RDMA_WRITE;
	write->send_flags = 0;
	write->next = send;
	return write;
}

static int make_notes(struct afr_link_wr_rx *rx)
{
	size_t size = rx->depth * NOTE_SIZE;
	void *notes = kzalloc(size, GFP_KERNEL);

	if (!notes)
		return -ENOMEM;
	rx->dma = ib_dma_map_single(rx->ib, notes, size, DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(rx->ib, rx->dma)) {
		kfree(notes);
		return -ENOMEM;
	}
	rx->notes = notes;
	return 0;
}

/**
 * afr_link_wr_rx_init() - allocate the receives of a queue pair
 * @rx: receives, zeroed, or freed before
 * @pd: protection domain of the queue pair
 * @cqe: handles their completions
 * @depth: number of receives, a power of two, at least 8
 * @iwarp: allocate buffers for notes, too
 *
 * Context: process. Undone by afr_link_wr_rx_free(), after a failure, too.
 * Return: 0 or -ENOMEM.
 */
int afr_link_wr_rx_init(struct afr_link_wr_rx *rx, struct ib_pd *pd, struct ib_cqe *cqe,
			u16 depth, bool iwarp)
{
	struct afr_link_wr_recv *recv;
	unsigned int i;

	rx->depth = depth;
	rx->batch = depth / 8;
	rx->done = 0;
	rx->ib = pd->device;
	rx->recvs = kvcalloc(depth, sizeof(*rx->recvs), GFP_KERNEL);
	if (!rx->recvs || (iwarp && make_notes(rx)))
		return -ENOMEM;
	for (i = 0; i < depth; i++) {
		recv = &rx->recvs[i];
		recv->wr.wr_cqe = cqe;
		if ((i + 1) % rx->batch)
			recv->wr.next = &recv[1].wr;
		if (!iwarp)
			continue;
		recv->sge.addr = rx->dma + i * NOTE_SIZE;
		recv->sge.length = NOTE_SIZE;
		recv->sge.lkey = pd->local_dma_lkey;
		recv->wr.sg_list = &recv->sge;
		recv->wr.num_sge = 1;
	}
	return 0;
}

/**
 * afr_link_wr_rx_free() - free the receives of a queue pair
 * @rx: receives; the queue pair was destroyed, or never created
 *
 * Context: process.
 */
void afr_link_wr_rx_free(struct afr_link_wr_rx *rx)
{
	if (rx->notes)
		ib_dma_unmap_single(rx->ib, rx->dma, rx->depth * NOTE_SIZE, DMA_FROM_DEVICE);
	kfree(rx->notes);
	kvfree(rx->recvs);
	rx->notes = NULL;
	rx->recvs = NULL;
}

static int post_batch(struct afr_link_wr_rx *rx, struct ib_qp *qp, unsigned int first)
{
	if (rx->notes)
		ib_dma_sync_single_for_device(rx->ib, rx->dma + first * NOTE_SIZE,
					      rx->batch * NOTE_SIZE, DMA_FROM_DEVICE);
	return ib_post_recv(qp, &rx->recvs[first].wr, NULL);
}

/**
 * afr_link_wr_rx_fill() - post all receives of a new queue pair
 * @rx: receives
 * @qp: queue pair
 *
 * Context: process.
 * Return: 0 or the error of ib_post_recv().
 */
int afr_link_wr_rx_fill(struct afr_link_wr_rx *rx, struct ib_qp *qp)
{
	unsigned int first;
	int ret = 0;

	for (first = 0; first < rx->depth && !ret; first += rx->batch)
		ret = post_batch(rx, qp, first);
	return ret;
}

/**
 * afr_link_wr_rx_read() - read the message that a receive completed with
 * @rx: receives; they complete in the order of posting
 * @wc: successful completion of the oldest receive that was not read yet
 * @imm: set to the immediate
 * @len: set to the bytes of data, as reported by the device, or on iWARP by the peer
 *
 * Context: completion handler.
 * Return: 0, or -EPROTO if this is not a message.
 */
int afr_link_wr_rx_read(const struct afr_link_wr_rx *rx, const struct ib_wc *wc,
			u32 *imm, u32 *len)
{
	unsigned int i = rx->done % rx->depth;
	struct afr_wire_note note;

	if (!rx->notes) {
		*imm = be32_to_cpu(wc->ex.imm_data);
		*len = wc->byte_len;
		return wc->opcode == IB_WC_RECV_RDMA_WITH_IMM && wc->wc_flags & IB_WC_WITH_IMM ?
		       0 : -EPROTO;
	}
	if (wc->opcode != IB_WC_RECV || wc->byte_len != NOTE_SIZE)
		return -EPROTO;
	ib_dma_sync_single_for_cpu(rx->ib, rx->dma + i * NOTE_SIZE, NOTE_SIZE, DMA_FROM_DEVICE);
	note = rx->notes[i];
	*imm = be32_to_cpu(note.imm);
	*len = be32_to_cpu(note.len);
	return 0;
}

/**
 * afr_link_wr_rx_consumed() - count a completed receive that was read
 * @rx: receives
 *
 * Context: completion handler.
 * Return: true if it was the last one of a batch: call afr_link_wr_rx_repost().
 */
bool afr_link_wr_rx_consumed(struct afr_link_wr_rx *rx)
{
	return !(++rx->done % rx->batch);
}

/**
 * afr_link_wr_rx_repost() - post again the batch that has just completed
 * @rx: receives
 * @qp: queue pair
 *
 * Context: completion handler.
 * Return: 0 or the error of ib_post_recv().
 */
int afr_link_wr_rx_repost(struct afr_link_wr_rx *rx, struct ib_qp *qp)
{
	return post_batch(rx, qp, (rx->done - rx->batch) % rx->depth);
}
