/* SPDX-License-Identifier: GPL-2.0 */
/* What AF_RDMA is called here, and how its sockets pass for TCP. As rules.h: no locks. */
#ifndef RUN_FAMILY_H
#define RUN_FAMILY_H

#include <stdbool.h>

/* The number of the family, -1 if the module is not loaded. */
int family_number(void);

/* The protocol of an AF_RDMA socket for the addresses of @domain. */
int family_protocol(int domain);

/*
 * What @fd would say to getsockopt(SOL_SOCKET, @name) were it TCP. False if it is
 * no AF_RDMA socket, or if @name has the same answer for both.
 */
bool family_tcp_answer(int fd, int name, int *answer);

#endif /* RUN_FAMILY_H */
