/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive credits of one link end: how many receives the peer has posted for
 * us, and how many we owe it the news of (rule PC8).
 *
 * Counters are cumulative and 16 bits wide, as on the wire. Nothing but an
 * announcement uses the last AFR_CREDIT_RESERVE credits.
 * Protected by the link lock of the owner.
 */
#ifndef AFR_CREDIT_H
#define AFR_CREDIT_H

#include "pure.h"

#define AFR_CREDIT_RESERVE	1
#define AFR_CREDIT_ANNOUNCE	2	/* least number of owed receives to tell */

struct afr_credit {
	u16	depth;		/* receives we post */
	u16	peer_depth;	/* receives the peer posts */
	u16	granted;	/* cumulative: receives the peer told it posted */
	u16	used;		/* cumulative: messages we sent */
	u16	posted;		/* cumulative: receives we posted */
	u16	told;		/* cumulative: receives the peer knows of */
};

/* Both depths must be at least AFR_CREDIT_RESERVE + AFR_CREDIT_ANNOUNCE and at most 2^14. */
int afr_credit_init(struct afr_credit *c, u16 depth, u16 peer_depth);

/* Messages that may be sent now, @reserve of them kept back. */
u16 afr_credit_available(const struct afr_credit *c, u16 reserve);
void afr_credit_use(struct afr_credit *c);

/* The peer announced a cumulative count: 0, or -EPROTO if it cannot be true. */
int afr_credit_grant(struct afr_credit *c, u16 cumulative);

/* We reposted one receive. */
void afr_credit_repost(struct afr_credit *c);
/* Is an announcement worth a message? At a quarter of the depth, at least AFR_CREDIT_ANNOUNCE. */
bool afr_credit_due(const struct afr_credit *c);
/* The count to announce now; from here on the peer counts as told. */
u16 afr_credit_announce(struct afr_credit *c);

#endif /* AFR_CREDIT_H */
