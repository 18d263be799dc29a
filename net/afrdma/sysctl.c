// SPDX-License-Identifier: GPL-2.0
/*
 * net.afrdma.*: one row per setting, its bounds and what it does. The defaults
 * are in netns.c.
 */
#include <linux/init.h>
#include <linux/limits.h>
#include <linux/slab.h>
#include <linux/stddef.h>
#include <linux/sysctl.h>
#include <linux/user_namespace.h>

#include "compat.h"
#include "netns.h"
#include "sysctl.h"
#include "wire.h"

#define HOUR_MS	(60 * 60 * 1000)
#define DAY_MS	(24 * HOUR_MS)

/* .data is an offset here; each namespace gets a copy with addresses. */
#define SETTING_INT(field, low, high) {					\
	.procname	= #field,					\
	.data		= (void *)offsetof(struct afr_settings, field),	\
	.maxlen		= sizeof(int),					\
	.mode		= 0644,						\
	.proc_handler	= proc_dointvec_minmax,				\
	.extra1		= (void *)&(const int){ low },			\
	.extra2		= (void *)&(const int){ high },			\
}

/* A limit on memory of the machine: another user namespace may only read it. */
#define SETTING_PAGES(field) {						\
	.procname	= #field,					\
	.data		= (void *)offsetof(struct afr_settings, field),	\
	.maxlen		= sizeof(unsigned long),			\
	.mode		= 0644,						\
	.proc_handler	= proc_doulongvec_minmax,			\
}

static const struct ctl_table afr_settings_table[] = {
	/* 0: new connections are plain TCP, and those on RDMA leave it within a second. */
	SETTING_INT(enabled, 0, 1),
	/* 0: connections between two AF_RDMA ends stay on TCP, and those on RDMA leave it. */
	SETTING_INT(upgrade, 0, 1),
	/* Move to RDMA once this many bytes went in both directions together. */
	SETTING_INT(upgrade_bytes, 0, INT_MAX),
	/* Or once this many messages were sent. 0 in either: at once. */
	SETTING_INT(upgrade_msgs, 0, INT_MAX),
	/*
	 * How long a server waits for a silent client that asked for AF_RDMA before
	 * its output goes out raw. Below the 3000 of the protocol a lost packet is
	 * enough to lose RDMA; short values are for tests.
	 */
	SETTING_INT(hello_timeout_ms, 100, DAY_MS),
	/* How long link set-up and the answer to ATTACH may take. */
	SETTING_INT(attach_timeout_ms, 100, DAY_MS),
	/*
	 * How long a connection stays on TCP when links fail again and again: so long
	 * the first time, twice as long each further time, at most 64 times as long.
	 */
	SETTING_INT(attach_retry_ms, 1, HOUR_MS),
	/*
	 * How long a peer may keep a ring after the end before its key is taken away; or, where
	 * the connection is to go on by TCP or our own last word is not through, its link.
	 */
	SETTING_INT(detach_timeout_ms, 100, DAY_MS),
	/* How long a closed connection lives whose peer takes nothing of its last bytes. */
	SETTING_INT(orphan_timeout_ms, 100, DAY_MS),
	/*
	 * How often the server of a connection on RDMA says a word by TCP, so that firewalls and
	 * NAT on the way do not take the connection for idle and forget it. 0: never.
	 */
	SETTING_INT(keepalive_ms, 0, DAY_MS),
	/* A link in use whose peer answers nothing for so long is lost; probes see to it. */
	SETTING_INT(link_timeout_ms, 100, DAY_MS),
	/* How long a link without connections is kept for the next one. */
	SETTING_INT(link_linger_ms, 0, DAY_MS),
	/*
	 * Links to one peer over one device; connections are spread over them. There is one
	 * more for each 4 * link_depth connections, up to 16, if that makes more.
	 */
	SETTING_INT(links_per_group, 1, 16),
	/* Connections on one link; more go to another link, or stay on TCP. */
	SETTING_INT(conns_per_link, 1, 65520),
	/* Peers that links may lead to; connections to others stay on TCP. */
	SETTING_INT(groups_max, 0, 65536),
	/* Links that peers ask for and that nobody has answered yet. */
	SETTING_INT(link_requests_max, 0, 4096),
	/* Connections that may be moving to RDMA at the same time; others wait on TCP. */
	SETTING_INT(attaches_max, 0, INT_MAX),
	/*
	 * Closed connections that may still deliver; one more is reset. All namespaces
	 * together have those of the module's orphans_max.
	 */
	SETTING_INT(orphans_max, 0, INT_MAX),
	/* Receives posted per link: bounds writes in flight from the peer. */
	SETTING_INT(link_depth, 16, 4096),
	/* Send ring of a new socket in bytes, until SO_SNDBUF says otherwise. */
	SETTING_INT(sndbuf, AFR_RING_MIN, AFR_RING_MAX),
	/* Receive ring of a new socket in bytes, until SO_RCVBUF says otherwise. */
	SETTING_INT(rcvbuf, AFR_RING_MIN, AFR_RING_MAX),
	/* Largest ring that SO_SNDBUF or SO_RCVBUF may ask for, in bytes. */
	SETTING_INT(ring_max, AFR_RING_MIN, AFR_RING_MAX),
	/*
	 * 1: for a moment after a short message that somebody waits for, bulk of other
	 * connections of its link leaves room. 0: it does not.
	 */
	SETTING_INT(pacing, 0, 1),
	/*
	 * Who may create sockets. 1: everybody, so that programs just work. 0: only
	 * with CAP_NET_RAW, for machines whose policy relies on LSM rules about
	 * TCP connect and bind: those do not see sockets of this family.
	 */
	SETTING_INT(unprivileged, 0, 1),
	/* Pages of ring memory of this namespace, but for 16 KiB that each ring may have. */
	SETTING_PAGES(mem_max),
};

static bool setting_is_machine_limit(const struct ctl_table *row)
{
	return row->proc_handler == proc_doulongvec_minmax;
}

static int __net_init sysctl_enter(struct net *net)
{
	struct afr_net *an = afr_net(net);
	struct ctl_table *table, *row;

	/* One more row, empty: the end mark of older kernels. */
	table = kcalloc(ARRAY_SIZE(afr_settings_table) + 1, sizeof(*table), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	memcpy(table, afr_settings_table, sizeof(afr_settings_table));
	for (row = table; row < table + ARRAY_SIZE(afr_settings_table); row++) {
		row->data = (u8 *)&an->set + (unsigned long)row->data;
		if (setting_is_machine_limit(row) && net->user_ns != &init_user_ns)
			row->mode = 0444;
	}
	an->sysctl = afr_register_net_sysctl(net, "net/afrdma", table,
					     ARRAY_SIZE(afr_settings_table));
	if (!an->sysctl) {
		kfree(table);
		return -ENOMEM;
	}
	return 0;
}

static void __net_exit sysctl_leave(struct net *net)
{
	struct afr_net *an = afr_net(net);
	afr_ctl_table *table = an->sysctl->ctl_table_arg;

	unregister_net_sysctl_table(an->sysctl);
	an->sysctl = NULL;
	kfree(table);
}

static struct pernet_operations afr_sysctl_ops = {
	.init	= sysctl_enter,
	.exit	= sysctl_leave,
};

/**
 * afr_sysctl_init() - show the settings under net.afrdma in every namespace
 *
 * Context: Module load, after afr_netns_init().
 * Return: 0 or a negative error.
 */
int __init afr_sysctl_init(void)
{
	return register_pernet_subsys(&afr_sysctl_ops);
}

/**
 * afr_sysctl_exit() - take the settings away
 *
 * Context: Module exit, before afr_netns_exit().
 */
void afr_sysctl_exit(void)
{
	unregister_pernet_subsys(&afr_sysctl_ops);
}
