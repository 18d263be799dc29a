// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
#include <err.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>

#include "bench.h"

#ifndef AF_SMC
#define AF_SMC	43
#endif

const struct family families[3] = {
	{ "tcp", AF_INET, 7501 },
	{ "smc", AF_SMC, 7502 },
	{ "rdma", AF_RDMA, 7503 },
};

bool serving;

/*
 * A connection has failed: a client exits, a server ends only the connection and the thread that
 * called. Another thread may still use @fd, so it is closed not here but in serve_listener().
 */
static void __attribute__((noreturn)) lost(int fd, const char *what)
{
	if (!serving)
		err(1, "%s", what);
	warn("%s", what);
	shutdown(fd, SHUT_RDWR);
	pthread_exit(NULL);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void *memory(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		err(1, "memory");
	return p;
}

void set_int(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		err(1, "setsockopt %d %d", level, name);
}

int new_socket(const struct family *family)
{
	int fd = socket(family->domain, SOCK_STREAM, 0);

	if (fd < 0)
		err(1, "socket of %s", family->name);
	return fd;
}

void send_all(int fd, const void *from, size_t len)
{
	const char *p = from;
	ssize_t n;

	for (; len; p += n, len -= n) {
		n = send(fd, p, len, MSG_NOSIGNAL);
		if (n < 0)
			lost(fd, "send");
	}
}

bool recv_all(int fd, void *to, size_t len)
{
	size_t at = 0;
	ssize_t n;

	for (; at < len; at += n) {
		n = recv(fd, (char *)to + at, len - at, 0);
		if (!n && !at)
			return false;
		if (n <= 0)
			lost(fd, "recv");
	}
	return true;
}

uint64_t recv_to_end(int fd)
{
	char *buf = memory(READ_SIZE);
	uint64_t got = 0;
	ssize_t n;

	while ((n = recv(fd, buf, READ_SIZE, 0)) > 0)
		got += n;
	if (n < 0)
		lost(fd, "recv");
	free(buf);
	return got;
}

uint64_t send_messages(int fd, size_t size, uint64_t most, const volatile bool *stop)
{
	char *buf = memory(size);
	uint64_t n = 0;

	while (!*stop && (!most || n < most)) {
		send_all(fd, buf, size);
		n++;
	}
	if (shutdown(fd, SHUT_WR))
		lost(fd, "shutdown");
	free(buf);
	return n * size;
}

/* Turns the offloads of eth0 on or off, except those that the driver does not support. */
void set_offloads(bool on)
{
	static const uint32_t commands[] = { ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		struct ethtool_value value = { .cmd = commands[i], .data = on };
		struct ifreq request = { .ifr_data = (void *)&value };

		strcpy(request.ifr_name, "eth0");
		if (ioctl(fd, SIOCETHTOOL, &request) && errno != EOPNOTSUPP && errno != EINVAL)
			err(1, "offloads");
	}
	close(fd);
}

struct afrdma_info rdma_info(int fd)
{
	struct afrdma_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_AFRDMA, AFRDMA_INFO, &info, &len))
		err(1, "AFRDMA_INFO");
	return info;
}

void sample_add(struct sample *s, double value)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 4096;
		s->at = realloc(s->at, s->room * sizeof(*s->at));
		if (!s->at)
			err(1, "memory");
	}
	s->at[s->n++] = value;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double percentile(struct sample *s, double which)
{
	if (!s->n)
		errx(1, "no round trip completed");
	qsort(s->at, s->n, sizeof(*s->at), by_value);
	return s->at[s->n - 1 - (size_t)((1 - which) * s->n)];	/* nearest rank */
}
