// SPDX-License-Identifier: GPL-2.0
/* The bodies of the tracepoints in trace.h. */
#define CREATE_TRACE_POINTS
#include "trace.h"
