// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Random model check of files in net/afrdma/proto: tx.c, rx.c, cursor.h, link_credit.c, hello.c and
 * frame.c.
 *
 * Two ends transfer bytes in both directions through rings. The value of each byte depends on its
 * offset in the stream, so that a misplaced byte is found. Frames are written and parsed as bytes.
 * Links are attached, left and lost at any time. A run is one seed, which determines sizes and
 * schedule. No byte may be wrong, and no end may report a protocol violation. Each connection must
 * end: a state in which no normal step is possible is a deadlock.
 *
 * Rules that are known to be wrong can be enabled one by one (mutations). With each of them, some
 * schedule must fail; otherwise this check would be too weak.
 */
#include <time.h>

#include "../ktap.h"
#include "model.h"

#define STEPS_MAX	400000u

static const char *const reach_text[] = {
#define R(id, text) text,
	REACHES
#undef R
};

static const struct {
	const char	*name;
	const char	*text;
} mutations[] = {
#define M(id, name, text) { name, text },
	MUTATIONS
#undef M
};

/* Steps that make the connection progress. */
static const step_fn normal[] = {
	step_app_write, step_app_fin, step_app_read, step_tcp_write, step_tcp_read,
	step_tcp_shut, step_end, step_move, step_finish, step_write, step_credit,
	step_detach, step_announce, step_land, step_drop, step_poll, step_stop, step_drain,
};

/*
 * Steps that the connection does not need in order to end: a client attaches to a link; an end
 * leaves its link, or loses it; messages of other connections on the link. In a run, the number of
 * steps of each of these kinds is limited.
 */
static const step_fn adverse[] = {
	step_attach, step_leave, step_die, step_noise,
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Checks the invariants of both ends after a step. */
static void check(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		const struct end *e = &world.end[i];

		if (e->rx.visible - e->rx.consumed == e->rx.ring)
			reached[REACH_FULL]++;
		if (e->tx.consumed > peer_of(e)->rx.consumed)
			fail("%d: cursor beyond what the peer has consumed", i);
		if (e->tx.una > peer_of(e)->rx.fin)
			fail("%d: ring released beyond the end of the stream", i);
		if (mutation == MUT_NOWINDOW)
			continue;
		if (!afr_tx_sane(&e->tx) || !afr_rx_sane(&e->rx))
			fail("%d: inconsistent sequence state", i);
	}
}

/*
 * At the start of a run, each normal step of each end gets one of these values as the probability,
 * in units of 1/1000, that the step is passed over although it is possible.
 */
static const u32 delays[] = { 0, 0, 0, 500, 900, 998 };
static u32 delay[2 * COUNT(normal)];

/*
 * Executes one step and returns true, or returns false if no normal step is possible. Unless an
 * adverse step is executed, tries the normal steps in cyclic order from a random one on. If every
 * possible step is passed over, executes the first of them.
 */
static bool advance(void)
{
	u32 delayed = U32_MAX;
	u32 at, n;

	/* Adverse steps are rare, so that links carry bytes before they fail or are left. */
	if (pick(100) < world.adversity && adverse[pick(COUNT(adverse))](&world.end[pick(2)], true))
		return true;

	at = pick(COUNT(delay));
	for (n = 0; n < COUNT(delay); n++) {
		u32 which = (at + n) % COUNT(delay);

		if (!normal[which / 2](&world.end[which & 1], false))
			continue;
		if (pick(1000) >= delay[which])
			return normal[which / 2](&world.end[which & 1], true);
		if (delayed == U32_MAX)
			delayed = which;
	}
	if (delayed == U32_MAX)
		return false;
	return normal[delayed / 2](&world.end[delayed & 1], true);
}

/* Returns a stream offset at which a direction begins, often just below a wrap of a counter. */
static u64 pick_base(void)
{
	static const u64 bases[] = { 0, 0, 65536, 1ull << 32, 1ull << 48, (1ull << 61) + 12345 };
	u64 base = bases[pick(COUNT(bases))];

	return base ? base - pick(64) : base;
}

static void world_init(u64 seed)
{
	bool big;
	u32 ring;
	u64 base;
	int i;

	memset(&world, 0, sizeof(world));
	world.random = (seed + 1) * 0x9e6b4c1d7f3a5825ull;
	for (i = 0; i < 8; i++)
		random32();

	/*
	 * Most runs have rings of 8 to 64 bytes, which wrap often. The others (big) have rings of
	 * 16 to 128 KiB; above 16 KiB the cursor unit is larger than one byte. With mutation
	 * lowat-whole-ring, which concerns such units, about half of the runs are big.
	 */
	big = pick(64) == 0 || (mutation == MUT_LOWAT && chance(50));
	world.scale = big ? 0 : 11;
	ring = big ? 1 << 14 : 8;
	world.adversity = 1 + pick(12);
	world.deaths = pick(5);
	world.leaves = pick(4);
	world.attaches = pick(LINKS + 2);
	world.noise = chance(50) ? pick(20) : 0;
	for (i = 0; i < 2; i++) {
		world.depth[i] = 3 + pick(chance(70) ? 3 : 14);
		world.tcp[i].size = big ? 20000 + pick(60000) : 4 + pick(150);
		world.tcp[i].bytes = malloc(world.tcp[i].size);
	}
	for (i = 0; i < 2; i++) {
		base = pick_base();
		end_init(&world.end[i], i, ring << pick(4), ring << pick(big ? 4 : 3));
		world.end[i].total = base;
	}
	/* A direction begins at offset @base, as if all bytes below it had been transferred. */
	for (i = 0; i < 2; i++) {
		struct end *e = &world.end[i];
		struct afr_rx *rx = &peer_of(e)->rx;

		base = e->total;
		e->tx.written = base;
		e->tx.sent = base;
		e->tx.una = base;
		e->tx.consumed = base;
		rx->visible = base;
		rx->consumed = base;
		rx->reported = base;
		e->total = base + pick(5 * rx->ring + 1);
		e->want = 1;
	}
	for (i = 0; i < (int)COUNT(delay); i++)
		delay[i] = delays[pick(COUNT(delays))];
	if (chance(20))
		world.end[pick(2)].writes_first = true;
	world.end[0].unknown_pending = chance(5);
	world.end[1].unknown_pending = chance(5);
}

static void world_free(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		end_free(&world.end[i]);
		free(world.tcp[i].bytes);
	}
}

static const char *where_name(u8 where)
{
	static const char *const names[] = { "tcp", "link", "suspended" };

	return where < COUNT(names) ? names[where] : "?";
}

#define L(x) ((unsigned long long)(x))

static void show_end(const struct end *e)
{
	const struct afr_tx *tx = &e->tx;
	const struct afr_rx *rx = &e->rx;

	printf("# end %d: tx on %s una %llu sent %llu written %llu consumed %llu", e->id,
	       where_name(tx->where), L(tx->una), L(tx->sent), L(tx->written), L(tx->consumed));
	printf(" ring %u window %u S %llu epoch %u%s%s\n", tx->ring, tx->window, L(tx->start),
	       tx->epoch, tx->open ? " open" : "", tx->finacked ? " finacked" : "");
	printf("#        rx visible %llu consumed %llu reported %llu landed %llu", L(rx->visible),
	       L(rx->consumed), L(rx->reported), L(rx->landed));
	printf(" ring %u fin %lld%s%s%s, reader wants %u\n", rx->ring, (long long)rx->fin,
	       rx->open ? " open" : "", rx->moved ? " moved" : "",
	       rx->blocked ? " blocked" : "", e->want);
	printf("#       %s%s%s%s%s%s%s%s%s\n", e->unanswered ? " unanswered" : "",
	       e->ready ? " ready" : "", e->leaving ? " leaving" : "",
	       e->detach_wanted ? " detach-wanted" : "", e->detach_done ? " detach-done" : "",
	       e->refused ? " refused" : "", e->shut ? " shut" : "",
	       e->eof_in ? " eof" : "", e->ended ? " ended" : "");
}

/* Executes steps until both ends have ended; fails on a deadlock or after STEPS_MAX steps. */
static void schedule(void)
{
	while (!world.end[0].ended || !world.end[1].ended) {
		if (world.steps++ == STEPS_MAX)
			fail("still running after %u steps", STEPS_MAX);
		if (!advance())
			fail("deadlock: no step is possible");
		check();
	}
	if (world.end[0].tx.epoch >= 4)
		reached[REACH_EPOCHS]++;
}

/* Runs one schedule; returns true if it ended correctly. */
static bool run(u64 seed)
{
	bool bad;

	world_init(seed);
	bad = setjmp(failed);
	if (!bad)
		schedule();
	if (verbose && bad) {
		show_end(&world.end[0]);
		show_end(&world.end[1]);
	}
	world_free();
	return !bad;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static u64 steps_done;

/* Runs @count seeds from @first on; returns the first that fails, or U64_MAX. */
static u64 search(u64 first, u64 count)
{
	u64 seed;

	steps_done = 0;
	for (seed = first; seed < first + count; seed++) {
		if (!run(seed))
			return seed;
		steps_done += world.steps;
	}
	return U64_MAX;
}

/*
 * Test @number: without a mutation, no schedule may fail. @first is the first seed, @count the
 * number of seeds, each of which generates one schedule.
 */
static int test_honest(int number, u64 first, u64 count)
{
	double start = seconds();
	u64 bad;

	mutation = MUT_NONE;
	bad = search(first, count);
	if (bad != U64_MAX) {
		ktap_result(false, number, "model__honest\n# seed %llu: %s", L(bad), why);
		printf("# replay: model --seed %llu --verbose\n", L(bad));
		return 1;
	}
	ktap_result(true, number, "model__honest\n# %llu schedules, %llu steps, %.1f s",
		    L(count), L(steps_done), seconds() - start);
	return 0;
}

/* Test @number: each situation of REACHES must have occurred in the runs of test_honest(). */
static int test_reached(int number)
{
	int missing = 0;
	int i;

	for (i = 0; i < REACH_COUNT; i++)
		missing += !reached[i];
	ktap_result(!missing, number, "model__reaches");
	for (i = 0; i < REACH_COUNT; i++)
		printf("# %10llu  %s\n", L(reached[i]), reach_text[i]);
	return missing ? 1 : 0;
}

/* Test @number: with mutation @which, at least one schedule must fail. */
static int test_mutation(int number, enum mutation which, u64 first, u64 count)
{
	u64 bad;

	mutation = which;
	bad = search(first, count);
	if (bad == U64_MAX) {
		ktap_result(false, number, "model__catches_%s\n# %s: not caught in %llu schedules",
			    mutations[which].name, mutations[which].text, L(count));
		return 1;
	}
	ktap_result(true, number, "model__catches_%s\n# %s: seed %llu: %s", mutations[which].name,
		    mutations[which].text, L(bad), why);
	return 0;
}

static int test_all(u64 first, u64 count, u64 mutation_count)
{
	int bad, i;

	ktap_begin(MUT_COUNT + 1);
	bad = test_honest(1, first, count);
	bad += test_reached(2);
	for (i = 1; i < MUT_COUNT; i++)
		bad += test_mutation(i + 2, i, first, mutation_count);
	return bad ? 1 : 0;
}

static int run_one(u64 seed)
{
	bool good = run(seed);

	printf("%s seed %llu: %s after %u steps\n", good ? "ok" : "not ok",
	       L(seed), good ? "ended correctly" : why, world.steps);
	return good ? 0 : 1;
}

static int usage(void)
{
	int i;

	fprintf(stderr,
		"usage: model [--seeds N] [--first SEED] [--mutate NAME] [--mutation-seeds N]\n"
		"       model --seed SEED [--mutate NAME] [--verbose]\n"
		"Without --mutate: N schedules of the correct rules, then every mutation until\n"
		"caught. With it: N schedules of that mutation; exit 1 if one fails (expected).\n");
	for (i = 0; i < MUT_COUNT; i++)
		fprintf(stderr, "  %-22s %s\n", mutations[i].name, mutations[i].text);
	return 2;
}

static int find_mutation(const char *name)
{
	int i;

	for (i = 0; i < MUT_COUNT; i++)
		if (!strcmp(name, mutations[i].name))
			return i;
	return -1;
}

struct options {
	u64	seeds, mutation_seeds, first, one;
	int	mutate;
};

static bool read_argument(struct options *options, const char *name, const char *value)
{
	if (!strcmp(name, "--mutate")) {
		options->mutate = find_mutation(value);
		return options->mutate >= 0;
	}
	if (!strcmp(name, "--seeds"))
		options->seeds = strtoull(value, NULL, 0);
	else if (!strcmp(name, "--mutation-seeds"))
		options->mutation_seeds = strtoull(value, NULL, 0);
	else if (!strcmp(name, "--first"))
		options->first = strtoull(value, NULL, 0);
	else if (!strcmp(name, "--seed"))
		options->one = strtoull(value, NULL, 0);
	else
		return false;
	return true;
}

/*
 * Runs @count seeds from @first on with the mutation of --mutate, but stops when one fails.
 * Returns the exit status: 1 if a seed failed, otherwise 0.
 */
static int run_mutation(u64 first, u64 count)
{
	u64 bad = search(first, count);

	if (bad == U64_MAX) {
		printf("%llu schedules, none failed\n", L(count));
		return 0;
	}
	printf("seed %llu: %s\n", L(bad), why);
	return 1;
}

int main(int argc, char **argv)
{
	struct options options = {
		.seeds = 60000, .mutation_seeds = 200000, .one = U64_MAX, .mutate = -1,
	};
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--verbose"))
			verbose = true;
		else if (i + 1 == argc || !read_argument(&options, argv[i], argv[i + 1]))
			return usage();
		else
			i++;
	}
	if (options.mutate >= 0)
		mutation = options.mutate;
	if (options.one != U64_MAX)
		return run_one(options.one);
	if (options.mutate >= 0)
		return run_mutation(options.first, options.seeds);
	return test_all(options.first, options.seeds, options.mutation_seeds);
}
