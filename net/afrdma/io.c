// SPDX-License-Identifier: GPL-2.0
/*
 * Upcalls, waiting, sending, shutdown: half of the calls a connected socket gets;
 * io_recv.c has the other half.
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
#include "io.h"
#include "move.h"
#include "recv.h"
#include "send.h"
#include "sock.h"
#include "stats.h"
#include "trace.h"
#include "urgent.h"

/* --- upcalls ------------------------------------------------------------ */

static void front_readable(struct sock *sk)
{
	if (skwq_has_sleeper(rcu_dereference(sk->sk_wq)))
		afr_stat_inc(sock_net(sk), AFR_STAT_WAKES_READ);
	sk->sk_data_ready(sk);
}

static void front_writable(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	struct socket_wq *wq;

	if (!afr_send_room(conn) || !test_and_clear_bit(AFR_F_NOSPACE, &conn->flags))
		return;
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq)) {
		afr_stat_inc(sock_net(sk), AFR_STAT_WAKES_WRITE);
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND);
	}
	if (wq && wq->fasync_list)
		sock_wake_async(wq, SOCK_WAKE_IO, POLL_OUT);
}

/* Nobody but who sleeps in a call is meant, no poll: it has a key that nobody polls for. */
static void front_calls(struct sock *sk)
{
	struct socket_wq *wq = rcu_dereference(sk->sk_wq);

	if (skwq_has_sleeper(wq))
		wake_up_interruptible_sync_poll(&wq->wait, EPOLLMSG);
}

/* No byte, no room and no end, but for those who were told that there is none. */
static void front_decided(struct sock *sk)
{
	front_calls(sk);
	front_writable(sk);
	if (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
		sk->sk_state_change(sk);
}

/* SIGURG comes with the mark, which may be long before the byte. */
static void front_urgent(struct sock *sk)
{
	read_lock_bh(&sk->sk_callback_lock);	/* the socket in front of @sk stays */
	sk_send_sigurg(sk);
	read_unlock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready(sk);
}

/**
 * afr_io_take_abort() - the error of an abort becomes the socket's, once
 * @sk: front
 *
 * Context: any.
 * Return: true the first time.
 */
bool afr_io_take_abort(struct sock *sk)
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
	struct afr_conn *conn = afr_sk(sk)->conn;

	if (afr_io_take_abort(sk))
		sk_error_report(sk);
	sk->sk_state_change(sk);
	if (sk->sk_shutdown == SHUTDOWN_MASK)
		sk_wake_async(sk, SOCK_WAKE_WAITD, POLL_HUP);
	else if (afr_recv_fin(conn) && !test_and_set_bit(AFR_F_END_TOLD, &conn->flags))
		sk_wake_async(sk, SOCK_WAKE_WAITD,
			      sk->sk_shutdown & SEND_SHUTDOWN ? POLL_HUP : POLL_IN);
}

/* What the program has shut. */
static int front_shut(struct afr_conn *conn)
{
	struct sock *sk;
	int how = 0;

	rcu_read_lock();
	sk = rcu_dereference(conn->front);
	if (sk)
		how = READ_ONCE(sk->sk_shutdown);
	rcu_read_unlock();
	return how;
}

/* The number of the next notice of MSG_ZEROCOPY: TCP goes on where we have counted. */
static void pass_notices(struct afr_conn *conn)
{
	struct sock *sk;

	rcu_read_lock();
	sk = rcu_dereference(conn->front);
	if (sk)
		atomic_set(&conn->inner->sk->sk_zckey, atomic_read(&sk->sk_zckey));
	rcu_read_unlock();
}

/* The peer is a TCP program: from here on this socket is TCP. */
static void front_plain(struct afr_conn *conn)
{
	int how, late;

	afr_hook_remove(conn);
	how = front_shut(conn);
	if (how)
		kernel_sock_shutdown(conn->inner, how - 1);
	pass_notices(conn);
	afr_conn_set_tx_mode(conn, AFR_RAW);
	afr_conn_set_rx_mode(conn, AFR_RAW);
	smp_mb();	/* afr_shutdown() looks at the modes behind what it has noted */
	late = front_shut(conn) & ~how;
	if (late)
		kernel_sock_shutdown(conn->inner, late - 1);
	if (test_bit(AFR_F_ABORT, &conn->flags))
		tcp_abort(conn->inner->sk, ECONNRESET);	/* it has waited for the decision */
	afr_conn_finish(conn);
	afr_conn_changed(conn);
}

const struct afr_front_ops afr_front_ops = {
	.readable	= front_readable,
	.calls		= front_calls,
	.decided	= front_decided,
	.writable	= front_writable,
	.urgent		= front_urgent,
	.changed	= front_changed,
	.plain		= front_plain,
};

static void set_modes(struct afr_conn *conn, enum afr_mode mode)
{
	afr_conn_set_tx_mode(conn, mode);
	afr_conn_set_rx_mode(conn, mode);
}

/**
 * afr_io_set_plain() - a connection is TCP's alone
 * @conn: connection, not started
 * @reason: why
 *
 * Context: any.
 */
void afr_io_set_plain(struct afr_conn *conn, enum afr_reason reason)
{
	WRITE_ONCE(conn->reason, reason);
	set_modes(conn, AFR_RAW);
	afr_stat_inc(conn->an->net, AFR_STAT_CONN_PLAIN);
	trace_afrdma_conn_negotiated(conn->id, AFR_RAW, AFR_RAW, reason);
}

/* --- waiting ------------------------------------------------------------ */

/**
 * afr_io_waited() - what became of a wait
 * @timeo: how long it could last; set to what is left
 * @left: what wait_event_interruptible_timeout() returned
 *
 * Return: 0, -EAGAIN, -ERESTARTSYS or -EINTR.
 */
int afr_io_waited(long *timeo, long left)
{
	if (left < 0)
		return sock_intr_errno(*timeo);
	if (!left)
		return -EAGAIN;
	if (*timeo && *timeo != MAX_SCHEDULE_TIMEOUT)
		*timeo = left;
	return 0;
}

/**
 * afr_io_wait_mode() - wait until it is decided what a direction is
 * @sk: front
 * @mode: which direction
 * @shut: RCV_SHUTDOWN for a reader: whoever shuts that ends the wait, too
 * @timeo: jiffies, set to what is left
 *
 * Return: enum afr_mode, AFR_UNDECIDED of a connection that is over or shut; or -errno.
 */
int afr_io_wait_mode(struct sock *sk, enum afr_mode (*mode)(const struct afr_conn *conn),
		     int shut, long *timeo)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	int err = 0;

	if (mode(conn) == AFR_UNDECIDED) {
		afr_control_say(conn);
		err = afr_io_wait_in(sk, timeo, mode(conn) != AFR_UNDECIDED ||
				     afr_io_aborted(conn) ||
				     (READ_ONCE(sk->sk_shutdown) & shut && afr_hook_silent(conn)));
	}
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

/*
 * MSG_ZEROCOPY: the bytes are copied, and the notice that says so is on the error queue
 * when the call returns. Made before the first byte is taken: nobody waits in vain.
 */
static int notice_begin(struct sock *sk, const struct msghdr *msg, struct ubuf_info **notice)
{
	*notice = NULL;
	/* one who brings his own, as io_uring does, drops it himself */
	if (!(msg->msg_flags & MSG_ZEROCOPY) || msg->msg_ubuf || !sock_flag(sk, SOCK_ZEROCOPY))
		return 0;
	*notice = msg_zerocopy_realloc(sk, 0, NULL);
	return *notice ? 0 : -ENOBUFS;
}

static void notice_end(struct ubuf_info *notice, bool sent)
{
	if (!notice)
		return;
	uarg_to_msgzc(notice)->zerocopy = 0;
	if (sent)
		net_zcopy_put(notice);
	else
		net_zcopy_put_abort(notice, true);
}

static ssize_t send_some(struct sock *sk, struct msghdr *msg, size_t len, int mode)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	int flags = msg->msg_flags | (READ_ONCE(afr_sk(sk)->cork) ? MSG_MORE : 0);

	if (mode == AFR_UNDECIDED)
		return afr_send_early(conn, &msg->msg_iter, len, flags);
	return afr_send_some(conn, &msg->msg_iter, len, flags);
}

/* Sleep until there is room, or until @mode is decided. */
static int wait_to_send(struct sock *sk, int *mode, long *timeo)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	int err;

	if (*mode == AFR_FRAMED)
		return afr_io_wait(sk, timeo, afr_send_await_room(conn) || send_over(sk));
	if (afr_send_await_room(conn) && afr_send_may_early(conn))
		return 0;
	/* a decision half made is a matter of locks, not of the peer */
	if (!*timeo && !afr_send_may_early(conn))
		afr_conn_run_now(conn);
	err = afr_io_wait_in(sk, timeo, afr_conn_tx_mode(conn) != AFR_UNDECIDED ||
			     afr_io_aborted(conn) || send_over(sk));
	*mode = afr_conn_tx_mode(conn);
	if (*mode == AFR_UNDECIDED)	/* aborted, maybe before the front was told */
		afr_io_take_abort(sk);
	return err;
}

static int send_part(struct socket *inner, struct msghdr *msg, void *buf, size_t len)
{
	struct kvec vec = { buf, len };
	struct msghdr part = { .msg_flags = msg->msg_flags & ~MSG_ZEROCOPY };
	int ret;

	if (copy_from_iter(buf, len, &msg->msg_iter) != len)
		return -EFAULT;
	if (iov_iter_count(&msg->msg_iter))	/* the last byte of all is the urgent one */
		part.msg_flags = (part.msg_flags & ~MSG_OOB) | MSG_MORE;
	iov_iter_kvec(&part.msg_iter, WRITE, &vec, 1, len);
	ret = sock_sendmsg(inner, &part);
	iov_iter_revert(&msg->msg_iter, len - max(ret, 0));
	return ret;
}

/* As recv_bounced(): TCP would wait for the program's memory under the lock of the socket. */
static int send_bounced(struct sock *sk, struct msghdr *msg)
{
	size_t room = min_t(size_t, iov_iter_count(&msg->msg_iter), BOUNCE), len;
	struct ubuf_info *notice;
	int done = 0, ret;
	void *buf;

	ret = notice_begin(sk, msg, &notice);
	if (ret)
		return ret;
	buf = kvmalloc(room + 1, GFP_KERNEL);
	ret = buf ? 0 : -ENOMEM;
	while (!ret) {
		len = min(room, iov_iter_count(&msg->msg_iter));
		ret = send_part(afr_inner(sk), msg, buf, len);
		done += max(ret, 0);
		if (ret < 0 || ret < len || !iov_iter_count(&msg->msg_iter))
			break;
		ret = 0;
	}
	kvfree(buf);
	notice_end(notice, done);
	if (done && (ret == -ECONNRESET || ret == -ETIMEDOUT || ret == -EHOSTUNREACH))
		WRITE_ONCE(sk->sk_err, -ret);	/* the next call reports it */
	return done ? done : ret;
}

/* The error may be at the front, where a poll has put it: so is the signal for us to send. */
static int send_raw(struct sock *sk, struct msghdr *msg)
{
	unsigned int flags = msg->msg_flags;
	int ret;

	afr_sockopt_sync(sk);
	if (READ_ONCE(afr_sk(sk)->late) && afr_conn_rx_mode(afr_sk(sk)->conn) == AFR_RAW)
		afr_sockopt_late(sk);
	msg->msg_flags |= MSG_NOSIGNAL;
	ret = afr_io_has_work(afr_sk(sk)->conn) ? send_bounced(sk, msg) :
						  sock_sendmsg(afr_inner(sk), msg);
	msg->msg_flags = flags;
	return ret == -EPIPE ? send_error(sk, flags) : ret;
}

/*
 * Neither connected nor on the way there. The inner socket is left alone, as it may come to carry
 * frames meanwhile; but TCP Fast Open makes a connection, which is plain.
 */
static int send_unconnected(struct sock *sk, struct msghdr *msg)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	struct sock *isk = conn->inner->sk;
	bool ours;
	int ret;

	if (!(msg->msg_flags & MSG_FASTOPEN)) {
		afr_inner_take_error(conn->inner, sk);
		return send_error(sk, msg->msg_flags);
	}
	lock_sock(isk);
	ours = isk->sk_state == TCP_CLOSE && !test_bit(AFR_F_STARTED, &conn->flags) &&
	       afr_conn_tx_mode(conn) == AFR_NONE;
	if (ours)	/* a connect() meanwhile asks for nothing, either */
		set_modes(conn, AFR_RAW);
	release_sock(isk);
	if (!ours)
		return isk->sk_state == TCP_SYN_SENT ? -EALREADY : -EISCONN;
	ret = send_raw(sk, msg);
	lock_sock(isk);
	if ((1 << isk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN)) {
		set_modes(conn, AFR_NONE);
	} else {
		afr_io_set_plain(conn, AFR_REASON_OPTION_NO_ROOM);
		WRITE_ONCE(sk->sk_state, TCP_ESTABLISHED);
	}
	release_sock(isk);
	return ret;
}

/* Raw, behind @done bytes that waited in the ring. What goes wrong the next call reports. */
static ssize_t send_rest(struct sock *sk, struct msghdr *msg, size_t done)
{
	int ret;

	if (done)
		msg->msg_flags |= MSG_NOSIGNAL;
	ret = send_raw(sk, msg);
	if (!done)
		return ret;
	if (ret == -ECONNRESET || ret == -ETIMEDOUT || ret == -EHOSTUNREACH)
		WRITE_ONCE(sk->sk_err, -ret);
	return done + max(ret, 0);
}

/*
 * Into the send ring. While output is undecided (@mode) a server may do so, too: what the
 * ring does not take waits for the decision, and may go raw then.
 */
static ssize_t send_ring(struct sock *sk, struct msghdr *msg, size_t len, int mode, long timeo)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	struct ubuf_info *notice;
	size_t done = 0, piece;
	ssize_t ret;

	lock_sock(sk);
	piece = afr_send_begin(conn, len);
	ret = notice_begin(sk, msg, &notice);
	if (!ret && send_over(sk))
		ret = send_error(sk, msg->msg_flags);
	while (!ret && done < len && mode != AFR_RAW) {
		ret = send_some(sk, msg, min(len - done, piece), mode);
		if (ret > 0) {
			done += ret;
			ret = 0;
			continue;
		}
		if (ret != -EAGAIN)
			break;
		release_sock(sk);
		ret = wait_to_send(sk, &mode, &timeo);
		lock_sock(sk);
		if (!ret && send_over(sk) && done)
			break;		/* the next call reports it */
		if (!ret && send_over(sk))
			ret = send_error(sk, msg->msg_flags);
	}
	conn->msgs++;
	notice_end(notice, done);
	release_sock(sk);
	if (mode == AFR_RAW && !ret && done < len)
		return send_rest(sk, msg, done);
	if (mode == AFR_FRAMED)
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
	int mode = afr_conn_tx_mode(conn);
	bool early;

	/* whose are the notices? not known yet */
	early = conn->server && !(msg->msg_flags & MSG_ZEROCOPY);
	if (mode == AFR_UNDECIDED && !early) {
		set_bit(AFR_F_NOSPACE, &conn->flags);	/* poll() has promised more */
		smp_mb__after_atomic();
		mode = afr_io_wait_mode(sk, afr_conn_tx_mode, 0, &timeo);
	}
	if (mode < 0)
		return mode;
	msg->msg_flags &= ~MSG_SPLICE_PAGES;
	if (mode == AFR_FRAMED || (mode == AFR_UNDECIDED && early))
		return send_ring(sk, msg, len, mode, timeo);
	if (mode == AFR_UNDECIDED || READ_ONCE(sk->sk_err))
		return send_error(sk, msg->msg_flags);
	return mode == AFR_NONE ? send_unconnected(sk, msg) : send_raw(sk, msg);
}

/* --- shutdown ----------------------------------------------------------- */

/* As TCP: to shut what is on its way to a peer takes the connect() back. */
static bool shut_connect(struct socket *inner, int *ret)
{
	struct sock *isk = inner->sk;
	bool on_its_way;

	lock_sock(isk);
	on_its_way = isk->sk_state == TCP_SYN_SENT;
	if (on_its_way) {
		*ret = isk->sk_prot->disconnect(isk, O_NONBLOCK);
		inner->state = *ret ? SS_DISCONNECTING : SS_UNCONNECTED;
		isk->sk_state_change(isk);
	}
	release_sock(isk);
	return on_its_way;
}

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
	int ret;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	if (tx == AFR_UNDECIDED && shut_connect(conn->inner, &ret))
		return ret;
	if (tx == AFR_NONE || (tx == AFR_RAW && rx == AFR_RAW))
		return READ_ONCE(conn->inner->ops)->shutdown(conn->inner, how);
	if (afr_io_aborted(conn))
		return -ENOTCONN;

	lock_sock(sk);
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | (how + 1));
	smp_mb();	/* front_changed(), front_plain() take no lock: what they did counts */
	if (afr_io_aborted(conn))
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
	rx = afr_conn_rx_mode(conn);
	if (afr_conn_tx_mode(conn) == AFR_RAW && rx == AFR_RAW)
		READ_ONCE(conn->inner->ops)->shutdown(conn->inner, how);	/* since just now */
	else if (rx == AFR_RAW && (how + 1) & RCV_SHUTDOWN)
		READ_ONCE(conn->inner->ops)->shutdown(conn->inner, SHUT_RD);
	sk->sk_state_change(sk);
	return 0;
}
