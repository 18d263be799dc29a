// SPDX-License-Identifier: GPL-2.0
/*
 * LD_PRELOAD: TCP sockets become AF_SMC sockets, to compare with. The least that does it;
 * SMC itself goes by TCP where it cannot have RDMA.
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
