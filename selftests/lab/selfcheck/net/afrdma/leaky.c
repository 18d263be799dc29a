// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * A replacement for afrdma.ko that misbehaves on request, to test that the lab detects it. The name
 * of a fault is written to /sys/module/afrdma/parameters/fault.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#define CREATE_TRACE_POINTS
#include "trace.h"

static struct ib_device *device;
static struct ib_pd *pd;
static struct kmem_cache *cache;
static void *kept;
static DEFINE_MUTEX(outer);
static DEFINE_MUTEX(inner);
static DEFINE_SPINLOCK(spin);

/* Leaks an object, which kmemleak must report. */
static void lose_memory(void)
{
	void *volatile lost = kmalloc(200, GFP_KERNEL);

	lost = NULL;
}

/* Traces two connections as created and one as destroyed, which the lab must detect. */
static void lose_conn(void)
{
	trace_afrdma_conn_create(1);
	trace_afrdma_conn_create(2);
	trace_afrdma_conn_destroy(1);
}

/* Keeps an object until the module is unloaded, which the slab count after the test must show. */
static void keep_object(void)
{
	kept = kmem_cache_alloc(cache, GFP_KERNEL);
}

/* Keeps an RDMA object, which the count of RDMA objects after the test must show. */
static void keep_pd(void)
{
	pd = ib_alloc_pd(device, 0);
}

/* Takes a module reference, so that rmmod fails. */
static void keep_reference(void)
{
	__module_get(THIS_MODULE);
}

static void warn(void)
{
	WARN_ON(1);
}

/* Reads beyond an object, which KASAN must report. */
static void read_beyond(void)
{
	volatile char *p = kmalloc(100, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(p);
	if (p)
		(void)p[104];
	kfree((void *)p);
}

/* Takes two locks in both orders. In one thread this is harmless, but lockdep must report it. */
static void order_locks(void)
{
	mutex_lock(&outer);
	mutex_lock(&inner);
	mutex_unlock(&inner);
	mutex_unlock(&outer);
	mutex_lock(&inner);
	mutex_lock(&outer);
	mutex_unlock(&outer);
	mutex_unlock(&inner);
}

/* Calls might_sleep() under a spinlock. */
static void sleep_atomic(void)
{
	spin_lock(&spin);
	might_sleep();
	spin_unlock(&spin);
}

static const struct {
	const char *name;
	void (*commit)(void);
} faults[] = {
	{ "memory", lose_memory },
	{ "trace", lose_conn },
	{ "slab", keep_object },
	{ "pd", keep_pd },
	{ "reference", keep_reference },
	{ "warn", warn },
	{ "kasan", read_beyond },
	{ "lockdep", order_locks },
	{ "sleep", sleep_atomic },
};

static int fault_set(const char *val, const struct kernel_param *kp)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		if (sysfs_streq(val, faults[i].name)) {
			faults[i].commit();
			return 0;
		}
	}
	return -EINVAL;
}

static const struct kernel_param_ops fault_ops = { .set = fault_set };
module_param_cb(fault, &fault_ops, NULL, 0200);

static int leaky_add(struct ib_device *dev)
{
	device = dev;
	return 0;
}

static void leaky_remove(struct ib_device *dev, void *data)
{
	if (!IS_ERR_OR_NULL(pd))
		ib_dealloc_pd(pd);
	pd = NULL;
}

static struct ib_client client = {
	.name = "afrdma",
	.add = leaky_add,
	.remove = leaky_remove,
};

static int __init leaky_init(void)
{
	int rc;

	cache = kmem_cache_create("afrdma_conn", 256, 0, 0, NULL);
	if (!cache)
		return -ENOMEM;
	rc = ib_register_client(&client);
	if (rc)
		kmem_cache_destroy(cache);
	return rc;
}

static void __exit leaky_exit(void)
{
	ib_unregister_client(&client);
	if (kept)
		kmem_cache_free(cache, kept);
	kmem_cache_destroy(cache);
}

module_init(leaky_init);
module_exit(leaky_exit);
MODULE_DESCRIPTION("misbehaves on request, to test the lab");
MODULE_LICENSE("GPL");
