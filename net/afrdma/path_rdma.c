// SPDX-License-Identifier: GPL-2.0
/* The rdma path: writes out, completions in. */
#include "path_rdma.h"

#include <linux/jiffies.h>

#include "control.h"
#include "ring.h"
#include "stats.h"
#include "trace.h"

/*
 * Corking: many small sends become one write. Who has posted CORK_AFTER writes without hearing
 * from the peer streams, and has one small write on its way at a time: what is sent meanwhile
 * waits for its completion, or until it is no longer afr_control_little().
 * Questions and answers are never kept waiting, and need no completion.
 */
#define CORK_AFTER	3

/*
 * Prompt: somebody waits for it. A short message, whole in one write, of who hears of the peer
 * now and then and has posted nothing longer than PROMPT_MOST, which is bulk, for BULK_FOR: not
 * the end of a long message, not a stream in a small ring. The head of an answer may be taken
 * for one until its body comes.
 */
#define PROMPT_MOST	(16u * 1024)
#define BULK_FOR	(HZ / 10)

static bool is_prompt(const struct afr_conn *conn, u32 len)
{
	const struct afr_motion_tx *tx = &conn->tx;

	return len && len <= min3(PROMPT_MOST, tx->window / 8, tx->ring / 8) &&
	       tx->sent + len == tx->written && conn->unheard < CORK_AFTER &&
	       !time_before64(get_jiffies_64(), conn->bulk_end);
}

/*
 * One write of @len stream bytes, or of none to tell the cursor. The cursor is
 * sampled and posted under tx_lock and rx_lock, so cursors reach the link in the
 * order they were taken (B10); a refused post takes the report back.
 */
static int post(struct afr_conn *conn, u32 len, bool tell, bool bulk)
{
	struct afr_write w = {
		.local	= conn->snd_view.addr + afr_ring_pos(conn->tx.sent, conn->tx.ring),
		.lkey	= conn->snd_view.lkey,
		.len	= len,
		.remote	= conn->peer_addr + afr_ring_pos(conn->tx.sent, conn->tx.window),
		.rkey	= conn->peer_rkey,
		.tell	= tell,
		.prompt	= is_prompt(conn, len),
		.bulk	= bulk,
	};
	bool blocked;
	u64 reported;
	int ret;

	lockdep_assert_held(&conn->tx_lock);
	/* inside both rings (I3) */
	AFR_CHECK(afr_ring_pos(conn->tx.sent, conn->tx.ring) + len <= conn->snd_view.span &&
		  afr_ring_pos(conn->tx.sent, conn->tx.window) + len <= conn->peer_span);
	spin_lock(&conn->rx_lock);
	reported = conn->rx.reported;
	blocked = conn->rx.blocked;
	w.cursor = afr_rx_report_imm(&conn->rx);
	ret = afr_port_write(&conn->port, &w);
	if (ret) {
		conn->rx.reported = reported;
		conn->rx.blocked = blocked;
	}
	spin_unlock(&conn->rx_lock);

	if (ret == -ENOTCONN)
		conn->may_post = false;
	return ret;
}

/*
 * A run that crosses the end of neither ring (a mirrored ring has no end); afr_send_begin()
 * says how long. @bulk is told before pacing cuts it.
 */
static u32 run_length(const struct afr_conn *conn, u32 ready, bool *bulk)
{
	const struct afr_motion_tx *tx = &conn->tx;
	u32 len;

	len = min3(ready, max(tx->window / 4, 1u), READ_ONCE(conn->tx_piece));
	len = min(len, conn->snd_view.span - afr_ring_pos(tx->sent, tx->ring));
	len = min(len, conn->peer_span - afr_ring_pos(tx->sent, tx->window));
	*bulk = len > PROMPT_MOST;
	return min(len, *bulk ? afr_port_bulk_max(&conn->port) :
				afr_link_write_max(conn->port.link));
}

/**
 * afr_path_rdma_push_locked() - post writes
 * @conn: connection, tx_lock held
 *
 * Context: any but hard irq.
 */
void afr_path_rdma_push_locked(struct afr_conn *conn)
{
	u32 ready, len;
	bool small, tell, bulk;

	lockdep_assert_held(&conn->tx_lock);
	while (conn->may_post && conn->tx.where == AFR_ON_LINK &&
	       !test_bit(AFR_F_ABORTED, &conn->flags)) {
		ready = afr_tx_ready(&conn->tx);
		small = ready < afr_control_little(conn);
		if (!ready || (small && conn->corked) || afr_control_waits(conn, ready))
			break;
		len = run_length(conn, ready, &bulk);
		tell = small && conn->unheard >= CORK_AFTER;
		if (post(conn, len, tell, bulk))
			break;
		conn->corked |= tell;
		conn->unheard = min(conn->unheard + 1, CORK_AFTER);
		if (bulk)
			conn->bulk_end = get_jiffies_64() + BULK_FOR;
		afr_tx_sent(&conn->tx, len);
		conn->tx_bytes[AFR_ON_LINK] += len;
		afr_stat_inc(conn->an->net, AFR_STAT_TX_WRITES);
		afr_stat_add(conn->an->net, AFR_STAT_TX_BYTES_RDMA, len);
	}
	afr_control_blocked(conn);
}

/**
 * afr_path_rdma_push() - post writes
 * @conn: connection
 *
 * Context: any but hard irq.
 */
void afr_path_rdma_push(struct afr_conn *conn)
{
	spin_lock_bh(&conn->tx_lock);
	afr_path_rdma_push_locked(conn);
	spin_unlock_bh(&conn->tx_lock);
}

/**
 * afr_path_rdma_credit() - tell the cursor, if due
 * @conn: connection
 *
 * Context: any but hard irq.
 */
void afr_path_rdma_credit(struct afr_conn *conn)
{
	bool due;

	spin_lock_bh(&conn->tx_lock);
	spin_lock(&conn->rx_lock);
	due = conn->credit_imm && afr_rx_credit_due(&conn->rx, true);
	spin_unlock(&conn->rx_lock);
	if (due && conn->may_post && !post(conn, 0, false, false))
		afr_stat_inc(conn->an->net, AFR_STAT_TX_CREDIT_WRITES);
	spin_unlock_bh(&conn->tx_lock);
}

static void detach(struct afr_conn *conn)
{
	lockdep_assert_held(&conn->tx_lock);
	if (!conn->detach_due || afr_port_detach(&conn->port))
		return;
	conn->detach_due = false;
	WRITE_ONCE(conn->detach_posted, true);
}

/**
 * afr_path_rdma_detach() - post DETACH, and nothing any more
 * @conn: connection, attached; once is enough
 *
 * Context: any but hard irq. If it has to wait, the port's next turn is for it.
 */
void afr_path_rdma_detach(struct afr_conn *conn)
{
	spin_lock_bh(&conn->tx_lock);
	conn->may_post = false;
	conn->detach_due = !conn->detach_posted;
	detach(conn);
	spin_unlock_bh(&conn->tx_lock);
}

static struct afr_conn *to_conn(struct afr_port *port)
{
	return container_of(port, struct afr_conn, port);
}

static void data_landed(struct afr_conn *conn, u32 len)
{
	bool all;
	int bad;

	spin_lock(&conn->rx_lock);
	bad = afr_rx_landed(&conn->rx, conn->rx.epoch, len);
	if (!bad)
		conn->rx_bytes[AFR_ON_LINK] += len;
	all = conn->rx.visible == conn->rx.fin;
	spin_unlock(&conn->rx_lock);

	if (bad) {
		afr_conn_abort(conn, bad);
		return;
	}
	afr_stat_add(conn->an->net, AFR_STAT_RX_BYTES_RDMA, len);
	afr_conn_readable(conn);
	if (all)
		afr_conn_changed(conn);		/* FIN came before */
	if (all || test_bit(AFR_F_ORPHAN, &conn->flags) || test_bit(AFR_F_DEAF, &conn->flags))
		afr_conn_schedule(conn);	/* FINACK, or nobody is there to read */
}

static void cursor_landed(struct afr_conn *conn, u16 cursor, bool data)
{
	u64 una, consumed;
	bool freed;
	int bad;

	spin_lock(&conn->tx_lock);
	if (data) {
		conn->unheard = 0;
		conn->corked = false;
	}
	una = conn->tx.una;
	consumed = conn->tx.consumed;
	bad = afr_tx_credit_imm(&conn->tx, cursor);
	AFR_CHECK(!bad || (conn->tx.consumed == consumed && conn->tx.una == una));	/* I2 */
	if (conn->tx.consumed != consumed)
		clear_bit(AFR_F_BLOCKED_TOLD, &conn->flags);
	freed = conn->tx.una != una;
	afr_path_rdma_push_locked(conn);
	spin_unlock(&conn->tx_lock);

	if (bad)
		afr_conn_abort(conn, bad);
	else if (freed)
		afr_conn_writable(conn);
}

static void landed(struct afr_port *port, u32 len, u16 cursor)
{
	struct afr_conn *conn = to_conn(port);

	if (len)
		data_landed(conn, len);
	cursor_landed(conn, cursor, len);
}

static void peer_detached(struct afr_port *port)
{
	set_bit(AFR_F_PEER_DETACHED, &to_conn(port)->flags);
	afr_conn_schedule(to_conn(port));
}

static void detached(struct afr_port *port)
{
	set_bit(AFR_F_DETACHED, &to_conn(port)->flags);
	afr_conn_schedule(to_conn(port));
}

static void written(struct afr_port *port)
{
	struct afr_conn *conn = to_conn(port);

	spin_lock_bh(&conn->tx_lock);
	conn->corked = false;
	afr_path_rdma_push_locked(conn);
	spin_unlock_bh(&conn->tx_lock);
}

static void kick(struct afr_port *port)
{
	struct afr_conn *conn = to_conn(port);

	spin_lock_bh(&conn->tx_lock);
	afr_path_rdma_push_locked(conn);
	detach(conn);
	spin_unlock_bh(&conn->tx_lock);
	afr_path_rdma_credit(conn);
}

static void paced(struct afr_port *port)
{
	afr_path_rdma_push(to_conn(port));
}

static void link_down(struct afr_port *port, enum afr_reason reason)
{
	struct afr_conn *conn = to_conn(port);

	spin_lock_bh(&conn->tx_lock);
	conn->may_post = false;
	conn->resume_reason = reason;
	spin_unlock_bh(&conn->tx_lock);
	set_bit(AFR_F_LINK_DOWN, &conn->flags);
	afr_conn_schedule(conn);
}

static bool get(struct afr_port *port)
{
	return kref_get_unless_zero(&to_conn(port)->ref);
}

static void put(struct afr_port *port)
{
	afr_conn_put(to_conn(port));
}

const struct afr_port_ops afr_path_rdma_port_ops = {
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
