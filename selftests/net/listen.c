// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Listeners: accept, backlog, servers that send first, close, ports, inherited options. */
#define _GNU_SOURCE
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "test.h"

#define LEN	1000
#define MANY	40

/* Sends and receives LEN bytes of connection @conn. */
static void exchange_on(int fd, unsigned int conn)
{
	struct flow out = flow_out(conn), in = flow_in(conn);

	flow_send(fd, &out, LEN, LEN);
	flow_recv(fd, &in, LEN, LEN);
}

/* ---- accept ---- */

/* accept4() sets its flags on the new socket; accept() inherits no flags from the listener. */
static void accept_flags(void)
{
	int listener = open_listener(8);
	int fd = SYS(accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
	char byte;

	WANT(fcntl(fd, F_GETFL) & O_NONBLOCK);
	WANT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	SYS_ERRNO(recv(fd, &byte, 1, 0), EAGAIN);
	nonblocking(listener, true);
	await(listener, POLLIN);
	fd = SYS(accept(listener, NULL, NULL));
	WANT(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
	WANT(!(fcntl(fd, F_GETFD) & FD_CLOEXEC));
	SYS_ERRNO(accept(listener, NULL, NULL), EAGAIN);
	barrier("flags seen");
}

/* Other end of accept_flags(). */
static void two_connects(void)
{
	int port = server_port();

	connect_port(port);
	connect_port(port);
	barrier("flags seen");
}

static void accept_nonblocking(void)
{
	int listener = open_listener(8);
	int fd;

	nonblocking(listener, true);
	SYS_ERRNO(accept(listener, NULL, NULL), EAGAIN);
	WANT_EQ(poll_one(listener, POLLIN | POLLOUT, 0), 0);
	barrier("no client yet");
	await(listener, POLLIN);
	fd = SYS(accept(listener, NULL, NULL));
	WANT_EQ(poll_one(listener, POLLIN | POLLOUT, 0), 0);
	exchange_on(fd, 0);
	path_check(fd, LEN, LEN);
}

static void connect_when_nobody(void)
{
	int port = server_port();
	int fd;

	barrier("no client yet");
	fd = connect_port(port);
	exchange_on(fd, 0);
	path_check(fd, LEN, LEN);
}

struct acceptor {
	int listener;
	int served;
};

/* Thread: accepts and serves connections until accept() fails. */
static void *accept_some(void *arg)
{
	struct acceptor *a = arg;

	for (;;) {
		int fd = accept(a->listener, NULL, NULL);

		if (fd < 0)
			break;
		WANT_EQ(SYS(send(fd, "!", 1, MSG_NOSIGNAL)), 1);
		want_eof(fd);
		SYS(close(fd));
		a->served++;
	}
	WANT_EQ(errno, EINVAL);
	return NULL;
}

/* Eight threads accept MANY connections; then shutdown() of the listener wakes all threads. */
static void accept_threads(void)
{
	struct acceptor acceptors[8] = { 0 };
	pthread_t threads[8];
	int listener = open_listener(MANY);
	int served = 0;

	for (int i = 0; i < 8; i++) {
		acceptors[i].listener = listener;
		threads[i] = thread_start(accept_some, &acceptors[i]);
	}
	barrier("all served");
	SYS(shutdown(listener, SHUT_RD));
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		served += acceptors[i].served;
	}
	WANT_EQ(served, MANY);
}

static void accept_threads_client(void)
{
	int port = server_port();
	char byte;

	for (int i = 0; i < MANY; i++) {
		int fd = connect_port(port);

		WANT_EQ(SYS(recv(fd, &byte, 1, 0)), 1);
		SYS(close(fd));
	}
	barrier("all served");
}

/* One edge-triggered event may report several connections. */
static void accept_edge(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int listener = open_listener(MANY);
	int ep = SYS(epoll_create1(0));
	int served = 0;

	nonblocking(listener, true);
	SYS(epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev));
	while (served < MANY) {
		int fd;

		WANT_EQ(SYS(epoll_wait(ep, &ev, 1, -1)), 1);
		while ((fd = accept(listener, NULL, NULL)) >= 0) {
			SYS(send(fd, "!", 1, MSG_NOSIGNAL));
			served++;
		}
		WANT_EQ(errno, EAGAIN);
	}
	barrier("all served");
}

/* Other end of accept_edge() and reuseport_server(): each socket must receive a byte. */
static void many_connects(void)
{
	int port = server_port();
	int fds[MANY];
	char byte;

	for (int i = 0; i < MANY; i++)
		fds[i] = connect_port(port);
	for (int i = 0; i < MANY; i++)
		WANT_EQ(SYS(recv(fds[i], &byte, 1, 0)), 1);
	barrier("all served");
}

/* A child process accepts, and its parent closes its own descriptor of the listener. */
static void accept_in_child(void)
{
	int listener = open_listener(8);
	pid_t pid = fork_row();

	if (!pid) {
		exchange_on(SYS(accept(listener, NULL, NULL)), 0);
		_exit(0);
	}
	SYS(close(listener));
	join_row(pid);
}

static void connect_once(void)
{
	exchange_on(connect_port(server_port()), 0);
}

/* ---- backlog ---- */

/* MANY clients connect before the server, whose backlog is MANY, calls accept(); it serves all. */
static void backlog_server(void)
{
	int listener = open_listener(MANY);

	barrier("all there");
	for (unsigned int i = 0; i < MANY; i++) {
		int fd = SYS(accept(listener, NULL, NULL));

		exchange_on(fd, i);
		SYS(close(fd));
	}
}

static void backlog_client(void)
{
	int port = server_port();
	int fds[MANY];

	for (int i = 0; i < MANY; i++)
		fds[i] = connect_port(port);
	barrier("all there");
	for (unsigned int i = 0; i < MANY; i++)
		exchange_on(fds[i], i);
}

#define CROWD	7

/* If more clients come than the backlog allows, the rest connect later; none is lost. */
static void overflow_server(void)
{
	int listener = open_listener(3);

	await(listener, POLLIN);
	barrier("connecting");
	for (int i = 0; i < CROWD; i++) {
		int fd = SYS(accept(listener, NULL, NULL));

		SYS(send(fd, "!", 1, MSG_NOSIGNAL));
	}
	barrier("all served");
}

static void overflow_client(void)
{
	int port = server_port();
	struct pollfd p[CROWD];
	union addr addr;
	socklen_t len = addr_server(&addr, port);
	char byte;

	for (int i = 0; i < CROWD; i++) {
		p[i].fd = new_socket(SOCK_NONBLOCK);
		SYS_ERRNO(connect(p[i].fd, &addr.sa, len), EINPROGRESS);
	}
	barrier("connecting");
	/* a server with a full backlog may drop the handshake of a client that sends nothing */
	for (int i = 0; i < CROWD; i++) {
		await(p[i].fd, POLLOUT);
		SYS(send(p[i].fd, "?", 1, MSG_NOSIGNAL));
	}
	for (int i = 0; i < CROWD; i++) {
		await(p[i].fd, POLLIN);
		WANT_EQ(SYS(recv(p[i].fd, &byte, 1, 0)), 1);
	}
	barrier("all served");
}

/* ---- a server that sends first ---- */

/* An accepted socket is writable at once, although the client's program has sent nothing. */
static void speaks_first(void)
{
	struct flow out = flow_out(0);
	int fd = accept_conn(open_listener(8));

	WANT_EQ(poll_one(fd, POLLOUT, 0) & POLLOUT, POLLOUT);
	nonblocking(fd, true);
	flow_send(fd, &out, 5000, 1250);
	SYS(shutdown(fd, SHUT_WR));
	nonblocking(fd, false);
	want_eof(fd);
	barrier("sent");
}

static void speaks_first_client(void)
{
	struct flow in = flow_in(0);
	int fd = connect_port(server_port());

	flow_recv(fd, &in, 5000, 5000);
	want_eof(fd);
	SYS(shutdown(fd, SHUT_WR));
	barrier("sent");
}

/* The server's first send() may have MSG_OOB. */
static void urgent_first(void)
{
	int fd = accept_conn(open_listener(8));

	WANT_EQ(SYS(send(fd, "abc", 3, MSG_OOB | MSG_DONTWAIT)), 3);
	barrier("sent");
	barrier("received");
}

static void urgent_first_client(void)
{
	int fd = connect_port(server_port());
	char buf[4];

	barrier("sent");
	await(fd, POLLPRI);
	WANT_EQ(SYS(recv(fd, buf, 1, MSG_OOB)), 1);
	WANT_EQ(buf[0], 'c');
	WANT_EQ(SYS(recv(fd, buf, 2, MSG_WAITALL)), 2);
	WANT(!memcmp(buf, "ab", 2));
	barrier("received");
}

/* The server sends and closes the socket at once. */
static void speaks_and_goes(void)
{
	struct flow out = flow_out(0);
	int fd = accept_conn(open_listener(8));

	flow_send(fd, &out, 5000, 5000);
	SYS(close(fd));
	barrier("sent");
}

/* The server sends bytes and then resets the connection; the client still reads these bytes. */
static void speaks_and_resets(void)
{
	struct flow out = flow_out(0);
	int fd = accept_conn(open_listener(8));

	flow_send(fd, &out, 5000, 5000);
	set_linger(fd, 0);
	SYS(close(fd));
	barrier("sent");
}

static void speaks_and_resets_client(void)
{
	int fd = new_socket(SOCK_NONBLOCK), port = server_port();
	struct flow in = flow_in(0);
	union addr addr;
	socklen_t len = addr_server(&addr, port);
	char byte;

	/* nonblocking: a blocking connect() would report a reset that arrives early */
	SYS_ERRNO(connect(fd, &addr.sa, len), EINPROGRESS);
	barrier("sent");
	await(fd, POLLERR);
	nonblocking(fd, false);
	flow_recv(fd, &in, 5000, 5000);
	SYS_ERRNO(recv(fd, &byte, 1, 0), ECONNRESET);
}

/* close() with SO_LINGER returns when the client has the bytes, before the linger time ends. */
static void speaks_and_lingers(void)
{
	struct flow out = flow_out(0);
	int fd = accept_conn(open_listener(8));
	double start;

	set_linger(fd, 30);
	flow_send(fd, &out, 5000, 5000);
	start = now();
	SYS(close(fd));
	WANT(now() - start < 20);
	barrier("sent");
}

/* ---- listeners that are closed ---- */

/* Closing a listener resets the connections that it has not accepted. */
static void closed_with_pending(void)
{
	int listener = open_listener(8);

	barrier("connected");
	SYS(close(listener));
	barrier("closed");
}

static void closed_with_pending_client(void)
{
	int port = server_port();
	int silent = connect_port(port), speaking = connect_port(port), fd;
	union addr addr;
	socklen_t len = addr_server(&addr, port);
	char byte;

	SYS(send(speaking, "hello", 5, MSG_NOSIGNAL));
	barrier("connected");
	SYS_ERRNO(recv(silent, &byte, 1, 0), ECONNRESET);
	SYS_ERRNO(recv(speaking, &byte, 1, 0), ECONNRESET);
	barrier("closed");
	fd = new_socket(0);
	SYS_ERRNO(connect(fd, &addr.sa, len), ECONNREFUSED);
}

/* An accepted connection outlives its listener. */
static void closed_with_accepted(void)
{
	int listener = open_listener(8);
	int fd = accept_conn(listener);

	SYS(close(listener));
	exchange_on(fd, 0);
	path_check(fd, LEN, LEN);
}

static void closed_with_accepted_client(void)
{
	int fd = connect_conn(server_port());

	exchange_on(fd, 0);
	path_check(fd, LEN, LEN);
}

/* The listener is closed during many handshakes: every client is refused or reset. */
static void closed_in_storm(void)
{
	int listener = open_listener(8);
	size_t rounds = amount(20, 3);

	for (size_t i = 0; i < rounds; i++) {
		await(listener, POLLIN);
		SYS(close(listener));
		barrier("closed");
		if (i + 1 < rounds)
			listener = open_listener(8);
	}
}

/*
 * Sends a byte, and returns whether @fd then reports POLLHUP. A client that sends nothing might
 * never receive a reset, on TCP too: closing a listener resets no connection whose handshake is
 * incomplete at the server.
 */
static bool hung_up_after_send(int fd)
{
	send(fd, "?", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	return poll_one(fd, 0, 0) & POLLHUP;
}

/* Connects eight times while the server closes its listener; every socket must report POLLHUP. */
static void storm_round(int port)
{
	struct pollfd p[8];
	union addr addr;
	socklen_t len = addr_server(&addr, port);

	for (int i = 0; i < 8; i++) {
		p[i].fd = new_socket(SOCK_NONBLOCK);
		SYS_ERRNO(connect(p[i].fd, &addr.sa, len), EINPROGRESS);
	}
	barrier("closed");
	for (int i = 0; i < 8; i++) {
		EVENTUALLY(hung_up_after_send(p[i].fd));
		SYS(close(p[i].fd));
	}
}

static void closed_in_storm_client(void)
{
	for (size_t i = 0; i < amount(20, 3); i++)
		storm_round(server_port());
}

/* ---- ports ---- */

/*
 * While a socket listens, bind() of another AF_RDMA or TCP socket to the same address and port
 * fails, unless both sockets have SO_REUSEPORT.
 */
static void port_in_use(void)
{
	union addr addr;
	socklen_t len = addr_any(&addr, 0);
	int first = new_socket(0);

	SYS(bind(first, &addr.sa, len));
	SYS(listen(first, 1));
	len = addr_any(&addr, local_port(first));
	SYS_ERRNO(bind(new_socket(0), &addr.sa, len), EADDRINUSE);
	/* AF_RDMA sockets and TCP sockets share the TCP port space. */
	SYS_ERRNO(bind(new_socket_of(false, run.inet6, 0), &addr.sa, len), EADDRINUSE);
	SYS(close(first));
	SYS(bind(new_socket(0), &addr.sa, len));
}

static int reusing_socket(void)
{
	int fd = new_socket(0);

	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_REUSEADDR), 1);
	return fd;
}

/* A port in TIME_WAIT can be bound again only with SO_REUSEADDR. */
static void time_wait_server(void)
{
	int listener = reusing_socket();
	union addr addr;
	socklen_t len = addr_any(&addr, 0);
	int fd;

	SYS(bind(listener, &addr.sa, len));
	SYS(listen(listener, 8));
	control_send_number("PORT", local_port(listener));
	len = addr_any(&addr, local_port(listener));
	fd = SYS(accept(listener, NULL, NULL));

	/* The end that closes first keeps the port in TIME_WAIT. */
	SYS(shutdown(fd, SHUT_WR));
	want_eof(fd);
	SYS(close(fd));
	SYS(close(listener));
	SYS_ERRNO(bind(new_socket(0), &addr.sa, len), EADDRINUSE);
	fd = reusing_socket();
	SYS(bind(fd, &addr.sa, len));
	SYS(listen(fd, 8));
	barrier("again");
	exchange_on(SYS(accept(fd, NULL, NULL)), 0);
}

static void time_wait_client(void)
{
	int port = server_port();
	int fd = connect_port(port);

	want_eof(fd);
	SYS(close(fd));
	barrier("again");
	exchange_on(connect_port(port), 0);
}

static int reuseport_listener(int port)
{
	union addr addr;
	socklen_t len = addr_any(&addr, port);
	int fd = new_socket(0), one = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)))
		skip("this kernel allows SO_REUSEPORT only to families it knows: %s",
		     strerror(errno));
	SYS(bind(fd, &addr.sa, len));
	SYS(listen(fd, MANY));
	nonblocking(fd, true);
	return fd;
}

/* Two listeners share a port by SO_REUSEPORT, and together accept all connections. */
static void reuseport_server(void)
{
	int first = reuseport_listener(0);
	int second = reuseport_listener(local_port(first));
	struct pollfd p[] = { { .fd = first, .events = POLLIN },
			      { .fd = second, .events = POLLIN } };
	int served = 0;

	control_send_number("PORT", local_port(first));
	while (served < MANY) {
		SYS(poll(p, 2, -1));
		for (int i = 0; i < 2; i++) {
			int fd = p[i].revents ? SYS(accept(p[i].fd, NULL, NULL)) : -1;

			if (fd < 0)
				continue;
			SYS(send(fd, "!", 1, MSG_NOSIGNAL));
			served++;
		}
	}
	barrier("all served");
}

/* ---- options that an accepted socket inherits, compared with TCP ---- */

static const struct {
	int level, option, value;
} inherited[] = {
	{ SOL_SOCKET, SO_KEEPALIVE, 1 },
	{ SOL_SOCKET, SO_SNDBUF, 40000 },
	{ SOL_SOCKET, SO_RCVBUF, 50000 },
	{ SOL_SOCKET, SO_PRIORITY, 3 },
	{ SOL_SOCKET, SO_OOBINLINE, 1 },
	{ SOL_SOCKET, SO_RCVLOWAT, 5 },
	{ SOL_SOCKET, SO_MARK, 7 },
	{ SOL_SOCKET, SO_MAX_PACING_RATE, 40000000 },
	{ SOL_SOCKET, SO_REUSEADDR, 1 },
	{ IPPROTO_TCP, TCP_NODELAY, 1 },
	{ IPPROTO_TCP, TCP_KEEPIDLE, 77 },
	{ IPPROTO_TCP, TCP_KEEPINTVL, 7 },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT, 30000 },
	{ IPPROTO_IP, IP_TTL, 33 },
};

/* Sets the options on a listener, and reads them from a socket that it accepts. */
static void read_inherited(int *values)
{
	int listener = new_socket(0);
	union addr addr;
	socklen_t len = addr_any(&addr, 0);
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(inherited); i++)
		setsockopt(listener, inherited[i].level, inherited[i].option,
			   &inherited[i].value, sizeof(int));
	SYS(bind(listener, &addr.sa, len));
	SYS(listen(listener, 2));
	control_send_number("PORT", local_port(listener));
	fd = SYS(accept(listener, NULL, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(inherited); i++)
		values[i] = get_int(fd, inherited[i].level, inherited[i].option);
	barrier("read");
}

static void inherit_server(void)
{
	int tcp[ARRAY_SIZE(inherited)], own[ARRAY_SIZE(inherited)];
	enum variant variant = run.variant;

	run.variant = VAR_TCP;
	read_inherited(tcp);
	run.variant = variant;
	read_inherited(own);
	for (size_t i = 0; i < ARRAY_SIZE(inherited); i++)
		if (tcp[i] != own[i])
			fail("option %d of level %d: accepted socket has %d, with TCP %d",
			     inherited[i].option, inherited[i].level, own[i], tcp[i]);
}

static void inherit_client(void)
{
	for (int i = 0; i < 2; i++) {
		connect_port(server_port());
		barrier("read");
	}
}

#define ANY	(ON_COLD | ON_PLAIN)

const struct row listen_rows[] = {
	{ "accept_flags", two_connects, accept_flags, ANY | QUICK },
	{ "accept_nonblocking", connect_when_nobody, accept_nonblocking, ANY | QUICK },
	{ "accept_threads", accept_threads_client, accept_threads, ANY | QUICK },
	{ "accept_edge", many_connects, accept_edge, ANY | QUICK },
	{ "accept_in_child", connect_once, accept_in_child, ANY },
	{ "backlog", backlog_client, backlog_server, ANY | QUICK },
	{ "backlog_overflow", overflow_client, overflow_server, ANY | QUICK | UNFRAMED },
	{ "speaks_first", speaks_first_client, speaks_first, ANY | QUICK },
	{ "urgent_first", urgent_first_client, urgent_first, ANY | QUICK },
	{ "speaks_and_lingers", speaks_first_client, speaks_and_lingers, ANY | QUICK },
	{ "speaks_and_resets", speaks_and_resets_client, speaks_and_resets, ANY | QUICK },
	{ "speaks_and_goes", speaks_first_client, speaks_and_goes, ANY | QUICK },
	{ "closed_with_pending", closed_with_pending_client, closed_with_pending,
	  ANY | QUICK | UNFRAMED },
	{ "closed_with_accepted", closed_with_accepted_client, closed_with_accepted, ON_ALL },
	{ "closed_in_storm", closed_in_storm_client, closed_in_storm, ANY | UNFRAMED },
	{ "port_in_use", port_in_use, port_in_use, ON_COLD | QUICK | UNFRAMED },
	{ "time_wait", time_wait_client, time_wait_server, ANY | QUICK },
	{ "reuseport", many_connects, reuseport_server, ANY | QUICK },
	{ "inherit", inherit_client, inherit_server, ANY | QUICK | UNFRAMED },
	{ }
};
