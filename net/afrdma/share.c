// SPDX-License-Identifier: GPL-2.0
/*
 * Who holds how much of the memory of RDMA rings, on the whole machine: RDMA is used in one
 * namespace only.
 *
 * A holder may have at most its weight times what is free (afr_ring_share()). A peer has
 * weight 1: half of the memory at most, the next peer half of the rest. A user has more, as one
 * server program may have many peers, and none of them shall keep out the others: four
 * fifths. Who holds nothing yet may have one connection, if there is memory for it.
 *
 * Peers are addresses, for a host can have as many names (instances) as it likes. A host with
 * IPv6 has all of a /64.
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

#include "mem.h"
#include "netns.h"
#include "ring.h"
#include "share.h"
#include "stats.h"

struct holder_key {
	u32		kind;		/* enum afr_share_kind */
	struct in6_addr	who;		/* address, IPv4 as mapped; or uid */
};

struct afr_holder {
	struct hlist_node	hash;
	struct holder_key	key;
	unsigned int		attaches;	/* the last one frees it */
	unsigned long		pages;
};

static const struct {
	u32	weight;
	int	over;		/* what afr_share_take() returns */
} kinds[AFR_SHARES] = {
	[AFR_SHARE_PEER] = { .weight = 1, .over = -ENOBUFS },
	[AFR_SHARE_USER] = { .weight = 4, .over = -EUSERS },
};

static DEFINE_HASHTABLE(holders, 10);
static unsigned long all_pages;		/* of all attaches */
static DEFINE_SPINLOCK(holders_lock);	/* all of these; a leaf */

static u32 hash_of(const struct holder_key *key)
{
	static u32 seed __read_mostly;

	net_get_random_once(&seed, sizeof(seed));
	return jhash2((const u32 *)key, sizeof(*key) / sizeof(u32), seed);
}

static struct holder_key key_of_peer(const struct sockaddr_storage *remote)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)remote;
	const struct sockaddr_in *in = (const struct sockaddr_in *)remote;
	struct holder_key key = { .kind = AFR_SHARE_PEER };

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
	struct holder_key key = { .kind = AFR_SHARE_USER };

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

/* The holder of this key, or NULL without memory; one attach more that put_holder() ends. */
static struct afr_holder *get_holder(struct holder_key key)
{
	struct afr_holder *new = kzalloc(sizeof(*new), GFP_KERNEL), *h;

	spin_lock(&holders_lock);
	h = find(&key);
	if (!h && new) {
		h = new;
		new = NULL;
		h->key = key;
		hash_add(holders, &h->hash, hash_of(&key));
	}
	if (h)
		h->attaches++;
	spin_unlock(&holders_lock);
	kfree(new);
	return h;
}

static void put_holder(struct afr_holder *h)
{
	bool last;

	spin_lock(&holders_lock);
	last = !--h->attaches;
	if (last)
		hash_del(&h->hash);
	spin_unlock(&holders_lock);
	if (last)
		kfree(h);
}

/* May @more pages be taken from memory, for @pages in all? */
static int judge(const struct afr_share *share, struct afr_net *an, unsigned long pages,
		 unsigned long more)
{
	unsigned long free = afr_mem_free(an, all_pages), held;
	unsigned int kind;

	lockdep_assert_held(&holders_lock);
	if (more > free)
		return -EDQUOT;
	for (kind = 0; kind < AFR_SHARES; kind++) {
		held = share->of[kind]->pages;
		if (held && pages > afr_ring_share(free, held, kinds[kind].weight))
			return kinds[kind].over;
	}
	return 0;
}

static void add(struct afr_share *share, long pages)
{
	unsigned int kind;

	lockdep_assert_held(&holders_lock);
	for (kind = 0; kind < AFR_SHARES; kind++)
		share->of[kind]->pages += pages;
	all_pages += pages;
	share->pages += pages;
}

static void put_holders(struct afr_share *share)
{
	unsigned int kind;

	for (kind = 0; kind < AFR_SHARES; kind++)
		if (share->of[kind])
			put_holder(share->of[kind]);
	memset(share, 0, sizeof(*share));
}

/**
 * afr_share_take() - an attach is about to pin its rings
 * @share: of the attach, all zero
 * @an: namespace
 * @remote: address of the peer
 * @uid: owner of the socket
 * @snd: one ring
 * @rcv: the other one
 *
 * Context: Process.
 * Return: 0, and afr_share_give() is to follow; or -EDQUOT: there is not so much memory,
 * -ENOBUFS: the peer has its share, -EUSERS: the user has it, -ENOMEM.
 */
int afr_share_take(struct afr_share *share, struct afr_net *an,
		   const struct sockaddr_storage *remote, kuid_t uid,
		   const struct afr_mem *snd, const struct afr_mem *rcv)
{
	unsigned long pages = afr_mem_pages(snd) + afr_mem_pages(rcv);
	unsigned long there = atomic_read(&snd->held) + atomic_read(&rcv->held);
	int err = -ENOMEM;

	share->of[AFR_SHARE_PEER] = get_holder(key_of_peer(remote));
	share->of[AFR_SHARE_USER] = get_holder(key_of_user(uid));
	if (share->of[AFR_SHARE_PEER] && share->of[AFR_SHARE_USER]) {
		spin_lock(&holders_lock);
		err = judge(share, an, pages, pages - min(there, pages));
		if (!err)
			add(share, pages);
		spin_unlock(&holders_lock);
	}
	if (!err)
		return 0;
	put_holders(share);
	if (err != -ENOMEM)
		afr_stat_inc(an->net, err == -EDQUOT ? AFR_STAT_RING_NO_MEMORY :
						       AFR_STAT_OVER_LIMIT);
	return err;
}

/**
 * afr_share_give() - the rings of an attach are not pinned any more
 * @share: of the attach; if nothing was taken, nothing happens
 *
 * Context: Process.
 */
void afr_share_give(struct afr_share *share)
{
	if (!share->pages)
		return;
	spin_lock(&holders_lock);
	add(share, -(long)share->pages);
	spin_unlock(&holders_lock);
	put_holders(share);
}
