/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * A message of a link as work requests. Normally it is one RDMA WRITE WITH IMMEDIATE, which
 * completes a receive of the peer. iWARP has no immediates: there it is a write, if there is data,
 * and a SEND of a note that contains the immediate and the length of the data, both posted as one
 * chain; the peer finds the note in the buffer of the receive that the SEND used. On iWARP the
 * users of this interface need more send slots, and the queue pair must allow more SGEs, and
 * inline data.
 *
 * The caller serialises the calls for one struct afr_link_wr_rx.
 */
#ifndef AFR_LINK_WR_H
#define AFR_LINK_WR_H

#include <rdma/ib_verbs.h>

#include "proto/wire.h"

#define AFR_LINK_WR_SGES	2	/* most SGEs of a write; only iWARP uses more than one */

/* Memory that the work requests of a message need until ib_post_send() has returned. */
struct afr_link_wr {
	struct ib_send_wr	send;
	struct ib_sge		sge;
	struct ib_sge		data[AFR_LINK_WR_SGES];
	struct afr_wire_note	note;
};

/* Returns the largest number of send slots that a message needs. */
static inline unsigned int afr_link_wr_slots(bool iwarp)
{
	return iwarp ? 2 : 1;
}

struct ib_send_wr *afr_link_wr_build(struct afr_link_wr *message, struct ib_send_wr *write,
				     u32 imm, bool iwarp);

struct afr_link_wr_recv {
	struct ib_recv_wr	wr;
	struct ib_sge		sge;
};

/* The receives of a queue pair. */
struct afr_link_wr_rx {
	u16			depth, batch;	/* receives: in total, per post; powers of two */
	u32			done;		/* completed so far */
	struct afr_link_wr_recv	*recvs;		/* constant; chained in batches */
	struct ib_device	*ib;
	struct afr_wire_note	*notes;		/* iWARP: one per receive; else NULL */
	u64			dma;		/* of the notes */
};

int afr_link_wr_rx_init(struct afr_link_wr_rx *rx, struct ib_pd *pd, struct ib_cqe *cqe,
			u16 depth, bool iwarp);
void afr_link_wr_rx_free(struct afr_link_wr_rx *rx);
int afr_link_wr_rx_fill(struct afr_link_wr_rx *rx, struct ib_qp *qp);

int afr_link_wr_rx_read(const struct afr_link_wr_rx *rx, const struct ib_wc *wc,
			u32 *imm, u32 *len);
bool afr_link_wr_rx_consumed(struct afr_link_wr_rx *rx);
int afr_link_wr_rx_repost(struct afr_link_wr_rx *rx, struct ib_qp *qp);

#endif /* AFR_LINK_WR_H */
