// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Creates and destroys the queue pair of a link, and does the rdma_cm handshake.
 *
 * The rdma_cm handler runs under the handler lock of its id, one event at a time; it creates and
 * frees nothing. What creates or frees something here runs in the link worker, so that nothing is
 * created and taken down at the same time.
 */
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/sizes.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cm.h>

#include "device.h"
#include "link.h"
#include "link_cm.h"
#include "link_queue.h"
#include "netns.h"
#include "test/byzantine.h"

#define DEPTH_MIN	16
#define DEPTH_MAX	8192
#define RDMA_READS	4	/* outstanding RDMA reads, each way; this version posts none */
#define STALE_RETRIES	2
#define STALE_DELAY_MS	100
#define PORT_WAIT	(30 * HZ)	/* see may_end() */

/*
 * Completions of a link must be handled one at a time. On PREEMPT_RT, local_bh_disable() takes no
 * lock if CONFIG_PREEMPT_RT_NEEDS_BH_LOCK is off. Two tasks of one CPU can then execute softirqs at
 * the same time, and irq_poll may poll one completion queue in both. A work item never runs in two
 * tasks at the same time.
 */
#define POLL_CONTEXT \
	(IS_ENABLED(CONFIG_PREEMPT_RT) ? IB_POLL_UNBOUND_WORKQUEUE : IB_POLL_SOFTIRQ)

/* Queue pair */

/*
 * Sets link->dev to the device of cm.id, unless an earlier attempt has set it. After that, the
 * removal of the device takes the link down.
 */
static enum afr_reason set_device(struct afr_link *link)
{
	struct afr_device *dev = link->dev ?: afr_device_get(link->cm.id->device);
	struct afr_device_info info;

	if (!dev)
		return AFR_REASON_LINK_DEVICE_REMOVED;
	spin_lock_bh(&link->lock);
	link->dev = dev;
	link->cm.port_num = link->cm.id->port_num;
	spin_unlock_bh(&link->lock);
	/*
	 * A removal that walked the links before dev was set has already marked the device dead.
	 * After a retry, the address may have been resolved to another device than before, but
	 * link->pd belongs to the former one.
	 */
	if (afr_device_removing(dev) || afr_device_ib(dev) != link->cm.id->device)
		return AFR_REASON_LINK_DEVICE_REMOVED;
	afr_device_info(dev, link->an->net, &info);
	return info.reason;
}

/*
 * Returns how many receives to post, or 0 if the device allows too few. The number is a power of
 * two, so that it is a multiple of the batch in which receives are posted. The send queue has
 * slots for the same number of messages, plus the reserve. The send queue and the receive queue
 * each have room for one more request, which the drain posts. Both queues, and the completion
 * queue that they share, must be within the limits of the device (R1).
 */
static u16 queue_depth(const struct afr_link *link)
{
	const struct ib_device_attr *attrs = &link->cm.id->device->attrs;
	int most = min(attrs->max_qp_wr, attrs->max_cqe / 2) - AFR_SQ_RESERVE - 2;
	int depth = clamp(afr_netns_least(link->an, link_depth), DEPTH_MIN, DEPTH_MAX);

	most /= (int)afr_link_wr_slots(link->iwarp);
	return most < DEPTH_MIN ? 0 : rounddown_pow_of_two(min(depth, most));
}

/* Sets link->write_max to the largest message of the port, at most 1 GiB; 64 KiB if unknown. */
static void query_port(struct afr_link *link)
{
	struct ib_port_attr attr = {};

	if (ib_query_port(link->cm.id->device, link->cm.port_num, &attr))
		attr.max_msg_sz = SZ_64K;
	link->write_max = min_t(u32, attr.max_msg_sz, SZ_1G);
}

static void qp_event(struct ib_event *event, void *context)
{
	struct afr_link *link = context;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		afr_link_queue_event(link, AFR_LINK_EV_COMM_EST);
		break;
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
	case IB_EVENT_PATH_MIG_ERR:
		afr_link_queue_event(link, AFR_LINK_EV_QP);
		break;
	default:
		break;
	}
}

static int make_qp(struct afr_link *link, u16 depth)
{
	u16 sends = depth * afr_link_wr_slots(link->iwarp) + AFR_SQ_RESERVE;
	struct ib_qp_init_attr attr = {
		.event_handler	= qp_event,
		.qp_context	= link,
		.cap = {
			.max_send_wr	= sends + 1,
			.max_recv_wr	= depth + 1,
			.max_send_sge	= link->iwarp ? AFR_LINK_WR_SGES : 1,
			.max_recv_sge	= 1,
			.max_inline_data = link->iwarp ? sizeof(struct afr_wire_note) : 0,
		},
		.sq_sig_type	= IB_SIGNAL_REQ_WR,
		.qp_type	= IB_QPT_RC,
	};
	struct ib_device *ib = link->cm.id->device;
	int ret;

	AFR_CHECK(!link->qp);		/* at most one (I8) */
	if (!link->pd) {
		struct ib_pd *pd = ib_alloc_pd(ib, 0);

		if (IS_ERR(pd))
			return PTR_ERR(pd);
		link->pd = pd;
	}
	if (afr_link_queue_init(link, sends, depth))
		return -ENOMEM;
	/*
	 * Do not take a completion queue from the device's pool: the pool frees none before the
	 * device is removed.
	 */
	link->cq = ib_alloc_cq_any(ib, link, attr.cap.max_send_wr + attr.cap.max_recv_wr,
				   POLL_CONTEXT);
	if (IS_ERR(link->cq)) {
		ret = PTR_ERR(link->cq);
		link->cq = NULL;
		return ret;
	}
	attr.send_cq = link->cq;
	attr.recv_cq = link->cq;
	ret = rdma_create_qp(link->cm.id, link->pd, &attr);
	if (ret)
		return ret;
	link->qp = link->cm.id->qp;
	WRITE_ONCE(link->cm.qpn, link->qp->qp_num);
	return 0;
}

/* Create the queue pair, and post its receives before the peer may write (R8). */
static enum afr_reason open_qp(struct afr_link *link)
{
	enum afr_reason reason = set_device(link);
	u16 depth;

	if (reason)
		return reason;
	link->iwarp = rdma_protocol_iwarp(link->cm.id->device, link->cm.port_num);
	depth = queue_depth(link);
	if (!depth)
		return AFR_REASON_DEVICE_LACKS;
	query_port(link);
	link->sq.credit.depth = depth;
	if (make_qp(link, depth) || afr_link_wr_rx_fill(&link->rx.queue, link->qp))
		return AFR_REASON_NO_MEMORY;
	return AFR_REASON_NONE;
}

/**
 * afr_link_cm_drain() - fence and drain the queue pair
 * @link: link on which nothing is posted any more
 *
 * If the link ever came up, it is drained: afterwards no write of the peer lands and no request
 * completes any more (PM3). Otherwise it is not drained: the peer has no keys yet, so destroying
 * the queue pair is enough; and a drain might not end, as rxe never flushes a queue pair that it
 * could not set up for lack of memory.
 *
 * Context: link worker; waits for the device, not for the peer.
 */
void afr_link_cm_drain(struct afr_link *link)
{
	afr_link_queue_assert_worker(link);
	if (link->qp && link->life.used)
		ib_drain_qp(link->qp);
	afr_link_queue_abort_ops(link);
}

/**
 * afr_link_cm_close() - free the queue pair and its queues
 * @link: link after afr_link_cm_drain()
 *
 * The protection domain stays: memory regions may still use it, or the next connect attempt will.
 *
 * Context: link worker.
 */
void afr_link_cm_close(struct afr_link *link)
{
	afr_link_queue_assert_worker(link);
	if (link->qp)
		rdma_destroy_qp(link->cm.id);
	link->qp = NULL;
	if (link->cq)
		ib_free_cq(link->cq);
	link->cq = NULL;
	afr_link_queue_free(link);
}

/**
 * afr_link_cm_end() - destroy the rdma_cm id
 * @link: link after afr_link_cm_close()
 *
 * Context: link worker, not an rdma_cm handler (R8).
 */
void afr_link_cm_end(struct afr_link *link)
{
	afr_link_queue_assert_worker(link);
	if (link->cm.id)
		rdma_destroy_id(link->cm.id);
	link->cm.id = NULL;
}

/*
 * Should the namespace be allowed to end, and the rxe device with it, although the port is down?
 * Yes if the namespace has no AF_RDMA socket any more and contains all interfaces of the port, but
 * not until PORT_WAIT after the death of the link, since the port may come up again.
 */
static bool may_end(const struct afr_link *link)
{
	return link->state == AFR_LINK_DEAD && afr_netns_unused(link->an) &&
	       time_after(jiffies, link->life.dead_since + PORT_WAIT) &&
	       afr_device_within(link->dev, link->cm.port_num, link->an->net);
}

/**
 * afr_link_cm_may_send() - may rdma_cm send messages?
 * @link: link
 *
 * Context: link worker.
 * Return: false on rxe while the device port is not active. But true if waiting for it is useless
 * or harmful: the link has no device, or the device is being removed, or the port cannot be
 * queried, or the link's id pins a namespace that would end, and the device with it.
 */
bool afr_link_cm_may_send(struct afr_link *link)
{
	struct ib_port_attr attr;

	afr_link_queue_assert_worker(link);
	return !link->dev || afr_device_removing(link->dev) ||
	       afr_device_ib(link->dev)->ops.driver_id != RDMA_DRIVER_RXE ||
	       ib_query_port(afr_device_ib(link->dev), link->cm.port_num, &attr) ||
	       attr.state == IB_PORT_ACTIVE || may_end(link);
}

/*
 * Active, RoCE: limits the path MTU so that packets with their headers fit into peer.mtu. That is
 * the result of afr_conn_info_path_mtu() for a TCP connection to the peer, or less after a
 * short-lived link; if it is unknown (0), no limit is set. rdma_cm uses the MTU of the interface,
 * but the MTU of the path may be smaller; RoCE cannot detect this, and the queue pair would fail.
 * The passive end takes the path MTU from the request.
 */
static void limit_mtu(struct afr_link *link)
{
	struct sa_path_rec *path = link->cm.id->route.path_rec;

	if (link->peer.mtu && path && rdma_protocol_roce(link->cm.id->device, link->cm.port_num))
		path->mtu = min_t(u8, path->mtu, iboe_get_mtu(link->peer.mtu) ?: IB_MTU_256);
}

/* Handshake */

static struct rdma_conn_param conn_param(const struct afr_link *link, const void *data, u8 len)
{
	const struct ib_device_attr *attrs = &link->cm.id->device->attrs;

	return (struct rdma_conn_param) {
		.private_data		= data,
		.private_data_len	= len,
		.responder_resources	= min(RDMA_READS, attrs->max_qp_rd_atom),
		.initiator_depth	= min(RDMA_READS, attrs->max_qp_init_rd_atom),
		/* 7 would mean forever: for rnr_retry_count by the standard, in rxe for both */
		.retry_count		= AFR_CM_RETRIES,
		.rnr_retry_count	= AFR_CM_RETRIES,
	};
}

static bool rep_valid(const struct afr_link *link, const struct afr_wire_cm_rep *rep, u8 len)
{
	return rep && len >= sizeof(*rep) && be32_to_cpu(rep->magic) == AFR_CM_MAGIC &&
	       be64_to_cpu(rep->link) == link->id && !rep->reason &&
	       !memcmp(rep->instance, link->peer.instance, sizeof(rep->instance));
}

/* Active: the peer has accepted. Passive: the handshake is over. */
static void established(struct afr_link *link, const struct rdma_conn_param *param)
{
	const struct afr_wire_cm_rep *rep = param->private_data;
	bool late;
	int ret;

	if (!link->active) {
		if (!link->iwarp)
			afr_link_queue_up(link);
		return;
	}
	if (!rep_valid(link, rep, param->private_data_len) ||
	    param->rnr_retry_count > AFR_CM_RETRIES) {
		afr_link_fail(link, AFR_REASON_CONNECT_FAILED);
		return;
	}
	spin_lock_bh(&link->lock);
	late = link->retrying;
	ret = late ? 0 :
		afr_link_credit_init(&link->sq.credit, link->sq.credit.depth,
				     be16_to_cpu(rep->depth));
	if (!ret && link->iwarp)
		afr_link_queue_probe(link);	/* the passive end may not send first (RFC 5044) */
	spin_unlock_bh(&link->lock);
	if (ret)
		afr_link_fail(link, AFR_REASON_CONNECT_FAILED);
	else if (!link->iwarp && !late)
		afr_link_queue_up(link);
}

/*
 * The peer has rejected this end's connect request or, at a passive end, the reply. If a stale
 * connection was the cause, an active end starts again, up to STALE_RETRIES times. In all other
 * cases the link is taken down.
 */
static void rejected(struct afr_link *link, struct rdma_cm_event *event)
{
	const struct afr_wire_cm_rep *rep = event->param.conn.private_data;
	u32 reason = 0;

	/* a passive end has nothing to repeat, whatever its peer answers */
	if (link->active && event->status == IB_CM_REJ_STALE_CONN) {
		afr_link_queue_event(link, AFR_LINK_EV_STALE);
		return;
	}
	switch (event->status) {
	case IB_CM_REJ_INVALID_SERVICE_ID:
		reason = AFR_REASON_PEER_NO_SERVICE;
		break;
	default:
		/* Do not require CONSUMER_DEFINED: siw reports a reason with another status. */
		if (rep && event->param.conn.private_data_len >= sizeof(*rep) &&
		    be32_to_cpu(rep->magic) == AFR_CM_MAGIC)
			reason = be32_to_cpu(rep->reason);
		if (reason)
			reason = afr_reason_of_peer(reason);
	}
	afr_link_fail(link, reason ?: AFR_REASON_CONNECT_FAILED);
}

static void not_reached(struct afr_link *link)
{
	bool connecting = READ_ONCE(link->state) == AFR_LINK_CONNECTING;

	/* UNREACHABLE also comes for a connected id, when the neighbour's address changes. */
	afr_link_fail(link, connecting ? AFR_REASON_CONNECT_TIMEOUT : AFR_REASON_LINK_ADDR_CHANGE);
}

/*
 * Active, RoCE: requests the traffic class of the connections for the packets that both ends send
 * on the link. If the class is 0, rdma_cm uses its default for the device. The class is not set on
 * InfiniBand, where rdma_cm would take it for a QoS class (IPv4) or ignore it (IPv6), nor on iWARP,
 * where the packets are those of a TCP connection of the driver.
 */
static void set_tclass(struct afr_link *link, struct rdma_cm_id *id)
{
	if (link->peer.tclass && rdma_protocol_roce(id->device, id->port_num))
		rdma_set_service_type(id, link->peer.tclass);
}

/* Called under the handler lock of @id. Always returns 0: anything else would destroy @id. */
static int cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct afr_link *link = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		set_tclass(link, id);
		if (rdma_resolve_route(id, READ_ONCE(link->an->set.attach_timeout_ms)))
			afr_link_fail(link, AFR_REASON_NO_ROUTE);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		afr_link_queue_event(link, AFR_LINK_EV_ROUTE);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		afr_link_fail(link, AFR_REASON_NO_ROUTE);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(link, &event->param.conn);
		break;
	case RDMA_CM_EVENT_REJECTED:
		rejected(link, event);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		afr_link_fail(link, AFR_REASON_CONNECT_FAILED);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		not_reached(link);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		afr_link_fail(link, AFR_REASON_LINK_DISCONNECTED);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		afr_link_fail(link, AFR_REASON_LINK_DEVICE_REMOVED);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		afr_link_fail(link, AFR_REASON_LINK_ADDR_CHANGE);
		break;
	default:
		break;
	}
	return 0;
}

/**
 * afr_link_cm_resolve() - active: create an id, and resolve address and route
 * @link: link, connecting
 *
 * AFR_LINK_EV_ROUTE follows when the route is resolved.
 *
 * Context: link worker.
 */
void afr_link_cm_resolve(struct afr_link *link)
{
	unsigned int ms = READ_ONCE(link->an->set.attach_timeout_ms);
	struct rdma_cm_id *id;

	afr_link_queue_assert_worker(link);
	AFR_CHECK(!link->cm.id);	/* at most one (I8) */
	id = rdma_create_id(link->an->net, cm_event, link, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		afr_link_fail(link, AFR_REASON_NO_MEMORY);
		return;
	}
	link->cm.id = id;
	if (rdma_resolve_addr(id, (struct sockaddr *)&link->local,
			      (struct sockaddr *)&link->remote, ms))
		afr_link_fail(link, AFR_REASON_NO_ROUTE);
}

/**
 * afr_link_cm_connect() - active: create the queue pair, and send the connect request
 * @link: link, connecting, with its route resolved
 *
 * Context: link worker.
 */
void afr_link_cm_connect(struct afr_link *link)
{
	enum afr_reason reason = open_qp(link);
	struct afr_wire_cm_req req = {
		.magic		= cpu_to_be32(AFR_CM_MAGIC),
		.version	= AFR_WIRE_VERSION,
		.tclass		= link->peer.tclass,
		.depth		= cpu_to_be16(link->sq.credit.depth),
		.link		= cpu_to_be64(link->id),
	};
	struct rdma_conn_param param;
	int ret;

	afr_link_queue_assert_worker(link);
	if (reason) {
		afr_link_fail(link, reason);
		return;
	}
	memcpy(req.instance, link->an->instance, sizeof(req.instance));
	memcpy(req.secret, link->peer.secret, sizeof(req.secret));
	afr_byzantine_cm(&req, sizeof(req));
	limit_mtu(link);
	param = conn_param(link, &req, sizeof(req));
	ret = rdma_connect(link->cm.id, &param);
	if (ret)
		afr_link_fail(link, ret == -ECONNREFUSED ? AFR_REASON_PEER_NO_SERVICE :
							   AFR_REASON_CONNECT_FAILED);
}

/*
 * Destroys the id and the queue pair of a connect attempt. Does nothing and returns false if the
 * link has come up or is being taken down.
 */
static bool destroy_attempt(struct afr_link *link)
{
	bool connecting;

	spin_lock_bh(&link->lock);
	connecting = link->state == AFR_LINK_CONNECTING;
	link->retrying = connecting;
	spin_unlock_bh(&link->lock);
	if (!connecting)
		return false;
	afr_link_cm_drain(link);
	afr_link_cm_close(link);
	afr_link_cm_end(link);
	clear_bit(AFR_LINK_EV_RESOLVE, &link->events);
	clear_bit(AFR_LINK_EV_ROUTE, &link->events);
	clear_bit(AFR_LINK_EV_STALE, &link->events);
	WRITE_ONCE(link->retrying, false);
	return true;
}

/**
 * afr_link_cm_retry() - active: start again with another id and queue pair
 * @link: link, connecting
 *
 * afr_link_cm_stale() calls this after a rejection. timeout() of link.c calls it at intervals of
 * TRY (defined there), until the link is up or the connect timeout expires, because a message of
 * the handshake may be lost, and rdma_cm does not repeat a request soon.
 *
 * Context: link worker.
 */
void afr_link_cm_retry(struct afr_link *link)
{
	afr_link_queue_assert_worker(link);
	if (destroy_attempt(link))
		afr_link_cm_resolve(link);
}

/**
 * afr_link_cm_stale() - active: start again after a rejection because of a stale connection
 * @link: link, connecting
 *
 * The peer's host still remembers an earlier queue pair of this host with the same number, for
 * example from before this host rebooted (R7).
 *
 * Context: link worker; sleeps for STALE_DELAY_MS.
 */
void afr_link_cm_stale(struct afr_link *link)
{
	afr_link_queue_assert_worker(link);
	if (link->cm.retries++ >= STALE_RETRIES) {
		afr_link_fail(link, AFR_REASON_CONNECT_FAILED);
		return;
	}
	msleep(STALE_DELAY_MS);
	afr_link_cm_retry(link);
}

/**
 * afr_link_cm_reject() - reject a connect request
 * @id: rdma_cm id of the request, which is not destroyed here
 * @reason: sent in the private data
 *
 * Context: process.
 */
void afr_link_cm_reject(struct rdma_cm_id *id, enum afr_reason reason)
{
	struct afr_wire_cm_rep rep = {
		.magic	= cpu_to_be32(AFR_CM_MAGIC),
		.reason	= cpu_to_be32(reason),
	};

	rdma_reject(id, &rep, sizeof(rep), IB_CM_REJ_CONSUMER_DEFINED);
}

/**
 * afr_link_cm_accept() - passive: create the queue pair and accept
 * @link: link, connecting
 *
 * Everything that the peer may use is set up before rdma_accept() (R8).
 *
 * Context: link worker.
 */
void afr_link_cm_accept(struct afr_link *link)
{
	enum afr_reason reason = open_qp(link);
	struct afr_wire_cm_rep rep = {
		.magic	= cpu_to_be32(AFR_CM_MAGIC),
		.depth	= cpu_to_be16(link->sq.credit.depth),
		.link	= cpu_to_be64(link->id),
	};
	struct rdma_conn_param param;
	int ret;

	afr_link_queue_assert_worker(link);
	if (!reason && afr_link_credit_init(&link->sq.credit, link->sq.credit.depth,
					    link->cm.peer_depth))
		reason = AFR_REASON_LINK_PROTOCOL;
	if (reason) {
		afr_link_cm_reject(link->cm.id, reason);
		afr_link_fail(link, reason);
		return;
	}
	memcpy(rep.instance, link->an->instance, sizeof(rep.instance));
	if (afr_byzantine_cm(&rep, sizeof(rep)))
		return;
	param = conn_param(link, &rep, sizeof(rep));
	rdma_lock_handler(link->cm.id);
	ret = rdma_accept(link->cm.id, &param);
	rdma_unlock_handler(link->cm.id);
	if (ret)
		afr_link_fail(link, AFR_REASON_CONNECT_FAILED);
	else
		WRITE_ONCE(link->cm.accepted, !link->iwarp);
}

/**
 * afr_link_cm_take() - passive: make the link own the id of a connect request
 * @link: new link
 * @id: rdma_cm id
 *
 * Context: process, not the handler of @id, before the link worker is queued for the first time.
 */
void afr_link_cm_take(struct afr_link *link, struct rdma_cm_id *id)
{
	link->cm.id = id;
	rdma_lock_handler(id);
	id->context = link;
	id->event_handler = cm_event;
	rdma_unlock_handler(id);
}
