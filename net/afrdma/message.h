/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a message of a link is to its device: an RDMA WRITE WITH IMMEDIATE, and to the
 * receiver its completion. iWARP has no immediates: there it is a write, if there is
 * data, and a SEND with a note, both posted at once; the note is in the buffer of the
 * receive that it used. Above this file nobody sees a difference but in send slots.
 *
 * The owner serialises the calls for one queue.
 */
#ifndef AFR_MESSAGE_H
#define AFR_MESSAGE_H

#include <rdma/ib_verbs.h>

#include "wire.h"

#define AFR_MESSAGE_SGES	2	/* of a write, on iWARP */

/* Room for what a message needs while it is posted. */
struct afr_message {
	struct ib_send_wr	send;
	struct ib_sge		sge;
	struct ib_sge		data[AFR_MESSAGE_SGES];
	struct afr_wire_note	note;
};

/* Send slots that a message needs at most. */
static inline unsigned int afr_message_slots(bool iwarp)
{
	return iwarp ? 2 : 1;
}

/*
 * @write has addresses and flags; returns what to post: @write, or on iWARP a chain of
 * one or two, of which the last may be signaled. Valid as long as @message and @write.
 */
struct ib_send_wr *afr_message_build(struct afr_message *message, struct ib_send_wr *write,
				     u32 imm, bool iwarp);

struct afr_message_recv {
	struct ib_recv_wr	wr;
	struct ib_sge		sge;
};

/* The receives of a queue pair. */
struct afr_message_rx {
	u16			depth, batch;	/* receives: all, posted at once; powers of two */
	u32			done;		/* completed so far */
	struct afr_message_recv	*recvs;		/* constant; chained in batches */
	struct ib_device	*ib;
	struct afr_wire_note	*notes;		/* iWARP: of each receive; else NULL */
	u64			dma;		/* of the notes */
};

/* Process context. Undone by free, also when it failed: 0 or -ENOMEM. */
int afr_message_rx_init(struct afr_message_rx *rx, struct ib_pd *pd, struct ib_cqe *cqe,
			u16 depth, bool iwarp);
void afr_message_rx_free(struct afr_message_rx *rx);
/* Post all: 0 or what the device says. */
int afr_message_rx_fill(struct afr_message_rx *rx, struct ib_qp *qp);
/* The next receive has completed: 0, or -EPROTO if this is no message. */
int afr_message_rx_read(const struct afr_message_rx *rx, const struct ib_wc *wc,
			u32 *imm, u32 *len);
/* It was read: true if it was the last of a batch, to be posted again. */
bool afr_message_rx_spent(struct afr_message_rx *rx);
int afr_message_rx_repost(struct afr_message_rx *rx, struct ib_qp *qp);

#endif /* AFR_MESSAGE_H */
