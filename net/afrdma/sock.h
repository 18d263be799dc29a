/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * The AF_RDMA socket, which socket(AF_RDMA, ...) or accept() creates. It is never replaced by
 * another: calls use a ring or the TCP socket, depending on the mode of the direction.
 */
#ifndef AFR_SOCK_H
#define AFR_SOCK_H

#include <net/sock.h>

#include "conn.h"
#include "handshake.h"

#define AFR_RECVERR_INET	0x01	/* IP_RECVERR */
#define AFR_RECVERR_INET6	0x02	/* IPV6_RECVERR */

struct afr_sock {
	struct sock		sk;	/* first */
	struct afr_conn		*conn;	/* holds a reference; NULL only if alloc_sock() fails */
	struct afr_handshake	offer;	/* client: in use while connecting */
	/* listen() was called since lock_client() last cleared this; under lock_sock() */
	bool			listened;
	atomic_t		tcp_calls;	/* see afr_sock_begin_call() */
	bool			blocking_connect;	/* connect() waits and reports the error */
	u8			nodelay, cork;	/* options as set by the program */
	/* AFR_RECVERR_* that the program has set; written under lock_sock(), except by accept() */
	u8			recverr;
	u8			recverr_tcp;	/* AFR_RECVERR_* set on the TCP socket */
	bool			late_done;	/* all options of rule LATE were set on TCP */
	bool			cm_user;	/* counted as a user of the cm listener */
	bool			late;		/* options of rule LATE wait for fallback mode */
	/* AFRDMA_SNDRING, AFRDMA_RCVRING in bytes; 0: not set, see afr_sockopt_sndbuf() */
	u32			sndring, rcvring;
	u32			busy_poll;	/* option, microseconds */
};

static inline struct afr_sock *afr_sk(const struct sock *sk)
{
	return (struct afr_sock *)sk;
}

static inline struct socket *afr_tcp(const struct sock *sk)
{
	return afr_sk(sk)->conn->tcp;
}

/* While calls are counted, a new connection of this socket does not become framed; see offer(). */
static inline void afr_sock_count_call(struct afr_sock *as)
{
	atomic_inc(&as->tcp_calls);
	smp_mb__after_atomic();		/* count before reading a mode; pairs with offer() */
}

/*
 * For a call that is about to send or receive on the TCP socket, or to set an option there that is
 * unfit for frames. If the direction whose mode @mode returns is in fallback mode, counts the call
 * and returns true. Otherwise returns false, and the call must not use the TCP socket, which
 * carries frames or may do so soon (I13). The result may be false even if the caller has just read
 * fallback mode, as another thread may have called connect(AF_UNSPEC) since.
 */
static inline bool afr_sock_begin_call(struct afr_sock *as,
				       enum afr_mode (*mode)(const struct afr_conn *conn))
{
	afr_sock_count_call(as);
	if (mode(as->conn) == AFR_MODE_FALLBACK)
		return true;
	atomic_dec(&as->tcp_calls);
	return false;
}

static inline void afr_sock_end_call(struct afr_sock *as)
{
	atomic_dec(&as->tcp_calls);
}

/*
 * Makes the sk_state of @sk, from which SO_ACCEPTCONN is read, tell whether its TCP socket listens.
 * The TCP socket is locked.
 */
static inline void afr_sock_update_listening(struct sock *sk)
{
	if (afr_tcp(sk)->sk->sk_state == TCP_LISTEN)
		WRITE_ONCE(sk->sk_state, TCP_LISTEN);
	else if (sk->sk_state == TCP_LISTEN)
		WRITE_ONCE(sk->sk_state, TCP_CLOSE);
}

/* Size of the largest piece that is copied between program and TCP through a kernel buffer. */
#define AFR_BOUNCE_SIZE	(64u * 1024)

int afr_sockopt_set(struct socket *sock, int level, int name, sockptr_t value, unsigned int len);
int afr_sockopt_get(struct socket *sock, int level, int name, char __user *value, int __user *len);
u32 afr_sockopt_sndbuf(const struct sock *sk);
u32 afr_sockopt_rcvbuf(const struct sock *sk);
unsigned int afr_sockopt_busy_poll(const struct sock *sk);

int afr_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
int afr_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags);
void afr_sendmsg_splice_eof(struct socket *sock);
__poll_t afr_poll(struct file *file, struct socket *sock, struct poll_table_struct *wait);
int afr_poll_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg);
int afr_poll_set_rcvlowat(struct sock *sk, int val);
int afr_shutdown(struct socket *sock, int how);

unsigned int afr_sock_family(void);
int afr_sock_init(void);
void afr_sock_exit(void);

#endif /* AFR_SOCK_H */
