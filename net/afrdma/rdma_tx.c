// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The RDMA path: posts the writes and the DETACH of a connection on its channel, and handles the
 * upcalls of the channel: writes of the peer that landed, the peer's DETACH, completions, space to
 * post what was refused or held back, and the loss of the link.
 */
#include "rdma_tx.h"

#include <linux/jiffies.h>

#include "channel.h"
#include "frame_tx.h"
#include "link_pace.h"
#include "proto/ring.h"
#include "trace.h"
#include "tx_policy.h"

/*
 * Posts one write of @len bytes of the stream; if @len is 0, it carries only the cursor. The cursor
 * is sampled and posted under conn->tx.lock and conn->rx.lock, so cursors reach the link in the
 * order they were sampled (B10). If the post is refused, the cursor counts as not reported.
 */
static int post(struct afr_conn *conn, u32 len, bool report, bool bulk)
{
	struct afr_write w = {
		.local		= conn->attach.snd_view.addr +
				  afr_ring_pos(conn->tx.seq.sent, conn->tx.seq.ring),
		.lkey		= conn->attach.snd_view.lkey,
		.len		= len,
		.remote		= conn->attach.peer_addr +
				  afr_ring_pos(conn->tx.seq.sent, conn->tx.seq.window),
		.rkey		= conn->attach.peer_rkey,
		.report		= report,
		.latency	= afr_tx_policy_is_latency(conn, len),
		.bulk		= bulk,
	};
	bool blocked;
	u64 reported;
	int ret;

	lockdep_assert_held(&conn->tx.lock);
	/* the write stays inside both rings (I3) */
	AFR_CHECK(afr_ring_pos(conn->tx.seq.sent, conn->tx.seq.ring) + len <=
		  conn->attach.snd_view.span &&
		  afr_ring_pos(conn->tx.seq.sent, conn->tx.seq.window) + len <=
		  conn->attach.peer_span);
	spin_lock(&conn->rx.lock);
	reported = conn->rx.seq.reported;
	blocked = conn->rx.seq.blocked;
	w.cursor = afr_rx_report_imm(&conn->rx.seq);
	ret = afr_channel_write(&conn->attach.channel, &w);
	if (ret) {
		conn->rx.seq.reported = reported;
		conn->rx.seq.blocked = blocked;
	}
	spin_unlock(&conn->rx.lock);

	if (ret == -ENOTCONN)
		afr_conn_set_may_post(conn, false);
	return ret;
}

/**
 * afr_rdma_tx_push_locked() - post what the window, the send policy and the link allow
 * @conn: connection, conn->tx.lock held
 *
 * Context: any but hard irq.
 */
void afr_rdma_tx_push_locked(struct afr_conn *conn)
{
	bool report, bulk;
	u32 len;

	lockdep_assert_held(&conn->tx.lock);
	while (conn->attach.may_post && conn->tx.seq.where == AFR_ON_LINK &&
	       !test_bit(AFR_F_ABORTED, &conn->flags)) {
		len = afr_tx_policy_write_len(conn, &report, &bulk);
		if (!len || post(conn, len, report, bulk))
			break;
		afr_tx_policy_posted(conn, report, bulk);
		afr_tx_sent(&conn->tx.seq, len);
		conn->tx.bytes[AFR_ON_LINK] += len;
		afr_netns_count(conn->an->net, AFR_STAT_TX_WRITES);
		afr_netns_add(conn->an->net, AFR_STAT_TX_BYTES_RDMA, len);
	}
	afr_frame_tx_check_blocked(conn);
}

/**
 * afr_rdma_tx_push() - post what the window, the send policy and the link allow
 * @conn: connection
 *
 * Context: any but hard irq.
 */
void afr_rdma_tx_push(struct afr_conn *conn)
{
	spin_lock_bh(&conn->tx.lock);
	afr_rdma_tx_push_locked(conn);
	spin_unlock_bh(&conn->tx.lock);
}

/**
 * afr_rdma_tx_credit() - report the consumer cursor in a write without data, if due and possible
 * @conn: connection
 *
 * Context: any but hard irq.
 */
void afr_rdma_tx_credit(struct afr_conn *conn)
{
	bool due;

	spin_lock_bh(&conn->tx.lock);
	spin_lock(&conn->rx.lock);
	due = conn->rx.credit_imm && afr_rx_credit_due(&conn->rx.seq, true);
	spin_unlock(&conn->rx.lock);
	if (due && conn->attach.may_post && !post(conn, 0, false, false))
		afr_netns_count(conn->an->net, AFR_STAT_TX_CREDIT_WRITES);
	spin_unlock_bh(&conn->tx.lock);
}

/* Posts DETACH, if it is due and the channel can post. */
static void detach(struct afr_conn *conn)
{
	lockdep_assert_held(&conn->tx.lock);
	if (!conn->attach.detach_due || afr_channel_detach(&conn->attach.channel))
		return;
	conn->attach.detach_due = false;
	WRITE_ONCE(conn->attach.detach_posted, true);
}

/**
 * afr_rdma_tx_detach() - post DETACH, and nothing after it
 * @conn: connection, leaving its link; nothing happens if DETACH was posted before, or
 *	leave_unanswered() of move.c has skipped it
 *
 * If the channel cannot post now, a later kick() posts DETACH, unless the link is lost before.
 *
 * Context: any but hard irq.
 */
void afr_rdma_tx_detach(struct afr_conn *conn)
{
	spin_lock_bh(&conn->tx.lock);
	afr_conn_set_may_post(conn, false);
	conn->attach.detach_due = !conn->attach.detach_posted;
	detach(conn);
	spin_unlock_bh(&conn->tx.lock);
}

static struct afr_conn *to_conn(struct afr_channel *channel)
{
	return container_of(channel, struct afr_conn, attach.channel);
}

/* A write of the peer has placed @len bytes in the receive ring. */
static void data_landed(struct afr_conn *conn, u32 len)
{
	bool all;
	int bad;

	spin_lock_bh(&conn->rx.lock);
	bad = afr_rx_write_received(&conn->rx.seq, conn->rx.seq.epoch, len);
	if (!bad)
		conn->rx.bytes[AFR_ON_LINK] += len;
	all = conn->rx.seq.visible == conn->rx.seq.fin;
	spin_unlock_bh(&conn->rx.lock);

	if (bad) {
		afr_conn_abort(conn, bad);
		return;
	}
	afr_netns_add(conn->an->net, AFR_STAT_RX_BYTES_RDMA, len);
	afr_conn_readable(conn);
	if (all)
		afr_conn_changed(conn);		/* FIN came before the last byte */
	/* the worker sends FINACK, or resets the connection if nobody may read the bytes */
	if (all || test_bit(AFR_F_ORPHAN, &conn->flags) || test_bit(AFR_F_RX_REFUSED, &conn->flags))
		afr_conn_schedule(conn);
}

/* A write of the peer has carried @cursor; @data: the write also carried bytes. */
static void cursor_landed(struct afr_conn *conn, u16 cursor, bool data)
{
	u64 una, consumed;
	bool freed;
	int bad;

	spin_lock_bh(&conn->tx.lock);
	if (data)
		afr_tx_policy_rx_data(conn);
	una = conn->tx.seq.una;
	consumed = conn->tx.seq.consumed;
	bad = afr_tx_credit_imm(&conn->tx.seq, cursor);
	/* a refused cursor changes nothing (I2) */
	AFR_CHECK(!bad || (conn->tx.seq.consumed == consumed && conn->tx.seq.una == una));
	if (conn->tx.seq.consumed != consumed)
		clear_bit(AFR_F_BLOCKED_SENT, &conn->flags);
	freed = conn->tx.seq.una != una;
	afr_rdma_tx_push_locked(conn);
	spin_unlock_bh(&conn->tx.lock);

	if (bad)
		afr_conn_abort(conn, bad);
	else if (freed)
		afr_conn_writable(conn);
}

static void landed(struct afr_channel *channel, u32 len, u16 cursor)
{
	struct afr_conn *conn = to_conn(channel);

	if (len)
		data_landed(conn, len);
	cursor_landed(conn, cursor, len);
}

static void peer_detached(struct afr_channel *channel)
{
	set_bit(AFR_F_PEER_DETACHED, &to_conn(channel)->flags);
	afr_conn_schedule(to_conn(channel));
}

static void detached(struct afr_channel *channel)
{
	set_bit(AFR_F_DETACHED, &to_conn(channel)->flags);
	afr_conn_schedule(to_conn(channel));
}

/* Upcall: the small write in flight has completed; bytes that corking held back may be posted. */
static void written(struct afr_channel *channel)
{
	struct afr_conn *conn = to_conn(channel);

	spin_lock_bh(&conn->tx.lock);
	afr_tx_policy_uncork(conn);
	afr_rdma_tx_push_locked(conn);
	spin_unlock_bh(&conn->tx.lock);
}

/* Upcall: a write or DETACH was refused before; now the link has space for one message. */
static void kick(struct afr_channel *channel)
{
	struct afr_conn *conn = to_conn(channel);

	spin_lock_bh(&conn->tx.lock);
	afr_rdma_tx_push_locked(conn);
	detach(conn);
	spin_unlock_bh(&conn->tx.lock);
	afr_rdma_tx_credit(conn);
}

/* Upcall: bulk that was held back by pacing may be posted now. */
static void paced(struct afr_channel *channel)
{
	afr_rdma_tx_push(to_conn(channel));
}

static void link_down(struct afr_channel *channel, enum afr_reason reason)
{
	struct afr_conn *conn = to_conn(channel);

	spin_lock_bh(&conn->tx.lock);
	afr_conn_set_may_post(conn, false);
	conn->attach.resume_reason = reason;
	/*
	 * The flag is set under the lock, so that afr_conn_allow_post(), which tests it under the
	 * lock, does not set may_post again. The worker reads resume_reason once it sees the flag;
	 * pairs with afr_move_run().
	 */
	smp_mb__before_atomic();
	set_bit(AFR_F_LINK_DOWN, &conn->flags);
	spin_unlock_bh(&conn->tx.lock);
	afr_conn_schedule(conn);
}

static bool get(struct afr_channel *channel)
{
	return kref_get_unless_zero(&to_conn(channel)->ref);
}

static void put(struct afr_channel *channel)
{
	afr_conn_put(to_conn(channel));
}

const struct afr_channel_ops afr_rdma_tx_channel_ops = {
	.landed		= landed,
	.peer_detached	= peer_detached,
	.detached	= detached,
	.written	= written,
	.kick		= kick,
	.paced		= paced,
	.down		= link_down,
	.get		= get,
	.put		= put,
};
