// SPDX-License-Identifier: GPL-2.0
/*
 * Links: life.
 *
 *	connecting --ESTABLISHED--> up --fail--> dying --fenced, drained--> dead
 *	     `--------------------fail------------^
 *
 * One work item per link does everything that sleeps, one step after the other:
 * make the queue pair, connect, tell the group, take down. Handlers of rdma_cm,
 * completions, timers and device events only mark what happened and queue it; so
 * rdma_destroy_id() never runs in its own handler (R8), and a queue pair is drained
 * when nothing posts any more (R9).
 *
 * Locks, outer to inner: group lock (above us) > cm handler > links_lock >
 * link->lock. None is held across a wait for the peer, nor while a group or a port
 * is called up.
 *
 * Life time: the group holds a reference from creation to the dead() upcall, the
 * id from there to its end, every port and memory region holds one, the work holds
 * one while queued. The last one frees protection domain and device reference from
 * a work.
 */
#include <linux/in6.h>
#include <linux/rcupdate.h>
#include <linux/random.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "dev.h"
#include "link.h"
#include "link_cm.h"
#include "link_io.h"
#include "netns.h"
#include "stats.h"
#include "trace.h"

#define PORT_POLL	(HZ / 5)
#define SHORT_LIFE	(15 * HZ)	/* the device's retries take four seconds of it ... */
#define SHORT_BYTES	SZ_1M		/* ... and where large packets are lost, small ones go */
#define TRY		(3 * HZ / 2)	/* rdma_cm itself would repeat a request after 4 s */

static LIST_HEAD(links);
static DEFINE_SPINLOCK(links_lock);
static atomic_t links_count = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(links_gone);
static bool links_closing;

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
	xa_destroy(&link->slots);
	trace_afrdma_link_destroy(link->id);
	kfree_rcu(link, rcu);
	if (atomic_dec_and_test(&links_count))
		wake_up_all(&links_gone);
}

static void link_work(struct work_struct *work);

static void link_timer(struct timer_list *timer)
{
	struct afr_link *link = from_timer(link, timer, timer);

	afr_link_io_event(link, AFR_LINK_EV_TIMER);
}

static struct afr_link *new_link(struct afr_net *an, u64 id, const struct afr_link_ops *ops,
				 void *owner)
{
	struct afr_link *link = kzalloc(sizeof(*link), GFP_KERNEL);

	if (!link)
		return NULL;
	link->id = id;
	link->an = an;
	link->ops = ops;
	link->owner = owner;
	refcount_set(&link->refs, 1);	/* the group's */
	INIT_WORK(&link->work, link_work);
	INIT_WORK(&link->free_work, free_link);
	timer_setup(&link->timer, link_timer, 0);
	timer_setup(&link->tail, afr_link_watch_tail, 0);
	init_waitqueue_head(&link->wait);
	spin_lock_init(&link->lock);
	INIT_LIST_HEAD(&link->ports);
	INIT_LIST_HEAD(&link->waiters);
	INIT_LIST_HEAD(&link->leavers);
	afr_pace_init(link);
	xa_init_flags(&link->slots, XA_FLAGS_ALLOC);

	atomic_inc(&links_count);
	spin_lock(&links_lock);
	list_add_tail(&link->entry, &links);
	spin_unlock(&links_lock);
	trace_afrdma_link_create(id);
	return link;
}

/* Work */

static void tell_up(struct afr_link *link)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};	/* iWARP has no number of the peer's */

	if (link->settled)
		return;
	link->settled = true;
	link->was_up = true;
	link->up_since = jiffies;
	spin_lock_bh(&link->lock);
	if (!link->users)
		afr_link_watch_idle(link);
	spin_unlock_bh(&link->lock);
	if (!ib_query_qp(link->qp, &attr, IB_QP_DEST_QPN | IB_QP_PATH_MTU, &init)) {
		WRITE_ONCE(link->peer_qpn, attr.dest_qp_num);
		WRITE_ONCE(link->mtu, max(ib_mtu_enum_to_int(attr.path_mtu), 0));
	}
	afr_stat_inc(link->an->net, AFR_STAT_LINK_CREATED);
	trace_afrdma_link_up(link->id);
	link->ops->settled(link, AFR_REASON_NONE);
}

static void tell_failed(struct afr_link *link)
{
	if (link->settled)
		return;
	link->settled = true;
	afr_stat_inc(link->an->net, AFR_STAT_LINK_FAILED);
	link->ops->settled(link, link->reason);
}

static void connect_timer(struct afr_link *link)
{
	unsigned long next = link->connect_end;

	if (link->active && time_before(jiffies + TRY, next))
		next = jiffies + TRY;
	mod_timer(&link->timer, next);
}

/* The attach timeout, the watch over a link in use, or the end of idleness. */
static void timeout(struct afr_link *link)
{
	bool again = false;

	spin_lock_bh(&link->lock);
	if (link->state == AFR_LINK_CONNECTING && time_before(jiffies, link->connect_end))
		again = true;
	else if (link->state == AFR_LINK_CONNECTING)
		afr_link_io_fail(link, AFR_REASON_CONNECT_TIMEOUT);
	else if (link->state == AFR_LINK_UP && link->users)
		afr_link_watch_look(link);
	else if (link->was_up && !time_before(jiffies, link->idle_end))
		afr_link_io_fail(link, AFR_REASON_LINK_IDLE);
	spin_unlock_bh(&link->lock);
	if (again) {
		connect_timer(link);
		afr_link_cm_retry(link);
	}
}

/* Was the link lost, not given up? */
static bool lost(const struct afr_link *link)
{
	return link->was_up && link->reason != AFR_REASON_LINK_IDLE &&
	       link->reason != AFR_REASON_LINK_SHUTDOWN &&
	       link->reason != AFR_REASON_LINK_OPERATOR;
}

/*
 * The id of a dead link ends with a message to the peer. While the port is down
 * that cannot be sent, and rxe loses the queue pair of its connection manager over
 * it for good. So the id waits for the port; nothing else waits for the id.
 */
static void end_id(struct afr_link *link)
{
	if (link->cm_id && !READ_ONCE(links_closing) && !afr_link_cm_may_send(link)) {
		mod_timer(&link->timer, jiffies + PORT_POLL);
		return;
	}
	del_timer_sync(&link->timer);
	afr_link_cm_end(link);
	afr_link_put(link);
}

static struct afr_port *next_port(struct afr_link *link)
{
	struct afr_port *port;

	spin_lock_bh(&link->lock);
	do {
		port = list_first_entry_or_null(&link->ports, struct afr_port, member);
		if (port)
			list_del_init(&port->member);
	} while (port && !port->ops->get(port));
	link->downing = port;
	link->downer = port ? current : NULL;
	spin_unlock_bh(&link->lock);
	wake_up_all(&link->wait);
	return port;
}

/* Tell every port that the link, which is drained, is gone. */
static void down_ports(struct afr_link *link)
{
	const struct afr_port_ops *ops;
	struct afr_port *port;

	AFR_CHECK(link->state == AFR_LINK_DEAD);	/* nothing lands any more (I9) */
	while ((port = next_port(link))) {
		ops = port->ops;
		ops->down(port, link->reason);
		ops->put(port);
	}
}

static void take_down(struct afr_link *link)
{
	AFR_CHECK(current_work() == &link->work);	/* never waits for itself (I15) */
	link->in_use = READ_ONCE(link->users);
	del_timer_sync(&link->timer);
	del_timer_sync(&link->tail);
	tell_failed(link);
	if (lost(link))
		afr_stat_inc(link->an->net, AFR_STAT_LINK_DIED);
	if (link->was_up && afr_link_cm_may_send(link))
		rdma_disconnect(link->cm_id);
	afr_link_cm_drain(link);
	trace_afrdma_link_down(link->id, link->reason);
	spin_lock_bh(&link->lock);
	link->state = AFR_LINK_DEAD;
	spin_unlock_bh(&link->lock);
	down_ports(link);
	afr_link_cm_close(link);
	afr_link_get(link);	/* the id's */
	link->ops->dead(link);
	end_id(link);
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
	if (link->cm_id && READ_ONCE(link->state) == AFR_LINK_DEAD)
		end_id(link);
	if (happened(link, AFR_LINK_EV_RESOLVE) && connecting(link))
		afr_link_cm_resolve(link);
	if (happened(link, AFR_LINK_EV_STALE) && connecting(link))
		afr_link_cm_stale(link);
	if (happened(link, AFR_LINK_EV_ROUTE) && connecting(link))
		afr_link_cm_connect(link);
	if (happened(link, AFR_LINK_EV_ACCEPT) && connecting(link))
		afr_link_cm_accept(link);
	if (happened(link, AFR_LINK_EV_COMM_EST) && link->cm_id)
		rdma_notify(link->cm_id, IB_EVENT_COMM_EST);
	if (happened(link, AFR_LINK_EV_UP))
		tell_up(link);
	if (READ_ONCE(link->state) == AFR_LINK_DYING)
		take_down(link);
	afr_link_put(link);
}

static void copy_address(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memcpy(to, from, from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						       sizeof(struct sockaddr_in));
}

static void start(struct afr_link *link, enum afr_link_event event)
{
	link->connect_end = jiffies + msecs_to_jiffies(READ_ONCE(link->an->set.attach_timeout_ms));
	connect_timer(link);
	afr_link_io_event(link, event);
}

/**
 * afr_link_connect() - start connecting a link
 * @an: our namespace
 * @local: our address, AF_INET or AF_INET6, port 0
 * @remote: the peer's address and service port
 * @peer: what the peer said in HELLO
 * @ops: upcalls
 * @owner: for afr_link_owner()
 *
 * Context: Process. Waits for nothing.
 * Return: the link, with a reference that dead() gives back; or ERR_PTR(-ENOMEM),
 * then no upcall comes.
 */
struct afr_link *afr_link_connect(struct afr_net *an, const struct sockaddr *local,
				  const struct sockaddr *remote,
				  const struct afr_link_peer *peer,
				  const struct afr_link_ops *ops, void *owner)
{
	/* ATTACH names it: a number that only the two hosts can know; JSON takes 53 bits */
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
 * afr_link_accept() - let a peer connect a link to us
 * @an: our namespace
 * @id: the id of the request, whose handler is not running
 * @req: its private data, checked
 * @ops: upcalls
 * @owner: for afr_link_owner()
 *
 * Context: Process. Waits for nothing.
 * Return: the link, with a reference that dead() gives back, and @id is the
 * link's; or ERR_PTR(-ENOMEM), then @id is still the caller's and no upcall comes.
 */
struct afr_link *afr_link_accept(struct afr_net *an, struct rdma_cm_id *id,
				 const struct afr_wire_cm_req *req,
				 const struct afr_link_ops *ops, void *owner)
{
	struct afr_link *link = new_link(an, be64_to_cpu(req->link), ops, owner);

	if (!link)
		return ERR_PTR(-ENOMEM);
	link->peer_depth = be16_to_cpu(req->depth);
	memcpy(link->peer.instance, req->instance, sizeof(link->peer.instance));
	link->local = id->route.addr.src_addr;
	link->remote = id->route.addr.dst_addr;
	afr_link_cm_take(link, id);
	start(link, AFR_LINK_EV_ACCEPT);
	return link;
}

/**
 * afr_link_confirm() - the peer says by TCP that the link is up
 * @link: the link, referenced
 *
 * The passive end is ready for writes since it accepted; all it waits for is the
 * last message of the handshake, which the peer's word replaces.
 *
 * Context: Process or softirq.
 * Return: true if the link is up.
 */
bool afr_link_confirm(struct afr_link *link)
{
	return READ_ONCE(link->accepted) ? afr_link_io_up(link) : afr_link_is_up(link);
}

/* Facts */

/**
 * afr_link_id() - the name of a link, unique among those its active end connected
 * @link: the link
 *
 * Return: the id, the same at both ends.
 */
u64 afr_link_id(const struct afr_link *link)
{
	return link->id;
}

/**
 * afr_link_active() - did we connect it
 * @link: the link
 *
 * Return: true if so, false if the peer did.
 */
bool afr_link_active(const struct afr_link *link)
{
	return link->active;
}

/**
 * afr_link_is_up() - may ports join
 * @link: the link
 *
 * Return: the state as it was a moment ago.
 */
bool afr_link_is_up(const struct afr_link *link)
{
	return READ_ONCE(link->state) == AFR_LINK_UP;
}

/**
 * afr_link_owner() - what the creator gave
 * @link: the link
 *
 * Return: the pointer given to afr_link_connect() or afr_link_accept().
 */
void *afr_link_owner(const struct afr_link *link)
{
	return link->owner;
}

/**
 * afr_link_users() - ports on the link
 * @link: the link
 *
 * Return: their number a moment ago.
 */
unsigned int afr_link_users(const struct afr_link *link)
{
	return READ_ONCE(link->users);
}

/**
 * afr_link_was_up() - did it come up
 * @link: the link
 *
 * Return: true if it did, whatever became of it.
 */
bool afr_link_was_up(const struct afr_link *link)
{
	return link->was_up;
}

/**
 * afr_link_short_lived() - is it likely that the path does not carry RDMA
 * @link: the link, dead
 *
 * One end sees that nothing is acknowledged, and the other one that it was left, with its users:
 * an idle link may be the peer's to take down.
 *
 * Context: Process.
 * Return: true if it was lost like that, soon after it had come up, and with little that went
 * through.
 */
bool afr_link_short_lived(const struct afr_link *link)
{
	switch (link->reason) {
	case AFR_REASON_LINK_UNACKED:
	case AFR_REASON_LINK_SILENT:
	case AFR_REASON_LINK_DISCONNECTED:
	case AFR_REASON_LINK_PEER_RESUME:
		return link->was_up && link->in_use &&
		       time_before(jiffies, link->up_since + SHORT_LIFE) &&
		       link->tx_done + link->rx_bytes < SHORT_BYTES;
	default:
		return false;
	}
}

/**
 * afr_link_write_max() - largest length of one write
 * @link: the link, up
 *
 * Return: bytes.
 */
u32 afr_link_write_max(const struct afr_link *link)
{
	return link->write_max;
}

/**
 * afr_link_iwarp() - does it go by iWARP
 * @link: the link, up
 *
 * Return: true if so, and then by the routes of the kernel.
 */
bool afr_link_iwarp(const struct afr_link *link)
{
	return link->iwarp;
}

/**
 * afr_link_device() - the device of a link
 * @link: the link
 *
 * Return: the device, valid as long as the link; NULL until the route is known.
 */
struct afr_device *afr_link_device(const struct afr_link *link)
{
	return READ_ONCE(link->dev);
}

/**
 * afr_link_info() - facts for people
 * @link: the link, referenced
 * @info: out
 *
 * Context: Process.
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
	info->port_num = READ_ONCE(link->port_num);
	info->qpn = READ_ONCE(link->qpn);
	info->peer_qpn = READ_ONCE(link->peer_qpn);
	info->mtu = READ_ONCE(link->mtu);
	info->rx_bytes = READ_ONCE(link->rx_bytes);
	info->rx_writes = READ_ONCE(link->rx_writes);
	spin_lock_bh(&link->lock);
	info->state = link->state;
	info->reason = link->reason;
	info->users = link->users;
	info->credits = link->state == AFR_LINK_UP ? afr_credit_available(&link->credit, 0) : 0;
	info->tx_bytes = link->tx_bytes;
	info->tx_writes = link->tx_writes;
	spin_unlock_bh(&link->lock);
}

/* Devices, start and end */

static void device_lost(struct afr_device *dev, u32 port_num, enum afr_reason reason)
{
	struct afr_link *link;

	spin_lock(&links_lock);
	list_for_each_entry(link, &links, entry) {
		spin_lock_bh(&link->lock);
		if (link->dev == dev && (!port_num || link->port_num == port_num))
			afr_link_io_fail(link, reason);
		spin_unlock_bh(&link->lock);
	}
	spin_unlock(&links_lock);
}

static const struct afr_device_ops device_ops = {
	.lost = device_lost,
};

/**
 * afr_link_init() - start the link layer, devices included
 *
 * Context: Module load.
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
 * afr_link_exit() - wait for the last link, and stop
 *
 * Context: Module exit; all links were failed.
 */
void afr_link_exit(void)
{
	WRITE_ONCE(links_closing, true);
	wait_event(links_gone, !atomic_read(&links_count));
	afr_device_exit();
	destroy_workqueue(afr_link_wq);
	rcu_barrier();
}
