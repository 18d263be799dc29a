// SPDX-License-Identifier: GPL-2.0
/*
 * Links: the queue pair, and the handshake by rdma_cm.
 *
 * Handlers of rdma_cm run under the lock of their id, one at a time; they only
 * mark what happened. Everything else here runs in the work of the link, so that
 * nothing is made and taken down at the same time.
 */
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/sizes.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cm.h>

#include "dev.h"
#include "link.h"
#include "link_cm.h"
#include "link_io.h"
#include "netns.h"
#include "rogue.h"

#define DEPTH_MIN	16
#define DEPTH_MAX	8192
#define RDMA_READS	4	/* outstanding, each way; room for a later path */
#define STALE_RETRIES	2
#define STALE_DELAY_MS	100

/* Queue pair */

/* The device of the link's id; from here on its removal reaches the link. */
static enum afr_reason take_device(struct afr_link *link)
{
	struct afr_device *dev = link->dev ?: afr_device_get(link->cm_id->device);
	struct afr_device_info info;

	if (!dev)
		return AFR_REASON_LINK_DEVICE_REMOVED;
	spin_lock_bh(&link->lock);
	link->dev = dev;
	link->port_num = link->cm_id->port_num;
	spin_unlock_bh(&link->lock);
	/* A removal that looked before we were seen set this before it looked. */
	if (afr_device_dead(dev) || afr_device_ib(dev) != link->cm_id->device)
		return AFR_REASON_LINK_DEVICE_REMOVED;
	afr_device_info(dev, &info);
	return info.reason;
}

/*
 * Receives are a power of two, so that batches divide them; sends for as many messages
 * and the reserve. The drain posts one more to each, and everything completes on one
 * queue: all of that within the device's limits (R1).
 */
static u16 queue_depth(const struct afr_link *link)
{
	const struct ib_device_attr *attrs = &link->cm_id->device->attrs;
	int most = min(attrs->max_qp_wr, attrs->max_cqe / 2) - AFR_SQ_RESERVE - 2;
	int depth = clamp(READ_ONCE(link->an->set.link_depth), DEPTH_MIN, DEPTH_MAX);

	most /= (int)afr_message_slots(link->iwarp);
	return most < DEPTH_MIN ? 0 : rounddown_pow_of_two(min(depth, most));
}

static void query_port(struct afr_link *link)
{
	struct ib_port_attr attr = {};

	if (ib_query_port(link->cm_id->device, link->port_num, &attr))
		attr.max_msg_sz = SZ_64K;
	link->write_max = min_t(u32, attr.max_msg_sz, SZ_1G);
}

static void qp_event(struct ib_event *event, void *context)
{
	struct afr_link *link = context;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		afr_link_io_event(link, AFR_LINK_EV_COMM_EST);
		break;
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
	case IB_EVENT_PATH_MIG_ERR:
		afr_link_io_event(link, AFR_LINK_EV_QP);
		break;
	default:
		break;
	}
}

static int make_qp(struct afr_link *link, u16 depth)
{
	u16 sends = depth * afr_message_slots(link->iwarp) + AFR_SQ_RESERVE;
	struct ib_qp_init_attr attr = {
		.event_handler	= qp_event,
		.qp_context	= link,
		.cap = {
			.max_send_wr	= sends + 1,
			.max_recv_wr	= depth + 1,
			.max_send_sge	= link->iwarp ? AFR_MESSAGE_SGES : 1,
			.max_recv_sge	= 1,
			.max_inline_data = link->iwarp ? sizeof(struct afr_wire_note) : 0,
		},
		.sq_sig_type	= IB_SIGNAL_REQ_WR,
		.qp_type	= IB_QPT_RC,
	};
	struct ib_device *ib = link->cm_id->device;
	int ret;

	AFR_CHECK(!link->qp);		/* never a second one (I8) */
	if (!link->pd) {
		struct ib_pd *pd = ib_alloc_pd(ib, 0);

		if (IS_ERR(pd))
			return PTR_ERR(pd);
		link->pd = pd;
	}
	if (afr_link_io_init(link, sends, depth))
		return -ENOMEM;
	/* Of its own: at this size the device's pool would share none, and keep them all. */
	link->cq = ib_alloc_cq_any(ib, link, attr.cap.max_send_wr + attr.cap.max_recv_wr,
				   IB_POLL_SOFTIRQ);
	if (IS_ERR(link->cq)) {
		ret = PTR_ERR(link->cq);
		link->cq = NULL;
		return ret;
	}
	attr.send_cq = link->cq;
	attr.recv_cq = link->cq;
	ret = rdma_create_qp(link->cm_id, link->pd, &attr);
	if (ret)
		return ret;
	link->qp = link->cm_id->qp;
	WRITE_ONCE(link->qpn, link->qp->qp_num);
	return 0;
}

/* Everything up to a queue pair with its receives posted (R8: before the peer may write). */
static enum afr_reason open_qp(struct afr_link *link)
{
	enum afr_reason reason = take_device(link);
	u16 depth;

	if (reason)
		return reason;
	link->iwarp = rdma_protocol_iwarp(link->cm_id->device, link->port_num);
	depth = queue_depth(link);
	if (!depth)
		return AFR_REASON_DEVICE_LACKS;
	query_port(link);
	link->credit.depth = depth;
	if (make_qp(link, depth) || afr_message_rx_fill(&link->rx, link->qp))
		return AFR_REASON_NO_MEMORY;
	return AFR_REASON_NONE;
}

/**
 * afr_link_cm_drain() - fence and drain
 * @link: the link, nothing is posted any more
 *
 * Afterwards nothing lands and nothing completes any more (PM3). What never came up
 * has no keys that a peer could use, and may be a queue pair that the device could not
 * set up: rxe never flushes one for which it had no memory. To destroy it is enough.
 *
 * Context: The work. Waits for the device, not for the peer.
 */
void afr_link_cm_drain(struct afr_link *link)
{
	if (link->qp && link->used)
		ib_drain_qp(link->qp);
	afr_link_io_abort_ops(link);
}

/**
 * afr_link_cm_close() - free queue pair and queues
 * @link: the link, drained
 *
 * The protection domain stays: memory regions still use it.
 *
 * Context: The work.
 */
void afr_link_cm_close(struct afr_link *link)
{
	if (link->qp)
		rdma_destroy_qp(link->cm_id);
	link->qp = NULL;
	if (link->cq)
		ib_free_cq(link->cq);
	link->cq = NULL;
	afr_link_io_free(link);
}

/**
 * afr_link_cm_end() - free the id
 * @link: the link, closed
 *
 * Context: The work, not a handler of rdma_cm (R8).
 */
void afr_link_cm_end(struct afr_link *link)
{
	if (link->cm_id)
		rdma_destroy_id(link->cm_id);
	link->cm_id = NULL;
}

/**
 * afr_link_cm_may_send() - can rdma_cm reach the network
 * @link: the link
 *
 * Context: The work.
 * Return: false while the port is down; true when there is nothing to wait for.
 */
bool afr_link_cm_may_send(struct afr_link *link)
{
	struct ib_port_attr attr;

	return !link->dev || afr_device_dead(link->dev) ||
	       ib_query_port(afr_device_ib(link->dev), link->port_num, &attr) ||
	       attr.state == IB_PORT_ACTIVE;
}

/*
 * Active: rdma_cm takes the largest packet of the interface, but the path may be narrower, and
 * RoCE has no way to notice: the queue pair dies of it. So none is larger than TCP's are. The
 * passive end follows the request.
 */
static void limit_mtu(struct afr_link *link)
{
	struct sa_path_rec *path = link->cm_id->route.path_rec;

	if (link->peer.mtu && path && rdma_protocol_roce(link->cm_id->device, link->port_num))
		path->mtu = min_t(u8, path->mtu, iboe_get_mtu(link->peer.mtu) ?: IB_MTU_256);
}

/* Handshake: what rdma_cm tells */

static struct rdma_conn_param conn_param(const struct afr_link *link, const void *data, u8 len)
{
	const struct ib_device_attr *attrs = &link->cm_id->device->attrs;

	return (struct rdma_conn_param) {
		.private_data		= data,
		.private_data_len	= len,
		.responder_resources	= min(RDMA_READS, attrs->max_qp_rd_atom),
		.initiator_depth	= min(RDMA_READS, attrs->max_qp_init_rd_atom),
		/* 7 is for ever: by the standard for the latter, in rxe for both */
		.retry_count		= AFR_CM_RETRIES,
		.rnr_retry_count	= AFR_CM_RETRIES,
	};
}

static bool rep_ok(const struct afr_link *link, const struct afr_wire_cm_rep *rep, u8 len)
{
	return rep && len >= sizeof(*rep) && be32_to_cpu(rep->magic) == AFR_CM_MAGIC &&
	       be64_to_cpu(rep->link) == link->id && !rep->reason &&
	       !memcmp(rep->instance, link->peer.instance, sizeof(rep->instance));
}

/* The passive side accepted, or we as passive side learnt that the handshake is over. */
static void established(struct afr_link *link, const struct rdma_conn_param *param)
{
	const struct afr_wire_cm_rep *rep = param->private_data;
	bool late;
	int ret;

	if (!link->active) {
		if (!link->iwarp)
			afr_link_io_up(link);
		return;
	}
	if (!rep_ok(link, rep, param->private_data_len) ||
	    param->rnr_retry_count > AFR_CM_RETRIES) {
		afr_link_fail(link, AFR_REASON_CONNECT_FAILED);
		return;
	}
	spin_lock_bh(&link->lock);
	late = link->retrying;
	ret = late ? 0 :
		afr_credit_init(&link->credit, link->credit.depth, be16_to_cpu(rep->depth));
	if (!ret && link->iwarp)
		afr_link_io_probe(link);	/* who accepted may not be the first (RFC 5044) */
	spin_unlock_bh(&link->lock);
	if (ret)
		afr_link_fail(link, AFR_REASON_CONNECT_FAILED);
	else if (!link->iwarp && !late)
		afr_link_io_up(link);
}

static void rejected(struct afr_link *link, struct rdma_cm_event *event)
{
	const struct afr_wire_cm_rep *rep = event->param.conn.private_data;
	u32 reason = 0;

	switch (event->status) {
	case IB_CM_REJ_STALE_CONN:
		afr_link_io_event(link, AFR_LINK_EV_STALE);
		return;
	case IB_CM_REJ_INVALID_SERVICE_ID:
		reason = AFR_REASON_PEER_NO_SERVICE;
		break;
	default:
		/* Whatever the status: siw has one of its own for this. */
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

	/* Comes on a connected id too, when the neighbour's address changes. */
	afr_link_fail(link, connecting ? AFR_REASON_CONNECT_TIMEOUT : AFR_REASON_LINK_ADDR_CHANGE);
}

/* Under the handler lock of the id. Never returns non-zero: that would destroy the id. */
static int cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct afr_link *link = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(id, READ_ONCE(link->an->set.attach_timeout_ms)))
			afr_link_fail(link, AFR_REASON_NO_ROUTE);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		afr_link_io_event(link, AFR_LINK_EV_ROUTE);
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
 * afr_link_cm_resolve() - active: a new id, on its way to a route
 * @link: the link, connecting
 *
 * Context: The work.
 */
void afr_link_cm_resolve(struct afr_link *link)
{
	unsigned int ms = READ_ONCE(link->an->set.attach_timeout_ms);
	struct rdma_cm_id *id;

	AFR_CHECK(!link->cm_id);	/* never a second one (I8) */
	id = rdma_create_id(link->an->net, cm_event, link, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		afr_link_fail(link, AFR_REASON_NO_MEMORY);
		return;
	}
	link->cm_id = id;
	if (rdma_resolve_addr(id, (struct sockaddr *)&link->local,
			      (struct sockaddr *)&link->remote, ms))
		afr_link_fail(link, AFR_REASON_NO_ROUTE);
}

/**
 * afr_link_cm_connect() - active: the route is known
 * @link: the link, connecting
 *
 * Context: The work.
 */
void afr_link_cm_connect(struct afr_link *link)
{
	enum afr_reason reason = open_qp(link);
	struct afr_wire_cm_req req = {
		.magic		= cpu_to_be32(AFR_CM_MAGIC),
		.version	= AFR_WIRE_VERSION,
		.depth		= cpu_to_be16(link->credit.depth),
		.link		= cpu_to_be64(link->id),
	};
	struct rdma_conn_param param;
	int ret;

	if (reason) {
		afr_link_fail(link, reason);
		return;
	}
	memcpy(req.instance, link->an->instance, sizeof(req.instance));
	memcpy(req.secret, link->peer.secret, sizeof(req.secret));
	afr_rogue_cm(&req, sizeof(req));
	limit_mtu(link);
	param = conn_param(link, &req, sizeof(req));
	ret = rdma_connect(link->cm_id, &param);
	if (ret)
		afr_link_fail(link, ret == -ECONNREFUSED ? AFR_REASON_PEER_NO_SERVICE :
							   AFR_REASON_CONNECT_FAILED);
}

/* From here on the old id can do nothing. False: it came up, or the link is dying. */
static bool retire_id(struct afr_link *link)
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
 * afr_link_cm_retry() - active: begin again with another id and queue pair
 * @link: the link, connecting
 *
 * No answer came: the request or its answer was lost, and rdma_cm repeats neither
 * soon.
 *
 * Context: The work.
 */
void afr_link_cm_retry(struct afr_link *link)
{
	if (retire_id(link))
		afr_link_cm_resolve(link);
}

/**
 * afr_link_cm_stale() - active: the peer refused us for our former self
 * @link: the link, connecting
 *
 * Its host remembers a queue pair of our number from before a reboot (R7).
 *
 * Context: The work.
 */
void afr_link_cm_stale(struct afr_link *link)
{
	if (link->retries++ >= STALE_RETRIES) {
		afr_link_fail(link, AFR_REASON_CONNECT_FAILED);
		return;
	}
	msleep(STALE_DELAY_MS);
	afr_link_cm_retry(link);
}

/**
 * afr_link_reject() - refuse a connect request with a reason
 * @id: the id of the request; the caller destroys it
 * @reason: why
 *
 * Context: Process.
 */
void afr_link_reject(struct rdma_cm_id *id, enum afr_reason reason)
{
	struct afr_wire_cm_rep rep = {
		.magic	= cpu_to_be32(AFR_CM_MAGIC),
		.reason	= cpu_to_be32(reason),
	};

	rdma_reject(id, &rep, sizeof(rep), IB_CM_REJ_CONSUMER_DEFINED);
}

/**
 * afr_link_cm_accept() - passive: make the queue pair and accept
 * @link: the link, connecting
 *
 * Everything the peer may use is there before it hears of it (R8).
 *
 * Context: The work.
 */
void afr_link_cm_accept(struct afr_link *link)
{
	enum afr_reason reason = open_qp(link);
	struct afr_wire_cm_rep rep = {
		.magic	= cpu_to_be32(AFR_CM_MAGIC),
		.depth	= cpu_to_be16(link->credit.depth),
		.link	= cpu_to_be64(link->id),
	};
	struct rdma_conn_param param;
	int ret;

	if (!reason && afr_credit_init(&link->credit, link->credit.depth, link->peer_depth))
		reason = AFR_REASON_LINK_PROTOCOL;
	if (reason) {
		afr_link_reject(link->cm_id, reason);
		afr_link_fail(link, reason);
		return;
	}
	memcpy(rep.instance, link->an->instance, sizeof(rep.instance));
	if (afr_rogue_cm(&rep, sizeof(rep)))
		return;
	param = conn_param(link, &rep, sizeof(rep));
	rdma_lock_handler(link->cm_id);
	ret = rdma_accept(link->cm_id, &param);
	rdma_unlock_handler(link->cm_id);
	if (ret)
		afr_link_fail(link, AFR_REASON_CONNECT_FAILED);
	else
		WRITE_ONCE(link->accepted, !link->iwarp);
}

/**
 * afr_link_cm_take() - passive: the link now owns the id of a request
 * @link: the new link
 * @id: the id
 *
 * Context: Process, before the work is queued for the first time.
 */
void afr_link_cm_take(struct afr_link *link, struct rdma_cm_id *id)
{
	link->cm_id = id;
	rdma_lock_handler(id);
	id->context = link;
	id->event_handler = cm_event;
	rdma_unlock_handler(id);
}
