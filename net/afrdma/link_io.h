/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The inside of a link, and link_io.c: posting, completions, credits. Included by
 * port.c, link_cm.c, link.c and mr.c (registrations run on the link's queue) only.
 */
#ifndef AFR_LINK_IO_H
#define AFR_LINK_IO_H

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

#include "credit.h"
#include "link.h"
#include "message.h"
#include "wire.h"

/*
 * Send slots that port writes leave free, so that announcements, registrations
 * and invalidations never wait behind data for long.
 */
#define AFR_SQ_RESERVE		4

/* Bits of link->events: what the work has to look at. */
enum afr_link_event {
	AFR_LINK_EV_RESOLVE,	/* active: begin */
	AFR_LINK_EV_ROUTE,	/* active: route resolved: make the queue pair, connect */
	AFR_LINK_EV_ACCEPT,	/* passive: make the queue pair, accept */
	AFR_LINK_EV_STALE,	/* the peer took us for our former self: try again */
	AFR_LINK_EV_UP,		/* tell the group */
	AFR_LINK_EV_COMM_EST,	/* data came before the handshake was over */
	AFR_LINK_EV_TIMER,
	AFR_LINK_EV_QP,		/* fatal queue pair event, from any context */
};

/* A registration or invalidation that somebody waits for. */
struct afr_link_op {
	struct completion done;
	bool ok;
};

/* What a signaled send stands for, in posting order. */
struct afr_link_mark {
	u16 count;		/* send slots it gives back: itself and unsignaled ones before it */
	u16 slot;		/* whom to tell: the port in there, if it is still number @serial */
	u32 bulk;		/* bytes of bulk that are on their way no more */
	ktime_t posted;		/* ... since then */
	u64 sent;		/* tx_bytes by then, or a little less */
	void (*tell)(struct afr_port *port);
	u32 serial;
	struct afr_link_op *op;
};

struct afr_link {
	/* constant */
	u64 id;				/* the peer's too, which may be on this host */
	bool active;
	u16 peer_depth;			/* passive: from the request */
	struct afr_net *an;
	const struct afr_link_ops *ops;
	void *owner;
	struct afr_link_peer peer;
	struct sockaddr_storage local, remote;

	refcount_t refs;
	struct rcu_head rcu;
	struct list_head entry;		/* on all links */
	struct work_struct work;	/* the life of the link, one step after the other */
	struct work_struct free_work;
	unsigned long events;		/* 1 << enum afr_link_event */
	struct timer_list timer;	/* connect timeout; then the watch, or idleness */
	struct timer_list tail;		/* messages were posted: have they arrived? */
	wait_queue_head_t wait;		/* send slots, end of a down() upcall */

	/* of the work; constant while the link is up */
	struct rdma_cm_id *cm_id;
	struct afr_device *dev;		/* set under the lock of all links */
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u32 port_num;
	u32 mtu;			/* of the path; 0 until it is up */
	u32 write_max;
	u32 qpn, peer_qpn;
	bool iwarp;			/* no immediates; both ends have to say something first */
	unsigned int retries;
	unsigned long connect_end;
	bool settled;			/* the group was told ... */
	bool was_up;			/* ... that it is up */
	unsigned long up_since;		/* jiffies */
	bool in_use;			/* when it was lost */
	bool used;			/* it was up: there may be keys that a peer knows */
	bool accepted;			/* passive: the queue pair may send */

	spinlock_t lock;		/* everything from here to the next comment; BH */
	enum afr_link_state state;
	bool retrying;			/* the id is being replaced: it cannot come up now */
	enum afr_reason reason;
	struct afr_credit credit;
	u16 sq_size, sq_used, sq_plain;	/* slots: all, taken, taken since the last signal */
	u32 mark_head, mark_tail;
	u32 mark_slots;			/* a power of two, as the counts wrap; sq_size or more */
	struct afr_link_mark *marks;
	struct list_head ports;		/* joined, and not told down() yet */
	struct list_head waiters;	/* ports that were refused */
	struct list_head leavers;	/* of those whose DETACH was, first */
	unsigned int waiting;		/* their number */
	unsigned int users;		/* joined ports */
	bool ask, answer;		/* announce, though nothing is due */
	struct afr_port *turn;		/* the waiter that is being kicked may post one */
	const struct afr_port *prompter;	/* the last of @askers; to compare with only */
	u64 pace_end;			/* jiffies64; until then bulk leaves room for it ... */
	u64 others_end;			/* ... and until then @prompter's for the others */
	u32 bulk;			/* bytes of it on their way, counted while pacing ... */
	u32 pace_room;			/* ... and how many may be */
	u32 pace_base;			/* us that a paced write takes if none is before it */
	struct list_head paced;		/* ports whose bulk was held back for that */
	struct list_head askers;	/* ports that posted prompt messages, the latest last */
	unsigned long idle_end;		/* without users: when to go */
	unsigned int silent;		/* in use: looks since the peer last showed life ... */
	u32 seen_tail;			/* ... by these: mark_tail and rx_writes at the last look */
	u64 seen_rx;
	u32 serial;			/* of the last join */
	struct afr_port *downing;	/* down() is being called for it ... */
	struct task_struct *downer;	/* ... by this task */
	u64 tx_bytes, tx_writes;
	u64 tx_done;			/* of tx_bytes, those that have completed */
	u32 posts;			/* times something was posted ... */
	u32 tail_posts;			/* ... when the tail was looked at last */
	unsigned int tail_probes;	/* since something else was posted */

	/* receive completions only: they come one at a time */
	struct afr_message_rx rx;
	bool broken;			/* the peer broke a rule: what lands is nothing */
	u64 rx_bytes, rx_writes;

	struct xarray slots;		/* RCU: slot -> port */
	struct ib_cqe send_cqe, recv_cqe;
};

#define AFR_LINK_TAIL	DIV_ROUND_UP(HZ, 100)	/* what a last message may take to arrive */

extern struct workqueue_struct *afr_link_wq;

/* Have the work look at @event. Any context. */
void afr_link_io_event(struct afr_link *link, enum afr_link_event event);
/* As afr_link_fail(), under link->lock. */
void afr_link_io_fail(struct afr_link *link, enum afr_reason reason);
/* Connecting -> up, if it was connecting. Process or softirq. */
bool afr_link_io_up(struct afr_link *link);

/* Post what the peer answers: a write of nothing; iWARP: a question. Under link->lock. */
void afr_link_io_probe(struct afr_link *link);

/* Post a message that eats a receive of the peer; messages of ports that fit. Under link->lock. */
int afr_link_io_post(struct afr_link *link, struct ib_rdma_wr *wr, u32 imm,
		     const struct afr_link_mark *mark);
unsigned int afr_link_io_room(const struct afr_link *link);

/* pace.c; under link->lock: a prompt message goes; it was none; may bulk go; done; who is next. */
void afr_pace_init(struct afr_link *link);
void afr_pace_prompt(struct afr_port *port);
void afr_pace_forget(struct afr_port *port);
int afr_pace_admit(struct afr_port *port, u32 len, struct afr_link_mark *mark);
void afr_pace_done(struct afr_link *link, const struct afr_link_mark *mark);
struct afr_port *afr_pace_next(struct afr_link *link);

/* Queues of a new queue pair. Process context; no other user yet. */
int afr_link_io_init(struct afr_link *link, u16 sq_size, u16 rq_size);
void afr_link_io_free(struct afr_link *link);
/* Post @wr, or a chain of two, signaled, and wait for it: 0, -ENOTCONN. Process context. */
int afr_link_io_run(struct afr_link *link, struct ib_send_wr *wr);
/* The queue pair is drained: operations that wait have failed. Process context. */
void afr_link_io_abort_ops(struct afr_link *link);

/* Under link->lock: something was posted. One timer looks after all of it until it runs out. */
static inline void afr_link_posted(struct afr_link *link)
{
	link->posts++;
	if (link->iwarp || timer_pending(&link->tail))	/* TCP looks after its tail itself */
		return;
	link->tail_posts = link->posts;
	link->tail_probes = 0;
	mod_timer(&link->tail, jiffies + AFR_LINK_TAIL);
}

/* link_watch.c: link->tail has run out. */
void afr_link_watch_tail(struct timer_list *timer);
/* The same, under link->lock: a user came; the timer of a link in use; the last user went. */
void afr_link_watch(struct afr_link *link);
void afr_link_watch_look(struct afr_link *link);
void afr_link_watch_idle(struct afr_link *link);

#endif /* AFR_LINK_IO_H */
