// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * For each power of 4 from 1 byte to 4 MiB, sends a token of that size round a ring of ranks, and
 * then combines vectors of that size, one of each rank, in an all-reduce. Each rank verifies the
 * results; rank 0 prints a line for each size. The all-reduce uses MPI_BXOR, because in some
 * versions of Open MPI sums of bytes do not wrap.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST		(4 << 20)

static int rank, ranks;

static uint8_t byte_of(size_t at, size_t size)
{
	return at * 31 + (at >> 8) * 7 + size;
}

static int wrong(const uint8_t *token, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (token[i] != byte_of(i, size))
			return 1;
	return 0;
}

/*
 * Every rank calls this function. The token goes from rank 0 through all other ranks and back to
 * rank 0. Returns 1 if this rank has received a wrong token, else 0.
 */
static int ring(uint8_t *token, size_t size)
{
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;

	memset(token, 0, size);
	if (rank == 0) {
		for (size_t i = 0; i < size; i++)
			token[i] = byte_of(i, size);
		MPI_Send(token, size, MPI_BYTE, to, 1, MPI_COMM_WORLD);
		memset(token, 0, size);
	}
	MPI_Recv(token, size, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank != 0)
		MPI_Send(token, size, MPI_BYTE, to, 1, MPI_COMM_WORLD);
	return wrong(token, size);
}

/* Combines the vectors @mine of all ranks in @sum. Returns 1 if the result is wrong, else 0. */
static int all_reduce(uint8_t *mine, uint8_t *sum, size_t size)
{
	uint8_t expected;
	int bad = 0;

	for (size_t i = 0; i < size; i++)
		mine[i] = i * (rank + 1);
	MPI_Allreduce(mine, sum, size, MPI_UINT8_T, MPI_BXOR, MPI_COMM_WORLD);
	for (size_t i = 0; i < size; i++) {
		expected = 0;
		for (int other = 0; other < ranks; other++)
			expected ^= i * (other + 1);
		bad |= sum[i] != expected;
	}
	return bad;
}

int main(int argc, char **argv)
{
	uint8_t *one, *two;
	int failed = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	one = malloc(LARGEST);
	two = malloc(LARGEST);
	if (!one || !two)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (size_t size = 1; size <= LARGEST; size *= 4) {
		double begin = MPI_Wtime(), middle;
		int bad[2], all[2];

		bad[0] = ring(one, size);
		middle = MPI_Wtime();
		bad[1] = all_reduce(one, two, size);
		MPI_Allreduce(bad, all, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
		failed |= all[0] | all[1];
		if (rank == 0)
			printf("%8zu bytes: ring %8.0f us%s, all-reduce %8.0f us%s\n", size,
			       1e6 * (middle - begin), all[0] ? " WRONG" : "",
			       1e6 * (MPI_Wtime() - middle), all[1] ? " WRONG" : "");
	}
	if (rank == 0)
		puts(failed ? "wrong bytes" : "all bytes right");
	MPI_Finalize();
	return failed;
}
