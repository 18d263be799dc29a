/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A link: one end of one RC queue pair, shared by many connections.
 *
 * Life: created connecting (active or passive) -> up -> dead (fenced and
 * drained) -> destroyed. Nobody waits for a peer under a lock.
 *
 * A connection uses a link through a port it embeds: it joins and gets a slot,
 * posts writes to the peer's slot, and leaves.
 */
#ifndef AFR_LINK_H
#define AFR_LINK_H

#include <linux/list.h>
#include <linux/types.h>
#include <rdma/rdma_cm.h>

#include "reason.h"

struct afr_device;
struct afr_link;
struct afr_net;
struct afr_port;
struct afr_wire_cm_req;

/* Retries of the queue pair, at both ends: 7 would be for ever. */
#define AFR_CM_RETRIES	6

/* Upcalls to the user of a port (the connection layer). */
struct afr_port_ops {
	/*
	 * Softirq. A write for our slot landed: @len bytes of data (0: cursor only)
	 * and the writer's 16-bit consumer cursor. Completions of one link come in
	 * order and one at a time.
	 */
	void (*landed)(struct afr_port *port, u32 len, u16 cursor);
	/* Softirq. The peer's last write for our slot is behind us (DETACH polled). */
	void (*peer_detached)(struct afr_port *port);
	/* Softirq. Our own DETACH has completed: the peer's device has it. */
	void (*detached)(struct afr_port *port);
	/* Softirq. A write that was to tell has completed. */
	void (*written)(struct afr_port *port);
	/* Softirq. Posting (a write or DETACH) was refused with -EAGAIN before; call again. */
	void (*kick)(struct afr_port *port);
	/* Softirq. The same of bulk that was held back to leave room for others. */
	void (*paced)(struct afr_port *port);
	/*
	 * Process context, once. The link is fenced and drained: nothing of it can
	 * land, complete or be posted any more, and no other upcall comes after this
	 * one. The user still calls afr_port_leave(), from here or later.
	 */
	void (*down)(struct afr_port *port, enum afr_reason reason);
	/*
	 * Any context. Take/drop what keeps the memory of @port alive: we hold a
	 * reference while we call up.
	 */
	bool (*get)(struct afr_port *port);	/* false: already dying, no upcall comes */
	void (*put)(struct afr_port *port);
};

struct afr_port {
	const struct afr_port_ops *ops;
	struct afr_link	*link;		/* holds a reference while joined */
	u16		slot;		/* ours: the peer puts it in immediates to us */
	u16		peer_slot;	/* the peer's: goes into our immediates */
	bool		forsaken;	/* DETACH was not waited for: leave the slot taken */
	/* private to link.c */
	bool		joined;
	bool		ended;		/* the peer's DETACH was polled */
	u32		serial;		/* tells apart users of one slot */
	struct list_head waiting;	/* on a list of link, for kick */
	struct list_head pacing;	/* on link->paced */
	struct list_head asking;	/* on link->askers ... */
	u64		asks_end;	/* ... and somebody waits for it, until then (jiffies64) */
	struct list_head member;	/* on link->ports */
};

/* Take a free slot of @link, which must be up: 0, -ENOTCONN, -ENOSPC. Process context. */
int afr_port_join(struct afr_port *port, struct afr_link *link, const struct afr_port_ops *ops);
/*
 * Give slot and link back. The slot is reused at once, so the caller has polled
 * the peer's DETACH, or down() was called, or the slot was never told to the
 * peer (PE5); or port->forsaken is set: then nobody has the slot for the rest of the
 * link's life, and what the peer says for it is passed over. After return no upcall
 * runs or will run (but for the down() that this is called from). Process context,
 * sleeps (RCU). Idempotent; a zeroed port that never joined is fine.
 */
void afr_port_leave(struct afr_port *port);

/* One write. */
struct afr_write {
	u64	local;		/* address inside our send ring's MR */
	u32	lkey;
	u32	len;		/* 0: cursor only */
	u64	remote;
	u32	rkey;
	u16	cursor;		/* low half of the immediate */
	bool	tell;		/* call written() when it has completed */
	bool	prompt;		/* somebody waits for it: bulk of this link is to leave room */
	bool	bulk;		/* this is such */
};

/*
 * Post a message to port->peer_slot. Any context but hard irq; the caller holds its
 * own tx lock, so that cursors are posted in the order they were sampled.
 * AFR_CREDIT_RESERVE credits are left for announcements, whatever is written: a
 * reserve that cursors or DETACHs may eat is none, and both ends could wait for each
 * other.
 * 0: posted. -EAGAIN: no credit or send slot, kick() will come; or bulk has to leave room,
 * paced() will come. -ENOTCONN: the link is dead or dying, down() will come.
 */
int afr_port_write(struct afr_port *port, const struct afr_write *w);
/*
 * Post DETACH for peer_slot: our last post for this port. Errors as above (-EAGAIN:
 * call again from kick()). detached() follows.
 */
int afr_port_detach(struct afr_port *port);
/* Does it go by iWARP, and so by TCP of its device? */
bool afr_link_iwarp(const struct afr_link *link);
/* Largest len of one write. */
u32 afr_link_write_max(const struct afr_link *link);
/* The same of bulk, which is shorter beside prompt messages. */
u32 afr_port_bulk_max(const struct afr_port *port);

/* Upcalls to the group layer. */
struct afr_link_ops {
	/*
	 * Process context, once: the link is up (reason 0), or failed for good before it
	 * was; dead() follows then.
	 */
	void (*settled)(struct afr_link *link, enum afr_reason reason);
	/*
	 * Process context, once, after settled(): drained; every port has been told. The
	 * group drops its reference.
	 */
	void (*dead)(struct afr_link *link);
};

/* What both ends know of each other from HELLO. */
struct afr_link_peer {
	u8	instance[16];	/* the peer's */
	u8	secret[16];	/* active: what the peer wants to see */
	u32	mtu;		/* active: the largest packet the path takes, 0 = unknown */
};

/*
 * Active side: start connecting @local (port ignored) to @remote (service port
 * from HELLO). Returns at once; settled() tells the outcome, within the
 * attach timeout, maybe before this returns. ERR_PTR(-ENOMEM): nothing was
 * started and no upcall comes. Process context.
 */
struct afr_link *afr_link_connect(struct afr_net *an, const struct sockaddr *local,
				  const struct sockaddr *remote,
				  const struct afr_link_peer *peer,
				  const struct afr_link_ops *ops, void *owner);
/*
 * Passive side: @id asked to connect with valid private data @req (checked by the
 * group layer). Takes @id over unless it returns ERR_PTR(-ENOMEM); all other
 * failures are told by settled(). Called from the group's work, not from the cm
 * handler.
 */
struct afr_link *afr_link_accept(struct afr_net *an, struct rdma_cm_id *id,
				 const struct afr_wire_cm_req *req,
				 const struct afr_link_ops *ops, void *owner);

/* Refuse @id with a reason in the private data. Process context; the caller destroys @id. */
void afr_link_reject(struct rdma_cm_id *id, enum afr_reason reason);

/*
 * Process or softirq: this link is lost; idempotent. Fencing, draining, down() and
 * dead() follow from a work.
 */
void afr_link_fail(struct afr_link *link, enum afr_reason reason);
/*
 * The peer told by TCP that a link we accepted is up: no need to wait for the end
 * of the handshake. True if the link is up now. Process context.
 */
bool afr_link_confirm(struct afr_link *link);

bool afr_link_get(struct afr_link *link);	/* under RCU or with a reference */
void afr_link_put(struct afr_link *link);	/* last one frees from a work */

u64 afr_link_id(const struct afr_link *link);
bool afr_link_active(const struct afr_link *link);	/* we connected it */
bool afr_link_is_up(const struct afr_link *link);
void *afr_link_owner(const struct afr_link *link);
unsigned int afr_link_users(const struct afr_link *link);
/* In dead(): was it ever up; and was it lost soon after, as on a path that loses its packets? */
bool afr_link_was_up(const struct afr_link *link);
bool afr_link_short_lived(const struct afr_link *link);
struct afr_device *afr_link_device(const struct afr_link *link);

enum afr_link_state {
	AFR_LINK_CONNECTING,
	AFR_LINK_UP,
	AFR_LINK_DYING,		/* nothing is posted any more */
	AFR_LINK_DEAD,		/* drained */
};

/* Facts for smctl. */
struct afr_link_info {
	u64	id;
	char	device[64];
	u8	port_num;
	bool	active;
	u8	state;		/* enum afr_link_state */
	enum afr_reason	reason;
	u32	qpn, peer_qpn;
	u32	mtu;		/* path MTU in bytes, 0 until it is up */
	u32	users;
	u32	credits;	/* to the peer, now */
	u64	tx_bytes, rx_bytes, tx_writes, rx_writes;
	struct sockaddr_storage	local, remote;
};

void afr_link_info(struct afr_link *link, struct afr_link_info *info);

int afr_link_init(void);	/* and dev.c with it, which calls up into us */
void afr_link_exit(void);

#endif /* AFR_LINK_H */
