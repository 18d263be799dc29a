// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Reports that RDMA devices were added, and that the GIDs of a device have changed: when a network
 * interface moves to another network namespace, so do its GIDs, and that namespace may then use the
 * device. The ib_client of this file is registered after the ib_clients of device.c and rdma_cm, so
 * both know a new device before arrival_came() is called.
 */
#include "arrival.h"
#include "compat.h"

#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

/* GIDs may change often, and each report walks over all connections. */
#define GIDS_WAIT	HZ

static void (*arrival_came)(bool added);

static void devices_added(struct work_struct *work)
{
	arrival_came(true);
}

static void gids_changed(struct work_struct *work)
{
	arrival_came(false);
}

static DECLARE_WORK(arrival_work, devices_added);
static DECLARE_DELAYED_WORK(gids_work, gids_changed);

static void device_event(struct ib_event_handler *handler, struct ib_event *event)
{
	if (event->event == IB_EVENT_GID_CHANGE)
		queue_delayed_work(system_dfl_wq, &gids_work, GIDS_WAIT);
}

static struct ib_client arrival_client;

/* The RDMA core holds locks during this call, so a work item calls arrival_came(). */
static int add_device(struct ib_device *ib)
{
	struct ib_event_handler *events = kzalloc_obj(*events);

	queue_work(system_dfl_wq, &arrival_work);
	if (!events)
		return -ENOMEM;
	INIT_IB_EVENT_HANDLER(events, ib, device_event);
	ib_set_client_data(ib, &arrival_client, events);
	ib_register_event_handler(events);
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

/* The ib_client may have queued work, even if its registration has failed. */
static void cancel(void)
{
	cancel_work_sync(&arrival_work);
	cancel_delayed_work_sync(&gids_work);
}

/**
 * afr_arrival_init() - start to report added RDMA devices and changed GIDs
 * @came: called from a work item: with true after devices were added, perhaps once for several,
 *	and also for devices that existed before this call; with false after GIDs have changed. It
 *	may run until afr_arrival_exit() returns.
 *
 * Context: module load, after afr_link_init().
 * Return: 0 or a negative error.
 */
int afr_arrival_init(void (*came)(bool added))
{
	int err;

	arrival_came = came;
	err = ib_register_client(&arrival_client);
	if (err)
		cancel();
	return err;
}

/**
 * afr_arrival_exit() - stop reporting added devices and changed GIDs
 *
 * Context: module exit.
 */
void afr_arrival_exit(void)
{
	ib_unregister_client(&arrival_client);
	cancel();
}
