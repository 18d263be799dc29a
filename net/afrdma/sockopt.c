// SPDX-License-Identifier: GPL-2.0
/*
 * Socket options. SOL_SOCKET is set on both sockets, because getsockopt never
 * asks us for that level; IPPROTO_* goes to the inner socket, but for the options
 * that would change the byte stream under a framed connection.
 */
#include <linux/in.h>
#include <linux/net.h>
#include <linux/tcp.h>
#include <net/sock.h>
#include <uapi/linux/af_rdma.h>
#include <uapi/linux/in6.h>

#include "compat.h"
#include "control.h"
#include "hook.h"
#include "inner.h"
#include "move.h"
#include "sock.h"
#include "support.h"

/* What becomes of an option: support.h says what each means. */
enum what { PASS, STORE, REFUSE, CORE, OWN };

static const struct rule {
	int level, name;
	enum what what;
} rules[] = {
#define AFR_OPTION(level, name, rule, ...) { level, name, rule },
	AFR_SUPPORT_OPTIONS
#undef AFR_OPTION
};

static enum what rule_of(int level, int name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].level == level && rules[i].name == name)
			return rules[i].what;
	return PASS;
}

/* The inner socket carries frames, at least in one direction. */
static bool inner_is_ours(const struct afr_conn *conn)
{
	u8 tx = afr_conn_tx_mode(conn), rx = afr_conn_rx_mode(conn);

	return tx == AFR_FRAMED || rx == AFR_FRAMED;
}

static int set_inner(struct socket *inner, int level, int name, sockptr_t value, unsigned int len)
{
	if (level == SOL_SOCKET)
		return sock_setsockopt(inner, level, name, value, len);
	return READ_ONCE(inner->ops)->setsockopt(inner, level, name, value, len);
}

/* It may come to carry frames: then what they cannot have stays hidden. */
static int set_hidden(struct sock *sk, int level, int name, sockptr_t value, unsigned int len)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	int err;

	lock_sock(sk);
	afr_hook_settings(conn, false);
	err = set_inner(conn->inner, level, name, value, len);
	afr_hook_settings(conn, true);
	release_sock(sk);
	if (level == SOL_SOCKET || conn->rcvlowat > 1)
		afr_conn_schedule(conn);	/* bytes may have come that were too few */
	return err;
}

/* Filters act on the inner socket's packets; the front has none. */
static bool front_has(int name)
{
	switch (name) {
	case SO_ATTACH_FILTER:
	case SO_ATTACH_BPF:
	case SO_ATTACH_REUSEPORT_CBPF:
	case SO_ATTACH_REUSEPORT_EBPF:
	case SO_DETACH_FILTER:
	case SO_DETACH_REUSEPORT_BPF:
		return false;
	}
	return true;
}

/* Options that the core refuses to families it does not know; the inner socket has them. */
static int take_from_inner(struct sock *sk, const struct sock *isk)
{
	sk->sk_reuseport = isk->sk_reuseport;
	sock_valbool_flag(sk, SOCK_ZEROCOPY, sock_flag(isk, SOCK_ZEROCOPY));
	return 0;
}

static int set_socket(struct socket *sock, int name, sockptr_t value, unsigned int len, bool inner)
{
	int err = 0;

	if (inner && name == SO_RCVLOWAT)
		err = set_hidden(sock->sk, SOL_SOCKET, name, value, len);
	else if (inner)
		err = set_inner(afr_inner(sock->sk), SOL_SOCKET, name, value, len);
	if (!err && !front_has(name))
		afr_conn_schedule(afr_sk(sock->sk)->conn);	/* off RDMA, with a filter */
	if (err || !front_has(name))
		return err;
	err = sock_setsockopt(sock, SOL_SOCKET, name, value, len);
	if ((name == SO_REUSEPORT || name == SO_ZEROCOPY) && err == -EOPNOTSUPP)
		err = take_from_inner(sock->sk, afr_inner(sock->sk)->sk);
	return err;
}

static int set_tcp(struct socket *sock, int name, sockptr_t value, unsigned int len, bool inner)
{
	struct afr_sock *as = afr_sk(sock->sk);
	int val, err = 0;

	if (len < sizeof(int))
		return -EINVAL;
	if (copy_from_sockptr(&val, value, sizeof(val)))
		return -EFAULT;
	if (inner)
		err = set_hidden(sock->sk, IPPROTO_TCP, name, value, len);
	if (err)
		return err;
	if (name == TCP_CORK)
		as->cork = !!val;
	else
		as->nodelay = !!val;
	return 0;
}

/**
 * afr_setsockopt() - proto_ops.setsockopt
 * @sock: socket
 * @level: SOL_SOCKET (SOCK_CUSTOM_SOCKOPT sends it here), IPPROTO_*, SOL_AFRDMA
 * @name: option
 * @value: value
 * @len: its length
 *
 * Return: 0 or -errno; -EOPNOTSUPP for what this family does not do.
 */
int afr_setsockopt(struct socket *sock, int level, int name, sockptr_t value, unsigned int len)
{
	struct afr_conn *conn = afr_sk(sock->sk)->conn;
	enum what what = rule_of(level, name);
	bool inner = what != STORE || !inner_is_ours(conn);

	if (what == REFUSE)
		return -EOPNOTSUPP;
	if (level == SOL_AFRDMA)
		return afr_own_set(sock->sk, name, value, len);
	if (level == SOL_SOCKET)
		return set_socket(sock, name, value, len, inner);
	if (level == IPPROTO_TCP && what == STORE)
		return set_tcp(sock, name, value, len, inner);
	return set_inner(conn->inner, level, name, value, len);
}

static int get_stored(struct afr_sock *as, int name, char __user *value, int __user *len)
{
	int val = name == TCP_CORK ? as->cork : as->nodelay;
	int room;

	if (get_user(room, len))
		return -EFAULT;
	if (room < 0)
		return -EINVAL;
	room = min_t(int, room, sizeof(val));
	if (put_user(room, len) || copy_to_user(value, &val, room))
		return -EFAULT;
	return 0;
}

/**
 * afr_getsockopt() - proto_ops.getsockopt
 * @sock: socket
 * @level: IPPROTO_*, SOL_AFRDMA (SOL_SOCKET never comes here)
 * @name: option
 * @value: where to
 * @len: room there, and bytes written
 *
 * Return: 0 or -errno.
 */
int afr_getsockopt(struct socket *sock, int level, int name, char __user *value, int __user *len)
{
	struct afr_sock *as = afr_sk(sock->sk);
	struct socket *inner = as->conn->inner;

	if (level == SOL_AFRDMA)
		return afr_own_get(sock->sk, name, value, len);
	switch (rule_of(level, name)) {
	case REFUSE:
		return -EOPNOTSUPP;
	case STORE:
		return get_stored(as, name, value, len);
	default:
		return READ_ONCE(inner->ops)->getsockopt(inner, level, name, value, len);
	}
}

/* Options that calls on a plain socket obey; a framed one's are the front's alone. */
static void sync_plain(struct sock *isk, const struct sock *sk)
{
	WRITE_ONCE(isk->sk_rcvtimeo, sk->sk_rcvtimeo);
	WRITE_ONCE(isk->sk_sndtimeo, sk->sk_sndtimeo);
	WRITE_ONCE(isk->sk_rcvlowat, sk->sk_rcvlowat);
	if (sk->sk_userlocks & SOCK_SNDBUF_LOCK)
		WRITE_ONCE(isk->sk_sndbuf, sk->sk_sndbuf);
	if (sk->sk_userlocks & SOCK_RCVBUF_LOCK)
		WRITE_ONCE(isk->sk_rcvbuf, sk->sk_rcvbuf);
	isk->sk_userlocks |= sk->sk_userlocks & (SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK);
	sock_valbool_flag(isk, SOCK_LINGER, sock_flag(sk, SOCK_LINGER));
	isk->sk_lingertime = sk->sk_lingertime;
}

/**
 * afr_sockopt_sync() - what was set on the front holds for the inner socket
 * @sk: front
 *
 * Context: process. Does nothing where afr_setsockopt() is told of everything.
 */
void afr_sockopt_sync(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	struct sock *isk = conn->inner->sk;

	if (AFR_SOL_SOCKET_IS_OURS)
		return;
	if (sk->sk_bound_dev_if != isk->sk_bound_dev_if)
		sock_bindtoindex(isk, sk->sk_bound_dev_if, true);
	if (sock_flag(sk, SOCK_KEEPOPEN) && !sock_flag(isk, SOCK_KEEPOPEN))
		sock_set_keepalive(isk);
	lock_sock(isk);
	isk->sk_reuse = sk->sk_reuse;
	isk->sk_reuseport = sk->sk_reuseport;
	isk->sk_mark = sk->sk_mark;
	WRITE_ONCE(isk->sk_priority, sk->sk_priority);
	sock_valbool_flag(isk, SOCK_URGINLINE, sock_flag(sk, SOCK_URGINLINE));
	if (!inner_is_ours(conn))
		sync_plain(isk, sk);
	release_sock(isk);
}

/**
 * afr_sockopt_inherit() - an accepted socket starts with its listener's options
 * @child: new front
 * @listener: listening front
 */
void afr_sockopt_inherit(struct sock *child, const struct sock *listener)
{
	static const unsigned long flags = BIT(SOCK_KEEPOPEN) | BIT(SOCK_LINGER) |
					   BIT(SOCK_URGINLINE) | BIT(SOCK_BROADCAST) |
					   BIT(SOCK_DBG) | BIT(SOCK_LOCALROUTE) |
					   BIT(SOCK_ZEROCOPY);

	child->sk_flags |= listener->sk_flags & flags;
	child->sk_lingertime = listener->sk_lingertime;
	child->sk_rcvtimeo = listener->sk_rcvtimeo;
	child->sk_sndtimeo = listener->sk_sndtimeo;
	child->sk_rcvlowat = listener->sk_rcvlowat;
	child->sk_peek_off = listener->sk_peek_off;
#ifdef CONFIG_NET_RX_BUSY_POLL
	child->sk_ll_usec = listener->sk_ll_usec;
#endif
	child->sk_userlocks = listener->sk_userlocks & (SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK);
	child->sk_sndbuf = listener->sk_sndbuf;
	child->sk_rcvbuf = listener->sk_rcvbuf;
	child->sk_reuse = listener->sk_reuse;
	child->sk_reuseport = listener->sk_reuseport;
	child->sk_bound_dev_if = listener->sk_bound_dev_if;
	child->sk_mark = listener->sk_mark;
	afr_sk(child)->nodelay = afr_sk(listener)->nodelay;
	afr_sk(child)->cork = afr_sk(listener)->cork;
	afr_sk(child)->sndring = afr_sk(listener)->sndring;
	afr_sk(child)->rcvring = afr_sk(listener)->rcvring;
	afr_sk(child)->busy_poll = READ_ONCE(afr_sk(listener)->busy_poll);
	afr_move_set_wish(afr_sk(child)->conn, READ_ONCE(afr_sk(listener)->conn->wish));
}
