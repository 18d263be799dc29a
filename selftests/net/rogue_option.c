// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * A wrong or missing TCP option: the connection falls back to TCP, and no byte is lost. Also
 * handshakes that rogue abandons, a simultaneous open, a client that ignores the acceptance of its
 * offer, a victim that listens again during a handshake, and a reset before rogue has sent a byte.
 */
#define _GNU_SOURCE
#include <poll.h>

#include "rogue.h"

#define BYTES	3000

static void send_unframed(struct peer *p)
{
	peer_raw_bytes(p, BYTES);
}

/* ---- building an option list ---- */

struct list {
	u8 bytes[40];
	unsigned int len;
};

static void add(struct list *l, const void *bytes, unsigned int len)
{
	memcpy(l->bytes + l->len, bytes, len);
	l->len += len;
}

static void add_good(struct list *l, const struct peer *p)
{
	struct afr_tcp_option opt = {
		.nonce = p->as_client ? p->nonce : afr_tcp_option_answer(p->nonce),
		.server = !p->as_client,
	};
	u8 option[AFR_OPT_LEN];

	afr_tcp_option_write(option, &opt);
	add(l, option, sizeof(option));
}

/* Adds the correct option with byte @at replaced by @value. */
static void add_changed(struct list *l, const struct peer *p, unsigned int at, u8 value)
{
	unsigned int start = l->len;

	add_good(l, p);
	l->bytes[start + at] = value;
}

static void pad(struct list *l)
{
	while (l->len % 4)
		add(l, "\1", 1);
}

/* ---- lists that must not be taken for an offer or an acceptance ---- */

static void one_length(struct list *l, const struct peer *p, unsigned int i)
{
	static const u8 lengths[] = { 0, 1, 2, 5, 6, 11, 13, 14, 40, 255 };

	add_changed(l, p, 1, lengths[i]);
}

static void one_version(struct list *l, const struct peer *p, unsigned int i)
{
	static const u8 versions[] = { 0, 2, 0x7f, 0xff };

	add_changed(l, p, 6, versions[i]);
}

/* The option claims the role of the other end, or has undefined flags. */
static void one_role(struct list *l, const struct peer *p, unsigned int i)
{
	static const u8 flags[] = { 0x02, 0x80, 0xfe, 0xff };

	if (!i)
		add_changed(l, p, 7, p->as_client ? AFR_OPT_ROLE_SERVER : 0);
	else
		add_changed(l, p, 7, flags[i - 1]);
}

static void one_exid(struct list *l, const struct peer *p, unsigned int i)
{
	add_changed(l, p, 2 + i, 0);
}

/* The option twice; if @i, the second one has another nonce. */
static void two_options(struct list *l, const struct peer *p, unsigned int i)
{
	add_good(l, p);
	if (i)
		add_changed(l, p, 11, l->bytes[11] ^ 1);
	else
		add_good(l, p);
}

/* The option list, and with it the TCP header, ends in the middle of the option. */
static void cut_short(struct list *l, const struct peer *p, unsigned int i)
{
	add_good(l, p);
	l->len = (i + 1) * 4;
}

/* A malformed option of another kind before or behind the correct one. */
static void bad_neighbour(struct list *l, const struct peer *p, unsigned int i)
{
	static const u8 bad[][4] = { { 200, 0, 1, 1 }, { 200, 1, 1, 1 }, { 200, 255, 1, 1 } };

	if (i % 2)
		add_good(l, p);
	add(l, bad[i / 2], 4);
	if (!(i % 2))
		add_good(l, p);
}

static void no_option(struct list *l, const struct peer *p, unsigned int i)
{
	(void)l;
	(void)p;
	(void)i;
}

/* A correct option behind the end of the list. */
static void behind_end(struct list *l, const struct peer *p, unsigned int i)
{
	(void)i;
	add(l, "\0\0\0\0", 4);
	add_good(l, p);
}

/* An option of AF_RDMA's kind or of an unknown one, with a length that may be wrong. */
static void add_random(struct list *l)
{
	u8 option[16];
	unsigned int len = 2 + rnd() % 11;

	for (size_t i = 0; i < sizeof(option); i++)
		option[i] = 64 + rnd() % 192;
	option[0] = rnd() % 3 ? AFR_OPT_KIND : 200 + rnd() % 50;
	option[1] = rnd() % 4 ? len : rnd() % 64;
	if (rnd() % 2)
		memcpy(option + 2, "\xaf\x4d\x41\xd7", 4);
	add(l, option, len);
}

static void random_list(struct list *l, const struct peer *p, unsigned int i)
{
	(void)p;
	(void)i;
	/*
	 * Stays below 18 bytes: some kernels search longer lists for the MD5 option, and drop a
	 * segment if its list is malformed.
	 */
	while (l->len < 4)
		add_random(l);
}

/* Does the TCP handshake with the option list of @make, and sends unframed bytes. */
static void open_with(struct peer *p, unsigned int i,
		      void (*make)(struct list *l, const struct peer *p, unsigned int i))
{
	struct list l = { .len = 0 };
	struct afr_tcp_option opt;

	/* As server, rogue needs the nonce in the victim's SYN first. */
	if (!p->as_client && !tcp_await_syn(&p->tcb)) {
		wrong(p, "the victim does not connect");
		return;
	}
	if (!p->as_client && !afr_tcp_option_find(p->tcb.syn_options, p->tcb.syn_options_len, &opt))
		p->nonce = opt.nonce;
	make(&l, p, i);
	pad(&l);
	if (!peer_open_options(p, l.bytes, l.len))
		return;
	if (p->as_client && !afr_tcp_option_find(p->tcb.syn_options, p->tcb.syn_options_len, &opt))
		wrong(p, "the victim accepts an option list that is no offer");
	send_unframed(p);
}

#define ROW(name)								\
	static void open_##name(struct peer *p, unsigned int i)			\
	{									\
		open_with(p, i, name);						\
	}

ROW(one_length)
ROW(one_version)
ROW(one_role)
ROW(one_exid)
ROW(two_options)
ROW(cut_short)
ROW(bad_neighbour)
ROW(no_option)
ROW(behind_end)
ROW(random_list)

/* ---- rows in which rogue is always the server ---- */

/* Acts like a middlebox that copies all options of the SYN into the SYN-ACK. */
static void echoed(struct peer *p, unsigned int i)
{
	(void)i;
	if (!tcp_await_syn(&p->tcb)) {
		wrong(p, "the victim does not connect");
		return;
	}
	if (peer_open_options(p, p->tcb.syn_options, p->tcb.syn_options_len))
		send_unframed(p);
}

/* Answers with a wrong nonce: the client's own, 0, or the right one with one bit inverted. */
static void wrong_nonce(struct peer *p, unsigned int i)
{
	struct afr_tcp_option opt = { .server = true };
	u8 options[AFR_OPT_LEN];

	if (!tcp_await_syn(&p->tcb)) {
		wrong(p, "the victim does not connect");
		return;
	}
	if (afr_tcp_option_find(p->tcb.syn_options, p->tcb.syn_options_len, &opt) && rogue.rdma)
		wrong(p, "no option in the victim's SYN");
	opt.server = true;
	if (i)
		opt.nonce = i == 1 ? 0 : afr_tcp_option_answer(opt.nonce) ^ 1u << (i % 32);
	afr_tcp_option_write(options, &opt);
	if (peer_open_options(p, options, sizeof(options)))
		send_unframed(p);
}

/* Ignores the three SYNs that carry the option, and answers the fourth, which must not carry it. */
static void first_syns_lost(struct peer *p, unsigned int i)
{
	struct afr_tcp_option opt;
	bool found = true;

	(void)i;
	for (int syn = 1; syn <= 4; syn++) {
		if (!tcp_await_syn(&p->tcb)) {
			wrong(p, "the victim gave up");
			return;
		}
		found = !afr_tcp_option_find(p->tcb.syn_options, p->tcb.syn_options_len, &opt);
		if (found != (rogue.rdma && syn < 4))
			wrong(p, "SYN %d is sent %s the option", syn, found ? "with" : "without");
	}
	if (peer_open_options(p, NULL, 0))
		send_unframed(p);
}

/*
 * Simultaneous open: the victim is in SYN-RECEIVED when it calls shutdown(SHUT_WR). TCP sends FIN
 * as soon as the connection is established, and the victim still reads all bytes.
 */
static void shut_crossing(struct peer *p, unsigned int i)
{
	double end = now() + rogue.patience;

	(void)i;
	if (!tcp_await_syn(&p->tcb)) {
		wrong(p, "the victim does not connect");
		return;
	}
	tcp_cross_syn(&p->tcb);
	while (victim_state(&p->victim) == VICTIM_STARTING && now() < end)
		poll(NULL, 0, 1);	/* not tcp_turn(), which would acknowledge the SYN-ACK */
	while (!p->tcb.peer_fin && now() < end)
		tcp_turn(&p->tcb, 10);
	if (!p->tcb.established || !p->tcb.peer_fin)
		wrong(p, "%s after shutdown(SHUT_WR) in SYN-RECEIVED",
		      p->tcb.established ? "no FIN" : "not established");
	send_unframed(p);
}

/* ---- rows in which rogue is always the client ---- */

/* Sends SYNs with the option and abandons their handshakes, then opens a valid connection. */
static void half_open(struct peer *p, unsigned int i)
{
	struct tcb *tcb = &p->tcb;
	struct afr_tcp_option opt = { 0 };
	struct segment seg = {
		.dport = tcb->peer_port, .flags = TCP_SYN, .window = 60000,
		.options_len = AFR_OPT_LEN,
	};
	u8 options[AFR_OPT_LEN];

	(void)i;
	seg.options = options;
	for (int n = 0; n < 300; n++) {
		opt.nonce = rnd();
		afr_tcp_option_write(options, &opt);
		seg.sport = 10000 + n;	/* no tcb has this port, see prepare() */
		seg.seq = rnd();
		tun_send(tcb->tun, &seg);
		/* tcp_turn() answers each SYN-ACK with RST, like a host that has sent no SYN */
		while (tcp_turn(tcb, 0))
			;
	}
	if (peer_open(p)) {
		peer_hello(p);
		peer_data(p, BYTES);
		peer_fin(p);
	}
}

/* Sends unframed bytes after an offer, as if a middlebox had removed the SYN-ACK's option. */
static void consent_lost(struct peer *p, unsigned int i)
{
	(void)i;
	send_unframed(p);
}

static void await_listen_again(struct tcb *tcb)
{
	struct peer *p = (struct peer *)((char *)tcb - offsetof(struct peer, tcb));
	double end = now() + rogue.patience;

	__atomic_store_n(&p->victim.report->listen_now, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&p->victim.report->listens_again, __ATOMIC_ACQUIRE) && now() < end)
		poll(NULL, 0, 1);
}

/*
 * Between SYN-ACK and ACK, the victim ends the listening, and listens again with
 * AFRDMA_RDMA_NEVER. Since the SYN-ACK has accepted the offer, rogue sends frames.
 */
static void relisten(struct peer *p, unsigned int i)
{
	(void)i;
	p->tcb.before_ack = await_listen_again;
	if (peer_open(p)) {
		peer_hello(p);
		peer_data(p, BYTES);
		peer_fin(p);
	}
}

/* ---- a row for both roles ---- */

/* Sends RST before rogue has sent a byte. */
static void reset_early(struct peer *p, unsigned int i)
{
	(void)i;
	tcp_rst(&p->tcb);
}

#define FALLBACK(name, count, more)	\
	{ #name, AS_BOTH | OPEN_SELF | (more), open_##name, count, EXPECT_PLAIN, 0, 500 }

const struct rogue_row option_rows[] = {
	FALLBACK(one_length, 10, MALFORMED),
	FALLBACK(one_version, 4, 0),
	FALLBACK(one_role, 5, 0),
	FALLBACK(one_exid, 4, 0),
	FALLBACK(two_options, 2, 0),
	FALLBACK(cut_short, 2, MALFORMED),
	FALLBACK(bad_neighbour, 6, MALFORMED),
	FALLBACK(no_option, 1, 0),
	FALLBACK(behind_end, 1, 0),
	{ "random_list", AS_BOTH | OPEN_SELF | RANDOM | MALFORMED, open_random_list, 100,
	  EXPECT_PLAIN, 0, 500 },
	{ "fetch", AS_BOTH | OPEN_SELF, open_no_option, 1, EXPECT_PLAIN, 0, 200000 },
	{ "echoed", AS_SERVER | OPEN_SELF, echoed, 1, EXPECT_PLAIN, 0, 500 },
	{ "wrong_nonce", AS_SERVER | OPEN_SELF, wrong_nonce, 10, EXPECT_PLAIN, 0, 500 },
	{ "first_syns_lost", AS_SERVER | OPEN_SELF, first_syns_lost, 1, EXPECT_PLAIN, 0, 500 },
	{ "shut_crossing", AS_SERVER | OPEN_SELF | CROSSES, shut_crossing, 1, EXPECT_PLAIN, 0, 0 },
	{ "half_open", AS_CLIENT | OPEN_SELF, half_open, 1, EXPECT_STREAM, 0, 500 },
	{ "relisten", AS_CLIENT | OPEN_SELF | RELISTENS, relisten, 1, EXPECT_STREAM, 0, 500 },
	{ "consent_lost", AS_CLIENT | NO_HELLO, consent_lost, 1, EXPECT_PLAIN, 0, 500 },
	{ "reset_early", AS_BOTH | NO_HELLO, reset_early, 1, EXPECT_SURVIVE, 0, 500 },
	{ }
};
