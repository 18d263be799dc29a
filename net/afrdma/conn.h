/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * A connection: the TCP socket, the sequence state and ring of each direction, and the attach to a
 * link. It may outlive its AF_RDMA socket (an orphan), to deliver bytes and end both directions.
 *
 * The connection worker handles incoming frames, timers, attach and moves, and the end of the
 * connection; worker.c describes it. Sends and receives of the program and completions of the link
 * run concurrently with it. Parts of struct afr_conn, and the lock or thread that protects each
 * (the comments of their structs name exceptions):
 *
 *	worker	the mutex, work items and timers of the worker: see struct afr_conn_worker
 *	saved	the TCP socket's own callbacks and settings: see struct afr_conn_saved
 *	tx	send direction: tx.lock
 *	out	outgoing frames: out.mutex, held while frames are written to the TCP socket
 *	rx	receive direction: rx.lock
 *	in	incoming frames: the worker
 *	attach	attach to a link: the worker; but tx.lock for members that posting uses
 *	route	result of the last route lookup: the worker
 *
 * "The worker" in this list means the current holder of worker.mutex.
 *
 * For the lock order see Documentation/networking/afrdma-internals.rst. Callbacks of the TCP socket
 * may run under its lock and in softirq. Those that tcp_sock.c installs schedule the worker, wake
 * sleeping calls of the program, or call the stock callbacks.
 */
#ifndef AFR_CONN_H
#define AFR_CONN_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "channel.h"
#include "group.h"
#include "link.h"
#include "mr.h"
#include "netns.h"
#include "proto/frame.h"
#include "proto/reason.h"
#include "proto/sequence.h"
#include "ring_mem.h"
#include "ring_quota.h"

struct afr_conn;
struct sock;
struct socket;

/*
 * What one direction of the TCP connection carries. FALLBACK and FRAMED are final (I14), except
 * that FALLBACK may change back to NONE, see afr_conn_mode_may_change().
 */
enum afr_mode {
	AFR_MODE_NONE,		/* not connected */
	AFR_MODE_UNDECIDED,	/* handshake and first bytes have not settled the mode yet */
	AFR_MODE_FALLBACK,	/* the application's bytes: calls go to the TCP socket */
	AFR_MODE_FRAMED,
};

/* Upcalls to the AF_RDMA socket. Any context but hard irq, under RCU. */
struct afr_sock_ops {
	void (*readable)(struct sock *sk);
	void (*wake_calls)(struct sock *sk);	/* wake sleeping calls, but no pollers */
	void (*decided)(struct sock *sk);	/* the peer's HELLO came */
	void (*writable)(struct sock *sk);
	void (*urgent)(struct sock *sk);	/* URGENT came, maybe before the urgent byte */
	void (*changed)(struct sock *sk);	/* mode, error or end of a direction */
	/* process context, no RCU: both directions are to fall back to TCP */
	void (*fall_back)(struct afr_conn *conn);
};

/* conn->flags: events and requests, mostly for the connection worker, and states reached. */
enum afr_conn_flag {
	AFR_F_STARTED,		/* afr_conn_start() was called: sequence state and rings exist */
	AFR_F_ACTIVE,		/* the worker may run; cleared by afr_conn_finish() */
	AFR_F_PUSH_AGAIN,	/* the holder of out.mutex has to send frames once more */
	AFR_F_JOINED,		/* the join was answered, see attach.link and .link_reason */
	AFR_F_REFUSED,		/* client: the server refused ATTACH, see attach.link_reason */
	AFR_F_LINK_DOWN,	/* down() of the channel was called */
	AFR_F_PEER_DETACHED,	/* the peer's DETACH was polled, or is not waited for any longer */
	AFR_F_DETACHED,		/* the local DETACH has completed, or cannot be posted */
	AFR_F_ABORT,		/* the connection has to end with abort_reason */
	AFR_F_ABORTED,		/* aborted: no frame is sent and no data posted any more */
	AFR_F_ABORT_REPORTED,	/* the AF_RDMA socket has got the error of the abort */
	AFR_F_TCP_SHUT,		/* the worker has shut down TCP for writing, or is about to */
	AFR_F_TCP_EOF,		/* no more bytes are read from TCP */
	AFR_F_FINISHED,		/* set by afr_conn_finish(): no further run of the worker begins */
	AFR_F_ORPHAN,		/* the AF_RDMA socket was closed */
	AFR_F_ORPHAN_SEEN,	/* the worker has handled the close */
	AFR_F_ORPHAN_COUNTED,	/* counted in an->orphans, as one of orphans_max */
	AFR_F_ORPHAN_DONE,	/* counted in an->orphans_done instead, see orphan_delivered() */
	/*
	 * BLOCKED was requested. Cleared when a frame reports the peer's cursor, when an immediate
	 * reports a new one, or if the direction is not blocked any more when BLOCKED is built.
	 */
	AFR_F_BLOCKED_SENT,
	/* the peer has left the current epoch, was never in it, or the ATTACH was refused */
	AFR_F_PEER_LEFT,
	/* client: enough data was transferred for an attach, or an attach was requested */
	AFR_F_UPGRADE,
	AFR_F_RX_REFUSED,	/* both ways shut down: bytes from rx.refused_from on are refused */
	/*
	 * The program called shutdown() for the send direction, or close() lingers while that
	 * direction is not framed.
	 */
	AFR_F_FIN_WANTED,
	AFR_F_RDMA_DENIED,	/* an administrator denies RDMA to this connection */
	AFR_F_RETRY_NOW,	/* the administrator or the program requests an attach now */
	AFR_F_LEAVE_LINK,	/* leaving a link that stays up, to continue on TCP */
	AFR_F_STALLED,		/* receive ring without space or page: reads schedule the worker */
	AFR_F_RINGS_CHARGED,	/* pages of the unpinned rings may still be charged to the quota */
	AFR_F_FLUSH,		/* send pending frames that wait to be piggybacked, too */
	AFR_F_TCP_FULL,		/* a frame waits for sk_write_space */
	/*
	 * the unlock of worker.mutex has to schedule worker.work: a work item found the mutex
	 * taken, or an inline run must not do the work (afr_worker_run(), afr_attach_start())
	 */
	AFR_F_RESCHEDULE,
	/* a run of the worker has left steps to worker.attach_work: schedule it */
	AFR_F_RESCHEDULE_ATTACH,
	AFR_F_INLINE,		/* afr_worker_run() runs the worker, in a thread of a program */
	AFR_F_RUN_INLINE,	/* a call counted in worker.readers has to run the worker */
	AFR_F_NO_PAGES,		/* senders wait: there was no page for the send ring */
	AFR_F_NO_MEMORY,	/* with NO_PAGES: allocation failed, retry at tx.retry_at */
	AFR_F_NOSPACE,		/* a sender or poller waits for space, or for the mode: wake it */
	/*
	 * server: send() takes no more bytes while the send direction is undecided. The bytes in
	 * the send ring go to TCP unframed, unless TCP fails or the connection is aborted first.
	 * Set when the direction begins to fall back, and to abort an orphan that waits for HELLO.
	 */
	AFR_F_NO_EARLY_TX,
	/* set while shut_tcp() of close.c runs: on_state_change() does not make the worker run */
	AFR_F_TCP_SHUTTING_DOWN,
	AFR_F_END_REPORTED,	/* SIGIO, if enabled, was sent for the end of the peer's stream */
	AFR_F_PASSIVE_CLOSE,	/* the peer's whole stream had come before this end sent FIN */
	AFR_F_DEVICE_ADDED,	/* a device was added, or GIDs have changed, see device_added() */
};

/* Steps of an attach (attach.c). Only the worker changes the state. */
enum afr_attach_state {
	AFR_DETACHED,		/* not on a link */
	AFR_JOINING,		/* client: waiting for a link, or registering the rings */
	AFR_REQUESTED,		/* server: ATTACH came, and is not answered yet */
	AFR_ATTACHING,		/* client: ATTACH is pending or sent */
	AFR_ATTACHED,
	AFR_LEAVING,		/* DETACH is posted or due, or cannot be posted */
};

/* How far the ATTACH or ATTACHED of an attach has come. */
enum afr_frame_step {
	AFR_FRAME_UNBUILT,
	AFR_FRAME_BUILT,	/* given to TCP, or about to be */
	AFR_FRAME_SENT,		/* TCP has sent all of it: the peer may know key and channel id */
	AFR_FRAME_ACKED,	/* the peer's TCP has received it */
};

/* Timers of the worker. Each comment says what it means that the timer has expired. */
enum afr_timer {
	AFR_T_HELLO,		/* server: the client has sent no HELLO in time */
	AFR_T_ATTACH,		/* client: ATTACHED is overdue; server: the link is overdue */
	AFR_T_RETRY,		/* time to look for the link (server) or attach (client) again */
	AFR_T_PIGGYBACK,	/* pending frames could not be piggybacked in time */
	AFR_T_PAGE_RETRY,	/* time to try again to get a page for bytes that wait in TCP */
	AFR_T_DETACH,		/* a detach was not completed in time */
	AFR_T_ORPHAN,		/* time to end the orphan, unless it still delivers */
	AFR_T_TCP_KEEPALIVE,	/* server on RDMA: time to keep the TCP connection alive */
	AFR_TIMERS
};

static_assert(sizeof(struct afr_wire_hello) >= AFR_FRAME_HEAD_MAX, "afr_conn.out");

/* The connection worker, see worker.c. */
struct afr_conn_worker {
	struct mutex		mutex;		/* held by the worker; guards the worker's data */
	struct work_struct	work;		/* on queue afrdma or afrdma_fallback */
	/* on queue afrdma_attached: may wait for the device and the peer */
	struct work_struct	attach_work;
	struct timer_list	timer;		/* expires at the earliest of @due, or before */
	/* jiffies, 0 = off; under @mutex, except in the caller of afr_conn_start() */
	unsigned long		due[AFR_TIMERS];
	atomic_t		readers;	/* calls that wait to read, or for a mode */
};

/*
 * Keeps the stock callbacks and the program's settings of the TCP socket while the TCP callbacks
 * are installed. sk_callback_lock of that socket protects the callbacks, its lock_sock() the
 * settings.
 */
struct afr_conn_saved {
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*state_change)(struct sock *sk);
	void (*error_report)(struct sock *sk);
	int			rcvlowat;	/* this and @nonagle would delay frames */
	u8			nonagle;
};

/* Send direction. Changed under @lock, unless noted; for @mem see ring_mem.h. */
struct afr_conn_tx {
	spinlock_t		lock;	/* protects this struct and posting; softirqs take it */
	struct afr_tx		seq;
	struct afr_ring_mem	mem;
	bool			busy;	/* a sender is copying bytes behind seq.written */
	/* length limit of RDMA writes; like @msgs, set under lock_sock() of the AF_RDMA socket */
	u32			piece;
	bool			corked;	/* post no small write now: one is in flight */
	bool			more;	/* MSG_MORE or TCP_CORK: a few bytes may wait for more */
	unsigned long		more_end;	/* jiffies; from then on @more has no effect */
	/* time (jiffies) to wake senders that wait for a page; valid with AFR_F_NO_MEMORY */
	unsigned long		retry_at;
	/* no write before this time (jiffies64) is latency-sensitive */
	u64			bulk_end;
	/* RDMA writes with data since data of the peer last landed; at most STREAM_WRITES */
	u8			writes_since_rx;
	u64			bytes[2];	/* by enum afr_where */
	/* number of sends; set under lock_sock() of the AF_RDMA socket */
	u32			msgs;
};

/* Outgoing frames. Under @mutex, unless noted. */
struct afr_conn_out {
	struct mutex		mutex;	/* protects this struct; only its holder writes frames */
	/*
	 * Bits of HELLO and of the control frames that wait to be written. No lock is needed to
	 * set a bit. The bit of HELLO is cleared under @mutex, every other bit under tx.lock.
	 */
	unsigned long		pending;
	/* HELLO, or a frame; the stream bytes of DATA stay in the send ring */
	u8			buf[sizeof(struct afr_wire_hello)];
	u16			len, done;	/* bytes in @buf, and how many TCP has taken */
	/* stream bytes, in the frame or to be sent unframed, that TCP still has to take */
	u32			data;
	bool			more;	/* another frame probably follows at once */
	bool			held;	/* TCP may still hold back bytes sent with MSG_MORE */
	bool			oob;	/* @data is an urgent byte to be sent unframed: MSG_OOB */
};

/* Receive direction. Changed under @lock; for @mem see ring_mem.h. */
struct afr_conn_rx {
	spinlock_t		lock;	/* protects this struct; inside tx.lock; softirqs take it */
	struct afr_rx		seq;
	struct afr_ring_mem	mem;
	bool			busy;	/* the worker is filling the ring from seq.visible on */
	u64			bytes[2];	/* by enum afr_where */
	u64			refused_from;	/* with AFR_F_RX_REFUSED: first offset refused */
	u64			urgent;		/* urgent offset, or AFR_NO_URGENT */
	u64			urgent_ack;	/* offset for the next URGENTACK */
	/*
	 * Offset of a byte that was urgent and next to be read when a later urgent offset came:
	 * without SO_OOBINLINE, a read skips that byte. AFR_NO_URGENT if there was none.
	 */
	u64			urgent_skip;
	bool			urgent_read;	/* recv(MSG_OOB) has read the byte at @urgent */
	bool			credit_imm;	/* cursors go by immediate, not by CREDIT (PC3) */
};

/* Incoming frames. The worker only. */
struct afr_conn_in {
	u8			head[AFR_FRAME_HEAD_MAX];
	u16			len;	/* bytes in @head */
	u32			data;	/* bytes of a DATA frame still to be read */
	u32			skip;	/* bytes to ignore, of a frame or at the end of HELLO */
};

/*
 * The attach to a link. Only the worker writes the members, unless noted; other threads read them
 * under tx.lock, and @state without a lock, too. Exceptions:
 * - group.c calls joined(), which sets @link and @link_reason, and then AFR_F_JOINED.
 * - group.c protects @join, and ring_quota.c protects @quota.
 * - The holder of out.mutex sets @frame_end and @frame_step when it builds ATTACH or ATTACHED, and
 *   may advance @frame_step later. The worker, without out.mutex, may advance @frame_step, too,
 *   and resets @frame_step for a new epoch.
 */
struct afr_conn_attach {
	u8			state;		/* enum afr_attach_state */
	u8			tries;		/* step of the retry delay, see attach.c */
	bool			counted;	/* against attaches_max */
	bool			detach_due;	/* DETACH is to be posted; under tx.lock */
	/* DETACH was posted, or leave_unanswered() has skipped it; under tx.lock */
	bool			detach_posted;
	/*
	 * Data and cursors may be posted: the server has built, or the client has handled, an
	 * ATTACHED that is no refusal, and this end has neither begun to leave the link, nor lost
	 * it, nor read the peer's RESUME for the epoch. Under tx.lock.
	 */
	bool			may_post;
	unsigned long		since;		/* when AFR_ATTACHED was reached (jiffies) */
	struct afr_join		join;
	struct afr_link		*link;		/* result of @join; valid with AFR_F_JOINED */
	/*
	 * Why there is no link, why the route denied the attach, or why the server refused ATTACH;
	 * in the format of conn->reason.
	 */
	u32			link_reason;
	u32			frame_end;	/* TCP sequence number behind ATTACH or ATTACHED */
	u8			frame_step;	/* enum afr_frame_step of that frame */
	struct afr_channel	channel;	/* see channel.h */
	struct afr_mr		*snd_mr, *rcv_mr;
	struct afr_ring_quota	quota;		/* charge for the pages of both rings */
	struct afr_mr_view	snd_view;	/* view of @snd_mr, for posting writes */
	u64			peer_addr;	/* these three: from ATTACH or ATTACHED */
	u32			peer_rkey, peer_span;
	u32			resume_epoch;	/* for RESUME */
	u32			resume_reason;	/* for RESUME; under tx.lock */
	/*
	 * Reason in the peer's RESUME until afr_fallback_left() runs, else 0. It is not stored if
	 * this end is already detached, or if RESUME only reports that this end has left the link.
	 */
	u32			peer_left;
	u64			move_start;	/* for MOVE; under tx.lock */
	struct afr_frame	request;	/* server: the ATTACH to answer */
	u32			answer;		/* server: reason in ATTACHED, 0 = accepted */
};

/*
 * Result of the last route lookup, see route.c. Used by the worker only, except that calls of
 * the program clear @known, and that the work item of route.c reads @watched.
 */
struct afr_conn_route {
	bool			watched;	/* counted by afr_route_watch() */
	bool			known;		/* @generation and @reason are valid */
	u32			generation;
	enum afr_reason		reason;
};

struct afr_conn {
	struct kref		ref;
	u64			id;
	struct afr_net		*an;
	struct socket		*tcp;
	struct sock __rcu	*sk;		/* the AF_RDMA socket, NULL for an orphan */
	int			node;		/* NUMA node of the socket() or accept() call */
	const struct afr_sock_ops *sock_ops;
	unsigned long		flags;		/* enum afr_conn_flag, by atomic bit operations */

	/*
	 * Result of the handshake and HELLO. The ports of the cm listeners may change later
	 * (SERVICE), and each attach of a client sets peer.mtu and peer.tclass. Written while TCP
	 * connects, accepts or disconnects, and otherwise by the worker; read anywhere.
	 */
	bool			server;
	u8			tx_mode;	/* enum afr_mode: store-release, load-acquire */
	u8			rx_mode;
	u32			nonce;		/* of the client's SYN */
	struct afr_peer		peer;
	u16			cm_port;	/* server: port of the cm listener, or 0 */

	int			err;		/* errno of calls, once AFR_F_ABORTED is set */
	u8			abort_reason;	/* enum afr_reason; the first one stays */
	u32			reason;		/* why not on RDMA; maybe with AFR_REASON_PEER */
	u8			policy;		/* enum afrdma_rdma: the program's choice */
	/* result of delivered() at the last expiry of AFR_T_ORPHAN; before the first, at close() */
	u64			orphan_sum;
	u32			moves;		/* changes of the send path by MOVE or RESUME */

	struct afr_conn_worker	worker;
	struct afr_conn_saved	saved;
	struct afr_conn_tx	tx;
	struct afr_conn_out	out;
	struct afr_conn_rx	rx;
	struct afr_conn_in	in;
	struct afr_conn_attach	attach;
	struct afr_conn_route	route;
};

struct afr_conn *afr_conn_find(struct afr_net *an, u64 id);

struct afr_conn *afr_conn_alloc(struct afr_net *an, struct sock *sk,
				const struct afr_sock_ops *ops);
void afr_conn_create(struct afr_conn *conn, struct socket *tcp);
void afr_conn_put(struct afr_conn *conn);
void afr_conn_put_closed(struct afr_conn *conn);

static inline void afr_conn_get(struct afr_conn *conn)
{
	kref_get(&conn->ref);
}

void afr_conn_start(struct afr_conn *conn, bool server, u32 nonce, u32 sndbuf, u32 rcvbuf);

void afr_conn_schedule(struct afr_conn *conn);
void afr_conn_incoming(struct afr_conn *conn);
void afr_conn_schedule_attach(struct afr_conn *conn);

/*
 * Connection worker: releases worker.mutex, and then schedules worker.work if AFR_F_RESCHEDULE is
 * set, and worker.attach_work if AFR_F_RESCHEDULE_ATTACH is set.
 */
static inline void afr_conn_worker_unlock(struct afr_conn *conn)
{
	mutex_unlock(&conn->worker.mutex);
	smp_mb();	/* unlock before testing the bits; pairs with try_lock_run() */
	if (test_bit(AFR_F_RESCHEDULE, &conn->flags) &&
	    test_and_clear_bit(AFR_F_RESCHEDULE, &conn->flags))
		afr_conn_schedule(conn);
	if (test_bit(AFR_F_RESCHEDULE_ATTACH, &conn->flags) &&
	    test_and_clear_bit(AFR_F_RESCHEDULE_ATTACH, &conn->flags))
		afr_conn_schedule_attach(conn);
}

/* Connection worker: may this invocation wait for the device? */
static inline bool afr_conn_in_attach_work(const struct afr_conn *conn)
{
	return current_work() == &conn->worker.attach_work;
}

/*
 * Connection worker: is a work item running it? Only then may it create the cm listener, for which
 * some drivers create sockets, see may_answer() of hello_rx.c.
 */
static inline bool afr_conn_in_work_item(const struct afr_conn *conn)
{
	return current_work() == &conn->worker.work || afr_conn_in_attach_work(conn);
}

/* Must a call that waits for bytes or for HELLO wake up and run the worker? */
static inline bool afr_conn_must_run_inline(const struct afr_conn *conn)
{
	return test_bit(AFR_F_RUN_INLINE, &conn->flags);
}

void afr_conn_schedule_delayed(struct afr_conn *conn, unsigned long delay);
void afr_conn_timer(struct afr_conn *conn, enum afr_timer which, unsigned int ms);
bool afr_conn_timer_due(struct afr_conn *conn, enum afr_timer which);
void afr_conn_allow_post(struct afr_conn *conn);

void afr_conn_abort(struct afr_conn *conn, enum afr_reason reason);
void afr_conn_finish(struct afr_conn *conn);
void afr_conn_orphan(struct afr_conn *conn);

void afr_conn_readable(struct afr_conn *conn);
void afr_conn_writable(struct afr_conn *conn);
void afr_conn_urgent(struct afr_conn *conn);
void afr_conn_changed(struct afr_conn *conn);
void afr_conn_decided(struct afr_conn *conn);

static inline enum afr_mode afr_conn_tx_mode(const struct afr_conn *conn)
{
	/* pairs with afr_conn_set_tx_mode(): the sequence state is initialised before FRAMED */
	return smp_load_acquire(&conn->tx_mode);
}

static inline enum afr_mode afr_conn_rx_mode(const struct afr_conn *conn)
{
	/* pairs with afr_conn_set_rx_mode(): the peer's HELLO is stored before FRAMED */
	return smp_load_acquire(&conn->rx_mode);
}

/* Allow or forbid to post data and cursors on the link; only this function changes may_post. */
static inline void afr_conn_set_may_post(struct afr_conn *conn, bool may)
{
	lockdep_assert_held(&conn->tx.lock);
	conn->attach.may_post = may;
}

/* From now on, report consumer cursors by immediate (@imm), or by CREDIT frames (PC3). */
static inline void afr_conn_set_credit_imm(struct afr_conn *conn, bool imm)
{
	lockdep_assert_held(&conn->rx.lock);
	conn->rx.credit_imm = imm;
}

/*
 * May a direction change from @was to @mode? A decision is final (I14), except that the modes
 * return to AFR_MODE_NONE when a fallback connection was disconnected, could not be established,
 * or was reset before connect() reported success: as in TCP, the socket may connect again.
 */
static inline bool afr_conn_mode_may_change(u8 was, enum afr_mode mode)
{
	return was < AFR_MODE_FALLBACK || was == mode ||
	       (was == AFR_MODE_FALLBACK && mode == AFR_MODE_NONE);
}

static inline void afr_conn_set_tx_mode(struct afr_conn *conn, enum afr_mode mode)
{
	AFR_CHECK(afr_conn_mode_may_change(conn->tx_mode, mode));
	/* pairs with afr_conn_tx_mode() */
	smp_store_release(&conn->tx_mode, mode);
}

static inline void afr_conn_set_rx_mode(struct afr_conn *conn, enum afr_mode mode)
{
	AFR_CHECK(afr_conn_mode_may_change(conn->rx_mode, mode));
	/* pairs with afr_conn_rx_mode() */
	smp_store_release(&conn->rx_mode, mode);
}

/* Is the connection negotiated: are both directions framed? */
static inline bool afr_conn_negotiated(const struct afr_conn *conn)
{
	return afr_conn_tx_mode(conn) == AFR_MODE_FRAMED &&
	       afr_conn_rx_mode(conn) == AFR_MODE_FRAMED;
}

static inline bool afr_conn_aborted(const struct afr_conn *conn)
{
	return test_bit(AFR_F_ABORTED, &conn->flags);
}

/*
 * Whether the connection worker uses the TCP socket, or may soon. False before connect() or
 * accept(), and once the connection has fallen back to TCP or has finished. Exception: if the
 * connection was aborted while its send direction was undecided, the result stays true.
 */
static inline bool afr_conn_uses_tcp(const struct afr_conn *conn)
{
	return test_bit(AFR_F_ACTIVE, &conn->flags) || afr_conn_tx_mode(conn) == AFR_MODE_UNDECIDED;
}

struct afr_conn *afr_conn_next(struct afr_net *an, unsigned long id);

int afr_conn_init(void);
void afr_conn_exit(void);

#endif /* AFR_CONN_H */
