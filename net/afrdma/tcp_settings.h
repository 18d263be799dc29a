/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Sets options on the TCP socket, and copies a listener's options to accepted sockets. */
#ifndef AFR_TCP_SETTINGS_H
#define AFR_TCP_SETTINGS_H

#include <linux/sockptr.h>

#include "sock.h"

bool afr_tcp_settings_is_framed(const struct afr_conn *conn);
int afr_tcp_settings_pass(struct socket *tcp, int level, int name, sockptr_t value,
			  unsigned int len);
int afr_tcp_settings_filter(struct socket *sock, int name, sockptr_t value, unsigned int len);
int afr_tcp_settings_reuseport_filter(struct sock *tcp_sk, sockptr_t value, unsigned int len);
void afr_tcp_settings_apply_late(struct sock *sk);
void afr_tcp_settings_reset_late(struct sock *sk);
void afr_tcp_settings_sync(struct sock *sk);
void afr_tcp_settings_sync_rcvlowat(struct sock *sk);
void afr_tcp_settings_inherit(struct sock *child, const struct sock *listener);

#endif /* AFR_TCP_SETTINGS_H */
