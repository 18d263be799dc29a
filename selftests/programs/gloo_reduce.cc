// SPDX-License-Identifier: GPL-2.0
/*
 * All-reduce with Gloo over its TCP transport: sums of vectors of 4 bytes to 4 MiB.
 *
 *	gloo_reduce RANK RANKS ADDRESS REDIS-ADDRESS REDIS-PORT
 *
 * Each rank is a process that listens at ADDRESS; the ranks find each other through redis. Every
 * rank verifies every element of every sum, and all of them fail if one sum is wrong. Rank 0 prints
 * a line for each size.
 */
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#define HIREDIS_NESTED_INCLUDE
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/redis_store.h>
#include <gloo/transport/tcp/device.h>

using algorithm = gloo::AllreduceOptions::Algorithm;
using elements = std::vector<uint32_t>;

static const size_t LARGEST = 4 << 20;
static const int ROUNDS = 3;
static const std::chrono::seconds PATIENCE(60);

static std::shared_ptr<gloo::rendezvous::Context> context;
static uint32_t calls;

static elements all_reduce(algorithm way, elements &mine)
{
	elements sum(mine.size());
	gloo::AllreduceOptions options(context);

	options.setAlgorithm(way);
	options.setReduceFunction([](void *to, const void *a, const void *b, size_t n) {
		gloo::sum<uint32_t>(to, a, b, n);
	});
	options.setInput(mine.data(), mine.size());
	options.setOutput(sum.data(), sum.size());
	options.setTag(calls);
	gloo::allreduce(options);
	return sum;
}

/* A value that differs between calls, ranks and positions. */
static uint32_t element(int rank, size_t at)
{
	return (at + 1) * 0x9e3779b1 ^ (calls * context->size + rank) * 0x85ebca6b;
}

/* Does one all-reduce, adds its microseconds to *took, and returns whether an element is wrong. */
static bool one_is_wrong(algorithm way, size_t size, double *took)
{
	elements mine(size / sizeof(uint32_t)), sum;
	bool wrong = false;

	calls++;
	for (size_t i = 0; i < mine.size(); i++)
		mine[i] = element(context->rank, i);
	auto begin = std::chrono::steady_clock::now();
	sum = all_reduce(way, mine);
	std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
	*took += time.count();
	for (size_t i = 0; i < sum.size(); i++) {
		for (int rank = 0; rank < context->size; rank++)
			sum[i] -= element(rank, i);
		wrong |= sum[i] != 0;
	}
	return wrong;
}

/* Returns true in all ranks if a sum is wrong in any. */
static bool size_is_wrong(size_t size)
{
	double ring = 0, bcube = 0;
	elements wrong(1);

	for (int round = 0; round < ROUNDS; round++) {
		wrong[0] |= one_is_wrong(algorithm::RING, size, &ring);
		wrong[0] |= one_is_wrong(algorithm::BCUBE, size, &bcube);
	}
	calls++;
	wrong = all_reduce(algorithm::RING, wrong);
	if (context->rank == 0)
		printf("%8zu bytes: ring %8.0f us, bcube %8.0f us%s\n", size, ring / ROUNDS,
		       bcube / ROUNDS, wrong[0] ? " WRONG" : "");
	fflush(stdout);
	return wrong[0];
}

/*
 * Waits until all ranks are done. If a rank closed its connections before the other ranks have read
 * all bytes, it might reset these connections.
 */
static void meet(gloo::rendezvous::Store &store)
{
	std::vector<std::string> keys;

	for (int rank = 0; rank < context->size; rank++)
		keys.push_back("done." + std::to_string(rank));
	store.set(keys[context->rank], { 1 });
	store.wait(keys, PATIENCE);
}

static int run(char **argv)
{
	auto device = gloo::transport::tcp::CreateDevice(argv[3]);
	gloo::rendezvous::RedisStore store(argv[4], atoi(argv[5]));
	bool wrong = false;

	context = std::make_shared<gloo::rendezvous::Context>(atoi(argv[1]), atoi(argv[2]));
	context->setTimeout(PATIENCE);
	context->connectFullMesh(store, device);
	for (size_t size = sizeof(uint32_t); size <= LARGEST; size *= 4)
		wrong |= size_is_wrong(size);
	meet(store);
	if (context->rank == 0)
		puts(wrong ? "wrong sums" : "all sums right");
	context.reset();
	return wrong;
}

int main(int argc, char **argv)
{
	if (argc != 6) {
		fputs("see the top of gloo_reduce.cc\n", stderr);
		return 2;
	}
	try {
		return run(argv);
	} catch (const std::exception &e) {
		fprintf(stderr, "rank %s: %s\n", argv[1], e.what());
		return 1;
	}
}
