// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* What AFRDMA_INFO reports: role, byte counts, ring sizes, and why a connection is not on RDMA. */
#define _GNU_SOURCE
#include "proto/reason.h"
#include "test.h"

/* Fails unless AFRDMA_INFO reports @reason, found by the peer if @peer, else by this end. */
static void want_reason(int fd, unsigned int reason, bool peer)
{
	struct afrdma_info info = path_info(fd);

	if (info.reason != reason || info.reason_peer != peer)
		fail("the reason is %s%s, expected %s%s", info.reason_peer ? "the peer's " : "",
		     afr_reason_name(info.reason), peer ? "the peer's " : "", afr_reason_name(reason));
}

static bool has_reason(int fd, unsigned int reason, bool peer)
{
	struct afrdma_info info = path_info(fd);

	return info.reason == reason && info.reason_peer == peer;
}

/* ---- role and byte counts ---- */

/* Checks the role, and the numbers of bytes sent and received since @before. */
static void want_bytes(int fd, const struct afrdma_info *before, uint64_t tx, uint64_t rx)
{
	struct afrdma_info info = path_info(fd);

	WANT_EQ(info.server, run.server);
	WANT_EQ(info.tx_bytes_tcp + info.tx_bytes_rdma -
		before->tx_bytes_tcp - before->tx_bytes_rdma, tx);
	WANT_EQ(info.rx_bytes_tcp + info.rx_bytes_rdma -
		before->rx_bytes_tcp - before->rx_bytes_rdma, rx);
}

/* In every variant, the end that called accept() is the server; all bytes count, FIN does not. */
static void role_and_bytes(void)
{
	size_t mine = run.server ? 30000 : 20000, theirs = run.server ? 20000 : 30000;
	struct flow out = flow_out(0), in = flow_in(0);
	struct afrdma_info before = { 0 };
	int fd = open_conn();

	if (speaks_rdma())
		before = path_info(fd);
	barrier("counters read");
	flow_send(fd, &out, mine, 4096);
	flow_recv(fd, &in, theirs, 4096);
	barrier("exchanged");
	if (speaks_rdma())
		want_bytes(fd, &before, mine, theirs);
	barrier("counters compared");
	SYS(shutdown(fd, SHUT_WR));
	want_eof(fd);
	barrier("ended");
	if (speaks_rdma())
		want_bytes(fd, &before, mine, theirs);
	barrier("counters compared again");
}

/* ---- no upgrade yet ---- */

/* Before the upgrade, each end reports why it is not on RDMA. */
static void before_upgrade(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = open_conn();

	flow_send(fd, &out, 100, 100);
	flow_recv(fd, &in, 100, 100);
	want_reason(fd, run.server ? AFR_REASON_CLIENT_BEGINS : AFR_REASON_NOT_YET, false);
	barrier("reasons compared");
	if (run.server)
		set_int(fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_NEVER);
	/* at the server, the option that denies RDMA takes precedence over CLIENT_BEGINS */
	want_reason(fd, run.server ? AFR_REASON_SOCKET_OPTION : AFR_REASON_NOT_YET, false);
	barrier("option reported");
}

/* A client that has ended its output starts no upgrade, however long the response is. */
static void answer_to_end(void)
{
	size_t len = amount(2 * MIB, 512 * KIB);
	struct flow out = flow_out(0), in = flow_in(0);
	struct afrdma_info info;
	int fd = open_conn();

	if (run.server) {
		flow_recv(fd, &in, 100, 100);
		want_eof(fd);
		flow_send(fd, &out, len, 64 * KIB);
	} else {
		flow_send(fd, &out, 100, 100);
		SYS(shutdown(fd, SHUT_WR));
		flow_recv(fd, &in, len, 64 * KIB);
	}
	barrier("answered");
	info = path_info(fd);
	WANT_EQ(info.tx_path, AFRDMA_PATH_TCP);
	WANT_EQ(info.tx_bytes_rdma + info.rx_bytes_rdma, 0);
	want_reason(fd, AFR_REASON_CLOSING, false);
	barrier("reasons compared");
}

/* ---- denied by the peer ---- */

/* The server's program denies RDMA: the client reports the reason as the peer's. */
static void refused_by_server(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = open_conn();

	flow_send(fd, &out, 100, 100);
	flow_recv(fd, &in, 100, 100);
	if (run.server)
		set_int(fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_NEVER);
	barrier("denied");
	if (!run.server)
		set_int(fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_ALWAYS);
	EVENTUALLY(has_reason(fd, AFR_REASON_SOCKET_OPTION, !run.server));
	barrier("reasons compared");
}

/*
 * The end whose @this_end is true denies RDMA: both ends return to TCP, and the other end reports
 * the reason as the peer's.
 */
static void left_by(bool this_end)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = open_conn();

	path_warm_up(fd);
	if (this_end)
		set_int(fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_NEVER);
	EVENTUALLY(path_info(fd).tx_path == AFRDMA_PATH_TCP);
	EVENTUALLY(has_reason(fd, AFR_REASON_SOCKET_OPTION, !this_end));
	barrier("reasons compared");
	flow_send(fd, &out, 100, 100);
	flow_recv(fd, &in, 100, 100);
	barrier("exchanged");
}

static void left_by_server(void)
{
	left_by(run.server);
}

static void left_by_client(void)
{
	left_by(!run.server);
}

/* ---- how much can be in flight to a program that does not read ---- */

/*
 * On either path, send() accepts at most as many unread bytes as the send ring and the peer's
 * receive ring hold together, and at least a quarter as many.
 */
static void full_is_two_rings(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = open_conn();
	struct afrdma_info info = path_info(fd);
	uint64_t sent = 0, theirs, room;

	do	/* until nothing more can be in flight */
		sent += flow_send_full(fd, &out, 4096);
	while (poll_one(fd, POLLOUT, 300));
	control_send_number("RING", info.rx_ring);
	room = info.tx_ring + control_get_number("RING");
	if (sent > room || sent < room / 4)
		fail("%llu bytes were accepted, and the rings hold %llu", (unsigned long long)sent,
		     (unsigned long long)room);
	control_send_number("SENT", sent);
	theirs = control_get_number("SENT");
	flow_recv(fd, &in, theirs, 64 * KIB);
	barrier("read");
	path_check(fd, sent, theirs);
}

#define COLD	(ON_COLD | ONLY_RDMA)

const struct row info_rows[] = {
	{ "info_role_bytes", role_and_bytes, role_and_bytes, ON_ALL | ONLY_RDMA | QUICK_ALL },
	{ "info_before", before_upgrade, before_upgrade, COLD | QUICK },
	{ "info_half_closed", answer_to_end, answer_to_end, COLD | QUICK },
	{ "info_refused", refused_by_server, refused_by_server, COLD | QUICK },
	{ "info_left_by_server", left_by_server, left_by_server, COLD | QUICK },
	{ "info_left_by_client", left_by_client, left_by_client, COLD | QUICK },
	{ "full_is_two_rings", full_is_two_rings, full_is_two_rings,
	  ON_RDMA | ON_COLD | ONLY_RDMA | QUICK },
	{ }
};
