// SPDX-License-Identifier: GPL-2.0
/* Events of the inner TCP socket run the connection's work. */
#include "hook.h"

#include <linux/net.h>
#include <net/sock.h>
#include <net/tcp.h>

/* The connection of a hooked socket; the caller holds sk_callback_lock for reading. */
static struct afr_conn *conn_of(struct sock *isk)
{
	return (void *)((unsigned long)isk->sk_user_data & SK_USER_DATA_PTRMASK);
}

/*
 * The callbacks. Where the bytes are the program's, the stock callback follows: it
 * wakes the sleepers in front.
 */
typedef void (*callback)(struct sock *isk);

static void inner_data_ready(struct sock *isk)
{
	struct afr_conn *conn;
	callback stock = NULL;

	read_lock_bh(&isk->sk_callback_lock);
	conn = conn_of(isk);
	if (conn) {
		if (afr_conn_rx_mode(conn) == AFR_RAW)
			stock = conn->data_ready;
		afr_conn_incoming(conn);
	}
	read_unlock_bh(&isk->sk_callback_lock);
	if (stock)
		stock(isk);
}

static void inner_state_change(struct sock *isk)
{
	struct afr_conn *conn;
	callback stock = NULL;

	read_lock_bh(&isk->sk_callback_lock);
	conn = conn_of(isk);
	if (conn) {
		stock = conn->state_change;
		if (!test_bit(AFR_F_SHUTTING, &conn->flags))
			afr_conn_incoming(conn);
	}
	read_unlock_bh(&isk->sk_callback_lock);
	if (stock)
		stock(isk);
}

static void inner_error_report(struct sock *isk)
{
	struct afr_conn *conn;
	callback stock = NULL;

	read_lock_bh(&isk->sk_callback_lock);
	conn = conn_of(isk);
	if (conn) {
		if (afr_conn_rx_mode(conn) == AFR_RAW || afr_conn_tx_mode(conn) == AFR_RAW)
			stock = conn->error_report;
		afr_conn_schedule(conn);
	}
	read_unlock_bh(&isk->sk_callback_lock);
	if (stock)
		stock(isk);
}

static void inner_write_space(struct sock *isk)
{
	struct afr_conn *conn;
	callback stock = NULL;

	read_lock_bh(&isk->sk_callback_lock);
	conn = conn_of(isk);
	if (conn && afr_conn_tx_mode(conn) == AFR_RAW) {
		stock = conn->write_space;
	} else if (conn && isk->sk_socket && sk_stream_is_writeable(isk)) {
		clear_bit(SOCK_NOSPACE, &isk->sk_socket->flags);
		afr_conn_schedule(conn);
	}
	read_unlock_bh(&isk->sk_callback_lock);
	if (stock)
		stock(isk);
}

static bool hooked(const struct sock *isk)
{
	return isk->sk_data_ready == inner_data_ready;
}

/* Frames are neither held back by their sender nor waited for in numbers. */
static void hide_settings(struct afr_conn *conn, struct sock *isk)
{
	conn->rcvlowat = isk->sk_rcvlowat;
	conn->nonagle = tcp_sk(isk)->nonagle;
	WRITE_ONCE(isk->sk_rcvlowat, 1);
	tcp_sk(isk)->nonagle = TCP_NAGLE_OFF;
}

static void show_settings(struct afr_conn *conn, struct sock *isk)
{
	WRITE_ONCE(isk->sk_rcvlowat, conn->rcvlowat);
	tcp_sk(isk)->nonagle = conn->nonagle;
}

/**
 * afr_hook_install() - let the inner socket's events run the work
 * @conn: connection that has been started
 *
 * Context: any but hard irq; the inner socket is locked, or only ours. What came
 * before is not told again: schedule the work afterwards.
 */
void afr_hook_install(struct afr_conn *conn)
{
	struct sock *isk = conn->inner->sk;

	write_lock_bh(&isk->sk_callback_lock);
	conn->data_ready = isk->sk_data_ready;
	conn->write_space = isk->sk_write_space;
	conn->state_change = isk->sk_state_change;
	conn->error_report = isk->sk_error_report;
	hide_settings(conn, isk);
	__rcu_assign_sk_user_data_with_flags(isk, conn, SK_USER_DATA_NOCOPY);
	isk->sk_data_ready = inner_data_ready;
	isk->sk_write_space = inner_write_space;
	isk->sk_state_change = inner_state_change;
	isk->sk_error_report = inner_error_report;
	write_unlock_bh(&isk->sk_callback_lock);
}

/**
 * afr_hook_settings() - settings of the inner socket that frames cannot have
 * @conn: connection
 * @hide: save them and have our own; else the program's are back, to be changed
 *
 * Nothing happens when it is not hooked. The work has to look after they were hidden again.
 *
 * Context: process, one at a time.
 */
void afr_hook_settings(struct afr_conn *conn, bool hide)
{
	struct sock *isk = conn->inner->sk;

	lock_sock(isk);
	read_lock_bh(&isk->sk_callback_lock);
	if (hooked(isk) && hide)
		hide_settings(conn, isk);
	else if (hooked(isk))
		show_settings(conn, isk);
	read_unlock_bh(&isk->sk_callback_lock);
	release_sock(isk);
}

/**
 * afr_hook_make_room() - let TCP have a window of several segments
 * @conn: connection, hooked; what the peer sends is framed
 *
 * Credits bound what the peer may send, so a small SO_RCVBUF needs to bound nothing
 * here. It would do harm: a window below one segment is filled by TCP's probes alone,
 * and every acknowledgment of our own data makes the peer put its probe off (RFC 9293,
 * 3.8.6.1; tcp_ack_probe()).
 *
 * Context: process.
 */
void afr_hook_make_room(struct afr_conn *conn)
{
	struct sock *isk = conn->inner->sk;
	struct tcp_sock *tp = tcp_sk(isk);
	u32 usual = READ_ONCE(sock_net(isk)->ipv4.sysctl_tcp_rmem[1]);

	lock_sock(isk);
	WRITE_ONCE(isk->sk_rcvbuf, max_t(u32, isk->sk_rcvbuf, usual));
	WRITE_ONCE(tp->window_clamp, max_t(u32, tp->window_clamp, tcp_full_space(isk)));
	/* what TCP dropped for want of room has left the window closed, and this below a segment */
	tp->rcv_ssthresh = max_t(u32, tp->rcv_ssthresh, min_t(u32, tp->window_clamp,
							      tcp_full_space(isk)));
	release_sock(isk);
}

/**
 * afr_hook_remove() - back to the stock callbacks
 * @conn: connection; nothing happens when it is not hooked
 *
 * Context: process.
 */
void afr_hook_remove(struct afr_conn *conn)
{
	struct sock *isk = conn->inner->sk;

	lock_sock(isk);		/* what show_settings() writes shares words with TCP's */
	write_lock_bh(&isk->sk_callback_lock);
	if (hooked(isk)) {
		isk->sk_data_ready = conn->data_ready;
		isk->sk_write_space = conn->write_space;
		isk->sk_state_change = conn->state_change;
		isk->sk_error_report = conn->error_report;
		show_settings(conn, isk);
		rcu_assign_sk_user_data(isk, NULL);
	}
	write_unlock_bh(&isk->sk_callback_lock);
	release_sock(isk);
}

/**
 * afr_hook_ended() - will no more come from TCP than what waits there?
 * @conn: connection
 *
 * Context: any.
 * Return: true behind TCP's FIN, an error or a reset.
 */
bool afr_hook_ended(const struct afr_conn *conn)
{
	const struct sock *isk = conn->inner->sk;

	return READ_ONCE(isk->sk_shutdown) & RCV_SHUTDOWN || READ_ONCE(isk->sk_err) ||
	       inet_sk_state_load(isk) == TCP_CLOSE;
}

/**
 * afr_hook_silent() - is there nothing to be had from TCP?
 * @conn: connection
 *
 * Without the lock it is a guess; whatever it misses is told to the hooks.
 *
 * Context: any.
 * Return: true if so.
 */
bool afr_hook_silent(const struct afr_conn *conn)
{
	const struct tcp_sock *tp = tcp_sk(conn->inner->sk);

	return READ_ONCE(tp->rcv_nxt) == READ_ONCE(tp->copied_seq) && !afr_hook_ended(conn);
}
