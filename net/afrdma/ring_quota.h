/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Quotas for the memory of rings on RDMA. These rings keep their pages while they are attached, so
 * neither one peer nor one local user may have all of the memory.
 */
#ifndef AFR_RING_QUOTA_H
#define AFR_RING_QUOTA_H

#include <linux/socket.h>
#include <linux/uidgid.h>

struct afr_ring_mem;
struct afr_net;
struct afr_holder;

enum afr_ring_quota_kind {
	AFR_QUOTA_PEER,
	AFR_QUOTA_USER,
	AFR_QUOTAS
};

/* The pages charged for one attach; all zero while nothing is charged. */
struct afr_ring_quota {
	struct afr_net	*an;		/* valid, like @of, while pages are charged */
	struct afr_holder *of[AFR_QUOTAS];
	unsigned long	pages;
};

int afr_ring_quota_charge(struct afr_ring_quota *share, struct afr_net *an,
			  const struct sockaddr_storage *remote, kuid_t uid,
			  const struct afr_ring_mem *snd, const struct afr_ring_mem *rcv);
void afr_ring_quota_uncharge(struct afr_ring_quota *share, unsigned long keep);

#endif /* AFR_RING_QUOTA_H */
