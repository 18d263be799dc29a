// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * A library for LD_PRELOAD: creates AF_RDMA sockets instead of TCP sockets, as the rules say. If
 * AF_RDMA is not available, the program gets a TCP socket. connect() and listen() first call
 * rules_apply(). For an AF_RDMA socket, getsockopt() answers SO_DOMAIN and SO_PROTOCOL as for a
 * TCP socket.
 *
 * A program may call socket() in a signal handler, between fork() and exec(), or in many threads.
 * So nothing here but init() locks or allocates, and the only state is the rules, the addresses of
 * the functions that this library replaces, and whether a message was printed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../common/family.h"
#include "../common/rules.h"

#define EXPORT		__attribute__((visibility("default")))
#define DEBUG		"AFRDMA_PRELOAD_DEBUG"
#define PROC		"/proc/self"

static int (*next_socket)(int domain, int type, int protocol);
static int (*next_getsockopt)(int fd, int level, int name, void *value, socklen_t *len);
static int (*next_connect)(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len);
static int (*next_listen)(int fd, int backlog);
static struct rules rules;

/*
 * smctl has checked the rules, so errors are not reported. A line too long for line[] is ignored,
 * and so are all lines behind it.
 */
static void read_rules(const char *text)
{
	char line[RULES_TEXT];
	size_t len;

	memset(&rules, 0, sizeof(rules));
	for (; text && *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		if (len >= sizeof(line))
			return;
		memcpy(line, text, len);
		line[len] = '\0';
		rules_add(&rules, line);
	}
}

/*
 * Runs before main(), so that no signal handler has to call dlsym() or read rules. Constructors of
 * other libraries may call the exported functions even earlier; therefore each exported function
 * checks whether next_socket is set.
 */
__attribute__((constructor))
static void init(void)
{
	if (next_socket)
		return;		/* init() has already run: threads may be reading the rules */
	next_getsockopt = dlsym(RTLD_NEXT, "getsockopt");
	next_connect = dlsym(RTLD_NEXT, "connect");
	next_listen = dlsym(RTLD_NEXT, "listen");
	read_rules(getenv(RULES_VARIABLE));
	next_socket = dlsym(RTLD_NEXT, "socket");
}

/* Prints @line if AFRDMA_PRELOAD_DEBUG is set, but only the first time. */
static void report_once(const char *line)
{
	static bool done;

	if (__atomic_load_n(&done, __ATOMIC_RELAXED) || !getenv(DEBUG))
		return;
	if (__atomic_exchange_n(&done, true, __ATOMIC_RELAXED))
		return;
	syscall(SYS_write, STDERR_FILENO, line, strlen(line));
}

static int rdma_socket(int domain, int type)
{
	int family = family_number();

	if (family < 0) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	return next_socket(family, type, family_protocol(domain));
}

EXPORT int socket(int domain, int type, int protocol)
{
	int saved = errno, fd;

	if (!next_socket)
		init();
	if (rules_want(&rules, PROC, domain, type, protocol)) {
		fd = rdma_socket(domain, type);
		if (fd >= 0)
			return fd;
		report_once("afrdma-preload: AF_RDMA is not available, sockets are plain TCP\n");
	}
	errno = saved;
	return next_socket(domain, type, protocol);
}

EXPORT int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int ret, saved, answer;

	if (!next_socket)
		init();
	ret = next_getsockopt(fd, level, name, value, len);
	if (ret || level != SOL_SOCKET)
		return ret;
	saved = errno;
	if (family_tcp_answer(fd, name, &answer))
		memcpy(value, &answer, *len < sizeof(answer) ? *len : sizeof(answer));
	errno = saved;
	return 0;
}

EXPORT int connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	if (!next_socket)
		init();
	if (addr.__sockaddr__)
		rules_apply(&rules, PROC, fd, addr.__sockaddr__, len);
	return next_connect(fd, addr, len);
}

EXPORT int listen(int fd, int backlog)
{
	if (!next_socket)
		init();
	rules_apply(&rules, PROC, fd, NULL, 0);
	return next_listen(fd, backlog);
}
