// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* The victim: a program on an AF_RDMA or TCP socket, which reports how its connection ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rogue.h"

/* Byte @i of the stream that a victim sends. */
u8 victim_byte(size_t i)
{
	return (i * 167 + (i >> 8) * 29 + 11) & 0xff;
}

/* Byte @i of the stream that rogue sends. Byte 0 differs from the first byte of every HELLO. */
u8 rogue_byte(size_t i)
{
	return (i * 131 + (i >> 8) * 17 + 'r') & 0xff;
}

/* Sets SO_OOBINLINE: if rogue sends URGENT, the victim must still read all bytes of the stream. */
static int open_socket(const struct tun *tun, bool rdma)
{
	int fd, one = 1;

	if (rdma)
		fd = socket(AF_RDMA, SOCK_STREAM, tun->v6 ? AFRDMA_PROTO_INET6 : 0);
	else
		fd = socket(tun->v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &one, sizeof(one))) {
		perror("victim: socket");
		_exit(1);
	}
	return fd;
}

static socklen_t set_port(union tun_addr *addr, const struct tun *tun, u16 port)
{
	if (tun->v6) {
		addr->in6.sin6_port = htons(port);
		return sizeof(addr->in6);
	}
	addr->in.sin_port = htons(port);
	return sizeof(addr->in);
}

/* Begins to connect @fd, and calls shutdown(SHUT_WR) in SYN-RECEIVED. Returns -1 on an error. */
static int connect_crossing(int fd, const union tun_addr *addr, socklen_t len)
{
	double end = now() + rogue.patience;
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);

	if (fcntl(fd, F_SETFL, O_NONBLOCK) || !connect(fd, &addr->sa, len) || errno != EINPROGRESS)
		return -1;
	while (info.tcpi_state != TCP_SYN_RECV && now() < end) {
		poll(NULL, 0, 1);
		if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size))
			return -1;
	}
	if (info.tcpi_state != TCP_SYN_RECV)
		errno = ETIMEDOUT;
	else if (!shutdown(fd, SHUT_WR) && !fcntl(fd, F_SETFL, 0))
		return fd;
	return -1;
}

/*
 * After the SYN-ACK, which carries the answer to the offer of AF_RDMA, ends the listening by
 * connect(AF_UNSPEC), denies RDMA and listens again.
 */
static void listen_again(int listener, const struct victim_plan *plan, struct victim_report *r)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int never = AFRDMA_RDMA_NEVER;

	while (!__atomic_load_n(&r->listen_now, __ATOMIC_ACQUIRE))
		poll(NULL, 0, 1);
	if (connect(listener, &none, sizeof(none)) ||
	    (plan->rdma && setsockopt(listener, SOL_AFRDMA, AFRDMA_RDMA, &never, sizeof(never))) ||
	    listen(listener, 16))
		_exit(1);
	__atomic_store_n(&r->listens_again, 1, __ATOMIC_RELEASE);
}

/* Accepts from @listener, or connects to rogue, as @plan says. Returns -1 on an error. */
static int open_conn(const struct tun *tun, const struct victim_plan *plan, int listener,
		     struct victim_report *r)
{
	union tun_addr addr = tun->own;
	socklen_t len = set_port(&addr, tun, plan->port);
	int fd;

	if (plan->relistens)
		listen_again(listener, plan, r);
	if (plan->listens)
		return accept(listener, NULL, NULL);
	fd = open_socket(tun, plan->rdma);
	if (plan->crosses)
		return connect_crossing(fd, &addr, len);
	return connect(fd, &addr.sa, len) ? -1 : fd;
}

/* Opens the victim's listener before fork(), so that rogue cannot connect too early. */
static int open_listener(const struct tun *tun, const struct victim_plan *plan)
{
	union tun_addr addr = tun->kernel;
	socklen_t len = set_port(&addr, tun, plan->port);
	int fd = open_socket(tun, plan->rdma), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &addr.sa, len) || listen(fd, 16)) {
		perror("victim: listen");
		_exit(1);
	}
	return fd;
}

#define LINGER_SECONDS	20
#define PAGE	4096

struct sender {
	int fd;
	int err;
	u8 *buf;
	unsigned int sends;
	bool urgent;
	/*
	 * set for accepted sockets: send_stream() calls send() with MSG_DONTWAIT for each of the
	 * first FIRST bytes. With @urgent, the first send() is for 50 bytes, and also has MSG_OOB.
	 */
	bool at_once;
};

/*
 * Sends the victim's stream, up to the first error. Runs in a thread of its own, unless the victim
 * lingers or closes without reading.
 */
static void *send_stream(void *arg)
{
	struct sender *s = arg;
	unsigned int done = 0;
	ssize_t ret = 0;

	while (done < s->sends && ret >= 0) {
		unsigned int len = s->sends - done;
		int flags = MSG_NOSIGNAL;

		if (s->at_once && done < FIRST) {
			flags |= MSG_DONTWAIT;
			len = 1;
		}
		if (s->urgent && !done) {
			flags |= MSG_OOB;
			len = 50;
		}
		ret = send(s->fd, s->buf + done, len, flags);
		done += ret > 0 ? ret : 0;
	}
	if (ret < 0)
		s->err = errno;
	return NULL;
}

static u8 *stream_bytes(unsigned int from, unsigned int len)
{
	u8 *buf = malloc(len);

	for (unsigned int i = 0; i < len; i++)
		buf[i] = victim_byte(from + i);
	return buf;
}

/*
 * Returns a buffer with the first FIRST bytes of the stream; the bytes behind them belong to a
 * page that is missing until end_stall(). Returns NULL if the kernel has no userfaultfd; kernels
 * built with lab/uml.config have none.
 */
static u8 *stalling_buffer(int *uffd)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	u8 *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (*uffd < 0)
		return NULL;
	reg.range.start = (unsigned long)pages + PAGE;
	reg.range.len = PAGE;
	if (ioctl(*uffd, UFFDIO_API, &api) || ioctl(*uffd, UFFDIO_REGISTER, &reg))
		_exit(1);
	for (unsigned int i = 0; i < FIRST; i++)
		pages[PAGE - FIRST + i] = victim_byte(i);
	return pages + PAGE - FIRST;
}

/* Fills the missing page of stalling_buffer() with the victim's stream from offset FIRST on. */
static void end_stall(int uffd, u8 *buf)
{
	struct uffdio_copy copy = {
		.dst = (unsigned long)buf + FIRST, .len = PAGE,
		.src = (unsigned long)stream_bytes(FIRST, PAGE),
	};

	if (ioctl(uffd, UFFDIO_COPY, &copy))
		_exit(1);
}

/*
 * Called after recv() has reported an error. Calls poll(), which must not store the error again,
 * and returns the error that SO_ERROR then reports; 0 if none.
 */
static int error_again(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	socklen_t len = sizeof(int);
	int err = 0;

	poll(&pfd, 1, 0);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		_exit(1);
	return err;
}

/* Reads to the end of the stream or an error; fills in the bytes, errors and end time of @r. */
static void read_stream(int fd, struct victim_report *r)
{
	ssize_t got;

	do {
		got = recv(fd, r->heard + r->heard_len, HEAR_MAX - r->heard_len, 0);
		if (got > 0)
			r->heard_len += got;
	} while (got > 0);
	r->err = got < 0 ? errno : 0;
	r->ended = now();
	r->err_again = got < 0 ? error_again(fd) : 0;
}

static void get_info(int fd, struct victim_report *r)
{
	struct afrdma_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_AFRDMA, AFRDMA_INFO, &info, &len))
		return;
	r->mode = info.mode;
	r->reason = info.reason;
}

/*
 * Waits for the sending thread. If the thread does not end in time, for example because the peer's
 * window stays closed, makes its send() fail by shutdown().
 */
static void join_sender(const struct sender *sender, pthread_t thread)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += rogue.patience > 4 ? rogue.patience / 2 : 1;
	if (!pthread_timedjoin_np(thread, NULL, &end))
		return;
	shutdown(sender->fd, SHUT_RDWR);
	pthread_join(thread, NULL);
}

/* Called after send_stream(): closes the socket with SO_LINGER, and fills in @r. */
static void close_lingering(const struct sender *sender, struct victim_report *r)
{
	struct linger linger = { .l_onoff = 1, .l_linger = LINGER_SECONDS };

	if (setsockopt(sender->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)))
		_exit(1);
	__atomic_store_n(&r->state, VICTIM_CLOSING, __ATOMIC_RELEASE);
	close(sender->fd);
	r->ended = now();
	r->err = sender->err;
}

/* While no byte of the peer has come, recv(MSG_OOB) fails, as with TCP; it does not wait. */
static bool oob_fails_at_once(int fd)
{
	double start = now();
	char byte;

	return recv(fd, &byte, 1, MSG_OOB) < 0 && errno == EINVAL && now() - start < 0.5;
}

/*
 * Sets SO_RCVLOWAT to more bytes than HELLO or a small frame has, and calls bind(), which fails.
 * On Linux 6.1, bind() first copies SOL_SOCKET options to the TCP socket, but must not copy
 * SO_RCVLOWAT before HELLO has come.
 */
static bool set_lowat(int fd)
{
	union tun_addr addr = rogue.tun.kernel;
	int lowat = 8192;

	return !setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof(lowat)) &&
	       bind(fd, &addr.sa, sizeof(addr)) && errno == EINVAL;
}

/*
 * The victim's process: connects or accepts; reads to the end of the stream or an error, and sends
 * meanwhile; fills in @r, and closes. With plan->lingers or plan->closes, it sends and then closes
 * without reading.
 */
static void run_victim(const struct tun *tun, const struct victim_plan *plan, int listener,
		       struct victim_report *r)
{
	struct sender sender = { .sends = plan->sends, .urgent = plan->urgent,
				 .at_once = plan->listens };
	struct timeval timeout = { .tv_usec = 400000 };
	pthread_t thread;
	int uffd = -1;

	if (plan->stalls)
		sender.buf = stalling_buffer(&uffd);
	r->stalled = sender.buf;
	if (!sender.buf)
		sender.buf = stream_bytes(0, plan->sends);
	sender.fd = open_conn(tun, plan, listener, r);
	if (sender.fd < 0) {
		r->err = errno;
		r->ended = now();
		return;
	}
	if (plan->times_out &&
	    setsockopt(sender.fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)))
		_exit(1);
	if (plan->oob_early && !oob_fails_at_once(sender.fd))
		_exit(1);
	if (plan->lowat && !set_lowat(sender.fd))
		_exit(1);
	__atomic_store_n(&r->state, VICTIM_CONNECTED, __ATOMIC_RELEASE);
	if (plan->lingers) {
		send_stream(&sender);
		close_lingering(&sender, r);
		return;
	}
	if (plan->closes) {
		send_stream(&sender);
		close(sender.fd);
		return;
	}
	if (plan->sends && pthread_create(&thread, NULL, send_stream, &sender))
		_exit(1);
	while (plan->sleepy && !__atomic_load_n(&r->read_now, __ATOMIC_ACQUIRE))
		poll(NULL, 0, 1);
	if (r->stalled)
		end_stall(uffd, sender.buf);
	read_stream(sender.fd, r);
	get_info(sender.fd, r);
	if (plan->sends)
		join_sender(&sender, thread);
	/* A socket reports an error only once; the sending thread may have received it. */
	if (!r->err && sender.err && sender.err != EPIPE)
		r->err = sender.err;
	close(sender.fd);
}

/* Starts a victim. If it is to listen, its listener is open when this function returns. */
void victim_start(struct victim *victim, const struct tun *tun, const struct victim_plan *plan)
{
	int listener = plan->listens ? open_listener(tun, plan) : -1;
	pid_t parent = getpid();

	victim->report = mmap(NULL, sizeof(*victim->report), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fflush(stdout);
	victim->pid = fork();
	if (!victim->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		close(tun->fd);
		run_victim(tun, plan, listener, victim->report);
		__atomic_store_n(&victim->report->state, VICTIM_ENDED, __ATOMIC_RELEASE);
		_exit(0);
	}
	if (listener >= 0)
		close(listener);
}

/*
 * Returns a value of enum victim_state. The caller then sees everything that the victim stored
 * before it stored this value.
 */
int victim_state(const struct victim *victim)
{
	return __atomic_load_n(&victim->report->state, __ATOMIC_ACQUIRE);
}

/* Waits for the victim's process to exit. Returns false if it had to be killed after @seconds. */
bool victim_join(struct victim *victim, double seconds)
{
	double end = now() + seconds;
	bool whole = true;

	while (waitpid(victim->pid, NULL, WNOHANG) == 0) {
		if (now() > end && whole) {
			whole = false;
			kill(victim->pid, SIGKILL);
			end = now() + 30;
		} else if (now() > end) {
			printf("Bail out! a victim cannot be killed\n");
			exit(1);
		}
		poll(NULL, 0, 1);
	}
	return whole;
}
