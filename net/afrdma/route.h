/* SPDX-License-Identifier: GPL-2.0 */
/* Routes and IPsec policies of the inner connection, which RDMA would bypass. */
#ifndef AFR_ROUTE_H
#define AFR_ROUTE_H

#include "conn.h"

/* The work: why the route of TCP forbids RDMA, or AFR_REASON_NONE. Cheap while nothing changes. */
enum afr_reason afr_route_barred(struct afr_conn *conn);
/* Process context: the program has set what routes may depend on (mark, device, policy). */
void afr_route_again(struct afr_conn *conn);
/* Any context: a connection attaches (@on), or has detached; those that are look at changes. */
void afr_route_watch(bool on);
void afr_route_exit(void);

#endif /* AFR_ROUTE_H */
