// SPDX-License-Identifier: GPL-2.0
/* Failing, time, randomness and the smallest wrappers. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include "main.h"
#include "proto/reason.h"
#include "test.h"

struct run run;
struct progress *progress;
volatile sig_atomic_t signals_seen;

static __thread uint64_t rnd_state;

static void __attribute__((noreturn)) finish(const char *word, int code)
{
	char line[600];
	int len = snprintf(line, sizeof(line), "%s %s\n", word, progress->text);

	/* The other side may be gone, or not reading: this must not hang. */
	if (run.control >= 0)
		send(run.control, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		len = write(STDOUT_FILENO, line, len);
	_exit(code);
}

void fail_at(const char *file, int line, const char *format, ...)
{
	size_t room = sizeof(progress->text);
	va_list args;
	int len;

	/* The first failure is the cause; what other threads find follows from it. */
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

void skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(progress->text, sizeof(progress->text), format, args);
	va_end(args);
	finish(LINE_SKIP, EXIT_SKIP);
}

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Less than the runner waits, so that the row can say what it waited for. */
double patience(void)
{
	return progress->timeout * 0.8;
}

uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

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

void *buffer(size_t size)
{
	void *p = malloc(size);

	if (!p)
		fail("no memory for %zu bytes", size);
	return p;
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

void on_signal(int number, int flags)
{
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = flags };

	SYS(sigaction(number, &action, NULL));
}

int ask_int(int fd, unsigned long request)
{
	int value = -1;

	SYS(ioctl(fd, request, &value));
	return value;
}

bool old_kernel(void)
{
	struct utsname name;
	int major, minor;

	SYS(uname(&name));
	return sscanf(name.release, "%d.%d", &major, &minor) == 2 && major * 100 + minor < 608;
}

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

int poll_one(int fd, int events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	SYS(poll(&p, 1, ms));
	return p.revents;
}

void await(int fd, int events)
{
	double end = now() + patience();
	int got;

	do {
		got = poll_one(fd, events, 1000);
		if ((got & events) == events)
			return;
	} while (now() < end);
	fail("poll gives %#x, waited for %#x", got, events);
}

pid_t fork_row(void)
{
	pid_t pid = SYS(fork());

	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

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

const char *reason_name(unsigned int reason)
{
	switch (reason) {
#define AFR_REASON(number, name, sentence) case number: return #name;
	AFR_REASONS
#undef AFR_REASON
	}
	return "unknown";
}
