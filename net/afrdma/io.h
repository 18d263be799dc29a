/* SPDX-License-Identifier: GPL-2.0 */
/* What sending and receiving share: waiting without any lock. */
#ifndef AFR_IO_H
#define AFR_IO_H

#include <linux/wait.h>

#include "sock.h"

/* What a wait of @left jiffies to go ended with: 0, -EAGAIN, -ERESTARTSYS or -EINTR. */
int afr_io_waited(long *timeo, long left);

/* Sleep until @condition, without any lock; with no time left, only look. */
#define afr_io_wait(sk, timeo, condition)						\
({											\
	long *__timeo = (timeo);							\
											\
	afr_io_waited(__timeo, wait_event_interruptible_timeout(*sk_sleep(sk), condition, \
								*__timeo));		\
})

/* The same for what the peer has to send: the call that sleeps does the work itself. */
#define afr_io_wait_in(sk, timeo, condition)						\
({											\
	struct sock *__sk = (sk);							\
	struct afr_conn *__conn = afr_sk(__sk)->conn;					\
	bool __there = false;									\
	int __err;									\
											\
	do {										\
		afr_conn_wait_begin(__conn);						\
		__err = afr_io_wait(__sk, timeo, (__there = (condition)) ||		\
				    afr_conn_turn(__conn));				\
		afr_conn_wait_end(__conn);						\
	} while (!__err && !__there);							\
	__err;										\
})

static inline bool afr_io_aborted(const struct afr_conn *conn)
{
	return test_bit(AFR_F_ABORTED, &conn->flags);
}

/* Bytes that go between the program and TCP by memory of ours, at a time. */
#define BOUNCE	(64u * 1024)

/*
 * Does the work use the inner socket? Of a plain one it does not, and not before there is a
 * connection.
 */
static inline bool afr_io_has_work(const struct afr_conn *conn)
{
	return test_bit(AFR_F_ALIVE, &conn->flags) || afr_conn_tx_mode(conn) == AFR_UNDECIDED;
}

void afr_io_set_plain(struct afr_conn *conn, enum afr_reason reason);
/* The mode of a direction once it is decided (or the connection is over), or -errno. */
int afr_io_wait_mode(struct sock *sk, enum afr_mode (*mode)(const struct afr_conn *conn),
		     int shut, long *timeo);
/* The error of an abort becomes the socket's, once. True the first time. */
bool afr_io_take_abort(struct sock *sk);

#endif /* AFR_IO_H */
