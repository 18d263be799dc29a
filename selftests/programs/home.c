// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * LD_PRELOAD library for test suites that use 127.0.0.1 and ::1, which no RDMA device has. Their
 * stream sockets use the host's address instead, from HOME_V4 and HOME_V6 in the environment, but
 * calls such as getsockname() return the loopback address. The suites are run with this library on
 * every family, so that the results can be compared.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

union address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage any;
};

static struct in_addr home4;
static struct in6_addr home6;
static bool known4, known6;

__attribute__((constructor))
static void read_home(void)
{
	const char *v4 = getenv("HOME_V4"), *v6 = getenv("HOME_V6");

	known4 = v4 && inet_pton(AF_INET, v4, &home4) == 1;
	known6 = v6 && inet_pton(AF_INET6, v6, &home6) == 1;
}

/* Is @fd a stream socket, of any family? go_home() and pretend() check the address family. */
static bool is_stream(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return !syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &len) &&
	       type == SOCK_STREAM;
}

/* Replaces 127.0.0.1 and ::1 by the host's address; if @connecting, 0.0.0.0 and ::, too. */
static void go_home(union address *at, socklen_t len, bool connecting)
{
	in_addr_t v4 = at->v4.sin_addr.s_addr;

	if (known4 && len >= sizeof(at->v4) && at->sa.sa_family == AF_INET &&
	    (v4 == htonl(INADDR_LOOPBACK) || (connecting && v4 == htonl(INADDR_ANY))))
		at->v4.sin_addr = home4;
	else if (known6 && len >= sizeof(at->v6) && at->sa.sa_family == AF_INET6 &&
		 (IN6_IS_ADDR_LOOPBACK(&at->v6.sin6_addr) ||
		  (connecting && IN6_IS_ADDR_UNSPECIFIED(&at->v6.sin6_addr))))
		at->v6.sin6_addr = home6;
}

/* Replaces the address of the host by the loopback address. */
static void pretend(union address *at)
{
	if (known4 && at->sa.sa_family == AF_INET && at->v4.sin_addr.s_addr == home4.s_addr)
		at->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (known6 && at->sa.sa_family == AF_INET6 &&
		 !memcmp(&at->v6.sin6_addr, &home6, sizeof(home6)))
		at->v6.sin6_addr = in6addr_loopback;
}

/* Applies go_home() to the address if @fd is a stream socket, then makes the system call @call. */
static int to(long call, int fd, const struct sockaddr *sa, socklen_t len)
{
	union address at;

	if (!sa || len < sizeof(at.v4) || len > sizeof(at) || !is_stream(fd))
		return syscall(call, fd, sa, len);
	memcpy(&at, sa, len);
	go_home(&at, len, call == SYS_connect);
	return syscall(call, fd, &at, len);
}

/*
 * Makes the system call @call, such as getsockname(). If @fd is a stream socket, replaces the
 * host's address in the result by the loopback address. An address that the kernel had to
 * truncate, because the program's buffer is too small, stays as it is.
 */
static int from(long call, int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	socklen_t size = sa && len ? *len : 0;
	int ret = syscall(call, fd, sa, len, flags);
	union address at;

	if (ret < 0 || !size || *len > size || *len < sizeof(at.v4) || *len > sizeof(at))
		return ret;
	if (!is_stream(fd))
		return ret;
	memcpy(&at, sa, *len);
	pretend(&at);
	memcpy(sa, &at, *len);
	return ret;
}

int bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	return to(SYS_bind, fd, sa, len);
}

int connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	return to(SYS_connect, fd, sa, len);
}

int accept(int fd, struct sockaddr *sa, socklen_t *len)
{
	return from(SYS_accept4, fd, sa, len, 0);
}

int accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	return from(SYS_accept4, fd, sa, len, flags);
}

int getsockname(int fd, struct sockaddr *sa, socklen_t *len)
{
	return from(SYS_getsockname, fd, sa, len, 0);
}

int getpeername(int fd, struct sockaddr *sa, socklen_t *len)
{
	return from(SYS_getpeername, fd, sa, len, 0);
}
