// SPDX-License-Identifier: GPL-2.0
/* Receiving, polling, ioctls. */
#include <linux/errqueue.h>
#include <linux/in.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <net/sock.h>
#include <uapi/linux/af_rdma.h>
#include <uapi/linux/in6.h>
#include <asm/ioctls.h>

#include "compat.h"
#include "control.h"
#include "inner.h"
#include "io.h"
#include "move.h"
#include "recv.h"
#include "send.h"
#include "sock.h"
#include "urgent.h"

/* --- receiving ---------------------------------------------------------- */

/*
 * The most a reader may wait for: the sender cannot tell a ring without its last unit (PC5);
 * and what comes next may wait for a page of what is there.
 */
static size_t recv_target(struct sock *sk, size_t len, int flags)
{
	size_t target = sock_rcvlowat(sk, flags & MSG_WAITALL, len);
	struct afr_conn *conn = afr_sk(sk)->conn;

	if (test_bit(AFR_F_STALLED, &conn->flags))
		target = min_t(size_t, target, 1);
	return min_t(size_t, target, afr_rx_lowat_max(&conn->rx));
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
	/* as TCP's: who writes hears of a reset behind the end, who reads has read all */
	if (recv_over(conn, seen) && READ_ONCE(conn->err) == EPIPE)
		return 0;
	if (recv_over(conn, seen) || READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
		return afr_io_aborted(conn) ? sock_error(sk) : 0;
	if (READ_ONCE(sk->sk_err))
		return sock_error(sk);
	*end = false;
	return 0;
}

/* Look for a while before a sleep, if the program asked for that: waking costs more. */
static void busy_poll(struct sock *sk, size_t seen)
{
	unsigned int us = afr_own_busy_poll(sk);
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

/* How much there still is, for who asked: TCP_INQ, or io_uring. The end counts as one. */
static void tell_inq(struct sock *sk, struct msghdr *msg)
{
	bool asked = tcp_sk(afr_inner(sk)->sk)->recvmsg_inq;

	if (!asked && !msg->msg_get_inq)
		return;
	msg->msg_inq = readable_to_mark(sk, false);
	if (!msg->msg_inq && afr_recv_fin(afr_sk(sk)->conn))
		msg->msg_inq = 1;
	if (asked)
		put_cmsg(msg, SOL_TCP, TCP_CM_INQ, sizeof(msg->msg_inq), &msg->msg_inq);
}

/* SO_PEEK_OFF: a peek goes on where the last one ended, a read takes that back. */
static void peeked(struct sock *sk, bool peek, size_t done)
{
	if (peek)
		sk_peek_offset_fwd(sk, done);
	else
		sk_peek_offset_bwd(sk, done);
}

static int recv_framed(struct sock *sk, struct msghdr *msg, size_t len, int flags, long timeo)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	struct iov_iter *to = flags & MSG_TRUNC ? NULL : &msg->msg_iter;
	bool peek = flags & MSG_PEEK, end, skip;
	size_t done = 0, seen, target;	/* seen: what a peek has passed */
	ssize_t ret = 0;
	u64 most;
	u32 there;

	if (flags & MSG_OOB)
		return recv_urgent(sk, msg, flags);
	lock_sock(sk);
	seen = max(sk_peek_offset(sk, flags), 0);
	target = recv_target(sk, len, flags);
	for (;;) {
		/* looked at first: a byte that comes behind this look may be an urgent one */
		there = afr_recv_readable(conn);
		most = to_mark(sk, seen, done, &skip);
		if (!most)
			break;
		if (done == len && (len || there))
			break;	/* a read of nothing waits for something, as TCP's does */
		most = min_t(u64, most, there > seen ? there - seen : 0);
		ret = skip ? 1 : afr_recv_copy(conn, seen, to, min_t(u64, len - done, most));
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
		afr_control_say(conn);
		if (timeo)
			busy_poll(sk, seen);
		ret = afr_io_wait_in(sk, &timeo, afr_recv_readable(conn) > seen ||
				     (peek && done && done >= recv_target(sk, len, flags)) ||
				     recv_over(conn, seen) || READ_ONCE(sk->sk_err) ||
				     READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN);
		lock_sock(sk);
		if (ret)
			break;
		/* smaller than before the sleep if the receive ring can have no page now */
		target = recv_target(sk, len, flags);
	}
	peeked(sk, peek, done);
	if (done || !ret)
		tell_inq(sk, msg);
	release_sock(sk);
	afr_move_consider(conn);
	return done ? done : ret;
}

/*
 * What sendmsg() of a framed connection has to tell. Of a plain one the inner socket has it; of
 * any other its queue may hold frames (the packets of time stamps), which are not the program's.
 */
static int recv_notice(struct sock *sk, struct msghdr *msg, size_t len, int flags)
{
	struct afr_conn *conn = afr_sk(sk)->conn;

	if (skb_queue_empty_lockless(&sk->sk_error_queue) && !afr_io_has_work(conn))
		return sock_recvmsg(conn->inner, msg, flags);
	if (sk->sk_protocol == AFRDMA_PROTO_INET6)
		return sock_recv_errqueue(sk, msg, len, SOL_IPV6, IPV6_RECVERR);
	return sock_recv_errqueue(sk, msg, len, SOL_IP, IP_RECVERR);
}

/*
 * TCP copies to the program's memory under the lock of the socket, for which the worker of a
 * half-framed connection would wait as long as that memory does not answer. So its bytes go by
 * memory of ours.
 */
static int recv_part(struct socket *inner, struct msghdr *msg, void *buf, size_t len, int flags)
{
	struct iov_iter to = msg->msg_iter;
	struct kvec vec = { buf, len };
	size_t missing;
	int ret;

	/* no byte is taken that could not be given */
	missing = len ? fault_in_iov_iter_writeable(&to, len) : 0;
	if (len && missing == len)
		return -EFAULT;
	vec.iov_len = len - missing;
	len = vec.iov_len;
	iov_iter_kvec(&msg->msg_iter, READ, &vec, 1, len);
	ret = sock_recvmsg(inner, msg, flags);
	msg->msg_iter = to;
	if (ret > 0 && copy_to_iter(buf, ret, &msg->msg_iter) != ret)
		ret = -EFAULT;
	return ret;
}

static int recv_bounced(struct socket *inner, struct msghdr *msg, int flags)
{
	size_t left = iov_iter_count(&msg->msg_iter), room = min_t(size_t, left, BOUNCE), part;
	int done = 0, ret;
	void *buf;

	if (flags & MSG_TRUNC)
		return sock_recvmsg(inner, msg, flags);		/* which copies nothing */
	buf = kvmalloc(room + 1, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	do {	/* less than a whole part: the end, an error or a time-out, for the next call */
		part = min(room, left);
		ret = recv_part(inner, msg, buf, part, flags);
		done += max(ret, 0);
		left -= max(ret, 0);
	} while (ret > 0 && ret == part && left && flags & MSG_WAITALL &&
		 !(flags & (MSG_PEEK | MSG_OOB)));
	kvfree(buf);
	return done ? done : ret;
}

static int recv_raw(struct sock *sk, struct msghdr *msg, int flags)
{
	struct socket *inner = afr_inner(sk);
	bool shut = READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN;	/* the inner one may not be */
	int ret;

	afr_sockopt_sync(sk);
	if (READ_ONCE(afr_sk(sk)->late))
		afr_sockopt_late(sk);
	if (shut)
		flags |= MSG_DONTWAIT;
	if (afr_io_has_work(afr_sk(sk)->conn))
		ret = recv_bounced(inner, msg, flags);
	else
		ret = sock_recvmsg(inner, msg, flags);
	if (shut && ret == -EAGAIN)
		ret = 0;
	if (READ_ONCE(sk->sk_peek_off) >= 0)	/* getsockopt() asks the front */
		WRITE_ONCE(sk->sk_peek_off, READ_ONCE(inner->sk->sk_peek_off));
	/* a poll may have moved the error to the front; behind the end it is a writer's */
	if (ret <= 0 && ret != -EAGAIN && READ_ONCE(sk->sk_err) &&
	    !sock_flag(inner->sk, SOCK_DONE))
		ret = sock_error(sk);
	return ret;
}

/* What TCP says without a connection; the inner socket may come to carry frames meanwhile. */
static int recv_unconnected(struct sock *sk, int flags)
{
	struct socket *inner = afr_inner(sk);

	if (READ_ONCE(sk->sk_state) == TCP_LISTEN)
		return -ENOTCONN;
	if (flags & MSG_OOB)
		return -EINVAL;
	afr_inner_take_error(inner, sk);
	if (READ_ONCE(sk->sk_err))
		return sock_error(sk);
	return READ_ONCE(inner->sk->sk_shutdown) & RCV_SHUTDOWN ? 0 : -ENOTCONN;
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
	int mode;

	if (flags & MSG_ERRQUEUE)
		return recv_notice(sk, msg, len, flags);
	mode = afr_conn_rx_mode(afr_sk(sk)->conn);
	if (mode == AFR_UNDECIDED)
		mode = afr_io_wait_mode(sk, afr_conn_rx_mode, RCV_SHUTDOWN, &timeo);
	if (mode < 0)
		return mode;
	if (mode == AFR_FRAMED)
		return recv_framed(sk, msg, len, flags, timeo);
	if (mode == AFR_UNDECIDED) {	/* aborted, maybe before the front was told */
		afr_io_take_abort(sk);
		return sock_error(sk);	/* 0, if it is only shut */
	}
	return mode == AFR_NONE ? recv_unconnected(sk, flags) : recv_raw(sk, msg, flags);
}

/* --- polling ------------------------------------------------------------ */

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
	if (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN || afr_send_await_room(afr_sk(sk)->conn))
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
	else if (rx == AFR_UNDECIDED && READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	/* either end may send before the peer's HELLO */
	if (tx == AFR_FRAMED || (tx == AFR_UNDECIDED && afr_send_may_early(conn)))
		mask |= poll_framed_tx(sk);

	down = READ_ONCE(sk->sk_shutdown);
	if (rx == AFR_FRAMED && afr_recv_fin(conn))
		down |= RCV_SHUTDOWN;
	if (tx != AFR_NONE && down == SHUTDOWN_MASK)
		mask |= EPOLLHUP | EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (READ_ONCE(sk->sk_err) || !skb_queue_empty_lockless(&sk->sk_error_queue))
		mask |= EPOLLERR;
	/* who waits to read waits for the peer, which may wait for what waits for company */
	if (READ_ONCE(conn->want) & AFR_WANT_LAZY && !(mask & EPOLLIN) &&
	    !(poll_requested_events(wait) & EPOLLOUT)) {
		set_bit(AFR_F_SAY, &conn->flags);
		afr_conn_schedule(conn);
	}
	return mask;
}

/* --- ioctl -------------------------------------------------------------- */

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
