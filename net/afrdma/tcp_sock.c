// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The TCP socket of a connection. socket() creates it with the credentials of the program; for
 * accept(), TCP creates it. Until close() it uses the wait queue of the AF_RDMA socket. This file
 * replaces its callbacks after the connection was started, and restores them when both directions
 * fall back or the connection is finished.
 */
#include "tcp_sock.h"

#include <linux/net.h>
#include <net/sock.h>
#include <net/tcp.h>

/**
 * afr_tcp_sock_create() - create the TCP socket of an AF_RDMA socket
 * @net: namespace, held by the new socket
 * @family: AF_INET or AF_INET6
 * @tcp: out, the TCP socket
 *
 * Passes kern = 0 to __sock_create(), so that security modules and BPF treat the socket as one of
 * the current task, not as one of the kernel.
 *
 * Context: Process.
 * Return: 0 or a negative error, as socket().
 */
int afr_tcp_sock_create(struct net *net, int family, struct socket **tcp)
{
	return __sock_create(net, family, SOCK_STREAM, IPPROTO_TCP, tcp, 0);
}

/**
 * afr_tcp_sock_graft() - make the TCP socket use the AF_RDMA socket's wait queue and file
 * @tcp: TCP socket
 * @sock: AF_RDMA socket
 *
 * Sleepers and pollers of @sock then wait for events of @tcp, too; the stock callbacks wake them.
 * There is no file yet in socket(), so bind(), connect(), listen() and a send() with MSG_FASTOPEN
 * call this function again.
 * SIGURG and the owner match of netfilter use the file. The TCP socket holds no reference on the
 * file: afr_tcp_sock_ungraft() clears the pointer before the file is freed.
 *
 * Context: Process, @tcp unlocked.
 */
void afr_tcp_sock_graft(struct socket *tcp, struct socket *sock)
{
	struct sock *tcp_sk = tcp->sk;

	lock_sock(tcp_sk);		/* softirqs also set flags, and use the file for SIGURG */
	write_lock_bh(&tcp_sk->sk_callback_lock);
	rcu_assign_pointer(tcp_sk->sk_wq, &sock->wq);
	tcp->file = sock->file;
	sock_set_flag(tcp_sk, SOCK_FASYNC);	/* enables SIGIO to those on wq->fasync_list */
	write_unlock_bh(&tcp_sk->sk_callback_lock);
	release_sock(tcp_sk);
}

/**
 * afr_tcp_sock_ungraft() - undo afr_tcp_sock_graft()
 * @tcp: TCP socket
 *
 * Must be called before the struct socket of the AF_RDMA socket is released. Callbacks that still
 * use its wait queue are in an RCU read-side critical section, and the inode that contains it is
 * freed only after a grace period.
 *
 * Context: Process, @tcp unlocked.
 */
void afr_tcp_sock_ungraft(struct socket *tcp)
{
	struct sock *tcp_sk = tcp->sk;

	lock_sock(tcp_sk);
	write_lock_bh(&tcp_sk->sk_callback_lock);
	rcu_assign_pointer(tcp_sk->sk_wq, &tcp->wq);
	tcp->file = NULL;
	write_unlock_bh(&tcp_sk->sk_callback_lock);
	release_sock(tcp_sk);
}

/**
 * afr_tcp_sock_take_error() - move the error of the TCP socket to the AF_RDMA socket
 * @conn: connection that has a direction in fallback mode, or is not connected
 * @sk: its AF_RDMA socket
 *
 * getsockopt(SO_ERROR) and io_uring read the error of the AF_RDMA socket without calling the
 * module, so an error that poll() has reported must be there. The error of an aborted connection
 * is dropped: afr_wait_report_abort() reports the abort.
 *
 * Context: Any.
 */
void afr_tcp_sock_take_error(struct afr_conn *conn, struct sock *sk)
{
	int err = xchg(&conn->tcp->sk->sk_err, 0);

	if (err && !afr_conn_aborted(conn))
		WRITE_ONCE(sk->sk_err, err);
}

/**
 * afr_tcp_sock_return_error() - store an error that TCP has returned, for a later call
 * @conn: connection
 * @sk: its AF_RDMA socket
 * @err: result of a send or receive on the TCP socket, in a call that succeeds nevertheless because
 *	it has copied bytes before
 *
 * TCP has cleared the error when it returned it, but the next call or the connection worker has to
 * find it. So this function stores the error in the TCP socket again, and if the receive direction
 * is in fallback mode, moves the error from there to the AF_RDMA socket. It stores only the errors
 * that are listed below, and none if the connection was aborted, as the abort is reported in any
 * case.
 *
 * Context: Process.
 */
void afr_tcp_sock_return_error(struct afr_conn *conn, struct sock *sk, int err)
{
	struct sock *tcp_sk = conn->tcp->sk;

	if (afr_conn_aborted(conn))
		return;
	switch (-err) {
	case EACCES:		/* of a security hook: not stored, unless TCP is closed */
		if (inet_sk_state_load(tcp_sk) != TCP_CLOSE)
			return;
		fallthrough;
	case ECONNABORTED:
	case ECONNREFUSED:
	case ECONNRESET:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ENONET:
	case ENOPROTOOPT:
	case EPROTO:
	case ETIMEDOUT:
		cmpxchg(&tcp_sk->sk_err, 0, -err);
		if (afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK)	/* for SO_ERROR */
			afr_tcp_sock_take_error(conn, sk);
	}
}

/* The connection of a TCP socket, or NULL; the caller holds sk_callback_lock for reading. */
static struct afr_conn *conn_of(struct sock *tcp_sk)
{
	return (void *)((unsigned long)tcp_sk->sk_user_data & SK_USER_DATA_PTRMASK);
}

/*
 * TCP callbacks: they make the connection worker handle the event. If the event concerns a
 * direction in fallback mode, or is a change of state, they also call the stock callback, which
 * wakes the sleepers of the AF_RDMA socket. As exceptions, the worker handles neither write space
 * of a send direction in fallback mode, nor write space that is too small for
 * sk_stream_is_writeable(), nor changes of state that shut_tcp() of close.c causes.
 */
typedef void (*callback)(struct sock *tcp_sk);

static void on_data_ready(struct sock *tcp_sk)
{
	struct afr_conn *conn;
	callback stock = NULL;

	read_lock_bh(&tcp_sk->sk_callback_lock);
	conn = conn_of(tcp_sk);
	if (conn) {
		if (afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK)
			stock = conn->saved.data_ready;
		afr_conn_incoming(conn);
	}
	read_unlock_bh(&tcp_sk->sk_callback_lock);
	if (stock)
		stock(tcp_sk);
}

static void on_state_change(struct sock *tcp_sk)
{
	struct afr_conn *conn;
	callback stock = NULL;

	read_lock_bh(&tcp_sk->sk_callback_lock);
	conn = conn_of(tcp_sk);
	if (conn) {
		stock = conn->saved.state_change;
		if (!test_bit(AFR_F_TCP_SHUTTING_DOWN, &conn->flags))
			afr_conn_incoming(conn);
	}
	read_unlock_bh(&tcp_sk->sk_callback_lock);
	if (stock)
		stock(tcp_sk);
}

static void on_error_report(struct sock *tcp_sk)
{
	struct afr_conn *conn;
	callback stock = NULL;

	read_lock_bh(&tcp_sk->sk_callback_lock);
	conn = conn_of(tcp_sk);
	if (conn) {
		if (afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK ||
		    afr_conn_tx_mode(conn) == AFR_MODE_FALLBACK)
			stock = conn->saved.error_report;
		afr_conn_schedule(conn);
	}
	read_unlock_bh(&tcp_sk->sk_callback_lock);
	if (stock)
		stock(tcp_sk);
}

static void on_write_space(struct sock *tcp_sk)
{
	struct afr_conn *conn;
	callback stock = NULL;

	read_lock_bh(&tcp_sk->sk_callback_lock);
	conn = conn_of(tcp_sk);
	if (conn && afr_conn_tx_mode(conn) == AFR_MODE_FALLBACK) {
		stock = conn->saved.write_space;
	} else if (conn && tcp_sk->sk_socket && sk_stream_is_writeable(tcp_sk)) {
		clear_bit(SOCK_NOSPACE, &tcp_sk->sk_socket->flags);
		afr_conn_schedule(conn);
	}
	read_unlock_bh(&tcp_sk->sk_callback_lock);
	if (stock)
		stock(tcp_sk);
}

static bool callbacks_installed(const struct sock *tcp_sk)
{
	return tcp_sk->sk_data_ready == on_data_ready;
}

/* Saves and overrides settings that would make TCP delay frames or its calls of sk_data_ready. */
static void hide_settings(struct afr_conn *conn, struct sock *tcp_sk)
{
	conn->saved.rcvlowat = tcp_sk->sk_rcvlowat;
	conn->saved.nonagle = tcp_sk(tcp_sk)->nonagle;
	WRITE_ONCE(tcp_sk->sk_rcvlowat, 1);
	tcp_sk(tcp_sk)->nonagle = TCP_NAGLE_OFF;
}

static void restore_settings(struct afr_conn *conn, struct sock *tcp_sk)
{
	WRITE_ONCE(tcp_sk->sk_rcvlowat, conn->saved.rcvlowat);
	tcp_sk(tcp_sk)->nonagle = conn->saved.nonagle;
}

/**
 * afr_tcp_sock_install() - install the TCP callbacks, and hide settings that are unfit for frames
 * @conn: connection that has been started
 *
 * The TCP callbacks do not report earlier events. If there may be any, the caller schedules the
 * connection worker afterwards.
 *
 * Context: Any but hard irq; the TCP socket is locked.
 */
void afr_tcp_sock_install(struct afr_conn *conn)
{
	struct sock *tcp_sk = conn->tcp->sk;

	write_lock_bh(&tcp_sk->sk_callback_lock);
	conn->saved.data_ready = tcp_sk->sk_data_ready;
	conn->saved.write_space = tcp_sk->sk_write_space;
	conn->saved.state_change = tcp_sk->sk_state_change;
	conn->saved.error_report = tcp_sk->sk_error_report;
	hide_settings(conn, tcp_sk);
	__rcu_assign_sk_user_data_with_flags(tcp_sk, conn, SK_USER_DATA_NOCOPY);
	tcp_sk->sk_data_ready = on_data_ready;
	tcp_sk->sk_write_space = on_write_space;
	tcp_sk->sk_state_change = on_state_change;
	tcp_sk->sk_error_report = on_error_report;
	write_unlock_bh(&tcp_sk->sk_callback_lock);
}

/**
 * afr_tcp_sock_settings() - hide or restore settings of the TCP socket that are unfit for frames
 * @conn: connection
 * @hide: true to save and override them; false to restore the program's, so that they can be
 *	changed
 *
 * Does nothing if the TCP callbacks are not installed. After hiding, the caller schedules the
 * connection worker if events may have been missed.
 *
 * Context: Process, one caller at a time, TCP socket unlocked.
 * Return: true if the TCP callbacks are installed.
 */
bool afr_tcp_sock_settings(struct afr_conn *conn, bool hide)
{
	struct sock *tcp_sk = conn->tcp->sk;
	bool installed;

	lock_sock(tcp_sk);
	read_lock_bh(&tcp_sk->sk_callback_lock);
	installed = callbacks_installed(tcp_sk);
	if (installed && hide)
		hide_settings(conn, tcp_sk);
	else if (installed)
		restore_settings(conn, tcp_sk);
	read_unlock_bh(&tcp_sk->sk_callback_lock);
	release_sock(tcp_sk);
	return installed;
}

/**
 * afr_tcp_sock_open_window() - let TCP have a receive window of several segments
 * @conn: connection with TCP callbacks installed and a framed receive direction
 *
 * Window credits limit what the peer may send, so a small SO_RCVBUF need not limit the TCP window.
 * A one-way connection has no credits, but its TCP window is opened as well. A small TCP window
 * would do harm: into a window below one segment, the peer's TCP sends a larger packet only in
 * pieces, as window probes, and each segment from this end postpones the next probe. So the peer's
 * bytes would wait for as long as this end keeps sending data (RFC 9293, 3.8.6.1;
 * tcp_ack_probe()).
 *
 * Context: Process, TCP socket unlocked.
 */
void afr_tcp_sock_open_window(struct afr_conn *conn)
{
	struct sock *tcp_sk = conn->tcp->sk;
	struct tcp_sock *tp = tcp_sk(tcp_sk);
	u32 usual = READ_ONCE(sock_net(tcp_sk)->ipv4.sysctl_tcp_rmem[1]);

	lock_sock(tcp_sk);
	WRITE_ONCE(tcp_sk->sk_rcvbuf, max_t(u32, tcp_sk->sk_rcvbuf, usual));
	WRITE_ONCE(tp->window_clamp, max_t(u32, tp->window_clamp, tcp_full_space(tcp_sk)));
	/* with a small SO_RCVBUF, rcv_ssthresh may be below one segment */
	tp->rcv_ssthresh = max_t(u32, tp->rcv_ssthresh, min_t(u32, tp->window_clamp,
							      tcp_full_space(tcp_sk)));
	release_sock(tcp_sk);
}

/**
 * afr_tcp_sock_remove() - restore the stock callbacks of the TCP socket and its settings
 * @conn: connection
 *
 * If the TCP callbacks are installed, this must be called before the connection is freed.
 * Otherwise it does nothing.
 *
 * Context: Process, TCP socket unlocked.
 */
void afr_tcp_sock_remove(struct afr_conn *conn)
{
	struct sock *tcp_sk = conn->tcp->sk;

	lock_sock(tcp_sk);		/* restore_settings() writes to words that TCP uses, too */
	write_lock_bh(&tcp_sk->sk_callback_lock);
	if (callbacks_installed(tcp_sk)) {
		tcp_sk->sk_data_ready = conn->saved.data_ready;
		tcp_sk->sk_write_space = conn->saved.write_space;
		tcp_sk->sk_state_change = conn->saved.state_change;
		tcp_sk->sk_error_report = conn->saved.error_report;
		restore_settings(conn, tcp_sk);
		rcu_assign_sk_user_data(tcp_sk, NULL);
	}
	write_unlock_bh(&tcp_sk->sk_callback_lock);
	release_sock(tcp_sk);
}

/**
 * afr_tcp_sock_ended() - test whether TCP will receive no more bytes
 * @conn: connection
 *
 * Context: Any.
 * Return: true after the peer's FIN, an error or a reset. Received bytes may still be queued.
 */
bool afr_tcp_sock_ended(const struct afr_conn *conn)
{
	const struct sock *tcp_sk = conn->tcp->sk;

	return READ_ONCE(tcp_sk->sk_shutdown) & RCV_SHUTDOWN || READ_ONCE(tcp_sk->sk_err) ||
	       inet_sk_state_load(tcp_sk) == TCP_CLOSE;
}

/**
 * afr_tcp_sock_idle() - test whether TCP has neither bytes nor an end of stream to read
 * @conn: connection
 *
 * The result is not exact, as no lock is taken; the TCP callbacks report whatever this check
 * misses.
 *
 * Context: Any.
 * Return: true if there is nothing to read.
 */
bool afr_tcp_sock_idle(const struct afr_conn *conn)
{
	const struct tcp_sock *tp = tcp_sk(conn->tcp->sk);

	return READ_ONCE(tp->rcv_nxt) == READ_ONCE(tp->copied_seq) && !afr_tcp_sock_ended(conn);
}

/**
 * afr_tcp_sock_recv() - read bytes from the TCP socket without waiting
 * @conn: connection
 * @vec: kernel buffers
 * @n: number of buffers
 * @len: sum of their lengths
 *
 * Does not use kernel_recvmsg(): a security module would check the permissions of the task that
 * happens to run the worker.
 *
 * Context: Process, TCP socket unlocked.
 * Return: number of bytes; 0 at the end of the stream, or if TCP has failed and its error was
 * consumed before; or a negative error, -EAGAIN if nothing has arrived.
 */
int afr_tcp_sock_recv(struct afr_conn *conn, struct kvec *vec, unsigned int n, size_t len)
{
	struct msghdr msg = {};

	iov_iter_kvec(&msg.msg_iter, READ, vec, n, len);
	return READ_ONCE(conn->tcp->ops)->recvmsg(conn->tcp, &msg, len,
						  MSG_DONTWAIT | MSG_NOSIGNAL);
}
