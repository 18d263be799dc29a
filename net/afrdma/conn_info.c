// SPDX-License-Identifier: GPL-2.0
/* Facts of connections, for smctl, AFRDMA_INFO and the tests. */
#include "conn.h"

#include <linux/net.h>
#include <net/sock.h>
#include <uapi/linux/af_rdma.h>

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

	memset(info, 0, sizeof(*info));
	info->id = conn->id;
	info->mode = conn_mode(conn);
	info->server = conn->server;
	info->reason = READ_ONCE(conn->reason);
	info->abort_reason = READ_ONCE(conn->abort_reason);
	info->tcp_state = inet_sk_state_load(isk);
	info->uid = from_kuid_munged(&init_user_ns, sock_i_uid(isk));
	info_front(conn, info);
	kernel_getsockname(conn->inner, (struct sockaddr *)&info->local);
	kernel_getpeername(conn->inner, (struct sockaddr *)&info->remote);

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
