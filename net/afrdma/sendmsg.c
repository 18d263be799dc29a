// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * sendmsg(). What it does depends on the mode of the send direction. Undecided: a client, and any
 * caller with MSG_ZEROCOPY, waits for the decision; a server copies bytes, called early bytes, to
 * the send ring. Fallback: the TCP socket sends, without the lock of the AF_RDMA socket. Framed:
 * bytes are copied to the send ring under lock_sock(), which is released while the call waits for
 * space. Not connected: the call fails, except with MSG_FASTOPEN.
 */
#include <linux/net.h>
#include <linux/sched/signal.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "compat.h"
#include "fallback.h"
#include "move.h"
#include "send.h"
#include "sock.h"
#include "tcp_settings.h"
#include "tcp_sock.h"
#include "tx_policy.h"
#include "wait.h"
#include "worker.h"

static int send_error(struct sock *sk, int flags)
{
	int err;

	smp_rmb();	/* if the caller has read sk_shutdown, sk_err is read after it */
	err = sock_error(sk) ?: -EPIPE;
	if (err == -EPIPE && !(flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return err;
}

static bool send_is_shut(struct sock *sk)
{
	return READ_ONCE(sk->sk_err) || READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN;
}

/*
 * MSG_ZEROCOPY with SO_ZEROCOPY: the bytes are copied nevertheless. If the call takes any, the
 * notification, which reports the copy, is in the error queue when the call returns. The
 * notification is allocated before the first byte is taken, so that no bytes are sent without one.
 */
static int zerocopy_begin(struct sock *sk, const struct msghdr *msg, struct ubuf_info **notice)
{
	*notice = NULL;
	/* a caller that passes its own notification, as io_uring does, also completes it */
	if (!(msg->msg_flags & MSG_ZEROCOPY) || msg->msg_ubuf || !sock_flag(sk, SOCK_ZEROCOPY))
		return 0;
	*notice = msg_zerocopy_realloc(sk, 0, NULL, false);
	return *notice ? 0 : -ENOBUFS;
}

static void zerocopy_end(struct ubuf_info *notice, bool sent)
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

	if (len < iov_iter_count(&msg->msg_iter))
		flags &= ~MSG_OOB;	/* not the last piece: it has no urgent byte */
	if (mode == AFR_MODE_UNDECIDED)
		return afr_send_early(conn, &msg->msg_iter, len, flags);
	return afr_send_copy(conn, &msg->msg_iter, len, flags);
}

/* May a server write early bytes now, and is there space? Without space, requests a wake-up. */
static bool has_early_space(struct afr_conn *conn)
{
	return afr_send_await_space(conn) && afr_send_early_allowed(conn);
}

/*
 * Sleeps until a framed direction has space to send; or until an undecided direction is decided or
 * can take early bytes. An abort or a shutdown ends the sleep, too.
 */
static int wait_to_send(struct sock *sk, int *mode, long *timeo)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	int err;

	if (*mode == AFR_MODE_FRAMED)
		return afr_wait_event(sk, timeo, afr_send_await_space(conn) || send_is_shut(sk));
	if (has_early_space(conn))
		return 0;
	/* non-blocking: complete a fallback that has begun, if TCP can take the early bytes now */
	if (!*timeo && !afr_send_early_allowed(conn))
		afr_worker_run_wait(conn);
	err = afr_wait_frames(sk, timeo, afr_conn_tx_mode(conn) != AFR_MODE_UNDECIDED ||
			      afr_conn_aborted(conn) || send_is_shut(sk) || has_early_space(conn));
	*mode = afr_conn_tx_mode(conn);
	if (*mode == AFR_MODE_UNDECIDED)
		afr_wait_report_abort(sk);	/* if sk_changed() has not done so yet */
	return err;
}

static int send_part(struct socket *tcp, struct msghdr *msg, void *buf, size_t len)
{
	struct kvec vec = { buf, len };
	struct msghdr part = { .msg_flags = msg->msg_flags & ~MSG_ZEROCOPY };
	int ret;

	if (copy_from_iter(buf, len, &msg->msg_iter) != len)
		return -EFAULT;
	if (iov_iter_count(&msg->msg_iter))	/* only the message's last byte is urgent */
		part.msg_flags = (part.msg_flags & ~MSG_OOB) | MSG_MORE;
	iov_iter_kvec(&part.msg_iter, WRITE, &vec, 1, len);
	ret = sock_sendmsg(tcp, &part);
	iov_iter_revert(&msg->msg_iter, len - max(ret, 0));
	return ret;
}

/*
 * Sends through a kernel buffer: TCP would wait for the program's memory under the lock of the TCP
 * socket, which the connection worker needs, too.
 */
static int send_bounced(struct sock *sk, struct msghdr *msg)
{
	size_t room = min_t(size_t, iov_iter_count(&msg->msg_iter), AFR_BOUNCE_SIZE), len;
	struct ubuf_info *notice;
	int done = 0, ret;
	void *buf;

	ret = zerocopy_begin(sk, msg, &notice);
	if (ret)
		return ret;
	buf = kvmalloc(room + 1, GFP_KERNEL);
	ret = buf ? 0 : -ENOMEM;
	while (!ret) {
		len = min(room, iov_iter_count(&msg->msg_iter));
		ret = send_part(afr_tcp(sk), msg, buf, len);
		done += max(ret, 0);
		if (ret < 0 || ret < len || !iov_iter_count(&msg->msg_iter))
			break;
		ret = 0;
	}
	kvfree(buf);
	zerocopy_end(notice, done);
	if (done)
		afr_tcp_sock_return_error(afr_sk(sk)->conn, sk, ret);
	return done ? done : ret;
}

/*
 * Sends on the TCP socket. Returns TCP's result; or -EPIPE if the send side is shut down, or if
 * another thread has disconnected the socket.
 */
static int send_tcp(struct sock *sk, struct msghdr *msg)
{
	unsigned int flags = msg->msg_flags;
	struct afr_sock *as = afr_sk(sk);
	int ret;

	/* after SHUT_WR, the worker may not have shut down the TCP socket yet */
	if (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN)
		return -EPIPE;
	if (!afr_sock_begin_call(as, afr_conn_tx_mode))
		return -EPIPE;
	afr_tcp_settings_sync(sk);
	if (READ_ONCE(as->late) && afr_conn_rx_mode(as->conn) == AFR_MODE_FALLBACK)
		afr_tcp_settings_apply_late(sk);
	msg->msg_flags |= MSG_NOSIGNAL;		/* see send_fallback() */
	ret = afr_conn_uses_tcp(as->conn) ? send_bounced(sk, msg) : sock_sendmsg(afr_tcp(sk), msg);
	msg->msg_flags = flags;
	afr_sock_end_call(as);
	return ret;
}

/*
 * send() in fallback mode. A poll may have moved TCP's error to the AF_RDMA socket; then TCP
 * reports EPIPE instead. So TCP must not send SIGPIPE: send_error() finds the right error, and
 * sends SIGPIPE only if that is EPIPE.
 */
static int send_fallback(struct sock *sk, struct msghdr *msg)
{
	int ret = send_tcp(sk, msg);

	if (ret != -EPIPE)
		return ret;
	afr_wait_report_abort(sk);	/* if sk_changed() has not done so yet */
	return send_error(sk, msg->msg_flags);
}

/*
 * send() on a socket that is neither connected nor connecting. It fails without a call to TCP:
 * another thread's connect() may meanwhile make the TCP socket carry frames. The exception is TCP
 * Fast Open, which makes a fallback connection.
 */
static int send_unconnected(struct sock *sk, struct msghdr *msg)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	struct sock *tcp_sk = conn->tcp->sk;
	bool ours;
	int ret = -EISCONN;

	if (!(msg->msg_flags & MSG_FASTOPEN)) {
		afr_tcp_sock_take_error(conn, sk);
		return send_error(sk, msg->msg_flags);
	}
	afr_tcp_sock_graft(conn->tcp, sk->sk_socket);	/* again: sk_socket->file exists now */
	/* until afr_sock_end_call(), another thread's connect() makes no framed connection */
	afr_sock_count_call(afr_sk(sk));
	lock_sock(tcp_sk);
	ours = tcp_sk->sk_state == TCP_CLOSE && !test_bit(AFR_F_STARTED, &conn->flags) &&
	       afr_conn_tx_mode(conn) == AFR_MODE_NONE;
	if (ours)
		afr_fallback_set_modes(conn, AFR_MODE_FALLBACK);
	else if (tcp_sk->sk_state == TCP_SYN_SENT)
		ret = -EALREADY;
	release_sock(tcp_sk);
	if (!ours)
		goto out;
	ret = send_fallback(sk, msg);
	lock_sock(tcp_sk);
	if (afr_conn_tx_mode(conn) == AFR_MODE_UNDECIDED) {
		/* another thread has called connect() since */
	} else if (conn->tcp->state == SS_UNCONNECTED) {
		afr_fallback_set_modes(conn, AFR_MODE_NONE);
	} else {	/* even if the connection ended: what TCP has received stays readable */
		afr_fallback_set(conn, AFR_REASON_OPTION_NO_ROOM);
		WRITE_ONCE(sk->sk_state, TCP_ESTABLISHED);
	}
	release_sock(tcp_sk);
out:
	afr_sock_end_call(afr_sk(sk));
	return ret;
}

/*
 * Sends the rest of a message on the TCP socket, after @done bytes that were put into the send
 * ring. If @done is not 0, returns no error: afr_tcp_sock_return_error() keeps TCP's error for the
 * next call.
 */
static ssize_t send_rest(struct sock *sk, struct msghdr *msg, size_t done)
{
	int ret;

	if (!done)
		return send_fallback(sk, msg);
	if (send_is_shut(sk))
		return done;		/* the next call reports it */
	ret = send_tcp(sk, msg);
	afr_tcp_sock_return_error(afr_sk(sk)->conn, sk, ret);
	return done + max(ret, 0);
}

/*
 * Copies a message to the send ring. A server may do so while the send direction is undecided
 * (@mode): bytes for which there is no space wait for the decision, and may then go to TCP.
 */
static ssize_t send_ring(struct sock *sk, struct msghdr *msg, size_t len, int mode, long timeo)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	struct ubuf_info *notice;
	size_t done = 0, piece;
	ssize_t ret;

	lock_sock(sk);
	piece = afr_tx_policy_piece(conn, len);
	ret = zerocopy_begin(sk, msg, &notice);
	if (!ret && send_is_shut(sk))
		ret = send_error(sk, msg->msg_flags);
	while (!ret && done < len && mode != AFR_MODE_FALLBACK) {
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
		if (!ret && send_is_shut(sk) && done)
			break;		/* the next call reports it */
		if (!ret && send_is_shut(sk))
			ret = send_error(sk, msg->msg_flags);
	}
	conn->tx.msgs++;
	zerocopy_end(notice, done);
	release_sock(sk);
	if (mode == AFR_MODE_FALLBACK && !ret && done < len)
		return send_rest(sk, msg, done);
	if (mode == AFR_MODE_FRAMED)
		afr_move_check_upgrade(conn);
	return done ? done : ret;
}

/*
 * Returns -EINVAL if the control messages of @msg are malformed, as TCP does, or if they request a
 * send from device memory: the addresses in @msg would then be offsets in that memory, which the
 * module cannot read. for_each_cmsghdr() relies on valid lengths: with others it may never end.
 */
static int check_control(struct msghdr *msg)
{
	struct cmsghdr *cmsg;

	for_each_cmsghdr(cmsg, msg)
		if (!CMSG_OK(msg, cmsg) || (cmsg->cmsg_level == SOL_SOCKET &&
					    cmsg->cmsg_type == SCM_DEVMEM_DMABUF))
			return -EINVAL;
	return 0;
}

/**
 * afr_sendmsg() - proto_ops.sendmsg
 * @sock: socket
 * @msg: message
 * @len: its length
 *
 * Context: process, without locks.
 * Return: bytes taken or -errno, as tcp(7).
 */
int afr_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct sock *sk = sock->sk;
	struct afr_conn *conn = afr_sk(sk)->conn;
	long timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	int mode = afr_conn_tx_mode(conn);
	bool early;

	/* with MSG_ZEROCOPY, wait: the mode decides which socket creates the notification */
	early = conn->server && !(msg->msg_flags & MSG_ZEROCOPY);
	if (mode == AFR_MODE_UNDECIDED && !early) {
		/*
		 * Tells afr_send_has_deferred() that a sender waits. If a server has no HELLO when
		 * hello_timeout_ms expires, its send direction then falls back, which ends this
		 * wait.
		 */
		set_bit(AFR_F_NOSPACE, &conn->flags);
		smp_mb__after_atomic();		/* the flag is set before the mode is read */
		mode = afr_wait_mode(sk, afr_conn_tx_mode, SEND_SHUTDOWN, &timeo);
	}
	if (mode < 0)
		return mode;
	msg->msg_flags &= ~MSG_SPLICE_PAGES;
	if (mode == AFR_MODE_FRAMED || (mode == AFR_MODE_UNDECIDED && early)) {
		if (check_control(msg))
			return -EINVAL;
		return send_ring(sk, msg, len, mode, timeo);
	}
	if (mode == AFR_MODE_UNDECIDED)
		afr_wait_report_abort(sk);	/* if sk_changed() has not done so yet */
	if (mode == AFR_MODE_UNDECIDED || READ_ONCE(sk->sk_err))
		return send_error(sk, msg->msg_flags);
	return mode == AFR_MODE_NONE ? send_unconnected(sk, msg) : send_fallback(sk, msg);
}

#ifdef AFR_HAVE_SPLICE_EOF
/**
 * afr_sendmsg_splice_eof() - proto_ops.splice_eof: send what waits for more bytes
 * @sock: socket
 *
 * sendfile() has met the end of its file after a piece with MSG_MORE.
 *
 * Context: process.
 */
void afr_sendmsg_splice_eof(struct socket *sock)
{
	struct afr_sock *as = afr_sk(sock->sk);
	struct socket *tcp = as->conn->tcp;

	if (afr_conn_tx_mode(as->conn) == AFR_MODE_FALLBACK) {
		if (READ_ONCE(tcp->ops)->splice_eof)
			READ_ONCE(tcp->ops)->splice_eof(tcp);
	} else if (!READ_ONCE(as->cork)) {
		afr_send_uncork(as->conn);
	}
}
#endif
