// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Send policy: into which pieces a message is cut, which bytes wait for more, and which writes are
 * latency-sensitive or bulk. link_pace.c limits how much bulk may be in flight on a link.
 *
 * Corking, on a link, turns many small sends into one write. A connection that has posted
 * STREAM_WRITES writes with data since it last received data on a link is streaming. After a small
 * write of a streaming connection, the bytes that the program sends wait until that write
 * completes, until data of the peer arrives on the link, or until is_small() is false for their
 * number. A request or response of up to STREAM_WRITES writes does not wait, and needs no
 * completion.
 *
 * A latency-sensitive write is short, and carries all unsent bytes of a connection that is not
 * streaming and has posted no bulk for BULK_HOLDOFF. So the end of a message does not qualify if
 * it follows bulk within that time. Nor does a write of a stream in a small ring: it is too short
 * to be bulk, but the connection is streaming. The header of a response may qualify, if the
 * program sends it before the body.
 *
 * A bulk write is longer than LATENCY_MAX, before pacing shortens it.
 */
#include <linux/jiffies.h>

#include "link_pace.h"
#include "proto/ring.h"
#include "tx_policy.h"

#define PIECE		(64u * 1024)	/* least piece size, see afr_tx_policy_piece() */
#define SMALL		(32u * 1024)	/* is_small() is false for this many bytes or more */
#define CORK_TIMEOUT	(HZ / 5)	/* how long MSG_MORE or TCP_CORK may hold bytes back */
#define STREAM_WRITES	3
#define LATENCY_MAX	(16u * 1024)
#define BULK_HOLDOFF	(HZ / 10)

/**
 * afr_tx_policy_piece() - choose the piece size for a new message
 * @conn: connection
 * @len: bytes of the message
 *
 * On a link, a message of up to a quarter of the send ring or of the peer's receive ring,
 * whichever is smaller, is sent as one work request if possible. A longer message is cut into
 * pieces of PIECE bytes, so that one piece is transferred while the next is copied.
 *
 * The piece size is kept in conn->tx.piece and limits the length of a write, which may carry
 * several short messages. While unsent bytes are waiting, conn->tx.piece does not shrink.
 *
 * Context: process, one sender at a time.
 * Return: maximum number of bytes of the message to pass to afr_send_copy() at once.
 */
size_t afr_tx_policy_piece(struct afr_conn *conn, size_t len)
{
	const struct afr_tx *tx = &conn->tx.seq;
	u32 piece = PIECE;

	/* no lock: any piece size is correct, a stale one is only slower */
	if (READ_ONCE(tx->where) == AFR_ON_LINK &&
	    len <= min(tx->ring, READ_ONCE(tx->window)) / 4)
		piece = max_t(u32, len, PIECE);
	if (piece > conn->tx.piece || READ_ONCE(tx->sent) == tx->written)
		WRITE_ONCE(conn->tx.piece, piece);
	return piece;
}

/* May @ready bytes wait for more, or for the completion of an earlier write? */
static bool is_small(const struct afr_conn *conn, u32 ready)
{
	return ready < min3(SMALL, conn->tx.seq.window / 8, conn->tx.seq.ring / 8);
}

/**
 * afr_tx_policy_note_more() - record whether a few unsent bytes may wait for more
 * @conn: connection, conn->tx.lock held
 * @more: true after a send with MSG_MORE or under TCP_CORK, unless the last byte of that send is
 *	urgent; false after any other send, and from afr_send_uncork()
 *
 * Context: any but hard irq.
 */
void afr_tx_policy_note_more(struct afr_conn *conn, bool more)
{
	/* start the time limit, unless it already runs for earlier bytes that are still unsent */
	if (more && (!conn->tx.more || conn->tx.seq.sent == conn->tx.seq.written ||
		     !time_before(jiffies, conn->tx.more_end)))
		conn->tx.more_end = jiffies + CORK_TIMEOUT;
	conn->tx.more = more;
}

/**
 * afr_tx_policy_holds_back() - should the bytes that are ready wait for more?
 * @conn: connection, conn->tx.lock held
 * @ready: bytes that could be sent now
 *
 * After a send with MSG_MORE, or with TCP_CORK set, a small number of bytes waits until a send
 * with neither, until afr_send_uncork() is called, until there are more bytes than is_small()
 * permits, until FIN or an urgent byte, or for 200 ms, as tcp(7) documents. While they wait, the
 * worker is scheduled for the end of that time.
 *
 * Context: any but hard irq.
 * Return: true if they should wait.
 */
bool afr_tx_policy_holds_back(struct afr_conn *conn, u32 ready)
{
	lockdep_assert_held(&conn->tx.lock);
	if (!conn->tx.more || !is_small(conn, ready) || conn->tx.seq.fin != AFR_NO_FIN ||
	    afr_tx_urgent_unsent(&conn->tx.seq) || !time_before(jiffies, conn->tx.more_end))
		return false;
	afr_conn_schedule_delayed(conn, conn->tx.more_end - jiffies);
	return true;
}

/**
 * afr_tx_policy_is_latency() - is this write latency-sensitive?
 * @conn: connection, conn->tx.lock held
 * @len: bytes of the write
 *
 * Context: any but hard irq.
 * Return: true if so: bulk of other connections on the link must leave capacity for it.
 */
bool afr_tx_policy_is_latency(const struct afr_conn *conn, u32 len)
{
	const struct afr_tx *tx = &conn->tx.seq;

	return len && len <= min3(LATENCY_MAX, tx->window / 8, tx->ring / 8) &&
	       tx->sent + len == tx->written && conn->tx.writes_since_rx < STREAM_WRITES &&
	       !time_before64(get_jiffies_64(), conn->tx.bulk_end);
}

/*
 * Returns the length of the next write: at most conn->tx.piece, a quarter of the window and what
 * the link allows, and not across the end of either ring (a mirrored ring has no end). Sets *@bulk
 * to whether the length exceeds LATENCY_MAX before pacing shortens it.
 */
static u32 run_length(const struct afr_conn *conn, u32 ready, bool *bulk)
{
	const struct afr_tx *tx = &conn->tx.seq;
	u32 len;

	len = min3(ready, max(tx->window / 4, 1u), READ_ONCE(conn->tx.piece));
	len = min(len, conn->attach.snd_view.span - afr_ring_pos(tx->sent, tx->ring));
	len = min(len, conn->attach.peer_span - afr_ring_pos(tx->sent, tx->window));
	*bulk = len > LATENCY_MAX;
	return min(len, *bulk ? afr_link_pace_bulk_max(&conn->attach.channel) :
				afr_link_write_max(conn->attach.channel.link));
}

/**
 * afr_tx_policy_write_len() - choose the length of the next write
 * @conn: connection on a link, conn->tx.lock held
 * @report: out: whether to request its completion, because later small sends will wait for it
 * @bulk: out: whether the write is bulk
 *
 * Context: any but hard irq.
 * Return: bytes; 0: do not send anything now.
 */
u32 afr_tx_policy_write_len(struct afr_conn *conn, bool *report, bool *bulk)
{
	u32 ready = afr_tx_ready(&conn->tx.seq);
	bool small = is_small(conn, ready);

	if (!ready || (small && conn->tx.corked) || afr_tx_policy_holds_back(conn, ready))
		return 0;
	*report = small && conn->tx.writes_since_rx >= STREAM_WRITES;
	return run_length(conn, ready, bulk);
}

/**
 * afr_tx_policy_posted() - account for a write that was posted
 * @conn: connection, conn->tx.lock held
 * @report: from afr_tx_policy_write_len()
 * @bulk: from afr_tx_policy_write_len()
 *
 * Context: any but hard irq.
 */
void afr_tx_policy_posted(struct afr_conn *conn, bool report, bool bulk)
{
	conn->tx.corked |= report;
	conn->tx.writes_since_rx = min(conn->tx.writes_since_rx + 1, STREAM_WRITES);
	if (bulk)
		conn->tx.bulk_end = get_jiffies_64() + BULK_HOLDOFF;
}

/**
 * afr_tx_policy_uncork() - stop corking: the awaited completion has come, or never will
 * @conn: connection, conn->tx.lock held
 *
 * Context: any but hard irq.
 */
void afr_tx_policy_uncork(struct afr_conn *conn)
{
	conn->tx.corked = false;
}

/**
 * afr_tx_policy_rx_data() - data of the peer came on the link: the connection is not streaming
 * @conn: connection, conn->tx.lock held
 *
 * Small sends no longer wait for a completion.
 *
 * Context: any but hard irq.
 */
void afr_tx_policy_rx_data(struct afr_conn *conn)
{
	conn->tx.writes_since_rx = 0;
	conn->tx.corked = false;
}
