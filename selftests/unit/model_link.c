// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Model: links. A write takes its bytes from the sender's ring only when it lands, as if it were
 * retransmitted; bytes that the sender has released too early, and then overwritten, therefore
 * arrive wrong. A write that was posted on a working queue pair lands if the receiver's queue pair
 * works, whatever happens to the sender meanwhile.
 */
#include "model.h"

/* Appends a message; the credits must have left space for it. */
static void queue_put(struct message_queue *q, struct message m)
{
	if (q->count == MESSAGES)
		fail("more messages on a link than the credits allow");
	q->at[(q->head + q->count++) % MESSAGES] = m;
}

static struct message queue_get(struct message_queue *q)
{
	struct message m = q->at[q->head];

	q->head = (q->head + 1) % MESSAGES;
	q->count--;
	return m;
}

/* Returns a random link for which possible() is true at this end, or NULL. */
static struct link *some_link(const struct end *e, bool (*possible)(const struct link *, int))
{
	unsigned int first = world.links ? pick(world.links) : 0;
	unsigned int i;

	for (i = 0; i < world.links; i++) {
		struct link *link = &world.link[(first + i) % world.links];

		if (possible(link, e->id))
			return link;
	}
	return NULL;
}

/* The number of messages that this end may post, with @reserve credits kept back. */
static u16 spare(const struct link_end *self, u16 reserve)
{
	return afr_link_credit_available(&self->credit, reserve);
}

/* Uses a credit and posts @m; if the queue pair of this end does not work, @m gets an error. */
static void post(struct link *link, int from, struct message m)
{
	struct link_end *self = &link->end[from];

	afr_link_credit_use(&self->credit);
	if (!spare(self, 0))
		reached[REACH_NO_CREDIT]++;
	if (self->up)
		queue_put(&link->end[!from].wire, m);
	else
		self->error = true;
}

static bool may_post(const struct end *e)
{
	u16 reserve = mutation == MUT_NORESERVE ? 0 : AFR_LINK_CREDIT_RESERVE;

	return e->link && e->ready && !e->leaving && !link_of(e)->stopped &&
	       spare(link_of(e), reserve);
}

/* Posts a write of some of the bytes that may be sent. */
bool step_write(struct end *e, bool go)
{
	struct message m = { 0 };
	u32 window;

	if (e->tx.where != AFR_ON_LINK || !may_post(e) || !afr_tx_ready(&e->tx))
		return false;
	if (!go)
		return true;

	window = peer_of(e)->rx.ring;
	m.offset = e->tx.sent;
	m.epoch = e->tx.epoch;
	m.len = 1 + pick(afr_ring_run(m.offset, afr_tx_ready(&e->tx), window));
	m.imm = afr_imm_pack(e->peer_id, afr_rx_report_imm(&e->rx));
	afr_tx_sent(&e->tx, m.len);
	post(e->link, e->id, m);
	trace("%d: writes %llu+%u, cursor %u", e->id, (unsigned long long)m.offset, m.len,
	      afr_imm_cursor(m.imm));
	return true;
}

/* Posts a write without data, which carries only the consumer cursor that is due. */
bool step_credit(struct end *e, bool go)
{
	struct message m = { 0 };

	if (!may_post(e) || !end_by_imm(e) || !afr_rx_credit_due(&e->rx, true))
		return false;
	if (!go)
		return true;

	m.epoch = e->tx.epoch;
	m.imm = afr_imm_pack(e->peer_id, afr_rx_report_imm(&e->rx));
	post(e->link, e->id, m);
	trace("%d: immediate cursor %u", e->id, afr_imm_cursor(m.imm));
	return true;
}

/* Posts DETACH: this end writes to the peer's channel no more. */
bool step_detach(struct end *e, bool go)
{
	struct message m = { 0 };

	if (!e->detach_wanted || !e->ready || link_of(e)->stopped ||
	    !spare(link_of(e), mutation == MUT_GREEDY ? 0 : AFR_LINK_CREDIT_RESERVE))
		return false;
	if (!go)
		return true;

	m.epoch = e->tx.epoch;
	m.imm = afr_imm_pack(AFR_CHANNEL_DETACH, e->peer_id);
	e->detach_wanted = false;
	e->detach_posted = true;
	post(e->link, e->id, m);
	trace("%d: posts DETACH", e->id);
	return true;
}

static bool announces(const struct link *link, int id)
{
	const struct link_end *self = &link->end[id];

	return !self->stopped && afr_link_credit_due(&self->credit) && spare(self, 0);
}

/* Announces reposted receives to the peer, which gets a credit for each of them. */
bool step_announce(struct end *e, bool go)
{
	struct link *link = some_link(e, announces);
	struct message m = { 0 };

	if (!link || !go)
		return link;
	m.imm = afr_imm_pack(AFR_CHANNEL_CREDITS,
			     afr_link_credit_announce(&link->end[e->id].credit));
	post(link, e->id, m);
	return true;
}

static bool lands(const struct link *link, int id)
{
	return link->end[id].up && link->end[id].wire.count;
}

/* Copies the bytes of a write from the send ring of the peer to the receive ring of this end. */
static void land_bytes(struct end *e, const struct link_end *self, const struct message *m)
{
	const struct end *from = peer_of(e);
	u16 channel = afr_imm_channel(m->imm);
	u32 i;

	if (mutation != MUT_NOFENCE && (channel >= CHANNELS || !self->channel_epoch[channel]))
		fail("%d: a write with an invalid key, which breaks the whole link", e->id);
	if (self->channel_epoch[channel] != m->epoch && mutation != MUT_NOFENCE)
		fail("%d: a write lands in the ring of another epoch", e->id);
	for (i = 0; i < m->len; i++)
		e->receive_ring[afr_ring_pos(m->offset + i, e->rx.ring)] =
			from->send_ring[afr_ring_pos(m->offset + i, from->tx.ring)];
}

/* The sender polls the completion of a message that has landed. */
static void completed(struct end *sender, const struct message *m)
{
	if (m->epoch != sender->tx.epoch)
		return;
	if (afr_imm_channel(m->imm) == AFR_CHANNEL_DETACH)
		sender->detach_done = true;
	if (mutation == MUT_FREE && m->len && sender->tx.where == AFR_ON_LINK)
		sender->tx.una = max(sender->tx.una, m->offset + m->len);
}

/*
 * On a random link, the next message in flight to this end lands. This end gets a receive
 * completion. The peer polls its send completion at once, if the peer's queue pair works.
 */
bool step_land(struct end *e, bool go)
{
	struct link *link = some_link(e, lands);
	struct link_end *self;
	struct message m;

	if (!link || !go)
		return link;
	self = &link->end[e->id];
	m = queue_get(&self->wire);
	if (m.len && !e->rx.moved)
		reached[REACH_EARLY]++;
	if (!self->receives--)
		fail("%d: no receive posted", e->id);
	if (m.len)
		land_bytes(e, self, &m);
	queue_put(&self->cq, m);
	if (link->end[!e->id].up)
		completed(peer_of(e), &m);
	trace("%d: message for channel %x lands on link %d", e->id, afr_imm_channel(m.imm),
	      (int)(link - world.link));
	return true;
}

/* Is the queue pair of end @id broken, and is a message in flight to that end? */
static bool drops(const struct link *link, int id)
{
	return !link->end[id].up && link->end[id].wire.count;
}

/* Drops a message to this end, whose queue pair does not work: the sender gets an error. */
bool step_drop(struct end *e, bool go)
{
	struct link *link = some_link(e, drops);

	if (!link || !go)
		return link;
	if (afr_imm_channel(queue_get(&link->end[e->id].wire).imm) < CHANNELS)
		reached[REACH_LOST_CREDIT]++;
	link->end[!e->id].error = true;
	trace("%d: a message on link %d is lost", e->id, (int)(link - world.link));
	return true;
}

/* Applies the consumer cursor in the immediate of @m to the send state of this end. */
static void cursor_came(struct end *e, const struct message *m)
{
	u16 cursor = afr_imm_cursor(m->imm);
	u16 known = afr_cursor_encode(e->tx.consumed, peer_of(e)->rx.ring);
	int bad;

	if (m->epoch != e->tx.epoch)
		return;
	if (e->tx.open && cursor < known)
		reached[REACH_CURSOR_WRAP]++;
	if (e->tx.open && peer_of(e)->rx.consumed % afr_cursor_unit(peer_of(e)->rx.ring))
		reached[REACH_COARSE]++;
	if (mutation == MUT_NOWINDOW && !e->tx.open)
		return;
	if (mutation == MUT_STALE || mutation == MUT_NOWINDOW)
		bad = afr_tx_credit(&e->tx, afr_cursor_decode(e->tx.consumed, cursor,
							     peer_of(e)->rx.ring));
	else
		bad = afr_tx_credit_imm(&e->tx, cursor);
	if (bad)
		fail("%d: cursor %u is rejected", e->id, cursor);
}

/* The receiver polls the completion of a write to one of its channels. */
static void write_polled(struct end *e, const struct link_end *self, const struct message *m)
{
	u16 channel = afr_imm_channel(m->imm);
	int bad;

	if (!self->drained && self->channel_epoch[channel] != m->epoch && mutation != MUT_RELEASE)
		fail("%d: a completion for another epoch of channel %u", e->id, channel);
	if (mutation == MUT_STRAY && !e->rx.open && m->epoch == e->rx.epoch)
		e->rx.visible += m->len;
	if (m->epoch != e->rx.epoch || !e->rx.open)
		reached[REACH_LATE]++;
	bad = afr_rx_write_received(&e->rx, m->epoch, m->len);
	if (bad)
		fail("%d reports a protocol violation: %s at a write", e->id, afr_reason_name(bad));
	cursor_came(e, m);
}

/*
 * Polls the oldest receive completion of @link at this end and handles the message. Reposts the
 * receive that the message used, unless the queue pair of this end does not work any more.
 */
static void poll_one(struct end *e, struct link *link)
{
	struct link_end *self = &link->end[e->id];
	struct message m = queue_get(&self->cq);

	if (self->up) {
		self->receives++;
		afr_link_credit_repost(&self->credit);
	}
	switch (afr_imm_channel(m.imm)) {
	case AFR_CHANNEL_CREDITS:
		if (afr_link_credit_grant(&self->credit, afr_imm_cursor(m.imm)))
			fail("%d: an announcement is rejected", e->id);
		break;
	case AFR_CHANNEL_DETACH:
		if (!self->drained)
			end_detach_polled(e, afr_imm_cursor(m.imm));
		break;
	case CHANNEL_NOISE:
		break;
	default:
		write_polled(e, self, &m);
	}
	end_rx_changed(e);
}

static bool polls(const struct link *link, int id)
{
	return link->end[id].cq.count;
}

/* Polls and handles one receive completion of this end. */
bool step_poll(struct end *e, bool go)
{
	struct link *link = some_link(e, polls);

	if (link && go) {
		trace("%d: polls link %d", e->id, (int)(link - world.link));
		poll_one(e, link);
	}
	return link;
}

static bool stops(const struct link *link, int id)
{
	const struct link_end *self = &link->end[id];

	return !self->stopped && (self->died || self->error || self->reported_lost);
}

/* This end treats a link as lost: from now on it posts nothing there. */
bool step_stop(struct end *e, bool go)
{
	struct link *link = some_link(e, stops);

	if (!link || !go)
		return link;
	trace("%d: link %d is lost", e->id, (int)(link - world.link));
	link->end[e->id].stopped = true;
	if (e->link == link)
		end_link_lost(e);
	return true;
}

static bool drains(const struct link *link, int id)
{
	return link->end[id].stopped && !link->end[id].drained;
}

/* Fence, drain, close the epoch, send RESUME: in this order (PM3). */
bool step_drain(struct end *e, bool go)
{
	struct link *link = some_link(e, drains);
	struct link_end *self;

	if (!link || !go)
		return link;
	self = &link->end[e->id];
	if (mutation != MUT_NOFENCE)
		self->up = false;
	/*
	 * The loop may leave receive completions, which are then polled after the epoch is
	 * closed. They do no harm: completions of the peer's writes are ignored, and the peer
	 * sends the bytes again.
	 */
	while (self->cq.count && mutation != MUT_STRAY && !chance(30))
		poll_one(e, link);
	self->drained = true;
	trace("%d: link %d is fenced and drained", e->id, (int)(link - world.link));
	if (e->link == link)
		end_close(e, AFR_REASON_LINK_COMPLETION);
	return true;
}

static bool dies(const struct link *link, int id)
{
	return link->end[id].up;
}

/* The device of one link fails at this end, which may lose unpolled receive completions. */
bool step_die(struct end *e, bool go)
{
	struct link *link = some_link(e, dies);
	struct link_end *self;

	if (!link || !world.deaths || !go)
		return link && world.deaths;
	world.deaths--;
	self = &link->end[e->id];
	self->up = false;
	self->died = true;
	self->cq.count = pick(self->cq.count + 1);
	trace("%d: the device of link %d fails at this end", e->id, (int)(link - world.link));
	return true;
}

/* Another connection that shares the link posts a message. */
bool step_noise(struct end *e, bool go)
{
	struct message m = { .imm = afr_imm_pack(CHANNEL_NOISE, 0) };

	if (!world.noise || !e->link || link_of(e)->stopped ||
	    !spare(link_of(e), AFR_LINK_CREDIT_RESERVE))
		return false;
	if (go) {
		world.noise--;
		post(e->link, e->id, m);
	}
	return true;
}
