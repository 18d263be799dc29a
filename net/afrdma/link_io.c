// SPDX-License-Identifier: GPL-2.0
/*
 * Links: posting, completions and credits.
 *
 * Locks: link->lock (BH) is taken below the users' tx locks and above nothing but
 * the driver's own. Upcalls are made without it. Softirq upcalls run inside an
 * RCU read section that began before the port was looked up, so that a leaving
 * port waits them out by a grace period.
 *
 * No wake-up is lost: a port is refused and queued under the lock under which
 * credits and slots come back, and whoever gives some back serves the queue until
 * it is empty or nothing is left. Every waiter has one message set aside for it,
 * so newcomers cannot starve it, and may post one when it is its turn. Completions
 * of a link come one at a time, so there is one turn at a time.
 *
 * What completions touch belongs to the link, never to a connection (O3).
 */
#include <linux/log2.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "dev.h"
#include "imm.h"
#include "link_io.h"
#include "netns.h"
#include "rogue.h"
#include "stats.h"
#include "trace.h"

struct workqueue_struct *afr_link_wq;

/* References and failing */

static void queue_life(struct afr_link *link)
{
	refcount_inc(&link->refs);
	if (!queue_work(afr_link_wq, &link->work))
		afr_link_put(link);
}

/**
 * afr_link_io_event() - have the link's work look at something
 * @link: the link
 * @event: what
 *
 * Context: Any, hard irq too.
 */
void afr_link_io_event(struct afr_link *link, enum afr_link_event event)
{
	set_bit(event, &link->events);
	queue_life(link);
}

/**
 * afr_link_get() - take a reference
 * @link: the link, found under RCU or held
 *
 * Context: Any.
 * Return: false if it is on its way out.
 */
bool afr_link_get(struct afr_link *link)
{
	return refcount_inc_not_zero(&link->refs);
}

/**
 * afr_link_put() - drop a reference
 * @link: the link; the last reference frees it, from a work
 *
 * Context: Any.
 */
void afr_link_put(struct afr_link *link)
{
	if (refcount_dec_and_test(&link->refs))
		queue_work(afr_link_wq, &link->free_work);
}

/**
 * afr_link_io_fail() - afr_link_fail() under the lock
 * @link: the link
 * @reason: why; the first reason counts
 *
 * Context: Process or softirq, under link->lock.
 */
void afr_link_io_fail(struct afr_link *link, enum afr_reason reason)
{
	lockdep_assert_held(&link->lock);
	if (link->state >= AFR_LINK_DYING)
		return;
	link->state = AFR_LINK_DYING;
	link->reason = reason;
	wake_up_all(&link->wait);
	queue_life(link);
}

/**
 * afr_link_fail() - this link is lost
 * @link: the link, referenced
 * @reason: why; the first reason counts
 *
 * Nothing is posted after this returns. The rest follows from a work.
 *
 * Context: Process or softirq.
 */
void afr_link_fail(struct afr_link *link, enum afr_reason reason)
{
	spin_lock_bh(&link->lock);
	afr_link_io_fail(link, reason);
	spin_unlock_bh(&link->lock);
}

/**
 * afr_link_io_up() - the peer is there
 * @link: the link
 *
 * Context: Process or softirq.
 * Return: true if the link is up now.
 */
bool afr_link_io_up(struct afr_link *link)
{
	bool first, up;

	spin_lock_bh(&link->lock);
	first = link->state == AFR_LINK_CONNECTING && !link->retrying;
	if (first) {
		link->state = AFR_LINK_UP;
		link->used = true;
	}
	up = link->state == AFR_LINK_UP;
	spin_unlock_bh(&link->lock);
	if (first)
		afr_link_io_event(link, AFR_LINK_EV_UP);
	return up;
}

/* Send queue */

/* Is there a queue pair to post to? While a connect is begun anew there is none. */
static bool may_post(const struct afr_link *link)
{
	lockdep_assert_held(&link->lock);
	return link->state < AFR_LINK_DYING && !link->retrying;
}

static unsigned int sq_room(const struct afr_link *link, unsigned int reserve)
{
	unsigned int taken = link->sq_used + reserve;

	return taken < link->sq_size ? link->sq_size - taken : 0;
}

/*
 * Post one work request, or two in a chain, for which there is room. With @mark the last is
 * signaled; else when a quarter of the queue has none, so that a full one has a signal in it.
 */
static int sq_post(struct afr_link *link, struct ib_send_wr *wr, const struct afr_link_mark *mark)
{
	struct afr_link_mark *m = &link->marks[link->mark_head % link->mark_slots];
	struct ib_send_wr *last = wr->next ?: wr;
	unsigned int slots = wr->next ? 2 : 1;
	bool signal = mark || link->sq_plain + slots >= link->sq_size / 4;

	lockdep_assert_held(&link->lock);
	AFR_CHECK(may_post(link));	/* nothing is posted to a lost one (I9) */
	wr->wr_cqe = &link->send_cqe;
	last->wr_cqe = &link->send_cqe;
	if (signal)
		last->send_flags |= IB_SEND_SIGNALED;
	if (ib_post_send(link->qp, wr, NULL)) {
		afr_link_io_fail(link, AFR_REASON_LINK_COMPLETION);
		return -ENOTCONN;
	}
	link->sq_used += slots;
	link->sq_plain += slots;
	afr_stat_add(link->an->net, AFR_STAT_LINK_POSTS, slots);
	afr_link_posted(link);
	if (!signal)
		return 0;
	*m = mark ? *mark : (struct afr_link_mark){};
	m->count = link->sq_plain;
	m->sent = link->tx_bytes;
	link->bulk += m->bulk;
	link->sq_plain = 0;
	link->mark_head++;
	return 0;
}

/**
 * afr_link_io_post() - post a message: it eats one receive of the peer
 * @link: the link; the caller has made sure of credit and slots
 * @wr: addresses filled in
 * @imm: the immediate
 * @mark: NULL, or what its completion stands for
 *
 * Context: Process or softirq, under link->lock.
 * Return: 0 or -ENOTCONN.
 */
int afr_link_io_post(struct afr_link *link, struct ib_rdma_wr *wr, u32 imm,
		     const struct afr_link_mark *mark)
{
	struct afr_message message;
	struct ib_send_wr *first;
	int ret;

	first = afr_message_build(&message, &wr->wr, imm, link->iwarp);
	if (afr_rogue_post(link, wr))
		return 0;
	ret = sq_post(link, first, mark);
	if (!ret)
		afr_credit_use(&link->credit);
	return ret;
}

/*
 * Tell the peer of reposted receives, if that is worth it and possible (PC8). What is
 * told for another reason leaves the reserve alone, as it may bring the peer nothing.
 */
static void announce(struct afr_link *link)
{
	u16 slot = link->ask ? AFR_SLOT_ASK : AFR_SLOT_CREDITS;
	bool due = afr_credit_due(&link->credit);
	struct ib_rdma_wr wr = {};

	if (!may_post(link) || !(due || link->ask || link->answer))
		return;
	if (!afr_credit_available(&link->credit, due ? 0 : AFR_CREDIT_RESERVE) ||
	    !sq_room(link, 0))
		return;
	link->ask = false;
	link->answer = false;
	afr_stat_inc(link->an->net, AFR_STAT_TX_ANNOUNCES);
	afr_link_io_post(link, &wr, afr_imm_pack(slot, afr_credit_announce(&link->credit)), NULL);
}

/**
 * afr_link_io_probe() - post what the peer answers
 * @link: the link, up or greeting
 *
 * A write of nothing: the peer's device acknowledges it, without key, memory or
 * receive. On iWARP nobody acknowledges anything: there it is a question.
 *
 * Context: Process or softirq, under link->lock.
 */
void afr_link_io_probe(struct afr_link *link)
{
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE };

	if (!may_post(link))
		return;
	if (link->iwarp) {
		link->ask = true;
		announce(link);
	} else if (!sq_room(link, 0) || sq_post(link, &wr.wr, &(struct afr_link_mark){})) {
		return;
	}
	afr_stat_inc(link->an->net, AFR_STAT_LINK_PROBE);
}

/**
 * afr_link_io_room() - messages of ports that may be posted now
 * @link: the link
 *
 * Nothing of a port uses those kept for announcements, or both ends could run out of them.
 *
 * Context: Process or softirq, under link->lock.
 * Return: their number.
 */
unsigned int afr_link_io_room(const struct afr_link *link)
{
	lockdep_assert_held(&link->lock);
	return min_t(unsigned int, sq_room(link, AFR_SQ_RESERVE) / afr_message_slots(link->iwarp),
		     afr_credit_available(&link->credit, AFR_CREDIT_RESERVE));
}

static struct afr_port *next_waiter(struct afr_link *link)
{
	struct afr_port *port;

	lockdep_assert_held(&link->lock);
	link->turn = NULL;
	if (link->state != AFR_LINK_UP || !afr_link_io_room(link))
		return NULL;
	port = list_first_entry_or_null(&link->leavers, struct afr_port, waiting) ?:
	       list_first_entry_or_null(&link->waiters, struct afr_port, waiting);
	if (!port)
		return NULL;
	list_del_init(&port->waiting);
	link->waiting--;
	link->turn = port;
	return port;
}

/* Credits or send slots may have come back: use them. Softirq. */
static void progress(struct afr_link *link)
{
	struct afr_port *port, *paced;

	if (wq_has_sleeper(&link->wait))
		wake_up_all(&link->wait);
	rcu_read_lock();
	do {
		spin_lock_bh(&link->lock);
		announce(link);
		afr_rogue_flood(link, afr_link_io_post);
		paced = afr_pace_next(link);
		port = paced ?: next_waiter(link);
		spin_unlock_bh(&link->lock);
		if (port && port->ops->get(port)) {
			(paced ? port->ops->paced : port->ops->kick)(port);
			port->ops->put(port);
		}
	} while (port);
	rcu_read_unlock();
}

/* Completions */

static void completion_error(struct afr_link *link, const struct ib_wc *wc)
{
	/* A refused connect flushes too; its event tells more than we know. */
	if (wc->status == IB_WC_WR_FLUSH_ERR && READ_ONCE(link->state) == AFR_LINK_CONNECTING)
		return;
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		pr_debug("link %llu: work request failed: %s (%u), vendor %#x\n", link->id,
			 ib_wc_status_msg(wc->status), wc->status, wc->vendor_err);
	afr_link_fail(link, wc->status == IB_WC_RETRY_EXC_ERR ? AFR_REASON_LINK_UNACKED :
								AFR_REASON_LINK_COMPLETION);
}

static void tell_port(struct afr_link *link, const struct afr_link_mark *mark)
{
	struct afr_port *port;

	rcu_read_lock();
	port = xa_load(&link->slots, mark->slot);
	if (port && !xa_is_value(port) && port->serial == mark->serial && port->ops->get(port)) {
		mark->tell(port);
		port->ops->put(port);
	}
	rcu_read_unlock();
}

/*
 * A signaled send is done, and with it all before it. After an error every work
 * request completes, signaled or not, and the marks count no more: then only the
 * end of the drain does.
 */
static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct afr_link *link = container_of(wc->wr_cqe, struct afr_link, send_cqe);
	struct afr_link_mark mark;

	AFR_CHECK(READ_ONCE(link->state) != AFR_LINK_DEAD || !link->used);	/* drained (I9) */
	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		completion_error(link, wc);
		return;
	}
	afr_stat_inc(link->an->net, AFR_STAT_TX_COMPLETIONS);
	spin_lock_bh(&link->lock);
	mark = link->marks[link->mark_tail++ % link->mark_slots];
	link->sq_used -= mark.count;
	link->tx_done = mark.sent;
	afr_pace_done(link, &mark);
	spin_unlock_bh(&link->lock);
	if (mark.op) {
		mark.op->ok = true;
		complete(&mark.op->done);
	}
	progress(link);		/* who was held back goes before who streams */
	if (mark.tell)
		tell_port(link, &mark);
}

static int got_credits(struct afr_link *link, u16 count, bool asks)
{
	int ret;

	spin_lock_bh(&link->lock);
	link->answer |= asks;
	ret = afr_credit_grant(&link->credit, count);
	spin_unlock_bh(&link->lock);
	return ret;
}

/* A write for @slot, or (@detach) the end of the writes for it. */
static int got_message(struct afr_link *link, u16 slot, u32 len, u16 cursor, bool detach)
{
	struct afr_port *port;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "a port is found under RCU (I7)");
	port = xa_load(&link->slots, slot);
	if (xa_is_value(port))		/* forsaken */
		return 0;
	if (!port || port->ended)
		return -EPROTO;
	AFR_CHECK(port->link == link);	/* whole before it was found (I6) */
	port->ended = detach;
	if (!port->ops->get(port))
		return 0;
	if (detach)
		port->ops->peer_detached(port);
	else
		port->ops->landed(port, len, cursor);
	port->ops->put(port);
	return 0;
}

/* Return: 0, or -EPROTO if no honest peer sends this. */
static int receive(struct afr_link *link, const struct ib_wc *wc)
{
	u32 imm, len;
	u16 slot, low;
	int ret;

	AFR_CHECK(!link->broken);	/* I2 */
	ret = afr_message_rx_read(&link->rx, wc, &imm, &len);
	if (ret)
		return ret;
	WRITE_ONCE(link->rx_bytes, link->rx_bytes + len);
	slot = afr_imm_slot(imm);
	low = afr_imm_cursor(imm);
	if (slot > AFR_SLOT_MAX && len)
		return -EPROTO;
	if (slot == AFR_SLOT_CREDITS || slot == AFR_SLOT_ASK)
		return got_credits(link, low, slot == AFR_SLOT_ASK);

	rcu_read_lock();
	if (slot == AFR_SLOT_DETACH)
		ret = got_message(link, low, 0, 0, true);
	else
		ret = got_message(link, slot, len, low, false);
	rcu_read_unlock();
	return ret;
}

/* Post a batch of receives when that many are spent. */
static void repost(struct afr_link *link)
{
	unsigned int i;

	if (!afr_message_rx_spent(&link->rx))
		return;
	spin_lock_bh(&link->lock);
	if (may_post(link)) {
		if (afr_message_rx_repost(&link->rx, link->qp))
			afr_link_io_fail(link, AFR_REASON_LINK_COMPLETION);
		for (i = 0; i < link->rx.batch; i++)
			afr_credit_repost(&link->credit);
	}
	spin_unlock_bh(&link->lock);
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct afr_link *link = container_of(wc->wr_cqe, struct afr_link, recv_cqe);

	AFR_CHECK(READ_ONCE(link->state) != AFR_LINK_DEAD || !link->used);	/* I9 */
	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		completion_error(link, wc);
		return;
	}
	afr_stat_inc(link->an->net, AFR_STAT_RX_COMPLETIONS);
	/* The peer may write as soon as it has our accept; the handshake ends later (R8). */
	if (unlikely(READ_ONCE(link->state) == AFR_LINK_CONNECTING) &&
	    (!link->active || link->iwarp)) {
		afr_link_io_event(link, AFR_LINK_EV_COMM_EST);
		afr_link_io_up(link);
	}
	/* Behind a broken rule nobody knows what belongs where (I2). */
	if (unlikely(link->broken))
		return;
	WRITE_ONCE(link->rx_writes, link->rx_writes + 1);
	if (receive(link, wc)) {
		link->broken = true;
		afr_link_fail(link, AFR_REASON_LINK_PROTOCOL);
		return;
	}
	repost(link);
	progress(link);
}

/* Queues and operations */

/**
 * afr_link_io_init() - memory for the queues of a link
 * @link: the link, with its protection domain
 * @sq_size: send slots
 * @rq_size: receives, a power of two
 *
 * Context: Process. To be undone by afr_link_io_free().
 * Return: 0 or -ENOMEM.
 */
int afr_link_io_init(struct afr_link *link, u16 sq_size, u16 rq_size)
{
	link->send_cqe.done = send_done;
	link->recv_cqe.done = recv_done;
	link->sq_size = sq_size;
	link->mark_slots = roundup_pow_of_two(sq_size);
	link->marks = kvcalloc(link->mark_slots, sizeof(*link->marks), GFP_KERNEL);
	if (!link->marks)
		return -ENOMEM;
	return afr_message_rx_init(&link->rx, link->pd, &link->recv_cqe, rq_size, link->iwarp);
}

/**
 * afr_link_io_free() - free the queues of a drained link
 * @link: the link; may get new queues afterwards
 *
 * Context: Process.
 */
void afr_link_io_free(struct afr_link *link)
{
	afr_message_rx_free(&link->rx);
	kvfree(link->marks);
	link->marks = NULL;
	link->mark_head = 0;
	link->mark_tail = 0;
	link->sq_used = 0;
	link->sq_plain = 0;
	link->bulk = 0;
}

/* -EAGAIN: no slot free. */
static int try_run(struct afr_link *link, struct ib_send_wr *wr, struct afr_link_op *op)
{
	struct afr_link_mark mark = { .op = op };
	int ret = -EAGAIN;

	spin_lock_bh(&link->lock);
	if (link->state != AFR_LINK_UP)
		ret = -ENOTCONN;
	else if (sq_room(link, 1) > !!wr->next)		/* one is for announcements */
		ret = sq_post(link, wr, &mark);
	spin_unlock_bh(&link->lock);
	return ret;
}

#define RUN_LOOKS	4	/* without progress: counted, as by the watch */
#define RUN_MOST	16	/* in all: who lets go of a packet now and then is slow enough */

/* Look again, half of link_timeout_ms later? False when it is time to give up: the link is lost. */
static bool wait_on(struct afr_link *link, unsigned int *looks, unsigned int *idle, u32 *tail)
{
	*idle = READ_ONCE(link->mark_tail) == *tail ? *idle + 1 : 0;
	*tail = READ_ONCE(link->mark_tail);
	if (++*looks < RUN_MOST && *idle < RUN_LOOKS)
		return true;
	afr_link_fail(link, AFR_REASON_LINK_SILENT);
	return false;
}

/**
 * afr_link_io_run() - post a work request and wait until it is done
 * @link: the link
 * @wr: the request, or a chain of two; the last is made signaled here
 *
 * It may have to wait for all that was posted before, so a peer that acknowledges nothing of
 * that loses the link: after twice link_timeout_ms, or eight times, if some completes.
 *
 * Context: Process. Sleeps; a link that dies ends the wait.
 * Return: 0, or -ENOTCONN if the link died before.
 */
int afr_link_io_run(struct afr_link *link, struct ib_send_wr *wr)
{
	unsigned long look = msecs_to_jiffies(READ_ONCE(link->an->set.link_timeout_ms) / 2) + 1;
	u32 tail = READ_ONCE(link->mark_tail);
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
			wait_for_completion(&op.done);	/* with the rest of a lost link's */
			break;
		}
	return op.ok ? 0 : -ENOTCONN;
}

/**
 * afr_link_io_abort_ops() - end what waits for completions that did not come
 * @link: the link, drained
 *
 * Context: Process.
 */
void afr_link_io_abort_ops(struct afr_link *link)
{
	struct afr_link_op *op;

	while (link->mark_tail != link->mark_head) {
		op = link->marks[link->mark_tail++ % link->mark_slots].op;
		if (op)
			complete(&op->done);
	}
}
