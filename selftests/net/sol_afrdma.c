// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* SOL_AFRDMA options, the error queue, MSG_ZEROCOPY, SO_PEEK_OFF, TCP_INQ and SO_TIMESTAMP. */
#include <time.h>	/* <linux/errqueue.h> needs it */
#include <linux/errqueue.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include "proto/reason.h"
#include "test.h"

#ifndef SO_ZEROCOPY
#define SO_ZEROCOPY	60
#endif
#ifndef MSG_ZEROCOPY
#define MSG_ZEROCOPY	0x4000000
#endif
#ifndef SO_PEEK_OFF
#define SO_PEEK_OFF	42
#endif

/* ---- the error queue ---- */

/* The error queue of a connection is empty, and poll() does not report POLLERR. */
static void errqueue(void)
{
	int fd = open_conn();
	char byte;

	SYS_ERRNO(recv(fd, &byte, 1, MSG_ERRQUEUE), EAGAIN);
	WANT_EQ(poll_one(fd, POLLERR, 0), 0);
	barrier("queue empty");
}

static void zerocopy_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	flow_recv(fd, &in, 8 * 20000, 20000);
	barrier("notifications read");
	path_check(fd, 0, in.off);
}

/*
 * Reads a notification of MSG_ZEROCOPY, which must report a copy if @copied. Returns the number of
 * the last send() that it completes.
 */
static unsigned int next_notification(int fd, bool copied)
{
	char control[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
	struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };
	struct sock_extended_err err;
	struct cmsghdr *cmsg;

	await(fd, POLLERR);
	SYS(recvmsg(fd, &msg, MSG_ERRQUEUE));
	cmsg = CMSG_FIRSTHDR(&msg);
	WANT(cmsg);
	memcpy(&err, CMSG_DATA(cmsg), sizeof(err));
	WANT_EQ(err.ee_origin, SO_EE_ORIGIN_ZEROCOPY);
	WANT_EQ(err.ee_errno, 0);
	if (copied)
		WANT_EQ(err.ee_code, SO_EE_CODE_ZEROCOPY_COPIED);
	return err.ee_data;
}

/* Sends by MSG_ZEROCOPY; with SO_ZEROCOPY set, reuses the buffer only after the notifications. */
static void zerocopy_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn(), one = 1;
	unsigned int calls = 0, noticed = 0;
	uint8_t buf[20000];

	/* old kernels refuse SO_ZEROCOPY to unknown families: they do not ask the module */
	if (setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one))) {
		WANT_EQ(errno, EOPNOTSUPP);
		WANT(speaks_rdma() && old_kernel());
		one = 0;
	}
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ZEROCOPY), one);
	while (out.off < 8 * sizeof(buf)) {
		uint64_t from = out.off;
		size_t done = 0;

		flow_fill(&out, buf, sizeof(buf));
		for (; done < sizeof(buf); calls++)
			done += SYS(send(fd, buf + done, sizeof(buf) - done, MSG_ZEROCOPY));
		WANT_EQ(out.off, from + sizeof(buf));
		/* the buffer may be changed once the notification has arrived */
		while (one && noticed < calls)
			noticed = next_notification(fd, run.variant == VAR_RDMA) + 1;
	}
	barrier("notifications read");
	path_check(fd, out.off, 0);
}

/* ---- SO_PEEK_OFF ---- */

/* Other end of peek_off_recv() and tcp_inq_recv(). */
static void peek_off_send(void)
{
	int fd = open_conn();

	SYS(send(fd, "0123456789", 10, MSG_NOSIGNAL));
	barrier("sent");
	barrier("read");
	path_check(fd, 10, 0);
}

/* With SO_PEEK_OFF, MSG_PEEK continues behind the last peek; old kernels refuse the option. */
static void peek_off_recv(void)
{
	int fd = open_conn(), zero = 0;
	bool has = !setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &zero, sizeof(zero));
	char buf[16];

	barrier("sent");
	if (!has)
		WANT_EQ(errno, EOPNOTSUPP);
	/* TCP refuses SO_PEEK_OFF before Linux 6.10, and on IPv6 before 6.12 */
	WANT(has || old_kernel() || !speaks_rdma());
	EVENTUALLY(recv(fd, buf, 3, MSG_PEEK) == 3);
	WANT(!memcmp(buf, "012", 3));
	if (has) {
		WANT_EQ(SYS(recv(fd, buf, 3, MSG_PEEK)), 3);
		WANT(!memcmp(buf, "345", 3));
		WANT_EQ(get_int(fd, SOL_SOCKET, SO_PEEK_OFF), 6);
		WANT_EQ(SYS(recv(fd, buf, 2, 0)), 2);
		WANT(!memcmp(buf, "01", 2));
		WANT_EQ(get_int(fd, SOL_SOCKET, SO_PEEK_OFF), 4);
		WANT_EQ(SYS(recv(fd, buf, 3, MSG_PEEK)), 3);
		WANT(!memcmp(buf, "678", 3));
	} else {
		WANT_EQ(SYS(recv(fd, buf, 2, 0)), 2);
	}
	WANT_EQ(SYS(recv(fd, buf, 8, MSG_WAITALL)), 8);
	WANT(!memcmp(buf, "23456789", 8));
	barrier("read");
	path_check(fd, 0, 10);
}

/* ---- TCP_INQ: recvmsg() also returns how many bytes are left ---- */

/* Receives @len bytes; returns how many more are unread, as the control message reports it. */
static int recv_inq(int fd, char *buf, size_t len)
{
	char control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec vec = { buf, len };
	struct msghdr msg = {
		.msg_iov = &vec, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	int left;

	WANT_EQ(SYS(recvmsg(fd, &msg, MSG_WAITALL)), len);
	cmsg = CMSG_FIRSTHDR(&msg);
	WANT(cmsg && cmsg->cmsg_level == IPPROTO_TCP && cmsg->cmsg_type == TCP_CM_INQ);
	memcpy(&left, CMSG_DATA(cmsg), sizeof(left));
	return left;
}

static void tcp_inq_recv(void)
{
	int fd = open_conn();
	char buf[16];

	set_int(fd, IPPROTO_TCP, TCP_INQ, 1);
	barrier("sent");
	EVENTUALLY(ask_int(fd, FIONREAD) == 10);
	WANT_EQ(recv_inq(fd, buf, 4), 6);
	WANT_EQ(recv_inq(fd, buf, 6), 0);
	barrier("read");
	path_check(fd, 0, 10);
}

/* ---- SO_TIMESTAMP is accepted and does not affect the bytes received ---- */

static void timestamp_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	set_int(fd, SOL_SOCKET, SO_TIMESTAMP, 1);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_TIMESTAMP), 1);
	barrier("set");
	flow_recv(fd, &in, 30000, 30000);
	path_check(fd, 0, in.off);
}

static void timestamp_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	barrier("set");
	flow_send(fd, &out, 30000, 30000);
	path_check(fd, out.off, 0);
}

/* ---- AFRDMA_RDMA ---- */

/* Sets AFRDMA_RDMA to @policy, unless @policy is negative, and connects. */
static int connect_with_policy(int port, int policy)
{
	union addr addr;
	socklen_t len = addr_server(&addr, port);
	int fd = new_socket(0);

	if (policy >= 0)
		set_int(fd, SOL_AFRDMA, AFRDMA_RDMA, policy);
	SYS(connect(fd, &addr.sa, len));
	return fd;
}

/* Sends 64 bytes and receives 64, or the other way round if not @first. */
static void echo(int fd, bool first)
{
	char buf[64] = "";

	if (first)
		WANT_EQ(SYS(send(fd, buf, sizeof(buf), MSG_NOSIGNAL)), (long)sizeof(buf));
	WANT_EQ(SYS(recv(fd, buf, sizeof(buf), MSG_WAITALL)), (long)sizeof(buf));
	if (!first)
		WANT_EQ(SYS(send(fd, buf, sizeof(buf), MSG_NOSIGNAL)), (long)sizeof(buf));
}

static void policy_client(void)
{
	int port = server_port(), fd;

	/* ALWAYS: the upgrade does not wait for upgrade_bytes or upgrade_msgs */
	fd = connect_with_policy(port, AFRDMA_RDMA_ALWAYS);
	echo(fd, true);
	EVENTUALLY(path_on_rdma(fd));
	barrier("always");

	/* the option can be changed on an established connection */
	set_int(fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_NEVER);
	WANT_EQ(get_int(fd, SOL_AFRDMA, AFRDMA_RDMA), AFRDMA_RDMA_NEVER);
	EVENTUALLY(path_info(fd).tx_path == AFRDMA_PATH_TCP &&
		   path_info(fd).rx_path == AFRDMA_PATH_TCP &&
		   path_info(fd).reason == AFR_REASON_SOCKET_OPTION);
	echo(fd, true);
	set_int(fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_ALWAYS);
	EVENTUALLY(path_on_rdma(fd));
	echo(fd, true);
	close(fd);

	/* NEVER, set before connect(): the client makes no offer, and both ends fall back */
	fd = connect_with_policy(port, AFRDMA_RDMA_NEVER);
	echo(fd, true);
	WANT_EQ(path_info(fd).mode, AFRDMA_MODE_PLAIN);
	WANT_EQ(path_info(fd).reason, AFR_REASON_SOCKET_OPTION);
	barrier("never");
	close(fd);

	/* NEVER, set on the listener: it ignores the client's offer */
	port = server_port();
	fd = connect_with_policy(port, AFRDMA_RDMA_ALWAYS);
	echo(fd, true);
	WANT_EQ(path_info(fd).mode, AFRDMA_MODE_PLAIN);
	WANT_EQ(path_info(fd).reason, AFR_REASON_PEER_PLAIN);
	barrier("denied by the listener");
}

static void policy_server(void)
{
	int listener = open_listener(4), fd;

	fd = SYS(accept(listener, NULL, NULL));
	echo(fd, false);
	barrier("always");
	echo(fd, false);
	echo(fd, false);
	want_eof(fd);
	close(fd);

	fd = SYS(accept(listener, NULL, NULL));
	echo(fd, false);
	WANT_EQ(path_info(fd).mode, AFRDMA_MODE_PLAIN);
	barrier("never");
	close(fd);
	close(listener);

	listener = new_socket(0);
	set_int(listener, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_NEVER);
	SYS(listen(listener, 1));
	control_send_number("PORT", local_port(listener));
	fd = SYS(accept(listener, NULL, NULL));
	WANT_EQ(get_int(fd, SOL_AFRDMA, AFRDMA_RDMA), AFRDMA_RDMA_NEVER);
	echo(fd, false);
	WANT_EQ(path_info(fd).reason, AFR_REASON_SOCKET_OPTION);
	barrier("denied by the listener");
}

/* ---- the other SOL_AFRDMA options ---- */

/* Wrong values, lengths, pointers and options of level SOL_AFRDMA are refused. */
static void option_errors(void)
{
	int fd = new_socket(0), value = 100000;
	socklen_t len = sizeof(value);

	SYS_ERRNO(setsockopt(fd, SOL_AFRDMA, AFRDMA_SNDRING, &value, len), EINVAL);
	value = -1;
	SYS_ERRNO(setsockopt(fd, SOL_AFRDMA, AFRDMA_RDMA, &value, len), EINVAL);
	SYS_ERRNO(setsockopt(fd, SOL_AFRDMA, AFRDMA_BUSY_POLL, &value, len), EINVAL);
	SYS_ERRNO(setsockopt(fd, SOL_AFRDMA, AFRDMA_INFO, &value, len), ENOPROTOOPT);
	SYS_ERRNO(setsockopt(fd, SOL_AFRDMA, 1000, &value, len), ENOPROTOOPT);
	SYS_ERRNO(getsockopt(fd, SOL_AFRDMA, -1, &value, &len), ENOPROTOOPT);
	SYS_ERRNO(setsockopt(fd, SOL_AFRDMA, AFRDMA_RDMA, &value, 1), EINVAL);
	SYS_ERRNO(setsockopt(fd, SOL_AFRDMA, AFRDMA_RDMA, NULL, len), EFAULT);
	close(fd);
}

/* The rings have the sizes set by AFRDMA_SNDRING and AFRDMA_RCVRING before connect(). */
static void ring_client(void)
{
	union addr addr;
	socklen_t len = addr_server(&addr, server_port());
	int fd = new_socket(0), value = 65536;

	option_errors();
	set_int(fd, SOL_AFRDMA, AFRDMA_SNDRING, 65536);
	set_int(fd, SOL_AFRDMA, AFRDMA_RCVRING, 32768);
	WANT_EQ(get_int(fd, SOL_AFRDMA, AFRDMA_SNDRING), 65536);
	SYS(connect(fd, &addr.sa, len));
	echo(fd, true);
	WANT_EQ(path_info(fd).tx_ring, 65536);
	WANT_EQ(path_info(fd).rx_ring, 32768);
	WANT_EQ(get_int(fd, SOL_AFRDMA, AFRDMA_RCVRING), 32768);
	SYS_ERRNO(setsockopt(fd, SOL_AFRDMA, AFRDMA_SNDRING, &value, sizeof(value)), EISCONN);
	barrier("rings");
}

static void ring_server(void)
{
	int listener = new_socket(0), fd;

	set_int(listener, SOL_AFRDMA, AFRDMA_SNDRING, 16384);
	SYS(listen(listener, 1));
	control_send_number("PORT", local_port(listener));
	fd = SYS(accept(listener, NULL, NULL));
	echo(fd, false);
	WANT_EQ(path_info(fd).tx_ring, 16384);
	barrier("rings");
}

#define WAITS		30
#define BUSY_MS		10	/* how long recv() may poll in polls_before_it_sleeps(), in ms */

/* Processor time, in seconds, of WAITS calls of recv() that time out. */
static double cpu_of_waits(int fd, int busy_us)
{
	struct timespec before, after;
	char byte;

	set_int(fd, SOL_AFRDMA, AFRDMA_BUSY_POLL, busy_us);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	for (int i = 0; i < WAITS; i++)
		SYS_ERRNO(recv(fd, &byte, 1, 0), EAGAIN);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	return after.tv_sec - before.tv_sec + (after.tv_nsec - before.tv_nsec) / 1e9;
}

/*
 * Checks that a recv() uses more processor time with busy polling than without, on average by a
 * fifth of BUSY_MS or more. The difference may be less than BUSY_MS: polling stops when another
 * task needs the processor, as the runner of the rows does every 10 ms on a host with one
 * processor.
 */
static void polls_before_it_sleeps(int fd)
{
	double sleeping, polling;

	set_timeout(fd, SO_RCVTIMEO, 2 * BUSY_MS);
	sleeping = cpu_of_waits(fd, 0);
	polling = cpu_of_waits(fd, BUSY_MS * 1000);
	set_timeout(fd, SO_RCVTIMEO, 0);
	if (polling < sleeping + WAITS * BUSY_MS / 5e3)
		fail("%d waits took %.0f ms of processor time with polling, %.0f ms without", WAITS,
		     polling * 1e3, sleeping * 1e3);
}

/*
 * Exchanges requests and responses, and checks the bytes. AFRDMA_BUSY_POLL is set on AF_RDMA
 * sockets.
 */
static void busy_poll(void)
{
	int fd = open_conn();
	struct flow in = flow_in(0), out = flow_out(0);

	if (speaks_rdma()) {
		/*
		 * Only the client checks that recv() polls before it sleeps. The check needs calls
		 * that time out, and the server sends nothing before the first request. In variant
		 * to_tcp the client does not check this: its recv() is that of TCP, which ignores
		 * AFRDMA_BUSY_POLL.
		 */
		if (!run.server && run.variant != VAR_TO_TCP)
			polls_before_it_sleeps(fd);
		set_int(fd, SOL_AFRDMA, AFRDMA_BUSY_POLL, 500);
		WANT_EQ(get_int(fd, SOL_AFRDMA, AFRDMA_BUSY_POLL), 500);
	}
	for (size_t i = 0; i < amount(2000, 200); i++) {
		if (!run.server)
			flow_send(fd, &out, 100, 100);
		flow_recv(fd, &in, 100, 100);
		if (run.server)
			flow_send(fd, &out, 100, 100);
	}
	path_check(fd, out.off, in.off);
}

const struct row sol_afrdma_rows[] = {
	{ "errqueue", errqueue, errqueue, ON_ALL | QUICK },
	{ "zerocopy", zerocopy_send, zerocopy_recv, ON_ALL | QUICK_ALL },
	{ "zerocopy_back", zerocopy_recv, zerocopy_send, ON_ALL },
	{ "peek_off", peek_off_send, peek_off_recv, ON_ALL | QUICK },
	{ "tcp_inq", peek_off_send, tcp_inq_recv, ON_ALL | QUICK_ALL },
	{ "timestamp", timestamp_send, timestamp_recv, ON_ALL | QUICK },
	{ "rdma_option", policy_client, policy_server, ON_COLD | ONLY_RDMA | QUICK | UNFRAMED },
	{ "ring_option", ring_client, ring_server, ON_COLD | ONLY_RDMA | QUICK },
	{ "busy_poll", busy_poll, busy_poll, ON_ALL | QUICK },
	{ }
};
