// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The connection object: its lifetime, the table of all connections, upcalls to the socket, and the
 * workqueues and timers of the connection worker.
 */
#include "compat.h"
#include "conn.h"

#include <linux/module.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <net/sock.h>
#include <net/tcp_states.h>
#include <uapi/linux/af_rdma.h>

#include "link.h"
#include "proto/ring.h"
#include "trace.h"

static struct kmem_cache *cache;
static atomic64_t last_id;

/*
 * There are three workqueues, because two kinds of work wait for a peer or program, which may be
 * hostile: steps to and from a link wait for acknowledgements of the peer (afrdma_attached), and
 * work items of connections with a direction in fallback mode, or about to be, wait for calls that
 * hold lock_sock() of the TCP socket (afrdma_fallback). Each kind can use up only the max_active of
 * its own queue. The work items of the third queue (afrdma) read what connections receive over TCP,
 * and must wait for neither peer nor program.
 */
static struct workqueue_struct *queue, *attach_queue, *fallback_queue;

/*
 * Connections by id, from afr_conn_create() on. Lookups take a reference under xa_lock, and find
 * no connection whose last reference is gone; release_closed() erases the entry before it frees
 * anything. There are several tables, each for every CONN_TABLES-th id, so that processors that
 * create and release connections rarely need the same xa_lock.
 */
#define CONN_TABLES	32
static struct {
	struct xarray	table;		/* index: id / CONN_TABLES */
} ____cacheline_aligned_in_smp conns[CONN_TABLES];

static struct xarray *table_of(u64 id)
{
	return &conns[id % CONN_TABLES].table;
}

/* Makes an upcall to the AF_RDMA socket, unless it was closed. */
static void upcall(struct afr_conn *conn, void (*event)(struct sock *sk))
{
	struct sock *sk;

	rcu_read_lock();
	sk = rcu_dereference(conn->sk);
	if (sk)
		event(sk);
	rcu_read_unlock();
}

static void timer_fired(struct timer_list *timer)
{
	afr_conn_schedule(container_of(timer, struct afr_conn, worker.timer));
}

/**
 * afr_conn_alloc() - allocate a connection without TCP socket
 * @an: namespace
 * @sk: AF_RDMA socket
 * @ops: upcalls to @sk
 *
 * Everything that can fail is done here: accept() calls this before it takes a connection from
 * TCP's queue, so no error can lose that connection. The caller calls afr_worker_init() before
 * afr_conn_start().
 *
 * Context: process.
 * Return: the connection with one reference, or NULL without memory.
 */
struct afr_conn *afr_conn_alloc(struct afr_net *an, struct sock *sk,
				const struct afr_sock_ops *ops)
{
	struct afr_conn *conn = kmem_cache_zalloc(cache, GFP_KERNEL_ACCOUNT);

	if (!conn)
		return NULL;

	kref_init(&conn->ref);
	conn->id = atomic64_inc_return(&last_id);
	conn->an = an;
	conn->node = numa_mem_id();
	conn->sock_ops = ops;
	timer_setup(&conn->worker.timer, timer_fired, 0);
	spin_lock_init(&conn->tx.lock);
	spin_lock_init(&conn->rx.lock);
	mutex_init(&conn->worker.mutex);
	mutex_init(&conn->out.mutex);
	conn->reason = AFR_REASON_NONE;
	RCU_INIT_POINTER(conn->sk, sk);
	if (xa_reserve(table_of(conn->id), conn->id / CONN_TABLES, GFP_KERNEL)) {
		mutex_destroy(&conn->out.mutex);
		mutex_destroy(&conn->worker.mutex);
		kmem_cache_free(cache, conn);
		return NULL;
	}
	return conn;
}

/**
 * afr_conn_create() - add a new connection, with its TCP socket, to the table
 * @conn: from afr_conn_alloc()
 * @tcp: TCP socket, owned by the connection from now on
 *
 * Context: process.
 */
void afr_conn_create(struct afr_conn *conn, struct socket *tcp)
{
	conn->tcp = tcp;
	trace_afrdma_conn_create(conn->id);
	/* from now on dumps find the connection (I6); no failure, as the entry was reserved */
	WARN_ON_ONCE(xa_err(xa_store(table_of(conn->id), conn->id / CONN_TABLES, conn,
				     GFP_KERNEL)));
}

/* Frees the connection. If SO_LINGER is set on the TCP socket, sock_release() may wait. */
static void release_closed(struct kref *ref)
{
	struct afr_conn *conn = container_of(ref, struct afr_conn, ref);

	might_sleep();
	timer_delete_sync(&conn->worker.timer);	/* see afr_conn_schedule_delayed() */
	WARN_ON_ONCE(conn->attach.state != AFR_DETACHED || conn->attach.link);
	xa_erase(table_of(conn->id), conn->id / CONN_TABLES);
	afr_ring_mem_destroy(&conn->tx.mem);
	afr_ring_mem_destroy(&conn->rx.mem);
	afr_ring_quota_uncharge(&conn->attach.quota, 0);
	if (conn->tcp) {
		sock_release(conn->tcp);
		trace_afrdma_conn_destroy(conn->id);
	}
	mutex_destroy(&conn->out.mutex);
	mutex_destroy(&conn->worker.mutex);
	kmem_cache_free(cache, conn);
}

/*
 * Frees the connection, but does not linger. Only close() may linger: here the caller may be the
 * worker, or a dump that holds the lock of generic netlink.
 */
static void release(struct kref *ref)
{
	struct socket *tcp = container_of(ref, struct afr_conn, ref)->tcp;

	if (tcp && tcp->sk->sk_lingertime)	/* SO_LINGER of 0 resets, and never waits */
		sock_reset_flag(tcp->sk, SOCK_LINGER);
	release_closed(ref);
}

/**
 * afr_conn_put() - drop a reference
 * @conn: connection
 *
 * The last reference is always dropped in process context: completions, timers and TCP callbacks
 * take and drop references only while the connection has the active reference.
 *
 * Context: any; process if it may be the last reference.
 */
void afr_conn_put(struct afr_conn *conn)
{
	kref_put(&conn->ref, release);
}

/**
 * afr_conn_put_closed() - drop the reference of the AF_RDMA socket in close()
 * @conn: connection; the release of its TCP socket may wait (SO_LINGER)
 *
 * Context: process.
 */
void afr_conn_put_closed(struct afr_conn *conn)
{
	kref_put(&conn->ref, release_closed);
}

/**
 * afr_conn_start() - prepare a connection for frames, after a handshake that agreed on them
 * @conn: connection, not started before
 * @server: this end accepted the connection
 * @nonce: nonce of the client's SYN
 * @sndbuf: requested size of the send ring, bytes
 * @rcvbuf: requested size of the receive ring, bytes
 *
 * Context: any but hard irq; the TCP socket may be locked.
 */
void afr_conn_start(struct afr_conn *conn, bool server, u32 nonce, u32 sndbuf, u32 rcvbuf)
{
	u32 most = READ_ONCE(conn->an->set.ring_max);
	struct mem_cgroup *memcg = NULL;
	u32 snd, rcv;

#ifdef CONFIG_MEMCG
	memcg = conn->tcp->sk->sk_memcg;
#endif
	snd = afr_ring_size(sndbuf, AFR_RING_MEM_MIN, most);
	rcv = afr_ring_size(rcvbuf, AFR_RING_MEM_MIN, most);
	afr_ring_mem_init(&conn->tx.mem, conn->an, snd, conn->node, memcg);
	afr_ring_mem_init(&conn->rx.mem, conn->an, rcv, conn->node, memcg);
	afr_tx_init(&conn->tx.seq, snd, AFR_WINDOW_INITIAL);
	afr_rx_init(&conn->rx.seq, rcv);
	conn->server = server;
	conn->nonce = nonce;
	conn->reason = AFR_REASON_NOT_YET;
	conn->rx.urgent = AFR_NO_URGENT;
	conn->rx.urgent_skip = AFR_NO_URGENT;
	afr_conn_get(conn);	/* the active reference, dropped by afr_conn_finish() */
	__module_get(THIS_MODULE);	/* an orphan has no socket that pins the module (T19) */
	set_bit(AFR_F_STARTED, &conn->flags);
	set_bit(AFR_F_ACTIVE, &conn->flags);
}

/* Is a direction in fallback mode, or about to be? */
static bool any_fallback(const struct afr_conn *conn)
{
	return afr_conn_tx_mode(conn) == AFR_MODE_FALLBACK ||
	       afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK ||
	       test_bit(AFR_F_NO_EARLY_TX, &conn->flags);
}

/**
 * afr_conn_schedule() - schedule the worker on queue afrdma, or afrdma_fallback if any_fallback()
 * @conn: connection; nothing happens before afr_conn_start() and after afr_conn_finish()
 *
 * Context: any.
 */
void afr_conn_schedule(struct afr_conn *conn)
{
	if (!test_bit(AFR_F_ACTIVE, &conn->flags))
		return;
	afr_conn_get(conn);
	if (!queue_work(any_fallback(conn) ? fallback_queue : queue, &conn->worker.work))
		afr_conn_put(conn);
}

/**
 * afr_conn_schedule_attach() - schedule the worker on queue afrdma_attached, where it may wait
 * @conn: connection
 *
 * Context: any.
 */
void afr_conn_schedule_attach(struct afr_conn *conn)
{
	if (!test_bit(AFR_F_ACTIVE, &conn->flags))
		return;
	afr_conn_get(conn);
	if (!queue_work(attach_queue, &conn->worker.attach_work))
		afr_conn_put(conn);
}

/**
 * afr_conn_incoming() - handle bytes or a state change of the TCP socket
 * @conn: connection
 *
 * If the connection is detached and a call of the program waits to read or for HELLO, wakes the
 * call, which runs the worker inline. Otherwise schedules the worker.
 *
 * Context: any but hard irq.
 */
void afr_conn_incoming(struct afr_conn *conn)
{
	if (READ_ONCE(conn->attach.state) == AFR_DETACHED && atomic_read(&conn->worker.readers)) {
		smp_mb__before_atomic();	/* the event is visible before the bit */
		set_bit(AFR_F_RUN_INLINE, &conn->flags);
		smp_mb__after_atomic();	/* set the bit before reading readers again */
		if (atomic_read(&conn->worker.readers)) {
			upcall(conn, conn->sock_ops->wake_calls);
			return;
		}
	}
	afr_conn_schedule(conn);
}

/**
 * afr_conn_schedule_delayed() - schedule the worker after a delay
 * @conn: connection
 * @delay: jiffies; the worker may run earlier
 *
 * May be called during and after afr_conn_finish(): release_closed() stops a timer that was
 * started too late for afr_conn_finish() to stop it.
 *
 * Context: any; the caller holds a reference.
 */
void afr_conn_schedule_delayed(struct afr_conn *conn, unsigned long delay)
{
	if (test_bit(AFR_F_ACTIVE, &conn->flags))
		timer_reduce(&conn->worker.timer, jiffies + delay);
}

/**
 * afr_conn_timer() - (re)start or stop a timer of the worker
 * @conn: connection
 * @which: timer
 * @ms: milliseconds from now, 0 stops it
 *
 * Context: connection worker, or the caller of afr_conn_start().
 */
void afr_conn_timer(struct afr_conn *conn, enum afr_timer which, unsigned int ms)
{
	unsigned long due;

	if (!ms) {
		conn->worker.due[which] = 0;
		return;
	}
	due = jiffies + msecs_to_jiffies(ms);
	conn->worker.due[which] = due ? due : 1;
	timer_reduce(&conn->worker.timer, conn->worker.due[which]);
}

/**
 * afr_conn_timer_due() - has a timer expired?
 * @conn: connection
 * @which: timer; if it is still running, the kernel timer that all timers share is armed for it
 *
 * Context: connection worker.
 * Return: true once after the timer expired; it is stopped then.
 */
bool afr_conn_timer_due(struct afr_conn *conn, enum afr_timer which)
{
	unsigned long due = conn->worker.due[which];

	lockdep_assert_held(&conn->worker.mutex);	/* only the worker checks timers */
	if (!due)
		return false;
	if (time_before(jiffies, due)) {
		timer_reduce(&conn->worker.timer, due);
		return false;
	}
	conn->worker.due[which] = 0;
	return true;
}

/**
 * afr_conn_abort() - have the worker reset the connection
 * @conn: connection
 * @reason: why; the first reason stays
 *
 * Context: any.
 */
void afr_conn_abort(struct afr_conn *conn, enum afr_reason reason)
{
	cmpxchg(&conn->abort_reason, AFR_REASON_NONE, reason);
	if (!test_and_set_bit(AFR_F_ABORT, &conn->flags))
		afr_conn_schedule(conn);
}

/**
 * afr_conn_finish() - stop the worker for good, and drop the active reference
 * @conn: connection for which the worker has nothing left to do
 *
 * Context: connection worker.
 */
void afr_conn_finish(struct afr_conn *conn)
{
	if (!test_and_clear_bit(AFR_F_ACTIVE, &conn->flags))
		return;
	timer_delete_sync(&conn->worker.timer);
	if (test_bit(AFR_F_ORPHAN_COUNTED, &conn->flags))
		afr_netns_uncharge_orphan(&conn->an->orphans, sk_uid(conn->tcp->sk));
	if (test_bit(AFR_F_ORPHAN_DONE, &conn->flags))
		afr_netns_uncharge_orphan(&conn->an->orphans_done, sk_uid(conn->tcp->sk));
	set_bit(AFR_F_FINISHED, &conn->flags);
	/*
	 * Set the flag before this run calls afr_conn_rings_uncharge() for the last time. If a
	 * call of the program frees pages too late for that, its afr_conn_rings_freed() sees the
	 * flag and uncharges them. Pairs with the barrier there. A run in which the connection
	 * falls back does not call afr_conn_rings_uncharge(): its rings were never pinned.
	 */
	smp_mb__after_atomic();
	afr_conn_put(conn);
	/*
	 * The module stays until this run has returned: afr_conn_exit() waits for work items, and
	 * an inline run is part of a call on an AF_RDMA socket, which pins the module.
	 */
	module_put(THIS_MODULE);
}

/**
 * afr_conn_orphan() - stop upcalls to the AF_RDMA socket, which is closed
 * @conn: connection
 *
 * The caller calls afr_worker_run() afterwards, so that the worker sees AFR_F_ORPHAN.
 *
 * Context: any. The AF_RDMA socket must stay valid for one more RCU grace period.
 */
void afr_conn_orphan(struct afr_conn *conn)
{
	rcu_assign_pointer(conn->sk, NULL);
	set_bit(AFR_F_ORPHAN, &conn->flags);
}

/**
 * afr_conn_readable() - notify the AF_RDMA socket of bytes to read
 * @conn: connection
 *
 * Context: any but hard irq.
 */
void afr_conn_readable(struct afr_conn *conn)
{
	upcall(conn, conn->sock_ops->readable);
}

/**
 * afr_conn_allow_post() - allow data and cursors to be posted on the link, after an attach
 * @conn: connection, attached
 *
 * Nothing may be posted if the link is being taken down, or if the peer has left it meanwhile.
 *
 * Context: any but hard irq, conn->tx.lock held.
 */
void afr_conn_allow_post(struct afr_conn *conn)
{
	afr_conn_set_may_post(conn, afr_link_is_up(conn->attach.channel.link) &&
			      !test_bit(AFR_F_LINK_DOWN, &conn->flags) &&
			      !test_bit(AFR_F_PEER_LEFT, &conn->flags));
}

/**
 * afr_conn_writable() - notify the AF_RDMA socket of space to write
 * @conn: connection
 *
 * Context: any but hard irq.
 */
void afr_conn_writable(struct afr_conn *conn)
{
	upcall(conn, conn->sock_ops->writable);
}

/**
 * afr_conn_urgent() - notify the AF_RDMA socket of a new urgent offset
 * @conn: connection
 *
 * Context: any but hard irq.
 */
void afr_conn_urgent(struct afr_conn *conn)
{
	upcall(conn, conn->sock_ops->urgent);
}

/**
 * afr_conn_decided() - notify the AF_RDMA socket of the peer's HELLO
 * @conn: connection
 *
 * This wakes all sleeping calls. It wakes pollers only in the cases that sk_decided() lists: what
 * other pollers wait for, such as bytes or space in a full send ring, does not come with HELLO.
 *
 * Context: any but hard irq.
 */
void afr_conn_decided(struct afr_conn *conn)
{
	upcall(conn, conn->sock_ops->decided);
}

/**
 * afr_conn_changed() - notify the AF_RDMA socket of a new mode, an error or the end of a direction
 * @conn: connection
 *
 * Context: any but hard irq.
 */
void afr_conn_changed(struct afr_conn *conn)
{
	upcall(conn, conn->sock_ops->changed);
}

/* @an: NULL for all namespaces */
static struct afr_conn *find_conn(const struct afr_net *an, u64 id)
{
	struct xarray *table = table_of(id);
	struct afr_conn *conn;

	xa_lock(table);
	conn = id <= ULONG_MAX ? xa_load(table, id / CONN_TABLES) : NULL;
	if (conn && ((an && conn->an != an) || !kref_get_unless_zero(&conn->ref)))
		conn = NULL;
	xa_unlock(table);
	return conn;
}

/**
 * afr_conn_find() - look up a connection by its id
 * @an: its namespace
 * @id: its id
 *
 * Context: process.
 * Return: the connection with a reference, or NULL.
 */
struct afr_conn *afr_conn_find(struct afr_net *an, u64 id)
{
	return find_conn(an, id);
}

/* Returns the lowest id in the tables that is not below @id, or ULONG_MAX. */
static unsigned long next_id(unsigned long id)
{
	unsigned long least = ULONG_MAX, end = id + CONN_TABLES, index;

	/* each round looks into another table, for the ids from @id on */
	for (; id != end; id++) {
		index = id / CONN_TABLES;
		if (xa_find(table_of(id), &index, least / CONN_TABLES, XA_PRESENT))
			least = min(least, index * CONN_TABLES + id % CONN_TABLES);
	}
	return least;
}

/**
 * afr_conn_next() - find the next connection in the order of ids
 * @an: namespace, or NULL for all
 * @id: lowest id to consider
 *
 * Context: process.
 * Return: the connection with the lowest id from @id on, with a reference; or NULL.
 */
struct afr_conn *afr_conn_next(struct afr_net *an, unsigned long id)
{
	struct afr_conn *conn = NULL;

	while (!conn) {
		id = next_id(id);
		if (id == ULONG_MAX)
			break;
		conn = find_conn(an, id++);
		cond_resched();
	}
	return conn;
}

static void destroy_queues(void)
{
	struct workqueue_struct *all[] = { queue, attach_queue, fallback_queue };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i])
			destroy_workqueue(all[i]);
}

/**
 * afr_conn_init() - create the cache and the workqueues
 *
 * Context: module load.
 * Return: 0 or -ENOMEM.
 */
int afr_conn_init(void)
{
	unsigned int i;

	for (i = 0; i < CONN_TABLES; i++)
		xa_init(&conns[i].table);
	cache = kmem_cache_create("afr_conn", sizeof(struct afr_conn), 0,
				  SLAB_HWCACHE_ALIGN | SLAB_ACCOUNT, NULL);
	if (!cache)
		return -ENOMEM;
	queue = alloc_workqueue("afrdma", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	attach_queue = alloc_workqueue("afrdma_attached", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	fallback_queue = alloc_workqueue("afrdma_fallback", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (queue && attach_queue && fallback_queue)
		return 0;
	destroy_queues();
	kmem_cache_destroy(cache);
	return -ENOMEM;
}

/**
 * afr_conn_exit() - wait for the last work items, and free everything
 *
 * Context: module exit, or a module load that fails; only work items may still hold references on
 * connections.
 */
void afr_conn_exit(void)
{
	unsigned int i;

	destroy_queues();
	for (i = 0; i < CONN_TABLES; i++) {
		WARN_ON_ONCE(!xa_empty(&conns[i].table));
		xa_destroy(&conns[i].table);
	}
	kmem_cache_destroy(cache);
}
