// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * shutdown(). On a fallback connection, or without a connection, the TCP socket handles the call.
 * If any other connection has ended, the call fails. In SYN-SENT, the call cancels connect().
 * Otherwise the request is stored in sk_shutdown, and SHUT_WR ends the send direction as soon as
 * its mode is decided: by a FIN frame if framed, else by TCP's FIN.
 */
#include <linux/net.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "close.h"
#include "recv.h"
#include "send.h"
#include "sock.h"
#include "wait.h"
#include "worker.h"

/* Passes shutdown() to TCP, which also handles a socket without connection. */
static int shut_tcp(struct sock *sk, int how)
{
	struct socket *tcp = afr_tcp(sk);
	int ret = READ_ONCE(tcp->ops)->shutdown(tcp, how);

	if (READ_ONCE(sk->sk_state) == TCP_LISTEN) {
		lock_sock(tcp->sk);
		afr_sock_update_listening(sk);
		release_sock(tcp->sk);
	}
	return ret;
}

/*
 * Does what inet_shutdown() does while the connection is being established. In SYN-SENT it cancels
 * connect(), and returns true. In SYN-RECEIVED, that is in a simultaneous open, TCP remembers the
 * shutdown and applies it when the connection is established. Such a connection always falls back.
 * Called with the TCP socket locked.
 */
static bool cancel_connect(struct sock *sk, int how, int *ret)
{
	struct socket *tcp = afr_tcp(sk);
	struct sock *tcp_sk = tcp->sk;
	unsigned int state = 1 << tcp_sk->sk_state;

	if (tcp->state == SS_CONNECTING)
		tcp->state = state & (TCPF_SYN_SENT | TCPF_SYN_RECV | TCPF_CLOSE) ?
			     SS_DISCONNECTING : SS_CONNECTED;
	if (state == TCPF_SYN_SENT) {
		*ret = tcp_sk->sk_prot->disconnect(tcp_sk, O_NONBLOCK);
		tcp->state = *ret ? SS_DISCONNECTING : SS_UNCONNECTED;
		tcp_sk->sk_state_change(tcp_sk);
		return true;
	}
	if (state == TCPF_SYN_RECV) {
		WRITE_ONCE(tcp_sk->sk_shutdown, tcp_sk->sk_shutdown | (how + 1));
		tcp_sk->sk_prot->shutdown(tcp_sk, how + 1);
	}
	return false;
}

/* Makes the program's calls see a shutdown(). If it includes SHUT_WR, requests FIN. */
static void set_shut(struct sock *sk, int how)
{
	struct afr_conn *conn = afr_sk(sk)->conn;

	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | (how + 1));
	/*
	 * Set sk_shutdown before reading AFR_F_ABORTED here and the modes in end_stream():
	 * sk_changed() and sk_fallback() do not lock the AF_RDMA socket, and may run at the same
	 * time.
	 */
	smp_mb();
	if (afr_conn_aborted(conn))
		WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	if (sk->sk_shutdown == SHUTDOWN_MASK)
		afr_recv_refuse(conn);
	if ((how + 1) & SEND_SHUTDOWN)
		set_bit(AFR_F_FIN_WANTED, &conn->flags);
}

/* Returns whether TCP handles shutdown(): both directions are in fallback mode, or have no mode. */
static bool is_for_tcp(const struct afr_conn *conn)
{
	enum afr_mode tx = afr_conn_tx_mode(conn);

	return tx == AFR_MODE_NONE ||
	       (tx == AFR_MODE_FALLBACK && afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK);
}

/* Has the connection ended, so that shutdown() fails as on a TCP socket in state CLOSE? */
static bool is_closed(struct afr_conn *conn)
{
	if (afr_conn_aborted(conn))
		return true;
	if (afr_conn_negotiated(conn))
		return afr_close_tcp_state(conn) == TCP_CLOSE;
	return test_bit(AFR_F_STARTED, &conn->flags) &&
	       inet_sk_state_load(conn->tcp->sk) == TCP_CLOSE;
}

/*
 * Completes a shutdown() after set_shut(). SHUT_WR ends the send direction, here or in the worker.
 * SHUT_RD shuts down the receive side of TCP if the receive direction is in fallback mode. Wakes
 * all sleepers.
 */
static void end_stream(struct sock *sk, int how)
{
	struct afr_conn *conn = afr_sk(sk)->conn;

	if ((how + 1) & SEND_SHUTDOWN) {
		if (afr_conn_tx_mode(conn) == AFR_MODE_FRAMED)
			afr_send_fin(conn);
		afr_conn_schedule(conn);	/* close.c ends the stream, unless done above */
	}
	if (is_for_tcp(conn))
		shut_tcp(sk, how);		/* conn has just fallen back, or failed */
	else if (afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK && (how + 1) & RCV_SHUTDOWN)
		shut_tcp(sk, SHUT_RD);
	sk->sk_state_change(sk);
}

static int shut(struct sock *sk, int how)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	struct sock *tcp_sk = conn->tcp->sk;
	bool cancelled, for_tcp;
	int ret;

	if (is_for_tcp(conn))
		return shut_tcp(sk, how);
	if (is_closed(conn))
		return -ENOTCONN;
	/* bytes that TCP has received stay readable, if the worker can run now and reads them */
	if (((how + 1) | READ_ONCE(sk->sk_shutdown)) & RCV_SHUTDOWN)
		afr_worker_run(conn);

	lock_sock(sk);
	lock_sock_nested(tcp_sk, SINGLE_DEPTH_NESTING);	/* keeps connect() out */
	for_tcp = is_for_tcp(conn);
	cancelled = !for_tcp && cancel_connect(sk, how, &ret);
	if (!cancelled && !for_tcp)
		set_shut(sk, how);
	release_sock(tcp_sk);
	release_sock(sk);

	if (cancelled)
		return ret;
	if (for_tcp)
		return shut_tcp(sk, how);
	end_stream(sk, how);
	return 0;
}

/**
 * afr_shutdown() - proto_ops.shutdown
 * @sock: socket
 * @how: SHUT_RD, SHUT_WR, SHUT_RDWR
 *
 * A connect() in SYN-SENT is cancelled. Otherwise, the program's calls see the shutdown at once.
 * The peer sees SHUT_WR when the send direction is decided: at a client, that is when the TCP
 * handshake is over; at a server, it may be when the client's first bytes arrive.
 *
 * Context: process, without locks.
 * Return: 0, -EINVAL or -ENOTCONN.
 */
int afr_shutdown(struct socket *sock, int how)
{
	struct afr_sock *as = afr_sk(sock->sk);
	int ret;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	/*
	 * While this call is counted, a connect() in another thread makes no framed connection:
	 * TCP's shutdown() would cut off its frames.
	 */
	afr_sock_count_call(as);
	ret = shut(sock->sk, how);
	afr_sock_end_call(as);
	return ret;
}
