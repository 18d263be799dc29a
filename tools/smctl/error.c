// SPDX-License-Identifier: GPL-2.0
/* Sentences about what went wrong, for all files of smctl. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "run.h"
#include "smctl.h"

int kernel_error(int err)
{
	if (err == -ENOENT)
		fputs("smctl: afrdma is not loaded: run modprobe afrdma\n", stderr);
	else if (err == -EOPNOTSUPP)
		fputs("smctl: the loaded afrdma is older than smctl: it cannot tell this\n", stderr);
	else
		fprintf(stderr, "smctl: the kernel did not answer: %s\n", strerror(-err));
	return EXIT_KERNEL;
}

int cannot_run(const char *program, int err)
{
	fprintf(stderr, "smctl: cannot run %s: %s\n", program, strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}
