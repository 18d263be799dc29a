// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The TCP of rogue (RFC 9293). It sends one segment at a time, drops segments that arrive out of
 * order and has no congestion control. That is enough: the TUN device neither loses nor reorders
 * packets.
 */
#define _GNU_SOURCE
#include "rogue.h"

#define WINDOW		60000
#define ACK_SECONDS	1.0	/* until a segment is retransmitted */
#define TRIES		12	/* how often a segment, or a window probe, is sent at most */

static void emit(struct tcb *tcb, u8 flags, u32 seq, const void *data, unsigned int len)
{
	struct segment seg = {
		.sport = tcb->port, .dport = tcb->peer_port, .seq = seq, .flags = flags,
		.window = WINDOW, .data = data, .data_len = len,
	};

	if (flags & TCP_ACK)
		seg.ack = tcb->rcv_nxt;
	tun_send(tcb->tun, &seg);
}

/* Sends a SYN or SYN-ACK, by @flags, with @options. */
static void emit_syn(struct tcb *tcb, u8 flags, const u8 *options, unsigned int len)
{
	struct segment seg = {
		.sport = tcb->port, .dport = tcb->peer_port, .seq = tcb->snd_una,
		.ack = flags & TCP_ACK ? tcb->rcv_nxt : 0, .flags = flags, .window = WINDOW,
		.options = options, .options_len = len,
	};

	tun_send(tcb->tun, &seg);
}

void tcp_init(struct tcb *tcb, struct tun *tun, u16 port, u16 peer_port)
{
	u8 *in = tcb->in ? tcb->in : malloc(IN_MAX);

	*tcb = (struct tcb) { .tun = tun, .port = port, .peer_port = peer_port, .in = in };
	tcb->snd_una = rnd();
	tcb->snd_nxt = tcb->snd_una;
}

/*
 * Answers a segment that belongs to no connection, or to an earlier one, with RST, unless the
 * segment is itself an RST (RFC 9293).
 */
static void refuse(struct tun *tun, const struct segment *got)
{
	struct segment seg = { .sport = got->dport, .dport = got->sport, .flags = TCP_RST };

	if (got->flags & TCP_RST)
		return;
	if (got->flags & TCP_ACK) {
		seg.seq = got->ack;
	} else {
		seg.flags |= TCP_ACK;
		seg.ack = got->seq + got->data_len + !!(got->flags & TCP_SYN);
	}
	tun_send(tun, &seg);
}

/* Takes sequence number, window and options from the peer's SYN or SYN-ACK. */
static void keep_syn(struct tcb *tcb, const struct segment *seg)
{
	tcb->syns++;
	tcb->syn_seq = seg->seq;
	tcb->rcv_nxt = seg->seq + 1;
	tcb->peer_window = seg->window;
	tcb->syn_options_len = seg->options_len < 40 ? seg->options_len : 40;
	memcpy(tcb->syn_options, seg->options, tcb->syn_options_len);
}

/* Takes the bytes of a segment, and its FIN, unless earlier bytes are missing. */
static void take_data(struct tcb *tcb, const struct segment *seg)
{
	u32 skip = tcb->rcv_nxt - seg->seq;	/* bytes of the segment that were received before */
	u32 fresh;

	if ((int)skip < 0 || skip > seg->data_len)
		return;
	fresh = seg->data_len - skip;
	if (tcb->in_len + fresh > IN_MAX)
		fresh = IN_MAX - tcb->in_len;
	memcpy(tcb->in + tcb->in_len, seg->data + skip, fresh);
	tcb->in_len += fresh;
	tcb->rcv_nxt += fresh;
	if (seg->flags & TCP_FIN && skip + fresh == seg->data_len && !tcb->peer_fin) {
		tcb->peer_fin = true;
		tcb->rcv_nxt++;
	}
}

/* Processes a segment of this connection. */
static void take(struct tcb *tcb, const struct segment *seg)
{
	tcb->urgent |= !!(seg->flags & TCP_URG);
	if (seg->flags & TCP_RST) {
		/* An RST outside the window may belong to an earlier connection. */
		if (!tcb->rcv_nxt || seg->seq - tcb->rcv_nxt < WINDOW || seg->seq == tcb->rcv_nxt)
			tcb->reset = true;
		return;
	}
	if (seg->flags & TCP_SYN) {
		keep_syn(tcb, seg);
		if (seg->flags & TCP_ACK) {
			tcb->snd_una = seg->ack;
			tcb->established = true;
			if (tcb->before_ack)
				tcb->before_ack(tcb);
			emit(tcb, TCP_ACK, tcb->snd_nxt, NULL, 0);
		}
		return;
	}
	if (seg->flags & TCP_ACK && (int)(seg->ack - tcb->snd_una) >= 0 &&
	    (int)(seg->ack - tcb->snd_nxt) <= 0) {
		tcb->snd_una = seg->ack;
		tcb->peer_window = seg->window << tcb->peer_scale;
		tcb->established = true;
	}
	if (!seg->data_len && !(seg->flags & TCP_FIN))
		return;
	take_data(tcb, seg);
	emit(tcb, TCP_ACK, tcb->snd_nxt, NULL, 0);
}

static bool is_ours(const struct tcb *tcb, const struct segment *seg)
{
	if (seg->dport != tcb->port)
		return false;
	return !tcb->peer_port || seg->sport == tcb->peer_port;
}

/* Receives a segment and processes or refuses it. Returns false if no packet arrives for @ms. */
bool tcp_turn(struct tcb *tcb, int ms)
{
	u8 buf[PACKET_MAX];
	struct segment seg;

	if (!tun_receive(tcb->tun, ms, buf, &seg))
		return false;
	if (is_ours(tcb, &seg))
		take(tcb, &seg);
	else
		refuse(tcb->tun, &seg);
	return true;
}

/* Active open. Returns false if the peer does not answer, or answers with RST. */
bool tcp_connect(struct tcb *tcb, const u8 *options, unsigned int len)
{
	for (int i = 0; i < TRIES; i++) {
		double end = now() + ACK_SECONDS;

		emit_syn(tcb, TCP_SYN, options, len);
		tcb->snd_nxt = tcb->snd_una + 1;
		while (!tcb->established && !tcb->reset && now() < end)
			tcp_turn(tcb, 50);
		if (tcb->established || tcb->reset)
			return tcb->established;
		tcb->snd_nxt = tcb->snd_una;
	}
	return false;
}

/*
 * First step of a passive or simultaneous open: waits for the SYN. tcp_answer_syn() is a separate
 * step, since the options of the SYN-ACK may depend on the SYN.
 */
bool tcp_await_syn(struct tcb *tcb)
{
	double end = now() + ACK_SECONDS * TRIES;

	while (now() < end) {
		u8 buf[PACKET_MAX];
		struct segment seg;

		if (!tun_receive(tcb->tun, 50, buf, &seg))
			continue;
		if (seg.dport != tcb->port || !(seg.flags & TCP_SYN)) {
			refuse(tcb->tun, &seg);
			continue;
		}
		tcb->peer_port = seg.sport;
		keep_syn(tcb, &seg);
		return true;
	}
	return false;
}

/* Second step of a passive open. Returns false if the peer does not answer, or answers with RST. */
bool tcp_answer_syn(struct tcb *tcb, const u8 *options, unsigned int len)
{
	for (int i = 0; i < TRIES; i++) {
		double end = now() + ACK_SECONDS;

		emit_syn(tcb, TCP_SYN | TCP_ACK, options, len);
		tcb->snd_nxt = tcb->snd_una + 1;
		while (!tcb->established && !tcb->reset && now() < end)
			tcp_turn(tcb, 50);
		if (tcb->established || tcb->reset)
			return tcb->established;
		tcb->snd_nxt = tcb->snd_una;
	}
	return false;
}

/*
 * Simultaneous open: sends a SYN after that of the peer. tcp_turn() will acknowledge the peer's
 * SYN-ACK.
 */
void tcp_cross_syn(struct tcb *tcb)
{
	emit_syn(tcb, TCP_SYN, NULL, 0);
	tcb->snd_nxt = tcb->snd_una + 1;
}

static bool await_ack(struct tcb *tcb, u32 seq, double seconds)
{
	double end = now() + seconds;

	while ((int)(tcb->snd_una - seq) < 0 && !tcb->reset && now() < end)
		tcp_turn(tcb, 10);
	return (int)(tcb->snd_una - seq) >= 0;
}

/* Sends one segment up to TRIES times, until it is acknowledged. Returns false if it is not. */
static bool deliver(struct tcb *tcb, u8 flags, const u8 *data, unsigned int len)
{
	u32 seq = tcb->snd_nxt;

	for (int i = 0; i < TRIES && !tcb->reset; i++) {
		emit(tcb, flags, seq, data, len);
		tcb->snd_nxt = seq + len + !!(flags & TCP_FIN);
		if (await_ack(tcb, tcb->snd_nxt, ACK_SECONDS))
			return true;
	}
	return false;
}

/* Sends segments of at most @chunk bytes, each after the previous one was acknowledged. */
bool tcp_send(struct tcb *tcb, const void *data, size_t len, size_t chunk)
{
	const u8 *p = data;

	while (len) {
		size_t part = len < chunk ? len : chunk;

		part = part < MSS ? part : MSS;
		/* One byte probes a closed window. */
		if (tcb->peer_window && part > tcb->peer_window)
			part = tcb->peer_window;
		else if (!tcb->peer_window)
			part = 1;
		if (tcb->reset || !deliver(tcb, TCP_ACK | TCP_PSH, p, part))
			return false;
		p += part;
		len -= part;
	}
	return true;
}

void tcp_fin(struct tcb *tcb)
{
	if (tcb->fin_sent || tcb->reset)
		return;
	tcb->fin_sent = true;
	deliver(tcb, TCP_ACK | TCP_FIN, NULL, 0);
}

/* Sends RST with the sequence number that the peer expects, as RFC 5961 requires. */
void tcp_rst(struct tcb *tcb)
{
	if (tcb->peer_port)
		emit(tcb, TCP_RST | TCP_ACK, tcb->snd_una, NULL, 0);
}
