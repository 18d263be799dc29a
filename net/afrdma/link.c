// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Creates, supervises and destroys links.
 *
 *	connecting --peer is ready--> up --fail--> dying --taken down--> dead
 *	     `---------------------fail-------------^
 *
 * One work item per link, the link worker, takes the steps that sleep, one at a time: it creates
 * the queue pair, connects, reports to the group layer and takes the link down. rdma_cm handlers,
 * completions, timers and device events leave these steps to it: they record what happened and
 * queue the worker. So rdma_destroy_id() never runs in a handler of its id (R8). On a dying link,
 * nothing is posted any more; if the link was up, the worker drains its queue pair (R9).
 *
 * For the lock order see afrdma-internals.rst. No lock of a link is held while waiting for the
 * peer, or during an upcall to the group layer or a channel; only a channel's get() runs under
 * link->lock.
 *
 * References are held by the group layer from creation to the dead() upcall, by cm.id from then
 * until the id is destroyed, and by channels, memory regions, the queued link worker, and attaches
 * that have got the link from the group layer but have not joined it yet. When the last reference
 * is dropped, another work item frees the protection domain and drops the device reference.
 */
#include <linux/in6.h>
#include <linux/rcupdate.h>
#include <linux/random.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "channel.h"
#include "compat.h"
#include "device.h"
#include "link.h"
#include "link_cm.h"
#include "link_keepalive.h"
#include "link_pace.h"
#include "link_queue.h"
#include "netns.h"
#include "trace.h"

#define PORT_POLL	(HZ / 5)	/* between checks for an active device port */
/*
 * A link counts as short-lived only if it was up for less than SHORT_LIFE and has transferred less
 * than SHORT_BYTES. SHORT_LIFE leaves time for the retries of the device, which take four seconds
 * or more. SHORT_BYTES leaves room for small packets, which may pass on a path that loses large
 * ones.
 */
#define SHORT_LIFE	(15 * HZ)
#define SHORT_BYTES	SZ_1M
#define TRY		(3 * HZ / 2)	/* per attempt; rdma_cm repeats a request only after 4 s */

static LIST_HEAD(links);
static DEFINE_SPINLOCK(links_lock);	/* protects links */
static atomic_t links_count = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(links_freed);
static bool links_exiting;

/* Creation and freeing */

static void free_link(struct work_struct *work)
{
	struct afr_link *link = container_of(work, struct afr_link, free_work);

	spin_lock(&links_lock);
	list_del(&link->entry);
	spin_unlock(&links_lock);
	if (link->pd)
		ib_dealloc_pd(link->pd);
	if (link->dev)
		afr_device_put(link->dev);
	xa_destroy(&link->members.ids);
	trace_afrdma_link_destroy(link->id);
	kfree_rcu(link, rcu);
	if (atomic_dec_and_test(&links_count))
		wake_up_all(&links_freed);
}

static void link_work(struct work_struct *work);

static void link_timer(struct timer_list *timer)
{
	struct afr_link *link = timer_container_of(link, timer, timer);

	afr_link_queue_event(link, AFR_LINK_EV_TIMER);
}

static struct afr_link *new_link(struct afr_net *an, u64 id, const struct afr_link_ops *ops,
				 void *owner)
{
	struct afr_link *link = kzalloc_obj(*link);

	if (!link)
		return NULL;
	link->id = id;
	link->an = an;
	link->ops = ops;
	link->owner = owner;
	refcount_set(&link->refs, 1);	/* of the group layer */
	INIT_WORK(&link->work, link_work);
	INIT_WORK(&link->free_work, free_link);
	timer_setup(&link->timer, link_timer, 0);
	timer_setup(&link->keepalive.tail, afr_link_keepalive_tail, 0);
	init_waitqueue_head(&link->wait);
	spin_lock_init(&link->lock);
	INIT_LIST_HEAD(&link->members.list);
	INIT_LIST_HEAD(&link->sq.waiters);
	INIT_LIST_HEAD(&link->sq.detach_waiters);
	afr_link_pace_init(link);
	xa_init_flags(&link->members.ids, XA_FLAGS_ALLOC);

	atomic_inc(&links_count);
	spin_lock(&links_lock);
	list_add_tail(&link->entry, &links);
	spin_unlock(&links_lock);
	trace_afrdma_link_create(id);
	return link;
}

/* The link worker */

static void report_up(struct afr_link *link)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};	/* iWARP does not report the peer's QP number */

	if (link->life.settled)
		return;
	link->life.settled = true;
	link->life.was_up = true;
	link->life.up_since = jiffies;
	spin_lock_bh(&link->lock);
	if (!link->members.count)
		afr_link_keepalive_idle(link);
	spin_unlock_bh(&link->lock);
	if (!ib_query_qp(link->qp, &attr, IB_QP_DEST_QPN | IB_QP_PATH_MTU, &init)) {
		WRITE_ONCE(link->cm.peer_qpn, attr.dest_qp_num);
		WRITE_ONCE(link->mtu, max(ib_mtu_enum_to_int(attr.path_mtu), 0));
	}
	afr_netns_count(link->an->net, AFR_STAT_LINK_CREATED);
	trace_afrdma_link_up(link->id);
	link->ops->settled(link, AFR_REASON_NONE);
}

static void report_failed(struct afr_link *link)
{
	if (link->life.settled)
		return;
	link->life.settled = true;
	afr_netns_count(link->an->net, AFR_STAT_LINK_FAILED);
	link->ops->settled(link, link->reason);
}

/*
 * Starts link->timer for the connect timeout or, at the active end, for the next attempt if that
 * comes first.
 */
static void connect_timer(struct afr_link *link)
{
	unsigned long next = link->cm.end;

	if (link->active && time_before(jiffies + TRY, next))
		next = jiffies + TRY;
	mod_timer(&link->timer, next);
}

/*
 * link->timer expired: connect timeout, next attempt, keepalive check, or end of the idle time.
 * For a dead link, nothing is done here: link_work() calls destroy_id().
 */
static void timeout(struct afr_link *link)
{
	bool again = false;

	spin_lock_bh(&link->lock);
	if (link->state == AFR_LINK_CONNECTING && time_before(jiffies, link->cm.end))
		again = true;
	else if (link->state == AFR_LINK_CONNECTING)
		afr_link_queue_fail(link, AFR_REASON_CONNECT_TIMEOUT);
	else if (link->state == AFR_LINK_UP && link->members.count)
		afr_link_keepalive_check(link);
	else if (link->life.was_up && !time_before(jiffies, link->keepalive.idle_end))
		afr_link_queue_fail(link, AFR_REASON_LINK_IDLE);
	spin_unlock_bh(&link->lock);
	if (again) {
		connect_timer(link);
		afr_link_cm_retry(link);
	}
}

/*
 * Was an established link lost? It was not if this end closed it as idle, at module exit or for
 * the operator, nor if the peer closed it while it was unused.
 */
static bool lost(const struct afr_link *link)
{
	if (link->reason == AFR_REASON_LINK_DISCONNECTED && !link->life.in_use)
		return false;	/* the peer closes idle links, too */
	return link->life.was_up && link->reason != AFR_REASON_LINK_IDLE &&
	       link->reason != AFR_REASON_LINK_SHUTDOWN &&
	       link->reason != AFR_REASON_LINK_OPERATOR;
}

/*
 * Destroying the id of a dead link may send a message to the peer. While the port of an rxe device
 * is down, sending fails, and QP1 of the device, by which rdma_cm sends, then never works again. So
 * the id is kept until afr_link_cm_may_send() returns true, or the module exits. The channels and
 * the group layer do not wait for that.
 */
static void destroy_id(struct afr_link *link)
{
	if (link->cm.id && !READ_ONCE(links_exiting) && !afr_link_cm_may_send(link)) {
		mod_timer(&link->timer, jiffies + PORT_POLL);
		return;
	}
	timer_delete_sync(&link->timer);
	afr_link_cm_end(link);
	afr_link_put(link);
}

/* Takes a channel off the list, references it, and records that its down() is about to run. */
static struct afr_channel *next_channel(struct afr_link *link)
{
	struct afr_channel *channel;

	spin_lock_bh(&link->lock);
	do {
		channel = list_first_entry_or_null(&link->members.list, struct afr_channel,
						   member);
		if (channel)
			list_del_init(&channel->member);
	} while (channel && !channel->ops->get(channel));
	link->members.down_channel = channel;
	link->members.down_task = channel ? current : NULL;
	spin_unlock_bh(&link->lock);
	wake_up_all(&link->wait);
	return channel;
}

/* Calls down() of every channel that is still joined. The link is drained. */
static void down_channels(struct afr_link *link)
{
	const struct afr_channel_ops *ops;
	struct afr_channel *channel;

	AFR_CHECK(link->state == AFR_LINK_DEAD);	/* nothing lands any more (I9) */
	while ((channel = next_channel(link))) {
		ops = channel->ops;
		ops->down(channel, link->reason);
		ops->put(channel);
	}
}

/*
 * Takes a dying link down: fences and drains it if it was up, reports its end to the channels and
 * the group layer, and frees the queue pair.
 */
static void take_down(struct afr_link *link)
{
	/* this is the link worker, so nothing that is called here may wait for it (I15) */
	AFR_CHECK(current_work() == &link->work);
	link->life.in_use = READ_ONCE(link->members.count);
	timer_delete_sync(&link->timer);
	timer_delete_sync(&link->keepalive.tail);
	report_failed(link);
	if (lost(link))
		afr_netns_count(link->an->net, AFR_STAT_LINK_DIED);
	if (link->life.was_up && afr_link_cm_may_send(link))
		rdma_disconnect(link->cm.id);
	afr_link_cm_drain(link);
	trace_afrdma_link_down(link->id, link->reason);
	spin_lock_bh(&link->lock);
	link->life.dead_since = jiffies;
	link->state = AFR_LINK_DEAD;
	spin_unlock_bh(&link->lock);
	down_channels(link);
	afr_link_cm_close(link);
	afr_link_get(link);	/* for cm.id; destroy_id() drops it */
	link->ops->dead(link);
	destroy_id(link);
}

static bool happened(struct afr_link *link, enum afr_link_event event)
{
	return test_and_clear_bit(event, &link->events);
}

static bool connecting(const struct afr_link *link)
{
	return READ_ONCE(link->state) == AFR_LINK_CONNECTING;
}

static void link_work(struct work_struct *work)
{
	struct afr_link *link = container_of(work, struct afr_link, work);

	if (happened(link, AFR_LINK_EV_QP))
		afr_link_fail(link, AFR_REASON_LINK_QP_EVENT);
	if (happened(link, AFR_LINK_EV_TIMER))
		timeout(link);
	if (link->cm.id && READ_ONCE(link->state) == AFR_LINK_DEAD)
		destroy_id(link);
	if (happened(link, AFR_LINK_EV_RESOLVE) && connecting(link))
		afr_link_cm_resolve(link);
	if (happened(link, AFR_LINK_EV_STALE) && connecting(link))
		afr_link_cm_stale(link);
	if (happened(link, AFR_LINK_EV_ROUTE) && connecting(link))
		afr_link_cm_connect(link);
	if (happened(link, AFR_LINK_EV_ACCEPT) && connecting(link))
		afr_link_cm_accept(link);
	if (happened(link, AFR_LINK_EV_COMM_EST) && link->cm.id)
		rdma_notify(link->cm.id, IB_EVENT_COMM_EST);
	if (happened(link, AFR_LINK_EV_UP))
		report_up(link);
	if (READ_ONCE(link->state) == AFR_LINK_DYING)
		take_down(link);
	afr_link_put(link);
}

static void copy_address(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memcpy(to, from, from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						       sizeof(struct sockaddr_in));
}

/* Starts the connect timeout, and has the link worker handle @event, the first of the link. */
static void start(struct afr_link *link, enum afr_link_event event)
{
	link->cm.end = jiffies + msecs_to_jiffies(READ_ONCE(link->an->set.attach_timeout_ms));
	connect_timer(link);
	afr_link_queue_event(link, event);
}

/**
 * afr_link_connect() - start connecting a link
 * @an: network namespace
 * @local: local address, AF_INET or AF_INET6, port 0
 * @remote: the peer's address and the port of its cm listener, from HELLO or SERVICE
 * @peer: instance and secret from the peer's HELLO; the largest packet to send to the peer; and
 *	the traffic class
 * @ops: upcalls
 * @owner: for afr_link_owner()
 *
 * settled() reports the outcome, possibly before this function returns. It is called within the
 * attach timeout, except on siw, where rdma_connect() waits for TCP.
 *
 * Context: process; does not wait.
 * Return: link, with a reference to drop in dead(); or ERR_PTR(-ENOMEM), and no upcall follows.
 */
struct afr_link *afr_link_connect(struct afr_net *an, const struct sockaddr *local,
				  const struct sockaddr *remote,
				  const struct afr_link_peer *peer,
				  const struct afr_link_ops *ops, void *owner)
{
	/* random, so nobody can guess it for an ATTACH; 53 bits: JSON readers round longer ids */
	struct afr_link *link = new_link(an, get_random_u64() >> 11 | 1, ops, owner);

	if (!link)
		return ERR_PTR(-ENOMEM);
	link->active = true;
	link->peer = *peer;
	copy_address(&link->local, local);
	copy_address(&link->remote, remote);
	start(link, AFR_LINK_EV_RESOLVE);
	return link;
}

/**
 * afr_link_accept() - accept a link that a peer connects
 * @an: network namespace
 * @id: rdma_cm id of the connect request
 * @req: its private data, which cm_listener.c has checked
 * @ops: upcalls
 * @owner: for afr_link_owner()
 *
 * Context: process, not the handler of @id; does not wait.
 * Return: link, which now owns @id, with a reference to drop in dead(); settled() reports the
 * outcome. Or ERR_PTR(-ENOMEM): the caller still owns @id, and no upcall follows.
 */
struct afr_link *afr_link_accept(struct afr_net *an, struct rdma_cm_id *id,
				 const struct afr_wire_cm_req *req,
				 const struct afr_link_ops *ops, void *owner)
{
	struct afr_link *link = new_link(an, be64_to_cpu(req->link), ops, owner);

	if (!link)
		return ERR_PTR(-ENOMEM);
	link->cm.peer_depth = be16_to_cpu(req->depth);
	memcpy(link->peer.instance, req->instance, sizeof(link->peer.instance));
	link->peer.tclass = req->tclass;
	link->local = id->route.addr.src_addr;
	link->remote = id->route.addr.dst_addr;
	afr_link_cm_take(link, id);
	start(link, AFR_LINK_EV_ACCEPT);
	return link;
}

/**
 * afr_link_confirm() - the peer has reported over TCP that the link is up
 * @link: link, referenced
 *
 * A passive end can receive and post writes once it has accepted. Its link then comes up with the
 * last message of the handshake, the peer's first message on the link, or this report, whichever
 * comes first. On iWARP only the peer's first message on the link brings it up: there, and at an
 * active end, this function changes nothing.
 *
 * Context: process or softirq.
 * Return: true if the link is up.
 */
bool afr_link_confirm(struct afr_link *link)
{
	return READ_ONCE(link->cm.accepted) ? afr_link_queue_up(link) : afr_link_is_up(link);
}

/* Properties */

/**
 * afr_link_id() - id of a link, chosen by its active end
 * @link: link
 *
 * Context: any.
 * Return: the id, which is the same at both ends.
 */
u64 afr_link_id(const struct afr_link *link)
{
	return link->id;
}

/**
 * afr_link_active() - did this end connect the link?
 * @link: link
 *
 * Context: any.
 * Return: true if so, false if the peer did.
 */
bool afr_link_active(const struct afr_link *link)
{
	return link->active;
}

/**
 * afr_link_is_up() - is the link up?
 * @link: link
 *
 * Context: any; without link->lock the answer may be outdated.
 * Return: true if the link is up.
 */
bool afr_link_is_up(const struct afr_link *link)
{
	return READ_ONCE(link->state) == AFR_LINK_UP;
}

/**
 * afr_link_owner() - the group layer's object for a link
 * @link: link
 *
 * Context: any.
 * Return: the pointer given to afr_link_connect() or afr_link_accept().
 */
void *afr_link_owner(const struct afr_link *link)
{
	return link->owner;
}

/**
 * afr_link_users() - count the channels on a link
 * @link: link
 *
 * Context: any; without link->lock the number may be outdated.
 * Return: channels.
 */
unsigned int afr_link_users(const struct afr_link *link)
{
	return READ_ONCE(link->members.count);
}

/**
 * afr_link_was_up() - was the link ever up?
 * @link: link
 *
 * Context: the dead() upcall.
 * Return: true if it was.
 */
bool afr_link_was_up(const struct afr_link *link)
{
	return link->life.was_up;
}

/**
 * afr_link_short_lived() - does the loss of the link suggest that its path is unfit for RDMA?
 * @link: link, dead
 *
 * On such a path one end gets no acknowledgments, and the other end sees that its peer left the
 * link. If the link had no channels when it was lost, the result is false: the peer may have closed
 * it just because it was idle.
 *
 * Context: the dead() upcall.
 * Return: true if it was lost in one of these ways, soon after it came up, with little data
 * transferred.
 */
bool afr_link_short_lived(const struct afr_link *link)
{
	switch (link->reason) {
	case AFR_REASON_LINK_UNACKED:
	case AFR_REASON_LINK_SILENT:
	case AFR_REASON_LINK_DISCONNECTED:
	case AFR_REASON_LINK_PEER_RESUME:
		return link->life.was_up && link->life.in_use &&
		       time_before(jiffies, link->life.up_since + SHORT_LIFE) &&
		       link->sq.done + link->rx.bytes < SHORT_BYTES;
	default:
		return false;
	}
}

/**
 * afr_link_expire() - the last AF_RDMA socket of the link's namespace was closed
 * @link: link
 *
 * Takes the link down if it is being connected. If it is up and has no channels, starts its idle
 * time again, which is 0 now (afr_link_keepalive_idle()).
 *
 * Context: process.
 */
void afr_link_expire(struct afr_link *link)
{
	spin_lock_bh(&link->lock);
	if (!afr_netns_unused(link->an))
		;	/* a new socket was created meanwhile */
	else if (link->state == AFR_LINK_CONNECTING)
		afr_link_queue_fail(link, AFR_REASON_LINK_IDLE);
	else if (!link->members.count)
		afr_link_keepalive_idle(link);
	spin_unlock_bh(&link->lock);
}

/**
 * afr_link_write_max() - largest length of one write
 * @link: link, up
 *
 * Context: any.
 * Return: bytes.
 */
u32 afr_link_write_max(const struct afr_link *link)
{
	return link->write_max;
}

/**
 * afr_link_follows_routes() - do the packets of a link follow the kernel's routes?
 * @link: link, up
 *
 * Context: any.
 * Return: true on siw, where a link runs over a TCP connection of the kernel. False on hardware,
 * whose packets bypass the kernel, and on rxe, which looks routes up for its own net device.
 */
bool afr_link_follows_routes(const struct afr_link *link)
{
	return afr_device_ib(link->dev)->ops.driver_id == RDMA_DRIVER_SIW;
}

/**
 * afr_link_device() - device of a link
 * @link: link
 *
 * Context: any.
 * Return: the device, valid as long as the link; NULL until a queue pair is to be created.
 */
struct afr_device *afr_link_device(const struct afr_link *link)
{
	return READ_ONCE(link->dev);
}

/**
 * afr_link_info() - get what smctl shows of a link
 * @link: link, referenced
 * @info: filled in
 *
 * Context: process.
 */
void afr_link_info(struct afr_link *link, struct afr_link_info *info)
{
	struct afr_device *dev = afr_link_device(link);

	memset(info, 0, sizeof(*info));
	info->id = link->id;
	info->active = link->active;
	info->local = link->local;
	info->remote = link->remote;
	if (dev)
		strscpy(info->device, dev_name(&afr_device_ib(dev)->dev), sizeof(info->device));
	info->port_num = READ_ONCE(link->cm.port_num);
	info->qpn = READ_ONCE(link->cm.qpn);
	info->peer_qpn = READ_ONCE(link->cm.peer_qpn);
	info->mtu = READ_ONCE(link->mtu);
	info->tclass = link->peer.tclass;
	info->rx_bytes = READ_ONCE(link->rx.bytes);
	info->rx_writes = READ_ONCE(link->rx.writes);
	spin_lock_bh(&link->lock);
	info->state = link->state;
	info->reason = link->reason;
	info->users = link->members.count;
	info->credits = link->state == AFR_LINK_UP ?
			afr_link_credit_available(&link->sq.credit, 0) : 0;
	info->tx_bytes = link->sq.bytes;
	info->tx_writes = link->sq.writes;
	spin_unlock_bh(&link->lock);
}

/* Devices, module load and exit */

/* Upcall of device.c: takes down all links of a device, or those of one port (@port_num not 0). */
static void device_lost(struct afr_device *dev, u32 port_num, enum afr_reason reason)
{
	struct afr_link *link;

	spin_lock(&links_lock);
	list_for_each_entry(link, &links, entry) {
		spin_lock_bh(&link->lock);
		if (link->dev == dev && (!port_num || link->cm.port_num == port_num))
			afr_link_queue_fail(link, reason);
		spin_unlock_bh(&link->lock);
	}
	spin_unlock(&links_lock);
}

static const struct afr_device_ops device_ops = {
	.lost = device_lost,
};

/**
 * afr_link_init() - start the link layer, including device.c, which calls device_lost()
 *
 * Context: module load.
 * Return: 0 or a negative error.
 */
int afr_link_init(void)
{
	int ret;

	afr_link_wq = alloc_workqueue("afrdma_link", WQ_UNBOUND, 0);
	if (!afr_link_wq)
		return -ENOMEM;
	ret = afr_device_init(&device_ops);
	if (ret)
		destroy_workqueue(afr_link_wq);
	return ret;
}

/**
 * afr_link_exit() - wait until the last link is freed, and stop the link layer
 *
 * Context: module exit, or a module load that fails; there are no links, or afr_link_fail() was
 * called for all of them.
 */
void afr_link_exit(void)
{
	WRITE_ONCE(links_exiting, true);
	wait_event(links_freed, !atomic_read(&links_count));
	afr_device_exit();
	destroy_workqueue(afr_link_wq);
	rcu_barrier();
}
