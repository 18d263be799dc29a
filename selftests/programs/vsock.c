// SPDX-License-Identifier: GPL-2.0
/*
 * LD_PRELOAD: AF_VSOCK stream sockets become TCP sockets, for the kernel's own tests of that
 * family. Whoever is addressed, it is 127.0.0.1: home.so knows where that is. The first of all
 * libraries: those that make something of TCP sockets are to see these too.
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

/* Sockets whose program takes them for AF_VSOCK; a number that is used again is set again. */
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

static int note(int fd, bool vsock)
{
	if (fd >= 0 && fd < FDS)
		ours[fd] = vsock;
	return fd;
}

/* A port of AF_VSOCK is free again when its socket is closed, and while others go on. */
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

/* Where nobody listens, AF_VSOCK has another word for it. */
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

/* As the kernel does it: no more than there is room for, and how long it would have been. */
static void tell(const struct sockaddr_in *at, struct sockaddr *sa, socklen_t *len)
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
		tell(&at, sa, len);
	return ret;
}

int accept(int fd, struct sockaddr *sa, socklen_t *len)
{
	return accept4(fd, sa, len, 0);
}

static int name_of(int (*next)(int, struct sockaddr *, socklen_t *), int fd, struct sockaddr *sa,
		   socklen_t *len)
{
	struct sockaddr_in at;
	socklen_t room = sizeof(at);

	if (!is_ours(fd) || !sa || !len)
		return next(fd, sa, len);
	if (next(fd, (struct sockaddr *)&at, &room))
		return -1;
	tell(&at, sa, len);
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

/* The bounds of a buffer's size are nobody's matter here. */
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

/* TCP says twice what it was told. */
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
