// SPDX-License-Identifier: GPL-2.0
/* Messages of a link as work requests, with and without immediates. */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "message.h"

#define NOTE_SIZE	sizeof(struct afr_wire_note)
#define SIW_SHORT	64	/* more than fits into the header that siw sends first */

/*
 * siw mixes up the two parts of a write this short that crosses a page, except when they
 * are two to begin with. The addresses of a region begin with a page.
 */
static void split_short(struct afr_message *message, struct ib_send_wr *write)
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
 * afr_message_build() - work requests of a message
 * @message: room for them
 * @write: where the data is and goes, if there is any, and flags
 * @imm: the immediate
 * @iwarp: without immediates
 *
 * The SEND is ready when the bytes written before it are where they belong (RFC 5040).
 *
 * Context: Any.
 * Return: the first of one or two.
 */
struct ib_send_wr *afr_message_build(struct afr_message *message, struct ib_send_wr *write,
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
	/* Inline: read while it is posted, at its virtual address (R3). */
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

static int make_notes(struct afr_message_rx *rx)
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
 * afr_message_rx_init() - memory for the receives of a queue pair
 * @rx: zeroed, or freed before
 * @pd: its protection domain
 * @cqe: for their completions
 * @depth: their number, a power of two, 8 at least
 * @iwarp: without immediates
 *
 * Context: Process. To be undone by afr_message_rx_free(), whatever it returns.
 * Return: 0 or -ENOMEM.
 */
int afr_message_rx_init(struct afr_message_rx *rx, struct ib_pd *pd, struct ib_cqe *cqe,
			u16 depth, bool iwarp)
{
	struct afr_message_recv *recv;
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
 * afr_message_rx_free() - give the memory back
 * @rx: receives of a queue pair that is drained, or was never made
 *
 * Context: Process.
 */
void afr_message_rx_free(struct afr_message_rx *rx)
{
	if (rx->notes)
		ib_dma_unmap_single(rx->ib, rx->dma, rx->depth * NOTE_SIZE, DMA_FROM_DEVICE);
	kfree(rx->notes);
	kvfree(rx->recvs);
	rx->notes = NULL;
	rx->recvs = NULL;
}

static int post_batch(struct afr_message_rx *rx, struct ib_qp *qp, unsigned int first)
{
	if (rx->notes)
		ib_dma_sync_single_for_device(rx->ib, rx->dma + first * NOTE_SIZE,
					      rx->batch * NOTE_SIZE, DMA_FROM_DEVICE);
	return ib_post_recv(qp, &rx->recvs[first].wr, NULL);
}

/**
 * afr_message_rx_fill() - post all receives of a new queue pair
 * @rx: its receives
 * @qp: the queue pair
 *
 * Context: Process.
 * Return: 0 or what the device says.
 */
int afr_message_rx_fill(struct afr_message_rx *rx, struct ib_qp *qp)
{
	unsigned int first;
	int ret = 0;

	for (first = 0; first < rx->depth && !ret; first += rx->batch)
		ret = post_batch(rx, qp, first);
	return ret;
}

/**
 * afr_message_rx_read() - what has come with a completion
 * @rx: receives, of which the next has completed: they do so in the order of posting
 * @wc: successful completion
 * @imm: the immediate
 * @len: bytes of data, as the peer says; where immediates are, the device says it
 *
 * Context: Softirq.
 * Return: 0, or -EPROTO if this is no message.
 */
int afr_message_rx_read(const struct afr_message_rx *rx, const struct ib_wc *wc,
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
 * afr_message_rx_spent() - a completed receive was read
 * @rx: receives
 *
 * Context: Softirq.
 * Return: true if a batch of them is spent: afr_message_rx_repost() is due.
 */
bool afr_message_rx_spent(struct afr_message_rx *rx)
{
	return !(++rx->done % rx->batch);
}

/**
 * afr_message_rx_repost() - post the batch that was spent last
 * @rx: receives
 * @qp: their queue pair
 *
 * Context: Softirq.
 * Return: 0 or what the device says.
 */
int afr_message_rx_repost(struct afr_message_rx *rx, struct ib_qp *qp)
{
	return post_batch(rx, qp, (rx->done - rx->batch) % rx->depth);
}
