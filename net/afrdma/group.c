// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Link groups: connect links to a peer, accept them from it, and distribute connections over them.
 *
 * Each link of a group, each waiting join, and each queued work item of the group holds a reference
 * on the group. Connections that need a link wait in group->joins; one work item per group answers
 * them, and connects links when there are too few. A group connects at most one link at a time, and
 * all waiting connections share it.
 *
 * For the lock order see afrdma-internals.rst. group->lock and the locks inside it are not held
 * while waiting for the peer.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "compat.h"
#include "group.h"
#include "group_table.h"
#include "link.h"
#include "netns.h"
#include "proto/wire.h"

#define MEMBERS_MAX	32	/* limit for the links of a group, whichever end connects them */
#define BETWEEN_MAX	8	/* groups of a pair of addresses: a host may invent instances */
/* Instead of BETWEEN_MAX for joins with a traffic class: a program may try all classes. */
#define CLASSES_MAX	4
#define LINKS_MAX	16u	/* the most that needs_more_links() demands for many connections */
#define SHARERS		4	/* connections per posted receive of a link */
#define BACKOFF_MAX	(64 * HZ)
#define SMALL_MTU	1280	/* every IPv6 path carries packets of this size */

/* The entry of a link in its group. Once the entry is on the list, member_dead() frees it. */
struct group_link {
	struct list_head	entry;
	struct afr_group	*group;
	struct afr_link		*link;		/* the group's reference */
};

static struct workqueue_struct *groups_wq;

static void queue_group(struct afr_group *g)
{
	refcount_inc(&g->refs);
	if (!queue_work(groups_wq, &g->work))
		afr_group_table_put(g);
}

static void group_work(struct work_struct *work);

/* Links */

static void back_off(struct afr_group *g, unsigned long least, unsigned long most)
{
	lockdep_assert_held(&g->lock);
	g->backoff = clamp(2 * g->backoff, least, most);
	g->not_before = jiffies + g->backoff;
}

/*
 * Keeps the group for @more jiffies after its back-off, so that later joins find its count of
 * short-lived links.
 */
static void remember(struct afr_group *g, unsigned long more)
{
	lockdep_assert_held(&g->lock);
	if (afr_group_table_closing())
		return;
	refcount_inc(&g->refs);
	if (mod_delayed_work(groups_wq, &g->memory, g->backoff + more))
		afr_group_table_put(g);
}

/*
 * A link may come up on a path that carries only small packets. Connections would make no progress
 * if such a link were lost, replaced at once and lost again, for ever. So after the first link
 * that is lost soon after it came up, the next one uses small packets (as in RFC 4821, 7.7). After
 * the second in a row, no link is connected for a while, and after each further one for a longer
 * while, up to a limit. Only links that this end connected count.
 */
static void note_link_loss(struct afr_group *g, const struct afr_link *link)
{
	unsigned long retry = msecs_to_jiffies(READ_ONCE(g->an->set.attach_retry_ms));

	if (!afr_link_active(link) || !afr_link_was_up(link))
		return;
	if (!afr_link_short_lived(link)) {
		g->short_lives = 0;
		g->backoff = 0;
		return;
	}
	if (g->short_lives++)
		back_off(g, 8 * retry, 64 * retry);
	remember(g, 8 * retry);
}

/*
 * Were several links in a row short-lived, so that the group connects no new link for a while?
 * Joins that no link can take then fail with AFR_REASON_LINK_SHORT.
 */
static bool connect_suppressed(const struct afr_group *g)
{
	return g->short_lives > 1 && time_before(jiffies, g->not_before);
}

/* Upcall: the link came up, or could not be connected or accepted because of @reason. */
static void member_settled(struct afr_link *link, enum afr_reason reason)
{
	struct group_link *m = afr_link_owner(link);
	struct afr_group *g = m->group;

	mutex_lock(&g->lock);
	if (afr_link_active(link)) {
		g->connecting--;
		g->failure = reason;
		if (reason)
			back_off(g, HZ, BACKOFF_MAX);
	}
	mutex_unlock(&g->lock);
	queue_group(g);
}

static void member_dead(struct afr_link *link)
{
	struct group_link *m = afr_link_owner(link);
	struct afr_group *g = m->group;
	struct net *net = g->an->net;

	mutex_lock(&g->lock);
	list_del(&m->entry);
	g->count--;
	note_link_loss(g, link);
	mutex_unlock(&g->lock);
	queue_group(g);
	kfree(m);
	afr_link_put(link);
	afr_group_table_put(g);
	put_net(net);
}

static const struct afr_link_ops member_ops = {
	.settled	= member_settled,
	.dead		= member_dead,
};

/*
 * Allocates the entry for a new link, which pins the namespace until member_dead(). Upcalls of the
 * link may be made before add_group_link() puts the entry on the list of the group; they wait for
 * group->lock.
 */
static struct group_link *alloc_group_link(struct afr_group *g)
{
	struct group_link *m;

	lockdep_assert_held(&g->lock);
	/* afr_group_unused() sees this group, or this function sees that no socket is left */
	smp_mb();
	if (afr_group_table_closing() || afr_netns_unused(g->an))
		return ERR_PTR(-ESHUTDOWN);
	if (g->count >= MEMBERS_MAX)
		return ERR_PTR(-EMLINK);
	m = kzalloc_obj(*m);
	if (!m)
		return ERR_PTR(-ENOMEM);
	/* nothing else pins the namespace, if the connections that wait for the link are gone */
	if (!maybe_get_net(g->an->net)) {
		kfree(m);
		return ERR_PTR(-ESHUTDOWN);
	}
	m->group = g;
	return m;
}

/* Adds @link to the group of @m; if @link is an error, frees @m and returns the error. */
static int add_group_link(struct group_link *m, struct afr_link *link)
{
	struct afr_group *g = m->group;

	lockdep_assert_held(&g->lock);
	if (IS_ERR(link)) {
		put_net(g->an->net);
		kfree(m);
		return PTR_ERR(link);
	}
	m->link = link;
	list_add_tail(&m->entry, &g->members);
	g->count++;
	refcount_inc(&g->refs);
	return 0;
}

static int connect_link(struct afr_group *g)
{
	struct group_link *m = alloc_group_link(g);
	struct sockaddr_storage remote;
	struct afr_link_peer peer;
	int err;

	if (IS_ERR(m))
		return PTR_ERR(m);
	memcpy(peer.instance, g->peer.instance, sizeof(peer.instance));
	memcpy(peer.secret, g->peer.secret, sizeof(peer.secret));
	peer.tclass = g->peer.tclass;
	peer.mtu = g->short_lives ? min_not_zero(g->peer.mtu, (u32)SMALL_MTU) : g->peer.mtu;
	afr_group_table_listener_address(&remote, &g->peer);
	err = add_group_link(m, afr_link_connect(g->an, (struct sockaddr *)&g->peer.local,
						 (struct sockaddr *)&remote,
						 &peer, &member_ops, m));
	g->connecting += !err;
	return err;
}

static enum afr_reason reason_of(long err)
{
	switch (err) {
	case -ENOSPC:		return AFR_REASON_GROUP_LIMIT;
	case -EMLINK:		return AFR_REASON_LINK_LIMIT;
	case -ESHUTDOWN:	return AFR_REASON_LINK_SHUTDOWN;
	default:		return AFR_REASON_NO_MEMORY;
	}
}

static void count_limit(const struct afr_net *an, long err)
{
	if (err == -ENOSPC)
		afr_netns_count(an->net, AFR_STAT_OVER_LIMIT);
}

/*
 * Fails the link that was accepted for an earlier request with the same link id. A peer that
 * received no answer destroys its queue pair and repeats its request, with the same id and a new
 * queue pair. So an ATTACH with the id must not use the earlier link, whose queue pair has lost
 * its peer.
 */
static void fail_duplicates(struct afr_group *g, u64 id)
{
	struct group_link *m;

	lockdep_assert_held(&g->lock);
	list_for_each_entry(m, &g->members, entry)
		if (!afr_link_active(m->link) && afr_link_id(m->link) == id)
			afr_link_fail(m->link, AFR_REASON_LINK_DISCONNECTED);
}

/**
 * afr_group_accept() - accept a link from a peer
 * @an: namespace
 * @id: rdma_cm id of the connect request
 * @req: private data of the request; the caller has checked it, including the secret
 *
 * Context: process.
 * Return: AFR_REASON_NONE, and the link owns @id; else the reason for the refusal.
 */
enum afr_reason afr_group_accept(struct afr_net *an, struct rdma_cm_id *id,
				 const struct afr_wire_cm_req *req)
{
	struct afr_peer key = {};
	struct afr_group *g;
	struct group_link *m;
	int err;

	memcpy(key.instance, req->instance, sizeof(key.instance));
	key.tclass = req->tclass;
	afr_group_table_key_address(&key.local, &id->route.addr.src_addr);
	afr_group_table_key_address(&key.remote, &id->route.addr.dst_addr);
	g = afr_group_table_get(an, &key, BETWEEN_MAX, group_work);
	if (IS_ERR(g)) {
		count_limit(an, PTR_ERR(g));
		return reason_of(PTR_ERR(g));
	}
	mutex_lock(&g->lock);
	fail_duplicates(g, be64_to_cpu(req->link));
	m = alloc_group_link(g);
	err = PTR_ERR_OR_ZERO(m) ?: add_group_link(m, afr_link_accept(an, id, req, &member_ops, m));
	mutex_unlock(&g->lock);
	afr_group_table_put(g);
	return err ? reason_of(err) : AFR_REASON_NONE;
}

/*
 * Returns a reference on the link with the fewest users among those that are up, or NULL if none
 * is. If several have the fewest, they are taken in turn.
 */
static struct afr_link *pick_link(struct afr_group *g)
{
	struct group_link *m, *best = NULL;

	lockdep_assert_held(&g->lock);
	list_for_each_entry(m, &g->members, entry)
		if (afr_link_is_up(m->link) &&
		    (!best || afr_link_users(m->link) < afr_link_users(best->link)))
			best = m;
	if (!best)
		return NULL;
	list_move_tail(&best->entry, &g->members);
	afr_link_get(best->link);
	return best->link;
}

/*
 * Should one more link be connected in the background? serve() asks after it has answered joins
 * with a link, so a group grows by one link at a time. It grows to links_per_group links, so that
 * the CPUs share the load. Each message in flight on a link needs one of its link_depth receives,
 * so the group grows further, up to LINKS_MAX links, when SHARERS or more connections share a
 * receive. With the default link_depth, that happens from 1024 * links_per_group connections on.
 */
static bool needs_more_links(const struct afr_group *g)
{
	unsigned int ends = g->loop ? 2 : 1, users = 0, most;
	const struct group_link *m;

	list_for_each_entry(m, &g->members, entry)
		users += afr_link_users(m->link);
	most = users / ends / (SHARERS * afr_netns_least(g->an, link_depth)) + 1;
	most = max_t(unsigned int, min(most, LINKS_MAX), afr_netns_least(g->an, links_per_group));
	return DIV_ROUND_UP(g->count, ends) < most && !g->connecting &&
	       !time_before(jiffies, g->not_before);
}

/* Joins */

/* Answers the first waiting join, if there still is one; takes over the reference on @link. */
static void answer_first(struct afr_group *g, struct afr_link *link, enum afr_reason reason)
{
	struct afr_join *join;

	spin_lock(&g->joins_lock);
	join = list_first_entry_or_null(&g->joins, struct afr_join, entry);
	if (join) {
		list_del(&join->entry);
		join->joined(join, link, reason);
		/* now afr_group_join_cancel() need not take the lock, and @join may be freed */
		smp_store_release(&join->group, NULL);
	}
	spin_unlock(&g->joins_lock);
	if (join)
		afr_group_table_put(g);
	else if (link)
		afr_link_put(link);
}

static bool joins_wait(struct afr_group *g)
{
	bool wait;

	spin_lock(&g->joins_lock);
	wait = !list_empty(&g->joins);
	spin_unlock(&g->joins_lock);
	return wait;
}

/*
 * Answers all waiting joins with a link, if one is up. If none is up, but one is being connected,
 * they go on waiting for it. If there is neither, starts to connect one for them, or answers them
 * with the reason why that has failed or must not be tried now. After joins have got a link,
 * connects one more in the background if needs_more_links().
 */
static void serve(struct afr_group *g)
{
	struct afr_link *link;
	enum afr_reason reason;
	bool used = false;
	int err = 0;

	lockdep_assert_held(&g->lock);
	while (joins_wait(g)) {
		link = pick_link(g);
		if (!link && g->connecting)
			return;
		if (!link && !g->failure && !connect_suppressed(g)) {
			err = connect_link(g);
			if (!err)
				return;
		}
		reason = link ? AFR_REASON_NONE : g->failure ?:
			 connect_suppressed(g) ? AFR_REASON_LINK_SHORT : reason_of(err);
		used |= !!link;
		answer_first(g, link, reason);
		cond_resched();
	}
	g->failure = AFR_REASON_NONE;
	if (used && needs_more_links(g))
		connect_link(g);
}

static void group_work(struct work_struct *work)
{
	struct afr_group *g = container_of(work, struct afr_group, work);

	mutex_lock(&g->lock);
	serve(g);
	mutex_unlock(&g->lock);
	afr_group_table_put(g);
}

/**
 * afr_group_join() - find or connect a link to a peer
 * @an: namespace
 * @peer: the peer, from the TCP connection, HELLO and SERVICE
 * @join: its joined() is called with the result, before or after this function returns, unless
 *	afr_group_join_cancel() is called first
 *
 * More links, as many as needs_more_links() demands, are connected in the background, and
 * connections are distributed over those that are up. If there are too many traffic classes, the
 * connection gets a link without a class.
 *
 * Context: process. Does not wait for the peer.
 */
void afr_group_join(struct afr_net *an, const struct afr_peer *peer, struct afr_join *join)
{
	struct afr_peer key = *peer;
	struct afr_group *g;

	join->group = NULL;
	if (!peer->port) {
		join->joined(join, NULL, AFR_REASON_PEER_NO_SERVICE);
		return;
	}
	afr_group_table_key_address(&key.local, &peer->local);
	afr_group_table_key_address(&key.remote, &peer->remote);
	g = afr_group_table_get(an, &key, key.tclass ? CLASSES_MAX : BETWEEN_MAX, group_work);
	if (g == ERR_PTR(-ENOSPC) && key.tclass) {
		key.tclass = 0;
		g = afr_group_table_get(an, &key, BETWEEN_MAX, group_work);
	}
	if (IS_ERR(g)) {
		count_limit(an, PTR_ERR(g));
		join->joined(join, NULL, reason_of(PTR_ERR(g)));
		return;
	}
	mutex_lock(&g->lock);
	afr_group_table_update_peer(&g->peer, &key);
	mutex_unlock(&g->lock);
	refcount_inc(&g->refs);	/* for the join, until it is answered or cancelled */
	spin_lock(&g->joins_lock);
	join->group = g;
	list_add_tail(&join->entry, &g->joins);
	spin_unlock(&g->joins_lock);
	queue_group(g);
	afr_group_table_put(g);
}

/**
 * afr_group_join_cancel() - stop waiting for a link
 * @join: waiting, answered, or zeroed
 *
 * Afterwards joined() has returned, or will never be called.
 *
 * Context: process; not in joined().
 */
void afr_group_join_cancel(struct afr_join *join)
{
	struct afr_group *g;
	bool waits = false;

	rcu_read_lock();	/* answer_first() may drop the last reference on the group */
	g = smp_load_acquire(&join->group);
	if (g) {
		spin_lock(&g->joins_lock);
		waits = join->group;
		if (waits)
			list_del(&join->entry);
		join->group = NULL;
		spin_unlock(&g->joins_lock);
	}
	rcu_read_unlock();
	if (waits)
		afr_group_table_put(g);
}

/* Lookup */

static struct afr_link *find_member(struct afr_group *g, u64 id, bool active)
{
	struct afr_link *link = NULL;
	struct group_link *m;

	mutex_lock(&g->lock);
	list_for_each_entry(m, &g->members, entry) {
		if (afr_link_id(m->link) != id || afr_link_active(m->link) != active)
			continue;
		link = m->link;
		afr_link_get(link);
		break;
	}
	mutex_unlock(&g->lock);
	return link;
}

/**
 * afr_group_find_link() - find the local end of a link that the peer named in ATTACH
 * @an: namespace
 * @peer: the peer
 * @id: id of the link
 * @peer_active: true if the peer connected the link, false if this host did
 *
 * The traffic class in @peer is ignored: the client has chosen that of the link.
 *
 * Context: process.
 * Return: the link with a reference, perhaps failed already; NULL if @peer has no such link.
 */
struct afr_link *afr_group_find_link(struct afr_net *an, const struct afr_peer *peer, u64 id,
				     bool peer_active)
{
	struct afr_peer key = *peer;
	struct afr_link *link = NULL;
	struct afr_group *g = NULL;

	afr_group_table_key_address(&key.local, &peer->local);
	afr_group_table_key_address(&key.remote, &peer->remote);
	while (!link && (g = afr_group_table_find(an, &key, g)))
		link = find_member(g, id, !peer_active);
	if (g)
		afr_group_table_put(g);
	return link;
}

static int visit_members(struct afr_group *g, afr_group_visit *fn, void *arg)
{
	struct group_link *m;
	int ret = 0;

	mutex_lock(&g->lock);
	list_for_each_entry(m, &g->members, entry) {
		ret = fn(m->link, &g->peer, arg);
		if (ret)
			break;
	}
	mutex_unlock(&g->lock);
	return ret;
}

/**
 * afr_group_for_each_link() - visit every link
 * @an: visit only links of this namespace, or NULL for all
 * @fn: ends the walk by returning non-zero; may sleep and may call afr_link_fail(), but must not
 *	call functions of this file
 * @arg: passed to @fn
 *
 * Context: process. @fn runs under the lock of the group.
 * Return: the last return value of @fn, 0 if there are no links.
 */
int afr_group_for_each_link(struct afr_net *an, afr_group_visit *fn, void *arg)
{
	struct afr_group *g = afr_group_table_next(NULL);
	int ret = 0;

	for (; g && !ret; g = afr_group_table_next(g))
		if (!an || g->an == an)
			ret = visit_members(g, fn, arg);
	if (g)
		afr_group_table_put(g);
	return ret;
}

static int shut_down(struct afr_link *link, const struct afr_peer *peer, void *arg)
{
	afr_link_fail(link, AFR_REASON_LINK_SHUTDOWN);
	return 0;
}

static int expire(struct afr_link *link, const struct afr_peer *peer, void *arg)
{
	afr_link_expire(link);
	return 0;
}

/**
 * afr_group_unused() - the last AF_RDMA socket of a namespace was closed
 * @an: namespace
 *
 * Links pin the namespace, so idle ones are taken down at once, except in the initial namespace,
 * which never ends. Links in use follow as soon as their last channel has left.
 *
 * Context: process.
 */
void afr_group_unused(struct afr_net *an)
{
	smp_mb();	/* see alloc_group_link() */
	if (!net_eq(an->net, &init_net) && READ_ONCE(an->groups))
		afr_group_for_each_link(an, expire, NULL);
}

/*
 * Executes pending ->memory work of the groups of @an, or of all groups if @an is NULL, at once
 * instead of after its delay, and waits for it.
 */
static void forget_all(const struct afr_net *an)
{
	struct afr_group *g = NULL;

	while ((g = afr_group_table_next(g)))
		if (!an || g->an == an)
			flush_delayed_work(&g->memory);
}

/*
 * A namespace ends. Each link pins its namespace, so this one has no links left and gets no new
 * ones. Its groups may remain, and only their ->memory work can hold them for long: executes that
 * work without its delay, and waits until the groups are gone.
 */
static void __net_exit leave_netns(struct net *net)
{
	forget_all(afr_net(net));
	afr_group_table_wait(afr_net(net));
}

static struct pernet_operations netns_ops = {
	.exit	= leave_netns,
};

/**
 * afr_group_init() - start the group layer
 *
 * Context: module load, after afr_link_init() and afr_netns_init().
 * Return: 0 or a negative error.
 */
int afr_group_init(void)
{
	int err;

	afr_group_table_open();
	groups_wq = alloc_workqueue("afrdma_group", WQ_UNBOUND, 0);
	if (!groups_wq)
		return -ENOMEM;
	err = register_pernet_subsys(&netns_ops);
	if (err)
		destroy_workqueue(groups_wq);
	return err;
}

/**
 * afr_group_exit() - take down all links and wait until all groups have left the table
 *
 * Context: module exit; there are no sockets any more, and so no cm listener.
 */
void afr_group_exit(void)
{
	afr_group_table_close();
	/*
	 * This takes the lock of each group, under which remember() checks that the table is not
	 * closed. So afterwards no group queues its ->memory work.
	 */
	afr_group_for_each_link(NULL, shut_down, NULL);
	forget_all(NULL);
	afr_group_table_wait(NULL);
	unregister_pernet_subsys(&netns_ops);
	destroy_workqueue(groups_wq);
	rcu_barrier();
}
