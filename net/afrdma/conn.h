/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection: the inner TCP socket, the books and rings of both directions,
 * and the attach to a link. It outlives the socket in front of it while there
 * are bytes to deliver (an orphan).
 *
 * Threads. Everything that decides is the work of the connection (reader.c): frames in,
 * timers, attach and moves, ending. One at a time does it: a worker, or on TCP the call
 * that waits to read or closes, which saves the switch to a worker and back. Beside it run
 * the program's sends and receives, and the link's completions. What they share is
 * protected by
 *
 *	run_mutex	the work
 *	ctl_mutex	writing frames to the inner socket
 *	tx_lock		tx books, posting on the link, @want
 *	rx_lock		rx books
 *
 * Lock order:
 *	lock_sock(front) > ctl_mutex > lock_sock(inner)
 *	run_mutex > ctl_mutex
 *	ctl_mutex > tx_lock > rx_lock > link lock
 * Inner-socket callbacks run under the inner slock: they only have the work done.
 */
#ifndef AFR_CONN_H
#define AFR_CONN_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "frame.h"
#include "group.h"
#include "link.h"
#include "mem.h"
#include "motion.h"
#include "mr.h"
#include "netns.h"
#include "reason.h"
#include "share.h"

struct afr_conn;
struct sock;
struct socket;

/*
 * What the bytes of one direction on the inner TCP connection are. One way:
 * UNDECIDED -> RAW or FRAMED.
 */
enum afr_mode {
	AFR_NONE,		/* not connected */
	AFR_UNDECIDED,
	AFR_RAW,		/* the application's bytes: calls go to the inner socket */
	AFR_FRAMED,
};

/* Upcalls to the socket in front. Any context but hard irq, under RCU. */
struct afr_front_ops {
	void (*readable)(struct sock *sk);
	void (*calls)(struct sock *sk);		/* calls that sleep look again; polls do not */
	void (*decided)(struct sock *sk);	/* the peer's HELLO came */
	void (*writable)(struct sock *sk);
	void (*urgent)(struct sock *sk);	/* an urgent byte is on its way */
	void (*changed)(struct sock *sk);	/* mode, error or end of stream */
	void (*plain)(struct afr_conn *conn);	/* process context: both directions are raw */
};

/* What the connection wants to say on the control channel; sent in this order. */
enum afr_want {
	AFR_WANT_HELLO,
	AFR_WANT_ERROR,
	AFR_WANT_RESUME,
	AFR_WANT_ATTACH,
	AFR_WANT_ATTACHED,
	AFR_WANT_URGENT,
	AFR_WANT_MOVE,
	AFR_WANT_CREDIT,
	AFR_WANT_FINACK,
	AFR_WANT_FIN,
	AFR_WANT_BLOCKED,
	AFR_WANT_URGENTACK,
	AFR_WANT_SERVICE,
};

/* Things that happened, for the work (conn->flags). */
enum afr_conn_flag {
	AFR_F_STARTED,		/* afr_conn_start() was called: books and rings exist */
	AFR_F_ALIVE,		/* the work may run; cleared by afr_conn_finish() */
	AFR_F_PUSH_AGAIN,	/* someone found ctl_mutex taken */
	AFR_F_JOINED,		/* the group answered: join_link, join_reason */
	AFR_F_REFUSED,		/* client: the server refused our ATTACH: join_reason */
	AFR_F_LINK_DOWN,	/* port->down() was called */
	AFR_F_PEER_DETACHED,	/* the peer will not write any more */
	AFR_F_DETACHED,		/* our DETACH has completed */
	AFR_F_ABORT,		/* end with abort_reason */
	AFR_F_ABORTED,		/* done so */
	AFR_F_ABORT_TOLD,	/* and the socket in front has been told */
	AFR_F_INNER_SHUT,	/* we sent TCP FIN */
	AFR_F_INNER_EOF,	/* and read the peer's */
	AFR_F_FINISHED,		/* nothing is left to do */
	AFR_F_ORPHAN,		/* no socket in front any more */
	AFR_F_ORPHAN_SEEN,	/* ... the work knows it */
	AFR_F_ORPHAN_COUNTED,	/* ... and it is one of the orphans_max */
	AFR_F_ORPHAN_DONE,	/* ... that were, and have delivered all */
	AFR_F_BLOCKED_TOLD,	/* BLOCKED was sent for the current blockade */
	AFR_F_PEER_LEFT,	/* the peer's RESUME of the current epoch has come */
	AFR_F_UPGRADE,		/* client: enough was moved to deserve a link */
	AFR_F_DEAF,		/* shut both ways: bytes behind deaf_at are refused */
	AFR_F_FIN_WANTED,	/* shutdown(SHUT_WR) was called */
	AFR_F_KEEP_TCP,		/* an administrator wants no RDMA here */
	AFR_F_RETRY_NOW,	/* an administrator wants RDMA now */
	AFR_F_LEAVE,		/* leaving a good link, not the connection's end */
	AFR_F_STALLED,		/* the work waits for the program to read: no room, no page */
	AFR_F_SAY,		/* what waits for company is to be said without */
	AFR_F_TCP_FULL,		/* a frame waits for sk_write_space */
	AFR_F_RUN_AGAIN,	/* a worker found run_mutex taken */
	AFR_F_TURN,		/* who waits to read is to do the work */
	AFR_F_NO_PAGES,		/* senders wait: there was no page for the send ring */
	AFR_F_NOSPACE,		/* a sender or a poll found no room: tell when there is */
	AFR_F_EARLY_OVER,	/* server: our output will be raw, what was written early goes */
	AFR_F_SHUTTING,		/* what TCP tells of now is our own doing */
	AFR_F_END_TOLD,		/* SIGIO of the peer's end was sent */
	AFR_F_DEVICE,		/* an RDMA device came: to be told, or to be tried */
};

/* Steps of an attach (move.c). Only the work changes them. */
enum afr_attach_state {
	AFR_DETACHED,		/* on TCP */
	AFR_JOINING,		/* client: waiting for a link */
	AFR_REQUESTED,		/* server: ATTACH came, its link is not up here yet */
	AFR_ATTACHING,		/* client: ATTACH sent */
	AFR_ATTACHED,
	AFR_LEAVING,		/* DETACH is posted or due, or the link is lost */
};

enum afr_timer {
	AFR_T_HELLO,		/* server: the client is silent */
	AFR_T_ATTACH,
	AFR_T_RETRY,		/* server: look for the link again; client: try again */
	AFR_T_SAY,		/* nothing came to go along with what is wanted */
	AFR_T_MEMORY,		/* allocation failed for bytes that wait in TCP: try again */
	AFR_T_DETACH,
	AFR_T_ORPHAN,
	AFR_T_ALIVE,		/* server on RDMA: say something by TCP */
	AFR_TIMERS
};

static_assert(sizeof(struct afr_wire_hello) >= AFR_FRAME_HEAD_MAX, "afr_conn.out");

struct afr_conn {
	struct kref		ref;
	u64			id;
	struct afr_net		*an;
	struct socket		*inner;
	struct sock __rcu	*front;
	const struct afr_front_ops *front_ops;
	struct mutex		run_mutex;		/* see the head of this file */
	struct work_struct	work;
	struct work_struct	link_work;		/* for who may wait for a device */
	bool			on_link;		/* ... which is needed; run_mutex */
	struct timer_list	timer;
	atomic_t		readers;	/* calls that wait to read */
	unsigned long		due[AFR_TIMERS];	/* jiffies, 0 = off; the work only */
	unsigned long		flags;
	int			err;		/* what calls report, once AFR_F_ABORTED */
	u8			abort_reason;	/* enum afr_reason */
	u32			reason;		/* why not RDMA; maybe with AFR_REASON_PEER */
	u8			wish;		/* enum afrdma_rdma: the program's */
	u64			orphan_sum;	/* delivered when AFR_T_ORPHAN began */

	/* agreement */
	bool			server;
	u8			tx_mode;	/* enum afr_mode; released by the decider */
	u8			rx_mode;
	u32			nonce;		/* the client's */
	struct afr_peer		peer;
	u16			my_port;	/* server: of our rdma_cm listener, for HELLO */

	/* inner socket callbacks to give back */
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*state_change)(struct sock *sk);
	void (*error_report)(struct sock *sk);
	int			rcvlowat;	/* and settings that frames cannot have */
	u8			nonagle;

	/* sending */
	spinlock_t		tx_lock;
	struct afr_motion_tx	tx;
	struct afr_mem		snd;
	bool			tx_busy;	/* a sender is putting bytes behind tx.written */
	u32			tx_piece;	/* bytes of one write at most */
	bool			corked;		/* small writes wait until one has completed */
	bool			more;		/* little waits for more: MSG_MORE, TCP_CORK ... */
	unsigned long		more_end;	/* ... until then (jiffies) */
	u64			bulk_end;	/* jiffies64; until then this one carries bulk */
	u8			unheard;	/* writes posted since the peer's last bytes */
	unsigned long		want;		/* enum afr_want bits */
	u64			tx_bytes[2];	/* by enum afr_where */
	u32			msgs;
	u32			moves;

	/* frames out, under ctl_mutex */
	struct mutex		ctl_mutex;
	u8			out[sizeof(struct afr_wire_hello)];	/* or a frame's head */
	u16			out_len, out_done;
	u32			out_data;	/* stream bytes of the frame not taken by TCP yet */
	bool			out_more;	/* another frame follows at once */
	bool			out_held;	/* TCP was told so with the last bytes it took */
	bool			out_oob;	/* raw, and the last byte is urgent */

	/* receiving */
	spinlock_t		rx_lock;
	struct afr_motion_rx	rx;
	struct afr_mem		rcv;
	bool			rx_busy;	/* the reader is putting bytes behind rx.visible */
	u64			rx_bytes[2];
	u64			deaf_at;
	u64			urgent;		/* its mark, or AFR_NO_URGENT; under rx_lock */
	u64			urgent_ack;	/* what URGENTACK will say */
	u64			urgent_gone;	/* where a byte is that the next read goes over */
	bool			urgent_read;	/* by recv(MSG_OOB) */
	bool			credit_imm;	/* cursors go by immediate (PC3) */

	/* frames in, the work only */
	u8			in[AFR_FRAME_HEAD_MAX];
	u16			in_len;
	u32			in_data;	/* stream bytes still to come of a DATA frame */
	u32			in_skip;	/* bytes of an optional frame to skip */

	/* attach, the work only (port: see link.h) */
	u8			attach;		/* enum afr_attach_state */
	u8			attach_tries;
	bool			let_in;		/* one of the attaches_max */
	bool			watched;	/* counted by afr_route_watch() */
	bool			route_known;	/* what is next: of route.c */
	u32			route_generation;
	enum afr_reason		route_reason;
	bool			detach_due;	/* under tx_lock: the port's next turn is for it */
	bool			detach_posted;	/* under tx_lock */
	unsigned long		attached_at;	/* jiffies */
	struct afr_join		join;
	struct afr_link		*join_link;
	u32			join_reason;	/* as reason */
	struct afr_port		port;
	struct afr_mr		*snd_mr, *rcv_mr;
	struct afr_share	share;		/* of memory for both rings */
	struct afr_mr_view	snd_view;	/* under tx_lock once attached */
	bool			may_post;	/* under tx_lock: peer_* known, link good */
	u64			peer_addr;
	u32			peer_rkey, peer_span;
	u32			resume_epoch;	/* what RESUME will say */
	u32			resume_reason;
	u32			peer_left;	/* what RESUME told before we have left, or 0 */
	u64			move_start;
	struct afr_frame	attach_req;	/* server: the ATTACH being answered */
	u32			attach_reason;	/* server: what ATTACHED will say */
};

/* The connection of this id with a reference, or NULL. Process context. */
struct afr_conn *afr_conn_find(struct afr_net *an, u64 id);

/*
 * A connection for @inner, which it takes over on success. Not framed yet: its
 * calls are the inner socket's. @front is the socket in front.
 */
struct afr_conn *afr_conn_alloc(struct afr_net *an, struct sock *front,
				const struct afr_front_ops *ops);
void afr_conn_create(struct afr_conn *conn, struct socket *inner);
void afr_conn_put(struct afr_conn *conn);
void afr_conn_put_closed(struct afr_conn *conn);
static inline void afr_conn_get(struct afr_conn *conn)
{
	kref_get(&conn->ref);
}

/* Framing may begin: what the handshake agreed on, and sizes of the rings in bytes. */
void afr_conn_start(struct afr_conn *conn, bool server, u32 nonce, u32 sndbuf, u32 rcvbuf);

/* Any context. A worker does the work soon. */
void afr_conn_schedule(struct afr_conn *conn);
/* Any context but hard irq. Frames came: who waits to read does the work, or a worker. */
void afr_conn_incoming(struct afr_conn *conn);
/* Process context. Do the work here, unless that might take long. */
void afr_conn_run(struct afr_conn *conn);
/* Any context. Have a worker do the work that may wait for the device. */
void afr_conn_schedule_link(struct afr_conn *conn);
/* Process context, output turns out raw. Do it here, behind whoever does it just now. */
void afr_conn_run_now(struct afr_conn *conn);
/* The work. Let go of run_mutex, and see to who came meanwhile. */
static inline void afr_conn_unlock_run(struct afr_conn *conn)
{
	mutex_unlock(&conn->run_mutex);
	smp_mb();	/* let go, then look: try_lock_run() */
	if (test_bit(AFR_F_RUN_AGAIN, &conn->flags) &&
	    test_and_clear_bit(AFR_F_RUN_AGAIN, &conn->flags))
		afr_conn_schedule(conn);
}

/* Process context. Around a wait to read, which ends for afr_conn_turn() as well. */
static inline void afr_conn_wait_begin(struct afr_conn *conn)
{
	atomic_inc(&conn->readers);
}

void afr_conn_wait_end(struct afr_conn *conn);
/* The work: may it wait for the device? */
static inline bool afr_conn_may_wait(const struct afr_conn *conn)
{
	return current_work() == &conn->link_work;
}

/* The work: may it make sockets of the kernel's? */
static inline bool afr_conn_in_worker(const struct afr_conn *conn)
{
	return current_work() == &conn->work || afr_conn_may_wait(conn);
}

static inline bool afr_conn_turn(const struct afr_conn *conn)
{
	return test_bit(AFR_F_TURN, &conn->flags);
}

/* Any context. The same, in delay jiffies or before. */
void afr_conn_look_again(struct afr_conn *conn, unsigned long delay);
/* The work function is handed down by reader.c once. */
void afr_conn_set_work(void (*run)(struct afr_conn *conn));
/* The work: (re)start a timer, or stop it with @ms 0. */
void afr_conn_timer(struct afr_conn *conn, enum afr_timer which, unsigned int ms);
/* The work: has this timer run out? Stops it if so. */
bool afr_conn_timer_due(struct afr_conn *conn, enum afr_timer which);

/* Any context. The connection must end: the work does it. The first reason stays. */
void afr_conn_abort(struct afr_conn *conn, enum afr_reason reason);
/* The work, or before it ever ran: nothing is left to do; drops the reference of the living. */
void afr_conn_finish(struct afr_conn *conn);
/* The socket in front is closed: no upcall reaches it any more. */
void afr_conn_orphan(struct afr_conn *conn);

/* Any context but hard irq. Upcalls to the front, if there is one. */
void afr_conn_readable(struct afr_conn *conn);
void afr_conn_writable(struct afr_conn *conn);
void afr_conn_urgent(struct afr_conn *conn);
void afr_conn_changed(struct afr_conn *conn);
void afr_conn_decided(struct afr_conn *conn);

static inline enum afr_mode afr_conn_tx_mode(const struct afr_conn *conn)
{
	/* with a mode come the books, callbacks and peer that belong to it */
	return smp_load_acquire(&conn->tx_mode);
}

static inline enum afr_mode afr_conn_rx_mode(const struct afr_conn *conn)
{
	/* as above */
	return smp_load_acquire(&conn->rx_mode);
}

/* Once it is decided, it is (I14); but a plain socket may be disconnected, as TCP's may. */
static inline bool afr_conn_mode_open(u8 was, enum afr_mode mode)
{
	return was < AFR_RAW || was == mode || (was == AFR_RAW && mode == AFR_NONE);
}

static inline void afr_conn_set_tx_mode(struct afr_conn *conn, enum afr_mode mode)
{
	AFR_CHECK(afr_conn_mode_open(conn->tx_mode, mode));
	/* pairs with afr_conn_tx_mode() */
	smp_store_release(&conn->tx_mode, mode);
}

static inline void afr_conn_set_rx_mode(struct afr_conn *conn, enum afr_mode mode)
{
	AFR_CHECK(afr_conn_mode_open(conn->rx_mode, mode));
	/* pairs with afr_conn_rx_mode() */
	smp_store_release(&conn->rx_mode, mode);
}

static inline bool afr_conn_framed(const struct afr_conn *conn)
{
	return afr_conn_tx_mode(conn) == AFR_FRAMED && afr_conn_rx_mode(conn) == AFR_FRAMED;
}

/* Facts for smctl, AFRDMA_INFO and the tests. */
struct afr_conn_info {
	u64	id;
	struct sockaddr_storage	local, remote;
	u8	mode;		/* enum afrdma_mode of the uapi */
	u8	tx_path, rx_path;	/* enum afrdma_path */
	u8	tcp_state;	/* of the inner socket */
	bool	server, orphan;
	bool	reason_peer;	/* the peer has told it, and it is about that end */
	u32	reason;		/* enum afr_reason */
	u32	abort_reason;
	u32	uid;
	unsigned long	inode;
	u64	tx_bytes[2], rx_bytes[2];	/* TCP, RDMA */
	u64	unsent, unread;	/* bytes */
	u64	moves;
	u64	link;		/* id, 0 = none */
	u32	tx_ring, rx_ring;
	u32	epoch;
};

void afr_conn_info(struct afr_conn *conn, struct afr_conn_info *info);
/* Any context, no locks: the addresses of the inner socket; @remote is zero without a peer. */
void afr_conn_names(const struct afr_conn *conn, struct sockaddr_storage *local,
		    struct sockaddr_storage *remote);
/* The largest packet that its TCP sends: what the path is known to take. */
u32 afr_conn_path_mtu(const struct afr_conn *conn);
/* The first connection of @an (NULL: of all) with this id or a higher one, with a reference. */
struct afr_conn *afr_conn_next(struct afr_net *an, unsigned long id);
/*
 * Process context. Visit all connections of @an (NULL: all), from @id on, until @fn
 * returns non-zero.
 */
int afr_conn_for_each(struct afr_net *an, unsigned long id,
		      int (*fn)(const struct afr_conn_info *info, void *arg), void *arg);

int afr_conn_init(void);
void afr_conn_exit(void);	/* all connections are gone */

#endif /* AFR_CONN_H */
