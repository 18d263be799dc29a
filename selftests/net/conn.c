// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Opens connections for rows, and moves them to RDMA in variant rdma. Also makes a socket fall
 * back once and disconnects it, so that the row can use it again.
 */
#define _GNU_SOURCE
#include "test.h"

/* Client part of open_conn(), for rows with several connections; server part: accept_conn(). */
int connect_conn_sized(int port, const struct sizes *sizes)
{
	int fd = connect_sized(port, sizes);

	if (run.variant == VAR_RDMA)
		path_warm_up(fd);
	return fd;
}

int connect_conn(int port)
{
	return connect_conn_sized(port, NULL);
}

int accept_conn(int listener)
{
	int fd = SYS(accept4(listener, NULL, NULL, SOCK_CLOEXEC));

	if (run.variant == VAR_RDMA)
		path_warm_up(fd);
	return fd;
}

/*
 * The usual beginning of a row: opens one connection, and in variant rdma moves both
 * directions to RDMA.
 */
int open_conn_sized(const struct sizes *sizes)
{
	int fd;

	if (run.server) {
		int listener = open_listener_sized(8, sizes);

		fd = SYS(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
		SYS(close(listener));
	} else {
		fd = connect_sized(server_port(), sizes);
	}
	if (run.variant == VAR_RDMA)
		path_warm_up(fd);
	return fd;
}

int open_conn(void)
{
	return open_conn_sized(NULL);
}

/* Like open_conn(), but opens a TCP connection in every variant, to compare AF_RDMA with it. */
int open_tcp_conn(void)
{
	enum variant variant = run.variant;
	int fd;

	run.variant = VAR_TCP;
	fd = open_conn();
	run.variant = variant;
	return fd;
}

/*
 * Connects @fd to a TCP listener of this host, which makes @fd fall back. Then calls recv() on @fd
 * and disconnects @fd. The recv() is for options such as IP_RECVERR: an AF_RDMA socket only stores
 * them until it has fallen back, and a recv() after that sets them on its TCP socket.
 */
void fall_back_once(int fd)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int tcp = SYS(socket(AF_INET, SOCK_STREAM, 0));
	socklen_t len = sizeof(addr);
	char byte;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	SYS(bind(tcp, (struct sockaddr *)&addr, len));
	SYS(listen(tcp, 1));
	SYS(getsockname(tcp, (struct sockaddr *)&addr, &len));
	SYS(connect(fd, (struct sockaddr *)&addr, len));
	SYS_ERRNO(recv(fd, &byte, 1, MSG_DONTWAIT), EAGAIN);
	SYS(connect(fd, &none, sizeof(none)));
	SYS(close(tcp));
}
