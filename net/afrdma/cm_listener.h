/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* The cm listener: the rdma_cm listeners of a namespace, through which peers connect links. */
#ifndef AFR_CM_LISTENER_H
#define AFR_CM_LISTENER_H

#include <linux/socket.h>
#include <linux/types.h>

struct afr_net;

u16 afr_cm_listener_port(struct afr_net *an, sa_family_t family);
bool afr_cm_listener_started(const struct afr_net *an);
bool afr_cm_listener_get(struct afr_net *an);
void afr_cm_listener_put(struct afr_net *an);

#endif /* AFR_CM_LISTENER_H */
