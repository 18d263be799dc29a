/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Injections and their state, private to test/. The lock of byzantine.c protects the state. */
#ifndef AFR_TEST_INJECT_H
#define AFR_TEST_INJECT_H

#include <rdma/ib_verbs.h>

#include "../link_queue.h"
#include "../proto/frame.h"

#define AFR_BYZANTINE_HELLO	0xff	/* in place of a frame type: HELLO, which has none */

/*
 * An injection. Exactly one of post, flood, frame, more and cm is set: it selects what is changed,
 * omitted or added.
 */
struct afr_injection {
	const char *name, *what;
	bool (*post)(struct afr_link *link, struct ib_rdma_wr *wr);	/* true: do not post it */
	/* fills in @wr and @imm; true: post them as an additional message, if one is due */
	bool (*flood)(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm);
	bool stays;		/* with @flood: omit DETACH, so that the peer keeps the channel */
	unsigned int (*frame)(const struct afr_injection *inj, const struct afr_frame *frame,
			      u8 *out, unsigned int len);
	bool more;		/* invent frames of @type */
	/* change or omit the message of rdma_cm whose private data has this size; 0: none */
	u8 cm;
	/* frame types, or AFR_BYZANTINE_HELLO; @type 0: all frames, but not HELLO */
	u8 type, type2;
	/*
	 * Place and length of the bytes to change. If @size is 0, spoil() inverts one random bit
	 * instead. If @size is 0 and @cm is set, nothing is changed: the message is not sent.
	 */
	u8 offset, size;
};

/* The last message for one channel id of the peer, other than DETACH and messages of floods. */
struct afr_inject_seen {
	u64			link;	/* afr_link.id, 0 = none */
	u16			id;	/* channel id at the peer */
	u16			cursor;
	u32			rkey;	/* rkey, remote, sge: of the last write with bytes */
	u64			remote;
	struct ib_sge		sge;
};

/* The injection in use, its parameters, counters, and messages sent before. */
struct afr_byzantine_state {
	const struct afr_injection *inj;
	bool			has_arg;
	u64			arg;
	u64			rate, after, left;
	u64			first;		/* connections with lower ids are exempt */
	u64			chances, done;	/* opportunities, and injections done */
	u64			seed;
	/* the Nth write with bytes from now on breaks the queue pair; 0 = none does */
	u64			drop;
	struct afr_inject_seen	last;		/* last message for a channel that is not exempt */
	struct afr_inject_seen	ended;		/* last channel that posted DETACH */
};

extern struct afr_byzantine_state afr_byzantine;
extern const struct afr_injection afr_byzantine_link_injections[], afr_byzantine_frame_injections[];

u64 afr_inject_rnd(void);
u64 afr_inject_bend(u64 value);
bool afr_inject_due(void);

struct afr_inject_seen *afr_inject_seen(u16 id);
void afr_inject_bytes(const struct afr_injection *inj, u8 *out, unsigned int len);

static inline u16 afr_inject_channel(const struct ib_rdma_wr *wr)
{
	return be32_to_cpu(wr->wr.ex.imm_data) >> 16;
}

static inline u16 afr_inject_cursor(const struct ib_rdma_wr *wr)
{
	return be32_to_cpu(wr->wr.ex.imm_data);
}

/* The channel id that a message concerns; above AFR_CHANNEL_MAX if none. */
static inline u16 afr_inject_whose(const struct ib_rdma_wr *wr)
{
	u16 id = afr_inject_channel(wr);

	return id == AFR_CHANNEL_DETACH ? afr_inject_cursor(wr) : id;
}

#endif /* AFR_TEST_INJECT_H */
