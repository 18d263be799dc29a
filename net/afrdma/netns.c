// SPDX-License-Identifier: GPL-2.0
/* Per network namespace: identity, settings and counters, from birth to death. */
#include <linux/cpumask.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/init.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <net/ipv6.h>

#include "netns.h"
#include "stats.h"

#define ORPHANS_MOST	262144		/* of the default, as TCP's */

unsigned int afr_net_id __read_mostly;

/* TCP keeps its own, net.ipv4.tcp_max_orphans, to itself. */
static int orphans_max;
module_param(orphans_max, int, 0644);
MODULE_PARM_DESC(orphans_max, "closed connections that still deliver, all namespaces together (default: one for 256 KiB of memory)");

static atomic_t all_orphans = ATOMIC_INIT(0);

/* Bounds and sentences are in sysctl.c. */
static const struct afr_settings afr_settings_default = {
	.enabled		= 1,
	.upgrade		= 1,
	.upgrade_bytes		= 65536,
	.upgrade_msgs		= 16,
	.hello_timeout_ms	= 3000,
	.attach_timeout_ms	= 5000,
	.attach_retry_ms	= 1000,
	.detach_timeout_ms	= 5000,
	.orphan_timeout_ms	= 300000,
	.keepalive_ms		= 120000,
	.link_timeout_ms	= 5000,
	.link_linger_ms		= 10000,
	.links_per_group	= 4,
	.conns_per_link		= 65520,
	.groups_max		= 1024,
	.link_requests_max	= 64,
	.attaches_max		= 4096,
	.orphans_max		= 8192,
	.link_depth		= 256,
	.sndbuf			= 1048576,
	.rcvbuf			= 1048576,
	.ring_max		= 1048576,
	.pacing			= 1,
	.unprivileged		= 1,
};

static void put_address(struct in6_addr *to, const struct sockaddr_storage *from)
{
	if (from->ss_family == AF_INET)
		ipv6_addr_set_v4mapped(((const struct sockaddr_in *)from)->sin_addr.s_addr, to);
	else
		*to = ((const struct sockaddr_in6 *)from)->sin6_addr;
}

/**
 * afr_net_secret() - what a peer must present when it connects a link to us
 * @an: our namespace
 * @instance: who the peer says it is
 * @local: our address
 * @remote: its address, IPv4 or IPv6; ports and scopes do not count
 * @secret: out, 16 bytes
 *
 * The secret is told over the TCP connection and never stored: it is derived from the
 * peer's name and both addresses, by a key that never leaves this namespace. So it is of
 * use only for links between the addresses that TCP has proved: who takes another host's
 * name does not get into its group.
 *
 * Context: Any.
 */
void afr_net_secret(struct afr_net *an, const u8 instance[16],
		    const struct sockaddr_storage *local, const struct sockaddr_storage *remote,
		    u8 secret[16])
{
	struct {
		u8 instance[16];
		struct in6_addr local, remote;
		u64 half;
	} __aligned(SIPHASH_ALIGNMENT) of = {};
	u64 out[2];

	memcpy(of.instance, instance, sizeof(of.instance));
	put_address(&of.local, local);
	put_address(&of.remote, remote);
	for (of.half = 0; of.half < ARRAY_SIZE(out); of.half++)
		out[of.half] = siphash(&of, sizeof(of), &an->secret_key);
	memcpy(secret, out, sizeof(out));
}

/**
 * afr_net_take() - one more of what is limited
 * @an: our namespace
 * @count: how many there are; the caller decrements it when this one is gone
 * @most: how many there may be
 *
 * Context: Any.
 * Return: true; false, and nothing is taken but the counter of refusals moved.
 */
bool afr_net_take(struct afr_net *an, atomic_t *count, int most)
{
	if (atomic_inc_return(count) <= most)
		return true;
	atomic_dec(count);
	afr_stat_inc(an->net, AFR_STAT_OVER_LIMIT);
	return false;
}

/**
 * afr_net_take_orphan() - one more closed connection that is kept
 * @an: its namespace
 * @count: those of it that still deliver, or those that have
 *
 * Whoever makes namespaces gets no more of them by that: they count for the machine, too.
 *
 * Context: Any.
 * Return: as afr_net_take().
 */
bool afr_net_take_orphan(struct afr_net *an, atomic_t *count)
{
	if (!afr_net_take(an, &all_orphans, READ_ONCE(orphans_max)))
		return false;
	if (afr_net_take(an, count, READ_ONCE(an->set.orphans_max)))
		return true;
	atomic_dec(&all_orphans);
	return false;
}

/**
 * afr_net_give_orphan() - a closed connection is gone, or counts as another kind
 * @count: as it was taken
 *
 * Context: Any.
 */
void afr_net_give_orphan(atomic_t *count)
{
	atomic_dec(count);
	atomic_dec(&all_orphans);
}

static int __net_init netns_enter(struct net *net)
{
	struct afr_net *an = afr_net(net);

	an->stats = alloc_percpu(struct afr_stats);
	if (!an->stats)
		return -ENOMEM;
	an->net = net;
	an->set = afr_settings_default;
	an->set.links_per_group = min_t(int, 4, num_online_cpus());
	an->set.mem_max = totalram_pages() / 8;
	get_random_bytes(an->instance, sizeof(an->instance));
	get_random_bytes(&an->secret_key, sizeof(an->secret_key));
	mutex_init(&an->lock);
	return 0;
}

static void __net_exit netns_leave(struct net *net)
{
	struct afr_net *an = afr_net(net);

	/* Sockets hold the namespace, and rings end before their sockets do. */
	WARN_ON_ONCE(atomic_long_read(&an->ring_pages) ||
		     atomic_long_read(&an->ring_promised) || atomic_read(&an->rings) ||
		     atomic_read(&an->attaching) ||
		     atomic_read(&an->orphans) || atomic_read(&an->orphans_done) ||
		     atomic_read(&an->link_requests));
	free_percpu(an->stats);
}

static struct pernet_operations afr_netns_ops = {
	.init	= netns_enter,
	.exit	= netns_leave,
	.id	= &afr_net_id,
	.size	= sizeof(struct afr_net),
};

/**
 * afr_netns_init() - make afr_net() work
 *
 * Context: Module load.
 * Return: 0 or a negative error.
 */
int __init afr_netns_init(void)
{
	afr_stats_init();
	if (!orphans_max)
		orphans_max = min_t(u64, (u64)totalram_pages() * PAGE_SIZE / SZ_256K, ORPHANS_MOST);
	return register_pernet_subsys(&afr_netns_ops);
}

/**
 * afr_netns_exit() - free what every namespace holds
 *
 * Context: Module exit, after everything that may call afr_net().
 */
void afr_netns_exit(void)
{
	unregister_pernet_subsys(&afr_netns_ops);
}
