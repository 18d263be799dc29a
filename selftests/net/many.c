// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Many connections at the same time, and many in succession. */
#define _GNU_SOURCE
#include <sys/epoll.h>

#include "test.h"

#define CONNS_MAX	200
#define CHUNK		(32 * KIB)

static unsigned int conns(void)
{
	return amount(CONNS_MAX, 30);
}

/* Number of bytes per connection and direction. */
static size_t share(void)
{
	return amount(256 * KIB, 64 * KIB);
}

/*
 * Tells the server the number of this connection: accept() may return connections in another order
 * than they were opened.
 */
static void send_number(int fd, uint32_t number)
{
	WANT_EQ(SYS(send(fd, &number, sizeof(number), MSG_NOSIGNAL)), sizeof(number));
}

static uint32_t recv_number(int fd)
{
	uint32_t number;

	WANT_EQ(SYS(recv(fd, &number, sizeof(number), MSG_WAITALL)), sizeof(number));
	WANT(number < CONNS_MAX);
	return number;
}

/* Small rings: 200 connections with rings of the default size exceed the limits of a small host. */
static const struct sizes modest = { .sndbuf = 32 * KIB, .rcvbuf = 32 * KIB };

/* Opens conns() connections; fds[i] is connection i at both ends. */
static void open_all(int *fds)
{
	const struct sizes *sizes = run.variant == VAR_RDMA ? &modest : NULL;
	int end = run.server ? open_listener_sized(CONNS_MAX, sizes) : server_port();

	for (unsigned int i = 0; i < conns(); i++) {
		int fd = run.server ? accept_conn(end) : connect_conn_sized(end, sizes);

		if (!run.server)
			send_number(fd, i);
		fds[run.server ? recv_number(fd) : i] = fd;
	}
}

/*
 * Checks the path of each connection. On each, the row has sent @bytes in both directions, and
 * send_number() has sent the number to the server.
 */
static void check_all(const int *fds, uint64_t bytes)
{
	uint64_t number = sizeof(uint32_t);

	barrier("all moved");
	for (unsigned int i = 0; i < conns(); i++)
		path_check_alone(fds[i], bytes + (run.server ? 0 : number),
				 bytes + (run.server ? number : 0));
	barrier("all checked");
}

/* ---- one thread, poll ---- */

/*
 * Number of send() calls that failed with EAGAIN, and number of these calls after which poll()
 * still reported POLLOUT.
 */
static unsigned int eagains, false_pollouts;

/*
 * Calls send(), which must not fail, except that in the variants with AF_RDMA it may fail with
 * EAGAIN even after POLLOUT: a small guest cannot back all rings at once. Returns 0 in that case.
 */
static ssize_t try_send(int fd, const void *buf, size_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	ssize_t sent = send(fd, buf, len, MSG_NOSIGNAL);

	if (sent >= 0 || errno != EAGAIN || run.variant == VAR_TCP)
		return SYS(sent);
	eagains++;
	false_pollouts += SYS(poll(&p, 1, 0));
	return 0;
}

/* Receives and sends once as poll() result @got allows; true when both directions are complete. */
static bool pump(int fd, struct flow *in, struct flow *out, int got, uint8_t *buf)
{
	size_t left = share() - in->off;

	if (got & POLLIN && left)
		flow_check(in, buf, SYS(recv(fd, buf, left < CHUNK ? left : CHUNK, 0)));
	left = share() - out->off;
	if (got & POLLOUT && left) {
		size_t want = rnd_between(1, left < CHUNK ? left : CHUNK);
		struct flow next = *out;

		flow_fill(&next, buf, want);
		out->off += try_send(fd, buf, want);
	}
	return in->off == share() && out->off == share();
}

static void many_poll(void)
{
	struct flow in[CONNS_MAX], out[CONNS_MAX];
	struct pollfd p[CONNS_MAX];
	uint8_t *buf = buffer(CHUNK);
	unsigned int open = conns();
	int fds[CONNS_MAX];

	open_all(fds);
	for (unsigned int i = 0; i < conns(); i++) {
		nonblocking(fds[i], true);
		in[i] = flow_in(i);
		out[i] = flow_out(i);
		p[i] = (struct pollfd) { .fd = fds[i], .events = POLLIN | POLLOUT };
	}
	while (open) {
		SYS(poll(p, conns(), -1));
		for (unsigned int i = 0; i < conns(); i++) {
			if (p[i].fd < 0 || !pump(fds[i], &in[i], &out[i], p[i].revents, buf))
				continue;
			p[i].fd = -1;
			open--;
		}
		for (unsigned int i = 0; i < conns(); i++)
			p[i].events = (in[i].off < share() ? POLLIN : 0) |
				      (out[i].off < share() ? POLLOUT : 0);
	}
	free(buf);
	if (false_pollouts > 10 + eagains / 2)
		fail("poll() reported POLLOUT after %u of %u EAGAIN", false_pollouts, eagains);
	check_all(fds, share());
}

/* ---- a thread for each connection ---- */

struct worker {
	int fd;
	unsigned int number;
};

/* Thread: sends and receives share() bytes, in turns. */
static void *talk(void *arg)
{
	struct worker *w = arg;
	struct flow in = flow_in(w->number), out = flow_out(w->number);

	rnd_start(w->number + 1);
	while (out.off < share()) {
		size_t left = share() - out.off;
		size_t len = left < 10000 ? left : 10000;

		flow_send_random(w->fd, &out, len, 10000);
		flow_recv_random(w->fd, &in, len, 10000);
	}
	return NULL;
}

static void many_threads(void)
{
	struct worker workers[CONNS_MAX];
	pthread_t threads[CONNS_MAX];
	int fds[CONNS_MAX];

	open_all(fds);
	for (unsigned int i = 0; i < conns(); i++) {
		workers[i] = (struct worker) { fds[i], i };
		threads[i] = thread_start(talk, &workers[i]);
	}
	for (unsigned int i = 0; i < conns(); i++)
		pthread_join(threads[i], NULL);
	check_all(fds, share());
}

/* ---- an echo server with edge-triggered epoll ---- */

struct echo {
	int fd;
	size_t have, done;
	bool ended;
	uint8_t buf[CHUNK];
};

/* Echoes until a call would block; returns true once the whole stream has been echoed. */
static bool echo_run(struct echo *e)
{
	for (;;) {
		ssize_t n;

		if (e->have > e->done) {
			n = send(e->fd, e->buf + e->done, e->have - e->done, MSG_NOSIGNAL);
			if (n < 0 && errno == EAGAIN)
				return false;
			e->done += SYS(n);
			continue;
		}
		if (e->ended)
			return true;
		n = recv(e->fd, e->buf, CHUNK, 0);
		if (n < 0 && errno == EAGAIN)
			return false;
		e->ended = SYS(n) == 0;
		e->have = n;
		e->done = 0;
	}
}

/* Accepts all connections that wait, and adds them to epoll. */
static void echo_accept(int ep, int listener)
{
	for (;;) {
		struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
		struct echo *e;

		if (fd < 0 && errno == EAGAIN)
			return;
		SYS(fd);
		e = buffer(sizeof(*e));
		e->fd = fd;
		e->have = e->done = 0;
		e->ended = false;
		ev.data.ptr = e;
		SYS(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	}
}

static void echo_server(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int listener = open_listener(CONNS_MAX);
	int ep = SYS(epoll_create1(0));
	unsigned int over = 0;

	nonblocking(listener, true);
	SYS(epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev));
	while (over < conns()) {
		struct echo *e;

		WANT_EQ(SYS(epoll_wait(ep, &ev, 1, -1)), 1);
		e = ev.data.ptr;
		if (!e) {
			echo_accept(ep, listener);
		} else if (echo_run(e)) {
			SYS(close(e->fd));
			free(e);
			over++;
		}
	}
}

struct echo_stream {
	int fd;
	struct flow flow;
};

static void *echo_send(void *arg)
{
	struct echo_stream *stream = arg;

	rnd_start(stream->flow.conn + 1000);
	flow_send_random(stream->fd, &stream->flow, share(), CHUNK);
	SYS(shutdown(stream->fd, SHUT_WR));
	return NULL;
}

/* Thread: one connection to the echo server. @arg: its number << 32 | port. */
static void *echo_client_thread(void *arg)
{
	unsigned int number = (uintptr_t)arg >> 32, port = (uintptr_t)arg;
	struct flow back = flow_out(number);
	struct echo_stream stream = { connect_port(port), flow_out(number) };
	pthread_t sender;

	rnd_start(number + 1);
	sender = thread_start(echo_send, &stream);
	flow_recv_random(stream.fd, &back, share(), CHUNK);
	want_eof(stream.fd);
	pthread_join(sender, NULL);
	SYS(close(stream.fd));
	return NULL;
}

static void echo_client(void)
{
	uintptr_t port = server_port();
	pthread_t threads[CONNS_MAX];

	for (uintptr_t i = 0; i < conns(); i++)
		threads[i] = thread_start(echo_client_thread, (void *)(i << 32 | port));
	for (unsigned int i = 0; i < conns(); i++)
		pthread_join(threads[i], NULL);
}

/* ---- connections in succession ---- */

/* Number of connections of row cycles. Each thread of row connect_storm opens a tenth as many. */
static unsigned int cycles(void)
{
	return amount(run.variant == VAR_RDMA ? 200 : 1000, 50);
}

static void cycle_send(int fd, unsigned int i)
{
	struct flow out = flow_out(i);

	flow_send(fd, &out, 64 * KIB, 64 * KIB);
	SYS(close(fd));
}

static void cycle_recv(int fd, unsigned int i)
{
	struct flow in = flow_in(i);

	WANT_EQ(flow_recv_to_eof(fd, &in), 64 * KIB);
	SYS(close(fd));
}

static void cycles_server(void)
{
	int listener = open_listener(8);

	for (unsigned int i = 0; i < cycles(); i++)
		(i % 2 ? cycle_send : cycle_recv)(accept_conn(listener), i);
}

static void cycles_client(void)
{
	int port = server_port();

	for (unsigned int i = 0; i < cycles(); i++)
		(i % 2 ? cycle_recv : cycle_send)(connect_conn(port), i);
}

/* Number of threads: at the client they open connections, at the server they accept them. */
#define STORMERS	8

/* Thread: opens connections in succession. @arg: first connection number << 32 | port. */
static void *storm_thread(void *arg)
{
	unsigned int first = (uintptr_t)arg >> 32, port = (uintptr_t)arg;

	for (unsigned int i = 0; i < cycles() / 10; i++) {
		unsigned int number = first + i % 8;
		struct flow out = flow_out(number), in = flow_in(number);
		int fd = connect_port(port);

		send_number(fd, number);
		flow_send(fd, &out, 5000, 5000);
		flow_recv(fd, &in, 5000, 5000);
		path_check_alone(fd, 5000 + sizeof(number), 5000);
		SYS(close(fd));
	}
	return NULL;
}

static void storm_client(void)
{
	uintptr_t port = server_port();
	pthread_t threads[STORMERS];

	for (uintptr_t i = 0; i < STORMERS; i++)
		threads[i] = thread_start(storm_thread, (void *)(i * 8 << 32 | port));
	for (int i = 0; i < STORMERS; i++)
		pthread_join(threads[i], NULL);
}

static void *storm_serve(void *arg)
{
	int listener = *(int *)arg;

	for (unsigned int i = 0; i < cycles() / 10; i++) {
		int fd = SYS(accept(listener, NULL, NULL));
		unsigned int number = recv_number(fd);
		struct flow out = flow_out(number), in = flow_in(number);

		flow_recv(fd, &in, 5000, 5000);
		flow_send(fd, &out, 5000, 5000);
		want_eof(fd);
		path_check_alone(fd, 5000, 5000 + sizeof(number));
		SYS(close(fd));
	}
	return NULL;
}

static void storm_server(void)
{
	int listener = open_listener(100);
	pthread_t threads[STORMERS];

	for (int i = 0; i < STORMERS; i++)
		threads[i] = thread_start(storm_serve, &listener);
	for (int i = 0; i < STORMERS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- fifty connections that the server leaves unread, and one more that must progress ---- */

#define STALLED		50
#define WORD		100
#define TURNS		200

/* Exchanges requests and responses on one connection, while the server reads no other one. */
static void stalled_talk(int fd)
{
	struct flow in = flow_in(STALLED), out = flow_out(STALLED);

	for (int i = 0; i < TURNS; i++) {
		if (run.server)
			flow_recv(fd, &in, WORD, WORD);
		flow_send(fd, &out, WORD, WORD);
		if (!run.server)
			flow_recv(fd, &in, WORD, WORD);
	}
	path_check(fd, TURNS * WORD, TURNS * WORD);
}

static void stalled_client(void)
{
	const struct sizes *sizes = run.variant == VAR_RDMA ? &modest : NULL;
	uint64_t sent[STALLED];
	int fds[STALLED], port = server_port();

	for (unsigned int i = 0; i < STALLED; i++) {
		struct flow out = flow_out(i);

		fds[i] = connect_conn_sized(port, sizes);
		nonblocking(fds[i], true);
		sent[i] = flow_send_full(fds[i], &out, CHUNK);
		WANT(sent[i] > 0);
	}
	stalled_talk(connect_conn_sized(port, sizes));
	for (unsigned int i = 0; i < STALLED; i++) {
		WANT_EQ(poll_one(fds[i], POLLERR | POLLHUP, 0), 0);
		control_send_number("sent", sent[i]);
	}
}

static void stalled_server(void)
{
	const struct sizes *sizes = run.variant == VAR_RDMA ? &modest : NULL;
	int fds[STALLED], listener = open_listener_sized(STALLED, sizes);

	for (unsigned int i = 0; i < STALLED; i++)
		fds[i] = accept_conn(listener);
	stalled_talk(accept_conn(listener));
	for (unsigned int i = 0; i < STALLED; i++) {
		size_t sent = control_get_number("sent");
		struct flow in = flow_in(i);

		flow_recv(fds[i], &in, sent, CHUNK);
	}
}

const struct row many_rows[] = {
	{ "many_stalled", stalled_client, stalled_server, ON_ALL | QUICK_ALL },
	{ "many_poll", many_poll, many_poll, ON_ALL | QUICK },
	{ "many_threads", many_threads, many_threads, ON_ALL | QUICK },
	{ "many_echo_edge", echo_client, echo_server, ON_COLD | ON_PLAIN | QUICK },
	{ "cycles", cycles_client, cycles_server, ON_ALL | QUICK },
	{ "connect_storm", storm_client, storm_server, ON_COLD | ON_PLAIN | QUICK },
	{ }
};
