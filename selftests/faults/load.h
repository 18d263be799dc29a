/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* The interfaces between the files of afr_load. */
#ifndef AFR_LOAD_H
#define AFR_LOAD_H

#include "test.h"

#define SLOTS		8192
#define CHUNK_MAX	(64 * KIB)
#define MAGIC		0x6661756cU

/* The first bytes that a client sends; not part of the stream. */
struct header {
	uint32_t magic;
	uint32_t conn;
	uint64_t limit;
};

/*
 * A direction of a connection. Times are those of now(). Only pauses in receiving are reported:
 * start() begins the first one; each byte and the command "mark" end one and begin the next.
 */
struct dir {
	struct flow flow;
	double last;		/* when the current pause began */
	double worst;		/* longest pause since start() or "mark", without the current one */
	bool over;
};

struct conn {
	int fd;
	int threads;		/* with --blocking */
	bool connecting, started;
	bool peer_ended;
	uint32_t events;	/* registered with epoll */
	double begin;
	struct header head;
	size_t head_done;
	size_t greeting_left;	/* client with --greet: bytes of the greeting not yet received */
	struct dir tx, rx;
	/* errno of the first failure; but a later one replaces EPIPE, see failed() */
	int err;
};

#define GREETING	"220 afr_load\r\n"

struct load_options {
	const char *host, *seed;
	int port, conns, user_timeout, buf, backlog;
	int cycles;		/* connections in all; 0: as many as conns */
	int limit;		/* of a client: bytes each way; 0: no limit, see tx_at_end() */
	int rate;		/* KiB per second that a connection may send; 0: no limit */
	int chunk;		/* maximum bytes per call */
	bool tcp, blocking;
	bool half;		/* keep sending after the peer's end of stream */
	bool greet;		/* the server sends GREETING before it receives the header */
};

extern struct load_options opt;
extern struct conn *conns[SLOTS];
/* "end" was read: a client begins no more connections, and connections without --limit end. */
extern bool ending;
extern int begun;		/* connections begun so far */
/*
 * Protects conns, the sums of load_sum.c, and in each connection: threads, err, and once it has
 * started, the offsets and pauses of both directions.
 */
extern pthread_mutex_t lock;

/* ---- statistics (load_sum.c) ---- */

void moved(struct dir *d, size_t len);
void failed(struct conn *c);
void set_mark(void);
void count_scarce(void);
void add_to_sums(struct conn *c);
void report(const char *word);

/* ---- calls (load_call.c) ---- */

size_t allowance(const struct conn *c);
bool tx_at_end(const struct conn *c);
bool push(struct conn *c);
bool pull(struct conn *c);
bool header_step(struct conn *c);
void greet(struct conn *c);

#endif /* AFR_LOAD_H */
