/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Information about connections: for netlink dumps (smctl) and AFRDMA_INFO; also the addresses that
 * hello_rx.c stores when the peer's HELLO arrives, and path MTU and traffic class for an attach.
 */
#ifndef AFR_CONN_INFO_H
#define AFR_CONN_INFO_H

#include "conn.h"

struct afr_conn_info {
	u64	id;
	struct sockaddr_storage	local, remote;
	u8	mode;		/* enum afrdma_mode of the uapi */
	u8	tx_path, rx_path;	/* enum afrdma_path */
	u8	tcp_state;	/* of the TCP socket */
	bool	server, orphan;
	bool	reason_peer;	/* the peer reported @reason, which applies to the peer's end */
	u32	reason;		/* enum afr_reason */
	u32	abort_reason;
	u32	uid;
	unsigned long	inode;
	u64	tx_bytes[2], rx_bytes[2];	/* by path: TCP, RDMA */
	u64	unsent, unread;	/* bytes */
	u64	moves;
	u64	link;		/* id, 0 = none */
	u32	tx_ring, rx_ring;
	u32	epoch;
};

void afr_conn_info(struct afr_conn *conn, struct afr_conn_info *info);
void afr_conn_info_addrs(const struct afr_conn *conn, struct sockaddr_storage *local,
			 struct sockaddr_storage *remote);
u32 afr_conn_info_path_mtu(const struct afr_conn *conn);
u8 afr_conn_info_tclass(const struct afr_conn *conn);
int afr_conn_info_for_each(struct afr_net *an, unsigned long id,
			   int (*fn)(const struct afr_conn_info *info, void *arg), void *arg);

#endif /* AFR_CONN_INFO_H */
