/* SPDX-License-Identifier: GPL-2.0 */
/* The inside of rogue.c and of the files that have the lies. */
#ifndef AFR_ROGUE_KNOB_H
#define AFR_ROGUE_KNOB_H

#include <rdma/ib_verbs.h>

#include "frame.h"
#include "link_io.h"

#define AFR_ROGUE_HELLO	0xff	/* a type of frame, here only */

/* A lie. What stands under "by where it lies": one of these. */
struct afr_rogue_knob {
	const char *name, *what;
	/* by where it lies */
	bool (*post)(struct afr_link *link, struct ib_rdma_wr *wr);	/* true: swallow it */
	bool (*flood)(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm);
	bool stays;		/* no DETACH from the slot that is flooded */
	unsigned int (*frame)(const struct afr_rogue_knob *knob, const struct afr_frame *frame,
			      u8 *out, unsigned int len);
	bool more;
	u8 cm;			/* size of the structure */
	/* what it bends */
	u8 type, type2;		/* of frames, 0 = any; AFR_ROGUE_HELLO */
	u8 offset, size;
};

/* The last message for a slot of the peer. */
struct afr_rogue_seen {
	u64			link;	/* afr_link.id, 0 = none */
	u16			slot;
	u16			cursor;
	u32			rkey;	/* and below: of the last that had bytes */
	u64			remote;
	struct ib_sge		sge;
};

/* What the parameter says, and what became of it. */
struct afr_rogue_state {
	const struct afr_rogue_knob *knob;
	bool			has_arg;
	u64			arg;
	u64			rate, after, left;
	u64			first;		/* older connections are spared */
	u64			chances, lies;
	u64			seed;
	u64			drop;		/* writes until our queue pair breaks, 0 = never */
	struct afr_rogue_seen	last;		/* the last message that a knob may touch */
	struct afr_rogue_seen	ended;		/* the last slot that we said DETACH for */
};

extern struct afr_rogue_state afr_rogue;	/* under the lock of rogue.c, as is all here */
extern const struct afr_rogue_knob afr_rogue_link_knobs[], afr_rogue_frame_knobs[];

u64 afr_rogue_rnd(void);
/* A value instead of @value. */
u64 afr_rogue_bend(u64 value);
/* Is this chance one to take? */
bool afr_rogue_due(void);

/* What is known of a slot of the peer. */
struct afr_rogue_seen *afr_rogue_seen(u16 slot);
/* @size bytes of @out at @offset; no size: one bit anywhere. */
void afr_rogue_bytes(const struct afr_rogue_knob *knob, u8 *out, unsigned int len);

static inline u16 afr_rogue_slot(const struct ib_rdma_wr *wr)
{
	return be32_to_cpu(wr->wr.ex.imm_data) >> 16;
}

static inline u16 afr_rogue_cursor(const struct ib_rdma_wr *wr)
{
	return be32_to_cpu(wr->wr.ex.imm_data);
}

/* The slot that a message is about, if it is a connection's. */
static inline u16 afr_rogue_whose(const struct ib_rdma_wr *wr)
{
	u16 slot = afr_rogue_slot(wr);

	return slot == AFR_SLOT_DETACH ? afr_rogue_cursor(wr) : slot;
}

#endif /* AFR_ROGUE_KNOB_H */
