/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM afrdma

#if !defined(_LEAKY_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _LEAKY_TRACE_H

#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(leaky_conn,
	TP_PROTO(u32 id),
	TP_ARGS(id),
	TP_STRUCT__entry(__field(u32, id)),
	TP_fast_assign(__entry->id = id;),
	TP_printk("id=%u", __entry->id)
);

DEFINE_EVENT(leaky_conn, afrdma_conn_create, TP_PROTO(u32 id), TP_ARGS(id));
DEFINE_EVENT(leaky_conn, afrdma_conn_destroy, TP_PROTO(u32 id), TP_ARGS(id));

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
