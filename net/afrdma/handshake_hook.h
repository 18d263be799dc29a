/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* The netfilter hooks that insert the AF_RDMA option into outgoing segments. */
#ifndef AFR_HANDSHAKE_HOOK_H
#define AFR_HANDSHAKE_HOOK_H

struct net;

int afr_handshake_hook_init(void);
void afr_handshake_hook_exit(void);

int afr_handshake_hook_use(struct net *net);

#endif /* AFR_HANDSHAKE_HOOK_H */
