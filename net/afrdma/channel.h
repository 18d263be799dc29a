/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * A channel is the membership of one connection in a link, and is embedded in the connection. When
 * the channel joins the link, it gets an id, which no other channel of this end of the link has.
 * The connection posts its writes on the channel. Each write names the id of the peer's channel.
 */
#ifndef AFR_CHANNEL_H
#define AFR_CHANNEL_H

#include <linux/list.h>
#include <linux/types.h>

#include "proto/reason.h"

struct afr_link;
struct afr_channel;

/*
 * Upcalls to the user of a channel (the connection layer). Those declared above down() are made in
 * any context but hard irq: mostly by the handler of a completion, in softirq or, on PREEMPT_RT, in
 * a work item.
 */
struct afr_channel_ops {
	/*
	 * A write to this channel landed: @len bytes of data (0: cursor only) and the writer's
	 * 16-bit consumer cursor. The completions of one link are handled in order, one at a time.
	 */
	void (*landed)(struct afr_channel *channel, u32 len, u16 cursor);
	/* The peer's DETACH was polled: the peer writes to this channel no more. */
	void (*peer_detached)(struct afr_channel *channel);
	/* The local DETACH has completed: except on iWARP, the peer's device has it. */
	void (*detached)(struct afr_channel *channel);
	/* A write with afr_write.report set has completed. */
	void (*written)(struct afr_channel *channel);
	/* The write or DETACH that found no credit or slot may be posted now. */
	void (*kick)(struct afr_channel *channel);
	/* Like kick(), for bulk that pacing has held back. */
	void (*paced)(struct afr_channel *channel);
	/*
	 * Process context, once, unless the channel leaves before. The link is fenced and drained:
	 * nothing can land, complete or be posted on it any more, and no upcall but put() follows.
	 * The user still calls afr_channel_leave(), from here or later.
	 */
	void (*down)(struct afr_channel *channel, enum afr_reason reason);
	/*
	 * Any context. Take and drop a reference that keeps the memory of @channel alive; the link
	 * holds one during each upcall.
	 */
	bool (*get)(struct afr_channel *channel);	/* false: being freed, no upcall follows */
	void (*put)(struct afr_channel *channel);
};

struct afr_channel {
	const struct afr_channel_ops *ops;
	struct afr_link	*link;		/* referenced by the channel while joined */
	u16		id;		/* local id, in the immediates that the peer sends */
	u16		peer_id;	/* id at the peer, in the immediates that this end sends */
	bool		id_retired;	/* the peer may still use @id: the link never reuses it */
	/* private to the link layer, except that the connection worker reads @joined */
	bool		joined;
	bool		ended;		/* the peer's DETACH was polled */
	u32		serial;		/* distinguishes successive users of one id */
	bool		leaves;		/* @waiting, if queued, is on link->sq.detach_waiters */
	struct list_head waiting;	/* on link->sq.waiters or .detach_waiters, for kick() */
	struct list_head pacing;	/* on link->pace.held */
	struct list_head latency_entry;	/* on link->pace.latency */
	u64		latency_until;	/* jiffies64: bulk of other channels is paced until then */
	struct list_head member;	/* on link->members.list */
};

/* One write. */
struct afr_write {
	u64	local;		/* address in the MR of the send ring */
	u32	lkey;
	u32	len;		/* 0: cursor only */
	u64	remote;
	u32	rkey;
	u16	cursor;		/* low half of the immediate */
	bool	report;		/* call written() when it has completed */
	bool	latency;	/* latency-sensitive: starts pacing of other channels */
	bool	bulk;		/* subject to pacing */
};

int afr_channel_join(struct afr_channel *channel, struct afr_link *link,
		     const struct afr_channel_ops *ops);
void afr_channel_leave(struct afr_channel *channel);

int afr_channel_write(struct afr_channel *channel, const struct afr_write *w);
int afr_channel_detach(struct afr_channel *channel);

#endif /* AFR_CHANNEL_H */
