/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A channel: the use of a link by one connection, which embeds it. It joins a link, which gives it
 * an id, posts writes to the peer's id, and leaves.
 */
#ifndef AFR_CHANNEL_H
#define AFR_CHANNEL_H

#include <linux/list.h>
#include <linux/types.h>

#include "proto/reason.h"

struct afr_link;
struct afr_channel;

/* Upcalls to the user of a channel (the connection layer). */
struct afr_channel_ops {
	/*
	 * Softirq. A write to this channel landed: @len bytes of data (0: cursor only) and the
	 * writer's 16-bit consumer cursor. Completions of one link come in order and one at a
	 * time.
	 */
	void (*landed)(struct afr_channel *channel, u32 len, u16 cursor);
	/* Softirq. The peer's DETACH was polled: the peer writes to this channel no more. */
	void (*peer_detached)(struct afr_channel *channel);
	/* Softirq. The DETACH of this end has completed: the peer's device has it. */
	void (*detached)(struct afr_channel *channel);
	/* Softirq. A write with afr_write.tell set has completed. */
	void (*written)(struct afr_channel *channel);
	/* Softirq. A write or DETACH was refused with -EAGAIN: post it again. */
	void (*kick)(struct afr_channel *channel);
	/* Softirq. As kick(), for bulk that was held back by pacing. */
	void (*paced)(struct afr_channel *channel);
	/*
	 * Process context, once. The link is fenced and drained: nothing can land, complete or be
	 * posted on it any more, and no other upcall follows. The user still calls
	 * afr_channel_leave(), from here or later.
	 */
	void (*down)(struct afr_channel *channel, enum afr_reason reason);
	/*
	 * Any context. Take and drop a reference that keeps the memory of @channel alive; the link
	 * holds one during each upcall.
	 */
	bool (*get)(struct afr_channel *channel);	/* false: being freed, no upcall comes */
	void (*put)(struct afr_channel *channel);
};

struct afr_channel {
	const struct afr_channel_ops *ops;
	struct afr_link	*link;		/* holds a reference while joined */
	u16		id;		/* of this end: the peer puts it into its immediates */
	u16		peer_id;	/* of the peer's channel: goes into immediates sent here */
	bool		id_retired;	/* left without the peer's DETACH: the id stays taken */
	/* private to the link layer */
	bool		joined;
	bool		ended;		/* the peer's DETACH was polled */
	u32		serial;		/* distinguishes successive users of one id */
	struct list_head waiting;	/* on link->sq.waiters or .leavers, for kick() */
	struct list_head pacing;	/* on link->pace.held */
	struct list_head latency_entry;	/* on link->pace.latency */
	u64		latency_until;	/* jiffies64: bulk leaves space for it until then */
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
	bool	tell;		/* call written() when it has completed */
	bool	latency;	/* latency-sensitive: bulk of other channels leaves space for it */
	bool	bulk;		/* subject to pacing */
};

int afr_channel_join(struct afr_channel *channel, struct afr_link *link,
		     const struct afr_channel_ops *ops);
void afr_channel_leave(struct afr_channel *channel);

int afr_channel_write(struct afr_channel *channel, const struct afr_write *w);
int afr_channel_detach(struct afr_channel *channel);

#endif /* AFR_CHANNEL_H */
