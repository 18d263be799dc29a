// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Model: the frames that one end writes to TCP and reads from it. HELLO is written first, then
 * pending frames in random order, but CREDIT waits for a pending RESUME, and RESUME waits for a
 * pending ATTACH or ATTACHED. Frames are written and read in pieces of any size.
 */
#include "model.h"

#define PROOF(sender)	afr_hello_proof(0x5eed, (sender) == 1)

enum candidate {
	PEND_DATA, PEND_CREDIT, PEND_BLOCKED, PEND_ATTACH, PEND_ATTACHED, PEND_MOVE,
	PEND_RESUME, PEND_FIN, PEND_FINACK, PEND_UNKNOWN, PEND_COUNT,
};

static bool wants_credit(const struct end *e)
{
	if (mutation == MUT_DOUBLE)
		return !e->resume_pending && e->rx.consumed > e->rx.reported &&
		       (e->rx.blocked || e->rx.consumed - e->rx.reported >= e->rx.ring / 2);
	if (end_by_imm(e))
		return false;
	/*
	 * RESUME goes before CREDIT. Until the peer has read RESUME, it may still decode cursors
	 * in immediates, and a cursor earlier than the one in CREDIT would look like a huge
	 * advance.
	 */
	if (e->resume_pending && mutation != MUT_REORDER)
		return false;
	if (mutation == MUT_REORDER && e->resume_pending)
		return true;
	return afr_rx_credit_due(&e->rx, false);
}

static bool wants_blocked(const struct end *e)
{
	if (mutation == MUT_HALF || (mutation == MUT_SPACE && e->tx.written == e->tx.sent) ||
	    (mutation == MUT_CRUMBS && e->tx.written == e->tx.sent && afr_tx_space(&e->tx)))
		return false;
	return afr_tx_blocked(&e->tx) && !(mutation == MUT_ONCE && e->blocked_sent) &&
	       e->blocked_at != e->tx.consumed;
}

/* Returns the set of frames that may be written next, as a bit mask of enum candidate. */
static unsigned int candidates(const struct end *e)
{
	unsigned int set = 0;

	if (e->tx.where == AFR_ON_TCP && afr_tx_ready(&e->tx))
		set |= 1 << PEND_DATA;
	if (wants_credit(e))
		set |= 1 << PEND_CREDIT;
	if (wants_blocked(e))
		set |= 1 << PEND_BLOCKED;
	if (e->attach_pending)
		set |= 1 << PEND_ATTACH;
	if (e->attached_pending)
		set |= 1 << PEND_ATTACHED;
	if (e->move_pending)
		set |= 1 << PEND_MOVE;
	/*
	 * Write RESUME after a pending ATTACH or ATTACHED of the same epoch: behind RESUME, ATTACH
	 * would open an epoch that is over, and ATTACHED would make the client use it.
	 */
	if (e->resume_pending &&
	    ((!e->attach_pending && !e->attached_pending) || mutation == MUT_ORDER))
		set |= 1 << PEND_RESUME;
	if (e->fin_pending)
		set |= 1 << PEND_FIN;
	if (e->finack_pending)
		set |= 1 << PEND_FINACK;
	if (e->unknown_pending)
		set |= 1 << PEND_UNKNOWN;
	return set;
}

static struct afr_frame data_frame(struct end *e)
{
	struct afr_frame f = { .type = AFR_FRAME_DATA, .offset = e->tx.sent };
	u32 most = afr_tx_ready(&e->tx);

	if (mutation == MUT_NOWINDOW)
		most = min(most, peer_of(e)->rx.ring);
	f.length = 1 + pick(min(most, 60000u));
	e->out_data = f.length;
	afr_tx_sent(&e->tx, f.length);
	return f;
}

static struct afr_frame offset_frame(u8 type, u64 offset)
{
	return (struct afr_frame){ .type = type, .offset = offset };
}

/* Builds a pending frame, which is then pending no more. */
static struct afr_frame make_frame(struct end *e, enum candidate kind)
{
	switch (kind) {
	case PEND_DATA:
		return data_frame(e);
	case PEND_CREDIT:
		return offset_frame(AFR_FRAME_CREDIT, afr_rx_report(&e->rx));
	case PEND_BLOCKED:
		e->blocked_at = e->tx.consumed;
		e->blocked_sent = true;
		if (e->tx.written == e->tx.sent)
			reached[REACH_ROOMLESS]++;
		return offset_frame(AFR_FRAME_BLOCKED, e->tx.sent);
	case PEND_ATTACH:
		e->attach_pending = false;
		return e->attach;
	case PEND_ATTACHED:
		e->attached_pending = false;
		if (mutation == MUT_LATE)
			e->attached.attach.consumed = afr_rx_report(&e->rx);
		return e->attached;
	case PEND_MOVE:
		e->move_pending = false;
		return e->move;
	case PEND_RESUME:
		e->resume_pending = false;
		reached[REACH_TWICE] += e->resume_sent;
		e->resume_sent = true;
		reached[REACH_LATER] += e->rx.consumed > e->resume.resume.received;
		if (mutation != MUT_FROZEN)
			e->resume.resume.received = e->rx.visible;
		e->resume.resume.consumed = afr_rx_report(&e->rx);
		return e->resume;
	case PEND_FIN:
		e->fin_pending = false;
		return offset_frame(AFR_FRAME_FIN, e->tx.fin);
	case PEND_FINACK:
		e->finack_pending = false;
		return offset_frame(AFR_FRAME_FINACK, e->rx.fin);
	default:
		e->unknown_pending = false;
		return (struct afr_frame){ .type = 200, .flags = AFR_FRAME_OPTIONAL };
	}
}

static void out_hello(struct end *e)
{
	struct afr_hello hello = { .proof = PROOF(e->id), .ring = e->rx.ring << world.scale };
	struct afr_wire_hello wire;

	hello.length = sizeof(wire);
	afr_hello_write(&wire, &hello);
	memcpy(e->out, &wire, sizeof(wire));
	e->out_len = sizeof(wire);
	e->hello_pending = false;
}

/* Puts HELLO, or a frame picked at random from @set, into the output buffer. */
static void out_next(struct end *e, unsigned int set)
{
	struct afr_frame f;
	u32 kind;

	e->out_at = 0;
	if (e->hello_pending) {
		out_hello(e);
		return;
	}
	do {
		kind = pick(PEND_COUNT);
	} while (!(set & 1 << kind));
	f = make_frame(e, kind);
	e->out_len = afr_frame_write(e->out, &f);
	trace("%d: %s", e->id, kind == PEND_UNKNOWN ? "unknown" : afr_frame_name(f.type));
}

static void tcp_put(struct tcp *t, u8 byte)
{
	t->bytes[(t->head + t->count++) % t->size] = byte;
}

static u8 tcp_get(struct tcp *t)
{
	u8 byte = t->bytes[t->head];

	t->head = (t->head + 1) % t->size;
	t->count--;
	return byte;
}

bool step_tcp_write(struct end *e, bool go)
{
	struct tcp *t = &world.tcp[!e->id];
	u32 room = t->size - t->count;
	unsigned int set = 0;
	u32 n;

	if (e->shut || !room)
		return false;
	if (e->out_at == e->out_len && !e->out_data) {
		set = candidates(e);
		if (!set && !e->hello_pending)
			return false;
	}
	if (!go)
		return true;

	if (e->out_at == e->out_len && !e->out_data)
		out_next(e, set);
	room = chance(70) ? room : 1 + pick(room);
	for (; room && e->out_at < e->out_len; room--)
		tcp_put(t, e->out[e->out_at++]);
	for (n = 0; n < room && n < e->out_data; n++)
		tcp_put(t, e->send_ring[afr_ring_pos(e->tx.una + n, e->tx.ring)]);
	if (n)
		afr_tx_tcp_accepted(&e->tx, n);
	e->out_data -= n;
	return true;
}

/* ---- frames in ---- */

/* Counts this RESUME in reached[] if it is of a kind that the schedules must reach. */
static void resume_reached(const struct end *e, const struct afr_frame *f)
{
	if (f->resume.epoch != e->tx.epoch || e->tx.where == AFR_ON_TCP)
		reached[REACH_UNAWAITED]++;
	else if (f->resume.received < e->tx.start)
		reached[REACH_BELOW_S]++;
	else if (f->resume.received < e->tx.sent)
		reached[REACH_REWIND]++;
}

static void resume_came(struct end *e, const struct afr_frame *f)
{
	u64 consumed = f->resume.consumed;

	resume_reached(e, f);
	if (mutation == MUT_NOCURSOR)
		consumed = 0;
	if (mutation == MUT_BACK)
		e->tx.start = 0;
	end_check(e, afr_tx_resume(&e->tx, f->resume.epoch, f->resume.received, consumed),
		  "RESUME");
	if (mutation == MUT_NOWINDOW)
		e->tx.window = 1 << 30;
	if (f->resume.epoch != e->tx.epoch || !e->link)
		return;
	e->resume_came = true;
	if (f->resume.reason)
		link_of(e)->reported_lost = true;
	if (mutation == MUT_RELEASE)
		end_channel_free(e);
}

static void move_came(struct end *e, const struct afr_frame *f)
{
	u32 epoch = f->move.epoch;

	if (!e->rx.open || epoch != e->rx.epoch)
		reached[REACH_STALE_MOVE]++;
	if (mutation == MUT_NOEPOCH && e->rx.open)
		epoch = e->rx.epoch;
	end_check(e, afr_rx_move(&e->rx, epoch, f->move.start), "MOVE");
}

static void blocked_came(struct end *e)
{
	afr_rx_blocked(&e->rx);
	if (mutation == MUT_FORGET && !afr_rx_credit_due(&e->rx, end_by_imm(e)))
		e->rx.blocked = false;
}

static void frame_came(struct end *e, const struct afr_frame *f)
{
	trace("%d: gets %s", e->id, afr_frame_name(f->type));
	switch (f->type) {
	case AFR_FRAME_DATA:
		if (mutation != MUT_NOWINDOW)
			end_check(e, afr_rx_data(&e->rx, f->offset, f->length), "DATA");
		e->in_data = f->length;
		if (e->rx.fin != AFR_NO_FIN && e->rx.epoch && !e->rx.open)
			reached[REACH_RESEND_FIN]++;
		break;
	case AFR_FRAME_CREDIT:
		end_check(e, afr_tx_credit(&e->tx, f->offset), "CREDIT");
		break;
	case AFR_FRAME_ATTACH:
		end_attach_came(e, f);
		break;
	case AFR_FRAME_ATTACHED:
		end_attached_came(e, f);
		break;
	case AFR_FRAME_BLOCKED:
		blocked_came(e);
		break;
	case AFR_FRAME_MOVE:
		move_came(e, f);
		break;
	case AFR_FRAME_RESUME:
		resume_came(e, f);
		break;
	case AFR_FRAME_FIN:
		end_check(e, afr_rx_fin(&e->rx, f->offset), "FIN");
		break;
	case AFR_FRAME_FINACK:
		if (e->tx.where == AFR_SUSPENDED)
			reached[REACH_SUSPENDED_FINACK]++;
		end_check(e, afr_tx_finack(&e->tx, f->offset), "FINACK");
		break;
	default:
		e->in_skip = f->length;
	}
	end_rx_changed(e);
}

/* A byte of HELLO was read: parses all bytes of HELLO that have been read so far. */
static void hello_byte(struct end *e)
{
	struct afr_hello hello;

	switch (afr_hello_parse(e->in, e->in_len, PROOF(!e->id), &hello)) {
	case AFR_HELLO_MORE:
		return;
	case AFR_HELLO_YES:
		e->hello_in = true;
		e->in_len = 0;
		if (mutation != MUT_NOWINDOW)
			afr_tx_set_window(&e->tx, hello.ring >> world.scale);
		return;
	default:
		fail("%d: HELLO was rejected", e->id);
	}
}

/* A byte of a frame's header or fixed body was read: handles the frame when both are complete. */
static void head_byte(struct end *e)
{
	unsigned int need = 0;
	struct afr_frame f;
	int used;

	used = afr_frame_parse(e->in, e->in_len, &f, &need);
	if (used < 0)
		fail("%d: a frame was rejected", e->id);
	if (!used && need <= e->in_len)
		fail("%d: the parser makes no progress", e->id);
	if (!used)
		return;
	e->in_len = 0;
	frame_came(e, &f);
}

/* Reads @len bytes of DATA from TCP into the receive ring. */
static void data_bytes(struct end *e, struct tcp *t, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		e->receive_ring[afr_ring_pos(e->rx.visible + i, e->rx.ring)] = tcp_get(t);
	e->in_data -= len;
	afr_rx_data_received(&e->rx, len);
	end_rx_changed(e);
}

/*
 * Mutation window-ignored: DATA that exceeds the ring stays in TCP, and so do the frames behind it.
 */
static bool parser_stuck(const struct end *e)
{
	return mutation == MUT_NOWINDOW && e->in_data &&
	       e->rx.visible - e->rx.consumed == e->rx.ring;
}

static void tcp_ended(struct end *e)
{
	trace("%d: end of TCP", e->id);
	e->eof_in = true;
	if (e->in_len || e->in_data || e->in_skip)
		fail("%d: TCP ended in the middle of a frame", e->id);
	if (e->rx.visible != e->rx.fin)
		fail("%d: TCP ended before the end of the stream", e->id);
	if (!e->tx.finacked)
		fail("%d: TCP ended before FINACK", e->id);
	if (e->unanswered) {
		e->unanswered = false;
		end_refused(e);
	}
}

bool step_tcp_read(struct end *e, bool go)
{
	struct tcp *t = &world.tcp[e->id];
	u32 n;

	if (e->eof_in || (!t->count && !t->shut) || (t->count && parser_stuck(e)))
		return false;
	if (!go)
		return true;
	if (!t->count) {
		tcp_ended(e);
		return true;
	}

	for (n = 1 + pick(t->count); n; n--) {
		if (parser_stuck(e)) {
			break;
		} else if (e->in_data) {
			u32 len = min(n, e->in_data);

			if (mutation == MUT_NOWINDOW)
				len = min(len, (u32)(e->rx.ring -
						     (e->rx.visible - e->rx.consumed)));
			data_bytes(e, t, len);
			n -= len - 1;
		} else if (e->in_skip) {
			tcp_get(t);
			e->in_skip--;
		} else {
			e->in[e->in_len++] = tcp_get(t);
			if (e->hello_in)
				head_byte(e);
			else
				hello_byte(e);
		}
	}
	return true;
}
