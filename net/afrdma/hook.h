/* SPDX-License-Identifier: GPL-2.0 */
/* Borrowing the inner socket's callbacks, while a connection is not plain. */
#ifndef AFR_HOOK_H
#define AFR_HOOK_H

#include "conn.h"

/*
 * Any context; inner socket locked or not yet reachable by others. Events of the
 * inner socket have the connection's work done from here on.
 */
void afr_hook_install(struct afr_conn *conn);
/* Process context: TCP's window is no bound for frames. */
void afr_hook_make_room(struct afr_conn *conn);
/* Process context: show the program's settings, to be changed; hide them again. */
void afr_hook_settings(struct afr_conn *conn, bool hide);
/* Any context: will no more come from TCP than what waits there; does nothing wait there? */
bool afr_hook_ended(const struct afr_conn *conn);
bool afr_hook_silent(const struct afr_conn *conn);
/* Process context: back to the stock callbacks, before the connection's life ends. Idempotent. */
void afr_hook_remove(struct afr_conn *conn);

#endif /* AFR_HOOK_H */
