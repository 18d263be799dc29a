/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two-ended socket tests: what a row may use.
 *
 * A row is a pair of functions that run in two processes, one on each host. The
 * runner forks a fresh process for every row and side, so a row owns its file
 * descriptors, signals and memory, and the state of the run may be one global.
 * The two sides meet only at the control channel; nothing waits by sleeping.
 *
 * With --family rdma a row runs once in every variant that its flags allow:
 *	rdma		the connection is first moved to RDMA; then every byte of the
 *			row must go by RDMA
 *	cold		no byte before the row: an upgrade may come in its middle
 *	to_tcp		the server is a plain TCP program
 *	from_tcp	the client is a plain TCP program
 * With --family tcp there is one variant, tcp: the oracle.
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

/* Of the kernel; libc's headers lack them, and cannot be had together with the kernel's. */
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

#define AFR_NETNS_H	/* of netns.h the list of counters alone */
#include "netns.h"

#define KIB		1024UL
#define MIB		(1024UL * 1024UL)
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Row flags. */
#define ON_RDMA		0x01	/* may run after an upgrade */
#define ON_COLD		0x02	/* may run without one */
#define ON_PLAIN	0x04	/* may run against a TCP program, both ways round */
#define ON_ALL		(ON_RDMA | ON_COLD | ON_PLAIN)
#define ONLY_RDMA	0x08	/* says nothing about TCP: not in the oracle run */
#define NEEDS_V6	0x10	/* needs an IPv6 address of the server */
#define QUICK		0x20	/* in the subset "quick", in its first variant */
#define QUICK_ALL	0x40	/* ... in all of its variants */
#define UNFRAMED	0x80	/* has no connection, or one that is to be plain or undecided */

enum variant { VAR_TCP, VAR_RDMA, VAR_COLD, VAR_TO_TCP, VAR_FROM_TCP, VAR_COUNT };

struct row {
	const char *name;
	void (*client)(void);
	void (*server)(void);
	unsigned int flags;
};

/* Tables end with a row without a name. */
extern const struct row connect_rows[], listen_rows[], message_rows[], option_rows[];
extern const struct row stream_rows[], close_rows[], poll_rows[], ring_rows[];
extern const struct row many_rows[], share_rows[], upgrade_rows[], hostile_rows[];
extern const struct row urgent_rows[], own_rows[], told_rows[];
extern const struct row uring_rows[], address_rows[], support_rows[];
extern const struct row seam_rows[];

/* Which row this process runs, and how. */
struct run {
	const struct row *row;
	enum variant variant;
	bool server;
	bool inet6;		/* data connections use IPv6 */
	bool quick;		/* smaller amounts */
	uint64_t seed;
	int control;
	char host[INET6_ADDRSTRLEN];
	char host6[INET6_ADDRSTRLEN];	/* "" = the server has none that we know */
};

extern struct run run;

extern const struct row *const tables[];
extern const char *const variant_names[VAR_COUNT];

/* ---- failing (util.c) ---- */

/*
 * Where the row is, seen by the parent, which ends a row that stands still. The
 * strings are literals of the program both processes were forked from.
 */
struct progress {
	const char *file;
	const char *what;
	int line;
	unsigned long steps;
	unsigned int timeout;	/* seconds a row may stand still */
	bool failing;
	char text[512];		/* why it failed or was skipped */
};

extern struct progress *progress;

static inline void at(const char *file, int line, const char *what)
{
	progress->file = file;
	progress->line = line;
	progress->what = what;
	progress->steps++;
}

/* Tell the other side, then end this one. Any thread, any child of the row. */
void fail_at(const char *file, int line, const char *format, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
/* Both sides end as skipped; only before the row did anything. */
void skip(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#define fail(...) fail_at(__FILE__, __LINE__, __VA_ARGS__)

/* A call that must not return -1. */
#define SYS(call) \
	(at(__FILE__, __LINE__, #call), sys_result(__FILE__, __LINE__, #call, (long)(call)))

static inline long sys_result(const char *file, int line, const char *what, long ret)
{
	if (ret == -1)
		fail_at(file, line, "%s: %s", what, strerror(errno));
	return ret;
}

/* A call that must return -1 and leave @number in errno. */
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

/* Look again, a millisecond apart, until it is so; the run's timeout bounds it. */
#define EVENTUALLY(cond) do {						\
	at(__FILE__, __LINE__, #cond);					\
	double eventually_end = now() + patience();			\
	while (!(cond)) {						\
		if (now() > eventually_end)				\
			fail("did not become true: %s", #cond);		\
		poll(NULL, 0, 1);					\
	}								\
} while (0)

/* ---- small things (util.c) ---- */

double now(void);			/* seconds, monotonic */
double patience(void);			/* seconds one wait may last */
uint64_t mix(uint64_t x);		/* 64-bit finaliser */
uint64_t rnd(void);			/* per thread, from the seed */
size_t rnd_between(size_t low, size_t high);
void rnd_start(uint64_t stream);	/* a thread or child takes its own sequence */
size_t amount(size_t full, size_t quick);
void *buffer(size_t size);		/* malloc that does not fail */
void nonblocking(int fd, bool on);
void on_signal(int number, int flags);	/* count it in signals_seen */
extern volatile sig_atomic_t signals_seen;
int ask_int(int fd, unsigned long request);	/* ioctl that fills an int */
bool old_kernel(void);			/* does it keep SOL_SOCKET to itself? */
void set_timeout(int fd, int option, int ms);	/* SO_RCVTIMEO, SO_SNDTIMEO */
void set_linger(int fd, int seconds);
void set_int(int fd, int level, int option, int value);
int get_int(int fd, int level, int option);
/* poll() one descriptor; returns revents, 0 after @ms. */
int poll_one(int fd, int events, int ms);
/* poll() that must see all of @events within the timeout of the run. */
void await(int fd, int events);
pid_t fork_row(void);			/* fork; the child dies with the row */
void join_row(pid_t pid);		/* wait; the child must have exited with 0 */
pthread_t thread_start(void *(*body)(void *), void *arg);
/* Of an enum afr_reason, as smctl names it. */
const char *reason_name(unsigned int reason);

/* ---- control channel (control.c) ---- */

void control_writef(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Next line; fails when the other side failed or went away. */
void control_readline(char *line, size_t size);
void control_send_number(const char *name, long long number);
long long control_get_number(const char *name);
/* Both sides got here. */
void barrier(const char *name);
int control_listen(int port);
int control_accept(int listener, double seconds);	/* -1: nobody came */
int control_connect(const char *host, int port, double seconds);	/* -1: nobody there */

/* ---- addresses and sockets (socket.c) ---- */

union addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage ss;
};

/* Does this side use AF_RDMA in this variant? Does either? */
bool speaks_rdma(void);
bool row_has_rdma(void);
/* A stream socket of this side's family; @flags: SOCK_NONBLOCK, SOCK_CLOEXEC. */
int new_socket(int flags);
int new_socket_of(bool rdma, bool inet6, int flags);
socklen_t addr_len(void);
socklen_t addr_any(union addr *addr, int port);
socklen_t addr_loopback(union addr *addr, int port);
/* Where the server is. Client only. */
socklen_t addr_server(union addr *addr, int port);
int addr_port(const union addr *addr);
int local_port(int fd);
void addr_text(const union addr *addr, char *text, size_t size);

/* Bound to any address and a free port, listening; the port goes to the client. */
int open_listener(int backlog);
/* Client: port from open_listener(). */
int server_port(void);
int connect_port(int port);

struct sizes {
	int sndbuf, rcvbuf;	/* 0: leave alone */
};

/*
 * The usual beginning of a row: one connection, in variant rdma already moved to
 * RDMA in both directions.
 */
int open_conn(void);
int open_conn_sized(const struct sizes *sizes);
/* The same in parts, for rows with many connections. */
int open_listener_sized(int backlog, const struct sizes *sizes);
int accept_conn(int listener);
int connect_conn(int port);
int connect_conn_sized(int port, const struct sizes *sizes);
int connect_sized(int port, const struct sizes *sizes);
void apply_sizes(int fd, const struct sizes *sizes);

/* ---- where the bytes went (path.c) ---- */

struct afrdma_info path_info(int fd);
/* Both directions, of a connection that is framed or may become so. */
bool path_on_rdma(int fd);
/* Exchange messages until both directions are on RDMA. Both sides call it. */
void path_warm_up(int fd);
/*
 * Both sides, connection still up, all bytes read: @tx and @rx bytes of the row
 * went where the variant says they must.
 */
void path_check(int fd, uint64_t tx, uint64_t rx);
/* A connection that the row made itself: onto RDMA if that is the variant, @len bytes each way. */
void path_exchange(int fd, size_t len);
/* The same without meeting the other side, which is known to have read all. */
void path_check_alone(int fd, uint64_t tx, uint64_t rx);
/* A number in /proc/sys/net/afrdma, -1 if there is none. */
long path_sysctl(const char *name);
void path_set_sysctl(const char *name, long value);
const char *path_mode_name(unsigned int mode);

/* ---- the module's counters (stats.c) ---- */

enum afr_stat {
#define AFR_STAT(name, sentence) STAT_##name,
	AFR_STATS
#undef AFR_STAT
	STAT_COUNT
};

/* All of this network namespace; false, and zeroes, where there is no module. */
bool stats_read(uint64_t *values);
/* How many connections a dump tells of, or -1. */
int conns_count(void);

/* ---- position-coded streams (flow.c) ---- */

/* One direction of one connection: which bytes come, and how far we are. */
struct flow {
	uint64_t key;
	uint64_t off;
	unsigned int conn;
	bool from_server;
};

struct flow flow_out(unsigned int conn);	/* what this side sends */
struct flow flow_in(unsigned int conn);		/* what this side receives */
void flow_fill(struct flow *flow, void *to, size_t len);
/* Bytes at the current offset, without advancing. */
void flow_look(const struct flow *flow, const void *from, size_t len);
void flow_check(struct flow *flow, const void *from, size_t len);

/* Exactly @len bytes, one call each time as long as possible up to @chunk. */
void flow_send(int fd, struct flow *flow, size_t len, size_t chunk);
void flow_recv(int fd, struct flow *flow, size_t len, size_t chunk);
/* The same with call sizes between 1 and @chunk. */
void flow_send_random(int fd, struct flow *flow, size_t len, size_t chunk);
void flow_recv_random(int fd, struct flow *flow, size_t len, size_t chunk);
/* Read to the end of the stream; returns the bytes read. */
uint64_t flow_recv_to_eof(int fd, struct flow *flow);
/* Read to the end or an error; returns errno or 0 for an orderly end. */
int flow_recv_to_end(int fd, struct flow *flow);
/* Fill until the call would block; returns the bytes sent. @fd is nonblocking. */
uint64_t flow_send_full(int fd, struct flow *flow, size_t chunk);
/* ... until nothing moves any more, as the peer does not read. Returns @flow->off. */
uint64_t flow_fill_up(int fd, struct flow *flow);
void want_eof(int fd);

#endif /* AFR_NET_TEST_H */
