// SPDX-License-Identifier: GPL-2.0
/* smctl run: start a program whose TCP sockets become AF_RDMA sockets. */
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "smctl.h"

#define LIBRARY		"libafrdma-preload.so"

/* As shells do when a program cannot be started. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

/* Beside this program (a build tree), or where it was installed. */
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

/* Other preloaded libraries stay. */
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

static int usage(void)
{
	fputs("smctl: no program given: smctl run [--preload PATH] -- PROGRAM [ARGS]\n", stderr);
	return EXIT_USAGE;
}

int run_program(int argc, char **argv)
{
	static const struct option options[] = {
		{ "preload", required_argument, NULL, 'p' },
		{ NULL, 0, NULL, 0 }
	};
	char library[PATH_MAX];
	const char *path = NULL;
	int option;

	optind = 0;	/* again, from the start */
	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (option != 'p')
			return usage();
		path = optarg;
	}
	if (optind == argc)
		return usage();
	if (!path)
		path = find_library();
	/* The program may change its directory and start others. */
	if (!realpath(path, library)) {
		fprintf(stderr, "smctl: no %s: %s: install it, or say --preload PATH\n",
			path, strerror(errno));
		return EXIT_USAGE;
	}
	if (access("/sys/module/afrdma", F_OK))
		fputs("smctl: afrdma is not loaded, so this will be plain TCP: run modprobe afrdma\n",
		      stderr);
	if (preload(library)) {
		perror("smctl: LD_PRELOAD");
		return EXIT_USAGE;
	}
	execvp(argv[optind], argv + optind);
	option = errno;
	fprintf(stderr, "smctl: cannot run %s: %s\n", argv[optind], strerror(option));
	return option == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}
