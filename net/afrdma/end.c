// SPDX-License-Identifier: GPL-2.0
/*
 * How connections end.
 *
 * In order: both FINs acknowledged -> both ends off the link (DETACH behind the
 * last write, PE5) -> TCP shut for writing -> read to TCP's end -> finished (E1,
 * PE4). By abort: TCP reset, off the link, finished. A closed socket leaves an
 * orphan that goes the same way under a timer.
 */
#include "end.h"

#include <net/sock.h>
#include <net/tcp.h>
#include <net/tcp_states.h>

#include "control.h"
#include "hook.h"
#include "move.h"
#include "recv.h"
#include "send.h"
#include "stats.h"
#include "trace.h"

/* What calls report for an abort. */
static int errno_of(struct afr_conn *conn)
{
	enum afr_reason reason = conn->abort_reason;

	/* as tcp(7): a reset behind the peer's end of stream is a broken pipe */
	if (reason == AFR_REASON_RESET && afr_recv_fin(conn))
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

static bool violation(enum afr_reason reason)
{
	return reason >= AFR_REASON_HELLO_BAD;
}

/* What a server has written before the client's HELLO is as good as sent, to its program. */
static bool early_waits(const struct afr_conn *conn)
{
	return afr_conn_tx_mode(conn) == AFR_UNDECIDED && conn->tx.written &&
	       !test_bit(AFR_F_EARLY_OVER, &conn->flags);
}

/**
 * afr_end_waits() - does an abort wait for the answer to our ATTACH, or for the client's HELLO?
 * @conn: connection
 *
 * Without the answer we do not know the peer's slot, cannot send DETACH to it, and the
 * whole link would have to go. Our own wish to reset can wait for that; a broken
 * protocol or a dead TCP connection cannot.
 *
 * Context: the work.
 * Return: true while it does: HELLO and frames are still read.
 */
bool afr_end_waits(struct afr_conn *conn)
{
	if (test_bit(AFR_F_INNER_EOF, &conn->flags) ||
	    (conn->attach != AFR_ATTACHING && !early_waits(conn)))
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

	if (conn->attach == AFR_REQUESTED) {
		afr_move_detach(conn);		/* the client must not wait for an answer */
		afr_control_push(conn);
	}
	if (violation(reason)) {
		afr_stat_inc(conn->an->net, AFR_STAT_PEER_VIOLATION);
		afr_control_want(conn, AFR_WANT_ERROR);
		afr_control_push(conn);	/* a courtesy: the reset may overtake it */
	}
	WRITE_ONCE(conn->err, errno_of(conn));
	WRITE_ONCE(conn->reason, reason);
	spin_lock_bh(&conn->tx_lock);	/* posts on the link end here */
	set_bit(AFR_F_ABORTED, &conn->flags);
	spin_unlock_bh(&conn->tx_lock);
	mutex_lock(&conn->ctl_mutex);	/* frames end here */
	mutex_unlock(&conn->ctl_mutex);
	tcp_abort(conn->inner->sk, conn->err);
	afr_stat_inc(conn->an->net, AFR_STAT_CONN_ABORTED);
	trace_afrdma_conn_abort(conn->id, reason, -conn->err);
	afr_conn_changed(conn);
}

/**
 * afr_end_inner() - the inner TCP stream is over
 * @conn: connection
 * @err: 0 for TCP's FIN, else the error
 *
 * Context: the work.
 */
void afr_end_inner(struct afr_conn *conn, int err)
{
	bool complete;

	spin_lock_bh(&conn->rx_lock);
	complete = conn->rx.visible == conn->rx.fin;
	spin_unlock_bh(&conn->rx_lock);
	set_bit(AFR_F_INNER_EOF, &conn->flags);
	/* both directions are whole, or ours is TCP's to end: how it does, does not matter */
	if (complete && (afr_send_done(conn) || afr_conn_tx_mode(conn) != AFR_FRAMED))
		return;
	if (err)
		WRITE_ONCE(conn->err, -err);
	if (err)
		afr_conn_abort(conn, err == -ECONNRESET ? AFR_REASON_RESET : AFR_REASON_TCP_ERROR);
	else if (!complete || conn->tx.fin == AFR_NO_FIN || !test_bit(AFR_F_ORPHAN, &conn->flags))
		afr_conn_abort(conn, AFR_REASON_TCP_EOF);
}

/**
 * afr_end_unread() - abort a sender whose TCP connection was reset behind unread DATA
 * @conn: connection; the receive ring takes no more of the DATA frame that TCP holds
 *
 * The reset is found when all frames before it are read. While the receive ring can have no page
 * and the program does not read, they are not; if the send window is closed as well, nothing is
 * written to TCP that would return the error, and send() would sleep for ever.
 *
 * Context: the work.
 */
void afr_end_unread(struct afr_conn *conn)
{
	const struct sock *isk = conn->inner->sk;
	int err = READ_ONCE(isk->sk_err);
	bool blocked;

	lockdep_assert_held(&conn->run_mutex);	/* in_data */
	if (!conn->in_data || test_bit(AFR_F_ABORT, &conn->flags) ||
	    (!err && inet_sk_state_load(isk) != TCP_CLOSE))
		return;
	spin_lock_bh(&conn->tx_lock);
	blocked = afr_tx_blocked(&conn->tx);
	spin_unlock_bh(&conn->tx_lock);
	if (blocked)
		afr_end_inner(conn, -(err ?: ECONNRESET));
}

/*
 * What moves when the peer takes something: its cursor, what TCP or the cursor frees of the send
 * ring, and on TCP what the peer's TCP acknowledges. Beside RDMA that does so of SERVICE frames,
 * whatever becomes of the program.
 */
static u64 delivered(struct afr_conn *conn)
{
	u64 sum;

	spin_lock_bh(&conn->tx_lock);
	sum = conn->tx.una + conn->tx.consumed;
	if (conn->tx.where == AFR_ON_TCP)
		sum += READ_ONCE(tcp_sk(conn->inner->sk)->bytes_acked);
	spin_unlock_bh(&conn->tx_lock);
	return sum;
}

/* Closed just now: one more that we keep for the rest of its bytes, if there is room (E3). */
static void new_orphan(struct afr_conn *conn)
{
	struct afr_net *an = conn->an;

	afr_stat_inc(an->net, AFR_STAT_CONN_ORPHANED);
	conn->orphan_sum = delivered(conn);
	afr_conn_timer(conn, AFR_T_ORPHAN, READ_ONCE(an->set.orphan_timeout_ms));
	if (afr_net_take_orphan(an, &an->orphans))
		set_bit(AFR_F_ORPHAN_COUNTED, &conn->flags);
	else
		afr_conn_abort(conn, AFR_REASON_ORPHAN_LIMIT);
}

/*
 * The time is over. A slow reader is no dead one: what still delivers gets another time, as TCP's
 * orphans live while their peer acknowledges (RFC 9293, 3.8.6.1).
 */
static bool still_delivers(struct afr_conn *conn)
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
 * The peer has all of it, and may take its time to end its own direction: that is no reason to
 * reset those who still deliver. As TCP's sockets in FIN-WAIT-2, it is only one of as many more,
 * for as long as these (tcp_fin_timeout, TCP_LINGER2).
 */
static void orphan_done(struct afr_conn *conn)
{
	struct afr_net *an = conn->an;
	int fin = max(tcp_fin_time(conn->inner->sk), 1);	/* TCP_LINGER2 may be -1 */

	afr_conn_timer(conn, AFR_T_ORPHAN, min_t(unsigned int, jiffies_to_msecs(fin),
						 READ_ONCE(an->set.orphan_timeout_ms)));
	clear_bit(AFR_F_ORPHAN_COUNTED, &conn->flags);
	afr_net_give_orphan(&an->orphans);
	if (afr_net_take_orphan(an, &an->orphans_done))
		set_bit(AFR_F_ORPHAN_DONE, &conn->flags);
	else
		afr_conn_abort(conn, AFR_REASON_ORPHAN_LIMIT);
}

/* The program has closed its socket: end our direction, refuse what nobody will read (PE7). */
static void run_orphan(struct afr_conn *conn)
{
	bool unread;

	if (!test_and_set_bit(AFR_F_ORPHAN_SEEN, &conn->flags))
		new_orphan(conn);
	spin_lock_bh(&conn->rx_lock);
	unread = conn->rx.visible != conn->rx.consumed;
	spin_unlock_bh(&conn->rx_lock);
	if (unread)
		afr_conn_abort(conn, AFR_REASON_CLOSED_UNREAD);
	else if (afr_conn_tx_mode(conn) == AFR_FRAMED && !test_bit(AFR_F_ABORT, &conn->flags))
		afr_send_fin(conn);	/* never ahead of a reset: the peer would see an end */
	if (test_bit(AFR_F_ORPHAN_COUNTED, &conn->flags) && afr_send_done(conn) &&
	    !afr_recv_fin(conn))
		orphan_done(conn);
	if (afr_conn_timer_due(conn, AFR_T_ORPHAN) && !still_delivers(conn)) {
		if (afr_conn_tx_mode(conn) == AFR_UNDECIDED)
			set_bit(AFR_F_EARLY_OVER, &conn->flags);	/* nothing waits any more */
		afr_conn_abort(conn, AFR_REASON_ORPHAN_TIMEOUT);
	}
}

/* Shut both ways, and the peer goes on (RFC 9293, 3.10.7.4: data that nobody can receive). */
static void run_deaf(struct afr_conn *conn)
{
	bool more;

	spin_lock_bh(&conn->rx_lock);
	more = conn->rx.visible > conn->deaf_at;
	spin_unlock_bh(&conn->rx_lock);
	if (more)
		afr_conn_abort(conn, AFR_REASON_ORPHAN_DATA);
}

/* Both directions are whole and both ends know it. */
static bool both_whole(struct afr_conn *conn)
{
	bool told;

	spin_lock_bh(&conn->rx_lock);
	if (afr_rx_finack_due(&conn->rx))
		afr_control_want(conn, AFR_WANT_FINACK);
	told = conn->rx.eof_told;
	spin_unlock_bh(&conn->rx_lock);
	return told && afr_send_done(conn);
}

static void finish(struct afr_conn *conn, enum afr_stat stat)
{
	if (test_bit(AFR_F_FINISHED, &conn->flags))
		return;
	afr_stat_inc(conn->an->net, stat);
	afr_hook_remove(conn);	/* the inner socket may outlive us in TCP's hands */
	afr_conn_finish(conn);
	afr_conn_changed(conn);
}

/*
 * TCP drops a FIN for which there is no memory, and never sends it again (tcp_send_fin()): the
 * connection would stay at both ends until the time of orphans is over. Both streams are whole,
 * so a reset ends it as well.
 */
static void send_tcp_fin(struct afr_conn *conn)
{
	struct sock *isk = conn->inner->sk;
	u32 seq = READ_ONCE(tcp_sk(isk)->write_seq);

	kernel_sock_shutdown(conn->inner, SHUT_WR);
	if (READ_ONCE(tcp_sk(isk)->write_seq) == seq &&
	    (1 << inet_sk_state_load(isk)) & (TCPF_FIN_WAIT1 | TCPF_LAST_ACK))
		tcp_abort(isk, ECONNRESET);
}

/* TCP tells its hooks of that as of anything else. */
static void shut_tcp(struct afr_conn *conn)
{
	set_bit(AFR_F_SHUTTING, &conn->flags);
	send_tcp_fin(conn);
	set_bit(AFR_F_INNER_SHUT, &conn->flags);
	clear_bit(AFR_F_SHUTTING, &conn->flags);
	smp_mb__after_atomic();	/* then look whether the peer's end has come meanwhile */
	if (!test_bit(AFR_F_INNER_EOF, &conn->flags) && afr_hook_ended(conn))
		afr_conn_schedule(conn);
}

/* The last frame and TCP's FIN in one segment. */
static void shut_inner(struct afr_conn *conn)
{
	tcp_sock_set_cork(conn->inner->sk, true);
	afr_control_push(conn);
	if (afr_control_idle(conn))
		shut_tcp(conn);
	else
		tcp_sock_set_cork(conn->inner->sk, false);
}

static void run_framed(struct afr_conn *conn)
{
	if (!both_whole(conn))
		return;
	set_bit(AFR_F_SAY, &conn->flags);	/* nobody will say more */
	afr_move_detach(conn);
	if (conn->attach != AFR_DETACHED) {
		afr_control_push(conn);
		return;
	}
	if (!test_bit(AFR_F_INNER_SHUT, &conn->flags))
		shut_inner(conn);
	if (test_bit(AFR_F_INNER_SHUT, &conn->flags) && test_bit(AFR_F_INNER_EOF, &conn->flags))
		finish(conn, AFR_STAT_CONN_FINISHED);
}

/* One direction framed: nothing is acknowledged, TCP itself ends such a connection. */
static void run_half(struct afr_conn *conn)
{
	if (afr_conn_tx_mode(conn) == AFR_FRAMED && conn->tx.fin != AFR_NO_FIN &&
	    !test_bit(AFR_F_INNER_SHUT, &conn->flags) && afr_control_idle(conn)) {
		kernel_sock_shutdown(conn->inner, SHUT_WR);
		set_bit(AFR_F_INNER_SHUT, &conn->flags);
	}
	if (!test_bit(AFR_F_ORPHAN, &conn->flags))
		return;
	if (afr_conn_tx_mode(conn) == AFR_RAW || test_bit(AFR_F_INNER_SHUT, &conn->flags))
		finish(conn, AFR_STAT_CONN_FINISHED);
}

/* shutdown(SHUT_WR) may have come before it was decided what our output is. */
static void end_output(struct afr_conn *conn)
{
	if (afr_conn_tx_mode(conn) == AFR_FRAMED)
		afr_send_fin(conn);
	else if (afr_conn_tx_mode(conn) == AFR_RAW &&
		 !test_and_set_bit(AFR_F_INNER_SHUT, &conn->flags))
		kernel_sock_shutdown(conn->inner, SHUT_WR);
}

/**
 * afr_end_run() - take what has ended to its end
 * @conn: connection with at least one direction decided
 *
 * Context: the work.
 */
void afr_end_run(struct afr_conn *conn)
{
	if (test_bit(AFR_F_ORPHAN, &conn->flags))
		run_orphan(conn);
	else if (test_bit(AFR_F_DEAF, &conn->flags))
		run_deaf(conn);
	if (test_bit(AFR_F_ABORT, &conn->flags) && !test_bit(AFR_F_ABORTED, &conn->flags)) {
		if (afr_end_waits(conn)) {
			afr_move_detach(conn);	/* starts the timer that bounds it */
			return;
		}
		do_abort(conn);
	}
	if (test_bit(AFR_F_ABORTED, &conn->flags)) {
		afr_move_detach(conn);
		if (conn->attach == AFR_DETACHED)
			finish(conn, AFR_STAT_CONN_FINISHED);
		return;
	}
	if (test_bit(AFR_F_FIN_WANTED, &conn->flags))
		end_output(conn);
	if (afr_conn_framed(conn))
		run_framed(conn);
	else if (afr_conn_tx_mode(conn) == AFR_RAW || afr_conn_rx_mode(conn) == AFR_RAW)
		run_half(conn);
}

/**
 * afr_end_tcp_state() - the state that TCP would be in with this stream
 * @conn: framed connection
 *
 * The inner connection stays ESTABLISHED until both directions have ended, but programs take
 * a half-close from TCP_INFO (RFC 9293, 3.3.2).
 *
 * Context: any.
 * Return: TCP_ESTABLISHED, TCP_FIN_WAIT1, ...
 */
u8 afr_end_tcp_state(struct afr_conn *conn)
{
	bool out, acked, in;

	spin_lock_bh(&conn->tx_lock);
	out = conn->tx.fin != AFR_NO_FIN;
	acked = conn->tx.finacked;
	spin_unlock_bh(&conn->tx_lock);
	in = afr_recv_fin(conn);
	if (test_bit(AFR_F_ABORTED, &conn->flags))
		return TCP_CLOSE;
	if (out && in)
		return acked ? TCP_CLOSE : TCP_CLOSING;	/* TIME-WAIT is no socket's */
	if (out)
		return acked ? TCP_FIN_WAIT2 : TCP_FIN_WAIT1;
	return in ? TCP_CLOSE_WAIT : TCP_ESTABLISHED;
}
