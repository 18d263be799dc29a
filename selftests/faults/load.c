// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The load of fault rows: many connections with a stream each way. The value of a byte depends on
 * its position (flow.c), and each byte is checked when it is read.
 *
 * Commands on standard input, one per line; each is answered by a status line:
 *	mark	from now on, measure the longest pause in receiving on any connection, and the time
 *		to the latest failure of a connection
 *	status	print the status line only
 *	end	a client begins no more connections; a server still accepts, and ends as soon as no
 *		connection is open. Unless the client has a --limit, both also end their open
 *		connections: they shut down the send direction, and close when the peer's direction
 *		has ended, too.
 *	quit	end the program, also if connections are open; the end of the input does the same
 * Lines on standard output: "listening", "status KEY=VALUE...". The last line is "result
 * KEY=VALUE...", or "FAIL why" if a byte is wrong or the program itself fails.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include "load.h"

#define TICK_MS		20

/* The only row; flow.c needs one. */
static const struct row the_row = { .name = "faults" };

static int epoll_fd, listener = -1;
static bool quitting;

/* ---- sockets ---- */

/* Sets the socket options of --buf and --user-timeout. */
static void set_up(int fd)
{
	if (opt.buf) {
		set_int(fd, SOL_SOCKET, SO_SNDBUF, opt.buf);
		set_int(fd, SOL_SOCKET, SO_RCVBUF, opt.buf);
	}
	if (opt.user_timeout)
		set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, opt.user_timeout);
}

static int family_socket(bool inet6)
{
	if (opt.tcp)
		return socket(inet6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
	return socket(AF_RDMA, SOCK_STREAM, inet6 ? AFRDMA_PROTO_INET6 : AFRDMA_PROTO_INET);
}

static void address(union addr *addr, socklen_t *len)
{
	memset(addr, 0, sizeof(*addr));
	if (strchr(opt.host, ':')) {
		addr->in6.sin6_family = AF_INET6;
		addr->in6.sin6_port = htons(opt.port);
		inet_pton(AF_INET6, opt.host, &addr->in6.sin6_addr);
		*len = sizeof(addr->in6);
	} else {
		addr->in.sin_family = AF_INET;
		addr->in.sin_port = htons(opt.port);
		inet_pton(AF_INET, opt.host, &addr->in.sin_addr);
		*len = sizeof(addr->in);
	}
}

static void open_listener_here(void)
{
	union addr addr;
	socklen_t len;

	address(&addr, &len);
	listener = SYS(family_socket(addr.sa.sa_family == AF_INET6));
	set_int(listener, SOL_SOCKET, SO_REUSEADDR, 1);
	set_up(listener);
	SYS(bind(listener, &addr.sa, len));
	SYS(listen(listener, opt.backlog));
	nonblocking(listener, true);
}

/* Calls connect(). Returns true if it has succeeded; else it is in progress or has failed. */
static bool connect_now(struct conn *c)
{
	union addr addr;
	socklen_t len;

	address(&addr, &len);
	if (!connect(c->fd, &addr.sa, len))
		return true;
	if (errno != EINPROGRESS)
		failed(c);
	else
		c->connecting = true;
	return false;
}

/* ---- with --blocking: two threads per connection ---- */

static void *thread_end(void *arg);

static void *tx_thread(void *arg)
{
	struct conn *c = arg;

	rnd_start(c->head.conn);
	while (!c->tx.over)
		if (!push(c) && !c->tx.over)
			poll(NULL, 0, 1);	/* --rate allows no byte yet */
	return thread_end(c);
}

static void *rx_thread(void *arg)
{
	struct conn *c = arg;

	rnd_start(c->head.conn + SLOTS);
	while (!c->rx.over)
		pull(c);
	return thread_end(c);
}

/*
 * The first thread of a connection. At a client, it connects and sends the header; at a server, it
 * receives the header. Then it starts the receiver, and becomes the sender.
 */
static void *first_thread(void *arg)
{
	struct conn *c = arg;

	if (!run.server && !connect_now(c))
		return thread_end(c);
	while (!c->started && !c->err)
		header_step(c);
	if (c->err)
		return thread_end(c);
	pthread_mutex_lock(&lock);
	c->threads++;
	pthread_mutex_unlock(&lock);
	pthread_detach(thread_start(rx_thread, c));
	return tx_thread(c);
}

static void *thread_end(void *arg)
{
	struct conn *c = arg;

	pthread_mutex_lock(&lock);
	c->threads--;
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* ---- otherwise: epoll ---- */

/* Registers with epoll the events that the connection waits for now. */
static void wait_for(struct conn *c)
{
	uint32_t events = 0;
	struct epoll_event ev = { .data.ptr = c };

	if (c->connecting || (!c->started && !run.server))
		events = EPOLLOUT;
	else if (!c->started)
		events = EPOLLIN;
	else
		events = (c->rx.over ? 0 : EPOLLIN) |
			 (!c->tx.over && (allowance(c) || tx_at_end(c)) ? EPOLLOUT : 0);
	if (events == c->events)
		return;
	ev.events = events;
	c->events = events;
	SYS(epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &ev));
}

/* A non-blocking connect() has ended: takes its result. */
static void connected(struct conn *c)
{
	int err = get_int(c->fd, SOL_SOCKET, SO_ERROR);

	c->connecting = false;
	if (err) {
		errno = err;
		failed(c);
	}
}

/* Handles events; makes at most a few calls, so that other connections are not delayed. */
static void serve(struct conn *c, uint32_t events)
{
	if (c->connecting)
		connected(c);
	if (!c->started && !c->err && !header_step(c))
		return;
	for (int i = 0; i < 8 && events & (EPOLLIN | EPOLLERR | EPOLLHUP) && !c->rx.over; i++)
		if (!pull(c))
			break;
	for (int i = 0; i < 8 && events & (EPOLLOUT | EPOLLERR | EPOLLHUP) && !c->tx.over; i++)
		if (!push(c))
			break;
}

/* ---- beginning and end of connections ---- */

/*
 * Creates the connection of socket @fd in @slot. With --blocking, starts its first thread.
 * Otherwise calls connect() if @is_new, and adds the socket to epoll unless connect() failed.
 * @is_new: the socket is a client's, not yet connected.
 */
static void adopt(int slot, int fd, bool is_new)
{
	struct conn *c = buffer(sizeof(*c));
	struct epoll_event ev = { .data.ptr = c };

	memset(c, 0, sizeof(*c));
	c->fd = fd;
	if (!run.server)
		c->head = (struct header) { MAGIC, begun, opt.limit };
	if (opt.greet)
		greet(c);
	begun++;
	pthread_mutex_lock(&lock);
	conns[slot] = c;
	pthread_mutex_unlock(&lock);
	if (opt.blocking) {
		c->threads = 1;
		pthread_detach(thread_start(first_thread, c));
		return;
	}
	nonblocking(fd, true);
	if (is_new && !connect_now(c) && !c->connecting)
		return;
	SYS(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev));
	wait_for(c);
}

/* Did a call fail for lack of descriptors, files or memory? Then loop() will repeat it. */
static bool scarce(void)
{
	if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
		return false;
	count_scarce();
	poll(NULL, 0, 5);
	return true;
}

/* Client: begins a connection in @slot, which stays empty if socket() lacks a resource. */
static void begin(int slot)
{
	int fd = family_socket(strchr(opt.host, ':'));

	if (fd < 0) {
		if (!scarce())
			fail("socket: %s", strerror(errno));
		return;
	}
	set_up(fd);
	adopt(slot, fd, true);
}

static void accept_all(void)
{
	for (int slot = 0; slot < SLOTS; slot++) {
		int fd;

		if (conns[slot])
			continue;
		fd = accept(listener, NULL, NULL);
		if (fd < 0) {
			if (errno != EAGAIN && errno != ECONNABORTED && !scarce())
				fail("accept: %s", strerror(errno));
			return;
		}
		adopt(slot, fd, false);
	}
	fail("more than %d connections", SLOTS);
}

/* The connection in @slot is over: adds it to the sums, closes its socket, and frees it. */
static void reap(int slot)
{
	struct conn *c = conns[slot];

	pthread_mutex_lock(&lock);
	conns[slot] = NULL;
	pthread_mutex_unlock(&lock);
	add_to_sums(c);
	close(c->fd);
	free(c);
}

static bool is_over(struct conn *c)
{
	bool over;

	pthread_mutex_lock(&lock);
	over = !c->threads && c->tx.over && c->rx.over;
	pthread_mutex_unlock(&lock);
	return over;
}

static bool more_to_begin(void)
{
	return !run.server && !ending && begun < (opt.cycles ? opt.cycles : opt.conns);
}

/*
 * Reaps connections that are over, and begins new ones. Without --blocking, updates the events
 * that each waits for. Returns the number of connections, plus one if more are to begin.
 */
static int tick(void)
{
	int open = 0;

	for (int slot = 0; slot < SLOTS; slot++) {
		if (conns[slot] && is_over(conns[slot]))
			reap(slot);
		if (!conns[slot] && slot < opt.conns && more_to_begin())
			begin(slot);
		if (!conns[slot])
			continue;
		open++;
		if (!opt.blocking && !conns[slot]->err)
			wait_for(conns[slot]);
	}
	return open + more_to_begin();
}

/* ---- the program ---- */

static void command(const char *line)
{
	if (!strcmp(line, "mark"))
		set_mark();
	else if (!strcmp(line, "end"))
		ending = true;
	else if (!strcmp(line, "quit"))
		quitting = true;
	else if (strcmp(line, "status"))
		fail("no such command: %s", line);
	report("status");
}

static void read_commands(void)
{
	static char text[256];
	static size_t used;
	ssize_t got = read(STDIN_FILENO, text + used, sizeof(text) - 1 - used);
	char *end;

	if (got == 0)
		quitting = true;
	if (got <= 0)
		return;
	used += got;
	text[used] = 0;
	while ((end = strchr(text, '\n'))) {
		*end++ = 0;
		command(text);
		used -= end - text;
		memmove(text, end, used + 1);
	}
}

/* Makes epoll report input of @fd, with the pointer @as. */
static void watch_fd(int fd, void *as)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = as };

	SYS(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev));
}

static void loop(void)
{
	struct epoll_event ev[64];
	double next = 0;
	int open = 1;

	while (!quitting && (open || (run.server && !ending))) {
		int n = epoll_wait(epoll_fd, ev, ARRAY_SIZE(ev), TICK_MS);

		for (int i = 0; i < n; i++) {
			struct conn *c = ev[i].data.ptr;

			if (ev[i].data.ptr == &listener)
				accept_all();
			else if (ev[i].data.ptr == &opt)
				read_commands();
			else if (!is_over(c))
				serve(c, ev[i].events);
			if (c != (void *)&listener && c != (void *)&opt && !c->err)
				wait_for(c);
		}
		/* with --cycles, a new connection must not wait for the next tick */
		if (now() >= next || opt.cycles) {
			open = tick();
			next = now() + TICK_MS / 1000.0;
		}
	}
}

/* The variables that an option sets; an option that only sets a bool takes no argument. */
static const struct setting {
	const char *name;
	const char **text;
	int *number;
	bool *on;
} settings[] = {
	{ "listen", .text = &opt.host, .on = &run.server },
	{ "connect", .text = &opt.host },
	{ "port", .number = &opt.port },
	{ "conns", .number = &opt.conns },
	{ "cycles", .number = &opt.cycles },
	{ "limit", .number = &opt.limit },
	{ "rate", .number = &opt.rate },
	{ "chunk", .number = &opt.chunk },
	{ "seed", .text = &opt.seed },
	{ "buf", .number = &opt.buf },
	{ "backlog", .number = &opt.backlog },
	{ "user-timeout", .number = &opt.user_timeout },
	{ "tcp", .on = &opt.tcp },
	{ "blocking", .on = &opt.blocking },
	{ "half", .on = &opt.half },
	{ "greet", .on = &opt.greet },
};

static void read_options(int argc, char **argv)
{
	struct option options[ARRAY_SIZE(settings) + 1] = { };
	int i;

	for (i = 0; i < (int)ARRAY_SIZE(settings); i++)
		options[i] = (struct option) {
			settings[i].name, settings[i].text || settings[i].number, NULL, i,
		};
	while ((i = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (i == '?')
			exit(2);
		if (settings[i].text)
			*settings[i].text = optarg;
		if (settings[i].number)
			*settings[i].number = atoi(optarg);
		if (settings[i].on)
			*settings[i].on = true;
	}
}

int main(int argc, char **argv)
{
	static struct progress here;

	progress = &here;
	run.row = &the_row;
	run.control = -1;
	read_options(argc, argv);
	run.seed = strtoull(opt.seed, NULL, 0);
	if (!opt.host || !opt.port || opt.conns > SLOTS || opt.chunk < 1 ||
	    opt.chunk > (int)CHUNK_MAX)
		fail("usage: afr_load --listen ADDRESS | --connect ADDRESS --port N [...]");
	rnd_start(0);
	epoll_fd = SYS(epoll_create1(EPOLL_CLOEXEC));
	nonblocking(STDIN_FILENO, true);
	watch_fd(STDIN_FILENO, &opt);
	if (run.server) {
		open_listener_here();
		watch_fd(listener, &listener);
		printf("listening\n");
		fflush(stdout);
	}
	loop();
	report("result");
	return 0;
}
