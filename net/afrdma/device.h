/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * An object for each RDMA device, which counts the users of the device and knows whether it is
 * being removed. Removal waits until the last reference is dropped (B12).
 */
#ifndef AFR_DEVICE_H
#define AFR_DEVICE_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "proto/reason.h"

struct afr_device;

struct afr_device *afr_device_get(struct ib_device *ibdev);
void afr_device_put(struct afr_device *dev);
bool afr_device_removing(const struct afr_device *dev);
struct ib_device *afr_device_ib(const struct afr_device *dev);

struct afr_device_info {
	char	name[IB_DEVICE_NAME_MAX];
	bool	iwarp;
	bool	usable;		/* serves the namespace, and can register mirrored rings by FRWR */
	enum afr_reason reason;	/* why it is not usable */
	u32	ring_max;	/* largest ring that it can map mirrored, bytes */
	u32	max_qp_wr, max_cqe;
	u32	links;		/* references on the device, without that of the ib_client */
};

void afr_device_info(const struct afr_device *dev, const struct net *net,
		     struct afr_device_info *info);
u32 afr_device_ring_max(void);
bool afr_device_within(const struct afr_device *dev, u32 port, const struct net *net);
bool afr_device_any(const struct net *net);
bool afr_device_any_iwarp(void);
int afr_device_for_each(const struct net *net,
			int (*fn)(const struct afr_device_info *info, void *arg), void *arg);

/* Upcalls to link.c. Process context. */
struct afr_device_ops {
	/*
	 * The device is being removed or has failed (@port_num is 0), or its port @port_num went
	 * down: fail every link on that device or port. Removal waits until all references are
	 * dropped.
	 */
	void (*lost)(struct afr_device *dev, u32 port_num, enum afr_reason reason);
};

int afr_device_init(const struct afr_device_ops *ops);
void afr_device_exit(void);

#endif /* AFR_DEVICE_H */
