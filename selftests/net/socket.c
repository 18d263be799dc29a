// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Decides whether this side uses TCP or AF_RDMA in the current variant of the row. Creates
 * sockets, listeners and connections; makes and formats addresses.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>

#include "test.h"

/* Does this side use AF_RDMA in this variant? */
bool speaks_rdma(void)
{
	switch (run.variant) {
	case VAR_RDMA:
	case VAR_COLD:
		return true;
	case VAR_TO_TCP:
		return !run.server;
	case VAR_FROM_TCP:
		return run.server;
	default:
		return false;
	}
}

/* Does either side use AF_RDMA in this variant? */
bool row_has_rdma(void)
{
	return run.variant != VAR_TCP;
}

/* Creates a stream socket; @flags: SOCK_NONBLOCK, SOCK_CLOEXEC. */
int new_socket_of(bool rdma, bool inet6, int flags)
{
	if (rdma)
		return SYS(socket(AF_RDMA, SOCK_STREAM | flags,
				  inet6 ? AFRDMA_PROTO_INET6 : AFRDMA_PROTO_INET));
	return SYS(socket(inet6 ? AF_INET6 : AF_INET, SOCK_STREAM | flags, 0));
}

/* Creates an AF_RDMA socket if speaks_rdma(), else a TCP socket; @flags as in new_socket_of(). */
int new_socket(int flags)
{
	return new_socket_of(speaks_rdma(), run.inet6, flags);
}

socklen_t addr_len(void)
{
	return run.inet6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Stores @v6 or @v4, as run.inet6 says, and @port in @addr; returns the length. */
static socklen_t addr_make(union addr *addr, const char *v4, const char *v6, int port)
{
	memset(addr, 0, sizeof(*addr));
	if (run.inet6) {
		addr->in6.sin6_family = AF_INET6;
		addr->in6.sin6_port = htons(port);
		WANT(inet_pton(AF_INET6, v6, &addr->in6.sin6_addr) == 1);
	} else {
		addr->in.sin_family = AF_INET;
		addr->in.sin_port = htons(port);
		WANT(inet_pton(AF_INET, v4, &addr->in.sin_addr) == 1);
	}
	return addr_len();
}

socklen_t addr_any(union addr *addr, int port)
{
	return addr_make(addr, "0.0.0.0", "::", port);
}

socklen_t addr_loopback(union addr *addr, int port)
{
	return addr_make(addr, "127.0.0.1", "::1", port);
}

/* Stores the address of the server in @addr; only the client calls this. */
socklen_t addr_server(union addr *addr, int port)
{
	return addr_make(addr, run.host, run.host6, port);
}

int addr_port(const union addr *addr)
{
	return ntohs(addr->sa.sa_family == AF_INET6 ? addr->in6.sin6_port : addr->in.sin_port);
}

int local_port(int fd)
{
	socklen_t len = sizeof(union addr);
	union addr addr;

	SYS(getsockname(fd, &addr.sa, &len));
	return addr_port(&addr);
}

void addr_text(const union addr *addr, char *text, size_t size)
{
	char ip[INET6_ADDRSTRLEN] = "?";

	if (addr->sa.sa_family == AF_INET6)
		inet_ntop(AF_INET6, &addr->in6.sin6_addr, ip, sizeof(ip));
	else if (addr->sa.sa_family == AF_INET)
		inet_ntop(AF_INET, &addr->in.sin_addr, ip, sizeof(ip));
	snprintf(text, size, "%d %s %d", addr->sa.sa_family, ip, addr_port(addr));
}

void apply_sizes(int fd, const struct sizes *sizes)
{
	if (sizes && sizes->sndbuf)
		set_int(fd, SOL_SOCKET, SO_SNDBUF, sizes->sndbuf);
	if (sizes && sizes->rcvbuf)
		set_int(fd, SOL_SOCKET, SO_RCVBUF, sizes->rcvbuf);
}

/* Opens a listener on any address and a free port, and sends the port to the client. */
int open_listener_sized(int backlog, const struct sizes *sizes)
{
	union addr addr;
	socklen_t len = addr_any(&addr, 0);
	int fd = new_socket(SOCK_CLOEXEC);

	apply_sizes(fd, sizes);
	SYS(bind(fd, &addr.sa, len));
	SYS(listen(fd, backlog));
	control_send_number("PORT", local_port(fd));
	return fd;
}

int open_listener(int backlog)
{
	return open_listener_sized(backlog, NULL);
}

/* Client: receives the port that the server sends as PORT, for example by open_listener(). */
int server_port(void)
{
	return control_get_number("PORT");
}

int connect_sized(int port, const struct sizes *sizes)
{
	union addr addr;
	socklen_t len = addr_server(&addr, port);
	int fd = new_socket(SOCK_CLOEXEC);

	apply_sizes(fd, sizes);
	SYS(connect(fd, &addr.sa, len));
	return fd;
}

int connect_port(int port)
{
	return connect_sized(port, NULL);
}
