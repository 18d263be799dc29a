// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Misuse, compared with TCP. close() right after connect() or accept(); bytes before accept(). */
#define _GNU_SOURCE
#include <arpa/inet.h>

#include "test.h"

#define LEN	1000

/* ---- misuse, compared with TCP ---- */

/*
 * A call that a row makes on a TCP socket and on the socket under test, which new_socket() or
 * open_conn() has returned. The tables list no results: the results on the two sockets must be
 * equal, except for the address family that getsockname() returns.
 */
struct misuse {
	const char *name;
	long (*act)(int fd);
};

static long act_connect_short(int fd)
{
	union addr addr;

	addr_loopback(&addr, 9);
	return connect(fd, &addr.sa, 2);
}

static long act_connect_family(int fd)
{
	union addr addr;
	socklen_t len = addr_loopback(&addr, 9);

	addr.sa.sa_family = AF_APPLETALK;
	return connect(fd, &addr.sa, len);
}

static long act_connect_null(int fd)
{
	return connect(fd, NULL, addr_len());
}

static long act_bind_short(int fd)
{
	union addr addr;

	addr_any(&addr, 0);
	return bind(fd, &addr.sa, 5);
}

static long act_bind_family(int fd)
{
	union addr addr;
	socklen_t len = addr_loopback(&addr, 0);

	addr.sa.sa_family = AF_APPLETALK;
	return bind(fd, &addr.sa, len);
}

static long act_bind_not_local(int fd)
{
	union addr addr;
	socklen_t len = addr_any(&addr, 0);

	if (run.inet6)
		inet_pton(AF_INET6, "2001:db8::77", &addr.in6.sin6_addr);
	else
		inet_pton(AF_INET, "192.0.2.77", &addr.in.sin_addr);
	return bind(fd, &addr.sa, len);
}

static long act_bind_null(int fd)
{
	return bind(fd, NULL, addr_len());
}

static long act_bind_twice(int fd)
{
	union addr addr;
	socklen_t len = addr_any(&addr, 0);

	SYS(bind(fd, &addr.sa, len));
	return bind(fd, &addr.sa, len);
}

static long act_accept(int fd)
{
	return accept(fd, NULL, NULL);
}

static long act_send(int fd)
{
	return send(fd, "x", 1, MSG_NOSIGNAL);
}

static long act_send_nothing(int fd)
{
	return send(fd, "x", 0, MSG_NOSIGNAL);
}

static long act_recv(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0);
}

static long act_recv_nonblocking(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT);
}

static long act_recv_urgent(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_OOB);
}

static long act_shutdown(int fd)
{
	return shutdown(fd, SHUT_RDWR);
}

static long act_shutdown_bad(int fd)
{
	return shutdown(fd, 17);
}

static long act_getpeername(int fd)
{
	union addr addr;
	socklen_t len = sizeof(addr);

	return getpeername(fd, &addr.sa, &len);
}

static long act_getsockname(int fd)
{
	union addr addr;
	socklen_t len = sizeof(addr);
	long ret = getsockname(fd, &addr.sa, &len);

	return ret ? ret : len * 1000 + addr.sa.sa_family;
}

static long act_socketpair(int fd)
{
	int ends[2];

	return socketpair(get_int(fd, SOL_SOCKET, SO_DOMAIN), SOCK_STREAM, 0, ends);
}

static long act_poll(int fd)
{
	return poll_one(fd, POLLIN | POLLOUT | POLLRDHUP | POLLPRI, 0);
}

static long act_listen_unbound(int fd)
{
	return listen(fd, 5);
}

static long act_connect_listening(int fd)
{
	union addr addr;
	socklen_t len = addr_loopback(&addr, 9);

	SYS(listen(fd, 5));
	return connect(fd, &addr.sa, len);
}

static long act_bind_listening(int fd)
{
	union addr addr;
	socklen_t len = addr_any(&addr, 0);

	SYS(listen(fd, 5));
	return bind(fd, &addr.sa, len);
}

static long act_send_listening(int fd)
{
	SYS(listen(fd, 5));
	return send(fd, "x", 1, MSG_NOSIGNAL);
}

static long act_recv_listening(int fd)
{
	SYS(listen(fd, 5));
	return act_recv(fd);
}

static long act_shutdown_listening(int fd)
{
	SYS(listen(fd, 5));
	SYS(shutdown(fd, SHUT_RD));
	return accept(fd, NULL, NULL);
}

static long act_poll_shut_listener(int fd)
{
	SYS(listen(fd, 5));
	SYS(shutdown(fd, SHUT_RDWR));
	return act_poll(fd);
}

static long act_listen_again(int fd)
{
	SYS(listen(fd, 5));
	SYS(shutdown(fd, SHUT_RDWR));
	return listen(fd, 7);
}

static long act_accept_flags(int fd)
{
	SYS(listen(fd, 5));
	return accept4(fd, NULL, NULL, 0x10);
}

static long act_accept_empty(int fd)
{
	SYS(listen(fd, 5));
	nonblocking(fd, true);
	return accept(fd, NULL, NULL);
}

static long act_accept_timeout(int fd)
{
	SYS(listen(fd, 5));
	set_timeout(fd, SO_RCVTIMEO, 50);
	return accept(fd, NULL, NULL);
}

static long act_unspec(int fd)
{
	struct sockaddr sa = { .sa_family = AF_UNSPEC };

	return connect(fd, &sa, sizeof(sa));
}

static const struct misuse misuses[] = {
	{ "connect, short address", act_connect_short },
	{ "connect, other family", act_connect_family },
	{ "connect, no address", act_connect_null },
	{ "connect, AF_UNSPEC", act_unspec },
	{ "bind, short address", act_bind_short },
	{ "bind, other family", act_bind_family },
	{ "bind, address of another host", act_bind_not_local },
	{ "bind, no address", act_bind_null },
	{ "bind twice", act_bind_twice },
	{ "accept without listen", act_accept },
	{ "send without connect", act_send },
	{ "send of 0 bytes without connect", act_send_nothing },
	{ "recv without connect", act_recv },
	{ "nonblocking recv without connect", act_recv_nonblocking },
	{ "urgent recv without connect", act_recv_urgent },
	{ "shutdown without connect", act_shutdown },
	{ "shutdown, bad argument", act_shutdown_bad },
	{ "getpeername without connect", act_getpeername },
	{ "getsockname without bind", act_getsockname },
	{ "socketpair", act_socketpair },
	{ "poll without connect", act_poll },
	{ "listen without bind", act_listen_unbound },
	{ "connect a listener", act_connect_listening },
	{ "bind a listener", act_bind_listening },
	{ "send on a listener", act_send_listening },
	{ "recv on a listener", act_recv_listening },
	{ "accept after shutdown", act_shutdown_listening },
	{ "poll after shutdown of a listener", act_poll_shut_listener },
	{ "listen again", act_listen_again },
	{ "accept4 with unknown flags", act_accept_flags },
	{ "nonblocking accept without a client", act_accept_empty },
	{ "accept until the timeout", act_accept_timeout },
};

/* Makes each call of the table on a TCP socket and on a socket of new_socket(). */
static void misuse(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(misuses); i++) {
		const struct misuse *m = &misuses[i];
		int tcp = new_socket_of(false, run.inet6, 0), own = new_socket(0);
		int tcp_errno, own_errno;
		long want, got;

		at(__FILE__, __LINE__, m->name);
		errno = 0;
		want = m->act(tcp);
		tcp_errno = want < 0 ? errno : 0;
		errno = 0;
		got = m->act(own);
		own_errno = got < 0 ? errno : 0;
		if (m->act == act_getsockname && speaks_rdma())
			want = want / 1000 * 1000 + got % 1000;	/* ignore the family */
		if (want != got || tcp_errno != own_errno)
			fail("%s: %ld (%s), but TCP gives %ld (%s)", m->name, got,
			     strerror(own_errno), want, strerror(tcp_errno));
		close(tcp);
		close(own);
	}
}

/* ---- misuse of a connected socket ---- */
static long act_listen(int fd)
{
	return listen(fd, 5);
}

static long act_connect_again(int fd)
{
	union addr addr;
	socklen_t len = addr_loopback(&addr, 9);

	return connect(fd, &addr.sa, len);
}

static long act_bind(int fd)
{
	union addr addr;
	socklen_t len = addr_any(&addr, 0);

	return bind(fd, &addr.sa, len);
}

static long act_sendto(int fd)
{
	union addr addr;
	socklen_t len = addr_loopback(&addr, 9);

	return sendto(fd, "x", 0, MSG_NOSIGNAL, &addr.sa, len);
}

static long act_recvfrom(int fd)
{
	union addr addr;
	socklen_t len = sizeof(addr);
	char byte;
	long ret = recvfrom(fd, &byte, 1, MSG_WAITALL, &addr.sa, &len);

	/* On TCP, recvfrom() returns no address and sets the length to 0. */
	return ret < 0 ? ret : ret * 1000 + len;
}

static long act_lseek(int fd)
{
	return lseek(fd, 0, SEEK_CUR);
}

static long act_pread(int fd)
{
	char byte;

	return pread(fd, &byte, 1, 0);
}

static const struct misuse connected_misuses[] = {
	{ "listen", act_listen },
	{ "connect", act_connect_again },
	{ "bind", act_bind },
	{ "accept", act_accept },
	{ "sendto", act_sendto },
	{ "recvfrom", act_recvfrom },
	{ "shutdown, bad argument", act_shutdown_bad },
	{ "nonblocking recv", act_recv_nonblocking },
	{ "poll", act_poll },
	{ "lseek", act_lseek },
	{ "pread", act_pread },
};

/* Makes each call of the table on a TCP connection and on the connection of open_conn(). */
static void misuse_connected(void)
{
	int own = open_conn(), tcp = open_tcp_conn();

	SYS(send(own, "x", 1, MSG_NOSIGNAL));
	SYS(send(tcp, "x", 1, MSG_NOSIGNAL));
	for (size_t i = 0; i < ARRAY_SIZE(connected_misuses); i++) {
		const struct misuse *m = &connected_misuses[i];
		int tcp_errno, own_errno;
		long want, got;

		at(__FILE__, __LINE__, m->name);
		want = m->act(tcp);
		tcp_errno = want < 0 ? errno : 0;
		got = m->act(own);
		own_errno = got < 0 ? errno : 0;
		if (want != got || tcp_errno != own_errno)
			fail("%s on a connection: %ld (%s), but TCP gives %ld (%s)", m->name, got,
			     strerror(own_errno), want, strerror(tcp_errno));
	}
	path_check(own, 1, 1);
}

/* ---- close right after connect() or accept(), bytes before accept() ---- */

/* The client closes each socket right after connect(); the server's first recv() returns 0. */
static void close_at_once(void)
{
	int port = server_port();

	for (size_t i = 0; i < amount(200, 20); i++)
		SYS(close(connect_port(port)));
	barrier("closed");
}

static void close_at_once_server(void)
{
	/*
	 * The backlog has room for all connections. If it were full, TCP could lose a connection
	 * that the client has already closed.
	 */
	int listener = open_listener(256);
	char byte;

	for (size_t i = 0; i < amount(200, 20); i++) {
		int fd = SYS(accept(listener, NULL, NULL));

		WANT_EQ(SYS(recv(fd, &byte, 1, 0)), 0);
		SYS(close(fd));
	}
	barrier("closed");
}

/* The server closes each socket right after accept(); the client's first recv() returns 0. */
static void accept_close_at_once(void)
{
	int listener = open_listener(8);

	for (size_t i = 0; i < amount(200, 20); i++)
		SYS(close(SYS(accept(listener, NULL, NULL))));
	barrier("closed");
}

static void accept_close_at_once_client(void)
{
	int port = server_port();

	for (size_t i = 0; i < amount(200, 20); i++) {
		int fd = connect_port(port);

		want_eof(fd);
		SYS(close(fd));
	}
	barrier("closed");
}

/* Data and FIN may arrive before accept() is called. */
static void spoken_before_accept(void)
{
	struct flow out = flow_out(0);
	int port = server_port();
	int fd = connect_port(port);

	flow_send(fd, &out, LEN, LEN);
	SYS(shutdown(fd, SHUT_WR));
	barrier("sent");
	want_eof(fd);
}

static void spoken_before_accept_server(void)
{
	struct flow in = flow_in(0);
	int listener = open_listener(8);
	int fd;

	barrier("sent");
	fd = SYS(accept(listener, NULL, NULL));
	WANT_EQ(flow_recv_to_eof(fd, &in), LEN);
	SYS(close(fd));
}

const struct row misuse_rows[] = {
	{ "misuse", misuse, misuse, ON_COLD | QUICK | UNFRAMED },
	{ "misuse_connected", misuse_connected, misuse_connected, ON_ALL | QUICK },
	{ "close_at_once", close_at_once, close_at_once_server, ON_COLD | ON_PLAIN | QUICK },
	{ "accept_close_at_once", accept_close_at_once_client, accept_close_at_once,
	  ON_COLD | ON_PLAIN | QUICK },
	{ "spoken_before_accept", spoken_before_accept, spoken_before_accept_server,
	  ON_COLD | ON_PLAIN | QUICK },
	{ }
};
