// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * client ADDRESS PORT BLOCKS: sends blocks to an echo server and checks that each comes back.
 *
 * A minimal client, for an IPv4 address. dual_client.c handles names and IPv6.
 */
#include <arpa/inet.h>

#include "example.h"

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	int fd;

	if (argc != 4 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
		errx(2, "usage: client ADDRESS PORT BLOCKS");
	to.sin_port = htons(atoi(argv[2]));

	fd = socket(AF_RDMA, SOCK_STREAM, 0);
	if (fd < 0)
		err(1, "socket");
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		err(1, "connect");

	exchange(fd, atol(argv[3]));
	return 0;
}
