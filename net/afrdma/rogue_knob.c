// SPDX-License-Identifier: GPL-2.0
/* What the lies have in common: chance, values, and what was said before. */
#include "rogue_knob.h"

struct afr_rogue_state afr_rogue;

static struct afr_rogue_seen seen[64];

/**
 * afr_rogue_rnd() - the next number at random
 *
 * Return: 64 bits that follow from the seed.
 */
u64 afr_rogue_rnd(void)
{
	u64 x = afr_rogue.seed += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/**
 * afr_rogue_bend() - a value that is not true
 * @value: the true one
 *
 * Return: @value and the argument of the knob, or something at random.
 */
u64 afr_rogue_bend(u64 value)
{
	if (afr_rogue.has_arg)
		return value + afr_rogue.arg;
	switch (afr_rogue_rnd() % 5) {
	case 0:		return 0;
	case 1:		return value + 1 + afr_rogue_rnd() % 4096;
	case 2:		return 1ull << (afr_rogue_rnd() % 64);
	case 3:		return ~0ull;
	default:	return afr_rogue_rnd();
	}
}

/**
 * afr_rogue_due() - is this chance one to take
 *
 * Return: true if so; it counts as a lie.
 */
bool afr_rogue_due(void)
{
	u64 chance = afr_rogue.chances++;

	if (!afr_rogue.left || chance < afr_rogue.after ||
	    (chance - afr_rogue.after) % afr_rogue.rate)
		return false;
	afr_rogue.left--;
	afr_rogue.lies++;
	return true;
}

/**
 * afr_rogue_seen() - what is known of a slot
 * @slot: of the peer
 *
 * Return: the entry for it, which may be about another slot.
 */
struct afr_rogue_seen *afr_rogue_seen(u16 slot)
{
	return &seen[slot % ARRAY_SIZE(seen)];
}

/**
 * afr_rogue_bytes() - spoil bytes
 * @knob: which, or without a size one bit anywhere
 * @out: the bytes
 * @len: how many
 */
void afr_rogue_bytes(const struct afr_rogue_knob *knob, u8 *out, unsigned int len)
{
	u64 value = afr_rogue_bend(0);
	unsigned int i;

	if (!knob->size)
		out[afr_rogue_rnd() % len] ^= 1u << (afr_rogue_rnd() % 8);
	for (i = 0; i < knob->size; i++)
		out[knob->offset + i] = value >> (8 * (i % 8));
}
