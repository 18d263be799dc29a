// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* smctl conn move and smctl link drain: changes that an administrator can make. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/af_rdma.h>
#include <linux/af_rdma_netlink.h>

#include "smctl.h"

/* The changes. Each applies to the object with a given id; "move" also takes "tcp" or "rdma". */
static const struct action {
	const char	*object, *verb;
	const char	*usage;
	const char	*missing;	/* message if there is no such object */
	const char	*words[2];	/* words[i] stands for value i of attribute @to */
	uint16_t	id, to;		/* netlink attributes; @to is 0 if @words are NULL */
	uint8_t		cmd;
} actions[] = {
	{ "conn", "move", "smctl conn move ID tcp|rdma",
	  "there is no connection of this id: see smctl conn", { "tcp", "rdma" },
	  AFRDMA_A_CONN_ID, AFRDMA_A_CONN_TO, AFRDMA_CMD_CONN_MOVE },
	{ "link", "drain", "smctl link drain ID",
	  "there is no link of this id: see smctl link", { NULL, NULL },
	  AFRDMA_A_LINK_ID, 0, AFRDMA_CMD_LINK_DRAIN },
};

static int report_error(const struct action *action, int err)
{
	switch (-err) {
	case ENOENT:
		fprintf(stderr, "smctl: %s\n", action->missing);
		break;
	case EPERM:
		fprintf(stderr, "smctl: %s needs CAP_NET_ADMIN: run it as root\n", action->usage);
		break;
	case EOPNOTSUPP:
		fputs("smctl: only framed connections can move: see mode in smctl conn\n", stderr);
		break;
	default:
		fprintf(stderr, "smctl: the kernel refused: %s\n", strerror(-err));
	}
	return EXIT_KERNEL;
}

/* Sends the request for a change. Returns the status for exit(). */
static int take_action(const struct action *action, uint64_t id, unsigned int word)
{
	const struct nl_value values[] = {
		{ action->id, true, id },
		{ action->to, false, word },
	};
	struct nl *nl;
	int err;

	err = nl_open(&nl);
	if (err)
		return kernel_error(err);
	err = nl_set(nl, action->cmd, values, action->to ? 2 : 1);
	nl_close(nl);
	return err ? report_error(action, err) : EXIT_OK;
}

static int usage_error(const struct action *action)
{
	fprintf(stderr, "Usage: %s\n", action->usage);
	return EXIT_USAGE;
}

/* Parses the arguments of a change and makes it. Returns the status for exit(). */
static int parse(const struct action *action, char **words, int n)
{
	unsigned int word = 0;
	uint64_t id;
	char *end;

	if (n != (action->to ? 2 : 1))
		return usage_error(action);
	errno = 0;
	id = strtoull(words[0], &end, 10);
	if (errno || end == words[0] || *end || words[0][0] == '-')
		return usage_error(action);
	while (action->to && strcmp(words[1], action->words[word]))
		if (++word == ARRAY_SIZE(action->words))
			return usage_error(action);
	return take_action(action, id, word);
}

/*
 * If @words begins with the verb of a change to @object, tries to make the change, sets *@status
 * to the status for exit() and returns true. Otherwise returns false.
 */
bool act_on(const char *object, char **words, int n, int *status)
{
	const struct action *action;

	for (action = actions; action < actions + ARRAY_SIZE(actions); action++) {
		if (!n || strcmp(object, action->object) || strcmp(words[0], action->verb))
			continue;
		*status = parse(action, words + 1, n - 1);
		return true;
	}
	return false;
}

void action_help(FILE *out)
{
	const struct action *action;

	for (action = actions; action < actions + ARRAY_SIZE(actions); action++)
		fprintf(out, "       %s\n", action->usage);
}
