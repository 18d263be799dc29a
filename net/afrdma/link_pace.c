// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Pacing: limits bulk in flight in favour of latency-sensitive messages.
 *
 * On a queue pair a message waits for everything posted before it, which may be a whole ring of
 * bulk. So for PACE_TIME after a latency-sensitive message, the bulk that other connections of the
 * link post is limited: about pace.limit bytes of it may be in flight. pace.limit is adapted so
 * that these bytes delay a write by about PACE_USECS: it is small on a slow fabric, and so large
 * on a fast one that bulk is hardly slower. Links do not pace each other: the device arbitrates
 * between them.
 *
 * No wake-up is lost: a channel is held back only while bulk counted in pace.in_flight has not
 * completed. That bulk is signaled, and once its completions have brought pace.in_flight below the
 * limit, the channel that has waited longest is resumed.
 *
 * On iWARP pacing achieves less: a completion only means that the local TCP has taken the bytes.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/sizes.h>

#include "channel.h"
#include "link_pace.h"
#include "link_queue.h"
#include "netns.h"

#define PACE_TIME	(HZ / 10)	/* after a latency-sensitive message */
/* A write is late if it takes this much longer than pace.min_us. */
#define PACE_USECS	200
#define PACE_MIN	SZ_16K		/* lower bound of pace.limit and of the bulk write length */
#define PACE_MAX	SZ_64M

/* Must bulk of @channel be paced? Only latency-sensitive messages of other channels count. */
static bool paces(const struct afr_link *link, const struct afr_channel *channel)
{
	u64 end = channel == READ_ONCE(link->pace.last) ? READ_ONCE(link->pace.last_until) :
						      READ_ONCE(link->pace.others_until);

	return time_before64(get_jiffies_64(), end) && READ_ONCE(link->an->set.pacing);
}

/* Updates the members that paces() reads, from the last two channels on link->pace.latency. */
static void refresh(struct afr_link *link)
{
	const struct list_head *last = link->pace.latency.prev, *before = last->prev;
	u64 now = get_jiffies_64();
	bool any = last != &link->pace.latency, two = any && before != &link->pace.latency;

	WRITE_ONCE(link->pace.last,
		   any ? list_entry(last, struct afr_channel, latency_entry) : NULL);
	WRITE_ONCE(link->pace.others_until,
		   any ? list_entry(last, struct afr_channel, latency_entry)->latency_until : now);
	WRITE_ONCE(link->pace.last_until,
		   two ? list_entry(before, struct afr_channel, latency_entry)->latency_until :
			 now);
}

/**
 * afr_link_pace_init() - initialise pacing
 * @link: link
 *
 * Context: any; no other user yet.
 */
void afr_link_pace_init(struct afr_link *link)
{
	INIT_LIST_HEAD(&link->pace.held);
	INIT_LIST_HEAD(&link->pace.latency);
	refresh(link);
	link->pace.limit = PACE_MIN;
	link->pace.min_us = U32_MAX;
}

/**
 * afr_link_pace_latency() - pace bulk of other channels for a while
 * @channel: channel that posts a latency-sensitive message
 *
 * Context: process or softirq, link->lock held.
 */
void afr_link_pace_latency(struct afr_channel *channel)
{
	struct afr_link *link = channel->link;

	lockdep_assert_held(&link->lock);
	AFR_CHECK(channel->joined);	/* one that has left the link would stay on the list */
	channel->latency_until = get_jiffies_64() + PACE_TIME;
	list_move_tail(&channel->latency_entry, &link->pace.latency);
	refresh(link);
}

/**
 * afr_link_pace_forget() - stop pacing on behalf of a channel
 * @channel: channel that posts bulk itself, or leaves
 *
 * Context: process or softirq, link->lock held.
 */
void afr_link_pace_forget(struct afr_channel *channel)
{
	lockdep_assert_held(&channel->link->lock);
	if (list_empty(&channel->latency_entry))
		return;
	list_del_init(&channel->latency_entry);
	refresh(channel->link);
}

/**
 * afr_link_pace_admit() - may a channel post bulk now?
 * @channel: channel; queued if it has to wait
 * @len: bytes of the write
 * @ctx: send context of the write; its @bulk and @posted are set if bulk of @channel is paced
 *
 * Context: process or softirq, link->lock held.
 * Return: 0, also if the link is not up; or -EAGAIN: paced() follows, unless the link is lost or
 * @channel leaves it before.
 */
int afr_link_pace_admit(struct afr_channel *channel, u32 len, struct afr_link_send *ctx)
{
	struct afr_link *link = channel->link;

	lockdep_assert_held(&link->lock);
	afr_link_pace_forget(channel);
	if (link->state != AFR_LINK_UP || !paces(link, channel))
		return 0;
	ctx->bulk = len;
	ctx->posted = ktime_get();
	if (link->pace.in_flight < link->pace.limit)
		return 0;
	if (list_empty(&channel->pacing)) {
		list_add_tail(&channel->pacing, &link->pace.held);
		afr_netns_count(link->an->net, AFR_STAT_LINK_PACED);
	}
	return -EAGAIN;
}

/*
 * Did the paced write wait behind others? The shortest time measured (min_us) is taken as the time
 * of a write on an empty queue. It grows by 1 us with each write, so that it follows a fabric that
 * becomes slower.
 */
static bool late(struct afr_link *link, const struct afr_link_send *ctx)
{
	u32 us = clamp_t(s64, ktime_us_delta(ktime_get(), ctx->posted), 0, S32_MAX);

	link->pace.min_us = min(us, link->pace.min_us < U32_MAX ? link->pace.min_us + 1 : U32_MAX);
	return us - link->pace.min_us >= PACE_USECS;
}

/**
 * afr_link_pace_done() - account for a completed request
 * @link: link
 * @ctx: send context of the request
 *
 * Only requests with paced bulk change anything: a late completion lowers the limit of bulk in
 * flight; a completion that is not late raises it, if at least half of the limit was used.
 *
 * Context: process or softirq, link->lock held.
 */
void afr_link_pace_done(struct afr_link *link, const struct afr_link_send *ctx)
{
	u32 room = link->pace.limit;

	lockdep_assert_held(&link->lock);
	if (!ctx->bulk)
		return;
	if (late(link, ctx))
		room = max(min(room, link->pace.in_flight), ctx->bulk / 2 + PACE_MIN) -
		       ctx->bulk / 2;
	else if (link->pace.in_flight >= room / 2)
		room = min(room + ctx->bulk, (u32)PACE_MAX);
	WRITE_ONCE(link->pace.limit, room);
	link->pace.in_flight -= ctx->bulk;
}

/**
 * afr_link_pace_next() - get the next channel that need not be held back any more
 * @link: link
 *
 * Context: process or softirq, link->lock held.
 * Return: a channel, taken off the list, whose paced() is to be called; or NULL.
 */
struct afr_channel *afr_link_pace_next(struct afr_link *link)
{
	struct afr_channel *channel = list_first_entry_or_null(&link->pace.held, struct afr_channel,
							       pacing);

	lockdep_assert_held(&link->lock);
	if (!channel || link->state != AFR_LINK_UP)
		return NULL;
	if (link->pace.in_flight >= link->pace.limit && paces(link, channel))
		return NULL;
	list_del_init(&channel->pacing);
	return channel;
}

/**
 * afr_link_pace_bulk_max() - largest length of a bulk write, which pacing may reduce
 * @channel: channel, joined
 *
 * Context: any; without link->lock the answer may be outdated.
 * Return: bytes.
 */
u32 afr_link_pace_bulk_max(const struct afr_channel *channel)
{
	const struct afr_link *link = channel->link;

	if (!paces(link, channel))
		return link->write_max;
	return min(max_t(u32, READ_ONCE(link->pace.limit) / 2, PACE_MIN), link->write_max);
}
