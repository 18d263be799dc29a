// SPDX-License-Identifier: GPL-2.0
/* Facts of connections, for smctl, AFRDMA_INFO and the tests. */
#include "conn.h"

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/net.h>
#include <net/inet_sock.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <net/tcp.h>
#include <uapi/linux/af_rdma.h>

#include "fallback.h"

static_assert((int)AFRDMA_PATH_TCP == (int)AFR_ON_TCP &&
	      (int)AFRDMA_PATH_RDMA == (int)AFR_ON_LINK &&
	      (int)AFRDMA_PATH_WAIT == (int)AFR_ON_HOLD, "paths are told as they are");

static u8 conn_mode(const struct afr_conn *conn)
{
	u8 tx = afr_conn_tx_mode(conn), rx = afr_conn_rx_mode(conn);

	if (tx == AFR_NONE)
		return AFRDMA_MODE_NONE;
	if (tx == AFR_RAW && rx == AFR_RAW)
		return AFRDMA_MODE_PLAIN;
	if (tx == AFR_UNDECIDED || rx == AFR_UNDECIDED)
		return AFRDMA_MODE_UNDECIDED;
	return tx == rx ? AFRDMA_MODE_FRAMED : AFRDMA_MODE_HALF;
}

static void info_front(struct afr_conn *conn, struct afr_conn_info *info)
{
	struct sock *sk;

	rcu_read_lock();
	sk = rcu_dereference(conn->front);
	if (sk)
		info->inode = sock_i_ino(sk);
	rcu_read_unlock();
	info->orphan = !sk;
}

static void name_inet(struct sockaddr_storage *to, __be32 addr, __be16 port)
{
	*(struct sockaddr_in *)to = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = addr,
	};
}

static void name_inet6(struct sockaddr_storage *to, const struct sock *isk,
		       const struct in6_addr *addr, __be16 port)
{
	*(struct sockaddr_in6 *)to = (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = *addr,
		.sin6_scope_id = ipv6_iface_scope_id(addr, READ_ONCE(isk->sk_bound_dev_if)),
	};
}

/**
 * afr_conn_names() - the addresses of the inner socket
 * @conn: connection
 * @local: out
 * @remote: out; zero while there is no peer
 *
 * As getsockname() and getpeername(), but without the lock of the socket, which a program can
 * hold for as long as it likes (a call that faults), and without the cgroup programs that may
 * answer with other addresses: what rdma_cm connects to must be what TCP is connected to. While
 * connect() is at work the addresses may be half old, half new.
 *
 * Context: any.
 */
void afr_conn_names(const struct afr_conn *conn, struct sockaddr_storage *local,
		    struct sockaddr_storage *remote)
{
	static const u32 no_peer = TCPF_CLOSE | TCPF_SYN_SENT | TCPF_LISTEN;
	const struct sock *isk = conn->inner->sk;
	const struct inet_sock *inet = inet_sk(isk);
	bool peer = READ_ONCE(inet->inet_dport) && !(no_peer & 1 << inet_sk_state_load(isk));

	memset(local, 0, sizeof(*local));
	memset(remote, 0, sizeof(*remote));
#if IS_ENABLED(CONFIG_IPV6)
	if (isk->sk_family == AF_INET6) {
		name_inet6(local, isk, ipv6_addr_any(&isk->sk_v6_rcv_saddr) ?
			   &inet6_sk(isk)->saddr : &isk->sk_v6_rcv_saddr, inet->inet_sport);
		if (peer)
			name_inet6(remote, isk, &isk->sk_v6_daddr, inet->inet_dport);
		return;
	}
#endif
	name_inet(local, READ_ONCE(inet->inet_rcv_saddr) ?: READ_ONCE(inet->inet_saddr),
		  inet->inet_sport);
	if (peer)
		name_inet(remote, inet->inet_daddr, inet->inet_dport);
}

/*
 * A raw direction is TCP's to count. Without the lock of the socket, which a sender may hold
 * for long: one counter may be a packet ahead of the other.
 */
static void info_raw(const struct afr_conn *conn, struct afr_conn_info *info)
{
	const struct sock *isk = conn->inner->sk;
	const struct tcp_sock *tp = tcp_sk(isk);

	if (afr_conn_tx_mode(conn) == AFR_RAW)
		info->tx_bytes[AFR_ON_TCP] = READ_ONCE(tp->bytes_sent) -
					     READ_ONCE(tp->bytes_retrans);
	if (afr_conn_rx_mode(conn) == AFR_RAW)	/* the peer's FIN counts as a byte there */
		info->rx_bytes[AFR_ON_TCP] = READ_ONCE(tp->bytes_received) -
					     sock_flag(isk, SOCK_DONE);
}

/**
 * afr_conn_info() - facts for smctl, getsockopt and the tests
 * @conn: connection
 * @info: filled
 *
 * Context: process, no locks of the connection held.
 */
void afr_conn_info(struct afr_conn *conn, struct afr_conn_info *info)
{
	struct sock *isk = conn->inner->sk;
	u32 reason = afr_fallback_reason(conn);

	memset(info, 0, sizeof(*info));
	info->id = conn->id;
	info->mode = conn_mode(conn);
	info->server = conn->server;
	info->reason = afr_reason_number(reason);
	info->reason_peer = reason & AFR_REASON_PEER;
	info->abort_reason = READ_ONCE(conn->abort_reason);
	info->tcp_state = inet_sk_state_load(isk);
	info->uid = from_kuid_munged(&init_user_ns, sock_i_uid(isk));
	info_front(conn, info);
	afr_conn_names(conn, &info->local, &info->remote);

	spin_lock_bh(&conn->tx_lock);
	info->tx_path = conn->tx.where;
	info->unsent = conn->tx.written - conn->tx.una;
	info->tx_ring = conn->tx.ring;
	info->epoch = conn->tx.epoch;
	memcpy(info->tx_bytes, conn->tx_bytes, sizeof(info->tx_bytes));
	spin_lock(&conn->rx_lock);
	info->rx_path = conn->rx.open && conn->rx.moved ? AFR_ON_LINK : AFR_ON_TCP;
	info->unread = conn->rx.visible - conn->rx.consumed;
	info->rx_ring = conn->rx.ring;
	memcpy(info->rx_bytes, conn->rx_bytes, sizeof(info->rx_bytes));
	spin_unlock(&conn->rx_lock);
	if (conn->may_post)
		info->link = afr_link_id(conn->port.link);
	info->moves = conn->moves;
	spin_unlock_bh(&conn->tx_lock);
	info_raw(conn, info);
}

/**
 * afr_conn_path_mtu() - the largest packet that its TCP sends
 * @conn: connection
 *
 * Known from the route, ICMP, the peer's MSS, or probes of TCP's own. Programs can make an MSS
 * small (TCP_MAXSEG), and links are shared: below what every path of IPv6 takes the route alone
 * counts.
 *
 * Context: process.
 * Return: bytes.
 */
u32 afr_conn_path_mtu(const struct afr_conn *conn)
{
	struct sock *isk = conn->inner->sk;
	u32 route = READ_ONCE(inet_csk(isk)->icsk_pmtu_cookie);
	u32 mss = tcp_mss_to_mtu(isk, READ_ONCE(tcp_sk(isk)->mss_cache));

	return min(route, max_t(u32, mss, IPV6_MIN_MTU));
}

/**
 * afr_conn_for_each() - visit connections
 * @an: of this namespace, or NULL for all
 * @id: begin with this id
 * @fn: called for each in the order of ids, without locks; non-zero stops
 * @arg: for @fn
 *
 * Context: process.
 * Return: what @fn returned last, 0 when all were visited.
 */
int afr_conn_for_each(struct afr_net *an, unsigned long id,
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
