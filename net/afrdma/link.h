/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * A link: one end of an RC connection, that is, one queue pair, shared by many connections.
 *
 * The active end connects a link, the passive end accepts it. For the states see link.c. No lock
 * of a link is held while waiting for the peer.
 */
#ifndef AFR_LINK_H
#define AFR_LINK_H

#include <linux/list.h>
#include <linux/types.h>
#include <rdma/rdma_cm.h>

#include "proto/reason.h"

struct afr_device;
struct afr_link;
struct afr_net;
struct afr_channel;
struct afr_wire_cm_req;

/* For both retry counts of the queue pair, at both ends. 7 may mean forever, see link_cm.c. */
#define AFR_CM_RETRIES	6

bool afr_link_follows_routes(const struct afr_link *link);
void afr_link_expire(struct afr_link *link);
u32 afr_link_write_max(const struct afr_link *link);

/* Upcalls to the group layer. */
struct afr_link_ops {
	/*
	 * Process context, once: the link is up (@reason is 0), or it failed before it came up
	 * (@reason says why, and dead() follows).
	 */
	void (*settled)(struct afr_link *link, enum afr_reason reason);
	/*
	 * Process context, once, after settled(): the queue pair is destroyed, and down() was
	 * called for every channel that was still joined. The group layer drops its reference.
	 */
	void (*dead)(struct afr_link *link);
};

/* The peer, as HELLO or its connect request describes it, and the path to it. */
struct afr_link_peer {
	u8	instance[16];	/* of the peer */
	u8	secret[16];	/* active: to present to the peer */
	u32	mtu;		/* active: largest packet to send on the path, 0 = unknown */
	u8	tclass;		/* traffic class of all packets of the link; 0: rdma_cm's default */
};

struct afr_link *afr_link_connect(struct afr_net *an, const struct sockaddr *local,
				  const struct sockaddr *remote,
				  const struct afr_link_peer *peer,
				  const struct afr_link_ops *ops, void *owner);
struct afr_link *afr_link_accept(struct afr_net *an, struct rdma_cm_id *id,
				 const struct afr_wire_cm_req *req,
				 const struct afr_link_ops *ops, void *owner);

void afr_link_fail(struct afr_link *link, enum afr_reason reason);
bool afr_link_confirm(struct afr_link *link);

bool afr_link_get(struct afr_link *link);
void afr_link_put(struct afr_link *link);

u64 afr_link_id(const struct afr_link *link);
bool afr_link_active(const struct afr_link *link);
bool afr_link_is_up(const struct afr_link *link);
void *afr_link_owner(const struct afr_link *link);
unsigned int afr_link_users(const struct afr_link *link);
bool afr_link_was_up(const struct afr_link *link);
bool afr_link_short_lived(const struct afr_link *link);
struct afr_device *afr_link_device(const struct afr_link *link);

enum afr_link_state {
	AFR_LINK_CONNECTING,
	AFR_LINK_UP,
	AFR_LINK_DYING,		/* the link worker takes it down */
	AFR_LINK_DEAD,		/* fenced and drained, if it was ever up */
};

/* What smctl shows of a link. */
struct afr_link_info {
	u64	id;
	char	device[64];
	u8	port_num;
	bool	active;
	u8	state;		/* enum afr_link_state */
	enum afr_reason	reason;
	u32	qpn, peer_qpn;
	u32	mtu;		/* path MTU in bytes, 0 until the link is up */
	u8	tclass;		/* IPv4 TOS or IPv6 traffic class, 0 if the default is used */
	u32	users;		/* channels */
	u32	credits;	/* unused receive credits, 0 unless the link is up */
	u64	tx_bytes, rx_bytes, tx_writes, rx_writes;
	struct sockaddr_storage	local, remote;
};

void afr_link_info(struct afr_link *link, struct afr_link_info *info);

int afr_link_init(void);
void afr_link_exit(void);

#endif /* AFR_LINK_H */
