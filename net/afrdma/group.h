/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * A link group: the links of one traffic class between this host and one peer over one pair of
 * addresses.
 *
 * Key: {netns, peer instance, local address, peer address, traffic class}. Addresses alone are not
 * enough, because several hosts may share one address behind NAT or as a virtual address (R5).
 * Every link has its own protection domain, so that an rkey sent to one peer is useless to another.
 */
#ifndef AFR_GROUP_H
#define AFR_GROUP_H

#include <linux/list.h>
#include <linux/socket.h>
#include <linux/types.h>

#include "proto/reason.h"

struct afr_group;
struct afr_link;
struct afr_net;
struct afr_wire_cm_req;
struct rdma_cm_id;

/*
 * What the connection layer knows about the peer, from the TCP connection, HELLO and SERVICE. A
 * group that was created for an accepted link knows only the instance, the addresses and the
 * traffic class, from the connect request, until the first join.
 */
struct afr_peer {
	u8	instance[16];
	u8	secret[16];		/* to present when connecting a link */
	u16	port;			/* of the peer's cm listener, host order */
	u32	mtu;			/* path MTU of the TCP connection, 0 = unknown */
	u8	tclass;			/* of packets to the peer, without the ECN bits */
	struct sockaddr_storage	local;	/* of this host */
	struct sockaddr_storage	remote;
};

/* A request for a link, embedded in the connection. */
struct afr_join {
	/*
	 * Called at most once for each afr_group_join(), in process context and perhaps under a
	 * spinlock: with a link that has come up, on which the callee gets a reference, or with
	 * NULL and the reason. It must not sleep or free the join.
	 */
	void (*joined)(struct afr_join *join, struct afr_link *link, enum afr_reason reason);
	struct list_head entry;		/* private */
	struct afr_group *group;	/* private */
};

void afr_group_join(struct afr_net *an, const struct afr_peer *peer, struct afr_join *join);
void afr_group_join_cancel(struct afr_join *join);

struct afr_link *afr_group_find_link(struct afr_net *an, const struct afr_peer *peer, u64 id,
				     bool peer_active);

/* Called for one link, under the lock of its group; a non-zero return value ends the walk. */
typedef int afr_group_visit(struct afr_link *link, const struct afr_peer *peer, void *arg);
void afr_group_unused(struct afr_net *an);
int afr_group_for_each_link(struct afr_net *an, afr_group_visit *fn, void *arg);

enum afr_reason afr_group_accept(struct afr_net *an, struct rdma_cm_id *id,
				 const struct afr_wire_cm_req *req);

int afr_group_init(void);
void afr_group_exit(void);

#endif /* AFR_GROUP_H */
