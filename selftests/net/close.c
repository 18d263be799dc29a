// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * How connections end: shutdown() of one or both directions, close() with unsent or unread bytes,
 * linger, killed processes, client and server that close at the same time. Also streams in which
 * the client sends first, the server sends first, both send before they read, or both are silent
 * at first.
 */
#define _GNU_SOURCE
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "test.h"

#define LEN	100000

/* ---- half-close ---- */

/* After shutdown(SHUT_WR), this end still receives the bytes of its peer. */
static void ends_first(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn();

	flow_send(fd, &out, LEN, LEN);
	SYS(shutdown(fd, SHUT_WR));
	SYS_ERRNO(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	WANT_EQ(flow_recv_to_eof(fd, &in), 10 * LEN);
	want_eof(fd);
	SYS(close(fd));
}

/* Other end of ends_first(): answers after it has read to the end. */
static void ends_second(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn();

	WANT_EQ(flow_recv_to_eof(fd, &in), LEN);
	want_eof(fd);
	flow_send_random(fd, &out, 10 * LEN, LEN);
	SYS(shutdown(fd, SHUT_WR));
	want_eof(fd);
	SYS(close(fd));
}

/* Calls shutdown(SHUT_WR) without having sent a byte. */
static void ends_unspoken(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	SYS(shutdown(fd, SHUT_WR));
	WANT_EQ(flow_recv_to_eof(fd, &in), LEN);
}

/* Other end of ends_unspoken(). */
static void answers_silence(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	want_eof(fd);
	flow_send(fd, &out, LEN, LEN);
	SYS(shutdown(fd, SHUT_WR));
}

static void both_end(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn();

	flow_send(fd, &out, 10000, 10000);
	SYS(shutdown(fd, SHUT_WR));
	WANT_EQ(flow_recv_to_eof(fd, &in), 10000);
	want_eof(fd);
	barrier("both ended");
	SYS_ERRNO(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	/* shutdown() fails once the peer has acknowledged the FIN */
	EVENTUALLY(shutdown(fd, SHUT_RDWR) < 0 && errno == ENOTCONN);
}

static void shutdown_twice(void)
{
	int fd = open_conn();

	if (run.server)
		barrier("shut");
	SYS(shutdown(fd, SHUT_WR));
	if (!run.server) {
		SYS(shutdown(fd, SHUT_WR));
		barrier("shut");
	}
	want_eof(fd);
	await(fd, POLLHUP);
	barrier("both ended");
}

/* The peer does not notice SHUT_RD, and still receives the bytes that this end sends. */
static void shuts_read(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();
	char byte;

	SYS(shutdown(fd, SHUT_RD));
	WANT_EQ(SYS(recv(fd, &byte, 1, 0)), 0);
	WANT(poll_one(fd, POLLIN | POLLRDHUP, 0) == (POLLIN | POLLRDHUP));
	flow_send(fd, &out, LEN, LEN);
	barrier("read");
	path_check(fd, LEN, 0);
}

static void shuts_read_peer(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	flow_recv(fd, &in, LEN, LEN);
	WANT_EQ(poll_one(fd, POLLIN | POLLRDHUP, 0), 0);
	barrier("read");
	path_check(fd, 0, LEN);
}

/* After SHUT_RDWR, bytes that arrive reset the connection, although the socket is still open. */
static void shuts_both(void)
{
	int fd = open_conn();

	SYS(shutdown(fd, SHUT_RDWR));
	barrier("shut");
	barrier("reset");
}

/* Other end of shuts_both(): send() soon fails with EPIPE. */
static void writes_to_shut(void)
{
	int fd = open_conn();

	want_eof(fd);
	barrier("shut");
	EVENTUALLY(send(fd, "x", 1, MSG_NOSIGNAL) < 0);
	WANT_EQ(errno, EPIPE);
	barrier("reset");
}

/* ---- close with bytes still to send ---- */

static size_t close_len(unsigned int i)
{
	static const size_t sizes[] = { 1, 100, 16384, 16385, 100000, 1000000, 3000000 };

	return sizes[i % ARRAY_SIZE(sizes)];
}

/* Number of connections that a row opens in succession; connection i carries close_len(i) bytes. */
static size_t close_count(void)
{
	return amount(70, 7);
}

/* Closes each socket right after send(); reads_all() must still receive all bytes. */
static void sends_and_closes(void)
{
	int port = server_port();

	for (unsigned int i = 0; i < close_count(); i++) {
		struct flow out = flow_out(i);
		int fd = connect_conn(port);

		flow_send(fd, &out, close_len(i), close_len(i));
		SYS(close(fd));
	}
}

static void reads_all(void)
{
	int listener = open_listener(8);

	for (unsigned int i = 0; i < close_count(); i++) {
		struct flow in = flow_in(i);
		int fd = accept_conn(listener);

		WANT_EQ(flow_recv_to_eof(fd, &in), close_len(i));
		SYS(close(fd));
	}
}

static void sends_and_closes_server(void)
{
	int listener = open_listener(8);

	for (unsigned int i = 0; i < close_count(); i++) {
		struct flow out = flow_out(i);
		int fd = accept_conn(listener);

		flow_send(fd, &out, close_len(i), close_len(i));
		SYS(close(fd));
	}
}

static void reads_all_client(void)
{
	int port = server_port();

	for (unsigned int i = 0; i < close_count(); i++) {
		struct flow in = flow_in(i);
		int fd = connect_conn(port);

		WANT_EQ(flow_recv_to_eof(fd, &in), close_len(i));
		SYS(close(fd));
	}
}

/* The peer does not read until the socket is closed; it must still receive all bytes. */
static void closes_full(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	control_send_number("SENT", flow_send_full(fd, &out, 10000));
	SYS(close(fd));
	barrier("sender closed");
}

static void reads_after_close(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();
	uint64_t sent = control_get_number("SENT");

	barrier("sender closed");
	WANT_EQ(flow_recv_to_eof(fd, &in), sent);
}

/* ---- SO_LINGER ---- */

/*
 * The send buffer is larger than the peer's receive buffer, so that some bytes are still unsent
 * when close() is called.
 */
static const struct sizes uneven = { .sndbuf = 256 * KIB, .rcvbuf = 16 * KIB };

struct closer {
	int fd;
	double seconds;
	volatile bool done;
};

static void *linger_close(void *arg)
{
	struct closer *closer = arg;
	double start = now();

	SYS(close(closer->fd));
	closer->seconds = now() - start;
	closer->done = true;
	return NULL;
}

/* close() returns as soon as the peer has received all bytes, before the linger time ends. */
static void lingers(void)
{
	struct flow out = flow_out(0);
	struct closer closer = { .fd = open_conn_sized(&uneven) };
	pthread_t thread;

	control_send_number("SENT", flow_fill_up(closer.fd, &out));
	set_linger(closer.fd, 60);
	thread = thread_start(linger_close, &closer);
	poll(NULL, 0, 200);	/* time for close() to return if it did not wait */
	WANT(!closer.done);
	barrier("read now");
	pthread_join(thread, NULL);
	WANT(closer.seconds < 50);
	barrier("read");
}

/* Other end of lingers() and lingers_in_vain(): reads only when it is told to. */
static void reads_later(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn_sized(&uneven);
	uint64_t sent = control_get_number("SENT");

	barrier("read now");
	WANT_EQ(flow_recv_to_eof(fd, &in), sent);
	SYS(close(fd));
	barrier("read");
}

/* close() returns when the linger time ends; the kernel sends the remaining bytes afterwards. */
static void lingers_in_vain(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn_sized(&uneven);
	double start;

	control_send_number("SENT", flow_fill_up(fd, &out));
	set_linger(fd, 1);
	start = now();
	SYS(close(fd));
	WANT(now() - start >= 0.95);
	barrier("read now");
	barrier("read");
}

/* close() with unread received bytes resets the connection at once, whatever the linger time. */
static void linger_unread(void)
{
	int fd = open_conn(), queued;
	double start;

	EVENTUALLY(ioctl(fd, FIONREAD, &queued) == 0 && queued == 1000);
	set_linger(fd, 30);
	start = now();
	SYS(close(fd));
	WANT(now() - start < 10);
}

/* Other end of linger_unread(): sends bytes that are never read, and gets the reset. */
static void linger_unread_peer(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = open_conn();

	flow_send(fd, &out, 1000, 1000);
	WANT_EQ(flow_recv_to_end(fd, &in), ECONNRESET);
}

/*
 * The server sends an answer and closes its socket with unread bytes, which resets the connection.
 * The client sends without reading until send() fails, and then reads the answer.
 */
static void answers_and_goes(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn(), queued;

	EVENTUALLY(ioctl(fd, FIONREAD, &queued) == 0 && queued > 0);
	flow_send(fd, &out, 5000, 5000);
	SYS(close(fd));
}

static void answers_and_goes_client(void)
{
	static const char bytes[64 * KIB];
	struct flow in = flow_in(0);
	int fd = open_conn();

	while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
		;
	WANT(errno == ECONNRESET || errno == EPIPE);
	flow_recv_to_end(fd, &in);
	/* on RDMA the reset may arrive before the answer, which is then lost */
	WANT(in.off == 5000 ||
	     ((run.variant == VAR_RDMA || run.variant == VAR_COLD) && !in.off));
}

/*
 * With nothing left to send, close() only waits until the peer has acknowledged FIN, not for the
 * linger time.
 */
static void linger_nothing(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn();
	double start;

	flow_send(fd, &out, 1000, 1000);
	flow_recv(fd, &in, 1000, 1000);
	barrier("nothing left");
	set_linger(fd, 30);
	start = now();
	SYS(close(fd));
	WANT(now() - start < 10);
}

/* ---- killed processes ---- */

static void stream_for_ever(int fd)
{
	struct flow out = flow_out(0);

	for (;;)
		flow_send(fd, &out, 64 * KIB, 64 * KIB);
}

/* A child that sends is killed: the peer reads an intact stream, and then its end. */
static void killed_while_sending(void)
{
	int fd = open_conn();
	pid_t pid = fork_row();

	if (!pid)
		stream_for_ever(fd);
	SYS(close(fd));
	barrier("flowing");
	SYS(kill(pid, SIGKILL));
	SYS(waitpid(pid, NULL, 0));
	barrier("killed");
}

static void reads_from_killed(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	flow_recv(fd, &in, 3 * MIB, 64 * KIB);
	barrier("flowing");
	WANT_EQ(flow_recv_to_end(fd, &in), 0);
	barrier("killed");
}

/* A child that has stopped reading is killed after the peer has sent until send() would block. */
static void killed_while_receiving(void)
{
	int fd = open_conn();
	int ends[2];
	char byte;
	pid_t pid;

	SYS(pipe(ends));
	pid = fork_row();
	if (!pid) {
		struct flow in = flow_in(0);

		flow_recv(fd, &in, 3 * MIB, 64 * KIB);
		SYS(write(ends[1], "", 1));
		for (;;)
			pause();
	}
	SYS(close(fd));
	WANT_EQ(SYS(read(ends[0], &byte, 1)), 1);
	barrier("stopped reading");
	barrier("full");
	SYS(kill(pid, SIGKILL));
	SYS(waitpid(pid, NULL, 0));
}

static void writes_to_killed(void)
{
	int fd = open_conn();
	struct flow out = flow_out(0);
	uint8_t byte = 0;

	flow_send(fd, &out, 3 * MIB, 64 * KIB);
	barrier("stopped reading");
	/*
	 * Send bytes that the child never reads. flow_send() waits for space; flow_send_full()
	 * alone might send none, as earlier bytes may still fill the send buffer.
	 */
	flow_send(fd, &out, 64 * KIB, 64 * KIB);
	flow_send_full(fd, &out, 64 * KIB);
	barrier("full");
	await(fd, POLLERR | POLLHUP);
	/*
	 * EPIPE if the process had no unread bytes when it was killed: its host then sends FIN,
	 * and resets the connection only when further bytes arrive.
	 */
	WANT(send(fd, &byte, 1, MSG_NOSIGNAL) < 0);
	WANT(errno == ECONNRESET || errno == EPIPE);
	SYS_ERRNO(send(fd, &byte, 1, MSG_NOSIGNAL), EPIPE);
}

/* A child that sleeps in recv() is killed; no other process has the socket open. */
static void killed_while_idle(void)
{
	int fd = open_conn();
	pid_t pid = fork_row();

	if (!pid) {
		char byte;

		recv(fd, &byte, 1, 0);
		_exit(1);
	}
	SYS(close(fd));
	barrier("idle");
	SYS(kill(pid, SIGKILL));
	SYS(waitpid(pid, NULL, 0));
	barrier("killed");
}

static void sees_the_end(void)
{
	int fd = open_conn();

	barrier("idle");
	want_eof(fd);
	barrier("killed");
}

/* ---- client, server, neither or both send first; both close at the same time ---- */

static void sends_first(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn();

	flow_send(fd, &out, LEN, LEN);
	flow_recv(fd, &in, LEN, LEN);
	path_check(fd, LEN, LEN);
}

static void receives_first(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn();

	flow_recv(fd, &in, LEN, LEN);
	flow_send(fd, &out, LEN, LEN);
	path_check(fd, LEN, LEN);
}

/* Neither end sends at first; without --quick, for longer than hello_timeout_ms. */
static void silence_then_both(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn();

	WANT_EQ(poll_one(fd, POLLIN | POLLRDHUP, amount(5000, 500)), 0);
	barrier("silence");
	flow_send(fd, &out, 60000, 60000);
	flow_recv(fd, &in, 60000, 60000);
	path_check(fd, 60000, 60000);
}

/* Each end sends SO_SNDBUF bytes before it reads. TCP does not deadlock here. */
static void both_send_first(void)
{
	static const struct sizes sizes = { .sndbuf = 128 * KIB, .rcvbuf = 128 * KIB };
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn_sized(&sizes);

	for (size_t i = 0; i < amount(100, 10); i++) {
		flow_send(fd, &out, 128 * KIB, 128 * KIB);
		flow_recv(fd, &in, 128 * KIB, 128 * KIB);
	}
	path_check(fd, out.off, in.off);
}

/* Both ends close at the same time. */
static void both_close(void)
{
	int end = run.server ? open_listener(8) : server_port();

	for (unsigned int i = 0; i < amount(50, 5); i++) {
		struct flow in = flow_in(i), out = flow_out(i);
		int fd = run.server ? accept_conn(end) : connect_conn(end);

		flow_send(fd, &out, 1000, 1000);
		flow_recv(fd, &in, 1000, 1000);
		barrier("close now");
		SYS(close(fd));
	}
}


/* ---- a closed socket whose peer reads slowly: progress restarts the orphan timeout ---- */

#define SLOW_BYTES	240000
#define SLOW_CHUNK	6000
#define SLOW_PAUSE	100	/* ms */
/* ms; the peer needs over three times as long to read what is in the send ring at close() */
#define SLOW_TIMEOUT	600

static const struct sizes slow_rings = { .sndbuf = 131072, .rcvbuf = 16384 };

static void slow_reader_server(void)
{
	long before = path_sysctl("orphan_timeout_ms");
	int fd = open_conn_sized(&slow_rings);
	struct flow out = flow_out(0);

	if (before >= 0)
		path_set_sysctl("orphan_timeout_ms", SLOW_TIMEOUT);
	nonblocking(fd, true);
	barrier("reading");
	/* flow_send_full() leaves the send ring full, so close() has bytes to deliver */
	while (out.off < SLOW_BYTES) {
		await(fd, POLLOUT);
		flow_send_full(fd, &out, SLOW_CHUNK);
	}
	control_send_number("SENT", out.off);
	SYS(close(fd));
	barrier("all read");
	if (before >= 0)
		path_set_sysctl("orphan_timeout_ms", before);
}

/* Thread: reads a chunk at a time, with pauses; returns the length of the stream. */
static void *read_slowly(void *arg)
{
	int fd = *(int *)arg;
	struct flow in = flow_in(0);
	static char chunk[SLOW_CHUNK];
	ssize_t got;

	while ((got = SYS(recv(fd, chunk, sizeof(chunk), MSG_WAITALL)))) {
		flow_check(&in, chunk, got);
		poll(NULL, 0, SLOW_PAUSE);
	}
	return (void *)(uintptr_t)in.off;
}

static void slow_reader_client(void)
{
	int fd = open_conn_sized(&slow_rings);
	pthread_t reader;
	void *got;

	barrier("reading");
	reader = thread_start(read_slowly, &fd);
	long long sent = control_get_number("SENT");
	WANT(!pthread_join(reader, &got));
	WANT_EQ((uintptr_t)got, sent);
	barrier("all read");
}

const struct row close_rows[] = {
	{ "close_slow_reader", slow_reader_client, slow_reader_server,
	  ON_RDMA | ON_COLD | QUICK_ALL },
	{ "half_close", ends_first, ends_second, ON_ALL | QUICK_ALL },
	{ "half_close_back", ends_second, ends_first, ON_ALL | QUICK },
	BOTH("half_close_unspoken", ends_unspoken, answers_silence, ON_ALL | QUICK),
	{ "half_close_both", both_end, both_end, ON_ALL },
	{ "shutdown_twice", shutdown_twice, shutdown_twice, ON_ALL },
	BOTH("shutdown_read", shuts_read, shuts_read_peer, ON_ALL | QUICK),
	BOTH("shutdown_both", shuts_both, writes_to_shut, ON_ALL),
	{ "close_with_data", sends_and_closes, reads_all, ON_ALL | QUICK },
	{ "close_with_data_back", reads_all_client, sends_and_closes_server, ON_ALL },
	BOTH("close_full", closes_full, reads_after_close, ON_ALL | QUICK),
	BOTH("linger", lingers, reads_later, ON_ALL | QUICK),
	BOTH("linger_in_vain", lingers_in_vain, reads_later, ON_ALL),
	{ "linger_unread", linger_unread, linger_unread_peer, ON_ALL | QUICK },
	{ "answers_and_goes", answers_and_goes_client, answers_and_goes, ON_ALL | QUICK },
	{ "linger_nothing", linger_nothing, linger_nothing, ON_ALL },
	BOTH("killed_sending", killed_while_sending, reads_from_killed, ON_ALL | QUICK),
	BOTH("killed_receiving", killed_while_receiving, writes_to_killed, ON_ALL),
	BOTH("killed_idle", killed_while_idle, sees_the_end, ON_ALL),
	{ "server_first", receives_first, sends_first, ON_ALL | QUICK },
	{ "client_first", sends_first, receives_first, ON_ALL },
	{ "silence_then_both", silence_then_both, silence_then_both, ON_ALL | QUICK },
	{ "both_send_first", both_send_first, both_send_first, ON_ALL | QUICK },
	{ "both_close", both_close, both_close, ON_ALL },
	{ }
};
