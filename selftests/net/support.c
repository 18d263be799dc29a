// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Tests the options of AFR_SUPPORT_OPTIONS in net/afrdma/support.h, except those with rule FAMILY:
 * setsockopt() and getsockopt() must give the same results as with TCP or, with rule REFUSE, fail.
 * Also tests the effects of some options.
 */
#define _GNU_SOURCE
#include <linux/tcp.h>

#include "support.h"
#include "test.h"

#define LEN	1000

/* ---- the whole table ---- */

enum rule { PASS, STORE, LATE, SHARE, REFUSE, CORE, FAMILY };

static const struct option {
	const char *name;
	int level, option;
	enum rule rule;
} options[] = {
#define AFR_OPTION(level, name, rule, ...) { #name, level, name, rule },
	AFR_SUPPORT_OPTIONS
#undef AFR_OPTION
};

struct answer {
	int set, get, value;
};

/* Sets option @o to 1, then reads it. */
static struct answer ask(int fd, const struct option *o)
{
	struct answer a = { 0 };
	socklen_t len = sizeof(int);
	int one = 1;

	if (setsockopt(fd, o->level, o->option, &one, sizeof(one)))
		a.set = errno;
	if (getsockopt(fd, o->level, o->option, &a.value, &len))
		a.get = errno;
	return a;
}

/* Fails unless AF_RDMA and TCP have given the same answers. */
static void compare(const struct option *o, struct answer own, struct answer tcp)
{
	/* older kernels refuse both options to unknown families, without calling the family */
	if (o->level == SOL_SOCKET && (o->option == SO_REUSEPORT || o->option == SO_ZEROCOPY) &&
	    own.set == EOPNOTSUPP && old_kernel())
		return;
	if (own.set != tcp.set || own.get != tcp.get || own.value != tcp.value)
		fail("%s, set to 1: %s; then read: %s, %d. With TCP: %s; %s, %d", o->name,
		     strerror(own.set), strerror(own.get), own.value,
		     strerror(tcp.set), strerror(tcp.get), tcp.value);
}

/*
 * Fails unless both calls were refused. Does not check this for options of level SOL_SOCKET, which
 * older kernels handle without calling the family.
 */
static void refused(const struct option *o, struct answer own)
{
	if (o->level == SOL_SOCKET)
		return;
	if (own.set != EOPNOTSUPP || own.get != EOPNOTSUPP)
		fail("%s is to be refused: %s; %s", o->name, strerror(own.set),
		     strerror(own.get));
}

/* Sets each option of the table, unless its rule is FAMILY, on a new socket and reads it. */
static void option_table(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const struct option *o = &options[i];
		bool inet6 = o->level == IPPROTO_IPV6;
		int own = new_socket_of(speaks_rdma(), inet6, 0);
		int tcp = new_socket_of(false, inet6, 0);

		at(__FILE__, __LINE__, o->name);
		if (o->rule == REFUSE && speaks_rdma())
			refused(o, ask(own, o));
		else if (o->rule != FAMILY)
			compare(o, ask(own, o), ask(tcp, o));
		SYS(close(own));
		SYS(close(tcp));
	}
}

/* ---- effects of single options ---- */

/*
 * With TCP_DEFER_ACCEPT, accept() returns a connection when the client has sent data. If both ends
 * use AF_RDMA, the client's HELLO counts as data.
 */
static void defer_accept_server(void)
{
	int listener = new_socket(0);
	bool framed = row_has_rdma() && run.variant == VAR_COLD;
	union addr addr;
	socklen_t len = addr_any(&addr, 0);
	struct flow in = flow_in(0);

	set_int(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, 30);
	SYS(bind(listener, &addr.sa, len));
	SYS(listen(listener, 1));
	control_send_number("PORT", local_port(listener));
	barrier("connected");
	if (framed)
		await(listener, POLLIN);
	else
		WANT_EQ(poll_one(listener, POLLIN, 200), 0);
	barrier("seen");
	await(listener, POLLIN);
	flow_recv(SYS(accept(listener, NULL, NULL)), &in, LEN, LEN);
	barrier("read");
}

static void defer_accept_client(void)
{
	struct flow out = flow_out(0);
	int fd = connect_port(server_port());

	barrier("connected");
	barrier("seen");
	flow_send(fd, &out, LEN, LEN);
	barrier("read");
}

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	SYS(getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len));
	WANT_EQ(len, sizeof(cookie));
	return cookie;
}

/*
 * Options set before the client's HELLO has arrived must not delay frames. If SO_RCVLOWAT took
 * effect on the TCP socket, HELLO would go unnoticed until the timer of hello_timeout_ms expires.
 * The row sets hello_timeout_ms to 600 s, and accept() starts the timer with that value.
 * EVENTUALLY() fails long before the timer expires.
 */
static void early_options_server(void)
{
	long timeout = path_sysctl("hello_timeout_ms");
	int fd;

	path_set_sysctl("hello_timeout_ms", 600000);
	fd = SYS(accept(open_listener(1), NULL, NULL));
	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 8192);
	set_int(fd, IPPROTO_TCP, TCP_CORK, 1);
	path_set_sysctl("hello_timeout_ms", timeout);
	EVENTUALLY(path_info(fd).mode == AFRDMA_MODE_FRAMED);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_RCVLOWAT), 8192);
	WANT_EQ(get_int(fd, IPPROTO_TCP, TCP_CORK), 1);
	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	barrier("framed");
	path_exchange(fd, LEN);
}

static void early_options_client(void)
{
	union addr addr;
	socklen_t len = addr_server(&addr, server_port());
	int fd = new_socket(0);

	SYS(connect(fd, &addr.sa, len));
	barrier("framed");
	path_exchange(fd, LEN);
}

/* SO_COOKIE identifies a socket, and does not change while the connection carries bytes. */
static void cookie(void)
{
	int fd = open_conn(), other = new_socket(0);
	uint64_t one = cookie_of(fd);

	WANT(one);
	WANT(cookie_of(other) != one);
	path_exchange(fd, LEN);
	WANT(cookie_of(fd) == one);
}

/* TCP_CONGESTION sets the algorithm of the TCP connection. */
static void congestion(void)
{
	char name[16] = "";
	socklen_t len = sizeof(name);
	int fd = open_conn();

	SYS_ERRNO(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "no-such-one", 11), ENOENT);
	SYS(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
	SYS(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len));
	WANT(!strcmp(name, "reno"));
	path_exchange(fd, LEN);
}

#define PACE		1000000		/* bytes per second */
/* PACED is this large, as TCP does not pace the first ten packets, of up to 64 KiB on loopback. */
#define PACED		(1536 * KIB)

/*
 * Sets the rate before connect(): on Linux 6.1, neither setsockopt(SO_MAX_PACING_RATE) nor send()
 * passes a later rate to the TCP socket of a framed connection.
 */
static int pacing_socket(void)
{
	int fd = new_socket(0);

	set_int(fd, SOL_SOCKET, SO_MAX_PACING_RATE, PACE);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_MAX_PACING_RATE), PACE);
	return fd;
}

/* SO_MAX_PACING_RATE limits what TCP carries, but not what RDMA carries. */
static void paced_send(void)
{
	struct flow out = flow_out(0);
	socklen_t len;
	union addr addr;
	int fd = pacing_socket();
	double start;

	len = addr_server(&addr, server_port());
	SYS(connect(fd, &addr.sa, len));
	if (run.variant == VAR_COLD)
		set_int(fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_NEVER);
	if (run.variant == VAR_RDMA)
		path_warm_up(fd);
	start = now();
	flow_send(fd, &out, PACED, PACED);
	barrier("all read");
	if (run.variant != VAR_RDMA)	/* the rate does not apply to RDMA */
		WANT(now() - start > 0.5);
	path_check(fd, PACED, 0);
	if (run.variant == VAR_COLD)
		WANT_EQ(path_info(fd).tx_bytes_tcp, PACED);
	if (run.variant == VAR_TO_TCP) {
		WANT_EQ(tcp_info_of(fd).tcpi_max_pacing_rate, PACE);
		set_int(fd, SOL_SOCKET, SO_MAX_PACING_RATE, -1);
		/* on Linux 6.1, the module passes the rate to the TCP socket in this call */
		SYS(send(fd, "", 0, 0));
		WANT_EQ((int)tcp_info_of(fd).tcpi_max_pacing_rate, -1);
	}
}

static void paced_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	flow_recv(fd, &in, PACED, PACED);
	barrier("all read");
	path_check(fd, 0, PACED);
}

const struct row support_rows[] = {
	{ "option_table", option_table, option_table, ON_COLD | QUICK | UNFRAMED },
	{ "defer_accept", defer_accept_client, defer_accept_server,
	  ON_COLD | ON_PLAIN | QUICK_ALL | UNFRAMED },
	{ "early_options", early_options_client, early_options_server,
	  ON_COLD | ONLY_RDMA | QUICK },
	{ "cookie", cookie, cookie, ON_ALL | QUICK },
	{ "congestion", congestion, congestion, ON_ALL | QUICK },
	{ "pacing", paced_send, paced_recv, ON_ALL | QUICK_ALL },
	{ }
};
