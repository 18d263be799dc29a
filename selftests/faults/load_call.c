// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* What afr_load does by send(), recv() and shutdown(): a function makes one such call at most. */
#define _GNU_SOURCE
#include "load.h"

/*
 * Returns how many bytes one call may send now, by limit, rate and chunk; 0 if the direction is to
 * end, or if the rate allows no byte yet.
 */
size_t allowance(const struct conn *c)
{
	uint64_t off = c->tx.flow.off, most = CHUNK_MAX;

	if (c->head.limit)
		most = c->head.limit - off;
	else if (ending || (c->peer_ended && !opt.half))
		return 0;
	if (opt.rate) {
		double due = (now() - c->begin) * opt.rate * KIB - off;

		if (due < 1)
			return 0;
		if (due < most)
			most = due;
	}
	return most < (size_t)opt.chunk ? most : (size_t)opt.chunk;
}

/* Have all bytes been sent that this end has to send? */
bool tx_at_end(const struct conn *c)
{
	if (c->head.limit)
		return c->tx.flow.off == c->head.limit;
	return ending || (c->peer_ended && !opt.half);
}

static void end_tx(struct conn *c)
{
	if (shutdown(c->fd, SHUT_WR))
		failed(c);
	c->tx.over = true;
}

/*
 * One send(), or shutdown() at the end, or neither if the rate allows no byte yet. Returns true if
 * bytes were sent.
 */
bool push(struct conn *c)
{
	static __thread uint8_t buf[CHUNK_MAX];
	struct flow ahead = c->tx.flow;
	size_t len = allowance(c);
	ssize_t done;

	if (!len) {
		if (tx_at_end(c))
			end_tx(c);
		return false;
	}
	len = rnd_between(1, len);
	flow_fill(&ahead, buf, len);
	done = send(c->fd, buf, len, MSG_NOSIGNAL);
	if (done < 0) {
		if (errno != EAGAIN)
			failed(c);
		return false;
	}
	moved(&c->tx, done);
	return true;
}

/* One recv() and the check of its bytes. Returns true if bytes were read. */
bool pull(struct conn *c)
{
	static __thread uint8_t buf[CHUNK_MAX];
	size_t most = c->greeting_left ? c->greeting_left : rnd_between(1, opt.chunk);
	ssize_t got = recv(c->fd, buf, most, 0);

	if (got < 0) {
		if (errno != EAGAIN)
			failed(c);
		return false;
	}
	if (!got) {
		c->peer_ended = true;
		c->rx.over = true;
		if (c->head.limit && c->rx.flow.off != c->head.limit) {
			/*
			 * Before the limit: the peer's program ended, or closed the socket after a
			 * failed call, or bytes are lost.
			 */
			errno = ENODATA;
			failed(c);
		}
		return false;
	}
	if (c->greeting_left) {
		if (memcmp(buf, GREETING + strlen(GREETING) - c->greeting_left, got))
			fail("wrong bytes in the greeting");
		c->greeting_left -= got;
		return true;
	}
	flow_look(&c->rx.flow, buf, got);
	moved(&c->rx, got);
	return true;
}

/* Starts both directions, once this end has sent or received the header. */
static void start(struct conn *c)
{
	c->tx.flow = flow_out(c->head.conn);
	c->rx.flow = flow_in(c->head.conn);
	c->begin = now();
	c->rx.last = c->begin;
	c->started = true;
}

/*
 * With --greet, at the beginning of a connection: the server sends the greeting, for which a new
 * connection has space, and the client expects it.
 */
void greet(struct conn *c)
{
	if (!run.server)
		c->greeting_left = strlen(GREETING);
	else if (send(c->fd, GREETING, strlen(GREETING), MSG_NOSIGNAL) < 0)
		failed(c);
}

/* Sends or receives the header, or a part of it. Returns true when it is complete. */
bool header_step(struct conn *c)
{
	char *at = (char *)&c->head + c->head_done;
	size_t left = sizeof(c->head) - c->head_done;
	ssize_t done = run.server ? recv(c->fd, at, left, 0) :
				    send(c->fd, at, left, MSG_NOSIGNAL);

	if (done < 0) {
		if (errno != EAGAIN)
			failed(c);
		return false;
	}
	if (!done) {		/* server: the stream ended before the whole header came */
		errno = ENODATA;
		failed(c);
		return false;
	}
	c->head_done += done;
	if (c->head_done < sizeof(c->head))
		return false;
	if (c->head.magic != MAGIC)
		fail("a connection begins with %#x", c->head.magic);
	start(c);
	return true;
}
