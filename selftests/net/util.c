// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Failed and skipped rows, time, random numbers, and helpers, most of them for system calls. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include <linux/tcp.h>

#include "main.h"
#include "test.h"

struct run run;
const char *const variant_names[VAR_COUNT] = { "tcp", "rdma", "cold", "to_tcp", "from_tcp" };
struct progress *progress;
volatile sig_atomic_t signals_seen;

static __thread uint64_t rnd_state;

/*
 * Sends @word and progress->text on the control channel, or prints them if no control channel is
 * open, and exits with status @code.
 */
static void __attribute__((noreturn)) finish(const char *word, int code)
{
	char line[600];
	int len = snprintf(line, sizeof(line), "%s %s\n", word, progress->text);

	/* The other side may be gone or may not read: do not block. */
	if (run.control >= 0)
		send(run.control, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		len = write(STDOUT_FILENO, line, len);
	_exit(code);
}

/*
 * Stores the first failure of the row in progress->text, for the runner, and calls finish(). Any
 * later failure only ends the calling process. Any thread and any child process of the row may
 * call this function.
 */
void fail_at(const char *file, int line, const char *format, ...)
{
	size_t room = sizeof(progress->text);
	va_list args;
	int len;

	/*
	 * Only the first failure is reported: later ones, in other threads and processes, may
	 * result from it. Wait, since _exit() would end a thread that is still reporting it.
	 */
	if (__atomic_exchange_n(&progress->failing, true, __ATOMIC_SEQ_CST)) {
		poll(NULL, 0, 500);
		_exit(EXIT_FAIL);
	}
	len = snprintf(progress->text, room, "%s:%d: ", file, line);
	va_start(args, format);
	vsnprintf(progress->text + len, room - len, format, args);
	va_end(args);
	finish(LINE_FAIL, EXIT_FAIL);
}

/*
 * Ends the row as skipped. The other side skips the row too if that side reads the control channel
 * within GRACE_SECONDS (main.c). Otherwise the runner of the other side reports a failure. To be
 * called before the row has changed anything that would have to be restored.
 */
void skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(progress->text, sizeof(progress->text), format, args);
	va_end(args);
	finish(LINE_SKIP, EXIT_SKIP);
}

/* Monotonic time in seconds. */
double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/*
 * How many seconds one wait may last: fewer than the runner's timeout, so that the row
 * itself reports what it waited for.
 */
double patience(void)
{
	return progress->timeout * 0.8;
}

/* A 64-bit hash: the finalizer of splitmix64. */
uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* Seeds rnd() of the calling thread from the run's seed, this side and the number @stream. */
void rnd_start(uint64_t stream)
{
	rnd_state = mix(run.seed + 0x51ed2701 * (stream + 1) + run.server);
}

uint64_t rnd(void)
{
	rnd_state += 0x9e3779b97f4a7c15ULL;
	return mix(rnd_state);
}

size_t rnd_between(size_t low, size_t high)
{
	return low + rnd() % (high - low + 1);
}

size_t amount(size_t full, size_t quick)
{
	return run.quick ? quick : full;
}

/* malloc() that does not return NULL. */
void *buffer(size_t size)
{
	void *p = malloc(size);

	if (!p)
		fail("no memory for %zu bytes", size);
	return p;
}

/* Returns TCP_INFO, at least up to tcpi_notsent_bytes. */
struct tcp_info tcp_info_of(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	SYS(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	WANT(len >= offsetof(struct tcp_info, tcpi_notsent_bytes) + sizeof(uint32_t));
	return info;
}

void nonblocking(int fd, bool on)
{
	int flags = SYS(fcntl(fd, F_GETFL));

	SYS(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}

static void count_signal(int number)
{
	(void)number;
	signals_seen++;
}

/* Installs a handler that counts the signal in signals_seen. */
void on_signal(int number, int flags)
{
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = flags };

	SYS(sigaction(number, &action, NULL));
}

/* An ioctl() that fills in an int. */
int ask_int(int fd, unsigned long request)
{
	int value = -1;

	SYS(ioctl(fd, request, &value));
	return value;
}

/*
 * Is the kernel older than 6.8? Such a kernel, for example 6.1, may handle setsockopt(SOL_SOCKET)
 * without calling the module.
 */
bool old_kernel(void)
{
	struct utsname name;
	int major, minor;

	SYS(uname(&name));
	return sscanf(name.release, "%d.%d", &major, &minor) == 2 && major * 100 + minor < 608;
}

/* Sets the timeout @option, SO_RCVTIMEO or SO_SNDTIMEO. */
void set_timeout(int fd, int option, int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	SYS(setsockopt(fd, SOL_SOCKET, option, &tv, sizeof(tv)));
}

void set_linger(int fd, int seconds)
{
	struct linger linger = { .l_onoff = 1, .l_linger = seconds };

	SYS(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
}

void set_int(int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		fail("setsockopt(%d, %d) to %d: %s", level, option, value, strerror(errno));
}

int get_int(int fd, int level, int option)
{
	socklen_t len = sizeof(int);
	int value = -1;

	if (getsockopt(fd, level, option, &value, &len))
		fail("getsockopt(%d, %d): %s", level, option, strerror(errno));
	return value;
}

/* poll() of one descriptor; returns revents, or 0 after @ms. */
int poll_one(int fd, int events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	SYS(poll(&p, 1, ms));
	return p.revents;
}

/* Waits until poll() reports all of @events; fails after patience(). */
void await(int fd, int events)
{
	double end = now() + patience();
	int got;

	do {
		got = poll_one(fd, events, 1000);
		if ((got & events) == events)
			return;
	} while (now() < end);
	fail("poll() returned %#x, expected %#x", got, events);
}

/* fork(); the child is killed when the process of the row ends. */
pid_t fork_row(void)
{
	pid_t pid = SYS(fork());

	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* Waits for a child, which must have exited with 0. */
void join_row(pid_t pid)
{
	int status;

	SYS(waitpid(pid, &status, 0));
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail("child ended with status %#x", status);
}

pthread_t thread_start(void *(*body)(void *), void *arg)
{
	pthread_t thread;
	int err = pthread_create(&thread, NULL, body, arg);

	if (err)
		fail("pthread_create: %s", strerror(err));
	return thread;
}

/* Does thread @tid of this process sleep? */
bool thread_sleeps(pid_t tid)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (!file)
		return false;
	WANT(fscanf(file, "%*d %*s %c", &state) == 1);
	fclose(file);
	return state == 'S';
}

/*
 * Makes this thread, and those that it starts later, run on CPU 0, ahead of all threads that have
 * no real-time priority, such as kworkers.
 */
void take_cpu(void)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	SYS(sched_setaffinity(0, sizeof(first), &first));
	SYS(sched_setscheduler(0, SCHED_FIFO, &(struct sched_param) { .sched_priority = 1 }));
}
