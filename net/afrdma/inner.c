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
 * Context: process; again at each call that names the socket, as socket() has no file
 * yet. The inner socket only borrows the file (owner matches of
 * netfilter, SIGURG): afr_inner_ungraft() takes it away before it can go.
 */
void afr_inner_graft(struct socket *inner, struct socket *front)
{
	struct sock *isk = inner->sk;

	lock_sock(isk);		/* TCP's softirq sets flags as well, and sends SIGURG to the file */
	write_lock_bh(&isk->sk_callback_lock);
	rcu_assign_pointer(isk->sk_wq, &front->wq);
	inner->file = front->file;
	sock_set_flag(isk, SOCK_FASYNC);	/* the shared queue knows who listens */
	write_unlock_bh(&isk->sk_callback_lock);
	release_sock(isk);
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

	lock_sock(isk);
	write_lock_bh(&isk->sk_callback_lock);
	rcu_assign_pointer(isk->sk_wq, &inner->wq);
	inner->file = NULL;
	write_unlock_bh(&isk->sk_callback_lock);
	release_sock(isk);
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
