// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * dual_server PORT: like server.c, but one listening socket serves both IPv4 and IPv6 clients.
 *
 * An IPv6 socket that listens on the address :: also accepts IPv4 clients, with mapped addresses
 * (::ffff:192.0.2.1), unless IPV6_V6ONLY is set. The default of this option is the sysctl
 * net.ipv6.bindv6only.
 */
#include <netinet/in.h>
#include <netdb.h>

#include "example.h"

static int listen_both(int port)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(AF_RDMA, SOCK_STREAM, AFRDMA_PROTO_INET6);
	int on = 1, off = 0;

	if (fd < 0)
		err(1, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)))
		err(1, "IPV6_V6ONLY");
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 8))
		err(1, "port %d", port);
	return fd;
}

int main(int argc, char **argv)
{
	int fd;

	if (argc != 2)
		errx(2, "usage: dual_server PORT");
	fd = listen_both(atoi(argv[1]));
	for (;;) {
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);
		int client = accept(fd, (struct sockaddr *)&from, &len);
		char name[64];

		if (client < 0)
			err(1, "accept");
		if (!getnameinfo((struct sockaddr *)&from, len, name, sizeof(name), NULL, 0,
				 NI_NUMERICHOST))
			printf("from %s: ", name);
		serve(client);
	}
}
