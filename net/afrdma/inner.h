/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The inner TCP socket: created with the rights of the caller, its wait queue
 * grafted onto the socket in front.
 */
#ifndef AFR_INNER_H
#define AFR_INNER_H

#include "conn.h"

struct socket;
struct sock;

/* A TCP socket of @family (AF_INET, AF_INET6) in @net for the current task: 0 or -errno. */
int afr_inner_create(struct net *net, int family, struct socket **inner);
/* Sleepers and pollers of @front wait for @inner's events, too (stock callbacks wake them). */
void afr_inner_graft(struct socket *inner, struct socket *front);
/* Before @front's struct socket goes. */
void afr_inner_ungraft(struct socket *inner);

/* Any context. The inner socket's error becomes the front's, where SO_ERROR looks. */
void afr_inner_take_error(struct socket *inner, struct sock *front);

#endif /* AFR_INNER_H */
