/* SPDX-License-Identifier: GPL-2.0 */
/* The program's side of sending: bytes into the send ring, the path gets going. */
#ifndef AFR_SEND_H
#define AFR_SEND_H

#include "conn.h"

struct iov_iter;

/* Process context. A message of @len bytes comes. Returns how many of them to take at once. */
size_t afr_send_begin(struct afr_conn *conn, size_t len);
/*
 * Process context; one sender at a time (lock_sock of the front). Copy up to @len
 * bytes out of @iter, and let the path take what it can; MSG_OOB and MSG_MORE count of
 * @flags. Returns bytes taken, -EAGAIN
 * when the ring is full, -ENOMEM, -EFAULT, -EPIPE after afr_send_fin().
 */
ssize_t afr_send_some(struct afr_conn *conn, struct iov_iter *iter, size_t len,
		      int flags);
/* The same on a server before its output is decided; -EAGAIN when it turns out to be raw. */
ssize_t afr_send_early(struct afr_conn *conn, struct iov_iter *iter, size_t len,
		       int flags);
/* Any context. May a server of undecided output write already? */
bool afr_send_may_early(const struct afr_conn *conn);
/* Process context. Let the current path take what it can. */
void afr_send_kick(struct afr_conn *conn);
bool afr_send_waits(struct afr_conn *conn);
/* Process context. TCP_CORK was taken away. */
void afr_send_uncork(struct afr_conn *conn);
/* The work: say BLOCKED, if that is due. */
void afr_send_blocked(struct afr_conn *conn);
/* Process context. The stream ends with what was written so far. Idempotent. */
void afr_send_fin(struct afr_conn *conn);
/* Any context. Enough room that a sleeping writer is worth waking. */
bool afr_send_room(struct afr_conn *conn);
/* Any context. The same for the sleeper: if there is none, afr_conn_writable() will wake. */
bool afr_send_await_room(struct afr_conn *conn);
/* Any context. Bytes written and not known to be received; and of these, not yet sent. */
u64 afr_send_queued(struct afr_conn *conn, u64 *unsent);
/* Any context. The peer has received everything, after afr_send_fin(). */
bool afr_send_done(struct afr_conn *conn);

#endif /* AFR_SEND_H */
