/* SPDX-License-Identifier: GPL-2.0 */
/* The inside of a group, and the table of all groups. Only group.c includes this. */
#ifndef AFR_GROUP_TABLE_H
#define AFR_GROUP_TABLE_H

#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "group.h"

struct afr_group {
	struct hlist_node	hash;		/* these three: of the table */
	struct list_head	entry;
	refcount_t		refs;
	u64			id;
	struct afr_net		*an;
	bool			loop;		/* the peer is us: every link is here twice */
	struct work_struct	work;
	struct list_head	joins;		/* joins_lock of group.c */

	struct mutex		lock;		/* all below */
	struct afr_peer		peer;
	struct list_head	members;
	unsigned int		count;		/* of members */
	unsigned int		connecting;	/* links we are connecting: 0 or 1 */
	enum afr_reason		failure;	/* of the last try; all are told */
	unsigned int		short_lives;	/* links in a row that were lost soon */
	unsigned long		backoff;	/* behind them; of further links, after failures */
	unsigned long		not_before;
	struct delayed_work	memory;		/* has a reference: back-off outlives links */
};

/* Addresses in keys are plain. */
void afr_group_table_plain(struct sockaddr_storage *to, const struct sockaddr_storage *from);
void afr_group_table_service(struct sockaddr_storage *to, const struct afr_peer *peer);
void afr_group_table_learn(struct afr_peer *peer, const struct afr_peer *news);
struct afr_group *afr_group_table_find(struct afr_net *an, const struct afr_peer *key);
struct afr_group *afr_group_table_get(struct afr_net *an, const struct afr_peer *key,
				      work_func_t work);
struct afr_group *afr_group_table_next(struct afr_group *g);
void afr_group_table_put(struct afr_group *g);

void afr_group_table_open(void);
void afr_group_table_close(void);
bool afr_group_table_closing(void);
void afr_group_table_wait(void);

#endif /* AFR_GROUP_TABLE_H */
