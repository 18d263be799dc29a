/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Receive credits of one end of a link (PC8). Every message uses a receive of the peer, so each end
 * counts the receives that the peer has posted, and announces those that it has posted itself.
 *
 * Counters are cumulative and 16 bits wide, as on the wire. Only announcements that are due use the
 * last AFR_LINK_CREDIT_RESERVE credits. Protected by link->lock.
 */
#ifndef AFR_PROTO_LINK_CREDIT_H
#define AFR_PROTO_LINK_CREDIT_H

#include "portable.h"

#define AFR_LINK_CREDIT_RESERVE	1
#define AFR_LINK_CREDIT_ANNOUNCE	2	/* for fewer receives, no announcement is due */

struct afr_link_credit {
	u16	depth;		/* receives in the local receive queue */
	u16	peer_depth;	/* receives in the peer's receive queue */
	u16	granted;	/* cumulative: receives that the peer has announced */
	u16	used;		/* cumulative: messages sent */
	u16	posted;		/* cumulative: receives posted */
	u16	announced;	/* cumulative: receives announced to the peer */
};

int afr_link_credit_init(struct afr_link_credit *c, u16 depth, u16 peer_depth);

u16 afr_link_credit_available(const struct afr_link_credit *c, u16 reserve);
void afr_link_credit_use(struct afr_link_credit *c);
int afr_link_credit_grant(struct afr_link_credit *c, u16 cumulative);

void afr_link_credit_repost(struct afr_link_credit *c);
bool afr_link_credit_due(const struct afr_link_credit *c);
u16 afr_link_credit_announce(struct afr_link_credit *c);

#endif /* AFR_PROTO_LINK_CREDIT_H */
