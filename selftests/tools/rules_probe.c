// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * For run.py: evaluates the rules in its arguments for the queries on standard input:
 *
 *	socket DOMAIN TYPE PROTOCOL	numbers
 *	connect ADDRESS PORT
 *	listen ADDRESS PORT
 *
 * Prints rdma or tcp for each, "what?" for a bad address. If a rule is bad, prints only a message
 * about it and exits with 1. $PROC is the /proc folder of the process to which the rules are
 * applied; the default is /proc/self.
 */
#include <arpa/inet.h>
#include <stdlib.h>

#include "../../tools/common/decide.c"

static struct rules rules;

/* The answer to a "connect" or "listen" query; @side is the line that begins with that word. */
static const char *side_result(const char *proc, const char *side, const char *address, int port)
{
	struct where where = { .side = *side == 'l' ? SIDE_LISTEN : SIDE_CONNECT };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct who who;
	bool known;

	if (strchr(address, ':'))
		known = inet_pton(AF_INET6, address, &in6.sin6_addr) == 1 &&
			look_where(&where, (void *)&in6, sizeof(in6));
	else
		known = inet_pton(AF_INET, address, &in.sin_addr) == 1 &&
			look_where(&where, (void *)&in, sizeof(in));
	if (!known)
		return "what?";
	look_who(&who, &rules, proc);
	return says_rdma(&rules, &who, &where) ? "rdma" : "tcp";
}

int main(int argc, char **argv)
{
	const char *proc = getenv("PROC") ?: "/proc/self", *wrong;
	int i, domain, type, protocol;
	char line[256], word[256];

	for (i = 1; i < argc; i++) {
		wrong = rules_add(&rules, argv[i]);
		if (wrong) {
			printf("%s: %s\n", wrong, rules.word ? rules.word : "");
			return 1;
		}
	}
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "socket %d %d %d", &domain, &type, &protocol) == 3)
			puts(rules_want(&rules, proc, domain, type, protocol) ? "rdma" : "tcp");
		else if (sscanf(line, "%*s %s %d", word, &type) == 2)
			puts(side_result(proc, line, word, type));
	}
	return 0;
}
