// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Test module: makes calls of the verbs of one RDMA device fail.
 *
 * It replaces entries of the device's ib_device_ops, so calls of all users of the
 * device fail, those of the kernel included. Parameters, in
 * /sys/module/verbfault/parameters/:
 *	device	name of the device; set only at load, rxe0 by default
 *	verb	name of the verb that fails, as in the calls of hit(); "" for none
 *	nth	the nth call from now on fails; counts down, 0 after the last failure
 *	times	number of consecutive calls that fail; counts down, too
 *	swallow	these calls return 0 without effect, e.g. a receive is never posted; but
 *		alloc_mr fails nevertheless, and 0 from map_mr_sg means that nothing was mapped
 *	errno	error of the calls that fail
 *	cqe_max	limit on the entries of completion queues created from now on
 *	kill	a write of any value moves to the error state every queue pair that was created
 *		after this module was loaded
 *
 * While this module is loaded, a deletion of the device does not end. Unload the module only
 * when no verb is being executed: after the users of the device have ended, or are idle.
 *
 * When a caller moves a queue pair to the error state, neither this call nor later posts to the
 * queue pair are made to fail: they may be part of ib_drain_qp(), which can only warn about
 * failures. The driver's req_notify_cq is never made to fail: ib_core ignores its errors for
 * completion queues of ib_alloc_cq_any(), which afrdma uses.
 */
#include <linux/delay.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

static char *device = "rxe0";
module_param(device, charp, 0444);

static char verb[32];
module_param_string(verb, verb, sizeof(verb), 0644);
static int nth;
module_param(nth, int, 0644);
static int times = 1;
module_param(times, int, 0644);
static bool swallow;
module_param(swallow, bool, 0644);
static int errno_value = ENOMEM;
module_param_named(errno, errno_value, int, 0644);
static int cqe_max;
module_param(cqe_max, int, 0644);

static struct ib_device *dev;
static struct ib_device_ops real;	/* the driver's */
static DEFINE_SPINLOCK(lock);		/* serializes hit(), which counts nth and times down */

/* Must this call of the verb @name fail, or be swallowed? Counts the call in nth or times. */
static bool hit(const char *name)
{
	unsigned long flags;
	bool yes = false;

	spin_lock_irqsave(&lock, flags);
	if (nth > 0 && sysfs_streq(verb, name)) {
		if (nth == 1) {
			yes = true;
			if (--times <= 0)
				nth = 0;
		} else {
			nth--;
		}
	}
	spin_unlock_irqrestore(&lock, flags);
	return yes;
}

/* Ends a wrapper without calling the driver if this call must fail or be swallowed. */
#define HIT_RETURNS(name) do {					\
	if (hit(name))						\
		return swallow ? 0 : -errno_value;		\
} while (0)

/* A queue pair that was created while this module was loaded, for the parameter kill. */
struct known_qp {
	struct list_head entry;
	struct ib_qp *qp;
};

static LIST_HEAD(qps);
static DEFINE_XARRAY(draining);	/* queue pairs that callers moved to the error state */
static DEFINE_MUTEX(qps_lock);

static int fault_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct known_qp *known;
	int ret;

	HIT_RETURNS("create_qp");
	known = kzalloc(sizeof(*known), GFP_KERNEL);
	if (!known)
		return -ENOMEM;
	known->qp = qp;
	ret = real.create_qp(qp, attr, udata);
	if (ret) {
		kfree(known);
		return ret;
	}
	mutex_lock(&qps_lock);
	list_add(&known->entry, &qps);
	mutex_unlock(&qps_lock);
	return 0;
}

static int fault_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	struct known_qp *known, *next;

	mutex_lock(&qps_lock);
	list_for_each_entry_safe(known, next, &qps, entry) {
		if (known->qp != qp)
			continue;
		list_del(&known->entry);
		kfree(known);
	}
	mutex_unlock(&qps_lock);
	xa_erase(&draining, qp->qp_num);
	return real.destroy_qp(qp, udata);
}

static int fault_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			   struct ib_udata *udata)
{
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR)
		xa_store(&draining, qp->qp_num, qp, GFP_KERNEL);
	else
		HIT_RETURNS("modify_qp");
	return real.modify_qp(qp, attr, mask, udata);
}

static int fault_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	HIT_RETURNS("alloc_pd");
	return real.alloc_pd(pd, udata);
}

static int fault_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			   struct uverbs_attr_bundle *attrs)
{
	struct ib_cq_init_attr less = *attr;

	HIT_RETURNS("create_cq");
	if (cqe_max && less.cqe > cqe_max)
		less.cqe = cqe_max;
	return real.create_cq(cq, &less, attrs);
}

static struct ib_mr *fault_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	if (hit("alloc_mr"))
		return ERR_PTR(-errno_value);
	return real.alloc_mr(pd, type, max_num_sg);
}

static int fault_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int nents,
			   unsigned int *offset)
{
	HIT_RETURNS("map_mr_sg");
	return real.map_mr_sg(mr, sg, nents, offset);
}

static int fault_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			   const struct ib_send_wr **bad)
{
	if (!xa_load(&draining, qp->qp_num) && hit("post_send")) {
		*bad = wr;
		return swallow ? 0 : -errno_value;
	}
	return real.post_send(qp, wr, bad);
}

static int fault_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			   const struct ib_recv_wr **bad)
{
	if (!xa_load(&draining, qp->qp_num) && hit("post_recv")) {
		*bad = wr;
		return swallow ? 0 : -errno_value;
	}
	return real.post_recv(qp, wr, bad);
}

/*
 * A write to the parameter kill. This function calls the driver, not fault_modify_qp(), so that
 * later posts to the killed queue pairs can still be made to fail.
 */
static int kill_set(const char *value, const struct kernel_param *param)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct known_qp *known;
	int count = 0;

	mutex_lock(&qps_lock);
	list_for_each_entry(known, &qps, entry)
		if (!real.modify_qp(known->qp, &attr, IB_QP_STATE, NULL))
			count++;
	mutex_unlock(&qps_lock);
	pr_info("verbfault: %d queue pairs to the error state\n", count);
	return 0;
}

static const struct kernel_param_ops kill_ops = { .set = kill_set };
module_param_cb(kill, &kill_ops, NULL, 0200);

/*
 * Takes a reference on the device with the right name. Always returns an error, so that ib_core
 * does not call this client for the device again.
 */
static int find_device(struct ib_device *ib)
{
	if (!dev && !strcmp(dev_name(&ib->dev), device) && ib_device_try_get(ib))
		dev = ib;
	return -EOPNOTSUPP;
}

static struct ib_client finder = {
	.name	= "verbfault",
	.add	= find_device,
};

static int __init verbfault_init(void)
{
	int err = ib_register_client(&finder);	/* calls find_device() for each device */

	if (err)
		return err;
	ib_unregister_client(&finder);
	if (!dev)
		return -ENODEV;
	real = dev->ops;
	dev->ops.create_qp = fault_create_qp;
	dev->ops.destroy_qp = fault_destroy_qp;
	dev->ops.modify_qp = fault_modify_qp;
	dev->ops.alloc_pd = fault_alloc_pd;
	dev->ops.create_cq = fault_create_cq;
	dev->ops.alloc_mr = fault_alloc_mr;
	dev->ops.map_mr_sg = fault_map_mr_sg;
	dev->ops.post_send = fault_post_send;
	dev->ops.post_recv = fault_post_recv;
	return 0;
}

static void __exit verbfault_exit(void)
{
	struct known_qp *known, *next;

	dev->ops = real;
	/* Wrappers may still be running: allow time for their return, which is not checked. */
	synchronize_rcu();
	msleep(100);
	list_for_each_entry_safe(known, next, &qps, entry)
		kfree(known);
	xa_destroy(&draining);
	ib_device_put(dev);
}

module_init(verbfault_init);
module_exit(verbfault_exit);
MODULE_DESCRIPTION("Failing verbs, for tests");
MODULE_LICENSE("GPL");
