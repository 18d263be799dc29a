/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The socket in front: what socket(AF_RDMA, ...) gives. It never changes its
 * nature; calls ask the connection in which mode a direction is and go to the
 * rings or to the inner TCP socket.
 */
#ifndef AFR_SOCK_H
#define AFR_SOCK_H

#include <net/sock.h>

#include "conn.h"
#include "tcpopt.h"

#define AFR_RECVERR_INET	0x01	/* IP_RECVERR */
#define AFR_RECVERR_INET6	0x02	/* IPV6_RECVERR */

struct afr_sock {
	struct sock		sk;	/* first */
	struct afr_conn		*conn;	/* holds a reference; never NULL */
	struct afr_offer	offer;	/* client: while connecting */
	struct afr_listen_mark	*mark;	/* listening with our option */
	bool			blocking_connect;	/* connect() itself reports the error */
	u8			nodelay, cork;	/* what the program set */
	u8			recverr;	/* the same: AFR_RECVERR_*, under lock_sock() */
	u8			recverr_inner;	/* what of it the inner socket has */
	bool			late_done;	/* the inner socket has some of what comes late */
	bool			late;		/* some of it the inner socket cannot have yet */
	u32			sndring, rcvring;	/* the same, 0 = by SO_SNDBUF, SO_RCVBUF */
	u32			busy_poll;	/* microseconds */
};

static inline struct afr_sock *afr_sk(const struct sock *sk)
{
	return (struct afr_sock *)sk;
}

static inline struct socket *afr_inner(const struct sock *sk)
{
	return afr_sk(sk)->conn->inner;
}

/* own.c: SOL_AFRDMA */
int afr_own_set(struct sock *sk, int name, sockptr_t from, unsigned int len);
int afr_own_get(struct sock *sk, int name, char __user *to, int __user *len);
/* The ring a socket asked for, by that or by SO_SNDBUF and SO_RCVBUF, or the default. */
u32 afr_own_sndbuf(const struct sock *sk);
u32 afr_own_rcvbuf(const struct sock *sk);
/* SO_BUSY_POLL or AFRDMA_BUSY_POLL: microseconds. */
unsigned int afr_own_busy_poll(const struct sock *sk);

/* sockopt.c */
int afr_setsockopt(struct socket *sock, int level, int name, sockptr_t value, unsigned int len);
int afr_getsockopt(struct socket *sock, int level, int name, char __user *value, int __user *len);
/*
 * Kernels that keep setsockopt(SOL_SOCKET) to themselves set the front only: bring
 * the inner socket up to that, before it is asked for something. Process context.
 */
void afr_sockopt_sync(struct sock *sk);
/* Process context, before a raw call: what was set while the inner socket carried frames. */
void afr_sockopt_late(struct sock *sk);
/* Process context, before connect(): the inner socket may come to carry frames again. */
void afr_sockopt_early(struct sock *sk);
/* Options of a listener that an accepted socket has, too. */
void afr_sockopt_inherit(struct sock *child, const struct sock *listener);

/* io.c: sendmsg, shutdown; io_recv.c: recvmsg, poll, ioctl */
int afr_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
int afr_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags);
__poll_t afr_poll(struct file *file, struct socket *sock, struct poll_table_struct *wait);
int afr_shutdown(struct socket *sock, int how);
int afr_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg);
/* Upcalls of the connection. */
extern const struct afr_front_ops afr_front_ops;

/* sock.c: the family */
/* The address family number: the module parameter. */
unsigned int afr_sock_family(void);
int afr_sock_init(void);
void afr_sock_exit(void);

#endif /* AFR_SOCK_H */
