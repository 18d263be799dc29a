// SPDX-License-Identifier: GPL-2.0
/*
 * LD_PRELOAD: TCP sockets become AF_RDMA sockets. Where the family is not to be
 * had, the program gets the TCP socket it asked for and never knows.
 *
 * A program may call socket() from a signal handler, between fork and exec, or
 * from many threads: nothing here locks, allocates or remembers, except where
 * the next definitions of the two functions are.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/af_rdma.h>

#define EXPORT		__attribute__((visibility("default")))
#define FAMILY_FILE	"/sys/module/afrdma/parameters/family"
#define DEBUG		"AFRDMA_PRELOAD_DEBUG"

static int (*next_socket)(int domain, int type, int protocol);
static int (*next_getsockopt)(int fd, int level, int name, void *value, socklen_t *len);

/* Before main(), so that no signal handler has to do it; earlier constructors may be faster. */
__attribute__((constructor))
static void find_next(void)
{
	next_socket = dlsym(RTLD_NEXT, "socket");
	next_getsockopt = dlsym(RTLD_NEXT, "getsockopt");
}

/* Not open(), read() and close(): those are cancellation points, and socket() is not. */
static int family_from_module(void)
{
	int fd = syscall(SYS_openat, AT_FDCWD, FAMILY_FILE, O_RDONLY | O_CLOEXEC);
	int family = 0;
	char digit;

	if (fd < 0)
		return -1;
	while (syscall(SYS_read, fd, &digit, 1) == 1 && digit >= '0' && digit <= '9')
		family = family * 10 + digit - '0';
	syscall(SYS_close, fd);
	return family;
}

/*
 * The number of the family, -1 if the module is not loaded. The kernel is not
 * asked for an unknown family: it would start modprobe for every socket.
 */
static int afrdma_family(void)
{
	int family = family_from_module();

	if (family > 0)
		return family;
	if (family < 0 && !access("/sys/module", F_OK) && access("/sys/module/afrdma", F_OK))
		return -1;
	return AF_RDMA;		/* no parameter, or no /sys to read it from */
}

/* One line, for who asked. */
static void say_once(const char *line)
{
	static bool said;

	if (__atomic_load_n(&said, __ATOMIC_RELAXED) || !getenv(DEBUG))
		return;
	if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		return;
	syscall(SYS_write, STDERR_FILENO, line, strlen(line));
}

static bool wants_tcp(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

static int rdma_socket(int domain, int type)
{
	int family = afrdma_family();

	if (family < 0) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	return next_socket(family, type,
			   domain == AF_INET6 ? AFRDMA_PROTO_INET6 : AFRDMA_PROTO_INET);
}

EXPORT int socket(int domain, int type, int protocol)
{
	int saved = errno, fd;

	if (!next_socket)
		find_next();
	if (wants_tcp(domain, type, protocol)) {
		fd = rdma_socket(domain, type);
		if (fd >= 0)
			return fd;
		say_once("afrdma-preload: no AF_RDMA here, sockets are plain TCP\n");
		errno = saved;
	}
	return next_socket(domain, type, protocol);
}

static int own_option(int fd, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	if (next_getsockopt(fd, SOL_SOCKET, name, &value, &len))
		return -1;
	return value;
}

/* What the socket would say were it TCP. */
static int tcp_answer(int fd, int name)
{
	if (name == SO_PROTOCOL)
		return IPPROTO_TCP;
	return own_option(fd, SO_PROTOCOL) == AFRDMA_PROTO_INET6 ? AF_INET6 : AF_INET;
}

EXPORT int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int ret, saved, family, answer;

	if (!next_getsockopt)
		find_next();
	ret = next_getsockopt(fd, level, name, value, len);
	if (ret || level != SOL_SOCKET || (name != SO_DOMAIN && name != SO_PROTOCOL))
		return ret;
	saved = errno;
	family = afrdma_family();
	if (family > 0 && own_option(fd, SO_DOMAIN) == family) {
		answer = tcp_answer(fd, name);
		memcpy(value, &answer, *len < sizeof(answer) ? *len : sizeof(answer));
	}
	errno = saved;
	return 0;
}
