// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Position-coded streams. Every byte is a function of seed, row, variant, connection,
 * direction and offset. A lost, repeated, reordered or foreign byte is detected at once.
 * To find out where wrong bytes belong, locate() searches for them near the same offset in
 * streams of this and other rows, and near offset 0 in streams of this row.
 */
#define _GNU_SOURCE
#include <endian.h>

#include "test.h"

#define LOCATE_NEAR	MIB		/* search range in the same connection */
#define LOCATE_FAR	(64 * KIB)	/* search range in other connections and rows */
#define LOCATE_CONNS	256

static uint64_t hash_name(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	while (*name)
		hash = (hash ^ (unsigned char)*name++) * 0x100000001b3ULL;
	return hash;
}

static uint64_t flow_key(const char *row, enum variant variant, unsigned int conn,
			 bool from_server)
{
	uint64_t id = (uint64_t)variant << 40 | conn << 1 | from_server;

	return mix(mix(run.seed ^ hash_name(row)) + 0x9e3779b97f4a7c15ULL * (id + 1));
}

static struct flow flow_of(unsigned int conn, bool from_server)
{
	return (struct flow) {
		.key = flow_key(run.row->name, run.variant, conn, from_server),
		.conn = conn,
		.from_server = from_server,
	};
}

/* The stream that this side sends. */
struct flow flow_out(unsigned int conn)
{
	return flow_of(conn, run.server);
}

/* The stream that this side receives. */
struct flow flow_in(unsigned int conn)
{
	return flow_of(conn, !run.server);
}

/* Returns the eight bytes at offset 8 * @index of the stream; the first byte is in the low bits. */
static inline uint64_t word(uint64_t key, uint64_t index)
{
	return mix(key + index * 0x9e3779b97f4a7c15ULL);
}

/* Returns the eight bytes at any offset of the stream, with the first byte in the low bits. */
static inline uint64_t word_at(uint64_t key, uint64_t off)
{
	unsigned int shift = off % 8 * 8;
	uint64_t low = word(key, off / 8);

	if (!shift)
		return low;
	return low >> shift | word(key, off / 8 + 1) << (64 - shift);
}

/* Writes @len bytes of the stream, from offset @off on, to @to. */
static void generate(uint64_t key, uint64_t off, uint8_t *to, size_t len)
{
	uint64_t w;

	while (len && off % 8) {
		*to++ = word(key, off / 8) >> (off % 8 * 8);
		off++;
		len--;
	}
	for (; len >= 8; len -= 8, to += 8, off += 8) {
		w = htole64(word(key, off / 8));
		memcpy(to, &w, 8);
	}
	w = htole64(word(key, off / 8));
	memcpy(to, &w, len);
}

/* Generates the next @len bytes of the stream. */
void flow_fill(struct flow *flow, void *to, size_t len)
{
	generate(flow->key, flow->off, to, len);
	flow->off += len;
}

/* Index of the first wrong byte, @len if there is none. */
static size_t first_wrong(const struct flow *flow, const uint8_t *from, size_t len)
{
	uint64_t off = flow->off;
	size_t i = 0;

	for (; i < len && (off + i) % 8; i++)
		if (from[i] != (uint8_t)(word(flow->key, (off + i) / 8) >> ((off + i) % 8 * 8)))
			return i;
	for (; i + 8 <= len; i += 8) {
		uint64_t w;

		memcpy(&w, from + i, 8);
		if (le64toh(w) != word(flow->key, (off + i) / 8))
			break;
	}
	for (; i < len; i++)
		if (from[i] != (uint8_t)(word(flow->key, (off + i) / 8) >> ((off + i) % 8 * 8)))
			return i;
	return len;
}

/* Finds the eight bytes @got in a stream, at most @reach away from @off. */
static bool find_in(uint64_t key, uint64_t off, uint64_t reach, uint64_t got, uint64_t *where)
{
	uint64_t i = off > reach ? off - reach : 0;

	for (; i <= off + reach; i++) {
		if (word_at(key, i) != got)
			continue;
		*where = i;
		return true;
	}
	return false;
}

/* Searches the streams of this row's first LOCATE_CONNS connections for the eight bytes @got. */
static bool locate_in_conns(const struct flow *flow, uint64_t off, uint64_t got, char *text,
			    size_t size)
{
	uint64_t where;

	for (unsigned int i = 0; i < 2 * LOCATE_CONNS; i++) {
		struct flow other = flow_of(i / 2, i % 2);

		if (!find_in(other.key, off, LOCATE_FAR, got, &where) &&
		    !find_in(other.key, 0, LOCATE_FAR, got, &where))
			continue;
		snprintf(text, size, "they belong to offset %llu of connection %u, %s",
			 (unsigned long long)where, other.conn,
			 other.from_server == flow->from_server ? "same direction" :
			 "other direction");
		return true;
	}
	return false;
}

/* Searches two connections of @row, in every variant and direction, for the eight bytes @got. */
static bool locate_in_row(const struct row *row, uint64_t off, uint64_t got, char *text,
			  size_t size)
{
	uint64_t where;

	for (unsigned int i = 0; i < 4 * VAR_COUNT; i++) {
		uint64_t key = flow_key(row->name, i / 4, i / 2 % 2, i % 2);

		if (!find_in(key, off, LOCATE_FAR, got, &where))
			continue;
		snprintf(text, size, "they belong to offset %llu of row %s.%s, connection %u",
			 (unsigned long long)where, row->name, variant_names[i / 4], i / 2 % 2);
		return true;
	}
	return false;
}

static bool locate_in_rows(uint64_t off, uint64_t got, char *text, size_t size)
{
	for (int i = 0; run.tables && run.tables[i]; i++)
		for (const struct row *row = run.tables[i]; row->name; row++)
			if (locate_in_row(row, off, got, text, size))
				return true;
	return false;
}

/* Describes in @text where the eight wrong bytes @got belong. */
static void locate(const struct flow *flow, uint64_t off, uint64_t got, char *text, size_t size)
{
	struct flow back = flow_of(flow->conn, !flow->from_server);
	uint64_t where;

	if (!got)
		snprintf(text, size, "they are zero");
	else if (find_in(flow->key, off, LOCATE_NEAR, got, &where))
		snprintf(text, size, "they belong to offset %llu of this stream (%+lld)",
			 (unsigned long long)where, (long long)(where - off));
	else if (find_in(back.key, off, LOCATE_NEAR, got, &where))
		snprintf(text, size, "they belong to offset %llu of the other direction",
			 (unsigned long long)where);
	else if (!locate_in_conns(flow, off, got, text, size) &&
		 !locate_in_rows(off, got, text, size))
		snprintf(text, size, "they belong to no stream known here");
}

/* Fails the row: reports the first wrong byte and where the bytes found there belong. */
static void wrong(const struct flow *flow, const uint8_t *from, size_t len, size_t bad)
{
	uint64_t off = flow->off + bad;
	uint64_t want = word_at(flow->key, off);
	char text[200] = "too few of them to find where they belong";
	uint64_t got = 0;

	memcpy(&got, from + bad, len - bad < 8 ? len - bad : 8);
	got = le64toh(got);
	if (len - bad >= 8)
		locate(flow, off, got, text, sizeof(text));
	fail("connection %u, bytes from the %s: wrong at offset %llu (byte %zu of %zu in this "
	     "call): got %016llx, expected %016llx; %s",
	     flow->conn, flow->from_server ? "server" : "client", (unsigned long long)off, bad,
	     len, (unsigned long long)htobe64(got), (unsigned long long)htobe64(want), text);
}

/* Compares bytes with the stream at the current offset, without advancing. */
void flow_look(const struct flow *flow, const void *from, size_t len)
{
	size_t bad = first_wrong(flow, from, len);

	if (bad < len)
		wrong(flow, from, len, bad);
}

/* Compares bytes with the stream at the current offset, and advances by @len. */
void flow_check(struct flow *flow, const void *from, size_t len)
{
	flow_look(flow, from, len);
	flow->off += len;
}

static void send_chunks(int fd, struct flow *flow, size_t len, size_t chunk, bool random)
{
	uint8_t *buf = buffer(chunk);

	while (len) {
		size_t want = random ? rnd_between(1, chunk) : chunk;
		size_t done = 0;

		want = want < len ? want : len;
		flow_fill(flow, buf, want);
		while (done < want)
			done += SYS(send(fd, buf + done, want - done, MSG_NOSIGNAL));
		len -= want;
	}
	free(buf);
}

static void recv_chunks(int fd, struct flow *flow, size_t len, size_t chunk, bool random)
{
	uint8_t *buf = buffer(chunk);

	while (len) {
		size_t want = random ? rnd_between(1, chunk) : chunk;
		size_t got;

		want = want < len ? want : len;
		got = SYS(recv(fd, buf, want, 0));
		if (!got)
			fail("end of stream at offset %llu, %zu bytes too early",
			     (unsigned long long)flow->off, len);
		flow_check(flow, buf, got);
		len -= got;
	}
	free(buf);
}

/* Sends exactly @len bytes, in send() calls of @chunk bytes; the last call sends the rest. */
void flow_send(int fd, struct flow *flow, size_t len, size_t chunk)
{
	send_chunks(fd, flow, len, chunk, false);
}

/* Receives exactly @len bytes, in recv() calls for up to @chunk bytes. */
void flow_recv(int fd, struct flow *flow, size_t len, size_t chunk)
{
	recv_chunks(fd, flow, len, chunk, false);
}

/* flow_send() with calls of 1 to @chunk bytes. */
void flow_send_random(int fd, struct flow *flow, size_t len, size_t chunk)
{
	send_chunks(fd, flow, len, chunk, true);
}

/* flow_recv() with calls for 1 to @chunk bytes. */
void flow_recv_random(int fd, struct flow *flow, size_t len, size_t chunk)
{
	recv_chunks(fd, flow, len, chunk, true);
}

/* Reads up to the end of the stream or an error; returns 0 or the error. */
int flow_recv_to_end(int fd, struct flow *flow)
{
	size_t size = 64 * KIB;
	uint8_t *buf = buffer(size);
	ssize_t got;
	int err = 0;

	for (;;) {
		at(__FILE__, __LINE__, "recv() to the end of the stream");
		got = recv(fd, buf, size, 0);
		if (got <= 0)
			break;
		flow_check(flow, buf, got);
	}
	if (got < 0)
		err = errno;
	free(buf);
	return err;
}

/* Reads up to the end of the stream and returns the number of bytes; an error fails the row. */
uint64_t flow_recv_to_eof(int fd, struct flow *flow)
{
	uint64_t start = flow->off;
	int err = flow_recv_to_end(fd, flow);

	if (err)
		fail("recv() at offset %llu: %s", (unsigned long long)flow->off, strerror(err));
	return flow->off - start;
}

/* Sends until a call would block; returns the number of bytes sent. */
uint64_t flow_send_full(int fd, struct flow *flow, size_t chunk)
{
	uint8_t *buf = buffer(chunk);
	uint64_t start = flow->off;

	for (;;) {
		ssize_t done;

		generate(flow->key, flow->off, buf, chunk);
		at(__FILE__, __LINE__, "send() until it would block");
		done = send(fd, buf, chunk, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (done < 0 && errno == EAGAIN)
			break;
		if (done <= 0)
			fail("send() returned %zd: %s", done, strerror(errno));
		flow->off += done;
	}
	free(buf);
	return flow->off - start;
}

/* Sends until the buffers of both ends are full. The peer must not read. Returns out->off. */
uint64_t flow_fill_up(int fd, struct flow *out)
{
	int quiet = 0;

	while (quiet < 3) {
		uint64_t moved = flow_send_full(fd, out, 10000);

		quiet = moved || poll_one(fd, POLLOUT, 30) & POLLOUT ? 0 : quiet + 1;
	}
	return out->off;
}

void want_eof(int fd)
{
	char byte;

	/* twice: every further read returns 0, too */
	WANT_EQ(SYS(recv(fd, &byte, 1, 0)), 0);
	WANT_EQ(SYS(recv(fd, &byte, 1, 0)), 0);
}
