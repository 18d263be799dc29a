// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Model: the application at one end of the connection, the epochs of this end, and how the
 * connection ends.
 */
#include "model.h"

void end_init(struct end *e, int id, u32 send_ring, u32 receive_ring)
{
	memset(e, 0, sizeof(*e));
	e->id = id;
	e->send_ring = malloc(send_ring);
	e->receive_ring = malloc(receive_ring);
	memset(e->send_ring, 0xee, send_ring);
	memset(e->receive_ring, 0xdd, receive_ring);
	afr_tx_init(&e->tx, send_ring, AFR_WINDOW_INITIAL >> world.scale);
	afr_rx_init(&e->rx, receive_ring);
	e->blocked_at = U64_MAX;
	e->hello_pending = true;
	if (mutation == MUT_NOWINDOW)
		e->tx.window = 1 << 30;
}

void end_free(struct end *e)
{
	free(e->send_ring);
	free(e->receive_ring);
}

void end_check(const struct end *e, int reason, const char *what)
{
	if (reason)
		fail("%d reports a protocol violation: %s at %s", e->id, afr_reason_name(reason),
		     what);
}

void end_rx_changed(struct end *e)
{
	if (afr_rx_finack_due(&e->rx))
		e->finack_pending = true;
}

/* ---- the application ---- */

bool step_app_write(struct end *e, bool go)
{
	u32 len = afr_tx_space(&e->tx);
	u32 i;

	if (e->tx.fin != AFR_NO_FIN || !len || e->tx.written == e->total ||
	    (e->writer_waits && !afr_tx_writable(&e->tx)))
		return false;
	if (!go)
		return true;

	len = 1 + pick(len);
	if (len > e->total - e->tx.written)
		len = e->total - e->tx.written;
	trace("%d: application writes %llu+%u", e->id, (unsigned long long)e->tx.written, len);
	for (i = 0; i < len; i++)
		e->send_ring[afr_ring_pos(e->tx.written + i, e->tx.ring)] =
			byte_at(e->id, e->tx.written + i);
	afr_tx_write(&e->tx, len);
	e->writer_waits = chance(50);
	e->blocked_sent = false;
	return true;
}

bool step_app_fin(struct end *e, bool go)
{
	if (e->tx.fin != AFR_NO_FIN || e->tx.written != e->total)
		return false;
	if (go) {
		trace("%d: application ends the stream", e->id);
		afr_tx_fin(&e->tx);
		e->fin_pending = true;
	}
	return true;
}

/*
 * Returns the largest number of bytes that the reader waits for (SO_RCVLOWAT, MSG_PEEK). In a run
 * with large rings this is afr_rx_lowat_max(), with tiny rings the same limit scaled down. With
 * mutation lowat-whole-ring it is the whole ring.
 */
static u32 want_max(const struct end *e)
{
	if (mutation == MUT_LOWAT)
		return e->rx.ring;
	if (world.scale) {
		u32 least = AFR_RING_MIN >> world.scale;

		return least - least / 3;
	}
	return afr_rx_lowat_max(&e->rx);
}

bool step_app_read(struct end *e, bool go)
{
	u32 len = afr_rx_readable(&e->rx);
	u32 i;

	if (e->writes_first && e->tx.fin == AFR_NO_FIN)
		return false;
	if (mutation == MUT_EARLYEOF && e->rx.fin != AFR_NO_FIN && !len && !afr_rx_eof(&e->rx))
		fail("%d: the reader takes an incomplete stream for complete", e->id);
	if (!len || (len < e->want && e->rx.visible != e->rx.fin))
		return false;
	if (!go)
		return true;

	if (chance(50))
		len = 1 + pick(len);
	trace("%d: application reads %llu+%u", e->id, (unsigned long long)e->rx.consumed, len);
	for (i = 0; i < len; i++) {
		u64 at = e->rx.consumed + i;
		u8 byte = e->receive_ring[afr_ring_pos(at, e->rx.ring)];

		if (byte != byte_at(!e->id, at))
			fail("%d: wrong byte at %llu", e->id, (unsigned long long)at);
	}
	afr_rx_consume(&e->rx, len);
	e->want = 1 + (chance(50) ? pick(want_max(e)) : want_max(e) - 1);
	return true;
}

/* ---- epochs ---- */

/* Is the cursor reported by immediates only (PC3)? */
bool end_by_imm(const struct end *e)
{
	return e->rx.open && e->ready;
}

static void epoch_begin(struct end *e, struct link *link, u32 epoch)
{
	afr_rx_open(&e->rx, epoch);
	e->link = link;
	e->unanswered = false;
	e->ready = false;
	e->leaving = false;
	e->detach_wanted = false;
	e->detach_posted = false;
	e->detach_done = false;
	e->refused = false;
	e->resume_sent = false;
	e->resume_came = false;
	e->resume_pending = false;
}

/* Takes a free channel id of this end for the epoch; returns false if there is none. */
static bool channel_take(struct end *e)
{
	struct link_end *at = link_of(e);

	for (e->channel = 0; e->channel < CHANNELS; e->channel++) {
		if (!at->channel_epoch[e->channel]) {
			at->channel_epoch[e->channel] = e->rx.epoch;
			return true;
		}
	}
	return false;
}

/* Does the channel id of this end still belong to its current epoch? */
static bool channel_held(const struct end *e)
{
	return e->link && e->channel < CHANNELS &&
	       link_of(e)->channel_epoch[e->channel] == e->rx.epoch;
}

void end_channel_free(struct end *e)
{
	if (channel_held(e))
		link_of(e)->channel_epoch[e->channel] = 0;
}

static struct afr_frame attach_frame(struct end *e, u8 type, u32 reason)
{
	struct afr_frame frame = { .type = type };

	frame.attach.epoch = e->tx.epoch;
	frame.attach.reason = reason;
	frame.attach.link = e->link - world.link;
	frame.attach.addr = 0x1000;
	frame.attach.rkey = 0x1234;
	frame.attach.ring = e->rx.ring << world.scale;
	frame.attach.span = frame.attach.ring;
	frame.attach.channel = reason ? 0 : e->channel;
	frame.attach.flags = e->id ? 0 : AFR_ATTACH_ACTIVE;
	frame.attach.consumed = afr_rx_report(&e->rx);
	return frame;
}

/*
 * Frees the channel id of this end, and closes its epoch if that is open. Makes RESUME pending if
 * the peer may need RESUME.
 */
void end_close(struct end *e, u32 reason)
{
	bool outstanding = e->tx.where != AFR_ON_TCP;

	end_channel_free(e);
	/*
	 * If the peer's DETACH closed the epoch before the link was lost, and the peer's RESUME
	 * has not come, the peer may still wait for the DETACH of this end, which may never
	 * arrive. So RESUME reports the loss, even if one was already written for this epoch.
	 */
	if (!e->rx.open && (e->resume_came || mutation == MUT_QUIET))
		return;
	if (e->rx.open)
		afr_rx_close(&e->rx);
	if (e->shut || (mutation == MUT_SILENT && reason && !outstanding))
		return;

	trace("%d: closes epoch %u, has received %llu", e->id, e->rx.epoch,
	      (unsigned long long)e->rx.visible);
	e->resume = (struct afr_frame){ .type = AFR_FRAME_RESUME };
	e->resume.resume.epoch = e->rx.epoch;
	e->resume.resume.reason = reason;
	e->resume.resume.received = e->rx.visible;
	e->resume_pending = true;
}

/* Leaves a link that is lost, on which DETACH cannot be posted any more. */
void end_link_lost(struct end *e)
{
	afr_tx_leave(&e->tx);
	e->leaving = true;
	e->detach_wanted = false;
}

/* Leaves a link that stays up: DETACH follows the last write. */
static void end_leave(struct end *e)
{
	afr_tx_leave(&e->tx);
	e->leaving = true;
	e->detach_wanted = true;
}

/*
 * Handles DETACH, the peer's last message for @channel: frees @channel and closes the epoch at
 * this end. If this end is not leaving the link yet, it starts to leave.
 */
void end_detach_polled(struct end *e, u16 channel)
{
	if (!channel_held(e) || channel != e->channel)
		fail("%d: DETACH for a channel id that is not in use", e->id);
	trace("%d: DETACH polled", e->id);
	if (e->unanswered)
		reached[REACH_EARLY_DETACH]++;
	end_channel_free(e);
	if (e->rx.open)
		end_close(e, 0);
	if (!e->leaving)
		end_leave(e);
}

/*
 * Ends the current epoch at this end, because the server has refused the attach, or has shut down
 * TCP without having answered ATTACH.
 */
void end_refused(struct end *e)
{
	trace("%d: epoch %u refused", e->id, e->tx.epoch);
	reached[REACH_REFUSED]++;
	e->refused = true;
	e->leaving = true;
	afr_tx_leave(&e->tx);
	end_channel_free(e);
	if (mutation == MUT_UNSENT) {
		if (e->rx.open)
			afr_rx_close(&e->rx);
		e->resume_sent = true;
		e->resume_came = true;
		return;
	}
	if (e->rx.open)
		end_close(e, 0);
}

/*
 * Is the last epoch, if any, over? This end must have closed it and written RESUME, and the peer's
 * RESUME must have come.
 */
static bool epoch_over(const struct end *e)
{
	return !e->tx.epoch || (!e->tx.open && !e->rx.open && e->resume_sent &&
				(e->resume_came || mutation == MUT_HASTE));
}

/*
 * Client: begins the next epoch, on a new link, or on the link of the last epoch if that link is
 * not stopped and has a free channel id.
 */
bool step_attach(struct end *e, bool go)
{
	struct link *link = e->link;

	if (e->id || !world.attaches || !e->hello_in || e->hello_pending || e->shut ||
	    e->eof_in || e->tx.finacked || !epoch_over(e) || e->tx.where != AFR_ON_TCP)
		return false;
	if (link && (link_of(e)->stopped || chance(30)))
		link = NULL;
	if (link && link_of(e)->channel_epoch[0] && link_of(e)->channel_epoch[1])
		return false;
	if (!link && world.links == LINKS)
		return false;
	if (!go)
		return true;

	world.attaches--;
	if (link)
		reached[REACH_REUSE]++;
	if (link && e->channel == 0 && !link_of(e)->channel_epoch[0])
		reached[REACH_CHANNEL]++;
	if (!link)
		link = link_make();
	epoch_begin(e, link, afr_tx_open(&e->tx));
	channel_take(e);
	trace("%d: ATTACH epoch %u on link %d, channel %u", e->id, e->tx.epoch,
	      (int)(link - world.link), e->channel);
	e->attach = attach_frame(e, AFR_FRAME_ATTACH, 0);
	e->attach_pending = true;
	e->unanswered = true;
	return true;
}

void end_attach_came(struct end *e, const struct afr_frame *f)
{
	struct link *link = &world.link[f->attach.link];

	if (e->shut)
		return;
	if (f->attach.epoch != e->tx.epoch + 1 || e->rx.open)
		fail("%d: ATTACH of epoch %u during epoch %u", e->id,
		     f->attach.epoch, e->tx.epoch);
	if (afr_tx_open(&e->tx) != f->attach.epoch)
		fail("%d: ATTACH while suspended", e->id);

	end_check(e, afr_tx_credit(&e->tx, f->attach.consumed), "ATTACH");
	epoch_begin(e, link, f->attach.epoch);
	e->attached_pending = true;
	if (link_of(e)->stopped || chance(10) || !channel_take(e)) {
		e->channel = CHANNELS;
		e->attached = attach_frame(e, AFR_FRAME_ATTACHED, AFR_REASON_LINK_BUSY);
		end_refused(e);
		return;
	}
	/*
	 * Sample the cursor now, before any immediate. If the peer read a later cursor in ATTACHED
	 * and then polled an immediate with an earlier one, it would decode a huge advance.
	 */
	e->attached = attach_frame(e, AFR_FRAME_ATTACHED, 0);
	e->peer_id = f->attach.channel;
	e->ready = true;
}

void end_attached_came(struct end *e, const struct afr_frame *f)
{
	if (!e->unanswered || f->attach.epoch != e->tx.epoch)
		fail("%d: ATTACHED without ATTACH", e->id);
	e->unanswered = false;
	end_check(e, afr_tx_credit(&e->tx, f->attach.consumed), "ATTACHED");
	if (f->attach.reason) {
		end_refused(e);
		return;
	}
	e->peer_id = f->attach.channel;
	e->ready = true;
}

/* Is this end attached to a link that it neither leaves nor treats as lost? */
static bool may_post(const struct end *e)
{
	return e->ready && !e->leaving && !link_of(e)->stopped;
}

/* The sender moves its direction to the link. */
bool step_move(struct end *e, bool go)
{
	if (!e->link || !may_post(e) || !afr_tx_may_move(&e->tx) || e->out_at < e->out_len)
		return false;
	if (mutation == MUT_NOWINDOW &&
	    e->tx.sent - e->tx.consumed > peer_of(e)->rx.ring)
		return false;
	if (!go)
		return true;

	if (mutation == MUT_NOWINDOW)
		e->tx.window = peer_of(e)->rx.ring;
	e->move = (struct afr_frame){ .type = AFR_FRAME_MOVE };
	e->move.move.epoch = e->tx.epoch;
	e->move.move.start = afr_tx_move(&e->tx);
	if (peer_of(e)->tx.where == AFR_ON_LINK)
		reached[REACH_BOTH]++;
	e->move_pending = true;
	trace("%d: MOVE at %llu", e->id, (unsigned long long)e->move.move.start);
	return true;
}

/* This end leaves a link that stays up, as when an administrator moves the connection to TCP. */
bool step_leave(struct end *e, bool go)
{
	if (!world.leaves || !e->link || !may_post(e))
		return false;
	if (go) {
		world.leaves--;
		trace("%d: leaves the link", e->id);
		end_leave(e);
	}
	return true;
}

/* Both streams are complete: this end leaves the link. */
bool step_finish(struct end *e, bool go)
{
	if (!e->link || !may_post(e) || !e->tx.finacked || !e->rx.finack_requested ||
	    e->finack_pending)
		return false;
	if (go) {
		trace("%d: both streams are complete, detaches", e->id);
		end_leave(e);
	}
	return true;
}

/* ---- the end ---- */

/*
 * Has this end left its link (PE4)? Also true if this end has never attached, or if its last attach
 * failed. RESUME may still be pending; step_tcp_shut() checks for that.
 */
static bool has_left(const struct end *e)
{
	if (!e->tx.epoch || e->refused || link_of(e)->drained)
		return true;
	if (mutation == MUT_SHUTPOST)
		return e->detach_posted;
	return e->detach_done && (!channel_held(e) || mutation == MUT_SHUTEARLY);
}

/* Shuts down TCP, once both streams are complete and this end has left the link. */
bool step_tcp_shut(struct end *e, bool go)
{
	bool may = e->tx.finacked && e->rx.finack_requested && has_left(e);

	if (mutation == MUT_SHUTOWN)
		may = e->tx.finacked;
	if (e->shut || !may || e->resume_pending || e->finack_pending || e->attached_pending ||
	    e->out_at < e->out_len || e->out_data)
		return false;
	if (go) {
		trace("%d: shuts down TCP", e->id);
		e->shut = true;
		world.tcp[!e->id].shut = true;
	}
	return true;
}

/* The connection ends at this end: all bytes must have been transferred. */
bool step_end(struct end *e, bool go)
{
	if (e->ended || !e->shut || !e->eof_in || !afr_rx_eof(&e->rx) || channel_held(e))
		return false;
	if (go) {
		if (e->rx.consumed != peer_of(e)->total || e->tx.una != e->total)
			fail("%d: ended before all bytes were transferred", e->id);
		trace("%d: ended", e->id);
		e->ended = true;
	}
	return true;
}
