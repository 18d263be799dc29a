// SPDX-License-Identifier: GPL-2.0
/*
 * Attach to a link.
 *
 * Lifetime of what the peer's device writes to: the receive ring's MR and our slot
 * are made in attach_begin() before their names are told, and go in
 * afr_attach_end() only when the peer's DETACH was polled, or the link is fenced and
 * drained, or they were never told (PE5). afr_attach_end() is the only place.
 */
#include "attach.h"

#include "control.h"
#include "fallback.h"
#include "path_rdma.h"
#include "rings.h"
#include "route.h"
#include "stats.h"
#include "trace.h"

#define LINK_POLL_MS	20		/* server: the passive end comes up a moment later */
#define RETRY_DOUBLINGS	6		/* client: of the back-off, one per failure */

/*
 * On TCP for now: when the next attempt may be. The first link that is lost is replaced at
 * once. What fails again soon waits, longer each time: a link that comes up and carries
 * nothing must not stall a stream for ever.
 */
static void back_off(struct afr_conn *conn)
{
	unsigned int tries = conn->attach_tries;
	unsigned int ms = READ_ONCE(conn->an->set.attach_retry_ms);

	afr_conn_timer(conn, AFR_T_ATTACH, 0);
	if (!conn->server && tries)
		afr_conn_timer(conn, AFR_T_RETRY, ms << min(tries - 1, RETRY_DOUBLINGS));
	conn->attach_tries = min(tries + 1, RETRY_DOUBLINGS + 1);
}

/**
 * afr_attach_left() - the link is left, and the connection goes on by TCP
 * @conn: connection
 * @reason: why
 *
 * Context: the work.
 */
void afr_attach_left(struct afr_conn *conn, enum afr_reason reason)
{
	afr_fallback_left(conn, reason);
	back_off(conn);
}

static bool pending(u8 state)
{
	return state == AFR_JOINING || state == AFR_REQUESTED || state == AFR_ATTACHING;
}

/* One of the attaches_max, from the first step to the last, or until that is overdue. */
static bool let_in(struct afr_conn *conn)
{
	struct afr_net *an = conn->an;

	conn->let_in = afr_net_take(an, &an->attaching, READ_ONCE(an->set.attaches_max));
	return conn->let_in;
}

static void make_room(struct afr_conn *conn)
{
	if (conn->let_in)
		atomic_dec(&conn->an->attaching);
	conn->let_in = false;
}

static void step(struct afr_conn *conn, enum afr_attach_state state)
{
	lockdep_assert_held(&conn->run_mutex);	/* on_link is its, too */
	if (!pending(state))
		make_room(conn);
	if (state != AFR_DETACHED)
		WRITE_ONCE(conn->on_link, true);	/* taken back at the end of a run */
	if (pending(state))
		trace_afrdma_conn_upgrade(conn->id, state == AFR_JOINING ? AFR_STEP_JOIN :
					  AFR_STEP_ATTACH, AFR_REASON_NONE);
	conn->attach = state;
	if (conn->watched != (state == AFR_ATTACHED || state == AFR_LEAVING)) {
		conn->watched = !conn->watched;
		afr_route_watch(conn->watched);
	}
}

/**
 * afr_attach_overdue() - client: the peer takes its time to answer
 * @conn: connection, attaching
 *
 * The answer may still come, but others need not wait for it.
 *
 * Context: the work.
 */
void afr_attach_overdue(struct afr_conn *conn)
{
	make_room(conn);
	afr_fallback_note(conn, AFR_STEP_OVERDUE, AFR_REASON_ATTACH_TIMEOUT);
}

/* An attempt has ended on TCP. */
static void attach_failed(struct afr_conn *conn, u32 reason)
{
	afr_stat_inc(conn->an->net, AFR_STAT_UPGRADE_FAILED);
	afr_fallback_note(conn, AFR_STEP_FAILED, reason);
	conn->attach_tries = max_t(u8, conn->attach_tries, 1);
	back_off(conn);
}

static enum afr_reason reason_of(const struct afr_conn *conn, int err)
{
	switch (err) {
	case -EDQUOT:		return AFR_REASON_RING_LIMIT;
	case -ENOBUFS:		return AFR_REASON_PEER_SHARE;
	case -EUSERS:		return AFR_REASON_USER_SHARE;
	case -ENOMEM:		return AFR_REASON_NO_MEMORY;
	case -EOPNOTSUPP:	return AFR_REASON_DMA_SYNC;
	case -ENOSPC:		return AFR_REASON_NO_SLOT;
	case -ENOTCONN:		return AFR_REASON_LINK_BUSY;
	case -EPERM:
		return conn->route_reason ?: AFR_REASON_XFRM_POLICY;
	default:		return AFR_REASON_MR_FAILED;
	}
}

/* Both ends know the keys, and the link is neither drained nor left by both (I9, PE5). */
static bool __maybe_unused in_use(const struct afr_conn *conn)
{
	return (conn->attach == AFR_ATTACHED || conn->attach == AFR_LEAVING) &&
	       !test_bit(AFR_F_LINK_DOWN, &conn->flags) &&
	       !(test_bit(AFR_F_DETACHED, &conn->flags) &&
		 test_bit(AFR_F_PEER_DETACHED, &conn->flags));
}

/**
 * afr_attach_end() - give back all of an attach
 * @conn: connection; nobody writes to its ring any more, nobody reads its send ring
 *
 * Context: the work.
 */
void afr_attach_end(struct afr_conn *conn)
{
	struct afr_link *link = conn->port.link;

	AFR_CHECK(!in_use(conn));
	/* from here on no frame is built from what goes away below */
	spin_lock_bh(&conn->tx_lock);
	conn->may_post = false;
	conn->detach_due = false;
	conn->detach_posted = false;
	step(conn, AFR_DETACHED);
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
	afr_rings_unpin(conn);
	clear_bit(AFR_F_LINK_DOWN, &conn->flags);
	clear_bit(AFR_F_PEER_DETACHED, &conn->flags);
	clear_bit(AFR_F_DETACHED, &conn->flags);
	clear_bit(AFR_F_LEAVE, &conn->flags);
	clear_bit(AFR_F_REFUSED, &conn->flags);
	afr_conn_timer(conn, AFR_T_DETACH, 0);
	afr_conn_timer(conn, AFR_T_ALIVE, 0);
}

/*
 * To register waits for what was posted before on the queue pair, and so for the peer: what comes
 * by TCP is read meanwhile. Nobody else takes a step, which is a worker's of this kind alone.
 */
static int register_rings(struct afr_conn *conn)
{
	struct afr_mr *rcv, *snd;
	int err;

	lockdep_assert_held(&conn->run_mutex);
	AFR_CHECK(afr_conn_may_wait(conn) && conn->attach != AFR_DETACHED);
	rcv = afr_mr_map(conn->port.link, &conn->rcv, true);
	if (IS_ERR(rcv))
		return PTR_ERR(rcv);
	conn->rcv_mr = rcv;
	snd = afr_mr_map(conn->port.link, &conn->snd, false);
	if (IS_ERR(snd))
		return PTR_ERR(snd);
	conn->snd_mr = snd;
	afr_conn_unlock_run(conn);
	err = afr_mr_register(rcv) ?: afr_mr_register(snd);
	mutex_lock(&conn->run_mutex);
	return err;
}

/* Slot, rings and keys on @link, whose reference we take over. The epoch is open on success. */
static int attach_begin(struct afr_conn *conn, struct afr_link *link)
{
	int err;

	err = afr_port_join(&conn->port, link, &afr_path_rdma_port_ops);
	afr_link_put(link);	/* the port has its own */
	if (err)
		return err;
	if (afr_route_barred(conn))	/* the link may be older than the route */
		return -EPERM;
	err = afr_rings_pin(conn) ?: register_rings(conn);
	if (err)
		return err;
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

/**
 * afr_attach_close_epoch() - leave the epoch in both directions
 * @conn: connection
 * @resume: RESUME will be sent: only that gives the cursor back to CREDIT frames. False
 *	if the peer never used the epoch, or needs nothing any more
 *
 * Context: the work.
 * Return: X, what RESUME would say now.
 */
u64 afr_attach_close_epoch(struct afr_conn *conn, bool resume)
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

static void joined(struct afr_join *join, struct afr_link *link, enum afr_reason reason)
{
	struct afr_conn *conn = container_of(join, struct afr_conn, join);

	afr_conn_get(conn);	/* the work that sees the answer may be its last */
	conn->join_link = link;
	conn->join_reason = reason;
	smp_mb__before_atomic();	/* the answer is there before the work looks for it */
	set_bit(AFR_F_JOINED, &conn->flags);
	afr_conn_schedule(conn);
	afr_conn_put(conn);
}

static bool quiet(struct afr_conn *conn)
{
	return test_bit(AFR_F_ABORT, &conn->flags) || test_bit(AFR_F_ORPHAN, &conn->flags) ||
	       conn->tx.fin != AFR_NO_FIN;
}

/**
 * afr_attach_start() - client: look for a link, if it is time
 * @conn: connection, detached
 *
 * The next epoch may begin only when both ends have left the last one (PM2).
 *
 * Context: the work.
 */
void afr_attach_start(struct afr_conn *conn)
{
	enum afr_reason reason;

	if (!test_bit(AFR_F_UPGRADE, &conn->flags) || conn->due[AFR_T_RETRY] || quiet(conn))
		return;
	if (conn->tx.where != AFR_ON_TCP || test_bit(AFR_WANT_RESUME, &conn->want) ||
	    (conn->tx.epoch && !test_bit(AFR_F_PEER_LEFT, &conn->flags)))
		return;
	afr_stat_inc(conn->an->net, AFR_STAT_UPGRADE_TRIED);
	reason = afr_fallback_forbidden(conn);	/* it may look at routes */
	if (!reason && !conn->peer.port)
		reason = AFR_REASON_PEER_NO_SERVICE;
	if (!reason && !let_in(conn))
		reason = AFR_REASON_ATTACH_LIMIT;
	if (reason) {
		attach_failed(conn, reason);
		return;
	}
	step(conn, AFR_JOINING);
	conn->peer.mtu = afr_conn_path_mtu(conn);
	conn->join.joined = joined;
	afr_group_join(conn->an, &conn->peer, &conn->join);
}

/**
 * afr_attach_cancel() - client: stop looking for a link
 * @conn: connection, joining
 *
 * Context: the work.
 */
void afr_attach_cancel(struct afr_conn *conn)
{
	afr_group_join_cancel(&conn->join);
	if (test_and_clear_bit(AFR_F_JOINED, &conn->flags) && conn->join_link)
		afr_link_put(conn->join_link);
	conn->join_link = NULL;
	step(conn, AFR_DETACHED);
}

/**
 * afr_attach_joined() - client: there is a link, or there is none
 * @conn: connection, joining; join_link and join_reason tell
 *
 * Context: the work.
 */
void afr_attach_joined(struct afr_conn *conn)
{
	struct afr_link *link = conn->join_link;
	int err;

	conn->join_link = NULL;
	if (!link) {
		step(conn, AFR_DETACHED);
		attach_failed(conn, conn->join_reason);
		return;
	}
	if (quiet(conn)) {
		afr_link_put(link);
		step(conn, AFR_DETACHED);
		return;
	}
	err = attach_begin(conn, link);
	if (err || quiet(conn)) {	/* it may have ended meanwhile */
		afr_attach_end(conn);
		attach_failed(conn, err ? reason_of(conn, err) : AFR_REASON_CLOSING);
		return;
	}
	epoch_open(conn);
	step(conn, AFR_ATTACHING);
	afr_control_want(conn, AFR_WANT_ATTACH);
	afr_conn_timer(conn, AFR_T_ATTACH, READ_ONCE(conn->an->set.attach_timeout_ms));
}

/**
 * afr_attach_refuse() - server: answer the ATTACH by no
 * @conn: connection; the epoch is open
 * @reason: what the client will read
 *
 * Context: the work.
 */
void afr_attach_refuse(struct afr_conn *conn, enum afr_reason reason)
{
	afr_attach_close_epoch(conn, false);
	set_bit(AFR_F_PEER_LEFT, &conn->flags);
	afr_attach_end(conn);
	attach_failed(conn, reason);
	conn->attach_reason = reason;
	afr_control_want(conn, AFR_WANT_ATTACHED);
	afr_control_want(conn, AFR_WANT_CREDIT);	/* what the closed books counted as told */
}

/* Both ends know where to write from here on. */
static void attached(struct afr_conn *conn, const struct afr_frame *frame)
{
	step(conn, AFR_ATTACHED);
	conn->attached_at = jiffies;
	conn->port.peer_slot = frame->attach.slot;
	conn->peer_addr = frame->attach.addr;
	conn->peer_rkey = frame->attach.rkey;
	conn->peer_span = frame->attach.span;
	if (conn->server)
		afr_conn_timer(conn, AFR_T_ALIVE, READ_ONCE(conn->an->set.keepalive_ms));
	afr_conn_timer(conn, AFR_T_ATTACH, 0);
	afr_fallback_note(conn, AFR_STEP_DONE, AFR_REASON_NONE);
	afr_stat_inc(conn->an->net, AFR_STAT_UPGRADE_DONE);
}

/**
 * afr_attach_answer() - server: answer the ATTACH
 * @conn: connection, requested
 *
 * As soon as our end of the link it names is up; that may be a moment after the client's.
 *
 * Context: the work.
 */
void afr_attach_answer(struct afr_conn *conn)
{
	const struct afr_frame *req = &conn->attach_req;
	/* nor is there anything to wait for when the client has lost this link meanwhile */
	bool left = test_bit(AFR_F_PEER_LEFT, &conn->flags);
	bool late = afr_conn_timer_due(conn, AFR_T_ATTACH) || left;
	struct afr_link *link;
	int err;

	link = afr_group_find_link(conn->an, &conn->peer, req->attach.link,
				   req->attach.flags & AFR_ATTACH_ACTIVE);
	if (link && left) {
		afr_link_put(link);
		link = NULL;
	}
	if (!link && !late && !quiet(conn)) {
		afr_conn_timer(conn, AFR_T_RETRY, LINK_POLL_MS);
		return;
	}
	if (!link) {
		afr_attach_refuse(conn, quiet(conn) ? AFR_REASON_CLOSING : AFR_REASON_UNKNOWN_LINK);
		return;
	}
	err = attach_begin(conn, link);
	if (err) {
		afr_attach_refuse(conn, reason_of(conn, err));
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
 * afr_attach_asked() - ATTACH came
 * @conn: connection, we are the server
 * @frame: parsed ATTACH
 *
 * Return: 0 or why the connection ends.
 */
int afr_attach_asked(struct afr_conn *conn, const struct afr_frame *frame)
{
	enum afr_reason reason = afr_fallback_forbidden(conn);

	if (!conn->server || !afr_conn_framed(conn) || conn->attach != AFR_DETACHED ||
	    frame->attach.epoch <= conn->tx.epoch || conn->tx.where != AFR_ON_TCP ||
	    frame->attach.ring != conn->tx.window || frame->attach.reason ||
	    conn->rx.fin != AFR_NO_FIN ||
	    take_cursor(conn, frame->attach.consumed))
		return AFR_REASON_ATTACH_BAD;
	conn->attach_req = *frame;
	afr_stat_inc(conn->an->net, AFR_STAT_UPGRADE_TRIED);
	/* the client may have given up epochs that it never told us of */
	spin_lock_bh(&conn->tx_lock);
	conn->tx.epoch = frame->attach.epoch - 1;
	spin_unlock_bh(&conn->tx_lock);
	epoch_open(conn);
	if (!reason && !let_in(conn))
		reason = AFR_REASON_ATTACH_LIMIT;
	if (reason) {
		afr_attach_refuse(conn, reason);
		return 0;
	}
	step(conn, AFR_REQUESTED);
	afr_conn_timer(conn, AFR_T_ATTACH, READ_ONCE(conn->an->set.attach_timeout_ms));
	afr_conn_timer(conn, AFR_T_RETRY, 0);
	return 0;
}

/**
 * afr_attach_refused() - client: the server said no, or has never heard of the ATTACH
 * @conn: connection, attaching
 * @reason: why
 *
 * Context: the work.
 */
void afr_attach_refused(struct afr_conn *conn, u32 reason)
{
	afr_attach_close_epoch(conn, false);
	set_bit(AFR_F_PEER_LEFT, &conn->flags);
	afr_attach_end(conn);
	attach_failed(conn, reason);
	afr_control_want(conn, AFR_WANT_CREDIT);	/* what the closed books counted as told */
}

/**
 * afr_attach_unsaid() - client: drop an ATTACH that was not written yet
 * @conn: connection
 *
 * Context: the work.
 * Return: true if there was one: the peer knows nothing of the epoch, and never will.
 */
bool afr_attach_unsaid(struct afr_conn *conn)
{
	bool unsaid;

	spin_lock_bh(&conn->tx_lock);	/* build_attach() may put it back */
	unsaid = test_and_clear_bit(AFR_WANT_ATTACH, &conn->want);
	spin_unlock_bh(&conn->tx_lock);
	return unsaid;
}

/**
 * afr_attach_take_back() - client: the connection ends before its ATTACH was written
 * @conn: connection, attaching
 *
 * Context: the work.
 */
void afr_attach_take_back(struct afr_conn *conn)
{
	if (!afr_attach_unsaid(conn))
		return;
	afr_attach_refused(conn, AFR_REASON_CLOSING);
	afr_conn_schedule(conn);
}

/**
 * afr_attach_answered() - ATTACHED came
 * @conn: connection, we are the client
 * @frame: parsed ATTACHED
 *
 * Return: 0 or why the connection ends.
 */
int afr_attach_answered(struct afr_conn *conn, const struct afr_frame *frame)
{
	int bad;

	if (conn->server || frame->attach.epoch != conn->tx.epoch)
		return AFR_REASON_ATTACH_BAD;
	if (conn->attach != AFR_ATTACHING) {	/* the link died meanwhile: RESUME tells the peer */
		if (frame->attach.reason)	/* which then has nothing to say RESUME for */
			set_bit(AFR_F_PEER_LEFT, &conn->flags);
		return conn->tx.open ? AFR_REASON_ATTACH_BAD : 0;
	}
	if (frame->attach.reason) {	/* to give back the keys is a step: it may wait */
		afr_attach_close_epoch(conn, false);
		conn->join_reason = afr_reason_of_peer(frame->attach.reason);
		afr_control_want(conn, AFR_WANT_CREDIT);	/* it counts as told */
		return test_and_set_bit(AFR_F_REFUSED, &conn->flags) ? AFR_REASON_ATTACH_BAD : 0;
	}
	if (test_bit(AFR_F_REFUSED, &conn->flags) || frame->attach.ring != conn->tx.window ||
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
	conn->corked = false;
	spin_unlock_bh(&conn->tx_lock);
	afr_path_rdma_credit(conn);	/* pending CREDIT frames are dropped from here on */
	return 0;
}
