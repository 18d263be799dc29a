// SPDX-License-Identifier: GPL-2.0
/*
 * The rdma_cm service through which peers connect links to us.
 *
 * One port for IPv4 and IPv6, so that the port told in HELLO is right whatever the
 * family of the socket is. The ids pin the namespace (B8), so they live only while
 * it has sockets.
 *
 * The handler of rdma_cm runs for all peers one after the other; it copies a
 * request and queues it. What anybody out there can have pending is bounded.
 *
 * Locks: afr_net.lock is held while listeners are made, not while they are
 * destroyed; handlers do not take it.
 */
#include <linux/atomic.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>

#include "dev.h"
#include "group.h"
#include "link.h"
#include "netns.h"
#include "stats.h"
#include "wire.h"

#define BACKLOG		64
#define PORT_TRIES	8

struct service {
	struct afr_net		*an;
	unsigned int		users;
	/* from the first afr_service_port() on: clients need none of it */
	struct workqueue_struct	*wq;		/* requests */
	struct rdma_cm_id	*id4, *id6;	/* id6 may be missing */
	u16			port;
};

/* A connect request, from the handler to the work. */
struct request {
	struct work_struct	work;
	struct afr_net		*an;
	struct afr_device	*dev;
	struct rdma_cm_id	*id;
	struct afr_wire_cm_req	req;
};

/* Time does not depend on where the two differ. */
static bool secret_ok(struct afr_net *an, const struct rdma_cm_id *id,
		      const struct afr_wire_cm_req *req)
{
	u8 secret[sizeof(req->secret)], differ = 0;
	unsigned int i;

	afr_net_secret(an, req->instance, &id->route.addr.src_addr, &id->route.addr.dst_addr,
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

	if (r->req.version != AFR_WIRE_VERSION || r->req.reserved ||
	    !secret_ok(r->an, r->id, &r->req))
		return AFR_REASON_LINK_PROTOCOL;
	afr_device_info(r->dev, &info);
	return info.reason;
}

static void request_work(struct work_struct *work)
{
	struct request *r = container_of(work, struct request, work);
	enum afr_reason reason = check_request(r);

	if (!reason)
		reason = afr_group_accept(r->an, r->id, &r->req);
	if (reason) {
		afr_stat_inc(r->an->net, AFR_STAT_LINK_REFUSED);
		afr_link_reject(r->id, reason);
		rdma_destroy_id(r->id);
	}
	afr_device_put(r->dev);
	atomic_dec(&r->an->link_requests);
	kfree_sensitive(r);
}

/* Until the work has it, nothing that happens to the id matters: accepting it fails then. */
static int request_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

static struct request *new_request(struct service *s, struct rdma_cm_id *id,
				   const struct rdma_conn_param *param)
{
	const struct afr_wire_cm_req *req = param->private_data;
	struct request *r;

	/* On InfiniBand private data always comes at full length, with zeros behind ours (R6). */
	/* for ever is not for us: it is our queue pair that would try again */
	if (param->retry_count > AFR_CM_RETRIES || param->rnr_retry_count > AFR_CM_RETRIES)
		return NULL;
	if (!req || param->private_data_len < sizeof(*req) ||
	    be32_to_cpu(req->magic) != AFR_CM_MAGIC ||
	    memchr_inv(req + 1, 0, param->private_data_len - sizeof(*req)))
		return NULL;
	r = kzalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return NULL;
	r->dev = afr_device_get(id->device);	/* or it is going away (B12) */
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

/* Non-zero refuses a request, and rdma_cm destroys its id. */
static int service_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct service *s = id->context;
	struct afr_net *an = s->an;
	struct request *r = NULL;
	bool taken;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	taken = afr_net_take(an, &an->link_requests, READ_ONCE(an->set.link_requests_max));
	if (taken)
		r = new_request(s, id, &event->param.conn);
	if (!r) {
		if (taken)
			atomic_dec(&an->link_requests);
		afr_stat_inc(an->net, AFR_STAT_LINK_REFUSED);
		return -ECONNREFUSED;
	}
	id->context = r;
	id->event_handler = request_event;
	queue_work(s->wq, &r->work);
	return 0;
}

static struct rdma_cm_id *listen(struct service *s, struct sockaddr *addr)
{
	struct rdma_cm_id *id;
	int ret;

	id = rdma_create_id(s->an->net, service_event, s, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return id;
	ret = rdma_set_afonly(id, 1);
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

static int try_listen(struct service *s)
{
	struct sockaddr_in any4 = { .sin_family = AF_INET };
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6 };
	struct rdma_cm_id *id;
	__be16 port;

	/* iw_cm makes a socket, in the namespace of who calls */
	AFR_CHECK(current->flags & PF_WQ_WORKER);
	if (!s->wq)
		s->wq = alloc_workqueue("afrdma_service", WQ_UNBOUND, 0);
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
	s->id6 = IS_ERR(id) ? NULL : id;	/* no IPv6 here */
	s->port = ntohs(port);
	return 0;
}

static int any_usable(const struct afr_device_info *info, void *arg)
{
	return info->usable;
}

/**
 * afr_service_port() - the port of our rdma_cm service
 * @an: our namespace
 * @family: of the socket; the port is the same for all
 *
 * Context: Process, between afr_service_get() and afr_service_put(); a worker, unless
 * afr_service_listens().
 * Return: the port, host order; 0 without usable RDMA device, or outside the
 * initial namespace.
 */
u16 afr_service_port(struct afr_net *an, sa_family_t family)
{
	struct service *s;
	u16 port = 0;
	int i;

	if (!net_eq(an->net, &init_net) || !afr_device_for_each(any_usable, NULL))
		return 0;
	mutex_lock(&an->lock);
	s = an->service;
	for (i = 0; s && !s->port && i < PORT_TRIES; i++)
		if (try_listen(s) != -EADDRINUSE)
			break;
	if (s)
		port = s->port;
	mutex_unlock(&an->lock);
	return port;
}

/**
 * afr_service_listens() - has afr_service_port() nothing to do?
 * @an: our namespace
 *
 * Context: Process.
 * Return: true while there is a listener.
 */
bool afr_service_listens(struct afr_net *an)
{
	struct service *s;
	bool listens;

	mutex_lock(&an->lock);
	s = an->service;
	listens = s && s->port;
	mutex_unlock(&an->lock);
	return listens;
}

static struct service *new_service(struct afr_net *an)
{
	struct service *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (s)
		s->an = an;
	return s;
}

/**
 * afr_service_get() - a socket came
 * @an: its namespace
 *
 * Context: Process.
 */
void afr_service_get(struct afr_net *an)
{
	struct service *s;

	mutex_lock(&an->lock);
	/* Without memory there is no service: nothing else is lost. */
	s = an->service ?: new_service(an);
	if (s)
		s->users++;
	an->service = s;
	mutex_unlock(&an->lock);
}

/**
 * afr_service_put() - a socket went; with the last one the listeners go (B8)
 * @an: its namespace
 *
 * Context: Process. Waits for handlers and pending requests, not for peers.
 */
void afr_service_put(struct afr_net *an)
{
	struct service *s;

	mutex_lock(&an->lock);
	s = an->service;
	if (s && !--s->users)
		an->service = NULL;
	else
		s = NULL;
	mutex_unlock(&an->lock);
	if (!s)
		return;
	if (s->id4)
		rdma_destroy_id(s->id4);
	if (s->id6)
		rdma_destroy_id(s->id6);
	if (s->wq)
		destroy_workqueue(s->wq);
	kfree(s);
}
