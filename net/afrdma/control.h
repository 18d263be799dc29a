/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frames out. What the connection wants to say is a bit per kind of frame; its
 * contents are taken from the books at the moment it is written, so nothing
 * queues up and the reader never waits for room to answer (PC9). DATA frames,
 * which are the tcp path, go when nothing else does.
 *
 * HELLO and FINACK wait a moment for company, as most often DATA or FIN follows and one
 * segment carries both: until the program waits for the peer, or AFR_SAY_MS.
 */
#ifndef AFR_CONTROL_H
#define AFR_CONTROL_H

#include "conn.h"

/* Any context: say this with the next afr_control_push(), by whichever processor. */
static inline void afr_control_want(struct afr_conn *conn, enum afr_want want)
{
	smp_mb__before_atomic();	/* what it is built from is there before it is wanted */
	set_bit(want, &conn->want);
}

/*
 * Under tx_lock: less than this is little on a link, and worth waiting for more, or for the
 * completion of what was posted before.
 */
static inline u32 afr_control_little(const struct afr_conn *conn)
{
	return min3(32u * 1024, conn->tx.window / 8, conn->tx.ring / 8);
}

/* Under tx_lock. Do the @ready bytes wait for more, as the program has asked? */
bool afr_control_waits(struct afr_conn *conn, u32 ready);

#define AFR_WANT_LAZY	(BIT(AFR_WANT_HELLO) | BIT(AFR_WANT_FINACK))
#define AFR_SAY_MS	1

/* Under tx_lock, behind a push: have the work say BLOCKED, if it still is so then. */
void afr_control_blocked(struct afr_conn *conn);
/* Process context. Write what TCP takes without waiting; the rest follows from sk_write_space. */
void afr_control_push(struct afr_conn *conn);
/* Process context. The same, and nothing waits for company. */
void afr_control_say(struct afr_conn *conn);
/* The work: raw output begins with what was written early. True when TCP has all of it. */
bool afr_control_early(struct afr_conn *conn);
/* Everything wanted has been taken by TCP. */
bool afr_control_idle(struct afr_conn *conn);

#endif /* AFR_CONTROL_H */
