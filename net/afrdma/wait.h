/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Sleeping in sendmsg() and recvmsg(), without holding a lock; and upcalls of the connection to
 * its AF_RDMA socket.
 */
#ifndef AFR_WAIT_H
#define AFR_WAIT_H

#include <linux/wait.h>

#include "sock.h"
#include "worker.h"

int afr_wait_result(long *timeo, long left);

/*
 * Sleeps until @condition is true, *@timeo has passed, or a signal comes; with *@timeo == 0, only
 * checks @condition. Returns what afr_wait_result() returns.
 */
#define afr_wait_event(sk, timeo, condition)						\
({											\
	long *__timeo = (timeo);							\
											\
	afr_wait_result(__timeo, wait_event_interruptible_timeout(*sk_sleep(sk), condition, \
								*__timeo));		\
})

/*
 * Like afr_wait_event(), but if TCP reports bytes or a change of state while the connection is
 * detached, the call runs the worker inline.
 */
#define afr_wait_frames(sk, timeo, condition)						\
({											\
	struct sock *__sk = (sk);							\
	struct afr_conn *__conn = afr_sk(__sk)->conn;					\
	bool __there = false;									\
	int __err;									\
											\
	do {										\
		afr_worker_wait_begin(__conn);						\
		__err = afr_wait_event(__sk, timeo, (__there = (condition)) ||		\
				    afr_conn_must_run_inline(__conn));				\
		afr_worker_wait_end(__conn);						\
	} while (!__err && !__there);							\
	__err;										\
})

int afr_wait_mode(struct sock *sk, enum afr_mode (*mode)(const struct afr_conn *conn),
		  int shut, long *timeo);
bool afr_wait_report_abort(struct sock *sk);

/* Upcalls from the connection to its AF_RDMA socket. */
extern const struct afr_sock_ops afr_wait_sock_ops;

#endif /* AFR_WAIT_H */
