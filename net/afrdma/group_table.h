/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* The structure of a link group and the table of all groups: only for group.c, group_table.c. */
#ifndef AFR_GROUP_TABLE_H
#define AFR_GROUP_TABLE_H

#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "group.h"

struct afr_group {
	struct hlist_node	hash;		/* hash, entry: under groups_lock; RCU reads hash */
	struct list_head	entry;
	refcount_t		refs;		/* the last one is dropped under groups_lock */
	struct rcu_head		rcu;
	u64			id;
	struct afr_net		*an;
	/* the peer is this host, at the same address: both ends of each link are members */
	bool			loop;
	struct work_struct	work;
	/* protects @joins, and entry and group of each struct afr_join in it */
	spinlock_t		joins_lock;
	struct list_head	joins;

	/* protects the members below, except the key, which is part of @peer and constant */
	struct mutex		lock;
	struct afr_peer		peer;
	struct list_head	members;
	unsigned int		count;		/* number of members */
	unsigned int		connecting;	/* links being connected from here: 0 or 1 */
	enum afr_reason		failure;	/* of the last attempt, for all waiting joins */
	unsigned int		short_lives;	/* short-lived links in a row: note_link_loss() */
	unsigned long		backoff;	/* after failed or short-lived links, jiffies */
	unsigned long		not_before;	/* end of the back-off, jiffies */
	struct delayed_work	memory;		/* holds a reference from remember() to forget() */
};

void afr_group_table_key_address(struct sockaddr_storage *to, const struct sockaddr_storage *from);
void afr_group_table_listener_address(struct sockaddr_storage *to, const struct afr_peer *peer);
void afr_group_table_update_peer(struct afr_peer *peer, const struct afr_peer *news);

struct afr_group *afr_group_table_find(struct afr_net *an, const struct afr_peer *key,
				       struct afr_group *last);
struct afr_group *afr_group_table_get(struct afr_net *an, const struct afr_peer *key,
				      unsigned int between, work_func_t work);
struct afr_group *afr_group_table_next(struct afr_group *g);
void afr_group_table_put(struct afr_group *g);

void afr_group_table_open(void);
void afr_group_table_close(void);
bool afr_group_table_closing(void);
void afr_group_table_wait(const struct afr_net *an);

#endif /* AFR_GROUP_TABLE_H */
