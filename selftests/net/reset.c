// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * shutdown() and resets: while threads sleep in calls, with bytes unread or in flight, after FIN,
 * and during an attach.
 */
#define _GNU_SOURCE
#include <sys/ioctl.h>

#include <linux/tcp.h>

#include "test.h"

/* ---- threads that sleep in calls ---- */

/* Thread: returns the result of recv(). */
static void *recv_sleeper(void *arg)
{
	char byte;

	return (void *)SYS(recv(*(int *)arg, &byte, 1, 0));
}

/* shutdown(SHUT_RD) wakes a thread in recv(), which returns 0. */
static void wakes_recv(void)
{
	int fd = open_conn();
	pthread_t thread = thread_start(recv_sleeper, &fd);
	void *got = (void *)1;

	barrier("asleep");
	SYS(shutdown(fd, SHUT_RD));
	pthread_join(thread, &got);
	WANT(!got);
	barrier("awake");
}

/* Other end of wakes_recv() and wakes_send(): neither reads nor sends. */
static void stays_quiet(void)
{
	int fd = open_conn();

	barrier("asleep");
	barrier("awake");
	SYS(close(fd));
}

/* Thread: sends until send() fails; returns the errno. */
static void *send_sleeper(void *arg)
{
	uint8_t *buf = buffer(MIB);

	memset(buf, 1, MIB);
	while (send(*(int *)arg, buf, MIB, MSG_NOSIGNAL) > 0)
		at(__FILE__, __LINE__, "send() until it fails");
	free(buf);
	return (void *)(long)errno;
}

/* Waits until the socket is full and stays full for 50 ms. */
static void await_full(int fd)
{
	EVENTUALLY(!(poll_one(fd, POLLOUT, 0) & POLLOUT));
	EVENTUALLY(!(poll_one(fd, POLLOUT, 50) & POLLOUT));
}

/* shutdown(SHUT_WR) wakes a thread in send(); that call or the next one fails with EPIPE. */
static void wakes_send(void)
{
	int fd = open_conn();
	pthread_t thread = thread_start(send_sleeper, &fd);
	void *err;

	await_full(fd);
	SYS(shutdown(fd, SHUT_WR));
	pthread_join(thread, &err);
	WANT_EQ((long)err, EPIPE);
	barrier("asleep");
	barrier("awake");
}

/* ---- resets ---- */

/* Other end of recv_is_reset() and send_is_reset(): close() with SO_LINGER 0. */
static void resets_recv(void)
{
	int fd = open_conn();

	path_await_decided(fd);
	barrier("asleep");
	set_linger(fd, 0);
	SYS(close(fd));
}

/* Thread: recv() must fail with ECONNRESET. */
static void *recv_reset(void *arg)
{
	char byte;

	SYS_ERRNO(recv(*(int *)arg, &byte, 1, 0), ECONNRESET);
	return NULL;
}

/* A thread sleeps in recv() when the peer resets the connection. */
static void recv_is_reset(void)
{
	int fd = open_conn();
	pthread_t thread = thread_start(recv_reset, &fd);

	barrier("asleep");
	pthread_join(thread, NULL);
	SYS_ERRNO(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	want_eof(fd);
}

/* A thread sleeps in send() when the peer resets the connection. */
static void send_is_reset(void)
{
	int fd = open_conn();
	pthread_t thread = thread_start(send_sleeper, &fd);
	void *err;

	await_full(fd);
	path_await_decided(fd);
	barrier("asleep");
	pthread_join(thread, &err);
	WANT_EQ((long)err, ECONNRESET);
}

/*
 * close() with unread bytes resets the connection, so that the peer notices the loss. The peer may
 * first read the bytes that it has already received.
 */
static void closes_unread(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn();

	flow_send(fd, &out, 5000, 5000);
	flow_recv(fd, &in, 1000, 1000);
	barrier("arrived");
	SYS(close(fd));
}

static void closes_unread_peer(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn(), queued;

	flow_send(fd, &out, 20000, 20000);
	EVENTUALLY(ioctl(fd, FIONREAD, &queued) == 0 && queued == 5000);
	barrier("arrived");
	await(fd, POLLERR | POLLHUP);
	WANT_EQ(flow_recv_to_end(fd, &in), ECONNRESET);
	WANT_EQ(in.off, 5000);
	SYS_ERRNO(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	want_eof(fd);
}

/* close() with SO_LINGER 0: the peer reads the bytes that have arrived, then ECONNRESET. */
static void closes_hard(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	flow_send(fd, &out, 5000, 5000);
	barrier("arrived");
	set_linger(fd, 0);
	SYS(close(fd));
}

static void is_closed_hard(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn(), queued;

	EVENTUALLY(ioctl(fd, FIONREAD, &queued) == 0 && queued == 5000);
	barrier("arrived");
	await(fd, POLLERR | POLLHUP);
	WANT_EQ(flow_recv_to_end(fd, &in), ECONNRESET);
	WANT_EQ(in.off, 5000);
}

/* A reset while bytes are in flight: the peer reads an intact prefix, then ECONNRESET. */
static void closes_hard_in_flight(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	flow_send(fd, &out, amount(20 * MIB, 4 * MIB), 64 * KIB);
	set_linger(fd, 0);
	SYS(close(fd));
}

static void is_closed_hard_in_flight(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	WANT_EQ(flow_recv_to_end(fd, &in), ECONNRESET);
	WANT(in.off <= amount(20 * MIB, 4 * MIB));
}

/*
 * The peer sends to this socket after it was closed, and a reset is the answer. Since the peer has
 * received FIN before the reset, its send() then fails with EPIPE, not ECONNRESET.
 */
static void closes_in_order(void)
{
	int fd = open_conn();

	SYS(close(fd));
	barrier("closed");
	barrier("noticed");
}

static void writes_to_closed(void)
{
	int fd = open_conn();

	barrier("closed");
	await(fd, POLLRDHUP);
	want_eof(fd);
	EVENTUALLY(send(fd, "x", 1, MSG_NOSIGNAL) < 0);
	WANT_EQ(errno, EPIPE);
	barrier("noticed");
}

/* After FIN and then a reset, recv() returns the end of the stream; send() fails with EPIPE. */
static void reads_behind_reset(void)
{
	int fd = open_conn();

	barrier("closed");
	await(fd, POLLRDHUP);
	SYS(send(fd, "x", 1, MSG_NOSIGNAL));
	await(fd, POLLERR);
	want_eof(fd);
	want_eof(fd);
	SYS_ERRNO(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	want_eof(fd);
	barrier("noticed");
}

/* ---- shutdown() before the connection worker has read what TCP has received ---- */

/* Waits without sleeping until TCP has received more than @before, and nothing more for 50 ms. */
static void spin_until_received(int fd, uint64_t before)
{
	double end = now() + patience(), quiet = end;
	uint64_t last = before, received;

	while (now() < quiet) {
		received = tcp_info_of(fd).tcpi_bytes_received;
		if (received != last)
			quiet = now() + 0.05;
		last = received;
		WANT(now() < end);
	}
}

/*
 * shutdown(SHUT_RDWR) first runs the connection worker inline, if the connection is detached and
 * no run of the worker is in progress. So bytes that TCP has received before stay readable and do
 * not reset the connection. With one CPU, the worker cannot read them before shutdown() is called:
 * take_cpu() puts this thread ahead of the worker, and this thread does not sleep while the bytes
 * arrive.
 */
static void shuts_before_worker(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn();
	uint64_t before;

	flow_send(fd, &out, KIB, KIB);
	flow_recv(fd, &in, KIB, KIB);
	take_cpu();
	before = tcp_info_of(fd).tcpi_bytes_received;
	barrier("measured");
	spin_until_received(fd, before);
	SYS(shutdown(fd, SHUT_RDWR));
	flow_recv(fd, &in, KIB, KIB);
	want_eof(fd);
	barrier("read");
}

static void sends_before_shutdown(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn();

	flow_send(fd, &out, KIB, KIB);
	flow_recv(fd, &in, KIB, KIB);
	barrier("measured");
	flow_send(fd, &out, KIB, KIB);
	want_eof(fd);
	barrier("read");
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), 0);
}

/* ---- a reset during an attach, while TCP's pacing keeps a frame of the attach in TCP ---- */

#define OTHERS	4

/*
 * Returns how many bytes pacing keeps in the TCP socket; 0 while TCP waits for acknowledgments,
 * because then the window may hold bytes back instead.
 */
static unsigned int unsent(int fd)
{
	struct tcp_info info = tcp_info_of(fd);

	return info.tcpi_unacked ? 0 : info.tcpi_notsent_bytes;
}

/*
 * Sends until pacing keeps bytes in the TCP socket, and returns how many. TCP does not pace its
 * first ten segments. Each write is small and must be acknowledged before the next one, so that it
 * becomes a segment of its own. The peer does not read, and with long segments, which a large MTU
 * allows, its window might be full before pacing begins.
 */
static unsigned int fill_until_paced(int fd, struct flow *out)
{
	do {
		flow_send(fd, out, 64, 64);
		EVENTUALLY(!tcp_info_of(fd).tcpi_unacked);
		/* let TCP send what the connection worker may only just have written */
		poll(NULL, 0, 20);
	} while (!unsent(fd));
	return unsent(fd);
}

/*
 * Opens a connection that stays on TCP. If @paced, this side sets SO_MAX_PACING_RATE to 1 byte/s.
 * At the server, @end is the listener; at the client, it is the port of that listener.
 */
static int open_held(int end, bool paced)
{
	union addr addr;
	socklen_t len;
	int fd;

	if (run.server) {
		if (paced) {
			set_int(end, SOL_SOCKET, SO_MAX_PACING_RATE, 1);
			/*
			 * On Linux 6.1, accept() passes the rate to the TCP listener. This call
			 * does so before the client connects.
			 */
			nonblocking(end, true);
			SYS_ERRNO(accept(end, NULL, NULL), EAGAIN);
			nonblocking(end, false);
		}
		barrier("paced");
		return SYS(accept(end, NULL, NULL));
	}
	fd = new_socket(0);
	len = addr_server(&addr, end);
	if (paced)
		set_int(fd, SOL_SOCKET, SO_MAX_PACING_RATE, 1);
	barrier("paced");
	SYS(connect(fd, &addr.sa, len));
	set_int(fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_NEVER);
	return fd;
}

/* Has one of the connections @other left its link? */
static bool any_left(const int *other, const uint64_t *link)
{
	for (int i = 0; i < OTHERS; i++)
		if (path_info(other[i]).link != link[i])
			return true;
	return false;
}

/*
 * At one end (@paced), TCP's pacing keeps a frame of an attach in the TCP socket: ATTACH at the
 * client, or ATTACHED at the server. Then the program of the same or the other end (@resets) closes
 * the connection with SO_LINGER 0, and the client cannot learn whether the server has attached. A
 * server that closes resets TCP at once; a client that closes first waits detach_timeout_ms for
 * ATTACHED. The paced end leaves the link within detach_timeout_ms of the reset, and the link must
 * stay up for other connections. The peer of the paced end has not learned the paced end's channel
 * id, so the paced end must not retire this id: otherwise a program could use up the ids by such
 * resets. With @leaves, the program of the server asks to leave the link before it closes. The
 * server cannot leave before the client has read ATTACHED, and the link must stay up meanwhile.
 */
static void held(bool paced, bool resets, bool leaves)
{
	int end = run.server ? open_listener(OTHERS + 1) : server_port(), other[OTHERS], fd;
	uint64_t link[OTHERS], before[STAT_COUNT], after[STAT_COUNT];
	long timeout = path_sysctl("detach_timeout_ms");
	struct flow out = flow_out(OTHERS);
	unsigned int waits = 0;

	for (int i = 0; i < OTHERS; i++) {	/* enough to use all links between the hosts */
		other[i] = run.server ? accept_conn(end) : connect_conn(end);
		link[i] = path_info(other[i]).link;
	}
	path_set_sysctl("detach_timeout_ms", 300);
	stats_read(before);
	fd = open_held(end, paced);
	if (paced)
		waits = fill_until_paced(fd, &out);
	barrier("full");
	if (!run.server)
		set_int(fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_ALWAYS);
	if (paced)
		EVENTUALLY(unsent(fd) > waits);
	barrier("attaching");
	if (leaves) {
		set_int(fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_NEVER);
		poll(NULL, 0, 1500);	/* several times detach_timeout_ms */
		WANT(!any_left(other, link));
	}
	if (resets) {
		set_linger(fd, 0);
		SYS(close(fd));
	} else {
		await(fd, POLLERR);
	}
	EVENTUALLY((stats_read(after), any_left(other, link) ||
		    after[STAT_CONN_FINISHED] > before[STAT_CONN_FINISHED]));
	if (paced)
		WANT(after[STAT_UPGRADE_TRIED] > before[STAT_UPGRADE_TRIED]);
	WANT_EQ(after[STAT_DETACH_LATE], before[STAT_DETACH_LATE]);
	barrier("left");
	WANT(!any_left(other, link));
	for (int i = 0; i < OTHERS; i++)
		path_exchange(other[i], KIB);
	path_set_sysctl("detach_timeout_ms", timeout);
	barrier("seen");
}

static void held_resets(void) { held(true, true, false); }
static void held_leaves(void) { held(true, true, true); }
static void held_is_reset(void) { held(true, false, false); }
static void resets_held(void) { held(false, true, false); }
static void waits_for_held(void) { held(false, false, false); }

const struct row reset_rows[] = {
	BOTH("shutdown_wakes_recv", wakes_recv, stays_quiet, ON_ALL | QUICK),
	BOTH("shutdown_wakes_send", wakes_send, stays_quiet, ON_ALL),
	BOTH("reset_wakes_recv", recv_is_reset, resets_recv, ON_ALL | QUICK | UNFRAMED),
	BOTH("reset_wakes_send", send_is_reset, resets_recv, ON_ALL),
	BOTH("close_unread", closes_unread, closes_unread_peer, ON_ALL | QUICK),
	BOTH("close_hard", closes_hard, is_closed_hard, ON_ALL | QUICK | UNFRAMED),
	BOTH("close_hard_in_flight", closes_hard_in_flight, is_closed_hard_in_flight, ON_ALL),
	BOTH("write_to_closed", closes_in_order, writes_to_closed, ON_ALL),
	BOTH("shut_before_worker", shuts_before_worker, sends_before_shutdown,
	     ON_COLD | ONLY_RDMA | QUICK),
	BOTH("end_behind_reset", reads_behind_reset, closes_in_order, ON_ALL | QUICK),
	{ "reset_held_attach", held_resets, waits_for_held, ON_RDMA | ONLY_RDMA | QUICK },
	{ "reset_held_attach_back", held_is_reset, resets_held, ON_RDMA | ONLY_RDMA },
	{ "reset_held_answer", resets_held, held_is_reset, ON_RDMA | ONLY_RDMA | QUICK },
	{ "reset_held_answer_back", waits_for_held, held_resets, ON_RDMA | ONLY_RDMA },
	{ "leave_held_answer", waits_for_held, held_leaves, ON_RDMA | ONLY_RDMA | QUICK },
	{ }
};
