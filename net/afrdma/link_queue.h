/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * The private definition of a link, and its queues: posting, completions and credits. This file is
 * included by channel.c, link.c, link_cm.c, link_keepalive.[ch], link_pace.[ch], link_queue.c, the
 * code under test/, and mr.c, which posts registrations and invalidations to the send queue.
 * rdma_tx.c and tx_policy.c include it through link_pace.h.
 */
#ifndef AFR_LINK_QUEUE_H
#define AFR_LINK_QUEUE_H

#include <linux/completion.h>
#include <linux/ktime.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "link.h"
#include "link_wr.h"
#include "proto/link_credit.h"
#include "proto/wire.h"

/* Send slots that channels leave free for announcements, probes, registrations, invalidations. */
#define AFR_SQ_RESERVE		4

/* Bits of link->events: what the link worker has to handle. Set in any context. */
enum afr_link_event {
	AFR_LINK_EV_RESOLVE,	/* active: start to connect */
	AFR_LINK_EV_ROUTE,	/* active: route resolved: create the queue pair, connect */
	AFR_LINK_EV_ACCEPT,	/* passive: create the queue pair, accept */
	AFR_LINK_EV_STALE,	/* active: rejected because of a stale connection: retry */
	AFR_LINK_EV_UP,		/* the link is up: report this to the group layer */
	AFR_LINK_EV_COMM_EST,	/* first message arrived, maybe during handshake: tell rdma_cm */
	AFR_LINK_EV_TIMER,	/* link->timer has expired */
	AFR_LINK_EV_QP,		/* a fatal event of the queue pair: the link fails */
};

/* A registration or invalidation whose completion a task waits for. */
struct afr_link_op {
	struct completion done;
	bool ok;
};

/* Send context of a signaled request; link->sq.sends holds them in the order of posting. */
struct afr_link_send {
	u16 count;		/* slots to release, with those of unsignaled requests before it */
	u16 id;			/* call @report for this channel, if its serial is still @serial */
	u32 bulk;		/* bytes to take off link->pace.in_flight */
	ktime_t posted;		/* time of posting, if @bulk is set */
	u64 sent;		/* sq.bytes before the bytes of this request were added */
	void (*report)(struct afr_channel *channel);
	u32 serial;
	struct afr_link_op *op;
};

/*
 * The rdma_cm handshake. Written by the link worker, or before it is first queued; constant from
 * settled() until the link is taken down.
 */
struct afr_link_handshake {
	struct rdma_cm_id *id;
	u32 port_num;			/* written under link->lock */
	u32 qpn, peer_qpn;
	u16 peer_depth;			/* passive: from the connect request */
	unsigned int retries;		/* after rejections as stale */
	unsigned long end;		/* jiffies: connect timeout */
	bool accepted;			/* passive, not iWARP: the queue pair may send */
};

/*
 * What the link has reported to the group layer, what dead() may query, and whether the queue pair
 * must be drained (@used). Link worker only, except that afr_link_queue_up() sets @used, and
 * checks in send_done() and recv_done() read it.
 */
struct afr_link_life {
	bool settled;			/* settled() was called ... */
	bool was_up;			/* ... with reason 0 */
	/*
	 * jiffies: when the link died. may_end() is false until PORT_WAIT after that, because the
	 * port may come up again.
	 */
	unsigned long dead_since;
	unsigned long up_since;		/* jiffies */
	bool in_use;			/* there were channels when it was taken down */
	bool used;			/* came up: the peer may know keys; set under link->lock */
};

/*
 * The send queue, and the channels that wait for a credit or slot. Under link->lock, except while
 * the link worker sets up, drains or frees the queue pair. @tail and @done are read without the
 * lock, too.
 */
struct afr_link_sq {
	struct afr_link_credit credit;
	u16 size, used, unsignaled;	/* slots: all, taken, taken since the last signal */
	u32 head, tail;			/* of @sends, free-running */
	u32 entries;			/* of @sends: at least @size; power of two, as head wraps */
	struct afr_link_send *sends;
	struct list_head waiters;	/* channels whose write waits for a credit or slot */
	struct list_head detach_waiters; /* channels whose DETACH waits likewise: served first */
	unsigned int nr_waiting;	/* channels on either of these two lists */
	struct afr_channel *kicked;	/* whose kick() is being called: it may post one message */
	/*
	 * Post an announcement even if none is due: with @ask, to request an announcement of the
	 * peer; with @answer, because the peer has requested one.
	 */
	bool ask, answer;
	u32 posts;			/* successful calls of sq_post() */
	u64 bytes, writes;
	/* bytes of the writes posted before the last signaled request that has completed */
	u64 done;
};

/*
 * Pacing. Under link->lock, except that afr_link_queue_free() clears @in_flight without it. @last,
 * @others_until, @last_until and @limit are read without the lock, too.
 */
struct afr_link_pace {
	const struct afr_channel *last;	/* the last on @latency; compared, not dereferenced */
	u64 others_until;		/* jiffies64: end of pacing for all channels but @last */
	u64 last_until;			/* jiffies64: end of pacing for @last */
	u32 in_flight;			/* bytes of bulk in flight that was posted while paced */
	u32 limit;			/* paced bulk must wait unless @in_flight is below this */
	u32 min_us;			/* estimated time of a write on an empty queue, in us */
	struct list_head held;		/* channels whose bulk is held back */
	/*
	 * Channels that have posted a latency-sensitive write, and no bulk since, in the order of
	 * their last latency-sensitive writes. A write that was refused counts, too.
	 */
	struct list_head latency;
};

/* Keepalive. Under link->lock. */
struct afr_link_keepalive {
	struct timer_list tail;		/* posts tail probes, in case the last packet was lost */
	u32 tail_posts;			/* sq.posts when @tail was started last */
	/* when @tail was started last: tail probes tried since the last post of anything else */
	unsigned int tail_probes;
	unsigned long idle_end;		/* jiffies: when to take down a link without channels */
	/* checks since afr_link_keepalive_start(); a check that finds activity sets it to 1 */
	unsigned int silent_checks;
	u32 last_sq_tail;		/* sq.tail at the last check */
	u64 last_rx_writes;		/* rx.writes at the last check */
};

/* The channels of the link. Under link->lock, except @ids; @count is also read without it. */
struct afr_link_members {
	struct list_head list;		/* joined, and down() was not called yet */
	unsigned int count;		/* joined */
	unsigned int retired;		/* ids that are not used again */
	u32 serial;			/* of the last join */
	struct afr_channel *down_channel;	/* channel whose down() is running ... */
	struct task_struct *down_task;		/* ... in this task */
	/* id -> channel, or a value if the id is retired; under its xa_lock, read under RCU */
	struct xarray ids;
};

/* Receiving. While receives are posted, only their completions write here, one at a time. */
struct afr_link_rx {
	struct afr_link_wr_rx queue;
	bool broken;			/* the peer violated the protocol: ignore its messages */
	u64 bytes, writes;
};

struct afr_link {
	/* constant */
	u64 id;				/* shared with the other end, which may be on this host */
	bool active;
	struct afr_net *an;
	const struct afr_link_ops *ops;
	void *owner;
	struct afr_link_peer peer;
	struct sockaddr_storage local, remote;

	refcount_t refs;
	struct rcu_head rcu;
	struct list_head entry;		/* on the list of all links */
	struct work_struct work;	/* the link worker */
	struct work_struct free_work;
	unsigned long events;		/* bits numbered by enum afr_link_event */
	struct timer_list timer;	/* for connecting; keepalive or idle time; freeing cm.id */
	wait_queue_head_t wait;		/* for send slots, and the end of a down() upcall */

	/*
	 * Written by the link worker (exceptions in @cm and @life: see their types); constant from
	 * settled() until the link is taken down.
	 */
	struct afr_device *dev;		/* written under link->lock */
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u32 mtu;			/* of the path; 0 until the link is up */
	u32 write_max;			/* largest length of one write */
	/* the device has no immediates; the peer's first message brings the link up */
	bool iwarp;
	struct afr_link_handshake cm;
	struct afr_link_life life;

	/*
	 * BH; held to change the members from here to @members. Exceptions: the link worker clears
	 * @retrying without the lock; for @sq to @members see their types.
	 */
	spinlock_t lock;
	enum afr_link_state state;
	bool retrying;			/* cm.id is being replaced: the link cannot come up now */
	enum afr_reason reason;
	struct afr_link_sq sq;
	struct afr_link_pace pace;
	struct afr_link_keepalive keepalive;
	struct afr_link_members members;

	struct afr_link_rx rx;
	struct ib_cqe send_cqe, recv_cqe;
};

/* First period of keepalive.tail, in jiffies; each tail probe in a row doubles the period. */
#define AFR_LINK_TAIL	DIV_ROUND_UP(HZ, 100)

extern struct workqueue_struct *afr_link_wq;

void afr_link_queue_event(struct afr_link *link, enum afr_link_event event);
void afr_link_queue_fail(struct afr_link *link, enum afr_reason reason);
bool afr_link_queue_up(struct afr_link *link);

bool afr_link_queue_probe(struct afr_link *link);

int afr_link_queue_post(struct afr_link *link, struct ib_rdma_wr *wr, u32 imm,
			const struct afr_link_send *ctx);
unsigned int afr_link_queue_space(const struct afr_link *link);

int afr_link_queue_init(struct afr_link *link, u16 sq_size, u16 rq_size);
void afr_link_queue_free(struct afr_link *link);
int afr_link_queue_run(struct afr_link *link, struct ib_send_wr *wr);
void afr_link_queue_abort_ops(struct afr_link *link);

/* For functions that only the link worker calls. */
static inline void afr_link_queue_assert_worker(struct afr_link *link)
{
	lockdep_assert(current_work() == &link->work);
}

/*
 * Called under link->lock after each post to the send queue: starts the tail timer, except on
 * iWARP, where TCP probes for lost packets. A timer that already runs covers everything that is
 * posted until it expires.
 */
static inline void afr_link_queue_posted(struct afr_link *link)
{
	link->sq.posts++;
	if (link->iwarp || timer_pending(&link->keepalive.tail))
		return;
	link->keepalive.tail_posts = link->sq.posts;
	link->keepalive.tail_probes = 0;
	mod_timer(&link->keepalive.tail, jiffies + AFR_LINK_TAIL);
}

#endif /* AFR_LINK_QUEUE_H */
