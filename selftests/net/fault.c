// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Preloaded into afr_test by selfcheck.sh: corrupts the buffer of one recv() in the way that the
 * environment variable AFR_FAULT names. The tests must detect the corruption.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

/* The AFTERth recv() of 4 * PIECE bytes or more is the first that may be corrupted. */
#define AFTER	10
#define PIECE	64

/* Removes eight bytes; the bytes after them move to lower offsets. */
static void lose(char *buf, size_t len)
{
	memmove(buf + PIECE, buf + PIECE + 8, len - PIECE - 8);
}

/* Repeats PIECE bytes; the bytes after them move to higher offsets, and the last ones are lost. */
static void repeat(char *buf, size_t len)
{
	memmove(buf + 2 * PIECE, buf + PIECE, len - 2 * PIECE);
}

static void reorder(char *buf, size_t len)
{
	char piece[PIECE];

	(void)len;
	memcpy(piece, buf, PIECE);
	memcpy(buf, buf + PIECE, PIECE);
	memcpy(buf + PIECE, piece, PIECE);
}

static void zero(char *buf, size_t len)
{
	memset(buf + len / 2, 0, PIECE);
}

static void flip(char *buf, size_t len)
{
	buf[len - 1] ^= 1;
}

static char other[PIECE];
static int other_fd = -1;

/* Overwrites PIECE bytes with bytes that recv() returned on another connection. */
static void mix(char *buf, size_t len)
{
	memcpy(buf + len / 2, other, PIECE);
}

static const struct {
	const char *name;
	void (*corrupt)(char *buf, size_t len);
} faults[] = {
	{ "lose", lose }, { "repeat", repeat }, { "reorder", reorder },
	{ "zero", zero }, { "flip", flip }, { "mix", mix },
};

/* May @corrupt be applied to this call, which returned @len bytes? */
static bool ready(int fd, void (*corrupt)(char *buf, size_t len), size_t len)
{
	static int calls;

	if (len < 4 * PIECE || ++calls < AFTER)
		return false;
	return corrupt != mix || (other_fd >= 0 && other_fd != fd);
}

/*
 * Corrupts one buffer per process. For mix(), saves the first PIECE bytes of the first buffer
 * that has as many.
 */
static void corrupt_once(int fd, char *buf, size_t len)
{
	const char *name = getenv("AFR_FAULT");
	static bool done;

	for (size_t i = 0; name && i < sizeof(faults) / sizeof(faults[0]) && !done; i++) {
		if (strcmp(name, faults[i].name) || !ready(fd, faults[i].corrupt, len))
			continue;
		faults[i].corrupt(buf, len);
		done = true;
	}
	if (len >= PIECE && other_fd < 0) {
		memcpy(other, buf, PIECE);
		other_fd = fd;
	}
}

/*
 * Replaces recv() of the C library; the control channel, which is read byte by byte, stays intact.
 */
ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	static ssize_t (*real)(int fd, void *buf, size_t len, int flags);
	ssize_t got;

	if (!real)
		real = dlsym(RTLD_NEXT, "recv");
	got = real(fd, buf, len, flags);
	if (got > 1 && buf)
		corrupt_once(fd, buf, got);
	return got;
}
