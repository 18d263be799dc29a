// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The cm listener: accepts or rejects the connect requests by which peers set up links.
 *
 * IPv4 and IPv6 share one port, so that the port sent in HELLO is right for both address families.
 * The listening ids pin the namespace (B8), so they exist only while it has AF_RDMA sockets.
 *
 * On each device and for each address family, rdma_cm calls the handler for the requests of all
 * peers one after the other; so the handler only checks the form of a request, copies and queues
 * it. The number of pending requests is bounded (link_requests_max).
 *
 * For the lock order see afrdma-internals.rst. afr_net.lock is held while listeners are created,
 * but not while afr_cm_listener_put() destroys them. rdma_cm handlers do not take afr_net.lock.
 */
#include <linux/atomic.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/inet_ecn.h>
#include <rdma/rdma_cm.h>

#include "cm_listener.h"
#include "compat.h"
#include "device.h"
#include "group.h"
#include "link.h"
#include "link_cm.h"
#include "netns.h"
#include "proto/wire.h"

#define BACKLOG		64
#define PORT_TRIES	8

struct afr_cm_listener {
	struct afr_net		*an;
	/* afr_cm_listener_port(), which only servers call, sets the members below */
	struct workqueue_struct	*wq;		/* runs request_work() */
	struct rdma_cm_id	*id4, *id6;	/* id6 stays NULL if IPv6 fails */
};

/* A connect request, passed from listener_event() to request_work(). */
struct request {
	struct work_struct	work;
	struct afr_net		*an;
	struct afr_device	*dev;
	struct rdma_cm_id	*id;
	struct afr_wire_cm_req	req;
};

/* Compares in constant time, so that a peer cannot find the secret byte by byte. */
static bool secret_valid(struct afr_net *an, const struct rdma_cm_id *id,
			 const struct afr_wire_cm_req *req)
{
	u8 secret[sizeof(req->secret)], differ = 0;
	unsigned int i;

	afr_netns_secret(an, req->instance, &id->route.addr.src_addr, &id->route.addr.dst_addr,
			 secret);
	for (i = 0; i < sizeof(secret); i++) {
		differ |= secret[i] ^ req->secret[i];
		OPTIMIZER_HIDE_VAR(differ);
	}
	memzero_explicit(secret, sizeof(secret));
	return !differ;
}

static enum afr_reason check_request(struct request *r)
{
	struct afr_device_info info;

	if (r->req.version != AFR_WIRE_VERSION || r->req.tclass & INET_ECN_MASK ||
	    !secret_valid(r->an, r->id, &r->req))
		return AFR_REASON_LINK_PROTOCOL;
	afr_device_info(r->dev, r->an->net, &info);
	return info.reason;
}

/* Rejects a connect request, or creates a link, whose worker then answers the request. */
static void request_work(struct work_struct *work)
{
	struct request *r = container_of(work, struct request, work);
	enum afr_reason reason = check_request(r);

	if (!reason)
		reason = afr_group_accept(r->an, r->id, &r->req);
	if (reason) {
		afr_netns_count(r->an->net, AFR_STAT_LINK_REFUSED);
		afr_link_cm_reject(r->id, reason);
		rdma_destroy_id(r->id);
	}
	afr_device_put(r->dev);
	atomic_dec(&r->an->link_requests);
	kfree_sensitive(r);
}

/*
 * Handles the events of an id until request_work() has run. They can be ignored: after any event
 * that matters, accepting the id fails.
 */
static int request_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

/* Checks and copies a connect request; returns NULL if it has to be rejected. */
static struct request *new_request(struct afr_cm_listener *s, struct rdma_cm_id *id,
				   const struct rdma_conn_param *param)
{
	const struct afr_wire_cm_req *req = param->private_data;
	struct request *r;

	/*
	 * The local queue pair would use the peer's counts. An rnr_retry_count of 7 means forever;
	 * rxe takes a retry_count of 7 as forever, too.
	 */
	if (param->retry_count > AFR_CM_RETRIES || param->rnr_retry_count > AFR_CM_RETRIES)
		return NULL;
	/* except on iWARP, private data arrives padded with zeros to its maximum length (R6) */
	if (!req || param->private_data_len < sizeof(*req) ||
	    be32_to_cpu(req->magic) != AFR_CM_MAGIC ||
	    memchr_inv(req + 1, 0, param->private_data_len - sizeof(*req)))
		return NULL;
	r = kzalloc_obj(*r);
	if (!r)
		return NULL;
	/* NULL if device.c does not know the device, or the device is being removed (B12) */
	r->dev = afr_device_get(id->device);
	if (!r->dev) {
		kfree(r);
		return NULL;
	}
	r->an = s->an;
	r->id = id;
	r->req = *req;
	INIT_WORK(&r->work, request_work);
	return r;
}

/* Queues a connect request. If this returns an error, rdma_cm rejects it and destroys its id. */
static int listener_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct afr_cm_listener *s = id->context;
	struct afr_net *an = s->an;
	struct request *r = NULL;
	bool taken;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	taken = afr_netns_charge(an, &an->link_requests, READ_ONCE(an->set.link_requests_max));
	if (taken)
		r = new_request(s, id, &event->param.conn);
	if (!r) {
		if (taken)
			atomic_dec(&an->link_requests);
		afr_netns_count(an->net, AFR_STAT_LINK_REFUSED);
		return -ECONNREFUSED;
	}
	id->context = r;
	id->event_handler = request_event;
	queue_work(s->wq, &r->work);
	return 0;
}

/*
 * rdma_cm listens on all devices. For that, siw and erdma create TCP sockets in the namespace of
 * the current task, a workqueue worker, and so in the initial namespace. Therefore the listener of
 * any other namespace is only for InfiniBand and RoCE. If the kernel cannot restrict it, no such
 * listener is created while the host has an iWARP device; but if an iWARP device is added later,
 * rdma_cm listens on it, too, and requests that arrive there are rejected.
 */
static int leave_out_iwarp(const struct afr_cm_listener *s, struct rdma_cm_id *id)
{
	if (net_eq(s->an->net, &init_net))
		return 0;
	if (AFR_CM_RESTRICTS)
		return rdma_restrict_node_type(id, RDMA_NODE_IB_CA);
	return afr_device_any_iwarp() ? -EOPNOTSUPP : 0;
}

static struct rdma_cm_id *listen(struct afr_cm_listener *s, struct sockaddr *addr)
{
	struct rdma_cm_id *id;
	int ret;

	id = rdma_create_id(s->an->net, listener_event, s, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return id;
	ret = rdma_set_afonly(id, 1);
	if (!ret)
		ret = leave_out_iwarp(s, id);
	if (!ret)
		ret = rdma_bind_addr(id, addr);
	if (!ret)
		ret = rdma_listen(id, BACKLOG);
	if (ret) {
		rdma_destroy_id(id);
		return ERR_PTR(ret);
	}
	return id;
}

/*
 * Creates the listeners for IPv4 and IPv6 on one port, which rdma_cm chooses. Returns -EADDRINUSE
 * if siw or erdma cannot bind a TCP socket to that port on IPv4 or IPv6, since another socket uses
 * it: then the caller should try again. Returns another error if there can be no listener for
 * IPv4, and 0 otherwise: IPv6 is optional.
 */
static int try_listen(struct afr_cm_listener *s)
{
	struct sockaddr_in any4 = { .sin_family = AF_INET };
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6 };
	struct rdma_cm_id *id;
	__be16 port;

	/*
	 * siw and erdma create a socket in the namespace of the current task. For a worker of a
	 * workqueue that is the initial namespace, as it has to be.
	 */
	AFR_CHECK(current->flags & PF_WQ_WORKER);
	if (!s->wq)
		s->wq = alloc_workqueue("afrdma_cm", WQ_UNBOUND, 0);
	if (!s->wq)
		return -ENOMEM;
	id = listen(s, (struct sockaddr *)&any4);
	if (IS_ERR(id))
		return PTR_ERR(id);
	port = ((struct sockaddr_in *)&id->route.addr.src_addr)->sin_port;
	s->id4 = id;
	any6.sin6_port = port;
	id = listen(s, (struct sockaddr *)&any6);
	if (PTR_ERR(id) == -EADDRINUSE) {
		rdma_destroy_id(s->id4);
		s->id4 = NULL;
		return -EADDRINUSE;
	}
	s->id6 = IS_ERR(id) ? NULL : id;	/* error: most likely, there is no IPv6 */
	WRITE_ONCE(s->an->cm_port, ntohs(port));
	return 0;
}

/**
 * afr_cm_listener_port() - get the port of the cm listener; start it on first use
 * @an: namespace
 * @family: address family of the socket; unused, as the port is the same for both
 *
 * Context: process; unless afr_cm_listener_started() is true, only in a workqueue worker.
 * Return: the port in host order; 0 if there is no RDMA device that @an can use, @an has no AF_RDMA
 * socket (only orphans), or the listener could not be created.
 */
u16 afr_cm_listener_port(struct afr_net *an, sa_family_t family)
{
	struct afr_cm_listener *s;
	int i;

	if (!afr_device_any(an->net))
		return 0;
	if (!afr_cm_listener_started(an)) {
		mutex_lock(&an->lock);
		s = an->cm_listener;
		for (i = 0; s && !an->cm_port && i < PORT_TRIES; i++)
			if (try_listen(s) != -EADDRINUSE)
				break;
		mutex_unlock(&an->lock);
	}
	return READ_ONCE(an->cm_port);
}

/**
 * afr_cm_listener_started() - has the cm listener been started?
 * @an: namespace
 *
 * Once it has been started, afr_cm_listener_port() may be called from any process context.
 *
 * Context: any.
 * Return: true from the start on, until afr_cm_listener_put() drops the last user.
 */
bool afr_cm_listener_started(const struct afr_net *an)
{
	return READ_ONCE(an->cm_port);
}

static struct afr_cm_listener *new_listener(struct afr_net *an)
{
	struct afr_cm_listener *s = kzalloc_obj(*s);

	if (s)
		s->an = an;
	return s;
}

/**
 * afr_cm_listener_get() - count a new socket as a user of the cm listener
 * @an: namespace of the socket
 *
 * Does not start the listener: afr_cm_listener_port() does.
 *
 * Context: process.
 * Return: true; false without memory: then do not call afr_cm_listener_put() for the socket.
 */
bool afr_cm_listener_get(struct afr_net *an)
{
	struct afr_cm_listener *s;

	if (refcount_inc_not_zero(&an->cm_users))
		return true;
	mutex_lock(&an->lock);
	s = an->cm_listener;
	if (s) {		/* another socket was the first */
		refcount_inc(&an->cm_users);
	} else {
		s = new_listener(an);
		an->cm_listener = s;
		if (s)
			refcount_set(&an->cm_users, 1);
	}
	mutex_unlock(&an->lock);
	return s;
}

/**
 * afr_cm_listener_put() - drop a socket as a user; destroy the cm listener after the last (B8)
 * @an: namespace of the socket
 *
 * Context: process. Waits for handlers and pending requests, not for peers.
 */
void afr_cm_listener_put(struct afr_net *an)
{
	struct afr_cm_listener *s;

	if (!refcount_dec_and_mutex_lock(&an->cm_users, &an->lock))
		return;
	s = an->cm_listener;
	an->cm_listener = NULL;
	WRITE_ONCE(an->cm_port, 0);
	mutex_unlock(&an->lock);
	afr_group_unused(an);
	if (s->id4)
		rdma_destroy_id(s->id4);
	if (s->id6)
		rdma_destroy_id(s->id6);
	if (s->wq)
		destroy_workqueue(s->wq);
	kfree(s);
}
