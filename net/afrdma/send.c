// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Sending. The program's bytes are copied into the send ring, from where the RDMA path or the TCP
 * path takes them. Also here: BLOCKED, FIN, whether senders may continue, and how much is queued.
 */
#include "send.h"

#include <linux/uio.h>

#include "conn_rings.h"
#include "frame_tx.h"
#include "rdma_tx.h"
#include "tx_policy.h"

/*
 * Returns how many of @len bytes may be written now; after FIN, none. If there is no space for all
 * of them, a part is accepted only when enough is free to wake writers, so that a message is one
 * work request when possible. Until write_end(), conn->tx.busy keeps the pages for the new bytes
 * from being freed.
 */
static u32 write_begin(struct afr_conn *conn, size_t len)
{
	u32 room;

	spin_lock_bh(&conn->tx.lock);
	room = conn->tx.seq.fin == AFR_NO_FIN ? afr_tx_space(&conn->tx.seq) : 0;
	if (room < len && !afr_tx_writable(&conn->tx.seq))
		room = 0;
	conn->tx.busy = true;
	spin_unlock_bh(&conn->tx.lock);
	return min_t(size_t, room, len);
}

/*
 * Adds @len copied bytes to the stream. On a link, they are posted at once as far as window, link
 * and send policy allow, unless the last of them is urgent. Returns false if the caller has to run
 * afr_send_kick().
 */
static bool write_end(struct afr_conn *conn, u32 len, int flags)
{
	bool done = true, urgent = flags & MSG_OOB;

	spin_lock_bh(&conn->tx.lock);
	conn->tx.busy = false;
	if (len)
		afr_tx_policy_note_more(conn, flags & MSG_MORE && !urgent);
	if (len) {
		afr_tx_write(&conn->tx.seq, len);
		done = conn->tx.seq.where == AFR_ON_LINK && !urgent;
	}
	if (len && urgent) {
		afr_tx_urgent(&conn->tx.seq);
		set_bit(AFR_FRAME_URGENT, &conn->out.pending);
	}
	if (len && done)
		afr_rdma_tx_push_locked(conn);
	/* afr_frame_tx_drain_early() may have found tx.busy set: the worker has to retry it */
	if (test_bit(AFR_F_NO_EARLY_TX, &conn->flags))
		afr_conn_schedule(conn);
	spin_unlock_bh(&conn->tx.lock);
	return done;
}

/**
 * afr_send_kick() - restart the send path
 * @conn: connection
 *
 * The path in use takes bytes from the send ring, as far as the window, the send policy, and TCP
 * or the link allow.
 *
 * Context: process.
 */
void afr_send_kick(struct afr_conn *conn)
{
	bool link = READ_ONCE(conn->tx.seq.where) == AFR_ON_LINK;

	if (link)
		afr_rdma_tx_push(conn);
	else
		afr_frame_tx_push(conn);
	if (test_bit(AFR_FRAME_URGENT, &conn->out.pending))
		afr_frame_tx_push(conn);	/* URGENT does not wait for earlier bytes */
	/* the push may have moved the send direction to the link */
	if (!link && READ_ONCE(conn->tx.seq.where) == AFR_ON_LINK)
		afr_rdma_tx_push(conn);
}

/**
 * afr_send_copy() - copy bytes of the program into the send ring and restart the send path
 * @conn: connection, send direction framed, or undecided if the caller is afr_send_early()
 * @iter: source of the bytes
 * @len: bytes to take: the rest of the message, or a piece of it
 * @flags: MSG_OOB: the last byte taken is urgent; MSG_MORE: a few bytes may wait for more
 *
 * Context: process, one sender at a time (lock_sock() of the AF_RDMA socket).
 * Return: bytes taken (> 0); -EAGAIN without space or pages, or after FIN; or -EFAULT.
 */
ssize_t afr_send_copy(struct afr_conn *conn, struct iov_iter *iter, size_t len, int flags)
{
	u32 n = write_begin(conn, len);
	u64 at = conn->tx.seq.written;	/* only the sender changes it */
	bool freed = false;
	int ret = n ? afr_conn_rings_back_snd(conn, n, &freed) : -EAGAIN;

	if (ret > 0) {
		ret = afr_ring_mem_copy_in(&conn->tx.mem, at, ret, iter);
		if (!ret)
			ret = -EFAULT;
	}
	if (!write_end(conn, max(ret, 0), flags))
		afr_send_kick(conn);
	/*
	 * afr_conn_rings_back_snd() may have freed pages that are charged to the quota: the
	 * worker uncharges them. If the rings were unpinned while tx.busy was set, empty pages may
	 * have stayed in the send ring: the worker frees and uncharges these, too.
	 */
	if (freed || afr_conn_rings_snd_charged(conn))
		afr_conn_rings_freed(conn);
	if (ret == -ENOMEM) {
		/* the worker clears both flags after the delay, and wakes senders */
		spin_lock_bh(&conn->tx.lock);
		conn->tx.retry_at = jiffies + msecs_to_jiffies(AFR_RING_MEM_RETRY_MS);
		set_bit(AFR_F_NO_MEMORY, &conn->flags);
		set_bit(AFR_F_NO_PAGES, &conn->flags);
		spin_unlock_bh(&conn->tx.lock);
		afr_conn_schedule_delayed(conn, msecs_to_jiffies(AFR_RING_MEM_RETRY_MS));
		ret = -EAGAIN;
	}
	return ret;
}

/**
 * afr_send_early_allowed() - may the program write while the send direction is undecided?
 * @conn: connection, send direction undecided
 *
 * The first bytes of a server wait in the send ring for the client's HELLO, so that an accepted
 * socket is writable at once, as with TCP.
 *
 * Context: any.
 * Return: true on a server, until its send direction begins to fall back.
 */
bool afr_send_early_allowed(const struct afr_conn *conn)
{
	return conn->server && !test_bit(AFR_F_NO_EARLY_TX, &conn->flags);
}

/**
 * afr_send_early() - copy bytes of the program into the send ring before the mode is decided
 * @conn: connection, send direction undecided, or decided in the meantime
 * @iter: source of the bytes
 * @len: bytes to take: the rest of the message, or a piece of it
 * @flags: MSG_OOB: the last byte taken is urgent; MSG_MORE: a few bytes may wait for more
 *
 * Context: process, one sender at a time (lock_sock() of the AF_RDMA socket).
 * Return: as afr_send_copy(); also -EAGAIN when the send direction falls back or has fallen back.
 */
ssize_t afr_send_early(struct afr_conn *conn, struct iov_iter *iter, size_t len, int flags)
{
	bool may;

	spin_lock_bh(&conn->tx.lock);
	may = afr_send_early_allowed(conn);
	if (may)
		conn->tx.busy = true;	/* the direction cannot fall back before write_end() */
	spin_unlock_bh(&conn->tx.lock);
	return may ? afr_send_copy(conn, iter, len, flags) : -EAGAIN;
}

/**
 * afr_send_has_deferred() - does anything wait for the send direction to be decided?
 * @conn: connection, send direction undecided
 *
 * Context: connection worker.
 * Return: true if there are early bytes, a waiting sender or poller, a SHUT_WR, a close or an
 * abort.
 */
bool afr_send_has_deferred(struct afr_conn *conn)
{
	bool written;

	spin_lock_bh(&conn->tx.lock);
	written = conn->tx.seq.written || conn->tx.busy;
	spin_unlock_bh(&conn->tx.lock);
	return written || test_bit(AFR_F_NOSPACE, &conn->flags) ||
	       test_bit(AFR_F_FIN_WANTED, &conn->flags) || test_bit(AFR_F_ORPHAN, &conn->flags) ||
	       test_bit(AFR_F_ABORT, &conn->flags);
}

/**
 * afr_send_uncork() - send the bytes that wait for more
 * @conn: connection
 *
 * Called when TCP_CORK was cleared, TCP_NODELAY was set, or sendfile() has met the end of its file
 * before it had sent all bytes requested.
 *
 * Context: process.
 */
void afr_send_uncork(struct afr_conn *conn)
{
	spin_lock_bh(&conn->tx.lock);
	afr_tx_policy_note_more(conn, false);
	spin_unlock_bh(&conn->tx.lock);
	if (afr_conn_tx_mode(conn) == AFR_MODE_FRAMED)
		afr_send_kick(conn);
}

/**
 * afr_send_blocked() - send BLOCKED if only the peer's reader can unblock the send direction
 * @conn: connection
 *
 * The receiver remembers BLOCKED (PC6), so it is not repeated until a frame reports the peer's
 * cursor, or an immediate reports a newer one.
 *
 * Context: connection worker.
 */
void afr_send_blocked(struct afr_conn *conn)
{
	bool blocked;

	spin_lock_bh(&conn->tx.lock);
	blocked = afr_tx_blocked(&conn->tx.seq) &&
		  !test_and_set_bit(AFR_F_BLOCKED_SENT, &conn->flags);
	spin_unlock_bh(&conn->tx.lock);
	if (!blocked)
		return;
	afr_frame_tx_request(conn, AFR_FRAME_BLOCKED);
	afr_frame_tx_push(conn);
}

/**
 * afr_send_fin() - end the stream after the bytes written so far
 * @conn: connection, send direction framed
 *
 * Further calls change nothing. The FIN frame contains the offset of the end, so it may overtake
 * bytes.
 *
 * Context: process.
 */
void afr_send_fin(struct afr_conn *conn)
{
	bool first, ended;

	spin_lock_bh(&conn->rx.lock);
	ended = conn->rx.seq.visible == conn->rx.seq.fin;
	spin_unlock_bh(&conn->rx.lock);
	spin_lock_bh(&conn->tx.lock);
	first = conn->tx.seq.fin == AFR_NO_FIN;
	if (first && ended)
		set_bit(AFR_F_PASSIVE_CLOSE, &conn->flags);
	afr_tx_fin(&conn->tx.seq);
	/* before the unlock: run_one_way() shuts down TCP if it sees seq.fin but no pending FIN */
	if (first)
		afr_frame_tx_request(conn, AFR_FRAME_FIN);
	spin_unlock_bh(&conn->tx.lock);
	if (!first)
		return;
	afr_send_kick(conn);
	afr_frame_tx_push(conn);
}

/**
 * afr_send_has_space() - is there enough space and memory to wake a sleeping writer?
 * @conn: connection
 *
 * Context: any but hard irq.
 * Return: true if so.
 */
bool afr_send_has_space(struct afr_conn *conn)
{
	bool room;

	if (test_bit(AFR_F_NO_PAGES, &conn->flags))
		return false;
	spin_lock_bh(&conn->tx.lock);
	room = afr_tx_writable(&conn->tx.seq);
	spin_unlock_bh(&conn->tx.lock);
	return room;
}

/**
 * afr_send_await_space() - check for space, and request a wake-up if there is none
 * @conn: connection
 *
 * Works like TCP's SOCK_NOSPACE: afr_conn_writable() wakes sleepers only if AFR_F_NOSPACE is set,
 * and clears it. This function sets it only if it finds no space, so a program that always finds
 * space gets no EPOLLOUT edges. Call the function again after each wake-up.
 *
 * Context: any but hard irq.
 * Return: true if there is space; false: afr_conn_writable() will wake the caller.
 */
bool afr_send_await_space(struct afr_conn *conn)
{
	if (afr_send_has_space(conn))
		return true;
	set_bit(AFR_F_NOSPACE, &conn->flags);
	smp_mb__after_atomic();	/* set the flag before checking again */
	return afr_send_has_space(conn);
}

/*
 * Counts the queued bytes of a direction that is on a link or suspended. The peer's reader may have
 * read bytes that the peer has not reported: up to half of the send ring or of the peer's receive
 * ring, whichever is smaller. Therefore that number of bytes in the send ring is not counted, but
 * unsent bytes always are.
 */
static u64 queued_on_link(const struct afr_tx *tx)
{
	u64 held = tx->written - tx->una, unreported = min(tx->ring, tx->window) / 2;

	return max(tx->written - tx->sent, held > unreported ? held - unreported : 0);
}

/**
 * afr_send_queued() - count the queued bytes, as SIOCOUTQ reports them
 * @conn: connection
 * @unsent: out: how many of them were not passed to the path yet
 *
 * On TCP, the queued bytes are those that TCP has not taken yet; otherwise see queued_on_link().
 *
 * Context: any but hard irq.
 * Return: bytes.
 */
u64 afr_send_queued(struct afr_conn *conn, u64 *unsent)
{
	const struct afr_tx *tx = &conn->tx.seq;
	u64 queued;

	spin_lock_bh(&conn->tx.lock);
	queued = tx->where == AFR_ON_TCP ? tx->written - tx->una : queued_on_link(tx);
	*unsent = tx->written - tx->sent;
	spin_unlock_bh(&conn->tx.lock);
	return queued;
}

/**
 * afr_send_done() - has the peer acknowledged the local FIN by FINACK?
 * @conn: connection
 *
 * Context: any but hard irq.
 * Return: true if so; never on a one-way connection, which gets no FINACK.
 */
bool afr_send_done(struct afr_conn *conn)
{
	bool done;

	spin_lock_bh(&conn->tx.lock);
	done = conn->tx.seq.finacked;
	spin_unlock_bh(&conn->tx.lock);
	return done;
}
