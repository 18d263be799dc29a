// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Error messages that several files of smctl print. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "run.h"
#include "smctl.h"

/* Reports the negative errno of a failed request to the kernel. Returns EXIT_KERNEL. */
int kernel_error(int err)
{
	if (err == -ENOENT)
		fputs("smctl: afrdma is not loaded: run modprobe afrdma\n", stderr);
	else if (err == -EOPNOTSUPP)
		fputs("smctl: afrdma is older than smctl and does not know this request\n", stderr);
	else
		fprintf(stderr, "smctl: the request to the kernel failed: %s\n", strerror(-err));
	return EXIT_KERNEL;
}

/* Reports the errno with which @program could not be started. Returns the status for exit(). */
int cannot_run(const char *program, int err)
{
	fprintf(stderr, "smctl: cannot run %s: %s\n", program, strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}
