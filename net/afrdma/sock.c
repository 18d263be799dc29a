// SPDX-License-Identifier: GPL-2.0
/* The family: create, bind, connect, listen, accept, release. */
#include "sock.h"

#include <linux/module.h>
#include <linux/net.h>
#include <net/tcp.h>
#include <uapi/linux/af_rdma.h>

#include "compat.h"
#include "control.h"
#include "hook.h"
#include "inner.h"
#include "io.h"
#include "recv.h"
#include "send.h"
#include "stats.h"
#include "trace.h"

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

	/* the connection goes in afr_release(); notices that nobody read, and the count, stay */
	skb_queue_purge(&sk->sk_error_queue);
	atomic_dec(&an->sockets);
}

/* Undo front_alloc(). */
static void front_free(struct socket *sock, struct sock *sk)
{
	if (afr_sk(sk)->conn)
		afr_conn_put(afr_sk(sk)->conn);
	sock_orphan(sk);
	sock->sk = NULL;
	sock_put(sk);
}

/* A front and its connection, with no inner socket yet. */
static struct sock *front_alloc(struct net *net, struct socket *sock, int protocol, int kern)
{
	struct sock *sk = sk_alloc(net, family, GFP_KERNEL, &afr_proto, kern);

	if (!sk)
		return NULL;
	sock_init_data(sock, sk);
	sk->sk_protocol = protocol;
	sk->sk_destruct = sock_destruct;
	sock_set_flag(sk, SOCK_RCU_FREE);	/* upcalls find it under RCU */
	atomic_inc(&afr_net(net)->sockets);
	afr_sk(sk)->conn = afr_conn_alloc(afr_net(net), sk, &afr_front_ops);
	if (!afr_sk(sk)->conn) {
		front_free(sock, sk);
		return NULL;
	}
	sock->ops = &afr_ops;
	set_bit(SOCK_CUSTOM_SOCKOPT, &sock->flags);
	set_bit(SOCK_SUPPORT_ZC, &sock->flags);	/* io_uring's: copied, and told at once */
	return sk;
}

/* From now on @sk stands before @inner, and owns it. */
static void front_adopt(struct socket *sock, struct sock *sk, struct socket *inner)
{
	struct afr_net *an = afr_net(sock_net(sk));

	afr_conn_create(afr_sk(sk)->conn, inner);
	afr_inner_graft(inner, sock);
	afr_service_get(an);
	afr_stat_inc(an->net, AFR_STAT_SOCK_CREATED);
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
 * What the machine's administrator forbids stays so in network namespaces that anybody can make,
 * where the creator has all capabilities; these can only forbid more.
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
	struct socket *inner;
	struct sock *sk;

	if (sock->type != SOCK_STREAM)
		return -ESOCKTNOSUPPORT;
	if (inet < 0)
		return inet;
	if (!may_create(net))
		return -EPERM;
	sk = front_alloc(net, sock, inet == AF_INET6 ? AFRDMA_PROTO_INET6 : AFRDMA_PROTO_INET,
			 kern);
	if (!sk)
		return -ENOBUFS;
	err = afr_inner_create(net, inet, &inner);
	if (err) {
		front_free(sock, sk);
		return err;
	}
	front_adopt(sock, sk, inner);
	return 0;
}

/* --- release ------------------------------------------------------------ */

/* Of a half-framed connection TCP itself says that the peer has all: its FIN is acknowledged. */
static bool half_done(const struct afr_conn *conn)
{
	return test_bit(AFR_F_INNER_SHUT, &conn->flags) &&
	       (1 << inet_sk_state_load(conn->inner->sk)) &
	       (TCPF_FIN_WAIT2 | TCPF_TIME_WAIT | TCPF_CLOSE);
}

static bool lingers(struct afr_conn *conn, bool half)
{
	return !afr_send_done(conn) && !test_bit(AFR_F_ABORTED, &conn->flags) &&
	       !test_bit(AFR_F_FINISHED, &conn->flags) &&
	       (half ? !half_done(conn) : afr_conn_tx_mode(conn) != AFR_RAW);
}

/* Nobody tells of what TCP's own state has become: then we look now and then. */
static void await_end(struct sock *sk, struct afr_conn *conn, bool half)
{
	long left = sk->sk_lingertime, step, rest = 0;

	for (; left > 0 && lingers(conn, half); left -= step - rest) {
		step = half ? min_t(long, left, HZ / 50 + 1) : left;
		rest = wait_event_interruptible_timeout(*sk_sleep(sk), !lingers(conn, half), step);
		if (rest < 0)
			return;
	}
}

/* SO_LINGER: wait here for the peer to have everything, never in a worker (E2). */
static void linger(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	bool half;
	u64 unsent;

	if (!sk->sk_lingertime || current->flags & PF_EXITING)
		return;
	/* what nobody has read makes it a reset, and nothing goes ahead of that */
	if (afr_conn_rx_mode(conn) == AFR_FRAMED && afr_recv_readable(conn))
		return;
	half = (afr_conn_tx_mode(conn) == AFR_RAW) != (afr_conn_rx_mode(conn) == AFR_RAW);
	if (afr_conn_tx_mode(conn) == AFR_FRAMED) {
		afr_send_fin(conn);
		afr_conn_schedule(conn);	/* of a half-framed one the work ends TCP */
	} else if (half || afr_send_queued(conn, &unsent)) {	/* written early */
		set_bit(AFR_F_FIN_WANTED, &conn->flags);
		afr_conn_schedule(conn);
	} else {
		return;
	}
	await_end(sk, conn, half);
}

static void release_connection(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;

	if (!test_bit(AFR_F_ALIVE, &conn->flags)) {
		afr_sockopt_sync(sk);	/* plain: the inner socket lingers itself */
		return;
	}
	if (sock_flag(sk, SOCK_LINGER) && !sk->sk_lingertime)
		afr_conn_abort(conn, AFR_REASON_LINGER_ZERO);
	else if (sock_flag(sk, SOCK_LINGER))
		linger(sk);
	if (afr_conn_tx_mode(conn) == AFR_RAW && afr_conn_rx_mode(conn) == AFR_RAW) {
		afr_sockopt_sync(sk);	/* plain since */
		return;
	}
	lock_sock(conn->inner->sk);
	sock_reset_flag(conn->inner->sk, SOCK_LINGER);
	release_sock(conn->inner->sk);
}

static int afr_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct afr_sock *as = afr_sk(sk);
	struct afr_conn *conn;

	if (!sk)
		return 0;
	conn = as->conn;
	lock_sock(conn->inner->sk);
	if (as->mark)
		afr_tcpopt_unlisten(as->mark, conn->inner->sk);
	as->mark = NULL;
	afr_offer_disarm(&as->offer, conn->inner->sk);
	release_sock(conn->inner->sk);

	release_connection(sk);
	afr_inner_ungraft(conn->inner);
	afr_conn_orphan(conn);
	sock_orphan(sk);
	sock->sk = NULL;
	afr_conn_put_closed(conn);
	afr_service_put(afr_net(sock_net(sk)));
	sock_put(sk);
	return 0;
}

/* --- names -------------------------------------------------------------- */

static int afr_bind(struct socket *sock, struct sockaddr *addr, int len)
{
	afr_inner_graft(afr_inner(sock->sk), sock);	/* now there is a file to lend */
	afr_sockopt_sync(sock->sk);
	return kernel_bind(afr_inner(sock->sk), addr, len);
}

static int afr_getname(struct socket *sock, struct sockaddr *addr, int peer)
{
	struct socket *inner = afr_inner(sock->sk);

	return READ_ONCE(inner->ops)->getname(inner, addr, peer);
}

/* --- connect ------------------------------------------------------------ */

static void set_modes(struct afr_conn *conn, enum afr_mode tx, enum afr_mode rx)
{
	afr_conn_set_tx_mode(conn, tx);
	afr_conn_set_rx_mode(conn, rx);
}

/* SO_SNDBUF and SO_RCVBUF answer twice what there is, as TCP's, unless the program has set them. */
static void show_rings(struct sock *sk)
{
	const struct afr_conn *conn = afr_sk(sk)->conn;

	if (!(sk->sk_userlocks & SOCK_SNDBUF_LOCK))
		WRITE_ONCE(sk->sk_sndbuf, 2 * conn->tx.ring);
	if (!(sk->sk_userlocks & SOCK_RCVBUF_LOCK))
		WRITE_ONCE(sk->sk_rcvbuf, 2 * conn->rx.ring);
}

/*
 * The TCP handshake is over; the inner socket is locked, maybe in softirq. With
 * consent our direction is framed from its first byte on; what the peer's is, its
 * first bytes will tell.
 */
static void settled(struct afr_offer *offer, struct sock *isk, enum afr_reason reason)
{
	struct afr_sock *as = container_of(offer, struct afr_sock, offer);
	struct afr_conn *conn = as->conn;
	struct sock *sk = &as->sk;

	if (isk->sk_state != TCP_ESTABLISHED) {
		set_modes(conn, AFR_NONE, AFR_NONE);
		if (!READ_ONCE(as->blocking_connect))
			afr_inner_take_error(conn->inner, sk);
	} else if (reason) {
		afr_io_set_plain(conn, reason);
	} else {
		afr_conn_start(conn, false, afr_offer_nonce(offer), afr_own_sndbuf(sk),
			       afr_own_rcvbuf(sk));
		show_rings(sk);
		afr_control_want(conn, AFR_WANT_HELLO);
		set_modes(conn, AFR_FRAMED, AFR_UNDECIDED);
		afr_conn_timer(conn, AFR_T_SAY, AFR_SAY_MS);	/* if no byte comes to go with it */
		afr_hook_install(conn);
	}
	if (isk->sk_state == TCP_ESTABLISHED)
		WRITE_ONCE(sk->sk_state, TCP_ESTABLISHED);
	sk->sk_state_change(sk);
}

/* Offer RDMA in the SYN to come. Failing that, the connection is plain, and says why. */
static void offer(struct sock *sk)
{
	struct afr_sock *as = afr_sk(sk);
	struct afr_conn *conn = as->conn;
	struct sock *isk = conn->inner->sk;
	enum afr_reason reason = AFR_REASON_NONE;

	if (inet_sk_state_load(isk) != TCP_CLOSE)
		return;
	if (READ_ONCE(conn->wish) == AFRDMA_RDMA_NEVER)
		reason = AFR_REASON_SOCKET_OPTION;
	else if (!afr_net_enabled(conn->an))
		reason = AFR_REASON_FAMILY_OFF;
	else if (afr_tcpopt_use(sock_net(sk)))
		reason = AFR_REASON_NO_NETFILTER;
	as->offer.settled = settled;
	afr_sockopt_early(sk);
	lock_sock(isk);
	/* what was framed may end just now */
	if (isk->sk_state == TCP_CLOSE && !test_bit(AFR_F_STARTED, &conn->flags) &&
	    afr_conn_tx_mode(conn) == AFR_NONE) {	/* nor does another call connect it */
		if (!afr_offer_arm(&as->offer, isk, reason))
			set_modes(conn, AFR_UNDECIDED, AFR_UNDECIDED);
		else
			afr_io_set_plain(conn, reason ?: AFR_REASON_NO_NETFILTER);
	}
	release_sock(isk);
}

static int afr_connect(struct socket *sock, struct sockaddr *addr, int len, int flags)
{
	struct sock *sk = sock->sk;
	struct afr_conn *conn = afr_sk(sk)->conn;
	int err, failed = 0;
	bool unspec;

	if (len < (int)sizeof(addr->sa_family))
		return -EINVAL;
	if (READ_ONCE(sk->sk_err) && afr_conn_tx_mode(conn) == AFR_NONE)
		failed = sock_error(sk);
	/* a connect() that failed, and poll() has the error: TCP has to hear of another, too */
	if (failed && READ_ONCE(conn->inner->state) != SS_CONNECTING)
		return failed;
	afr_inner_graft(conn->inner, sock);	/* now there is a file to lend */
	afr_sockopt_sync(sk);
	unspec = addr->sa_family == AF_UNSPEC;
	/* what was framed once is never used again, not even when it has ended */
	if (unspec && test_bit(AFR_F_STARTED, &conn->flags))
		return -EOPNOTSUPP;
	if (!unspec && test_bit(AFR_F_STARTED, &conn->flags) &&
	    READ_ONCE(conn->inner->state) == SS_UNCONNECTED)
		return -EISCONN;
	if (test_bit(AFR_F_ABORTED, &conn->flags) || test_bit(AFR_F_FINISHED, &conn->flags))
		return -EISCONN;
	/* ended or not, what was connected once offers nothing again until it is taken down */
	if (!unspec && READ_ONCE(conn->inner->state) == SS_CONNECTED)
		return -EISCONN;
	if (!unspec)
		offer(sk);

	WRITE_ONCE(afr_sk(sk)->blocking_connect, !(flags & O_NONBLOCK));
	err = kernel_connect(conn->inner, addr, len, flags);
	WRITE_ONCE(afr_sk(sk)->blocking_connect, false);

	lock_sock(conn->inner->sk);
	if (conn->inner->sk->sk_state == TCP_CLOSE) {
		/* refused before a SYN, or failed: the next connect() starts afresh */
		afr_offer_disarm(&afr_sk(sk)->offer, conn->inner->sk);
		/* but not what was framed, and may have ended before we came to look */
		if (!test_bit(AFR_F_STARTED, &conn->flags)) {
			conn->server = false;	/* once accepted, plain, and taken down */
			set_modes(conn, AFR_NONE, AFR_NONE);
			sk->sk_state_change(sk);	/* TCP told it before that */
		}
	}
	release_sock(conn->inner->sk);
	if (err == -ECONNABORTED)	/* a poll may have taken the error to the front meanwhile */
		err = failed ?: sock_error(sk) ?: err;
	if (unspec)
		afr_inner_take_error(conn->inner, sk);	/* ECONNRESET, of our own making */
	else if (!err)
		sock->state = SS_CONNECTED;
	return err;
}

/* --- listen, accept ----------------------------------------------------- */

static int afr_listen(struct socket *sock, int backlog)
{
	struct sock *sk = sock->sk;
	struct afr_sock *as = afr_sk(sk);
	struct socket *inner = as->conn->inner;
	struct afr_listen_mark *mark;
	int err;

	afr_inner_graft(inner, sock);	/* now there is a file to lend */
	afr_sockopt_sync(sk);
	if (!as->mark && afr_net_enabled(as->conn->an) &&
	    READ_ONCE(as->conn->wish) != AFRDMA_RDMA_NEVER &&
	    inner->sk->sk_state == TCP_CLOSE && !afr_tcpopt_use(sock_net(sk))) {
		lock_sock(inner->sk);
		mark = afr_tcpopt_listen(inner->sk);
		if (!IS_ERR(mark))
			as->mark = mark;
		release_sock(inner->sk);
	}
	err = kernel_listen(inner, backlog);
	if (err)
		return err;
	WRITE_ONCE(sk->sk_state, TCP_LISTEN);
	sk->sk_max_ack_backlog = backlog;
	return 0;
}

/* A client that asked waits for nothing from us: its HELLO comes soon behind its ACK. */
static void accepted(struct sock *listener, struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	struct sock *isk = conn->inner->sk;
	enum afr_reason reason = AFR_REASON_FAMILY_OFF;
	u32 nonce = 0;

	conn->server = true;
	if (READ_ONCE(conn->wish) == AFRDMA_RDMA_NEVER)
		reason = AFR_REASON_SOCKET_OPTION;
	if (afr_sk(listener)->mark)
		reason = afr_tcpopt_accepted(isk, &nonce);
	if (reason && reason != AFR_REASON_SYN_TAKEN) {
		afr_io_set_plain(conn, reason);
		return;
	}
	afr_conn_start(conn, true, nonce, afr_own_sndbuf(sk), afr_own_rcvbuf(sk));
	show_rings(sk);
	set_modes(conn, AFR_UNDECIDED, AFR_UNDECIDED);
	if (reason) {	/* behind our consent nothing is plain (I13) */
		afr_conn_abort(conn, reason);
		return;
	}
	afr_conn_timer(conn, AFR_T_HELLO, READ_ONCE(conn->an->set.hello_timeout_ms));
	lock_sock(isk);
	afr_hook_install(conn);
	release_sock(isk);
	if (!afr_hook_silent(conn))
		afr_conn_schedule(conn);
}

static int afr_accept(struct socket *sock, struct socket *newsock, AFR_ACCEPT_ARGS)
{
	struct sock *listener = sock->sk, *sk;
	struct socket *inner;
	int err;

	afr_sockopt_sync(listener);
	/* first: a connection that was taken from the queue must not be lost for memory */
	sk = front_alloc(sock_net(listener), newsock, listener->sk_protocol, 0);
	if (!sk)
		return -ENOMEM;
	err = kernel_accept(afr_inner(listener), &inner, AFR_ACCEPT_FLAGS);
	if (err) {
		front_free(newsock, sk);
		return err;
	}
	front_adopt(newsock, sk, inner);
	afr_sockopt_inherit(sk, listener);
	WRITE_ONCE(sk->sk_state, TCP_ESTABLISHED);
	newsock->state = SS_CONNECTED;
	accepted(listener, sk);
	return 0;
}

/* Who sleeps may have enough now. Called with @sk locked. */
static int afr_set_rcvlowat(struct sock *sk, int val)
{
	struct afr_conn *conn = afr_sk(sk)->conn;

	WRITE_ONCE(sk->sk_rcvlowat, val ?: 1);
	if (afr_conn_rx_mode(conn) == AFR_FRAMED && afr_recv_readable(conn))
		sk->sk_data_ready(sk);
	return 0;
}

#ifdef AFR_HAVE_SPLICE_EOF
/* sendfile() and splice() have come to an end behind what they said would go on. */
static void afr_splice_eof(struct socket *sock)
{
	struct afr_sock *as = afr_sk(sock->sk);
	struct socket *inner = as->conn->inner;

	if (afr_conn_tx_mode(as->conn) == AFR_RAW) {
		if (READ_ONCE(inner->ops)->splice_eof)
			READ_ONCE(inner->ops)->splice_eof(inner);
	} else if (!READ_ONCE(as->cork)) {
		afr_send_uncork(as->conn);
	}
}
#endif

static const struct proto_ops afr_ops = {
	.owner		= THIS_MODULE,
	.release	= afr_release,
	.bind		= afr_bind,
	.connect	= afr_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= afr_accept,
	.getname	= afr_getname,
	.poll		= afr_poll,
	.ioctl		= afr_ioctl,
	/* as TCP's: not of kernels that keep SOL_SOCKET to themselves */
	.set_peek_off	= AFR_SOL_SOCKET_IS_OURS ? sk_set_peek_off : NULL,
	.set_rcvlowat	= afr_set_rcvlowat,
	.gettstamp	= sock_gettstamp,
	.listen		= afr_listen,
	.shutdown	= afr_shutdown,
	.setsockopt	= afr_setsockopt,
	.getsockopt	= afr_getsockopt,
	.sendmsg	= afr_sendmsg,
	.recvmsg	= afr_recvmsg,
#ifdef AFR_HAVE_SPLICE_EOF
	.splice_eof	= afr_splice_eof,
#endif
	.mmap		= sock_no_mmap,
	.family		= AF_RDMA,
};

static struct net_proto_family afr_family = {
	.create	= afr_create,
	.owner	= THIS_MODULE,
};

/**
 * afr_sock_family() - the address family number we register
 *
 * Return: the module parameter.
 */
unsigned int afr_sock_family(void)
{
	return family;
}

/**
 * afr_sock_init() - register the family
 *
 * Return: 0; -EEXIST or -ENOBUFS with a sentence in the log when the number cannot be had.
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
 * afr_sock_exit() - no socket() any more
 *
 * Context: module exit; the module's count says that no socket lives.
 */
void afr_sock_exit(void)
{
	sock_unregister(family);
	proto_unregister(&afr_proto);
}
