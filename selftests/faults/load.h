/* SPDX-License-Identifier: GPL-2.0 */
/* Between the parts of afr_load. */
#ifndef AFR_LOAD_H
#define AFR_LOAD_H

#include "test.h"

#define SLOTS		8192
#define CHUNK_MAX	(64 * KIB)
#define MAGIC		0x6661756cU

/* The first bytes of a connection, from the client; not part of the stream. */
struct header {
	uint32_t magic;
	uint32_t conn;
	uint64_t limit;
};

/* One direction. Times are of now(). */
struct dir {
	struct flow flow;
	double last;		/* when a byte came last */
	double worst;		/* longest pause since the mark */
	bool over;
};

struct conn {
	int fd;
	int threads;		/* of a blocking connection */
	bool connecting, started;
	bool peer_ended;
	uint32_t events;	/* as epoll knows them */
	double begin;
	struct header head;
	size_t head_done;
	struct dir tx, rx;
	int err;		/* first error of a call */
};

struct load_options {
	const char *host, *seed;
	int port, conns, user_timeout, buf, backlog;
	int cycles;		/* connections one after the other, 0: only the first ones */
	int limit;		/* bytes each way, 0: until told */
	int rate;		/* KiB a second, each way and connection; 0: no limit */
	int chunk;		/* most bytes of a call */
	bool tcp, blocking;
	bool half;		/* go on after the peer's end */
};

extern struct load_options opt;
extern struct conn *conns[SLOTS];
extern bool ending;		/* told to end: no new bytes, no new connections */
extern int begun;		/* connections, ever */
/* Over what other threads see: conns, the ends and accounts of each, and sums. */
extern pthread_mutex_t lock;

/* ---- accounts (load_sum.c) ---- */

void moved(struct dir *d, size_t len);		/* so many bytes have passed */
void failed(struct conn *c);			/* by errno: both directions are over */
void set_mark(void);
void count_scarce(void);
void add_to_sums(struct conn *c);		/* it is over */
void report(const char *word);

/* ---- calls (load_call.c) ---- */

size_t allowance(const struct conn *c);		/* bytes that may be sent now */
bool tx_at_end(const struct conn *c);
/* One send(), one recv(); false: it would block, there is nothing to do, or it is over. */
bool push(struct conn *c);
bool pull(struct conn *c);
bool header_step(struct conn *c);		/* true when the header has passed */

#endif /* AFR_LOAD_H */
