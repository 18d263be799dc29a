// SPDX-License-Identifier: GPL-2.0
/* Counters: one per-CPU array per network namespace. */
#include <linux/cpumask.h>
#include <linux/ctype.h>
#include <linux/init.h>
#include <linux/percpu.h>
#include <linux/string.h>

#include "netns.h"
#include "stats.h"

#define AFR_STAT_NAME_MAX 32

static const char * const afr_stat_upper[AFR_STAT_COUNT] = {
#define AFR_STAT(name, sentence) [AFR_STAT_##name] = #name,
	AFR_STATS
#undef AFR_STAT
};

static const char * const afr_stat_sentence[AFR_STAT_COUNT] = {
#define AFR_STAT(name, sentence) [AFR_STAT_##name] = sentence,
	AFR_STATS
#undef AFR_STAT
};

/* The preprocessor cannot lower the case of a name. */
static char afr_stat_lower[AFR_STAT_COUNT][AFR_STAT_NAME_MAX] __ro_after_init;

/**
 * afr_stats_init() - make the lower-case names
 *
 * Context: Module load, before any other function here.
 */
void __init afr_stats_init(void)
{
	unsigned int stat, i;

	for (stat = 0; stat < AFR_STAT_COUNT; stat++)
		for (i = 0; i < AFR_STAT_NAME_MAX - 1 && afr_stat_upper[stat][i]; i++)
			afr_stat_lower[stat][i] = tolower(afr_stat_upper[stat][i]);
}

/**
 * afr_stat_add() - count
 * @net: the namespace of the socket or link
 * @stat: what happened
 * @n: how often, or how much
 *
 * Context: Any.
 */
void afr_stat_add(struct net *net, enum afr_stat stat, u64 n)
{
	this_cpu_add(afr_net(net)->stats->count[stat], n);
}

/**
 * afr_stats_read() - sum the counters of all CPUs
 * @net: whose
 * @out: the sums; each is exact, together they are not one moment
 *
 * Context: Any.
 */
void afr_stats_read(struct net *net, struct afr_stats *out)
{
	const struct afr_stats *one;
	unsigned int stat;
	int cpu;

	memset(out, 0, sizeof(*out));
	for_each_possible_cpu(cpu) {
		one = per_cpu_ptr(afr_net(net)->stats, cpu);
		for (stat = 0; stat < AFR_STAT_COUNT; stat++)
			out->count[stat] += READ_ONCE(one->count[stat]);
	}
}

/**
 * afr_stat_name() - the name of a counter, as netlink and smctl show it
 * @stat: which
 *
 * Return: "conn_framed", or "unknown" for a number without a counter.
 */
const char *afr_stat_name(enum afr_stat stat)
{
	return stat < AFR_STAT_COUNT ? afr_stat_lower[stat] : "unknown";
}

/**
 * afr_stat_text() - what a counter counts
 * @stat: which
 *
 * Return: a sentence, never NULL.
 */
const char *afr_stat_text(enum afr_stat stat)
{
	return stat < AFR_STAT_COUNT ? afr_stat_sentence[stat] : "unknown counter";
}
