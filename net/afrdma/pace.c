// SPDX-License-Identifier: GPL-2.0
/*
 * Pacing: bulk leaves room for what is small and prompt.
 *
 * A question that is posted behind a ring of bulk waits for all of it, whichever queue pair
 * it takes: the wire and the peer's processor are the same. So for a while after a prompt
 * message on a link, bulk has no more than PACE_BYTES on its way there, in short writes.
 *
 * No wake-up is lost: a port is held back only while bulk that was counted is on its way.
 * That is signaled, and its completion gives the turn to the port that waits longest.
 */
#include <linux/jiffies.h>

#include "link_io.h"
#include "netns.h"
#include "stats.h"

#define PACE_FOR	(HZ / 10)	/* behind a prompt message */
#define PACE_BYTES	(32u * 1024)	/* of bulk on its way to the peer */
#define PACE_WRITE	(16u * 1024)	/* the longest write */

/* Until when bulk of this port leaves room: for others, not for itself. */
static bool paces(const struct afr_link *link, const struct afr_port *port)
{
	return time_before(jiffies, port == READ_ONCE(link->prompter) ?
				    READ_ONCE(link->others_end) : READ_ONCE(link->pace_end));
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
	link->pace_end = jiffies;
	link->others_end = jiffies;
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
	if (link->prompter != port) {
		WRITE_ONCE(link->others_end, link->pace_end);
		WRITE_ONCE(link->prompter, port);	/* to compare with only */
	}
	WRITE_ONCE(link->pace_end, jiffies + PACE_FOR);
}

/**
 * afr_pace_admit() - may this port post bulk now?
 * @port: the port; queued if it has to wait
 * @len: of the write, bytes
 * @counted: out: bytes to count while they are on their way
 *
 * Context: Process or softirq, under link->lock.
 * Return: 0 or -EAGAIN (paced() will come).
 */
int afr_pace_admit(struct afr_port *port, u32 len, u32 *counted)
{
	struct afr_link *link = port->link;

	lockdep_assert_held(&link->lock);
	if (!paces(link, port))
		return 0;
	*counted = len;
	if (link->bulk < PACE_BYTES)
		return 0;
	if (list_empty(&port->pacing)) {
		list_add_tail(&port->pacing, &link->paced);
		afr_stat_inc(link->an->net, AFR_STAT_LINK_PACED);
	}
	return -EAGAIN;
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
	if (link->bulk >= PACE_BYTES && paces(link, port))
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
	u32 most = port->link->write_max;

	return paces(port->link, port) ? min(PACE_WRITE, most) : most;
}
