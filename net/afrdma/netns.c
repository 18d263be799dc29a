// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The state of network namespaces: its creation with default settings, its destruction, counters,
 * limits on the number of objects, and secrets for links.
 */
#include <linux/cpumask.h>
#include <linux/ctype.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/init.h>
#include <linux/jhash.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <net/ipv6.h>

#include "netns.h"

#define COUNTER_NAME_MAX 32
#define ORPHANS_MOST	262144		/* largest default of orphans_max, as of tcp_max_orphans */

unsigned int afr_netns_id __read_mostly;

/* The module needs a limit of its own, as TCP does not export net.ipv4.tcp_max_orphans. */
static int orphans_max;
module_param(orphans_max, int, 0644);
MODULE_PARM_DESC(orphans_max,
		 "maximum number of closed connections that still deliver or wait for the end of the peer's stream, in all network namespaces together (default: one for 256 KiB of memory, at most 262144)");

static atomic_t all_orphans = ATOMIC_INIT(0);

/*
 * The number of closed connections per user in each counter (all_orphans, and orphans and
 * orphans_done of each namespace), see share_of(). Pairs of counter and user with the same hash
 * share an element.
 */
static atomic_t orphan_shares[4096];
#define USER_WEIGHT	4LL	/* as for ring memory, ring_quota.c */

/* sysctl.c has the bounds and descriptions. */
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

static const char * const upper_names[AFR_STAT_COUNT] = {
#define AFR_STAT(name, sentence) [AFR_STAT_##name] = #name,
	AFR_STATS
#undef AFR_STAT
};

static const char * const sentences[AFR_STAT_COUNT] = {
#define AFR_STAT(name, sentence) [AFR_STAT_##name] = sentence,
	AFR_STATS
#undef AFR_STAT
};

#define AFR_STAT(name, sentence) \
	static_assert(sizeof(#name) <= COUNTER_NAME_MAX, "the name of a counter is too long");
AFR_STATS
#undef AFR_STAT

/* The names in lower case, which the preprocessor cannot generate. */
static char counter_names[AFR_STAT_COUNT][COUNTER_NAME_MAX] __ro_after_init;

static void __init lower_names(void)
{
	unsigned int stat, i;

	for (stat = 0; stat < AFR_STAT_COUNT; stat++)
		for (i = 0; upper_names[stat][i]; i++)
			counter_names[stat][i] = tolower(upper_names[stat][i]);
}

/**
 * afr_netns_add() - add to a counter
 * @net: namespace of the counter
 * @stat: counter
 * @n: number to add
 *
 * Context: any.
 */
void afr_netns_add(struct net *net, enum afr_stat stat, u64 n)
{
	this_cpu_add(afr_net(net)->stats->count[stat], n);
}

/**
 * afr_netns_counters() - sum up the counters of all CPUs
 * @net: namespace
 * @out: the sums, which are not a snapshot: counters may change while they are read
 *
 * Context: any.
 */
void afr_netns_counters(struct net *net, struct afr_stats *out)
{
	const struct afr_stats *one;
	unsigned int stat;
	int cpu;

	memset(out, 0, sizeof(*out));
	for_each_possible_cpu(cpu) {
		one = per_cpu_ptr(afr_net(net)->stats, cpu);
		for (stat = 0; stat < AFR_STAT_COUNT; stat++)
			out->count[stat] += READ_ONCE(one->count[stat]);
	}
}

/**
 * afr_netns_counter_name() - get the name of a counter, as netlink and smctl show it
 * @stat: counter
 *
 * Context: any.
 * Return: the name in lower case, such as "conn_framed"; "unknown" if there is no such counter.
 */
const char *afr_netns_counter_name(enum afr_stat stat)
{
	return stat < AFR_STAT_COUNT ? counter_names[stat] : "unknown";
}

/**
 * afr_netns_counter_text() - get the description of a counter
 * @stat: counter
 *
 * Context: any.
 * Return: the description, never NULL.
 */
const char *afr_netns_counter_text(enum afr_stat stat)
{
	return stat < AFR_STAT_COUNT ? sentences[stat] : "unknown counter";
}

static void put_address(struct in6_addr *to, const struct sockaddr_storage *from)
{
	if (from->ss_family == AF_INET)
		ipv6_addr_set_v4mapped(((const struct sockaddr_in *)from)->sin_addr.s_addr, to);
	else
		*to = ((const struct sockaddr_in6 *)from)->sin6_addr;
}

/**
 * afr_netns_secret() - compute the secret that a peer must present to connect a link
 * @an: namespace
 * @instance: instance that the peer claims
 * @local: local address
 * @remote: address of the peer, IPv4 or IPv6; ports and scopes are ignored
 * @secret: out: the secret
 *
 * The secret is sent over the TCP connection and not stored here: it is derived from the peer's
 * instance and both addresses, with a key that never leaves this namespace. So the secret is valid
 * only for links between the addresses that the TCP connection has verified. A host that claims
 * the instance of another host cannot join that host's group, unless both have the same address.
 *
 * Context: any.
 */
void afr_netns_secret(struct afr_net *an, const u8 instance[16],
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
 * afr_netns_charge() - count one more object, unless the limit is reached
 * @an: namespace
 * @count: number of objects; the caller decrements it when the object is gone
 * @most: maximum of @count
 *
 * Context: any.
 * Return: true; or false if the limit is reached: then @count is unchanged, and AFR_STAT_OVER_LIMIT
 * counts the refusal.
 */
bool afr_netns_charge(struct afr_net *an, atomic_t *count, int most)
{
	if (atomic_inc_return(count) <= most)
		return true;
	atomic_dec(count);
	afr_netns_count(an->net, AFR_STAT_OVER_LIMIT);
	return false;
}

/* Returns the element of orphan_shares that holds how much of @count belongs to user @uid. */
static atomic_t *share_of(const atomic_t *count, kuid_t uid)
{
	static u32 seed __read_mostly;
	u64 address = (unsigned long)count;

	net_get_random_once(&seed, sizeof(seed));
	return &orphan_shares[jhash_3words(address, address >> 32, __kuid_val(uid), seed) %
			      ARRAY_SIZE(orphan_shares)];
}

/*
 * Counts one more closed connection of user @uid, in @count and in the user's share of @count.
 * Counts nothing and returns false if the new value of @count would exceed @most, or if the new
 * value of the share would exceed USER_WEIGHT * (@most - new value of @count). The second limit is
 * never below 1.
 */
static bool charge_both(struct afr_net *an, atomic_t *count, int most, kuid_t uid)
{
	atomic_t *share = share_of(count, uid);
	s64 left = (s64)most - atomic_read(count) - 1;

	if (!afr_netns_charge(an, share, clamp_t(s64, USER_WEIGHT * left, 1, INT_MAX)))
		return false;
	if (afr_netns_charge(an, count, most))
		return true;
	atomic_dec(share);
	return false;
}

static void uncharge_both(atomic_t *count, kuid_t uid)
{
	atomic_dec(share_of(count, uid));
	atomic_dec(count);
}

/**
 * afr_netns_charge_orphan() - count one more closed connection
 * @an: namespace of the connection
 * @count: @an->orphans when the socket was just closed; @an->orphans_done when only the end of the
 *	peer's stream is still missing
 * @uid: owner of the socket
 *
 * The setting orphans_max limits @count. The module parameter orphans_max limits the sum of
 * orphans and orphans_done over all namespaces, so that a user cannot get more closed connections
 * by creating namespaces. A user may have only a share of each limit, so that no user can use up a
 * limit for all others. Undone by afr_netns_uncharge_orphan().
 *
 * Context: process.
 * Return: as afr_netns_charge().
 */
bool afr_netns_charge_orphan(struct afr_net *an, atomic_t *count, kuid_t uid)
{
	if (!charge_both(an, &all_orphans, READ_ONCE(orphans_max), uid))
		return false;
	if (charge_both(an, count, READ_ONCE(an->set.orphans_max), uid))
		return true;
	uncharge_both(&all_orphans, uid);
	return false;
}

/**
 * afr_netns_uncharge_orphan() - undo afr_netns_charge_orphan()
 * @count: as given to afr_netns_charge_orphan()
 * @uid: the same
 *
 * Called when the closed connection has ended, or before it is charged to the other counter.
 *
 * Context: any.
 */
void afr_netns_uncharge_orphan(atomic_t *count, kuid_t uid)
{
	uncharge_both(count, uid);
	uncharge_both(&all_orphans, uid);
}

static int __net_init netns_begin(struct net *net)
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

static void __net_exit netns_end(struct net *net)
{
	struct afr_net *an = afr_net(net);

	/*
	 * All counts below are 0. A connection's TCP socket pins the namespace until no counter
	 * includes the connection and its rings are freed. The last AF_RDMA socket pins the
	 * namespace until the cm listener and its link requests are gone. leave_netns() of group.c,
	 * which has run before, has waited until the link groups are gone.
	 */
	WARN_ON_ONCE(atomic_long_read(&an->ring_pages) || atomic_long_read(&an->ring_tcp) ||
		     atomic_long_read(&an->ring_promised) || atomic_read(&an->rings) ||
		     an->ring_charged || an->groups ||
		     atomic_read(&an->attaching) ||
		     atomic_read(&an->orphans) || atomic_read(&an->orphans_done) ||
		     atomic_read(&an->link_requests));
	free_percpu(an->stats);
}

static struct pernet_operations afr_netns_ops = {
	.init	= netns_begin,
	.exit	= netns_end,
	.id	= &afr_netns_id,
	.size	= sizeof(struct afr_net),
};

/**
 * afr_netns_init() - create the state of all namespaces, existing and future ones
 *
 * Context: module load.
 * Return: 0 or a negative error.
 */
int __init afr_netns_init(void)
{
	lower_names();
	if (!orphans_max)
		orphans_max = min_t(u64, (u64)totalram_pages() * PAGE_SIZE / SZ_256K, ORPHANS_MOST);
	return register_pernet_subsys(&afr_netns_ops);
}

/**
 * afr_netns_exit() - free the state of all namespaces
 *
 * Context: module exit; nothing calls afr_net() any more.
 */
void afr_netns_exit(void)
{
	unregister_pernet_subsys(&afr_netns_ops);
}
