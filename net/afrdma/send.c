// SPDX-License-Identifier: GPL-2.0
/* The program's side of sending. */
#include "send.h"

#include <linux/uio.h>

#include "control.h"
#include "path_rdma.h"
#include "rings.h"

/* What is longer than a quarter of the ring goes in such pieces. */
#define PIECE	(64u * 1024)

#define MORE_FOR	(HZ / 5)	/* as TCP holds back at most what is corked */

/**
 * afr_send_begin() - a program sends a message
 * @conn: connection
 * @len: bytes
 *
 * On a link one of up to a quarter of the smaller ring is one work request. Otherwise a message
 * goes in pieces, so that the path works while the next is copied; short ones that wait together
 * are such a piece. What waits already is not cut smaller.
 *
 * Context: process, one sender at a time.
 * Return: how many bytes of it to give to afr_send_some() at once.
 */
size_t afr_send_begin(struct afr_conn *conn, size_t len)
{
	const struct afr_motion_tx *tx = &conn->tx;
	u32 piece = PIECE;

	/* no lock: how it is cut is never wrong, only slower */
	if (READ_ONCE(tx->where) == AFR_ON_LINK &&
	    len <= min(tx->ring, READ_ONCE(tx->window)) / 4)
		piece = max_t(u32, len, PIECE);
	if (piece > conn->tx_piece || READ_ONCE(tx->sent) == tx->written)
		WRITE_ONCE(conn->tx_piece, piece);
	return piece;
}

/*
 * Room for @len bytes, or for fewer if there is as much as writers are woken for: a message
 * is one work request when it can be. Nobody takes the pages away until write_end().
 */
static u32 write_begin(struct afr_conn *conn, size_t len)
{
	u32 room;

	spin_lock_bh(&conn->tx_lock);
	room = conn->tx.fin == AFR_NO_FIN ? afr_tx_space(&conn->tx) : 0;
	if (room < len && !afr_tx_writable(&conn->tx))
		room = 0;
	conn->tx_busy = true;
	spin_unlock_bh(&conn->tx_lock);
	return min_t(size_t, room, len);
}

/* The last bytes said whether more will come at once. An urgent byte does not wait for it. */
static void note_more(struct afr_conn *conn, bool more)
{
	/* the oldest that waits has the time */
	if (more && (!conn->more || conn->tx.sent == conn->tx.written ||
		     !time_before(jiffies, conn->more_end)))
		conn->more_end = jiffies + MORE_FOR;
	conn->more = more;
}

/* On the link they are pushed at once, which is all there is to do: returns true. */
static bool write_end(struct afr_conn *conn, u32 len, int flags)
{
	bool done = true, urgent = flags & MSG_OOB;

	spin_lock_bh(&conn->tx_lock);
	conn->tx_busy = false;
	if (len)
		note_more(conn, flags & MSG_MORE && !urgent);
	if (len) {
		afr_tx_write(&conn->tx, len);
		done = conn->tx.where == AFR_ON_LINK && !urgent;
	}
	if (len && urgent) {
		afr_tx_urgent(&conn->tx);
		set_bit(AFR_WANT_URGENT, &conn->want);
	}
	if (len && done)
		afr_path_rdma_push_locked(conn);
	spin_unlock_bh(&conn->tx_lock);
	return done;
}

/**
 * afr_send_kick() - let the path take what it can
 * @conn: connection
 *
 * Context: process.
 */
void afr_send_kick(struct afr_conn *conn)
{
	bool link = READ_ONCE(conn->tx.where) == AFR_ON_LINK;

	if (link)
		afr_path_rdma_push(conn);
	else
		afr_control_push(conn);
	if (test_bit(AFR_WANT_URGENT, &conn->want))
		afr_control_push(conn);	/* which does not wait for the bytes before it */
	/* the push may have moved the direction */
	if (!link && READ_ONCE(conn->tx.where) == AFR_ON_LINK)
		afr_path_rdma_push(conn);
}

/**
 * afr_send_some() - take bytes of the program into the send ring, and let the path go
 * @conn: connection, our direction framed
 * @iter: where they come from
 * @len: how many: what is left, or a piece of it
 * @flags: MSG_OOB: the last one taken is an urgent byte; MSG_MORE: more will come at once
 *
 * Context: process, one sender at a time.
 * Return: bytes taken (> 0), -EAGAIN without room or pages, or -EFAULT.
 */
ssize_t afr_send_some(struct afr_conn *conn, struct iov_iter *iter, size_t len, int flags)
{
	u32 n = write_begin(conn, len);
	u64 at = conn->tx.written;	/* ours alone to move */
	int ret = n ? afr_rings_back_snd(conn, n) : -EAGAIN;

	if (ret > 0) {
		ret = afr_mem_copy_in(&conn->snd, at, ret, iter);
		if (!ret)
			ret = -EFAULT;
	}
	if (!write_end(conn, max(ret, 0), flags))
		afr_send_kick(conn);
	if (ret == -ENOMEM) {
		/* the work clears it and wakes; what has no work any more sends no more */
		set_bit(AFR_F_NO_PAGES, &conn->flags);
		afr_conn_look_again(conn, msecs_to_jiffies(AFR_MEM_RETRY_MS));
		ret = -EAGAIN;
	}
	return ret;
}

/**
 * afr_send_may_early() - may the program write before it is decided what our output is?
 * @conn: connection, our direction undecided
 *
 * A server's first words wait in the send ring for the client's HELLO, so that an accepted
 * socket is writable at once, as TCP's.
 *
 * Context: any.
 * Return: true on a server, until its output turns out to be raw.
 */
bool afr_send_may_early(const struct afr_conn *conn)
{
	return conn->server && !test_bit(AFR_F_EARLY_OVER, &conn->flags);
}

/**
 * afr_send_early() - take bytes of the program before it is decided how they will go
 * @conn: connection, our direction undecided, or framed meanwhile
 * @iter: where they come from
 * @len: how many: what is left, or a piece of it
 * @flags: MSG_OOB: the last one taken is an urgent byte; MSG_MORE: more will come at once
 *
 * Context: process, one sender at a time.
 * Return: as afr_send_some(); -EAGAIN, too, when what is to come goes raw.
 */
ssize_t afr_send_early(struct afr_conn *conn, struct iov_iter *iter, size_t len, int flags)
{
	bool may;

	spin_lock_bh(&conn->tx_lock);
	may = afr_send_may_early(conn);
	if (may)
		conn->tx_busy = true;	/* whoever ends it waits for afr_send_some() */
	spin_unlock_bh(&conn->tx_lock);
	return may ? afr_send_some(conn, iter, len, flags) : -EAGAIN;
}

/**
 * afr_send_waits() - does output wait until our direction is raw or framed?
 * @conn: connection, our direction undecided
 *
 * Context: the work.
 * Return: true if there are early bytes, a sleeping sender, a shutdown or a close.
 */
bool afr_send_waits(struct afr_conn *conn)
{
	bool written;

	spin_lock_bh(&conn->tx_lock);
	written = conn->tx.written || conn->tx_busy;
	spin_unlock_bh(&conn->tx_lock);
	return written || test_bit(AFR_F_NOSPACE, &conn->flags) ||
	       test_bit(AFR_F_FIN_WANTED, &conn->flags) || test_bit(AFR_F_ORPHAN, &conn->flags) ||
	       test_bit(AFR_F_ABORT, &conn->flags);
}

/**
 * afr_send_uncork() - TCP_CORK is taken away: what waits for more goes
 * @conn: connection
 *
 * Context: process.
 */
void afr_send_uncork(struct afr_conn *conn)
{
	spin_lock_bh(&conn->tx_lock);
	conn->more = false;
	spin_unlock_bh(&conn->tx_lock);
	if (afr_conn_tx_mode(conn) == AFR_FRAMED)
		afr_send_kick(conn);
}

/**
 * afr_send_blocked() - tell the peer that only its reader can bring us on, if that is so
 * @conn: connection
 *
 * Once per blockade: the receiver remembers it (PC6).
 *
 * Context: the work.
 */
void afr_send_blocked(struct afr_conn *conn)
{
	bool blocked;

	spin_lock_bh(&conn->tx_lock);
	blocked = afr_tx_blocked(&conn->tx) &&
		  !test_and_set_bit(AFR_F_BLOCKED_TOLD, &conn->flags);
	spin_unlock_bh(&conn->tx_lock);
	if (!blocked)
		return;
	afr_control_want(conn, AFR_WANT_BLOCKED);
	afr_control_push(conn);
}

/**
 * afr_send_fin() - end the stream behind what was written
 * @conn: connection, our direction framed
 *
 * Context: process. The FIN frame names the offset, so it may overtake bytes.
 */
void afr_send_fin(struct afr_conn *conn)
{
	bool first;

	spin_lock_bh(&conn->tx_lock);
	first = conn->tx.fin == AFR_NO_FIN;
	afr_tx_fin(&conn->tx);
	spin_unlock_bh(&conn->tx_lock);
	if (!first)
		return;
	afr_control_want(conn, AFR_WANT_FIN);
	afr_send_kick(conn);
	afr_control_push(conn);
}

/**
 * afr_send_room() - is a sleeping writer worth waking?
 * @conn: connection
 *
 * Context: any.
 * Return: true if so.
 */
bool afr_send_room(struct afr_conn *conn)
{
	bool room;

	if (test_bit(AFR_F_NO_PAGES, &conn->flags))
		return false;
	spin_lock_bh(&conn->tx_lock);
	room = afr_tx_writable(&conn->tx);
	spin_unlock_bh(&conn->tx_lock);
	return room;
}

/**
 * afr_send_await_room() - is there room, or who is to be told when there is?
 * @conn: connection
 *
 * As TCP's SOCK_NOSPACE: who found room is told of no more, so that sending alone is no edge
 * to a poll. To be asked again after each wake-up.
 *
 * Context: any.
 * Return: true if there is room; false, and the next room wakes.
 */
bool afr_send_await_room(struct afr_conn *conn)
{
	if (afr_send_room(conn))
		return true;
	set_bit(AFR_F_NOSPACE, &conn->flags);
	smp_mb__after_atomic();	/* then look again */
	return afr_send_room(conn);
}

/*
 * On a link the peer tells what its reader took, and only when that is half its
 * ring: what is held beyond that half is certainly unread, the rest may not be.
 */
static u64 queued_on_link(const struct afr_motion_tx *tx)
{
	u64 held = tx->written - tx->una, untold = tx->window / 2;

	return max(tx->written - tx->sent, held > untold ? held - untold : 0);
}

/**
 * afr_send_queued() - bytes the peer is not known to have
 * @conn: connection
 * @unsent: of these, not handed to the path yet
 *
 * Context: any.
 * Return: bytes.
 */
u64 afr_send_queued(struct afr_conn *conn, u64 *unsent)
{
	const struct afr_motion_tx *tx = &conn->tx;
	u64 queued;

	spin_lock_bh(&conn->tx_lock);
	queued = tx->where == AFR_ON_TCP ? tx->written - tx->una : queued_on_link(tx);
	*unsent = tx->written - tx->sent;
	spin_unlock_bh(&conn->tx_lock);
	return queued;
}

/**
 * afr_send_done() - has the peer received everything up to our FIN?
 * @conn: connection
 *
 * Context: any.
 * Return: true if so.
 */
bool afr_send_done(struct afr_conn *conn)
{
	bool done;

	spin_lock_bh(&conn->tx_lock);
	done = conn->tx.finacked;
	spin_unlock_bh(&conn->tx_lock);
	return done;
}
