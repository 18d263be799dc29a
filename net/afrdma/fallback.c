// SPDX-License-Identifier: GPL-2.0
/* Why a connection is on TCP: what bars it from RDMA, what failed, what the peer told. */
#include "fallback.h"

#include <net/sock.h>
#include <uapi/linux/af_rdma.h>

#include "route.h"

/* What the program and the administrators say. */
static enum afr_reason unwanted(const struct afr_conn *conn)
{
	if (test_bit(AFR_F_KEEP_TCP, &conn->flags))
		return AFR_REASON_OPERATOR;
	if (READ_ONCE(conn->wish) == AFRDMA_RDMA_NEVER)
		return AFR_REASON_SOCKET_OPTION;
	if (!afr_net_enabled(conn->an))
		return AFR_REASON_FAMILY_OFF;
	if (!READ_ONCE(conn->an->set.upgrade))
		return AFR_REASON_UPGRADE_OFF;
	if (rcu_access_pointer(conn->inner->sk->sk_filter))
		return AFR_REASON_SOCKET_FILTER;
	return AFR_REASON_NONE;
}

/**
 * afr_fallback_barred() - what bars this connection from RDMA, attached or not (B5)
 * @conn: connection
 *
 * Context: the work.
 * Return: AFR_REASON_NONE if nothing does.
 */
enum afr_reason afr_fallback_barred(struct afr_conn *conn)
{
	enum afr_reason reason = unwanted(conn);

	return reason ? reason : afr_route_barred(conn);
}

/**
 * afr_fallback_forbidden() - what forbids to begin, although the peer speaks RDMA
 * @conn: connection
 *
 * Context: the work.
 * Return: AFR_REASON_NONE if nothing does.
 */
enum afr_reason afr_fallback_forbidden(struct afr_conn *conn)
{
	return net_eq(conn->an->net, &init_net) ? afr_fallback_barred(conn) : AFR_REASON_NETNS;
}

/**
 * afr_fallback_note() - an attempt has come so far, or has ended
 * @conn: connection
 * @step: so far
 * @reason: why not further; may be the peer's (AFR_REASON_PEER)
 *
 * Context: the work.
 */
void afr_fallback_note(struct afr_conn *conn, enum afr_trace_step step, u32 reason)
{
	WRITE_ONCE(conn->reason, reason);
	trace_afrdma_conn_upgrade(conn->id, step, reason);
}

/**
 * afr_fallback_left() - the link is left
 * @conn: connection
 * @reason: why; if all that we know is that the peer has left it, why that did
 *
 * Context: the work.
 */
void afr_fallback_left(struct afr_conn *conn, enum afr_reason reason)
{
	bool told = conn->peer_left && reason == AFR_REASON_LINK_PEER_RESUME;

	afr_fallback_note(conn, AFR_STEP_LEFT, told ? conn->peer_left : reason);
	conn->peer_left = 0;
}

/**
 * afr_fallback_peer_left() - RESUME tells why the peer has left the link
 * @conn: connection
 * @reason: of the frame
 *
 * Context: the work; before or behind afr_fallback_left().
 */
void afr_fallback_peer_left(struct afr_conn *conn, u32 reason)
{
	/* each end may blame the other */
	if (!reason || reason == AFR_REASON_LINK_PEER_RESUME)
		return;
	reason = afr_reason_of_peer(reason);
	if (conn->attach != AFR_DETACHED)
		conn->peer_left = reason;
	else if (conn->reason == AFR_REASON_LINK_PEER_RESUME)
		afr_fallback_note(conn, AFR_STEP_LEFT, reason);
}

/* Our part in beginning is over, or the peer's: see build_attach(). */
static bool closing(const struct afr_conn *conn)
{
	u64 fin = conn->server ? READ_ONCE(conn->rx.fin) : READ_ONCE(conn->tx.fin);

	return fin != AFR_NO_FIN ||
	       test_bit(AFR_F_ABORT, &conn->flags) || test_bit(AFR_F_ORPHAN, &conn->flags);
}

/**
 * afr_fallback_reason() - why is this connection not on RDMA?
 * @conn: connection
 *
 * When nothing was tried yet that could have failed: what is missing now.
 *
 * Context: process. Takes no lock.
 * Return: as conn->reason.
 */
u32 afr_fallback_reason(struct afr_conn *conn)
{
	u32 reason = READ_ONCE(conn->reason);

	if (reason != AFR_REASON_NOT_YET || !afr_conn_framed(conn))
		return reason;
	if (READ_ONCE(conn->attach) != AFR_DETACHED)
		return AFR_REASON_UPGRADING;
	if (closing(conn))
		return AFR_REASON_CLOSING;
	if (!net_eq(conn->an->net, &init_net))
		return AFR_REASON_NETNS;
	reason = unwanted(conn);
	if (reason)
		return reason;
	if (conn->server)
		return READ_ONCE(conn->my_port) ? AFR_REASON_CLIENT_BEGINS : AFR_REASON_NO_ROUTE;
	return test_bit(AFR_F_UPGRADE, &conn->flags) ? AFR_REASON_UPGRADING : AFR_REASON_NOT_YET;
}
