// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* The masks of poll() and epoll in many situations; wake-ups, edges, SIGIO, EPOLLEXCLUSIVE. */
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>

#include "test.h"

#define IN	(POLLIN | POLLRDNORM)
#define OUT	(POLLOUT | POLLWRNORM)
#define HUP	POLLHUP
#define ERR	POLLERR
#define RDHUP	POLLRDHUP
#define ALL	(IN | OUT | RDHUP | POLLPRI | POLLRDBAND | POLLWRBAND)

/* ---- masks ---- */

static void nothing(int fd)
{
	(void)fd;
}

static void send_some(int fd)
{
	SYS(send(fd, "0123456789", 10, MSG_NOSIGNAL));
}

static void recv_some(int fd)
{
	char buf[10];

	WANT_EQ(SYS(recv(fd, buf, 10, MSG_WAITALL)), 10);
}

static void shut_wr(int fd)
{
	SYS(shutdown(fd, SHUT_WR));
}

static void shut_rd(int fd)
{
	SYS(shutdown(fd, SHUT_RD));
}

static void shut_both(int fd)
{
	SYS(shutdown(fd, SHUT_RDWR));
}

static void send_and_shut(int fd)
{
	send_some(fd);
	shut_wr(fd);
}

/* Closes the connection; the descriptor stays valid, so that a later close() succeeds. */
static void close_it(int fd)
{
	SYS(dup2(STDIN_FILENO, fd));
}

static void reset_it(int fd)
{
	struct linger hard = { .l_onoff = 1 };

	SYS(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)));
	close_it(fd);
}

/* Sends until the socket is not writable and stays so. */
static void fill(int fd)
{
	struct flow out = flow_out(0);

	for (int quiet = 0; quiet < 3; quiet++)
		if (flow_send_full(fd, &out, 1000) | (poll_one(fd, POLLOUT, 200) & POLLOUT))
			quiet = 0;
}

/* Reads until nothing has arrived for 300 ms. */
static void drain(int fd)
{
	uint8_t *buf = buffer(MIB);

	while (poll_one(fd, POLLIN, 300))
		SYS(recv(fd, buf, MIB, 0));
	free(buf);
}

static void take_error(int fd)
{
	await(fd, POLLHUP);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), ECONNRESET);
}

static void lowat(int fd)
{
	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 11);
}

/*
 * The peer calls @peer, then the watcher calls @watcher, then the peer calls @then. After that,
 * poll() must report @mask for the watcher's socket, and keep reporting it.
 */
static const struct situation {
	const char *name;
	void (*peer)(int fd);
	void (*watcher)(int fd);
	int mask;
	void (*then)(int fd);
} situations[] = {
	{ "fresh", nothing, nothing, OUT, nothing },
	{ "bytes waiting", send_some, nothing, IN | OUT, nothing },
	{ "bytes read", send_some, recv_some, OUT, nothing },
	{ "below the low-water mark", send_some, lowat, OUT, nothing },
	{ "peer ended", shut_wr, nothing, IN | OUT | RDHUP, nothing },
	{ "peer ended, bytes waiting", send_and_shut, nothing, IN | OUT | RDHUP, nothing },
	{ "peer ended, bytes read", send_and_shut, recv_some, IN | OUT | RDHUP, nothing },
	{ "watcher ended", nothing, shut_wr, OUT, nothing },
	{ "watcher ended, bytes waiting", send_some, shut_wr, IN | OUT, nothing },
	{ "watcher shut down receiving", nothing, shut_rd, IN | OUT | RDHUP, nothing },
	{ "watcher shut both", nothing, shut_both, IN | OUT | RDHUP | HUP, nothing },
	{ "peer ended, then watcher", shut_wr, shut_wr, IN | OUT | RDHUP | HUP, nothing },
	{ "watcher ended, then peer", nothing, shut_wr, IN | OUT | RDHUP | HUP, shut_wr },
	{ "peer closed", close_it, nothing, IN | OUT | RDHUP, nothing },
	{ "peer closed, bytes waiting", send_and_shut, nothing, IN | OUT | RDHUP, close_it },
	{ "watcher ended, peer closed", nothing, shut_wr, IN | OUT | RDHUP | HUP, close_it },
	{ "reset", reset_it, nothing, IN | OUT | RDHUP | HUP | ERR, nothing },
	{ "reset, bytes waiting", send_some, nothing, IN | OUT | RDHUP | HUP | ERR, reset_it },
	{ "reset, SO_ERROR read", reset_it, take_error, IN | OUT | RDHUP | HUP, nothing },
	{ "peer closed, bytes unread", nothing, send_some, IN | OUT | RDHUP | HUP | ERR, close_it },
	{ "full", nothing, fill, 0, nothing },
	{ "full, then read", nothing, fill, OUT, drain },
	{ "full, then ended", nothing, fill, IN | RDHUP, shut_wr },
	{ "full, then reset", nothing, fill, IN | OUT | RDHUP | HUP | ERR, reset_it },
	{ "both full, then reset", fill, fill, IN | OUT | RDHUP | HUP | ERR, reset_it },
};

/* The mask that epoll reports for @fd now. */
static int epoll_mask(int fd)
{
	struct epoll_event ev = { .events = ALL };
	int ep = SYS(epoll_create1(0)), n;

	SYS(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	n = SYS(epoll_wait(ep, &ev, 1, 0));
	SYS(close(ep));
	return n ? ev.events : 0;
}

static void want_mask(const struct situation *s, int got, const char *how)
{
	if (got != s->mask)
		fail("\"%s\" on %s: %s gives %#x, expected %#x", s->name,
		     speaks_rdma() ? "AF_RDMA" : "TCP", how, got, s->mask);
}

/* The watcher's part of situation @s. */
static void watch(const struct situation *s, int fd)
{
	double end = now() + patience() / 2;

	barrier("peer acted");
	s->watcher(fd);
	barrier("watcher acted");
	barrier("peer went on");
	while (poll_one(fd, ALL, 0) != s->mask && now() < end) {
		if (s->watcher == fill && !(s->mask & OUT))
			fill(fd);	/* more bytes may have reached the peer and made room */
		else
			poll(NULL, 0, 1);
	}
	want_mask(s, poll_one(fd, ALL, 0), "poll");
	want_mask(s, epoll_mask(fd), "epoll");
	barrier("seen");
	want_mask(s, poll_one(fd, ALL, 0), "second poll");
}

/* The peer's part of situation @s. */
static void act(const struct situation *s, int fd)
{
	s->peer(fd);
	barrier("peer acted");
	barrier("watcher acted");
	s->then(fd);
	barrier("peer went on");
	barrier("seen");
}

/* Runs @s on a new connection: this end watches its poll mask (@watcher), or acts as the peer. */
static void run_situation(const struct situation *s, bool watcher)
{
	int fd = open_conn();

	at(__FILE__, __LINE__, s->name);
	path_await_decided(fd);	/* at a server, a reset before HELLO would force fallback mode */
	barrier("connected");	/* a reset during connect() could make it fail, on TCP too */
	(watcher ? watch : act)(s, fd);
	barrier("done");
	SYS(close(fd));
}

/*
 * Runs each situation in the variant of the row. Variant cold runs each one on TCP first, to check
 * the masks of situations[].
 */
static void masks(bool watcher)
{
	enum variant variant = run.variant;

	for (size_t i = 0; i < ARRAY_SIZE(situations); i++) {
		run.variant = VAR_TCP;
		if (variant == VAR_COLD || variant == VAR_TCP)
			run_situation(&situations[i], watcher);
		run.variant = variant;
		if (variant != VAR_TCP)
			run_situation(&situations[i], watcher);
	}
}

/* Runs on the end that checks its own poll mask; masks_act() runs on its peer. */
static void masks_watch(void)
{
	masks(true);
}

static void masks_act(void)
{
	masks(false);
}

/* ---- waiters ---- */

struct waiter {
	int fd;
	int events;
	int got;
	void (*wait)(struct waiter *w);
};

static void wait_by_poll(struct waiter *w)
{
	w->got = poll_one(w->fd, w->events, -1);
}

static void wait_by_epoll(struct waiter *w)
{
	struct epoll_event ev = { .events = w->events };
	int ep = SYS(epoll_create1(0));

	SYS(epoll_ctl(ep, EPOLL_CTL_ADD, w->fd, &ev));
	SYS(epoll_wait(ep, &ev, 1, -1));
	w->got = ev.events;
	SYS(close(ep));
}

static void wait_by_select(struct waiter *w)
{
	fd_set in, out;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(w->fd, w->events & POLLIN ? &in : &out);
	SYS(select(w->fd + 1, &in, &out, NULL, NULL));
	w->got = (FD_ISSET(w->fd, &in) ? POLLIN : 0) | (FD_ISSET(w->fd, &out) ? POLLOUT : 0);
}

static void *waiter_body(void *arg)
{
	struct waiter *w = arg;

	w->wait(w);
	return NULL;
}

static void (*const waits[])(struct waiter *w) = { wait_by_poll, wait_by_epoll, wait_by_select };

#define WAITERS	(2 * ARRAY_SIZE(waits))

/* Two threads sleep in each kind of wait; one event wakes them all. */
static void wake_all(int fd, int events, void (*wake)(int fd))
{
	struct waiter waiters[WAITERS];
	pthread_t threads[WAITERS];

	for (size_t i = 0; i < WAITERS; i++) {
		waiters[i] = (struct waiter) { fd, events, 0, waits[i / 2] };
		threads[i] = thread_start(waiter_body, &waiters[i]);
	}
	wake(fd);
	for (size_t i = 0; i < WAITERS; i++) {
		pthread_join(threads[i], NULL);
		WANT(waiters[i].got & events);
	}
}

/* A wake function of wake_all(): lets the peer cause the event. */
static void announce(int fd)
{
	(void)fd;
	poll(NULL, 0, 50);	/* lets most threads fall asleep, so that a lost wake-up shows */
	barrier("asleep");
}

static void woken_by_data(void)
{
	int fd = open_conn();

	for (size_t i = 0; i < amount(20, 3); i++) {
		wake_all(fd, POLLIN, announce);
		recv_some(fd);
	}
	barrier("all awake");
}

static void wakes_by_data(void)
{
	int fd = open_conn();

	for (size_t i = 0; i < amount(20, 3); i++) {
		barrier("asleep");
		send_some(fd);
	}
	barrier("all awake");
}

static void woken_by_room(void)
{
	static const char message[1000];
	int fd = open_conn();

	fill(fd);
	wake_all(fd, POLLOUT, announce);
	/* Only one message: while the peer reads, sending until there is no room may never end. */
	WANT(SYS(send(fd, message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0);
	barrier("all awake");
}

static void makes_room(void)
{
	int fd = open_conn();

	barrier("asleep");
	drain(fd);
	barrier("all awake");
}

static void woken_by_end(void)
{
	int fd = open_conn();

	wake_all(fd, POLLIN, announce);
	want_eof(fd);
}

static void wakes_by_end(void)
{
	int fd = open_conn();

	barrier("asleep");
	shut_wr(fd);
}

/* ---- edges ---- */

/* Returns a new epoll descriptor that watches @fd edge-triggered. */
static int edge_watch(int fd, int events)
{
	struct epoll_event ev = { .events = events | EPOLLET };
	int ep = SYS(epoll_create1(0));

	SYS(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	return ep;
}

/* Returns the events of the next edge, or 0 if none comes within @ms. */
static int edge(int ep, int ms)
{
	struct epoll_event ev = { 0 };

	return SYS(epoll_wait(ep, &ev, 1, ms)) ? ev.events : 0;
}

/*
 * Every arrival of bytes causes an EPOLLIN edge, even while earlier bytes are unread. The peer's
 * shutdown(SHUT_WR) causes one, too; reading causes none.
 */
static void edge_each_arrival(void)
{
	int fd = open_conn(), ep = edge_watch(fd, EPOLLIN);

	for (int i = 0; i < 5; i++) {
		WANT_EQ(edge(ep, 50), 0);
		barrier("send");
		WANT_EQ(edge(ep, -1), EPOLLIN);
	}
	WANT_EQ(edge(ep, 50), 0);
	for (int i = 0; i < 5; i++)
		recv_some(fd);
	WANT_EQ(edge(ep, 50), 0);
	barrier("end");
	WANT_EQ(edge(ep, -1), EPOLLIN);
	want_eof(fd);
}

/* Other end of edge_each_arrival(): sends ten bytes at a time, and then the end. */
static void arrives(void)
{
	int fd = open_conn();

	for (int i = 0; i < 5; i++) {
		barrier("send");
		send_some(fd);
	}
	barrier("end");
	shut_wr(fd);
}

/* An EPOLLOUT edge occurs when a full socket has room again, and none while it stays writable. */
static void edge_room(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn(), ep = edge_watch(fd, EPOLLOUT);

	WANT_EQ(edge(ep, -1), EPOLLOUT);
	WANT_EQ(edge(ep, 50), 0);
	for (int i = 0; i < 3; i++) {
		fill(fd);
		while (edge(ep, 50))	/* edges that fill() itself caused */
			;
		barrier("full");
		WANT(edge(ep, -1) & EPOLLOUT);
		barrier("room");
	}
	WANT(flow_send_full(fd, &out, 1000) > 0);
	barrier("end");
}

static void edge_room_peer(void)
{
	int fd = open_conn();

	for (int i = 0; i < 3; i++) {
		barrier("full");
		drain(fd);
		barrier("room");
	}
	barrier("end");
}

/* Neither sending nor the peer's reads cause an EPOLLOUT edge while the socket stays writable. */
static void edge_sent(void)
{
	int fd = open_conn(), ep = edge_watch(fd, EPOLLOUT);

	WANT_EQ(edge(ep, -1), EPOLLOUT);
	for (int i = 0; i < 5; i++) {
		send_some(fd);
		WANT_EQ(edge(ep, 50), 0);
	}
	barrier("sent");
	barrier("read");
	WANT_EQ(edge(ep, 50), 0);
}

static void edge_sent_peer(void)
{
	int fd = open_conn();

	barrier("sent");
	for (int i = 0; i < 5; i++)
		recv_some(fd);
	barrier("read");
}

/* Events that are pending at EPOLL_CTL_ADD cause one edge; the peer's later end causes another. */
static void edge_late(void)
{
	int fd = open_conn(), ep;

	barrier("send");
	await(fd, POLLIN);
	ep = edge_watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	WANT_EQ(edge(ep, -1), EPOLLIN | EPOLLOUT);
	WANT_EQ(edge(ep, 50), 0);
	barrier("end");
	WANT(edge(ep, -1) & EPOLLRDHUP);
}

static void *await_in(void *arg)
{
	WANT_EQ(poll_one(*(int *)arg, POLLIN, -1), POLLIN);
	return NULL;
}

/* poll() ignores fewer bytes than SO_RCVLOWAT; lowering the option wakes a thread in poll(). */
static void lowat_lowered(void)
{
	int fd = open_conn(), queued;
	pthread_t thread;

	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 4096);
	barrier("send");
	EVENTUALLY(ioctl(fd, FIONREAD, &queued) == 0 && queued == 10);
	WANT_EQ(poll_one(fd, POLLIN, 50), 0);
	thread = thread_start(await_in, &fd);
	poll(NULL, 0, 50);
	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	pthread_join(thread, NULL);
	barrier("end");
}

/* As lowat_lowered(), but the bytes arrive after the option was lowered. */
static void lowat_lowered_first(void)
{
	int fd = open_conn();
	pthread_t thread;

	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 4096);
	thread = thread_start(await_in, &fd);
	poll(NULL, 0, 50);
	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	barrier("send");
	pthread_join(thread, NULL);
	barrier("end");
}

/*
 * Other end of edge_late(), lowat_lowered(), lowat_lowered_first(), oneshot(), sigio(), sigio_end()
 * and fioasync(): sends bytes, later the end.
 */
static void edge_late_peer(void)
{
	int fd = open_conn();

	barrier("send");
	send_some(fd);
	barrier("end");
	shut_wr(fd);
}

/* With EPOLLONESHOT an event is reported once, and again after EPOLL_CTL_MOD. */
static void oneshot(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT };
	int fd = open_conn(), ep = SYS(epoll_create1(0));

	SYS(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	barrier("send");
	WANT_EQ(edge(ep, -1), EPOLLIN);
	WANT_EQ(edge(ep, 50), 0);
	ev.events = EPOLLIN | EPOLLONESHOT;
	SYS(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &ev));
	WANT_EQ(edge(ep, -1), EPOLLIN);
	barrier("end");
}

/* ---- SIGIO ---- */

/* SIGIO is sent when bytes arrive. */
static void sigio(void)
{
	int fd = open_conn();

	on_signal(SIGIO, SA_RESTART);
	SYS(fcntl(fd, F_SETOWN, getpid()));
	SYS(fcntl(fd, F_SETFL, O_ASYNC));
	signals_seen = 0;
	barrier("send");
	EVENTUALLY(signals_seen > 0);
	barrier("end");
}

/* SIGIO is also sent when the peer ends its direction. */
static void sigio_end(void)
{
	int fd = open_conn();

	on_signal(SIGIO, SA_RESTART);
	barrier("send");
	recv_some(fd);
	SYS(fcntl(fd, F_SETOWN, getpid()));
	SYS(fcntl(fd, F_SETFL, O_ASYNC));
	signals_seen = 0;
	barrier("end");
	EVENTUALLY(signals_seen > 0);
	await(fd, POLLRDHUP);
}

/* FIOASYNC sets and clears O_ASYNC. */
static void fioasync(void)
{
	int fd = open_conn();

	on_signal(SIGIO, SA_RESTART);
	SYS(ioctl(fd, FIOSETOWN, &(int) { getpid() }));
	SYS(ioctl(fd, FIOASYNC, &(int) { 1 }));
	WANT(fcntl(fd, F_GETFL) & O_ASYNC);
	signals_seen = 0;
	barrier("send");
	EVENTUALLY(signals_seen > 0);
	SYS(ioctl(fd, FIOASYNC, &(int) { 0 }));
	signals_seen = 0;
	barrier("end");
	await(fd, POLLRDHUP);
	WANT_EQ(signals_seen, 0);
}

/* ---- EPOLLEXCLUSIVE ---- */

#define CALLS	10

struct acceptor {
	int listener;
	unsigned int *served;
};

/* Thread: accepts and answers connections, until all threads together have accepted CALLS. */
static void *exclusive_body(void *arg)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLEXCLUSIVE };
	int ep = SYS(epoll_create1(0));
	struct acceptor *a = arg;
	char byte;
	int fd;

	SYS(epoll_ctl(ep, EPOLL_CTL_ADD, a->listener, &ev));
	while (__atomic_load_n(a->served, __ATOMIC_ACQUIRE) < CALLS) {
		if (!SYS(epoll_wait(ep, &ev, 1, 100)))
			continue;
		fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;	/* another thread was quicker */
		__atomic_add_fetch(a->served, 1, __ATOMIC_ACQ_REL);
		WANT_EQ(SYS(recv(fd, &byte, 1, 0)), 1);
		SYS(send(fd, "x", 1, MSG_NOSIGNAL));
		SYS(close(fd));
	}
	SYS(close(ep));
	return NULL;
}

/* A connection need not wake all threads that wait with EPOLLEXCLUSIVE, but must be accepted. */
static void exclusive(void)
{
	struct acceptor a = { open_listener(8), &(unsigned int) { 0 } };
	pthread_t threads[4];

	nonblocking(a.listener, true);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		threads[i] = thread_start(exclusive_body, &a);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	WANT_EQ(*a.served, CALLS);
}

static void exclusive_callers(void)
{
	int port = server_port();

	for (int i = 0; i < CALLS; i++) {
		int fd = connect_port(port);
		char byte;

		SYS(send(fd, "y", 1, MSG_NOSIGNAL));
		WANT_EQ(SYS(recv(fd, &byte, 1, 0)), 1);
		if (speaks_rdma() && run.variant == VAR_COLD)
			WANT_EQ(path_info(fd).mode, AFRDMA_MODE_FRAMED);
		SYS(close(fd));
	}
}

#define BOTH(name, first, second, flags)		\
	{ name, first, second, flags },			\
	{ name "_back", second, first, (flags) & ~(QUICK | QUICK_ALL) }

const struct row poll_rows[] = {
	BOTH("masks", masks_watch, masks_act, ON_ALL | QUICK_ALL),
	BOTH("wake_by_data", woken_by_data, wakes_by_data, ON_ALL | QUICK),
	BOTH("wake_by_room", woken_by_room, makes_room, ON_ALL | QUICK),
	BOTH("wake_by_end", woken_by_end, wakes_by_end, ON_ALL | QUICK),
	BOTH("edge_each_arrival", edge_each_arrival, arrives, ON_ALL | QUICK),
	BOTH("edge_room", edge_room, edge_room_peer, ON_ALL),
	BOTH("edge_sent", edge_sent, edge_sent_peer, ON_ALL | QUICK),
	BOTH("edge_late", edge_late, edge_late_peer, ON_ALL | QUICK),
	{ "lowat_lowered", lowat_lowered, edge_late_peer, ON_ALL | QUICK },
	{ "lowat_lowered_first", lowat_lowered_first, edge_late_peer, ON_ALL | QUICK_ALL },
	{ "oneshot", oneshot, edge_late_peer, ON_ALL | QUICK },
	{ "sigio", sigio, edge_late_peer, ON_ALL | QUICK },
	{ "sigio_end", sigio_end, edge_late_peer, ON_ALL | QUICK },
	{ "fioasync", fioasync, edge_late_peer, ON_ALL | QUICK },
	{ "epoll_exclusive", exclusive_callers, exclusive, ON_COLD | ON_PLAIN | QUICK },
	{ }
};
