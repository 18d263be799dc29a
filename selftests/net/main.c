// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The runner: selects rows and variants, runs each in a process of its own on both
 * sides, kills rows that stall, and prints KTAP.
 */
#define _GNU_SOURCE
#include <fnmatch.h>
#include <getopt.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../ktap.h"
#include "main.h"
#include "test.h"

#define PROTOCOL	1	/* version of the control channel; must be the same on both sides */
#define START_SECONDS	60	/* how long to wait for the other side to start */

static const struct row *const tables[] = {
	connect_rows, listen_rows, message_rows, option_rows, stream_rows, close_rows,
	poll_rows, ring_rows, many_rows, share_rows, upgrade_rows, hostile_rows, uring_rows,
	address_rows, support_rows, urgent_rows, sol_afrdma_rows, tcp_socket_rows, info_rows,
	policy_rows, misuse_rows, flags_rows, reset_rows, again_rows, tclass_rows,
	NULL,
};

static struct {
	const char *only;
	const char *variants;
	bool family_tcp;
	bool family_given;
	bool list;
	int port;
	int timeout;
	int limit;
	int slice, slices;
} opt = { .timeout = 20, .limit = 900, .slice = 1, .slices = 1 };

static int number, failed, skipped;

static const char usage[] =
	"usage: afr_test --client HOST --port P [options]\n"
	"       afr_test --server --port P [options]\n"
	"  --family rdma|tcp   sockets under test (default rdma; the server follows the client)\n"
	"  --host6 ADDR        IPv6 address of the server, for rows that need one\n"
	"  --inet6             all data connections over IPv6\n"
	"  --variants LIST     of rdma,cold,to_tcp,from_tcp (default: all)\n"
	"  --only LIST         rows, by name or pattern, with or without .variant\n"
	"  --quick             the quick rows, with smaller amounts of data\n"
	"  --slice I/N         every Nth of the selected rows, from the Ith on\n"
	"  --seed N            seed of data and sizes (default: random, printed)\n"
	"  --timeout S         kill a row that makes no progress for S seconds (default 20)\n"
	"  --limit S           kill a row that takes longer than S seconds (default 900)\n"
	"  --list              print the rows and stop\n";

/* ---- selection of rows ---- */

/* Does one of the comma-separated patterns in @list match @name or @full? Without a list: true. */
static bool in_list(const char *list, const char *name, const char *full)
{
	char *copy, *save, *word;
	bool found = false;

	if (!list)
		return true;
	copy = strdup(list);
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save))
		found |= !fnmatch(word, name, 0) || !fnmatch(word, full, 0);
	free(copy);
	return found;
}

/* May @row run in @variant, by its flags and --family? */
static bool allowed(const struct row *row, enum variant variant)
{
	static const unsigned int flags[VAR_COUNT] = {
		[VAR_RDMA] = ON_RDMA, [VAR_COLD] = ON_COLD,
		[VAR_TO_TCP] = ON_PLAIN, [VAR_FROM_TCP] = ON_PLAIN,
	};

	if (variant == VAR_TCP)
		return opt.family_tcp && !(row->flags & ONLY_RDMA);
	return !opt.family_tcp && row->flags & flags[variant];
}

static bool asked_for(enum variant variant)
{
	const char *name = variant_names[variant];

	return opt.family_tcp || in_list(opt.variants, name, name);
}

/*
 * Does @row run in @variant with --quick? A QUICK row runs only in the first variant that is
 * allowed() and asked_for(), a QUICK_ALL row in each such variant, any other row in none.
 */
static bool quick(const struct row *row, enum variant variant)
{
	if (row->flags & QUICK_ALL)
		return true;
	for (enum variant v = 0; v < variant; v++)
		if (allowed(row, v) && asked_for(v))
			return false;
	return row->flags & QUICK;
}

static bool selected(const struct row *row, enum variant variant)
{
	char full[128];

	snprintf(full, sizeof(full), "%s.%s", row->name, variant_names[variant]);
	return allowed(row, variant) && asked_for(variant) &&
	       in_list(opt.only, row->name, full) && (!run.quick || quick(row, variant));
}

/* Calls @act, if any, for each selected pair of row and variant in the slice; returns how many. */
static int for_each_row(void (*act)(const struct row *row, enum variant variant))
{
	int count = 0, seen = 0;

	for (int i = 0; tables[i]; i++)
		for (const struct row *row = tables[i]; row->name; row++)
			for (int v = 0; v < VAR_COUNT; v++) {
				if (!selected(row, v) || seen++ % opt.slices != opt.slice - 1)
					continue;
				count++;
				if (act)
					act(row, v);
			}
	return count;
}

static void list_row(const struct row *row, enum variant variant)
{
	printf("%s.%s\n", row->name, variant_names[variant]);
}

static const struct row *row_by_name(const char *name)
{
	for (int i = 0; tables[i]; i++)
		for (const struct row *row = tables[i]; row->name; row++)
			if (!strcmp(row->name, name))
				return row;
	return NULL;
}

/* ---- one row: parent ---- */

static void set_text(const char *text)
{
	snprintf(progress->text, sizeof(progress->text), "%s", text);
}

/*
 * How long one side may continue a row after the other side has ended it. It has only its last steps
 * to do, but guests with more CPUs than the machine may stand still for seconds.
 */
#define GRACE_SECONDS	5

/* Has the other side hung up more than GRACE_SECONDS ago? *@since: when that was first seen. */
static bool other_side_gone(double *since)
{
	struct pollfd p = { .fd = run.control, .events = POLLRDHUP };

	if (poll(&p, 1, 0) <= 0)
		return false;
	if (!*since)
		*since = now();
	return now() - *since > GRACE_SECONDS;
}

/*
 * Waits for the row's process to exit; returns false if the process must be killed. The server
 * waits a little longer: if both sides stall at the same time, the client ends the row first, and
 * reports where it stalled.
 */
static bool wait_row(pid_t pid, int *status)
{
	double slack = run.server ? 3 : 0;
	double start = now(), moved = start, gone = 0;
	unsigned long steps = 0;

	while (waitpid(pid, status, WNOHANG) != pid) {
		poll(NULL, 0, now() - start < 0.05 ? 1 : 10);
		if (progress->steps != steps) {
			steps = progress->steps;
			moved = now();
		}
		if (other_side_gone(&gone)) {
			snprintf(progress->text, sizeof(progress->text),
				 "the other side ended the row; this side was at %s:%d: %s",
				 progress->file, progress->line, progress->what);
			return false;
		}
		if (now() - moved < opt.timeout + slack && now() - start < opt.limit + slack)
			continue;
		snprintf(progress->text, sizeof(progress->text), "%s at %s:%d: %s",
			 now() - start < opt.limit + slack ? "stalled" : "over the time limit",
			 progress->file, progress->line, progress->what);
		return false;
	}
	return true;
}

static void bail_out(const char *why)
{
	printf("Bail out! %s\n", why);
	exit(1);
}

/*
 * Kills the remaining processes of a row. If process @pid has not @ended and cannot be killed, it
 * hangs in the kernel and would make the results of later rows meaningless: the run is aborted.
 */
static void kill_row(pid_t pid, bool ended)
{
	double end = now() + 30;

	kill(-pid, SIGKILL);
	if (ended)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (now() > end)
			bail_out("a row cannot be killed");
		poll(NULL, 0, 10);
	}
}

#define FRAMED_SECONDS	2	/* how long to wait after a row for its connection to be framed */

/*
 * If both ends use AF_RDMA and the row is not UNFRAMED, checks that a connection of this host has
 * become framed, and none has fallen back to TCP, since the counters in @old were read. Without
 * this, a row that does not check its path would also pass in fallback mode.
 */
static bool was_framed(const uint64_t *old)
{
	double end = now() + FRAMED_SECONDS;
	unsigned int framed = 0, fallback = 0;
	uint64_t stats[STAT_COUNT];

	if (run.row->flags & UNFRAMED || (run.variant != VAR_COLD && run.variant != VAR_RDMA))
		return true;
	do {
		if (!stats_read(stats))
			break;
		framed = stats[STAT_CONN_FRAMED] - old[STAT_CONN_FRAMED];
		fallback = stats[STAT_CONN_PLAIN] - old[STAT_CONN_PLAIN];
	} while (!framed && !fallback && now() < end && !poll(NULL, 0, 10));
	snprintf(progress->text, sizeof(progress->text),
		 "%u of its connections became framed, and %u fell back to TCP", framed, fallback);
	return framed && !fallback;
}

static void report(bool good, bool skip_row, double seconds)
{
	const char *name = run.row->name, *variant = variant_names[run.variant];

	number++;
	skipped += skip_row;
	failed += !skip_row && !good;
	if (skip_row)
		ktap_result(true, number, "%s.%s # SKIP %s", name, variant, progress->text);
	else if (good)
		ktap_result(true, number, "%s.%s", name, variant);
	else
		ktap_result(false, number, "%s.%s\n# %s.%s: %s", name, variant, name, variant,
			    progress->text);
	printf("# %s.%s took %.2f s\n", name, variant, seconds);
	fflush(stdout);
}

/* Runs @body in a process of its own, and prints the result of the row. */
static void run_and_report(void (*body)(void))
{
	uint64_t stats[STAT_COUNT];
	double start = now();
	int status = 0;
	bool ended;
	pid_t pid;

	stats_read(stats);

	memset(progress, 0, sizeof(*progress));
	progress->timeout = opt.timeout;
	progress->file = "";
	progress->what = "start";
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		bail_out("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		body();
		_exit(0);
	}
	ended = wait_row(pid, &status);
	kill_row(pid, ended);
	close(run.control);
	run.control = -1;
	if (ended && WIFSIGNALED(status)) {
		char text[256];

		snprintf(text, sizeof(text), "killed by signal %d at %.100s:%d: %.100s",
			 WTERMSIG(status), progress->file, progress->line, progress->what);
		set_text(text);
	}
	report(ended && !status && was_framed(stats),
	       ended && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP, now() - start);
}

/* ---- one row: child ---- */

static void run_row(void)
{
	bool need_v6 = run.inet6 || run.row->flags & NEEDS_V6;

	rnd_start(0);
	if (!run.server && need_v6 && !run.host6[0])
		skip("no IPv6 address of the server given (--host6)");
	(run.server ? run.row->server : run.row->client)();
	barrier("end of row");
}

static int session;

static void client_body(void)
{
	close(session);
	control_writef("ROW %s %d %llu %d %d %d %d", run.row->name, run.variant,
		       (unsigned long long)run.seed, run.inet6, run.quick, opt.timeout,
		       opt.limit);
	run_row();
}

static void client_row(const struct row *row, enum variant variant)
{
	run.row = row;
	run.variant = variant;
	run.control = control_connect(run.host, opt.port, 30);
	if (run.control < 0)
		bail_out("the server does not answer on the control port");
	run_and_report(client_body);
}

static void server_body(void)
{
	close(session);
	run_row();
}

/* The parent reads the name and parameters of the row, the child runs it. */
static void server_row(int control)
{
	int variant, inet6, quick, timeout, limit;
	char line[600], name[64];
	unsigned long long seed;

	run.control = control;
	control_readline(line, sizeof(line));
	if (sscanf(line, "ROW %63s %d %llu %d %d %d %d", name, &variant, &seed, &inet6, &quick,
		   &timeout, &limit) != 7 || !row_by_name(name))
		bail_out("unknown row: different builds?");
	run.row = row_by_name(name);
	run.variant = variant;
	run.seed = seed;
	run.inet6 = inet6;
	run.quick = quick;
	opt.timeout = timeout;
	opt.limit = limit;
	run_and_report(server_body);
}

/* ---- whole runs ---- */

static int summary(void)
{
	printf("# Totals: pass:%d fail:%d skip:%d\n", number - failed - skipped, failed, skipped);
	return failed ? 1 : 0;
}

static void plan(int count)
{
	ktap_begin(count);
	printf("# seed %llu\n", (unsigned long long)run.seed);
	fflush(stdout);
}

static int client_main(void)
{
	int count = for_each_row(NULL);
	int rc;

	if (!count) {
		fprintf(stderr, "no row matches\n");
		return 2;
	}
	session = control_connect(run.host, opt.port, START_SECONDS);
	if (session < 0)
		bail_out("no server on the control port");
	run.control = session;
	control_writef("SESSION %d %d %llu %s", PROTOCOL, count, (unsigned long long)run.seed,
		       opt.family_tcp ? "tcp" : "rdma");
	plan(count);
	for_each_row(client_row);
	rc = summary();
	run.control = session;
	control_writef("END");
	return rc;
}

/* Runs the rows that the client asks for, until the client ends the session. */
static int server_loop(int listener, int count)
{
	struct pollfd fds[] = {
		{ .fd = listener, .events = POLLIN },
		{ .fd = session, .events = POLLIN },
	};

	for (;;) {
		poll(fds, 2, -1);
		if (fds[0].revents)
			server_row(control_accept(listener, 1));
		else if (fds[1].revents)
			break;
	}
	if (number != count) {
		printf("# the client asked for %d of %d rows\n", number, count);
		failed++;
	}
	return summary();
}

static int server_main(void)
{
	int listener = control_listen(opt.port);
	int protocol, count;
	char line[600], family[8];
	unsigned long long seed;

	session = control_accept(listener, START_SECONDS);
	if (session < 0)
		bail_out("no client connected");
	run.control = session;
	control_readline(line, sizeof(line));
	if (sscanf(line, "SESSION %d %d %llu %7s", &protocol, &count, &seed, family) != 4 ||
	    protocol != PROTOCOL)
		bail_out("the client is of another build");
	if (opt.family_given && opt.family_tcp != !strcmp(family, "tcp"))
		bail_out("the client tests another family");
	run.seed = seed;
	run.control = -1;
	plan(count);
	return server_loop(listener, count);
}

static void set_family(const char *name)
{
	opt.family_given = true;
	opt.family_tcp = !strcmp(name, "tcp");
	if (!opt.family_tcp && strcmp(name, "rdma")) {
		fputs(usage, stderr);
		exit(2);
	}
}

static void set_host(const char *host)
{
	snprintf(run.host, sizeof(run.host), "%s", host);
	if (!strncmp(host, "127.", 4) && !run.host6[0])
		strcpy(run.host6, "::1");
}

static void set_slice(const char *text)
{
	if (sscanf(text, "%d/%d", &opt.slice, &opt.slices) != 2 || opt.slice < 1 ||
	    opt.slice > opt.slices) {
		fputs(usage, stderr);
		exit(2);
	}
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "client", required_argument, NULL, 'c' },
		{ "server", no_argument, NULL, 's' },
		{ "port", required_argument, NULL, 'p' },
		{ "family", required_argument, NULL, 'f' },
		{ "inet6", no_argument, NULL, '6' },
		{ "host6", required_argument, NULL, 'h' },
		{ "variants", required_argument, NULL, 'v' },
		{ "only", required_argument, NULL, 'o' },
		{ "quick", no_argument, NULL, 'q' },
		{ "slice", required_argument, NULL, 'i' },
		{ "seed", required_argument, NULL, 'S' },
		{ "timeout", required_argument, NULL, 't' },
		{ "limit", required_argument, NULL, 'L' },
		{ "list", no_argument, NULL, 'l' },
		{ }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'c': set_host(optarg); break;
		case 's': run.server = true; break;
		case 'p': opt.port = atoi(optarg); break;
		case 'f': set_family(optarg); break;
		case '6': run.inet6 = true; break;
		case 'h': snprintf(run.host6, sizeof(run.host6), "%s", optarg); break;
		case 'v': opt.variants = optarg; break;
		case 'o': opt.only = optarg; break;
		case 'q': run.quick = true; break;
		case 'i': set_slice(optarg); break;
		case 'S': run.seed = strtoull(optarg, NULL, 0); break;
		case 't': opt.timeout = atoi(optarg); break;
		case 'L': opt.limit = atoi(optarg); break;
		case 'l': opt.list = true; break;
		default: fputs(usage, stderr); exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	struct rlimit files = { 65536, 65536 };

	run.control = -1;
	run.tables = tables;
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	progress->timeout = 20;
	run.seed = mix((uint64_t)(now() * 1e9)) % 1000000000;
	parse(argc, argv);
	setrlimit(RLIMIT_NOFILE, &files);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (opt.list)
		return for_each_row(list_row) ? 0 : 1;
	if (!opt.port || run.server == !!run.host[0]) {
		fputs(usage, stderr);
		return 2;
	}
	return run.server ? server_main() : client_main();
}
