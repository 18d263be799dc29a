// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Keepalive: finds out that the peer's device is gone, repairs the loss of a last packet, and
 * starts the idle time after which link.c takes a link down.
 *
 * When a host is gone or a path is blocked, the device's own retries report it late (with the
 * defaults of rdma_cm after about four seconds at the earliest), and only if something was posted.
 * A connection that has nothing to write would wait for the peer's writes forever.
 */
#include "compat.h"
#include "link_keepalive.h"
#include "link_queue.h"
#include "netns.h"

/*
 * The link is lost after this many checks in a row without activity, or after one check more if
 * there was no activity at all since afr_link_keepalive_start().
 */
#define KEEPALIVE_CHECKS	8
#define TAIL_PROBES	3	/* probes after the last message posted */

static void restart_timer(struct afr_link *link)
{
	unsigned long limit = msecs_to_jiffies(READ_ONCE(link->an->set.link_timeout_ms));

	mod_timer(&link->timer, jiffies + limit / KEEPALIVE_CHECKS + 1);
}

/**
 * afr_link_keepalive_start() - start to check a link that has just got its only channel
 * @link: link, up
 *
 * Context: process or softirq, link->lock held.
 */
void afr_link_keepalive_start(struct afr_link *link)
{
	lockdep_assert_held(&link->lock);
	link->keepalive.silent_checks = 0;
	restart_timer(link);
}

/**
 * afr_link_keepalive_check() - check whether the peer's device shows activity
 * @link: link, in use; link->timer has expired
 *
 * A completion or a message is activity. Without either, a probe is posted to cause one, unless a
 * signaled request is outstanding, whose completion will do. On iWARP a completion only means that
 * the local TCP has taken the bytes, so there a probe is posted even if a signaled request is
 * outstanding. A completion on iWARP is activity only if more signaled requests are outstanding:
 * then TCP's buffer is probably full, and only acknowledgments of the peer make room in it.
 *
 * Checks are counted, not time, so that a host that was suspended itself does not blame its peer.
 *
 * Context: process or softirq, link->lock held.
 */
void afr_link_keepalive_check(struct afr_link *link)
{
	bool done = link->keepalive.last_sq_tail != link->sq.tail;
	bool open = link->sq.tail != link->sq.head;
	u64 rx = READ_ONCE(link->rx.writes);

	lockdep_assert_held(&link->lock);
	if (link->keepalive.last_rx_writes != rx || (done && (open || !link->iwarp)))
		link->keepalive.silent_checks = 0;
	else if (!open || link->iwarp)
		afr_link_queue_probe(link);
	link->keepalive.last_sq_tail = link->sq.tail;
	link->keepalive.last_rx_writes = rx;
	if (++link->keepalive.silent_checks > KEEPALIVE_CHECKS)
		afr_link_queue_fail(link, AFR_REASON_LINK_SILENT);
	else
		restart_timer(link);
}

/**
 * afr_link_keepalive_tail() - probe for the loss of the last message
 * @timer: link->keepalive.tail
 *
 * A device reports a missing packet when the next one arrives. After the last packet none arrives,
 * and the sender's device repeats it only after its timeout (half a second with the defaults of
 * rdma_cm), which stalls all connections of the link. So if nothing was posted for a moment and
 * something has not completed (often only because it is unsignaled), a probe provides the next
 * packet; TCP does the same (RFC 8985, section 7). As a probe may be lost, too, more follow, each
 * after twice the time of the one before; after TAIL_PROBES only the device's timeout remains.
 *
 * That timeout is not shortened: multiplied by the retries, it limits the time that a host may be
 * suspended without losing its links.
 *
 * Context: softirq.
 */
void afr_link_keepalive_tail(struct timer_list *timer)
{
	struct afr_link *link = timer_container_of(link, timer, keepalive.tail);
	unsigned int probes;

	spin_lock_bh(&link->lock);
	probes = link->keepalive.tail_posts == link->sq.posts ? link->keepalive.tail_probes + 1 : 0;
	if (link->state == AFR_LINK_UP && link->sq.used && probes <= TAIL_PROBES) {
		if (probes && afr_link_queue_probe(link))
			afr_netns_count(link->an->net, AFR_STAT_LINK_TAIL);
		link->keepalive.tail_posts = link->sq.posts;
		link->keepalive.tail_probes = probes;
		mod_timer(&link->keepalive.tail, jiffies + (AFR_LINK_TAIL << probes));
	}
	spin_unlock_bh(&link->lock);
}

/**
 * afr_link_keepalive_idle() - start the idle time of a link without channels
 * @link: link
 *
 * The active end takes an idle link down. The passive end waits twice as long, and takes it down
 * only if the active end has not. Neither waits in a namespace without AF_RDMA sockets, since the
 * link pins the namespace. This does not apply to the initial namespace, which never ends.
 *
 * Context: process or softirq, link->lock held.
 */
void afr_link_keepalive_idle(struct afr_link *link)
{
	const struct afr_settings *set = &link->an->set;
	unsigned int ms = READ_ONCE(set->link_linger_ms);
	unsigned long linger;

	lockdep_assert_held(&link->lock);
	if (link->state != AFR_LINK_UP)
		return;
	/* no channel has joined yet: wait for the connection that requested the link */
	if (!link->members.serial)
		ms = max_t(unsigned int, ms, READ_ONCE(set->attach_timeout_ms));
	if (afr_netns_unused(link->an))
		ms = 0;
	linger = msecs_to_jiffies(ms);
	link->keepalive.idle_end = jiffies + (link->active ? linger : 2 * linger);
	mod_timer(&link->timer, link->keepalive.idle_end);
}
