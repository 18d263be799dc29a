/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Shared by the fuzzers. A property that does not hold ends the run with a crash. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "../../net/afrdma/proto/portable.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(ok) do { \
	if (!(ok)) { \
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #ok); \
		abort(); \
	} } while (0)

/* A heap block to whose end a parser's input is copied, so that ASan detects reads beyond it. */
struct edge {
	u8	*block;
	size_t	size;
};

static inline struct edge edge_of(size_t size)
{
	return (struct edge){ .block = malloc(size), .size = size };
}

/* Copies @len bytes to the end of the block; returns where they begin. */
static inline const u8 *edge_put(const struct edge *edge, const void *data, size_t len)
{
	return memcpy(edge->block + edge->size - len, data, len);
}

#endif /* FUZZ_H */
