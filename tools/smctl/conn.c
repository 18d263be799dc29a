// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* smctl conn: connections */
#include <netinet/tcp.h>

#include <linux/af_rdma.h>
#include <linux/af_rdma_netlink.h>

#include "smctl.h"

static const char *const modes[] = {
	[AFRDMA_MODE_NONE]	= "none",
	[AFRDMA_MODE_UNDECIDED]	= "undecided",
	[AFRDMA_MODE_PLAIN]	= "plain",
	[AFRDMA_MODE_HALF]	= "half",
	[AFRDMA_MODE_FRAMED]	= "framed",
	NULL
};

static const char *const paths[] = {
	[AFRDMA_PATH_TCP]	= "tcp",
	[AFRDMA_PATH_RDMA]	= "rdma",
	[AFRDMA_PATH_WAIT]	= "wait",
	NULL
};

/* The names of the state filters of ss(8), and "unknown" if the kernel has sent no state. */
static const char *const tcp_states[] = {
	[0]			= "unknown",
	[TCP_ESTABLISHED]	= "established",
	[TCP_SYN_SENT]		= "syn-sent",
	[TCP_SYN_RECV]		= "syn-recv",
	[TCP_FIN_WAIT1]		= "fin-wait-1",
	[TCP_FIN_WAIT2]		= "fin-wait-2",
	[TCP_TIME_WAIT]		= "time-wait",
	[TCP_CLOSE]		= "closed",
	[TCP_CLOSE_WAIT]	= "close-wait",
	[TCP_LAST_ACK]		= "last-ack",
	[TCP_LISTEN]		= "listening",
	[TCP_CLOSING]		= "closing",
	NULL
};

static const char *role(const struct nlattr *const *attr)
{
	if (nl_u32(attr[AFRDMA_A_CONN_TCP_STATE]) == TCP_LISTEN)
		return "listener";
	return attr[AFRDMA_A_CONN_SERVER] ? "server" : "client";
}

static void show_identity(struct print *p, const struct nlattr *const *attr)
{
	print_u64(p, "id", U64 ": ", nl_u64(attr[AFRDMA_A_CONN_ID]));
	field_endpoint(p, "local", attr[AFRDMA_A_CONN_LOCAL]);
	print_text(p, " -> ");
	field_endpoint(p, "peer", attr[AFRDMA_A_CONN_PEER]);
	field_name(p, "mode", " mode %s", modes, nl_u32(attr[AFRDMA_A_CONN_MODE]));
	field_name(p, "state", " state %s", tcp_states, nl_u32(attr[AFRDMA_A_CONN_TCP_STATE]));
	print_string(p, "role", " role %s", role(attr));
	print_flag(p, "orphan", " orphan", attr[AFRDMA_A_CONN_ORPHAN]);
	print_text(p, "\n");
}

static void show_tx(struct print *p, const struct nlattr *const *attr)
{
	field_name(p, "tx_path", "    tx_path %s", paths, nl_u32(attr[AFRDMA_A_CONN_TX_PATH]));
	print_u64(p, "tx_bytes_rdma", " tx_bytes_rdma " U64,
		  nl_u64(attr[AFRDMA_A_CONN_TX_BYTES_RDMA]));
	print_u64(p, "tx_bytes_tcp", " tx_bytes_tcp " U64,
		  nl_u64(attr[AFRDMA_A_CONN_TX_BYTES_TCP]));
	print_u64(p, "unsent", " unsent " U64, nl_u64(attr[AFRDMA_A_CONN_UNSENT]));
	print_u64(p, "tx_ring", " tx_ring " U64 "\n", nl_u32(attr[AFRDMA_A_CONN_TX_RING]));
}

static void show_rx(struct print *p, const struct nlattr *const *attr)
{
	field_name(p, "rx_path", "    rx_path %s", paths, nl_u32(attr[AFRDMA_A_CONN_RX_PATH]));
	print_u64(p, "rx_bytes_rdma", " rx_bytes_rdma " U64,
		  nl_u64(attr[AFRDMA_A_CONN_RX_BYTES_RDMA]));
	print_u64(p, "rx_bytes_tcp", " rx_bytes_tcp " U64,
		  nl_u64(attr[AFRDMA_A_CONN_RX_BYTES_TCP]));
	print_u64(p, "unread", " unread " U64, nl_u64(attr[AFRDMA_A_CONN_UNREAD]));
	print_u64(p, "rx_ring", " rx_ring " U64 "\n", nl_u32(attr[AFRDMA_A_CONN_RX_RING]));
}

static void show_rest(struct print *p, const struct nlattr *const *attr)
{
	print_text(p, "   ");
	if (attr[AFRDMA_A_CONN_LINK])
		print_u64(p, "link", " link " U64, nl_u64(attr[AFRDMA_A_CONN_LINK]));
	print_u64(p, "epoch", " epoch " U64, nl_u32(attr[AFRDMA_A_CONN_EPOCH]));
	print_u64(p, "moves", " moves " U64, nl_u64(attr[AFRDMA_A_CONN_MOVES]));
	print_u64(p, "uid", " uid " U64, nl_u32(attr[AFRDMA_A_CONN_UID]));
	if (attr[AFRDMA_A_CONN_INODE])
		print_u64(p, "inode", " inode " U64, nl_u64(attr[AFRDMA_A_CONN_INODE]));
	print_text(p, "\n");
}

void conn_show(const struct nlattr *const *attr, void *arg)
{
	struct smctl *smctl = arg;

	print_begin(smctl->print);
	show_identity(smctl->print, attr);
	show_tx(smctl->print, attr);
	show_rx(smctl->print, attr);
	show_rest(smctl->print, attr);
	field_reason_and_peer(smctl, "reason", attr[AFRDMA_A_CONN_REASON],
			      attr[AFRDMA_A_CONN_REASON_PEER]);
	field_reason(smctl, "abort", attr[AFRDMA_A_CONN_ABORT_REASON]);
	print_end(smctl->print);
}
