/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Two-ended socket tests: the interface that rows use.
 *
 * A row is a pair of functions that run in two processes, the client and the server,
 * on two hosts or on one. On each side the runner forks a new process for each row, so
 * a row owns its file descriptors, signals and memory, and the state of the run is one
 * global variable. The two sides synchronize through the control channel. Some rows also
 * sleep, for example so that a call has time to block or a move has time to begin.
 *
 * With --family rdma a row can run in the variants that its flags allow:
 *	rdma		open_conn() moves the connection to RDMA; path_check() fails
 *			unless RDMA has carried every byte since then
 *	cold		open_conn() leaves the connection on TCP, so an upgrade may
 *			happen in the middle of the row
 *	to_tcp		the server uses TCP sockets
 *	from_tcp	the client uses TCP sockets
 * With --family tcp both sides use TCP sockets, and there is one variant, tcp. It is
 * the oracle: a row that fails there expects more than TCP provides.
 */
#ifndef AFR_NET_TEST_H
#define AFR_NET_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <linux/af_rdma.h>

/* libc may lack these, and kernel headers that define them may conflict with libc's headers. */
#ifndef SO_ORIGINAL_DST
#define SO_ORIGINAL_DST		80
#endif
#ifndef IP6T_SO_ORIGINAL_DST
#define IP6T_SO_ORIGINAL_DST	80
#endif
#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE	51
#endif
#ifndef TCP_FASTOPEN_NO_COOKIE
#define TCP_FASTOPEN_NO_COOKIE	34
#endif

#define AFR_NETNS_H	/* skips all of netns.h but the counters, which precede its guard */
#include "netns.h"

#define KIB		1024UL
#define MIB		(1024UL * 1024UL)
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Row flags. */
#define ON_RDMA		0x01	/* runs in variant rdma */
#define ON_COLD		0x02	/* runs in variant cold */
#define ON_PLAIN	0x04	/* runs in variants to_tcp and from_tcp */
#define ON_ALL		(ON_RDMA | ON_COLD | ON_PLAIN)
#define ONLY_RDMA	0x08	/* does not apply to TCP: not in variant tcp */
#define NEEDS_V6	0x10	/* needs an IPv6 address of the server */
#define QUICK		0x20	/* belongs to the subset "quick", with its first variant only */
#define QUICK_ALL	0x40	/* belongs to the subset "quick", with all of its variants */
#define UNFRAMED	0x80	/* its connections need not be framed; it may open none */

enum variant { VAR_TCP, VAR_RDMA, VAR_COLD, VAR_TO_TCP, VAR_FROM_TCP, VAR_COUNT };

struct row {
	const char *name;
	void (*client)(void);
	void (*server)(void);
	unsigned int flags;
};

#define BOTH(name, first, second, flags)		\
	{ name, first, second, flags },			\
	{ name "_back", second, first, (flags) & ~(QUICK | QUICK_ALL) }

/* The last row of a table has no name. */
extern const struct row connect_rows[], listen_rows[], message_rows[], option_rows[];
extern const struct row stream_rows[], close_rows[], poll_rows[], ring_rows[];
extern const struct row many_rows[], share_rows[], upgrade_rows[], hostile_rows[];
extern const struct row urgent_rows[], sol_afrdma_rows[], info_rows[];
extern const struct row uring_rows[], address_rows[], support_rows[];
extern const struct row tcp_socket_rows[], policy_rows[], misuse_rows[], flags_rows[], reset_rows[];
extern const struct row again_rows[], tclass_rows[];

/* The row that this process runs, and its parameters. */
struct run {
	const struct row *row;
	const struct row *const *tables;	/* NULL-terminated list of all tables */
	enum variant variant;
	bool server;
	bool inet6;		/* data connections use IPv6 */
	bool quick;		/* --quick: only quick rows; amount() returns the smaller amount */
	uint64_t seed;
	int control;
	char host[INET6_ADDRSTRLEN];
	char host6[INET6_ADDRSTRLEN];	/* "" if no IPv6 address of the server is known */
};

extern struct run run;

extern const char *const variant_names[VAR_COUNT];

/* ---- failures (util.c) ---- */

/*
 * The progress of a row, in memory shared with the runner, which kills a row that stalls. @file
 * and @what point to literals, which are valid in both processes, because the row's process is
 * forked from the runner.
 */
struct progress {
	const char *file;
	const char *what;
	int line;
	unsigned long steps;
	/* seconds without progress after which the runner kills the row; on the server 3 more */
	unsigned int timeout;
	bool failing;
	char text[512];		/* why the row failed or was skipped */
};

extern struct progress *progress;

static inline void at(const char *file, int line, const char *what)
{
	progress->file = file;
	progress->line = line;
	progress->what = what;
	progress->steps++;
}

void fail_at(const char *file, int line, const char *format, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
void skip(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#define fail(...) fail_at(__FILE__, __LINE__, __VA_ARGS__)

/* Evaluates @call, which must not return -1, and yields its result. */
#define SYS(call) \
	(at(__FILE__, __LINE__, #call), sys_result(__FILE__, __LINE__, #call, (long)(call)))

static inline long sys_result(const char *file, int line, const char *what, long ret)
{
	if (ret == -1)
		fail_at(file, line, "%s: %s", what, strerror(errno));
	return ret;
}

/* Evaluates @call, which must return -1 and leave @number in errno. */
#define SYS_ERRNO(call, number) do {					\
	at(__FILE__, __LINE__, #call);					\
	long sys_ret = (long)(call);					\
	int sys_errno = errno;						\
	if (sys_ret != -1)						\
		fail("%s: returned %ld, expected %s", #call, sys_ret,	\
		     strerror(number));					\
	if (sys_errno != (number))					\
		fail("%s: %s, expected %s", #call,			\
		     strerror(sys_errno), strerror(number));		\
} while (0)

#define WANT(cond) do {							\
	at(__FILE__, __LINE__, #cond);					\
	if (!(cond))							\
		fail("not true: %s", #cond);				\
} while (0)

#define WANT_EQ(got, want) do {						\
	at(__FILE__, __LINE__, #got);					\
	long long want_got = (long long)(got);				\
	long long want_want = (long long)(want);			\
	if (want_got != want_want)					\
		fail("%s is %lld, expected %lld", #got, want_got, want_want); \
} while (0)

/* Checks @cond every millisecond until it is true; fails after patience(). */
#define EVENTUALLY(cond) do {						\
	at(__FILE__, __LINE__, #cond);					\
	double eventually_end = now() + patience();			\
	while (!(cond)) {						\
		if (now() > eventually_end)				\
			fail("did not become true: %s", #cond);		\
		poll(NULL, 0, 1);					\
	}								\
} while (0)

/* ---- helpers (util.c) ---- */

double now(void);
double patience(void);
uint64_t mix(uint64_t x);
uint64_t rnd(void);
size_t rnd_between(size_t low, size_t high);
void rnd_start(uint64_t stream);
size_t amount(size_t full, size_t quick);
void *buffer(size_t size);
struct tcp_info tcp_info_of(int fd);	/* for files that include linux/tcp.h */
void nonblocking(int fd, bool on);
void on_signal(int number, int flags);
extern volatile sig_atomic_t signals_seen;	/* incremented by on_signal()'s handler */
int ask_int(int fd, unsigned long request);
bool old_kernel(void);
void set_timeout(int fd, int option, int ms);
void set_linger(int fd, int seconds);
void set_int(int fd, int level, int option, int value);
int get_int(int fd, int level, int option);
int poll_one(int fd, int events, int ms);
void await(int fd, int events);
pid_t fork_row(void);
void join_row(pid_t pid);
pthread_t thread_start(void *(*body)(void *), void *arg);
bool thread_sleeps(pid_t tid);
void take_cpu(void);

/* ---- control channel (control.c) ---- */

void control_writef(const char *format, ...) __attribute__((format(printf, 1, 2)));
void control_readline(char *line, size_t size);
void control_send_number(const char *name, long long number);
long long control_get_number(const char *name);
void barrier(const char *name);
int control_listen(int port);
int control_accept(int listener, double seconds);
int control_connect(const char *host, int port, double seconds);

/* ---- addresses and sockets (socket.c), connections (conn.c) ---- */

union addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage ss;
};

bool speaks_rdma(void);
bool row_has_rdma(void);
int new_socket(int flags);
int new_socket_of(bool rdma, bool inet6, int flags);
socklen_t addr_len(void);
socklen_t addr_any(union addr *addr, int port);
socklen_t addr_loopback(union addr *addr, int port);
socklen_t addr_server(union addr *addr, int port);
int addr_port(const union addr *addr);
int local_port(int fd);
void addr_text(const union addr *addr, char *text, size_t size);

int open_listener(int backlog);
void fall_back_once(int fd);
int server_port(void);
int connect_port(int port);

struct sizes {
	int sndbuf, rcvbuf;	/* 0: default */
};

int open_tcp_conn(void);
int open_conn(void);
int open_conn_sized(const struct sizes *sizes);
int open_listener_sized(int backlog, const struct sizes *sizes);
int accept_conn(int listener);
int connect_conn(int port);
int connect_conn_sized(int port, const struct sizes *sizes);
int connect_sized(int port, const struct sizes *sizes);
void apply_sizes(int fd, const struct sizes *sizes);

/* ---- the path of the bytes: TCP or RDMA; settings of the module (path.c) ---- */

struct afrdma_info path_info(int fd);
bool path_on_rdma(int fd);
void path_warm_up(int fd);
void path_check(int fd, uint64_t tx, uint64_t rx);
void path_exchange(int fd, size_t len);
void path_check_alone(int fd, uint64_t tx, uint64_t rx);
void path_await_decided(int fd);
long path_sysctl(const char *name);
void path_set_sysctl(const char *name, long value);
const char *path_mode_name(unsigned int mode);

/* ---- counters and connections of the module (stats.c) ---- */

enum afr_stat {
#define AFR_STAT(name, sentence) STAT_##name,
	AFR_STATS
#undef AFR_STAT
	STAT_COUNT
};

bool stats_read(uint64_t *values);
int conns_count(void);

/* ---- position-coded streams (flow.c) ---- */

/* The stream of one direction of a connection, and an offset in it. */
struct flow {
	uint64_t key;		/* determines every byte of the stream */
	uint64_t off;
	unsigned int conn;
	bool from_server;
};

struct flow flow_out(unsigned int conn);
struct flow flow_in(unsigned int conn);
void flow_fill(struct flow *flow, void *to, size_t len);
void flow_look(const struct flow *flow, const void *from, size_t len);
void flow_check(struct flow *flow, const void *from, size_t len);

void flow_send(int fd, struct flow *flow, size_t len, size_t chunk);
void flow_recv(int fd, struct flow *flow, size_t len, size_t chunk);
void flow_send_random(int fd, struct flow *flow, size_t len, size_t chunk);
void flow_recv_random(int fd, struct flow *flow, size_t len, size_t chunk);
uint64_t flow_recv_to_eof(int fd, struct flow *flow);
int flow_recv_to_end(int fd, struct flow *flow);
uint64_t flow_send_full(int fd, struct flow *flow, size_t chunk);
uint64_t flow_fill_up(int fd, struct flow *flow);
void want_eof(int fd);

#endif /* AFR_NET_TEST_H */
