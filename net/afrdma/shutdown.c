// SPDX-License-Identifier: GPL-2.0
/*
 * shutdown(). On a fallback connection, or without a connection, the TCP socket handles it. In
 * SYN-SENT, it cancels connect(). Otherwise the request is stored in sk_shutdown, and SHUT_WR ends
 * the send direction as soon as its mode is decided: by a FIN frame if framed, else by TCP's FIN.
 */
#include <linux/net.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "recv.h"
#include "send.h"
#include "sock.h"
#include "wait.h"

/*
 * Does what inet_shutdown() does while the connection is being established. In SYN-SENT it cancels
 * connect(); returns true then. In SYN-RECEIVED, that is in a simultaneous open, TCP remembers the
 * shutdown and applies it when the connection is established. Such a connection always falls back.
 */
static bool cancel_connect(struct sock *sk, int how, int *ret)
{
	struct socket *tcp = afr_tcp(sk);
	struct sock *tcp_sk = tcp->sk;
	bool on_its_way;

	lock_sock(tcp_sk);
	on_its_way = tcp_sk->sk_state == TCP_SYN_SENT;
	if (on_its_way) {
		WRITE_ONCE(afr_sk(sk)->disconnected, true);
		*ret = tcp_sk->sk_prot->disconnect(tcp_sk, O_NONBLOCK);
		tcp->state = *ret ? SS_DISCONNECTING : SS_UNCONNECTED;
		tcp_sk->sk_state_change(tcp_sk);
	} else if (tcp_sk->sk_state == TCP_SYN_RECV) {
		if (tcp->state == SS_CONNECTING)
			tcp->state = SS_DISCONNECTING;
		WRITE_ONCE(tcp_sk->sk_shutdown, tcp_sk->sk_shutdown | (how + 1));
		tcp_sk->sk_prot->shutdown(tcp_sk, how + 1);
	}
	release_sock(tcp_sk);
	return on_its_way;
}

/* Applies a shutdown() to the program's calls, and requests FIN. */
static void set_shut(struct sock *sk, int how)
{
	struct afr_conn *conn = afr_sk(sk)->conn;

	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | (how + 1));
	/*
	 * Set sk_shutdown before reading AFR_F_ABORTED and the modes: sk_changed() and
	 * sk_fallback() do not lock the AF_RDMA socket, and may run at the same time.
	 */
	smp_mb();
	if (afr_conn_aborted(conn))
		WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	if (sk->sk_shutdown == SHUTDOWN_MASK)
		afr_recv_refuse(conn);
	if ((how + 1) & SEND_SHUTDOWN)
		set_bit(AFR_F_FIN_WANTED, &conn->flags);
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
	struct sock *sk = sock->sk;
	struct afr_conn *conn = afr_sk(sk)->conn;
	u8 tx = afr_conn_tx_mode(conn), rx = afr_conn_rx_mode(conn);
	bool failed;
	int ret;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	if (tx == AFR_MODE_UNDECIDED && cancel_connect(sk, how, &ret))
		return ret;
	if (tx == AFR_MODE_NONE || (tx == AFR_MODE_FALLBACK && rx == AFR_MODE_FALLBACK)) {
		ret = READ_ONCE(conn->tcp->ops)->shutdown(conn->tcp, how);
		if (READ_ONCE(sk->sk_state) == TCP_LISTEN &&
		    inet_sk_state_load(conn->tcp->sk) != TCP_LISTEN)
			WRITE_ONCE(sk->sk_state, TCP_CLOSE);	/* SO_ACCEPTCONN */
		return ret;
	}
	if (afr_conn_aborted(conn))
		return -ENOTCONN;

	/* bytes that TCP has received stay readable, if the worker can run now and reads them */
	if (((how + 1) | READ_ONCE(sk->sk_shutdown)) & RCV_SHUTDOWN)
		afr_conn_run(conn);
	lock_sock(sk);
	if (tx != AFR_MODE_FRAMED)	/* no connect() may fail or begin before all is set */
		lock_sock_nested(conn->tcp->sk, SINGLE_DEPTH_NESTING);
	/* the connect() that was in progress has failed, even if another has begun since */
	failed = afr_conn_tx_mode(conn) == AFR_MODE_NONE ||
		 conn->tcp->sk->sk_state == TCP_SYN_SENT;
	if (!failed)
		set_shut(sk, how);
	if (tx != AFR_MODE_FRAMED)
		release_sock(conn->tcp->sk);
	release_sock(sk);
	if (failed)
		return -ENOTCONN;
	if ((how + 1) & SEND_SHUTDOWN) {
		if (tx == AFR_MODE_FRAMED)
			afr_send_fin(conn);
		afr_conn_schedule(conn);	/* close.c ends the stream, unless done above */
	}
	rx = afr_conn_rx_mode(conn);
	if (afr_conn_tx_mode(conn) == AFR_MODE_FALLBACK && rx == AFR_MODE_FALLBACK)
		READ_ONCE(conn->tcp->ops)->shutdown(conn->tcp, how);	/* has just fallen back */
	else if (rx == AFR_MODE_FALLBACK && (how + 1) & RCV_SHUTDOWN)
		READ_ONCE(conn->tcp->ops)->shutdown(conn->tcp, SHUT_RD);
	sk->sk_state_change(sk);
	return 0;
}
