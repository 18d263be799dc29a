// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * smctl: shows AF_RDMA connections, links, devices, counters, reasons and settings; moves
 * connections and drains links; and runs programs. This file parses the command and shows objects.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/af_rdma.h>
#include <linux/af_rdma_netlink.h>

#include "smctl.h"

/* The kinds of objects that smctl shows: the request, and the function that prints one object. */
static const struct object {
	const char	*name;
	const char	*plural;
	nl_message_fn	*show;
	const char	*help;
	uint8_t		cmd;
	bool		one;		/* the answer is a single message, not a dump */
} objects[] = {
	{ "conn", "conns", conn_show, "connections: mode, path, bytes, and why one is not on RDMA",
	  AFRDMA_CMD_CONN_GET, false },
	{ "link", "links", link_show, "RDMA links that connections share",
	  AFRDMA_CMD_LINK_GET, false },
	{ "dev", "devs", dev_show, "RDMA devices, and why one is not used",
	  AFRDMA_CMD_DEV_GET, false },
	{ "stat", "stats", stat_show, "counters of this network namespace",
	  AFRDMA_CMD_STATS_GET, false },
	{ "reason", "reasons", reason_show, "every reason for fallbacks, lost links and aborts",
	  AFRDMA_CMD_REASON_GET, false },
	{ "info", "info", info_show, "the module and its settings",
	  AFRDMA_CMD_INFO_GET, true },
};

static void help(FILE *out)
{
	const struct object *object;

	fputs("Usage: smctl [-j|-p] OBJECT [show] [FIELD VALUE]...\n", out);
	action_help(out);
	fputs("       smctl run [OPTIONS] -- PROGRAM [ARGS]\n"
	      "       smctl help\n\n"
	      "Objects:\n", out);
	for (object = objects; object < objects + ARRAY_SIZE(objects); object++)
		fprintf(out, "  %-8s %s\n", object->name, object->help);
	fputs("\nOptions:\n"
	      "  -j       JSON: an array of objects with the fields of the text\n"
	      "  -p       the same, indented\n"
	      "  -h, --help, --version\n\n"
	      "FIELD VALUE shows only objects with that value: smctl conn path tcp\n\n", out);
	run_help(out);
}

static int usage(const char *what, const char *word)
{
	fprintf(stderr, "smctl: %s%s%s: see smctl help\n", what, word ? " " : "", word ? word : "");
	return EXIT_USAGE;
}

static const struct object *find_object(const char *name)
{
	const struct object *object;

	for (object = objects; object < objects + ARRAY_SIZE(objects); object++)
		if (!strcmp(name, object->name) || !strcmp(name, object->plural))
			return object;
	return NULL;
}

/*
 * Requests all objects of the kind @object and calls @object->show() for each. Returns 0 or a
 * negative errno.
 */
static int show(struct smctl *smctl, const struct object *object)
{
	int err;

	smctl->reasons = reasons_load(smctl->nl, &err);
	if (err)
		return err;
	err = nl_get(smctl->nl, object->cmd, !object->one, object->show, smctl);
	reasons_free(smctl->reasons);
	return err;
}

/* Shows the objects of the kind @object that match @filters. Returns the status for exit(). */
static int show_object(const struct object *object, enum print_format format,
		       char **filters, int n)
{
	const char *sentence;
	struct smctl smctl;
	int err, ret;

	err = nl_open(&smctl.nl);
	if (err)
		return kernel_error(err);
	smctl.print = print_open(stdout, format, filters, n);
	err = smctl.print ? show(&smctl, object) : -ENOMEM;
	nl_close(smctl.nl);
	if (err && smctl.print)
		print_drop(smctl.print);
	if (err)
		return kernel_error(err);
	ret = print_close(smctl.print, &sentence);
	if (ret)
		fprintf(stderr, "smctl: %s\n", sentence);
	return ret;
}

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ }
};

/*
 * Parses options of @argv. Ends smctl for --help and --version; otherwise returns 0, or -1 after an
 * error message.
 */
static int options(int argc, char **argv, const char *known, enum print_format *format)
{
	int option;

	opterr = 0;
	optind = 0;	/* start a new scan */
	while ((option = getopt_long(argc, argv, known, long_options, NULL)) != -1) {
		switch (option) {
		case 'j':
			*format = PRINT_JSON;
			break;
		case 'p':
			*format = PRINT_PRETTY;
			break;
		case 'h':
			help(stdout);
			exit(EXIT_OK);
		case 'V':
			printf("smctl " AFRDMA_VERSION " (netlink family %s, version %d)\n",
			       AFRDMA_FAMILY_NAME, AFRDMA_FAMILY_VERSION);
			exit(EXIT_OK);
		default:
			usage("no such option:", optopt ? (char [2]){ optopt } : argv[optind - 1]);
			return -1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	enum print_format format = PRINT_TEXT;
	const struct object *object;
	int status;

	/* "+" ends the scan at the first word: options behind "run" are for run_program() */
	if (options(argc, argv, "+jph", &format))
		return EXIT_USAGE;
	argc -= optind;
	argv += optind;
	if (!argc)
		return usage("no object given", NULL);
	if (!strcmp(argv[0], "help")) {
		help(stdout);
		return EXIT_OK;
	}
	if (!strcmp(argv[0], "run"))
		return run_program(argc, argv);
	object = find_object(argv[0]);
	if (!object)
		return usage("no such object:", argv[0]);
	if (options(argc, argv, "jph", &format))
		return EXIT_USAGE;
	argc -= optind;
	argv += optind;
	if (act_on(object->name, argv, argc, &status))
		return status;
	if (argc && !strcmp(argv[0], "show")) {
		argc--;
		argv++;
	}
	if (argc % 2)
		return usage("no value for the field", argv[argc - 1]);
	return show_object(object, format, argv, argc);
}
