// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Ends connections, in one of two ways:
 * - Orderly: when both FINs are acknowledged, both ends leave the link, by DETACH after the last
 *   write (PE5). Then this end shuts down TCP for writing, reads TCP to its end, and finishes the
 *   connection (E1, PE4). One-way connections end differently, see run_one_way().
 * - By abort: this end resets TCP, leaves the link and finishes the connection.
 *
 * When its socket is closed, a connection becomes an orphan and gets a time limit. The limit is
 * renewed while the peer takes bytes. When it expires, run_orphan() finishes the connection without
 * a reset if afr_close_one_way_done() is true, and aborts it otherwise.
 */
#include "close.h"

#include <net/sock.h>
#include <net/tcp.h>
#include <net/tcp_states.h>

#include "compat.h"
#include "frame_tx.h"
#include "move.h"
#include "recv.h"
#include "send.h"
#include "tcp_sock.h"
#include "trace.h"

/* Returns the positive errno that calls of the program report after an abort. */
static int errno_of(struct afr_conn *conn)
{
	enum afr_reason reason = conn->abort_reason;
	bool ended = afr_close_tcp_state(conn) == TCP_CLOSE_WAIT ||
		     (afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK &&
		      conn->tx.seq.fin == AFR_NO_FIN && sock_flag(conn->tcp->sk, SOCK_DONE));

	if (reason == AFR_REASON_RESET && ended)	/* as tcp_reset() */
		return EPIPE;
	if (conn->err)
		return conn->err;
	switch (reason) {
	case AFR_REASON_RESET:
	case AFR_REASON_TCP_EOF:
	case AFR_REASON_TCP_ERROR:
	case AFR_REASON_CLOSED_UNREAD:
	case AFR_REASON_LINGER_ZERO:
	case AFR_REASON_ORPHAN_DATA:
	case AFR_REASON_ORPHAN_LIMIT:
		return ECONNRESET;
	case AFR_REASON_ORPHAN_TIMEOUT:
		return ETIMEDOUT;
	default:
		return EPROTO;
	}
}

static bool is_violation(enum afr_reason reason)
{
	return reason >= AFR_REASON_HELLO_BAD;
}

/*
 * Does a server have bytes that wait for the client's HELLO? send() has returned success for them,
 * so an abort that can wait must not discard them.
 */
static bool early_waits(const struct afr_conn *conn)
{
	return afr_conn_tx_mode(conn) == AFR_MODE_UNDECIDED && conn->tx.seq.written &&
	       !test_bit(AFR_F_NO_EARLY_TX, &conn->flags);
}

/**
 * afr_close_abort_deferred() - does an abort wait for the answer to ATTACH or the client's HELLO?
 * @conn: connection
 *
 * Without the answer the peer's channel id is unknown, so DETACH cannot be sent, and the peer would
 * wait for it in vain. For HELLO see early_waits(). Only an abort because of close() or shutdown()
 * waits, and only while this end still reads from TCP.
 *
 * Context: connection worker.
 * Return: true while the abort has to wait; the worker still reads HELLO and frames then.
 */
bool afr_close_abort_deferred(struct afr_conn *conn)
{
	if (test_bit(AFR_F_TCP_EOF, &conn->flags) ||
	    (conn->attach.state != AFR_ATTACHING && !early_waits(conn)))
		return false;
	switch (conn->abort_reason) {
	case AFR_REASON_CLOSED_UNREAD:
	case AFR_REASON_LINGER_ZERO:
	case AFR_REASON_ORPHAN_DATA:
	case AFR_REASON_ORPHAN_LIMIT:
	case AFR_REASON_ORPHAN_TIMEOUT:
		return true;
	default:
		return false;
	}
}

static void do_abort(struct afr_conn *conn)
{
	enum afr_reason reason = conn->abort_reason;

	if (conn->attach.state == AFR_REQUESTED) {
		afr_move_detach(conn);		/* refuses the waiting client by ATTACHED */
		afr_frame_tx_push(conn);
	}
	if (is_violation(reason)) {
		afr_netns_count(conn->an->net, AFR_STAT_PEER_VIOLATION);
		afr_frame_tx_request(conn, AFR_FRAME_ERROR);
		afr_frame_tx_push(conn);	/* best effort: the reset may overtake ERROR */
	}
	WRITE_ONCE(conn->err, errno_of(conn));
	WRITE_ONCE(conn->reason, reason);
	spin_lock_bh(&conn->tx.lock);	/* no data is posted on the link after this */
	smp_mb__before_atomic();	/* conn->err is visible before the flag */
	set_bit(AFR_F_ABORTED, &conn->flags);
	spin_unlock_bh(&conn->tx.lock);
	mutex_lock(&conn->out.mutex);	/* wait for the call that is writing frames */
	mutex_unlock(&conn->out.mutex);
	tcp_abort(conn->tcp->sk, conn->err);
	afr_netns_count(conn->an->net, AFR_STAT_CONN_ABORTED);
	trace_afrdma_conn_abort(conn->id, reason, -conn->err);
	afr_conn_changed(conn);
}

/**
 * afr_close_tcp_eof() - handle the end of the TCP connection's incoming stream
 * @conn: connection
 * @err: 0 for TCP's FIN, or if a read has returned 0 because a sender has consumed TCP's error;
 *	else a negative error
 *
 * Context: connection worker.
 */
void afr_close_tcp_eof(struct afr_conn *conn, int err)
{
	bool complete;

	spin_lock_bh(&conn->rx.lock);
	complete = conn->rx.seq.visible == conn->rx.seq.fin;
	spin_unlock_bh(&conn->rx.lock);
	set_bit(AFR_F_TCP_EOF, &conn->flags);
	if (complete && afr_conn_tx_mode(conn) != AFR_MODE_FRAMED) {
		if (err)	/* the worker's read has cleared TCP's error: restore it */
			cmpxchg(&conn->tcp->sk->sk_err, 0, -err);
		afr_conn_changed(conn);		/* wake pollers: see reports_tcp() of poll.c */
	}
	/*
	 * No abort, no matter how TCP ended: the peer's whole stream has been received, and either
	 * the peer has acknowledged the local FIN, or the send direction is not framed.
	 */
	if (complete && (afr_send_done(conn) || afr_conn_tx_mode(conn) != AFR_MODE_FRAMED))
		return;
	if (err)
		WRITE_ONCE(conn->err, -err);
	if (err)
		afr_conn_abort(conn, err == -ECONNRESET ? AFR_REASON_RESET : AFR_REASON_TCP_ERROR);
	else if (!complete || conn->tx.seq.fin == AFR_NO_FIN ||
		 !test_bit(AFR_F_ORPHAN, &conn->flags))
		afr_conn_abort(conn, AFR_REASON_TCP_EOF);
}

/**
 * afr_close_blocked_sender() - abort if TCP has failed but the sender would never notice it
 * @conn: connection; the call has an effect only if the receive ring cannot take the rest of a
 *	DATA frame from TCP
 *
 * The worker notices an error of TCP, such as a reset, only after it has read all frames that
 * arrived before. It cannot read them while the receive ring gets no page and the program does not
 * read. If, in addition, the send direction is suspended or waits for the peer's cursor
 * (afr_tx_blocked()), no DATA is written to TCP. Then perhaps no write returns the error, and
 * send() would sleep for ever.
 *
 * Context: connection worker.
 */
void afr_close_blocked_sender(struct afr_conn *conn)
{
	const struct sock *tcp_sk = conn->tcp->sk;
	int err = READ_ONCE(tcp_sk->sk_err);
	bool blocked;

	lockdep_assert_held(&conn->worker.mutex);	/* protects conn->in */
	if (!conn->in.data || test_bit(AFR_F_ABORT, &conn->flags) ||
	    (!err && inet_sk_state_load(tcp_sk) != TCP_CLOSE))
		return;
	spin_lock_bh(&conn->tx.lock);
	blocked = conn->tx.seq.where == AFR_SUSPENDED || afr_tx_blocked(&conn->tx.seq);
	spin_unlock_bh(&conn->tx.lock);
	if (blocked)
		afr_close_tcp_eof(conn, -(err ?: ECONNRESET));
}

/*
 * Returns a sum that changes whenever the peer takes data: the peer's consumer cursor, plus una of
 * the send sequence state, plus, while the direction is on TCP, the bytes that the peer's TCP has
 * acknowledged. While it is on RDMA, TCP carries only control frames such as SERVICE, which are
 * acknowledged even if the peer's program is stuck.
 */
static u64 delivered(struct afr_conn *conn)
{
	u64 sum;

	spin_lock_bh(&conn->tx.lock);
	sum = conn->tx.seq.una + conn->tx.seq.consumed;
	if (conn->tx.seq.where == AFR_ON_TCP)
		sum += READ_ONCE(tcp_sk(conn->tcp->sk)->bytes_acked);
	spin_unlock_bh(&conn->tx.lock);
	return sum;
}

/*
 * The socket was just closed: keeps the connection so that it delivers its bytes, or aborts it if
 * orphans_max or the share of its user is reached (E3).
 */
static void new_orphan(struct afr_conn *conn)
{
	struct afr_net *an = conn->an;

	afr_netns_count(an->net, AFR_STAT_CONN_ORPHANED);
	conn->orphan_sum = delivered(conn);
	afr_conn_timer(conn, AFR_T_ORPHAN, READ_ONCE(an->set.orphan_timeout_ms));
	if (afr_netns_charge_orphan(an, &an->orphans, sk_uid(conn->tcp->sk)))
		set_bit(AFR_F_ORPHAN_COUNTED, &conn->flags);
	else
		afr_conn_abort(conn, AFR_REASON_ORPHAN_LIMIT);
}

/*
 * Called when the orphan timer has expired. If the orphan has delivered anything since the timer
 * was started, the peer is only slow: restarts the timer and returns true. Returns false if the
 * orphan has delivered nothing, always if a limit has refused it (new_orphan()), and always after
 * orphan_delivered(), whose time limit is final. TCP likewise keeps an orphan while the peer
 * acknowledges (RFC 9293, 3.8.6.1).
 */
static bool renew_orphan_timer(struct afr_conn *conn)
{
	u64 sum = delivered(conn);
	bool moved = sum != conn->orphan_sum;

	conn->orphan_sum = sum;
	if (!moved || !test_bit(AFR_F_ORPHAN_COUNTED, &conn->flags))
		return false;
	afr_conn_timer(conn, AFR_T_ORPHAN, READ_ONCE(conn->an->set.orphan_timeout_ms));
	return true;
}

/*
 * Called when the peer of an orphan has received everything, or TCP of a one-way orphan has ended,
 * while the peer's stream is not known to be complete. The peer may take long to complete it, and
 * meanwhile the orphan must not use up its namespace's limit for orphans that still deliver. So it
 * is counted against a second limit of the same size, and lives at most as long as a TCP socket in
 * FIN-WAIT-2 (tcp_fin_timeout, TCP_LINGER2), and at most orphan_timeout_ms.
 */
static void orphan_delivered(struct afr_conn *conn)
{
	struct afr_net *an = conn->an;
	int fin = max(tcp_fin_time(conn->tcp->sk), 1);	/* a few RTOs if TCP_LINGER2 is -1 */
	kuid_t uid = sk_uid(conn->tcp->sk);

	afr_conn_timer(conn, AFR_T_ORPHAN, min_t(unsigned int, jiffies_to_msecs(fin),
						 READ_ONCE(an->set.orphan_timeout_ms)));
	clear_bit(AFR_F_ORPHAN_COUNTED, &conn->flags);
	afr_netns_uncharge_orphan(&an->orphans, uid);
	if (afr_netns_charge_orphan(an, &an->orphans_done, uid))
		set_bit(AFR_F_ORPHAN_DONE, &conn->flags);
	else
		afr_conn_abort(conn, AFR_REASON_ORPHAN_LIMIT);
}

/**
 * afr_close_one_way_done() - has the peer received all that TCP carries, or has TCP ended?
 * @conn: connection
 *
 * On a one-way connection, nothing else shows that the peer has received everything.
 *
 * Context: any.
 * Return: true if this end has shut down TCP for writing, and the peer has acknowledged TCP's FIN
 * or TCP has ended.
 */
bool afr_close_one_way_done(const struct afr_conn *conn)
{
	return test_bit(AFR_F_TCP_SHUT, &conn->flags) &&
	       (1 << inet_sk_state_load(conn->tcp->sk)) &
	       (TCPF_FIN_WAIT2 | TCPF_TIME_WAIT | TCPF_CLOSE);
}

static void finish(struct afr_conn *conn)
{
	if (test_bit(AFR_F_FINISHED, &conn->flags))
		return;
	afr_netns_count(conn->an->net, AFR_STAT_CONN_FINISHED);
	afr_tcp_sock_remove(conn);	/* TCP's struct sock may outlive the connection */
	afr_conn_finish(conn);
	afr_conn_changed(conn);
}

/*
 * Takes the steps of an orphan. For how it is counted, see new_orphan() and orphan_delivered().
 * Aborts the connection if it has received bytes that no program will read (PE7). When the orphan
 * timer has expired and is not renewed, ends the connection: without a reset, as TCP does at the
 * end of FIN-WAIT-2, if afr_close_one_way_done() is true, and by an abort otherwise.
 */
static void run_orphan(struct afr_conn *conn)
{
	bool unread;

	if (!test_and_set_bit(AFR_F_ORPHAN_SEEN, &conn->flags))
		new_orphan(conn);
	spin_lock_bh(&conn->rx.lock);
	unread = conn->rx.seq.visible != conn->rx.seq.consumed;
	spin_unlock_bh(&conn->rx.lock);
	if (unread)
		afr_conn_abort(conn, AFR_REASON_CLOSED_UNREAD);
	if (test_bit(AFR_F_ORPHAN_COUNTED, &conn->flags) && !afr_recv_fin(conn) &&
	    (afr_send_done(conn) || afr_close_one_way_done(conn)))
		orphan_delivered(conn);
	if (afr_conn_timer_due(conn, AFR_T_ORPHAN) && !renew_orphan_timer(conn)) {
		if (afr_close_one_way_done(conn)) {
			finish(conn);
			return;
		}
		/* makes early_waits() false, so that the abort does not wait for HELLO */
		if (afr_conn_tx_mode(conn) == AFR_MODE_UNDECIDED)
			set_bit(AFR_F_NO_EARLY_TX, &conn->flags);
		afr_conn_abort(conn, AFR_REASON_ORPHAN_TIMEOUT);
	}
}

/*
 * Called after the program has shut down both directions: aborts the connection if more bytes have
 * come into the receive ring since, which cannot be delivered (RFC 9293, 3.6.1).
 */
static void run_rx_refused(struct afr_conn *conn)
{
	bool more;

	spin_lock_bh(&conn->rx.lock);
	more = conn->rx.seq.visible > conn->rx.refused_from;
	spin_unlock_bh(&conn->rx.lock);
	if (more)
		afr_conn_abort(conn, AFR_REASON_ORPHAN_DATA);
}

/*
 * Are both directions complete: FINACK was received, and the local FINACK was at least requested?
 * Requests the local FINACK if it is due.
 */
static bool both_complete(struct afr_conn *conn)
{
	bool finack_requested;

	spin_lock_bh(&conn->rx.lock);
	if (afr_rx_finack_due(&conn->rx.seq))
		afr_frame_tx_request(conn, AFR_FRAME_FINACK);
	finack_requested = conn->rx.seq.finack_requested;
	spin_unlock_bh(&conn->rx.lock);
	return finack_requested && afr_send_done(conn);
}

/*
 * Shuts down TCP for writing, and resets it if it has dropped its FIN. tcp_send_fin() drops a FIN
 * for which it cannot allocate a packet and never retries, so the peer would wait for TCP's FIN
 * until its orphan timeout. Both streams are complete here, so the reset loses no byte of them. But
 * if the peer has not yet received this end's FINACK, it sees a reset (ECONNRESET) instead of an
 * orderly end.
 *
 * In LAST-ACK, tcp_abort() sends no reset, so the peer waits all the same; but without tcp_abort()
 * the local TCP connection might stay for ever.
 */
static void send_tcp_fin(struct afr_conn *conn)
{
	struct sock *tcp = conn->tcp->sk;
	u32 seq = READ_ONCE(tcp_sk(tcp)->write_seq);

	kernel_sock_shutdown(conn->tcp, SHUT_WR);
	if (READ_ONCE(tcp_sk(tcp)->write_seq) == seq &&
	    (1 << inet_sk_state_load(tcp)) & (TCPF_FIN_WAIT1 | TCPF_LAST_ACK))
		tcp_abort(tcp, ECONNRESET);
}

/*
 * Shuts down TCP for writing. TCP calls sk_state_change meanwhile; AFR_F_TCP_SHUTTING_DOWN keeps
 * on_state_change() from taking that for an event caused by the peer.
 */
static void shut_tcp(struct afr_conn *conn)
{
	set_bit(AFR_F_TCP_SHUTTING_DOWN, &conn->flags);
	send_tcp_fin(conn);
	set_bit(AFR_F_TCP_SHUT, &conn->flags);
	clear_bit(AFR_F_TCP_SHUTTING_DOWN, &conn->flags);
	smp_mb__after_atomic();	/* clear the flag before checking for the peer's TCP FIN */
	if (!test_bit(AFR_F_TCP_EOF, &conn->flags) && afr_tcp_sock_ended(conn))
		afr_conn_schedule(conn);
}

/*
 * Sends the pending frames. If TCP takes all of them, also shuts down TCP, so that TCP's FIN is in
 * the segment of the last frame.
 */
static void push_and_shut_tcp(struct afr_conn *conn)
{
	tcp_sock_set_cork(conn->tcp->sk, true);
	afr_frame_tx_push(conn);
	if (afr_frame_tx_idle(conn))
		shut_tcp(conn);
	else
		tcp_sock_set_cork(conn->tcp->sk, false);
}

/* Negotiated: once both directions are complete, leaves the link, shuts down TCP and finishes. */
static void run_framed(struct afr_conn *conn)
{
	if (!both_complete(conn))
		return;
	set_bit(AFR_F_FLUSH, &conn->flags);	/* FINACK has no later frame to wait for */
	afr_move_detach(conn);
	if (conn->attach.state != AFR_DETACHED) {
		afr_frame_tx_push(conn);
		return;
	}
	if (!test_bit(AFR_F_TCP_SHUT, &conn->flags))
		push_and_shut_tcp(conn);
	if (test_bit(AFR_F_TCP_SHUT, &conn->flags) && test_bit(AFR_F_TCP_EOF, &conn->flags))
		finish(conn);
}

/*
 * One-way: no FINACK can acknowledge FIN, so the FINs of TCP end such a connection. An orphan
 * whose receive direction is not in fallback mode goes on reading HELLO and frames until the peer
 * has ended TCP, because TCP, once released, would answer them with a reset (E1).
 */
static void run_one_way(struct afr_conn *conn)
{
	bool sent;

	spin_lock_bh(&conn->tx.lock);
	sent = conn->tx.seq.sent == conn->tx.seq.fin;
	spin_unlock_bh(&conn->tx.lock);
	if (sent && afr_conn_tx_mode(conn) == AFR_MODE_FRAMED &&
	    !test_bit(AFR_F_TCP_SHUT, &conn->flags) && afr_frame_tx_idle(conn)) {
		kernel_sock_shutdown(conn->tcp, SHUT_WR);
		set_bit(AFR_F_TCP_SHUT, &conn->flags);
	}
	if (test_bit(AFR_F_ORPHAN, &conn->flags) && test_bit(AFR_F_TCP_SHUT, &conn->flags) &&
	    (afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK || test_bit(AFR_F_TCP_EOF, &conn->flags)))
		finish(conn);
}

/* Applies shutdown(SHUT_WR) or close(), as soon as the mode of the send direction is decided. */
static void end_output(struct afr_conn *conn)
{
	if (afr_conn_tx_mode(conn) == AFR_MODE_FRAMED)
		afr_send_fin(conn);
	else if (afr_conn_tx_mode(conn) == AFR_MODE_FALLBACK &&
		 !test_and_set_bit(AFR_F_TCP_SHUT, &conn->flags))
		kernel_sock_shutdown(conn->tcp, SHUT_WR);
}

/**
 * afr_close_run() - take the next step towards the end of the connection, if it has to end
 * @conn: connection; both directions may be undecided
 *
 * Context: connection worker, after the steps of attach and move.
 */
void afr_close_run(struct afr_conn *conn)
{
	if (test_bit(AFR_F_ORPHAN, &conn->flags))
		run_orphan(conn);
	else if (test_bit(AFR_F_RX_REFUSED, &conn->flags))
		run_rx_refused(conn);
	if (test_bit(AFR_F_ABORT, &conn->flags) && !test_bit(AFR_F_ABORTED, &conn->flags)) {
		if (afr_close_abort_deferred(conn)) {
			/* AFR_T_DETACH limits a wait for ATTACHED, AFR_T_HELLO one for HELLO */
			afr_move_detach(conn);
			return;
		}
		do_abort(conn);
	}
	if (test_bit(AFR_F_ABORTED, &conn->flags)) {
		afr_move_detach(conn);
		if (conn->attach.state == AFR_DETACHED)
			finish(conn);
		return;
	}
	/* not reached while an abort is due: FIN would mean a clean end */
	if (test_bit(AFR_F_FIN_WANTED, &conn->flags) || test_bit(AFR_F_ORPHAN, &conn->flags))
		end_output(conn);
	if (afr_conn_negotiated(conn))
		run_framed(conn);
	else if (afr_conn_tx_mode(conn) == AFR_MODE_FALLBACK ||
		 afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK)
		run_one_way(conn);
}

/**
 * afr_close_tcp_state() - get the TCP state that corresponds to the FINs sent and received
 * @conn: connection; the result makes sense only if it is negotiated
 *
 * Programs detect a half-close by the state in TCP_INFO, but the real TCP connection stays
 * ESTABLISHED until both directions have ended. For the states see RFC 9293, 3.3.2.
 *
 * Context: any but hard irq.
 * Return: TCP_ESTABLISHED, TCP_FIN_WAIT1, ...
 */
u8 afr_close_tcp_state(struct afr_conn *conn)
{
	bool out, acked, in;

	spin_lock_bh(&conn->tx.lock);
	out = conn->tx.seq.fin != AFR_NO_FIN;
	acked = conn->tx.seq.finacked;
	spin_unlock_bh(&conn->tx.lock);
	in = afr_recv_fin(conn);
	if (test_bit(AFR_F_ABORTED, &conn->flags))
		return TCP_CLOSE;
	if (out && in && acked)
		return TCP_CLOSE;	/* sockets never report TIME-WAIT */
	if (out && in)
		return test_bit(AFR_F_PASSIVE_CLOSE, &conn->flags) ? TCP_LAST_ACK : TCP_CLOSING;
	if (out)
		return acked ? TCP_FIN_WAIT2 : TCP_FIN_WAIT1;
	return in ? TCP_CLOSE_WAIT : TCP_ESTABLISHED;
}

/**
 * afr_close_refuse() - abort because of a frame or HELLO of the peer, and stop reading from TCP
 * @conn: connection
 * @reason: why
 *
 * Later bytes from TCP are not parsed, and an abort no longer waits (afr_close_abort_deferred()).
 *
 * Context: connection worker.
 */
void afr_close_refuse(struct afr_conn *conn, enum afr_reason reason)
{
	set_bit(AFR_F_TCP_EOF, &conn->flags);
	afr_conn_abort(conn, reason);
}
