// SPDX-License-Identifier: GPL-2.0
/*
 * Sending, receiving, waiting: the calls a connected socket gets.
 *
 * A direction is undecided, raw or framed. Undecided: wait. Raw: the call goes
 * to the inner TCP socket, without any lock of ours. Framed: the rings, under
 * lock_sock, which every wait drops.
 */
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/sockios.h>
#include <net/sock.h>
#include <net/tcp.h>
#include <asm/ioctls.h>

#include "compat.h"
#include "control.h"
#include "hook.h"
#include "inner.h"
#include "move.h"
#include "recv.h"
#include "send.h"
#include "sock.h"
#include "trace.h"
#include "urgent.h"

#define MEMORY_RETRY_MS	10

/* --- upcalls ------------------------------------------------------------ */

static void front_readable(struct sock *sk)
{
	sk->sk_data_ready(sk);
}

static void front_writable(struct sock *sk)
{
	struct socket_wq *wq;

	if (!afr_send_room(afr_sk(sk)->conn))
		return;
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND);
	if (wq && wq->fasync_list)
		sock_wake_async(wq, SOCK_WAKE_SPACE, POLL_OUT);
}

/* SIGURG comes with the mark, which may be long before the byte. */
static void front_urgent(struct sock *sk)
{
	read_lock_bh(&sk->sk_callback_lock);	/* the socket in front of @sk stays */
	sk_send_sigurg(sk);
	read_unlock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready(sk);
}

/* The error of an abort becomes the socket's, once. Returns true the first time. */
static bool take_abort(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	bool first;

	if (!test_bit(AFR_F_ABORTED, &conn->flags))
		return false;
	write_lock_bh(&sk->sk_callback_lock);
	first = !test_and_set_bit(AFR_F_ABORT_TOLD, &conn->flags);
	if (first) {
		WRITE_ONCE(sk->sk_err, conn->err);
		WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
		WRITE_ONCE(sk->sk_state, TCP_CLOSE);
	}
	write_unlock_bh(&sk->sk_callback_lock);
	return first;
}

static void front_changed(struct sock *sk)
{
	if (take_abort(sk))
		sk_error_report(sk);
	sk->sk_state_change(sk);
	if (sk->sk_shutdown == SHUTDOWN_MASK)
		sk_wake_async(sk, SOCK_WAKE_WAITD, POLL_HUP);
}

/* The peer is a TCP program: from here on this socket is TCP. */
static void front_plain(struct afr_conn *conn)
{
	struct sock *sk;
	int how = 0;

	afr_hook_remove(conn);
	rcu_read_lock();
	sk = rcu_dereference(conn->front);
	if (sk)
		how = sk->sk_shutdown;
	rcu_read_unlock();
	/* bytes may wait since before: only now may a shutdown go ahead of them */
	if (how & SEND_SHUTDOWN)
		kernel_sock_shutdown(conn->inner, SHUT_WR);
	afr_conn_set_tx_mode(conn, AFR_RAW);
	afr_conn_set_rx_mode(conn, AFR_RAW);
	afr_conn_finish(conn);
	afr_conn_changed(conn);
}

const struct afr_front_ops afr_front_ops = {
	.readable	= front_readable,
	.writable	= front_writable,
	.urgent		= front_urgent,
	.changed	= front_changed,
	.plain		= front_plain,
};

/* --- waiting ------------------------------------------------------------ */

/* What a wait of @left jiffies to go ended with: 0, -EAGAIN, -ERESTARTSYS or -EINTR. */
static int waited(long *timeo, long left)
{
	if (left < 0)
		return sock_intr_errno(*timeo);
	if (!left)
		return -EAGAIN;
	if (*timeo && *timeo != MAX_SCHEDULE_TIMEOUT)
		*timeo = left;
	return 0;
}

/* Sleep until @condition, without any lock; with no time left, only look. */
#define front_wait(sk, timeo, condition)						\
({											\
	long *__timeo = (timeo);							\
											\
	waited(__timeo, wait_event_interruptible_timeout(*sk_sleep(sk), condition,	\
							 *__timeo));			\
})

static bool aborted(const struct afr_conn *conn)
{
	return test_bit(AFR_F_ABORTED, &conn->flags);
}

/* The mode of a direction once it is decided (or the connection is over). */
static int wait_mode(struct sock *sk, enum afr_mode (*mode)(const struct afr_conn *conn),
		     long *timeo)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	int err = 0;

	if (mode(conn) == AFR_UNDECIDED)
		err = front_wait(sk, timeo, mode(conn) != AFR_UNDECIDED || aborted(conn));
	return err ? err : mode(conn);
}

/* --- sending ------------------------------------------------------------ */

static int send_error(struct sock *sk, int flags)
{
	int err = sock_error(sk);

	if (!err)
		err = -EPIPE;
	if (err == -EPIPE && !(flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return err;
}

static bool send_over(struct sock *sk)
{
	return READ_ONCE(sk->sk_err) || READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN;
}

/* No page for the ring now: TCP would wait, and so do we. -EAGAIN: look again. */
static int wait_for_memory(struct sock *sk, long timeo)
{
	if (!timeo)
		return -ENOBUFS;
	release_sock(sk);
	schedule_timeout_interruptible(msecs_to_jiffies(MEMORY_RETRY_MS));
	lock_sock(sk);
	return signal_pending(current) ? sock_intr_errno(timeo) : -EAGAIN;
}

static int send_framed(struct sock *sk, struct msghdr *msg, size_t len, long timeo)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	size_t done = 0;
	ssize_t ret = 0;

	lock_sock(sk);
	if (send_over(sk))
		ret = send_error(sk, msg->msg_flags);
	while (!ret && done < len) {
		ret = afr_send_some(conn, &msg->msg_iter, len - done, msg->msg_flags & MSG_OOB);
		if (ret > 0) {
			done += ret;
			ret = 0;
			afr_send_kick(conn);
			continue;
		}
		if (ret == -ENOMEM || ret == -EDQUOT)
			ret = wait_for_memory(sk, timeo);
		if (ret != -EAGAIN)
			break;
		release_sock(sk);
		ret = front_wait(sk, &timeo, afr_send_room(conn) || send_over(sk));
		lock_sock(sk);
		if (!ret && send_over(sk) && done)
			break;		/* the next call reports it */
		if (!ret && send_over(sk))
			ret = send_error(sk, msg->msg_flags);
	}
	conn->msgs++;
	release_sock(sk);
	afr_move_consider(conn);
	return done ? done : ret;
}

/**
 * afr_sendmsg() - proto_ops.sendmsg
 * @sock: socket
 * @msg: message
 * @len: its length
 *
 * Return: bytes taken or -errno, as tcp(7).
 */
int afr_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct sock *sk = sock->sk;
	struct afr_conn *conn = afr_sk(sk)->conn;
	long timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	int mode = wait_mode(sk, afr_conn_tx_mode, &timeo);

	if (mode < 0)
		return mode;
	msg->msg_flags &= ~MSG_SPLICE_PAGES;
	if (mode == AFR_FRAMED)
		return send_framed(sk, msg, len, timeo);
	if (mode == AFR_UNDECIDED || READ_ONCE(sk->sk_err))
		return send_error(sk, msg->msg_flags);
	afr_sockopt_sync(sk);
	return sock_sendmsg(conn->inner, msg);
}

/* --- receiving ---------------------------------------------------------- */

/* The most a reader may wait for: the sender cannot tell a ring without its last unit (PC5). */
static size_t recv_target(struct sock *sk, size_t len, int flags)
{
	size_t target = sock_rcvlowat(sk, flags & MSG_WAITALL, len);

	return min_t(size_t, target, afr_rx_lowat_max(&afr_sk(sk)->conn->rx));
}

/* Has all come that ever will, and is it no more than the @seen bytes that are peeked at? */
static bool recv_over(struct afr_conn *conn, size_t seen)
{
	return afr_recv_fin(conn) && afr_recv_readable(conn) <= seen;
}

/* Nothing more will come: 0 for the end of the stream, or the error. */
static int recv_end(struct sock *sk, size_t seen, bool *end)
{
	struct afr_conn *conn = afr_sk(sk)->conn;

	*end = true;
	if (recv_over(conn, seen) || READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
		return aborted(conn) ? sock_error(sk) : 0;
	if (READ_ONCE(sk->sk_err))
		return sock_error(sk);
	*end = false;
	return 0;
}

/* Look for a while before a sleep, if the program asked for that: waking costs more. */
static void busy_poll(struct sock *sk, size_t seen)
{
	unsigned int us = afr_sockopt_busy_poll(sk);
	const struct afr_motion_rx *rx = &afr_sk(sk)->conn->rx;
	u64 end;

	if (!us)
		return;
	end = local_clock() + (u64)us * NSEC_PER_USEC;
	while (READ_ONCE(rx->visible) - READ_ONCE(rx->consumed) <= seen && local_clock() < end &&
	       !READ_ONCE(sk->sk_err) && !signal_pending(current) && !need_resched())
		cpu_relax();
}

/* recv(MSG_OOB): never waits, and is over when the stream is. */
static int recv_urgent(struct sock *sk, struct msghdr *msg, int flags)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	int ret = -EINVAL;

	if (sock_flag(sk, SOCK_URGINLINE))
		return ret;
	lock_sock(sk);
	ret = afr_urgent_take(conn, &msg->msg_iter, flags & MSG_PEEK);
	if (ret >= 0)
		msg->msg_flags |= ret ? MSG_OOB : MSG_OOB | MSG_TRUNC;
	else if (ret == -EAGAIN &&
		 (recv_over(conn, 0) || READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN))
		ret = 0;
	release_sock(sk);
	return ret;
}

/*
 * How far a read may go that has passed @seen bytes of which @done are the program's: 0
 * at the urgent byte, which ends a read that has something, and which other reads go
 * over; that they do so is told by @skip.
 */
static u64 to_mark(struct sock *sk, size_t seen, size_t done, bool *skip)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	u64 mark = afr_urgent_mark(conn), at = conn->rx.consumed + seen;
	bool here = mark == at && !done;

	*skip = (here || READ_ONCE(conn->urgent_gone) == at) && afr_recv_readable(conn) > seen &&
		!sock_flag(sk, SOCK_URGINLINE);
	return mark == AFR_NO_URGENT || mark < at || here ? U64_MAX : mark - at;
}

static int recv_framed(struct sock *sk, struct msghdr *msg, size_t len, int flags, long timeo)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	struct iov_iter *to = flags & MSG_TRUNC ? NULL : &msg->msg_iter;
	bool peek = flags & MSG_PEEK, end, skip;
	size_t done = 0, seen = 0, target;	/* seen: what a peek has passed */
	ssize_t ret = 0;
	u64 most;

	if (flags & MSG_ERRQUEUE)
		return -EAGAIN;
	if (flags & MSG_OOB)
		return recv_urgent(sk, msg, flags);
	lock_sock(sk);
	target = recv_target(sk, len, flags);
	for (;;) {
		most = to_mark(sk, seen, done, &skip);
		if (!most)
			break;
		ret = skip ? 1 : afr_recv_copy(conn, seen, to, min_t(u64, len - done, most));
		if (done == len && (len || afr_recv_readable(conn)))
			break;	/* a read of nothing waits for something, as TCP's does */
		if (ret > 0) {
			done += skip ? 0 : ret;
			if (peek)
				seen += ret;
			else
				afr_recv_consume(conn, ret);
			continue;
		}
		if (ret < 0 || (done >= target && !(flags & MSG_WAITALL)))
			break;
		if (done && READ_ONCE(sk->sk_err))
			break;		/* the next call reports it */
		ret = recv_end(sk, seen, &end);
		if (ret || end || (peek && done >= target))
			break;
		release_sock(sk);
		busy_poll(sk, seen);
		ret = front_wait(sk, &timeo, afr_recv_readable(conn) > seen ||
				 recv_over(conn, seen) || READ_ONCE(sk->sk_err) ||
				 READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN);
		lock_sock(sk);
		if (ret)
			break;
	}
	release_sock(sk);
	afr_move_consider(conn);
	return done ? done : ret;
}

static int recv_raw(struct sock *sk, struct msghdr *msg, int flags)
{
	int ret;

	afr_sockopt_sync(sk);
	ret = sock_recvmsg(afr_inner(sk), msg, flags);
	/* another thread's poll may have moved the error to the front */
	if (ret <= 0 && ret != -EAGAIN && READ_ONCE(sk->sk_err))
		ret = sock_error(sk);
	return ret;
}

/**
 * afr_recvmsg() - proto_ops.recvmsg
 * @sock: socket
 * @msg: message
 * @len: room in it
 * @flags: MSG_*
 *
 * Return: bytes, 0 at the end of the stream, or -errno, as tcp(7).
 */
int afr_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	struct sock *sk = sock->sk;
	long timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	int mode = wait_mode(sk, afr_conn_rx_mode, &timeo);

	if (mode < 0)
		return mode;
	if (mode == AFR_FRAMED)
		return recv_framed(sk, msg, len, flags, timeo);
	if (mode == AFR_UNDECIDED) {	/* aborted, maybe before the front was told */
		take_abort(sk);
		return sock_error(sk);
	}
	return recv_raw(sk, msg, flags);
}

/* --- polling ------------------------------------------------------------ */

/* What a read would find: not the urgent byte that it stops at, or goes over. */
static u32 readable_to_mark(struct sock *sk, bool over)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	u32 readable = afr_recv_readable(conn);
	u64 at = READ_ONCE(conn->rx.consumed), mark = afr_urgent_mark(conn);

	if (!readable || sock_flag(sk, SOCK_URGINLINE))
		return readable;
	if (READ_ONCE(conn->urgent_gone) == at || (mark == at && over)) {
		readable--;
		at++;
	}
	if (mark == AFR_NO_URGENT || mark < at)
		return readable;
	return min_t(u64, readable, mark - at);
}

static __poll_t poll_framed_rx(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	__poll_t mask = afr_urgent_waits(conn) ? EPOLLPRI : 0;

	if (afr_recv_fin(conn) || READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	else if (readable_to_mark(sk, true) >= recv_target(sk, INT_MAX, 0))
		mask |= EPOLLIN | EPOLLRDNORM;
	return mask;
}

static __poll_t poll_framed_tx(struct sock *sk)
{
	if (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN || afr_send_room(afr_sk(sk)->conn))
		return EPOLLOUT | EPOLLWRNORM;
	return 0;
}

#define POLL_TX	(EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND)

/**
 * afr_poll() - proto_ops.poll
 * @file: file of the socket
 * @sock: socket
 * @wait: poll table
 *
 * We wait on one queue only, our own: the inner socket's events arrive there, too.
 *
 * Return: events, as tcp(7).
 */
__poll_t afr_poll(struct file *file, struct socket *sock, struct poll_table_struct *wait)
{
	struct sock *sk = sock->sk;
	struct afr_conn *conn = afr_sk(sk)->conn;
	u8 tx, rx;
	__poll_t mask = 0, tcp = 0;
	u8 down;

	sock_poll_wait(file, sock, wait);
	tx = afr_conn_tx_mode(conn);
	rx = afr_conn_rx_mode(conn);
	if (tx == AFR_RAW || rx == AFR_RAW || tx == AFR_NONE) {
		afr_inner_take_error(conn->inner, sk);
		if (!AFR_SOL_SOCKET_IS_OURS)	/* as afr_sockopt_sync(), without its lock */
			WRITE_ONCE(conn->inner->sk->sk_rcvlowat, sk->sk_rcvlowat);
		tcp = READ_ONCE(conn->inner->ops)->poll(file, conn->inner, NULL);
		mask |= tcp & (EPOLLERR | EPOLLHUP);
	}
	if (tx == AFR_RAW || tx == AFR_NONE)
		mask |= tcp & POLL_TX;
	if (rx == AFR_RAW || rx == AFR_NONE)
		mask |= tcp & ~POLL_TX;
	if (rx == AFR_FRAMED)
		mask |= poll_framed_rx(sk);
	if (tx == AFR_FRAMED)	/* a client may send before the peer's HELLO */
		mask |= poll_framed_tx(sk);

	down = READ_ONCE(sk->sk_shutdown);
	if (rx == AFR_FRAMED && afr_recv_fin(conn))
		down |= RCV_SHUTDOWN;
	if (tx != AFR_NONE && down == SHUTDOWN_MASK)
		mask |= EPOLLHUP | EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (READ_ONCE(sk->sk_err))
		mask |= EPOLLERR;
	return mask;
}

/* --- the rest ----------------------------------------------------------- */

/**
 * afr_shutdown() - proto_ops.shutdown
 * @sock: socket
 * @how: SHUT_RD, SHUT_WR, SHUT_RDWR
 *
 * While a direction is undecided its end is remembered; the decision carries it out.
 *
 * Return: 0, -EINVAL or -ENOTCONN.
 */
int afr_shutdown(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;
	struct afr_conn *conn = afr_sk(sk)->conn;
	u8 tx = afr_conn_tx_mode(conn), rx = afr_conn_rx_mode(conn);

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	if (tx == AFR_NONE || (tx == AFR_RAW && rx == AFR_RAW))
		return READ_ONCE(conn->inner->ops)->shutdown(conn->inner, how);
	if (aborted(conn))
		return -ENOTCONN;

	lock_sock(sk);
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | (how + 1));
	smp_mb();	/* front_changed() takes no lock: what it wrote meanwhile counts */
	if (aborted(conn))
		WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	if (sk->sk_shutdown == SHUTDOWN_MASK)
		afr_recv_refuse(conn);
	release_sock(sk);
	if ((how + 1) & SEND_SHUTDOWN) {
		set_bit(AFR_F_FIN_WANTED, &conn->flags);
		if (tx == AFR_FRAMED)
			afr_send_fin(conn);
		afr_conn_schedule(conn);	/* undecided, or raw: end.c knows what to do */
	}
	sk->sk_state_change(sk);
	return 0;
}

/* A direction that is not raw answers from its ring; before it is decided that is empty. */
static int ioctl_rings(struct sock *sk, unsigned int cmd, int __user *arg)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	bool tx_raw = afr_conn_tx_mode(conn) == AFR_RAW;
	bool rx_raw = afr_conn_rx_mode(conn) == AFR_RAW;
	u64 queued, unsent;

	queued = afr_send_queued(conn, &unsent);
	if (cmd == SIOCINQ && !rx_raw)
		return put_user((int)readable_to_mark(sk, false), arg);
	if (cmd == SIOCOUTQ && !tx_raw)
		return put_user((int)queued, arg);
	if (cmd == SIOCOUTQNSD && !tx_raw)
		return put_user((int)unsent, arg);
	if (cmd == SIOCATMARK && !rx_raw)
		return put_user(afr_urgent_mark(conn) == READ_ONCE(conn->rx.consumed), arg);
	return -ENOIOCTLCMD;
}

/**
 * afr_ioctl() - proto_ops.ioctl
 * @sock: socket
 * @cmd: command
 * @arg: argument
 *
 * Return: 0 or -errno.
 */
int afr_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	struct sock *sk = sock->sk;
	struct afr_conn *conn = afr_sk(sk)->conn;
	int ret = -ENOIOCTLCMD;

	if (test_bit(AFR_F_STARTED, &conn->flags))
		ret = ioctl_rings(sk, cmd, (int __user *)arg);
	if (ret == -ENOIOCTLCMD)
		ret = READ_ONCE(conn->inner->ops)->ioctl(conn->inner, cmd, arg);
	return ret;
}
