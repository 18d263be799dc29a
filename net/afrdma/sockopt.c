// SPDX-License-Identifier: GPL-2.0
/*
 * Socket options.
 *
 * The inner socket carries frames, so nothing a program sets may change what the module reads
 * from it or writes to it, and no call may hold its lock while it waits for memory of the
 * program. Hence, by support.h: an option reaches the inner socket only if it has a row that
 * says so; its value is copied to kernel memory first; what changes reads and writes waits
 * until the connection is plain TCP for good. getsockopt(SOL_SOCKET) never asks us: it reads the
 * AF_RDMA socket, which therefore has every option of that level, too.
 */
#include <linux/filter.h>
#include <linux/in.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/sock.h>
#include <net/sock_reuseport.h>
#include <uapi/linux/af_rdma.h>
#include <uapi/linux/in6.h>
#include <uapi/linux/netfilter_ipv4.h>
#include <uapi/linux/netfilter_ipv6/ip6_tables.h>

#include "compat.h"
#include "control.h"
#include "end.h"
#include "hook.h"
#include "inner.h"
#include "move.h"
#include "route.h"
#include "send.h"
#include "sock.h"
#include "support.h"

#define VALUE_MAX	4096	/* bytes of a value that count: an IPsec policy is the longest */

/* What becomes of an option: support.h says what each means. */
enum what { PASS, STORE, LATE, SHARE, REFUSE, CORE, OWN, UNKNOWN };

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
	return level == SOL_SOCKET ? CORE : UNKNOWN;
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

/* --- socket filters ----------------------------------------------------- */

/*
 * Two sockets with one filter, as a listener and its children have. The program came in with
 * setsockopt() of the AF_RDMA socket, whose lock no worker takes: it is copied from memory that
 * may not answer.
 */
static void share_filter(struct sock *from, struct sock *to)
{
	struct sk_filter *filter;

	sock_owned_by_me(from);
	sock_owned_by_me(to);
	filter = rcu_dereference_protected(from->sk_filter, lockdep_sock_is_held(from));
	if (filter == rcu_access_pointer(to->sk_filter))
		return;
	sk_detach_filter(to);
	if (!filter)
		return;
	refcount_inc(&filter->refcnt);
	atomic_add(bpf_prog_size(filter->prog->len), &to->sk_omem_alloc);
	rcu_assign_pointer(to->sk_filter, filter);
}

/* What this kernel asks of a program that attaches a filter to TCP (newer ones: CAP_NET_ADMIN). */
static int may_filter(struct socket *inner)
{
	int none = 0, err = sock_setsockopt(inner, SOL_SOCKET, SO_ATTACH_FILTER,
					    KERNEL_SOCKPTR(&none), sizeof(none));

	return err == -EPERM ? err : 0;		/* else it is too short */
}

static int set_filter(struct socket *sock, int name, sockptr_t value, unsigned int len)
{
	struct sock *sk = sock->sk, *isk = afr_inner(sk)->sk;
	int err = name == SO_ATTACH_FILTER ? may_filter(afr_inner(sk)) : 0;

	if (!err)
		err = sock_setsockopt(sock, SOL_SOCKET, name, value, len);
	if (err)
		return err;
	lock_sock(sk);
	lock_sock_nested(isk, SINGLE_DEPTH_NESTING);
	share_filter(sk, isk);
	release_sock(isk);
	release_sock(sk);
	afr_conn_schedule(afr_sk(sk)->conn);	/* off RDMA, with a filter */
	return 0;
}

/* The core would copy the program under the lock of the inner socket. */
static int set_reuseport_filter(struct sock *isk, sockptr_t value, unsigned int len)
{
	struct sock_fprog fprog;
	struct bpf_prog *prog;
	int err;

	err = copy_bpf_fprog_from_user(&fprog, value, len);
	if (!err)
		err = bpf_prog_create_from_user(&prog, &fprog, NULL, false);
	if (err)
		return err;
	lock_sock(isk);
	err = reuseport_attach_prog(isk, prog);
	release_sock(isk);
	if (err)
		bpf_prog_destroy(prog);
	return err;
}

/* --- options that wait for plain TCP ------------------------------------ */

static void set_flag(struct socket *inner, int name, int value)
{
	sock_setsockopt(inner, SOL_SOCKET, name, KERNEL_SOCKPTR(&value), sizeof(value));
}

static void late_timestamps(struct socket *to, const struct sock *sk)
{
	bool new = sock_flag(sk, SOCK_TSTAMP_NEW), nano = sock_flag(sk, SOCK_RCVTSTAMPNS);

	if (nano)
		set_flag(to, new ? SO_TIMESTAMPNS_NEW : SO_TIMESTAMPNS_OLD, 1);
	else
		set_flag(to, new ? SO_TIMESTAMP_NEW : SO_TIMESTAMP_OLD,
			 sock_flag(sk, SOCK_RCVTSTAMP));
	if (sk->sk_tsflags || to->sk->sk_tsflags)
		set_flag(to, new ? SO_TIMESTAMPING_NEW : SO_TIMESTAMPING_OLD, sk->sk_tsflags);
}

/* Only what differs: TCP throws its error queue away when it is told of a 0. */
static void late_errors(struct afr_sock *as, u8 recverr)
{
	int v4 = !!(recverr & AFR_RECVERR_INET), v6 = !!(recverr & AFR_RECVERR_INET6);
	struct socket *inner = as->conn->inner;
	u8 differ = recverr ^ as->recverr_inner;

	if (differ & AFR_RECVERR_INET)
		set_inner(inner, IPPROTO_IP, IP_RECVERR, KERNEL_SOCKPTR(&v4), sizeof(v4));
	if (differ & AFR_RECVERR_INET6)
		set_inner(inner, IPPROTO_IPV6, IPV6_RECVERR, KERNEL_SOCKPTR(&v6), sizeof(v6));
	as->recverr_inner = recverr;
}

/**
 * afr_sockopt_early() - take back what a socket had while it was plain
 * @sk: front, about to connect anew
 *
 * Context: process.
 */
void afr_sockopt_early(struct sock *sk)
{
	struct afr_sock *as = afr_sk(sk);
	struct socket *inner = as->conn->inner;
	int off = 0;

	lock_sock(sk);
	if (as->late_done) {
		sock_setsockopt(inner, SOL_SOCKET, SO_TIMESTAMP_OLD, KERNEL_SOCKPTR(&off),
				sizeof(off));
		sock_setsockopt(inner, SOL_SOCKET, SO_TIMESTAMPING_OLD, KERNEL_SOCKPTR(&off),
				sizeof(off));
		late_errors(as, 0);
		WRITE_ONCE(inner->sk->sk_peek_off, -1);
		skb_queue_purge(&inner->sk->sk_error_queue);
		as->late_done = false;
		WRITE_ONCE(as->late, true);
	}
	release_sock(sk);
}

/**
 * afr_sockopt_late() - the inner socket gets what it could not have before
 * @sk: front, whose bytes in are raw: the module reads nothing from the inner socket any more
 *
 * What makes TCP answer with more than the program's bytes waits until those out are raw, too.
 *
 * Context: process.
 */
void afr_sockopt_late(struct sock *sk)
{
	struct afr_sock *as = afr_sk(sk);
	struct socket *inner = as->conn->inner;
	struct sock *isk = inner->sk;
	bool plain = afr_conn_tx_mode(as->conn) == AFR_RAW;

	lock_sock(sk);		/* one at a time, and each with what was set last */
	if (plain)
		WRITE_ONCE(as->late, false);
	WRITE_ONCE(isk->sk_peek_off, READ_ONCE(sk->sk_peek_off));
#ifdef CONFIG_NET_RX_BUSY_POLL
	WRITE_ONCE(isk->sk_ll_usec, READ_ONCE(sk->sk_ll_usec));
#endif
	if (plain) {
		late_timestamps(inner, sk);
		late_errors(as, as->recverr);
		as->late_done = true;
	}
	release_sock(sk);
}

static void set_late(struct sock *sk)
{
	struct afr_sock *as = afr_sk(sk);

	smp_wmb();	/* the value before the flag */
	WRITE_ONCE(as->late, true);
	smp_mb();	/* the flag before the look at the mode */
	if (afr_conn_rx_mode(as->conn) == AFR_RAW)
		afr_sockopt_late(sk);
}

/* IP_RECVERR, IPV6_RECVERR: an ICMP error would become one of the stream of frames. */
static int set_recverr(struct sock *sk, int level, sockptr_t value, unsigned int len)
{
	u8 bit = level == IPPROTO_IP ? AFR_RECVERR_INET : AFR_RECVERR_INET6;
	struct afr_sock *as = afr_sk(sk);
	int val;

	if (len < sizeof(val))
		return -EINVAL;
	if (copy_from_sockptr(&val, value, sizeof(val)))
		return -EFAULT;
	lock_sock(sk);
	as->recverr = val ? as->recverr | bit : as->recverr & ~bit;
	release_sock(sk);
	set_late(sk);
	return 0;
}

/* --- set ---------------------------------------------------------------- */

/* These act on the inner socket's packets and port; the front has none. */
static bool front_has(int name)
{
	return name != SO_ATTACH_REUSEPORT_CBPF && name != SO_ATTACH_REUSEPORT_EBPF &&
	       name != SO_DETACH_REUSEPORT_BPF;
}

/* Options that the core refuses to families it does not know; the inner socket has them. */
static int take_from_inner(struct sock *sk, const struct sock *isk)
{
	sk->sk_reuseport = isk->sk_reuseport;
	sock_valbool_flag(sk, SOCK_ZEROCOPY, sock_flag(isk, SOCK_ZEROCOPY));
	return 0;
}

static int set_socket(struct socket *sock, int name, sockptr_t value, unsigned int len,
		      enum what what)
{
	struct socket *inner = afr_inner(sock->sk);
	int err = 0;

	if (what == SHARE)
		return set_filter(sock, name, value, len);
	if ((name == SO_ATTACH_REUSEPORT_CBPF || name == SO_ATTACH_REUSEPORT_EBPF) &&
	    sock_flag(sock->sk, SOCK_FILTER_LOCKED))	/* SO_LOCK_FILTER: the inner has none */
		return -EPERM;
	if (name == SO_ATTACH_REUSEPORT_CBPF)
		return set_reuseport_filter(inner->sk, value, len);
	if (what == STORE && inner_is_ours(afr_sk(sock->sk)->conn))
		err = 0;
	else if (name == SO_RCVLOWAT)
		err = set_hidden(sock->sk, SOL_SOCKET, name, value, len);
	else if (what == PASS || what == STORE)
		err = set_inner(inner, SOL_SOCKET, name, value, len);
	if (!err && what == PASS)
		afr_route_again(afr_sk(sock->sk)->conn);	/* SO_MARK, SO_BINDTODEVICE */
	if (err || !front_has(name))
		return err;
	err = sock_setsockopt(sock, SOL_SOCKET, name, value, len);
	if ((name == SO_REUSEPORT || name == SO_ZEROCOPY) && err == -EOPNOTSUPP)
		err = take_from_inner(sock->sk, inner->sk);
	if (!err && what == LATE)
		set_late(sock->sk);
	return err;
}

static int set_tcp(struct socket *sock, int name, sockptr_t value, unsigned int len)
{
	struct afr_sock *as = afr_sk(sock->sk);
	int val, err = 0;

	if (len < sizeof(int))
		return -EINVAL;
	if (copy_from_sockptr(&val, value, sizeof(val)))
		return -EFAULT;
	if (!inner_is_ours(as->conn))
		err = set_hidden(sock->sk, IPPROTO_TCP, name, value, len);
	if (err)
		return err;
	if (name == TCP_CORK)
		WRITE_ONCE(as->cork, !!val);
	else
		as->nodelay = !!val;
	if (name == TCP_CORK ? !val : val)	/* TCP_NODELAY pushes even what is corked */
		afr_send_uncork(as->conn);
	return 0;
}

static int set(struct socket *sock, int level, int name, sockptr_t value, unsigned int len,
	       enum what what)
{
	int err;

	if (level == SOL_SOCKET)
		return set_socket(sock, name, value, len, what);
	if (what == LATE)
		return set_recverr(sock->sk, level, value, len);
	if (what == STORE)
		return set_tcp(sock, name, value, len);
	err = set_inner(afr_inner(sock->sk), level, name, value, len);
	if (!err && (level == IPPROTO_IP || level == IPPROTO_IPV6))
		afr_route_again(afr_sk(sock->sk)->conn);	/* off RDMA, with a policy */
	return err;
}

/**
 * afr_setsockopt() - proto_ops.setsockopt
 * @sock: socket
 * @level: SOL_SOCKET (SOCK_CUSTOM_SOCKOPT sends it here), IPPROTO_*, SOL_AFRDMA
 * @name: option
 * @value: value
 * @len: its length
 *
 * The value is copied here, before any lock: TCP copies it under the lock of the inner socket,
 * for which a worker would wait as long as the memory of the program makes it (CVE-2026-53274).
 *
 * Return: 0 or -errno; -EOPNOTSUPP for what this family does not do, -ENOPROTOOPT for what it
 * does not know.
 */
int afr_setsockopt(struct socket *sock, int level, int name, sockptr_t value, unsigned int len)
{
	enum what what = rule_of(level, name);
	void *copy;
	int err;

	if (level == SOL_AFRDMA)
		return afr_own_set(sock->sk, name, value, len);
	if (what == REFUSE)
		return -EOPNOTSUPP;
	if (what == UNKNOWN)
		return -ENOPROTOOPT;
	len = min_t(unsigned int, len, VALUE_MAX);
	copy = memdup_sockptr(value, len);
	if (IS_ERR(copy))
		return PTR_ERR(copy);
	if (!len && sockptr_is_null(value))
		value = KERNEL_SOCKPTR(NULL);	/* of IP_XFRM_POLICY: none any more */
	else
		value = KERNEL_SOCKPTR(copy);
	err = set(sock, level, name, value, len, what);
	kfree(copy);
	return err;
}

/* --- get ---------------------------------------------------------------- */

static int stored(const struct afr_sock *as, int level, int name)
{
	if (level == IPPROTO_IP)
		return !!(READ_ONCE(as->recverr) & AFR_RECVERR_INET);
	if (level == IPPROTO_IPV6)
		return !!(READ_ONCE(as->recverr) & AFR_RECVERR_INET6);
	return name == TCP_CORK ? as->cork : as->nodelay;
}

static int get_stored(struct afr_sock *as, int level, int name, char __user *value, int __user *len)
{
	int val = stored(as, level, name);
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

/* The inner connection stays established until both directions have ended: say what TCP would. */
static int patch_info(struct afr_conn *conn, char __user *value, int __user *len)
{
	static_assert(offsetof(struct tcp_info, tcpi_state) == 0);
	u8 state = afr_end_tcp_state(conn);
	int room;

	if (!afr_conn_framed(conn))
		return 0;
	if (get_user(room, len))
		return -EFAULT;
	return room < 1 || !put_user(state, (u8 __user *)value) ? 0 : -EFAULT;
}

/**
 * afr_getsockopt() - proto_ops.getsockopt
 * @sock: socket
 * @level: IPPROTO_*, SOL_AFRDMA (SOL_SOCKET never comes here)
 * @name: option
 * @value: where to
 * @len: room there, and bytes written
 *
 * TCP gets the memory of the program here: options that it writes there under its lock have no
 * row in support.h.
 *
 * Return: 0 or -errno.
 */
int afr_getsockopt(struct socket *sock, int level, int name, char __user *value, int __user *len)
{
	struct afr_sock *as = afr_sk(sock->sk);
	struct socket *inner = as->conn->inner;
	int err;

	if (level == SOL_AFRDMA)
		return afr_own_get(sock->sk, name, value, len);
	switch (rule_of(level, name)) {
	case REFUSE:
		return -EOPNOTSUPP;
	case UNKNOWN:	/* as TCP: of an unknown level, or an unknown option of a known one */
		return level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6 ?
		       -ENOPROTOOPT : -EOPNOTSUPP;
	case STORE:
	case LATE:
		return get_stored(as, level, name, value, len);
	default:
		break;
	}
	err = READ_ONCE(inner->ops)->getsockopt(inner, level, name, value, len);
	if (!err && level == IPPROTO_TCP && name == TCP_INFO)
		err = patch_info(as->conn, value, len);
	return err;
}

/* --- both sockets ------------------------------------------------------- */

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

static void sync_pacing(struct sock *isk, const struct sock *sk)
{
	if (sk->sk_max_pacing_rate == ~0UL)
		return;
	cmpxchg(&isk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	WRITE_ONCE(isk->sk_max_pacing_rate, sk->sk_max_pacing_rate);
	WRITE_ONCE(isk->sk_pacing_rate, min(isk->sk_pacing_rate, sk->sk_max_pacing_rate));
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
	sync_pacing(isk, sk);
	sock_valbool_flag(isk, SOCK_URGINLINE, sock_flag(sk, SOCK_URGINLINE));
	if (!inner_is_ours(conn))
		sync_plain(isk, sk);
	release_sock(isk);
}

/* TCP has given its child the filter of its listener. */
static void inherit_filter(struct sock *child)
{
	struct sock *isk = afr_inner(child)->sk;

	lock_sock(child);
	lock_sock_nested(isk, SINGLE_DEPTH_NESTING);
	share_filter(isk, child);
	release_sock(isk);
	release_sock(child);
}

static void inherit_late(struct sock *child, const struct sock *listener)
{
	const struct afr_sock *from = afr_sk(listener);

	if (!READ_ONCE(from->late))
		return;
	late_timestamps(child->sk_socket, listener);
	afr_sk(child)->recverr = READ_ONCE(from->recverr);
	afr_sk(child)->late = true;
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
					   BIT(SOCK_ZEROCOPY) | BIT(SOCK_FILTER_LOCKED);

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
	inherit_filter(child);
	inherit_late(child, listener);
	afr_sk(child)->nodelay = afr_sk(listener)->nodelay;
	afr_sk(child)->cork = afr_sk(listener)->cork;
	afr_sk(child)->sndring = afr_sk(listener)->sndring;
	afr_sk(child)->rcvring = afr_sk(listener)->rcvring;
	afr_sk(child)->busy_poll = READ_ONCE(afr_sk(listener)->busy_poll);
	afr_move_set_wish(afr_sk(child)->conn, READ_ONCE(afr_sk(listener)->conn->wish));
}
