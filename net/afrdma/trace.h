/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Tracepoints afrdma:*. All arguments are integers, so that every layer above can use them.
 * X_create and X_destroy both record the id of the object: test runs match the ids to check that
 * every object that was created has been destroyed.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM afrdma

#if !defined(AFR_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define AFR_TRACE_H

#include <linux/tracepoint.h>
#include <linux/types.h>

#include "proto/reason.h"
#include "proto/sequence.h"

#ifndef AFR_TRACE_ONCE
#define AFR_TRACE_ONCE
/* How far an attach has come, how it has ended, or that the connection has left its link. */
enum afr_trace_step {
	AFR_STEP_JOIN,		/* client: waits for a link */
	AFR_STEP_ATTACH,	/* rings registered and ATTACH pending, or ATTACH received */
	AFR_STEP_OVERDUE,	/* client: no answer in time; the attempt continues */
	AFR_STEP_DONE,		/* attached to a link */
	AFR_STEP_FAILED,	/* stays on TCP, for the reason in the event */
	AFR_STEP_LEFT,		/* has left its link, see reason; may await the peer's RESUME */
};
#endif

TRACE_DEFINE_ENUM(AFR_STEP_JOIN);
TRACE_DEFINE_ENUM(AFR_STEP_ATTACH);
TRACE_DEFINE_ENUM(AFR_STEP_OVERDUE);
TRACE_DEFINE_ENUM(AFR_STEP_DONE);
TRACE_DEFINE_ENUM(AFR_STEP_FAILED);
TRACE_DEFINE_ENUM(AFR_STEP_LEFT);
TRACE_DEFINE_ENUM(AFR_ON_TCP);
TRACE_DEFINE_ENUM(AFR_ON_LINK);
TRACE_DEFINE_ENUM(AFR_SUSPENDED);

#define AFR_REASON(number, name, sentence, remedy) { number, #name },
/* "peer:NAME" is a reason that the peer has sent in ATTACHED, RESUME or a rejection */
#define afr_show_whose(reason)	((reason) & AFR_REASON_PEER ? "peer:" : "")
#define afr_show_reason(reason) \
	__print_symbolic((reason) & ~AFR_REASON_PEER, AFR_REASONS { 0xffffffff, "UNKNOWN" })
/* @mode is enum afr_mode */
#define afr_show_mode(mode) \
	__print_symbolic(mode, \
			 { 0, "none" }, { 1, "undecided" }, { 2, "fallback" }, { 3, "framed" })
#define afr_show_step(step) \
	__print_symbolic(step, \
			 { AFR_STEP_JOIN, "join" }, { AFR_STEP_ATTACH, "attach" }, \
			 { AFR_STEP_OVERDUE, "overdue" }, { AFR_STEP_DONE, "done" }, \
			 { AFR_STEP_FAILED, "failed" }, { AFR_STEP_LEFT, "left" })
#define afr_show_where(where) \
	__print_symbolic(where, { AFR_ON_TCP, "tcp" }, { AFR_ON_LINK, "link" }, \
			 { AFR_SUSPENDED, "suspended" })

/* An object was created or destroyed, or changed its state. */
DECLARE_EVENT_CLASS(afrdma_id,
	TP_PROTO(u64 id),
	TP_ARGS(id),
	TP_STRUCT__entry(
		__field(u64, id)
	),
	TP_fast_assign(
		__entry->id = id;
	),
	TP_printk("id=%llu", __entry->id)
);

/* An object came to its end, or could not be set up. */
DECLARE_EVENT_CLASS(afrdma_id_reason,
	TP_PROTO(u64 id, unsigned int reason),
	TP_ARGS(id, reason),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(u32, reason)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->reason = reason;
	),
	TP_printk("id=%llu reason=%s%s", __entry->id,
		  afr_show_whose(__entry->reason), afr_show_reason(__entry->reason))
);

DEFINE_EVENT(afrdma_id, afrdma_conn_create, TP_PROTO(u64 id), TP_ARGS(id));
DEFINE_EVENT(afrdma_id, afrdma_conn_destroy, TP_PROTO(u64 id), TP_ARGS(id));
DEFINE_EVENT(afrdma_id, afrdma_group_create, TP_PROTO(u64 id), TP_ARGS(id));
DEFINE_EVENT(afrdma_id, afrdma_group_destroy, TP_PROTO(u64 id), TP_ARGS(id));
DEFINE_EVENT(afrdma_id, afrdma_link_create, TP_PROTO(u64 id), TP_ARGS(id));
DEFINE_EVENT(afrdma_id, afrdma_link_destroy, TP_PROTO(u64 id), TP_ARGS(id));
DEFINE_EVENT(afrdma_id, afrdma_link_up, TP_PROTO(u64 id), TP_ARGS(id));
DEFINE_EVENT(afrdma_id, afrdma_mr_create, TP_PROTO(u64 id), TP_ARGS(id));
DEFINE_EVENT(afrdma_id, afrdma_mr_destroy, TP_PROTO(u64 id), TP_ARGS(id));
DEFINE_EVENT(afrdma_id_reason, afrdma_link_down,
	     TP_PROTO(u64 id, unsigned int reason), TP_ARGS(id, reason));

/*
 * Both modes are settled: before or by the TCP handshake, by the first bytes or the end of the
 * peer's stream, or by a failure of TCP. @tx and @rx are enum afr_mode.
 */
TRACE_EVENT(afrdma_conn_negotiated,
	TP_PROTO(u64 id, unsigned int tx, unsigned int rx, unsigned int reason),
	TP_ARGS(id, tx, rx, reason),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(u32, tx)
		__field(u32, rx)
		__field(u32, reason)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->tx = tx;
		__entry->rx = rx;
		__entry->reason = reason;
	),
	TP_printk("id=%llu tx=%s rx=%s reason=%s", __entry->id, afr_show_mode(__entry->tx),
		  afr_show_mode(__entry->rx), afr_show_reason(__entry->reason))
);

/* An attach has advanced, is overdue or has failed, or the link was left (enum afr_trace_step). */
TRACE_EVENT(afrdma_conn_upgrade,
	TP_PROTO(u64 id, unsigned int step, unsigned int reason),
	TP_ARGS(id, step, reason),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(u32, step)
		__field(u32, reason)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->step = step;
		__entry->reason = reason;
	),
	TP_printk("id=%llu step=%s reason=%s%s", __entry->id, afr_show_step(__entry->step),
		  afr_show_whose(__entry->reason), afr_show_reason(__entry->reason))
);

/*
 * A direction has changed its path at @offset; @where is enum afr_where. For the receive direction,
 * AFR_ON_TCP only means that this end has left the link at @offset and is about to send RESUME.
 */
TRACE_EVENT(afrdma_conn_move,
	TP_PROTO(u64 id, bool tx, unsigned int where, u32 epoch, u64 offset),
	TP_ARGS(id, tx, where, epoch, offset),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(u64, offset)
		__field(u32, where)
		__field(u32, epoch)
		__field(bool, tx)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->offset = offset;
		__entry->where = where;
		__entry->epoch = epoch;
		__entry->tx = tx;
	),
	TP_printk("id=%llu dir=%s where=%s epoch=%u offset=%llu", __entry->id,
		  __entry->tx ? "tx" : "rx", afr_show_where(__entry->where),
		  __entry->epoch, __entry->offset)
);

/* A connection was aborted; @err is the negative errno that the socket reports if it is open. */
TRACE_EVENT(afrdma_conn_abort,
	TP_PROTO(u64 id, unsigned int reason, int err),
	TP_ARGS(id, reason, err),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(u32, reason)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->reason = reason;
		__entry->err = err;
	),
	TP_printk("id=%llu reason=%s err=%d", __entry->id,
		  afr_show_reason(__entry->reason), __entry->err)
);

#endif /* AFR_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>

/* Other files that expand AFR_REASONS define AFR_REASON themselves. */
#undef AFR_REASON
