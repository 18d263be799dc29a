// SPDX-License-Identifier: GPL-2.0
/*
 * The watch over links: is the peer's device still there, does anybody use the link?
 *
 * A host that is gone, a path that is blocked: the device's own retries tell of it
 * late (by the defaults of rdma_cm after half a minute), and only if something was
 * posted. Who has nothing to write would wait for the peer's writes for ever.
 */
#include "link_io.h"
#include "netns.h"
#include "stats.h"

#define WATCH_LOOKS	8	/* without life, then the link is lost */
#define TAIL_PROBES	3	/* behind one last message */

static void watch_again(struct afr_link *link)
{
	unsigned long limit = msecs_to_jiffies(READ_ONCE(link->an->set.link_timeout_ms));

	mod_timer(&link->timer, jiffies + limit / WATCH_LOOKS + 1);
}

/**
 * afr_link_watch() - somebody uses the link: look after it
 * @link: the link, up
 *
 * Context: Process or softirq, under link->lock.
 */
void afr_link_watch(struct afr_link *link)
{
	lockdep_assert_held(&link->lock);
	link->silent = 0;
	watch_again(link);
}

/**
 * afr_link_watch_look() - has the peer's device shown life?
 * @link: the link, in use
 *
 * A completion or a message is life. Without either, a probe asks for one. On iWARP
 * a completion means that TCP has taken the bytes, which is life only while more waits
 * for it.
 * Looks are counted, not time: a host that stood still itself gives its peer another
 * chance.
 *
 * Context: Process or softirq, under link->lock.
 */
void afr_link_watch_look(struct afr_link *link)
{
	bool done = link->seen_tail != link->mark_tail;
	bool open = link->mark_tail != link->mark_head;
	u64 rx = READ_ONCE(link->rx_writes);

	lockdep_assert_held(&link->lock);
	if (link->seen_rx != rx || (done && (open || !link->iwarp)))
		link->silent = 0;
	else if (!open || link->iwarp)
		afr_link_io_probe(link);
	link->seen_tail = link->mark_tail;
	link->seen_rx = rx;
	if (++link->silent > WATCH_LOOKS)
		afr_link_io_fail(link, AFR_REASON_LINK_SILENT);
	else
		watch_again(link);
}

/**
 * afr_link_watch_tail() - has arrived what was posted?
 * @timer: of the link
 *
 * A device that misses a packet says so when the next one comes. Behind the last packet none
 * comes, and the sender's device repeats it only at its timeout, by the defaults of rdma_cm half
 * a second, for which all connections of the link stand still. So when nothing was posted for a
 * moment and not all has completed, as most is posted without a signal, a probe is that next
 * packet; TCP does the same (RFC 8985, section 7). It may be lost, too: then another one follows,
 * each after twice the time, and in the end the device's timeout is left.
 *
 * The timeout itself stays as long as it is: times the retries it is how long a host may stand
 * still and find its links in place.
 *
 * Context: Softirq.
 */
void afr_link_watch_tail(struct timer_list *timer)
{
	struct afr_link *link = from_timer(link, timer, tail);
	unsigned int probes;

	spin_lock_bh(&link->lock);
	probes = link->tail_posts == link->posts ? link->tail_probes + 1 : 0;
	if (link->state == AFR_LINK_UP && link->sq_used && probes <= TAIL_PROBES) {
		if (probes) {
			afr_stat_inc(link->an->net, AFR_STAT_LINK_TAIL);
			afr_link_io_probe(link);
		}
		link->tail_posts = link->posts;
		link->tail_probes = probes;
		mod_timer(&link->tail, jiffies + (AFR_LINK_TAIL << probes));
	}
	spin_unlock_bh(&link->lock);
}

/**
 * afr_link_watch_idle() - nobody uses the link: let the clock run
 * @link: the link
 *
 * The end that connected the link takes it down; the other one only if that end
 * does not.
 *
 * Context: Process or softirq, under link->lock.
 */
void afr_link_watch_idle(struct afr_link *link)
{
	const struct afr_settings *set = &link->an->set;
	unsigned int ms = READ_ONCE(set->link_linger_ms);
	unsigned long linger;

	lockdep_assert_held(&link->lock);
	if (link->state != AFR_LINK_UP)
		return;
	/* the connection that it was made for is on its way */
	if (!link->serial)
		ms = max_t(unsigned int, ms, READ_ONCE(set->attach_timeout_ms));
	linger = msecs_to_jiffies(ms);
	link->idle_end = jiffies + (link->active ? linger : 2 * linger);
	mod_timer(&link->timer, link->idle_end);
}
