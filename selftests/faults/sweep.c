// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Fails every allocation and every user copy of every call, one at a time.
 *
 *	afr_sweep --address A [--port N] [--seed S] [--only CALL]
 *		  [--workers STEPS [--repair COMMAND]]
 *
 * The process has both ends of a connection to its own host. Like any other connection, this one
 * uses the RDMA device. A pass makes all calls of the life of a connection, some of them several
 * times. In pass n for a call, the nth allocation or user copy fails when the pass makes this call
 * for the first time, by /proc/PID/fail-nth of a kernel with fault injection. The call must
 * succeed nevertheless, or fail with an error that means that a resource was lacking or that a
 * user copy failed, and then succeed when it is repeated; and every byte must arrive in order,
 * once.
 *
 * With --workers, the nth allocation of each kernel worker fails instead: first in WORKERS_END
 * passes only during the last calls, then in STEPS passes during the calls before these; n grows
 * from 1 each time. In these passes a connection may end with an error. COMMAND is run after each
 * of them, for failures from which the kernel does not recover by itself.
 *
 * At its end each pass closes all sockets. Soon afterwards /proc/net/tcp and tcp6 may list them
 * only in state TIME-WAIT. Leaks are detected by the ledger of the lab. The output is a KTAP line
 * per call, or, with --workers, one for each of the two series of passes. If a check fails, the
 * program prints "FAIL" and why, and ends.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <getopt.h>
#include <netinet/tcp.h>

#include "../ktap.h"
#include "test.h"

#define NTH_MAX		2000
#define PIECE		20000
#define HANG		60	/* seconds of run_pass() after which SIGALRM interrupts a call */
#define ROUNDS_MAX	2000	/* rounds of PIECE bytes each way until upgrade() gives up */
#define WORKERS_TIME	3	/* with --workers: seconds until upgrade() gives up */
#define WORKERS_END	20	/* passes in which workers fail during the last calls */
#define GONE		15	/* seconds for TCP to end a connection closed at both ends */

/* The only row; flow.c needs one. */
static const struct row the_row = { .name = "sweep" };

static union addr address;
static const char *only = "";
static int fail_nth_fd;
static int port = 7400;
static const char *repair;

/*
 * The point that fails in this pass: the @nth allocation or user copy of @call. If @nth is 0, none
 * fails, and all calls must succeed. With --workers, @call is "", and the @nth allocation of each
 * kernel worker fails.
 */
static struct {
	const char *call;
	int nth;
	bool met;		/* the call has been made in this pass */
	bool fired;		/* the call has an nth point, which failed */
	int err;		/* errno of the call, if the fault made it fail */
} sweep;

static bool workers;	/* true in the passes of --workers, which follow one pass without a fault */
static int upgraded;	/* connections that have come onto RDMA at both ends */

/* ---- fail-nth ---- */

static void set_nth(int fd, int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", nth);

	/* A fault that is still armed may make this pwrite() itself fail: call it again. */
	while (pwrite(fd, text, len, 0) != len)
		if (errno != EFAULT && errno != ENOMEM)
			fail("fail-nth: %s", strerror(errno));
}

/* Disarms the fault; returns true if it was injected before. */
static bool was_fired(void)
{
	char text[16] = "";
	bool read_failed = pread(fail_nth_fd, text, sizeof(text) - 1, 0) <= 0;
	bool fired = !read_failed && atoi(text) == 0;

	set_nth(fail_nth_fd, 0);
	return fired;
}

/* Does @err mean that a resource was lacking, or that a user copy failed? */
static bool is_scarcity(int err)
{
	return err == ENOMEM || err == ENOBUFS || err == EFAULT || err == ENFILE ||
	       err == EMFILE || err == EDQUOT;
}

/*
 * Makes one call of a pass: step(arg), which returns -1 and sets errno if the call fails. The
 * first call named sweep.call is made with the fault armed at point sweep.nth; if it fails with an
 * error of is_scarcity(), it is repeated without the fault. Any other failure ends the program,
 * unless the variable workers is true.
 */
static long call(const char *name, long (*step)(void *arg), void *arg)
{
	bool armed = !sweep.met && sweep.nth && !strcmp(name, sweep.call);
	long ret;

	at(__FILE__, __LINE__, name);
	if (armed) {
		sweep.met = true;
		set_nth(fail_nth_fd, sweep.nth);
	}
	ret = step(arg);
	if (armed) {
		int err = errno;

		sweep.fired = was_fired();
		if (ret >= 0)
			return ret;
		sweep.err = err;
		if (!is_scarcity(err))
			fail("%s, point %d: %s", name, sweep.nth, strerror(err));
		ret = step(arg);
	}
	if (ret < 0 && !workers)
		fail("%s%s: %s", name, armed ? ", again" : "", strerror(errno));
	return ret;
}

/* ---- the calls of a connection's life ---- */

struct life {
	int listener, client, server;
	struct flow out[2], in[2];	/* of client and server */
	bool dead;			/* connection not opened, failed or ended early */
	int err;			/* with @dead: errno; 0: early end, or begin() failed */
};

struct io {
	int fd;
	uint8_t *buf;
	size_t len;
};

static int family_socket(void)
{
	return socket(AF_RDMA, SOCK_STREAM, address.sa.sa_family == AF_INET6 ?
		      AFRDMA_PROTO_INET6 : AFRDMA_PROTO_INET);
}

static socklen_t address_len(void)
{
	return address.sa.sa_family == AF_INET6 ? sizeof(address.in6) : sizeof(address.in);
}

static long do_socket(void *arg)
{
	return *(int *)arg = family_socket();
}

static long do_reuse(void *arg)
{
	int one = 1;

	return setsockopt(*(int *)arg, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
}

static long do_bind(void *arg)
{
	return bind(*(int *)arg, &address.sa, address_len());
}

static long do_listen(void *arg)
{
	return listen(*(int *)arg, 8);
}

/* Closes the socket if connect() fails; the next attempt takes a new one. */
static long do_connect(void *arg)
{
	int *fd = arg;

	if (*fd < 0)
		*fd = family_socket();
	if (*fd < 0 || !connect(*fd, &address.sa, address_len()))
		return *fd;
	close(*fd);
	*fd = -1;
	return -1;
}

static long do_accept(void *arg)
{
	struct life *l = arg;

	return l->server = accept4(l->listener, NULL, NULL, 0);
}

static long do_info(void *arg)
{
	struct afrdma_info info;
	socklen_t len = sizeof(info);

	return getsockopt(*(int *)arg, SOL_AFRDMA, AFRDMA_INFO, &info, &len);
}

static long do_poll(void *arg)
{
	struct pollfd p = { .fd = *(int *)arg, .events = POLLIN | POLLOUT };

	return poll(&p, 1, 0);
}

static long do_send(void *arg)
{
	struct io *io = arg;

	return send(io->fd, io->buf, io->len, MSG_NOSIGNAL);
}

static long do_recv(void *arg)
{
	struct io *io = arg;

	return recv(io->fd, io->buf, io->len, 0);
}

static long do_shutdown(void *arg)
{
	return shutdown(*(int *)arg, SHUT_WR);
}

static long do_close(void *arg)
{
	return close(*(int *)arg);
}

/* Sends @len bytes from one end to the other; @send_name, @recv_name: names for call(). */
static void carry(struct life *l, int from, size_t len, const char *send_name,
		  const char *recv_name)
{
	int fds[2] = { l->client, l->server };
	uint8_t *buf = buffer(len);
	struct io io = { fds[from], buf, len };
	size_t done = 0;

	flow_fill(&l->out[from], buf, len);
	while (done < len && !l->dead) {
		long n = call(send_name, do_send, &io);

		if (n < 0) {
			l->dead = true;
			l->err = errno;
			break;
		}
		done += n;
		io.buf = buf + done;
		io.len = len - done;
	}
	io = (struct io) { fds[!from], buf, len };
	for (done = 0; done < len && !l->dead; ) {
		long n;

		io.len = len - done;
		n = call(recv_name, do_recv, &io);
		if (!n && !workers)
			fail("the stream ends %zu bytes early", len - done);
		if (n <= 0) {
			l->dead = true;
			l->err = n ? errno : 0;
			break;
		}
		flow_check(&l->in[!from], buf, n);
		done += n;
	}
	free(buf);
}

static struct afrdma_info info_of(int fd)
{
	struct afrdma_info info = { 0 };
	socklen_t len = sizeof(info);

	getsockopt(fd, SOL_AFRDMA, AFRDMA_INFO, &info, &len);
	return info;
}

/*
 * Has the connection reached its final path? This is RDMA; or, if something fails in this pass,
 * fallback for a recorded reason, for example if there was no memory for the option in the SYN.
 */
static bool settled(int fd)
{
	struct afrdma_info info = info_of(fd);

	if (info.mode == AFRDMA_MODE_PLAIN)
		return sweep.nth && info.reason;
	return info.tx_path == AFRDMA_PATH_RDMA && info.rx_path == AFRDMA_PATH_RDMA;
}

/*
 * Carries bytes both ways until both ends have settled(). Gives up at a limit, which is a failure
 * unless the variable workers is true.
 */
static void upgrade(struct life *l)
{
	double end = now() + WORKERS_TIME;

	for (int i = 0; i < ROUNDS_MAX && !l->dead && !(workers && now() > end); i++) {
		carry(l, 0, PIECE, "send.tcp", "recv.tcp");
		carry(l, 1, PIECE, "send.tcp", "recv.tcp");
		if (settled(l->client) && settled(l->server)) {
			upgraded += info_of(l->client).mode != AFRDMA_MODE_PLAIN;
			return;
		}
		poll(NULL, 0, 1);
	}
	if (!workers)
		fail("never on RDMA");
}

/*
 * Makes the calls that open a connection. Once workers is true, these calls may fail; l->dead then
 * tells that the connection was not opened.
 */
static void begin(struct life *l)
{
	*l = (struct life) { .listener = -1, .client = -1, .server = -1 };
	for (int end = 0; end < 2; end++) {
		run.server = end;
		l->out[end] = flow_out(0);
		l->in[end] = flow_in(0);
	}
	call("socket", do_socket, &l->listener);
	call("setsockopt", do_reuse, &l->listener);
	call("bind", do_bind, &l->listener);
	call("listen", do_listen, &l->listener);
	call("connect", do_connect, &l->client);
	if (l->client >= 0)
		call("accept", do_accept, l);
	l->dead = l->client < 0 || l->server < 0;
}

/*
 * Returns the state of a TCP socket in @path that has this program's port, or 0 if there is none.
 * Sockets in TIME-WAIT do not count: they use nothing of the module.
 */
static int tcp_state(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned int local, remote, state, found = 0;
	char line[300];

	while (file && !found && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %*[0-9A-F]:%x %*[0-9A-F]:%x %x",
			   &local, &remote, &state) == 3 &&
		    ((int)local == port || (int)remote == port) && state != TCP_TIME_WAIT)
			found = state;
	}
	if (file)
		fclose(file);
	return found;
}

/* Waits until tcp_state() finds no socket; fails after GONE seconds. */
static void wait_gone(void)
{
	double limit = now() + GONE;
	int state;

	at(__FILE__, __LINE__, "gone");
	while ((state = tcp_state("/proc/net/tcp") ?: tcp_state("/proc/net/tcp6"))) {
		if (now() > limit)
			fail("%d s after close() at both ends a TCP connection is in state %d; "
			     "%s, point %d", GONE, state, *sweep.call ? sweep.call : "workers",
			     sweep.nth);
		poll(NULL, 0, 1);
	}
}

/*
 * If the connection is not dead, shuts down the client's stream and receives its end at the
 * server. In any case, closes all sockets and then calls wait_gone().
 */
static void end(struct life *l)
{
	int *const fds[] = { &l->client, &l->server, &l->listener };
	uint8_t byte;
	struct io io = { l->server, &byte, 1 };
	long ret;

	if (!l->dead) {
		call("shutdown", do_shutdown, &l->client);
		ret = call("recv.end", do_recv, &io);
		if (ret > 0)
			fail("bytes after the end");
		if (ret < 0 && errno == EAGAIN)
			fail("workers, point %d: no end of the stream in 20 s", sweep.nth);
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (*fds[i] >= 0)
			call("close", do_close, fds[i]);
	wait_gone();
}

/* The whole life of a connection, with the fault of @sweep, if any, in one of the calls. */
static void run_pass(void)
{
	struct life l;

	alarm(HANG);
	begin(&l);
	if (!l.dead)
		upgrade(&l);
	if (!l.dead) {
		call("getsockopt", do_info, &l.client);
		call("poll", do_poll, &l.client);
		carry(&l, 0, PIECE, "send.rdma", "recv.rdma");
		carry(&l, 1, PIECE, "send.rdma", "recv.rdma");
	}
	end(&l);
	alarm(0);
}

/* ---- sweeping ---- */

static const char *const calls[] = {
	"socket", "setsockopt", "bind", "listen", "connect", "accept", "getsockopt", "poll",
	"send.tcp", "recv.tcp", "send.rdma", "recv.rdma", "shutdown", "recv.end", "close",
};

/* Appends the name of @err to @text, unless it is there. */
static void note_error(char *text, size_t size, int err)
{
	const char *name = strerrorname_np(err);
	size_t used = strlen(text);

	if (!strstr(text, name))
		snprintf(text + used, size - used, " %s", name);
}

/* Runs passes with growing n until the call has no nth point of failure. */
static void sweep_call(const char *name)
{
	char errors[200] = "";
	int failed = 0, nth;

	for (nth = 1; nth < NTH_MAX; nth++) {
		memset(&sweep, 0, sizeof(sweep));
		sweep.call = name;
		sweep.nth = nth;
		run_pass();
		if (!sweep.met)
			fail("%s was not called", name);
		if (!sweep.fired)
			break;
		if (sweep.err) {
			failed++;
			note_error(errors, sizeof(errors), sweep.err);
		}
	}
	if (nth == NTH_MAX)
		fail("%s has at least %d points of failure", name, NTH_MAX - 1);
	ktap_result(true, 0, "%s: %d points, %d made it fail:%s", name, nth - 1, failed, errors);
	fflush(stdout);
}

/* ---- workers ---- */

/* Makes each existing kworker fail at its nth point of failure from now on; 0: at none. */
static void set_workers(int nth)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	char path[300], comm[32];

	while (proc && (entry = readdir(proc))) {
		FILE *file;
		int fd;

		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = atoi(entry->d_name) ? fopen(path, "r") : NULL;
		if (!file)
			continue;
		if (!fgets(comm, sizeof(comm), file))
			comm[0] = 0;
		fclose(file);
		if (strncmp(comm, "kworker", 7))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/fail-nth", entry->d_name);
		fd = open(path, O_RDWR);
		if (fd >= 0) {
			set_nth(fd, nth);
			close(fd);
		}
	}
	if (proc)
		closedir(proc);
}

/*
 * Runs one connection. Failures are injected into the kernel workers until upgrade() has returned,
 * or with @at_end only during end(). Returns false if the connection could not be opened, or was
 * dead before end().
 */
static bool workers_life(int nth, bool at_end)
{
	struct life l;

	sweep.nth = nth;
	set_workers(at_end ? 0 : nth);
	begin(&l);
	if (!l.dead) {
		set_timeout(l.client, SO_RCVTIMEO, 20000);
		set_timeout(l.server, SO_RCVTIMEO, 20000);
		upgrade(&l);
	}
	set_workers(at_end ? nth : 0);
	if (l.dead && l.err == EAGAIN)
		fail("workers, point %d: 20 s of silence", nth);
	end(&l);
	set_workers(0);
	if (repair && system(repair) < 0)
		fail("%s: %s", repair, strerror(errno));
	return !l.dead;
}

/* Injects failures into the kernel workers: no call of the program may then wait for ever. */
static void sweep_workers(int steps, bool at_end)
{
	int dead = 0;

	upgraded = 0;
	for (int i = 0; i < steps; i++)
		dead += !workers_life(1 + i, at_end);
	if (!upgraded)
		fail("workers: not one connection came onto RDMA");
	ktap_result(true, 0, "workers%s: %d points, %d connections on RDMA, %d ended by an error",
		    at_end ? " at the end" : "", steps, upgraded, dead);
	fflush(stdout);
}

/* ---- the program ---- */

static const struct option options[] = {
	{ "address", required_argument, NULL, 'a' },
	{ "port", required_argument, NULL, 'p' },
	{ "seed", required_argument, NULL, 's' },
	{ "only", required_argument, NULL, 'o' },
	{ "workers", required_argument, NULL, 'w' },
	{ "repair", required_argument, NULL, 'r' },
	{ }
};

static void parse_address(const char *text)
{
	if (strchr(text, ':')) {
		address.in6.sin6_family = AF_INET6;
		inet_pton(AF_INET6, text, &address.in6.sin6_addr);
	} else {
		address.in.sin_family = AF_INET;
		inet_pton(AF_INET, text, &address.in.sin_addr);
	}
}

int main(int argc, char **argv)
{
	static struct progress here;
	int name, steps = 0;

	progress = &here;
	run.row = &the_row;
	run.control = -1;
	while ((name = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (name) {
		case 'a': parse_address(optarg); break;
		case 'p': port = atoi(optarg); break;
		case 's': run.seed = strtoull(optarg, NULL, 0); break;
		case 'o': only = optarg; break;
		case 'w': steps = atoi(optarg); break;
		case 'r': repair = optarg; break;
		default: return 2;
		}
	}
	if (!address.sa.sa_family)
		fail("usage: afr_sweep --address A [...]");
	address.in.sin_port = htons(port);	/* at the same offset as sin6_port */
	fail_nth_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	if (fail_nth_fd < 0) {
		ktap_result(true, 0, "sweep # SKIP this kernel has no fault injection");
		return 4;
	}
	on_signal(SIGALRM, 0);
	sweep.call = "";
	run_pass();		/* without a fault: must succeed; loads modules and fills caches */
	for (size_t i = 0; !steps && i < ARRAY_SIZE(calls); i++)
		if (!*only || !strcmp(only, calls[i]))
			sweep_call(calls[i]);
	if (steps) {
		workers = true;
		sweep_workers(WORKERS_END, true);
		sweep_workers(steps, false);
	}
	return 0;
}
