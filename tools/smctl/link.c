// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* smctl link: RDMA links */
#include <linux/af_rdma_netlink.h>

#include "smctl.h"

static const char *const states[] = {
	[AFRDMA_LINK_STATE_CONNECTING]	= "connecting",
	[AFRDMA_LINK_STATE_UP]		= "up",
	[AFRDMA_LINK_STATE_DYING]	= "dying",
	[AFRDMA_LINK_STATE_DEAD]	= "dead",
	NULL
};

static void show_identity(struct print *p, const struct nlattr *const *attr)
{
	print_u64(p, "id", U64 ": ", nl_u64(attr[AFRDMA_A_LINK_ID]));
	field_endpoint(p, "local", attr[AFRDMA_A_LINK_LOCAL]);
	print_text(p, " -> ");
	field_endpoint(p, "peer", attr[AFRDMA_A_LINK_PEER]);
	print_string(p, "device", " dev %s", nl_string(attr[AFRDMA_A_LINK_DEVICE]));
	print_u64(p, "port", "/" U64, nl_u32(attr[AFRDMA_A_LINK_PORT]));
	field_name(p, "state", " state %s", states, nl_u32(attr[AFRDMA_A_LINK_STATE]));
	print_string(p, "role", " role %s\n",
		     attr[AFRDMA_A_LINK_ACTIVE] ? "active" : "passive");
}

static void show_queue_pair(struct print *p, const struct nlattr *const *attr)
{
	print_u64(p, "qpn", "    qpn " U64, nl_u32(attr[AFRDMA_A_LINK_QPN]));
	print_u64(p, "peer_qpn", " peer_qpn " U64, nl_u32(attr[AFRDMA_A_LINK_PEER_QPN]));
	print_u64(p, "mtu", " mtu " U64, nl_u32(attr[AFRDMA_A_LINK_MTU]));
	if (attr[AFRDMA_A_LINK_TCLASS])
		print_u64(p, "tclass", " tclass " U64, nl_u32(attr[AFRDMA_A_LINK_TCLASS]));
	print_u64(p, "users", " users " U64, nl_u32(attr[AFRDMA_A_LINK_USERS]));
	print_u64(p, "credits", " credits " U64, nl_u32(attr[AFRDMA_A_LINK_CREDITS]));
	field_hex(p, "instance", " instance %s\n", attr[AFRDMA_A_LINK_INSTANCE]);
}

static void show_traffic(struct print *p, const struct nlattr *const *attr)
{
	print_u64(p, "tx_bytes", "    tx_bytes " U64, nl_u64(attr[AFRDMA_A_LINK_TX_BYTES]));
	print_u64(p, "tx_writes", " tx_writes " U64, nl_u64(attr[AFRDMA_A_LINK_TX_WRITES]));
	print_u64(p, "rx_bytes", " rx_bytes " U64, nl_u64(attr[AFRDMA_A_LINK_RX_BYTES]));
	print_u64(p, "rx_writes", " rx_writes " U64 "\n", nl_u64(attr[AFRDMA_A_LINK_RX_WRITES]));
}

void link_show(const struct nlattr *const *attr, void *arg)
{
	struct smctl *smctl = arg;

	print_begin(smctl->print);
	show_identity(smctl->print, attr);
	show_queue_pair(smctl->print, attr);
	show_traffic(smctl->print, attr);
	field_reason_and_peer(smctl, "reason", attr[AFRDMA_A_LINK_REASON],
			      attr[AFRDMA_A_LINK_REASON_PEER]);
	print_end(smctl->print);
}
