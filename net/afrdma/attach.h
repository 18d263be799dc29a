/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attaching a connection to a link: a link is found or made, rings are registered,
 * ATTACH and ATTACHED tell where to write. The steps are an enum (conn.h) that only
 * the connection's work changes, and all of this is the work.
 */
#ifndef AFR_ATTACH_H
#define AFR_ATTACH_H

#include "conn.h"

/* Steps of the client: look for a link; there is one, or none; look no more. */
void afr_attach_start(struct afr_conn *conn);
void afr_attach_joined(struct afr_conn *conn);
void afr_attach_cancel(struct afr_conn *conn);
/* The answer to our ATTACH does not come. */
void afr_attach_overdue(struct afr_conn *conn);
/* The ATTACH that was not written yet never will be: drop it; drop it and end the attach. */
bool afr_attach_unsaid(struct afr_conn *conn);
void afr_attach_take_back(struct afr_conn *conn);
/* Steps of the server: answer an ATTACH when its link is up; refuse it. */
void afr_attach_answer(struct afr_conn *conn);
void afr_attach_refuse(struct afr_conn *conn, enum afr_reason reason);

/* The client again: the server refused (AFR_F_REFUSED). */
void afr_attach_refused(struct afr_conn *conn, u32 reason);

/* The end: the books of the epoch first (returns X of RESUME), then all else. */
u64 afr_attach_close_epoch(struct afr_conn *conn, bool resume);
void afr_attach_end(struct afr_conn *conn);
/* We are on TCP again: why, and when to try again. */
void afr_attach_left(struct afr_conn *conn, enum afr_reason reason);

/* Frames of the peer: 0 or the AFR_REASON_* to end with. */
int afr_attach_asked(struct afr_conn *conn, const struct afr_frame *frame);
int afr_attach_answered(struct afr_conn *conn, const struct afr_frame *frame);

#endif /* AFR_ATTACH_H */
