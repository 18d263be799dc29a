// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Calls that send and receive: sizes, vectors, several messages, zero lengths, signals. */
#define _GNU_SOURCE
#include <limits.h>
#include <netinet/tcp.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "test.h"

/* ---- request and response ---- */

/* A request of the client and the response of the server, @len bytes each. */
static void request(int fd, struct flow *out, struct flow *in, size_t len)
{
	if (run.server)
		flow_recv(fd, in, len, len);
	flow_send(fd, out, len, len);
	if (!run.server)
		flow_recv(fd, in, len, len);
}

static void pingpong_sizes(void)
{
	static const int around[] = { -1, 0, 1 };
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = open_conn();

	for (size_t base = 2; base <= 64 * KIB; base *= 2)
		for (size_t i = 0; i < ARRAY_SIZE(around); i++)
			for (size_t n = 0; n < amount(20, 2); n++)
				request(fd, &out, &in, base + around[i]);
	path_check(fd, out.off, in.off);
}

static void pingpong_byte(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	size_t count = amount(10000, 500);
	int fd = open_conn();

	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	for (size_t i = 0; i < count; i++)
		request(fd, &out, &in, 1);
	path_check(fd, count, count);
}

/* ---- vectors ---- */

#define VECTORS	IOV_MAX

/* Cuts @buf into vectors of 0 to @top bytes; returns how many bytes they cover. */
static size_t cut(struct iovec *iov, int count, uint8_t *buf, size_t top)
{
	size_t total = 0;

	for (int i = 0; i < count; i++) {
		iov[i].iov_base = buf + total;
		iov[i].iov_len = i % 5 == 3 ? 0 : rnd_between(1, top);
		total += iov[i].iov_len;
	}
	return total;
}

/* Number of calls with vectors that a sender makes. */
static size_t vector_rounds(void)
{
	return amount(200, 20);
}

static void vectors_send(void)
{
	struct iovec *iov = buffer(VECTORS * sizeof(*iov));
	uint8_t *buf = buffer(VECTORS * 64);
	struct flow out = flow_out(0);
	int fd = open_conn();

	for (size_t i = 0; i < vector_rounds(); i++) {
		struct msghdr msg = { .msg_iov = iov, .msg_iovlen = i % 7 ? rnd_between(1, VECTORS)
									  : VECTORS };
		size_t len = cut(iov, msg.msg_iovlen, buf, 64);
		size_t done;

		flow_fill(&out, buf, len);
		done = i % 2 ? SYS(sendmsg(fd, &msg, MSG_NOSIGNAL))
			     : SYS(writev(fd, iov, msg.msg_iovlen));
		while (done < len)
			done += SYS(send(fd, buf + done, len - done, MSG_NOSIGNAL));
	}
	control_send_number("LENGTH", out.off);
	path_check(fd, out.off, 0);
	free(buf);
	free(iov);
}

/* Receives into a random number of vectors by one call; returns how many bytes @buf then holds. */
static size_t recv_vectors(int fd, struct iovec *iov, uint8_t *buf, bool by_readv)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = rnd_between(1, VECTORS) };

	cut(iov, msg.msg_iovlen, buf, 64);
	if (by_readv)
		return SYS(readv(fd, iov, msg.msg_iovlen));
	return SYS(recvmsg(fd, &msg, 0));
}

/* Other end of vectors_send(), which tells the length of the stream when it has sent all. */
static void vectors_recv(void)
{
	struct iovec *iov = buffer(VECTORS * sizeof(*iov));
	uint8_t *buf = buffer(VECTORS * 64);
	struct flow in = flow_in(0);
	uint64_t len = UINT64_MAX;
	int fd = open_conn();

	nonblocking(fd, true);
	for (size_t i = 0; in.off < len; i++) {
		struct pollfd p[] = { { .fd = fd, .events = POLLIN },
				      { .fd = len == UINT64_MAX ? run.control : -1,
					.events = POLLIN } };

		SYS(poll(p, 2, 1000));
		if (p[0].revents)
			flow_check(&in, buf, recv_vectors(fd, iov, buf, i % 2));
		if (p[1].revents)
			len = control_get_number("LENGTH");
	}
	path_check(fd, 0, len);
	free(buf);
	free(iov);
}

#define MANY	16

static void mmsg_send(void)
{
	struct mmsghdr msgs[MANY] = { 0 };
	struct iovec iov[MANY];
	uint8_t *buf = buffer(MANY * 1000);
	struct flow out = flow_out(0);
	int fd = open_conn();

	flow_fill(&out, buf, MANY * 1000);
	for (int i = 0; i < MANY; i++) {
		iov[i] = (struct iovec) { buf + i * 1000, 1000 };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	WANT_EQ(SYS(sendmmsg(fd, msgs, MANY, MSG_NOSIGNAL)), MANY);
	for (int i = 0; i < MANY; i++)
		WANT_EQ(msgs[i].msg_len, 1000);
	path_check(fd, MANY * 1000, 0);
	free(buf);
}

static void mmsg_recv(void)
{
	struct mmsghdr msgs[MANY] = { 0 };
	struct iovec iov[MANY];
	uint8_t *buf = buffer(MANY * 1000);
	struct flow in = flow_in(0);
	int fd = open_conn();

	for (int i = 0; i < MANY; i++) {
		iov[i] = (struct iovec) { buf + i * 1000, 1000 };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	WANT_EQ(SYS(recvmmsg(fd, msgs, MANY, MSG_WAITALL, NULL)), MANY);
	flow_check(&in, buf, MANY * 1000);
	path_check(fd, 0, MANY * 1000);
	free(buf);
}

/* recvmmsg() with MSG_WAITFORONE returns after the one message that is available. */
static void mmsg_one_recv(void)
{
	struct mmsghdr msgs[MANY] = { 0 };
	struct iovec iov[MANY];
	struct flow in = flow_in(0);
	uint8_t buf[MANY * 10];
	int fd = open_conn();

	for (int i = 0; i < MANY; i++) {
		iov[i] = (struct iovec) { buf + i * 10, 10 };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	SYS_ERRNO(recvmmsg(fd, msgs, MANY, MSG_DONTWAIT, NULL), EAGAIN);
	barrier("nothing there");
	await(fd, POLLIN);
	WANT_EQ(SYS(recvmmsg(fd, msgs, MANY, MSG_WAITFORONE, NULL)), 1);
	WANT_EQ(msgs[0].msg_len, 10);
	flow_check(&in, buf, 10);
	path_check(fd, 0, 10);
}

/* sendmmsg() of three messages, of which only the second contains bytes. */
static void mmsg_one_send(void)
{
	struct mmsghdr msgs[3] = { 0 };
	struct flow out = flow_out(0);
	struct iovec iov;
	uint8_t buf[10];
	int fd = open_conn();

	barrier("nothing there");
	flow_fill(&out, buf, sizeof(buf));
	iov = (struct iovec) { buf, sizeof(buf) };
	msgs[1].msg_hdr.msg_iov = &iov;
	msgs[1].msg_hdr.msg_iovlen = 1;
	/* the empty messages count as sent, but the peer receives nothing for them */
	WANT_EQ(SYS(sendmmsg(fd, msgs, 3, MSG_NOSIGNAL)), 3);
	WANT_EQ(msgs[0].msg_len + msgs[2].msg_len, 0);
	path_check(fd, 10, 0);
}

/* ---- zero lengths ---- */

/*
 * send() of 0 bytes sends nothing. recv() of 0 bytes waits until a byte has arrived and leaves the
 * byte unread, but read() of 0 bytes returns at once.
 */
static void zero_length(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	struct msghdr none = { 0 };
	uint8_t buf[10];
	int fd = open_conn();

	WANT_EQ(SYS(send(fd, buf, 0, 0)), 0);
	WANT_EQ(SYS(write(fd, buf, 0)), 0);
	WANT_EQ(SYS(sendmsg(fd, &none, 0)), 0);
	WANT_EQ(SYS(read(fd, buf, 0)), 0);
	SYS_ERRNO(recv(fd, buf, 0, MSG_DONTWAIT), EAGAIN);
	barrier("nothing sent");
	SYS_ERRNO(recv(fd, buf, 10, MSG_DONTWAIT), EAGAIN);
	barrier("nothing came");
	flow_send(fd, &out, 10, 10);
	await(fd, POLLIN);
	WANT_EQ(SYS(recv(fd, buf, 0, 0)), 0);
	WANT_EQ(SYS(recvmsg(fd, &none, 0)), 0);
	flow_recv(fd, &in, 10, 10);
	path_check(fd, 10, 10);
}

/* ---- signals ---- */

/* After shutdown(SHUT_WR), a send fails with EPIPE and, without MSG_NOSIGNAL, raises SIGPIPE. */
static void sigpipe(void)
{
	int fd = open_conn();

	on_signal(SIGPIPE, 0);
	SYS(shutdown(fd, SHUT_WR));
	SYS_ERRNO(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	WANT_EQ(signals_seen, 0);
	SYS_ERRNO(send(fd, "x", 1, 0), EPIPE);
	WANT_EQ(signals_seen, 1);
	SYS_ERRNO(write(fd, "x", 1), EPIPE);
	WANT_EQ(signals_seen, 2);
	want_eof(fd);
}

/* Makes SIGALRM arrive every @ms from now on, or no longer if @ms is 0. */
static void alarm_every(int ms)
{
	struct itimerval timer = {
		.it_interval.tv_usec = ms * 1000, .it_value.tv_usec = ms * 1000,
	};

	SYS(setitimer(ITIMER_REAL, &timer, NULL));
}

/* A signal interrupts a wait for the first byte, unless its handler has SA_RESTART. */
static void eintr_recv(void)
{
	struct flow in = flow_in(0);
	uint8_t buf[100];
	int fd = open_conn();

	on_signal(SIGALRM, 0);
	alarm_every(20);
	SYS_ERRNO(recv(fd, buf, 100, 0), EINTR);
	SYS_ERRNO(recv(fd, buf, 100, MSG_WAITALL), EINTR);
	on_signal(SIGALRM, SA_RESTART);
	barrier("interrupted");
	WANT_EQ(SYS(recv(fd, buf, 100, MSG_WAITALL)), 100);
	flow_check(&in, buf, 100);
	alarm_every(0);
	path_check(fd, 0, 100);
}

/* Other end: sends late, so that SA_RESTART must restart the last recv() of eintr_recv(). */
static void eintr_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	barrier("interrupted");
	poll_one(fd, POLLIN, 100);
	flow_send(fd, &out, 100, 100);
	path_check(fd, 100, 0);
}

/*
 * A signal interrupts a blocked send(), which then returns the number of bytes that it accepted.
 * If it accepted none, it fails with EINTR, since the handler has no SA_RESTART.
 */
static void eintr_full_send(void)
{
	struct flow out = flow_out(0), next = out;
	size_t len = 64 * MIB;
	uint8_t *buf = buffer(len);
	int fd = open_conn();
	ssize_t done;

	flow_fill(&next, buf, len);
	on_signal(SIGALRM, 0);
	alarm_every(200);
	do {
		done = send(fd, buf + out.off, len - out.off, MSG_NOSIGNAL);
		if (done > 0)
			out.off += done;
	} while (done > 0 && out.off < len);
	WANT(done < 0 && errno == EINTR);
	alarm_every(0);
	control_send_number("SENT", out.off);
	path_check(fd, out.off, 0);
	free(buf);
}

static void eintr_full_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();
	uint64_t sent = control_get_number("SENT");

	flow_recv(fd, &in, sent, 64 * KIB);
	path_check(fd, 0, sent);
}

/* ---- control messages of sendmsg() ---- */

#ifndef SCM_DEVMEM_DMABUF
#define SCM_DEVMEM_DMABUF 79
#endif

/* sendmsg() of a byte with a control message of @type, with @len as its length; must fail. */
static void control_fails(int fd, int type, size_t len)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { };
	struct iovec vec = { "x", 1 };
	struct msghdr msg = {
		.msg_iov = &vec, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};

	control.header = (struct cmsghdr){
		.cmsg_level = SOL_SOCKET, .cmsg_type = type, .cmsg_len = len,
	};
	SYS_ERRNO(sendmsg(fd, &msg, MSG_NOSIGNAL), EINVAL);
}

/* With a malformed control message or one for device memory, sendmsg() fails and sends nothing. */
static void control(void)
{
	static const size_t lengths[] = { 0, 1, -1, -16, CMSG_LEN(100) };
	int fd = open_conn();

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		control_fails(fd, SCM_RIGHTS, lengths[i]);
	control_fails(fd, SCM_DEVMEM_DMABUF, CMSG_LEN(sizeof(int)));
	path_exchange(fd, 1000);
}

const struct row message_rows[] = {
	{ "pingpong_sizes", pingpong_sizes, pingpong_sizes, ON_ALL | QUICK_ALL },
	{ "pingpong_byte", pingpong_byte, pingpong_byte, ON_ALL | QUICK },
	{ "vectors_to_server", vectors_send, vectors_recv, ON_ALL | QUICK },
	{ "vectors_to_client", vectors_recv, vectors_send, ON_ALL },
	{ "mmsg", mmsg_send, mmsg_recv, ON_ALL | QUICK },
	{ "mmsg_one", mmsg_one_send, mmsg_one_recv, ON_ALL | QUICK },
	{ "control", control, control, ON_RDMA | ON_COLD | ONLY_RDMA | QUICK },
	{ "zero_length", zero_length, zero_length, ON_ALL | QUICK },
	{ "sigpipe", sigpipe, sigpipe, ON_ALL | QUICK },
	{ "eintr_recv", eintr_send, eintr_recv, ON_ALL | QUICK },
	{ "eintr_send", eintr_full_send, eintr_full_recv, ON_ALL | QUICK },
	{ }
};
