// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Measures the throughput of two typical ways to transfer bulk data, for answers of several sizes:
 *
 *	bulk serve ADDRESS PORT		the server, one process per connection
 *	bulk rpc ADDRESS PORT MIB	small requests, four outstanding at a time,
 *					each answered by SIZE bytes
 *	bulk fetch ADDRESS PORT MIB	the same with one request at a time, as from an
 *					object store
 *
 * SIZE is 256 bytes, then 1 KiB, 4 KiB and so on up to 16 MiB. For each SIZE, a client receives
 * about MIB mebibytes, or less if SIZE is small, but at least two answers, and prints a line:
 * size, calls, MB/s. Each word of an answer depends on the number of the answer and the position
 * of the word. The client checks every word, so it detects lost, repeated and misplaced bytes.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SMALLEST	256
#define LARGEST		(16 << 20)
#define WINDOW		4
#define MOST_CALLS	20000

struct request {
	uint64_t number;
	uint64_t size;
};

struct answer {
	uint64_t number;
	uint64_t size;
	uint64_t sum;
};

/* The value of word @word in answer @number. */
static uint64_t pattern(uint64_t number, uint64_t word)
{
	return (number + 1) * 0x9e3779b97f4a7c15 ^ word * 0xbf58476d1ce4e5b9;
}

static bool words_right(const uint64_t *words, const struct answer *a)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < a->size / 8; i++) {
		if (words[i] != pattern(a->number, i))
			return false;
		sum += words[i];
	}
	return sum == a->sum;
}

/* Writes the words of answer @number to @words. Returns their sum. */
static uint64_t fill(uint64_t *words, uint64_t number, uint64_t size)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < size / 8; i++) {
		words[i] = pattern(number, i);
		sum += words[i];
	}
	return sum;
}

/* Returns false if the stream ends before the first byte. */
static bool read_all(int fd, void *to, size_t len)
{
	size_t at = 0;
	ssize_t n;

	while (at < len) {
		n = read(fd, (char *)to + at, len - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err(1, "read");
		if (n == 0 && at == 0)
			return false;
		if (n == 0)
			errx(1, "end of stream after %zu bytes of %zu", at, len);
		at += n;
	}
	return true;
}

static void write_all(int fd, const void *from, size_t len)
{
	size_t at = 0;
	ssize_t n;

	while (at < len) {
		n = write(fd, (const char *)from + at, len - at);
		if (n < 0 && errno != EINTR)
			err(1, "write");
		at += n > 0 ? n : 0;
	}
}

static void answer_all(int fd)
{
	uint64_t *words = malloc(LARGEST);
	struct request r;
	struct answer a;

	if (!words)
		err(1, "malloc");
	while (read_all(fd, &r, sizeof(r))) {
		if (r.size > LARGEST)
			errx(1, "a request for %llu bytes", (unsigned long long)r.size);
		a = (struct answer){ r.number, r.size, fill(words, r.number, r.size) };
		write_all(fd, &a, sizeof(a));
		write_all(fd, words, r.size);
	}
}

static struct sockaddr_in address(const char *name, const char *port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };

	if (inet_pton(AF_INET, name, &to.sin_addr) != 1)
		errx(2, "%s: not an address", name);
	return to;
}

static int serve(const struct sockaddr_in *at)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, fd;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (const struct sockaddr *)at, sizeof(*at)) || listen(listener, 16))
		err(1, "listen");
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			err(1, "accept");
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (fork() == 0) {
			answer_all(fd);
			_exit(0);
		}
		close(fd);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void ask(int fd, uint64_t number, uint64_t size)
{
	struct request r = { number, size };

	write_all(fd, &r, sizeof(r));
}

/* Receives the answer to request @number and verifies it. */
static void take(int fd, uint64_t number, uint64_t size, uint64_t *words)
{
	struct answer a;

	if (!read_all(fd, &a, sizeof(a)))
		errx(1, "the server closed the connection");
	if (a.number != number || a.size != size)
		errx(1, "answer %llu of %llu bytes to request %llu of %llu",
		     (unsigned long long)a.number, (unsigned long long)a.size,
		     (unsigned long long)number, (unsigned long long)size);
	if (!read_all(fd, words, size))
		errx(1, "the server closed the connection");
	if (!words_right(words, &a))
		errx(1, "wrong bytes in answer %llu", (unsigned long long)number);
}

/* Makes @calls requests for @size bytes, at most @window of them outstanding, and prints a line. */
static void calls_of(int fd, uint64_t size, uint64_t calls, unsigned int window)
{
	static uint64_t number;
	uint64_t *words = malloc(size), asked = 0;
	double begin = now(), end;

	if (!words)
		err(1, "malloc");
	for (uint64_t i = 0; i < calls; i++) {
		for (; asked < calls && asked < i + window; asked++)
			ask(fd, number + asked, size);
		take(fd, number + i, size, words);
	}
	end = now();
	number += calls;
	printf("%8llu %6llu %9.2f\n", (unsigned long long)size, (unsigned long long)calls,
	       size * calls / 1e6 / (end - begin));
	fflush(stdout);
	free(words);
}

static int client(const struct sockaddr_in *to, unsigned int window, uint64_t bytes)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	uint64_t calls;

	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof(*to)))
		err(1, "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	for (uint64_t size = SMALLEST; size <= LARGEST; size *= 4) {
		calls = bytes / size;
		calls = calls < 2 ? 2 : calls > MOST_CALLS ? MOST_CALLS : calls;
		calls_of(fd, size, size < 4096 ? calls / 8 : calls, window);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at;

	if (argc == 4 && !strcmp(argv[1], "serve")) {
		at = address(argv[2], argv[3]);
		return serve(&at);
	}
	if (argc != 5)
		errx(2, "see the top of bulk.c");
	at = address(argv[2], argv[3]);
	return client(&at, !strcmp(argv[1], "rpc") ? WINDOW : 1, atoll(argv[4]) << 20);
}
