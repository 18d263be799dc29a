// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Reports RDMA devices that are added, or can be used by another network namespace because an
 * interface with one of its GIDs was moved there. The ib_client of this file is registered after
 * the ib_clients of device.c and rdma_cm, so both know a new device before arrival_came() is
 * called.
 */
#include "arrival.h"

#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

static void (*arrival_came)(void);

static void devices_added(struct work_struct *work)
{
	arrival_came();
}

static DECLARE_WORK(arrival_work, devices_added);

static void device_event(struct ib_event_handler *handler, struct ib_event *event)
{
	if (event->event == IB_EVENT_GID_CHANGE)
		schedule_work(&arrival_work);
}

static struct ib_client arrival_client;

/* The RDMA core holds locks during this call, so arrival_came() is called by a worker. */
static int add_device(struct ib_device *ib)
{
	struct ib_event_handler *events = kzalloc(sizeof(*events), GFP_KERNEL);

	if (!events)
		return -ENOMEM;
	INIT_IB_EVENT_HANDLER(events, ib, device_event);
	ib_set_client_data(ib, &arrival_client, events);
	ib_register_event_handler(events);
	schedule_work(&arrival_work);
	return 0;
}

static void remove_device(struct ib_device *ib, void *client_data)
{
	struct ib_event_handler *events = client_data;

	ib_unregister_event_handler(events);
	kfree(events);
}

static struct ib_client arrival_client = {
	.name	= "afrdma_arrival",
	.add	= add_device,
	.remove	= remove_device,
};

/**
 * afr_arrival_init() - start to report added RDMA devices
 * @came: called from a work item after devices were added, perhaps once for several; also for
 *	devices that existed before this call. It may run until afr_arrival_exit() returns.
 *
 * Context: module load, after afr_link_init().
 * Return: 0 or a negative error.
 */
int afr_arrival_init(void (*came)(void))
{
	int err;

	arrival_came = came;
	err = ib_register_client(&arrival_client);
	if (err)	/* add_device() may already have queued the work */
		cancel_work_sync(&arrival_work);
	return err;
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
