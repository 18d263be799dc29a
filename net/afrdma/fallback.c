// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Why a connection is on TCP: what denies RDMA, which step failed, what the peer reported. Also
 * makes a connection that was not started fall back to TCP.
 */
#include "fallback.h"

#include <net/sock.h>
#include <uapi/linux/af_rdma.h>

#include "device.h"
#include "route.h"

/* Do the program or the administrators deny RDMA? */
static enum afr_reason denied_by_setting(const struct afr_conn *conn)
{
	if (test_bit(AFR_F_RDMA_DENIED, &conn->flags))
		return AFR_REASON_OPERATOR;
	if (READ_ONCE(conn->policy) == AFRDMA_RDMA_NEVER)
		return AFR_REASON_SOCKET_OPTION;
	if (!afr_netns_enabled(conn->an))
		return AFR_REASON_FAMILY_OFF;
	if (!READ_ONCE(conn->an->set.upgrade))
		return AFR_REASON_UPGRADE_OFF;
	if (rcu_access_pointer(conn->tcp->sk->sk_filter))
		return AFR_REASON_SOCKET_FILTER;
	return AFR_REASON_NONE;
}

/**
 * afr_fallback_denied() - does policy deny RDMA to this connection, attached or not (B5)?
 * @conn: connection
 *
 * Context: connection worker.
 * Return: AFR_REASON_NONE if not.
 */
enum afr_reason afr_fallback_denied(struct afr_conn *conn)
{
	enum afr_reason reason = denied_by_setting(conn);

	return reason ? reason : afr_route_denied(conn);
}

/*
 * Is the connection in a network namespace, other than the initial one, that can use no RDMA
 * device? The initial one is not tested: if it has no device, rdma_cm reports that to a client, and
 * a server announces no port.
 */
static bool netns_lacks_device(const struct afr_conn *conn)
{
	const struct net *net = conn->an->net;

	return !net_eq(net, &init_net) && !afr_device_any(net);
}

/**
 * afr_fallback_attach_denied() - does policy or the network namespace deny an attach?
 * @conn: connection
 *
 * Context: connection worker.
 * Return: AFR_REASON_NONE if not.
 */
enum afr_reason afr_fallback_attach_denied(struct afr_conn *conn)
{
	return netns_lacks_device(conn) ? AFR_REASON_NETNS : afr_fallback_denied(conn);
}

/**
 * afr_fallback_note() - store the reason why a connection is not on RDMA, and trace it
 * @conn: connection
 * @step: step of the attach that led to the reason, for the trace event
 * @reason: AFR_REASON_NONE once attached; with AFR_REASON_PEER if the peer reported the reason
 *
 * Context: connection worker.
 */
void afr_fallback_note(struct afr_conn *conn, enum afr_trace_step step, u32 reason)
{
	WRITE_ONCE(conn->reason, reason);
	trace_afrdma_conn_upgrade(conn->id, step, reason);
}

/**
 * afr_fallback_left() - record why the connection has left its link
 * @conn: connection
 * @reason: why; AFR_REASON_LINK_PEER_RESUME is replaced by the peer's reason, if that is known
 *
 * Context: connection worker.
 */
void afr_fallback_left(struct afr_conn *conn, enum afr_reason reason)
{
	bool peer_reason_known = conn->attach.peer_left && reason == AFR_REASON_LINK_PEER_RESUME;

	afr_fallback_note(conn, AFR_STEP_LEFT, peer_reason_known ? conn->attach.peer_left : reason);
	conn->attach.peer_left = 0;
}

/**
 * afr_fallback_peer_left() - a RESUME came: keep the reason with which the peer left
 * @conn: connection
 * @reason: reason that the RESUME contains
 *
 * Context: connection worker, before or after afr_fallback_left().
 */
void afr_fallback_peer_left(struct afr_conn *conn, u32 reason)
{
	/* no new information: no reason, or the peer only reports that this end has left */
	if (!reason || reason == AFR_REASON_LINK_PEER_RESUME)
		return;
	reason = afr_reason_of_peer(reason);
	if (conn->attach.state != AFR_DETACHED)
		conn->attach.peer_left = reason;
	else if (conn->reason == AFR_REASON_LINK_PEER_RESUME)
		afr_fallback_note(conn, AFR_STEP_LEFT, reason);
}

/*
 * Is it too late for an attach, because the connection is ending or the client's send direction has
 * ended? See build_attach().
 */
static bool closing(const struct afr_conn *conn)
{
	u64 fin = conn->server ? READ_ONCE(conn->rx.seq.fin) : READ_ONCE(conn->tx.seq.fin);

	return fin != AFR_NO_FIN ||
	       test_bit(AFR_F_ABORT, &conn->flags) || test_bit(AFR_F_ORPHAN, &conn->flags);
}

/**
 * afr_fallback_reason() - why is this connection not on RDMA?
 * @conn: connection
 *
 * If the recorded reason of a negotiated connection is AFR_REASON_NOT_YET, returns what prevents
 * or delays an attach now, or AFR_REASON_UPGRADING if one is due or in progress.
 *
 * Context: process. Waits for no lock that a program can hold.
 * Return: a reason in the format of conn->reason.
 */
u32 afr_fallback_reason(struct afr_conn *conn)
{
	u32 reason = READ_ONCE(conn->reason);

	if (reason != AFR_REASON_NOT_YET || !afr_conn_negotiated(conn))
		return reason;
	if (READ_ONCE(conn->attach.state) != AFR_DETACHED)
		return AFR_REASON_UPGRADING;
	if (closing(conn))
		return AFR_REASON_CLOSING;
	if (netns_lacks_device(conn))
		return AFR_REASON_NETNS;
	reason = denied_by_setting(conn);
	if (reason)
		return reason;
	if (conn->server)
		return READ_ONCE(conn->cm_port) ? AFR_REASON_CLIENT_BEGINS : AFR_REASON_NO_ROUTE;
	return test_bit(AFR_F_UPGRADE, &conn->flags) ? AFR_REASON_UPGRADING : AFR_REASON_NOT_YET;
}

/**
 * afr_fallback_set_modes() - set the mode of both directions
 * @conn: connection, not started
 * @mode: AFR_MODE_FALLBACK, or AFR_MODE_NONE again if the attempt to connect has failed
 *
 * Context: any.
 */
void afr_fallback_set_modes(struct afr_conn *conn, enum afr_mode mode)
{
	afr_conn_set_tx_mode(conn, mode);
	afr_conn_set_rx_mode(conn, mode);
}

/**
 * afr_fallback_set() - make a connection that was not started fall back to TCP
 * @conn: connection, not started
 * @reason: why
 *
 * Context: any.
 */
void afr_fallback_set(struct afr_conn *conn, enum afr_reason reason)
{
	WRITE_ONCE(conn->reason, reason);
	afr_fallback_set_modes(conn, AFR_MODE_FALLBACK);
	afr_netns_count(conn->an->net, AFR_STAT_CONN_PLAIN);
	trace_afrdma_conn_negotiated(conn->id, AFR_MODE_FALLBACK, AFR_MODE_FALLBACK, reason);
}
