// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Main program of rogue: runs the selected rows in the selected roles, checks the bystander
 * connection after each case that did not fail, and prints KTAP. Needs CAP_NET_ADMIN for the TUN
 * device. With --family rdma, sets timers of net.afrdma while a row runs.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fnmatch.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "../ktap.h"
#include "rogue.h"

#define SYSCTL		"/proc/sys/net/afrdma/"
#define SHORT_TIMER	300	/* ms */
#define LONG_TIMER	30000	/* ms: longer than any pause that a row makes */
#define QUICK_CASES	4	/* largest number of cases of a row with --quick, unless --cases sets it */

static const struct rogue_row *const tables[] = {
	option_rows, hello_rows, frame_rows, state_rows, flood_rows, NULL,
};

static const char usage[] =
	"usage: rogue [options]\n"
	"  --family rdma|tcp   address family of the victims; tcp tests the TCP of rogue\n"
	"  --host ADDR         an address of this host, for the bystander (default 127.0.0.1)\n"
	"  --inet6             IPv6 on the TUN device\n"
	"  --only LIST         names or patterns of rows, separated by commas\n"
	"  --quick             a few cases of each row\n"
	"  --patience S        the outcome must occur within S seconds (default 2)\n"
	"  --seed N            of the random numbers\n"
	"  --cases N           of each random row; case I uses the seed N + I\n"
	"  --role ROLE         run rogue only as client or only as server\n"
	"  --list              print the rows and stop\n";

/* ---- timers ---- */

/* Sets a timer. Returns its previous value, or 0 if @path cannot be opened or read. */
static int exchange_timer(const char *path, int value)
{
	FILE *file = fopen(path, "r+");
	int old = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%d", &old) != 1)
		old = 0;
	rewind(file);
	fprintf(file, "%d\n", value);
	fclose(file);
	return old;
}

/* ---- the bystander ---- */

/* The two ends of the bystander connection, both in this process. */
static int bystander[2] = { -1, -1 };

/* Opens the bystander connection, from this host to its own address @host. */
static void bystander_open(const char *host)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	int family = rogue.rdma ? AF_RDMA : AF_INET;
	int listener = socket(family, SOCK_STREAM, 0);

	if (inet_pton(AF_INET, host, &addr.sin_addr) != 1 ||
	    bind(listener, (struct sockaddr *)&addr, sizeof(addr)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&addr, &len)) {
		printf("Bail out! bystander: %s\n", strerror(errno));
		exit(1);
	}
	bystander[0] = socket(family, SOCK_STREAM, 0);
	if (connect(bystander[0], (struct sockaddr *)&addr, len)) {
		printf("Bail out! bystander: %s\n", strerror(errno));
		exit(1);
	}
	bystander[1] = accept(listener, NULL, NULL);
	close(listener);
}

/* Sends @word from one end of the bystander connection to the other; false on any error. */
static bool pass_word(int from, int to, u64 word)
{
	struct pollfd p = { .fd = to, .events = POLLIN };
	u64 got = 0;

	return send(from, &word, sizeof(word), MSG_NOSIGNAL) == sizeof(word) &&
	       poll(&p, 1, 10000) == 1 &&
	       recv(to, &got, sizeof(got), MSG_WAITALL) == sizeof(got) && got == word;
}

static bool bystander_works(void)
{
	return pass_word(bystander[0], bystander[1], rnd()) &&
	       pass_word(bystander[1], bystander[0], rnd());
}

/* ---- rows ---- */

static const char *only, *role;
static int number, failed, skipped;

static bool selected(const char *name)
{
	char *copy, *save, *word;
	bool found = !only;

	copy = strdup(only ? only : "");
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save))
		found |= !fnmatch(word, name, 0);
	free(copy);
	return found;
}

static unsigned int count_of(const struct rogue_row *row)
{
	return row->flags & RANDOM && rogue.cases ? rogue.cases : row->count;
}

static unsigned int cases_run;	/* number of cases of the current row that passed */

/* Runs the cases of a row up to the first that fails. Returns NULL, or what is wrong. */
static const char *run_cases(const struct rogue_row *row, bool as_client)
{
	static char text[512];
	unsigned int count = count_of(row), runs = count;

	if (rogue.quick && !(row->flags & RANDOM && rogue.cases) && count > QUICK_CASES)
		runs = QUICK_CASES;
	for (cases_run = 0; cases_run < runs; cases_run++) {
		/* if only some cases run: the first, the last, and others evenly between them */
		unsigned int i = runs < count ? cases_run * (count - 1) / (runs - 1) : cases_run;
		const char *why;

		/* to repeat case i: "--seed N --cases 1", where N is the seed of the run plus i */
		if (row->flags & RANDOM)
			rnd_start(rogue.seed + i);
		why = peer_run(row, i, as_client);
		if (!why && !bystander_works())
			why = "the bystander connection failed or has wrong bytes";
		if (!why)
			continue;
		snprintf(text, sizeof(text), "case %u of %u: %s", i, count, why);
		return text;
	}
	return NULL;
}

/* run_cases() with the timers that the row requires; restores the timers. */
static const char *run_timed(const struct rogue_row *row, bool as_client)
{
	static const char *const timers[] = {
		SYSCTL "hello_timeout_ms", SYSCTL "attach_timeout_ms",
	};
	int value = row->flags & SHORT_TIMERS ? SHORT_TIMER : LONG_TIMER;
	int old[ARRAY_SIZE(timers)];
	const char *why;

	if (!rogue.rdma)
		return run_cases(row, as_client);
	for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
		old[i] = exchange_timer(timers[i], value);
	why = run_cases(row, as_client);
	for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
		exchange_timer(timers[i], old[i]);
	return why;
}

static void run_row(const struct rogue_row *row, bool as_client)
{
	double start = now();
	char name[64];
	const char *why;

	snprintf(name, sizeof(name), "%s.%s", row->name, as_client ? "client" : "server");
	if (row->flags & MALFORMED && has_tcp_ao()) {
		number++;
		skipped++;
		ktap_result(true, number, "%s # SKIP TCP with TCP-AO drops malformed option lists",
			    name);
		return;
	}
	why = run_timed(row, as_client);
	number++;
	failed += !!why;
	ktap_result(!why, number, "%s", name);
	if (why)
		printf("# %s: %s\n", name, why);
	printf("# %s took %.2f s for %u cases\n", name, now() - start, cases_run);
}

static bool has_role(const struct rogue_row *row, bool as_client)
{
	return row->flags & (as_client ? AS_CLIENT : AS_SERVER) &&
	       (!role || !strcmp(role, as_client ? "client" : "server"));
}

/* Calls @act, if given, for each pair of selected row and role; returns the number of pairs. */
static int for_each(void (*act)(const struct rogue_row *row, bool as_client))
{
	int count = 0;

	for (int i = 0; tables[i]; i++)
		for (const struct rogue_row *row = tables[i]; row->name; row++)
			for (int side = 0; side < 2; side++) {
				if (!has_role(row, !side) || !selected(row->name))
					continue;
				count++;
				if (act)
					act(row, !side);
			}
	return count;
}

static void list_row(const struct rogue_row *row, bool as_client)
{
	printf("%s.%s %u cases\n", row->name, as_client ? "client" : "server", count_of(row));
}

static void parse(int argc, char **argv, bool *v6, const char **host, bool *list)
{
	static const struct option options[] = {
		{ "family", required_argument, NULL, 'f' },
		{ "host", required_argument, NULL, 'h' },
		{ "inet6", no_argument, NULL, '6' },
		{ "only", required_argument, NULL, 'o' },
		{ "quick", no_argument, NULL, 'q' },
		{ "patience", required_argument, NULL, 'p' },
		{ "seed", required_argument, NULL, 's' },
		{ "cases", required_argument, NULL, 'c' },
		{ "role", required_argument, NULL, 'r' },
		{ "list", no_argument, NULL, 'l' },
		{ }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'f': rogue.rdma = strcmp(optarg, "tcp"); break;
		case 'h': *host = optarg; break;
		case '6': *v6 = true; break;
		case 'o': only = optarg; break;
		case 'q': rogue.quick = true; break;
		case 'p': rogue.patience = atof(optarg); break;
		case 'r': role = optarg; break;
		case 'c': rogue.cases = atoi(optarg); break;
		case 's': rogue.seed = strtoull(optarg, NULL, 0); break;
		case 'l': *list = true; break;
		default: fputs(usage, stderr); exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	const char *host = "127.0.0.1";
	bool v6 = false, list = false;

	rogue.seed = (u64)(now() * 1e9) % 1000000000 + 1;
	parse(argc, argv, &v6, &host, &list);
	if (list)
		return for_each(list_row) ? 0 : 1;
	if (!for_each(NULL)) {
		fprintf(stderr, "no row matches\n");
		return 2;
	}
	rnd_start(rogue.seed);
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	ktap_begin(for_each(NULL));
	printf("# seed %llu\n", (unsigned long long)rogue.seed);
	tun_open(&rogue.tun, v6);
	bystander_open(host);
	for_each(run_row);
	printf("# Totals: pass:%d fail:%d skip:%d\n", number - failed - skipped, failed, skipped);
	return failed ? 1 : 0;
}
