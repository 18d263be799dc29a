// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Sets options on the TCP socket: single ones, as sockopt.c requests; socket filters, which both
 * sockets share; options that wait for fallback mode (rule LATE of support.h); and SOL_SOCKET
 * options, on kernels that do not pass them to the module. Also copies the options that an
 * accepted AF_RDMA socket inherits from its listener.
 */
#include <linux/filter.h>
#include <linux/in.h>
#include <linux/net.h>
#include <linux/tcp.h>
#include <net/sock.h>
#include <net/sock_reuseport.h>
#include <uapi/linux/in6.h>

#include "compat.h"
#include "move.h"
#include "tcp_settings.h"

/**
 * afr_tcp_settings_is_framed() - test whether the TCP socket carries frames
 * @conn: connection
 *
 * Context: Any.
 * Return: true if at least one direction is framed.
 */
bool afr_tcp_settings_is_framed(const struct afr_conn *conn)
{
	u8 tx = afr_conn_tx_mode(conn), rx = afr_conn_rx_mode(conn);

	return tx == AFR_MODE_FRAMED || rx == AFR_MODE_FRAMED;
}

/**
 * afr_tcp_settings_pass() - set an option on the TCP socket
 * @tcp: TCP socket
 * @level: SOL_SOCKET or IPPROTO_*
 * @name: option
 * @value: its value
 * @len: length of @value in bytes
 *
 * Context: Process, @tcp unlocked.
 * Return: 0 or a negative error.
 */
int afr_tcp_settings_pass(struct socket *tcp, int level, int name, sockptr_t value,
			  unsigned int len)
{
	if (level == SOL_SOCKET)
		return sock_setsockopt(tcp, level, name, value, len);
	return READ_ONCE(tcp->ops)->setsockopt(tcp, level, name, value, len);
}

/* Makes @to use the filter of @from, as TCP does for a listener and its children. */
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

/*
 * Returns -EPERM if the caller may not use SO_ATTACH_FILTER on a TCP socket; newer kernels require
 * CAP_NET_ADMIN for it. Tests this by an attempt with a value that is too short to be a filter.
 */
static int check_filter_permission(struct socket *tcp)
{
	int none = 0, err = sock_setsockopt(tcp, SOL_SOCKET, SO_ATTACH_FILTER,
					    KERNEL_SOCKPTR(&none), sizeof(none));

	return err == -EPERM ? err : 0;
}

/**
 * afr_tcp_settings_filter() - set a filter option on both sockets
 * @sock: AF_RDMA socket
 * @name: SO_ATTACH_FILTER, SO_ATTACH_BPF or SO_DETACH_FILTER
 * @value: its value
 * @len: length of @value in bytes
 *
 * The core holds the lock of the socket while it copies the filter from user memory, which may
 * take any time. So the core attaches the filter to the AF_RDMA socket, whose lock the worker
 * never takes, and the TCP socket then shares the filter.
 *
 * Context: Process, both sockets unlocked.
 * Return: 0 or a negative error.
 */
int afr_tcp_settings_filter(struct socket *sock, int name, sockptr_t value, unsigned int len)
{
	struct sock *sk = sock->sk, *tcp_sk = afr_tcp(sk)->sk;
	int err = name == SO_ATTACH_FILTER ? check_filter_permission(afr_tcp(sk)) : 0;

	if (!err)
		err = sock_setsockopt(sock, SOL_SOCKET, name, value, len);
	if (err)
		return err;
	lock_sock(sk);
	lock_sock_nested(tcp_sk, SINGLE_DEPTH_NESTING);
	share_filter(sk, tcp_sk);
	release_sock(tcp_sk);
	release_sock(sk);
	afr_conn_schedule(afr_sk(sk)->conn);	/* worker: leaves RDMA if a filter is set */
	return 0;
}

/**
 * afr_tcp_settings_reuseport_filter() - SO_ATTACH_REUSEPORT_CBPF
 * @tcp_sk: TCP socket
 * @value: struct sock_fprog
 * @len: length of @value in bytes
 *
 * Copies the filter before it locks the TCP socket; the core would copy it under that lock.
 *
 * Context: Process, @tcp_sk unlocked.
 * Return: 0 or a negative error.
 */
int afr_tcp_settings_reuseport_filter(struct sock *tcp_sk, sockptr_t value, unsigned int len)
{
	struct sock_fprog fprog;
	struct bpf_prog *prog;
	int err;

	err = copy_bpf_fprog_from_user(&fprog, value, len);
	if (!err)
		err = bpf_prog_create_from_user(&prog, &fprog, NULL, false);
	if (err)
		return err;
	lock_sock(tcp_sk);
	err = reuseport_attach_prog(tcp_sk, prog);
	release_sock(tcp_sk);
	if (err)
		bpf_prog_destroy(prog);
	return err;
}

static void set_flag(struct socket *tcp, int name, int value)
{
	sock_setsockopt(tcp, SOL_SOCKET, name, KERNEL_SOCKPTR(&value), sizeof(value));
}

/* Sets the time stamp options of @sk on the socket @to. */
static void apply_timestamps(struct socket *to, const struct sock *sk)
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

/* Sets only what differs: TCP purges its error queue when IP_RECVERR is set to 0. */
static void apply_recverr(struct afr_sock *as, u8 recverr)
{
	int v4 = !!(recverr & AFR_RECVERR_INET), v6 = !!(recverr & AFR_RECVERR_INET6);
	struct socket *tcp = as->conn->tcp;
	u8 differ = recverr ^ as->recverr_tcp;

	if (differ & AFR_RECVERR_INET)
		afr_tcp_settings_pass(tcp, IPPROTO_IP, IP_RECVERR, KERNEL_SOCKPTR(&v4), sizeof(v4));
	if (differ & AFR_RECVERR_INET6)
		afr_tcp_settings_pass(tcp, IPPROTO_IPV6, IPV6_RECVERR, KERNEL_SOCKPTR(&v6),
				      sizeof(v6));
	as->recverr_tcp = recverr;
}

/**
 * afr_tcp_settings_reset_late() - reset the LATE options on the TCP socket
 * @sk: AF_RDMA socket that is about to connect or to listen, perhaps after it had fallen back to
 *	TCP
 *
 * The new connection, or one that the listener accepts, may be framed, so this function undoes
 * afr_tcp_settings_apply_late(); only SO_BUSY_POLL stays set.
 *
 * Context: Process, both sockets unlocked.
 */
void afr_tcp_settings_reset_late(struct sock *sk)
{
	struct afr_sock *as = afr_sk(sk);
	struct socket *tcp = as->conn->tcp;
	int off = 0;

	lock_sock(sk);
	if (as->late_done) {
		sock_setsockopt(tcp, SOL_SOCKET, SO_TIMESTAMP_OLD, KERNEL_SOCKPTR(&off),
				sizeof(off));
		sock_setsockopt(tcp, SOL_SOCKET, SO_TIMESTAMPING_OLD, KERNEL_SOCKPTR(&off),
				sizeof(off));
		apply_recverr(as, 0);
		WRITE_ONCE(tcp->sk->sk_peek_off, -1);
		skb_queue_purge(&tcp->sk->sk_error_queue);
		WRITE_ONCE(as->late_done, false);
		WRITE_ONCE(as->late, true);
	}
	release_sock(sk);
}

/**
 * afr_tcp_settings_apply_late() - set the LATE options on the TCP socket
 * @sk: AF_RDMA socket whose receive direction is in fallback mode: the module does not read from
 *	the TCP socket any more
 *
 * Some of the options also affect what the module sends: with SO_TIMESTAMPING, TCP would report
 * time stamps of frames; with IP_RECVERR, ICMP errors would end the connection. So the time stamp
 * and RECVERR options wait until the send direction is in fallback mode, too.
 *
 * Context: Process, both sockets unlocked.
 */
void afr_tcp_settings_apply_late(struct sock *sk)
{
	struct afr_sock *as = afr_sk(sk);
	struct socket *tcp = as->conn->tcp;
	struct sock *tcp_sk = tcp->sk;
	bool fallback = afr_conn_tx_mode(as->conn) == AFR_MODE_FALLBACK;

	lock_sock(sk);		/* serialises calls: the last one applies the latest values */
	if (fallback)
		WRITE_ONCE(as->late, false);
	WRITE_ONCE(tcp_sk->sk_peek_off, READ_ONCE(sk->sk_peek_off));
#ifdef CONFIG_NET_RX_BUSY_POLL
	WRITE_ONCE(tcp_sk->sk_ll_usec, READ_ONCE(sk->sk_ll_usec));
#endif
	if (fallback) {
		apply_timestamps(tcp, sk);
		apply_recverr(as, as->recverr);
		WRITE_ONCE(as->late_done, true);
	}
	release_sock(sk);
}

/* Copies SO_RCVLOWAT, unless it could delay HELLO or the frames behind it. TCP socket locked. */
static void sync_rcvlowat(struct sock *tcp_sk, const struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	u8 rx = afr_conn_rx_mode(conn);

	if (rx != AFR_MODE_FALLBACK && rx != AFR_MODE_NONE)
		return;
	WRITE_ONCE(tcp_sk->sk_rcvlowat, sk->sk_rcvlowat);
	conn->saved.rcvlowat = sk->sk_rcvlowat;		/* for afr_tcp_sock_remove() */
}

/* Copies the SOL_SOCKET options of rule STORE, which a framed TCP socket does not get. */
static void sync_fallback(struct sock *tcp_sk, const struct sock *sk)
{
	sync_rcvlowat(tcp_sk, sk);
	if (sk->sk_userlocks & SOCK_SNDBUF_LOCK)
		WRITE_ONCE(tcp_sk->sk_sndbuf, sk->sk_sndbuf);
	if (sk->sk_userlocks & SOCK_RCVBUF_LOCK)
		WRITE_ONCE(tcp_sk->sk_rcvbuf, sk->sk_rcvbuf);
	tcp_sk->sk_userlocks |= sk->sk_userlocks & (SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK);
	sock_valbool_flag(tcp_sk, SOCK_LINGER, sock_flag(sk, SOCK_LINGER));
	tcp_sk->sk_lingertime = sk->sk_lingertime;
}

static void sync_pacing(struct sock *tcp_sk, const struct sock *sk)
{
	if (sk->sk_max_pacing_rate == tcp_sk->sk_max_pacing_rate)
		return;
	if (sk->sk_max_pacing_rate != ~0UL)
		cmpxchg(&tcp_sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	WRITE_ONCE(tcp_sk->sk_max_pacing_rate, sk->sk_max_pacing_rate);
	WRITE_ONCE(tcp_sk->sk_pacing_rate, min(tcp_sk->sk_pacing_rate, sk->sk_max_pacing_rate));
}

/**
 * afr_tcp_settings_sync() - copy SOL_SOCKET options to the TCP socket
 * @sk: AF_RDMA socket
 *
 * Does nothing on kernels that pass all SOL_SOCKET options to afr_sockopt_set().
 *
 * Context: Process, TCP socket unlocked.
 */
void afr_tcp_settings_sync(struct sock *sk)
{
	struct afr_conn *conn = afr_sk(sk)->conn;
	struct sock *tcp_sk = conn->tcp->sk;

	if (AFR_CUSTOM_SOCKOPT)
		return;
	if (sk->sk_bound_dev_if != tcp_sk->sk_bound_dev_if)
		sock_bindtoindex(tcp_sk, sk->sk_bound_dev_if, true);
	lock_sock(tcp_sk);
	if (sock_flag(sk, SOCK_KEEPOPEN) != sock_flag(tcp_sk, SOCK_KEEPOPEN)) {
		tcp_sk->sk_prot->keepalive(tcp_sk, sock_flag(sk, SOCK_KEEPOPEN));
		sock_valbool_flag(tcp_sk, SOCK_KEEPOPEN, sock_flag(sk, SOCK_KEEPOPEN));
	}
	tcp_sk->sk_reuse = sk->sk_reuse;
	tcp_sk->sk_reuseport = sk->sk_reuseport;
	tcp_sk->sk_mark = sk->sk_mark;
	WRITE_ONCE(tcp_sk->sk_priority, sk->sk_priority);
	/* not in sync_fallback(): a call on a one-way connection may sleep in TCP, too */
	WRITE_ONCE(tcp_sk->sk_rcvtimeo, sk->sk_rcvtimeo);
	WRITE_ONCE(tcp_sk->sk_sndtimeo, sk->sk_sndtimeo);
	sync_pacing(tcp_sk, sk);
	sock_valbool_flag(tcp_sk, SOCK_URGINLINE, sock_flag(sk, SOCK_URGINLINE));
	if (!afr_tcp_settings_is_framed(conn))
		sync_fallback(tcp_sk, sk);
	release_sock(tcp_sk);
}

/**
 * afr_tcp_settings_sync_rcvlowat() - copy SO_RCVLOWAT to the TCP socket
 * @sk: AF_RDMA socket
 *
 * For poll(). Copies only if the receive direction is in fallback mode and the send direction is
 * not framed. Unlike afr_tcp_settings_sync(), does not call lock_sock(): poll() may run in a
 * workqueue that others use, too, and must not wait there.
 *
 * Context: Process.
 */
void afr_tcp_settings_sync_rcvlowat(struct sock *sk)
{
	struct afr_sock *as = afr_sk(sk);
	struct sock *tcp_sk = as->conn->tcp->sk;

	if (AFR_CUSTOM_SOCKOPT || READ_ONCE(tcp_sk->sk_rcvlowat) == READ_ONCE(sk->sk_rcvlowat))
		return;
	if (!afr_sock_begin_call(as, afr_conn_rx_mode))
		return;
	if (afr_conn_tx_mode(as->conn) != AFR_MODE_FRAMED)
		WRITE_ONCE(tcp_sk->sk_rcvlowat, sk->sk_rcvlowat);
	afr_sock_end_call(as);
}

/* TCP has given the listener's filter to the accepted TCP socket: share it with @child. */
static void inherit_filter(struct sock *child)
{
	struct sock *tcp_sk = afr_tcp(child)->sk;

	lock_sock(child);
	lock_sock_nested(tcp_sk, SINGLE_DEPTH_NESTING);
	share_filter(tcp_sk, child);
	release_sock(tcp_sk);
	release_sock(child);
}

/*
 * If LATE options wait in @listener, they have to wait in @child, too. Copies those that the
 * caller does not copy: time stamp and RECVERR options.
 */
static void inherit_late(struct sock *child, const struct sock *listener)
{
	const struct afr_sock *from = afr_sk(listener);

	if (!READ_ONCE(from->late))
		return;
	apply_timestamps(child->sk_socket, listener);
	afr_sk(child)->recverr = READ_ONCE(from->recverr);
	afr_sk(child)->late = true;
}

/**
 * afr_tcp_settings_inherit() - copy a listener's options to an accepted socket
 * @child: accepted AF_RDMA socket
 * @listener: listening AF_RDMA socket
 *
 * Context: Process, sockets unlocked.
 */
void afr_tcp_settings_inherit(struct sock *child, const struct sock *listener)
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
	/* options set after listen() may have reached the TCP listener too late for @child */
	if (!AFR_CUSTOM_SOCKOPT && !child->sk_mark)
		child->sk_mark = listener->sk_mark;
	if (!AFR_CUSTOM_SOCKOPT && !child->sk_bound_dev_if)
		child->sk_bound_dev_if = listener->sk_bound_dev_if;
	if (!AFR_CUSTOM_SOCKOPT && child->sk_max_pacing_rate == ~0UL)
		child->sk_max_pacing_rate = listener->sk_max_pacing_rate;
	inherit_filter(child);
	inherit_late(child, listener);
	afr_sk(child)->nodelay = afr_sk(listener)->nodelay;
	afr_sk(child)->cork = afr_sk(listener)->cork;
	afr_sk(child)->sndring = afr_sk(listener)->sndring;
	afr_sk(child)->rcvring = afr_sk(listener)->rcvring;
	afr_sk(child)->busy_poll = READ_ONCE(afr_sk(listener)->busy_poll);
	afr_move_set_policy(afr_sk(child)->conn, READ_ONCE(afr_sk(listener)->conn->policy));
}
