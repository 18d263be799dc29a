// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * poll(), SO_RCVLOWAT, and the ioctls that report queued bytes and whether the next byte is the
 * urgent one.
 */
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/sockios.h>
#include <net/sock.h>
#include <asm/ioctls.h>

#include "compat.h"
#include "frame_tx.h"
#include "recv.h"
#include "recvmsg.h"
#include "send.h"
#include "sock.h"
#include "tcp_settings.h"
#include "tcp_sock.h"
#include "urgent.h"
#include "wait.h"

static __poll_t poll_framed_rx(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	__poll_t mask = afr_urgent_readable(conn) ? EPOLLPRI : 0;

	if (afr_recv_fin(conn) || READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	else if (afr_recvmsg_readable(sk, true) >= afr_recvmsg_target(sk, INT_MAX, 0))
		mask |= EPOLLIN | EPOLLRDNORM;
	return mask;
}

static __poll_t poll_framed_tx(struct sock *sk)
{
	if (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN || afr_send_await_space(afr_sk(sk)->conn))
		return EPOLLOUT | EPOLLWRNORM;
	return 0;
}

#define POLL_TX	(EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND)

/*
 * Does poll() report errors of the TCP socket? Not while the worker reads that socket: the worker
 * handles an error after it has read all bytes that came before the error. A full receive ring
 * makes the worker pause; then the error is reported after the program has read, or as an abort if
 * the worker or a sender meets the error before (afr_close_blocked_sender(), afr_frame_tx_push()).
 */
static bool reports_tcp(struct afr_conn *conn, u8 rx)
{
	return rx == AFR_MODE_FALLBACK || rx == AFR_MODE_NONE ||
	       (rx == AFR_MODE_FRAMED && test_bit(AFR_F_TCP_EOF, &conn->flags) &&
		afr_recv_fin(conn));
}

/**
 * afr_poll() - proto_ops.poll
 * @file: file of the socket
 * @sock: socket
 * @wait: poll table
 *
 * The only wait queue is that of the AF_RDMA socket, where events of the TCP socket arrive, too.
 *
 * Context: process, without locks.
 * Return: events, as for a TCP socket.
 */
__poll_t afr_poll(struct file *file, struct socket *sock, struct poll_table_struct *wait)
{
	struct sock *sk = sock->sk;
	struct afr_conn *conn = afr_sk(sk)->conn;
	u8 tx, rx, down;
	__poll_t mask = 0, tcp = 0;

	sock_poll_wait(file, sock, wait);
	tx = afr_conn_tx_mode(conn);
	rx = afr_conn_rx_mode(conn);
	if (tx == AFR_MODE_FALLBACK || rx == AFR_MODE_FALLBACK || tx == AFR_MODE_NONE) {
		bool reports = reports_tcp(conn, rx);

		if (reports) {
			afr_tcp_sock_take_error(conn, sk);
			afr_wait_report_abort(sk);	/* if sk_changed() has not done so yet */
			afr_tcp_settings_sync_rcvlowat(sk);
		}
		tcp = READ_ONCE(conn->tcp->ops)->poll(file, conn->tcp, NULL);
		mask |= reports ? tcp & EPOLLHUP : 0;
	}
	if (tx == AFR_MODE_FALLBACK || tx == AFR_MODE_NONE)
		mask |= tcp & POLL_TX;
	if (rx == AFR_MODE_FALLBACK || rx == AFR_MODE_NONE)
		mask |= tcp & ~POLL_TX;
	if (rx == AFR_MODE_FRAMED)
		mask |= poll_framed_rx(sk);
	else if (rx == AFR_MODE_UNDECIDED && READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	/* a program may write before the peer's HELLO has come, at either end */
	if (tx == AFR_MODE_FRAMED || (tx == AFR_MODE_UNDECIDED && afr_send_early_allowed(conn)))
		mask |= poll_framed_tx(sk);

	down = READ_ONCE(sk->sk_shutdown);
	if (rx == AFR_MODE_FRAMED && afr_recv_fin(conn))
		down |= RCV_SHUTDOWN;
	if (tx != AFR_MODE_NONE && down == SHUTDOWN_MASK)
		mask |= EPOLLHUP | EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	smp_rmb();	/* sk_shutdown before sk_err; pairs with afr_wait_report_abort() */
	if (READ_ONCE(sk->sk_err) || !skb_queue_empty_lockless(&sk->sk_error_queue))
		mask |= EPOLLERR;
	/*
	 * The program waits for the peer. The peer may wait for a pending frame that is to be
	 * piggybacked: send it now.
	 */
	if (READ_ONCE(conn->out.pending) & AFR_PENDING_PIGGYBACK && !(mask & EPOLLIN) &&
	    !(poll_requested_events(wait) & EPOLLOUT)) {
		set_bit(AFR_F_FLUSH, &conn->flags);
		afr_conn_schedule(conn);
	}
	return mask;
}

/* --- ioctl -------------------------------------------------------------- */

/*
 * Answers an ioctl from the ring of the direction that it concerns, unless that direction is in
 * fallback mode. While the direction is undecided, its ring is empty, except that the send ring of
 * a server may hold bytes that the program has already written. Returns -ENOIOCTLCMD if the TCP
 * socket has to answer.
 */
static int ioctl_rings(struct sock *sk, unsigned int cmd, int __user *arg)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	bool tx_fallback = afr_conn_tx_mode(conn) == AFR_MODE_FALLBACK;
	bool rx_fallback = afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK;
	u64 queued, unsent;

	queued = afr_send_queued(conn, &unsent);
	if (cmd == SIOCINQ && !rx_fallback)
		return put_user((int)afr_recvmsg_readable(sk, false), arg);
	if (cmd == SIOCOUTQ && !tx_fallback)
		return put_user((int)queued, arg);
	if (cmd == SIOCOUTQNSD && !tx_fallback)
		return put_user((int)unsent, arg);
	if (cmd == SIOCATMARK && !rx_fallback)
		return put_user(afr_urgent_offset(conn) == READ_ONCE(conn->rx.seq.consumed), arg);
	return -ENOIOCTLCMD;
}

/**
 * afr_poll_ioctl() - proto_ops.ioctl
 * @sock: socket
 * @cmd: command
 * @arg: argument
 *
 * Context: process.
 * Return: 0 or -errno.
 */
int afr_poll_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	struct sock *sk = sock->sk;
	struct afr_conn *conn = afr_sk(sk)->conn;
	int ret = -ENOIOCTLCMD;

	if (test_bit(AFR_F_STARTED, &conn->flags))
		ret = ioctl_rings(sk, cmd, (int __user *)arg);
	if (ret == -ENOIOCTLCMD)
		ret = READ_ONCE(conn->tcp->ops)->ioctl(conn->tcp, cmd, arg);
	return ret;
}

/**
 * afr_poll_set_rcvlowat() - proto_ops.set_rcvlowat: set SO_RCVLOWAT, and wake sleepers
 * @sk: AF_RDMA socket, locked
 * @val: bytes, not negative
 *
 * Context: process.
 * Return: 0.
 */
int afr_poll_set_rcvlowat(struct sock *sk, int val)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	u8 rx;

	WRITE_ONCE(sk->sk_rcvlowat, val ?: 1);
	/*
	 * If the receive mode changes at the same time, either the code below reads the new mode,
	 * or the sleepers that are woken after the change see @val.
	 */
	smp_mb();
	rx = afr_conn_rx_mode(conn);
	/*
	 * For older kernels, where only poll() copies the value to the TCP socket for a sleeper
	 * (afr_tcp_settings_sync_rcvlowat()): wake sleepers, even if no bytes are there yet, so
	 * that they check again and copy it.
	 */
	if (rx == AFR_MODE_FALLBACK)
		sk->sk_state_change(sk);
	if ((rx == AFR_MODE_FALLBACK && !afr_tcp_sock_idle(conn)) ||
	    (rx == AFR_MODE_FRAMED && afr_recv_readable(conn)))
		sk->sk_data_ready(sk);
	return 0;
}
