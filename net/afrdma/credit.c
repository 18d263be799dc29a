// SPDX-License-Identifier: GPL-2.0
/*
 * Receive credits of one link end (rule PC8).
 *
 * All counters are cumulative and wrap at 2^16; a depth is at most 2^14, so a
 * difference of two counters that can honestly occur is never ambiguous.
 */
#include "credit.h"

#define AFR_CREDIT_DEPTH_MIN	(AFR_CREDIT_RESERVE + AFR_CREDIT_ANNOUNCE)
#define AFR_CREDIT_DEPTH_MAX	(1u << 14)

static bool depth_ok(u16 depth)
{
	return depth >= AFR_CREDIT_DEPTH_MIN && depth <= AFR_CREDIT_DEPTH_MAX;
}

/**
 * afr_credit_init() - books of a new link end
 * @c: the books
 * @depth: receives posted here, told to the peer by the connection manager
 * @peer_depth: receives the peer says it posted
 *
 * Returns: 0, or -EPROTO if a depth cannot work: with fewer than the reserve
 * and one announcement's worth both ends can wait for each other for ever.
 */
int afr_credit_init(struct afr_credit *c, u16 depth, u16 peer_depth)
{
	if (!depth_ok(depth) || !depth_ok(peer_depth))
		return -EPROTO;

	c->depth = depth;
	c->peer_depth = peer_depth;
	c->granted = peer_depth;
	c->used = 0;
	c->posted = depth;
	c->told = depth;
	return 0;
}

/**
 * afr_credit_available() - messages that may be sent now
 * @c: the books
 * @reserve: credits to keep back: 0 for an announcement, AFR_CREDIT_RESERVE for
 *	everything else
 *
 * Returns: a number of messages, 0 to the peer's depth.
 */
u16 afr_credit_available(const struct afr_credit *c, u16 reserve)
{
	u16 left = c->granted - c->used;

	return left > reserve ? left - reserve : 0;
}

/**
 * afr_credit_use() - one message was sent; it will eat one receive of the peer
 * @c: the books
 */
void afr_credit_use(struct afr_credit *c)
{
	c->used++;
}

/**
 * afr_credit_grant() - the peer announced how many receives it has posted so far
 * @c: the books
 * @cumulative: the count, modulo 2^16
 *
 * Announcements travel in order on the link, so the count never goes back, and
 * what it leaves us is never more than the peer's depth.
 *
 * Returns: 0, or -EPROTO if the count cannot be true; then nothing changed.
 */
int afr_credit_grant(struct afr_credit *c, u16 cumulative)
{
	u16 left = c->granted - c->used;
	u16 more = cumulative - c->granted;

	if (more > c->peer_depth - left)
		return -EPROTO;

	c->granted = cumulative;
	return 0;
}

/**
 * afr_credit_repost() - one consumed receive was posted again
 * @c: the books
 */
void afr_credit_repost(struct afr_credit *c)
{
	c->posted++;
}

/**
 * afr_credit_due() - is an announcement worth a message now
 * @c: the books
 *
 * An announcement eats a receive itself: told for each single one, two idle ends
 * would answer each other for ever.
 *
 * Returns: true when a quarter of the depth, and at least AFR_CREDIT_ANNOUNCE,
 * is owed. To be asked again after every repost and every grant.
 */
bool afr_credit_due(const struct afr_credit *c)
{
	u16 owed = c->posted - c->told;

	return owed >= AFR_CREDIT_ANNOUNCE && owed >= c->depth / 4;
}

/**
 * afr_credit_announce() - take the count to announce
 * @c: the books
 *
 * The caller posts it before anything else can be posted, and calls
 * afr_credit_use() for it as for every message.
 *
 * Returns: receives posted so far, modulo 2^16.
 */
u16 afr_credit_announce(struct afr_credit *c)
{
	c->told = c->posted;
	return c->told;
}
