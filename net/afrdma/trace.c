// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* The bodies of the tracepoints in trace.h. */
#define CREATE_TRACE_POINTS
#include "trace.h"
