// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Unusual programs: random calls, connections ended in random ways, descriptors closed while in
 * use, options set beside transfers. (rogue tests hostile peers.)
 */
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <netinet/tcp.h>

#include "test.h"

#define BUF	(64 * KIB)

/* ---- random calls on one connection ---- */

struct talk {
	int fd;
	struct flow in, out;
	uint64_t total;
	uint8_t *buf;
};

/* Returns @ret, the result of a call, or 0 if the call would have blocked. */
static ssize_t may_block(ssize_t ret)
{
	if (ret < 0 && errno == EAGAIN)
		return 0;
	return SYS(ret);
}

static void do_send(struct talk *t)
{
	size_t left = t->total - t->out.off, want = rnd_between(0, BUF);
	struct flow next = t->out;

	want = want < left ? want : left;
	flow_fill(&next, t->buf, want);
	t->out.off += may_block(send(t->fd, t->buf, want, MSG_DONTWAIT | MSG_NOSIGNAL |
				     (rnd() % 4 ? 0 : MSG_MORE)));
}

static void do_writev(struct talk *t)
{
	size_t left = t->total - t->out.off, want = rnd_between(1, BUF), a;
	struct flow next = t->out;
	struct iovec iov[3];

	want = want < left ? want : left;
	a = rnd_between(0, want);
	flow_fill(&next, t->buf, want);
	iov[0] = (struct iovec) { t->buf, a };
	iov[1] = (struct iovec) { NULL, 0 };
	iov[2] = (struct iovec) { t->buf + a, want - a };
	if (poll_one(t->fd, POLLOUT, 0) & POLLOUT)
		t->out.off += may_block(writev(t->fd, iov, 3));
}

static void do_recv(struct talk *t)
{
	flow_check(&t->in, t->buf, may_block(recv(t->fd, t->buf, rnd_between(1, BUF),
						  MSG_DONTWAIT)));
}

static void do_peek(struct talk *t)
{
	flow_look(&t->in, t->buf, may_block(recv(t->fd, t->buf, rnd_between(1, BUF),
						 MSG_DONTWAIT | MSG_PEEK)));
}

/* As many bytes as FIONREAD reports can be read without waiting for the peer. */
static void do_exact(struct talk *t)
{
	int queued = 0;

	SYS(ioctl(t->fd, FIONREAD, &queued));
	WANT(queued >= 0 && t->in.off + queued <= t->total);
	if ((size_t)queued > BUF)
		queued = BUF;
	if (!queued)
		return;
	WANT_EQ(SYS(recv(t->fd, t->buf, queued, MSG_WAITALL)), queued);
	flow_check(&t->in, t->buf, queued);
}

static void do_discard(struct talk *t)
{
	t->in.off += may_block(recv(t->fd, NULL, rnd_between(1, 1000),
				    MSG_DONTWAIT | MSG_TRUNC));
}

static void do_options(struct talk *t)
{
	set_int(t->fd, IPPROTO_TCP, TCP_NODELAY, rnd() % 2);
	set_int(t->fd, IPPROTO_TCP, TCP_CORK, rnd() % 2);
	set_int(t->fd, SOL_SOCKET, SO_RCVLOWAT, rnd_between(1, 10));
	set_int(t->fd, IPPROTO_TCP, TCP_CORK, 0);
}

static void do_wait(struct talk *t)
{
	poll_one(t->fd, POLLIN | (t->out.off < t->total ? POLLOUT : 0), 5);
}

static void (*const calls[])(struct talk *t) = {
	do_send, do_writev, do_recv, do_peek, do_exact, do_discard, do_options, do_wait, do_wait,
};

static void random_calls(void)
{
	struct talk t = { .in = flow_in(0), .out = flow_out(0), .buf = buffer(BUF),
			  .total = amount(16 * MIB, MIB) };

	t.fd = open_conn();
	while (t.in.off < t.total || t.out.off < t.total)
		calls[rnd() % ARRAY_SIZE(calls)](&t);
	free(t.buf);
	path_check(t.fd, t.total, t.total);
}

/* ---- connections ended in random ways ---- */

enum end { END_CLOSE, END_SHUT, END_RESET, ENDS };

/* The first bytes of each connection: stream number, stream length, how the client will end it. */
struct opening_words {
	uint32_t number, length, end;
};

#define CHURNERS	6

static unsigned int churns(void)
{
	return amount(60, 8);
}

static void end_conn(int fd, enum end end)
{
	struct linger hard = { .l_onoff = 1 };

	if (end == END_SHUT) {
		SYS(shutdown(fd, SHUT_WR));
		want_eof(fd);
	} else if (end == END_RESET) {
		SYS(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)));
	}
	SYS(close(fd));
}

/* Thread: opens churns() connections, and ends each in a random way. */
static void *churn_client(void *arg)
{
	unsigned int first = (uintptr_t)arg >> 32, port = (uintptr_t)arg;

	rnd_start(first + 1);
	for (unsigned int i = 0; i < churns(); i++) {
		struct opening_words w = { first, rnd() % (300 * KIB), rnd() % ENDS };
		struct flow out = flow_out(first);
		int fd = connect_port(port);

		WANT_EQ(SYS(send(fd, &w, sizeof(w), MSG_NOSIGNAL)), sizeof(w));
		flow_send_random(fd, &out, w.length, 40000);
		end_conn(fd, w.end);
	}
	return NULL;
}

/* Threads open connections in succession, and end each in a random way. */
static void churn(void)
{
	uintptr_t port = server_port();
	pthread_t threads[CHURNERS];

	for (uintptr_t i = 0; i < CHURNERS; i++)
		threads[i] = thread_start(churn_client, (void *)(i << 32 | port));
	for (int i = 0; i < CHURNERS; i++)
		pthread_join(threads[i], NULL);
	control_writef("NO MORE");
}

/* Thread: reads a connection to its end, which must be the announced one. */
static void *churn_reader(void *arg)
{
	int fd = (intptr_t)arg;
	struct opening_words w;
	struct flow in;
	ssize_t got = recv(fd, &w, sizeof(w), MSG_WAITALL);
	int err;

	if (got != sizeof(w)) {
		/* reset before the opening words were read */
		WANT(got < 0 && errno == ECONNRESET);
		SYS(close(fd));
		return NULL;
	}
	in = flow_in(w.number);
	err = flow_recv_to_end(fd, &in);
	WANT(in.off <= w.length);
	if (w.end != END_RESET) {
		WANT_EQ(err, 0);
		WANT_EQ(in.off, w.length);
	} else {
		WANT_EQ(err, ECONNRESET);
	}
	SYS(close(fd));
	return NULL;
}

static void churn_server(void)
{
	int listener = open_listener(100);
	struct pollfd p[] = { { .fd = listener, .events = POLLIN },
			      { .fd = run.control, .events = POLLIN } };
	unsigned int total = CHURNERS * churns(), served = 0;
	pthread_t *threads = buffer(total * sizeof(*threads));
	char line[100];

	/*
	 * Ends when the client has written "NO MORE", not after @total connections: accept() need
	 * not return a connection that was reset while it was in the queue.
	 */
	for (;;) {
		intptr_t fd;

		SYS(poll(p, 2, -1));
		if (!p[0].revents)
			break;
		fd = SYS(accept(listener, NULL, NULL));
		WANT(served < total);
		threads[served++] = thread_start(churn_reader, (void *)fd);
	}
	for (unsigned int i = 0; i < served; i++)
		pthread_join(threads[i], NULL);
	control_readline(line, sizeof(line));
	WANT(!strcmp(line, "NO MORE"));
	free(threads);
}

/* ---- descriptors closed while in use; options set beside transfers ---- */

struct receiver {
	int fd;
	volatile pid_t tid;	/* 0 until the thread runs */
};

/* recv() holds a reference on the socket, so a concurrent close() only removes the descriptor. */
static void *recv_kept(void *arg)
{
	struct receiver *receiver = arg;
	uint8_t buf[100];
	struct flow in = flow_in(0);

	receiver->tid = gettid();
	WANT_EQ(SYS(recv(receiver->fd, buf, 100, MSG_WAITALL)), 100);
	flow_check(&in, buf, 100);
	return NULL;
}

static void closed_under_recv(void)
{
	struct receiver receiver = { .fd = open_conn() };
	pthread_t thread = thread_start(recv_kept, &receiver);

	EVENTUALLY(receiver.tid && thread_sleeps(receiver.tid));
	SYS(close(receiver.fd));
	barrier("closed");
	pthread_join(thread, NULL);
	barrier("read");
}

static void writes_under_recv(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	barrier("closed");
	flow_send(fd, &out, 100, 100);
	want_eof(fd);
	barrier("read");
}

/* epoll forgets a closed descriptor; the peer reads the end of the stream. */
static void closed_in_epoll(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = SYS(epoll_create1(0));

	for (size_t i = 0; i < amount(50, 5); i++) {
		int fd = open_conn();

		SYS(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
		SYS(close(fd));
		WANT_EQ(SYS(epoll_wait(ep, &ev, 1, 0)), 0);
		barrier("closed");
	}
}

static void closed_in_epoll_peer(void)
{
	for (size_t i = 0; i < amount(50, 5); i++) {
		int fd = open_conn();

		want_eof(fd);
		barrier("closed");
		SYS(close(fd));
	}
}

/* Thread: sets and gets options, peeks and polls, in whatever state the socket is. */
static void *onlooker(void *arg)
{
	int fd = *(int *)arg, value;
	socklen_t len;
	char info[256];

	rnd_start(1000);
	for (;;) {
		pthread_testcancel();
		value = rnd() % 2;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof(value));
		value = 32768 << rnd() % 5;
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value));
		len = sizeof(info);
		getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len);
		len = sizeof(info);
		getsockopt(fd, SOL_AFRDMA, AFRDMA_INFO, info, &len);
		ioctl(fd, FIONREAD, &value);
		ioctl(fd, SIOCATMARK, &value);
		poll_one(fd, POLLIN | POLLOUT, 0);
		recv(fd, info, 1, MSG_PEEK | MSG_DONTWAIT);
	}
	return NULL;
}

/* Transfers a stream each way, while onlooker() uses the same socket, even before connect(). */
static void looked_at(void)
{
	for (unsigned int i = 0; i < amount(20, 3); i++) {
		struct flow in = flow_in(i), out = flow_out(i);
		int fd = new_socket(0);
		pthread_t thread = thread_start(onlooker, &fd);
		union addr addr;
		socklen_t len = addr_server(&addr, server_port());

		SYS(connect(fd, &addr.sa, len));
		flow_send_random(fd, &out, MIB, 50000);
		SYS(shutdown(fd, SHUT_WR));
		WANT_EQ(flow_recv_to_eof(fd, &in), MIB);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		SYS(close(fd));
	}
}

static void looked_at_server(void)
{
	for (unsigned int i = 0; i < amount(20, 3); i++) {
		struct flow in = flow_in(i), out = flow_out(i);
		int listener = open_listener(1);
		int fd = SYS(accept(listener, NULL, NULL));

		WANT_EQ(flow_recv_to_eof(fd, &in), MIB);
		flow_send_random(fd, &out, MIB, 50000);
		SYS(close(fd));
		SYS(close(listener));
	}
}

const struct row hostile_rows[] = {
	{ "random_calls", random_calls, random_calls, ON_ALL | QUICK },
	{ "random_ends", churn, churn_server, ON_COLD | ON_PLAIN | QUICK },
	{ "closed_under_recv", closed_under_recv, writes_under_recv, ON_ALL },
	{ "closed_under_recv_back", writes_under_recv, closed_under_recv, ON_ALL },
	{ "closed_in_epoll", closed_in_epoll, closed_in_epoll_peer, ON_ALL },
	{ "onlooker", looked_at, looked_at_server, ON_COLD | ON_PLAIN | QUICK },
	{ }
};
