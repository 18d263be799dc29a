// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* For the other files of rogue: the parameters of the run, time, random numbers, TCP-AO. */
#include <time.h>
#include <unistd.h>

#include "rogue.h"

struct rogue_run rogue = { .rdma = true, .patience = 2 };

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static u64 rnd_state;

void rnd_start(u64 seed)
{
	rnd_state = seed;
}

u64 rnd(void)
{
	u64 x = rnd_state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/*
 * Does the kernel have TCP-AO? Its TCP then drops segments whose option list is malformed, before
 * AF_RDMA sees them.
 */
bool has_tcp_ao(void)
{
	int add_key = 38, value = 0, fd = socket(AF_INET, SOCK_STREAM, 0);	/* TCP_AO_ADD_KEY */
	bool has = setsockopt(fd, IPPROTO_TCP, add_key, &value, sizeof(value)) &&
		   errno != ENOPROTOOPT;

	close(fd);
	return has;
}
