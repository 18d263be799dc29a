// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * LD_PRELOAD library that creates TCP sockets in place of AF_VSOCK stream sockets, for the kernel's
 * tests of that family. Every address but the wildcard becomes 127.0.0.1, which home.so replaces.
 * This library must be the first in LD_PRELOAD, so that its calls for TCP sockets go through the
 * other libraries, which replace TCP sockets or loopback addresses.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/vm_sockets.h>

#define FDS	1024

static int (*next_socket)(int domain, int type, int protocol);
static int (*next_bind)(int fd, const struct sockaddr *sa, socklen_t len);
static int (*next_connect)(int fd, const struct sockaddr *sa, socklen_t len);
static int (*next_accept4)(int fd, struct sockaddr *sa, socklen_t *len, int flags);
static int (*next_getsockname)(int fd, struct sockaddr *sa, socklen_t *len);
static int (*next_getpeername)(int fd, struct sockaddr *sa, socklen_t *len);
static int (*next_setsockopt)(int fd, int level, int name, const void *value, socklen_t len);
static int (*next_getsockopt)(int fd, int level, int name, void *value, socklen_t *len);

/* Which descriptors the program takes for AF_VSOCK sockets; socket() and accept() update this. */
static bool ours[FDS];

__attribute__((constructor))
static void find_next(void)
{
	next_socket = dlsym(RTLD_NEXT, "socket");
	next_bind = dlsym(RTLD_NEXT, "bind");
	next_connect = dlsym(RTLD_NEXT, "connect");
	next_accept4 = dlsym(RTLD_NEXT, "accept4");
	next_getsockname = dlsym(RTLD_NEXT, "getsockname");
	next_getpeername = dlsym(RTLD_NEXT, "getpeername");
	next_setsockopt = dlsym(RTLD_NEXT, "setsockopt");
	next_getsockopt = dlsym(RTLD_NEXT, "getsockopt");
}

static bool is_ours(int fd)
{
	return fd >= 0 && fd < FDS && ours[fd];
}

/* Records whether @fd is one of ours; returns @fd. */
static int note(int fd, bool vsock)
{
	if (fd >= 0 && fd < FDS)
		ours[fd] = vsock;
	return fd;
}

/*
 * Creates a TCP socket with SO_REUSEADDR, since a port of AF_VSOCK is free again when its listener
 * is closed, even if connections to the port continue.
 */
static int open_tcp(int type)
{
	int fd = next_socket(AF_INET, type, IPPROTO_TCP), on = 1;

	if (fd >= 0)
		next_setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return note(fd, true);
}

int socket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (domain == AF_VSOCK && kind == SOCK_STREAM)
		return open_tcp(type);
	return note(next_socket(domain, type, protocol), false);
}

static bool is_vsock(int fd, const struct sockaddr *sa, socklen_t len)
{
	return is_ours(fd) && sa && len >= sizeof(struct sockaddr_vm) &&
	       sa->sa_family == AF_VSOCK;
}

/* Converts an AF_VSOCK address: keeps port and wildcards; any other CID becomes 127.0.0.1. */
static struct sockaddr_in to_tcp(const struct sockaddr *sa)
{
	struct sockaddr_vm vm;

	memcpy(&vm, sa, sizeof(vm));
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(vm.svm_port == VMADDR_PORT_ANY ? 0 : vm.svm_port),
		.sin_addr.s_addr = htonl(vm.svm_cid == VMADDR_CID_ANY ? INADDR_ANY :
									INADDR_LOOPBACK),
	};
}

int bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct sockaddr_in at;

	if (!is_vsock(fd, sa, len))
		return next_bind(fd, sa, len);
	at = to_tcp(sa);
	return next_bind(fd, (struct sockaddr *)&at, sizeof(at));
}

/* If nothing listens on the port, connect() fails with another errno on AF_VSOCK than on TCP. */
int connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct sockaddr_in at;
	int ret;

	if (!is_vsock(fd, sa, len))
		return next_connect(fd, sa, len);
	at = to_tcp(sa);
	ret = next_connect(fd, (struct sockaddr *)&at, sizeof(at));
	if (ret && errno == ECONNREFUSED)
		errno = ECONNRESET;
	return ret;
}

/* As in the kernel, the address is truncated to the buffer, and *len is its full length. */
static void put_address(const struct sockaddr_in *at, struct sockaddr *sa, socklen_t *len)
{
	struct sockaddr_vm vm = {
		.svm_family = AF_VSOCK,
		.svm_port = ntohs(at->sin_port),
		.svm_cid = at->sin_addr.s_addr == htonl(INADDR_ANY) ? VMADDR_CID_ANY :
								      VMADDR_CID_LOCAL,
	};

	memcpy(sa, &vm, *len < sizeof(vm) ? *len : sizeof(vm));
	*len = sizeof(vm);
}

int accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	struct sockaddr_in at;
	socklen_t room = sizeof(at);
	int ret;

	if (!is_ours(fd))
		return note(next_accept4(fd, sa, len, flags), false);
	ret = note(next_accept4(fd, (struct sockaddr *)&at, &room, flags), true);
	if (ret >= 0 && sa && len)
		put_address(&at, sa, len);
	return ret;
}

int accept(int fd, struct sockaddr *sa, socklen_t *len)
{
	return accept4(fd, sa, len, 0);
}

/* getsockname() and getpeername(): @next is the function of the next library, such as home.so. */
static int name_of(int (*next)(int, struct sockaddr *, socklen_t *), int fd, struct sockaddr *sa,
		   socklen_t *len)
{
	struct sockaddr_in at;
	socklen_t room = sizeof(at);

	if (!is_ours(fd) || !sa || !len)
		return next(fd, sa, len);
	if (next(fd, (struct sockaddr *)&at, &room))
		return -1;
	put_address(&at, sa, len);
	return 0;
}

int getsockname(int fd, struct sockaddr *sa, socklen_t *len)
{
	return name_of(next_getsockname, fd, sa, len);
}

int getpeername(int fd, struct sockaddr *sa, socklen_t *len)
{
	return name_of(next_getpeername, fd, sa, len);
}

/* Sets SO_RCVBUF for SO_VM_SOCKETS_BUFFER_SIZE; the options for its limits have no effect. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	unsigned long long size;
	int bytes;

	if (level != AF_VSOCK || !is_ours(fd))
		return next_setsockopt(fd, level, name, value, len);
	if (name == SO_VM_SOCKETS_BUFFER_MIN_SIZE || name == SO_VM_SOCKETS_BUFFER_MAX_SIZE)
		return 0;
	if (name != SO_VM_SOCKETS_BUFFER_SIZE || len < sizeof(size)) {
		errno = name == SO_VM_SOCKETS_BUFFER_SIZE ? EINVAL : ENOPROTOOPT;
		return -1;
	}
	memcpy(&size, value, sizeof(size));
	bytes = size;
	return next_setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

/*
 * For SO_VM_SOCKETS_BUFFER_SIZE returns half of SO_RCVBUF, since TCP reports twice the value that
 * was set.
 */
int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	unsigned long long size;
	int bytes;
	socklen_t room = sizeof(bytes);

	if (level != AF_VSOCK || !is_ours(fd))
		return next_getsockopt(fd, level, name, value, len);
	if (name != SO_VM_SOCKETS_BUFFER_SIZE || *len < sizeof(size)) {
		errno = name == SO_VM_SOCKETS_BUFFER_SIZE ? EINVAL : ENOPROTOOPT;
		return -1;
	}
	if (next_getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &room))
		return -1;
	size = bytes / 2;
	memcpy(value, &size, sizeof(size));
	*len = sizeof(size);
	return 0;
}
