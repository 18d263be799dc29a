// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Socket options and ioctls: they work or fail as with TCP, but some options may be refused. */
#define _GNU_SOURCE
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <linux/sockios.h>

#include "support.h"
#include "test.h"

/* ---- options that change how calls wait ---- */

static void lowat_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	flow_send(fd, &out, 999, 999);
	barrier("below");
	barrier("seen");
	flow_send(fd, &out, 1, 1);
	path_check(fd, 1000, 0);
}

/* With SO_RCVLOWAT 1000, poll() reports 1000 bytes, but not 999. */
static void lowat_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();
	uint8_t buf[2000];

	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1000);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_RCVLOWAT), 1000);
	barrier("below");
	EVENTUALLY(ioctl(fd, FIONREAD, buf) == 0 && *(int *)buf == 999);
	WANT_EQ(poll_one(fd, POLLIN, 100), 0);
	barrier("seen");
	/*
	 * poll() comes first: a recv() that starts while fewer than SO_RCVLOWAT bytes are queued
	 * consumes them, and TCP then wakes it only after SO_RCVLOWAT further bytes.
	 */
	await(fd, POLLIN);
	WANT_EQ(SYS(recv(fd, buf, 2000, 0)), 1000);
	flow_check(&in, buf, 1000);
	path_check(fd, 0, 1000);
}

/* SO_RCVLOWAT exceeds the size of any buffer: poll() must report a full buffer as readable. */
static void lowat_huge_recv(void)
{
	static const struct sizes small = { .rcvbuf = 16 * KIB };
	struct flow in = flow_in(0);
	int fd = open_conn_sized(&small);

	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1 << 30);
	barrier("set");
	await(fd, POLLIN);
	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	flow_recv_random(fd, &in, 4 * MIB, 64 * KIB);
	path_check(fd, 0, 4 * MIB);
}

static void lowat_huge_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	barrier("set");
	flow_send_random(fd, &out, 4 * MIB, 64 * KIB);
	path_check(fd, 4 * MIB, 0);
}

/* recv() ends after SO_RCVTIMEO, with EAGAIN or with the bytes that have arrived. */
static void rcvtimeo(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int fd = open_conn();
	uint8_t buf[100];
	double start;

	set_timeout(fd, SO_RCVTIMEO, 200);
	start = now();
	SYS_ERRNO(recv(fd, buf, 1, 0), EAGAIN);
	WANT(now() - start >= 0.19);
	barrier("timed out");
	flow_send(fd, &out, 50, 50);
	EVENTUALLY(ioctl(fd, FIONREAD, buf) == 0 && *(int *)buf == 50);
	/* a recv() that times out after it has received some bytes returns them */
	WANT_EQ(SYS(recv(fd, buf, 100, MSG_WAITALL)), 50);
	flow_check(&in, buf, 50);
	path_check(fd, 50, 50);
}

/* send() into full buffers ends after SO_SNDTIMEO, with the bytes accepted or with EAGAIN. */
static void sndtimeo_send(void)
{
	struct flow out = flow_out(0), next;
	uint8_t *buf = buffer(MIB);
	int fd = open_conn();
	ssize_t done;

	set_timeout(fd, SO_SNDTIMEO, 200);
	do {
		next = out;
		flow_fill(&next, buf, MIB);
		done = send(fd, buf, MIB, MSG_NOSIGNAL);
		if (done > 0)
			out.off += done;
	} while (done > 0);
	WANT_EQ(errno, EAGAIN);
	control_send_number("SENT", out.off);
	path_check(fd, out.off, 0);
	free(buf);
}

static void sndtimeo_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();
	uint64_t sent = control_get_number("SENT");

	flow_recv(fd, &in, sent, 64 * KIB);
	path_check(fd, 0, sent);
}

/* ---- errors ---- */

/* SO_ERROR returns the error of a reset once; afterwards recv() returns 0. */
static void so_error(void)
{
	int fd = open_conn();
	char byte;

	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), 0);
	barrier("no error");
	if (run.server) {
		struct linger hard = { .l_onoff = 1 };

		SYS(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)));
		SYS(close(fd));
	} else {
		await(fd, POLLERR);
		WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), ECONNRESET);
		WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), 0);
		WANT_EQ(SYS(recv(fd, &byte, 1, 0)), 0);
		SYS_ERRNO(send(fd, &byte, 1, MSG_NOSIGNAL), EPIPE);
	}
}

/* ---- options and ioctls, most of them compared with a TCP socket ---- */

struct known {
	const char *name;
	int level, option, value;
	bool set_only;		/* only setsockopt() is compared, not getsockopt() */
};

#define OPTION(level, option, value)		{ #option, level, option, value, false }
#define OPTION_SET(level, option, value)	{ #option, level, option, value, true }

static const struct known known[] = {
	OPTION(SOL_SOCKET, SO_KEEPALIVE, 1),
	OPTION(SOL_SOCKET, SO_REUSEADDR, 1),
	OPTION(SOL_SOCKET, SO_REUSEPORT, 1),
	OPTION(SOL_SOCKET, SO_BROADCAST, 1),
	OPTION(SOL_SOCKET, SO_DONTROUTE, 1),
	OPTION(SOL_SOCKET, SO_OOBINLINE, 1),
	OPTION(SOL_SOCKET, SO_PRIORITY, 4),
	OPTION(SOL_SOCKET, SO_SNDBUF, 32768),
	OPTION(SOL_SOCKET, SO_RCVBUF, 32768),
	OPTION(SOL_SOCKET, SO_SNDBUF, 1),
	OPTION(SOL_SOCKET, SO_RCVBUF, 1),
	OPTION(SOL_SOCKET, SO_RCVLOWAT, 100),
	OPTION(SOL_SOCKET, SO_SNDLOWAT, 100),
	OPTION(SOL_SOCKET, SO_TIMESTAMP, 1),
	OPTION(SOL_SOCKET, SO_MARK, 3),
	OPTION(SOL_SOCKET, SO_ZEROCOPY, 1),
	OPTION(SOL_SOCKET, SO_INCOMING_CPU, 0),
	OPTION(SOL_SOCKET, SO_BUSY_POLL, 0),
	OPTION(SOL_SOCKET, SO_PEEK_OFF, -1),
	OPTION(SOL_SOCKET, SO_TYPE, 1),
	OPTION(SOL_SOCKET, SO_ACCEPTCONN, 1),
	OPTION(SOL_SOCKET, SO_PASSCRED, 1),
	OPTION(SOL_SOCKET, 9999, 1),
	OPTION(IPPROTO_TCP, TCP_NODELAY, 1),
	OPTION(IPPROTO_TCP, TCP_CORK, 1),
	OPTION(IPPROTO_TCP, TCP_MAXSEG, 1000),
	OPTION(IPPROTO_TCP, TCP_KEEPIDLE, 100),
	OPTION(IPPROTO_TCP, TCP_KEEPINTVL, 10),
	OPTION(IPPROTO_TCP, TCP_KEEPCNT, 4),
	OPTION(IPPROTO_TCP, TCP_KEEPCNT, 9999),
	OPTION(IPPROTO_TCP, TCP_SYNCNT, 3),
	OPTION(IPPROTO_TCP, TCP_LINGER2, 10),
	OPTION(IPPROTO_TCP, TCP_DEFER_ACCEPT, 5),
	OPTION(IPPROTO_TCP, TCP_WINDOW_CLAMP, 50000),
	OPTION_SET(IPPROTO_TCP, TCP_QUICKACK, 1),
	OPTION(IPPROTO_TCP, TCP_USER_TIMEOUT, 5000),
	OPTION(IPPROTO_TCP, TCP_NOTSENT_LOWAT, 20000),
	OPTION(IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1),
	OPTION(IPPROTO_TCP, TCP_SAVE_SYN, 1),
	OPTION(IPPROTO_TCP, TCP_INQ, 1),
	OPTION(IPPROTO_TCP, TCP_TX_DELAY, 0),
	OPTION(IPPROTO_TCP, TCP_RTO_MAX_MS, 2000),
	OPTION(IPPROTO_TCP, TCP_RTO_MIN_US, 100000),
	OPTION(IPPROTO_TCP, TCP_DELACK_MAX_US, 50000),
	OPTION_SET(IPPROTO_TCP, TCP_REPAIR, 7),
	OPTION_SET(IPPROTO_TCP, TCP_ULP, 0),
	OPTION_SET(IPPROTO_TCP, TCP_FASTOPEN, 5),
	OPTION_SET(IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1),
	OPTION(IPPROTO_TCP, 9999, 1),
	OPTION(IPPROTO_IP, IP_TOS, 0x10),
	OPTION(IPPROTO_IP, IP_TTL, 40),
	OPTION(IPPROTO_IP, IP_TTL, 999),
	OPTION(IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO),
	OPTION(IPPROTO_IP, IP_FREEBIND, 1),
	OPTION(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1),
	OPTION(IPPROTO_IP, IP_RECVERR, 1),
	OPTION(IPPROTO_UDP, 1, 1),
	OPTION(4242, 1, 1),
};

struct outcome {
	int set_errno, get_errno, value;
};

/* Sets an option and, unless it is set_only, reads it. */
static struct outcome try_option(int fd, const struct known *k)
{
	struct outcome o = { 0 };
	socklen_t len = sizeof(int);

	if (setsockopt(fd, k->level, k->option, &k->value, sizeof(int)))
		o.set_errno = errno;
	if (!k->set_only && getsockopt(fd, k->level, k->option, &o.value, &len))
		o.get_errno = errno;
	return o;
}

/*
 * On AF_RDMA, setsockopt() and getsockopt() may fail with EOPNOTSUPP; otherwise they must give the
 * same result as on TCP. If the results of setsockopt() differ, the values read may differ, too.
 */
static void compare_option(const struct known *k, struct outcome own, struct outcome tcp)
{
	at(__FILE__, __LINE__, k->name);
	if (own.set_errno != tcp.set_errno && own.set_errno != EOPNOTSUPP)
		fail("setsockopt %s to %d: %s, with TCP: %s", k->name, k->value,
		     strerror(own.set_errno), strerror(tcp.set_errno));
	if (own.get_errno != tcp.get_errno && own.get_errno != EOPNOTSUPP)
		fail("getsockopt %s: %s, with TCP: %s", k->name, strerror(own.get_errno),
		     strerror(tcp.get_errno));
	if (!own.get_errno && own.set_errno == tcp.set_errno && own.value != tcp.value)
		fail("getsockopt %s after set to %d: %d, with TCP: %d", k->name, k->value,
		     own.value, tcp.value);
}

/* For each option of the table, compares try_option() on a new socket and on a new TCP socket. */
static void options_unconnected(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		int own = new_socket(0), tcp = new_socket_of(false, run.inet6, 0);

		compare_option(&known[i], try_option(own, &known[i]), try_option(tcp, &known[i]));
		SYS(close(own));
		SYS(close(tcp));
	}
}

/*
 * Sets all options but TCP_MAXSEG on one connection and on one TCP connection, and compares the
 * results. The first connection must still carry data afterwards.
 */
static void options_connected(void)
{
	struct flow in = flow_in(0), out = flow_out(0);
	int own = open_conn(), tcp = open_tcp_conn();

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (known[i].option == TCP_MAXSEG && known[i].level == IPPROTO_TCP)
			continue;	/* getsockopt() returns the current MSS: may differ */
		compare_option(&known[i], try_option(own, &known[i]), try_option(tcp, &known[i]));
	}
	barrier("set");
	set_int(own, IPPROTO_TCP, TCP_CORK, 0);
	set_int(own, SOL_SOCKET, SO_RCVLOWAT, 1);
	set_int(own, SOL_SOCKET, SO_SNDBUF, 32768);
	set_int(own, SOL_SOCKET, SO_RCVBUF, 32768);
	if (run.server)
		flow_recv(own, &in, 3000, 1000);
	flow_send(own, &out, 3000, 1000);
	if (!run.server)
		flow_recv(own, &in, 3000, 1000);
	path_check(own, 3000, 3000);
}

/* Wrong lengths and pointers, compared with a TCP socket. */
static void option_calls(void)
{
	int fd = new_socket(0), tcp = new_socket_of(false, run.inet6, 0);
	int fds[] = { tcp, fd };
	int want[6] = { 0 }, value = 1;
	socklen_t len;

	for (int i = 0; i < 2; i++) {
		int got[6];

		errno = 0;
		setsockopt(fds[i], SOL_SOCKET, SO_KEEPALIVE, &value, 2);
		got[0] = errno;
		errno = 0;
		setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &value, 2);
		got[1] = errno;
		errno = 0;
		setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, (void *)8, 4);
		got[2] = errno;
		len = -1;
		errno = 0;
		getsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &value, &len);
		got[3] = errno;
		len = 1;
		errno = 0;
		getsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &value, &len);
		got[4] = errno * 100 + len;
		errno = 0;
		getsockopt(fds[i], SOL_SOCKET, SO_TYPE, &value, (void *)8);
		got[5] = errno;
		if (!i)
			memcpy(want, got, sizeof(want));
		for (int j = 0; i && j < 6; j++)
			if (want[j] != got[j])
				fail("call %d: %d, with TCP %d", j, got[j], want[j]);
	}
}

static void tcp_info(void)
{
	struct tcp_info info = { 0 };
	int fd = open_conn();
	socklen_t len = sizeof(info);
	char name[16];

	SYS(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	WANT(len >= 100);
	WANT_EQ(info.tcpi_state, TCP_ESTABLISHED);
	WANT(info.tcpi_snd_mss > 0);
	len = sizeof(name);
	SYS(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len));
	barrier("read");
}

/* SO_LINGER and SO_RCVTIMEO return the values that were set. */
static void linger_value(void)
{
	struct linger in = { .l_onoff = 1, .l_linger = 12 }, out = { 0 };
	socklen_t len = sizeof(out);
	struct timeval tv_in = { 3, 500000 }, tv_out = { 0 };
	int fd = new_socket(0);

	SYS(setsockopt(fd, SOL_SOCKET, SO_LINGER, &in, sizeof(in)));
	SYS(getsockopt(fd, SOL_SOCKET, SO_LINGER, &out, &len));
	WANT(out.l_onoff == 1 && out.l_linger == 12);
	SYS(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv_in, sizeof(tv_in)));
	len = sizeof(tv_out);
	SYS(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv_out, &len));
	WANT(tv_out.tv_sec == 3 && tv_out.tv_usec / 10000 == 50);
}

/* ioctls, compared with a TCP socket. */
static void ioctls(void)
{
	static const unsigned long requests[] = {
		FIONREAD, SIOCOUTQ, SIOCOUTQNSD, SIOCATMARK, SIOCGPGRP, FIOGETOWN,
		SIOCGSTAMP_OLD, 0x12345678,
	};
	int own = open_conn(), tcp = open_tcp_conn(), lonely = new_socket(0);

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		int a[8] = { 0 }, b[8] = { 0 };
		int own_ret = ioctl(own, requests[i], a), own_errno = own_ret ? errno : 0;
		int tcp_ret = ioctl(tcp, requests[i], b), tcp_errno = tcp_ret ? errno : 0;

		if (own_errno != tcp_errno || a[0] != b[0])
			fail("ioctl %#lx: %s, value %d; with TCP: %s, value %d", requests[i],
			     strerror(own_errno), a[0], strerror(tcp_errno), b[0]);
	}
	SYS(listen(lonely, 1));
	SYS_ERRNO(ioctl(lonely, FIONREAD, &(int) { 0 }), EINVAL);
	barrier("compared");
}

/* Options set before connect() apply to the connection. */
static void set_before_connect(void)
{
	int fd = new_socket(0);
	union addr addr;
	socklen_t len;

	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, 123);
	len = addr_server(&addr, server_port());
	SYS(connect(fd, &addr.sa, len));
	WANT_EQ(get_int(fd, IPPROTO_TCP, TCP_NODELAY), 1);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	WANT_EQ(get_int(fd, IPPROTO_TCP, TCP_KEEPIDLE), 123);
	barrier("read");
}

static void accept_and_wait(void)
{
	int listener = open_listener(2);

	SYS(accept(listener, NULL, NULL));
	barrier("read");
}

const struct row option_rows[] = {
	{ "rcvlowat", lowat_send, lowat_recv, ON_ALL | QUICK },
	{ "rcvlowat_huge", lowat_huge_send, lowat_huge_recv, ON_ALL },
	{ "rcvtimeo", rcvtimeo, rcvtimeo, ON_ALL | QUICK },
	{ "sndtimeo", sndtimeo_send, sndtimeo_recv, ON_ALL | QUICK },
	{ "sndtimeo_back", sndtimeo_recv, sndtimeo_send, ON_ALL },
	{ "so_error", so_error, so_error, ON_ALL | QUICK | UNFRAMED },
	{ "options", options_unconnected, options_unconnected, ON_COLD | QUICK | UNFRAMED },
	{ "options_connected", options_connected, options_connected, ON_ALL | QUICK },
	{ "option_calls", option_calls, option_calls, ON_COLD | UNFRAMED },
	{ "option_values", linger_value, linger_value, ON_COLD | UNFRAMED },
	{ "options_before_connect", set_before_connect, accept_and_wait,
	  ON_COLD | ON_PLAIN | QUICK | UNFRAMED },
	{ "tcp_info", tcp_info, tcp_info, ON_ALL | QUICK },
	{ "ioctls", ioctls, ioctls, ON_ALL },
	{ }
};
