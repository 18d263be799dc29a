// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* smctl run: starts a program. Rules decide which of its TCP sockets become AF_RDMA sockets. */
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"
#include "smctl.h"

#define LIBRARY		"libafrdma-preload.so"

enum via { VIA_CHOICE, VIA_PRELOAD, VIA_SECCOMP };

struct run {
	struct run_rules	rules;
	const char		*library;
	enum via		via;
};

/*
 * Returns the path of the preload library: in the folder of smctl if the library is there, as in
 * a build tree, else in LIBDIR, where "make install" puts it.
 */
static const char *find_library(void)
{
	static char path[PATH_MAX + sizeof("/" LIBRARY)];
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (len > 0) {
		path[len] = '\0';
		dirname(path);
		strcat(path, "/" LIBRARY);
		if (!access(path, R_OK))
			return path;
	}
	return LIBDIR "/" LIBRARY;
}

/* Adds @library to LD_PRELOAD; other preloaded libraries stay. */
static int preload(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	char *value;
	int ret;

	if (!others || !*others)
		return setenv("LD_PRELOAD", library, 1);
	if (asprintf(&value, "%s:%s", library, others) < 0)
		return -1;
	ret = setenv("LD_PRELOAD", value, 1);
	free(value);
	return ret;
}

/*
 * Removes the library from LD_PRELOAD, where a "smctl run" around this one may have put it. In the
 * program, the library would create AF_RDMA sockets even where the rules of this smctl select TCP.
 */
static int unpreload(void)
{
	const char *others = getenv("LD_PRELOAD");
	char *words = strdup(others ? others : ""), *left = strdup(""), *word, *more, *at = words;
	int ret;

	while (words && left && (word = strsep(&at, ": "))) {
		const char *name = strrchr(word, '/');

		if (!*word || !strcmp(name ? name + 1 : word, LIBRARY))
			continue;
		if (asprintf(&more, "%s%s%s", left, *left ? ":" : "", word) < 0)
			more = NULL;
		free(left);
		left = more;
	}
	if (!words || !left)
		return -1;
	ret = *left ? setenv("LD_PRELOAD", left, 1) : unsetenv("LD_PRELOAD");
	free(words);
	free(left);
	return ret;
}

static int run_preloaded(const struct run *run, char **argv)
{
	const char *path = run->library ? run->library : find_library();
	char library[PATH_MAX];

	/* The path must be absolute: the program may change directory and start other programs. */
	if (!realpath(path, library)) {
		fprintf(stderr, "smctl: no %s: %s: install it, or give --preload PATH\n",
			path, strerror(errno));
		return EXIT_USAGE;
	}
	if (strpbrk(library, ": ")) {
		fprintf(stderr, "smctl: %s cannot be preloaded: its path has a blank or a colon\n",
			library);
		return EXIT_USAGE;
	}
	if (preload(library) || setenv(RULES_VARIABLE, run->rules.lines, 1)) {
		perror("smctl: LD_PRELOAD");
		return EXIT_KERNEL;
	}
	execvp(argv[0], argv);
	return cannot_run(argv[0], errno);
}

/* Returns VIA_PRELOAD or VIA_SECCOMP, by the kind of @program. May print a warning. */
static enum via choose(const char *program)
{
	static const struct {
		enum via	via;
		const char	*warning;
	} means[] = {
		[PROGRAM_DYNAMIC]	= { VIA_PRELOAD, NULL },
		[PROGRAM_STATIC]	= { VIA_SECCOMP, NULL },
		[PROGRAM_GO]		= { VIA_SECCOMP, NULL },
		[PROGRAM_FOREIGN]	= { VIA_PRELOAD,
			"is for another kind of machine than smctl: its sockets stay TCP sockets" },
		[PROGRAM_UNKNOWN]	= { VIA_PRELOAD,
			"is neither an ELF file nor a script: assumed to use the C library" },
		/* no warning: if execvp() fails, too, an error message gives the reason */
		[PROGRAM_MISSING]	= { VIA_PRELOAD, NULL },
	};
	enum program_kind kind = program_kind(program);

	if (means[kind].warning)
		fprintf(stderr, "smctl: %s %s\n", program, means[kind].warning);
	return means[kind].via;
}

static int bad_means(const char *word)
{
	fprintf(stderr, "smctl: --via is followed by preload or seccomp, not by %s\n", word);
	return -1;
}

static int take_via(struct run *run, const char *word)
{
	if (!strcmp(word, "preload"))
		run->via = VIA_PRELOAD;
	else if (!strcmp(word, "seccomp"))
		run->via = VIA_SECCOMP;
	else
		return bad_means(word);
	return 0;
}

void run_help(FILE *out)
{
	fputs("smctl run [OPTIONS] -- PROGRAM [ARGS]\n"
	      "  --port PORTS    only sockets with these ports use AF_RDMA: 6379,7000-7100\n"
	      "  --use RULE      a rule: which sockets use AF_RDMA (rdma) and which TCP (tcp);\n"
	      "                  the first rule that matches a socket decides:\n"
	      "                  rdma|tcp [program NAME] [cgroup PATH] [listen|connect]\n"
	      "                  [address PREFIX] [port PORTS]\n"
	      "  --rules FILE    rules, one per line, instead of those in " RULES_FILE "\n"
	      "  --via MEANS     preload (for programs that use the C library) or seccomp (any);\n"
	      "                  default: what suits the program\n"
	      "  --preload PATH  path of " LIBRARY "\n", out);
}

/*
 * Applies one option, whose argument is @word. For --help, ends smctl; else returns 0, or -1 after
 * an error message.
 */
static int take(struct run *run, int option, const char *word)
{
	switch (option) {
	case 'l':
		run->library = word;
		return 0;
	case 'v':
		return take_via(run, word);
	case 'u':
		return run_rules_option(&run->rules, "--use", "use", word);
	case 'p':
		return run_rules_ports(&run->rules, word);
	case 'r':
		run->rules.from_file = true;
		return run_rules_file(&run->rules, word, true);
	case 'h':
		run_help(stdout);
		exit(EXIT_OK);
	}
	fputs("smctl: see smctl help\n", stderr);
	return -1;
}

/* Reads the options and the rules. Returns 0, or -1 after an error message. */
static int options(struct run *run, int argc, char **argv)
{
	static const struct option known[] = {
		{ "preload",	required_argument,	NULL, 'l' },
		{ "via",	required_argument,	NULL, 'v' },
		{ "use",	required_argument,	NULL, 'u' },
		{ "port",	required_argument,	NULL, 'p' },
		{ "rules",	required_argument,	NULL, 'r' },
		{ "help",	no_argument,		NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	int option;

	optind = 0;	/* start a new scan */
	while ((option = getopt_long(argc, argv, "+h", known, NULL)) != -1)
		if (take(run, option, optarg))
			return -1;
	return run->rules.from_file ? 0 : run_rules_file(&run->rules, RULES_FILE, false);
}

/*
 * Handles "smctl run [OPTIONS] [--] PROGRAM [ARGS]". Returns the status for exit(), unless
 * execvp() replaces smctl by the program.
 */
int run_program(int argc, char **argv)
{
	static struct run run;

	opterr = 1;
	if (options(&run, argc, argv))
		return EXIT_USAGE;
	argv += optind;
	if (!*argv) {
		fputs("smctl: no program given: smctl run [OPTIONS] -- PROGRAM [ARGS]\n", stderr);
		return EXIT_USAGE;
	}
	if (access("/sys/module/afrdma", F_OK))
		fputs("smctl: afrdma is not loaded, so the program uses TCP: run modprobe afrdma\n",
		      stderr);
	if (run.via == VIA_CHOICE)
		run.via = choose(*argv);
	if (run.via == VIA_PRELOAD)
		return run_preloaded(&run, argv);
	if (unpreload()) {
		perror("smctl: LD_PRELOAD");
		return EXIT_KERNEL;
	}
	return supervise(argv, &run.rules.rules);
}
