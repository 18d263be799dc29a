// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Streams in one direction, in both at once, and in turns, with small and large calls. Receivers
 * check every byte.
 */
#define _GNU_SOURCE
#include <sys/epoll.h>

#include "test.h"

#define CHUNK	(256 * KIB)

static size_t length(void)
{
	return amount(64 * MIB, 4 * MIB);
}

/* ---- one direction ---- */

static void send_stream(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	flow_send_random(fd, &out, length(), CHUNK);
	path_check(fd, length(), 0);
}

static void recv_stream(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	flow_recv_random(fd, &in, length(), CHUNK);
	path_check(fd, 0, length());
}

/* Sends a stream and ends it; the receiver reads to the end, and only then checks the length. */
static void send_stream_and_end(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	flow_send_random(fd, &out, length() + 12345, CHUNK);
	SYS(shutdown(fd, SHUT_WR));
	want_eof(fd);
}

static void recv_stream_to_end(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	WANT_EQ(flow_recv_to_eof(fd, &in), length() + 12345);
	SYS(close(fd));
}

/* ---- both directions at once ---- */

/* The stream that a thread sends or receives. */
struct transfer {
	int fd;
	struct flow flow;
	size_t len;
	uint64_t stream;	/* argument of rnd_start() */
};

static void *send_thread(void *arg)
{
	struct transfer *t = arg;

	rnd_start(t->stream);
	flow_send_random(t->fd, &t->flow, t->len, CHUNK);
	return NULL;
}

/* Two threads use one socket: a call of one thread must not block a call of the other. */
static void both_threads(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();
	struct transfer out = { fd, flow_out(0), length(), 1 };
	pthread_t sender = thread_start(send_thread, &out);

	flow_recv_random(fd, &in, length(), CHUNK);
	pthread_join(sender, NULL);
	path_check(fd, length(), length());
}

/*
 * Small buffers, for a row whose server sends all the time. With a large MTU, the window that the
 * server's TCP offers can stay below one segment. The client's TCP sends bytes into such a window
 * only as window probes, and each segment of the server postpones the next probe. The client's
 * stream may then take minutes, so the row does not run in the variants to_tcp and from_tcp. It
 * does run in variant tcp, where it may be slow. On framed connections the module enlarges the
 * window.
 */
static const struct sizes small_buffers = { .sndbuf = 16 * KIB, .rcvbuf = 16 * KIB };
static bool all_received;

static void *recv_thread(void *arg)
{
	struct transfer *t = arg;

	rnd_start(t->stream);
	flow_recv_random(t->fd, &t->flow, t->len, CHUNK);
	__atomic_store_n(&all_received, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Sends until recv_thread() has received the whole stream of the client. */
static void restless_server(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn_sized(&small_buffers);
	struct transfer in = { fd, flow_in(0), length(), 1 };
	pthread_t receiver = thread_start(recv_thread, &in);

	while (!__atomic_load_n(&all_received, __ATOMIC_ACQUIRE))
		flow_send_random(fd, &out, 20000, 5000);
	pthread_join(receiver, NULL);
	SYS(shutdown(fd, SHUT_WR));
	want_eof(fd);
}

/* Other end of restless_server(): sends length() bytes, and reads to the end. */
static void restless_client(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn_sized(&small_buffers);
	struct transfer out = { fd, flow_out(0), length(), 1 };
	pthread_t sender = thread_start(send_thread, &out);

	flow_recv_to_eof(fd, &in);
	pthread_join(sender, NULL);
	SYS(close(fd));
}

/* One thread that uses poll() and nonblocking calls. */
static void both_poll(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	uint8_t *buf = buffer(CHUNK);
	int fd = open_conn();

	nonblocking(fd, true);
	while (in.off < length() || out.off < length()) {
		int events = (in.off < length() ? POLLIN : 0) | (out.off < length() ? POLLOUT : 0);
		int got = poll_one(fd, events, 1000);

		if (got & POLLIN) {
			size_t want = rnd_between(1, CHUNK), left = length() - in.off;

			flow_check(&in, buf, SYS(recv(fd, buf, want < left ? want : left, 0)));
		}
		if (got & POLLOUT) {
			size_t want = rnd_between(1, CHUNK), left = length() - out.off;
			struct flow next = out;

			want = want < left ? want : left;
			flow_fill(&next, buf, want);
			out.off += SYS(send(fd, buf, want, MSG_NOSIGNAL));
		}
	}
	free(buf);
	path_check(fd, length(), length());
}

/* ---- very small and very large calls ---- */

/* Small writes, large reads. */
static void send_tiny(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	flow_send_random(fd, &out, amount(256 * KIB, 16 * KIB), 7);
	path_check(fd, amount(256 * KIB, 16 * KIB), 0);
}

static void recv_big(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	flow_recv(fd, &in, amount(256 * KIB, 16 * KIB), CHUNK);
	path_check(fd, 0, amount(256 * KIB, 16 * KIB));
}

/* Large writes, small reads. */
static void send_big(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	flow_send(fd, &out, amount(256 * KIB, 16 * KIB), CHUNK);
	path_check(fd, amount(256 * KIB, 16 * KIB), 0);
}

static void recv_tiny(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	flow_recv_random(fd, &in, amount(256 * KIB, 16 * KIB), 7);
	path_check(fd, 0, amount(256 * KIB, 16 * KIB));
}

/* A single call for more bytes than a ring holds. */
static void send_at_once(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();
	size_t len = length();

	flow_send(fd, &out, len, len);
	path_check(fd, len, 0);
}

static void recv_at_once(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();
	size_t len = length();
	uint8_t *buf = buffer(len);

	WANT_EQ(SYS(recv(fd, buf, len, MSG_WAITALL)), len);
	flow_check(&in, buf, len);
	free(buf);
	path_check(fd, 0, len);
}

/* ---- requests and responses of growing size ---- */

static void ladder(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn();
	size_t top = amount(4 * MIB, 256 * KIB);

	for (size_t len = 1; len <= top; len = len * 3 + 1) {
		if (run.server)
			flow_recv(fd, &in, len, CHUNK);
		flow_send(fd, &out, len, CHUNK);
		if (!run.server)
			flow_recv(fd, &in, len, CHUNK);
	}
	path_check(fd, out.off, in.off);
}

/* ---- edge-triggered epoll on both ends ---- */

/* Reads until recv() would block; false at the end of the stream. @buf has CHUNK bytes. */
static bool drain(int fd, struct flow *in, uint8_t *buf)
{
	for (;;) {
		ssize_t got = recv(fd, buf, rnd_between(1, CHUNK), 0);

		if (got < 0 && errno == EAGAIN)
			return true;
		if (!SYS(got))
			return false;
		flow_check(in, buf, got);
	}
}

/* Sends until send() would block or the offset reaches @len. @buf has CHUNK bytes. */
static void pour(int fd, struct flow *out, uint8_t *buf, size_t len)
{
	while (out->off < len) {
		size_t want = rnd_between(1, len - out->off < CHUNK ? len - out->off : CHUNK);
		struct flow next = *out;
		ssize_t done;

		flow_fill(&next, buf, want);
		done = send(fd, buf, want, MSG_NOSIGNAL);
		if (done < 0 && errno == EAGAIN)
			return;
		out->off += SYS(done);
	}
}

/* A lost edge can stall the stream; the runner then ends the row. */
static void both_edge(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
	uint8_t *buf = buffer(CHUNK);
	int fd = open_conn();
	int ep = SYS(epoll_create1(0));
	bool open = true, ended = false;

	nonblocking(fd, true);
	SYS(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	while (open) {
		WANT_EQ(SYS(epoll_wait(ep, &ev, 1, -1)), 1);
		pour(fd, &out, buf, length());
		open = drain(fd, &in, buf);
		if (!ended && out.off == length() && in.off == length()) {
			path_check(fd, length(), length());
			SYS(shutdown(fd, SHUT_WR));
			ended = true;
		}
	}
	WANT(ended && in.off == length());
	free(buf);
}

const struct row stream_rows[] = {
	{ "stream_to_server", send_stream, recv_stream, ON_ALL | QUICK_ALL },
	{ "stream_to_client", recv_stream, send_stream, ON_ALL | QUICK_ALL },
	{ "stream_to_server_eof", send_stream_and_end, recv_stream_to_end, ON_ALL },
	{ "stream_to_client_eof", recv_stream_to_end, send_stream_and_end, ON_ALL },
	{ "stream_both_threads", both_threads, both_threads, ON_ALL | QUICK },
	{ "stream_restless", restless_client, restless_server, ON_RDMA | ON_COLD | QUICK_ALL },
	{ "stream_both_poll", both_poll, both_poll, ON_ALL },
	{ "stream_both_edge", both_edge, both_edge, ON_ALL | QUICK },
	{ "stream_tiny_writes", send_tiny, recv_big, ON_ALL },
	{ "stream_tiny_reads", send_big, recv_tiny, ON_ALL },
	{ "stream_tiny_writes_back", recv_big, send_tiny, ON_ALL },
	{ "stream_tiny_reads_back", recv_tiny, send_big, ON_ALL },
	{ "stream_at_once", send_at_once, recv_at_once, ON_ALL },
	{ "stream_at_once_back", recv_at_once, send_at_once, ON_ALL },
	{ "stream_ladder", ladder, ladder, ON_ALL },
	{ }
};
