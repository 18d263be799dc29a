// SPDX-License-Identifier: GPL-2.0
/* The connection of a row, in the state that its variant asks for. */
#define _GNU_SOURCE
#include "test.h"

int connect_conn_sized(int port, const struct sizes *sizes)
{
	int fd = connect_sized(port, sizes);

	if (run.variant == VAR_RDMA)
		path_warm_up(fd);
	return fd;
}

int connect_conn(int port)
{
	return connect_conn_sized(port, NULL);
}

int accept_conn(int listener)
{
	int fd = SYS(accept4(listener, NULL, NULL, SOCK_CLOEXEC));

	if (run.variant == VAR_RDMA)
		path_warm_up(fd);
	return fd;
}

int open_conn_sized(const struct sizes *sizes)
{
	int fd;

	if (run.server) {
		int listener = open_listener_sized(8, sizes);

		fd = SYS(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
		SYS(close(listener));
	} else {
		fd = connect_sized(server_port(), sizes);
	}
	if (run.variant == VAR_RDMA)
		path_warm_up(fd);
	return fd;
}

int open_conn(void)
{
	return open_conn_sized(NULL);
}
