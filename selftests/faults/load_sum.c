// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* The variables of load.h; the statistics of afr_load, and the lines that report them. */
#define _GNU_SOURCE
#include "load.h"
#include "proto/reason.h"

#define ERRNO_MAX	200

struct load_options opt = { .seed = "0", .conns = 1, .chunk = CHUNK_MAX, .backlog = 1024 };
struct conn *conns[SLOTS];
bool ending;
int begun;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Sums over connections that have ended; @stall is their longest pause since "mark". @errors and
 * @error_at, the time of the last error, change as soon as a connection fails. @scarce counts
 * calls of socket() and accept() that lacked a resource.
 */
static struct {
	long clean, failed, scarce, errors[ERRNO_MAX];
	uint64_t tx, rx;
	double stall, error_at;
} sum;

static double mark;	/* time of the last command "mark" */

/* Bytes have moved at time @t: updates the longest pause of the direction. */
static void pause_ends(struct dir *d, double t)
{
	if (t - d->last > d->worst)
		d->worst = t - d->last;
	d->last = t;
}

/* A call has sent or received @len bytes. */
void moved(struct dir *d, size_t len)
{
	pthread_mutex_lock(&lock);
	d->flow.off += len;
	pause_ends(d, now());
	pthread_mutex_unlock(&lock);
}

/* The counter of errno @err; all values from ERRNO_MAX on share errors[0]. */
static long *error_count(int err)
{
	return &sum.errors[err < ERRNO_MAX ? err : 0];
}

/*
 * The connection failed with errno: ends both directions, and counts the connection's first error.
 * With --blocking, a socket reports its error to only one of the two threads, and the other one
 * may call failed() first, with EPIPE. So any later error replaces EPIPE.
 */
void failed(struct conn *c)
{
	int err = errno;

	pthread_mutex_lock(&lock);
	if (c->err == EPIPE && err != EPIPE) {
		--*error_count(EPIPE);
		c->err = 0;
	}
	if (!c->err) {
		c->err = err;
		++*error_count(err);
		sum.error_at = now();
	}
	c->tx.over = true;
	c->rx.over = true;
	pthread_mutex_unlock(&lock);
}

/* The command "mark": forgets all pauses until now. */
void set_mark(void)
{
	pthread_mutex_lock(&lock);
	mark = now();
	sum.stall = 0;
	for (int i = 0; i < SLOTS; i++)
		if (conns[i]) {
			conns[i]->rx.last = mark;
			conns[i]->rx.worst = 0;
		}
	pthread_mutex_unlock(&lock);
}

void count_scarce(void)
{
	pthread_mutex_lock(&lock);
	sum.scarce++;
	pthread_mutex_unlock(&lock);
}

/* A connection has ended: adds it to the sums. */
void add_to_sums(struct conn *c)
{
	pthread_mutex_lock(&lock);
	sum.tx += c->tx.flow.off;
	sum.rx += c->rx.flow.off;
	if (c->rx.worst > sum.stall)
		sum.stall = c->rx.worst;
	sum.clean += !c->err;
	sum.failed += !!c->err;
	pthread_mutex_unlock(&lock);
}

/* Statistics of connections that have not ended; those not yet started count only in @alive. */
struct tally {
	int alive, open, rdma, framed, plain, half, half_closed;
	uint64_t tx, rx, moves;
	double stall, gap;
	bool reasons[256];
};

/* Counts the mode, path, moves and reason of the connection of @fd, from AFRDMA_INFO. */
static void tally_path(struct tally *t, int fd)
{
	struct afrdma_info info = { 0 };
	socklen_t len = sizeof(info);

	if (opt.tcp || getsockopt(fd, SOL_AFRDMA, AFRDMA_INFO, &info, &len))
		return;
	t->rdma += info.tx_path == AFRDMA_PATH_RDMA && info.rx_path == AFRDMA_PATH_RDMA;
	t->framed += info.mode == AFRDMA_MODE_FRAMED;
	t->plain += info.mode == AFRDMA_MODE_PLAIN;
	t->half += info.mode == AFRDMA_MODE_HALF;
	t->moves += info.moves;
	if (info.reason < ARRAY_SIZE(t->reasons))
		t->reasons[info.reason] = true;
}

/* Counts in @t a connection that has not ended. */
static void tally_conn(struct tally *t, struct conn *c)
{
	t->alive++;
	if (!c->started)
		return;
	t->open++;
	t->half_closed += c->peer_ended;
	t->tx += c->tx.flow.off;
	t->rx += c->rx.flow.off;
	if (!c->rx.over) {
		double gap = now() - c->rx.last;

		if (gap > t->gap)
			t->gap = gap;
		if (gap > t->stall)
			t->stall = gap;
	}
	if (c->rx.worst > t->stall)
		t->stall = c->rx.worst;
	tally_path(t, c->fd);
}

/* Prints how often each error occurred, and the reasons of open connections. */
static void print_lists(const struct tally *t)
{
	const char *sep = "";

	printf(" errors=");
	for (int i = 0; i < ERRNO_MAX; i++)
		if (sum.errors[i]) {
			printf("%s%s:%ld", sep, i ? strerrorname_np(i) : "0", sum.errors[i]);
			sep = ",";
		}
	sep = "";
	printf(" reasons=");
	for (unsigned int i = 1; i < ARRAY_SIZE(t->reasons); i++)
		if (t->reasons[i]) {
			printf("%s%s", sep, afr_reason_name(i));
			sep = ",";
		}
	printf("\n");
	fflush(stdout);
}

/* Prints a line that begins with @word. */
void report(const char *word)
{
	struct tally t = { 0 };

	pthread_mutex_lock(&lock);
	for (int i = 0; i < SLOTS; i++)
		if (conns[i])
			tally_conn(&t, conns[i]);
	if (sum.stall > t.stall)
		t.stall = sum.stall;
	printf("%s alive=%d open=%d rdma=%d framed=%d plain=%d half=%d half_closed=%d", word,
	       t.alive, t.open, t.rdma, t.framed, t.plain, t.half, t.half_closed);
	printf(" begun=%d clean=%ld failed=%ld scarce=%ld tx=%llu rx=%llu moves=%llu",
	       begun, sum.clean, sum.failed, sum.scarce, (unsigned long long)(sum.tx + t.tx),
	       (unsigned long long)(sum.rx + t.rx), (unsigned long long)t.moves);
	printf(" stall_ms=%.0f gap_ms=%.0f error_ms=%.0f", t.stall * 1000, t.gap * 1000,
	       sum.error_at > mark ? (sum.error_at - mark) * 1000 : 0);
	print_lists(&t);
	pthread_mutex_unlock(&lock);
}
