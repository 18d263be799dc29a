// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Counts the receive credits of one end of a link (PC8).
 *
 * All counters are cumulative and wrap at 2^16. A depth is at most 2^14, so the difference of two
 * counters is never ambiguous as long as the peer keeps to the protocol.
 */
#include "link_credit.h"

#define AFR_LINK_CREDIT_DEPTH_MIN	(AFR_LINK_CREDIT_RESERVE + AFR_LINK_CREDIT_ANNOUNCE)
#define AFR_LINK_CREDIT_DEPTH_MAX	(1u << 14)

static bool depth_ok(u16 depth)
{
	return depth >= AFR_LINK_CREDIT_DEPTH_MIN && depth <= AFR_LINK_CREDIT_DEPTH_MAX;
}

/**
 * afr_link_credit_init() - initialise the credits of a new link
 * @c: credits of the link
 * @depth: receives posted here, as the rdma_cm handshake reports them to the peer
 * @peer_depth: receives that the peer has posted, from the rdma_cm handshake
 *
 * Depths are at most 2^14, and at least AFR_LINK_CREDIT_RESERVE + AFR_LINK_CREDIT_ANNOUNCE: with
 * fewer receives, both ends could wait for each other forever.
 *
 * Context: any; link->lock held, or no message was posted yet.
 * Return: 0, or -EPROTO if a depth is out of bounds; then nothing has changed.
 */
int afr_link_credit_init(struct afr_link_credit *c, u16 depth, u16 peer_depth)
{
	if (!depth_ok(depth) || !depth_ok(peer_depth))
		return -EPROTO;

	c->depth = depth;
	c->peer_depth = peer_depth;
	c->granted = peer_depth;
	c->used = 0;
	c->posted = depth;
	c->announced = depth;
	return 0;
}

/**
 * afr_link_credit_available() - count the messages that may be sent now
 * @c: credits of the link
 * @reserve: how many credits to leave out of the count: 0, or AFR_LINK_CREDIT_RESERVE, which only
 *	announcements that are due may use
 *
 * Context: any, link->lock held.
 * Return: messages, at most the peer's depth.
 */
u16 afr_link_credit_available(const struct afr_link_credit *c, u16 reserve)
{
	u16 left = c->granted - c->used;

	return left > reserve ? left - reserve : 0;
}

/**
 * afr_link_credit_use() - account for a message that was sent and uses a receive of the peer
 * @c: credits of the link
 *
 * Context: any, link->lock held.
 */
void afr_link_credit_use(struct afr_link_credit *c)
{
	c->used++;
}

/**
 * afr_link_credit_grant() - apply an announcement of the peer
 * @c: credits of the link
 * @cumulative: receives that the peer has posted so far, modulo 2^16
 *
 * Announcements arrive in the order in which they were sent, so a correct count is never below an
 * earlier one. Nor does it ever raise the number of unused credits above the peer's depth.
 *
 * Context: any, link->lock held.
 * Return: 0, or -EPROTO if the count is impossible; then nothing has changed.
 */
int afr_link_credit_grant(struct afr_link_credit *c, u16 cumulative)
{
	u16 left = c->granted - c->used;
	u16 more = cumulative - c->granted;

	if (more > c->peer_depth - left)
		return -EPROTO;

	c->granted = cumulative;
	return 0;
}

/**
 * afr_link_credit_repost() - account for a receive that was used and has been posted again
 * @c: credits of the link
 *
 * Context: any, link->lock held.
 */
void afr_link_credit_repost(struct afr_link_credit *c)
{
	c->posted++;
}

/**
 * afr_link_credit_due() - should the posted receives be announced now?
 * @c: credits of the link
 *
 * An announcement uses a receive itself: if every single receive were announced, two idle ends
 * would answer each other forever. The caller checks again after every repost and every grant.
 *
 * Context: any, link->lock held.
 * Return: true if a quarter of the depth, and at least AFR_LINK_CREDIT_ANNOUNCE receives, have not
 * been announced yet.
 */
bool afr_link_credit_due(const struct afr_link_credit *c)
{
	u16 owed = c->posted - c->announced;

	return owed >= AFR_LINK_CREDIT_ANNOUNCE && owed >= c->depth / 4;
}

/**
 * afr_link_credit_announce() - get the count to announce, and count it as announced
 * @c: credits of the link
 *
 * The caller posts the announcement before any other message, and calls afr_link_credit_use() for
 * it as for every message.
 *
 * Context: any, link->lock held.
 * Return: receives posted so far, modulo 2^16.
 */
u16 afr_link_credit_announce(struct afr_link_credit *c)
{
	c->announced = c->posted;
	return c->announced;
}
