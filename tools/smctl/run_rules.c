// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Reads rules from options and files, and adds them to struct run_rules. run.c calls these
 * functions in the order of the options and then, if there is no --rules, for RULES_FILE.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

/*
 * Adds a rule. @source (an option or a file) and @number (of the line, or 0) are for an error
 * message. Returns 0, or -1 after an error message.
 */
int run_rules_line(struct run_rules *to, const char *source, unsigned int number,
		   const char *line)
{
	const char *wrong = rules_add(&to->rules, line);
	size_t used = strlen(to->lines);

	if (!wrong) {
		/*
		 * to->lines has room for @line: to->rules.text has the same size, and there
		 * rules_add() has stored all lines up to @line, with a NUL after each.
		 */
		snprintf(to->lines + used, sizeof(to->lines) - used, "%s%s",
			 used ? "\n" : "", line);
		return 0;
	}
	fprintf(stderr, "smctl: %s", source);
	if (number)
		fprintf(stderr, ":%u", number);
	fprintf(stderr, ": %s", wrong);
	if (to->rules.word)
		fprintf(stderr, ": %s", to->rules.word);
	fputs("\n", stderr);
	return -1;
}

/*
 * Adds the rule that consists of @words and the argument of option @source. Returns 0, or -1 after
 * an error message.
 */
int run_rules_option(struct run_rules *to, const char *source, const char *words,
		     const char *argument)
{
	char *line;
	int ret;

	if (asprintf(&line, "%s %s", words, argument) < 0) {
		perror("smctl");
		return -1;
	}
	ret = run_rules_line(to, source, 0, line);
	free(line);
	return ret;
}

/* Adds the rules of --port: RDMA for these ports, and TCP for all others. */
int run_rules_ports(struct run_rules *to, const char *ports)
{
	if (run_rules_option(to, "--port", "use rdma port", ports))
		return -1;
	return run_rules_line(to, "--port", 0, "use tcp");
}

/* Cuts off the comment and the newline. Returns whether there is a rule. */
static bool is_rule(char *line)
{
	line[strcspn(line, "#\n")] = '\0';
	return line[strspn(line, " \t\r")];
}

static int read_lines(struct run_rules *to, const char *path, FILE *file)
{
	unsigned int number = 0;
	char *line = NULL;
	size_t size = 0;
	int ret = 0;

	while (!ret && getline(&line, &size, file) >= 0) {
		number++;
		if (is_rule(line))
			ret = run_rules_line(to, path, number, line);
	}
	if (!ret && ferror(file)) {
		fprintf(stderr, "smctl: %s: %s\n", path, strerror(errno));
		ret = -1;
	}
	free(line);
	return ret;
}

/* Adds the rules of a file. @must: it is an error if the file does not exist. Returns 0 or -1. */
int run_rules_file(struct run_rules *to, const char *path, bool must)
{
	FILE *file = fopen(path, "re");
	int ret;

	if (!file && errno == ENOENT && !must)
		return 0;
	if (!file) {
		fprintf(stderr, "smctl: %s: %s\n", path, strerror(errno));
		return -1;
	}
	ret = read_lines(to, path, file);
	fclose(file);
	return ret;
}
