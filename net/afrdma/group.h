/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Groups: the links between us and one peer over one pair of addresses, and the
 * rdma_cm service through which peers connect links to us.
 *
 * Key: {netns, peer instance, local address, peer address}. Addresses alone are
 * not enough: NAT and virtual addresses are shared by hosts (R5). Every link has a
 * protection domain of its own, so that an rkey told to one peer means nothing to
 * another.
 */
#ifndef AFR_GROUP_H
#define AFR_GROUP_H

#include <linux/list.h>
#include <linux/socket.h>
#include <linux/types.h>

#include "reason.h"

struct afr_group;
struct afr_link;
struct afr_net;
struct afr_wire_cm_req;
struct rdma_cm_id;

/* What the connection layer knows of the peer, from the TCP connection and HELLO. */
struct afr_peer {
	u8	instance[16];
	u8	secret[16];		/* to present to the peer */
	u16	port;			/* service port, host order */
	u32	mtu;			/* what TCP's packets have at most, 0 = unknown */
	struct sockaddr_storage	local;	/* of the TCP connection */
	struct sockaddr_storage	remote;
};

/*
 * The service port of our listener, the same for IPv4 and IPv6, started on first
 * use; 0 if there is none (no RDMA here). Process context. afr_service_* are in
 * service.c.
 */
u16 afr_service_port(struct afr_net *an, sa_family_t family);
/* Process context. Is it started? */
bool afr_service_listens(struct afr_net *an);
/*
 * The first socket of a namespace came / the last one went (B8: the listener pins
 * the netns). Process context.
 */
void afr_service_get(struct afr_net *an);
void afr_service_put(struct afr_net *an);

/* Waiting for a link. Embedded by the connection. */
struct afr_join {
	/*
	 * Process context, at most once: a link that is up (with a reference for the
	 * caller), or NULL and the reason. The join may be freed in here.
	 */
	void (*joined)(struct afr_join *join, struct afr_link *link, enum afr_reason reason);
	struct list_head entry;		/* private */
	struct afr_group *group;	/* private */
};

/*
 * Find or make a link to @peer; more links are connected in the background up to
 * links_per_group, and connections are spread over those that are up. joined()
 * is called from here or later. Process context, does not wait for the peer.
 */
void afr_group_join(struct afr_net *an, const struct afr_peer *peer, struct afr_join *join);
/*
 * After return joined() has run or never will. Process context; waits for a joined()
 * that is running, so hold nothing that it takes. A zeroed join is fine.
 */
void afr_group_join_cancel(struct afr_join *join);

/*
 * The peer named link @id in ATTACH; its end of it is @peer_active. Returns our end
 * with a reference if it is up and belongs to this peer, else NULL. The peer's word
 * counts as the end of the handshake, so there is nothing to wait for.
 */
struct afr_link *afr_group_find_link(struct afr_net *an, const struct afr_peer *peer, u64 id,
				     bool peer_active);

/* Visit every link of @an's namespace (NULL: all) until it returns non-zero. Process context. */
typedef int afr_group_visit(struct afr_link *link, const struct afr_peer *peer, void *arg);
int afr_group_for_each_link(struct afr_net *an, afr_group_visit *fn, void *arg);

/* For service.c: take @id with a request that was checked, or say why not. Process context. */
enum afr_reason afr_group_accept(struct afr_net *an, struct rdma_cm_id *id,
				 const struct afr_wire_cm_req *req);

int afr_group_init(void);
void afr_group_exit(void);	/* all sockets are gone: kills and waits for all links */

#endif /* AFR_GROUP_H */
