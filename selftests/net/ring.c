// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Small, unequal and changing buffers: frequent wraps, buffers full or with one byte free, slow
 * readers and writers.
 */
#define _GNU_SOURCE
#include <sys/ioctl.h>

#include "test.h"

#define RING	(16 * KIB)

static const struct sizes small = { .sndbuf = RING, .rcvbuf = RING };

/* ---- wraps ---- */

/* Length of a stream that wraps rings of RING bytes at least 1000 times. */
static size_t wraps(void)
{
	return amount(20000, 1000) * RING;
}

static void wrap_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn_sized(&small);

	flow_send_random(fd, &out, wraps(), 2 * RING);
	path_check(fd, wraps(), 0);
}

static void wrap_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn_sized(&small);

	flow_recv_random(fd, &in, wraps(), 2 * RING);
	path_check(fd, 0, wraps());
}

/* Sends messages of every size close to the ring size, so that wraps occur at every alignment. */
static void step_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn_sized(&small);

	for (size_t len = RING - 70; len <= RING + 70; len++) {
		flow_send(fd, &out, len, len);
		barrier("step");
	}
	path_check(fd, out.off, 0);
}

static void step_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn_sized(&small);

	for (size_t len = RING - 70; len <= RING + 70; len++) {
		flow_recv(fd, &in, len, len);
		barrier("step");
	}
	path_check(fd, 0, in.off);
}

/* Requests and responses: both directions wrap. */
static void wrap_echo(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = open_conn_sized(&small);
	size_t rounds = amount(20000, 500);

	for (size_t i = 0; i < rounds; i++) {
		size_t len = mix(run.seed + i) % 4000 + 1;

		if (run.server)
			flow_recv(fd, &in, len, len);
		flow_send(fd, &out, len, len);
		if (!run.server)
			flow_recv(fd, &in, len, len);
	}
	path_check(fd, out.off, in.off);
}

/* ---- slow readers and writers ---- */

#define PAUSES	200

/* Pauses for up to 3 ms, often long enough for the other end to empty or fill its buffer. */
static void pause_briefly(void)
{
	poll(NULL, 0, rnd_between(0, 3));
}

static void slow_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn_sized(&small);

	for (int i = 0; i < PAUSES; i++) {
		flow_send(fd, &out, 3000, rnd_between(1, 3000));
		pause_briefly();
	}
	path_check(fd, 3000 * PAUSES, 0);
}

static void fast_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn_sized(&small);

	flow_send(fd, &out, 3000 * PAUSES, 64 * KIB);
	path_check(fd, 3000 * PAUSES, 0);
}

static void slow_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn_sized(&small);

	for (int i = 0; i < PAUSES; i++) {
		flow_recv(fd, &in, 3000, rnd_between(1, 3000));
		pause_briefly();
	}
	path_check(fd, 0, 3000 * PAUSES);
}

static void fast_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn_sized(&small);

	flow_recv(fd, &in, 3000 * PAUSES, 64 * KIB);
	path_check(fd, 0, 3000 * PAUSES);
}

/* ---- full buffers ---- */

static const size_t fill_chunks[] = { 1, 3, 511, 4095, 4096, 5000, RING - 1, RING, RING + 1 };

/* Sends until the send buffer and the peer's receive buffer are full of unread bytes. */
static uint64_t fill(int fd, struct flow *out, size_t chunk)
{
	uint64_t start = out->off;
	int quiet = 0;

	while (quiet < 3) {
		uint64_t moved = flow_send_full(fd, out, chunk);

		quiet = moved || poll_one(fd, POLLOUT, 10) & POLLOUT ? 0 : quiet + 1;
	}
	return out->off - start;
}

/* For each size of write: fills the buffers; the peer reads one byte, and later all other bytes. */
static void full_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn_sized(&small);

	for (size_t i = 0; i < ARRAY_SIZE(fill_chunks); i++) {
		uint64_t extra;

		control_send_number("FULL", fill(fd, &out, fill_chunks[i]));
		barrier("one byte taken");
		/* The byte that the peer has read need not make room at once: @extra may be 0. */
		extra = flow_send_full(fd, &out, 1);
		control_send_number("EXTRA", extra);
		barrier("all taken");
		await(fd, POLLOUT);
	}
	path_check(fd, out.off, 0);
}

static void full_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn_sized(&small);

	for (size_t i = 0; i < ARRAY_SIZE(fill_chunks); i++) {
		uint64_t full = control_get_number("FULL");

		flow_recv(fd, &in, 1, 1);
		barrier("one byte taken");
		full += control_get_number("EXTRA");
		flow_recv_random(fd, &in, full - 1, RING);
		SYS_ERRNO(recv(fd, &full, 1, MSG_DONTWAIT), EAGAIN);
		barrier("all taken");
	}
	path_check(fd, 0, in.off);
}

/* The sender blocks on full buffers, and the peer makes space in small steps. */
static void dribble_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn_sized(&small);

	flow_send(fd, &out, 40 * RING, 40 * RING);
	path_check(fd, 40 * RING, 0);
}

static void dribble_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn_sized(&small);

	while (in.off < 40 * RING) {
		size_t left = 40 * RING - in.off, want = rnd_between(1, 300);

		flow_recv(fd, &in, want < left ? want : left, want);
	}
	path_check(fd, 0, 40 * RING);
}

/* With full buffers, the peer peeks at the bytes that have arrived and then reads these bytes. */
static void peek_full_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn_sized(&small);
	uint64_t sent = fill(fd, &out, 4096);

	control_send_number("FULL", sent);
	path_check(fd, sent, 0);
}

static void peek_full_recv(void)
{
	struct flow in = flow_in(0);
	uint8_t *buf = buffer(4 * MIB);
	int fd = open_conn_sized(&small);
	uint64_t full = control_get_number("FULL");
	int queued = 0;

	EVENTUALLY(ioctl(fd, FIONREAD, &queued) == 0 && queued > 0);
	while (in.off < full) {
		ssize_t got = SYS(recv(fd, buf, 4 * MIB, MSG_PEEK));

		flow_look(&in, buf, got);
		WANT_EQ(SYS(recv(fd, buf, got, MSG_WAITALL)), got);
		flow_check(&in, buf, got);
	}
	path_check(fd, 0, full);
	free(buf);
}

/* The server's buffers are larger than the client's, so the send windows of the ends differ. */
static void uneven(void)
{
	static const struct sizes big = { .sndbuf = 512 * KIB, .rcvbuf = 512 * KIB };
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn_sized(run.server ? &big : &small);

	for (size_t i = 0; i < amount(200, 20); i++) {
		size_t len = mix(run.seed ^ i) % (60 * KIB) + 1;

		if (run.server)
			flow_recv_random(fd, &in, len, 30000);
		flow_send_random(fd, &out, len, 30000);
		if (!run.server)
			flow_recv_random(fd, &in, len, 30000);
	}
	path_check(fd, out.off, in.off);
}

#define RESIZES	20

/* SO_SNDBUF and SO_RCVBUF change while bytes flow. A framed connection keeps its ring sizes. */
static void resize_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	for (int i = 0; i < RESIZES; i++) {
		set_int(fd, SOL_SOCKET, SO_SNDBUF, 16384 << rnd() % 6);
		flow_send_random(fd, &out, 100000, 50000);
	}
	path_check(fd, RESIZES * 100000, 0);
}

static void resize_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	for (int i = 0; i < RESIZES; i++) {
		set_int(fd, SOL_SOCKET, SO_RCVBUF, 16384 << rnd() % 6);
		flow_recv_random(fd, &in, 100000, 50000);
	}
	path_check(fd, 0, RESIZES * 100000);
}

#define BOTH(name, first, second, flags)		\
	{ name, first, second, flags },			\
	{ name "_back", second, first, (flags) & ~(QUICK | QUICK_ALL) }

const struct row ring_rows[] = {
	BOTH("ring_wraps", wrap_send, wrap_recv, ON_RDMA | QUICK),
	BOTH("ring_steps", step_send, step_recv, ON_ALL),
	/* without ON_PLAIN, to save time: with a window this small, TCP waits for window probes */
	{ "ring_echo", wrap_echo, wrap_echo, ON_RDMA | ON_COLD | QUICK },
	BOTH("ring_slow_reader", fast_send, slow_recv, ON_ALL | QUICK),
	BOTH("ring_slow_writer", slow_send, fast_recv, ON_ALL),
	BOTH("ring_slow_both", slow_send, slow_recv, ON_ALL),
	BOTH("ring_full", full_send, full_recv, ON_ALL | QUICK),
	BOTH("ring_dribble", dribble_send, dribble_recv, ON_ALL),
	BOTH("ring_peek_full", peek_full_send, peek_full_recv, ON_ALL),
	{ "ring_uneven", uneven, uneven, ON_ALL | QUICK },
	BOTH("ring_resize", resize_send, resize_recv, ON_ALL),
	{ }
};
