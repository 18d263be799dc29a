/* SPDX-License-Identifier: GPL-2.0 */
/* What the module keeps per network namespace: identity, settings, counters. */
#ifndef AFR_NETNS_H
#define AFR_NETNS_H

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/siphash.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "stats.h"

struct afr_settings {
	int enabled;		/* 0: new connections are plain TCP */
	int upgrade;		/* 0: framed, but never on RDMA */
	int upgrade_bytes;	/* attach after this many bytes in both directions together */
	int upgrade_msgs;	/* or after this many messages sent */
	int hello_timeout_ms;	/* server: how long a silent client holds our output */
	int attach_timeout_ms;	/* how long ATTACH and link set-up may take */
	int attach_retry_ms;	/* client: first back-off, doubled per failure */
	int detach_timeout_ms;	/* how long a peer may keep a ring after the end */
	int orphan_timeout_ms;	/* how long a closed connection may deliver nothing */
	int keepalive_ms;	/* how often something goes by TCP of what is on RDMA; 0 = never */
	int link_timeout_ms;	/* silence after which a link in use is lost */
	int link_linger_ms;	/* how long a link without connections is kept */
	int links_per_group;	/* links to one peer over one device */
	int conns_per_link;	/* connections attached to one link */
	int groups_max;		/* peers that we have links with */
	int link_requests_max;	/* links that peers connect to us, not answered yet */
	int attaches_max;	/* connections that are attaching */
	int orphans_max;	/* closed connections that still deliver */
	int link_depth;		/* receives posted per link */
	int sndbuf;		/* default send ring, bytes */
	int rcvbuf;		/* default receive ring, bytes */
	int ring_max;		/* largest ring a socket may ask for, bytes */
	int pacing;		/* 1: bulk leaves room for short messages on its link */
	int unprivileged;	/* 1: any user may create sockets, 0: CAP_NET_RAW only */
	unsigned long mem_max;	/* ring pages of the namespace */
};

struct afr_net {
	struct net *net;
	struct afr_settings set;
	struct afr_stats __percpu *stats;
	u8 instance[16];		/* who we are, random */
	siphash_key_t secret_key;	/* secrets told to peers are derived from it */
	atomic_long_t ring_pages;	/* now */
	atomic_long_t ring_promised;	/* if all rings were whole */
	atomic_t rings;			/* their number: two of a connection */
	atomic_t sockets;		/* AF_RDMA sockets, orphans included */
	atomic_t attaching, orphans, orphans_done, link_requests;
	struct ctl_table_header *sysctl;	/* owned by sysctl.c */
	bool hooks;			/* owned by tcpopt_hook.c */
	struct mutex lock;		/* leaf: hooks and service registration */
	void *service;			/* owned by group.c: the rdma_cm listeners */
};

extern unsigned int afr_net_id;

static inline struct afr_net *afr_net(const struct net *net)
{
	return net_generic(net, afr_net_id);
}

/* May sockets of @an speak AF_RDMA? What is forbidden to the machine is so in all namespaces. */
static inline bool afr_net_enabled(const struct afr_net *an)
{
	return READ_ONCE(an->set.enabled) && READ_ONCE(afr_net(&init_net)->set.enabled);
}

/* One more of what @count counts: false, and counted as refused, if that makes more than @most. */
bool afr_net_take(struct afr_net *an, atomic_t *count, int most);

/*
 * The same for a closed connection, one of those of this namespace that @count counts, and of
 * those of the machine. Given back by afr_net_give_orphan().
 */
bool afr_net_take_orphan(struct afr_net *an, atomic_t *count);
void afr_net_give_orphan(atomic_t *count);

/* The 16-byte secret that the peer @instance must present when it connects a link to us. */
void afr_net_secret(struct afr_net *an, const u8 instance[16],
		    const struct sockaddr_storage *local, const struct sockaddr_storage *remote,
		    u8 secret[16]);

int afr_netns_init(void);
void afr_netns_exit(void);

#endif /* AFR_NETNS_H */
