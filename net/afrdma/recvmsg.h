/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* What poll.c needs of recvmsg(): how much can be read, and how much makes a socket readable. */
#ifndef AFR_RECVMSG_H
#define AFR_RECVMSG_H

#include <linux/types.h>

struct sock;

size_t afr_recvmsg_target(struct sock *sk, size_t len, int flags);
u32 afr_recvmsg_readable(struct sock *sk, bool over);

#endif /* AFR_RECVMSG_H */
