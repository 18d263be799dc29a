// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The state of the model, and functions that its other files use: failure of a run, trace, random
 * numbers, bytes of the streams, new links. See model.c.
 */
#include <stdarg.h>

#include "model.h"

struct world world;
enum mutation mutation;
bool verbose;

u64 reached[REACH_COUNT];

jmp_buf failed;
char why[256];

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	longjmp(failed, 1);
}

void model_check(bool holds, const char *expression)
{
	if (!holds && mutation != MUT_NOWINDOW)
		fail("%s", expression);
}

void trace_step(const char *format, ...)
{
	va_list args;

	printf("# %6u  ", world.steps);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

u32 random32(void)
{
	world.random ^= world.random << 13;
	world.random ^= world.random >> 7;
	world.random ^= world.random << 17;
	return world.random >> 32;
}

u32 pick(u32 below)
{
	return (u64)random32() * below >> 32;
}

bool chance(u32 percent)
{
	return pick(100) < percent;
}

u8 byte_at(int sender, u64 offset)
{
	u64 x = (offset + 1) * 0x9b60f2c1a7d3e585ull + (u64)sender * 0x5d;

	return x >> 37 ^ x >> 21;
}

struct link *link_make(void)
{
	struct link *link = &world.link[world.links++];
	int i;

	for (i = 0; i < 2; i++) {
		link->end[i].up = true;
		link->end[i].receives = world.depth[i];
		if (afr_link_credit_init(&link->end[i].credit, world.depth[i], world.depth[!i]))
			fail("depths %u and %u are rejected", world.depth[0], world.depth[1]);
	}
	return link;
}
