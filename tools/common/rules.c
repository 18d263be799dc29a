// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Parses rules: "use ACTION", and the conditions that a socket must meet. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

#define BLANKS	" \t\r"

static const char *take_program(struct rule *rule, const char *word)
{
	rule->program = word;
	return strchr(word, '/') ? "a program is named without its folder" : NULL;
}

static const char *take_cgroup(struct rule *rule, const char *word)
{
	rule->cgroup = word;
	return *word == '/' ? NULL : "a cgroup begins with /, as in /proc/PID/cgroup";
}

/* Parses a number of at most @max and sets @end behind it. Returns -1 if it is not valid. */
static long number(const char *word, char **end, long max)
{
	long value;

	if (*word < '0' || *word > '9')
		return -1;
	value = strtol(word, end, 10);
	return value > max ? -1 : value;
}

static const char *take_address(struct rule *rule, const char *word)
{
	static const char wrong[] = "no address or prefix such as 10.1.0.0/16 or fd00::/8";
	size_t len = strcspn(word, "/");
	char text[INET6_ADDRSTRLEN], *end;
	long bits;

	if (len >= sizeof(text))
		return wrong;
	memcpy(text, word, len);
	text[len] = '\0';
	rule->family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(rule->family, text, rule->prefix) != 1)
		return wrong;
	rule->bits = rule->family == AF_INET6 ? 128 : 32;
	if (!word[len])
		return NULL;
	bits = number(word + len + 1, &end, rule->bits);
	if (bits < 0 || *end)
		return wrong;
	rule->bits = bits;
	return NULL;
}

static const char *take_ports(struct rule *rule, const char *word)
{
	rule->ports = word;
	return NULL;
}

static const char *take_listen(struct rule *rule, const char *word)
{
	(void)word;
	rule->side = SIDE_LISTEN;
	return NULL;
}

static const char *take_connect(struct rule *rule, const char *word)
{
	(void)word;
	rule->side = SIDE_CONNECT;
	return NULL;
}

/* The conditions that may follow the action, at most one of each @kind. */
static const struct condition {
	const char	*word;
	/* returns NULL, or a message */
	const char	*(*take)(struct rule *rule, const char *word);
	bool		value;		/* the next word is its value */
	unsigned int	kind;
} conditions[] = {
	{ "program",	take_program,	true,	1 << 0 },
	{ "cgroup",	take_cgroup,	true,	1 << 1 },
	{ "listen",	take_listen,	false,	1 << 2 },
	{ "connect",	take_connect,	false,	1 << 2 },
	{ "address",	take_address,	true,	1 << 3 },
	{ "port",	take_ports,	true,	1 << 4 },
	{ NULL,		NULL,		false,	0 }
};

static const struct condition *find_condition(const char *word)
{
	const struct condition *condition = conditions;

	while (condition->word && strcmp(condition->word, word))
		condition++;
	return condition->word ? condition : NULL;
}

/* Parses the conditions in @rest. Returns NULL, or a message about rules->word. */
static const char *read_conditions(struct rules *rules, struct rule *rule, char **rest)
{
	const struct condition *condition;
	unsigned int seen = 0;
	const char *wrong, *word;

	while ((word = strtok_r(NULL, BLANKS, rest))) {
		rules->word = word;
		condition = find_condition(word);
		if (!condition)
			return "a rule knows program, cgroup, listen, connect, address, port, not";
		if (seen & condition->kind)
			return "given twice";
		seen |= condition->kind;
		if (condition->value) {
			word = strtok_r(NULL, BLANKS, rest);
			if (!word)
				return "nothing follows";
			rules->word = word;
		}
		wrong = condition->take(rule, word);
		if (wrong)
			return wrong;
	}
	return NULL;
}

static const char *add(struct rules *rules, const struct rule *rule)
{
	if (rules->n == RULES_MAX) {
		rules->word = NULL;
		return "more rules than there is room for";
	}
	rules->who |= rule->program || rule->cgroup;
	rules->where |= rule->side != SIDE_ANY || rule->family || rule->last;
	rules->rule[rules->n++] = *rule;
	return NULL;
}

/* Adds a copy of @rule for each range in its list of ports. */
static const char *add_ports(struct rules *rules, struct rule *rule)
{
	static const char wrong[] = "no port, range or list such as 22,7000-7100";
	const char *range = rule->ports, *full;
	long first, last;
	char *end;

	do {
		first = number(range, &end, UINT16_MAX);
		last = first;
		if (first > 0 && *end == '-')
			last = number(end + 1, &end, UINT16_MAX);
		if (first <= 0 || last < first || (*end && *end != ',')) {
			rules->word = rule->ports;
			return wrong;
		}
		rule->first = first;
		rule->last = last;
		full = add(rules, rule);
		range = end + 1;
	} while (!full && *end);
	return full;
}

/* Parses @line, which is modified, and adds its rule. Returns NULL, or a message. */
static const char *read_rule(struct rules *rules, char *line)
{
	struct rule rule = { 0 };
	const char *wrong;
	char *rest;

	rules->word = strtok_r(line, BLANKS, &rest);
	if (!rules->word || strcmp(rules->word, "use"))
		return "a rule begins with use, not with";
	rules->word = strtok_r(NULL, BLANKS, &rest);
	if (!rules->word)
		return "use is followed by rdma or tcp";
	rule.rdma = !strcmp(rules->word, "rdma");
	if (!rule.rdma && strcmp(rules->word, "tcp"))
		return "use is followed by rdma or tcp, not by";
	wrong = read_conditions(rules, &rule, &rest);
	if (wrong)
		return wrong;
	return rule.ports ? add_ports(rules, &rule) : add(rules, &rule);
}

const char *rules_add(struct rules *rules, const char *line)
{
	size_t len = strlen(line);
	const char *wrong;
	char *copy;

	rules->word = NULL;
	if (strchr(line, '\n'))
		return "a rule is one line";
	if (len >= sizeof(rules->text) - rules->used)
		return "more rules than there is room for";
	/* The rules point into this copy, since callers reuse or free @line. */
	copy = rules->text + rules->used;
	memcpy(copy, line, len + 1);
	wrong = read_rule(rules, copy);
	rules->used += len + 1;
	return wrong;
}
