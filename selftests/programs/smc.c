// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * LD_PRELOAD library that creates AF_SMC sockets in place of TCP sockets, for comparison. SMC
 * itself falls back to TCP if it cannot use RDMA.
 */
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AF_SMC
#define AF_SMC 43
#endif

int socket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);

	if ((domain == AF_INET || domain == AF_INET6) && kind == SOCK_STREAM &&
	    (protocol == 0 || protocol == IPPROTO_TCP))
		return syscall(SYS_socket, AF_SMC, type, domain == AF_INET6);
	return syscall(SYS_socket, domain, type, protocol);
}
