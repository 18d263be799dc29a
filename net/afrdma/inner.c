// SPDX-License-Identifier: GPL-2.0
/* The inner TCP socket. */
#include "inner.h"

#include <linux/net.h>
#include <net/sock.h>

/**
 * afr_inner_create() - the TCP socket behind an AF_RDMA socket
 * @net: namespace, held by the new socket (kern = 0: it is the caller's socket)
 * @family: AF_INET or AF_INET6
 * @inner: result
 *
 * Return: 0 or -errno of socket().
 */
int afr_inner_create(struct net *net, int family, struct socket **inner)
{
	return __sock_create(net, family, SOCK_STREAM, IPPROTO_TCP, inner, 0);
}

/**
 * afr_inner_graft() - one wait queue and one file for both sockets
 * @inner: inner socket
 * @front: socket in front
 *
 * Context: process. The inner socket only borrows the file (owner matches of
 * netfilter, SIGURG): afr_inner_ungraft() takes it away before it can go.
 */
void afr_inner_graft(struct socket *inner, struct socket *front)
{
	struct sock *isk = inner->sk;

	write_lock_bh(&isk->sk_callback_lock);
	rcu_assign_pointer(isk->sk_wq, &front->wq);
	inner->file = front->file;
	sock_set_flag(isk, SOCK_RCU_FREE);
	write_unlock_bh(&isk->sk_callback_lock);
}

/**
 * afr_inner_ungraft() - give the wait queue and file back
 * @inner: inner socket
 *
 * Context: process. Callbacks that still use the old queue hold RCU, and the
 * front's inode is freed by RCU.
 */
void afr_inner_ungraft(struct socket *inner)
{
	struct sock *isk = inner->sk;

	write_lock_bh(&isk->sk_callback_lock);
	rcu_assign_pointer(isk->sk_wq, &inner->wq);
	inner->file = NULL;
	write_unlock_bh(&isk->sk_callback_lock);
}

/* The connection of a hooked socket; the caller holds sk_callback_lock for reading. */
static struct afr_conn *conn_of(struct sock *isk)
{
	return (void *)((unsigned long)isk->sk_user_data & SK_USER_DATA_PTRMASK);
}

#define INNER_CALLBACK(event, raw)					\
static void inner_##event(struct sock *isk)				\
{									\
	void (*stock)(struct sock *sk) = NULL;				\
	struct afr_conn *conn;						\
									\
	read_lock_bh(&isk->sk_callback_lock);				\
	conn = conn_of(isk);						\
	if (conn) {							\
		if (raw)						\
			stock = conn->event;				\
		afr_conn_schedule(conn);				\
	}								\
	read_unlock_bh(&isk->sk_callback_lock);				\
	if (stock)							\
		stock(isk);						\
}

INNER_CALLBACK(data_ready, afr_conn_rx_mode(conn) == AFR_RAW)
INNER_CALLBACK(state_change, true)
INNER_CALLBACK(error_report, afr_conn_rx_mode(conn) == AFR_RAW ||
	       afr_conn_tx_mode(conn) == AFR_RAW)

static void inner_write_space(struct sock *isk)
{
	void (*stock)(struct sock *sk) = NULL;
	struct afr_conn *conn;

	read_lock_bh(&isk->sk_callback_lock);
	conn = conn_of(isk);
	if (conn && afr_conn_tx_mode(conn) == AFR_RAW) {
		stock = conn->write_space;
	} else if (conn && isk->sk_socket && sk_stream_is_writeable(isk)) {
		clear_bit(SOCK_NOSPACE, &isk->sk_socket->flags);
		afr_conn_schedule(conn);
	}
	read_unlock_bh(&isk->sk_callback_lock);
	if (stock)
		stock(isk);
}

/**
 * afr_inner_hook() - let the inner socket's events run the work
 * @conn: connection that has been started
 *
 * Context: any but hard irq; the inner socket is locked, or only ours. What came
 * before is not told again: schedule the work afterwards.
 */
void afr_inner_hook(struct afr_conn *conn)
{
	struct sock *isk = conn->inner->sk;

	write_lock_bh(&isk->sk_callback_lock);
	conn->data_ready = isk->sk_data_ready;
	conn->write_space = isk->sk_write_space;
	conn->state_change = isk->sk_state_change;
	conn->error_report = isk->sk_error_report;
	__rcu_assign_sk_user_data_with_flags(isk, conn, SK_USER_DATA_NOCOPY);
	isk->sk_data_ready = inner_data_ready;
	isk->sk_write_space = inner_write_space;
	isk->sk_state_change = inner_state_change;
	isk->sk_error_report = inner_error_report;
	write_unlock_bh(&isk->sk_callback_lock);
}

/**
 * afr_inner_unhook() - back to the stock callbacks
 * @conn: connection; nothing happens when it is not hooked
 *
 * Context: process.
 */
void afr_inner_unhook(struct afr_conn *conn)
{
	struct sock *isk = conn->inner->sk;

	write_lock_bh(&isk->sk_callback_lock);
	if (isk->sk_data_ready == inner_data_ready) {
		isk->sk_data_ready = conn->data_ready;
		isk->sk_write_space = conn->write_space;
		isk->sk_state_change = conn->state_change;
		isk->sk_error_report = conn->error_report;
		rcu_assign_sk_user_data(isk, NULL);
	}
	write_unlock_bh(&isk->sk_callback_lock);
}

/**
 * afr_inner_take_error() - one error, two sockets
 * @inner: inner socket of a plain or unconnected socket
 * @front: socket in front
 *
 * getsockopt(SO_ERROR) and io_uring read the front's error and never ask us, so
 * what a poller is told about must be found there.
 *
 * Context: any.
 */
void afr_inner_take_error(struct socket *inner, struct sock *front)
{
	int err = xchg(&inner->sk->sk_err, 0);

	if (err)
		WRITE_ONCE(front->sk_err, err);
}
