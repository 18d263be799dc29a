// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The table of all link groups, hashed by peer instance. Dropping the last reference removes the
 * group. Lookups of peers use RCU, so that connections can be set up on many processors at once;
 * they do not find a group without references.
 *
 * Locks: groups_lock is a leaf, held briefly.
 */
#include <linux/hashtable.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/jhash.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "compat.h"
#include "group_table.h"
#include "netns.h"
#include "trace.h"

static DEFINE_HASHTABLE(groups, 8);
static LIST_HEAD(groups_list);
static int groups_count;
static bool groups_closing;
static u64 groups_ids;
static u32 groups_seed;
/*
 * Protects all of the above except groups_seed, which does not change after module load. The hash
 * table is also read under RCU, and groups_closing without a lock.
 */
static DEFINE_SPINLOCK(groups_lock);
static DECLARE_WAIT_QUEUE_HEAD(groups_gone);

/**
 * afr_group_table_put() - drop a reference
 * @g: group
 *
 * Context: process.
 */
void afr_group_table_put(struct afr_group *g)
{
	/* under the lock, every group in the table has a reference */
	if (!refcount_dec_and_lock(&g->refs, &groups_lock))
		return;
	hash_del_rcu(&g->hash);
	list_del(&g->entry);
	groups_count--;
	WRITE_ONCE(g->an->groups, g->an->groups - 1);
	spin_unlock(&groups_lock);
	trace_afrdma_group_destroy(g->id);
	mutex_destroy(&g->lock);
	kfree_rcu(g, rcu);
	wake_up_all(&groups_gone);
}

/**
 * afr_group_table_key_address() - convert an address to the form that keys of the table have
 * @to: out: the address without port; a v4-mapped one becomes AF_INET, because rdma_cm does not
 *	use mapped addresses
 * @from: AF_INET or AF_INET6
 *
 * Context: any.
 */
void afr_group_table_key_address(struct sockaddr_storage *to, const struct sockaddr_storage *from)
{
	const struct sockaddr_in6 *from6 = (const struct sockaddr_in6 *)from;
	struct sockaddr_in6 *to6 = (struct sockaddr_in6 *)to;
	struct sockaddr_in *to4 = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = from->ss_family;
	if (from->ss_family == AF_INET) {
		to4->sin_addr = ((const struct sockaddr_in *)from)->sin_addr;
	} else if (ipv6_addr_v4mapped(&from6->sin6_addr)) {
		to4->sin_family = AF_INET;
		to4->sin_addr.s_addr = from6->sin6_addr.s6_addr32[3];
	} else {
		to6->sin6_addr = from6->sin6_addr;
		to6->sin6_scope_id = from6->sin6_scope_id;
	}
}

/**
 * afr_group_table_listener_address() - get the address of a peer's cm listener
 * @to: out: the peer's address and the port of its cm listener
 * @peer: the peer
 *
 * Context: any.
 */
void afr_group_table_listener_address(struct sockaddr_storage *to, const struct afr_peer *peer)
{
	*to = peer->remote;
	if (to->ss_family == AF_INET)
		((struct sockaddr_in *)to)->sin_port = htons(peer->port);
	else
		((struct sockaddr_in6 *)to)->sin6_port = htons(peer->port);
}

/**
 * afr_group_table_update_peer() - update what a group knows about its peer
 * @peer: peer of the group; if the group was created for an accepted link, the secret, port, MTU
 *	and, on RoCE, the scopes are missing until the first call
 * @news: what the connection of the latest join knows about the peer, with addresses from
 *	afr_group_table_key_address()
 *
 * Context: process, under the lock of the group.
 */
void afr_group_table_update_peer(struct afr_peer *peer, const struct afr_peer *news)
{
	memcpy(peer->secret, news->secret, sizeof(peer->secret));
	peer->port = news->port;
	peer->mtu = news->mtu;
	if (peer->local.ss_family != AF_INET6)
		return;
	((struct sockaddr_in6 *)&peer->local)->sin6_scope_id =
		((const struct sockaddr_in6 *)&news->local)->sin6_scope_id;
	((struct sockaddr_in6 *)&peer->remote)->sin6_scope_id =
		((const struct sockaddr_in6 *)&news->remote)->sin6_scope_id;
}

/* Ignores the scope: on RoCE, rdma_cm requests have none; and the instance identifies the host. */
static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return ipv6_addr_equal(&((const struct sockaddr_in6 *)a)->sin6_addr,
			       &((const struct sockaddr_in6 *)b)->sin6_addr);
}

static u32 hash_of(const u8 instance[16])
{
	return jhash(instance, 16, groups_seed);
}

/* Is @g a group of the peer that @key describes, of whatever traffic class? For lookups. */
static bool is_of(const struct afr_group *g, const struct afr_net *an, const struct afr_peer *key)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held() && !lockdep_is_held(&groups_lock),
			 "lookup of a link group without a lock");
	return g->an == an && !memcmp(g->peer.instance, key->instance, sizeof(key->instance)) &&
	       same_address(&g->peer.local, &key->local) &&
	       same_address(&g->peer.remote, &key->remote);
}

/* Under RCU or groups_lock. Returns the group with a reference, or NULL. */
static struct afr_group *find_group(struct afr_net *an, const struct afr_peer *key)
{
	struct afr_group *g;

	hash_for_each_possible_rcu(groups, g, hash, hash_of(key->instance),
				   lockdep_is_held(&groups_lock))
		if (is_of(g, an, key) && g->peer.tclass == key->tclass &&
		    refcount_inc_not_zero(&g->refs))
			return g;
	return NULL;
}

/**
 * afr_group_table_find() - walk over the groups of a peer, one for each traffic class
 * @an: namespace
 * @key: instance and addresses from afr_group_table_key_address()
 * @last: the previous group, whose reference is dropped; or NULL to start
 *
 * Context: process.
 * Return: the next group, with a reference; or NULL at the end.
 */
struct afr_group *afr_group_table_find(struct afr_net *an, const struct afr_peer *key,
				       struct afr_group *last)
{
	struct afr_group *g, *found = NULL;
	bool passed = !last;

	rcu_read_lock();
	hash_for_each_possible_rcu(groups, g, hash, hash_of(key->instance)) {
		if (passed && is_of(g, an, key) && refcount_inc_not_zero(&g->refs)) {
			found = g;
			break;
		}
		passed |= g == last;	/* its reference keeps it in the table */
	}
	rcu_read_unlock();
	if (last)
		afr_group_table_put(last);
	return found;
}

/* Are both in the same IPv6 /64? A host may use every address of its /64. False for IPv4. */
static bool same_prefix(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	return a->ss_family == AF_INET6 && b->ss_family == AF_INET6 &&
	       ipv6_prefix_equal(&((const struct sockaddr_in6 *)a)->sin6_addr,
				 &((const struct sockaddr_in6 *)b)->sin6_addr, 64);
}

/*
 * May a /64 or namespace that has @held of the @taken groups get another one? Not if @most are
 * taken. If it has groups, it may get one more only if it has fewer than can still be created.
 */
static bool has_share(int held, int taken, int most)
{
	return taken < most && (!held || held < most - taken);
}

/*
 * Would one more group exceed a limit? A pair of addresses normally has one group for each traffic
 * class that programs use and, for a while after the peer has restarted, also the groups of the
 * peer's earlier instances. A pair has at most @between groups. A /64 has only a share of
 * groups_max, so that a host does not get all groups by using many of its addresses. groups_max of
 * the initial namespace limits all namespaces together. Half of it is reserved for the initial one,
 * which may also use the rest; each of the others has only a share of the other half, so that no
 * container gets all groups of the host.
 */
static bool too_many(struct afr_net *an, const struct afr_peer *key, unsigned int between)
{
	int max = READ_ONCE(an->set.groups_max), prefix = 0;
	const struct afr_net *host = afr_net(&init_net);
	int max_all = READ_ONCE(host->set.groups_max);
	unsigned int pair = 0;
	struct afr_group *g;

	lockdep_assert_held(&groups_lock);
	list_for_each_entry(g, &groups_list, entry) {
		if (g->an != an)
			continue;
		pair += same_address(&g->peer.local, &key->local) &&
			same_address(&g->peer.remote, &key->remote);
		prefix += same_prefix(&g->peer.remote, &key->remote);
	}
	return pair >= between || !has_share(prefix, an->groups, max) ||
	       groups_count >= max_all ||
	       (an != host && !has_share(an->groups, groups_count - host->groups, max_all / 2));
}

/* Delayed work started by remember() of group.c: drops the reference that remember() took. */
static void forget(struct work_struct *work)
{
	afr_group_table_put(container_of(to_delayed_work(work), struct afr_group, memory));
}

static struct afr_group *new_group(struct afr_net *an, const struct afr_peer *key,
				   work_func_t work)
{
	struct afr_group *g = kzalloc_obj(*g);

	if (!g)
		return NULL;
	refcount_set(&g->refs, 1);
	g->an = an;
	g->peer = *key;
	g->loop = !memcmp(key->instance, an->instance, sizeof(key->instance)) &&
		  same_address(&key->local, &key->remote);
	INIT_WORK(&g->work, work);
	INIT_DELAYED_WORK(&g->memory, forget);
	spin_lock_init(&g->joins_lock);
	INIT_LIST_HEAD(&g->joins);
	mutex_init(&g->lock);
	INIT_LIST_HEAD(&g->members);
	return g;
}

/**
 * afr_group_table_get() - find or create the group of a peer
 * @an: namespace
 * @key: instance, traffic class, and addresses from afr_group_table_key_address()
 * @between: maximum number of groups between the two addresses
 * @work: work function for the group, if it is created
 *
 * Context: process.
 * Return: the group with a reference; or, if there is none and it cannot be created, ERR_PTR():
 * -ENOMEM; -ENOSPC if a limit that too_many() checks is reached; -ESHUTDOWN if the table is closed.
 */
struct afr_group *afr_group_table_get(struct afr_net *an, const struct afr_peer *key,
				      unsigned int between, work_func_t work)
{
	struct afr_group *g, *fresh;
	int err = 0;

	rcu_read_lock();
	g = find_group(an, key);
	rcu_read_unlock();
	if (g)
		return g;
	fresh = new_group(an, key, work);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	spin_lock(&groups_lock);
	g = find_group(an, key);
	if (!g && groups_closing) {
		err = -ESHUTDOWN;
	} else if (!g && too_many(an, key, between)) {
		err = -ENOSPC;
	} else if (!g) {
		g = fresh;
		fresh = NULL;
		g->id = ++groups_ids;
		groups_count++;
		WRITE_ONCE(an->groups, an->groups + 1);
		hash_add_rcu(groups, &g->hash, hash_of(key->instance));
		list_add_tail(&g->entry, &groups_list);
	}
	spin_unlock(&groups_lock);
	if (!fresh)
		trace_afrdma_group_create(g->id);
	kfree(fresh);
	return err ? ERR_PTR(err) : g;
}

/**
 * afr_group_table_next() - walk over all groups
 * @g: the previous group, whose reference is dropped; or NULL to start
 *
 * Context: process.
 * Return: the next group, with a reference; or NULL at the end.
 */
struct afr_group *afr_group_table_next(struct afr_group *g)
{
	struct afr_group *next;

	spin_lock(&groups_lock);
	next = g ? list_next_entry(g, entry) :
		   list_first_entry(&groups_list, struct afr_group, entry);
	if (list_entry_is_head(next, &groups_list, entry))
		next = NULL;
	else
		refcount_inc(&next->refs);
	spin_unlock(&groups_lock);
	if (g)
		afr_group_table_put(g);
	return next;
}

/**
 * afr_group_table_open() - allow groups to be created
 *
 * Context: module load.
 */
void afr_group_table_open(void)
{
	groups_seed = get_random_u32();
	groups_closing = false;
}

/**
 * afr_group_table_close() - refuse new groups, and new links in existing ones
 *
 * Context: module exit.
 */
void afr_group_table_close(void)
{
	spin_lock(&groups_lock);
	WRITE_ONCE(groups_closing, true);
	spin_unlock(&groups_lock);
}

/**
 * afr_group_table_closing() - has afr_group_table_close() been called?
 *
 * Context: any.
 * Return: true if so.
 */
bool afr_group_table_closing(void)
{
	return READ_ONCE(groups_closing);
}

static bool all_gone(const struct afr_net *an)
{
	bool gone;

	spin_lock(&groups_lock);
	gone = !(an ? an->groups : groups_count);
	spin_unlock(&groups_lock);
	return gone;
}

/**
 * afr_group_table_wait() - wait until all groups have left the table
 * @an: wait only for those of this namespace, or NULL for all
 *
 * Context: process; nothing creates such groups any more.
 */
void afr_group_table_wait(const struct afr_net *an)
{
	wait_event(groups_gone, all_gone(an));
}
