// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * RDMA devices: an ib_client with one object per device.
 *
 * The RDMA core notifies its clients of a removal in the reverse order of their registration: this
 * client before rdma_cm, whose listeners still deliver requests for the device (B12). So every
 * user takes a reference on the device object before it creates anything on the device, and the
 * removal waits until the last reference is dropped. afr_device_get() returns no reference once
 * the removal has begun.
 *
 * A device may serve several network namespaces, see serves().
 *
 * Locks: devices_lock is a leaf; the removal does not hold it while it waits. Readers that do not
 * sleep use RCU instead.
 */
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/rculist.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_cache.h>

#include "compat.h"
#include "device.h"

struct afr_device {
	struct list_head	entry;		/* in devices until removal begins */
	struct ib_device	*ib;
	refcount_t		refs;		/* one is held by the ib_client */
	bool			dead;
	struct completion	gone;		/* completed when refs reaches zero */
	struct ib_event_handler	events;
};

static LIST_HEAD(devices);
static DEFINE_MUTEX(devices_lock);	/* protects writes of devices and ring_max */
static const struct afr_device_ops *device_ops;
static u32 ring_max = U32_MAX;		/* see afr_device_ring_max() */

/**
 * afr_device_get() - get a reference on a device
 * @ibdev: device as known to rdma_cm
 *
 * Context: process.
 * Return: its object with a reference, or NULL if it is unknown or being removed.
 */
struct afr_device *afr_device_get(struct ib_device *ibdev)
{
	struct afr_device *dev, *found = NULL;

	rcu_read_lock();
	list_for_each_entry_rcu(dev, &devices, entry) {
		if (dev->ib != ibdev)
			continue;
		refcount_inc(&dev->refs);	/* the ib_client still holds its reference */
		found = dev;
		break;
	}
	rcu_read_unlock();
	return found;
}

/**
 * afr_device_put() - drop a reference on a device
 * @dev: device; the caller has already freed everything that it created on the device
 *
 * Context: process.
 */
void afr_device_put(struct afr_device *dev)
{
	if (refcount_dec_and_test(&dev->refs))
		complete(&dev->gone);
}

/**
 * afr_device_removing() - is the device being removed?
 * @dev: device
 *
 * The caller first makes its link visible to the lost() upcall. If this function then returns
 * false, any removal has yet to call lost(), which will fail that link.
 *
 * Context: any.
 * Return: true once the removal has begun.
 */
bool afr_device_removing(const struct afr_device *dev)
{
	return READ_ONCE(dev->dead);
}

/**
 * afr_device_ib() - get the verbs device
 * @dev: device
 *
 * Context: any.
 * Return: the ib_device, valid while the caller has a reference on @dev.
 */
struct ib_device *afr_device_ib(const struct afr_device *dev)
{
	return dev->ib;
}

static bool any_iwarp(struct ib_device *ib)
{
	u32 port;

	rdma_for_each_port(ib, port)
		if (rdma_protocol_iwarp(ib, port))
			return true;
	return false;
}

/*
 * Returns the size in bytes of the largest ring whose pages fit twice into a page list of the
 * device (R2): a power of two up to 1 GiB, or 0.
 */
static u32 mirrored_ring_max(const struct ib_device_attr *attrs)
{
	u32 pages = attrs->max_fast_reg_page_list_len / 2;

	return pages ? rounddown_pow_of_two(min_t(u32, pages, U32_MAX / 2 / PAGE_SIZE)) * PAGE_SIZE
		     : 0;
}

/* Can the device register a mirrored ring, by FRWR? */
static bool usable(const struct ib_device_attr *attrs)
{
	return mirrored_ring_max(attrs) && attrs->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS;
}

/*
 * Does port @port have a GID whose network interface is in @net or, if @elsewhere is true, in
 * another network namespace?
 */
static bool port_has_gid(struct ib_device *ib, u32 port, const struct net *net, bool elsewhere)
{
	const struct ib_gid_attr *attr;
	const struct net_device *ndev;
	bool found = false;
	int i;

	for (i = 0; i < ib->port_data[port].immutable.gid_tbl_len && !found; i++) {
		attr = rdma_get_gid_attr(ib, port, i);
		if (IS_ERR(attr))	/* an empty entry */
			continue;
		rcu_read_lock();
		ndev = rcu_dereference(attr->ndev);
		found = ndev && net_eq(dev_net(ndev), net) != elsewhere;
		rcu_read_unlock();
		rdma_put_gid_attr(attr);
	}
	return found;
}

/* Is the network interface of port @port in @net? */
static bool port_is_in(struct ib_device *ib, u32 port, const struct net *net)
{
	struct net_device *ndev = ib_device_get_netdev(ib, port);
	bool in = ndev && net_eq(dev_net(ndev), net);

	dev_put(ndev);
	return in;
}

/*
 * Can the network namespace @net use the device? In the exclusive mode of RDMA namespaces ("rdma
 * system"), a device belongs to one namespace; in the shared mode, all namespaces see all devices.
 * Of the namespaces that see the device, these can use it:
 *  - rxe: only the namespace of its interface, since its UDP sockets are there; before Linux 7.2
 *    they are in the initial namespace, so only that one;
 *  - other RoCE: the initial namespace in any case, and each other one that contains an interface
 *    of one of the GIDs;
 *  - iWARP: only the initial namespace, since drivers such as siw create their TCP sockets there;
 *  - InfiniBand: all, since rdma_cm finds the device by the IPoIB interface.
 */
static bool serves(struct ib_device *ib, const struct net *net)
{
	bool rxe = ib->ops.driver_id == RDMA_DRIVER_RXE;
	u32 port;

	if (!rdma_dev_access_netns(ib, net))
		return false;
	if (net_eq(net, &init_net) && !(rxe && AFR_RXE_NETNS))
		return true;
	if (rxe && !AFR_RXE_NETNS)
		return false;
	rdma_for_each_port(ib, port)
		if (rdma_protocol_ib(ib, port) ||
		    (rdma_protocol_roce(ib, port) && port_has_gid(ib, port, net, false) &&
		     (!rxe || port_is_in(ib, port, net))))
			return true;
	return false;
}

/**
 * afr_device_info() - get the properties of a device
 * @dev: device
 * @net: network namespace to which @info->usable and @info->reason refer
 * @info: out
 *
 * Context: process, maybe in an RCU read section.
 */
void afr_device_info(const struct afr_device *dev, const struct net *net,
		     struct afr_device_info *info)
{
	const struct ib_device_attr *attrs = &dev->ib->attrs;

	memset(info, 0, sizeof(*info));
	strscpy(info->name, dev_name(&dev->ib->dev), sizeof(info->name));
	info->iwarp = any_iwarp(dev->ib);
	info->ring_max = mirrored_ring_max(attrs);
	info->reason = !usable(attrs) ? AFR_REASON_DEVICE_LACKS :
		       !serves(dev->ib, net) ? AFR_REASON_NETNS : AFR_REASON_NONE;
	info->usable = !info->reason;
	info->max_qp_wr = attrs->max_qp_wr;
	info->max_cqe = attrs->max_cqe;
	info->links = refcount_read(&dev->refs) - 1;
}

/**
 * afr_device_within() - are all interfaces of a RoCE port in a given network namespace?
 * @dev: device
 * @port: port
 * @net: namespace
 *
 * Context: any.
 * Return: true if so: a software device, such as rxe, is then removed together with that namespace.
 */
bool afr_device_within(const struct afr_device *dev, u32 port, const struct net *net)
{
	return !port_has_gid(dev->ib, port, net, true);
}

/**
 * afr_device_any() - is there a device that a network namespace can use?
 * @net: namespace
 *
 * Context: process.
 * Return: true if so. The device may be gone when this returns.
 */
bool afr_device_any(const struct net *net)
{
	struct afr_device *dev;
	bool any = false;

	rcu_read_lock();
	list_for_each_entry_rcu(dev, &devices, entry) {
		any = usable(&dev->ib->attrs) && serves(dev->ib, net);
		if (any)
			break;
	}
	rcu_read_unlock();
	return any;
}

/**
 * afr_device_any_iwarp() - is there an iWARP device on this host?
 *
 * Context: any.
 * Return: true if so.
 */
bool afr_device_any_iwarp(void)
{
	struct afr_device *dev;
	bool any = false;

	rcu_read_lock();
	list_for_each_entry_rcu(dev, &devices, entry)
		any |= any_iwarp(dev->ib);
	rcu_read_unlock();
	return any;
}

/**
 * afr_device_for_each() - visit every device that a network namespace sees
 * @net: namespace; in the exclusive mode of RDMA namespaces, it sees only its own devices
 * @fn: called with the properties of one device; ends the walk by returning non-zero. It may sleep,
 *	but must not call functions of this file that take devices_lock.
 * @arg: passed to @fn
 *
 * Context: process. @fn runs under devices_lock.
 * Return: the last return value of @fn, 0 if there are no devices.
 */
int afr_device_for_each(const struct net *net,
			int (*fn)(const struct afr_device_info *info, void *arg), void *arg)
{
	struct afr_device_info info;
	struct afr_device *dev;
	int ret = 0;

	mutex_lock(&devices_lock);
	list_for_each_entry(dev, &devices, entry) {
		if (!rdma_dev_access_netns(dev->ib, net))
			continue;
		afr_device_info(dev, net, &info);
		ret = fn(&info, arg);
		if (ret)
			break;
	}
	mutex_unlock(&devices_lock);
	return ret;
}

/* Called when a device was added or removed. */
static void update_ring_max(void)
{
	struct afr_device *dev;
	u32 most = U32_MAX;

	lockdep_assert_held(&devices_lock);
	list_for_each_entry(dev, &devices, entry)
		if (usable(&dev->ib->attrs))
			most = min(most, mirrored_ring_max(&dev->ib->attrs));
	WRITE_ONCE(ring_max, most);
}

/**
 * afr_device_ring_max() - get the largest ring size that suits all devices
 *
 * Context: any.
 * Return: size in bytes of the largest ring that every usable device can map mirrored; U32_MAX if
 * there is no usable device.
 */
u32 afr_device_ring_max(void)
{
	return READ_ONCE(ring_max);
}

/* The RDMA core calls this in a work item, whatever context the driver reported the event in. */
static void device_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct afr_device *dev = container_of(handler, struct afr_device, events);

	if (event->event == IB_EVENT_PORT_ERR)
		device_ops->lost(dev, event->element.port_num, AFR_REASON_LINK_PORT_DOWN);
	else if (event->event == IB_EVENT_DEVICE_FATAL)
		device_ops->lost(dev, 0, AFR_REASON_LINK_QP_EVENT);
}

static struct ib_client afr_ib_client;

static int add_device(struct ib_device *ib)
{
	struct afr_device *dev = kzalloc_obj(*dev);

	if (!dev)
		return -ENOMEM;
	dev->ib = ib;
	refcount_set(&dev->refs, 1);
	init_completion(&dev->gone);
	ib_set_client_data(ib, &afr_ib_client, dev);
	INIT_IB_EVENT_HANDLER(&dev->events, ib, device_event);
	ib_register_event_handler(&dev->events);
	mutex_lock(&devices_lock);
	list_add_tail_rcu(&dev->entry, &devices);
	update_ring_max();
	mutex_unlock(&devices_lock);
	return 0;
}

static void remove_device(struct ib_device *ib, void *client_data)
{
	struct afr_device *dev = client_data;

	ib_unregister_event_handler(&dev->events);
	mutex_lock(&devices_lock);
	list_del_rcu(&dev->entry);
	update_ring_max();
	WRITE_ONCE(dev->dead, true);
	mutex_unlock(&devices_lock);
	synchronize_rcu();	/* from now on, afr_device_get() takes no reference */

	device_ops->lost(dev, 0, AFR_REASON_LINK_DEVICE_REMOVED);
	afr_device_put(dev);
	wait_for_completion(&dev->gone);
	kfree(dev);
}

static struct ib_client afr_ib_client = {
	.name	= "afrdma",
	.add	= add_device,
	.remove	= remove_device,
};

/**
 * afr_device_init() - register the ib_client, which is notified of existing and future devices
 * @ops: upcalls, which may come before this returns
 *
 * Context: module load.
 * Return: 0 or a negative error.
 */
int afr_device_init(const struct afr_device_ops *ops)
{
	device_ops = ops;
	return ib_register_client(&afr_ib_client);
}

/**
 * afr_device_exit() - unregister the ib_client and free all device objects
 *
 * Context: module exit. Waits until all references are dropped.
 */
void afr_device_exit(void)
{
	ib_unregister_client(&afr_ib_client);
}
