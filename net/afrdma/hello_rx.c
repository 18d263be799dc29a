// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Receives HELLO. The first bytes of the peer decide whether the receive direction is framed or in
 * fallback mode. The receive direction also falls back if the peer ends its stream without sending
 * a byte or, on a server, if TCP fails before a byte has arrived. The connection is aborted
 * - if HELLO is invalid;
 * - if TCP ends or fails when only a part of HELLO has arrived;
 * - on a client, if TCP fails before a byte has arrived;
 * - on a server, if only a part of HELLO has arrived when hello_timeout_ms expires.
 *
 * A client's send direction is framed already. A server's send direction gets the mode of the
 * receive direction, unless it has already begun to fall back: it does so when hello_timeout_ms
 * has expired and something waits to be sent.
 */
#include <linux/log2.h>
#include <linux/net.h>
#include <linux/uio.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "close.h"
#include "cm_listener.h"
#include "conn_info.h"
#include "frame_tx.h"
#include "hello_rx.h"
#include "proto/hello.h"
#include "send.h"
#include "tcp_sock.h"
#include "trace.h"

/*
 * Copies the first bytes of the receive queue without removing them. MSG_PEEK is not used, because
 * it would begin at the program's SO_PEEK_OFF.
 */
static unsigned int queue_copy(struct sock *tcp_sk, u8 *buf, unsigned int len)
{
	unsigned int got = 0, n;
	struct sk_buff *skb;
	u32 offset;

	sock_owned_by_me(tcp_sk);
	skb_queue_walk(&tcp_sk->sk_receive_queue, skb) {
		offset = tcp_sk(tcp_sk)->copied_seq + got - TCP_SKB_CB(skb)->seq;
		if (TCP_SKB_CB(skb)->tcp_flags & TCPHDR_SYN)
			offset--;
		if (offset >= skb->len)
			continue;
		n = min(len - got, skb->len - offset);
		if (skb_copy_bits(skb, offset, buf + got, n))
			break;
		got += n;
		if (got == len)
			break;
	}
	return got;
}

/*
 * Copies up to @len bytes that have arrived, and returns their number. If there are none, returns
 * - 0 after TCP's FIN, or if TCP has failed and its error was already consumed;
 * - else the error of TCP if TCP has failed, and consumes that error;
 * - -ENOTCONN if TCP was disconnected;
 * - -EAGAIN otherwise.
 */
static int peek_tcp(struct afr_conn *conn, u8 *buf, unsigned int len)
{
	struct sock *tcp_sk = conn->tcp->sk;
	int ret;

	lock_sock(tcp_sk);
	ret = queue_copy(tcp_sk, buf, len);
	if (!ret && !sock_flag(tcp_sk, SOCK_DONE)) {
		ret = sock_error(tcp_sk);
		if (!ret && !(tcp_sk->sk_shutdown & RCV_SHUTDOWN))
			ret = tcp_sk->sk_state == TCP_CLOSE ? -ENOTCONN : -EAGAIN;
	}
	release_sock(tcp_sk);
	return ret;
}

/*
 * Stores @reason, increments the counter @stat, traces the modes of both directions, and stops
 * AFR_T_HELLO. The modes themselves are set elsewhere, before or after this call.
 */
static void record_modes(struct afr_conn *conn, enum afr_mode tx, enum afr_mode rx,
			 enum afr_reason reason, enum afr_stat stat)
{
	WRITE_ONCE(conn->reason, reason);
	afr_netns_count(conn->an->net, stat);
	trace_afrdma_conn_negotiated(conn->id, tx, rx, reason);
	afr_conn_timer(conn, AFR_T_HELLO, 0);
}

/**
 * afr_hello_rx_tx_fallback() - make the send direction fall back to TCP
 * @conn: connection
 *
 * TCP must first take the bytes that the program wrote while the direction was undecided; until it
 * has taken all of them, or has failed, call the function again. The receive direction does not
 * wait for this, because the peer might not read until this end reads.
 *
 * Context: connection worker.
 */
void afr_hello_rx_tx_fallback(struct afr_conn *conn)
{
	bool whole = afr_conn_tx_mode(conn) != AFR_MODE_UNDECIDED || afr_frame_tx_drain_early(conn);

	if (whole && afr_conn_rx_mode(conn) == AFR_MODE_FALLBACK) {
		/* no part of a frame was read or written (I13) */
		AFR_CHECK(!conn->out.len && !conn->in.len);
		conn->sock_ops->fall_back(conn);
		return;
	}
	if (whole)
		afr_conn_set_tx_mode(conn, AFR_MODE_FALLBACK);
	afr_conn_changed(conn);
}

/**
 * afr_hello_rx_early_pending() - does TCP still have to take bytes that were written early?
 * @conn: connection
 *
 * If so, the send direction is still undecided but is going to fall back, because TCP may have
 * taken unframed bytes, which no frame can follow.
 *
 * Context: connection worker.
 * Return: true if so; afr_hello_rx_tx_fallback() is to be called again.
 */
bool afr_hello_rx_early_pending(const struct afr_conn *conn)
{
	return afr_conn_tx_mode(conn) == AFR_MODE_UNDECIDED &&
	       test_bit(AFR_F_NO_EARLY_TX, &conn->flags);
}

/*
 * The peer's first bytes are the application's; or the peer has ended its stream, or TCP has
 * failed, before a byte has arrived. The receive direction falls back, and so does the send
 * direction, unless it is framed.
 */
static void rx_fallback(struct afr_conn *conn, enum afr_reason reason)
{
	if (afr_conn_tx_mode(conn) == AFR_MODE_FRAMED) {
		afr_conn_set_rx_mode(conn, AFR_MODE_FALLBACK);
		spin_lock_bh(&conn->tx.lock);
		/* the peer sends no CREDIT: from now on TCP's window limits this end */
		afr_tx_credit(&conn->tx.seq, conn->tx.seq.una);
		spin_unlock_bh(&conn->tx.lock);
		record_modes(conn, AFR_MODE_FRAMED, AFR_MODE_FALLBACK, AFR_REASON_HALF_FRAMED,
			     AFR_STAT_CONN_HALF);
		afr_conn_changed(conn);
		return;
	}
	record_modes(conn, AFR_MODE_FALLBACK, AFR_MODE_FALLBACK, reason, AFR_STAT_CONN_PLAIN);
	afr_conn_set_rx_mode(conn, AFR_MODE_FALLBACK);
	afr_hello_rx_tx_fallback(conn);
}

/*
 * Server: the client has ended its stream, or TCP has failed, before a byte has arrived. @err is 0
 * or the error that peek_tcp() has returned. Stores an error in the TCP socket, for the program's
 * next call. Then falls back.
 */
static void ended_without_hello(struct afr_conn *conn, int err)
{
	if (err)
		WRITE_ONCE(conn->tcp->sk->sk_err, -err);
	rx_fallback(conn, AFR_REASON_NO_HELLO);
}

/* The size of the peer's send ring; the smallest one if HELLO has no valid size. */
static u32 send_ring_of(const struct afr_hello *hello)
{
	u32 order = hello->features & AFR_FEATURE_SEND_RING;

	return order < ilog2(AFR_RING_MIN) || order > ilog2(AFR_RING_MAX) ? AFR_RING_MIN :
									    1u << order;
}

/*
 * Stores the contents of the peer's HELLO, and makes the receive direction framed. If the send
 * direction is undecided and has not begun to fall back, requests a HELLO in answer, and makes the
 * send direction framed as well.
 */
static void take_hello(struct afr_conn *conn, const struct afr_hello *hello)
{
	struct afr_peer *peer = &conn->peer;

	afr_netns_count(conn->an->net, AFR_STAT_HELLO_RECEIVED);
	memcpy(peer->instance, hello->instance, sizeof(peer->instance));
	memcpy(peer->secret, hello->secret, sizeof(peer->secret));
	peer->port = hello->port;
	afr_conn_info_addrs(conn, &peer->local, &peer->remote);
	conn->in.skip = hello->length - sizeof(struct afr_wire_hello);

	spin_lock_bh(&conn->tx.lock);
	afr_tx_set_window(&conn->tx.seq, hello->ring);
	spin_unlock_bh(&conn->tx.lock);
	spin_lock_bh(&conn->rx.lock);
	afr_rx_set_peer_ring(&conn->rx.seq, send_ring_of(hello));
	spin_unlock_bh(&conn->rx.lock);
	if (afr_conn_tx_mode(conn) == AFR_MODE_UNDECIDED && !afr_hello_rx_early_pending(conn)) {
		conn->cm_port = afr_cm_listener_port(conn->an, conn->tcp->sk->sk_family);
		afr_frame_tx_request(conn, AFR_PENDING_HELLO);
		afr_conn_set_tx_mode(conn, AFR_MODE_FRAMED);
	}
	afr_conn_set_rx_mode(conn, AFR_MODE_FRAMED);
	afr_tcp_sock_open_window(conn);
	if (afr_conn_tx_mode(conn) == AFR_MODE_FRAMED)
		record_modes(conn, AFR_MODE_FRAMED, AFR_MODE_FRAMED, AFR_REASON_NOT_YET,
			     AFR_STAT_CONN_FRAMED);
	else
		record_modes(conn, AFR_MODE_FALLBACK, AFR_MODE_FRAMED, AFR_REASON_HALF_FRAMED,
			     AFR_STAT_CONN_HALF);
	afr_conn_decided(conn);
}

/*
 * May HELLO be answered in this context? The answer carries the port of the cm listener, which may
 * have to be created first. For a cm listener, siw and erdma create a socket in the namespace of
 * the current task. The socket has to be in the initial namespace. A work item always runs there,
 * so only a work item may create the cm listener.
 */
static bool may_answer(struct afr_conn *conn)
{
	return afr_conn_in_work_item(conn) || afr_conn_tx_mode(conn) != AFR_MODE_UNDECIDED ||
	       afr_cm_listener_started(conn->an);
}

/*
 * The client has sent no complete HELLO for hello_timeout_ms. If part of a HELLO has arrived
 * (@seen > 0), aborts the connection: the program must not get that part, and the worker does not
 * wait for the rest any longer (PA5).
 *
 * Otherwise, if anything waits to be sent, the send direction falls back: the first unframed byte,
 * or TCP's FIN, shows the client that only TCP's window limits what the client sends. If nothing
 * waits, the direction stays undecided, and the timer starts again: the client would not notice a
 * fallback, and after a late HELLO the client would wait for CREDIT, which a direction in fallback
 * mode cannot carry.
 */
static void hello_timeout(struct afr_conn *conn, int seen)
{
	if (seen > 0) {
		afr_close_refuse(conn, AFR_REASON_HELLO_CUT);
		return;
	}
	if (afr_conn_tx_mode(conn) != AFR_MODE_UNDECIDED)
		return;
	if (!afr_send_has_deferred(conn)) {
		afr_conn_timer(conn, AFR_T_HELLO, READ_ONCE(conn->an->set.hello_timeout_ms));
		return;
	}
	afr_netns_count(conn->an->net, AFR_STAT_HELLO_TIMEOUT);
	WRITE_ONCE(conn->reason, AFR_REASON_HELLO_TIMEOUT);
	afr_hello_rx_tx_fallback(conn);
}

/**
 * afr_hello_rx_step() - decide the modes by the peer's first bytes, the end of TCP or a timeout
 * @conn: connection, receive direction undecided
 *
 * Context: connection worker.
 */
void afr_hello_rx_step(struct afr_conn *conn)
{
	u8 buf[sizeof(struct afr_wire_hello)];
	struct kvec vec = { buf, sizeof(buf) };
	/* sampled first: an end that is seen later may follow bytes that the peek did not copy */
	bool ended = afr_tcp_sock_ended(conn);
	struct afr_hello hello;
	int seen, err = 0;

	lockdep_assert_held(&conn->worker.mutex);
	seen = peek_tcp(conn, buf, sizeof(buf));
	if (seen < 0 && seen != -EAGAIN) {
		err = seen;
		ended = true;
	}
	switch (afr_hello_parse(buf, max(seen, 0), afr_hello_proof(conn->nonce, !conn->server),
				&hello)) {
	case AFR_HELLO_MORE:
		if (ended && seen > 0)
			afr_close_refuse(conn, AFR_REASON_HELLO_CUT);
		else if (ended && !conn->server && sock_flag(conn->tcp->sk, SOCK_DONE))
			/*
			 * The server has fallen back and sent TCP's FIN. To test that err is 0
			 * would not do: a sender may have consumed the error of a reset. But a
			 * reset does not set SOCK_DONE.
			 */
			rx_fallback(conn, AFR_REASON_NO_HELLO);
		else if (ended && afr_conn_tx_mode(conn) == AFR_MODE_FRAMED)
			afr_close_tcp_eof(conn, err);
		else if (ended)
			ended_without_hello(conn, err);
		else if (afr_conn_timer_due(conn, AFR_T_HELLO))
			hello_timeout(conn, seen);
		return;
	case AFR_HELLO_YES:
		if (!may_answer(conn)) {
			afr_conn_schedule(conn);
			return;
		}
		afr_tcp_sock_recv(conn, &vec, 1, sizeof(buf));
		take_hello(conn, &hello);
		return;
	case AFR_HELLO_NO:
		rx_fallback(conn, AFR_REASON_NO_HELLO);
		return;
	case AFR_HELLO_BAD:
		afr_close_refuse(conn, AFR_REASON_HELLO_BAD);
		return;
	}
}
