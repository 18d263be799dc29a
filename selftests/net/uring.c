// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Rows that use io_uring, by system calls instead of liburing. The kernel first tries a request
 * without blocking, unless IOSQE_ASYNC is set. If the request would block, the kernel waits for a
 * wake-up of the socket and tries again. It may take the event mask from the wake-up, whereas
 * poll() would ask the socket for its mask again.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/io_uring.h>

#include "test.h"

#define ENTRIES	64

struct uring {
	int fd;
	struct io_uring_params p;
	char *sq, *cq;
	struct io_uring_sqe *sqes;
	unsigned int queued;
};

static unsigned int *word_of(char *ring, unsigned int off)
{
	return (unsigned int *)(ring + off);
}

static void *ring_map(int fd, size_t size, off_t off)
{
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, off);

	WANT(map != MAP_FAILED);
	return map;
}

/* Sets up a ring. Both sides call this first: it skips the row if io_uring is missing or denied. */
static struct uring ring_open(void)
{
	struct uring r = { 0 };

	r.fd = syscall(__NR_io_uring_setup, ENTRIES, &r.p);
	if (r.fd < 0)
		skip("io_uring is not available: %s", strerror(errno));
	r.sq = ring_map(r.fd, r.p.sq_off.array + r.p.sq_entries * sizeof(int), IORING_OFF_SQ_RING);
	r.cq = ring_map(r.fd, r.p.cq_off.cqes + r.p.cq_entries * sizeof(struct io_uring_cqe),
			IORING_OFF_CQ_RING);
	r.sqes = ring_map(r.fd, r.p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	return r;
}

/* Queues a request; its completion returns @tag. */
static struct io_uring_sqe *request(struct uring *r, int opcode, int fd, uint64_t tag)
{
	unsigned int *tail = word_of(r->sq, r->p.sq_off.tail);
	unsigned int slot = *tail & (r->p.sq_entries - 1);
	struct io_uring_sqe *sqe = &r->sqes[slot];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = opcode;
	sqe->fd = fd;
	sqe->user_data = tag;
	word_of(r->sq, r->p.sq_off.array)[slot] = slot;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	r->queued++;
	return sqe;
}

static struct io_uring_sqe *request_buf(struct uring *r, int opcode, int fd, uint64_t tag,
					const void *buf, size_t len, int flags)
{
	struct io_uring_sqe *sqe = request(r, opcode, fd, tag);

	sqe->addr = (uintptr_t)buf;
	sqe->len = len;
	sqe->msg_flags = flags;
	return sqe;
}

/* Submits the queued requests and waits for @wait completions. */
static void enter(struct uring *r, unsigned int wait)
{
	at(__FILE__, __LINE__, "io_uring_enter()");
	while (syscall(__NR_io_uring_enter, r->fd, r->queued, wait,
		       wait ? IORING_ENTER_GETEVENTS : 0, NULL, 0) < 0)
		if (errno != EINTR)
			fail("io_uring_enter(): %s", strerror(errno));
	r->queued = 0;
}

static void submit(struct uring *r)
{
	enter(r, 0);
}

/* Is there a completion in the completion queue? */
static bool ready(struct uring *r)
{
	return __atomic_load_n(word_of(r->cq, r->p.cq_off.tail), __ATOMIC_ACQUIRE) !=
	       *word_of(r->cq, r->p.cq_off.head);
}

struct done {
	uint64_t user_data;
	int res;
	unsigned int flags;
};

/* Waits for a completion, removes it from the completion queue and returns it. */
static struct done take(struct uring *r)
{
	unsigned int *head = word_of(r->cq, r->p.cq_off.head);
	struct io_uring_cqe *cqes = (void *)(r->cq + r->p.cq_off.cqes), *cqe;
	struct done done;

	while (!ready(r))
		enter(r, 1);
	cqe = &cqes[*head & (r->p.cq_entries - 1)];
	done = (struct done) { cqe->user_data, cqe->res, cqe->flags };
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return done;
}

/* Returns the result of the next completion, which must have tag @tag. */
static int result(struct uring *r, uint64_t tag)
{
	struct done cqe = take(r);

	WANT_EQ(cqe.user_data, tag);
	return cqe.res;
}

/* ---- send and receive ---- */

enum { SEND = 1, RECV, OTHER };

/* Queues a send with tag SEND, by IORING_OP_SENDMSG if @by_msg. */
static void send_request(struct uring *r, int fd, void *buf, size_t len, bool by_msg)
{
	static struct iovec iov;
	static struct msghdr msg;

	if (!by_msg) {
		request_buf(r, IORING_OP_SEND, fd, SEND, buf, len, MSG_WAITALL | MSG_NOSIGNAL);
		return;
	}
	iov = (struct iovec) { buf, len };
	msg = (struct msghdr) { .msg_iov = &iov, .msg_iovlen = 1 };
	request_buf(r, IORING_OP_SENDMSG, fd, SEND, &msg, 1, MSG_WAITALL | MSG_NOSIGNAL);
}

/* Queues a receive with tag RECV, by IORING_OP_RECVMSG if @by_msg. */
static void recv_request(struct uring *r, int fd, void *buf, size_t len, bool by_msg)
{
	static struct iovec iov;
	static struct msghdr msg;

	if (!by_msg) {
		request_buf(r, IORING_OP_RECV, fd, RECV, buf, len, MSG_WAITALL);
		return;
	}
	iov = (struct iovec) { buf, len };
	msg = (struct msghdr) { .msg_iov = &iov, .msg_iovlen = 1 };
	request_buf(r, IORING_OP_RECVMSG, fd, RECV, &msg, 1, MSG_WAITALL);
}

/*
 * Both directions at once. In every third round both ends submit their receives before any byte is
 * sent.
 */
static void uring_both(void)
{
	struct uring r = ring_open();
	struct flow out = flow_out(0), in = flow_in(0);
	size_t rounds = amount(200, 30);
	uint8_t *from = buffer(200 * KIB), *to = buffer(200 * KIB);
	int fd = open_conn();

	for (size_t i = 0; i < rounds; i++) {
		size_t len = i % 7 ? 1 + i * 37 % 5000 : 200 * KIB;

		recv_request(&r, fd, to, len, i % 2);
		submit(&r);
		if (i % 3 == 0)
			barrier("receives wait");
		flow_fill(&out, from, len);
		send_request(&r, fd, from, len, i % 4 < 2);
		submit(&r);
		for (int j = 0; j < 2; j++) {
			struct done cqe = take(&r);

			WANT(cqe.user_data == SEND || cqe.user_data == RECV);
			WANT_EQ(cqe.res, len);
		}
		flow_check(&in, to, len);
	}
	path_check(fd, out.off, in.off);
	free(from);
	free(to);
}

#define ZC_ROUNDS	20
#define ZC_LEN(i)	((i) % 5 ? 100 + (i) * 937 : 200 * KIB)

/*
 * IORING_OP_SEND_ZC posts a completion with the number of bytes sent, and later a notification that
 * the buffer may be reused.
 */
static void uring_zc_send(void)
{
	struct uring r = ring_open();
	struct flow out = flow_out(0);
	uint8_t *buf = buffer(200 * KIB);
	int fd = open_conn();

	for (size_t i = 0; i < ZC_ROUNDS; i++) {
		struct done sent, freed;

		flow_fill(&out, buf, ZC_LEN(i));
		request_buf(&r, IORING_OP_SEND_ZC, fd, SEND, buf, ZC_LEN(i),
			    MSG_WAITALL | MSG_NOSIGNAL);
		submit(&r);
		sent = take(&r);
		WANT_EQ((size_t)sent.res, ZC_LEN(i));
		WANT(sent.flags & IORING_CQE_F_MORE);
		freed = take(&r);
		WANT(freed.flags & IORING_CQE_F_NOTIF);
		memset(buf, 0xee, ZC_LEN(i));
	}
	path_check(fd, out.off, 0);
	free(buf);
}

static void uring_zc_recv(void)
{
	struct flow in = flow_in(0);
	int fd;

	ring_open();	/* only to skip the row if io_uring is not available */
	fd = open_conn();
	for (size_t i = 0; i < ZC_ROUNDS; i++)
		flow_recv(fd, &in, ZC_LEN(i), 64 * KIB);
	path_check(fd, 0, in.off);
}

/*
 * A single request is for 8 MiB, far more than the default rings hold. It continues by itself
 * until all bytes are transferred.
 */
static void uring_large_send(void)
{
	struct uring r = ring_open();
	struct flow out = flow_out(0);
	uint8_t *buf = buffer(8 * MIB);
	int fd = open_conn();

	flow_fill(&out, buf, 8 * MIB);
	send_request(&r, fd, buf, 8 * MIB, false);
	submit(&r);
	WANT_EQ(result(&r, SEND), 8 * MIB);
	path_check(fd, 8 * MIB, 0);
	free(buf);
}

static void uring_large_recv(void)
{
	struct uring r = ring_open();
	struct flow in = flow_in(0);
	uint8_t *buf = buffer(8 * MIB);
	int fd = open_conn();

	recv_request(&r, fd, buf, 8 * MIB, false);
	submit(&r);
	WANT_EQ(result(&r, RECV), 8 * MIB);
	flow_check(&in, buf, 8 * MIB);
	path_check(fd, 0, 8 * MIB);
	free(buf);
}

/* A cancelled receive consumes no bytes. A waiting receive returns 0 when the stream ends. */
static void uring_cancel(void)
{
	struct uring r = ring_open();
	struct flow in = flow_in(0);
	uint8_t buf[100];
	int fd = open_conn(), cancelled = 0;

	recv_request(&r, fd, buf, sizeof(buf), false);
	submit(&r);
	request(&r, IORING_OP_ASYNC_CANCEL, -1, OTHER)->addr = RECV;
	submit(&r);
	for (int i = 0; i < 2; i++) {
		struct done cqe = take(&r);

		if (cqe.user_data == RECV)
			cancelled = cqe.res;
		else
			WANT_EQ(cqe.res, 0);
	}
	WANT_EQ(cancelled, -ECANCELED);
	barrier("cancelled");
	flow_recv(fd, &in, 100, 100);
	path_check(fd, 0, 100);
	recv_request(&r, fd, buf, sizeof(buf), false);
	submit(&r);
	barrier("waits for the end");
	WANT_EQ(result(&r, RECV), 0);
	SYS(close(fd));
}

static void uring_cancel_peer(void)
{
	struct uring r = ring_open();
	struct flow out = flow_out(0);
	int fd = open_conn();

	(void)r;
	barrier("cancelled");
	flow_send(fd, &out, 100, 100);
	path_check(fd, 100, 0);
	barrier("waits for the end");
	SYS(shutdown(fd, SHUT_WR));
	want_eof(fd);
}

/* ---- multishot receive ---- */

#define BUFFERS		8
#define BUFFER_SIZE	1000
#define MESSAGES	50

/* Registers a ring of buffers, still empty; skips the row if the kernel has no such rings. */
static struct io_uring_buf_ring *buffers_register(struct uring *r)
{
	struct io_uring_buf_ring *br = mmap(NULL, 4 * KIB, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct io_uring_buf_reg reg = { .ring_addr = (uintptr_t)br, .ring_entries = BUFFERS };

	WANT(br != MAP_FAILED);
	if (syscall(__NR_io_uring_register, r->fd, IORING_REGISTER_PBUF_RING, &reg, 1))
		skip("no provided buffer rings in io_uring: %s", strerror(errno));
	return br;
}

/* Gives buffer @id to the kernel for a multishot receive. */
static void buffer_give(struct io_uring_buf_ring *br, uint8_t *bufs, int id)
{
	unsigned short tail = br->tail;
	struct io_uring_buf *slot = &br->bufs[tail & (BUFFERS - 1)];

	slot->addr = (uintptr_t)(bufs + id * BUFFER_SIZE);
	slot->len = BUFFER_SIZE;
	slot->bid = id;
	__atomic_store_n(&br->tail, tail + 1, __ATOMIC_RELEASE);
}

/* Submits a multishot receive. */
static void recv_many(struct uring *r, int fd)
{
	struct io_uring_sqe *sqe = request(r, IORING_OP_RECV, fd, RECV);

	sqe->ioprio = IORING_RECV_MULTISHOT;
	sqe->flags = IOSQE_BUFFER_SELECT;
	submit(r);
}

/*
 * The kernel chooses the buffers. The request goes on until the stream ends, or until no buffer is
 * left because bytes arrive faster than buffers are given back.
 */
static void uring_multishot_recv(void)
{
	struct uring r = ring_open();
	struct io_uring_buf_ring *br = buffers_register(&r);
	uint8_t *bufs = buffer(BUFFERS * BUFFER_SIZE);
	struct flow in = flow_in(0);
	struct done cqe;
	int fd = open_conn();

	for (int i = 0; i < BUFFERS; i++)
		buffer_give(br, bufs, i);
	recv_many(&r, fd);
	barrier("receive waits");
	for (;;) {
		cqe = take(&r);
		if (!cqe.res)
			break;
		if (cqe.res > 0) {
			int id = cqe.flags >> IORING_CQE_BUFFER_SHIFT;

			WANT(cqe.flags & IORING_CQE_F_BUFFER);
			flow_check(&in, bufs + id * BUFFER_SIZE, cqe.res);
			buffer_give(br, bufs, id);
		} else {
			WANT_EQ(cqe.res, -ENOBUFS);
		}
		if (!(cqe.flags & IORING_CQE_F_MORE))
			recv_many(&r, fd);
		if (in.off == MESSAGES * BUFFER_SIZE && cqe.res > 0)
			barrier("all bytes came");
	}
	WANT(!(cqe.flags & IORING_CQE_F_MORE));
	WANT_EQ(in.off, MESSAGES * BUFFER_SIZE);
	want_eof(fd);
	SYS(close(fd));
	free(bufs);
}

static void uring_multishot_send(void)
{
	struct uring r = ring_open();
	struct flow out = flow_out(0);
	int fd = open_conn();

	buffers_register(&r);
	barrier("receive waits");
	for (int i = 0; i < MESSAGES; i++)
		flow_send(fd, &out, BUFFER_SIZE, BUFFER_SIZE);
	barrier("all bytes came");
	path_check_alone(fd, out.off, 0);
	SYS(shutdown(fd, SHUT_WR));
	want_eof(fd);
}

/* ---- connect and accept ---- */

#define CALLERS	5

/* Accepts a connection by a request that waits, and sends back a byte. */
static void uring_accept_one(struct uring *r, int listener)
{
	union addr addr;
	socklen_t len = sizeof(addr);
	struct io_uring_sqe *sqe = request(r, IORING_OP_ACCEPT, listener, OTHER);
	char byte;
	int fd;

	sqe->addr = (uintptr_t)&addr;
	sqe->addr2 = (uintptr_t)&len;
	sqe->accept_flags = SOCK_CLOEXEC;
	submit(r);
	barrier("accept waits");
	fd = result(r, OTHER);
	WANT(fd >= 0);
	WANT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	WANT_EQ(len, addr_len());
	WANT_EQ(SYS(recv(fd, &byte, 1, 0)), 1);
	WANT_EQ(SYS(send(fd, &byte, 1, MSG_NOSIGNAL)), 1);
	SYS(close(fd));
}

/* Accepts one connection by a request, then CALLERS connections by one multishot request. */
static void uring_accept(void)
{
	struct uring r = ring_open();
	int listener = open_listener(8);
	struct io_uring_sqe *sqe;

	uring_accept_one(&r, listener);
	sqe = request(&r, IORING_OP_ACCEPT, listener, OTHER);
	sqe->ioprio = IORING_ACCEPT_MULTISHOT;
	submit(&r);
	barrier("accept goes on");
	for (int i = 0; i < CALLERS; i++) {
		struct done cqe = take(&r);
		char byte;

		WANT(cqe.res >= 0);
		WANT(cqe.flags & IORING_CQE_F_MORE);
		WANT_EQ(SYS(recv(cqe.res, &byte, 1, 0)), 1);
		WANT_EQ(SYS(send(cqe.res, &byte, 1, MSG_NOSIGNAL)), 1);
		SYS(close(cqe.res));
	}
}

/* Makes a connect() by a request, and returns its result. */
static int connect_by_ring(struct uring *r, int fd, const union addr *addr, socklen_t len)
{
	struct io_uring_sqe *sqe = request(r, IORING_OP_CONNECT, fd, OTHER);

	sqe->addr = (uintptr_t)addr;
	sqe->off = len;
	submit(r);
	return result(r, OTHER);
}

/* Connects; a second connect() must fail. Then sends a byte, which must come back. */
static void uring_call(struct uring *r, int port)
{
	union addr addr;
	socklen_t len = addr_server(&addr, port);
	int fd = new_socket(0);
	char byte = 'x';

	WANT_EQ(connect_by_ring(r, fd, &addr, len), 0);
	WANT_EQ(connect_by_ring(r, fd, &addr, len), -EISCONN);
	WANT_EQ(SYS(send(fd, &byte, 1, MSG_NOSIGNAL)), 1);
	WANT_EQ(SYS(recv(fd, &byte, 1, 0)), 1);
	if (speaks_rdma() && run.variant == VAR_COLD)
		WANT_EQ(path_info(fd).mode, AFRDMA_MODE_FRAMED);
	SYS(close(fd));
}

static void uring_connect(void)
{
	struct uring r = ring_open();
	int port = server_port();

	barrier("accept waits");
	uring_call(&r, port);
	barrier("accept goes on");
	for (int i = 0; i < CALLERS; i++)
		uring_call(&r, port);
}

/* An IORING_OP_CONNECT to a port without a listener fails with ECONNREFUSED. */
static void uring_refused(void)
{
	struct uring r = ring_open();
	union addr addr;
	socklen_t len = addr_server(&addr, control_get_number("CLOSED"));

	WANT_EQ(connect_by_ring(&r, new_socket(0), &addr, len), -ECONNREFUSED);
}

/* The port is bound without a listener, so that no other program takes it while the row runs. */
static void uring_refuses(void)
{
	struct uring r = ring_open();
	union addr addr;
	socklen_t len = addr_any(&addr, 0);
	int fd = new_socket(0);

	(void)r;
	SYS(bind(fd, &addr.sa, len));
	control_send_number("CLOSED", local_port(fd));
}

/* ---- close ---- */

/*
 * The io_uring worker thread that executes IORING_OP_CLOSE posts the completion, and then releases
 * the file and lingers. Meanwhile the child process, to which the thread belongs, is killed; the
 * peer must still receive all bytes.
 */
static void uring_lingers(void)
{
	struct uring r = ring_open();
	struct flow out = flow_out(0);
	int fd = open_conn(), closed[2];
	pid_t pid;
	char byte;

	control_send_number("SENT", flow_fill_up(fd, &out));
	SYS(pipe(closed));
	pid = fork_row();
	if (!pid) {
		SYS(close(closed[1]));
		/* wait until the parent has closed @fd and the pipe: only this process has @fd then */
		SYS(read(closed[0], &byte, 1));
		r = ring_open();
		set_linger(fd, 60);
		request(&r, IORING_OP_CLOSE, fd, OTHER)->flags = IOSQE_ASYNC;
		submit(&r);
		WANT_EQ(result(&r, OTHER), 0);
		for (;;)
			pause();
	}
	SYS(close(fd));
	SYS(close(closed[1]));
	poll(NULL, 0, 500);	/* time for the io_uring worker to begin to linger */
	WANT_EQ(SYS(waitpid(pid, NULL, WNOHANG)), 0);
	SYS(kill(pid, SIGKILL));
	SYS(waitpid(pid, NULL, 0));
	barrier("killed");
	barrier("read");
}

/* Other end of uring_lingers(): reads only after the kill. */
static void uring_reads_later(void)
{
	struct flow in = flow_in(0);
	uint64_t sent;
	int fd;

	ring_open();	/* only to skip the row if io_uring is not available */
	fd = open_conn();
	sent = control_get_number("SENT");
	barrier("killed");
	WANT_EQ(flow_recv_to_eof(fd, &in), sent);
	SYS(close(fd));
	barrier("read");
}

/* ---- poll ---- */

/*
 * A poll request reports that bytes have arrived. A multishot poll request does so once each time
 * bytes arrive, and then reports the end of the stream.
 */
static void uring_poll(void)
{
	struct uring r = ring_open();
	struct flow in = flow_in(0);
	int fd = open_conn();
	struct io_uring_sqe *sqe;

	request(&r, IORING_OP_POLL_ADD, fd, RECV)->poll32_events = POLLIN;
	submit(&r);
	barrier("poll waits");
	WANT_EQ(result(&r, RECV), POLLIN);
	flow_recv(fd, &in, 10, 10);
	sqe = request(&r, IORING_OP_POLL_ADD, fd, OTHER);
	sqe->poll32_events = POLLIN | POLLRDHUP;
	sqe->len = IORING_POLL_ADD_MULTI;
	submit(&r);
	for (int i = 0; i < CALLERS; i++) {
		struct done cqe;

		barrier("once more");
		cqe = take(&r);
		WANT_EQ(cqe.res, POLLIN);
		WANT(cqe.flags & IORING_CQE_F_MORE);
		flow_recv(fd, &in, 10, 10);
	}
	path_check(fd, 0, in.off);
	barrier("now the end");
	WANT_EQ(take(&r).res & (POLLIN | POLLRDHUP), POLLIN | POLLRDHUP);
	want_eof(fd);
}

static void uring_poll_peer(void)
{
	struct uring r = ring_open();
	struct flow out = flow_out(0);
	int fd = open_conn();

	(void)r;
	barrier("poll waits");
	flow_send(fd, &out, 10, 10);
	for (int i = 0; i < CALLERS; i++) {
		barrier("once more");
		flow_send(fd, &out, 10, 10);
	}
	path_check(fd, out.off, 0);
	barrier("now the end");
	SYS(shutdown(fd, SHUT_WR));
}

#define BOTH(name, first, second, flags)		\
	{ name, first, second, flags },			\
	{ name "_back", second, first, (flags) & ~(QUICK | QUICK_ALL) }

const struct row uring_rows[] = {
	{ "uring_both", uring_both, uring_both, ON_ALL | QUICK },
	BOTH("uring_zerocopy", uring_zc_send, uring_zc_recv, ON_ALL | QUICK),
	BOTH("uring_large", uring_large_send, uring_large_recv, ON_ALL | QUICK),
	BOTH("uring_cancel", uring_cancel_peer, uring_cancel, ON_ALL | QUICK),
	BOTH("uring_multishot", uring_multishot_send, uring_multishot_recv, ON_ALL | QUICK),
	BOTH("uring_poll", uring_poll_peer, uring_poll, ON_ALL | QUICK),
	BOTH("uring_linger", uring_lingers, uring_reads_later, ON_ALL | QUICK),
	{ "uring_accept", uring_connect, uring_accept, ON_COLD | ON_PLAIN | QUICK },
	{ "uring_refused", uring_refused, uring_refuses, ON_COLD | ON_PLAIN | QUICK | UNFRAMED },
	{ }
};
