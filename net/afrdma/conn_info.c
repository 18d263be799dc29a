// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Collects information about connections, without waiting for lock_sock() of their sockets, which a
 * program can hold for long.
 */
#include "compat.h"
#include "conn.h"

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/net.h>
#include <net/inet_ecn.h>
#include <net/inet_sock.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <net/tcp.h>
#include <uapi/linux/af_rdma.h>

#include "conn_info.h"
#include "fallback.h"

static_assert((int)AFRDMA_PATH_TCP == (int)AFR_ON_TCP &&
	      (int)AFRDMA_PATH_RDMA == (int)AFR_ON_LINK &&
	      (int)AFRDMA_PATH_WAIT == (int)AFR_SUSPENDED, "the values of both enums");

static u8 conn_mode(const struct afr_conn *conn)
{
	u8 tx = afr_conn_tx_mode(conn), rx = afr_conn_rx_mode(conn);

	if (tx == AFR_MODE_NONE)
		return AFRDMA_MODE_NONE;
	if (tx == AFR_MODE_FALLBACK && rx == AFR_MODE_FALLBACK)
		return AFRDMA_MODE_PLAIN;
	if (tx == AFR_MODE_UNDECIDED || rx == AFR_MODE_UNDECIDED)
		return AFRDMA_MODE_UNDECIDED;
	return tx == rx ? AFRDMA_MODE_FRAMED : AFRDMA_MODE_HALF;
}

/* Stores the inode of the AF_RDMA socket in @info, or that the connection is an orphan. */
static void info_sock(struct afr_conn *conn, struct afr_conn_info *info)
{
	struct sock *sk;

	rcu_read_lock();
	sk = rcu_dereference(conn->sk);
	if (sk)
		info->inode = sock_i_ino(sk);
	rcu_read_unlock();
	info->orphan = !sk;
}

static void set_inet(struct sockaddr_storage *to, __be32 addr, __be16 port)
{
	*(struct sockaddr_in *)to = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = addr,
	};
}

static void set_inet6(struct sockaddr_storage *to, const struct sock *tcp_sk,
		      const struct in6_addr *addr, __be16 port)
{
	*(struct sockaddr_in6 *)to = (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = *addr,
		.sin6_scope_id = ipv6_iface_scope_id(addr, READ_ONCE(tcp_sk->sk_bound_dev_if)),
	};
}

/**
 * afr_conn_info_addrs() - get the addresses of the TCP connection
 * @conn: connection
 * @local: out: local address
 * @remote: out: address of the peer; zero while there is no peer
 *
 * Works like getsockname() and getpeername(), with three differences. It omits flow labels. It does
 * not take lock_sock(), which a program can hold for as long as it likes by a page fault in a call,
 * so during connect() the result may be partly old. And it does not run cgroup programs, which may
 * replace the addresses: rdma_cm has to connect to the address that TCP is connected to.
 *
 * Context: any.
 */
void afr_conn_info_addrs(const struct afr_conn *conn, struct sockaddr_storage *local,
			 struct sockaddr_storage *remote)
{
	static const u32 no_peer = TCPF_CLOSE | TCPF_SYN_SENT | TCPF_LISTEN;
	const struct sock *tcp_sk = conn->tcp->sk;
	const struct inet_sock *inet = inet_sk(tcp_sk);
	bool peer = READ_ONCE(inet->inet_dport) && !(no_peer & 1 << inet_sk_state_load(tcp_sk));

	memset(local, 0, sizeof(*local));
	memset(remote, 0, sizeof(*remote));
#if IS_ENABLED(CONFIG_IPV6)
	if (tcp_sk->sk_family == AF_INET6) {
		set_inet6(local, tcp_sk, ipv6_addr_any(&tcp_sk->sk_v6_rcv_saddr) ?
			  &inet6_sk(tcp_sk)->saddr : &tcp_sk->sk_v6_rcv_saddr, inet->inet_sport);
		if (peer)
			set_inet6(remote, tcp_sk, &tcp_sk->sk_v6_daddr, inet->inet_dport);
		return;
	}
#endif
	set_inet(local, READ_ONCE(inet->inet_rcv_saddr) ?: READ_ONCE(inet->inet_saddr),
		 inet->inet_sport);
	if (peer)
		set_inet(remote, inet->inet_daddr, inet->inet_dport);
}

/*
 * In fallback mode TCP counts the bytes. Its counters are read without lock_sock(), which a sender
 * may hold for long, so a retransmitted packet may be in only one of bytes_sent and bytes_retrans.
 */
static void info_fallback(const struct afr_conn *conn, struct afr_conn_info *info)
{
	const struct sock *tcp_sk = conn->tcp->sk;
	const struct tcp_sock *tp = tcp_sk(tcp_sk);
	bool fin = sock_flag(tcp_sk, SOCK_DONE);
	u64 received;

	smp_rmb();	/* TCP counts FIN, and sets the flag afterwards */
	received = READ_ONCE(tp->bytes_received);	/* 0 if TCP was disconnected meanwhile */
	if (afr_conn_tx_mode(conn) == AFR_MODE_FALLBACK)
		info->tx_bytes[AFR_ON_TCP] = READ_ONCE(tp->bytes_sent) -
					     READ_ONCE(tp->bytes_retrans);
	if (afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK)	/* TCP counts FIN as a byte */
		info->rx_bytes[AFR_ON_TCP] = received - (fin && received);
}

/**
 * afr_conn_info() - collect information about a connection
 * @conn: connection
 * @info: filled
 *
 * Context: process, no locks of the connection held.
 */
void afr_conn_info(struct afr_conn *conn, struct afr_conn_info *info)
{
	struct sock *tcp_sk = conn->tcp->sk;
	u32 reason = afr_fallback_reason(conn);

	memset(info, 0, sizeof(*info));
	info->id = conn->id;
	info->mode = conn_mode(conn);
	info->server = conn->server;
	info->reason = afr_reason_number(reason);
	info->reason_peer = reason & AFR_REASON_PEER;
	info->abort_reason = READ_ONCE(conn->abort_reason);
	info->tcp_state = inet_sk_state_load(tcp_sk);
	info->uid = from_kuid_munged(&init_user_ns, sk_uid(tcp_sk));
	info_sock(conn, info);
	afr_conn_info_addrs(conn, &info->local, &info->remote);

	spin_lock_bh(&conn->tx.lock);
	info->tx_path = conn->tx.seq.where;
	info->unsent = conn->tx.seq.written - conn->tx.seq.una;
	info->tx_ring = conn->tx.seq.ring;
	info->epoch = conn->tx.seq.epoch;
	memcpy(info->tx_bytes, conn->tx.bytes, sizeof(info->tx_bytes));
	spin_lock(&conn->rx.lock);
	info->rx_path = conn->rx.seq.open && conn->rx.seq.moved ? AFR_ON_LINK : AFR_ON_TCP;
	info->unread = conn->rx.seq.visible - conn->rx.seq.consumed;
	info->rx_ring = conn->rx.seq.ring;
	memcpy(info->rx_bytes, conn->rx.bytes, sizeof(info->rx_bytes));
	spin_unlock(&conn->rx.lock);
	if (conn->attach.may_post)
		info->link = afr_link_id(conn->attach.channel.link);
	info->moves = conn->moves;
	spin_unlock_bh(&conn->tx.lock);
	info_fallback(conn, info);
}

/**
 * afr_conn_info_path_mtu() - get the size of the largest packet that the TCP connection sends
 * @conn: connection
 *
 * On RoCE, the result limits the packets of a new link (limit_mtu()). TCP knows the size from the
 * route, ICMP, the peer's MSS, or its own probes. A program can make the MSS small (TCP_MAXSEG),
 * but other connections will share the link, so a size below the minimum MTU of IPv6 counts only
 * if it comes from the route or ICMP.
 *
 * Context: process.
 * Return: bytes.
 */
u32 afr_conn_info_path_mtu(const struct afr_conn *conn)
{
	struct sock *tcp_sk = conn->tcp->sk;
	u32 route = READ_ONCE(inet_csk(tcp_sk)->icsk_pmtu_cookie);
	u32 mss = tcp_mss_to_mtu(tcp_sk, READ_ONCE(tcp_sk(tcp_sk)->mss_cache));

	return min(route, max_t(u32, mss, IPV6_MIN_MTU));
}

/**
 * afr_conn_info_tclass() - get the traffic class of the packets that the TCP connection sends
 * @conn: connection
 *
 * Programs set it by IP_TOS and IPV6_TCLASS. The two ECN bits belong to TCP.
 *
 * Context: process.
 * Return: the DSCP in the upper six bits.
 */
u8 afr_conn_info_tclass(const struct afr_conn *conn)
{
	struct sock *tcp_sk = conn->tcp->sk;
	u8 tclass = READ_ONCE(inet_sk(tcp_sk)->tos);

#if IS_ENABLED(CONFIG_IPV6)
	if (tcp_sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&tcp_sk->sk_v6_daddr))
		tclass = READ_ONCE(inet6_sk(tcp_sk)->tclass);
#endif
	return tclass & ~INET_ECN_MASK;
}

/**
 * afr_conn_info_for_each() - call a function for each connection, in the order of ids
 * @an: namespace, or NULL for all
 * @id: lowest id to visit
 * @fn: called without locks; stops the walk by returning non-zero
 * @arg: passed to @fn
 *
 * Context: process.
 * Return: the last result of @fn; 0 when all were visited.
 */
int afr_conn_info_for_each(struct afr_net *an, unsigned long id,
			   int (*fn)(const struct afr_conn_info *info, void *arg), void *arg)
{
	struct afr_conn_info info;
	struct afr_conn *conn;
	int ret = 0;

	while (!ret && (conn = afr_conn_next(an, id))) {
		id = conn->id + 1;
		afr_conn_info(conn, &info);
		afr_conn_put(conn);
		ret = fn(&info, arg);
	}
	return ret;
}
