// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Moves connections onto a link and off it again: handles MOVE and RESUME, requests RESUME, has
 * rdma_tx.c post DETACH, and takes the next step of an attach or a move after a flag was set or a
 * timer has expired. Also starts a client's first attach after enough data, and applies the choice
 * of the path by the program or an administrator. Requests (server) and handles (client) SERVICE,
 * which announces an added RDMA device, or keeps TCP alive. The send direction enters the link in
 * frame_tx.c.
 */
#include "move.h"

#include <uapi/linux/af_rdma.h>

#include "attach.h"
#include "cm_listener.h"
#include "conn_rings.h"
#include "fallback.h"
#include "frame_tx.h"
#include "rdma_tx.h"
#include "trace.h"

#define STABLE	(10 * HZ)	/* after being attached this long, the back-off begins anew */

/**
 * afr_move_rx_move() - handle MOVE: the receive direction is on the link
 * @conn: connection
 * @frame: parsed MOVE
 *
 * Context: connection worker.
 * Return: 0, or the AFR_REASON_* with which to abort the connection.
 */
int afr_move_rx_move(struct afr_conn *conn, const struct afr_frame *frame)
{
	bool moved, all;
	int bad;

	lockdep_assert_held(&conn->worker.mutex);
	spin_lock_bh(&conn->rx.lock);
	moved = conn->rx.seq.moved;
	bad = afr_rx_move(&conn->rx.seq, frame->move.epoch, frame->move.start);
	moved = !moved && conn->rx.seq.moved;
	all = conn->rx.seq.visible == conn->rx.seq.fin;
	spin_unlock_bh(&conn->rx.lock);
	if (bad || !moved)
		return bad;
	afr_netns_count(conn->an->net, AFR_STAT_MOVE_RX);
	trace_afrdma_conn_move(conn->id, false, AFR_ON_LINK, frame->move.epoch, frame->move.start);
	afr_conn_readable(conn);
	if (all)
		afr_conn_changed(conn);		/* FIN came before this MOVE */
	return 0;
}

/**
 * afr_move_rx_resume() - handle RESUME: the peer has left the link
 * @conn: connection
 * @frame: parsed RESUME
 *
 * The peer's end of the link is fenced, or the peer has polled the DETACH of this end, so no write
 * to the peer can land any more. If this end is returning to TCP as well, or has posted DETACH and
 * polled that of the peer, the link may stay up for other connections. Otherwise, if RESUME is of
 * the current epoch and this end is still on the link, the peer has probably lost the link, so this
 * end takes it down, too.
 *
 * Context: connection worker.
 * Return: 0, or the AFR_REASON_* with which to abort the connection.
 */
int afr_move_rx_resume(struct afr_conn *conn, const struct afr_frame *frame)
{
	bool current_epoch = frame->resume.epoch == conn->tx.seq.epoch, was;
	int bad;

	lockdep_assert_held(&conn->worker.mutex);
	spin_lock_bh(&conn->tx.lock);
	was = conn->tx.seq.where != AFR_ON_TCP;
	if (current_epoch)
		afr_conn_set_may_post(conn, false);
	bad = afr_tx_resume(&conn->tx.seq, frame->resume.epoch, frame->resume.received,
			    frame->resume.consumed);
	if (current_epoch && !bad)
		set_bit(AFR_F_PEER_LEFT, &conn->flags);
	was = was && conn->tx.seq.where == AFR_ON_TCP;
	conn->moves += was;
	clear_bit(AFR_F_BLOCKED_SENT, &conn->flags);
	spin_unlock_bh(&conn->tx.lock);
	if (bad)
		return bad;
	if (was) {
		afr_netns_count(conn->an->net, AFR_STAT_RESUME_TX);
		trace_afrdma_conn_move(conn->id, true, AFR_ON_TCP, frame->resume.epoch,
				       conn->tx.seq.sent);
	}
	if (current_epoch && conn->attach.channel.joined &&
	    !test_bit(AFR_F_LEAVE_LINK, &conn->flags) &&
	    !(test_bit(AFR_F_PEER_DETACHED, &conn->flags) && READ_ONCE(conn->attach.detach_posted)))
		afr_link_fail(conn->attach.channel.link, AFR_REASON_LINK_PEER_RESUME);
	if (current_epoch)
		afr_fallback_peer_left(conn, frame->resume.reason);
	afr_conn_rings_wake_sender(conn);
	afr_conn_writable(conn);
	return 0;
}

/*
 * Leaves the link and continues on TCP; the program does not notice. RESUME reports what has
 * arrived (PM3), unless the peer never learned of the epoch, or the connection was aborted. Called
 * when nothing can land any more: the link is fenced and drained, or the peer's DETACH was polled
 * (PM7). A connection that was aborted while it was leaving the link for TCP (AFR_F_LEAVE_LINK)
 * also comes here when that DETACH is overdue, since it does not have to know what lands.
 */
static void continue_on_tcp(struct afr_conn *conn)
{
	bool was_there = conn->attach.state == AFR_ATTACHED || conn->attach.state == AFR_LEAVING;
	enum afr_reason reason = conn->attach.resume_reason;
	/* an ATTACH that was not written yet is dropped: the peer does not know the epoch */
	bool peer_knows = !afr_attach_drop_unsent(conn);
	u64 received;

	conn->attach.resume_epoch = conn->tx.seq.epoch;
	received = afr_attach_close_epoch(conn, peer_knows);
	afr_attach_end(conn);
	if (!peer_knows) {
		set_bit(AFR_F_PEER_LEFT, &conn->flags);
		/* closing the epoch marked the cursor as reported, even if no frame reported it */
		afr_frame_tx_request(conn, AFR_FRAME_CREDIT);
	}
	if (peer_knows && !test_bit(AFR_F_ABORTED, &conn->flags)) {
		afr_frame_tx_request(conn, AFR_FRAME_RESUME);
		afr_netns_count(conn->an->net, AFR_STAT_RESUME_RX);
		trace_afrdma_conn_move(conn->id, false, AFR_ON_TCP, conn->attach.resume_epoch,
				       received);
	}
	if (was_there && time_after(jiffies, conn->attach.since + STABLE))
		conn->attach.tries = 0;
	afr_attach_note_left(conn, reason);
}

/*
 * Completes a detach: the local DETACH has completed or cannot be posted (leave_unanswered()), and
 * that of the peer was polled or is overdue.
 */
static void link_left(struct afr_conn *conn)
{
	if (test_bit(AFR_F_LEAVE_LINK, &conn->flags)) {
		continue_on_tcp(conn);
		return;
	}
	afr_attach_close_epoch(conn, false);
	afr_attach_end(conn);
}

/*
 * Has this end sent its last byte and received the peer's last byte? Then a DETACH of the peer does
 * not make this end return to TCP: run_framed() sends the DETACH of this end when both directions
 * are complete. It is not enough that both ends have sent FIN: bytes of this end may still wait for
 * the peer's window, and if the peer returns to TCP, this end has to send them there.
 */
static bool ending(struct afr_conn *conn)
{
	bool sent;

	spin_lock_bh(&conn->tx.lock);
	sent = conn->tx.seq.sent == conn->tx.seq.fin;
	spin_unlock_bh(&conn->tx.lock);
	return sent && conn->rx.seq.finack_requested;
}

/*
 * Leaves a link that stays up for other connections, if policy denies RDMA to this one now, or if
 * the peer's DETACH was polled (PM7) and ending() is false.
 */
static void check_leave(struct afr_conn *conn)
{
	enum afr_reason reason = afr_fallback_denied(conn);

	if (!reason && test_bit(AFR_F_PEER_DETACHED, &conn->flags) && !ending(conn))
		reason = AFR_REASON_LINK_PEER_RESUME;
	if (!reason)
		return;
	spin_lock_bh(&conn->tx.lock);
	conn->attach.resume_reason = reason;
	spin_unlock_bh(&conn->tx.lock);
	set_bit(AFR_F_LEAVE_LINK, &conn->flags);
	afr_move_detach(conn);
}

/*
 * Client: gives up waiting for the answer to ATTACH. This end has posted nothing, and cannot post
 * DETACH, because it does not know the peer's channel id. It waits for the peer's DETACH, but not
 * longer than AFR_T_DETACH. By then a correct peer writes nothing to the receive ring any more:
 * either its stream is complete, or this end has aborted and so reset TCP. Only a peer that has
 * missed the reset may still write, see detach_overdue().
 */
static void leave_unanswered(struct afr_conn *conn)
{
	afr_attach_close_epoch(conn, false);	/* late ATTACHED and late writes are ignored now */
	spin_lock_bh(&conn->tx.lock);
	conn->attach.detach_posted = true;
	spin_unlock_bh(&conn->tx.lock);
	set_bit(AFR_F_DETACHED, &conn->flags);
	afr_attach_set_state(conn, AFR_LEAVING);
	afr_conn_timer(conn, AFR_T_DETACH, READ_ONCE(conn->an->set.detach_timeout_ms));
	afr_conn_schedule(conn);		/* the peer's DETACH may have come already */
}

/**
 * afr_move_detach() - take the next step towards leaving the link
 * @conn: connection: both directions have ended, an abort is due or done, or it has to continue on
 *	TCP
 *
 * At the end of a connection, call it until conn->attach.state is AFR_DETACHED.
 *
 * Context: connection worker.
 */
void afr_move_detach(struct afr_conn *conn)
{
	lockdep_assert_held(&conn->worker.mutex);
	switch (conn->attach.state) {
	case AFR_JOINING:
		afr_attach_cancel(conn);
		return;
	case AFR_REQUESTED:
		afr_attach_refuse(conn, AFR_REASON_CLOSING);
		return;
	case AFR_ATTACHING:
		afr_attach_withdraw(conn);
		if (conn->attach.state == AFR_DETACHED)
			return;
		if (afr_conn_aborted(conn))	/* no frame is read any more */
			leave_unanswered(conn);
		break;
	case AFR_ATTACHED:
		afr_attach_set_state(conn, AFR_LEAVING);
		break;
	case AFR_DETACHED:
		return;
	default:
		break;
	}
	if (!conn->worker.due[AFR_T_DETACH])
		afr_conn_timer(conn, AFR_T_DETACH, READ_ONCE(conn->an->set.detach_timeout_ms));
	if (conn->attach.state == AFR_LEAVING)
		afr_rdma_tx_detach(conn);
}

/*
 * Called when a detach was not completed in time. A connection that has ended, and from whose send
 * ring the device reads no more, gives up waiting for the peer, to keep the link for the others. A
 * client without an answer to ATTACH does that in two steps: first it stops waiting for the
 * answer, which lets a deferred abort reset TCP; one timeout later it stops waiting for the peer's
 * DETACH. afr_attach_end() invalidates the key before it unpins the ring (PE5), and the channel id
 * is not used again, unless the peer has never learned it. If the peer writes nevertheless, the
 * key is refused and the link is lost.
 *
 * A connection that continues on TCP has to know what has landed, so it does not give up: its link
 * is taken down. But first a server waits until the client's TCP has acknowledged ATTACHED, since
 * a client that has not read ATTACHED cannot leave.
 *
 * If the local DETACH has not even completed, the link is taken down at once.
 */
static void detach_overdue(struct afr_conn *conn)
{
	bool detached = test_bit(AFR_F_DETACHED, &conn->flags);
	bool continues = test_bit(AFR_F_LEAVE_LINK, &conn->flags) && !afr_conn_aborted(conn);

	if (conn->attach.state == AFR_ATTACHING) {
		leave_unanswered(conn);
		return;
	}
	if (detached && continues && conn->server &&
	    afr_frame_tx_attach_step(conn) < AFR_FRAME_ACKED) {
		afr_conn_timer(conn, AFR_T_DETACH, READ_ONCE(conn->an->set.detach_timeout_ms));
		return;
	}
	if (!detached || continues) {
		afr_link_fail(conn->attach.channel.link, AFR_REASON_LINK_DETACH_TIMEOUT);
		return;
	}
	/* the peer may know the id, unless an abort came before ATTACH or ATTACHED was sent */
	if (!afr_conn_aborted(conn) || afr_frame_tx_attach_step(conn) >= AFR_FRAME_SENT) {
		afr_netns_count(conn->an->net, AFR_STAT_DETACH_LATE);
		conn->attach.channel.id_retired = true;
	}
	set_bit(AFR_F_PEER_DETACHED, &conn->flags);
}

/*
 * While the stream is on RDMA, perhaps for hours, the TCP connection is idle, and firewalls and NAT
 * on the path would drop their state. Any frame and its acknowledgment refresh that state. SERVICE
 * only repeats the port, and a peer that does not know the type skips the frame.
 */
static void send_tcp_keepalive(struct afr_conn *conn)
{
	afr_frame_tx_request(conn, AFR_FRAME_SERVICE);
	afr_conn_timer(conn, AFR_T_TCP_KEEPALIVE, READ_ONCE(conn->an->set.keepalive_ms));
}

/*
 * Client: an attach may succeed now. If the next attempt is scheduled, makes it start within @ms
 * milliseconds, and resets the back-off.
 */
static void try_again(struct afr_conn *conn, unsigned int ms)
{
	if (!conn->worker.due[AFR_T_RETRY])
		return;
	conn->attach.tries = 1;
	if (time_after(conn->worker.due[AFR_T_RETRY], jiffies + msecs_to_jiffies(ms)))
		afr_conn_timer(conn, AFR_T_RETRY, ms);
}

/*
 * An RDMA device was added on this host, or a change of GIDs may have made one usable in this
 * namespace. If the connection is detached, a client makes its next attempt soon, and a server
 * announces its port. Only a work item may create the cm listener (afr_cm_listener_port()).
 */
static void device_added(struct afr_conn *conn)
{
	if (conn->server && !afr_conn_in_work_item(conn)) {
		afr_conn_schedule(conn);
		return;
	}
	clear_bit(AFR_F_DEVICE_ADDED, &conn->flags);
	if (conn->attach.state != AFR_DETACHED)
		return;
	if (!conn->server) {
		try_again(conn, 1);
		return;
	}
	WRITE_ONCE(conn->cm_port, afr_cm_listener_port(conn->an, conn->tcp->sk->sk_family));
	if (conn->cm_port)
		afr_frame_tx_request(conn, AFR_FRAME_SERVICE);
}

/**
 * afr_move_rx_service() - handle SERVICE: a device was added at the peer, or TCP is kept alive
 * @conn: connection
 * @frame: parsed SERVICE; a server ignores it
 *
 * Context: connection worker.
 * Return: 0.
 */
int afr_move_rx_service(struct afr_conn *conn, const struct afr_frame *frame)
{
	/* at once only if there was no port: else a peer could force retries without a pause */
	unsigned int ms = conn->peer.port ? READ_ONCE(conn->an->set.attach_retry_ms) : 1;

	lockdep_assert_held(&conn->worker.mutex);
	if (conn->server)
		return 0;
	conn->peer.port = frame->port;
	try_again(conn, ms);
	return 0;
}

static void check_timers(struct afr_conn *conn)
{
	if (afr_conn_timer_due(conn, AFR_T_TCP_KEEPALIVE))
		send_tcp_keepalive(conn);
	if (test_and_clear_bit(AFR_F_RETRY_NOW, &conn->flags)) {
		conn->attach.tries = 0;
		afr_conn_timer(conn, AFR_T_RETRY, 0);
		set_bit(AFR_F_UPGRADE, &conn->flags);
	}
	if (afr_conn_timer_due(conn, AFR_T_RETRY) && conn->attach.state == AFR_DETACHED)
		set_bit(AFR_F_UPGRADE, &conn->flags);
	if (conn->attach.state == AFR_ATTACHING && afr_conn_timer_due(conn, AFR_T_ATTACH))
		afr_attach_overdue(conn);
	if (conn->attach.channel.link && afr_conn_timer_due(conn, AFR_T_DETACH))
		detach_overdue(conn);
}

/**
 * afr_move_run() - take the next step of an attach or a move
 * @conn: negotiated connection
 *
 * Context: connection worker.
 */
void afr_move_run(struct afr_conn *conn)
{
	lockdep_assert_held(&conn->worker.mutex);
	if (test_bit(AFR_F_DEVICE_ADDED, &conn->flags))
		device_added(conn);
	/* before the timers: after a refusal no answer can be overdue */
	if (conn->attach.state == AFR_ATTACHING && test_and_clear_bit(AFR_F_REFUSED, &conn->flags))
		afr_attach_refused(conn, conn->attach.link_reason);
	check_timers(conn);
	/* acquire: if the flag is seen, so is the resume_reason that link_down() stored first */
	if (test_bit_acquire(AFR_F_LINK_DOWN, &conn->flags) && conn->attach.channel.link)
		continue_on_tcp(conn);
	if (conn->attach.state == AFR_ATTACHED)
		check_leave(conn);
	if (conn->attach.state == AFR_LEAVING && test_bit(AFR_F_DETACHED, &conn->flags) &&
	    test_bit(AFR_F_PEER_DETACHED, &conn->flags))
		link_left(conn);

	if (conn->attach.state == AFR_JOINING && test_and_clear_bit(AFR_F_JOINED, &conn->flags))
		afr_attach_joined(conn);
	else if (conn->attach.state == AFR_ATTACHING && conn->tx.seq.fin != AFR_NO_FIN)
		afr_attach_withdraw(conn);
	else if (conn->attach.state == AFR_REQUESTED)
		afr_attach_answer(conn);
	else if (conn->attach.state == AFR_DETACHED && !conn->server)
		afr_attach_start(conn);
}

/**
 * afr_move_check_upgrade() - client: start an attach once enough data was transferred
 * @conn: connection
 *
 * Called often: after sends and receives, and before each afr_move_run(). So it returns early once
 * the attach was decided. With AFRDMA_RDMA_ALWAYS no data is needed.
 *
 * Context: any.
 */
void afr_move_check_upgrade(struct afr_conn *conn)
{
	const struct afr_settings *set = &conn->an->set;

	if (conn->server || test_bit(AFR_F_UPGRADE, &conn->flags) || !afr_conn_negotiated(conn))
		return;
	if (READ_ONCE(conn->policy) != AFRDMA_RDMA_ALWAYS &&
	    READ_ONCE(conn->tx.msgs) < READ_ONCE(set->upgrade_msgs) &&
	    READ_ONCE(conn->tx.seq.written) + READ_ONCE(conn->rx.seq.visible) <
	    READ_ONCE(set->upgrade_bytes))
		return;
	if (!test_and_set_bit(AFR_F_UPGRADE, &conn->flags))
		afr_conn_schedule(conn);
}

/**
 * afr_move_keep_tcp() - apply an administrator's choice of the path
 * @conn: connection
 * @keep: true: leave RDMA and stay on TCP; false: allow RDMA again; if @conn is a client, also
 *	start an attach (a server never starts one)
 *
 * The connection worker carries this out.
 *
 * Context: any.
 * Return: 0, or -EOPNOTSUPP for a connection that is not negotiated.
 */
int afr_move_keep_tcp(struct afr_conn *conn, bool keep)
{
	if (!afr_conn_negotiated(conn))
		return -EOPNOTSUPP;
	if (keep) {
		set_bit(AFR_F_RDMA_DENIED, &conn->flags);
	} else {
		clear_bit(AFR_F_RDMA_DENIED, &conn->flags);
		cmpxchg(&conn->reason, AFR_REASON_OPERATOR, AFR_REASON_NOT_YET);
		set_bit(AFR_F_RETRY_NOW, &conn->flags);
	}
	afr_conn_schedule(conn);
	return 0;
}

/**
 * afr_move_set_policy() - apply the program's choice of the path
 * @conn: connection
 * @policy: enum afrdma_rdma
 *
 * If the connection is started, its worker applies the new policy.
 *
 * Context: process.
 */
void afr_move_set_policy(struct afr_conn *conn, u8 policy)
{
	u8 was = READ_ONCE(conn->policy);

	WRITE_ONCE(conn->policy, policy);
	if (!test_bit(AFR_F_STARTED, &conn->flags))
		return;
	if (policy != AFRDMA_RDMA_NEVER)
		cmpxchg(&conn->reason, AFR_REASON_SOCKET_OPTION, AFR_REASON_NOT_YET);
	if (policy == AFRDMA_RDMA_ALWAYS || (policy != was && was == AFRDMA_RDMA_NEVER))
		set_bit(AFR_F_RETRY_NOW, &conn->flags);
	afr_conn_schedule(conn);
}

/* Is the connection on TCP because no device was found? */
static bool lacks_device(const struct afr_conn *conn)
{
	u32 reason = READ_ONCE(conn->reason);

	if (conn->server)
		return !READ_ONCE(conn->cm_port);
	return reason == AFR_REASON_NETNS || reason == AFR_REASON_NO_ROUTE;
}

/**
 * afr_move_device_added() - let connections on TCP use an RDMA device
 * @added: a device was added; or, if false, the GIDs of a device have changed: then only
 *	connections matter that have found no device before
 *
 * Schedules the worker of started connections, see device_added().
 *
 * Context: process.
 */
void afr_move_device_added(bool added)
{
	struct afr_conn *conn;
	unsigned long id = 0;

	while ((conn = afr_conn_next(NULL, id))) {
		id = conn->id + 1;
		if (test_bit(AFR_F_STARTED, &conn->flags) && (added || lacks_device(conn))) {
			set_bit(AFR_F_DEVICE_ADDED, &conn->flags);
			afr_conn_schedule(conn);
		}
		afr_conn_put(conn);
		cond_resched();
	}
}
