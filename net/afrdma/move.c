// SPDX-License-Identifier: GPL-2.0
/*
 * Attach, move, leave.
 *
 * Lifetime of what the peer's device writes to: the receive ring's MR and our slot
 * are made in attach_begin() before their names are told, and go in
 * attach_end() only when the peer's DETACH was polled, or the link is fenced and
 * drained, or they were never told (PE5). attach_end() is the only place.
 */
#include "move.h"

#include <net/dst.h>
#include <net/sock.h>

#include "control.h"
#include "path_rdma.h"
#include "stats.h"
#include "trace.h"

#define LINK_POLL_MS	20		/* server: the passive end comes up a moment later */
#define RETRY_MS	1000		/* client: first back-off, doubled per failure */
#define RETRY_DOUBLINGS	6

static void set_reason(struct afr_conn *conn, enum afr_reason reason)
{
	WRITE_ONCE(conn->reason, reason);
	trace_afrdma_conn_upgrade(conn->id, conn->attach, reason);
}

/* An attempt has ended on TCP: say why, and when the next may be. */
static void attach_failed(struct afr_conn *conn, enum afr_reason reason)
{
	unsigned int shift = min_t(unsigned int, conn->attach_tries, RETRY_DOUBLINGS);

	set_reason(conn, reason);
	afr_stat_inc(conn->an->net, AFR_STAT_UPGRADE_FAILED);
	afr_conn_timer(conn, AFR_T_ATTACH, 0);
	if (!conn->server)
		afr_conn_timer(conn, AFR_T_RETRY, RETRY_MS << shift);
	conn->attach_tries++;
}

/* Pages may leave a ring while it is not pinned, under the lock of its books: pin under it. */
static int pin_rings(struct afr_conn *conn)
{
	int err;

	spin_lock_bh(&conn->tx_lock);
	conn->snd.pinned = true;
	spin_lock(&conn->rx_lock);
	conn->rcv.pinned = true;
	spin_unlock(&conn->rx_lock);
	spin_unlock_bh(&conn->tx_lock);
	err = afr_mem_pin(&conn->snd);
	return err ? err : afr_mem_pin(&conn->rcv);
}

static enum afr_reason reason_of(int err)
{
	switch (err) {
	case -EDQUOT:		return AFR_REASON_RING_LIMIT;
	case -ENOMEM:		return AFR_REASON_NO_MEMORY;
	case -EOPNOTSUPP:	return AFR_REASON_DMA_SYNC;
	case -ENOSPC:		return AFR_REASON_NO_SLOT;
	case -ENOTCONN:		return AFR_REASON_LINK_BUSY;
	default:		return AFR_REASON_MR_FAILED;
	}
}

/* Nobody writes to our ring any more, nobody reads our send ring: give back all of an attach. */
static void attach_end(struct afr_conn *conn)
{
	struct afr_link *link = conn->port.link;

	/* from here on no frame is built from what goes away below */
	spin_lock_bh(&conn->tx_lock);
	conn->may_post = false;
	conn->attach = AFR_DETACHED;
	clear_bit(AFR_WANT_ATTACH, &conn->want);
	clear_bit(AFR_WANT_ATTACHED, &conn->want);
	clear_bit(AFR_WANT_MOVE, &conn->want);
	spin_unlock_bh(&conn->tx_lock);
	if (link)
		afr_port_leave(&conn->port);
	afr_mr_free(conn->rcv_mr);
	afr_mr_free(conn->snd_mr);
	conn->rcv_mr = NULL;
	conn->snd_mr = NULL;
	afr_mem_unpin(&conn->snd);
	afr_mem_unpin(&conn->rcv);
	conn->detach_posted = false;
	clear_bit(AFR_F_LINK_DOWN, &conn->flags);
	clear_bit(AFR_F_PEER_DETACHED, &conn->flags);
	clear_bit(AFR_F_DETACHED, &conn->flags);
	afr_conn_timer(conn, AFR_T_DETACH, 0);
}

/* Slot, rings and keys on @link, whose reference we take over. The epoch is open on success. */
static int attach_begin(struct afr_conn *conn, struct afr_link *link)
{
	int err;

	err = afr_port_join(&conn->port, link, &afr_path_rdma_port_ops);
	afr_link_put(link);	/* the port has its own */
	if (err)
		return err;
	err = pin_rings(conn);
	if (err)
		return err;
	conn->rcv_mr = afr_mr_register(conn->port.link, &conn->rcv, true);
	if (IS_ERR(conn->rcv_mr)) {
		err = PTR_ERR(conn->rcv_mr);
		conn->rcv_mr = NULL;
		return err;
	}
	conn->snd_mr = afr_mr_register(conn->port.link, &conn->snd, false);
	if (IS_ERR(conn->snd_mr)) {
		err = PTR_ERR(conn->snd_mr);
		conn->snd_mr = NULL;
		return err;
	}
	conn->snd_view = *afr_mr_view(conn->snd_mr);
	return 0;
}

static void epoch_open(struct afr_conn *conn)
{
	u32 epoch;

	clear_bit(AFR_F_PEER_LEFT, &conn->flags);
	spin_lock_bh(&conn->tx_lock);
	epoch = afr_tx_open(&conn->tx);
	spin_lock(&conn->rx_lock);
	afr_rx_open(&conn->rx, epoch);
	spin_unlock(&conn->rx_lock);
	spin_unlock_bh(&conn->tx_lock);
}

/*
 * Leave the epoch in both directions. Returns X, what RESUME would say. Only
 * writing RESUME gives the cursor back to CREDIT frames; without one (@resume
 * false: the peer never used the epoch) that is now.
 */
static u64 epoch_close(struct afr_conn *conn, bool resume)
{
	u64 received;

	spin_lock_bh(&conn->tx_lock);
	conn->may_post = false;
	afr_tx_leave(&conn->tx);
	spin_lock(&conn->rx_lock);
	received = conn->rx.open ? afr_rx_close(&conn->rx) : conn->rx.visible;
	conn->credit_imm = conn->credit_imm && resume;
	spin_unlock(&conn->rx_lock);
	spin_unlock_bh(&conn->tx_lock);
	return received;
}

/* What forbids RDMA for this connection, although the peer speaks it (B5). */
static enum afr_reason forbidden(struct afr_conn *conn)
{
	struct sock *isk = conn->inner->sk;
	enum afr_reason reason = AFR_REASON_NONE;
	struct dst_entry *dst;

	if (!READ_ONCE(conn->an->set.upgrade))
		return AFR_REASON_UPGRADE_OFF;
	if (conn->an->net != &init_net)
		return AFR_REASON_NETNS;
	if (rcu_access_pointer(isk->sk_filter))
		return AFR_REASON_SOCKET_FILTER;
#ifdef CONFIG_XFRM
	if (rcu_access_pointer(isk->sk_policy[0]) || rcu_access_pointer(isk->sk_policy[1]))
		return AFR_REASON_XFRM_POLICY;
	rcu_read_lock();
	dst = __sk_dst_get(isk);
	if (dst && dst->xfrm)
		reason = AFR_REASON_XFRM_POLICY;
	rcu_read_unlock();
#endif
	return reason;
}

static void joined(struct afr_join *join, struct afr_link *link, enum afr_reason reason)
{
	struct afr_conn *conn = container_of(join, struct afr_conn, join);

	conn->join_link = link;
	conn->join_reason = reason;
	smp_mb__before_atomic();	/* the answer is there before the work looks for it */
	set_bit(AFR_F_JOINED, &conn->flags);
	afr_conn_schedule(conn);
}

static bool quiet(struct afr_conn *conn)
{
	return test_bit(AFR_F_ABORT, &conn->flags) || test_bit(AFR_F_ORPHAN, &conn->flags) ||
	       conn->tx.fin != AFR_NO_FIN;
}

/* Client: the next epoch may begin only when both ends have left the last one (PM2). */
static void client_start(struct afr_conn *conn)
{
	enum afr_reason reason = forbidden(conn);

	if (!test_bit(AFR_F_UPGRADE, &conn->flags) || conn->due[AFR_T_RETRY] || quiet(conn))
		return;
	if (conn->tx.where != AFR_ON_TCP || test_bit(AFR_WANT_RESUME, &conn->want) ||
	    (conn->tx.epoch && !test_bit(AFR_F_PEER_LEFT, &conn->flags)))
		return;
	afr_stat_inc(conn->an->net, AFR_STAT_UPGRADE_TRIED);
	if (!reason && !conn->peer.port)
		reason = AFR_REASON_PEER_NO_SERVICE;
	if (reason) {
		attach_failed(conn, reason);
		return;
	}
	conn->attach = AFR_JOINING;
	conn->join.joined = joined;
	afr_group_join(conn->an, &conn->peer, &conn->join);
}

static void client_joined(struct afr_conn *conn)
{
	struct afr_link *link = conn->join_link;
	int err;

	conn->join_link = NULL;
	if (!link) {
		conn->attach = AFR_DETACHED;
		attach_failed(conn, conn->join_reason);
		return;
	}
	if (quiet(conn)) {
		afr_link_put(link);
		conn->attach = AFR_DETACHED;
		return;
	}
	err = attach_begin(conn, link);
	if (err) {
		attach_end(conn);
		attach_failed(conn, reason_of(err));
		return;
	}
	epoch_open(conn);
	conn->attach = AFR_ATTACHING;
	afr_control_want(conn, AFR_WANT_ATTACH);
	afr_conn_timer(conn, AFR_T_ATTACH, READ_ONCE(conn->an->set.attach_timeout_ms));
}

static void server_refuse(struct afr_conn *conn, enum afr_reason reason)
{
	epoch_close(conn, false);
	set_bit(AFR_F_PEER_LEFT, &conn->flags);
	attach_end(conn);
	attach_failed(conn, reason);
	conn->attach_reason = reason;
	afr_control_want(conn, AFR_WANT_ATTACHED);
	afr_control_want(conn, AFR_WANT_CREDIT);	/* what the closed books counted as told */
}

/* Both ends know where to write from here on. */
static void attached(struct afr_conn *conn, const struct afr_frame *frame)
{
	conn->attach = AFR_ATTACHED;
	conn->attach_tries = 0;
	conn->port.peer_slot = frame->attach.slot;
	conn->peer_addr = frame->attach.addr;
	conn->peer_rkey = frame->attach.rkey;
	conn->peer_span = frame->attach.span;
	afr_conn_timer(conn, AFR_T_ATTACH, 0);
	set_reason(conn, AFR_REASON_NONE);
	afr_stat_inc(conn->an->net, AFR_STAT_UPGRADE_DONE);
}

/* Server: answer the ATTACH, as soon as our end of the link it names is up. */
static void server_answer(struct afr_conn *conn)
{
	const struct afr_frame *req = &conn->attach_req;
	bool late = afr_conn_timer_due(conn, AFR_T_ATTACH);
	struct afr_link *link;
	int err;

	link = afr_group_find_link(conn->an, &conn->peer, req->attach.link,
				   req->attach.flags & AFR_ATTACH_ACTIVE);
	if (link && test_bit(AFR_F_PEER_LEFT, &conn->flags)) {
		afr_link_put(link);	/* the client has lost this link meanwhile */
		link = NULL;
		late = true;
	}
	if (!link && !late && !quiet(conn)) {
		afr_conn_timer(conn, AFR_T_RETRY, LINK_POLL_MS);
		return;
	}
	if (!link) {
		server_refuse(conn, quiet(conn) ? AFR_REASON_CLOSING : AFR_REASON_UNKNOWN_LINK);
		return;
	}
	err = attach_begin(conn, link);
	if (err) {
		server_refuse(conn, reason_of(err));
		return;
	}
	conn->attach_reason = AFR_REASON_NONE;
	attached(conn, req);
	afr_control_want(conn, AFR_WANT_ATTACHED);
}

/* The cursor in ATTACH and ATTACHED is news of the reader like any other. */
static int take_cursor(struct afr_conn *conn, u64 consumed)
{
	int bad;

	spin_lock_bh(&conn->tx_lock);
	bad = afr_tx_credit(&conn->tx, consumed);
	clear_bit(AFR_F_BLOCKED_TOLD, &conn->flags);
	spin_unlock_bh(&conn->tx_lock);
	return bad;
}

/**
 * afr_move_attach() - ATTACH came
 * @conn: connection, we are the server
 * @frame: parsed ATTACH
 *
 * Return: 0 or why the connection ends.
 */
int afr_move_attach(struct afr_conn *conn, const struct afr_frame *frame)
{
	enum afr_reason reason = forbidden(conn);

	if (!conn->server || conn->attach != AFR_DETACHED ||
	    frame->attach.epoch <= conn->tx.epoch || conn->tx.where != AFR_ON_TCP ||
	    frame->attach.ring != conn->tx.window || frame->attach.reason ||
	    take_cursor(conn, frame->attach.consumed))
		return AFR_REASON_ATTACH_BAD;
	conn->attach_req = *frame;
	afr_stat_inc(conn->an->net, AFR_STAT_UPGRADE_TRIED);
	/* the client may have given up epochs that it never told us of */
	spin_lock_bh(&conn->tx_lock);
	conn->tx.epoch = frame->attach.epoch - 1;
	spin_unlock_bh(&conn->tx_lock);
	epoch_open(conn);
	if (reason) {
		server_refuse(conn, reason);
		return 0;
	}
	conn->attach = AFR_REQUESTED;
	afr_conn_timer(conn, AFR_T_ATTACH, READ_ONCE(conn->an->set.attach_timeout_ms));
	afr_conn_timer(conn, AFR_T_RETRY, 0);
	return 0;
}

static void client_refused(struct afr_conn *conn, enum afr_reason reason)
{
	epoch_close(conn, false);
	set_bit(AFR_F_PEER_LEFT, &conn->flags);
	attach_end(conn);
	attach_failed(conn, reason);
	afr_control_want(conn, AFR_WANT_CREDIT);	/* what the closed books counted as told */
}

/**
 * afr_move_attached() - ATTACHED came
 * @conn: connection, we are the client
 * @frame: parsed ATTACHED
 *
 * Return: 0 or why the connection ends.
 */
int afr_move_attached(struct afr_conn *conn, const struct afr_frame *frame)
{
	int bad;

	if (conn->server || frame->attach.epoch != conn->tx.epoch)
		return AFR_REASON_ATTACH_BAD;
	if (conn->attach != AFR_ATTACHING) {	/* the link died meanwhile: RESUME tells the peer */
		if (frame->attach.reason)	/* which then has nothing to say RESUME for */
			set_bit(AFR_F_PEER_LEFT, &conn->flags);
		return conn->tx.open ? AFR_REASON_ATTACH_BAD : 0;
	}
	if (frame->attach.reason) {
		client_refused(conn, frame->attach.reason);
		return 0;
	}
	if (frame->attach.ring != conn->tx.window ||
	    frame->attach.link != afr_link_id(conn->port.link))
		return AFR_REASON_ATTACH_BAD;

	bad = take_cursor(conn, frame->attach.consumed);
	if (bad)
		return bad;
	attached(conn, frame);
	spin_lock_bh(&conn->tx_lock);
	spin_lock(&conn->rx_lock);
	conn->credit_imm = true;
	spin_unlock(&conn->rx_lock);
	conn->may_post = !test_bit(AFR_F_LINK_DOWN, &conn->flags);
	spin_unlock_bh(&conn->tx_lock);
	return 0;
}

/**
 * afr_move_move() - MOVE came: the peer's direction is on the link
 * @conn: connection
 * @frame: parsed MOVE
 *
 * Return: 0 or why the connection ends.
 */
int afr_move_move(struct afr_conn *conn, const struct afr_frame *frame)
{
	bool moved;
	int bad;

	spin_lock_bh(&conn->rx_lock);
	moved = conn->rx.moved;
	bad = afr_rx_move(&conn->rx, frame->move.epoch, frame->move.start);
	moved = !moved && conn->rx.moved;
	spin_unlock_bh(&conn->rx_lock);
	if (bad || !moved)
		return bad;
	afr_stat_inc(conn->an->net, AFR_STAT_MOVE_RX);
	trace_afrdma_conn_move(conn->id, false, AFR_ON_LINK, frame->move.epoch, frame->move.start);
	afr_conn_readable(conn);
	return 0;
}

/**
 * afr_move_resume() - RESUME came: the peer has left the link
 * @conn: connection
 * @frame: parsed RESUME
 *
 * The peer's end is fenced, so nothing of ours can land any more; its link is
 * useless to us, whether we had noticed or not.
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
	if (current_epoch && conn->port.joined)
		afr_link_fail(conn->port.link, AFR_REASON_LINK_PEER_RESUME);
	afr_conn_writable(conn);
	return 0;
}

/* The link is fenced and drained: say what we have, and go on without it (PM3). */
static void link_lost(struct afr_conn *conn)
{
	enum afr_reason reason = conn->resume_reason;
	/* an ATTACH that was not written yet never will be: the peer knows nothing of the epoch */
	bool told = !test_and_clear_bit(AFR_WANT_ATTACH, &conn->want);

	conn->resume_epoch = conn->tx.epoch;
	conn->resume_received = epoch_close(conn, told);
	attach_end(conn);
	if (!told) {
		set_bit(AFR_F_PEER_LEFT, &conn->flags);
		afr_control_want(conn, AFR_WANT_CREDIT);	/* counted as told */
	}
	if (told && !test_bit(AFR_F_ABORTED, &conn->flags)) {
		afr_control_want(conn, AFR_WANT_RESUME);
		afr_stat_inc(conn->an->net, AFR_STAT_RESUME_RX);
		trace_afrdma_conn_move(conn->id, false, AFR_ON_TCP, conn->resume_epoch,
				       conn->resume_received);
	}
	attach_failed(conn, reason);
}

/* Both ends have posted their last write, and polled the other's: nothing is left on the link. */
static void link_left(struct afr_conn *conn)
{
	epoch_close(conn, false);
	attach_end(conn);
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
		afr_group_join_cancel(&conn->join);
		if (test_and_clear_bit(AFR_F_JOINED, &conn->flags) && conn->join_link)
			afr_link_put(conn->join_link);
		conn->join_link = NULL;
		conn->attach = AFR_DETACHED;
		return;
	case AFR_REQUESTED:
		server_refuse(conn, AFR_REASON_CLOSING);
		return;
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
	if (conn->attach != AFR_LEAVING || conn->detach_posted)
		return;

	spin_lock_bh(&conn->tx_lock);
	conn->detach_posted = !afr_port_detach(&conn->port);
	if (conn->detach_posted)
		conn->may_post = false;
	spin_unlock_bh(&conn->tx_lock);
}

static void check_timers(struct afr_conn *conn)
{
	if (afr_conn_timer_due(conn, AFR_T_RETRY) && conn->attach == AFR_DETACHED)
		set_bit(AFR_F_UPGRADE, &conn->flags);
	if (conn->attach == AFR_ATTACHING && afr_conn_timer_due(conn, AFR_T_ATTACH))
		set_reason(conn, AFR_REASON_ATTACH_TIMEOUT);	/* the answer may still come */
	if (conn->port.link && afr_conn_timer_due(conn, AFR_T_DETACH))
		afr_link_fail(conn->port.link, AFR_REASON_LINK_DETACH_TIMEOUT);
}

/**
 * afr_move_run() - take the next step
 * @conn: framed connection
 *
 * Context: the work.
 */
void afr_move_run(struct afr_conn *conn)
{
	check_timers(conn);
	if (test_bit(AFR_F_LINK_DOWN, &conn->flags) && conn->port.link)
		link_lost(conn);
	if (conn->attach == AFR_LEAVING && test_bit(AFR_F_DETACHED, &conn->flags) &&
	    test_bit(AFR_F_PEER_DETACHED, &conn->flags))
		link_left(conn);

	if (conn->attach == AFR_JOINING && test_and_clear_bit(AFR_F_JOINED, &conn->flags))
		client_joined(conn);
	else if (conn->attach == AFR_REQUESTED)
		server_answer(conn);
	else if (conn->attach == AFR_DETACHED && !conn->server)
		client_start(conn);
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
	if (READ_ONCE(conn->msgs) < READ_ONCE(set->upgrade_msgs) &&
	    READ_ONCE(conn->tx.written) + READ_ONCE(conn->rx.visible) <
	    READ_ONCE(set->upgrade_bytes))
		return;
	if (!test_and_set_bit(AFR_F_UPGRADE, &conn->flags))
		afr_conn_schedule(conn);
}
