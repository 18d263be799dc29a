/* SPDX-License-Identifier: GPL-2.0 */
/* How connections end; all ways are here. */
#ifndef AFR_END_H
#define AFR_END_H

#include "conn.h"

/* The work, last step: look whether something has ended and take it to its end. */
void afr_end_run(struct afr_conn *conn);
/* The work: an abort waits for the answer to our ATTACH; frames are still read. */
bool afr_end_waits(struct afr_conn *conn);
/* The work: the inner TCP stream is over: cleanly (0), or with an error (-errno). */
void afr_end_inner(struct afr_conn *conn, int err);
void afr_end_unread(struct afr_conn *conn);
/* Any context: the state that TCP would show for this stream. */
u8 afr_end_tcp_state(struct afr_conn *conn);

#endif /* AFR_END_H */
