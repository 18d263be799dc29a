/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * The AF_RDMA family on this host. As in rules.h, nothing locks or allocates, or is a cancellation
 * point.
 */
#ifndef RUN_FAMILY_H
#define RUN_FAMILY_H

#include <stdbool.h>

/* The number of the family, -1 if /sys shows that the module is not loaded. */
int family_number(void);

/* The protocol of an AF_RDMA socket for the addresses of @domain. */
int family_protocol(int domain);

/*
 * If @name is SO_DOMAIN or SO_PROTOCOL and @fd is an AF_RDMA socket, sets *@answer to what
 * getsockopt(SOL_SOCKET, @name) would return for a TCP socket, and returns true. Else returns
 * false.
 */
bool family_tcp_answer(int fd, int name, int *answer);

#endif /* RUN_FAMILY_H */
