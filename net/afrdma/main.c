// SPDX-License-Identifier: GPL-2.0
/* The table of contents: every layer comes up in order and goes down in reverse. */
#include <linux/init.h>
#include <linux/module.h>

#include "netns.h"
#include "sysctl.h"
#include "tcpopt.h"

static int __init afrdma_init(void)
{
	int err;

	err = afr_netns_init();
	if (err)
		return err;
	err = afr_tcpopt_init();
	if (err)
		goto netns;
	err = afr_sysctl_init();
	if (err)
		goto tcpopt;
	return 0;
tcpopt:
	afr_tcpopt_exit();
netns:
	afr_netns_exit();
	return err;
}

static void __exit afrdma_exit(void)
{
	afr_sysctl_exit();
	afr_tcpopt_exit();
	afr_netns_exit();
	/* Callbacks that live in this text have run (T19). */
	rcu_barrier();
}

module_init(afrdma_init);
module_exit(afrdma_exit);

MODULE_DESCRIPTION("AF_RDMA: TCP sockets that move their bytes by RDMA");
MODULE_LICENSE("GPL");
