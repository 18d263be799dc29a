/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RDMA devices: an ib_client with one object per device that says whether the
 * device is going away and waits until its last user has left (B12).
 */
#ifndef AFR_DEV_H
#define AFR_DEV_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "reason.h"

struct afr_device;

/* A reference on the object of @ibdev; NULL if it is unknown or going away. Process context. */
struct afr_device *afr_device_get(struct ib_device *ibdev);
/* Process context. */
void afr_device_put(struct afr_device *dev);
bool afr_device_dead(const struct afr_device *dev);
struct ib_device *afr_device_ib(const struct afr_device *dev);

struct afr_device_info {
	char	name[IB_DEVICE_NAME_MAX];
	bool	iwarp;
	bool	usable;		/* FRWR */
	enum afr_reason reason;	/* why not */
	u32	ring_max;	/* largest mirrored ring */
	u32	max_qp_wr, max_cqe;
	u32	links;		/* of ours */
};

void afr_device_info(const struct afr_device *dev, struct afr_device_info *info);
/* The largest ring that every usable device maps mirrored; U32_MAX without any. Any context. */
u32 afr_device_ring_max(void);
/*
 * Visit every device until @fn returns non-zero, and return that. @fn may sleep,
 * and calls nothing of this file.
 */
int afr_device_for_each(int (*fn)(const struct afr_device_info *info, void *arg), void *arg);

/* Upcalls to the link layer. Process context. */
struct afr_device_ops {
	/*
	 * The device goes away, or (port_num > 0) that port of it went down: get rid
	 * of every link on it. A device is released when all references are gone.
	 */
	void (*lost)(struct afr_device *dev, u32 port_num, enum afr_reason reason);
};

int afr_device_init(const struct afr_device_ops *ops);
void afr_device_exit(void);

#endif /* AFR_DEV_H */
