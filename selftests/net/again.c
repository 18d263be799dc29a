// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * connect(AF_UNSPEC), connect() and listen() after a disconnect, listen() after a reset,
 * shutdown() before connect() or listen(), listen() and connect() at the same time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/reason.h"
#include "test.h"

#define LEN	20000

static const struct sockaddr none = { .sa_family = AF_UNSPEC };

static void exchange(int fd)
{
	path_exchange(fd, LEN);
}

/* ---- connect(AF_UNSPEC) ---- */

/* connect(AF_UNSPEC) disconnects a fallback connection, and the socket can connect again. */
static void unspec(void)
{
	int port = server_port();
	int fd = connect_conn(port);
	union addr addr;
	socklen_t len = addr_server(&addr, port);
	char byte;

	SYS(connect(fd, &none, sizeof(none)));
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ERROR), ECONNRESET);
	SYS_ERRNO(recv(fd, &byte, 1, 0), ENOTCONN);
	SYS_ERRNO(getpeername(fd, &addr.sa, &(socklen_t) { sizeof(addr) }), ENOTCONN);
	len = addr_server(&addr, port);
	SYS(connect(fd, &addr.sa, len));
	exchange(fd);
}

/* A disconnect sets SO_ERROR. If the program does not read it, connect() succeeds nevertheless. */
static void unspec_unread(void)
{
	int port = server_port();
	int fd = connect_conn(port);
	union addr addr;
	socklen_t len = addr_server(&addr, port);

	SYS(connect(fd, &none, sizeof(none)));
	SYS(connect(fd, &addr.sa, len));
	exchange(fd);
}

/* Other end of unspec() and unspec_unread(): the connection is reset, and a second one comes. */
static void unspec_server(void)
{
	int listener = open_listener(8);
	int fd = accept_conn(listener);
	char byte;

	SYS_ERRNO(recv(fd, &byte, 1, 0), ECONNRESET);
	SYS(close(fd));
	exchange(accept_conn(listener));
}

/* connect(AF_UNSPEC) fails on a framed connection, which remains usable. */
static void unspec_framed(void)
{
	int fd = connect_conn(server_port());

	SYS_ERRNO(connect(fd, &none, sizeof(none)), EOPNOTSUPP);
	exchange(fd);
}

static void accept_exchange(void)
{
	exchange(accept_conn(open_listener(8)));
}

struct reader {
	int fd;
	volatile pid_t tid;	/* 0 until the thread runs */
};

/* Thread: waits in recv(). Unlike the thread that created it, it has no real-time priority. */
static void *reads(void *arg)
{
	struct reader *reader = arg;
	char byte;

	SYS(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param) { 0 }));
	reader->tid = syscall(SYS_gettid);
	recv(reader->fd, &byte, 1, 0);
	return NULL;
}

/*
 * While a thread is still in recv() on the former connection of the socket, the next connection
 * does not become framed, since that recv() would read frames. The disconnect wakes the reader,
 * but the reader is still in recv() at the next connect(): both threads run on CPU 0, this one
 * with real-time priority, and it does not sleep in between.
 */
static void call_running(void)
{
	int port = server_port();
	struct reader reader = { .fd = new_socket(0) };
	union addr addr;
	socklen_t len = addr_server(&addr, port);
	pthread_t thread;

	/* The first connect() with an offer registers netfilter hooks and may sleep: do it now. */
	SYS(close(connect_port(port)));
	set_int(reader.fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_NEVER);
	SYS(connect(reader.fd, &addr.sa, len));
	set_int(reader.fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_AUTO);
	take_cpu();
	thread = thread_start(reads, &reader);
	EVENTUALLY(reader.tid && thread_sleeps(reader.tid));
	nonblocking(reader.fd, true);
	SYS(connect(reader.fd, &none, sizeof(none)));
	SYS_ERRNO(connect(reader.fd, &addr.sa, len), EINPROGRESS);
	await(reader.fd, POLLOUT);
	EVENTUALLY(path_info(reader.fd).mode == AFRDMA_MODE_PLAIN);
	WANT_EQ(path_info(reader.fd).reason, AFR_REASON_CALL_RUNNING);
	SYS(shutdown(reader.fd, SHUT_RDWR));
	pthread_join(thread, NULL);
	barrier("done");
}

static void accept_nothing(void)
{
	open_listener(8);
	barrier("done");
}

/* ---- listen() ---- */

static void want_listening(int fd, int listens)
{
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_ACCEPTCONN), listens);
}

/*
 * A socket listens, stops listening, and connects in fallback mode. It does so twice: the first
 * time connect(AF_UNSPEC) ends the listening, the second time shutdown() does. At last the socket
 * listens again, and accepts a connection that is framed.
 */
static void listen_again(void)
{
	int fd = new_socket(0);

	run.inet6 = false;
	SYS(listen(fd, 1));
	want_listening(fd, 1);
	SYS(connect(fd, &none, sizeof(none)));
	want_listening(fd, 0);
	fall_back_once(fd);
	SYS(listen(fd, 1));
	SYS(shutdown(fd, SHUT_RDWR));
	want_listening(fd, 0);
	fall_back_once(fd);
	SYS(listen(fd, 1));
	want_listening(fd, 1);
	control_send_number("PORT", local_port(fd));
	fd = SYS(accept(fd, NULL, NULL));
	exchange(fd);
	if (run.variant == VAR_COLD)
		WANT_EQ(path_info(fd).mode, AFRDMA_MODE_FRAMED);
}

static void listen_again_client(void)
{
	exchange(connect_port(server_port()));
}

/* ---- shutdown() before connect() and before listen() ---- */

/*
 * Returns a socket on which shutdown(SHUT_WR) was called while it had no connection. The call
 * fails, but still applies to a connection that the socket makes or accepts later.
 */
static int shut_socket(void)
{
	int fd = new_socket(0);

	SYS_ERRNO(shutdown(fd, SHUT_WR), ENOTCONN);
	return fd;
}

/*
 * @fd is a socket of shut_socket() that has connected, or a connection that such a socket has
 * accepted. send() on @fd fails; bytes of the peer still arrive.
 */
static void only_receives(int fd)
{
	struct flow in = flow_in(0);

	SYS_ERRNO(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	flow_recv(fd, &in, 10000, 10000);
	if (speaks_rdma() && run.variant == VAR_COLD)
		WANT_EQ(path_info(fd).reason, AFR_REASON_SHUT_BEFORE);
	barrier("received");
}

/* Other end of only_receives() and listen_denied(). */
static void only_sends(int fd)
{
	struct flow out = flow_out(0);

	flow_send(fd, &out, 10000, 10000);
	barrier("received");
}

/*
 * A listener that listens again with AFRDMA_RDMA_NEVER no longer answers the offers of clients.
 * The connection that it accepts reports the reason.
 */
static void listen_denied(void)
{
	struct flow in = flow_in(0);
	int fd = new_socket(0);

	SYS(listen(fd, 1));
	SYS(connect(fd, &none, sizeof(none)));
	if (speaks_rdma())
		set_int(fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_NEVER);
	SYS(listen(fd, 1));
	control_send_number("PORT", local_port(fd));
	fd = SYS(accept(fd, NULL, NULL));
	flow_recv(fd, &in, 10000, 10000);
	if (speaks_rdma())
		WANT_EQ(path_info(fd).reason, AFR_REASON_SOCKET_OPTION);
	barrier("received");
}

static void listen_denied_client(void)
{
	only_sends(connect_port(server_port()));
}

static void shut_before(void)
{
	union addr addr;
	int fd = shut_socket(), port = server_port();
	socklen_t len = addr_server(&addr, port);

	SYS(connect(fd, &addr.sa, len));
	only_receives(fd);
	only_sends(connect_port(server_port()));
}

static void shut_before_server(void)
{
	int fd;

	only_sends(accept_conn(open_listener(8)));
	fd = shut_socket();
	SYS(listen(fd, 1));
	control_send_number("PORT", local_port(fd));
	only_receives(SYS(accept(fd, NULL, NULL)));
}

/* ---- listen() and connect() at the same time ---- */

struct beside {
	int fd;
	unsigned int delay;	/* rounds of a loop, between the start and listen() */
	volatile bool start;
};

static void *listens(void *arg)
{
	struct beside *beside = arg;

	while (!beside->start)
		;
	for (volatile unsigned int i = 0; i < beside->delay; i++)
		;
	listen(beside->fd, 1);
	return NULL;
}

/*
 * Connects to @fd, a listener of this host. TCP creates a socket for the server's end of the
 * connection. If the listening TCP socket still had the sk_state_change that connect() sets for an
 * offer, the new socket would inherit it, and the kernel would crash.
 */
static void try_listener(int fd, int family)
{
	union addr addr;
	socklen_t len = sizeof(addr);
	int client = SYS(socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0));

	SYS(getsockname(fd, &addr.sa, &len));
	addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(client, &addr.sa, len))
		WANT_EQ(errno, EINPROGRESS);
	poll_one(client, POLLOUT, 1000);
	SYS(close(client));
}

/* The other end only waits, and a row without progress is ended. */
#define BESIDE_STEP	50

/* One of the two calls wins: the socket connects or listens, but never does both. */
static void listen_beside_connect(void)
{
	union addr addr, any;
	socklen_t len = addr_server(&addr, server_port());

	run.inet6 = false;
	for (size_t i = 0; i < amount(2000, 200); i++) {
		struct beside beside = { .fd = new_socket(0), .delay = 50 * i % 10000 };
		pthread_t thread;
		int err;

		if (i % BESIDE_STEP == 0)
			barrier("next");
		SYS(bind(beside.fd, &any.sa, addr_any(&any, 0)));
		thread = thread_start(listens, &beside);
		poll(NULL, 0, 1);
		beside.start = true;
		err = connect(beside.fd, &addr.sa, len) ? errno : 0;
		pthread_join(thread, NULL);
		want_listening(beside.fd, err != 0);
		if (err) {
			WANT_EQ(err, EISCONN);
			try_listener(beside.fd, AF_INET);
			try_listener(beside.fd, AF_RDMA);
		}
		SYS(close(beside.fd));
	}
	barrier("done");
}

/*
 * A nonblocking connect() begins a connection. The connection carries bytes, and the peer resets
 * it before the program calls connect() again. The second connect() reports the reset. A socket
 * that had a framed connection can have no other one, so listen() fails, too.
 */
static void listen_after_reset(void)
{
	union addr addr;
	socklen_t len = addr_server(&addr, server_port());
	int fd = new_socket(SOCK_NONBLOCK);

	SYS_ERRNO(connect(fd, &addr.sa, len), EINPROGRESS);
	await(fd, POLLOUT);
	nonblocking(fd, false);
	exchange(fd);
	WANT_EQ(path_info(fd).mode, AFRDMA_MODE_FRAMED);
	barrier("exchanged");
	await(fd, POLLHUP);
	SYS_ERRNO(connect(fd, &addr.sa, len), ECONNRESET);
	SYS_ERRNO(listen(fd, 1), EINVAL);
	want_listening(fd, 0);
}

static void resets(void)
{
	int fd = accept_conn(open_listener(8));

	exchange(fd);
	barrier("exchanged");
	set_linger(fd, 0);
	SYS(close(fd));
}

static void is_connected_to(void)
{
	int listener = open_listener(4000);

	for (size_t i = 0; i < amount(2000, 200); i += BESIDE_STEP)
		barrier("next");
	barrier("done");
	SYS(close(listener));
}

const struct row again_rows[] = {
	{ "unspec", unspec, unspec_server, ON_PLAIN },
	{ "unspec_unread", unspec_unread, unspec_server, ON_PLAIN | QUICK },
	{ "unspec_framed", unspec_framed, accept_exchange, ON_RDMA | ON_COLD | ONLY_RDMA | QUICK },
	{ "call_running", call_running, accept_nothing, ON_COLD | ONLY_RDMA | QUICK | UNFRAMED },
	{ "listen_after_reset", listen_after_reset, resets,
	  ON_COLD | ONLY_RDMA | QUICK | UNFRAMED },
	{ "listen_again", listen_again_client, listen_again, ON_COLD | QUICK | UNFRAMED },
	{ "listen_denied", listen_denied_client, listen_denied, ON_COLD | QUICK | UNFRAMED },
	{ "shut_before", shut_before, shut_before_server, ON_COLD | ON_PLAIN | QUICK | UNFRAMED },
	{ "listen_beside_connect", listen_beside_connect, is_connected_to,
	  ON_COLD | ONLY_RDMA | QUICK | UNFRAMED },
	{ }
};
