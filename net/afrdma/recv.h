/* SPDX-License-Identifier: GPL-2.0 */
/* The program's side of receiving: bytes out of the receive ring, credits back. */
#ifndef AFR_RECV_H
#define AFR_RECV_H

#include "conn.h"

struct iov_iter;

/*
 * Process context; one reader at a time (lock_sock of the front). Copy up to @len
 * bytes, starting @skip bytes after the reader's cursor, to @iter (NULL: drop them).
 * Nothing is consumed. Returns bytes copied, 0 when there are none, -EFAULT.
 */
ssize_t afr_recv_copy(struct afr_conn *conn, u64 skip, struct iov_iter *iter, size_t len);
/* The reader is done with @len bytes: memory and credit go back. Process context. */
void afr_recv_consume(struct afr_conn *conn, size_t len);

/* Shut both ways: what comes from now on is answered by a reset, as TCP does. Process context. */
void afr_recv_refuse(struct afr_conn *conn);

/* Any context: bytes to read now. */
u32 afr_recv_readable(struct afr_conn *conn);
/* Any context: the peer named its end, and all up to there has come (maybe not been read). */
bool afr_recv_fin(struct afr_conn *conn);

#endif /* AFR_RECV_H */
