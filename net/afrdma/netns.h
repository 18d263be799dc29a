/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* The state of a network namespace: identity, settings, counters, limits. */

/*
 * Counters per network namespace, each with a description. The enum, the names in netlink and
 * smctl, and the documentation are generated from this list. New counters are appended at the end.
 * The list stands before the include guard: a test that defines AFR_NETNS_H and includes this file
 * gets only the list, and needs no kernel headers.
 */
#define AFR_STATS \
	AFR_STAT(SOCK_CREATED, "sockets created by socket() or accept()") \
	AFR_STAT(CONN_FRAMED, "connections on which both ends use AF_RDMA") \
	AFR_STAT(CONN_PLAIN, "connections that fell back to TCP, for a reason that smctl conn shows") \
	AFR_STAT(CONN_HALF, "one-way connections: one direction framed, the other in fallback mode") \
	AFR_STAT(CONN_ABORTED, "connections ended by an error or a reset") \
	AFR_STAT(CONN_ORPHANED, "connections closed by their program and finished in the background") \
	AFR_STAT(CONN_FINISHED, "framed and one-way connections that have ended, including aborted ones") \
	AFR_STAT(SYN_OPTION, "SYNs sent with the AF_RDMA option") \
	AFR_STAT(SYNACK_OPTION, "SYN-ACKs sent with the AF_RDMA option") \
	AFR_STAT(SYN_NO_OPTION, "SYNs of AF_RDMA sockets sent without the option: denied, no space, or retransmitted") \
	AFR_STAT(OPTION_BAD, "SYNs and SYN-ACKs received with an AF_RDMA option that was malformed, echoed or of another version") \
	AFR_STAT(HELLO_SENT, "HELLOs sent") \
	AFR_STAT(HELLO_RECEIVED, "valid HELLOs received") \
	AFR_STAT(HELLO_TIMEOUT, "connections on which a server began to send unframed, because the client had sent no HELLO in time") \
	AFR_STAT(FRAMES_SENT, "frames sent on TCP") \
	AFR_STAT(FRAMES_RECEIVED, "frames received on TCP") \
	AFR_STAT(TX_BYTES_TCP, "application bytes sent in DATA frames") \
	AFR_STAT(TX_BYTES_RDMA, "application bytes sent by RDMA writes") \
	AFR_STAT(RX_BYTES_TCP, "application bytes received in DATA frames") \
	AFR_STAT(RX_BYTES_RDMA, "application bytes received by RDMA writes") \
	AFR_STAT(TX_WRITES, "RDMA writes posted with data") \
	AFR_STAT(TX_CREDIT_WRITES, "RDMA writes posted without data, to report the consumer cursor") \
	AFR_STAT(UPGRADE_TRIED, "attempts to move a connection to RDMA") \
	AFR_STAT(UPGRADE_DONE, "connections attached to a link") \
	AFR_STAT(UPGRADE_FAILED, "attempts that failed, for a reason that smctl conn shows") \
	AFR_STAT(MOVE_TX, "send directions moved to a link") \
	AFR_STAT(MOVE_RX, "receive directions that the peer moved to a link") \
	AFR_STAT(RESUME_TX, "send directions resumed on TCP after a link was left or lost") \
	AFR_STAT(RESUME_RX, "receive directions that the peer was asked to resume on TCP") \
	AFR_STAT(LINK_CREATED, "links set up") \
	AFR_STAT(LINK_FAILED, "links that could not be set up") \
	AFR_STAT(LINK_DIED, "established links that were lost") \
	AFR_STAT(LINK_REFUSED, "link requests of peers that were rejected: wrong secret, other version, or a limit") \
	AFR_STAT(LINK_NO_CREDIT, "times a connection waited for receive credits or send slots of its link") \
	AFR_STAT(PEER_VIOLATION, "connections aborted because the peer broke the protocol") \
	AFR_STAT(RING_PAGES, "pages of ring memory allocated in total, freed ones included") \
	AFR_STAT(RING_NO_MEMORY, "requests for ring memory that failed, for lack of memory or by a limit") \
	AFR_STAT(LINK_PROBE, "probes on quiet links (zero-length writes; iWARP: announcements that ask for one)") \
	AFR_STAT(OVER_LIMIT, "requests refused by a limit on connections, peers, link requests or shares of ring memory") \
	AFR_STAT(LINK_POSTS, "work requests posted on links, of all kinds") \
	AFR_STAT(TX_ANNOUNCES, "messages posted only to announce posted receives to the peer") \
	AFR_STAT(TX_COMPLETIONS, "completions of signaled work requests") \
	AFR_STAT(RX_COMPLETIONS, "completions of receives") \
	AFR_STAT(COPIED_IN, "bytes copied from programs into send rings") \
	AFR_STAT(COPIED_OUT, "bytes copied from receive rings to programs") \
	AFR_STAT(WAKES_READ, "times a program that waited was woken to read") \
	AFR_STAT(WAKES_WRITE, "times a program that waited was woken to write") \
	AFR_STAT(LINK_PACED, "times bulk waited, to leave space for short messages of other connections on its link") \
	AFR_STAT(LINK_TAIL, "probes sent behind a last message, so that the device notices its loss; link_probe counts them, too") \
	AFR_STAT(DETACH_LATE, "ended connections that left their link after detach_timeout_ms without the peer's DETACH, and whose channel id is not used again")

#ifndef AFR_NETNS_H
#define AFR_NETNS_H

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/siphash.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

enum afr_stat {
#define AFR_STAT(name, sentence) AFR_STAT_##name,
	AFR_STATS
#undef AFR_STAT
	AFR_STAT_COUNT
};

struct afr_stats {
	u64 count[AFR_STAT_COUNT];
};

struct afr_settings {
	int enabled;		/* 0: new connections fall back to TCP, framed ones leave RDMA */
	int upgrade;		/* 0: framed connections stay on TCP, or return to TCP */
	int upgrade_bytes;	/* attach after this many bytes, both directions together */
	int upgrade_msgs;	/* attach after this many messages sent, if earlier */
	int hello_timeout_ms;	/* server: output waits at most this long for the client's HELLO */
	/* how long set-up of a link may take, and after how long the answer to ATTACH is overdue */
	int attach_timeout_ms;
	int attach_retry_ms;	/* client: first back-off, doubled per failure */
	int detach_timeout_ms;	/* how long to wait for the peer's DETACH */
	int orphan_timeout_ms;	/* how long an orphan with bytes to deliver may deliver none */
	int keepalive_ms;	/* server: interval of frames on TCP while on RDMA; 0 = never */
	int link_timeout_ms;	/* silence after which a link in use is lost */
	int link_linger_ms;	/* how long a link without connections is kept */
	int links_per_group;	/* links of a link group while connections are few */
	int conns_per_link;	/* maximum number of connections on one link */
	int groups_max;		/* link groups */
	int link_requests_max;	/* pending link requests of peers */
	int attaches_max;	/* connections attaching at the same time */
	int orphans_max;	/* orphans that deliver, and as many that have delivered all */
	int link_depth;		/* receives posted per link */
	int sndbuf;		/* default size of the send ring, bytes */
	int rcvbuf;		/* default size of the receive ring, bytes */
	int ring_max;		/* maximum size of a new ring, requested or default, bytes */
	int pacing;		/* 1: bulk leaves space for short messages on its link */
	int unprivileged;	/* 0: a program needs CAP_NET_RAW to create a socket */
	unsigned long mem_max;	/* limit on ring pages */
};

struct afr_net {
	struct net *net;
	struct afr_settings set;
	struct afr_stats __percpu *stats;
	u8 instance[16];		/* identifies this namespace to peers, random */
	siphash_key_t secret_key;	/* for afr_netns_secret() */
	atomic_long_t ring_pages;	/* ring pages allocated now */
	atomic_long_t ring_tcp;		/* those of them that count as pages of rings on TCP */
	atomic_long_t ring_promised;	/* full sizes of all rings together, in pages */
	unsigned long ring_charged;	/* pages charged to quotas, protected by ring_quota.c */
	atomic_t rings;			/* number of rings, two per connection that was started */
	atomic_t sockets;		/* AF_RDMA sockets, without orphans */
	int groups;			/* link groups, protected by groups_lock of group_table.c */
	atomic_t attaching, orphans, orphans_done, link_requests;	/* counts limited by @set */
	struct ctl_table_header *sysctl;	/* of sysctl.c */
	struct {			/* of route.c: only its work item uses it */
		u32	generation;
		bool	changed;
	} route;
	bool hooks;			/* of handshake_hook.c: netfilter hooks are registered */
	struct mutex lock;		/* protects cm_listener; held to register the hooks */
	void *cm_listener;		/* of cm_listener.c: the cm listener */
	refcount_t cm_users;		/* sockets that use @cm_listener, 0 if that is NULL */
	u16 cm_port;			/* port of @cm_listener, 0 until started; read unlocked */
};

extern unsigned int afr_netns_id;

static inline struct afr_net *afr_net(const struct net *net)
{
	return net_generic(net, afr_netns_id);
}

/*
 * Has @an no AF_RDMA sockets? If so, links must not delay its end for long. Always false for the
 * initial namespace, which never ends.
 */
static inline bool afr_netns_unused(const struct afr_net *an)
{
	return !net_eq(an->net, &init_net) && !refcount_read(&an->cm_users);
}

/* The setting of @an, but not more than that of the initial namespace: a limit of the host. */
#define afr_netns_least(an, field) \
	min(READ_ONCE((an)->set.field), READ_ONCE(afr_net(&init_net)->set.field))

/* May sockets of @an use AF_RDMA? Disabling it in the initial namespace disables it in all. */
static inline bool afr_netns_enabled(const struct afr_net *an)
{
	return READ_ONCE(an->set.enabled) && READ_ONCE(afr_net(&init_net)->set.enabled);
}

void afr_netns_add(struct net *net, enum afr_stat stat, u64 n);

/* Counts one event; any context. */
static inline void afr_netns_count(struct net *net, enum afr_stat stat)
{
	afr_netns_add(net, stat, 1);
}

void afr_netns_counters(struct net *net, struct afr_stats *out);
const char *afr_netns_counter_name(enum afr_stat stat);
const char *afr_netns_counter_text(enum afr_stat stat);

bool afr_netns_charge(struct afr_net *an, atomic_t *count, int most);
bool afr_netns_charge_orphan(struct afr_net *an, atomic_t *count, kuid_t uid);
void afr_netns_uncharge_orphan(atomic_t *count, kuid_t uid);

void afr_netns_secret(struct afr_net *an, const u8 instance[16],
		      const struct sockaddr_storage *local, const struct sockaddr_storage *remote,
		      u8 secret[16]);

int afr_netns_init(void);
void afr_netns_exit(void);

#endif /* AFR_NETNS_H */
