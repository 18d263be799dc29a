/* SPDX-License-Identifier: GPL-2.0 */
/* Pages for the rings of a connection: to send and receive on TCP, and whole ones for RDMA. */
#ifndef AFR_RINGS_H
#define AFR_RINGS_H

#include "conn.h"

/*
 * Process context, the producer: pages for some of the @n bytes behind what was written, or
 * received. Returns for how many; -ENOMEM: allocation failed, to be tried again; -EAGAIN: what
 * the ring holds keeps its pages, and who frees one tells (AFR_F_NO_PAGES, AFR_F_STALLED).
 */
int afr_rings_back_snd(struct afr_conn *conn, u32 n);
int afr_rings_back_rcv(struct afr_conn *conn, u32 n);

/* Process context. Is there a page now for a sender that waits (AFR_F_NO_PAGES)? Then tell it. */
void afr_rings_tell_sender(struct afr_conn *conn);

/* The work. Pin both rings, within the shares of peer and user: 0 or as afr_share_take(). */
int afr_rings_pin(struct afr_conn *conn);
/* The work. No device uses them any more: only pages that hold bytes stay. */
void afr_rings_unpin(struct afr_conn *conn);

#endif /* AFR_RINGS_H */
