// SPDX-License-Identifier: GPL-2.0
/*
 * Notification of added RDMA devices, by an ib_client of its own. It is registered after those of
 * device.c and rdma_cm, so these already know a device when the callback runs.
 */
#include "arrival.h"

#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

static void (*arrival_came)(void);

static void tell(struct work_struct *work)
{
	arrival_came();
}

static DECLARE_WORK(arrival_work, tell);

/* Called with locks of the RDMA core held, so the callback runs in a worker. */
static int add_device(struct ib_device *ib)
{
	schedule_work(&arrival_work);
	return 0;
}

static struct ib_client arrival_client = {
	.name	= "afrdma_arrival",
	.add	= add_device,
};

/**
 * afr_arrival_init() - start to report added RDMA devices
 * @came: called in a worker, once for several devices that are added together; also for devices
 *	that exist already. It may run until afr_arrival_exit() returns.
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
 * afr_arrival_exit() - stop reporting added devices
 *
 * Context: module exit.
 */
void afr_arrival_exit(void)
{
	ib_unregister_client(&arrival_client);
	cancel_work_sync(&arrival_work);
}
