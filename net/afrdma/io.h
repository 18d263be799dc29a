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

static inline bool afr_io_aborted(const struct afr_conn *conn)
{
	return test_bit(AFR_F_ABORTED, &conn->flags);
}

/* The mode of a direction once it is decided (or the connection is over), or -errno. */
int afr_io_wait_mode(struct sock *sk, enum afr_mode (*mode)(const struct afr_conn *conn),
		     long *timeo);
/* The error of an abort becomes the socket's, once. True the first time. */
bool afr_io_take_abort(struct sock *sk);

#endif /* AFR_IO_H */
