// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Quotas for the memory of rings on RDMA. They are accounted for the whole host.
 *
 * A holder is a peer of a namespace, or a local user; the rings of a connection are charged to one
 * of each. A holder may take pages as long as it then has at most its weight times the memory that
 * is still free (afr_ring_share()). A peer has weight 1: it gets at most half of the memory, and
 * the next peer half of what is left. A user has weight 4, and gets at most four fifths: one server
 * program may have many peers, and one user must not lock out the others. But a holder's share does
 * not limit a connection while the holder has no pages for other connections. So a holder may
 * always have one connection on RDMA if there is memory for it and the share of the connection's
 * other holder permits it.
 *
 * After the rings were unpinned, the pages that they keep stay charged until they are free:
 * otherwise a holder could get more memory by leaving RDMA with unread bytes.
 *
 * Peers are identified by address, because a host can invent any number of instances. An IPv6 host
 * may use every address of its /64, so an IPv6 peer is identified by that prefix.
 */
#include <linux/hashtable.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/jhash.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <net/ipv6.h>

#include "compat.h"
#include "netns.h"
#include "proto/ring.h"
#include "ring_mem.h"
#include "ring_quota.h"

struct holder_key {
	u64		netns;		/* of a peer: the namespace in which it has this address */
	struct in6_addr	who;		/* address or /64, IPv4 as v4-mapped; or uid */
	u32		kind;		/* enum afr_ring_quota_kind */
	u32		unused;		/* padding, 0: keys are hashed and compared as a whole */
};

struct afr_holder {
	struct hlist_node	hash;
	struct holder_key	key;
	unsigned int		attaches;	/* charged to this holder, which is freed at 0 */
	unsigned long		pages;
};

static const struct {
	u32	weight;
	int	over;		/* error if the share is used up */
} kinds[AFR_QUOTAS] = {
	[AFR_QUOTA_PEER] = { .weight = 1, .over = -ENOBUFS },
	[AFR_QUOTA_USER] = { .weight = 4, .over = -EUSERS },
};

static DEFINE_HASHTABLE(holders, 10);
static unsigned long all_pages;		/* granted to all attaches */
/*
 * Leaf lock. Protects holders, all_pages, each afr_holder, afr_net.ring_charged, and changes of
 * afr_ring_quota.pages. There is one lock for the host, since every decision depends on the pages
 * that are charged to all holders together. afr_ring_quota_charge() and afr_ring_quota_uncharge()
 * each take it at most once.
 */
static DEFINE_SPINLOCK(holders_lock);

static u32 hash_of(const struct holder_key *key)
{
	static u32 seed __read_mostly;

	net_get_random_once(&seed, sizeof(seed));
	return jhash2((const u32 *)key, sizeof(*key) / sizeof(u32), seed);
}

static struct holder_key key_of_peer(const struct afr_net *an,
				     const struct sockaddr_storage *remote)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)remote;
	const struct sockaddr_in *in = (const struct sockaddr_in *)remote;
	struct holder_key key = { .kind = AFR_QUOTA_PEER, .netns = (unsigned long)an };

	if (remote->ss_family == AF_INET)
		ipv6_addr_set_v4mapped(in->sin_addr.s_addr, &key.who);
	else if (ipv6_addr_v4mapped(&in6->sin6_addr))
		key.who = in6->sin6_addr;
	else
		ipv6_addr_prefix(&key.who, &in6->sin6_addr, 64);
	return key;
}

static struct holder_key key_of_user(kuid_t uid)
{
	struct holder_key key = { .kind = AFR_QUOTA_USER };

	key.who.s6_addr32[0] = (__force __be32)__kuid_val(uid);
	return key;
}

static struct afr_holder *find(const struct holder_key *key)
{
	struct afr_holder *h;

	lockdep_assert_held(&holders_lock);
	hash_for_each_possible(holders, h, hash, hash_of(key))
		if (!memcmp(&h->key, key, sizeof(*key)))
			return h;
	return NULL;
}

/*
 * Returns the holder with @key; if there is none yet, adds *@new as that holder and sets *@new to
 * NULL. Counts one more attach of the holder, until put_holder(). If there is no such holder and
 * *@new is NULL, only returns NULL.
 */
static struct afr_holder *get_holder(const struct holder_key *key, struct afr_holder **new)
{
	struct afr_holder *h = find(key);

	if (!h && *new) {
		h = *new;
		*new = NULL;
		h->key = *key;
		hash_add(holders, &h->hash, hash_of(key));
	}
	if (h)
		h->attaches++;
	return h;
}

static void put_holder(struct afr_holder *h)
{
	lockdep_assert_held(&holders_lock);
	if (--h->attaches)
		return;
	hash_del(&h->hash);
	kfree(h);
}

/*
 * Checks whether @pages more pages may be charged to the holders of an attach. Returns 0, -EDQUOT
 * or the error of the holder whose share is used up.
 */
static int check_quota(const struct afr_ring_quota *share, struct afr_net *an, unsigned long pages)
{
	unsigned long free = afr_ring_mem_available(an, all_pages), held;
	unsigned int kind;

	lockdep_assert_held(&holders_lock);
	if (pages > free)
		return -EDQUOT;
	for (kind = 0; kind < AFR_QUOTAS; kind++) {
		held = share->of[kind]->pages;
		if (held > share->pages && pages > afr_ring_share(free, held, kinds[kind].weight))
			return kinds[kind].over;
	}
	return 0;
}

/* Charges @pages to both holders of an attach; a negative number uncharges them. */
static void add(struct afr_ring_quota *share, long pages)
{
	unsigned int kind;

	lockdep_assert_held(&holders_lock);
	for (kind = 0; kind < AFR_QUOTAS; kind++)
		share->of[kind]->pages += pages;
	all_pages += pages;
	share->an->ring_charged += pages;
	share->pages += pages;
}

static void put_holders(struct afr_ring_quota *share)
{
	unsigned int kind;

	for (kind = 0; kind < AFR_QUOTAS; kind++)
		if (share->of[kind])
			put_holder(share->of[kind]);
	memset(share, 0, sizeof(*share));
}

/**
 * afr_ring_quota_charge() - charge the pages of both rings to the peer and the user, before pinning
 * @share: quota of the attach; pages that it still has from the last attach are not charged again
 * @an: namespace
 * @remote: address of the peer
 * @uid: owner of the socket
 * @snd: send ring
 * @rcv: receive ring
 *
 * Context: process.
 * Return: 0, and the caller has to call afr_ring_quota_uncharge() later; or an error, and no page
 * is added: -EDQUOT (not enough ring memory is left for RDMA), -ENOBUFS (the peer has used up
 * its share), -EUSERS (the user has used up the user's share) or -ENOMEM.
 */
int afr_ring_quota_charge(struct afr_ring_quota *share, struct afr_net *an,
			  const struct sockaddr_storage *remote, kuid_t uid,
			  const struct afr_ring_mem *snd, const struct afr_ring_mem *rcv)
{
	unsigned long pages = afr_ring_mem_pages(snd) + afr_ring_mem_pages(rcv) - share->pages;
	const struct holder_key keys[AFR_QUOTAS] = {
		[AFR_QUOTA_PEER] = key_of_peer(an, remote),
		[AFR_QUOTA_USER] = key_of_user(uid),
	};
	struct afr_holder *new[AFR_QUOTAS] = {};
	unsigned int kind;
	int err = -ENOMEM;

	for (kind = 0; kind < AFR_QUOTAS && !share->pages; kind++)
		new[kind] = kzalloc_obj(*new[kind]);
	spin_lock(&holders_lock);
	if (!share->pages) {
		share->an = an;
		for (kind = 0; kind < AFR_QUOTAS; kind++)
			share->of[kind] = get_holder(&keys[kind], &new[kind]);
	}
	if (share->of[AFR_QUOTA_PEER] && share->of[AFR_QUOTA_USER])
		err = check_quota(share, an, pages);
	if (!err)
		add(share, pages);
	else if (!share->pages)
		put_holders(share);
	spin_unlock(&holders_lock);
	for (kind = 0; kind < AFR_QUOTAS; kind++)
		kfree(new[kind]);
	if (err && err != -ENOMEM)
		afr_netns_count(an->net, err == -EDQUOT ? AFR_STAT_RING_NO_MEMORY :
						       AFR_STAT_OVER_LIMIT);
	return err;
}

/**
 * afr_ring_quota_uncharge() - uncharge the rings of an attach, except for some pages
 * @share: quota of the attach
 * @keep: number of pages that stay charged; if at most @keep are charged, nothing happens
 *
 * Context: process.
 */
void afr_ring_quota_uncharge(struct afr_ring_quota *share, unsigned long keep)
{
	/* without the lock: only uncharges run at the same time, so the number only falls */
	if (READ_ONCE(share->pages) <= keep)
		return;
	spin_lock(&holders_lock);
	if (share->pages > keep) {
		add(share, keep - share->pages);
		if (!keep)
			put_holders(share);
	}
	spin_unlock(&holders_lock);
}
