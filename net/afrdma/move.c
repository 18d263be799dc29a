// SPDX-License-Identifier: GPL-2.0
/* Move to a link and off it again: MOVE, RESUME, DETACH. */
#include "move.h"

#include <uapi/linux/af_rdma.h>

#include "attach.h"
#include "control.h"
#include "fallback.h"
#include "path_rdma.h"
#include "rings.h"
#include "stats.h"
#include "trace.h"

#define STABLE	(10 * HZ)	/* a link that carried a connection so long was a good one */

/**
 * afr_move_move() - MOVE came: the peer's direction is on the link
 * @conn: connection
 * @frame: parsed MOVE
 *
 * Return: 0 or why the connection ends.
 */
int afr_move_move(struct afr_conn *conn, const struct afr_frame *frame)
{
	bool moved, all;
	int bad;

	spin_lock_bh(&conn->rx_lock);
	moved = conn->rx.moved;
	bad = afr_rx_move(&conn->rx, frame->move.epoch, frame->move.start);
	moved = !moved && conn->rx.moved;
	all = conn->rx.visible == conn->rx.fin;
	spin_unlock_bh(&conn->rx_lock);
	if (bad || !moved)
		return bad;
	afr_stat_inc(conn->an->net, AFR_STAT_MOVE_RX);
	trace_afrdma_conn_move(conn->id, false, AFR_ON_LINK, frame->move.epoch, frame->move.start);
	afr_conn_readable(conn);
	if (all)
		afr_conn_changed(conn);		/* FIN came before */
	return 0;
}

/**
 * afr_move_resume() - RESUME came: the peer has left the link
 * @conn: connection
 * @frame: parsed RESUME
 *
 * The peer's end is fenced, so nothing of ours can land any more; its link is
 * useless to us, whether we had noticed or not. Unless we leave a good one together.
 *
 * Return: 0 or why the connection ends.
 */
int afr_move_resume(struct afr_conn *conn, const struct afr_frame *frame)
{
	bool current_epoch = frame->resume.epoch == conn->tx.epoch, was;
	int bad;

	spin_lock_bh(&conn->tx_lock);
	was = conn->tx.where != AFR_ON_TCP;
	if (current_epoch)
		conn->may_post = false;
	bad = afr_tx_resume(&conn->tx, frame->resume.epoch, frame->resume.received,
			    frame->resume.consumed);
	was = was && conn->tx.where == AFR_ON_TCP;
	conn->moves += was;
	clear_bit(AFR_F_BLOCKED_TOLD, &conn->flags);
	spin_unlock_bh(&conn->tx_lock);
	if (bad)
		return bad;
	if (was) {
		afr_stat_inc(conn->an->net, AFR_STAT_RESUME_TX);
		trace_afrdma_conn_move(conn->id, true, AFR_ON_TCP, frame->resume.epoch,
				       conn->tx.sent);
	}
	if (current_epoch)
		set_bit(AFR_F_PEER_LEFT, &conn->flags);
	if (current_epoch && conn->port.joined && !test_bit(AFR_F_LEAVE, &conn->flags) &&
	    !(test_bit(AFR_F_PEER_DETACHED, &conn->flags) && READ_ONCE(conn->detach_posted)))
		afr_link_fail(conn->port.link, AFR_REASON_LINK_PEER_RESUME);
	if (current_epoch)
		afr_fallback_peer_left(conn, frame->resume.reason);
	afr_rings_tell_sender(conn);
	afr_conn_writable(conn);
	return 0;
}

/*
 * Off the link, for the program to notice nothing: say what we have, and go on with
 * TCP (PM3). Nothing can land any more: the link is fenced and drained, or the
 * peer's DETACH was polled (PM7).
 */
static void go_on_with_tcp(struct afr_conn *conn)
{
	bool was_there = conn->attach == AFR_ATTACHED || conn->attach == AFR_LEAVING;
	enum afr_reason reason = conn->resume_reason;
	/* an ATTACH that was not written yet never will be: the peer knows nothing of the epoch */
	bool told = !afr_attach_unsaid(conn);
	u64 received;

	conn->resume_epoch = conn->tx.epoch;
	received = afr_attach_close_epoch(conn, told);
	afr_attach_end(conn);
	if (!told) {
		set_bit(AFR_F_PEER_LEFT, &conn->flags);
		afr_control_want(conn, AFR_WANT_CREDIT);	/* counted as told */
	}
	if (told && !test_bit(AFR_F_ABORTED, &conn->flags)) {
		afr_control_want(conn, AFR_WANT_RESUME);
		afr_stat_inc(conn->an->net, AFR_STAT_RESUME_RX);
		trace_afrdma_conn_move(conn->id, false, AFR_ON_TCP, conn->resume_epoch, received);
	}
	if (was_there && time_after(jiffies, conn->attached_at + STABLE))
		conn->attach_tries = 0;
	afr_attach_left(conn, reason);
}

/* Both ends have posted their last write, and polled the other's: nothing is left on the link. */
static void link_left(struct afr_conn *conn)
{
	if (test_bit(AFR_F_LEAVE, &conn->flags)) {
		go_on_with_tcp(conn);
		return;
	}
	afr_attach_close_epoch(conn, false);
	afr_attach_end(conn);
}

/* All is said and answered: who detaches now does so because of that. */
static bool ending(struct afr_conn *conn)
{
	return conn->rx.eof_told && conn->tx.fin != AFR_NO_FIN;
}

/*
 * Leave a link that lives on, for the others on it: something bars us from RDMA now,
 * or the peer leaves (PM7).
 */
static void consider_leaving(struct afr_conn *conn)
{
	enum afr_reason reason = afr_fallback_barred(conn);

	if (!reason && test_bit(AFR_F_PEER_DETACHED, &conn->flags) && !ending(conn))
		reason = AFR_REASON_LINK_PEER_RESUME;
	if (!reason)
		return;
	spin_lock_bh(&conn->tx_lock);
	conn->resume_reason = reason;
	spin_unlock_bh(&conn->tx_lock);
	set_bit(AFR_F_LEAVE, &conn->flags);
	afr_move_detach(conn);
}

/**
 * afr_move_detach() - leave the link at the end of the connection
 * @conn: connection
 *
 * Context: the work.
 */
void afr_move_detach(struct afr_conn *conn)
{
	switch (conn->attach) {
	case AFR_JOINING:
		afr_attach_cancel(conn);
		return;
	case AFR_REQUESTED:
		afr_attach_refuse(conn, AFR_REASON_CLOSING);
		return;
	case AFR_ATTACHING:
		afr_attach_take_back(conn);
		if (conn->attach == AFR_DETACHED)
			return;
		break;
	case AFR_ATTACHED:
		conn->attach = AFR_LEAVING;
		break;
	case AFR_DETACHED:
		return;
	default:
		break;
	}
	if (!conn->due[AFR_T_DETACH])
		afr_conn_timer(conn, AFR_T_DETACH, READ_ONCE(conn->an->set.detach_timeout_ms));
	if (conn->attach == AFR_LEAVING)
		afr_path_rdma_detach(conn);
}

/*
 * The peer does not say that it has written its last. Who has said all needs the link no more,
 * and the others on it do: so take the key away, which afr_attach_end() does before the ring goes
 * (PE5), and leave the slot to nobody. Should the peer write all the same, its device is refused,
 * and the link is lost after all. Who goes on by TCP has to know what landed: not so for him.
 */
static void detach_overdue(struct afr_conn *conn)
{
	if (conn->attach != AFR_LEAVING || test_bit(AFR_F_LEAVE, &conn->flags) ||
	    !test_bit(AFR_F_DETACHED, &conn->flags)) {
		afr_link_fail(conn->port.link, AFR_REASON_LINK_DETACH_TIMEOUT);
		return;
	}
	afr_stat_inc(conn->an->net, AFR_STAT_DETACH_LATE);
	conn->port.forsaken = true;
	set_bit(AFR_F_PEER_DETACHED, &conn->flags);
}

/*
 * A stream by RDMA leaves its TCP connection idle, and what keeps state of that on the way
 * (firewalls, NAT) forgets it, for hours of work perhaps. Any frame and its acknowledgment remind
 * them; SERVICE says nothing new, and a peer that does not know it skips it.
 */
static void say_alive(struct afr_conn *conn)
{
	afr_control_want(conn, AFR_WANT_SERVICE);
	afr_conn_timer(conn, AFR_T_ALIVE, READ_ONCE(conn->an->set.keepalive_ms));
}

/* Client: what was tried in vain may succeed, so in @ms at most; the back-off begins anew. */
static void try_again(struct afr_conn *conn, unsigned int ms)
{
	if (!conn->due[AFR_T_RETRY])
		return;		/* nothing was tried, or something is just now */
	conn->attach_tries = 1;
	if (time_after(conn->due[AFR_T_RETRY], jiffies + msecs_to_jiffies(ms)))
		afr_conn_timer(conn, AFR_T_RETRY, ms);
}

/*
 * An RDMA device came here: the client tries again soon, the server tells. A listener has to be
 * made in a worker: afr_service_port().
 */
static void device_here(struct afr_conn *conn)
{
	if (conn->server && !afr_conn_in_worker(conn)) {
		afr_conn_schedule(conn);
		return;
	}
	clear_bit(AFR_F_DEVICE, &conn->flags);
	if (conn->attach != AFR_DETACHED)
		return;
	if (!conn->server) {
		try_again(conn, 1);
		return;
	}
	WRITE_ONCE(conn->my_port, afr_service_port(conn->an, conn->inner->sk->sk_family));
	if (conn->my_port)
		afr_control_want(conn, AFR_WANT_SERVICE);
}

/**
 * afr_move_service() - SERVICE came: the peer has a device, which it had not before
 * @conn: connection
 * @frame: parsed SERVICE; means nothing to a server
 *
 * Return: 0.
 */
int afr_move_service(struct afr_conn *conn, const struct afr_frame *frame)
{
	/* at once the first time only: the peer cannot make us try without a pause */
	unsigned int ms = conn->peer.port ? READ_ONCE(conn->an->set.attach_retry_ms) : 1;

	if (conn->server)
		return 0;
	conn->peer.port = frame->port;
	try_again(conn, ms);
	return 0;
}

static void check_timers(struct afr_conn *conn)
{
	if (afr_conn_timer_due(conn, AFR_T_ALIVE))
		say_alive(conn);
	if (test_and_clear_bit(AFR_F_RETRY_NOW, &conn->flags)) {
		conn->attach_tries = 0;
		afr_conn_timer(conn, AFR_T_RETRY, 0);
		set_bit(AFR_F_UPGRADE, &conn->flags);
	}
	if (afr_conn_timer_due(conn, AFR_T_RETRY) && conn->attach == AFR_DETACHED)
		set_bit(AFR_F_UPGRADE, &conn->flags);
	if (conn->attach == AFR_ATTACHING && afr_conn_timer_due(conn, AFR_T_ATTACH))
		afr_attach_overdue(conn);
	if (conn->port.link && afr_conn_timer_due(conn, AFR_T_DETACH))
		detach_overdue(conn);
}

/**
 * afr_move_run() - take the next step
 * @conn: framed connection
 *
 * Context: the work.
 */
void afr_move_run(struct afr_conn *conn)
{
	if (test_bit(AFR_F_DEVICE, &conn->flags))
		device_here(conn);
	/* first: who was refused waits for nothing that could be overdue */
	if (conn->attach == AFR_ATTACHING && test_and_clear_bit(AFR_F_REFUSED, &conn->flags))
		afr_attach_refused(conn, conn->join_reason);
	check_timers(conn);
	if (test_bit(AFR_F_LINK_DOWN, &conn->flags) && conn->port.link)
		go_on_with_tcp(conn);
	if (conn->attach == AFR_ATTACHED)
		consider_leaving(conn);
	if (conn->attach == AFR_LEAVING && test_bit(AFR_F_DETACHED, &conn->flags) &&
	    test_bit(AFR_F_PEER_DETACHED, &conn->flags))
		link_left(conn);

	if (conn->attach == AFR_JOINING && test_and_clear_bit(AFR_F_JOINED, &conn->flags))
		afr_attach_joined(conn);
	else if (conn->attach == AFR_ATTACHING && conn->tx.fin != AFR_NO_FIN)
		afr_attach_take_back(conn);
	else if (conn->attach == AFR_REQUESTED)
		afr_attach_answer(conn);
	else if (conn->attach == AFR_DETACHED && !conn->server)
		afr_attach_start(conn);
}

/**
 * afr_move_consider() - has the connection moved enough to deserve a link?
 * @conn: connection
 *
 * Context: any; called after every send and receive, so cheap when the answer was
 * given before.
 */
void afr_move_consider(struct afr_conn *conn)
{
	const struct afr_settings *set = &conn->an->set;

	if (conn->server || test_bit(AFR_F_UPGRADE, &conn->flags) || !afr_conn_framed(conn))
		return;
	if (READ_ONCE(conn->wish) != AFRDMA_RDMA_ALWAYS &&
	    READ_ONCE(conn->msgs) < READ_ONCE(set->upgrade_msgs) &&
	    READ_ONCE(conn->tx.written) + READ_ONCE(conn->rx.visible) <
	    READ_ONCE(set->upgrade_bytes))
		return;
	if (!test_and_set_bit(AFR_F_UPGRADE, &conn->flags))
		afr_conn_schedule(conn);
}

/**
 * afr_move_keep_tcp() - an administrator says where a connection shall be
 * @conn: connection
 * @keep: true: off RDMA and not there again; false: there again, if we are the client,
 *	whose part it is to begin
 *
 * Context: any. The work does it.
 * Return: 0, or -EOPNOTSUPP for a connection that is not framed.
 */
int afr_move_keep_tcp(struct afr_conn *conn, bool keep)
{
	if (!afr_conn_framed(conn))
		return -EOPNOTSUPP;
	if (keep) {
		set_bit(AFR_F_KEEP_TCP, &conn->flags);
	} else {
		clear_bit(AFR_F_KEEP_TCP, &conn->flags);
		cmpxchg(&conn->reason, AFR_REASON_OPERATOR, AFR_REASON_NOT_YET);
		set_bit(AFR_F_RETRY_NOW, &conn->flags);
	}
	afr_conn_schedule(conn);
	return 0;
}

/**
 * afr_move_set_wish() - the program says where its connection shall be
 * @conn: connection
 * @wish: enum afrdma_rdma
 *
 * Context: process. Of a connection that lives, the work does it.
 */
void afr_move_set_wish(struct afr_conn *conn, u8 wish)
{
	u8 was = READ_ONCE(conn->wish);

	WRITE_ONCE(conn->wish, wish);
	if (!test_bit(AFR_F_STARTED, &conn->flags))
		return;
	if (wish != AFRDMA_RDMA_NEVER)
		cmpxchg(&conn->reason, AFR_REASON_SOCKET_OPTION, AFR_REASON_NOT_YET);
	if (wish == AFRDMA_RDMA_ALWAYS || (wish != was && was == AFRDMA_RDMA_NEVER))
		set_bit(AFR_F_RETRY_NOW, &conn->flags);
	afr_conn_schedule(conn);
}

/**
 * afr_move_device_came() - an RDMA device came
 *
 * Connections on TCP need not stay there: the client tries again, the server tells its client.
 *
 * Context: process. The work of each connection does it.
 */
void afr_move_device_came(void)
{
	struct afr_conn *conn;
	unsigned long id = 0;

	while ((conn = afr_conn_next(NULL, id))) {
		id = conn->id + 1;
		if (test_bit(AFR_F_STARTED, &conn->flags)) {
			set_bit(AFR_F_DEVICE, &conn->flags);
			afr_conn_schedule(conn);
		}
		afr_conn_put(conn);
	}
}
