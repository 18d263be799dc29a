// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Decides whether the route of a TCP connection permits RDMA. Each TCP packet is subject to routes
 * and IPsec policies; the packets of a link may bypass them. So the route is looked up when a
 * connection attaches, and again when routes or policies have changed while it is attached. The
 * module is not notified of changes, so a work item looks for them twice a second. Nothing is done
 * per message.
 */
#include "compat.h"
#include "route.h"

#include <linux/if_arp.h>
#include <linux/netdevice.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <net/dst.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include <net/route.h>
#include <net/rtnetlink.h>
#include <net/sock.h>
#include <net/xfrm.h>

#define LOOK	(HZ / 2)

static void look(struct work_struct *work);
static DECLARE_DELAYED_WORK(looks, look);
static atomic_t attached = ATOMIC_INIT(0);	/* connections on links, of all namespaces */

/*
 * Counts IPsec policies, to notice that one was removed: rt_genid changes only when one is added.
 */
static u32 policies(const struct net *net)
{
	u32 count = 0;
#ifdef CONFIG_XFRM
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(net->xfrm.policy_count); i++)
		count += READ_ONCE(net->xfrm.policy_count[i]);
#endif
	return count;
}

/*
 * Counts IPv6 routes, to notice that one was removed: rt_genid_ipv6() changes only when one is
 * added.
 */
static u32 routes_inet6(const struct net *net)
{
#if IS_ENABLED(CONFIG_IPV6)
	const struct rt6_statistics *stats = READ_ONCE(net->ipv6.rt6_stats);

	if (stats)	/* NULL with ipv6.disable=1, or if the module ipv6 is not loaded */
		return READ_ONCE(stats->fib_rt_entries);
#endif
	return 0;
}

/*
 * Returns a number that changes whenever a route or IPsec policy is added or removed, and whenever
 * net.afrdma.enabled or net.afrdma.upgrade changes. Exception: the number stays the same if an
 * IPv4 route that no lookup has found yet is removed or replaced.
 */
static u32 generation(const struct afr_net *an)
{
	return rt_genid_ipv4(an->net) * 7 + rt_genid_ipv6(an->net) * 31 +
	       policies(an->net) * 127 + routes_inet6(an->net) * 8191 +
	       2 * afr_netns_enabled(an) + READ_ONCE(an->set.upgrade);
}

static struct dst_entry *route_inet(struct sock *tcp_sk)
{
	const struct inet_sock *inet = inet_sk(tcp_sk);
	struct flowi4 fl4;
	struct rtable *rt;

	rt = ip_route_output_ports(sock_net(tcp_sk), &fl4, tcp_sk, inet->inet_daddr,
				   inet->inet_saddr, inet->inet_dport, inet->inet_sport,
				   IPPROTO_TCP, READ_ONCE(inet->tos), tcp_sk->sk_bound_dev_if);
	return IS_ERR(rt) ? ERR_CAST(rt) : &rt->dst;
}

static struct dst_entry *route_inet6(struct sock *tcp_sk)
{
#if IS_ENABLED(CONFIG_IPV6)
	const struct inet_sock *inet = inet_sk(tcp_sk);
	struct flowi6 fl6 = {
		.flowi6_proto	= IPPROTO_TCP,
		.daddr		= tcp_sk->sk_v6_daddr,
		.saddr		= inet6_sk(tcp_sk)->saddr,
		.flowlabel	= inet6_sk(tcp_sk)->flow_label,
		.flowi6_oif	= tcp_sk->sk_bound_dev_if,
		.flowi6_mark	= READ_ONCE(tcp_sk->sk_mark),
		.fl6_sport	= inet->inet_sport,
		.fl6_dport	= inet->inet_dport,
		.flowi6_uid	= sock_net_uid(sock_net(tcp_sk), tcp_sk),
	};

	security_sk_classify_flow(tcp_sk, flowi6_to_flowi_common(&fl6));
	return ip6_dst_lookup_flow(sock_net(tcp_sk), tcp_sk, &fl6, NULL);
#else
	return ERR_PTR(-EAFNOSUPPORT);
#endif
}

/* The route and IPsec policy that the next TCP packet would use. */
static struct dst_entry *route_of(struct sock *tcp_sk)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (tcp_sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&tcp_sk->sk_v6_daddr))
		return route_inet6(tcp_sk);
#endif
	return route_inet(tcp_sk);
}

/* Does IPsec change the packets, or block them until there are keys? */
static bool has_xfrm(const struct dst_entry *dst)
{
#ifdef CONFIG_XFRM
	if (dst->xfrm)
		return true;
#endif
	return dst->flags & DST_XFRM_QUEUE || dst->output == dst_discard_out;
}

/* Does @dev, whose type is Ethernet or InfiniBand, encapsulate or encrypt packets? */
static bool wraps(const struct net_device *dev)
{
	static const char *const kinds[] = {
		"macsec", "vxlan", "geneve", "gretap", "ip6gretap", "erspan", "ip6erspan", "tun",
	};

	return dev->rtnl_link_ops &&
	       match_string(kinds, ARRAY_SIZE(kinds), dev->rtnl_link_ops->kind) >= 0;
}

/*
 * Does @dev count as a tunnel? A device of type Ethernet or InfiniBand does only if wraps() is
 * true. A device of any other type does, except loopback, which does not encapsulate.
 */
static bool is_tunnel(const struct net_device *dev)
{
	if (dev->type == ARPHRD_ETHER || dev->type == ARPHRD_INFINIBAND)
		return wraps(dev);
	return !(dev->flags & IFF_LOOPBACK);
}

static enum afr_reason look_up(struct afr_conn *conn)
{
	struct dst_entry *dst = route_of(conn->tcp->sk);
	enum afr_reason reason = AFR_REASON_NONE;

	if (IS_ERR(dst))	/* -EPERM: a policy blocks; TCP reports other errors itself */
		return PTR_ERR(dst) == -EPERM ? AFR_REASON_XFRM_POLICY : AFR_REASON_NONE;
	rcu_read_lock();	/* a reference to dst does not keep dst->dev */
	if (has_xfrm(dst))
		reason = AFR_REASON_XFRM_POLICY;
	else if (is_tunnel(READ_ONCE(dst->dev)))
		reason = AFR_REASON_TUNNEL;
	rcu_read_unlock();
	dst_release(dst);
	return reason;
}

/*
 * Would RDMA bypass the policy or tunnel that @reason names? An IPsec policy counts as bypassed,
 * even on siw: the policy need not cover the ports of the link. For a tunnel, the answer is no
 * while the connection has no link: rdma_cm seldom finds a device behind a tunnel, and if it does,
 * a new link over that device leads through the tunnel. When the connection has a link, the answer
 * is no if the packets of the link are routed like those of the TCP connection. Otherwise it is
 * yes: the link is normally older than the route, and bypasses the tunnel.
 */
static bool bypasses(const struct afr_conn *conn, enum afr_reason reason)
{
	const struct afr_link *link = conn->attach.channel.link;

	return reason != AFR_REASON_TUNNEL || (link && !afr_link_follows_routes(link));
}

/**
 * afr_route_denied() - does the route or an IPsec policy of the TCP connection deny RDMA?
 * @conn: connection whose TCP connection is established
 *
 * An IPsec policy of the socket itself always denies RDMA, and the route is not looked up then.
 * Otherwise a route with an IPsec policy denies RDMA; a route through a tunnel does so only if the
 * connection has a link that bypasses the tunnel, see bypasses(). After the first lookup, the route
 * is looked up again only if generation() has changed, if afr_route_invalidate() was called, or if
 * the last lookup has found an IPsec policy or a tunnel.
 *
 * Context: connection worker.
 * Return: AFR_REASON_NONE, AFR_REASON_XFRM_POLICY or AFR_REASON_TUNNEL.
 */
enum afr_reason afr_route_denied(struct afr_conn *conn)
{
	u32 now = generation(conn->an);	/* first, so that a change during the lookup is noticed */

	lockdep_assert_held(&conn->worker.mutex);
#ifdef CONFIG_XFRM
	if (rcu_access_pointer(conn->tcp->sk->sk_policy[0]) ||
	    rcu_access_pointer(conn->tcp->sk->sk_policy[1]))
		return AFR_REASON_XFRM_POLICY;
#endif
	/* policy or tunnel: look every time, as generation() may miss the change that ends it */
	if (conn->route.reason || !READ_ONCE(conn->route.known) ||
	    conn->route.generation != now) {
		WRITE_ONCE(conn->route.known, true);
		smp_mb();	/* set before the lookup: a later invalidation clears it again */
		conn->route.reason = look_up(conn);
		conn->route.generation = now;
	}
	return bypasses(conn, conn->route.reason) ? conn->route.reason : AFR_REASON_NONE;
}

/**
 * afr_route_invalidate() - let the connection worker look up the route again
 * @conn: connection; the program has set SO_MARK, the bound device, or an option of IPPROTO_IP or
 *	IPPROTO_IPV6, such as an IPsec policy
 *
 * Context: process.
 */
void afr_route_invalidate(struct afr_conn *conn)
{
	WRITE_ONCE(conn->route.known, false);
	smp_mb__before_atomic();	/* the worker sees @known, and what the program has set */
	afr_conn_schedule(conn);
}

/* Finds the namespaces whose generation() has changed since the last call. Are there any? */
static bool find_changes(void)
{
	struct afr_net *an;
	bool any = false;
	struct net *net;
	u32 now;

	rcu_read_lock();
	for_each_net_rcu(net) {
		an = afr_net(net);
		now = generation(an);
		an->route.changed = now != an->route.generation;
		an->route.generation = now;
		any |= an->route.changed;
	}
	rcu_read_unlock();
	return any;
}

/* Schedules the worker of every connection that has to check its route again. */
static void schedule_changed(void)
{
	struct afr_conn *conn;
	u64 id = 0;

	while ((conn = afr_conn_next(NULL, id))) {
		id = conn->id + 1;
		if (conn->an->route.changed && READ_ONCE(conn->route.watched))
			afr_conn_schedule(conn);
		afr_conn_put(conn);
		cond_resched();
	}
}

/*
 * Work item: if routes, IPsec policies or the settings that generation() contains have changed in a
 * namespace, schedules the workers of the connections there that have to check their route again.
 */
static void look(struct work_struct *work)
{
	if (find_changes())
		schedule_changed();
	if (atomic_read(&attached))
		queue_delayed_work(system_dfl_wq, &looks, LOOK);
}

/**
 * afr_route_watch() - count connections on links; while there are any, look() runs periodically
 * @on: true: a connection is now in state AFR_ATTACHED or AFR_LEAVING; false: it is detached
 *
 * Context: any.
 */
void afr_route_watch(bool on)
{
	if (!on)
		atomic_dec(&attached);
	else if (atomic_inc_return(&attached) == 1)
		queue_delayed_work(system_dfl_wq, &looks, LOOK);
}

/**
 * afr_route_exit() - stop looking for changes
 *
 * Context: module exit, or module load that has failed; no connection is active.
 */
void afr_route_exit(void)
{
	cancel_delayed_work_sync(&looks);
}
