/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* The TCP socket of a connection. */
#ifndef AFR_TCP_SOCK_H
#define AFR_TCP_SOCK_H

#include "conn.h"

struct kvec;
struct sock;
struct socket;

int afr_tcp_sock_create(struct net *net, int family, struct socket **tcp);
void afr_tcp_sock_graft(struct socket *tcp, struct socket *sock);
void afr_tcp_sock_ungraft(struct socket *tcp);
void afr_tcp_sock_take_error(struct afr_conn *conn, struct sock *sk);
void afr_tcp_sock_return_error(struct afr_conn *conn, struct sock *sk, int err);

void afr_tcp_sock_install(struct afr_conn *conn);
void afr_tcp_sock_open_window(struct afr_conn *conn);
bool afr_tcp_sock_settings(struct afr_conn *conn, bool hide);
bool afr_tcp_sock_ended(const struct afr_conn *conn);
bool afr_tcp_sock_idle(const struct afr_conn *conn);
void afr_tcp_sock_remove(struct afr_conn *conn);

int afr_tcp_sock_recv(struct afr_conn *conn, struct kvec *vec, unsigned int n, size_t len);

#endif /* AFR_TCP_SOCK_H */
