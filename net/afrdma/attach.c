// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Attaches connections to links: the steps of client and server, and the release of everything that
 * belongs to an attach.
 *
 * The peer's writes use the MR of the receive ring and the channel id. attach_begin() creates them
 * before a frame carries the key of the MR and the id to the peer. Only afr_attach_end() releases
 * them, and only if one of these conditions is met (PE5):
 * - the peer's DETACH was polled, or is overdue and the id is retired (detach_overdue());
 * - the link was fenced and drained;
 * - the server has refused ATTACH;
 * - the key and the id were never sent to the peer.
 */
#include "attach.h"
#include "channel.h"
#include "conn_info.h"

#include "conn_rings.h"
#include "fallback.h"
#include "frame_tx.h"
#include "rdma_tx.h"
#include "route.h"
#include "trace.h"
#include "tx_policy.h"

#define LINK_POLL_MS	20		/* server: interval of checks whether the link is up */
#define RETRY_DOUBLINGS	6		/* client: how often the retry delay is doubled at most */

/*
 * Schedules the client's next attempt to attach. It may follow at once after the first link that
 * was lost or left, if no attempt has failed before. Each further such link or failed attempt
 * doubles the delay, from attach_retry_ms on, so that a link that comes up but carries nothing
 * does not stall the stream again and again. The delays begin anew after a long stay on a link
 * (STABLE in move.c), when a retry is requested, and when a device was added at either end
 * (try_again()).
 */
static void back_off(struct afr_conn *conn)
{
	unsigned int tries = conn->attach.tries;
	unsigned int ms = READ_ONCE(conn->an->set.attach_retry_ms);

	afr_conn_timer(conn, AFR_T_ATTACH, 0);
	if (!conn->server && tries)
		afr_conn_timer(conn, AFR_T_RETRY, ms << min(tries - 1, RETRY_DOUBLINGS));
	conn->attach.tries = min(tries + 1, RETRY_DOUBLINGS + 1);
}

/**
 * afr_attach_note_left() - record why the connection has left its link, and when to try again
 * @conn: connection, detached
 * @reason: why it has left
 *
 * Context: connection worker.
 */
void afr_attach_note_left(struct afr_conn *conn, enum afr_reason reason)
{
	afr_fallback_left(conn, reason);
	back_off(conn);
}

/* Is an attach in progress? */
static bool pending(u8 state)
{
	return state == AFR_JOINING || state == AFR_REQUESTED || state == AFR_ATTACHING;
}

/*
 * Counts the connection against attaches_max until uncount() is called: when the attach has
 * completed, failed or been cancelled, or when the answer to ATTACH is overdue. Returns false if
 * the limit is reached.
 */
static bool counted(struct afr_conn *conn)
{
	struct afr_net *an = conn->an;

	conn->attach.counted = afr_netns_charge(an, &an->attaching,
						READ_ONCE(an->set.attaches_max));
	return conn->attach.counted;
}

/* Stops counting the connection against attaches_max. */
static void uncount(struct afr_conn *conn)
{
	if (conn->attach.counted)
		atomic_dec(&conn->an->attaching);
	conn->attach.counted = false;
}

/**
 * afr_attach_set_state() - change the state of the attach
 * @conn: connection
 * @state: new state
 *
 * Context: connection worker.
 */
void afr_attach_set_state(struct afr_conn *conn, enum afr_attach_state state)
{
	lockdep_assert_held(&conn->worker.mutex);
	if (!pending(state))
		uncount(conn);
	if (pending(state))
		trace_afrdma_conn_upgrade(conn->id, state == AFR_JOINING ? AFR_STEP_JOIN :
					  AFR_STEP_ATTACH, AFR_REASON_NONE);
	WRITE_ONCE(conn->attach.state, state);
	if (conn->route.watched != (state == AFR_ATTACHED || state == AFR_LEAVING)) {
		WRITE_ONCE(conn->route.watched, !conn->route.watched);
		afr_route_watch(conn->route.watched);
	}
}

/**
 * afr_attach_overdue() - client: handle a missing answer to ATTACH
 * @conn: connection, attaching
 *
 * The answer may still come, but the connection no longer counts as one of attaches_max.
 *
 * Context: connection worker.
 */
void afr_attach_overdue(struct afr_conn *conn)
{
	uncount(conn);
	afr_fallback_note(conn, AFR_STEP_OVERDUE, AFR_REASON_ATTACH_TIMEOUT);
}

/* Handles a failed attempt: the connection stays on TCP. */
static void attach_failed(struct afr_conn *conn, u32 reason)
{
	afr_netns_count(conn->an->net, AFR_STAT_UPGRADE_FAILED);
	afr_fallback_note(conn, AFR_STEP_FAILED, reason);
	conn->attach.tries = max_t(u8, conn->attach.tries, 1);
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
	case -EPERM:		return conn->attach.link_reason;
	default:		return AFR_REASON_MR_FAILED;
	}
}

/*
 * May the peer or a device still use what the attach has created (I9, PE5)? Yes if the connection
 * is attached or leaving, its link has not been drained, and this end still waits for the
 * completion of its own DETACH or for the DETACH of the peer.
 */
static bool __maybe_unused in_use(const struct afr_conn *conn)
{
	return (conn->attach.state == AFR_ATTACHED || conn->attach.state == AFR_LEAVING) &&
	       !test_bit(AFR_F_LINK_DOWN, &conn->flags) &&
	       !(test_bit(AFR_F_DETACHED, &conn->flags) &&
		 test_bit(AFR_F_PEER_DETACHED, &conn->flags));
}

/**
 * afr_attach_end() - release everything that belongs to an attach
 * @conn: connection; no device reads its send ring any more, and for its receive ring one of the
 *	conditions at the top of this file is met (PE5)
 *
 * Context: connection worker.
 */
void afr_attach_end(struct afr_conn *conn)
{
	struct afr_link *link = conn->attach.channel.link;

	AFR_CHECK(!in_use(conn));
	/* from here on, no frame is built with the key or channel id that are released below */
	spin_lock_bh(&conn->tx.lock);
	afr_conn_set_may_post(conn, false);
	conn->attach.detach_due = false;
	conn->attach.detach_posted = false;
	afr_attach_set_state(conn, AFR_DETACHED);
	clear_bit(AFR_FRAME_ATTACH, &conn->out.pending);
	clear_bit(AFR_FRAME_ATTACHED, &conn->out.pending);
	clear_bit(AFR_FRAME_MOVE, &conn->out.pending);
	spin_unlock_bh(&conn->tx.lock);
	/*
	 * The MRs are freed first: after that, siw begins no copy of arrived bytes to the ring. A
	 * copy that has begun runs under RCU, so the grace period in afr_channel_leave() waits for
	 * it before the ring is unpinned.
	 */
	afr_mr_free(conn->attach.rcv_mr);
	afr_mr_free(conn->attach.snd_mr);
	if (link)
		afr_channel_leave(&conn->attach.channel);
	conn->attach.rcv_mr = NULL;
	conn->attach.snd_mr = NULL;
	afr_conn_rings_unpin(conn);
	clear_bit(AFR_F_LINK_DOWN, &conn->flags);
	clear_bit(AFR_F_PEER_DETACHED, &conn->flags);
	clear_bit(AFR_F_DETACHED, &conn->flags);
	clear_bit(AFR_F_LEAVE_LINK, &conn->flags);
	clear_bit(AFR_F_REFUSED, &conn->flags);
	afr_conn_timer(conn, AFR_T_DETACH, 0);
	afr_conn_timer(conn, AFR_T_TCP_KEEPALIVE, 0);
}

/*
 * Registers both rings. This waits for earlier posts on the queue pair, and so for the peer;
 * meanwhile worker.mutex is released, so that other runs of the worker can read frames from TCP.
 * The state of the attach is AFR_JOINING or AFR_REQUESTED and stays so while this waits: no frame
 * changes it, and since it is not AFR_DETACHED, the other runs leave all steps to attach_work,
 * which is waiting here.
 */
static int register_rings(struct afr_conn *conn)
{
	struct afr_mr *rcv, *snd;
	int err;

	lockdep_assert_held(&conn->worker.mutex);
	AFR_CHECK(afr_conn_in_attach_work(conn) && conn->attach.state != AFR_DETACHED);
	rcv = afr_mr_map(conn->attach.channel.link, &conn->rx.mem, true);
	if (IS_ERR(rcv))
		return PTR_ERR(rcv);
	conn->attach.rcv_mr = rcv;
	snd = afr_mr_map(conn->attach.channel.link, &conn->tx.mem, false);
	if (IS_ERR(snd))
		return PTR_ERR(snd);
	conn->attach.snd_mr = snd;
	afr_conn_worker_unlock(conn);
	err = afr_mr_register(rcv) ?: afr_mr_register(snd);
	mutex_lock(&conn->worker.mutex);
	return err;
}

/*
 * Joins @link, taking over the caller's reference on it, and pins and registers the rings. Even
 * after an error, the caller has to release everything by afr_attach_end().
 */
static int attach_begin(struct afr_conn *conn, struct afr_link *link)
{
	int err;

	err = afr_channel_join(&conn->attach.channel, link, &afr_rdma_tx_channel_ops);
	afr_link_put(link);	/* a channel that has joined has its own reference */
	if (err)
		return err;
	/*
	 * The check before the join did not count a tunnel on the route. With the link known, the
	 * tunnel denies RDMA if the link bypasses it, see bypasses() of route.c.
	 */
	conn->attach.link_reason = afr_route_denied(conn);
	if (conn->attach.link_reason)
		return -EPERM;
	err = afr_conn_rings_pin(conn) ?: register_rings(conn);
	if (err)
		return err;
	conn->attach.snd_view = *afr_mr_view(conn->attach.snd_mr);
	return 0;
}

/* Opens the next epoch in both directions. */
static void epoch_open(struct afr_conn *conn)
{
	u32 epoch;

	clear_bit(AFR_F_PEER_LEFT, &conn->flags);
	WRITE_ONCE(conn->attach.frame_step, AFR_FRAME_UNBUILT);
	spin_lock_bh(&conn->tx.lock);
	epoch = afr_tx_open(&conn->tx.seq);
	spin_lock(&conn->rx.lock);
	afr_rx_open(&conn->rx.seq, epoch);
	spin_unlock(&conn->rx.lock);
	spin_unlock_bh(&conn->tx.lock);
}

/**
 * afr_attach_close_epoch() - close the epoch in both directions
 * @conn: connection
 * @resume: does RESUME end the epoch? true: the caller requests RESUME next, unless the connection
 *	was aborted. This function leaves conn->rx.credit_imm as it is: if immediates reported the
 *	cursor, CREDIT stays forbidden until RESUME is written (PC3). false: no RESUME follows,
 *	since the peer never used the epoch, or since both streams are complete or the connection
 *	is being aborted. CREDIT is allowed again at once
 *
 * Context: connection worker.
 * Return: X, the received offset that a RESUME sent now would contain.
 */
u64 afr_attach_close_epoch(struct afr_conn *conn, bool resume)
{
	u64 received;

	spin_lock_bh(&conn->tx.lock);
	afr_conn_set_may_post(conn, false);
	afr_tx_leave(&conn->tx.seq);
	spin_lock(&conn->rx.lock);
	received = conn->rx.seq.open ? afr_rx_close(&conn->rx.seq) : conn->rx.seq.visible;
	if (!resume)
		afr_conn_set_credit_imm(conn, false);
	spin_unlock(&conn->rx.lock);
	spin_unlock_bh(&conn->tx.lock);
	return received;
}

/* Upcall of group.c: passes the result of the join to the worker. */
static void joined(struct afr_join *join, struct afr_link *link, enum afr_reason reason)
{
	struct afr_conn *conn = container_of(join, struct afr_conn, attach.join);

	conn->attach.link = link;
	conn->attach.link_reason = reason;
	smp_mb__before_atomic();	/* link and reason are visible before the flag */
	set_bit(AFR_F_JOINED, &conn->flags);
	/* the next step can wait for the device, which only attach_work may do */
	afr_conn_schedule_attach(conn);
}

/* Is the connection or its send direction ending, so that it must not attach any more? */
static bool no_new_attach(struct afr_conn *conn)
{
	return test_bit(AFR_F_ABORT, &conn->flags) || test_bit(AFR_F_ORPHAN, &conn->flags) ||
	       conn->tx.seq.fin != AFR_NO_FIN;
}

/**
 * afr_attach_start() - client: request a link, if an attach is due
 * @conn: connection, detached
 *
 * The next epoch may begin only when both ends have left the previous one (sequence.h).
 *
 * Context: connection worker.
 */
void afr_attach_start(struct afr_conn *conn)
{
	enum afr_reason reason;

	if (!test_bit(AFR_F_UPGRADE, &conn->flags) || conn->worker.due[AFR_T_RETRY] ||
	    no_new_attach(conn))
		return;
	if (conn->tx.seq.where != AFR_ON_TCP || test_bit(AFR_FRAME_RESUME, &conn->out.pending) ||
	    (conn->tx.seq.epoch && !test_bit(AFR_F_PEER_LEFT, &conn->flags)))
		return;
	/* an inline run starts no attach: run_attach_work() relies on that */
	if (!afr_conn_in_work_item(conn)) {
		set_bit(AFR_F_RESCHEDULE, &conn->flags);
		return;
	}
	afr_netns_count(conn->an->net, AFR_STAT_UPGRADE_TRIED);
	reason = afr_fallback_attach_denied(conn);	/* may look up routes */
	if (!reason && !conn->peer.port)
		reason = AFR_REASON_PEER_NO_SERVICE;
	if (!reason && !counted(conn))
		reason = AFR_REASON_ATTACH_LIMIT;
	if (reason) {
		attach_failed(conn, reason);
		return;
	}
	afr_attach_set_state(conn, AFR_JOINING);
	conn->peer.mtu = afr_conn_info_path_mtu(conn);
	conn->peer.tclass = afr_conn_info_tclass(conn);
	conn->attach.join.joined = joined;
	afr_group_join(conn->an, &conn->peer, &conn->attach.join);
}

/**
 * afr_attach_cancel() - client: stop waiting for a link
 * @conn: connection, joining
 *
 * Context: connection worker.
 */
void afr_attach_cancel(struct afr_conn *conn)
{
	afr_group_join_cancel(&conn->attach.join);
	if (test_and_clear_bit(AFR_F_JOINED, &conn->flags) && conn->attach.link)
		afr_link_put(conn->attach.link);
	conn->attach.link = NULL;
	afr_attach_set_state(conn, AFR_DETACHED);
}

/**
 * afr_attach_joined() - client: continue with the link that was found, or stay on TCP
 * @conn: connection, joining; the result is in conn->attach.link and link_reason
 *
 * Context: connection worker.
 */
void afr_attach_joined(struct afr_conn *conn)
{
	struct afr_link *link = conn->attach.link;
	int err;

	afr_group_join_cancel(&conn->attach.join);	/* waits until joined() has returned */
	conn->attach.link = NULL;
	if (!link) {
		afr_attach_set_state(conn, AFR_DETACHED);
		attach_failed(conn, conn->attach.link_reason);
		return;
	}
	if (no_new_attach(conn)) {
		afr_link_put(link);
		afr_attach_set_state(conn, AFR_DETACHED);
		return;
	}
	err = attach_begin(conn, link);
	/* again: shutdown() or close() may have been called during the registration */
	if (err || no_new_attach(conn)) {
		afr_attach_end(conn);
		attach_failed(conn, err ? reason_of(conn, err) : AFR_REASON_CLOSING);
		return;
	}
	epoch_open(conn);
	afr_attach_set_state(conn, AFR_ATTACHING);
	afr_frame_tx_request(conn, AFR_FRAME_ATTACH);
	afr_conn_timer(conn, AFR_T_ATTACH, READ_ONCE(conn->an->set.attach_timeout_ms));
}

/**
 * afr_attach_refuse() - server: refuse the ATTACH
 * @conn: connection; the epoch of the ATTACH was opened, but the client may have left it already
 * @reason: sent to the client
 *
 * Context: connection worker.
 */
void afr_attach_refuse(struct afr_conn *conn, enum afr_reason reason)
{
	afr_attach_close_epoch(conn, false);
	set_bit(AFR_F_PEER_LEFT, &conn->flags);
	afr_attach_end(conn);
	attach_failed(conn, reason);
	conn->attach.answer = reason;
	afr_frame_tx_request(conn, AFR_FRAME_ATTACHED);
	/* closing the epoch marked the cursor as reported, even if no frame has reported it */
	afr_frame_tx_request(conn, AFR_FRAME_CREDIT);
}

/* Completes the attach at this end, which now knows where to write in the peer's receive ring. */
static void attached(struct afr_conn *conn, const struct afr_frame *frame)
{
	afr_attach_set_state(conn, AFR_ATTACHED);
	/*
	 * AFR_T_DETACH may be running, started for the wait for ATTACHED. Stop it, so that a
	 * detach starts it anew and gets all of detach_timeout_ms.
	 */
	afr_conn_timer(conn, AFR_T_DETACH, 0);
	conn->attach.since = jiffies;
	conn->attach.channel.peer_id = frame->attach.channel;
	conn->attach.peer_addr = frame->attach.addr;
	conn->attach.peer_rkey = frame->attach.rkey;
	conn->attach.peer_span = frame->attach.span;
	if (conn->server)
		afr_conn_timer(conn, AFR_T_TCP_KEEPALIVE, READ_ONCE(conn->an->set.keepalive_ms));
	afr_conn_timer(conn, AFR_T_ATTACH, 0);
	afr_fallback_note(conn, AFR_STEP_DONE, AFR_REASON_NONE);
	afr_netns_count(conn->an->net, AFR_STAT_UPGRADE_DONE);
}

/**
 * afr_attach_answer() - server: answer ATTACH, or try again later if the link is not up yet
 * @conn: connection, requested
 *
 * A correct client sends ATTACH when its end of the link is up, and then this host knows the link.
 * ATTACH for an unknown link is refused at once: if it had to wait, a peer could send it on many
 * connections and so use up attaches_max. If this host has accepted the link, but its end is not
 * up yet, ATTACH completes the handshake, except on iWARP. On iWARP, or if this host has connected
 * the link, this end may come up a moment later than the client's: the worker tries again every
 * LINK_POLL_MS until this end is up, the link is lost, AFR_T_ATTACH expires, the client leaves the
 * epoch, or the connection or its send direction ends.
 *
 * Context: connection worker.
 */
void afr_attach_answer(struct afr_conn *conn)
{
	enum afr_reason reason = no_new_attach(conn) ? AFR_REASON_CLOSING : AFR_REASON_UNKNOWN_LINK;
	const struct afr_frame *req = &conn->attach.request;
	bool left = test_bit(AFR_F_PEER_LEFT, &conn->flags);	/* the client has left this epoch */
	bool late = afr_conn_timer_due(conn, AFR_T_ATTACH);
	struct afr_link *link = NULL;
	int err;

	if (!left)
		link = afr_group_find_link(conn->an, &conn->peer, req->attach.link,
					   req->attach.flags & AFR_ATTACH_ACTIVE);
	if (!link) {
		afr_attach_refuse(conn, reason);
		return;
	}
	if (!conn->attach.counted && !counted(conn)) {
		afr_link_put(link);
		afr_attach_refuse(conn, AFR_REASON_ATTACH_LIMIT);
		return;
	}
	if (!afr_link_confirm(link)) {
		afr_link_put(link);
		if (late || no_new_attach(conn))
			afr_attach_refuse(conn, reason);
		else
			afr_conn_timer(conn, AFR_T_RETRY, LINK_POLL_MS);
		return;
	}
	err = attach_begin(conn, link);
	if (err) {
		afr_attach_refuse(conn, reason_of(conn, err));
		return;
	}
	conn->attach.answer = AFR_REASON_NONE;
	attached(conn, req);
	afr_frame_tx_request(conn, AFR_FRAME_ATTACHED);
}

/* Applies the consumer cursor in ATTACH or ATTACHED as on_credit() applies the one in CREDIT. */
static int take_cursor(struct afr_conn *conn, u64 consumed)
{
	int bad;

	spin_lock_bh(&conn->tx.lock);
	bad = afr_tx_credit(&conn->tx.seq, consumed);
	clear_bit(AFR_F_BLOCKED_SENT, &conn->flags);
	spin_unlock_bh(&conn->tx.lock);
	return bad;
}

/**
 * afr_attach_rx_attach() - server: handle ATTACH
 * @conn: connection
 * @frame: parsed ATTACH
 *
 * Context: connection worker.
 * Return: 0, or the AFR_REASON_* with which to abort the connection.
 */
int afr_attach_rx_attach(struct afr_conn *conn, const struct afr_frame *frame)
{
	enum afr_reason reason = afr_fallback_attach_denied(conn);

	if (!conn->server || !afr_conn_negotiated(conn) || conn->attach.state != AFR_DETACHED ||
	    frame->attach.epoch <= conn->tx.seq.epoch || conn->tx.seq.where != AFR_ON_TCP ||
	    frame->attach.ring != conn->tx.seq.window || frame->attach.reason ||
	    conn->rx.seq.fin != AFR_NO_FIN ||
	    take_cursor(conn, frame->attach.consumed))
		return AFR_REASON_ATTACH_BAD;
	conn->attach.request = *frame;
	afr_netns_count(conn->an->net, AFR_STAT_UPGRADE_TRIED);
	/* the client may have given up epochs for which it sent no ATTACH */
	spin_lock_bh(&conn->tx.lock);
	conn->tx.seq.epoch = frame->attach.epoch - 1;
	spin_unlock_bh(&conn->tx.lock);
	epoch_open(conn);
	if (reason) {
		afr_attach_refuse(conn, reason);
		return 0;
	}
	afr_attach_set_state(conn, AFR_REQUESTED);
	afr_conn_timer(conn, AFR_T_ATTACH, READ_ONCE(conn->an->set.attach_timeout_ms));
	afr_conn_timer(conn, AFR_T_RETRY, 0);
	return 0;
}

/**
 * afr_attach_refused() - client: end an attach that the server refused or never received
 * @conn: connection, attaching
 * @reason: why
 *
 * Context: connection worker.
 */
void afr_attach_refused(struct afr_conn *conn, u32 reason)
{
	afr_attach_close_epoch(conn, false);
	set_bit(AFR_F_PEER_LEFT, &conn->flags);
	afr_attach_end(conn);
	attach_failed(conn, reason);
	/* closing the epoch marked the cursor as reported, even if no frame has reported it */
	afr_frame_tx_request(conn, AFR_FRAME_CREDIT);
}

/**
 * afr_attach_drop_unsent() - client: drop an ATTACH that is still pending
 * @conn: connection; nothing happens at a server, which sends no ATTACH
 *
 * Context: connection worker.
 * Return: true if an ATTACH was dropped: the peer will never learn of its epoch.
 */
bool afr_attach_drop_unsent(struct afr_conn *conn)
{
	bool was_pending;

	/* under this lock build_pending() clears the bit, and attach_skipped() may set it again */
	spin_lock_bh(&conn->tx.lock);
	was_pending = test_and_clear_bit(AFR_FRAME_ATTACH, &conn->out.pending);
	spin_unlock_bh(&conn->tx.lock);
	return was_pending;
}

/**
 * afr_attach_withdraw() - client: if ATTACH is still pending, drop it and end the attach
 * @conn: connection, attaching; either its send direction has ended, or the connection itself was
 *	aborted or has to be aborted
 *
 * Context: connection worker.
 */
void afr_attach_withdraw(struct afr_conn *conn)
{
	if (!afr_attach_drop_unsent(conn))
		return;
	afr_attach_refused(conn, AFR_REASON_CLOSING);
	afr_conn_schedule(conn);
}

/**
 * afr_attach_rx_attached() - client: handle ATTACHED
 * @conn: connection
 * @frame: parsed ATTACHED
 *
 * Context: connection worker.
 * Return: 0, or the AFR_REASON_* with which to abort the connection.
 */
int afr_attach_rx_attached(struct afr_conn *conn, const struct afr_frame *frame)
{
	int bad;

	if (conn->server || frame->attach.epoch != conn->tx.seq.epoch)
		return AFR_REASON_ATTACH_BAD;
	/*
	 * If the state is no longer AFR_ATTACHING, usually the link was lost before ATTACHED came,
	 * and this end has sent its RESUME or is about to send it. A server that refused ATTACH has
	 * closed the epoch, too, but sends no RESUME, so this end must not wait for one. If the
	 * epoch is still open at this end, this is a second ATTACHED.
	 */
	if (conn->attach.state != AFR_ATTACHING) {
		if (frame->attach.reason)
			set_bit(AFR_F_PEER_LEFT, &conn->flags);
		return conn->tx.seq.open ? AFR_REASON_ATTACH_BAD : 0;
	}
	/* the keys are released later, by afr_attach_refused(), which may wait for the device */
	if (frame->attach.reason) {
		afr_attach_close_epoch(conn, false);
		conn->attach.link_reason = afr_reason_of_peer(frame->attach.reason);
		/* closing the epoch marked the cursor as reported, even if no frame reported it */
		afr_frame_tx_request(conn, AFR_FRAME_CREDIT);
		return test_and_set_bit(AFR_F_REFUSED, &conn->flags) ? AFR_REASON_ATTACH_BAD : 0;
	}
	if (test_bit(AFR_F_REFUSED, &conn->flags) || frame->attach.ring != conn->tx.seq.window ||
	    frame->attach.link != afr_link_id(conn->attach.channel.link))
		return AFR_REASON_ATTACH_BAD;

	bad = take_cursor(conn, frame->attach.consumed);
	if (bad)
		return bad;
	attached(conn, frame);
	spin_lock_bh(&conn->tx.lock);
	spin_lock(&conn->rx.lock);
	afr_conn_set_credit_imm(conn, true);
	spin_unlock(&conn->rx.lock);
	afr_conn_allow_post(conn);
	afr_tx_policy_uncork(conn);
	spin_unlock_bh(&conn->tx.lock);
	afr_rdma_tx_credit(conn);	/* replaces a pending CREDIT, which build_credit() drops */
	return 0;
}
