// SPDX-License-Identifier: GPL-2.0
/* RDMA devices that come. */
#include "arrival.h"

#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

static void (*arrival_came)(void);

static void tell(struct work_struct *work)
{
	arrival_came();
}

static DECLARE_WORK(arrival_work, tell);

/* In here the core holds locks. */
static int add_device(struct ib_device *ib)
{
	schedule_work(&arrival_work);
	return 0;
}

/* Registered behind dev.c and rdma_cm, and so told after them. */
static struct ib_client arrival_client = {
	.name	= "afrdma_arrival",
	.add	= add_device,
};

/**
 * afr_arrival_init() - learn of devices that come
 * @came: told in a worker, once for several that come together; also of those that are there
 *
 * Context: module load, after afr_link_init().
 * Return: 0 or a negative error.
 */
int afr_arrival_init(void (*came)(void))
{
	arrival_came = came;
	return ib_register_client(&arrival_client);
}

/**
 * afr_arrival_exit() - no more
 *
 * Context: module exit.
 */
void afr_arrival_exit(void)
{
	ib_unregister_client(&arrival_client);
	cancel_work_sync(&arrival_work);
}
