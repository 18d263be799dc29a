// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Sleeping in calls of the program, and upcalls of the connection to its AF_RDMA socket: they wake
 * calls and pollers, send signals, report aborts, and complete the fallback.
 */
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "frame_tx.h"
#include "recv.h"
#include "send.h"
#include "tcp_sock.h"
#include "wait.h"

static void sk_readable(struct sock *sk)
{
	if (skwq_has_sleeper(rcu_dereference(sk->sk_wq)))
		afr_netns_count(sock_net(sk), AFR_STAT_WAKES_READ);
	sk->sk_data_ready(sk);
}

static void sk_writable(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	struct socket_wq *wq;

	if (!afr_send_has_space(conn) || !test_and_clear_bit(AFR_F_NOSPACE, &conn->flags))
		return;
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq)) {
		afr_netns_count(sock_net(sk), AFR_STAT_WAKES_WRITE);
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND);
	}
	if (wq && wq->fasync_list)
		sock_wake_async(wq, SOCK_WAKE_IO, POLL_OUT);
}

/* Wakes only sleeping calls: no poller waits for EPOLLMSG, and calls do not look at the key. */
static void sk_wake_calls(struct sock *sk)
{
	struct socket_wq *wq = rcu_dereference(sk->sk_wq);

	if (skwq_has_sleeper(wq))
		wake_up_interruptible_sync_poll(&wq->wait, EPOLLMSG);
}

/*
 * The peer's HELLO came. Wakes sleeping calls, which check the modes again. Wakes pollers only if
 * AFR_F_NOSPACE is set and there is space to send now, or if the receive side is shut down.
 */
static void sk_decided(struct sock *sk)
{
	sk_wake_calls(sk);
	sk_writable(sk);
	if (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
		sk->sk_state_change(sk);
}

/* SIGURG is sent when the urgent offset is known, perhaps long before the byte arrives. */
static void sk_urgent(struct sock *sk)
{
	read_lock_bh(&sk->sk_callback_lock);	/* keeps sk->sk_socket */
	sk_send_sigurg(sk);
	read_unlock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready(sk);
}

/**
 * afr_wait_report_abort() - set the error of an aborted connection on its AF_RDMA socket, once
 * @sk: AF_RDMA socket
 *
 * Context: any but hard irq.
 * Return: true if this call has set it; false if it was set before, or nothing was aborted.
 */
bool afr_wait_report_abort(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	bool first;

	if (!test_bit(AFR_F_ABORTED, &conn->flags))
		return false;
	smp_rmb();	/* read the flag before conn->err; pairs with do_abort() */
	write_lock_bh(&sk->sk_callback_lock);
	first = !test_and_set_bit(AFR_F_ABORT_REPORTED, &conn->flags);
	if (first) {
		WRITE_ONCE(sk->sk_err, conn->err);
		smp_wmb();	/* as in TCP: whoever sees sk_shutdown also sees sk_err */
		WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
		WRITE_ONCE(sk->sk_state, TCP_CLOSE);
	}
	write_unlock_bh(&sk->sk_callback_lock);
	return first;
}

/* The state of the connection has changed: reports an abort or an end, and wakes all waiters. */
static void sk_changed(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;

	if (afr_wait_report_abort(sk))
		sk_error_report(sk);
	sk->sk_state_change(sk);
	if (sk->sk_shutdown == SHUTDOWN_MASK)
		sk_wake_async(sk, SOCK_WAKE_WAITD, POLL_HUP);
	else if (afr_recv_fin(conn) && !test_and_set_bit(AFR_F_END_REPORTED, &conn->flags))
		sk_wake_async(sk, SOCK_WAKE_WAITD,
			      sk->sk_shutdown & SEND_SHUTDOWN ? POLL_HUP : POLL_IN);
}

/* Returns the directions that the program has shut down; 0 after close(). */
static int sk_shut(struct afr_conn *conn)
{
	struct sock *sk;
	int how = 0;

	rcu_read_lock();
	sk = rcu_dereference(conn->sk);
	if (sk)
		how = READ_ONCE(sk->sk_shutdown);
	rcu_read_unlock();
	return how;
}

/* TCP continues to number MSG_ZEROCOPY notifications where the AF_RDMA socket has stopped. */
static void pass_zerocopy_key(struct afr_conn *conn)
{
	struct sock *sk;

	rcu_read_lock();
	sk = rcu_dereference(conn->sk);
	if (sk)
		atomic_set(&conn->tcp->sk->sk_zckey, atomic_read(&sk->sk_zckey));
	rcu_read_unlock();
}

/* Both directions fall back: from now on calls of the program go to the TCP socket. */
static void sk_fallback(struct afr_conn *conn)
{
	int how, late;

	afr_tcp_sock_remove(conn);
	how = sk_shut(conn);
	if (how)
		kernel_sock_shutdown(conn->tcp, how - 1);
	pass_zerocopy_key(conn);
	afr_conn_set_tx_mode(conn, AFR_MODE_FALLBACK);
	afr_conn_set_rx_mode(conn, AFR_MODE_FALLBACK);
	smp_mb();	/* set the modes before reading sk_shutdown; pairs with set_shut() */
	late = sk_shut(conn) & ~how;
	if (late)
		kernel_sock_shutdown(conn->tcp, late - 1);
	if (test_bit(AFR_F_ABORT, &conn->flags))
		tcp_abort(conn->tcp->sk, ECONNRESET);	/* requested before the modes settled */
	afr_conn_finish(conn);
	afr_conn_changed(conn);
}

const struct afr_sock_ops afr_wait_sock_ops = {
	.readable	= sk_readable,
	.wake_calls	= sk_wake_calls,
	.decided	= sk_decided,
	.writable	= sk_writable,
	.urgent		= sk_urgent,
	.changed	= sk_changed,
	.fall_back	= sk_fallback,
};

/**
 * afr_wait_result() - convert what a wait has returned into an error code
 * @timeo: jiffies that the wait could last; set to what is left, unless an error is returned
 * @left: what wait_event_interruptible_timeout() returned
 *
 * Context: process.
 * Return: 0, -EAGAIN, -ERESTARTSYS or -EINTR.
 */
int afr_wait_result(long *timeo, long left)
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
 * afr_wait_mode() - wait until the mode of a direction is decided
 * @sk: AF_RDMA socket
 * @mode: afr_conn_tx_mode() or afr_conn_rx_mode()
 * @shut: RCV_SHUTDOWN for a reader, whose wait also ends when the receive side is shut down and
 *	TCP has nothing to read; SEND_SHUTDOWN for a sender, whose wait also ends when the send
 *	side is shut down
 * @timeo: jiffies that the wait may last; set to what is left, unless an error is returned
 *
 * Context: process, without locks.
 * Return: the mode (enum afr_mode), which is still AFR_MODE_UNDECIDED if an abort or @shut ended
 * the wait; or -EAGAIN, -ERESTARTSYS or -EINTR.
 */
int afr_wait_mode(struct sock *sk, enum afr_mode (*mode)(const struct afr_conn *conn),
		  int shut, long *timeo)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	int err = 0;

	if (mode(conn) == AFR_MODE_UNDECIDED) {
		afr_frame_tx_flush(conn);
		err = afr_wait_frames(sk, timeo, mode(conn) != AFR_MODE_UNDECIDED ||
				      afr_conn_aborted(conn) ||
				      (READ_ONCE(sk->sk_shutdown) & shut &&
				       (shut == SEND_SHUTDOWN || afr_tcp_sock_idle(conn))));
	}
	return err ? err : mode(conn);
}
