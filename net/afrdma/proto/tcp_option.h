/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* The TCP option by which two hosts agree on AF_RDMA (RFC 9293 section 3.2, RFC 6994). */
#ifndef AFR_PROTO_TCP_OPTION_H
#define AFR_PROTO_TCP_OPTION_H

#include "portable.h"
#include "wire.h"

struct afr_tcp_option {
	u32	nonce;
	bool	server;		/* AFR_OPT_ROLE_SERVER was set */
};

int afr_tcp_option_find(const u8 *opts, unsigned int len, struct afr_tcp_option *out);

int afr_tcp_option_check_room(const u8 *opts, unsigned int len);
void afr_tcp_option_write(u8 *to, const struct afr_tcp_option *opt);
u32 afr_tcp_option_answer(u32 nonce);

#endif /* AFR_PROTO_TCP_OPTION_H */
