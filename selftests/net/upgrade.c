// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The upgrade from TCP to RDMA: when it happens, when not, and that it disturbs no traffic. Also
 * AFRDMA_INFO itself, ring sizes, and keepalive frames.
 */
#define _GNU_SOURCE
#include "proto/reason.h"
#include "test.h"

#define UPGRADE_BYTES	65536	/* the default; used if the sysctl is 0 or cannot be read */

static size_t upgrade_bytes(void)
{
	long value = path_sysctl("upgrade_bytes");

	return value > 0 ? value : UPGRADE_BYTES;
}

/* ---- no upgrade ---- */

/* A connection with a few bytes in few messages stays on TCP, without a link. */
static void stays_on_tcp(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	struct afrdma_info info;
	int fd = open_conn();

	for (int i = 0; i < 2; i++) {
		if (run.server)
			flow_recv(fd, &in, 100, 100);
		flow_send(fd, &out, 100, 100);
		if (!run.server)
			flow_recv(fd, &in, 100, 100);
	}
	barrier("moved");
	WANT_EQ(poll_one(fd, POLLIN, 300), 0);
	info = path_info(fd);
	WANT_EQ(info.mode, AFRDMA_MODE_FRAMED);
	WANT_EQ(info.tx_path, AFRDMA_PATH_TCP);
	WANT_EQ(info.rx_path, AFRDMA_PATH_TCP);
	WANT_EQ(info.tx_bytes_tcp, 200);
	WANT_EQ(info.rx_bytes_tcp, 200);
	WANT_EQ(info.tx_bytes_rdma, 0);
	WANT_EQ(info.rx_bytes_rdma, 0);
	WANT_EQ(info.moves, 0);
	WANT_EQ(info.link, 0);
	WANT_EQ(info.reason, run.server ? AFR_REASON_CLIENT_BEGINS : AFR_REASON_NOT_YET);
	barrier("seen");
}

/* ---- upgrade in the middle of a stream ---- */

#define SMALL_MESSAGES	20

/* Checks that the connection has moved, and that both paths together carried @tx and @rx bytes. */
static void want_moved(const struct afrdma_info *info, uint64_t tx, uint64_t rx)
{
	WANT_EQ(info->mode, AFRDMA_MODE_FRAMED);
	WANT_EQ(info->tx_bytes_tcp + info->tx_bytes_rdma, tx);
	WANT_EQ(info->rx_bytes_tcp + info->rx_bytes_rdma, rx);
	WANT(info->moves > 0);
	WANT(info->link != 0);
	WANT_EQ(info->reason, AFR_REASON_NONE);
}

/* Short messages, then bulk in one direction: the stream begins on TCP and ends on RDMA. */
static void bulk_send(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	struct afrdma_info info;
	int fd = open_conn();

	for (int i = 0; i < SMALL_MESSAGES; i++) {
		flow_send(fd, &out, 10, 10);
		flow_recv(fd, &in, 10, 10);
	}
	flow_send_random(fd, &out, amount(64 * MIB, 16 * MIB), 64 * KIB);
	barrier("moved");
	info = path_info(fd);
	want_moved(&info, out.off, in.off);
	WANT_EQ(info.tx_path, AFRDMA_PATH_RDMA);
	WANT(info.tx_bytes_tcp > 0);
	WANT(info.tx_bytes_rdma > out.off / 2);
	barrier("seen");
}

static void bulk_recv(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	struct afrdma_info info;
	int fd = open_conn();

	for (int i = 0; i < SMALL_MESSAGES; i++) {
		flow_recv(fd, &in, 10, 10);
		flow_send(fd, &out, 10, 10);
	}
	flow_recv_random(fd, &in, amount(64 * MIB, 16 * MIB), 64 * KIB);
	barrier("moved");
	info = path_info(fd);
	want_moved(&info, out.off, in.off);
	WANT_EQ(info.rx_path, AFRDMA_PATH_RDMA);
	WANT(info.rx_bytes_tcp > 0);
	WANT(info.rx_bytes_rdma > in.off / 2);
	barrier("seen");
}

struct stream {
	int fd;
	struct flow flow;
};

static void *send_stream(void *arg)
{
	struct stream *stream = arg;

	rnd_start(1);
	flow_send_random(stream->fd, &stream->flow, amount(64 * MIB, 16 * MIB), 64 * KIB);
	return NULL;
}

/* Bulk in both directions at the same time: both directions end on RDMA. */
static void bulk_both(void)
{
	size_t len = amount(64 * MIB, 16 * MIB);
	struct stream stream = { open_conn(), flow_out(0) };
	struct flow in = flow_in(0);
	struct afrdma_info info;
	pthread_t sender = thread_start(send_stream, &stream);

	flow_recv_random(stream.fd, &in, len, 64 * KIB);
	pthread_join(sender, NULL);
	barrier("moved");
	info = path_info(stream.fd);
	want_moved(&info, len, len);
	WANT_EQ(info.tx_path, AFRDMA_PATH_RDMA);
	WANT_EQ(info.rx_path, AFRDMA_PATH_RDMA);
	barrier("seen");
}

/* Many messages of one byte start an upgrade before upgrade_bytes is reached. */
static void by_messages(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = open_conn();
	double end = now() + patience();
	bool more = true;

	while (more) {
		struct afrdma_info info = path_info(fd);

		if (run.server)
			flow_recv(fd, &in, 1, 1);
		flow_send(fd, &out, 1, 1);
		if (!run.server)
			flow_recv(fd, &in, 1, 1);
		more = info.tx_path != AFRDMA_PATH_RDMA || info.rx_path != AFRDMA_PATH_RDMA;
		if (out.off + in.off >= upgrade_bytes() || now() > end)
			fail("still on TCP after %llu messages of one byte",
			     (unsigned long long)out.off);
		/* The ends see the move at different times; the client decides when both stop. */
		if (!run.server)
			control_send_number("MORE", more);
		else
			more = control_get_number("MORE");
	}
	barrier("moved");
}

/* The upgrade completes without a further send() or recv(). */
static void without_calls(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = open_conn();
	size_t len = 2 * upgrade_bytes();

	for (size_t i = 0; i < len; i += 4096) {
		if (run.server)
			flow_recv(fd, &in, 4096, 4096);
		flow_send(fd, &out, 4096, 4096);
		if (!run.server)
			flow_recv(fd, &in, 4096, 4096);
	}
	EVENTUALLY(path_info(fd).tx_path == AFRDMA_PATH_RDMA);
	EVENTUALLY(path_info(fd).rx_path == AFRDMA_PATH_RDMA);
	barrier("moved");
}

/* Both ends send until they would block, and read only after an upgrade has had time to begin. */
static void while_full(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = open_conn();
	uint64_t mine = flow_send_full(fd, &out, 4096), theirs;

	barrier("full");
	poll(NULL, 0, 300);	/* time for the upgrade to begin */
	control_send_number("SENT", mine);
	theirs = control_get_number("SENT");
	flow_recv(fd, &in, theirs, 64 * KIB);
	barrier("empty");
	flow_send(fd, &out, 100, 100);
	flow_recv(fd, &in, 100, 100);
	path_check(fd, mine + 100, theirs + 100);
}

/* ---- many connections at the same time ---- */

#define CONNS	20

/* Thread: transfers blocks in both directions, enough to upgrade the connection. */
static void *move_one(void *arg)
{
	struct stream *stream = arg;
	struct flow in = flow_in(stream->flow.conn);

	for (size_t i = 0; i < amount(200, 50); i++) {
		flow_send(stream->fd, &stream->flow, 16 * KIB, 16 * KIB);
		flow_recv(stream->fd, &in, 16 * KIB, 16 * KIB);
	}
	return NULL;
}

static void many_move(void)
{
	int end = run.server ? open_listener(CONNS) : server_port();
	struct stream streams[CONNS];
	pthread_t threads[CONNS];

	for (unsigned int i = 0; i < CONNS; i++) {
		int fd = run.server ? accept_conn(end) : connect_conn(end);

		streams[i] = (struct stream) { fd, flow_out(i) };
	}
	for (unsigned int i = 0; i < CONNS; i++)
		threads[i] = thread_start(move_one, &streams[i]);
	for (unsigned int i = 0; i < CONNS; i++)
		pthread_join(threads[i], NULL);
	barrier("moved");
	for (unsigned int i = 0; i < CONNS; i++) {
		struct afrdma_info info = path_info(streams[i].fd);

		want_moved(&info, streams[i].flow.off, streams[i].flow.off);
	}
	barrier("seen");
}

/* ---- connections that end during the upgrade ---- */

/* How many bytes the client sends on connection @i: random, from 1 to 32 * upgrade_bytes(). */
static size_t ending(unsigned int i)
{
	return 1 + mix(run.seed + i) % (32 * upgrade_bytes());
}

/*
 * How many connections a row opens and ends, not counting the one that keep_link() opens. The row
 * upgrade_half_close opens a quarter of this number. Since ending() is random, a connection ends
 * before, during or after its upgrade.
 */
static unsigned int endings(void)
{
	return amount(200, 20);
}

/*
 * With AF_RDMA sockets, opens a connection and moves it to RDMA, so that a link is up before the
 * row opens the other connections. The connection stays open to the end of the row. @end is the
 * listener or the server's port.
 */
static void keep_link(int end)
{
	if (speaks_rdma())
		path_warm_up(run.server ? SYS(accept(end, NULL, NULL)) : connect_port(end));
}

/*
 * Has RDMA carried some of the bytes received on @fd, a connection that was read to its end or to
 * an error? Returns 1 or 0; always 1 for a TCP socket.
 */
static unsigned int ended_moved(int fd)
{
	struct afrdma_info info;

	if (!speaks_rdma())
		return 1;
	info = path_info(fd);
	WANT_EQ(info.mode, AFRDMA_MODE_FRAMED);
	return info.rx_bytes_rdma > 0;
}

/* The client closes each socket right after its last send(); the server must receive all bytes. */
static void ends_in_upgrade(void)
{
	int port = server_port();

	keep_link(port);
	for (unsigned int i = 0; i < endings(); i++) {
		struct flow out = flow_out(i);
		int fd = connect_port(port);

		flow_send_random(fd, &out, ending(i), 32 * KIB);
		SYS(close(fd));
	}
}

static void ends_in_upgrade_server(void)
{
	int listener = open_listener(256);
	unsigned int moved = 0;

	keep_link(listener);
	for (unsigned int i = 0; i < endings(); i++) {
		struct flow in = flow_in(i);
		int fd = SYS(accept(listener, NULL, NULL));

		WANT_EQ(flow_recv_to_eof(fd, &in), ending(i));
		moved += ended_moved(fd);
		SYS(close(fd));
	}
	WANT(moved);
}

/* The client ends its direction after ending() bytes; both ends must receive all bytes. */
static void half_ends_in_upgrade(void)
{
	int port = server_port();
	unsigned int moved = 0;

	keep_link(port);
	for (unsigned int i = 0; i < endings() / 4; i++) {
		struct flow out = flow_out(i), in = flow_in(i);
		int fd = connect_port(port);

		flow_send_random(fd, &out, ending(i), 32 * KIB);
		SYS(shutdown(fd, SHUT_WR));
		WANT_EQ(flow_recv_to_eof(fd, &in), 8 * upgrade_bytes());
		moved += ended_moved(fd);
		SYS(close(fd));
	}
	WANT(moved);
}

static void half_ends_in_upgrade_server(void)
{
	int listener = open_listener(256);

	keep_link(listener);
	for (unsigned int i = 0; i < endings() / 4; i++) {
		struct flow out = flow_out(i), in = flow_in(i);
		int fd = SYS(accept(listener, NULL, NULL));

		WANT_EQ(flow_recv_to_eof(fd, &in), ending(i));
		flow_send_random(fd, &out, 8 * upgrade_bytes(), 32 * KIB);
		SYS(close(fd));
	}
}

/* The client resets connections after ending() bytes; the server must read an intact prefix. */
static void resets_in_upgrade(void)
{
	struct linger hard = { .l_onoff = 1 };
	int port = server_port();

	keep_link(port);
	for (unsigned int i = 0; i < endings(); i++) {
		struct flow out = flow_out(i);
		int fd = connect_port(port);

		flow_send_random(fd, &out, ending(i), 32 * KIB);
		SYS(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)));
		SYS(close(fd));
		barrier("reset");
	}
}

static void resets_in_upgrade_server(void)
{
	int listener = open_listener(256);
	unsigned int moved = 0;

	keep_link(listener);
	for (unsigned int i = 0; i < endings(); i++) {
		struct flow in = flow_in(i);
		int fd = SYS(accept(listener, NULL, NULL));

		WANT_EQ(flow_recv_to_end(fd, &in), ECONNRESET);
		WANT(in.off <= ending(i));
		moved += ended_moved(fd);
		SYS(close(fd));
		barrier("reset");
	}
	WANT(moved);
}

/* ---- AFRDMA_INFO itself ---- */

static void info_calls(void)
{
	struct afrdma_info info;
	socklen_t len = sizeof(info);
	int fd = new_socket(0);

	memset(&info, 0x5a, sizeof(info));
	SYS(getsockopt(fd, SOL_AFRDMA, AFRDMA_INFO, &info, &len));
	WANT_EQ(len, sizeof(info));
	WANT_EQ(info.mode, AFRDMA_MODE_NONE);
	WANT_EQ(info.link, 0);
	SYS(listen(fd, 1));
	SYS(getsockopt(fd, SOL_AFRDMA, AFRDMA_INFO, &info, &len));
	WANT_EQ(info.mode, AFRDMA_MODE_NONE);
	SYS_ERRNO(setsockopt(fd, SOL_AFRDMA, AFRDMA_INFO, &info, len), ENOPROTOOPT);
	SYS_ERRNO(getsockopt(fd, SOL_AFRDMA, 77, &info, &len), ENOPROTOOPT);
	SYS_ERRNO(getsockopt(fd, SOL_AFRDMA, AFRDMA_INFO, (void *)8, &len), EFAULT);
	/* A short buffer gets the part that fits, so that the structure can grow later. */
	memset(&info, 0x5a, sizeof(info));
	len = 8;
	SYS(getsockopt(fd, SOL_AFRDMA, AFRDMA_INFO, &info, &len));
	WANT_EQ(len, 8);
	WANT_EQ(info.rx_path, 0x5a5a5a5a);
	len = -1;
	SYS_ERRNO(getsockopt(fd, SOL_AFRDMA, AFRDMA_INFO, &info, &len), EINVAL);
}

/* Ring sizes are powers of two, 16 KiB or more. */
static void ring_sizes(void)
{
	static const struct sizes sizes = { .sndbuf = 64 * KIB, .rcvbuf = 64 * KIB };
	struct afrdma_info info;
	int fd = open_conn_sized(&sizes);

	info = path_info(fd);
	WANT(info.tx_ring >= 16 * KIB && !(info.tx_ring & (info.tx_ring - 1)));
	WANT(info.rx_ring >= 16 * KIB && !(info.rx_ring & (info.rx_ring - 1)));
	barrier("seen");
}

#define COLD	(ON_COLD | ONLY_RDMA)

/* ---- keepalive frames, so that firewalls do not drop TCP while RDMA carries the bytes ---- */

static void stays_alive(void)
{
	long before = path_sysctl("keepalive_ms");
	uint64_t old[STAT_COUNT], current[STAT_COUNT];
	int fd;

	/* on one host both ends share the sysctl: neither may set it before both have read it */
	barrier("saved");
	path_set_sysctl("keepalive_ms", 100);
	fd = open_conn();
	stats_read(old);
	/* the programs send nothing, so the frames counted here are keepalives */
	EVENTUALLY((stats_read(current),
		    run.server ? current[STAT_FRAMES_SENT] >= old[STAT_FRAMES_SENT] + 3 :
				 current[STAT_FRAMES_RECEIVED] >= old[STAT_FRAMES_RECEIVED] + 3));
	path_exchange(fd, KIB);
	path_set_sysctl("keepalive_ms", before);
}

const struct row upgrade_rows[] = {
	{ "upgrade_alive", stays_alive, stays_alive, ON_RDMA | ONLY_RDMA | QUICK },
	{ "upgrade_not_below", stays_on_tcp, stays_on_tcp, COLD | QUICK },
	{ "upgrade_in_stream", bulk_send, bulk_recv, COLD | QUICK },
	{ "upgrade_in_stream_back", bulk_recv, bulk_send, COLD | QUICK },
	{ "upgrade_in_stream_both", bulk_both, bulk_both, COLD | QUICK },
	{ "upgrade_by_messages", by_messages, by_messages, COLD | QUICK },
	{ "upgrade_without_calls", without_calls, without_calls, COLD },
	{ "upgrade_while_full", while_full, while_full, COLD },
	{ "upgrade_many", many_move, many_move, COLD | QUICK },
	{ "upgrade_close", ends_in_upgrade, ends_in_upgrade_server, ON_COLD | QUICK },
	{ "upgrade_half_close", half_ends_in_upgrade, half_ends_in_upgrade_server, ON_COLD },
	{ "upgrade_reset", resets_in_upgrade, resets_in_upgrade_server, ON_COLD },
	{ "info_calls", info_calls, info_calls, COLD | QUICK | UNFRAMED },
	{ "info_rings", ring_sizes, ring_sizes, ON_RDMA | ONLY_RDMA | QUICK },
	{ }
};
