// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Calls with files, pipes, MSG_* flags and bad pointers; TCP_CORK; ioctls for queue lengths. */
#define _GNU_SOURCE
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <linux/sockios.h>

#include "test.h"

#define BAD_POINTER	((void *)8)

/* ---- files and pipes ---- */

#define FILE_SIZE	(3 * MIB + 123)

/* Creates a file in memory with the next @len bytes of @flow; returns its descriptor. */
static int pattern_file(struct flow *flow, size_t len)
{
	int file = SYS(memfd_create("pattern", MFD_CLOEXEC));
	void *map;

	SYS(ftruncate(file, len));
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	WANT(map != MAP_FAILED);
	flow_fill(flow, map, len);
	munmap(map, len);
	return file;
}

static void sendfile_send(void)
{
	struct flow out = flow_out(0);
	int file = pattern_file(&out, FILE_SIZE);
	int fd = open_conn();
	off_t off = 0;

	while (off < (off_t)FILE_SIZE)
		WANT(SYS(sendfile(fd, file, &off, FILE_SIZE - off)) > 0);
	path_check(fd, FILE_SIZE, 0);
}

static void file_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	flow_recv_random(fd, &in, FILE_SIZE, 64 * KIB);
	path_check(fd, 0, FILE_SIZE);
}

static void splice_send(void)
{
	struct flow out = flow_out(0);
	int file = pattern_file(&out, FILE_SIZE);
	loff_t off = 0;
	int fd = open_conn();
	int ends[2];

	SYS(pipe(ends));
	while (off < (loff_t)FILE_SIZE) {
		size_t in_pipe = SYS(splice(file, &off, ends[1], NULL, FILE_SIZE - off, 0));

		WANT(in_pipe);
		while (in_pipe)
			in_pipe -= SYS(splice(ends[0], NULL, fd, NULL, in_pipe,
					      off < (loff_t)FILE_SIZE ? SPLICE_F_MORE : 0));
	}
	path_check(fd, FILE_SIZE, 0);
}

static void splice_recv(void)
{
	struct flow in = flow_in(0);
	uint8_t *buf = buffer(64 * KIB);
	int fd = open_conn();
	int ends[2];

	SYS(pipe(ends));
	while (in.off < FILE_SIZE) {
		size_t in_pipe = SYS(splice(fd, NULL, ends[1], NULL, 64 * KIB, 0));

		WANT(in_pipe);
		while (in_pipe) {
			size_t got = SYS(read(ends[0], buf, 64 * KIB));

			flow_check(&in, buf, got);
			in_pipe -= got;
		}
	}
	path_check(fd, 0, FILE_SIZE);
	free(buf);
}

/* Pages of user memory are spliced into the socket through a pipe. */
static void vmsplice_send(void)
{
	struct flow out = flow_out(0);
	uint8_t *buf = buffer(16 * KIB);
	struct iovec iov = { buf, 16 * KIB };
	int fd = open_conn();
	int ends[2];

	SYS(pipe(ends));
	flow_fill(&out, buf, iov.iov_len);
	WANT_EQ(SYS(vmsplice(ends[1], &iov, 1, 0)), iov.iov_len);
	for (size_t left = iov.iov_len; left;)
		left -= SYS(splice(ends[0], NULL, fd, NULL, left, 0));
	path_check(fd, out.off, 0);
}

static void vmsplice_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	flow_recv(fd, &in, 16 * KIB, 16 * KIB);
	path_check(fd, 0, in.off);
}

#define TEE_ROUNDS	20
#define TEE_LEN		3000

/* The bytes received are duplicated by tee(): one copy is spliced back, the other is checked. */
static void tee_back(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn(), pipes[2][2];
	uint8_t buf[TEE_LEN];
	size_t got, left;

	SYS(pipe(pipes[0]));
	SYS(pipe(pipes[1]));
	while (in.off < TEE_ROUNDS * TEE_LEN) {
		got = SYS(splice(fd, NULL, pipes[0][1], NULL, TEE_LEN, 0));
		WANT(got);
		WANT_EQ(SYS(tee(pipes[0][0], pipes[1][1], got, 0)), got);
		for (left = got; left;)
			left -= SYS(splice(pipes[0][0], NULL, fd, NULL, left, 0));
		for (left = got; left;) {
			size_t part = SYS(read(pipes[1][0], buf, left));

			flow_check(&in, buf, part);
			left -= part;
		}
	}
	path_check(fd, TEE_ROUNDS * TEE_LEN, TEE_ROUNDS * TEE_LEN);
}

/* Other end of tee_back(): sends bytes, and receives the same bytes back. */
static void tee_there(void)
{
	struct flow out = flow_out(0), in = out;
	int fd = open_conn();

	for (int i = 0; i < TEE_ROUNDS; i++) {
		flow_send(fd, &out, TEE_LEN, TEE_LEN);
		flow_recv(fd, &in, TEE_LEN, TEE_LEN);
	}
	path_check(fd, TEE_ROUNDS * TEE_LEN, TEE_ROUNDS * TEE_LEN);
}

/*
 * splice() from a nonblocking socket that has no unread bytes fails with EAGAIN. At the end of the
 * stream, splice() from a blocking socket returns 0.
 */
static void splice_empty(void)
{
	int fd = open_conn();
	int ends[2];

	SYS(pipe(ends));
	/* SPLICE_F_NONBLOCK applies to the pipe; the socket needs O_NONBLOCK. */
	nonblocking(fd, true);
	SYS_ERRNO(splice(fd, NULL, ends[1], NULL, 100, SPLICE_F_NONBLOCK), EAGAIN);
	nonblocking(fd, false);
	barrier("empty");
	if (run.server)
		SYS(shutdown(fd, SHUT_WR));
	else
		WANT_EQ(SYS(splice(fd, NULL, ends[1], NULL, 100, 0)), 0);
	barrier("ended");
}

/* ---- MSG_PEEK ---- */

#define PEEK_LEN	50000

static void simple_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	flow_send(fd, &out, PEEK_LEN, PEEK_LEN);
	barrier("sent");
	path_check(fd, PEEK_LEN, 0);
}

static void simple_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	barrier("sent");
	flow_recv(fd, &in, PEEK_LEN, PEEK_LEN);
	path_check(fd, 0, PEEK_LEN);
}

/* MSG_PEEK leaves the bytes in the socket; with MSG_WAITALL it returns the full length. */
static void peek_recv(void)
{
	struct flow in = flow_in(0);
	uint8_t *buf = buffer(PEEK_LEN * 2);
	int fd = open_conn();

	barrier("sent");
	for (size_t len = 1; len <= PEEK_LEN; len = len * 7 + 3) {
		WANT_EQ(SYS(recv(fd, buf, len, MSG_PEEK | MSG_WAITALL)), len);
		flow_look(&in, buf, len);
		WANT_EQ(SYS(recv(fd, buf, 1, MSG_PEEK)), 1);
		flow_look(&in, buf, 1);
		WANT_EQ(SYS(recv(fd, buf, len / 3 + 1, 0)), len / 3 + 1);
		flow_check(&in, buf, len / 3 + 1);
	}
	flow_recv(fd, &in, PEEK_LEN - in.off, PEEK_LEN);
	SYS_ERRNO(recv(fd, buf, 1, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
	path_check(fd, 0, PEEK_LEN);
	free(buf);
}

static void peek_end_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	flow_send(fd, &out, 100, 100);
	SYS(shutdown(fd, SHUT_WR));
	barrier("ended");
	barrier("seen");
}

/*
 * recv() with MSG_PEEK and MSG_WAITALL returns the 100 bytes before the end of the stream and does
 * not wait for more. When these bytes have been read, recv() with MSG_PEEK returns 0.
 */
static void peek_end_recv(void)
{
	struct flow in = flow_in(0);
	uint8_t buf[200];
	int fd = open_conn();

	barrier("ended");
	await(fd, POLLRDHUP);
	WANT_EQ(SYS(recv(fd, buf, 200, MSG_PEEK | MSG_WAITALL)), 100);
	flow_look(&in, buf, 100);
	WANT_EQ(SYS(recv(fd, buf, 200, 0)), 100);
	flow_check(&in, buf, 100);
	WANT_EQ(SYS(recv(fd, buf, 200, MSG_PEEK)), 0);
	want_eof(fd);
	barrier("seen");
}

/* ---- MSG_WAITALL, MSG_DONTWAIT, MSG_TRUNC, MSG_MORE, TCP_CORK ---- */

#define PIECE	15000
#define PIECES	7

static void pieces_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	for (int i = 0; i < PIECES; i++) {
		flow_send(fd, &out, PIECE, PIECE);
		barrier("piece");
	}
	path_check(fd, out.off, 0);
	flow_send(fd, &out, 10, 10);
	SYS(shutdown(fd, SHUT_WR));
	barrier("end");
}

static volatile bool waitall_done;

static void *waitall_reader(void *arg)
{
	struct flow in = flow_in(0);
	uint8_t *buf = buffer(PIECE * PIECES);
	int fd = *(int *)arg;

	WANT_EQ(SYS(recv(fd, buf, PIECE * PIECES, MSG_WAITALL)), PIECE * PIECES);
	flow_check(&in, buf, PIECE * PIECES);
	waitall_done = true;
	/* At the end of the stream, MSG_WAITALL returns the ten bytes that are left. */
	WANT_EQ(SYS(recv(fd, buf, 100, MSG_WAITALL)), 10);
	flow_check(&in, buf, 10);
	free(buf);
	return NULL;
}

/* A recv() with MSG_WAITALL returns all pieces, which arrive one after another. */
static void waitall_recv(void)
{
	int fd = open_conn();
	pthread_t reader = thread_start(waitall_reader, &fd);

	for (int i = 0; i < PIECES; i++)
		barrier("piece");
	EVENTUALLY(waitall_done);
	path_check(fd, 0, PIECE * PIECES);
	barrier("end");
	pthread_join(reader, NULL);
}

static void dontwait_recv(void)
{
	struct flow in = flow_in(0);
	uint8_t *buf = buffer(PEEK_LEN);
	int fd = open_conn();

	SYS_ERRNO(recv(fd, buf, 1, MSG_DONTWAIT), EAGAIN);
	barrier("empty");
	barrier("sent");
	while (in.off < PEEK_LEN) {
		ssize_t got;

		await(fd, POLLIN);
		got = SYS(recv(fd, buf, PEEK_LEN, MSG_DONTWAIT));
		WANT(got > 0);
		flow_check(&in, buf, got);
	}
	SYS_ERRNO(recv(fd, buf, 1, MSG_DONTWAIT), EAGAIN);
	path_check(fd, 0, PEEK_LEN);
	free(buf);
}

static void dontwait_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	barrier("empty");
	flow_send(fd, &out, PEEK_LEN, PEEK_LEN);
	barrier("sent");
	path_check(fd, PEEK_LEN, 0);
}

/* MSG_TRUNC on a stream discards bytes without copying them. */
static void trunc_recv(void)
{
	struct flow in = flow_in(0);
	uint8_t buf[1000];
	int fd = open_conn();

	barrier("sent");
	flow_recv(fd, &in, 1000, 1000);
	WANT_EQ(SYS(recv(fd, NULL, 20000, MSG_TRUNC | MSG_WAITALL)), 20000);
	in.off += 20000;
	WANT_EQ(SYS(recv(fd, buf, 1000, MSG_TRUNC | MSG_WAITALL)), 1000);
	in.off += 1000;
	flow_recv(fd, &in, PEEK_LEN - in.off, 1000);
	path_check(fd, 0, PEEK_LEN);
}

static void more_send(void)
{
	struct flow out = flow_out(0);
	uint8_t buf[10];
	int fd = open_conn();

	for (int i = 0; i < 100; i++) {
		flow_fill(&out, buf, sizeof(buf));
		WANT_EQ(SYS(send(fd, buf, sizeof(buf), MSG_NOSIGNAL | (i < 99 ? MSG_MORE : 0))),
			sizeof(buf));
	}
	/* Bytes sent with MSG_MORE are delayed, but arrive even if no further send() follows. */
	flow_fill(&out, buf, sizeof(buf));
	WANT_EQ(SYS(send(fd, buf, sizeof(buf), MSG_NOSIGNAL | MSG_MORE)), sizeof(buf));
	path_check(fd, 1010, 0);
}

static void more_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	flow_recv(fd, &in, 1010, 1010);
	path_check(fd, 0, 1010);
}

static void cork_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	set_int(fd, IPPROTO_TCP, TCP_CORK, 1);
	flow_send(fd, &out, 1000, 100);
	set_int(fd, IPPROTO_TCP, TCP_CORK, 0);
	flow_send(fd, &out, 10, 10);
	path_check(fd, 1010, 0);
}

/* Bytes sent so far, by either path. */
static uint64_t bytes_sent(int fd)
{
	struct afrdma_info info = path_info(fd);

	return info.tx_bytes_tcp + info.tx_bytes_rdma;
}

/*
 * Makes ten short sends. MSG_MORE on the first nine, or TCP_CORK from before the first until after
 * the tenth, must hold back the bytes of the nine; all are sent afterwards. Returns false, so that
 * the caller tries again, if the first nine took so long that the timer for held bytes may have
 * sent them.
 */
static bool held_back(int fd, struct flow *out, bool cork)
{
	uint64_t before = bytes_sent(fd), meanwhile;
	double start = now();
	uint8_t buf[10];
	bool in_time;

	if (cork)
		set_int(fd, IPPROTO_TCP, TCP_CORK, 1);
	for (int i = 0; i < 9; i++) {
		flow_fill(out, buf, sizeof(buf));
		WANT_EQ(SYS(send(fd, buf, sizeof(buf), cork ? 0 : MSG_MORE)), sizeof(buf));
	}
	meanwhile = bytes_sent(fd);
	in_time = now() - start < 0.1;
	flow_fill(out, buf, sizeof(buf));
	WANT_EQ(SYS(send(fd, buf, sizeof(buf), 0)), sizeof(buf));
	if (cork)
		set_int(fd, IPPROTO_TCP, TCP_CORK, 0);
	EVENTUALLY(bytes_sent(fd) == before + 100);
	if (in_time)
		WANT_EQ(meanwhile, before);
	return in_time;
}

/* Setting TCP_NODELAY sends corked bytes. */
static void push_corked(int fd, struct flow *out)
{
	uint8_t buf[10];

	set_int(fd, IPPROTO_TCP, TCP_CORK, 1);
	flow_fill(out, buf, sizeof(buf));
	WANT_EQ(SYS(send(fd, buf, sizeof(buf), 0)), sizeof(buf));
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

/*
 * If sendfile() is called for more bytes than the file has, the kernel passes the file's bytes to
 * the socket as if more would follow. They must nevertheless be sent at once.
 */
static void push_short_file(int fd, struct flow *out)
{
	int file = pattern_file(out, 10);

	WANT_EQ(SYS(sendfile(fd, file, NULL, MIB)), 10);
	SYS(close(file));
}

/*
 * Checks that the ten bytes that @push writes are sent. Returns false if that took so long that
 * the timer for held bytes may have sent them.
 */
static bool pushed(int fd, struct flow *out, void (*push)(int fd, struct flow *out))
{
	uint64_t before = bytes_sent(fd);
	double start = now();

	push(fd, out);
	EVENTUALLY(bytes_sent(fd) == before + 10);
	return now() - start < 0.1;
}

/*
 * Bytes that MSG_MORE holds back must be sent by a later send() without this flag, when sendfile()
 * reaches the end of the file, by a timer, and by shutdown(). Bytes that TCP_CORK holds back must
 * be sent when TCP_CORK is cleared, and when TCP_NODELAY is set.
 */
static void more_held_send(void)
{
	struct flow out = flow_out(0);
	uint8_t buf[10];
	int fd = open_conn();
	uint64_t before;

	EVENTUALLY(held_back(fd, &out, false));
	EVENTUALLY(held_back(fd, &out, true));
	EVENTUALLY(pushed(fd, &out, push_corked));
	set_int(fd, IPPROTO_TCP, TCP_CORK, 0);
	/*
	 * Kernels before 6.5 do not tell a socket that the file has ended, so AF_RDMA and TCP hold
	 * its bytes back. This check is skipped on all kernels before 6.8, see old_kernel().
	 */
	if (!old_kernel())
		EVENTUALLY(pushed(fd, &out, push_short_file));
	/* a timer sends held bytes after 200 ms */
	before = bytes_sent(fd);
	flow_fill(&out, buf, sizeof(buf));
	WANT_EQ(SYS(send(fd, buf, sizeof(buf), MSG_MORE)), sizeof(buf));
	EVENTUALLY(bytes_sent(fd) == before + 10);
	/* shutdown() sends held bytes and the end of the stream */
	flow_fill(&out, buf, sizeof(buf));
	WANT_EQ(SYS(send(fd, buf, sizeof(buf), MSG_MORE)), sizeof(buf));
	SYS(shutdown(fd, SHUT_WR));
	barrier("ended");
	control_send_number("SENT", out.off);
	barrier("read");
}

static void more_held_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();
	uint64_t got = flow_recv_to_eof(fd, &in);

	barrier("ended");
	WANT_EQ(got, control_get_number("SENT"));
	barrier("read");
}

/* ---- bad pointers ---- */

static void fault_send(void)
{
	struct flow out = flow_out(0);
	uint8_t buf[1000];
	struct iovec iov[] = { { buf, 1000 }, { BAD_POINTER, 1000 } };
	struct flow next = out;
	int fd = open_conn();
	ssize_t done;

	SYS_ERRNO(send(fd, BAD_POINTER, 1000, MSG_NOSIGNAL), EFAULT);
	SYS_ERRNO(send(fd, BAD_POINTER, 200000, MSG_NOSIGNAL), EFAULT);
	flow_fill(&next, buf, 1000);
	done = writev(fd, iov, 2);
	/* writev() may accept any part of the valid buffer or fail, but must not accept more. */
	WANT(done < 0 ? errno == EFAULT : done <= 1000);
	if (done > 0)
		out.off += done;
	flow_send(fd, &out, PEEK_LEN - out.off, PEEK_LEN);
	barrier("sent");
	path_check(fd, PEEK_LEN, 0);
}

static void fault_recv(void)
{
	struct flow in = flow_in(0);
	uint8_t buf[1000];
	struct iovec iov[] = { { buf, 1000 }, { BAD_POINTER, 1000 } };
	int fd = open_conn();
	ssize_t got;

	barrier("sent");
	await(fd, POLLIN);
	SYS_ERRNO(recv(fd, BAD_POINTER, 1000, 0), EFAULT);
	flow_recv(fd, &in, 100, 100);
	got = readv(fd, iov, 2);
	WANT(got < 0 ? errno == EFAULT : got <= 1000);
	if (got > 0)
		flow_check(&in, buf, got);
	flow_recv(fd, &in, PEEK_LEN - in.off, PEEK_LEN);
	path_check(fd, 0, PEEK_LEN);
}

/* ---- queue lengths ---- */

/* FIONREAD and SIOCINQ return the number of unread bytes. */
static void inq_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	WANT_EQ(ask_int(fd, FIONREAD), 0);
	barrier("empty");
	barrier("sent");
	EVENTUALLY(ask_int(fd, FIONREAD) == PEEK_LEN);
	flow_recv(fd, &in, 1234, 1234);
	WANT_EQ(ask_int(fd, SIOCINQ), PEEK_LEN - 1234);
	flow_recv(fd, &in, PEEK_LEN - 1234, PEEK_LEN);
	WANT_EQ(ask_int(fd, FIONREAD), 0);
	path_check(fd, 0, PEEK_LEN);
}

/*
 * When a further send() would block, SIOCOUTQ is above 0, at most the number of bytes sent, and at
 * least SIOCOUTQNSD. SIOCOUTQ is 0 before the first send(), and once the peer has read all bytes.
 */
static void outq_send_of(const struct sizes *sizes)
{
	struct flow out = flow_out(0);
	int fd = open_conn_sized(sizes);
	uint64_t sent;
	int all;

	WANT_EQ(ask_int(fd, SIOCOUTQ), 0);
	barrier("empty");
	sent = flow_send_full(fd, &out, 64 * KIB);
	WANT(ask_int(fd, SIOCOUTQ) > 0);
	WANT((uint64_t)ask_int(fd, SIOCOUTQ) <= sent);
	all = ask_int(fd, SIOCOUTQ);	/* read first: both values fall while TCP delivers */
	WANT(ask_int(fd, SIOCOUTQNSD) <= all);
	control_send_number("SENT", sent);
	path_check(fd, sent, 0);
	EVENTUALLY(ask_int(fd, SIOCOUTQ) == 0);
	barrier("queue empty");
}

static void outq_recv_of(const struct sizes *sizes)
{
	struct flow in = flow_in(0);
	int fd = open_conn_sized(sizes);
	uint64_t sent;

	barrier("empty");
	sent = control_get_number("SENT");
	flow_recv(fd, &in, sent, 64 * KIB);
	path_check(fd, 0, sent);
	barrier("queue empty");
}

static void outq_send(void) { outq_send_of(&(struct sizes) { 0 }); }
static void outq_recv(void) { outq_recv_of(&(struct sizes) { 0 }); }

/*
 * On a link, SIOCOUTQ leaves bytes uncounted: up to half of the send ring or of the peer's receive
 * ring, whichever is smaller, see queued_on_link(). Here half of the peer's receive ring is larger
 * than the whole send ring: if SIOCOUTQ left out that many bytes, it could be 0 for a full ring.
 */
static void outq_small_send(void) { outq_send_of(&(struct sizes) { .sndbuf = 64 * KIB }); }
static void outq_small_recv(void) { outq_recv_of(&(struct sizes) { .rcvbuf = 512 * KIB }); }

const struct row flags_rows[] = {
	{ "sendfile", sendfile_send, file_recv, ON_ALL | QUICK },
	{ "splice_out", splice_send, file_recv, ON_ALL },
	{ "splice_in", sendfile_send, splice_recv, ON_ALL },
	{ "splice_both", splice_recv, splice_send, ON_ALL | QUICK },
	{ "splice_empty", splice_empty, splice_empty, ON_ALL },
	{ "vmsplice", vmsplice_send, vmsplice_recv, ON_ALL | QUICK },
	{ "tee", tee_there, tee_back, ON_ALL | QUICK },
	{ "peek", simple_send, peek_recv, ON_ALL | QUICK },
	{ "peek_back", peek_recv, simple_send, ON_ALL },
	{ "peek_at_end", peek_end_send, peek_end_recv, ON_ALL | QUICK },
	{ "waitall", pieces_send, waitall_recv, ON_ALL | QUICK },
	{ "dontwait", dontwait_send, dontwait_recv, ON_ALL | QUICK },
	{ "trunc", simple_send, trunc_recv, ON_ALL | QUICK },
	{ "more", more_send, more_recv, ON_ALL | QUICK },
	{ "more_held", more_held_send, more_held_recv, ON_RDMA | ON_COLD | ONLY_RDMA | QUICK },
	{ "cork", cork_send, more_recv, ON_ALL | QUICK },
	{ "fault_send", fault_send, simple_recv, ON_ALL | QUICK },
	{ "fault_recv", simple_send, fault_recv, ON_ALL | QUICK },
	{ "inq", dontwait_send, inq_recv, ON_ALL | QUICK },
	{ "outq", outq_send, outq_recv, ON_ALL | QUICK },
	{ "outq_small", outq_small_send, outq_small_recv, ON_RDMA | QUICK },
	{ }
};
