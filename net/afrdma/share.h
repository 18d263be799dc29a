/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shares of the memory that rings of RDMA may have. They keep their pages as long as they are
 * attached, so nobody gets all: neither one peer nor one local user.
 */
#ifndef AFR_SHARE_H
#define AFR_SHARE_H

#include <linux/socket.h>
#include <linux/uidgid.h>

struct afr_mem;
struct afr_net;
struct afr_holder;

enum afr_share_kind {
	AFR_SHARE_PEER,
	AFR_SHARE_USER,
	AFR_SHARES
};

/* What one attach has taken; all zero before and after. */
struct afr_share {
	struct afr_holder *of[AFR_SHARES];
	unsigned long	pages;
};

/*
 * Process context. The pages of both rings are about to be pinned, for the peer @remote and
 * the user @uid: 0, or nothing is taken and -EDQUOT: there are not so many; -ENOBUFS: the
 * peer, -EUSERS: the user has its share; -ENOMEM.
 */
int afr_share_take(struct afr_share *share, struct afr_net *an,
		   const struct sockaddr_storage *remote, kuid_t uid,
		   const struct afr_mem *snd, const struct afr_mem *rcv);
/* Process context. Give it back, if it was taken. */
void afr_share_give(struct afr_share *share);

#endif /* AFR_SHARE_H */
