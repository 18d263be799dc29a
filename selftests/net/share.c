// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* One socket shared by several processes, threads and file descriptors. */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "test.h"

#define HALF	100000

static void send_whole(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	flow_send(fd, &out, 2 * HALF, 10000);
	SYS(shutdown(fd, SHUT_WR));
	want_eof(fd);
}

static void recv_whole(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	WANT_EQ(flow_recv_to_eof(fd, &in), 2 * HALF);
	SYS(close(fd));
}

/* ---- fork ---- */

/* A child process sends the first half of the stream, its parent the second. */
static void fork_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();
	pid_t pid = fork_row();

	if (!pid) {
		flow_send(fd, &out, HALF, 10000);
		_exit(0);
	}
	join_row(pid);
	/* The child's exit has closed its file descriptor, not the connection. */
	out.off += HALF;
	flow_send(fd, &out, HALF, 10000);
	SYS(close(fd));
}

/* A child process receives the first half of the stream, its parent the second. */
static void fork_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();
	pid_t pid = fork_row();

	if (!pid) {
		flow_recv(fd, &in, HALF, 10000);
		_exit(0);
	}
	join_row(pid);
	in.off += HALF;
	WANT_EQ(flow_recv_to_eof(fd, &in), HALF);
	SYS(close(fd));
}

/* One process reads while the other writes. */
static void fork_both(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = open_conn();
	pid_t pid = fork_row();

	if (!pid) {
		flow_send_random(fd, &out, 20 * HALF, 30000);
		_exit(0);
	}
	flow_recv_random(fd, &in, 20 * HALF, 30000);
	join_row(pid);
	path_check(fd, 20 * HALF, 20 * HALF);
}

/* The stream ends when the last descriptor of the socket is closed, not when the first is. */
static void last_close(void)
{
	int fd = open_conn();
	pid_t pid = fork_row();
	char byte;

	if (!pid) {
		SYS(recv(fd, &byte, 1, 0));
		_exit(0);
	}
	SYS(close(fd));
	barrier("one closed");
	join_row(pid);
}

static void last_close_peer(void)
{
	int fd = open_conn();

	barrier("one closed");
	WANT_EQ(poll_one(fd, POLLIN | POLLRDHUP, 100), 0);
	SYS(send(fd, "x", 1, MSG_NOSIGNAL));
	want_eof(fd);
}

/* ---- processes that accept from one listener ---- */

#define PROCESSES	3
#define CALLS_EACH	4

static void serve_calls(int listener)
{
	for (int i = 0; i < CALLS_EACH; i++) {
		int fd = SYS(accept(listener, NULL, NULL));
		char byte;

		WANT_EQ(SYS(recv(fd, &byte, 1, 0)), 1);
		WANT_EQ(SYS(send(fd, &byte, 1, MSG_NOSIGNAL)), 1);
		SYS(close(fd));
	}
}

/* Each connection is accepted by one process, and each process gets CALLS_EACH of them. */
static void accept_processes(void)
{
	int listener = open_listener(8);
	pid_t pids[PROCESSES];

	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork_row();
		if (!pids[i]) {
			serve_calls(listener);
			_exit(0);
		}
	}
	SYS(close(listener));
	for (int i = 0; i < PROCESSES; i++)
		join_row(pids[i]);
}

/* The client of accept_processes(). */
static void call_processes(void)
{
	int port = server_port();

	for (int i = 0; i < PROCESSES * CALLS_EACH; i++) {
		int fd = connect_port(port);
		char byte = i;

		SYS(send(fd, &byte, 1, MSG_NOSIGNAL));
		WANT_EQ(SYS(recv(fd, &byte, 1, 0)), 1);
		WANT_EQ(byte, i);
		want_eof(fd);
		if (speaks_rdma() && run.variant == VAR_COLD)
			WANT_EQ(path_info(fd).mode, AFRDMA_MODE_FRAMED);
		SYS(close(fd));
	}
}

/* ---- dup ---- */

/* A copy of the descriptor continues the stream after the original is closed. */
static void dup_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();
	int copy = SYS(dup(fd));

	flow_send(fd, &out, HALF, 10000);
	SYS(close(fd));
	flow_send(copy, &out, HALF, 10000);
	SYS(shutdown(copy, SHUT_WR));
	want_eof(copy);
}

/* ---- SCM_RIGHTS ---- */

union rights {
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* Sends descriptor @fd by SCM_RIGHTS on the Unix socket @channel. */
static void pass(int channel, int fd)
{
	union rights rights = { 0 };
	struct iovec iov = { "x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = rights.room,
			      .msg_controllen = sizeof(rights.room) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	WANT_EQ(SYS(sendmsg(channel, &msg, 0)), 1);
}

/* Receives the descriptor that pass() has sent. */
static int take(int channel)
{
	union rights rights = { 0 };
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = rights.room,
			      .msg_controllen = sizeof(rights.room) };
	int fd;

	WANT_EQ(SYS(recvmsg(channel, &msg, 0)), 1);
	WANT(CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

/* The child is forked before the connection exists, and gets the socket by SCM_RIGHTS alone. */
static void rights_send(void)
{
	struct flow out = flow_out(0);
	int channel[2];
	pid_t pid;
	int fd;

	SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, channel));
	pid = fork_row();
	if (!pid) {
		out.off = HALF;
		fd = take(channel[1]);
		flow_send(fd, &out, HALF, 10000);
		_exit(0);
	}
	fd = open_conn();
	flow_send(fd, &out, HALF, 10000);
	pass(channel[0], fd);
	SYS(close(fd));
	join_row(pid);
}

static void rights_recv(void)
{
	struct flow in = flow_in(0);
	int channel[2];
	pid_t pid;
	int fd;

	SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, channel));
	pid = fork_row();
	if (!pid) {
		in.off = HALF;
		fd = take(channel[1]);
		WANT_EQ(flow_recv_to_eof(fd, &in), HALF);
		_exit(0);
	}
	fd = open_conn();
	flow_recv(fd, &in, HALF, 10000);
	pass(channel[0], fd);
	SYS(close(fd));
	join_row(pid);
}

/*
 * The last reference on the socket is in a message that is never read; the connection ends when
 * the Unix sockets are closed.
 */
static void rights_lost(void)
{
	int fd = open_conn();
	int channel[2];

	SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, channel));
	pass(channel[0], fd);
	SYS(close(fd));
	barrier("descriptor passed");
	SYS(close(channel[0]));
	SYS(close(channel[1]));
	barrier("seen");
}

static void rights_lost_peer(void)
{
	int fd = open_conn();

	WANT_EQ(poll_one(fd, POLLIN | POLLRDHUP, 100), 0);
	barrier("descriptor passed");
	want_eof(fd);
	barrier("seen");
}

/* ---- threads in the same call ---- */

#define WRITERS	4
#define RECORDS	5000

struct record {
	uint32_t writer;
	uint32_t number;
	uint64_t check;
};

static size_t records(void)
{
	return amount(RECORDS, RECORDS / 10);
}

struct writer {
	int fd;
	uint32_t number;
};

static void *write_records(void *arg)
{
	struct writer *w = arg;

	for (uint32_t i = 0; i < records(); i++) {
		struct record r = { w->number, i, mix((uint64_t)w->number << 32 | i) };

		WANT_EQ(SYS(send(w->fd, &r, sizeof(r), MSG_NOSIGNAL)), sizeof(r));
	}
	return NULL;
}

/* Several threads send small records: each arrives whole, those of one thread in order. */
static void writers(void)
{
	int fd = open_conn();
	struct writer w[WRITERS];
	pthread_t threads[WRITERS];

	for (uint32_t i = 0; i < WRITERS; i++) {
		w[i] = (struct writer) { fd, i };
		threads[i] = thread_start(write_records, &w[i]);
	}
	for (uint32_t i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	path_check(fd, WRITERS * records() * sizeof(struct record), 0);
}

static void records_recv(void)
{
	int fd = open_conn();
	uint32_t next[WRITERS] = { 0 };

	for (size_t i = 0; i < WRITERS * records(); i++) {
		struct record r;

		WANT_EQ(SYS(recv(fd, &r, sizeof(r), MSG_WAITALL)), sizeof(r));
		WANT(r.writer < WRITERS);
		WANT_EQ(r.number, next[r.writer]++);
		WANT(r.check == mix((uint64_t)r.writer << 32 | r.number));
	}
	path_check(fd, 0, WRITERS * records() * sizeof(struct record));
}

struct reader {
	int fd;
	uint64_t bytes, sum;
};

/* Thread: reads to the end of the stream; counts the bytes and sums them up. */
static void *read_some(void *arg)
{
	struct reader *r = arg;
	uint8_t buf[5000];
	ssize_t got;

	while ((got = SYS(recv(r->fd, buf, rnd_between(1, sizeof(buf)), 0))) > 0) {
		r->bytes += got;
		for (ssize_t i = 0; i < got; i++)
			r->sum += buf[i];
	}
	return NULL;
}

/* Several threads read the stream: every byte is returned to exactly one of them. */
static void readers(void)
{
	int fd = open_conn();
	struct reader r[WRITERS] = { 0 };
	pthread_t threads[WRITERS];
	uint64_t bytes = 0, sum = 0, want = 0;
	struct flow in = flow_in(0);
	uint8_t *buf = buffer(20 * HALF);

	flow_fill(&in, buf, 20 * HALF);
	for (size_t i = 0; i < 20 * HALF; i++)
		want += buf[i];
	for (int i = 0; i < WRITERS; i++) {
		r[i].fd = fd;
		threads[i] = thread_start(read_some, &r[i]);
	}
	for (int i = 0; i < WRITERS; i++) {
		pthread_join(threads[i], NULL);
		bytes += r[i].bytes;
		sum += r[i].sum;
	}
	WANT_EQ(bytes, 20 * HALF);
	WANT_EQ(sum, want);
	free(buf);
	SYS(close(fd));
}

static void send_for_readers(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	flow_send_random(fd, &out, 20 * HALF, 30000);
	SYS(shutdown(fd, SHUT_WR));
	want_eof(fd);
}

#define BOTH(name, first, second, flags)		\
	{ name, first, second, flags },			\
	{ name "_back", second, first, (flags) & ~(QUICK | QUICK_ALL) }

const struct row share_rows[] = {
	BOTH("fork_send", fork_send, recv_whole, ON_ALL | QUICK),
	BOTH("fork_recv", send_whole, fork_recv, ON_ALL),
	{ "fork_both", fork_both, fork_both, ON_ALL | QUICK },
	{ "accept_processes", call_processes, accept_processes, ON_COLD | ON_PLAIN | QUICK },
	BOTH("last_close", last_close, last_close_peer, ON_ALL),
	BOTH("dup", dup_send, recv_whole, ON_ALL | QUICK),
	BOTH("rights_send", rights_send, recv_whole, ON_ALL | QUICK),
	BOTH("rights_recv", send_whole, rights_recv, ON_ALL),
	BOTH("rights_lost", rights_lost, rights_lost_peer, ON_ALL),
	BOTH("writers", writers, records_recv, ON_ALL | QUICK),
	BOTH("readers", send_for_readers, readers, ON_ALL),
	{ }
};
