// SPDX-License-Identifier: GPL-2.0
/*
 * Ports: how a connection uses a link.
 *
 * link_io.c says why no wake-up is lost and why leaving waits for a grace period.
 */
#include <linux/rcupdate.h>

#include "imm.h"
#include "link_io.h"
#include "netns.h"
#include "stats.h"

static int add_member(struct afr_port *port)
{
	struct afr_link *link = port->link;
	unsigned int most = READ_ONCE(link->an->set.conns_per_link);
	int ret = -ENOTCONN;

	spin_lock_bh(&link->lock);
	if (link->state == AFR_LINK_UP && link->users >= most) {
		ret = -ENOSPC;
		afr_stat_inc(link->an->net, AFR_STAT_OVER_LIMIT);
	} else if (link->state == AFR_LINK_UP) {
		port->serial = ++link->serial;
		list_add_tail(&port->member, &link->ports);
		if (!link->users++)
			afr_link_watch(link);
		ret = 0;
	}
	spin_unlock_bh(&link->lock);
	return ret;
}

/**
 * afr_port_join() - use a link
 * @port: zeroed, or left before
 * @link: the link, referenced by the caller
 * @ops: upcalls
 *
 * Context: Process.
 * Return: 0 (port->slot is set, upcalls may come), -ENOTCONN, -ENOSPC or -ENOMEM.
 */
int afr_port_join(struct afr_port *port, struct afr_link *link, const struct afr_port_ops *ops)
{
	u32 slot;
	int ret;

	port->ops = ops;
	port->link = link;
	port->ended = false;
	port->forsaken = false;
	INIT_LIST_HEAD(&port->waiting);
	INIT_LIST_HEAD(&port->pacing);
	INIT_LIST_HEAD(&port->asking);
	INIT_LIST_HEAD(&port->member);
	/* Reserved now, found by completions when the port is whole. */
	ret = xa_alloc(&link->slots, &slot, NULL, XA_LIMIT(0, AFR_SLOT_MAX), GFP_KERNEL);
	if (ret) {
		port->link = NULL;
		return ret == -EBUSY ? -ENOSPC : ret;
	}
	port->slot = slot;
	port->joined = true;
	refcount_inc(&link->refs);
	ret = add_member(port);
	if (ret) {
		port->joined = false;
		port->link = NULL;
		xa_erase(&link->slots, slot);
		afr_link_put(link);
		return ret;
	}
	AFR_CHECK(!xa_load(&link->slots, slot));	/* not found before it is whole (I6) */
	xa_store(&link->slots, slot, port, GFP_KERNEL);
	return 0;
}

static bool down_runs(struct afr_link *link, const struct afr_port *port)
{
	bool runs;

	spin_lock_bh(&link->lock);
	runs = link->downing == port && link->downer != current;
	spin_unlock_bh(&link->lock);
	return runs;
}

/**
 * afr_port_leave() - give slot and link back
 * @port: the port
 *
 * See link.h for when that is allowed.
 *
 * Context: Process. Sleeps for a grace period.
 */
void afr_port_leave(struct afr_port *port)
{
	struct afr_link *link = port->link;

	if (!port->joined)
		return;
	spin_lock_bh(&link->lock);
	port->joined = false;
	list_del_init(&port->member);
	if (!list_empty(&port->waiting)) {
		list_del_init(&port->waiting);
		link->waiting--;
	}
	list_del_init(&port->pacing);
	afr_pace_forget(port);
	AFR_CHECK(link->users);		/* one leave per join (I8) */
	if (!--link->users)
		afr_link_watch_idle(link);
	spin_unlock_bh(&link->lock);
	if (port->forsaken)	/* in the place of another entry: no memory is needed */
		xa_store(&link->slots, port->slot, xa_mk_value(0), GFP_KERNEL);
	else
		xa_erase(&link->slots, port->slot);
	synchronize_rcu();
	wait_event(link->wait, !down_runs(link, port));
	port->link = NULL;
	afr_link_put(link);
}

/*
 * May @port post a message? Queues it if it has to wait: behind others, or, for its last
 * message, behind others that leave, so that streams of any number keep nobody's memory.
 */
static int admit(struct afr_port *port, bool leaves)
{
	struct afr_link *link = port->link;
	unsigned int room = afr_link_io_room(link);

	if (link->state != AFR_LINK_UP)
		return -ENOTCONN;
	if (!list_empty(&port->waiting)) {
		if (leaves)
			list_move_tail(&port->waiting, &link->leavers);
		return -EAGAIN;
	}
	if (room && link->turn == port) {
		link->turn = NULL;
		return 0;
	}
	if (room > link->waiting)
		return 0;
	list_add_tail(&port->waiting, leaves ? &link->leavers : &link->waiters);
	link->waiting++;
	afr_stat_inc(link->an->net, AFR_STAT_LINK_NO_CREDIT);
	return -EAGAIN;
}

static struct afr_link_mark mark_for(const struct afr_port *port,
				     void (*tell)(struct afr_port *port))
{
	return (struct afr_link_mark){
		.slot = port->slot, .serial = port->serial, .tell = tell,
	};
}

/**
 * afr_port_write() - post one write to the peer's slot
 * @port: the port, joined, peer_slot set
 * @w: what
 *
 * Context: Process or softirq, under the caller's own tx lock.
 * Return: 0, -EAGAIN (kick() will come) or -ENOTCONN (down() will come).
 */
int afr_port_write(struct afr_port *port, const struct afr_write *w)
{
	struct ib_sge sge = { .addr = w->local, .length = w->len, .lkey = w->lkey };
	struct afr_link_mark mark = mark_for(port, port->ops->written);
	struct afr_link *link = port->link;
	struct ib_rdma_wr wr = {
		.wr.sg_list	= &sge,
		.wr.num_sge	= w->len ? 1 : 0,
		.remote_addr	= w->remote,
		.rkey		= w->rkey,
	};
	int ret;

	if (!w->tell)
		mark.tell = NULL;
	spin_lock_bh(&link->lock);
	if (w->prompt)
		afr_pace_prompt(port);
	ret = w->bulk ? afr_pace_admit(port, w->len, &mark) : 0;
	if (!ret)
		ret = admit(port, false);
	if (!ret)
		ret = afr_link_io_post(link, &wr, afr_imm_pack(port->peer_slot, w->cursor),
				       mark.tell || mark.bulk ? &mark : NULL);
	if (!ret) {
		link->tx_bytes += w->len;
		link->tx_writes++;
	}
	spin_unlock_bh(&link->lock);
	return ret;
}

/**
 * afr_port_detach() - post the last message for the peer's slot
 * @port: the port; nothing is posted for it afterwards
 *
 * Context: Process or softirq, under the caller's own tx lock.
 * Return: 0, -EAGAIN (kick() will come) or -ENOTCONN (down() will come).
 */
int afr_port_detach(struct afr_port *port)
{
	struct afr_link_mark mark = mark_for(port, port->ops->detached);
	struct afr_link *link = port->link;
	struct ib_rdma_wr wr = {};
	int ret;

	spin_lock_bh(&link->lock);
	ret = admit(port, true);
	if (!ret)
		ret = afr_link_io_post(link, &wr, afr_imm_pack(AFR_SLOT_DETACH, port->peer_slot),
				       &mark);
	spin_unlock_bh(&link->lock);
	return ret;
}
