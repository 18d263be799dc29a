// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Helpers of the injections: when to inject, random and false values, messages sent before. */
#include "inject.h"

struct afr_byzantine_state afr_byzantine;

static struct afr_inject_seen seen[64];

/**
 * afr_inject_rnd() - get the next pseudo-random number
 *
 * Context: Any, under the lock of byzantine.c.
 * Return: 64 bits, determined by the seed.
 */
u64 afr_inject_rnd(void)
{
	u64 x = afr_byzantine.seed += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/**
 * afr_inject_bend() - falsify a value
 * @value: the correct value
 *
 * Context: Any, under the lock of byzantine.c.
 * Return: @value plus the argument of the injection; without argument, a value that is random,
 * extreme, or at most 4096 above @value.
 */
u64 afr_inject_bend(u64 value)
{
	if (afr_byzantine.has_arg)
		return value + afr_byzantine.arg;
	switch (afr_inject_rnd() % 5) {
	case 0:		return 0;
	case 1:		return value + 1 + afr_inject_rnd() % 4096;
	case 2:		return 1ull << (afr_inject_rnd() % 64);
	case 3:		return ~0ull;
	default:	return afr_inject_rnd();
	}
}

/**
 * afr_inject_due() - is the injection to be used now?
 *
 * Counts a chance, and also an injection if the result is true.
 *
 * Context: Any, under the lock of byzantine.c.
 * Return: true if so.
 */
bool afr_inject_due(void)
{
	u64 chance = afr_byzantine.chances++;

	if (!afr_byzantine.left || chance < afr_byzantine.after ||
	    (chance - afr_byzantine.after) % afr_byzantine.rate)
		return false;
	afr_byzantine.left--;
	afr_byzantine.done++;
	return true;
}

/**
 * afr_inject_seen() - look up the last message for a channel
 * @id: channel id at the peer
 *
 * Context: Any, under the lock of byzantine.c.
 * Return: the entry for @id, which may contain a message on another link, or for another id with
 * the same hash.
 */
struct afr_inject_seen *afr_inject_seen(u16 id)
{
	return &seen[id % ARRAY_SIZE(seen)];
}

/**
 * afr_inject_bytes() - falsify bytes
 * @inj: offset and size of the bytes to falsify; size 0: invert one bit anywhere
 * @out: the frame, HELLO or private data of rdma_cm that contains them
 * @len: bytes in @out
 *
 * Context: Any, under the lock of byzantine.c.
 */
void afr_inject_bytes(const struct afr_injection *inj, u8 *out, unsigned int len)
{
	u64 value = afr_inject_bend(0);
	unsigned int i;

	if (!inj->size)
		out[afr_inject_rnd() % len] ^= 1u << (afr_inject_rnd() % 8);
	for (i = 0; i < inj->size; i++)
		out[inj->offset + i] = value >> (8 * (i % 8));
}
