// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* HELLO: valid, split or longer; with wrong fields; truncated, late, repeated or missing. */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rogue.h"

#define BYTES	3000

static void send_framed(struct peer *p)
{
	peer_data(p, BYTES);
	peer_fin(p);
}

/* ---- HELLOs that the victim accepts, and how they may be sent ---- */

static void good(struct peer *p, unsigned int i)
{
	(void)i;
	peer_hello(p);
	send_framed(p);
	if (rogue.rdma && !peer_await_hello(p, rogue.patience))
		wrong(p, "no HELLO from the victim");
}

static void byte_by_byte(struct peer *p, unsigned int i)
{
	struct afr_wire_hello hello;

	(void)i;
	peer_default_hello(p, &hello);
	peer_raw(p, &hello, sizeof(hello), 1);
	send_framed(p);
}

/* Sends HELLO in two segments, split after byte @i. */
static void in_two(struct peer *p, unsigned int i)
{
	struct afr_wire_hello hello;

	peer_default_hello(p, &hello);
	peer_raw(p, &hello, i + 1, MSS);
	peer_raw(p, (u8 *)&hello + i + 1, sizeof(hello) - i - 1, MSS);
	send_framed(p);
}

/* Sends HELLO, DATA and FIN in one segment. */
static void in_one(struct peer *p, unsigned int i)
{
	u8 buf[sizeof(struct afr_wire_hello) + 200];
	struct afr_frame data = { .type = AFR_FRAME_DATA, .length = 50 };
	struct afr_frame fin = { .type = AFR_FRAME_FIN, .offset = 50 };
	unsigned int len = sizeof(struct afr_wire_hello);

	(void)i;
	peer_default_hello(p, (struct afr_wire_hello *)buf);
	len += afr_frame_write(buf + len, &data);
	for (u64 n = 0; n < 50; n++)
		p->stream[n] = buf[len++] = rogue_byte(n);
	p->stream_len = p->offset = 50;
	len += afr_frame_write(buf + len, &fin);
	peer_raw(p, buf, len, MSS);
}

/*
 * Sends a HELLO that is longer than struct afr_wire_hello: a later version of the module may append
 * fields, which the victim skips.
 */
static void longer(struct peer *p, unsigned int i)
{
	static const u16 lengths[] = { 65, 100, 511, 512 };
	u8 buf[AFR_HELLO_MAX];
	struct afr_wire_hello *hello = (void *)buf;

	memset(buf, 0xaa, sizeof(buf));
	peer_default_hello(p, hello);
	hello->length = htobe16(lengths[i]);
	peer_raw(p, buf, lengths[i], i % 2 ? MSS : 1);
	send_framed(p);
}

/* Sends HELLO with undefined feature bits, which the victim ignores. */
static void unknown_features(struct peer *p, unsigned int i)
{
	struct afr_wire_hello hello;

	peer_default_hello(p, &hello);
	hello.features = htobe32(i ? 0x100u << (i - 1) : 0xffffff00);
	peer_raw(p, &hello, sizeof(hello), MSS);
	send_framed(p);
}

/* Sends HELLO with various logarithms of the send ring's size, most of them invalid. */
static void false_send_ring(struct peer *p, unsigned int i)
{
	static const u8 orders[] = { 1, 13, 14, 26, 27, 31, 32, 63, 64, 255 };
	struct afr_wire_hello hello;

	peer_default_hello(p, &hello);
	hello.features = htobe32(orders[i]);
	peer_raw(p, &hello, sizeof(hello), MSS);
	send_framed(p);
}

/* Sends HELLO with a port that no cm listener has: the connection stays on TCP. */
static void false_port(struct peer *p, unsigned int i)
{
	static const u16 ports[] = { 1, 80, 4791, 65535 };
	struct afr_wire_hello hello;

	peer_default_hello(p, &hello);
	hello.port = htobe16(ports[i]);
	peer_raw(p, &hello, sizeof(hello), MSS);
	for (int n = 0; n < 40; n++)
		peer_data(p, 2000);
	peer_fin(p);
}

/* ---- wrong fields after a correct proof ---- */

/* Sends a HELLO that @falsify has changed, and valid frames behind it. */
static void send_bad_hello(struct peer *p,
			   void (*falsify)(struct afr_wire_hello *h, unsigned int i),
			   unsigned int i)
{
	struct afr_wire_hello hello;

	peer_default_hello(p, &hello);
	falsify(&hello, i);
	peer_raw(p, &hello, sizeof(hello), MSS);
	send_framed(p);
}

static void falsify_version(struct afr_wire_hello *h, unsigned int i)
{
	static const u16 versions[] = { 0, 2, 0x100, 0xffff };

	h->version = htobe16(versions[i]);
}

static void falsify_length(struct afr_wire_hello *h, unsigned int i)
{
	static const u16 lengths[] = { 0, 1, 63, 513, 0x8000, 0xffff };

	h->length = htobe16(lengths[i]);
}

static void falsify_ring(struct afr_wire_hello *h, unsigned int i)
{
	static const u32 rings[] = { 0, 1, 8192, 16383, 16385, 65535, 3 << 20, 1u << 31,
				     0xffffffff };

	h->ring = htobe32(rings[i]);
}

static void falsify_reserved(struct afr_wire_hello *h, unsigned int i)
{
	h->reserved = htobe16(1u << i);
}

#define BAD_FIELD(name)						\
	static void false_##name(struct peer *p, unsigned int i)	\
	{							\
		send_bad_hello(p, falsify_##name, i);		\
	}

BAD_FIELD(version)
BAD_FIELD(length)
BAD_FIELD(ring)
BAD_FIELD(reserved)

/* ---- bytes that are not a HELLO, and so belong to the program ---- */

/* Sends the first @i bytes of a HELLO, then a wrong byte, then unframed bytes. */
static void differs_at(struct peer *p, unsigned int i)
{
	struct afr_wire_hello hello;
	u8 *bytes = (u8 *)&hello;

	peer_default_hello(p, &hello);
	bytes[i] ^= 0x40;
	peer_raw(p, bytes, i + 1, MSS);
	peer_raw_bytes(p, BYTES);
}

/* Sends HELLO byte by byte. Byte @i is wrong; until it arrives, the victim cannot decide. */
static void differs_slowly(struct peer *p, unsigned int i)
{
	struct afr_wire_hello hello;
	u8 *bytes = (u8 *)&hello;

	peer_default_hello(p, &hello);
	bytes[i] ^= 0x01;
	peer_raw(p, bytes, sizeof(hello), 1);
	peer_raw_bytes(p, BYTES);
}

/* Sends HELLO with the proof that the victim itself sends, or with that of another connection. */
static void foreign_proof(struct peer *p, unsigned int i)
{
	struct afr_wire_hello hello;

	peer_default_hello(p, &hello);
	hello.proof = htobe64(i ? afr_hello_proof(p->nonce + i, !p->as_client)
				: afr_hello_proof(p->nonce, p->as_client));
	peer_raw(p, &hello, sizeof(hello), MSS);
	peer_raw_bytes(p, BYTES);
}

/* ---- HELLO cut short, late, repeated or missing ---- */

/* Sends the first @i bytes of a HELLO, and a TCP FIN. */
static void cut_by_fin(struct peer *p, unsigned int i)
{
	struct afr_wire_hello hello;

	peer_default_hello(p, &hello);
	peer_raw(p, &hello, i, MSS);
	tcp_fin(&p->tcb);
}

/* Sends the first 7 * @i bytes of a HELLO, and RST. */
static void cut_by_reset(struct peer *p, unsigned int i)
{
	struct afr_wire_hello hello;

	peer_default_hello(p, &hello);
	peer_raw(p, &hello, i * 7, MSS);
	tcp_rst(&p->tcb);
}

/* Sends part of a HELLO and then nothing: the victim's timer ends the connection (PA5). */
static void cut_by_silence(struct peer *p, unsigned int i)
{
	static const unsigned int lengths[] = { 1, 8, 16, 63 };
	struct afr_wire_hello hello;

	peer_default_hello(p, &hello);
	peer_raw(p, &hello, lengths[i], MSS);
}

/*
 * Waits for one second, then sends HELLO to a victim that has nothing to send. With SHORT_TIMERS,
 * hello_timeout_ms has passed by then: the victim's send direction must still be undecided, and the
 * victim must answer with HELLO. If the direction had fallen back, the victim could send no CREDIT,
 * and a client that only sends would stall. Without SHORT_TIMERS, hello_timeout_ms has not passed:
 * HELLO itself must wake the victim's worker, although HELLO is shorter than the victim's
 * SO_RCVLOWAT.
 */
static void late_to_silent(struct peer *p, unsigned int i)
{
	double end = now() + 1;		/* more than three times SHORT_TIMER */

	(void)i;
	while (now() < end)
		tcp_turn(&p->tcb, 10);
	peer_hello(p);
	send_framed(p);
	if (rogue.rdma && !peer_await_hello(p, rogue.patience))
		wrong(p, "no HELLO from a victim that has sent nothing");
}

/* Checks that all bytes of the victim have arrived, and without framing. */
static bool all_unframed(struct peer *p)
{
	for (unsigned int n = 0; n < p->row->sends; n++)
		if (n >= p->tcb.in_len || p->tcb.in[n] != victim_byte(n)) {
			wrong(p, "the victim did not send in fallback mode: byte %u of %zu", n,
			      p->tcb.in_len);
			return false;
		}
	return true;
}

/* Sends HELLO after hello_timeout_ms, when the victim has sent its bytes in fallback mode. */
static void late(struct peer *p, unsigned int i)
{
	double end = now() + rogue.patience;

	(void)i;
	while (rogue.rdma && p->tcb.in_len < p->row->sends && now() < end)
		tcp_turn(&p->tcb, 10);
	if (rogue.rdma && !all_unframed(p))
		return;
	if (rogue.rdma && p->row->flags & URGENT_FIRST && !p->tcb.urgent)
		wrong(p, "the urgent byte was received without URG");
	peer_hello(p);
	send_framed(p);
}

/* Sends unframed bytes after hello_timeout_ms, and no HELLO. */
static void late_and_plain(struct peer *p, unsigned int i)
{
	double end = now() + rogue.patience;

	(void)i;
	while (rogue.rdma && p->tcb.in_len < p->row->sends && now() < end)
		tcp_turn(&p->tcb, 10);
	peer_raw_bytes(p, BYTES);
}

#define TRACING	"/sys/kernel/tracing/instances/rogue_stall"

/*
 * Are both hosts of the lab network namespaces of this kernel? If so, worker_runs() also counts the
 * runs for connections of the rogue that runs in the other host.
 */
static bool both_hosts(void)
{
	const char *netns = getenv("AFR_NETNS");

	return netns && !strcmp(netns, "yes");
}

/* Counts how often run_work() of worker.c is called, for any connection, within @seconds. */
static unsigned int worker_runs(struct peer *p, double seconds)
{
	double end = now() + seconds;
	unsigned int runs = 0;
	char line[512];
	FILE *trace;
	int fd;

	rmdir(TRACING);		/* exists if an earlier rogue was killed in this function */
	mkdir(TRACING, 0700);
	fd = open(TRACING "/events/workqueue/workqueue_execute_start/enable", O_WRONLY);
	if (fd < 0 || write(fd, "1", 1) != 1)
		printf("# no trace events: runs of the worker are not counted\n");
	close(fd);
	while (now() < end)
		tcp_turn(&p->tcb, 10);
	trace = fopen(TRACING "/trace", "r");
	while (trace && fgets(line, sizeof(line), trace))
		runs += !!strstr(line, "function run_work [afrdma]");
	if (trace)
		fclose(trace);
	rmdir(TRACING);
	return runs;
}

/*
 * The victim's send direction falls back while its send() is stalled in a page fault. The worker
 * must not run each jiffy to see whether send() is done: only TCP, a timer or the end of send()
 * may cause a run. When send() goes on, all bytes arrive. Then rogue sends unframed bytes, and the
 * victim reads them.
 */
static void late_stalled(struct peer *p, unsigned int i)
{
	double end = now() + rogue.patience;
	unsigned int runs;

	(void)i;
	while (rogue.rdma && p->tcb.in_len < FIRST && now() < end)
		tcp_turn(&p->tcb, 10);
	if (!p->victim.report->stalled)
		printf("# no userfaultfd: send() does not stall\n");
	else if (rogue.rdma && p->tcb.in_len != FIRST)
		wrong(p, "%zu bytes arrived before the page fault", p->tcb.in_len);
	runs = worker_runs(p, 0.5);
	if (both_hosts())
		printf("# this kernel is both hosts: runs of the worker are not checked\n");
	else if (runs > 10)
		wrong(p, "the connection worker has run %u times during a page fault", runs);
	__atomic_store_n(&p->victim.report->read_now, 1, __ATOMIC_RELEASE);
	end = now() + rogue.patience;
	while (p->tcb.in_len < p->row->sends && now() < end)
		tcp_turn(&p->tcb, 10);
	if (rogue.rdma)
		all_unframed(p);
	peer_raw_bytes(p, BYTES);
}

static bool closed(const struct peer *p)
{
	return victim_state(&p->victim) == VICTIM_ENDED;
}

/*
 * The victim writes its bytes to the send ring and closes, before hello_timeout_ms has passed.
 * After that time, its send direction falls back, and TCP gets the bytes. The initial congestion
 * window is too small for all of them, so some are still unsent when rogue receives the first
 * ones. Now rogue sends HELLO and FIN (@i is 0), HELLO and DATA (1), HELLO (2), or nothing (3).
 * DATA must reset the connection. HELLO and FIN must not, since a reset would destroy the unsent
 * bytes.
 */
static void late_to_closed(struct peer *p, unsigned int i)
{
	double end = now() + rogue.patience;

	while (!p->tcb.in_len && now() < end)
		tcp_turn(&p->tcb, 10);
	while (!closed(p) && now() < end)
		poll(NULL, 0, 1);		/* acknowledges nothing */
	if (!closed(p) || p->tcb.peer_fin)
		wrong(p, "the victim has not closed, or has no unsent bytes");
	if (rogue.rdma && i < 3)
		peer_hello(p);
	if (rogue.rdma && i == 0)
		peer_fin(p);
	if (rogue.rdma && i == 1)
		peer_data(p, BYTES);
	while (!p->tcb.peer_fin && !p->tcb.reset && now() < end)
		tcp_turn(&p->tcb, 10);
	if (p->tcb.reset != (rogue.rdma && i == 1))
		wrong(p, "%s after the close: %zu of %u bytes arrived",
		      p->tcb.reset ? "reset" : "no reset", p->tcb.in_len, p->row->sends);
	else if (!p->tcb.reset)
		all_unframed(p);
}

/* Sends two HELLOs. */
static void twice(struct peer *p, unsigned int i)
{
	(void)i;
	peer_hello(p);
	peer_hello(p);
	send_framed(p);
}

/*
 * As server, accepts the victim's offer, but sends unframed bytes instead of HELLO: only the
 * victim's direction is framed (PA2).
 */
static void unframed_after_answer(struct peer *p, unsigned int i)
{
	(void)i;
	peer_raw_bytes(p, BYTES);
}

/*
 * The victim, a client, has set SO_RCVTIMEO while its receive direction was undecided. Rogue sends
 * unframed bytes, so this direction falls back. The victim's recv() must still time out.
 */
static void times_out(struct peer *p, unsigned int i)
{
	const struct victim_report *r = p->victim.report;
	double end = now() + 5;

	(void)i;
	peer_raw_bytes(p, BYTES);
	while (victim_state(&p->victim) != VICTIM_ENDED && now() < end)
		tcp_turn(&p->tcb, 10);
	if (now() >= end)
		wrong(p, "recv() does not time out");
	else if (r->err != EAGAIN || r->heard_len != BYTES)
		wrong(p, "recv() ended with %s after %zu bytes", strerror(r->err), r->heard_len);
}

/*
 * While a victim waits in close() (SO_LINGER), one of its directions falls back: as server, rogue
 * sends unframed bytes instead of HELLO; as client, rogue sends nothing, and the victim's timer
 * expires. close() must return when all bytes have been acknowledged, not earlier, and not only at
 * the end of the linger time. When the victim is about to call close(), rogue pauses for 1.2 s, in
 * which it acknowledges nothing. As client, rogue has not acknowledged any byte before the pause
 * either, so (only as client) it checks after the pause that close() has not returned yet.
 */
static void lingers_meanwhile(struct peer *p, unsigned int i)
{
	double end = now() + 10;	/* half of the linger time */

	(void)i;
	if (!p->as_client) {
		while (p->tcb.in_len < p->row->sends && now() < end)
			tcp_turn(&p->tcb, 10);
		peer_raw_bytes(p, BYTES);
	}
	while (victim_state(&p->victim) < VICTIM_CLOSING && now() < end)
		poll(NULL, 0, 1);
	poll(NULL, 0, 1200);	/* no acknowledgements */
	if (p->as_client && victim_state(&p->victim) != VICTIM_CLOSING)
		wrong(p, "close() returned before all was acknowledged");
	while (victim_state(&p->victim) != VICTIM_ENDED && now() < end)
		tcp_turn(&p->tcb, 10);
	if (now() >= end)
		wrong(p, "close() did not return when all was acknowledged");
}

/* Sends no byte after a successful handshake with the option; finish() sends a TCP FIN. */
static void ends_unspoken(struct peer *p, unsigned int i)
{
	(void)p;
	(void)i;
}

#define PROOF_END	(AFR_HELLO_MAGIC_LEN + 8)
#define HELLO		sizeof(struct afr_wire_hello)
#define OWN		NO_HELLO
#define BAD		EXPECT_ERROR, AFR_REASON_HELLO_BAD

const struct rogue_row hello_rows[] = {
	{ "hello_good", AS_BOTH | OWN, good, 1, EXPECT_STREAM, 0, 500 },
	{ "hello_byte_by_byte", AS_BOTH | OWN, byte_by_byte, 1, EXPECT_STREAM, 0, 500 },
	{ "hello_in_two", AS_BOTH | OWN, in_two, HELLO - 1, EXPECT_STREAM, 0, 500 },
	{ "hello_in_one", AS_BOTH | OWN, in_one, 1, EXPECT_STREAM, 0, 500 },
	{ "hello_longer", AS_BOTH | OWN, longer, 4, EXPECT_STREAM, 0, 500 },
	{ "hello_features", AS_BOTH | OWN, unknown_features, 25, EXPECT_STREAM, 0, 0 },
	{ "hello_send_ring", AS_BOTH | OWN, false_send_ring, 10, EXPECT_STREAM, 0, 500 },
	{ "hello_port", AS_BOTH | OWN, false_port, 4, EXPECT_STREAM, 0, 100000 },
	{ "hello_version", AS_BOTH | OWN, false_version, 4, BAD, 500 },
	{ "hello_length", AS_BOTH | OWN, false_length, 6, BAD, 500 },
	{ "hello_ring", AS_BOTH | OWN, false_ring, 9, BAD, 500 },
	{ "hello_reserved", AS_BOTH | OWN, false_reserved, 16, BAD, 0 },
	{ "hello_differs", AS_BOTH | OWN, differs_at, PROOF_END, EXPECT_PLAIN, 0, 0 },
	{ "hello_differs_slowly", AS_BOTH | OWN, differs_slowly, PROOF_END, EXPECT_PLAIN, 0, 0 },
	{ "hello_foreign_proof", AS_BOTH | OWN, foreign_proof, 4, EXPECT_PLAIN, 0, 500 },
	{ "hello_cut_by_fin", AS_BOTH | OWN, cut_by_fin, PROOF_END, EXPECT_PLAIN_OR_ERROR, 0, 0 },
	{ "hello_cut_by_silence", AS_CLIENT | OWN | SHORT_TIMERS, cut_by_silence, 4,
	  EXPECT_ERROR, AFR_REASON_HELLO_CUT, 500 },
	{ "hello_cut_by_reset", AS_BOTH | OWN, cut_by_reset, 10, EXPECT_SURVIVE, 0, 500 },
	{ "hello_late", AS_CLIENT | OWN | SHORT_TIMERS | RAW_BACK, late, 1, EXPECT_STREAM, 0, 100 },
	{ "hello_late_long", AS_CLIENT | OWN | SHORT_TIMERS | RAW_BACK, late, 1, EXPECT_STREAM, 0,
	  200000 },
	{ "hello_late_urgent", AS_CLIENT | OWN | SHORT_TIMERS | RAW_BACK | URGENT_FIRST, late, 1,
	  EXPECT_STREAM, 0, 20000 },
	{ "hello_late_to_silent", AS_CLIENT | OWN | SHORT_TIMERS | OOB_EARLY, late_to_silent, 1,
	  EXPECT_STREAM, 0, 0 },
	{ "hello_lowat", AS_CLIENT | OWN | LOWAT, late_to_silent, 1,
	  EXPECT_STREAM, 0, 0 },
	{ "hello_late_and_plain", AS_CLIENT | OWN | SHORT_TIMERS, late_and_plain, 1,
	  EXPECT_PLAIN, 0, 100 },
	{ "hello_late_to_closed", AS_CLIENT | OWN | SHORT_TIMERS | RAW_BACK | CLOSES, late_to_closed,
	  4, EXPECT_SURVIVE, 0, 20000 },
	{ "hello_late_stalled", AS_CLIENT | OWN | SHORT_TIMERS | SLEEPY | STALLS, late_stalled, 1,
	  EXPECT_PLAIN, 0, 1000 },
	{ "hello_foreign_proof_long", AS_CLIENT | OWN, foreign_proof, 1, EXPECT_PLAIN, 0, 200000 },
	{ "hello_twice", AS_BOTH | OWN, twice, 1, EXPECT_ERROR, AFR_REASON_FRAME_BAD, 0 },
	{ "hello_unframed_after_answer", AS_SERVER | OWN, unframed_after_answer, 1, EXPECT_PLAIN, 0, 0 },
	{ "hello_times_out", AS_SERVER | OWN | TIMES_OUT, times_out, 1, EXPECT_SURVIVE, 0, 0 },
	{ "hello_lingers", AS_BOTH | OWN | SHORT_TIMERS | LINGERS, lingers_meanwhile, 1,
	  EXPECT_SURVIVE, 0, 100 },
	{ "hello_ends_unspoken", AS_BOTH | OWN, ends_unspoken, 1, EXPECT_PLAIN_OR_ERROR, 0, 0 },
	{ }
};
