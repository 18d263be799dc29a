// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* smctl stats: counters */
#include <linux/af_rdma_netlink.h>

#include "smctl.h"

void stat_show(const struct nlattr *const *attr, void *arg)
{
	struct print *p = ((struct smctl *)arg)->print;

	print_begin(p);
	print_u64(p, "id", NULL, nl_u32(attr[AFRDMA_A_STAT_ID]));
	print_string(p, "name", "%-18s", nl_string(attr[AFRDMA_A_STAT_NAME]));
	print_u64(p, "value", " %14" PRIu64, nl_u64(attr[AFRDMA_A_STAT_VALUE]));
	print_string(p, "text", "  %s\n", nl_string(attr[AFRDMA_A_STAT_TEXT]));
	print_end(p);
}
