// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Replaces nl_open(), nl_close() and nl_get() of smctl (ld --wrap). The answers describe a
 * connection with one direction on RDMA, a fallback connection, a listener, a dead link, an
 * unusable device, a counter, a reason and the module. With FAKE_ERROR=number in the environment
 * nl_get() always fails with that errno.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <netinet/tcp.h>

#include <linux/af_rdma.h>
#include <linux/af_rdma_netlink.h>

#include "nl.h"

static char buf[4096];

/* Begins an answer in buf; end() passes its attributes to the callback of nl_get(). */
static struct nlmsghdr *begin(void)
{
	struct nlmsghdr *nlh;

	memset(buf, 0, sizeof(buf));
	nlh = mnl_nlmsg_put_header(buf);
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct genlmsghdr));
	return nlh;
}

/* Callback of mnl_attr_parse(): stores @attr in the array @arg, indexed by type. */
static int store(const struct nlattr *attr, void *arg)
{
	const struct nlattr **into = arg;

	into[mnl_attr_get_type(attr)] = attr;
	return MNL_CB_OK;
}

static void end(const struct nlmsghdr *nlh, nl_message_fn *fn, void *arg)
{
	const struct nlattr *attr[NL_ATTRS] = { NULL };

	mnl_attr_parse(nlh, sizeof(struct genlmsghdr), store, attr);
	fn(attr, arg);
}

static void flag(struct nlmsghdr *nlh, int attr)
{
	mnl_attr_put(nlh, attr, 0, NULL);
}

static void endpoint(struct nlmsghdr *nlh, int attr, int family, const char *text, uint16_t port)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, attr);
	unsigned char addr[16];

	inet_pton(family, text, addr);
	mnl_attr_put(nlh, AFRDMA_A_ENDPOINT_ADDR, family == AF_INET ? 4 : 16, addr);
	mnl_attr_put_u16(nlh, AFRDMA_A_ENDPOINT_PORT, port);
	if (!strncmp(text, "fe80", 4))
		mnl_attr_put_u32(nlh, AFRDMA_A_ENDPOINT_SCOPE, 1);
	mnl_attr_nest_end(nlh, nest);
}

static void conn_bytes(struct nlmsghdr *nlh, uint64_t base)
{
	mnl_attr_put_u64(nlh, AFRDMA_A_CONN_TX_BYTES_TCP, base + 1);
	mnl_attr_put_u64(nlh, AFRDMA_A_CONN_TX_BYTES_RDMA, base + 2);
	mnl_attr_put_u64(nlh, AFRDMA_A_CONN_RX_BYTES_TCP, base + 3);
	mnl_attr_put_u64(nlh, AFRDMA_A_CONN_RX_BYTES_RDMA, base + 4);
	mnl_attr_put_u64(nlh, AFRDMA_A_CONN_UNSENT, base + 5);
	mnl_attr_put_u64(nlh, AFRDMA_A_CONN_UNREAD, base + 6);
	mnl_attr_put_u32(nlh, AFRDMA_A_CONN_TX_RING, 65536);
	mnl_attr_put_u32(nlh, AFRDMA_A_CONN_RX_RING, 131072);
}

static void conn_rdma(nl_message_fn *fn, void *arg)
{
	struct nlmsghdr *nlh = begin();

	mnl_attr_put_u32(nlh, AFRDMA_A_CONN_ID, 1);
	endpoint(nlh, AFRDMA_A_CONN_LOCAL, AF_INET6, "fe80::1", 5201);
	endpoint(nlh, AFRDMA_A_CONN_PEER, AF_INET6, "fe80::2", 40000);
	mnl_attr_put_u32(nlh, AFRDMA_A_CONN_MODE, AFRDMA_MODE_FRAMED);
	mnl_attr_put_u32(nlh, AFRDMA_A_CONN_TCP_STATE, TCP_ESTABLISHED);
	flag(nlh, AFRDMA_A_CONN_SERVER);
	mnl_attr_put_u32(nlh, AFRDMA_A_CONN_TX_PATH, AFRDMA_PATH_RDMA);
	mnl_attr_put_u32(nlh, AFRDMA_A_CONN_RX_PATH, AFRDMA_PATH_WAIT);
	mnl_attr_put_u32(nlh, AFRDMA_A_CONN_UID, 1000);
	mnl_attr_put_u64(nlh, AFRDMA_A_CONN_INODE, 77);
	mnl_attr_put_u64(nlh, AFRDMA_A_CONN_LINK, 0xfedcba9876543210);
	conn_bytes(nlh, 1ULL << 40);
	end(nlh, fn, arg);
}

static void conn_fallback(nl_message_fn *fn, void *arg)
{
	struct nlmsghdr *nlh = begin();

	mnl_attr_put_u64(nlh, AFRDMA_A_CONN_ID, 2);
	endpoint(nlh, AFRDMA_A_CONN_LOCAL, AF_INET, "192.0.2.1", 40001);
	endpoint(nlh, AFRDMA_A_CONN_PEER, AF_INET, "192.0.2.2", 80);
	mnl_attr_put_u32(nlh, AFRDMA_A_CONN_MODE, AFRDMA_MODE_PLAIN);
	mnl_attr_put_u32(nlh, AFRDMA_A_CONN_TCP_STATE, TCP_CLOSE_WAIT);
	flag(nlh, AFRDMA_A_CONN_ORPHAN);
	mnl_attr_put_u32(nlh, AFRDMA_A_CONN_REASON, 1);
	mnl_attr_put_u32(nlh, AFRDMA_A_CONN_ABORT_REASON, 999);
	conn_bytes(nlh, 0);
	end(nlh, fn, arg);
}

static void conn_listener(nl_message_fn *fn, void *arg)
{
	struct nlmsghdr *nlh = begin();

	mnl_attr_put_u64(nlh, AFRDMA_A_CONN_ID, 3);
	endpoint(nlh, AFRDMA_A_CONN_LOCAL, AF_INET, "0.0.0.0", 80);
	mnl_attr_put_u32(nlh, AFRDMA_A_CONN_TCP_STATE, TCP_LISTEN);
	end(nlh, fn, arg);
}

static void links(nl_message_fn *fn, void *arg)
{
	struct nlmsghdr *nlh = begin();

	mnl_attr_put_u64(nlh, AFRDMA_A_LINK_ID, 5);
	mnl_attr_put_strz(nlh, AFRDMA_A_LINK_DEVICE, "rxe0");
	mnl_attr_put_u32(nlh, AFRDMA_A_LINK_PORT, 1);
	endpoint(nlh, AFRDMA_A_LINK_LOCAL, AF_INET, "192.0.2.1", 1);
	endpoint(nlh, AFRDMA_A_LINK_PEER, AF_INET, "192.0.2.2", 2);
	mnl_attr_put(nlh, AFRDMA_A_LINK_INSTANCE, 16, "0123456789abcdef");
	mnl_attr_put_u32(nlh, AFRDMA_A_LINK_STATE, AFRDMA_LINK_STATE_DEAD);
	mnl_attr_put_u32(nlh, AFRDMA_A_LINK_QPN, 17);
	mnl_attr_put_u32(nlh, AFRDMA_A_LINK_REASON, 1);
	flag(nlh, AFRDMA_A_LINK_REASON_PEER);
	mnl_attr_put_u32(nlh, AFRDMA_A_LINK_TCLASS, 104);
	end(nlh, fn, arg);
}

static void devices(nl_message_fn *fn, void *arg)
{
	struct nlmsghdr *nlh = begin();

	mnl_attr_put_strz(nlh, AFRDMA_A_DEV_NAME, "siw0");
	flag(nlh, AFRDMA_A_DEV_IWARP);
	mnl_attr_put_u32(nlh, AFRDMA_A_DEV_REASON, 1);
	end(nlh, fn, arg);
}

static void stats(nl_message_fn *fn, void *arg)
{
	struct nlmsghdr *nlh = begin();

	mnl_attr_put_u32(nlh, AFRDMA_A_STAT_ID, 4);
	mnl_attr_put_strz(nlh, AFRDMA_A_STAT_NAME, "tx_writes");
	mnl_attr_put_u64(nlh, AFRDMA_A_STAT_VALUE, UINT64_MAX);
	mnl_attr_put_strz(nlh, AFRDMA_A_STAT_TEXT, "what it counts");
	end(nlh, fn, arg);
}

static void reasons(nl_message_fn *fn, void *arg)
{
	struct nlmsghdr *nlh = begin();

	mnl_attr_put_u32(nlh, AFRDMA_A_REASON_NUMBER, 1);
	mnl_attr_put_strz(nlh, AFRDMA_A_REASON_NAME, "PEER_PLAIN");
	mnl_attr_put_strz(nlh, AFRDMA_A_REASON_TEXT, "the \"peer\" is plain");
	mnl_attr_put_strz(nlh, AFRDMA_A_REASON_REMEDY, "start it with smctl run");
	end(nlh, fn, arg);
}

static void info(nl_message_fn *fn, void *arg)
{
	struct nlmsghdr *nlh = begin();

	mnl_attr_put_u32(nlh, AFRDMA_A_INFO_FAMILY, 27);
	mnl_attr_put_u32(nlh, AFRDMA_A_INFO_WIRE_VERSION, 1);
	mnl_attr_put(nlh, AFRDMA_A_INFO_INSTANCE, 16, "0123456789abcdef");
	end(nlh, fn, arg);
}

int __wrap_nl_open(struct nl **nl);
int __wrap_nl_open(struct nl **nl)
{
	*nl = NULL;
	return 0;
}

void __wrap_nl_close(struct nl *nl);
void __wrap_nl_close(struct nl *nl)
{
	(void)nl;
}

int __wrap_nl_get(struct nl *nl, uint8_t cmd, bool dump, nl_message_fn *fn, void *arg);
int __wrap_nl_get(struct nl *nl, uint8_t cmd, bool dump, nl_message_fn *fn, void *arg)
{
	const char *error = getenv("FAKE_ERROR");

	(void)nl;
	if (error)
		return -atoi(error);
	if (dump == (cmd == AFRDMA_CMD_INFO_GET))
		return -EOPNOTSUPP;
	switch (cmd) {
	case AFRDMA_CMD_CONN_GET:
		conn_rdma(fn, arg);
		conn_fallback(fn, arg);
		conn_listener(fn, arg);
		break;
	case AFRDMA_CMD_LINK_GET:
		links(fn, arg);
		break;
	case AFRDMA_CMD_DEV_GET:
		devices(fn, arg);
		break;
	case AFRDMA_CMD_STATS_GET:
		stats(fn, arg);
		break;
	case AFRDMA_CMD_REASON_GET:
		reasons(fn, arg);
		break;
	case AFRDMA_CMD_INFO_GET:
		info(fn, arg);
		break;
	default:
		return -EOPNOTSUPP;
	}
	return 0;
}
