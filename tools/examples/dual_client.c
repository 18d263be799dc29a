// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * dual_client HOST PORT BLOCKS: like client.c, for a name or an address, IPv4 or IPv6.
 *
 * The usual loop over the results of getaddrinfo(). The protocol of the socket follows from the
 * family of the address (ai_family). ai_protocol is not used: it is IPPROTO_TCP for IPv4 and IPv6
 * alike.
 */
#include <netdb.h>

#include "example.h"

static int connect_any(const char *host, const char *port)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *all, *ai;
	int error, fd = -1;

	error = getaddrinfo(host, port, &hints, &all);
	if (error)
		errx(1, "%s: %s", host, gai_strerror(error));
	for (ai = all; ai; ai = ai->ai_next) {
		fd = socket(AF_RDMA, ai->ai_socktype, AFRDMA_PROTOCOL(ai->ai_family));
		if (fd < 0)
			err(1, "socket");
		if (!connect(fd, ai->ai_addr, ai->ai_addrlen))
			break;
		warn("connect, IPv%d", ai->ai_family == AF_INET6 ? 6 : 4);
		close(fd);
		fd = -1;
	}
	freeaddrinfo(all);
	return fd;
}

int main(int argc, char **argv)
{
	int fd;

	if (argc != 4)
		errx(2, "usage: dual_client HOST PORT BLOCKS");
	fd = connect_any(argv[1], argv[2]);
	if (fd < 0)
		errx(1, "no address of %s answers", argv[1]);

	exchange(fd, atol(argv[3]));
	return 0;
}
