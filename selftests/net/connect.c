// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Connecting: addresses, waiting for connect(), a full backlog, shutdown() before accept(),
 * refusals, connect() after a connection has ended. Also properties of the socket family.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/time.h>

#include "test.h"

#define LEN	1000

/* Exchanges LEN bytes in each direction; the client sends first. */
static void exchange(int fd)
{
	struct flow out = flow_out(0), in = flow_in(0);

	if (run.server)
		flow_recv(fd, &in, LEN, LEN);
	flow_send(fd, &out, LEN, LEN);
	if (!run.server)
		flow_recv(fd, &in, LEN, LEN);
	path_check(fd, LEN, LEN);
}

static void accept_exchange(void)
{
	int listener = open_listener(8);
	int fd = SYS(accept(listener, NULL, NULL));

	exchange(fd);
}

/* ---- addresses ---- */

/* Server: sends to the client the address that @get returns, for match_name(). */
static void send_name(int fd, int (*get)(int, struct sockaddr *, socklen_t *))
{
	union addr addr;
	socklen_t len = sizeof(addr);
	char text[100];

	SYS(get(fd, &addr.sa, &len));
	WANT_EQ(len, addr_len());
	addr_text(&addr, text, sizeof(text));
	control_writef("%s", text);
}

static void match_name(int fd, int (*get)(int, struct sockaddr *, socklen_t *))
{
	union addr addr;
	socklen_t len = sizeof(addr);
	char text[100], line[100];

	SYS(get(fd, &addr.sa, &len));
	WANT_EQ(len, addr_len());
	addr_text(&addr, text, sizeof(text));
	control_readline(line, sizeof(line));
	if (strcmp(text, line))
		fail("the address is \"%s\" on this side, \"%s\" on the other", text, line);
}

static void names(void)
{
	int fd = open_conn();

	if (run.server) {
		send_name(fd, getsockname);
		send_name(fd, getpeername);
	} else {
		match_name(fd, getpeername);
		match_name(fd, getsockname);
	}
	exchange(fd);
}

static void names_v6(void)
{
	run.inet6 = true;
	names();
}

/* An IPv6 listener accepts an IPv4 client, whose address it gets as ::ffff:a.b.c.d. */
static void mapped_server(void)
{
	union addr addr;
	socklen_t len = sizeof(addr);
	int listener, fd;

	run.inet6 = true;
	listener = open_listener(8);
	fd = SYS(accept(listener, &addr.sa, &len));
	WANT_EQ(len, sizeof(addr.in6));
	WANT(IN6_IS_ADDR_V4MAPPED(&addr.in6.sin6_addr));
	run.inet6 = false;
	exchange(fd);
}

static void mapped_server_peer(void)
{
	run.inet6 = false;
	exchange(connect_port(server_port()));
}

/* An IPv6 socket that connects to ::ffff:a.b.c.d. */
static void mapped_client(void)
{
	union addr addr;
	socklen_t len = sizeof(addr);
	int port = server_port();
	char host[INET6_ADDRSTRLEN];
	int fd;

	run.inet6 = true;
	if (snprintf(host, sizeof(host), "::ffff:%.*s", 15, run.host) > 0)
		strcpy(run.host6, host);
	fd = connect_port(port);
	SYS(getpeername(fd, &addr.sa, &len));
	WANT_EQ(len, sizeof(addr.in6));
	WANT(IN6_IS_ADDR_V4MAPPED(&addr.in6.sin6_addr));
	exchange(fd);
}

/* With IPV6_V6ONLY, a socket cannot be bound to a mapped IPv4 address. */
static void v6only(void)
{
	union addr addr;
	socklen_t len;
	int fd;

	run.inet6 = true;
	fd = new_socket(0);
	set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	WANT_EQ(get_int(fd, IPPROTO_IPV6, IPV6_V6ONLY), 1);
	len = addr_any(&addr, 0);
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &addr.in6.sin6_addr);
	SYS_ERRNO(bind(fd, &addr.sa, len), EINVAL);
}

/* The server sees the port to which the client has bound its socket. */
static void bound_client(void)
{
	int port = server_port();
	union addr addr;
	socklen_t len = addr_any(&addr, 0);
	int fd = new_socket(0);

	SYS(bind(fd, &addr.sa, len));
	control_send_number("MINE", local_port(fd));
	len = addr_server(&addr, port);
	SYS(connect(fd, &addr.sa, len));
	exchange(fd);
}

static void bound_server(void)
{
	int listener = open_listener(8);
	int port = control_get_number("MINE");
	union addr addr;
	socklen_t len = sizeof(addr);
	int fd = SYS(accept(listener, &addr.sa, &len));

	WANT_EQ(addr_port(&addr), port);
	exchange(fd);
}

/* An address that is longer than the buffer is truncated, and its full length is returned. */
static void short_name(void)
{
	int fd = open_conn();
	union addr addr;
	socklen_t len = 4;

	memset(&addr, 0x5a, sizeof(addr));
	SYS(getsockname(fd, &addr.sa, &len));
	WANT_EQ(len, addr_len());
	WANT_EQ(((uint8_t *)&addr)[4], 0x5a);
	len = 0;
	SYS(getpeername(fd, &addr.sa, &len));
	WANT_EQ(len, addr_len());
	len = -1;
	SYS_ERRNO(getpeername(fd, &addr.sa, &len), EINVAL);
	exchange(fd);
}

/* ---- waiting for connect() ---- */

static void wait_poll(int fd)
{
	await(fd, POLLOUT);
	WANT_EQ(poll_one(fd, POLLIN | POLLOUT, 0), POLLOUT);
}

static void wait_select(int fd)
{
	fd_set in, out, ex;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&ex);
	FD_SET(fd, &in);
	FD_SET(fd, &out);
	FD_SET(fd, &ex);
	WANT_EQ(SYS(select(fd + 1, &in, &out, &ex, NULL)), 1);
	WANT(FD_ISSET(fd, &out) && !FD_ISSET(fd, &in) && !FD_ISSET(fd, &ex));
}

static void wait_epoll(int fd, int flags)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | flags };
	int ep = SYS(epoll_create1(0));

	SYS(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	WANT_EQ(SYS(epoll_wait(ep, &ev, 1, -1)), 1);
	while (!(ev.events & EPOLLOUT))
		WANT_EQ(SYS(epoll_wait(ep, &ev, 1, -1)), 1);
	WANT_EQ(ev.events, EPOLLOUT);
	close(ep);
}

static void wait_epoll_level(int fd)
{
	wait_epoll(fd, 0);
}

static void wait_epoll_edge(int fd)
{
	wait_epoll(fd, EPOLLET);
}

static int start_connect(int port, union addr *addr)
{
	int fd = new_socket(SOCK_NONBLOCK);
	socklen_t len = addr_server(addr, port);

	/* On Linux, TCP does not connect at once even to the same host. */
	SYS_ERRNO(connect(fd, &addr->sa, len), EINPROGRESS);
	return fd;
}

static void connect_waiting(void (*wait)(int fd))
{
	union addr addr;
	int fd = start_connect(server_port(), &addr);

	wait(fd);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), 0);
	/* The first connect() after the handshake returns 0, the next one EISCONN. */
	SYS(connect(fd, &addr.sa, addr_len()));
	SYS_ERRNO(connect(fd, &addr.sa, addr_len()), EISCONN);
	nonblocking(fd, false);
	exchange(fd);
}

static void connect_poll(void)
{
	connect_waiting(wait_poll);
}

static void connect_select(void)
{
	connect_waiting(wait_select);
}

static void connect_level(void)
{
	connect_waiting(wait_epoll_level);
}

static void connect_edge(void)
{
	connect_waiting(wait_epoll_edge);
}

/* The socket is added to epoll before connect(), and epoll must report the connection. */
static void connect_waiter_first(void)
{
	int fd = new_socket(SOCK_NONBLOCK);
	int ep = SYS(epoll_create1(0));
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
	union addr addr;
	socklen_t len;

	SYS(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	WANT_EQ(SYS(epoll_wait(ep, &ev, 1, 0)), 1);
	WANT_EQ(ev.events, EPOLLOUT | EPOLLHUP);
	len = addr_server(&addr, server_port());
	SYS_ERRNO(connect(fd, &addr.sa, len), EINPROGRESS);
	do
		WANT_EQ(SYS(epoll_wait(ep, &ev, 1, -1)), 1);
	while (ev.events != EPOLLOUT);
	nonblocking(fd, false);
	exchange(fd);
}

/* send() on a blocking socket waits for a connect in progress. */
static void connect_then_blocking(void)
{
	union addr addr;
	int fd = start_connect(server_port(), &addr);

	nonblocking(fd, false);
	exchange(fd);
}

/* recv() on a blocking socket waits for a connect in progress, too. */
static void connect_then_recv(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	union addr addr;
	int fd = start_connect(server_port(), &addr);

	nonblocking(fd, false);
	flow_recv(fd, &in, LEN, LEN);
	flow_send(fd, &out, LEN, LEN);
	path_check(fd, LEN, LEN);
}

static void sends_first(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = accept_conn(open_listener(8));

	flow_send(fd, &out, LEN, LEN);
	flow_recv(fd, &in, LEN, LEN);
	path_check(fd, LEN, LEN);
}

/* ---- connects in progress while the server's backlog is full; shutdown() before accept() ---- */

/* The backlog is full until the client has seen how calls behave meanwhile. */
static void full_backlog_server(void)
{
	int listener = open_listener(0);
	int fd;

	/* One connection in the queue fills a backlog of 0. */
	await(listener, POLLIN);
	barrier("full");
	barrier("seen");
	SYS(close(SYS(accept(listener, NULL, NULL))));
	fd = SYS(accept(listener, NULL, NULL));
	exchange(fd);
}

static int fill_backlog(void)
{
	int port = server_port();

	connect_port(port);
	barrier("full");
	return port;
}

/* During a connect in progress, nonblocking calls fail at once; afterwards the socket works. */
static void connect_pending(void)
{
	int port = fill_backlog();
	union addr addr;
	int fd = start_connect(port, &addr);
	char byte = 0;

	SYS_ERRNO(connect(fd, &addr.sa, addr_len()), EALREADY);
	WANT_EQ(poll_one(fd, POLLIN | POLLOUT, 200), 0);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), 0);
	SYS_ERRNO(send(fd, &byte, 1, MSG_NOSIGNAL), EAGAIN);
	SYS_ERRNO(recv(fd, &byte, 1, 0), EAGAIN);
	barrier("seen");
	await(fd, POLLOUT);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), 0);
	nonblocking(fd, false);
	exchange(fd);
}

static void connect_timeout(void)
{
	int port = fill_backlog();
	union addr addr;
	socklen_t len = addr_server(&addr, port);
	int fd = new_socket(0);
	double start = now();

	set_timeout(fd, SO_SNDTIMEO, 300);
	SYS_ERRNO(connect(fd, &addr.sa, len), EINPROGRESS);
	WANT(now() - start >= 0.29);
	barrier("seen");
	await(fd, POLLOUT);
	set_timeout(fd, SO_SNDTIMEO, 0);
	exchange(fd);
}

static void connect_interrupted(void)
{
	struct itimerval timer = { .it_interval.tv_usec = 50000, .it_value.tv_usec = 50000 };
	int port = fill_backlog();
	union addr addr;
	socklen_t len = addr_server(&addr, port);
	int fd = new_socket(0);

	on_signal(SIGALRM, 0);
	SYS(setitimer(ITIMER_REAL, &timer, NULL));
	SYS_ERRNO(connect(fd, &addr.sa, len), EINTR);
	timer = (struct itimerval) { 0 };
	SYS(setitimer(ITIMER_REAL, &timer, NULL));
	barrier("seen");
	/* A second connect() waits for the connection that the first one began. */
	SYS(connect(fd, &addr.sa, len));
	SYS_ERRNO(connect(fd, &addr.sa, len), EISCONN);
	exchange(fd);
}

/* shutdown() aborts a connect in progress, and the socket can connect again. */
static void connect_shut(void)
{
	int port = fill_backlog();
	union addr addr;
	int fd = start_connect(port, &addr);

	SYS(shutdown(fd, SHUT_RDWR));
	await(fd, POLLERR | POLLHUP);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), ECONNRESET);
	barrier("seen");
	nonblocking(fd, false);
	SYS(connect(fd, &addr.sa, addr_len()));
	exchange(fd);
}

static void *recv_nothing(void *arg)
{
	char byte;

	WANT_EQ(SYS(recv(*(int *)arg, &byte, 1, 0)), 0);
	return NULL;
}

/* Before the server calls accept(), shutdown(SHUT_RD) wakes a thread in recv(). */
static void shut_before_accept(void)
{
	int fd = connect_port(server_port());
	pthread_t thread = thread_start(recv_nothing, &fd);
	char byte;

	poll(NULL, 0, 50);
	SYS(shutdown(fd, SHUT_RD));
	pthread_join(thread, NULL);
	WANT_EQ(poll_one(fd, POLLIN | POLLRDHUP, 0), POLLIN | POLLRDHUP);
	WANT_EQ(SYS(recv(fd, &byte, 1, MSG_DONTWAIT)), 0);
	SYS(send(fd, "!", 1, MSG_NOSIGNAL));
	barrier("shut");
	barrier("read");
}

static void shut_before_accept_server(void)
{
	int listener = open_listener(1);
	char byte;

	barrier("shut");
	WANT_EQ(SYS(recv(SYS(accept(listener, NULL, NULL)), &byte, 1, 0)), 1);
	barrier("read");
}

/* Sockets are closed before their connect completes; a later connection must work. */
static void connect_abandoned(void)
{
	int port = fill_backlog();
	union addr addr;

	for (int i = 0; i < 20; i++)
		SYS(close(start_connect(port, &addr)));
	barrier("seen");
	exchange(connect_port(port));
}

static void connect_abandoned_server(void)
{
	int listener = open_listener(0);
	int fd;

	await(listener, POLLIN);
	barrier("full");
	barrier("seen");
	SYS(close(SYS(accept(listener, NULL, NULL))));
	/* Skip any connections that the client has abandoned: they carry no byte. */
	for (;;) {
		char byte;

		fd = SYS(accept(listener, NULL, NULL));
		if (recv(fd, &byte, 1, MSG_PEEK) == 1)
			break;
		SYS(close(fd));
	}
	exchange(fd);
}

/* ---- refused connections ---- */

/* A port without a listener, bound so that no other program takes it while the row runs. */
static void closed_port_server(void)
{
	union addr addr;
	socklen_t len = addr_any(&addr, 0);
	int fd = new_socket(0);

	SYS(bind(fd, &addr.sa, len));
	control_send_number("PORT", local_port(fd));
	barrier("refused");
}

static void refused(void)
{
	union addr addr;
	socklen_t len = addr_server(&addr, server_port());
	int fd = new_socket(0);

	SYS_ERRNO(connect(fd, &addr.sa, len), ECONNREFUSED);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), 0);
	SYS_ERRNO(connect(fd, &addr.sa, len), ECONNREFUSED);
	barrier("refused");
}

static void refused_nonblocking(void)
{
	union addr addr;
	int fd = start_connect(server_port(), &addr);

	await(fd, POLLOUT | POLLERR | POLLHUP);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), 0);
	barrier("refused");
}

static void refused_second_connect(void)
{
	union addr addr;
	int fd = start_connect(server_port(), &addr);

	/* each refusal is reported once, then the socket can connect again */
	await(fd, POLLERR);
	SYS_ERRNO(connect(fd, &addr.sa, addr_len()), ECONNREFUSED);
	SYS_ERRNO(connect(fd, &addr.sa, addr_len()), EINPROGRESS);
	await(fd, POLLERR);
	SYS_ERRNO(connect(fd, &addr.sa, addr_len()), ECONNREFUSED);
	barrier("refused");
}

static void refused_epoll(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
	int ep = SYS(epoll_create1(0));
	union addr addr;
	int fd = start_connect(server_port(), &addr);

	SYS(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	do
		WANT_EQ(SYS(epoll_wait(ep, &ev, 1, -1)), 1);
	while (!(ev.events & EPOLLERR));
	WANT_EQ(ev.events, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLERR | EPOLLHUP);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
	barrier("refused");
}

/* After a refused connect(), the same socket can connect successfully. */
static void refused_then_good(void)
{
	union addr addr;
	int port = server_port();
	socklen_t len = addr_server(&addr, port);
	int fd = new_socket(0);

	SYS_ERRNO(connect(fd, &addr.sa, len), ECONNREFUSED);
	barrier("refused");
	len = addr_server(&addr, server_port());
	SYS(connect(fd, &addr.sa, len));
	exchange(fd);
}

/* After a refused connect() and shutdown(), connect(AF_UNSPEC) lets the socket connect again. */
static void refused_unspec(void)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	union addr addr;
	int fd = start_connect(server_port(), &addr);

	await(fd, POLLERR);
	barrier("refused");
	SYS_ERRNO(shutdown(fd, SHUT_RDWR), ENOTCONN);
	SYS_ERRNO(connect(fd, &addr.sa, addr_len()), EINVAL);
	SYS(connect(fd, &none, sizeof(none)));
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
	SYS(fcntl(fd, F_SETFL, 0));
	SYS(connect(fd, &addr.sa, addr_server(&addr, server_port())));
	exchange(fd);
}

static void refused_then_good_server(void)
{
	closed_port_server();
	accept_exchange();
}

/* ---- properties of the socket family; connect() after a connection has ended ---- */

static void family(void)
{
	int fd = new_socket(SOCK_NONBLOCK | SOCK_CLOEXEC);
	int domain = speaks_rdma() ? AF_RDMA : run.inet6 ? AF_INET6 : AF_INET;
	int no_flags;

	WANT(fcntl(fd, F_GETFL) & O_NONBLOCK);
	WANT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_DOMAIN), domain);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ACCEPTCONN), 0);
	if (speaks_rdma()) {
		WANT_EQ(get_int(fd, SOL_SOCKET, SO_PROTOCOL), run.inet6);
		SYS_ERRNO(socket(AF_RDMA, SOCK_STREAM, 99), EPROTONOSUPPORT);
		SYS_ERRNO(socket(AF_RDMA, SOCK_DGRAM, 0), ESOCKTNOSUPPORT);
		SYS(close(SYS(socket(AF_RDMA, SOCK_STREAM, IPPROTO_TCP))));
	} else {
		WANT_EQ(get_int(fd, SOL_SOCKET, SO_PROTOCOL), IPPROTO_TCP);
	}
	no_flags = new_socket(0);
	WANT(!(fcntl(no_flags, F_GETFL) & O_NONBLOCK));
	WANT(!(fcntl(no_flags, F_GETFD) & FD_CLOEXEC));
	SYS(listen(no_flags, 1));
	WANT_EQ(get_int(no_flags, SOL_SOCKET, SO_ACCEPTCONN), 1);
}

/*
 * After both directions have ended, connect() fails with EISCONN. The server calls it only when
 * its TCP connection has ended as well.
 */
static void connect_ended(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = open_conn();
	union addr addr;
	socklen_t len = addr_loopback(&addr, 9);

	flow_send(fd, &out, LEN, LEN);
	flow_recv(fd, &in, LEN, LEN);
	path_check(fd, LEN, LEN);
	if (run.server)
		want_eof(fd);
	SYS(shutdown(fd, SHUT_WR));
	want_eof(fd);
	await(fd, POLLHUP);
	barrier("both ended");
	if (run.server)
		EVENTUALLY(getpeername(fd, &addr.sa, &(socklen_t) { sizeof(addr) }));
	len = addr_loopback(&addr, 9);
	SYS_ERRNO(connect(fd, &addr.sa, len), EISCONN);
	path_check_alone(fd, LEN, LEN);
	want_eof(fd);
}

#define SERVED	accept_exchange

const struct row connect_rows[] = {
	{ "family", family, family, ON_COLD | QUICK | UNFRAMED },
	{ "names", names, names, ON_ALL | QUICK_ALL },
	{ "names_v6", names_v6, names_v6, ON_ALL | NEEDS_V6 | QUICK },
	{ "mapped_server", mapped_server_peer, mapped_server,
	  ON_COLD | ON_PLAIN | NEEDS_V6 | QUICK },
	{ "mapped_client", mapped_client, SERVED, ON_COLD | ON_PLAIN },
	{ "v6only", v6only, v6only, ON_COLD | NEEDS_V6 | QUICK | UNFRAMED },
	{ "bound_client", bound_client, bound_server, ON_COLD | ON_PLAIN },
	{ "short_name", short_name, short_name, ON_ALL },
	{ "connect_poll", connect_poll, SERVED, ON_COLD | ON_PLAIN | QUICK },
	{ "connect_select", connect_select, SERVED, ON_COLD | ON_PLAIN },
	{ "connect_epoll_level", connect_level, SERVED, ON_COLD | ON_PLAIN },
	{ "connect_epoll_edge", connect_edge, SERVED, ON_COLD | ON_PLAIN | QUICK },
	{ "connect_waiter_first", connect_waiter_first, SERVED, ON_COLD | ON_PLAIN | QUICK },
	{ "connect_then_blocking", connect_then_blocking, SERVED, ON_COLD | ON_PLAIN },
	{ "connect_then_recv", connect_then_recv, sends_first, ON_COLD | ON_PLAIN | QUICK },
	{ "connect_pending", connect_pending, full_backlog_server, ON_COLD | ON_PLAIN },
	{ "connect_timeout", connect_timeout, full_backlog_server, ON_COLD | ON_PLAIN },
	{ "shut_before_accept", shut_before_accept, shut_before_accept_server,
	  ON_COLD | ON_PLAIN | QUICK | UNFRAMED },
	{ "connect_shut", connect_shut, full_backlog_server, ON_COLD | ON_PLAIN },
	{ "connect_interrupted", connect_interrupted, full_backlog_server,
	  ON_COLD | ON_PLAIN | QUICK },
	{ "connect_abandoned", connect_abandoned, connect_abandoned_server, ON_COLD | ON_PLAIN },
	{ "refused", refused, closed_port_server, ON_COLD | QUICK | UNFRAMED },
	{ "refused_nonblocking", refused_nonblocking, closed_port_server,
	  ON_COLD | QUICK | UNFRAMED },
	{ "refused_second_connect", refused_second_connect, closed_port_server,
	  ON_COLD | UNFRAMED },
	{ "refused_epoll", refused_epoll, closed_port_server, ON_COLD | UNFRAMED },
	{ "refused_then_good", refused_then_good, refused_then_good_server, ON_COLD },
	{ "refused_unspec", refused_unspec, refused_then_good_server, ON_COLD | QUICK },
	{ "connect_ended", connect_ended, connect_ended, ON_COLD | ON_PLAIN | QUICK_ALL },
	{ }
};
