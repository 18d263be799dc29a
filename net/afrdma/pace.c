// SPDX-License-Identifier: GPL-2.0
/*
 * Pacing: bulk leaves room for what is small and prompt.
 *
 * On a queue pair a question waits for all that was posted before it, and a ring of bulk may be
 * that. So for a while after a prompt message bulk of other connections of the link has only so
 * much on its way as waits for PACE_USECS: little on a slow fabric, and on a fast one so much
 * that it is hardly slower. Links do not pace each other: there the device arbitrates.
 *
 * No wake-up is lost: a port is held back only while bulk that was counted is on its way. That
 * is signaled, and its completion gives the turn to the port that waits longest.
 *
 * On iWARP a completion only says that TCP has taken the bytes: there is less to be had.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/sizes.h>

#include "link_io.h"
#include "netns.h"
#include "stats.h"

#define PACE_FOR	(HZ / 10)	/* behind a prompt message */
#define PACE_USECS	200		/* from post to completion, above the least there was */
#define PACE_LEAST	SZ_16K		/* bytes on their way, and in one write */
#define PACE_MOST	SZ_64M

/* Does bulk of this port leave room? For others, not for itself. */
static bool paces(const struct afr_link *link, const struct afr_port *port)
{
	u64 end = port == READ_ONCE(link->prompter) ? READ_ONCE(link->others_end) :
						      READ_ONCE(link->pace_end);

	return time_before64(get_jiffies_64(), end) && READ_ONCE(link->an->set.pacing);
}

/* The last two of who asks say what paces() is to look at. */
static void refresh(struct afr_link *link)
{
	const struct list_head *last = link->askers.prev, *before = last->prev;
	u64 now = get_jiffies_64();
	bool any = last != &link->askers, two = any && before != &link->askers;

	WRITE_ONCE(link->prompter, any ? list_entry(last, struct afr_port, asking) : NULL);
	WRITE_ONCE(link->pace_end, any ? list_entry(last, struct afr_port, asking)->asks_end : now);
	WRITE_ONCE(link->others_end,
		   two ? list_entry(before, struct afr_port, asking)->asks_end : now);
}

/**
 * afr_pace_init() - no prompt message has gone yet
 * @link: the link
 *
 * Context: Any; no other user yet.
 */
void afr_pace_init(struct afr_link *link)
{
	INIT_LIST_HEAD(&link->paced);
	INIT_LIST_HEAD(&link->askers);
	refresh(link);
	link->pace_room = PACE_LEAST;
	link->pace_base = U32_MAX;
}

/**
 * afr_pace_prompt() - a prompt message is being posted
 * @port: the port
 *
 * Context: Process or softirq, under link->lock.
 */
void afr_pace_prompt(struct afr_port *port)
{
	struct afr_link *link = port->link;

	lockdep_assert_held(&link->lock);
	AFR_CHECK(port->joined);	/* what leaves is forgotten, and does not ask again */
	port->asks_end = get_jiffies_64() + PACE_FOR;
	list_move_tail(&port->asking, &link->askers);
	refresh(link);
}

/**
 * afr_pace_forget() - nobody need leave room for this port: it has bulk itself, or it goes
 * @port: the port
 *
 * Context: Process or softirq, under link->lock.
 */
void afr_pace_forget(struct afr_port *port)
{
	lockdep_assert_held(&port->link->lock);
	if (list_empty(&port->asking))
		return;
	list_del_init(&port->asking);
	refresh(port->link);
}

/**
 * afr_pace_admit() - may this port post bulk now?
 * @port: the port; queued if it has to wait
 * @len: of the write, bytes
 * @mark: of the write; set to what counts while it is on its way
 *
 * Context: Process or softirq, under link->lock.
 * Return: 0 or -EAGAIN (paced() will come).
 */
int afr_pace_admit(struct afr_port *port, u32 len, struct afr_link_mark *mark)
{
	struct afr_link *link = port->link;

	lockdep_assert_held(&link->lock);
	afr_pace_forget(port);
	if (link->state != AFR_LINK_UP || !paces(link, port))
		return 0;
	mark->bulk = len;
	mark->posted = ktime_get();
	if (link->bulk < link->pace_room)
		return 0;
	if (list_empty(&port->pacing)) {
		list_add_tail(&port->pacing, &link->paced);
		afr_stat_inc(link->an->net, AFR_STAT_LINK_PACED);
	}
	return -EAGAIN;
}

/* Did it wait for others? The least time there was is what it takes alone; that may grow. */
static bool late(struct afr_link *link, const struct afr_link_mark *mark)
{
	u32 us = clamp_t(s64, ktime_us_delta(ktime_get(), mark->posted), 0, S32_MAX);

	link->pace_base = min(us, link->pace_base < U32_MAX ? link->pace_base + 1 : U32_MAX);
	return us - link->pace_base >= PACE_USECS;
}

/**
 * afr_pace_done() - a write has completed
 * @link: the link
 * @mark: of the write
 *
 * What comes late leaves less room; what comes soon makes more, if the room was used.
 *
 * Context: Process or softirq, under link->lock.
 */
void afr_pace_done(struct afr_link *link, const struct afr_link_mark *mark)
{
	u32 room = link->pace_room;

	lockdep_assert_held(&link->lock);
	if (!mark->bulk)
		return;
	if (late(link, mark))
		room = max(min(room, link->bulk), mark->bulk / 2 + PACE_LEAST) - mark->bulk / 2;
	else if (link->bulk >= room / 2)
		room = min(room + mark->bulk, (u32)PACE_MOST);
	WRITE_ONCE(link->pace_room, room);
	link->bulk -= mark->bulk;
}

/**
 * afr_pace_next() - the port whose turn it is
 * @link: the link
 *
 * Context: Process or softirq, under link->lock.
 * Return: a port that was held back and may go on, or NULL.
 */
struct afr_port *afr_pace_next(struct afr_link *link)
{
	struct afr_port *port = list_first_entry_or_null(&link->paced, struct afr_port, pacing);

	lockdep_assert_held(&link->lock);
	if (!port || link->state != AFR_LINK_UP)
		return NULL;
	if (link->bulk >= link->pace_room && paces(link, port))
		return NULL;
	list_del_init(&port->pacing);
	return port;
}

/**
 * afr_port_bulk_max() - how long a write of bulk should be now
 * @port: the port, joined
 *
 * Context: Any. Without the lock it is a guess.
 * Return: bytes.
 */
u32 afr_port_bulk_max(const struct afr_port *port)
{
	const struct afr_link *link = port->link;

	if (!paces(link, port))
		return link->write_max;
	return min(max_t(u32, READ_ONCE(link->pace_room) / 2, PACE_LEAST), link->write_max);
}
