// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * server PORT: an echo server, for one client after the other.
 *
 * A minimal server. It also serves clients that are TCP programs.
 */
#include <arpa/inet.h>

#include "example.h"

int main(int argc, char **argv)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int fd, on = 1;

	if (argc != 2)
		errx(2, "usage: server PORT");
	any.sin_port = htons(atoi(argv[1]));

	fd = socket(AF_RDMA, SOCK_STREAM, 0);
	if (fd < 0)
		err(1, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 8))
		err(1, "port %s", argv[1]);
	for (;;) {
		int client = accept(fd, NULL, NULL);

		if (client < 0)
			err(1, "accept");
		serve(client);
	}
}
