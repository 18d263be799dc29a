// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* The address family and its sockets: create, bind, connect, listen, accept, release. */
#include "sock.h"

#include <linux/module.h>
#include <linux/security.h>
#include <linux/net.h>
#include <net/inet_common.h>
#include <net/tcp.h>
#include <uapi/linux/af_rdma.h>

#include "close.h"
#include "cm_listener.h"
#include "compat.h"
#include "fallback.h"
#include "frame_tx.h"
#include "handshake_hook.h"
#include "recv.h"
#include "send.h"
#include "tcp_settings.h"
#include "tcp_sock.h"
#include "trace.h"
#include "wait.h"
#include "worker.h"

static unsigned int family = AF_RDMA;
module_param(family, uint, 0444);
MODULE_PARM_DESC(family, "address family number to register (default 27)");

static struct proto afr_proto = {
	.name		= "AF_RDMA",
	.owner		= THIS_MODULE,
	.obj_size	= sizeof(struct afr_sock),
};

static const struct proto_ops afr_ops;

/* --- creation ----------------------------------------------------------- */

static void sock_destruct(struct sock *sk)
{
	struct afr_net *an = afr_net(sock_net(sk));

	/* conn was put already; what remains are unread zerocopy notices and the socket count */
	skb_queue_purge(&sk->sk_error_queue);
	atomic_dec(&an->sockets);
}

/* Undoes alloc_sock(). */
static void free_sock(struct socket *sock, struct sock *sk)
{
	if (afr_sk(sk)->conn)
		afr_conn_put(afr_sk(sk)->conn);
	sock_orphan(sk);
	sock->sk = NULL;
	sock_put(sk);
}

/* Allocates an AF_RDMA socket and its connection, without TCP socket. */
static struct sock *alloc_sock(struct net *net, struct socket *sock, int protocol, int kern)
{
	struct sock *sk = sk_alloc(net, family, GFP_KERNEL, &afr_proto, kern);

	if (!sk)
		return NULL;
	sock_init_data(sock, sk);
	sk->sk_protocol = protocol;
	sk->sk_destruct = sock_destruct;
	sock_set_flag(sk, SOCK_RCU_FREE);	/* upcalls find it under RCU */
	atomic_inc(&afr_net(net)->sockets);
	afr_sk(sk)->conn = afr_conn_alloc(afr_net(net), sk, &afr_wait_sock_ops);
	if (!afr_sk(sk)->conn) {
		free_sock(sock, sk);
		return NULL;
	}
	afr_worker_init(afr_sk(sk)->conn);
	sock->ops = &afr_ops;
	set_bit(SOCK_CUSTOM_SOCKOPT, &sock->flags);
	/* io_uring needs this flag for zerocopy sends; unless conn falls back, bytes are copied */
	set_bit(SOCK_SUPPORT_ZC, &sock->flags);
	return sk;
}

/* Makes the connection of @sk the owner of the TCP socket @tcp. */
static void adopt_tcp(struct socket *sock, struct sock *sk, struct socket *tcp)
{
	struct afr_net *an = afr_net(sock_net(sk));

	/* BPF, the SYN (tcp_fwmark_accept, tcp_l3mdev_accept) or TCP's listener may set these */
	sk->sk_bound_dev_if = tcp->sk->sk_bound_dev_if;
	sk->sk_mark = tcp->sk->sk_mark;
	sk->sk_priority = tcp->sk->sk_priority;
	sk->sk_max_pacing_rate = tcp->sk->sk_max_pacing_rate;
	afr_conn_create(afr_sk(sk)->conn, tcp);
	afr_tcp_sock_graft(tcp, sock);
	afr_sk(sk)->cm_user = afr_cm_listener_get(an);
	afr_netns_count(an->net, AFR_STAT_SOCK_CREATED);
}

static int protocol_family(int protocol)
{
	switch (protocol) {
	case AFRDMA_PROTO_INET:
	case IPPROTO_TCP:
		return AF_INET;
	case AFRDMA_PROTO_INET6:
		return AF_INET6;
	default:
		return -EPROTONOSUPPORT;
	}
}

/*
 * The setting of the initial network namespace applies to all others, too: any user can create a
 * namespace and has all capabilities in it. The setting of a namespace can only deny more.
 */
static bool may_create(const struct net *net)
{
	if (!READ_ONCE(afr_net(&init_net)->set.unprivileged) && !capable(CAP_NET_RAW))
		return false;
	return READ_ONCE(afr_net(net)->set.unprivileged) || ns_capable(net->user_ns, CAP_NET_RAW);
}

static int afr_create(struct net *net, struct socket *sock, int protocol, int kern)
{
	int inet = protocol_family(protocol), err;
	struct socket *tcp;
	struct sock *sk;

	if (sock->type != SOCK_STREAM)
		return -ESOCKTNOSUPPORT;
	if (inet < 0)
		return inet;
	if (!may_create(net))
		return -EPERM;
	sk = alloc_sock(net, sock, inet == AF_INET6 ? AFRDMA_PROTO_INET6 : AFRDMA_PROTO_INET,
			kern);
	if (!sk)
		return -ENOBUFS;
	err = afr_tcp_sock_create(net, inet, &tcp);
	if (err) {
		free_sock(sock, sk);
		return err;
	}
	adopt_tcp(sock, sk, tcp);
	return 0;
}

/* --- release ------------------------------------------------------------ */

static bool one_way(const struct afr_conn *conn)
{
	return (afr_conn_tx_mode(conn) == AFR_MODE_FALLBACK) !=
	       (afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK);
}

/*
 * Does close() have to go on waiting for the peer? The modes are read each time, because an
 * undecided direction may fall back meanwhile. If that makes the connection one-way, no FINACK will
 * come, and close() waits until the peer has acknowledged TCP's FIN or TCP has ended
 * (afr_close_one_way_done()). If the whole connection falls back, close() does not wait here, since
 * TCP itself lingers.
 */
static bool lingers(struct afr_conn *conn)
{
	if (afr_send_done(conn) || test_bit(AFR_F_ABORTED, &conn->flags) ||
	    test_bit(AFR_F_FINISHED, &conn->flags))
		return false;
	if (one_way(conn))
		return !afr_close_one_way_done(conn);
	return afr_conn_tx_mode(conn) != AFR_MODE_FALLBACK;
}

/*
 * Waits until lingers() is false, the linger time is over, or a signal comes. Tests lingers()
 * periodically, too, unless both directions are framed: the connection may be or become one-way,
 * and TCP's wake-up for the acknowledgment of its FIN may come before AFR_F_TCP_SHUT is set.
 */
static void await_end(struct sock *sk, struct afr_conn *conn)
{
	long left = sk->sk_lingertime, step, rest = 0;

	for (; left > 0 && lingers(conn); left -= step - rest) {
		step = afr_conn_negotiated(conn) ? left : min_t(long, left, HZ / 50 + 1);
		rest = wait_event_interruptible_timeout(*sk_sleep(sk), !lingers(conn), step);
		if (rest < 0)
			return;
	}
}

/* SO_LINGER: waits in close(), never in a worker, until the peer has received everything (E2). */
static void linger(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	u64 unsent;

	if (!sk->sk_lingertime || current->flags & PF_EXITING)
		return;
	/* unread bytes turn close() into a reset, which waits for nothing */
	if (afr_conn_rx_mode(conn) == AFR_MODE_FRAMED && afr_recv_readable(conn))
		return;
	if (afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK && tcp_inq(conn->tcp->sk))
		return;
	if (afr_conn_tx_mode(conn) == AFR_MODE_FRAMED) {
		afr_send_fin(conn);
		afr_conn_schedule(conn);	/* the worker shuts down TCP if one-way */
	} else if (one_way(conn) || afr_send_queued(conn, &unsent)) {
		/* what is queued was written before the mode was decided, see afr_send_early() */
		set_bit(AFR_F_FIN_WANTED, &conn->flags);
		afr_conn_schedule(conn);
	} else {
		return;
	}
	await_end(sk, conn);
}

/* Part of close(): lingers, or resets the connection, as SO_LINGER requests. */
static void release_connection(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;

	if (!test_bit(AFR_F_ACTIVE, &conn->flags)) {
		afr_tcp_settings_sync(sk);	/* if conn has fallen back, TCP lingers itself */
		return;
	}
	if (sock_flag(sk, SOCK_LINGER) && !sk->sk_lingertime)
		afr_conn_abort(conn, AFR_REASON_LINGER_ZERO);
	else if (sock_flag(sk, SOCK_LINGER))
		linger(sk);
	if (afr_conn_tx_mode(conn) == AFR_MODE_FALLBACK &&
	    afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK) {
		afr_tcp_settings_sync(sk);	/* it has fallen back meanwhile */
		return;
	}
	lock_sock(conn->tcp->sk);
	sock_reset_flag(conn->tcp->sk, SOCK_LINGER);
	release_sock(conn->tcp->sk);
}

static int afr_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct afr_sock *as = afr_sk(sk);
	struct afr_conn *conn;

	if (!sk)
		return 0;
	conn = as->conn;
	lock_sock(conn->tcp->sk);
	afr_handshake_unlisten(conn->tcp->sk);
	afr_handshake_disarm(&as->offer, conn->tcp->sk);
	release_sock(conn->tcp->sk);

	release_connection(sk);
	afr_tcp_sock_ungraft(conn->tcp);
	afr_conn_orphan(conn);
	afr_worker_run(conn);
	sock_orphan(sk);
	sock->sk = NULL;
	if (as->cm_user)	/* conn pins the namespace until it is put below */
		afr_cm_listener_put(afr_net(sock_net(sk)));
	afr_conn_put_closed(conn);
	sock_put(sk);
	return 0;
}

/* --- names -------------------------------------------------------------- */

static int afr_bind(struct socket *sock, struct sockaddr_unsized *addr, int len)
{
	int ret;

	afr_tcp_sock_graft(afr_tcp(sock->sk), sock);	/* again: sock->file exists now */
	afr_tcp_settings_sync(sock->sk);
	ret = kernel_bind(afr_tcp(sock->sk), addr, len);
	sock->sk->sk_bound_dev_if = afr_tcp(sock->sk)->sk->sk_bound_dev_if;	/* link-local */
	return ret;
}

static int afr_getname(struct socket *sock, struct sockaddr *addr, int peer)
{
	struct socket *tcp = afr_tcp(sock->sk);

	return READ_ONCE(tcp->ops)->getname(tcp, addr, peer);
}

/* --- connect ------------------------------------------------------------ */

static void set_modes(struct afr_conn *conn, enum afr_mode tx, enum afr_mode rx)
{
	afr_conn_set_tx_mode(conn, tx);
	afr_conn_set_rx_mode(conn, rx);
}

/*
 * Unless the program has set them, SO_SNDBUF and SO_RCVBUF report twice the ring size, because
 * programs expect that the kernel has doubled the value (socket(7)).
 */
static void report_ring_sizes(struct sock *sk)
{
	const struct afr_conn *conn = afr_sk(sk)->conn;

	if (!(sk->sk_userlocks & SOCK_SNDBUF_LOCK))
		WRITE_ONCE(sk->sk_sndbuf, 2 * conn->tx.seq.ring);
	if (!(sk->sk_userlocks & SOCK_RCVBUF_LOCK))
		WRITE_ONCE(sk->sk_rcvbuf, 2 * conn->rx.seq.ring);
}

/*
 * The TCP handshake has succeeded or failed. Called with the TCP socket locked, maybe in softirq.
 * If the peer has consented, the send direction is framed from its first byte on; the peer's first
 * bytes decide the mode of the receive direction.
 */
static void settled(struct afr_handshake *offer, struct sock *tcp_sk, enum afr_reason reason)
{
	struct afr_sock *as = container_of(offer, struct afr_sock, offer);
	struct afr_conn *conn = as->conn;
	struct sock *sk = &as->sk;

	if (tcp_sk->sk_state != TCP_ESTABLISHED) {
		set_modes(conn, AFR_MODE_NONE, AFR_MODE_NONE);
		if (!READ_ONCE(as->blocking_connect))
			afr_tcp_sock_take_error(conn, sk);
	} else if (reason) {
		afr_fallback_set(conn, reason);
	} else {
		afr_conn_start(conn, false, afr_handshake_nonce(offer), afr_sockopt_sndbuf(sk),
			       afr_sockopt_rcvbuf(sk));
		report_ring_sizes(sk);
		afr_frame_tx_request(conn, AFR_PENDING_HELLO);
		set_modes(conn, AFR_MODE_FRAMED, AFR_MODE_UNDECIDED);
		/* HELLO waits for a frame to go with it, at most until this timer expires */
		afr_conn_timer(conn, AFR_T_PIGGYBACK, AFR_PIGGYBACK_MS);
		afr_tcp_sock_install(conn);
	}
	if (tcp_sk->sk_state == TCP_ESTABLISHED)
		WRITE_ONCE(sk->sk_state, TCP_ESTABLISHED);
	sk->sk_state_change(sk);
}

/*
 * Prepares the TCP socket for a connection that may be framed. Returns the reason why AF_RDMA
 * cannot be offered to the peer.
 */
static enum afr_reason prepare_offer(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;

	/*
	 * If TCP is not in state CLOSE, offer() will do nothing. If TCP returns to CLOSE before
	 * offer() runs, the new connection falls back, because the steps below were skipped.
	 */
	if (inet_sk_state_load(conn->tcp->sk) != TCP_CLOSE)
		return AFR_REASON_CALL_RUNNING;
	afr_tcp_settings_reset_late(sk);
	if (READ_ONCE(conn->policy) == AFRDMA_RDMA_NEVER)
		return AFR_REASON_SOCKET_OPTION;
	if (!afr_netns_enabled(conn->an))
		return AFR_REASON_FAMILY_OFF;
	if (afr_handshake_hook_use(sock_net(sk)))
		return AFR_REASON_NO_NETFILTER;
	return AFR_REASON_NONE;
}

/*
 * Offers AF_RDMA in the SYN, or sets the reason why the connection falls back. Called with the TCP
 * socket locked. Children of a listener inherit its callbacks, so the socket must not be a listener
 * while it has an offer: lock_client() has locked it, and it stays locked until TCP has begun to
 * connect.
 */
static void offer(struct sock *sk, enum afr_reason reason)
{
	struct afr_sock *as = afr_sk(sk);
	struct afr_conn *conn = as->conn;
	struct sock *tcp_sk = conn->tcp->sk;

	sock_owned_by_me(tcp_sk);
	/* TCP_CLOSE may mean that a framed connection has ended */
	if (tcp_sk->sk_state != TCP_CLOSE || test_bit(AFR_F_STARTED, &conn->flags))
		return;
	if (conn->tcp->state == SS_UNCONNECTED)
		WRITE_ONCE(sk->sk_err, 0);	/* as tcp_connect_init() does */
	if (afr_conn_tx_mode(conn) != AFR_MODE_NONE)
		return;
	as->offer.settled = settled;
	set_modes(conn, AFR_MODE_UNDECIDED, AFR_MODE_UNDECIDED);
	smp_mb();	/* modes are set before the count is read; see afr_sock_begin_call() */
	/*
	 * A call that found the former connection in fallback mode may still use the TCP socket
	 * (tcp_calls), or has set LATE options there since prepare_offer() reset them (late_done).
	 */
	if (!reason && (atomic_read(&as->tcp_calls) || READ_ONCE(as->late_done)))
		reason = AFR_REASON_CALL_RUNNING;
	if (!reason && tcp_sk->sk_shutdown)
		reason = AFR_REASON_SHUT_BEFORE;
	if (afr_handshake_arm(&as->offer, tcp_sk, reason))
		afr_fallback_set(conn, reason ?: AFR_REASON_NO_NETFILTER);
}

/*
 * Handles the state CLOSE after a call of TCP's connect(): it has failed, maybe before a SYN was
 * sent, or was for AF_UNSPEC. Called before the TCP socket is unlocked.
 */
static void not_connected(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;

	afr_sock_update_listening(sk);
	afr_handshake_disarm(&afr_sk(sk)->offer, conn->tcp->sk);
	if (test_bit(AFR_F_STARTED, &conn->flags)) {
		/* the socket gets no other connection: listen() must fail, as connect() does */
		if (conn->tcp->state == SS_UNCONNECTED)
			conn->tcp->state = SS_DISCONNECTING;
		return;
	}
	/* let the next connect() start over */
	conn->server = false;	/* it may have been an accepted connection */
	WRITE_ONCE(sk->sk_shutdown, 0);
	clear_bit(AFR_F_FIN_WANTED, &conn->flags);
	clear_bit(AFR_F_RX_REFUSED, &conn->flags);
	set_modes(conn, AFR_MODE_NONE, AFR_MODE_NONE);
	sk->sk_state_change(sk);	/* TCP's wake-up, if any, came before the modes changed */
}

/*
 * Locks the TCP socket, which the program is about to connect. If it has been a listener, first
 * waits until no processor is making a child of it any more: TCP does so without the lock, and a
 * child copies the callbacks, which the offer and afr_tcp_sock_install() replace.
 */
static void lock_client(struct sock *sk)
{
	struct afr_sock *as = afr_sk(sk);
	struct sock *tcp_sk = as->conn->tcp->sk;

	lock_sock(sk);		/* excludes listen() */
	lock_sock(tcp_sk);
	if (as->listened && tcp_sk->sk_state == TCP_CLOSE) {
		afr_handshake_unlisten(tcp_sk);
		release_sock(tcp_sk);
		synchronize_net();
		as->listened = false;
		lock_sock(tcp_sk);
	}
	afr_sock_update_listening(sk);	/* "ss -K" may have ended the listening */
	release_sock(sk);
}

static int afr_connect(struct socket *sock, struct sockaddr_unsized *addr, int len, int flags)
{
	struct sock *sk = sock->sk;
	struct afr_conn *conn = afr_sk(sk)->conn;
	enum afr_reason reason = AFR_REASON_NONE;
	bool unspec;
	int err;

	if (len < (int)sizeof(addr->sa_family))
		return -EINVAL;
	unspec = addr->sa_family == AF_UNSPEC;
	afr_tcp_sock_graft(conn->tcp, sock);	/* again: sock->file exists now */
	afr_tcp_settings_sync(sk);
	/* once a connection was started, its socket cannot be disconnected, nor connect again */
	if (unspec && test_bit(AFR_F_STARTED, &conn->flags))
		return -EOPNOTSUPP;
	if (!unspec && test_bit(AFR_F_STARTED, &conn->flags) &&
	    (READ_ONCE(conn->tcp->state) == SS_UNCONNECTED ||
	     READ_ONCE(conn->tcp->state) == SS_DISCONNECTING))
		return -EISCONN;
	/* in state SS_CONNECTING, TCP reports how the first connect() ended */
	if ((test_bit(AFR_F_ABORTED, &conn->flags) || test_bit(AFR_F_FINISHED, &conn->flags)) &&
	    READ_ONCE(conn->tcp->state) != SS_CONNECTING)
		return -EISCONN;
	/* no new offer before connect(AF_UNSPEC), even if the connection has ended */
	if (!unspec && READ_ONCE(conn->tcp->state) == SS_CONNECTED)
		return -EISCONN;
	if (!unspec)
		reason = prepare_offer(sk);

	if (unspec)
		lock_sock(conn->tcp->sk);
	else
		lock_client(sk);
	if (unspec && test_bit(AFR_F_STARTED, &conn->flags)) {	/* set after the check above */
		release_sock(conn->tcp->sk);
		return -EOPNOTSUPP;
	}
	if (!unspec)
		offer(sk, reason);
	WRITE_ONCE(afr_sk(sk)->blocking_connect, !(flags & O_NONBLOCK));
	err = __inet_stream_connect(conn->tcp, addr, len, flags, 0);
	WRITE_ONCE(afr_sk(sk)->blocking_connect, false);
	sk->sk_bound_dev_if = conn->tcp->sk->sk_bound_dev_if;	/* a link-local address sets it */
	if (conn->tcp->sk->sk_state == TCP_CLOSE)
		not_connected(sk);
	/*
	 * If TCP returns ECONNABORTED, its error may be on the AF_RDMA socket now, such as that of
	 * an earlier connect(), see settled(): return that one. An abort sets errors on both
	 * sockets; TCP has cleared its own, so clear the other one.
	 */
	if (err == -ECONNABORTED || (err && err != -EINPROGRESS && afr_conn_aborted(conn)))
		err = sock_error(sk) ?: err;
	if (unspec)
		afr_tcp_sock_take_error(conn, sk);	/* ECONNRESET of tcp_disconnect() */
	release_sock(conn->tcp->sk);
	if (!unspec && !err)
		sock->state = SS_CONNECTED;
	return err;
}

/* --- listen, accept ----------------------------------------------------- */

static int afr_listen(struct socket *sock, int backlog)
{
	struct sock *sk = sock->sk;
	struct afr_sock *as = afr_sk(sk);
	struct socket *tcp = as->conn->tcp;
	bool consents = afr_netns_enabled(as->conn->an) &&
			READ_ONCE(as->conn->policy) != AFRDMA_RDMA_NEVER &&
			!afr_handshake_hook_use(sock_net(sk));
	int err;

	afr_tcp_sock_graft(tcp, sock);	/* again: sock->file exists now */
	if (inet_sk_state_load(tcp->sk) == TCP_CLOSE)
		afr_tcp_settings_reset_late(sk);
	afr_tcp_settings_sync(sk);
	lock_sock(sk);		/* see lock_client() */
	as->listened = true;
	err = afr_handshake_listen(tcp->sk, consents) ?: kernel_listen(tcp, backlog);
	if (!err) {
		/* shutdown() or "ss -K" may have ended the listening of the TCP socket already */
		lock_sock(tcp->sk);
		afr_sock_update_listening(sk);
		release_sock(tcp->sk);
		sk->sk_max_ack_backlog = backlog;
	}
	release_sock(sk);
	return err;
}

/*
 * An accepted connection falls back or is aborted at once, or hello_rx.c decides its modes later.
 * @consents: the listener consented to offers when the program called accept(), or does so now.
 */
static void accepted(struct sock *sk, bool consents)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	struct sock *tcp_sk = conn->tcp->sk;
	enum afr_reason reason = AFR_REASON_FAMILY_OFF, found;
	u32 nonce = 0;

	conn->server = true;
	if (READ_ONCE(conn->policy) == AFRDMA_RDMA_NEVER)
		reason = AFR_REASON_SOCKET_OPTION;
	found = afr_handshake_accepted(tcp_sk, &nonce);
	if (!found || found == AFR_REASON_SYN_TAKEN || consents)
		reason = found;
	if (reason && reason != AFR_REASON_SYN_TAKEN) {
		afr_fallback_set(conn, reason);
		return;
	}
	afr_conn_start(conn, true, nonce, afr_sockopt_sndbuf(sk), afr_sockopt_rcvbuf(sk));
	report_ring_sizes(sk);
	set_modes(conn, AFR_MODE_UNDECIDED, AFR_MODE_UNDECIDED);
	if (reason) {	/* the client may send HELLO: too late to fall back (I13) */
		afr_conn_abort(conn, reason);
		return;
	}
	afr_conn_timer(conn, AFR_T_HELLO, READ_ONCE(conn->an->set.hello_timeout_ms));
	lock_sock(tcp_sk);
	afr_tcp_sock_install(conn);
	release_sock(tcp_sk);
	if (!afr_tcp_sock_idle(conn))
		afr_conn_schedule(conn);
}

static int afr_accept(struct socket *sock, struct socket *newsock, AFR_ACCEPT_ARGS)
{
	struct sock *listener = sock->sk, *sk;
	struct socket *tcp;
	bool consents;
	int err;

	/* first: another thread may change this during the call */
	consents = afr_handshake_consents(afr_tcp(listener)->sk);
	afr_tcp_settings_sync(listener);
	/* allocate before kernel_accept(): a failure after it would lose the connection */
	sk = alloc_sock(sock_net(listener), newsock, listener->sk_protocol, 0);
	if (!sk)
		return -ENOMEM;
	security_sk_clone(listener, sk);	/* socket() labels its sock, accept() does not */
	err = kernel_accept(afr_tcp(listener), &tcp, AFR_ACCEPT_FLAGS);
	if (err) {
		free_sock(newsock, sk);
		return err;
	}
	adopt_tcp(newsock, sk, tcp);
	afr_tcp_settings_inherit(sk, listener);
	WRITE_ONCE(sk->sk_state, TCP_ESTABLISHED);
	newsock->state = SS_CONNECTED;
	accepted(sk, consents || afr_handshake_consents(afr_tcp(listener)->sk));
	return 0;
}

static const struct proto_ops afr_ops = {
	.owner		= THIS_MODULE,
	.release	= afr_release,
	.bind		= afr_bind,
	.connect	= afr_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= afr_accept,
	.getname	= afr_getname,
	.poll		= afr_poll,
	.ioctl		= afr_poll_ioctl,
	/* NULL on kernels such as 6.1: there SO_PEEK_OFF fails with EOPNOTSUPP, as with TCP */
	.set_peek_off	= AFR_CUSTOM_SOCKOPT ? sk_set_peek_off : NULL,
	.set_rcvlowat	= afr_poll_set_rcvlowat,
	.gettstamp	= sock_gettstamp,
	.listen		= afr_listen,
	.shutdown	= afr_shutdown,
	.setsockopt	= afr_sockopt_set,
	.getsockopt	= afr_sockopt_get,
	.sendmsg	= afr_sendmsg,
	.recvmsg	= afr_recvmsg,
#ifdef AFR_HAVE_SPLICE_EOF
	.splice_eof	= afr_sendmsg_splice_eof,
#endif
	.mmap		= sock_no_mmap,
	.family		= AF_RDMA,
};

static struct net_proto_family afr_family = {
	.create	= afr_create,
	.owner	= THIS_MODULE,
};

/**
 * afr_sock_family() - get the address family number
 *
 * Context: Any.
 * Return: the module parameter.
 */
unsigned int afr_sock_family(void)
{
	return family;
}

/**
 * afr_sock_init() - register the family
 *
 * Context: Module load.
 * Return: 0 or a negative error; -EEXIST or -ENOBUFS, explained in the log, if the address family
 * number cannot be registered.
 */
int afr_sock_init(void)
{
	int err;

	err = proto_register(&afr_proto, 1);
	if (err)
		return err;
	afr_family.family = family;
	err = sock_register(&afr_family);
	if (!err)
		return 0;
	pr_err("afrdma: address family %u cannot be registered (%d): %s\n", family, err,
	       err == -EEXIST ? "it is taken; load with family=NUMBER to use another"
			      : "the kernel only knows numbers below AF_MAX");
	proto_unregister(&afr_proto);
	return err;
}

/**
 * afr_sock_exit() - unregister the family
 *
 * Context: Module exit; its reference count guarantees that no socket exists.
 */
void afr_sock_exit(void)
{
	sock_unregister(family);
	proto_unregister(&afr_proto);
}
