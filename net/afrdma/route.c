// SPDX-License-Identifier: GPL-2.0
/*
 * May RDMA go where TCP goes? Packets of TCP meet routes and IPsec policies one by one; what goes
 * by RDMA meets none. So the route of the inner connection is looked up when it attaches, and
 * again when something has changed while it is attached: a work looks for that twice a second, as
 * the kernel tells modules of neither. Nothing is done per message.
 */
#include "route.h"

#include <linux/if_arp.h>
#include <linux/netdevice.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <net/dst.h>
#include <net/ip.h>
#include <net/ipv6_stubs.h>
#include <net/route.h>
#include <net/rtnetlink.h>
#include <net/sock.h>
#include <net/xfrm.h>

#include "stats.h"

#define LOOK	(HZ / 2)

static void look(struct work_struct *work);
static DECLARE_DELAYED_WORK(looks, look);
static atomic_t attached = ATOMIC_INIT(0);	/* connections on links */

/*
 * Changes with every route and IPsec policy that comes or goes, and with what the administrator
 * allows. RDMA is used in the initial namespace only, so one number is enough.
 */
static u32 generation(const struct afr_net *an)
{
	return rt_genid_ipv4(an->net) * 7 + rt_genid_ipv6(an->net) * 31 +
	       2 * afr_net_enabled(an) + READ_ONCE(an->set.upgrade);
}

static struct dst_entry *route_inet(struct sock *isk)
{
	const struct inet_sock *inet = inet_sk(isk);
	struct flowi4 fl4;
	struct rtable *rt;

	rt = ip_route_output_ports(sock_net(isk), &fl4, isk, inet->inet_daddr, inet->inet_saddr,
				   inet->inet_dport, inet->inet_sport, IPPROTO_TCP,
				   READ_ONCE(inet->tos), isk->sk_bound_dev_if);
	return IS_ERR(rt) ? ERR_CAST(rt) : &rt->dst;
}

static struct dst_entry *route_inet6(struct sock *isk)
{
#if IS_ENABLED(CONFIG_IPV6)
	const struct inet_sock *inet = inet_sk(isk);
	struct flowi6 fl6 = {
		.flowi6_proto	= IPPROTO_TCP,
		.daddr		= isk->sk_v6_daddr,
		.saddr		= inet6_sk(isk)->saddr,
		.flowlabel	= inet6_sk(isk)->flow_label,
		.flowi6_oif	= isk->sk_bound_dev_if,
		.flowi6_mark	= READ_ONCE(isk->sk_mark),
		.fl6_sport	= inet->inet_sport,
		.fl6_dport	= inet->inet_dport,
		.flowi6_uid	= sock_net_uid(sock_net(isk), isk),
	};

	security_sk_classify_flow(isk, flowi6_to_flowi_common(&fl6));
	return ipv6_stub->ipv6_dst_lookup_flow(sock_net(isk), isk, &fl6, NULL);
#else
	return ERR_PTR(-EAFNOSUPPORT);
#endif
}

/* What TCP's next packet would meet. */
static struct dst_entry *route_of(struct sock *isk)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (isk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&isk->sk_v6_daddr))
		return route_inet6(isk);
#endif
	return route_inet(isk);
}

/* IPsec changes the packets, or blocks them until there are keys. */
static bool has_xfrm(const struct dst_entry *dst)
{
#ifdef CONFIG_XFRM
	if (dst->xfrm)
		return true;
#endif
	return dst->flags & DST_XFRM_QUEUE || dst->output == dst_discard_out;
}

/* Devices that wrap or encrypt, and look like Ethernet. */
static bool wraps(const struct net_device *dev)
{
	static const char *const kinds[] = {
		"macsec", "vxlan", "geneve", "gretap", "ip6gretap", "erspan", "ip6erspan", "tun",
	};

	return dev->rtnl_link_ops &&
	       match_string(kinds, ARRAY_SIZE(kinds), dev->rtnl_link_ops->kind) >= 0;
}

/* RDMA to ourselves has no Ethernet header either. */
static bool is_tunnel(const struct net_device *dev)
{
	if (dev->type == ARPHRD_ETHER || dev->type == ARPHRD_INFINIBAND)
		return wraps(dev);
	return !(dev->flags & IFF_LOOPBACK);
}

static enum afr_reason look_up(struct afr_conn *conn)
{
	struct dst_entry *dst = route_of(conn->inner->sk);
	enum afr_reason reason = AFR_REASON_NONE;

	if (IS_ERR(dst))	/* a policy that blocks; without any route TCP will tell */
		return PTR_ERR(dst) == -EPERM ? AFR_REASON_XFRM_POLICY : AFR_REASON_NONE;
	rcu_read_lock();	/* for dst->dev, which our reference on dst does not keep */
	if (has_xfrm(dst))
		reason = AFR_REASON_XFRM_POLICY;
	else if (is_tunnel(READ_ONCE(dst->dev)))
		reason = AFR_REASON_TUNNEL;
	rcu_read_unlock();
	dst_release(dst);
	return reason;
}

/* rdma_cm finds no device behind a tunnel, but a link may be older; iWARP goes by routes itself. */
static bool bypasses(const struct afr_conn *conn, enum afr_reason reason)
{
	return reason != AFR_REASON_TUNNEL || (conn->port.link && !afr_link_iwarp(conn->port.link));
}

/**
 * afr_route_barred() - does the route of TCP forbid RDMA?
 * @conn: connection whose TCP is established
 *
 * Context: the work.
 * Return: AFR_REASON_NONE, XFRM_POLICY or TUNNEL.
 */
enum afr_reason afr_route_barred(struct afr_conn *conn)
{
	u32 now = generation(conn->an);	/* first: what changes meanwhile is seen next time */

#ifdef CONFIG_XFRM
	if (rcu_access_pointer(conn->inner->sk->sk_policy[0]) ||
	    rcu_access_pointer(conn->inner->sk->sk_policy[1]))
		return AFR_REASON_XFRM_POLICY;
#endif
	/* no number changes with a policy that goes */
	if (conn->route_reason || !READ_ONCE(conn->route_known) ||
	    conn->route_generation != now) {
		WRITE_ONCE(conn->route_known, true);
		smp_mb();	/* what is set behind this look unsets it again */
		conn->route_reason = look_up(conn);
		conn->route_generation = now;
	}
	return bypasses(conn, conn->route_reason) ? conn->route_reason : AFR_REASON_NONE;
}

/**
 * afr_route_again() - the program has set what routes may depend on
 * @conn: connection
 *
 * Context: process.
 */
void afr_route_again(struct afr_conn *conn)
{
	WRITE_ONCE(conn->route_known, false);
	smp_mb__before_atomic();	/* what was set is there before the work looks */
	afr_conn_schedule(conn);
}

/* Have every connection on a link look again. */
static void schedule_all(void)
{
	struct afr_conn *conn;
	u64 id = 0;

	while ((conn = afr_conn_next(NULL, id))) {
		id = conn->id + 1;
		if (READ_ONCE(conn->on_link))
			afr_conn_schedule(conn);
		afr_conn_put(conn);
		cond_resched();
	}
}

static void look(struct work_struct *work)
{
	static u32 last;
	u32 now = generation(afr_net(&init_net));

	if (now != last)
		schedule_all();
	last = now;
	if (atomic_read(&attached))
		schedule_delayed_work(&looks, LOOK);
}

/**
 * afr_route_watch() - a connection enters a link, or has left it
 * @on: which
 *
 * Context: any.
 */
void afr_route_watch(bool on)
{
	if (!on)
		atomic_dec(&attached);
	else if (atomic_inc_return(&attached) == 1)
		schedule_delayed_work(&looks, LOOK);
}

/**
 * afr_route_exit() - stop looking
 *
 * Context: module exit, no connection is left.
 */
void afr_route_exit(void)
{
	cancel_delayed_work_sync(&looks);
}
