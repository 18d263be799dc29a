// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Joins connections to a link, posts their writes and DETACH, and removes them from the link.
 *
 * link_queue.c explains why no wake-up is lost, and why leaving waits for a grace period.
 */
#include <linux/rcupdate.h>

#include "channel.h"
#include "link_keepalive.h"
#include "link_pace.h"
#include "link_queue.h"
#include "netns.h"
#include "proto/imm.h"

/* Adds the channel to the members of its link, unless the link is full or not up. */
static int add_member(struct afr_channel *channel)
{
	struct afr_link *link = channel->link;
	unsigned int most = READ_ONCE(link->an->set.conns_per_link);
	int ret = -ENOTCONN;

	spin_lock_bh(&link->lock);
	if (link->state == AFR_LINK_UP && link->members.count >= most) {
		ret = -ENOSPC;
		afr_netns_count(link->an->net, AFR_STAT_OVER_LIMIT);
	} else if (link->state == AFR_LINK_UP) {
		channel->serial = ++link->members.serial;
		list_add_tail(&channel->member, &link->members.list);
		if (!link->members.count++)
			afr_link_keepalive_start(link);
		ret = 0;
	}
	spin_unlock_bh(&link->lock);
	return ret;
}

/**
 * afr_channel_join() - join a link
 * @channel: channel that is zeroed or has left its last link
 * @link: link, referenced by the caller
 * @ops: upcalls
 *
 * Context: process.
 * Return: 0: channel->id is set and upcalls may come; -ENOTCONN: the link is not up; -ENOSPC: no
 * id is free, or conns_per_link is reached; or -ENOMEM.
 */
int afr_channel_join(struct afr_channel *channel, struct afr_link *link,
		     const struct afr_channel_ops *ops)
{
	u32 id;
	int ret;

	channel->ops = ops;
	channel->link = link;
	channel->ended = false;
	channel->id_retired = false;
	INIT_LIST_HEAD(&channel->waiting);
	INIT_LIST_HEAD(&channel->pacing);
	INIT_LIST_HEAD(&channel->latency_entry);
	INIT_LIST_HEAD(&channel->member);
	/* only reserve the id: completions must not find the channel yet */
	ret = xa_alloc(&link->members.ids, &id, NULL, XA_LIMIT(0, AFR_CHANNEL_MAX), GFP_KERNEL);
	if (ret) {
		channel->link = NULL;
		return ret == -EBUSY ? -ENOSPC : ret;
	}
	channel->id = id;
	channel->joined = true;
	refcount_inc(&link->refs);
	ret = add_member(channel);
	if (ret) {
		channel->joined = false;
		channel->link = NULL;
		xa_erase(&link->members.ids, id);
		afr_link_put(link);
		return ret;
	}
	AFR_CHECK(!xa_load(&link->members.ids, id));	/* initialised before it is found (I6) */
	xa_store(&link->members.ids, id, channel, GFP_KERNEL);
	return 0;
}

/* Is another task in the down() upcall of @channel? */
static bool down_runs(struct afr_link *link, const struct afr_channel *channel)
{
	bool runs;

	spin_lock_bh(&link->lock);
	runs = link->members.down_channel == channel && link->members.down_task != current;
	spin_unlock_bh(&link->lock);
	return runs;
}

/**
 * afr_channel_leave() - leave the link, and release the id
 * @channel: channel; nothing happens if it has already left, or is zeroed and has never joined
 *
 * The id may be reused at once, unless the caller has set channel->id_retired: then it is not
 * reused as long as the link exists, and messages of the peer for that id are ignored. The caller
 * must set this unless the peer's DETACH was polled, down() was called, the peer has refused the
 * attach, or the id was never sent to the peer (PE5). When half of all ids are retired, the link
 * is taken down.
 *
 * After return, no upcall runs or will be made. Exception: if a down() has called this function,
 * that down() still runs, and put() follows it.
 *
 * Context: process; sleeps for a grace period.
 */
void afr_channel_leave(struct afr_channel *channel)
{
	struct afr_link *link = channel->link;

	if (!channel->joined)
		return;
	spin_lock_bh(&link->lock);
	channel->joined = false;
	list_del_init(&channel->member);
	if (!list_empty(&channel->waiting)) {
		list_del_init(&channel->waiting);
		link->sq.nr_waiting--;
	}
	list_del_init(&channel->pacing);
	afr_link_pace_forget(channel);
	AFR_CHECK(link->members.count);		/* one leave per join (I8) */
	if (!--link->members.count)
		afr_link_keepalive_idle(link);
	if (channel->id_retired && ++link->members.retired > AFR_CHANNEL_MAX / 2)
		afr_link_queue_fail(link, AFR_REASON_LINK_DETACH_TIMEOUT);
	spin_unlock_bh(&link->lock);
	if (channel->id_retired)	/* the store replaces an entry, so it needs no memory */
		xa_store(&link->members.ids, channel->id, xa_mk_value(0), GFP_KERNEL);
	else
		xa_erase(&link->members.ids, channel->id);
	synchronize_rcu();
	wait_event(link->wait, !down_runs(link, channel));
	channel->link = NULL;
	afr_link_put(link);
}

/*
 * Returns 0 if @channel may post a message now, or -ENOTCONN if the link is not up. Otherwise
 * returns -EAGAIN; if the channel is not queued for kick() yet, queues it behind the channels that
 * are. A channel that has to post DETACH (@leaves) waits only behind other such channels, so that
 * channels which keep writing do not delay the release of its connection's rings.
 */
static int admit(struct afr_channel *channel, bool leaves)
{
	struct afr_link *link = channel->link;
	unsigned int room = afr_link_queue_space(link);

	if (link->state != AFR_LINK_UP)
		return -ENOTCONN;
	if (!list_empty(&channel->waiting)) {
		/* the first attempt to post DETACH moves the channel; a later one does not */
		if (leaves && !channel->leaves)
			list_move_tail(&channel->waiting, &link->sq.detach_waiters);
		channel->leaves |= leaves;
		return -EAGAIN;
	}
	if (room && link->sq.kicked == channel) {
		link->sq.kicked = NULL;
		return 0;
	}
	if (room > link->sq.nr_waiting)
		return 0;
	channel->leaves = leaves;
	list_add_tail(&channel->waiting, leaves ? &link->sq.detach_waiters : &link->sq.waiters);
	link->sq.nr_waiting++;
	afr_netns_count(link->an->net, AFR_STAT_LINK_NO_CREDIT);
	return -EAGAIN;
}

/* Returns a send context for a message of @channel, whose completion calls @report. */
static struct afr_link_send send_for(const struct afr_channel *channel,
				     void (*report)(struct afr_channel *channel))
{
	return (struct afr_link_send){
		.id = channel->id, .serial = channel->serial, .report = report,
	};
}

/**
 * afr_channel_write() - post one write to the peer's channel
 * @channel: channel, joined, with peer_id set
 * @w: the write
 *
 * AFR_LINK_CREDIT_RESERVE credits are always left for announcements. If writes and DETACHs could
 * use them, too, both ends could run out of credits and wait for each other.
 *
 * Context: process or softirq, under the caller's tx lock, so that cursors are posted in the order
 * in which they were sampled (B10).
 * Return: 0; -EAGAIN: no credit or send slot is left for @channel (wait for kick()), or pacing
 * holds back the bulk (wait for paced()); -ENOTCONN: the link is dying or dead, and down() will
 * follow or was called.
 */
int afr_channel_write(struct afr_channel *channel, const struct afr_write *w)
{
	struct ib_sge sge = { .addr = w->local, .length = w->len, .lkey = w->lkey };
	struct afr_link_send ctx = send_for(channel, channel->ops->written);
	struct afr_link *link = channel->link;
	struct ib_rdma_wr wr = {
		.wr.sg_list	= &sge,
		.wr.num_sge	= w->len ? 1 : 0,
		.remote_addr	= w->remote,
		.rkey		= w->rkey,
	};
	int ret;

	if (!w->report)
		ctx.report = NULL;
	spin_lock_bh(&link->lock);
	if (w->latency)
		afr_link_pace_latency(channel);
	ret = w->bulk ? afr_link_pace_admit(channel, w->len, &ctx) : 0;
	if (!ret)
		ret = admit(channel, false);
	if (!ret)
		ret = afr_link_queue_post(link, &wr, afr_imm_pack(channel->peer_id, w->cursor),
					  ctx.report || ctx.bulk ? &ctx : NULL);
	if (!ret) {
		link->sq.bytes += w->len;
		link->sq.writes++;
	}
	spin_unlock_bh(&link->lock);
	return ret;
}

/**
 * afr_channel_detach() - post DETACH, the last message to the peer's channel
 * @channel: channel, on which the caller posts nothing afterwards
 *
 * detached() follows when DETACH has completed.
 *
 * Context: process or softirq, under the caller's tx lock.
 * Return: 0; -EAGAIN: call again from kick(); or -ENOTCONN: the link is dying or dead, and down()
 * will follow or was called.
 */
int afr_channel_detach(struct afr_channel *channel)
{
	struct afr_link_send ctx = send_for(channel, channel->ops->detached);
	struct afr_link *link = channel->link;
	struct ib_rdma_wr wr = {};
	int ret;

	spin_lock_bh(&link->lock);
	ret = admit(channel, true);
	if (!ret)
		ret = afr_link_queue_post(link, &wr,
					  afr_imm_pack(AFR_CHANNEL_DETACH, channel->peer_id),
					  &ctx);
	spin_unlock_bh(&link->lock);
	return ret;
}
