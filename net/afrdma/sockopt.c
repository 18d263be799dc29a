// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Socket options.
 *
 * While the TCP socket carries frames, no option may change what the module reads from it or writes
 * to it, and no call may wait for user memory under the lock of the TCP socket. Therefore an
 * option is set on the TCP socket only if its row in support.h allows that; its value is copied to
 * kernel memory first; and an option that changes reads or writes waits for fallback mode. The
 * core handles getsockopt(SOL_SOCKET) without calling the module and reads the AF_RDMA socket, so
 * options of that level are set on the AF_RDMA socket, too, with the exceptions in
 * applies_to_afr_sock().
 */
#include <linux/capability.h>
#include <linux/in.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/busy_poll.h>
#include <net/sock.h>
#include <uapi/linux/af_rdma.h>
#include <uapi/linux/in6.h>
#include <uapi/linux/netfilter_ipv4.h>
#include <uapi/linux/netfilter_ipv6/ip6_tables.h>

#include "close.h"
#include "compat.h"
#include "conn_info.h"
#include "device.h"
#include "frame_tx.h"
#include "move.h"
#include "proto/ring.h"
#include "ring_mem.h"
#include "route.h"
#include "send.h"
#include "sock.h"
#include "support.h"
#include "tcp_settings.h"
#include "tcp_sock.h"

#define VALUE_MAX	4096	/* bytes used of a value; an IPsec policy is the longest */

/* Rules for an option, described in support.h. */
enum what { PASS, STORE, LATE, SHARE, REFUSE, CORE, FAMILY, UNKNOWN };

static const struct rule {
	int level, name;
	enum what what;
} rules[] = {
#define AFR_OPTION(level, name, rule, ...) { level, name, rule },
	AFR_SUPPORT_OPTIONS
#undef AFR_OPTION
};

static enum what find_rule(int level, int name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].level == level && rules[i].name == name)
			return rules[i].what;
	return level == SOL_SOCKET ? CORE : UNKNOWN;
}

/*
 * Sets on the TCP socket an option that is unfit for frames. If the TCP callbacks are installed,
 * afr_tcp_sock_settings() then hides the new value, as the connection may still become framed.
 */
static int set_tcp_hidden(struct sock *sk, int level, int name, sockptr_t value, unsigned int len)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	bool installed;
	int err;

	lock_sock(sk);
	installed = afr_tcp_sock_settings(conn, false);
	err = afr_tcp_settings_pass(conn->tcp, level, name, value, len);
	/* a fallback meanwhile has restored the old value: set the new one again */
	if (!afr_tcp_sock_settings(conn, true) && installed)
		err = afr_tcp_settings_pass(conn->tcp, level, name, value, len);
	release_sock(sk);
	/*
	 * While the program's SO_RCVLOWAT was on the TCP socket, TCP may not have reported bytes
	 * that arrived: have the worker look for them.
	 */
	if (level == SOL_SOCKET || conn->saved.rcvlowat > 1)
		afr_conn_schedule(conn);
	return err;
}

/* --- SOL_AFRDMA ---------------------------------------------------------- */

/*
 * Default size of a ring: the sysctl setting, rounded up to a power of two. The result is smaller
 * if a device cannot register such a ring, or with many connections or little memory for rings.
 */
static u32 default_ring(struct afr_net *an, u32 wanted)
{
	return afr_ring_mem_default_size(an, min(wanted, afr_device_ring_max()));
}

/**
 * afr_sockopt_sndbuf() - get the size wanted for the send ring
 * @sk: AF_RDMA socket; SO_SNDBUF stores twice the size in sk_sndbuf
 *
 * Context: Any but hard irq.
 * Return: size in bytes: AFRDMA_SNDRING, else SO_SNDBUF, else the default.
 */
u32 afr_sockopt_sndbuf(const struct sock *sk)
{
	struct afr_net *an = afr_sk(sk)->conn->an;

	if (afr_sk(sk)->sndring)
		return afr_sk(sk)->sndring;
	return sk->sk_userlocks & SOCK_SNDBUF_LOCK ? sk->sk_sndbuf / 2 :
						     default_ring(an, READ_ONCE(an->set.sndbuf));
}

/**
 * afr_sockopt_rcvbuf() - get the size wanted for the receive ring
 * @sk: AF_RDMA socket
 *
 * Context: Any but hard irq.
 * Return: size in bytes: AFRDMA_RCVRING, else SO_RCVBUF, else the default.
 */
u32 afr_sockopt_rcvbuf(const struct sock *sk)
{
	struct afr_net *an = afr_sk(sk)->conn->an;

	if (afr_sk(sk)->rcvring)
		return afr_sk(sk)->rcvring;
	return sk->sk_userlocks & SOCK_RCVBUF_LOCK ? sk->sk_rcvbuf / 2 :
						     default_ring(an, READ_ONCE(an->set.rcvbuf));
}

/**
 * afr_sockopt_busy_poll() - get how long a receiver polls before it sleeps
 * @sk: AF_RDMA socket; if AFRDMA_BUSY_POLL is not 0, it overrides SO_BUSY_POLL
 *
 * Context: Any.
 * Return: microseconds; 0 for no polling.
 */
unsigned int afr_sockopt_busy_poll(const struct sock *sk)
{
	unsigned int us = READ_ONCE(afr_sk(sk)->busy_poll);

#ifdef CONFIG_NET_RX_BUSY_POLL
	if (!us)
		us = READ_ONCE(sk->sk_ll_usec);
#endif
	return us;
}

static int set_rdma(struct sock *sk, int value)
{
	if (value < AFRDMA_RDMA_AUTO || value > AFRDMA_RDMA_ALWAYS)
		return -EINVAL;
	afr_move_set_policy(afr_sk(sk)->conn, value);
	return 0;
}

static int get_rdma(const struct sock *sk)
{
	return READ_ONCE(afr_sk(sk)->conn->policy);
}

/*
 * The size is not rounded, unlike that of SO_SNDBUF: one that is not allowed now is an error. Only
 * a ring_max that is lowered before the connection starts can make the ring smaller.
 */
static int set_ring(struct sock *sk, int value, u32 *ring)
{
	const struct afr_conn *conn = afr_sk(sk)->conn;

	if (afr_conn_tx_mode(conn) != AFR_MODE_NONE)
		return -EISCONN;
	if (value < (int)AFR_RING_MEM_MIN || value > READ_ONCE(conn->an->set.ring_max) ||
	    !is_power_of_2(value))
		return -EINVAL;
	*ring = value;
	return 0;
}

static int set_sndring(struct sock *sk, int value)
{
	return set_ring(sk, value, &afr_sk(sk)->sndring);
}

static int set_rcvring(struct sock *sk, int value)
{
	return set_ring(sk, value, &afr_sk(sk)->rcvring);
}

static int get_sndring(const struct sock *sk)
{
	const struct afr_conn *conn = afr_sk(sk)->conn;

	return test_bit(AFR_F_STARTED, &conn->flags) ? conn->tx.seq.ring :
	       afr_ring_size(afr_sockopt_sndbuf(sk), AFR_RING_MEM_MIN,
			     READ_ONCE(conn->an->set.ring_max));
}

static int get_rcvring(const struct sock *sk)
{
	const struct afr_conn *conn = afr_sk(sk)->conn;

	return test_bit(AFR_F_STARTED, &conn->flags) ? conn->rx.seq.ring :
	       afr_ring_size(afr_sockopt_rcvbuf(sk), AFR_RING_MEM_MIN,
			     READ_ONCE(conn->an->set.ring_max));
}

/* More than a millisecond needs CAP_NET_ADMIN. In 6.1, SO_BUSY_POLL needs it for any increase. */
static int set_busy_poll(struct sock *sk, int value)
{
	if (value < 0)
		return -EINVAL;
	if (value > USEC_PER_MSEC && !capable(CAP_NET_ADMIN))
		return -EPERM;
	WRITE_ONCE(afr_sk(sk)->busy_poll, value);
	return 0;
}

static int get_busy_poll(const struct sock *sk)
{
	return afr_sockopt_busy_poll(sk);
}

static const struct afrdma_option {
	int (*set)(struct sock *sk, int value);
	int (*get)(const struct sock *sk);
} options[] = {
	[AFRDMA_RDMA]		= { set_rdma, get_rdma },
	[AFRDMA_SNDRING]	= { set_sndring, get_sndring },
	[AFRDMA_RCVRING]	= { set_rcvring, get_rcvring },
	[AFRDMA_BUSY_POLL]	= { set_busy_poll, get_busy_poll },
};

static const struct afrdma_option *find(int name)
{
	if (name < 0 || name >= ARRAY_SIZE(options) || !options[name].set)
		return NULL;
	return &options[name];
}

static int set_afrdma(struct sock *sk, int name, sockptr_t from, unsigned int len)
{
	const struct afrdma_option *option = find(name);
	int value;

	if (!option)
		return -ENOPROTOOPT;
	if (len < sizeof(value))
		return -EINVAL;
	if (copy_from_sockptr(&value, from, sizeof(value)))
		return -EFAULT;
	return option->set(sk, value);
}

static void fill_info(struct afr_conn *conn, struct afrdma_info *out)
{
	struct afr_conn_info info;

	afr_conn_info(conn, &info);
	*out = (struct afrdma_info) {
		.mode		= info.mode,
		.tx_path	= info.tx_path,
		.rx_path	= info.rx_path,
		.reason		= info.reason,
		.tx_bytes_tcp	= info.tx_bytes[AFR_ON_TCP],
		.tx_bytes_rdma	= info.tx_bytes[AFR_ON_LINK],
		.rx_bytes_tcp	= info.rx_bytes[AFR_ON_TCP],
		.rx_bytes_rdma	= info.rx_bytes[AFR_ON_LINK],
		.moves		= info.moves,
		.link		= info.link,
		.tx_ring	= info.tx_ring,
		.rx_ring	= info.rx_ring,
		.reason_peer	= info.reason_peer,
		.server		= info.server,
	};
}

static int get_afrdma(struct sock *sk, int name, char __user *to, int __user *len)
{
	const struct afrdma_option *option = find(name);
	union {
		struct afrdma_info info;
		int value;
	} out;
	int room, size;

	if (name == AFRDMA_INFO) {
		fill_info(afr_sk(sk)->conn, &out.info);
		size = sizeof(out.info);
	} else if (option) {
		out.value = option->get(sk);
		size = sizeof(out.value);
	} else {
		return -ENOPROTOOPT;
	}
	if (get_user(room, len))
		return -EFAULT;
	if (room < 0)
		return -EINVAL;
	room = min(room, size);
	if (put_user(room, len) || copy_to_user(to, &out, room))
		return -EFAULT;
	return 0;
}

/* --- set ---------------------------------------------------------------- */

/*
 * Records that options of rule LATE wait. If the receive direction is in fallback mode, applies
 * them at once; some of them only if the send direction is in fallback mode, too, see
 * afr_tcp_settings_apply_late().
 */
static void set_late(struct sock *sk)
{
	struct afr_sock *as = afr_sk(sk);

	smp_wmb();	/* what the caller has stored is visible before as->late */
	WRITE_ONCE(as->late, true);
	/* as->late is visible before the mode is read: afr_sock_begin_call() has a barrier */
	if (!afr_sock_begin_call(as, afr_conn_rx_mode))
		return;
	afr_tcp_settings_apply_late(sk);
	afr_sock_end_call(as);
}

/* IP_RECVERR, IPV6_RECVERR: if set on the TCP socket, ICMP errors would end framed connections. */
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

/*
 * Is the option also set on the AF_RDMA socket? Not if it sets or removes the BPF program of the
 * TCP socket's reuseport group.
 */
static bool applies_to_afr_sock(int name)
{
	return name != SO_ATTACH_REUSEPORT_CBPF && name != SO_ATTACH_REUSEPORT_EBPF &&
	       name != SO_DETACH_REUSEPORT_BPF;
}

/* Copies from the TCP socket the options that the core refuses for families it does not know. */
static int copy_from_tcp(struct sock *sk, const struct sock *tcp_sk)
{
	sk->sk_reuseport = tcp_sk->sk_reuseport;
	sock_valbool_flag(sk, SOCK_ZEROCOPY, sock_flag(tcp_sk, SOCK_ZEROCOPY));
	return 0;
}

static int set_socket(struct socket *sock, int name, sockptr_t value, unsigned int len,
		      enum what what)
{
	struct socket *tcp = afr_tcp(sock->sk);
	int err = 0;

	if (what == SHARE)
		return afr_tcp_settings_filter(sock, name, value, len);
	if ((name == SO_ATTACH_REUSEPORT_CBPF || name == SO_ATTACH_REUSEPORT_EBPF) &&
	    sock_flag(sock->sk, SOCK_FILTER_LOCKED))	/* the TCP socket lacks the flag */
		return -EPERM;
	if (name == SO_ATTACH_REUSEPORT_CBPF)
		return afr_tcp_settings_reuseport_filter(tcp->sk, value, len);
	if (what == STORE && afr_tcp_settings_is_framed(afr_sk(sock->sk)->conn))
		err = 0;
	else if (name == SO_RCVLOWAT)
		err = set_tcp_hidden(sock->sk, SOL_SOCKET, name, value, len);
	else if (what == PASS || what == STORE)
		err = afr_tcp_settings_pass(tcp, SOL_SOCKET, name, value, len);
	if (!err && (name == SO_MARK || name == SO_BINDTODEVICE || name == SO_BINDTOIFINDEX))
		afr_route_invalidate(afr_sk(sock->sk)->conn);
	if (err || !applies_to_afr_sock(name))
		return err;
	err = sock_setsockopt(sock, SOL_SOCKET, name, value, len);
	if ((name == SO_REUSEPORT || name == SO_ZEROCOPY) && err == -EOPNOTSUPP)
		err = copy_from_tcp(sock->sk, tcp->sk);
	if (!err && what == LATE)
		set_late(sock->sk);
	return err;
}

/* TCP_CORK, TCP_NODELAY: stored in the AF_RDMA socket, and set on the TCP socket unless framed. */
static int set_tcp(struct socket *sock, int name, sockptr_t value, unsigned int len)
{
	struct afr_sock *as = afr_sk(sock->sk);
	int val, err = 0;

	if (len < sizeof(int))
		return -EINVAL;
	if (copy_from_sockptr(&val, value, sizeof(val)))
		return -EFAULT;
	if (!afr_tcp_settings_is_framed(as->conn))
		err = set_tcp_hidden(sock->sk, IPPROTO_TCP, name, value, len);
	if (err)
		return err;
	if (name == TCP_CORK)
		WRITE_ONCE(as->cork, !!val);
	else
		as->nodelay = !!val;
	if (name == TCP_CORK ? !val : val)	/* TCP_NODELAY sends corked bytes, too */
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
	err = afr_tcp_settings_pass(afr_tcp(sock->sk), level, name, value, len);
	/* the option may have changed the route, or set an IPsec policy, which denies RDMA */
	if (!err && (level == IPPROTO_IP || level == IPPROTO_IPV6))
		afr_route_invalidate(afr_sk(sock->sk)->conn);
	return err;
}

/**
 * afr_sockopt_set() - proto_ops.setsockopt
 * @sock: AF_RDMA socket
 * @level: SOL_SOCKET (passed on because of SOCK_CUSTOM_SOCKOPT), IPPROTO_*, SOL_AFRDMA
 * @name: option
 * @value: its value
 * @len: length of @value in bytes
 *
 * Copies the value before any lock is taken: TCP would copy some values under the lock of the TCP
 * socket, and a worker that needs the lock would wait for as long as user memory delays the copy
 * (CVE-2026-53274).
 *
 * Context: Process, sockets unlocked.
 * Return: 0 or a negative error: -EOPNOTSUPP for an option that this family does not support,
 * -ENOPROTOOPT for an unknown one.
 */
int afr_sockopt_set(struct socket *sock, int level, int name, sockptr_t value, unsigned int len)
{
	enum what what = find_rule(level, name);
	void *copy;
	int err;

	if (level == SOL_AFRDMA)
		return set_afrdma(sock->sk, name, value, len);
	if (what == REFUSE)
		return -EOPNOTSUPP;
	if (what == UNKNOWN)
		return -ENOPROTOOPT;
	len = min_t(unsigned int, len, VALUE_MAX);
	copy = memdup_sockptr(value, len);
	if (IS_ERR(copy))
		return PTR_ERR(copy);
	if (!len && sockptr_is_null(value))
		value = KERNEL_SOCKPTR(NULL);	/* IP_XFRM_POLICY with NULL deletes the policy */
	else
		value = KERNEL_SOCKPTR(copy);
	if (level == IPPROTO_IP && name == IP_TOS)
		/* first give TCP the program's SO_PRIORITY: it is copied back from TCP below */
		afr_tcp_settings_sync(sock->sk);
	err = set(sock, level, name, value, len, what);
	if (!err && level == IPPROTO_IP && name == IP_TOS)	/* sets the priority as well */
		WRITE_ONCE(sock->sk->sk_priority, READ_ONCE(afr_tcp(sock->sk)->sk->sk_priority));
	kfree(copy);
	return err;
}

/* --- get ---------------------------------------------------------------- */

static int stored_value(const struct afr_sock *as, int level, int name)
{
	if (level == IPPROTO_IP)
		return !!(READ_ONCE(as->recverr) & AFR_RECVERR_INET);
	if (level == IPPROTO_IPV6)
		return !!(READ_ONCE(as->recverr) & AFR_RECVERR_INET6);
	return name == TCP_CORK ? as->cork : as->nodelay;
}

static int get_stored(struct afr_sock *as, int level, int name, char __user *value, int __user *len)
{
	int val = stored_value(as, level, name);
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

/*
 * Overwrites tcpi_state with the state of the stream: the TCP connection stays established until
 * both directions have ended.
 */
static int patch_info(struct afr_conn *conn, char __user *value, int __user *len)
{
	static_assert(offsetof(struct tcp_info, tcpi_state) == 0);
	u8 state = afr_close_tcp_state(conn);
	int room;

	if (!afr_conn_negotiated(conn))
		return 0;
	if (get_user(room, len))
		return -EFAULT;
	return room < 1 || !put_user(state, (u8 __user *)value) ? 0 : -EFAULT;
}

/**
 * afr_sockopt_get() - proto_ops.getsockopt
 * @sock: AF_RDMA socket
 * @level: IPPROTO_*, SOL_AFRDMA (the core handles SOL_SOCKET itself)
 * @name: option
 * @value: user buffer for the value
 * @len: in, size of the buffer; out, bytes written
 *
 * TCP writes directly to the user buffer. An option whose value TCP would write under the socket
 * lock has no row in support.h, or a row with REFUSE.
 *
 * Context: Process, sockets unlocked.
 * Return: 0 or a negative error.
 */
int afr_sockopt_get(struct socket *sock, int level, int name, char __user *value, int __user *len)
{
	struct afr_sock *as = afr_sk(sock->sk);
	struct socket *tcp = as->conn->tcp;
	int err;

	if (level == SOL_AFRDMA)
		return get_afrdma(sock->sk, name, value, len);
	switch (find_rule(level, name)) {
	case REFUSE:
		return -EOPNOTSUPP;
	case UNKNOWN:	/* no row in support.h: an unknown option, or an unknown level */
		return level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6 ?
		       -ENOPROTOOPT : -EOPNOTSUPP;
	case STORE:
	case LATE:
		return get_stored(as, level, name, value, len);
	default:
		break;
	}
	err = READ_ONCE(tcp->ops)->getsockopt(tcp, level, name, value, len);
	if (!err && level == IPPROTO_TCP && name == TCP_INFO)
		err = patch_info(as->conn, value, len);
	return err;
}
