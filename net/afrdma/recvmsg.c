// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * recvmsg(). Except with MSG_ERRQUEUE, what it does depends on the mode of the receive direction.
 * Not connected: it returns what TCP would. Undecided: it waits for the decision, but not with
 * MSG_OOB. Fallback: TCP's recvmsg() is called while the AF_RDMA socket is not locked. Framed:
 * bytes are copied from the receive ring under lock_sock(), which is released before every wait.
 */
#include <linux/errqueue.h>
#include <linux/in.h>
#include <linux/net.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/tcp.h>
#include <net/sock.h>
#include <uapi/linux/af_rdma.h>
#include <uapi/linux/in6.h>

#include "compat.h"
#include "frame_tx.h"
#include "move.h"
#include "recv.h"
#include "recvmsg.h"
#include "sock.h"
#include "tcp_settings.h"
#include "tcp_sock.h"
#include "urgent.h"
#include "wait.h"
#include "worker.h"

/**
 * afr_recvmsg_target() - how many bytes a read or a poll has to wait for
 * @sk: AF_RDMA socket
 * @len: bytes that the read requests
 * @flags: MSG_WAITALL
 *
 * The target is @len with MSG_WAITALL, else the smaller one of SO_RCVLOWAT and @len; at least 1.
 * It has two more limits. It is at most afr_rx_lowat_max(): a peek or a poll that waits for more
 * could wait forever, because the sender's ring (PM6) and rounded cursors (PC5) limit how many
 * bytes can be unread. And it is 1 while further bytes wait for space or pages, which reading may
 * free. A read with MSG_WAITALL that is no peek ignores the result: it consumes bytes while it
 * waits for all @len bytes.
 *
 * Context: any.
 * Return: bytes.
 */
size_t afr_recvmsg_target(struct sock *sk, size_t len, int flags)
{
	size_t target = sock_rcvlowat(sk, flags & MSG_WAITALL, len);
	struct afr_conn *conn = afr_sk(sk)->conn;

	if (test_bit(AFR_F_STALLED, &conn->flags))
		target = min_t(size_t, target, 1);
	return min_t(size_t, target, afr_rx_lowat_max(&conn->rx.seq));
}

/* Has the whole stream arrived, with no unread bytes but the @seen that a peek has passed? */
static bool recv_over(struct afr_conn *conn, size_t seen)
{
	return afr_recv_fin(conn) && afr_recv_readable(conn) <= seen;
}

/*
 * Must a read end now: at the end of the stream, after a shutdown of the receive side, or after
 * an abort? After an abort, unread bytes are read first. Errors of TCP are not checked here: while
 * the peer's stream is incomplete, the worker turns each of them into an abort. Sets @failed if
 * the read has to report sk_err. If an earlier call has cleared sk_err, a read without bytes then
 * returns 0.
 */
static bool recv_ends(struct sock *sk, size_t seen, bool *failed)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	bool over = recv_over(conn, seen) || READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN;

	*failed = false;
	if (!over && !afr_conn_aborted(conn))
		return false;
	smp_rmb();	/* an abort sets AFR_F_ABORTED, then sk_shutdown: read in reverse order */
	if (!afr_conn_aborted(conn))
		return true;
	afr_wait_report_abort(sk);	/* if sk_changed() has not done so yet */
	/* as with TCP, a reset after the end is an error for writes, not for reads */
	if (recv_over(conn, seen) && READ_ONCE(conn->abort_reason) == AFR_REASON_RESET)
		return true;
	*failed = afr_recv_readable(conn) <= seen;
	return *failed;
}

/*
 * Before a sleep, polls for bytes, at most for the time that AFRDMA_BUSY_POLL or SO_BUSY_POLL
 * sets. If bytes come in that time, the call does not sleep, which saves the time of a wake-up.
 */
static void busy_poll(struct sock *sk, size_t seen)
{
	unsigned int us = afr_sockopt_busy_poll(sk);
	const struct afr_conn *conn = afr_sk(sk)->conn;
	const struct afr_rx *rx = &conn->rx.seq;
	u64 end;

	if (!us)
		return;
	end = local_clock() + (u64)us * NSEC_PER_USEC;
	while (READ_ONCE(rx->visible) - READ_ONCE(rx->consumed) <= seen && local_clock() < end &&
	       !afr_conn_aborted(conn) && !signal_pending(current) && !need_resched())
		cpu_relax();
}

/*
 * recv(MSG_OOB): never waits for bytes. Returns -EINVAL with SO_OOBINLINE, or if no unread urgent
 * byte is announced. If the announced byte has not arrived yet, returns -EAGAIN, or 0 at the end
 * of the stream or if the receive side is shut down.
 */
static int recv_urgent(struct sock *sk, struct msghdr *msg, int flags)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	int ret = -EINVAL;

	if (sock_flag(sk, SOCK_URGINLINE))
		return ret;
	lock_sock(sk);
	ret = afr_urgent_read(conn, &msg->msg_iter, flags & MSG_PEEK);
	if (ret >= 0)
		msg->msg_flags |= ret ? MSG_OOB : MSG_OOB | MSG_TRUNC;
	else if (ret == -EAGAIN &&
		 (recv_over(conn, 0) || READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN))
		ret = 0;
	release_sock(sk);
	return ret;
}

/*
 * Returns how many bytes a read may copy before the urgent byte stops it; U64_MAX if nothing stops
 * it. The read continues @seen bytes after the consumer cursor, and has copied or dropped @done
 * bytes so far. If the urgent byte is next, the result depends on @done. If @done is not 0, the
 * read ends here, so 0 is returned. If @done is 0, the read goes on, so U64_MAX is returned, and
 * @skip is set to leave the byte out. @skip is also set for an urgent byte that was next to be
 * read when a later urgent offset replaced its own. It is never set with SO_OOBINLINE, or before
 * the byte has arrived.
 */
static u64 bytes_to_urgent(struct sock *sk, size_t seen, size_t done, bool *skip)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	u64 urgent = afr_urgent_offset(conn), at = conn->rx.seq.consumed + seen;
	bool here = urgent == at && !done;

	*skip = (here || READ_ONCE(conn->rx.urgent_skip) == at) && afr_recv_readable(conn) > seen &&
		!sock_flag(sk, SOCK_URGINLINE);
	return urgent == AFR_NO_URGENT || urgent < at || here ? U64_MAX : urgent - at;
}

/**
 * afr_recvmsg_readable() - how many bytes a read can get now
 * @sk: AF_RDMA socket
 * @over: true: count the bytes behind the urgent byte as well (poll); false: only those before it
 *	(FIONREAD, TCP_INQ)
 *
 * With SO_OOBINLINE, all unread bytes are counted, whatever @over is. Otherwise two bytes are left
 * out: an urgent byte that was next to be read when a later urgent offset replaced its own, and
 * the current urgent byte if no other byte has to be read before it.
 *
 * Context: any but hard irq.
 * Return: bytes.
 */
u32 afr_recvmsg_readable(struct sock *sk, bool over)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	u32 readable = afr_recv_readable(conn);
	u64 at = READ_ONCE(conn->rx.seq.consumed), urgent = afr_urgent_offset(conn);

	if (!readable || sock_flag(sk, SOCK_URGINLINE))
		return readable;
	if (READ_ONCE(conn->rx.urgent_skip) == at) {
		readable--;
		at++;
	}
	if (over)
		return readable - (readable && urgent == at);
	if (urgent == AFR_NO_URGENT || urgent < at)
		return readable;
	return min_t(u64, readable, urgent - at);
}

/*
 * Reports the bytes left to read, for TCP_INQ and io_uring; 1 instead of 0 once the whole stream
 * has arrived.
 */
static void report_inq(struct sock *sk, struct msghdr *msg)
{
	bool asked = tcp_sk(afr_tcp(sk)->sk)->recvmsg_inq;

	if (!asked && !msg->msg_get_inq)
		return;
	msg->msg_inq = afr_recvmsg_readable(sk, false);
	if (!msg->msg_inq && afr_recv_fin(afr_sk(sk)->conn))
		msg->msg_inq = 1;
	if (asked)
		put_cmsg(msg, SOL_TCP, TCP_CM_INQ, sizeof(msg->msg_inq), &msg->msg_inq);
}

/* SO_PEEK_OFF: a peek advances the offset, and a read lowers it, by the bytes returned. */
static void update_peek_offset(struct sock *sk, bool peek, size_t done)
{
	if (peek)
		sk_peek_offset_fwd(sk, done);
	else
		sk_peek_offset_bwd(sk, done);
}

/* One recvmsg() in a framed direction. It holds lock_sock(), except while read_wait() waits. */
struct framed_read {
	struct sock *sk;
	struct iov_iter *to;	/* NULL: drop the bytes (MSG_TRUNC) */
	size_t len;		/* bytes that were requested */
	int flags;		/* MSG_* */
	long timeo;		/* jiffies left to sleep */
	size_t target;		/* bytes to wait for; unused for MSG_WAITALL without MSG_PEEK */
	size_t seen;		/* peek: bytes from the cursor to the next byte to copy; else 0 */
	size_t done;		/* bytes copied to the program, or dropped if @to is NULL */
};

/*
 * Returns afr_recvmsg_target(), for a peek perhaps less. The limit afr_rx_lowat_max() is for all
 * unread bytes, but the target of a peek is for those that it returns. So the bytes that the peek
 * has passed without returning them (by SO_PEEK_OFF, or a skipped urgent byte) are subtracted from
 * the limit.
 */
static size_t read_target(const struct framed_read *r)
{
	size_t target = afr_recvmsg_target(r->sk, r->len, r->flags), before = r->seen - r->done;
	size_t most = afr_rx_lowat_max(&afr_sk(r->sk)->conn->rx.seq);

	if (!(r->flags & MSG_PEEK))
		return target;
	return min_t(size_t, target, most > before ? most - before : 1);
}

/* Advances the read by @n bytes, which were skipped if @skip, otherwise copied or dropped. */
static void read_advance(struct framed_read *r, size_t n, bool skip)
{
	r->done += skip ? 0 : n;
	if (r->flags & MSG_PEEK)
		r->seen += n;
	else
		afr_recv_consume(afr_sk(r->sk)->conn, n);
}

/*
 * Copies the next bytes to the program, or drops them (MSG_TRUNC), up to the urgent offset; or
 * skips an urgent byte. Returns the number of these bytes, 0 if there are none now, or -errno. If
 * recvmsg() has all requested bytes, or the urgent byte stops it, only sets *@over and returns 0.
 */
static ssize_t read_next(struct framed_read *r, bool *over)
{
	struct afr_conn *conn = afr_sk(r->sk)->conn;
	/*
	 * Sampled before bytes_to_urgent() reads the urgent offset: a byte that arrives after that
	 * read may be urgent, so it must not be counted here.
	 */
	u32 there = afr_recv_readable(conn);
	bool skip;
	u64 most = bytes_to_urgent(r->sk, r->seen, r->done, &skip);
	ssize_t ret;

	/* as with TCP, a zero-length read waits until there is something to read */
	*over = !most || (r->done == r->len && (r->len || there));
	if (*over)
		return 0;
	most = min_t(u64, most, there > r->seen ? there - r->seen : 0);
	ret = skip ? 1 : afr_recv_copy(conn, r->seen, r->to, min_t(u64, r->len - r->done, most));
	if (ret > 0)
		read_advance(r, ret, skip);
	return ret;
}

/*
 * Called when read_next() has returned 0 or an error, which is *@ret. Returns true if recvmsg()
 * ends now, false if it has to wait for more bytes. Sets *@ret to the error of recvmsg(), or 0.
 */
static bool read_is_over(const struct framed_read *r, ssize_t *ret)
{
	bool failed;

	if (*ret < 0 || (r->done >= r->target && !(r->flags & MSG_WAITALL)))
		return true;
	if (recv_ends(r->sk, r->seen, &failed)) {
		if (failed && !r->done)	/* else a later call, which copies no byte, reports it */
			*ret = sock_error(r->sk);
		return true;
	}
	return r->flags & MSG_PEEK && r->done >= r->target;
}

/*
 * Sleeps until bytes come, recv_ends() would end the read, or a peek has enough bytes because its
 * target has fallen. Returns 0, -EAGAIN, -ERESTARTSYS or -EINTR.
 */
static int read_wait(struct framed_read *r)
{
	struct sock *sk = r->sk;
	struct afr_conn *conn = afr_sk(sk)->conn;
	bool peek = r->flags & MSG_PEEK;
	int ret;

	release_sock(sk);
	afr_frame_tx_flush(conn);
	if (r->timeo)
		busy_poll(sk, r->seen);
	ret = afr_wait_frames(sk, &r->timeo, afr_recv_readable(conn) > r->seen ||
			      (peek && r->done && r->done >= read_target(r)) ||
			      recv_over(conn, r->seen) || afr_conn_aborted(conn) ||
			      READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN);
	lock_sock(sk);
	if (!ret)	/* AFR_F_STALLED, which lowers the target, may have changed */
		r->target = read_target(r);
	return ret;
}

static int recv_framed(struct sock *sk, struct msghdr *msg, size_t len, int flags, long timeo)
{
	struct framed_read r = {
		.sk = sk, .len = len, .flags = flags, .timeo = timeo,
		.to = flags & MSG_TRUNC ? NULL : &msg->msg_iter,
	};
	ssize_t ret;
	bool over;

	if (flags & MSG_OOB)
		return recv_urgent(sk, msg, flags);
	lock_sock(sk);
	r.seen = max(sk_peek_offset(sk, flags), 0);
	r.target = read_target(&r);
	for (;;) {
		ret = read_next(&r, &over);
		if (over)
			break;
		if (ret > 0)
			continue;
		if (read_is_over(&r, &ret))
			break;
		ret = read_wait(&r);
		if (ret)
			break;
	}
	update_peek_offset(sk, flags & MSG_PEEK, r.done);
	if (r.done || !ret)
		report_inq(sk, msg);
	release_sock(sk);
	afr_move_check_upgrade(afr_sk(sk)->conn);
	return r.done ? r.done : ret;
}

/*
 * Reads the error queue of the AF_RDMA socket, which has the MSG_ZEROCOPY notifications for bytes
 * that sendmsg.c has copied. If that queue is empty, reads the one of the TCP socket,
 * unless the connection worker uses the TCP socket, or may soon (afr_conn_uses_tcp()): the program
 * must not see packets of frames. Normally no such packet is queued, because time stamp options
 * are set on the TCP socket only while both directions are in fallback mode.
 */
static int recv_errqueue(struct sock *sk, struct msghdr *msg, size_t len, int flags)
{
	struct afr_conn *conn = afr_sk(sk)->conn;

	if (skb_queue_empty_lockless(&sk->sk_error_queue) && !afr_conn_uses_tcp(conn))
		return sock_recvmsg(conn->tcp, msg, flags);
	if (sk->sk_protocol == AFRDMA_PROTO_INET6)
		return sock_recv_errqueue(sk, msg, len, SOL_IPV6, IPV6_RECVERR);
	return sock_recv_errqueue(sk, msg, len, SOL_IP, IP_RECVERR);
}

/*
 * Receives through the kernel buffer @buf. TCP itself would copy to the program's memory under the
 * lock of the TCP socket, and a page fault there may block for as long as the program likes
 * (userfaultfd). The connection worker, which needs that lock to send, would block with it.
 */
static int recv_part(struct socket *tcp, struct msghdr *msg, void *buf, size_t len, int flags)
{
	struct iov_iter to = msg->msg_iter;
	struct kvec vec = { buf, len };
	size_t missing;
	int ret;

	/* do not take bytes from TCP that cannot be copied to the program */
	missing = len ? fault_in_iov_iter_writeable(&to, len) : 0;
	if (len && missing == len)
		return -EFAULT;
	vec.iov_len = len - missing;
	len = vec.iov_len;
	iov_iter_kvec(&msg->msg_iter, READ, &vec, 1, len);
	ret = sock_recvmsg(tcp, msg, flags);
	msg->msg_iter = to;
	if (ret > 0 && copy_to_iter(buf, ret, &msg->msg_iter) != ret)
		ret = -EFAULT;
	return ret;
}

/*
 * Receives at most AFR_BOUNCE_SIZE bytes by recv_part(). With MSG_WAITALL, repeats that until it
 * has all bytes or a part is short, but not for a peek or urgent data. With MSG_TRUNC, calls TCP
 * without a buffer.
 */
static int recv_bounced(struct sock *sk, struct msghdr *msg, int flags)
{
	struct socket *tcp = afr_tcp(sk);
	size_t left = iov_iter_count(&msg->msg_iter),
	       room = min_t(size_t, left, AFR_BOUNCE_SIZE), part;
	void *control = msg->msg_control, *last = control, *buf;
	size_t controllen = msg->msg_controllen, last_len = controllen;
	int done = 0, ret;

	if (flags & MSG_TRUNC)
		return sock_recvmsg(tcp, msg, flags);		/* copies nothing */
	buf = kvmalloc(room + 1, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	/* a short part means an end, an error, a timeout or the like: return what has come */
	do {
		part = min(room, left);
		msg->msg_control = control;
		msg->msg_controllen = controllen;
		ret = recv_part(tcp, msg, buf, part, flags);
		if (msg->msg_controllen != controllen) {
			last = msg->msg_control;
			last_len = msg->msg_controllen;
		}
		done += max(ret, 0);
		left -= max(ret, 0);
	} while (ret > 0 && ret == part && left && flags & MSG_WAITALL &&
		 !(flags & (MSG_PEEK | MSG_OOB)));
	kvfree(buf);
	msg->msg_control = last;	/* TCP_INQ and time stamps of the last part that has any */
	msg->msg_controllen = last_len;
	if (done)
		afr_tcp_sock_return_error(afr_sk(sk)->conn, sk, ret);
	return done ? done : ret;
}

static int recv_fallback(struct sock *sk, struct msghdr *msg, int flags)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	struct socket *tcp = conn->tcp;
	bool shut = READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN;	/* TCP's sk_shutdown may lack it */
	bool shared, empty = !iov_iter_count(&msg->msg_iter);
	int ret;

	if (!afr_sock_begin_call(afr_sk(sk), afr_conn_rx_mode))
		return -ENOTCONN;
	afr_tcp_settings_sync(sk);
	if (READ_ONCE(afr_sk(sk)->late))
		afr_tcp_settings_apply_late(sk);
	if (shut)
		flags |= MSG_DONTWAIT;
	shared = afr_conn_uses_tcp(conn);
	if (shared)
		ret = recv_bounced(sk, msg, flags);
	else
		ret = sock_recvmsg(tcp, msg, flags);
	afr_sock_end_call(afr_sk(sk));
	if (shut && ret == -EAGAIN)
		ret = 0;
	if (READ_ONCE(sk->sk_peek_off) >= 0)	/* getsockopt() reads sk's offset */
		WRITE_ONCE(sk->sk_peek_off, READ_ONCE(tcp->sk->sk_peek_off));
	/*
	 * TCP has ended without FIN. A send by the module may have consumed the error. If so, the
	 * module requests an abort before it unlocks out.mutex, or stores the error again before
	 * it unlocks worker.mutex. So wait for both mutexes: afr_frame_tx_idle() takes out.mutex,
	 * and afr_worker_run_wait() takes worker.mutex and runs the worker, which carries out the
	 * abort.
	 */
	if (!ret && shared && !shut && !empty && !sock_flag(tcp->sk, SOCK_DONE)) {
		afr_frame_tx_idle(conn);
		afr_worker_run_wait(conn);
		afr_tcp_sock_take_error(conn, sk);
		afr_wait_report_abort(sk);
	}
	/*
	 * A poll, or the code above, may have moved the error to the AF_RDMA socket. After the end
	 * of the stream, reads do not report it.
	 */
	if (ret <= 0 && ret != -EAGAIN && READ_ONCE(sk->sk_err) &&
	    !sock_flag(tcp->sk, SOCK_DONE))
		ret = sock_error(sk);
	return ret;
}

/*
 * Returns what TCP would return without a connection. The call must not reach the TCP socket, which
 * may begin to carry frames in the meantime.
 */
static int recv_unconnected(struct sock *sk, int flags)
{
	if (READ_ONCE(sk->sk_state) == TCP_LISTEN)
		return -ENOTCONN;
	if (flags & MSG_OOB)
		return -EINVAL;
	afr_tcp_sock_take_error(afr_sk(sk)->conn, sk);
	if (READ_ONCE(sk->sk_err))
		return sock_error(sk);
	return READ_ONCE(afr_tcp(sk)->sk->sk_shutdown) & RCV_SHUTDOWN ? 0 : -ENOTCONN;
}

/**
 * afr_recvmsg() - proto_ops.recvmsg
 * @sock: socket
 * @msg: message
 * @len: bytes it can take
 * @flags: MSG_*
 *
 * Context: process, without locks.
 * Return: bytes, 0 at the end of the stream, or -errno, as tcp(7).
 */
int afr_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	struct sock *sk = sock->sk;
	long timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	int mode;

	if (flags & MSG_ERRQUEUE)
		return recv_errqueue(sk, msg, len, flags);
	mode = afr_conn_rx_mode(afr_sk(sk)->conn);
	if (mode == AFR_MODE_UNDECIDED) {
		if (flags & MSG_OOB)
			timeo = 0;
		mode = afr_wait_mode(sk, afr_conn_rx_mode, RCV_SHUTDOWN, &timeo);
	}
	/* MSG_OOB: while the mode is undecided, no urgent byte can be known */
	if (mode < 0)
		return mode == -EAGAIN && flags & MSG_OOB ? -EINVAL : mode;
	if (mode == AFR_MODE_FRAMED)
		return recv_framed(sk, msg, len, flags, timeo);
	/* shut down, or aborted; sk_changed() may not have reported the abort yet */
	if (mode == AFR_MODE_UNDECIDED) {
		afr_wait_report_abort(sk);
		return sock_error(sk);	/* 0 if it is only shut down */
	}
	return mode == AFR_MODE_NONE ? recv_unconnected(sk, flags) : recv_fallback(sk, msg, flags);
}
