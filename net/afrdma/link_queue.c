// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The queues of a link: posts work requests, handles completions, and counts credits.
 *
 * For the lock order see afrdma-internals.rst. Completions of a link are handled one at a time, in
 * softirq or, on PREEMPT_RT, in a work item. This file makes upcalls without link->lock, in an RCU
 * read section that began before the channel was looked up: the grace period in afr_channel_leave()
 * waits for them.
 *
 * No wake-up is lost: a channel that cannot post is queued under link->lock, and credits and send
 * slots are returned under the same lock; then progress() serves the queue until it is empty or no
 * message may be posted. Space for one message is reserved for each channel in the queue.
 * progress() takes a channel off the queue before it calls kick(), in which the channel may post
 * one message even if others wait. But then space is no longer reserved for the kicked channel: if
 * a channel that does not wait uses the last space before the kicked channel posts, the kicked
 * channel is queued again. Completions come one at a time, so kick() runs for at most one channel
 * at a time. A completion refers to no connection: it finds the link by wr_cqe, and the channel by
 * its id, under RCU (O3).
 */
#include <linux/log2.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "channel.h"
#include "device.h"
#include "link_pace.h"
#include "link_queue.h"
#include "netns.h"
#include "proto/imm.h"
#include "test/byzantine.h"
#include "trace.h"

struct workqueue_struct *afr_link_wq;

/* References and failing */

static void queue_worker(struct afr_link *link)
{
	refcount_inc(&link->refs);
	if (!queue_work(afr_link_wq, &link->work))
		afr_link_put(link);
}

/**
 * afr_link_queue_event() - have the link worker handle an event
 * @link: link
 * @event: what happened
 *
 * Context: any, including hard irq.
 */
void afr_link_queue_event(struct afr_link *link, enum afr_link_event event)
{
	set_bit(event, &link->events);
	queue_worker(link);
}

/**
 * afr_link_get() - take a reference
 * @link: link, referenced by the caller, or by the link group whose lock the caller holds
 *
 * Context: any.
 * Return: true; false would mean that no reference was left, but the caller or the group has one.
 */
bool afr_link_get(struct afr_link *link)
{
	return refcount_inc_not_zero(&link->refs);
}

/**
 * afr_link_put() - drop a reference
 * @link: link; after the last put a work item frees it
 *
 * Context: any.
 */
void afr_link_put(struct afr_link *link)
{
	if (refcount_dec_and_test(&link->refs))
		queue_work(afr_link_wq, &link->free_work);
}

/**
 * afr_link_queue_fail() - do what afr_link_fail() does, for a caller that holds link->lock
 * @link: link
 * @reason: why; the first reason counts
 *
 * Context: process or softirq, link->lock held.
 */
void afr_link_queue_fail(struct afr_link *link, enum afr_reason reason)
{
	lockdep_assert_held(&link->lock);
	if (link->state >= AFR_LINK_DYING)
		return;
	link->state = AFR_LINK_DYING;
	link->reason = reason;
	wake_up_all(&link->wait);
	queue_worker(link);
}

/**
 * afr_link_fail() - take down a link that has failed or is no longer wanted
 * @link: link, referenced
 * @reason: why; the first reason counts, later calls do nothing
 *
 * After this returns, nothing is posted any more, except what the drain posts, and perhaps the
 * receives of a queue pair that the link worker is just creating. Next, the link worker takes the
 * link down, and reports this to the channels and the group layer.
 *
 * Context: process or softirq.
 */
void afr_link_fail(struct afr_link *link, enum afr_reason reason)
{
	spin_lock_bh(&link->lock);
	afr_link_queue_fail(link, reason);
	spin_unlock_bh(&link->lock);
}

/**
 * afr_link_queue_up() - mark a connecting link as up, because the peer is ready
 * @link: link
 *
 * Context: process or softirq.
 * Return: true if the link is up now.
 */
bool afr_link_queue_up(struct afr_link *link)
{
	bool first, up;

	spin_lock_bh(&link->lock);
	first = link->state == AFR_LINK_CONNECTING && !link->retrying;
	if (first) {
		link->state = AFR_LINK_UP;
		link->life.used = true;
	}
	up = link->state == AFR_LINK_UP;
	spin_unlock_bh(&link->lock);
	if (first)
		afr_link_queue_event(link, AFR_LINK_EV_UP);
	return up;
}

/* Send queue */

/*
 * May work requests and receives be posted? Not after the link has failed, nor while a connect
 * attempt is being replaced by the next.
 */
static bool may_post(const struct afr_link *link)
{
	lockdep_assert_held(&link->lock);
	return link->state < AFR_LINK_DYING && !link->retrying;
}

static unsigned int sq_space(const struct afr_link *link, unsigned int reserve)
{
	unsigned int taken = link->sq.used + reserve;

	return taken < link->sq.size ? link->sq.size - taken : 0;
}

/*
 * Post one work request, or a chain of two, into free slots. The last one is signaled if there is
 * @ctx, or a quarter of the queue is unsignaled, so that a full queue contains a signaled request.
 */
static int sq_post(struct afr_link *link, struct ib_send_wr *wr, const struct afr_link_send *ctx)
{
	struct afr_link_send *m = &link->sq.sends[link->sq.head % link->sq.entries];
	struct ib_send_wr *last = wr->next ?: wr;
	unsigned int slots = wr->next ? 2 : 1;
	bool signal = ctx || link->sq.unsignaled + slots >= link->sq.size / 4;

	lockdep_assert_held(&link->lock);
	AFR_CHECK(may_post(link));	/* nothing is posted to a lost link (I9) */
	wr->wr_cqe = &link->send_cqe;
	last->wr_cqe = &link->send_cqe;
	if (signal)
		last->send_flags |= IB_SEND_SIGNALED;
	if (ib_post_send(link->qp, wr, NULL)) {
		afr_link_queue_fail(link, AFR_REASON_LINK_COMPLETION);
		return -ENOTCONN;
	}
	link->sq.used += slots;
	link->sq.unsignaled += slots;
	afr_netns_add(link->an->net, AFR_STAT_LINK_POSTS, slots);
	afr_link_queue_posted(link);
	if (!signal)
		return 0;
	*m = ctx ? *ctx : (struct afr_link_send){};
	m->count = link->sq.unsignaled;
	m->sent = link->sq.bytes;
	link->pace.in_flight += m->bulk;
	link->sq.unsignaled = 0;
	link->sq.head++;
	return 0;
}

/**
 * afr_link_queue_post() - post a message, which uses one receive of the peer
 * @link: link; the caller has checked for a credit and slots
 * @wr: source and target of the data, if there is any; the rest is filled in here
 * @imm: the immediate
 * @ctx: send context, copied, or NULL
 *
 * Context: process or softirq, link->lock held.
 * Return: 0 or -ENOTCONN.
 */
int afr_link_queue_post(struct afr_link *link, struct ib_rdma_wr *wr, u32 imm,
			const struct afr_link_send *ctx)
{
	struct afr_link_wr message;
	struct ib_send_wr *first;
	int ret;

	first = afr_link_wr_build(&message, &wr->wr, imm, link->iwarp);
	if (afr_byzantine_post(link, wr))	/* always false without CONFIG_AFRDMA_BYZANTINE */
		return 0;
	ret = sq_post(link, first, ctx);
	if (!ret)
		afr_link_credit_use(&link->sq.credit);
	return ret;
}

/*
 * Announces reposted receives to the peer (PC8) if that is due, if the peer has requested it, or
 * in order to request an announcement of the peer. Returns false if nothing was posted. An
 * announcement that is not due might not give the peer any credit, so it must not use the
 * reserved credit.
 */
static bool announce(struct afr_link *link)
{
	u16 id = link->sq.ask ? AFR_CHANNEL_ASK : AFR_CHANNEL_CREDITS;
	bool due = afr_link_credit_due(&link->sq.credit);
	struct ib_rdma_wr wr = {};

	if (!may_post(link) || !(due || link->sq.ask || link->sq.answer))
		return false;
	if (!afr_link_credit_available(&link->sq.credit, due ? 0 : AFR_LINK_CREDIT_RESERVE) ||
	    !sq_space(link, 0))
		return false;
	link->sq.ask = false;
	link->sq.answer = false;
	afr_netns_count(link->an->net, AFR_STAT_TX_ANNOUNCES);
	return !afr_link_queue_post(link, &wr,
				    afr_imm_pack(id, afr_link_credit_announce(&link->sq.credit)),
				    NULL);
}

/**
 * afr_link_queue_probe() - post something that the peer responds to
 * @link: link
 *
 * Normally the probe is a zero-length write: the peer's device acknowledges it, and it needs no
 * key, memory or receive. If no send slot is free, the write is dropped. iWARP has no such
 * acknowledgments: there the probe is an announcement that requests one in return. If there is no
 * slot or credit for the announcement now, progress() posts it later.
 *
 * Context: process or softirq, link->lock held.
 * Return: true if something was posted.
 */
bool afr_link_queue_probe(struct afr_link *link)
{
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE };
	bool posted;

	if (!may_post(link))
		return false;
	if (link->iwarp) {
		link->sq.ask = true;
		posted = announce(link);
	} else {
		posted = sq_space(link, 0) && !sq_post(link, &wr.wr, &(struct afr_link_send){});
	}
	if (posted)
		afr_netns_count(link->an->net, AFR_STAT_LINK_PROBE);
	return posted;
}

/**
 * afr_link_queue_space() - count the messages that channels may post now
 * @link: link
 *
 * Does not count the slots that are reserved for announcements and registrations (AFR_SQ_RESERVE),
 * nor the credit that is reserved for announcements. Without such slots, announcements and
 * registrations would only wait longer, until requests complete. Without such a credit, both ends
 * could be unable to announce receives, and would wait for each other.
 *
 * Context: process or softirq, link->lock held.
 * Return: messages.
 */
unsigned int afr_link_queue_space(const struct afr_link *link)
{
	lockdep_assert_held(&link->lock);
	return min_t(unsigned int, sq_space(link, AFR_SQ_RESERVE) / afr_link_wr_slots(link->iwarp),
		     afr_link_credit_available(&link->sq.credit, AFR_LINK_CREDIT_RESERVE));
}

/* Returns the next channel that waits for space, removed from its list; NULL if none may post. */
static struct afr_channel *next_waiter(struct afr_link *link)
{
	struct afr_channel *channel;

	lockdep_assert_held(&link->lock);
	link->sq.kicked = NULL;
	if (link->state != AFR_LINK_UP || !afr_link_queue_space(link))
		return NULL;
	channel = list_first_entry_or_null(&link->sq.detach_waiters, struct afr_channel, waiting) ?:
	       list_first_entry_or_null(&link->sq.waiters, struct afr_channel, waiting);
	if (!channel)
		return NULL;
	list_del_init(&channel->waiting);
	link->sq.nr_waiting--;
	link->sq.kicked = channel;
	return channel;
}

/*
 * Called after a completion, which may have returned credits or send slots: wakes tasks
 * that wait for a slot, announces receives, and calls channels that wait for credits or slots, or
 * whose bulk was held back, so that they post.
 */
static void progress(struct afr_link *link)
{
	struct afr_channel *channel, *paced;

	if (wq_has_sleeper(&link->wait))
		wake_up_all(&link->wait);
	rcu_read_lock();
	do {
		spin_lock_bh(&link->lock);
		announce(link);
		afr_byzantine_flood(link, afr_link_queue_post);
		paced = afr_link_pace_next(link);
		channel = paced ?: next_waiter(link);
		spin_unlock_bh(&link->lock);
		if (channel && channel->ops->get(channel)) {
			(paced ? channel->ops->paced : channel->ops->kick)(channel);
			channel->ops->put(channel);
		}
	} while (channel);
	rcu_read_unlock();
}

/* Completions */

static void completion_error(struct afr_link *link, const struct ib_wc *wc)
{
	/* If a connect attempt is rejected, its receives are flushed; rdma_cm reports why. */
	if (wc->status == IB_WC_WR_FLUSH_ERR && READ_ONCE(link->state) == AFR_LINK_CONNECTING)
		return;
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		pr_debug("link %llu: work request failed: %s (%u), vendor %#x\n", link->id,
			 ib_wc_status_msg(wc->status), wc->status, wc->vendor_err);
	afr_link_fail(link, wc->status == IB_WC_RETRY_EXC_ERR ? AFR_REASON_LINK_UNACKED :
								AFR_REASON_LINK_COMPLETION);
}

/* Makes the upcall @ctx->report for a completed request, unless its channel has left the link. */
static void notify_channel(struct afr_link *link, const struct afr_link_send *ctx)
{
	struct afr_channel *channel;

	rcu_read_lock();
	channel = xa_load(&link->members.ids, ctx->id);
	if (channel && !xa_is_value(channel) && channel->serial == ctx->serial &&
	    channel->ops->get(channel)) {
		ctx->report(channel);
		channel->ops->put(channel);
	}
	rcu_read_unlock();
}

/*
 * A signaled request has completed, and so have all requests posted before it. After an error,
 * unsignaled requests cause completions, too, so completions no longer match send contexts. After
 * the drain, afr_link_queue_abort_ops() drops the contexts that are left.
 */
static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct afr_link *link = container_of(wc->wr_cqe, struct afr_link, send_cqe);
	struct afr_link_send ctx;

	AFR_CHECK(READ_ONCE(link->state) != AFR_LINK_DEAD || !link->life.used);	/* drained (I9) */
	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		completion_error(link, wc);
		return;
	}
	afr_netns_count(link->an->net, AFR_STAT_TX_COMPLETIONS);
	spin_lock_bh(&link->lock);
	ctx = link->sq.sends[link->sq.tail++ % link->sq.entries];
	link->sq.used -= ctx.count;
	link->sq.done = ctx.sent;
	afr_link_pace_done(link, &ctx);
	spin_unlock_bh(&link->lock);
	if (ctx.op) {
		ctx.op->ok = true;
		complete(&ctx.op->done);
	}
	progress(link);		/* channels that wait come before the channel of this request */
	if (ctx.report)
		notify_channel(link, &ctx);
}

/* Applies an announcement of the peer; with @asks, the peer requests one in return. */
static int handle_credits(struct afr_link *link, u16 count, bool asks)
{
	int ret;

	spin_lock_bh(&link->lock);
	link->sq.answer |= asks;
	ret = afr_link_credit_grant(&link->sq.credit, count);
	spin_unlock_bh(&link->lock);
	return ret;
}

/* Handles a write of the peer to channel @id or, if @detach is set, the peer's DETACH for it. */
static int handle_channel_message(struct afr_link *link, u16 id, u32 len, u16 cursor, bool detach)
{
	struct afr_channel *channel;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "a channel is found under RCU (I7)");
	channel = xa_load(&link->members.ids, id);
	if (xa_is_value(channel))		/* id_retired */
		return 0;
	if (!channel || channel->ended)
		return -EPROTO;
	AFR_CHECK(channel->link == link);	/* set before the id was published in ids (I6) */
	channel->ended = detach;
	if (!channel->ops->get(channel))
		return 0;
	if (detach)
		channel->ops->peer_detached(channel);
	else
		channel->ops->landed(channel, len, cursor);
	channel->ops->put(channel);
	return 0;
}

/* Handle a message. Return: 0, or -EPROTO if it violates the protocol. */
static int receive(struct afr_link *link, const struct ib_wc *wc)
{
	u32 imm, len;
	u16 id, low;
	int ret;

	AFR_CHECK(!link->rx.broken);	/* I2 */
	ret = afr_link_wr_rx_read(&link->rx.queue, wc, &imm, &len);
	if (ret)
		return ret;
	WRITE_ONCE(link->rx.bytes, link->rx.bytes + len);
	id = afr_imm_channel(imm);
	low = afr_imm_cursor(imm);
	if (id > AFR_CHANNEL_MAX && len)
		return -EPROTO;
	if (id == AFR_CHANNEL_CREDITS || id == AFR_CHANNEL_ASK)
		return handle_credits(link, low, id == AFR_CHANNEL_ASK);

	rcu_read_lock();
	if (id == AFR_CHANNEL_DETACH)
		ret = handle_channel_message(link, low, 0, 0, true);
	else
		ret = handle_channel_message(link, id, len, low, false);
	rcu_read_unlock();
	return ret;
}

/* Counts a completed receive. If it is the last one of a batch, posts the batch again. */
static void repost(struct afr_link *link)
{
	unsigned int i;

	if (!afr_link_wr_rx_consumed(&link->rx.queue))
		return;
	spin_lock_bh(&link->lock);
	if (may_post(link)) {
		if (afr_link_wr_rx_repost(&link->rx.queue, link->qp))
			afr_link_queue_fail(link, AFR_REASON_LINK_COMPLETION);
		for (i = 0; i < link->rx.queue.batch; i++)
			afr_link_credit_repost(&link->sq.credit);
	}
	spin_unlock_bh(&link->lock);
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct afr_link *link = container_of(wc->wr_cqe, struct afr_link, recv_cqe);

	AFR_CHECK(READ_ONCE(link->state) != AFR_LINK_DEAD || !link->life.used);	/* I9 */
	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		completion_error(link, wc);
		return;
	}
	afr_netns_count(link->an->net, AFR_STAT_RX_COMPLETIONS);
	/*
	 * A passive end may receive a message before its handshake has ended (R8). On iWARP it is
	 * always the peer's first message, not the handshake, that brings the link up.
	 */
	if (unlikely(READ_ONCE(link->state) == AFR_LINK_CONNECTING) &&
	    (!link->active || link->iwarp)) {
		afr_link_queue_event(link, AFR_LINK_EV_COMM_EST);
		afr_link_queue_up(link);
	}
	/* After a protocol violation no message can be trusted (I2). */
	if (unlikely(link->rx.broken))
		return;
	WRITE_ONCE(link->rx.writes, link->rx.writes + 1);
	if (receive(link, wc)) {
		link->rx.broken = true;
		afr_link_fail(link, AFR_REASON_LINK_PROTOCOL);
		return;
	}
	repost(link);
	progress(link);
}

/* Queues and operations */

/**
 * afr_link_queue_init() - allocate the queues of a new queue pair
 * @link: link, with its protection domain
 * @sq_size: send slots
 * @rq_size: receives, a power of two
 *
 * Context: process, no other user yet. Undone by afr_link_queue_free(), after a failure, too.
 * Return: 0 or -ENOMEM.
 */
int afr_link_queue_init(struct afr_link *link, u16 sq_size, u16 rq_size)
{
	link->send_cqe.done = send_done;
	link->recv_cqe.done = recv_done;
	link->sq.size = sq_size;
	link->sq.entries = roundup_pow_of_two(sq_size);
	link->sq.sends = kvcalloc(link->sq.entries, sizeof(*link->sq.sends), GFP_KERNEL);
	if (!link->sq.sends)
		return -ENOMEM;
	return afr_link_wr_rx_init(&link->rx.queue, link->pd, &link->recv_cqe, rq_size,
				   link->iwarp);
}

/**
 * afr_link_queue_free() - free the queues of a link whose queue pair is gone
 * @link: link; may get new queues afterwards
 *
 * Context: process.
 */
void afr_link_queue_free(struct afr_link *link)
{
	afr_link_wr_rx_free(&link->rx.queue);
	kvfree(link->sq.sends);
	link->sq.sends = NULL;
	link->sq.head = 0;
	link->sq.tail = 0;
	link->sq.used = 0;
	link->sq.unsignaled = 0;
	link->pace.in_flight = 0;
}

/* Post @wr. Return: 0; -EAGAIN: too few free send slots; or -ENOTCONN. */
static int try_run(struct afr_link *link, struct ib_send_wr *wr, struct afr_link_op *op)
{
	struct afr_link_send ctx = { .op = op };
	int ret = -EAGAIN;

	spin_lock_bh(&link->lock);
	if (link->state != AFR_LINK_UP)
		ret = -ENOTCONN;
	else if (sq_space(link, 1) > !!wr->next)	/* leave one for announcements, probes */
		ret = sq_post(link, wr, &ctx);
	spin_unlock_bh(&link->lock);
	return ret;
}

#define RUN_IDLE_CHECKS	4	/* checks without a completion until the link is lost */
#define RUN_MAX_CHECKS	16	/* checks until it is lost even though other requests complete */

/*
 * Decides after each half of link_timeout_ms whether afr_link_queue_run() waits as long again. If
 * not, takes the link down and returns false.
 */
static bool wait_on(struct afr_link *link, unsigned int *looks, unsigned int *idle, u32 *tail)
{
	*idle = READ_ONCE(link->sq.tail) == *tail ? *idle + 1 : 0;
	*tail = READ_ONCE(link->sq.tail);
	if (++*looks < RUN_MAX_CHECKS && *idle < RUN_IDLE_CHECKS)
		return true;
	afr_link_fail(link, AFR_REASON_LINK_SILENT);
	return false;
}

/**
 * afr_link_queue_run() - post a work request and wait until it has completed
 * @link: link
 * @wr: request, or a chain of two; the last one is made signaled here
 *
 * The request may have to wait for everything posted before it. The link is taken down if no
 * signaled request completes for about twice link_timeout_ms, or if this one has not completed
 * after about eight times link_timeout_ms.
 *
 * Context: process; sleeps. The death of the link ends the wait.
 * Return: 0, or -ENOTCONN if the link was lost before the request completed.
 */
int afr_link_queue_run(struct afr_link *link, struct ib_send_wr *wr)
{
	unsigned long look = msecs_to_jiffies(READ_ONCE(link->an->set.link_timeout_ms) / 2) + 1;
	u32 tail = READ_ONCE(link->sq.tail);
	unsigned int looks = 0, idle = 0;
	struct afr_link_op op = {};
	int ret = -EAGAIN;

	init_completion(&op.done);
	while (!wait_event_timeout(link->wait, (ret = try_run(link, wr, &op)) != -EAGAIN, look))
		if (!wait_on(link, &looks, &idle, &tail))
			return -ENOTCONN;
	if (ret)
		return ret;
	while (!wait_for_completion_timeout(&op.done, look))
		if (!wait_on(link, &looks, &idle, &tail)) {
			wait_for_completion(&op.done);	/* ends at the latest after the drain */
			break;
		}
	return op.ok ? 0 : -ENOTCONN;
}

/**
 * afr_link_queue_abort_ops() - fail the operations that wait for a completion
 * @link: link that is drained, or was never up and so has no such operations
 *
 * Context: process.
 */
void afr_link_queue_abort_ops(struct afr_link *link)
{
	struct afr_link_op *op;

	while (link->sq.tail != link->sq.head) {
		op = link->sq.sends[link->sq.tail++ % link->sq.entries].op;
		if (op)
			complete(&op->done);
	}
}
