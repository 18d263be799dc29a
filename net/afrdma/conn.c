// SPDX-License-Identifier: GPL-2.0
/* The connection object: life, timers, upcalls, who does the work. */
#include "conn.h"

#include <linux/module.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <net/sock.h>
#include <net/tcp_states.h>
#include <uapi/linux/af_rdma.h>

#include "ring.h"
#include "stats.h"
#include "trace.h"

static struct kmem_cache *cache;
static struct workqueue_struct *queue, *link_queue, *raw_queue;
static atomic64_t last_id;
static void (*work_run)(struct afr_conn *conn);

/*
 * All connections by id. An entry is erased before its memory goes; lookups take a
 * reference under xa_lock.
 */
static DEFINE_XARRAY(conns);

/* Tell the socket in front, if there is one. */
static void upcall(struct afr_conn *conn, void (*event)(struct sock *sk))
{
	struct sock *sk;

	rcu_read_lock();
	sk = rcu_dereference(conn->front);
	if (sk)
		event(sk);
	rcu_read_unlock();
}

/* False: who has the mutex has the work done again, as it may have looked before it was wanted. */
static bool try_lock_run(struct afr_conn *conn)
{
	if (mutex_trylock(&conn->run_mutex))
		return true;
	set_bit(AFR_F_RUN_AGAIN, &conn->flags);
	smp_mb__after_atomic();		/* the holder lets go before it looks for the bit */
	return mutex_trylock(&conn->run_mutex);
}

/*
 * Three queues, for two kinds of work have to wait for others, who may be hostile: the steps of a
 * connection to and from a link for the peer's acknowledgements, a raw direction for calls that
 * hold the lock of TCP. They use up the workers of their kind only. So what a connection with a
 * link gets by TCP is read by a worker of the first queue, too, unless one of the second is at it.
 */
static void run_work(struct work_struct *work)
{
	struct afr_conn *conn = container_of(work, struct afr_conn, work);

	if (!READ_ONCE(conn->on_link))
		mutex_lock(&conn->run_mutex);
	else if (!try_lock_run(conn))
		goto busy;
	if (test_bit(AFR_F_ALIVE, &conn->flags))
		work_run(conn);
	afr_conn_unlock_run(conn);
busy:
	afr_conn_put(conn);	/* of afr_conn_schedule() */
}

static void run_link_work(struct work_struct *work)
{
	struct afr_conn *conn = container_of(work, struct afr_conn, link_work);

	mutex_lock(&conn->run_mutex);
	if (test_bit(AFR_F_ALIVE, &conn->flags))
		work_run(conn);
	WRITE_ONCE(conn->on_link, conn->attach != AFR_DETACHED);
	afr_conn_unlock_run(conn);
	afr_conn_put(conn);	/* of afr_conn_schedule() */
}

static void timer_fired(struct timer_list *timer)
{
	afr_conn_schedule(container_of(timer, struct afr_conn, timer));
}

/**
 * afr_conn_alloc() - a connection that has no inner TCP socket yet
 * @an: namespace
 * @front: socket in front
 * @ops: upcalls to it
 *
 * All that may fail for want of memory is done here, so that an accept() fails before
 * it takes a connection from the queue, not with one in its hands.
 *
 * Context: process.
 * Return: the connection with one reference, or NULL without memory.
 */
struct afr_conn *afr_conn_alloc(struct afr_net *an, struct sock *front,
				const struct afr_front_ops *ops)
{
	struct afr_conn *conn = kmem_cache_zalloc(cache, GFP_KERNEL_ACCOUNT);

	if (!conn)
		return NULL;

	kref_init(&conn->ref);
	conn->id = atomic64_inc_return(&last_id);
	conn->an = an;
	conn->front_ops = ops;
	INIT_WORK(&conn->work, run_work);
	INIT_WORK(&conn->link_work, run_link_work);
	timer_setup(&conn->timer, timer_fired, 0);
	spin_lock_init(&conn->tx_lock);
	spin_lock_init(&conn->rx_lock);
	mutex_init(&conn->run_mutex);
	mutex_init(&conn->ctl_mutex);
	conn->reason = AFR_REASON_NONE;
	RCU_INIT_POINTER(conn->front, front);
	if (xa_reserve(&conns, conn->id, GFP_KERNEL)) {
		mutex_destroy(&conn->ctl_mutex);
		mutex_destroy(&conn->run_mutex);
		kmem_cache_free(cache, conn);
		return NULL;
	}
	return conn;
}

/**
 * afr_conn_create() - the connection is whole
 * @conn: of afr_conn_alloc()
 * @inner: inner socket, owned by the connection from now on
 *
 * Context: process.
 */
void afr_conn_create(struct afr_conn *conn, struct socket *inner)
{
	conn->inner = inner;
	trace_afrdma_conn_create(conn->id);
	/* a dump may find it from here on (I6); the place is reserved */
	WARN_ON_ONCE(xa_err(xa_store(&conns, conn->id, conn, GFP_KERNEL)));
}

static void release_closed(struct kref *ref)
{
	struct afr_conn *conn = container_of(ref, struct afr_conn, ref);

	might_sleep();
	timer_delete_sync(&conn->timer);	/* of a last look */
	WARN_ON_ONCE(conn->attach != AFR_DETACHED || conn->join_link);
	xa_erase(&conns, conn->id);
	afr_mem_destroy(&conn->snd);
	afr_mem_destroy(&conn->rcv);
	if (conn->inner) {
		sock_release(conn->inner);
		trace_afrdma_conn_destroy(conn->id);
	}
	mutex_destroy(&conn->ctl_mutex);
	mutex_destroy(&conn->run_mutex);
	kmem_cache_free(cache, conn);
}

/* A worker or a dump, which may hold the lock of generic netlink, does not sleep for close(). */
static void release(struct kref *ref)
{
	struct socket *inner = container_of(ref, struct afr_conn, ref)->inner;

	if (inner && inner->sk->sk_lingertime)	/* 0 is a reset, whoever is the last */
		sock_reset_flag(inner->sk, SOCK_LINGER);
	release_closed(ref);
}

/**
 * afr_conn_put() - drop a reference
 * @conn: connection
 *
 * The last reference is always dropped in process context: the work, the front
 * and the dump hold theirs there; completions and callbacks only borrow while
 * one of those lives.
 */
void afr_conn_put(struct afr_conn *conn)
{
	kref_put(&conn->ref, release);
}

/**
 * afr_conn_put_closed() - the same for close()
 * @conn: connection; a plain one may wait here as SO_LINGER says
 *
 * Context: process.
 */
void afr_conn_put_closed(struct afr_conn *conn)
{
	kref_put(&conn->ref, release_closed);
}

/**
 * afr_conn_set_work() - hand down what the work item runs
 * @run: reader.c's work function
 */
void afr_conn_set_work(void (*run)(struct afr_conn *conn))
{
	work_run = run;
}

/**
 * afr_conn_start() - the handshake agreed: framing may begin
 * @conn: connection, not started before
 * @server: we accepted
 * @nonce: the client's nonce from its SYN
 * @sndbuf: wanted send ring, bytes
 * @rcvbuf: wanted receive ring, bytes
 *
 * Context: any but hard irq (the inner socket may be locked).
 */
void afr_conn_start(struct afr_conn *conn, bool server, u32 nonce, u32 sndbuf, u32 rcvbuf)
{
	u32 most = READ_ONCE(conn->an->set.ring_max);
	struct mem_cgroup *memcg = NULL;
	u32 snd, rcv;

#ifdef CONFIG_MEMCG
	memcg = conn->inner->sk->sk_memcg;
#endif
	snd = afr_ring_size(sndbuf, AFR_MEM_LEAST, most);
	rcv = afr_ring_size(rcvbuf, AFR_MEM_LEAST, most);
	afr_mem_init(&conn->snd, conn->an, snd, memcg);
	afr_mem_init(&conn->rcv, conn->an, rcv, memcg);
	afr_tx_init(&conn->tx, snd, AFR_WINDOW_INITIAL);
	afr_rx_init(&conn->rx, rcv);
	conn->server = server;
	conn->nonce = nonce;
	conn->reason = AFR_REASON_NOT_YET;
	conn->urgent = AFR_NO_URGENT;
	conn->urgent_gone = AFR_NO_URGENT;
	afr_conn_get(conn);	/* of the living, see afr_conn_finish() */
	__module_get(THIS_MODULE);	/* an orphan has no socket that would hold it (T19) */
	set_bit(AFR_F_STARTED, &conn->flags);
	set_bit(AFR_F_ALIVE, &conn->flags);
}

static bool any_raw(const struct afr_conn *conn)
{
	return afr_conn_tx_mode(conn) == AFR_RAW || afr_conn_rx_mode(conn) == AFR_RAW ||
	       test_bit(AFR_F_EARLY_OVER, &conn->flags);
}

/**
 * afr_conn_schedule() - have a worker do the work soon
 * @conn: connection
 *
 * Context: any.
 */
void afr_conn_schedule(struct afr_conn *conn)
{
	if (!test_bit(AFR_F_ALIVE, &conn->flags))
		return;
	afr_conn_get(conn);
	if (!queue_work(any_raw(conn) ? raw_queue : queue, &conn->work))
		afr_conn_put(conn);
}

/**
 * afr_conn_schedule_link() - the same by a worker that may wait for the device
 * @conn: connection
 *
 * Context: any.
 */
void afr_conn_schedule_link(struct afr_conn *conn)
{
	if (!test_bit(AFR_F_ALIVE, &conn->flags))
		return;
	afr_conn_get(conn);
	if (!queue_work(link_queue, &conn->link_work))
		afr_conn_put(conn);
}

/**
 * afr_conn_run() - do the work in this call
 * @conn: connection, the caller holds a reference
 *
 * Steps to and from a link are left to a worker; and all, when somebody else is at it just now.
 *
 * Context: process, without any lock.
 */
void afr_conn_run(struct afr_conn *conn)
{
	if (!mutex_trylock(&conn->run_mutex)) {
		afr_conn_schedule(conn);
		return;
	}
	if (test_bit(AFR_F_ALIVE, &conn->flags))
		work_run(conn);
	afr_conn_unlock_run(conn);
}

/**
 * afr_conn_run_now() - the same behind whoever does it just now
 * @conn: connection whose output turns out raw: no link, so the work waits for nobody
 *
 * Context: process, without any lock.
 */
void afr_conn_run_now(struct afr_conn *conn)
{
	mutex_lock(&conn->run_mutex);
	AFR_CHECK(!conn->on_link);
	if (test_bit(AFR_F_ALIVE, &conn->flags))
		work_run(conn);
	mutex_unlock(&conn->run_mutex);
}

/**
 * afr_conn_incoming() - the inner socket has something for the work
 * @conn: connection
 *
 * Context: any but hard irq.
 */
void afr_conn_incoming(struct afr_conn *conn)
{
	if (atomic_read(&conn->readers)) {
		smp_mb__before_atomic();	/* who sees the bit sees what came */
		set_bit(AFR_F_TURN, &conn->flags);
		smp_mb__after_atomic();	/* then look whether anybody waits still */
		if (atomic_read(&conn->readers)) {
			upcall(conn, conn->front_ops->calls);
			return;
		}
	}
	afr_conn_schedule(conn);
}

/**
 * afr_conn_wait_end() - this call waits no more; if it was its turn, it does the work
 * @conn: connection
 *
 * Context: process, without any lock.
 */
void afr_conn_wait_end(struct afr_conn *conn)
{
	/* still counted: what comes meanwhile needs no worker either */
	if (test_and_clear_bit(AFR_F_TURN, &conn->flags))
		afr_conn_run(conn);
	atomic_dec(&conn->readers);
	smp_mb__after_atomic();	/* then look whether that was seen too late */
	if (test_and_clear_bit(AFR_F_TURN, &conn->flags))
		afr_conn_run(conn);
}

/**
 * afr_conn_look_again() - run the work soon
 * @conn: connection
 * @delay: in how many jiffies, at most
 *
 * May come beside the work, behind afr_conn_finish() too: release_closed() ends the timer.
 *
 * Context: any; the caller holds a reference.
 */
void afr_conn_look_again(struct afr_conn *conn, unsigned long delay)
{
	if (test_bit(AFR_F_ALIVE, &conn->flags))
		timer_reduce(&conn->timer, jiffies + delay);
}

/**
 * afr_conn_timer() - start or stop one of the work's timers
 * @conn: connection
 * @which: timer
 * @ms: milliseconds from now, 0 stops it
 *
 * Context: the work, or before it first runs.
 */
void afr_conn_timer(struct afr_conn *conn, enum afr_timer which, unsigned int ms)
{
	unsigned long due;

	if (!ms) {
		conn->due[which] = 0;
		return;
	}
	due = jiffies + msecs_to_jiffies(ms);
	conn->due[which] = due ? due : 1;
	timer_reduce(&conn->timer, conn->due[which]);
}

/**
 * afr_conn_timer_due() - has a timer run out?
 * @conn: connection
 * @which: timer
 *
 * A timer that has not is armed again: one kernel timer serves them all.
 *
 * Context: the work.
 * Return: true once, and the timer is stopped.
 */
bool afr_conn_timer_due(struct afr_conn *conn, enum afr_timer which)
{
	unsigned long due = conn->due[which];

	lockdep_assert_held(&conn->run_mutex);	/* what is the work's alone (I15) */
	if (!due)
		return false;
	if (time_before(jiffies, due)) {
		timer_reduce(&conn->timer, due);
		return false;
	}
	conn->due[which] = 0;
	return true;
}

/**
 * afr_conn_abort() - the connection must end
 * @conn: connection
 * @reason: why
 *
 * Context: any. The work does it; the first reason stays.
 */
void afr_conn_abort(struct afr_conn *conn, enum afr_reason reason)
{
	cmpxchg(&conn->abort_reason, AFR_REASON_NONE, reason);
	if (!test_and_set_bit(AFR_F_ABORT, &conn->flags))
		afr_conn_schedule(conn);
}

/**
 * afr_conn_finish() - nothing is left to do
 * @conn: connection
 *
 * Context: the work.
 */
void afr_conn_finish(struct afr_conn *conn)
{
	if (!test_and_clear_bit(AFR_F_ALIVE, &conn->flags))
		return;
	timer_delete_sync(&conn->timer);
	if (test_bit(AFR_F_ORPHAN_COUNTED, &conn->flags))
		afr_net_give_orphan(&conn->an->orphans);
	if (test_bit(AFR_F_ORPHAN_DONE, &conn->flags))
		afr_net_give_orphan(&conn->an->orphans_done);
	set_bit(AFR_F_FINISHED, &conn->flags);
	afr_conn_put(conn);
	module_put(THIS_MODULE);	/* afr_conn_exit() waits for the work we are in */
}

/**
 * afr_conn_orphan() - the socket in front is closed
 * @conn: connection
 *
 * Context: process, without any lock. The front's memory lives until an RCU grace period
 * after.
 */
void afr_conn_orphan(struct afr_conn *conn)
{
	rcu_assign_pointer(conn->front, NULL);
	set_bit(AFR_F_ORPHAN, &conn->flags);
	afr_conn_run(conn);
}

/**
 * afr_conn_readable() - there is something to read
 * @conn: connection
 *
 * Context: any but hard irq.
 */
void afr_conn_readable(struct afr_conn *conn)
{
	upcall(conn, conn->front_ops->readable);
}

/**
 * afr_conn_writable() - there is room to write
 * @conn: connection
 *
 * Context: any but hard irq.
 */
void afr_conn_writable(struct afr_conn *conn)
{
	upcall(conn, conn->front_ops->writable);
}

/**
 * afr_conn_urgent() - the peer marked an urgent byte
 * @conn: connection
 *
 * Context: any but hard irq.
 */
void afr_conn_urgent(struct afr_conn *conn)
{
	upcall(conn, conn->front_ops->urgent);
}

/**
 * afr_conn_decided() - HELLO came: calls that waited for it go on
 * @conn: connection
 *
 * It brought no byte, no room and no end: to a poll it would be an edge of nothing.
 *
 * Context: any but hard irq.
 */
void afr_conn_decided(struct afr_conn *conn)
{
	upcall(conn, conn->front_ops->decided);
}

/**
 * afr_conn_changed() - mode, error or end of stream
 * @conn: connection
 *
 * Context: any but hard irq.
 */
void afr_conn_changed(struct afr_conn *conn)
{
	upcall(conn, conn->front_ops->changed);
}

/**
 * afr_conn_find() - look a connection up
 * @an: its namespace
 * @id: its id
 *
 * Context: process.
 * Return: the connection with a reference, or NULL.
 */
struct afr_conn *afr_conn_find(struct afr_net *an, u64 id)
{
	struct afr_conn *conn;

	xa_lock(&conns);
	conn = id <= ULONG_MAX ? xa_load(&conns, id) : NULL;
	if (conn && (conn->an != an || !kref_get_unless_zero(&conn->ref)))
		conn = NULL;
	xa_unlock(&conns);
	return conn;
}

/**
 * afr_conn_next() - one connection after the other
 * @an: of this namespace, or NULL for all
 * @id: the least id it may have
 *
 * Context: process.
 * Return: the connection with the lowest such id, with a reference; or NULL.
 */
struct afr_conn *afr_conn_next(struct afr_net *an, unsigned long id)
{
	struct afr_conn *conn;
	bool ours;

	do {
		xa_lock(&conns);
		conn = xa_find(&conns, &id, ULONG_MAX, XA_PRESENT);
		ours = conn && (!an || conn->an == an) && kref_get_unless_zero(&conn->ref);
		xa_unlock(&conns);
		id++;
	} while (conn && !ours);
	return conn;
}

static void destroy_queues(void)
{
	struct workqueue_struct *all[] = { queue, link_queue, raw_queue };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i])
			destroy_workqueue(all[i]);
}

/**
 * afr_conn_init() - cache and workqueues
 * Return: 0 or -ENOMEM.
 */
int afr_conn_init(void)
{
	cache = kmem_cache_create("afr_conn", sizeof(struct afr_conn), 0,
				  SLAB_HWCACHE_ALIGN | SLAB_ACCOUNT, NULL);
	if (!cache)
		return -ENOMEM;
	queue = alloc_workqueue("afrdma", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	link_queue = alloc_workqueue("afrdma_attached", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	raw_queue = alloc_workqueue("afrdma_raw", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (queue && link_queue && raw_queue)
		return 0;
	destroy_queues();
	kmem_cache_destroy(cache);
	return -ENOMEM;
}

/**
 * afr_conn_exit() - the last works end, then the text may go
 *
 * Context: module exit, all connections are gone.
 */
void afr_conn_exit(void)
{
	destroy_queues();
	WARN_ON_ONCE(!xa_empty(&conns));
	xa_destroy(&conns);
	kmem_cache_destroy(cache);
}
