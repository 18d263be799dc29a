// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* smctl dev: RDMA devices */
#include <linux/af_rdma_netlink.h>

#include "smctl.h"

void dev_show(const struct nlattr *const *attr, void *arg)
{
	struct smctl *smctl = arg;
	struct print *p = smctl->print;

	print_begin(p);
	print_string(p, "name", "%s:", nl_string(attr[AFRDMA_A_DEV_NAME]));
	print_flag(p, "usable", " usable", attr[AFRDMA_A_DEV_USABLE]);
	if (!attr[AFRDMA_A_DEV_USABLE])
		print_text(p, " not usable");
	print_flag(p, "iwarp", " iwarp", attr[AFRDMA_A_DEV_IWARP]);
	if (attr[AFRDMA_A_DEV_LINKS])
		print_u64(p, "links", " links " U64, nl_u32(attr[AFRDMA_A_DEV_LINKS]));
	print_u64(p, "ring_max", " ring_max " U64, nl_u32(attr[AFRDMA_A_DEV_RING_MAX]));
	print_u64(p, "max_qp_wr", " max_qp_wr " U64, nl_u32(attr[AFRDMA_A_DEV_MAX_QP_WR]));
	print_u64(p, "max_cqe", " max_cqe " U64 "\n", nl_u32(attr[AFRDMA_A_DEV_MAX_CQE]));
	field_reason(smctl, "reason", attr[AFRDMA_A_DEV_REASON]);
	print_end(p);
}
