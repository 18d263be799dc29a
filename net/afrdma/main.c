// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Module load and exit: what others use comes first, the address family last; exit in reverse. */
#include <linux/init.h>
#include <linux/module.h>
#include <uapi/linux/af_rdma.h>

#include "arrival.h"
#include "conn.h"
#include "group.h"
#include "handshake.h"
#include "handshake_hook.h"
#include "link.h"
#include "move.h"
#include "netlink.h"
#include "netns.h"
#include "ring_mem.h"
#include "route.h"
#include "sock.h"
#include "sysctl.h"
#include "test/byzantine.h"

static int __init afrdma_init(void)
{
	int err;

	afr_ring_mem_setup();
	afr_byzantine_init();
	err = afr_netns_init();
	if (err)
		return err;
	err = afr_link_init();
	if (err)
		goto netns;
	err = afr_group_init();
	if (err)
		goto link;
	err = afr_conn_init();
	if (err)
		goto group;
	err = afr_arrival_init(afr_move_device_added);
	if (err)
		goto conn;
	err = afr_handshake_hook_init();
	if (err)
		goto arrival;
	err = afr_sysctl_init();
	if (err)
		goto tcpopt;
	err = afr_netlink_init(afr_sock_family());
	if (err)
		goto sysctl;
	err = afr_sock_init();
	if (err)
		goto netlink;
	return 0;
netlink:
	afr_netlink_exit();
sysctl:
	afr_sysctl_exit();
tcpopt:
	afr_handshake_hook_exit();
arrival:
	afr_arrival_exit();
conn:
	afr_route_exit();
	afr_conn_exit();
group:
	afr_group_exit();
link:
	afr_link_exit();
netns:
	afr_netns_exit();
	return err;
}

/*
 * There is no AF_RDMA socket any more, and no connection with an active reference, because each of
 * them holds a reference on the module. Links may linger.
 */
static void __exit afrdma_exit(void)
{
	afr_sock_exit();
	afr_netlink_exit();
	afr_sysctl_exit();
	afr_handshake_hook_exit();
	afr_arrival_exit();
	afr_route_exit();
	afr_conn_exit();
	afr_group_exit();
	afr_link_exit();
	/* for RCU callbacks that run code of this module (T19); today none can be pending here */
	rcu_barrier();
	afr_netns_exit();
}

module_init(afrdma_init);
module_exit(afrdma_exit);

MODULE_DESCRIPTION("AF_RDMA: TCP sockets that move their bytes by RDMA");
MODULE_AUTHOR("AF_RDMA maintainers");
MODULE_VERSION(AFRDMA_VERSION);
MODULE_LICENSE("GPL");
