// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The sysctls net.afrdma.*: a table with a row per setting, its bounds, and the text for
 * administrators. The defaults are in netns.c.
 */
#include <linux/init.h>
#include <linux/limits.h>
#include <linux/slab.h>
#include <linux/stddef.h>
#include <linux/sysctl.h>
#include <linux/user_namespace.h>

#include "compat.h"
#include "netns.h"
#include "proto/wire.h"
#include "sysctl.h"

#define HOUR_MS	(60 * 60 * 1000)
#define DAY_MS	(24 * HOUR_MS)

/*
 * .data is an offset into struct afr_settings. Each namespace has a copy of the table, with
 * addresses instead of offsets.
 */
#define SETTING_INT(field, low, high) {					\
	.procname	= #field,					\
	.data		= (void *)offsetof(struct afr_settings, field),	\
	.maxlen		= sizeof(int),					\
	.mode		= 0644,						\
	.proc_handler	= proc_dointvec_minmax,				\
	.extra1		= (void *)&(const int){ low },			\
	.extra2		= (void *)&(const int){ high },			\
}

/* A limit on the memory of the machine: read-only outside the initial user namespace. */
#define SETTING_PAGES(field) {						\
	.procname	= #field,					\
	.data		= (void *)offsetof(struct afr_settings, field),	\
	.maxlen		= sizeof(unsigned long),			\
	.mode		= 0644,						\
	.proc_handler	= proc_doulongvec_minmax,			\
}

static const struct ctl_table afr_settings_table[] = {
	/*
	 * 1: sockets use AF_RDMA where the peer does, if the setting was 1 already at connect()
	 * or listen(). 0: new connections use TCP without AF_RDMA, and connections on RDMA return
	 * to TCP within a second. 0 in the initial network namespace applies to all namespaces.
	 */
	SETTING_INT(enabled, 0, 1),
	/*
	 * 1: connections with an AF_RDMA peer may move to RDMA. 0: they stay on TCP, and those
	 * on RDMA return to TCP within a second.
	 */
	SETTING_INT(upgrade, 0, 1),
	/*
	 * A client starts to move a connection to RDMA when this many bytes were sent and
	 * received in all, or when upgrade_msgs is reached. 0: at once.
	 */
	SETTING_INT(upgrade_bytes, 0, INT_MAX),
	/*
	 * A client starts to move a connection to RDMA when this many messages were sent, or
	 * when upgrade_bytes is reached. 0: at once.
	 */
	SETTING_INT(upgrade_msgs, 0, INT_MAX),
	/*
	 * Time in milliseconds, counted from accept(), that a server waits for the HELLO of a
	 * client that offered AF_RDMA. If by then only a part of HELLO has arrived, the connection
	 * is reset. If nothing has arrived, and the server has bytes or the end of its stream to
	 * send, it sends them by TCP without AF_RDMA framing, and the connection stays on TCP. If
	 * it has nothing to send, the time starts again. With less than the default of 3000, one
	 * lost packet can be enough for a connection to stay on TCP: smaller values are for tests.
	 */
	SETTING_INT(hello_timeout_ms, 100, DAY_MS),
	/*
	 * Time in milliseconds that the set-up of a link may take, and that a server which has
	 * received ATTACH waits until its end of the link is up. A client that has waited so long
	 * for the answer to ATTACH no longer counts against attaches_max, but still moves to RDMA
	 * when the answer comes.
	 */
	SETTING_INT(attach_timeout_ms, 100, DAY_MS),
	/*
	 * Time in milliseconds until a client tries again to move a connection to RDMA after an
	 * attempt has failed or a link was lost. It doubles each time, up to 64 times this value,
	 * and starts anew after ten seconds on a link. The first lost link is replaced at once, if
	 * no attempt has failed before.
	 */
	SETTING_INT(attach_retry_ms, 1, HOUR_MS),
	/*
	 * Time in milliseconds that a connection which leaves its link waits for the peer to
	 * leave it, too (DETACH). After that, the link is closed if the connection's own DETACH
	 * was not acknowledged. Otherwise, an ended connection revokes the peer's access to its
	 * ring, and one that is to continue on TCP closes the link; but a server first waits
	 * until the client's TCP has acknowledged ATTACHED. A client that ends before ATTACH is
	 * answered waits up to twice as long, and does not close the link.
	 */
	SETTING_INT(detach_timeout_ms, 100, DAY_MS),
	/*
	 * Time in milliseconds after which a closed connection that still has bytes to deliver is
	 * reset. If the peer has taken some of them meanwhile, the time starts again instead.
	 */
	SETTING_INT(orphan_timeout_ms, 100, DAY_MS),
	/*
	 * Interval in milliseconds at which the server of a connection on RDMA sends a frame by
	 * TCP, so that firewalls and NAT on the path do not drop the TCP connection as idle. 0:
	 * never.
	 */
	SETTING_INT(keepalive_ms, 0, DAY_MS),
	/*
	 * Time in milliseconds after which a link in use counts as lost if nothing arrives from
	 * the peer. Within that time, probes are sent on a silent link.
	 */
	SETTING_INT(link_timeout_ms, 100, DAY_MS),
	/*
	 * Time in milliseconds that a link is kept while no connection uses it; at least
	 * attach_timeout_ms, if none has used it yet. The end that accepted the link waits twice
	 * as long.
	 */
	SETTING_INT(link_linger_ms, 0, DAY_MS),
	/*
	 * Number of links to which a link group (one pair of addresses) grows, one link at a time;
	 * connections are distributed over them. If 1 + connections / (4 * link_depth) is larger,
	 * the group grows to that number instead, but not above 16.
	 */
	SETTING_INT(links_per_group, 1, 16),
	/* Maximum number of connections on one link. Others use another link or stay on TCP. */
	SETTING_INT(conns_per_link, 1, 65520),
	/*
	 * Maximum number of link groups. In the initial network namespace it is also the maximum
	 * for all namespaces together, of which the others get at most half. A pair of a local and
	 * a peer address normally has one group for each traffic class. After each reload of the
	 * peer's module it has one more for a while, but never more than 8 in all. A connection
	 * that needs a new group stays on TCP if its pair has 8 groups, if this maximum is reached,
	 * or if the peer's IPv6 /64 already has at least as many groups as can still be created
	 * before the maximum is reached.
	 */
	SETTING_INT(groups_max, 0, 65536),
	/*
	 * Maximum number of link requests of peers that are being processed. Further requests
	 * are rejected.
	 */
	SETTING_INT(link_requests_max, 0, 4096),
	/*
	 * Maximum number of connections that are moving to RDMA at the same time. Others stay on
	 * TCP and try again later.
	 */
	SETTING_INT(attaches_max, 0, INT_MAX),
	/*
	 * Maximum number of closed connections that still deliver bytes. A second limit of the
	 * same size holds for closed connections that have delivered all and wait for the end of
	 * the peer's stream. A connection beyond its limit is reset. Of each limit, one user may
	 * have at most four fifths. The module parameter orphans_max limits all network namespaces
	 * together.
	 */
	SETTING_INT(orphans_max, 0, INT_MAX),
	/*
	 * Number of receives posted per link, which limits how many messages the peer can have
	 * in flight. It is rounded down to a power of two and to the limits of the device. The
	 * value of the initial network namespace limits that of the others.
	 */
	SETTING_INT(link_depth, 16, 4096),
	/*
	 * Size in bytes of the send ring of a connection, unless the program sets SO_SNDBUF or
	 * AFRDMA_SNDRING. It is rounded up to a power of two, and down to what every device can
	 * register. While there are many connections or little memory for rings, it is reduced, to
	 * 262144 at the least.
	 */
	SETTING_INT(sndbuf, AFR_RING_MIN, AFR_RING_MAX),
	/*
	 * Size in bytes of the receive ring of a connection, unless the program sets SO_RCVBUF or
	 * AFRDMA_RCVRING. Rounded and reduced like sndbuf.
	 */
	SETTING_INT(rcvbuf, AFR_RING_MIN, AFR_RING_MAX),
	/*
	 * Maximum size in bytes of a send or receive ring. With a larger SO_SNDBUF or SO_RCVBUF
	 * the ring gets no larger; a larger AFRDMA_SNDRING or AFRDMA_RCVRING is refused.
	 */
	SETTING_INT(ring_max, AFR_RING_MIN, AFR_RING_MAX),
	/*
	 * 1: for 100 milliseconds after a short, latency-sensitive message, other connections on
	 * its link limit the bulk data that they have in flight. 0: they do not.
	 */
	SETTING_INT(pacing, 0, 1),
	/*
	 * Who may create AF_RDMA sockets. 1: every user. 0: only processes with CAP_NET_RAW. Set 0
	 * where a security module has rules for TCP connect() and bind() on which the machine
	 * relies: these rules do not apply to this family. 0 in the initial network namespace
	 * applies to all namespaces.
	 */
	SETTING_INT(unprivileged, 0, 1),
	/*
	 * Maximum number of pages of ring memory in this network namespace: three quarters for
	 * connections on RDMA, a quarter for those on TCP. Each ring on TCP gets its first 16 KiB
	 * (at least a page) even beyond this limit.
	 */
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

	/* one more row stays empty: it marks the end of the table in older kernels */
	table = kcalloc(ARRAY_SIZE(afr_settings_table) + 1, sizeof(*table), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	memcpy(table, afr_settings_table, sizeof(afr_settings_table));
	for (row = table; row < table + ARRAY_SIZE(afr_settings_table); row++) {
		row->data = (u8 *)&an->set + (unsigned long)row->data;
		if (setting_is_machine_limit(row) && net->user_ns != &init_user_ns)
			row->mode = 0444;
	}
	an->sysctl = register_net_sysctl_sz(net, "net/afrdma", table,
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
	const struct ctl_table *table = an->sysctl->ctl_table_arg;

	unregister_net_sysctl_table(an->sysctl);
	an->sysctl = NULL;
	kfree(table);
}

static struct pernet_operations afr_sysctl_ops = {
	.init	= sysctl_enter,
	.exit	= sysctl_leave,
};

/**
 * afr_sysctl_init() - register net.afrdma.* in every network namespace
 *
 * Context: Module load, after afr_netns_init().
 * Return: 0 or a negative error.
 */
int __init afr_sysctl_init(void)
{
	return register_pernet_subsys(&afr_sysctl_ops);
}

/**
 * afr_sysctl_exit() - unregister net.afrdma.*
 *
 * Context: Module exit, or a module load that fails; before afr_netns_exit().
 */
void afr_sysctl_exit(void)
{
	unregister_pernet_subsys(&afr_sysctl_ops);
}
