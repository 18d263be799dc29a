// SPDX-License-Identifier: GPL-2.0
/* Where rules come from: options first, then a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

int run_rules_line(struct run_rules *to, const char *source, unsigned int number,
		   const char *line)
{
	const char *wrong = rules_add(&to->rules, line);
	size_t used = strlen(to->lines);

	if (!wrong) {
		/* There is room: the rules have the same, and end each line too. */
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

/* These, and no others. */
int run_rules_ports(struct run_rules *to, const char *ports)
{
	char line[RULES_TEXT];

	snprintf(line, sizeof(line), "use rdma port %s", ports);
	if (run_rules_line(to, "--port", 0, line))
		return -1;
	return run_rules_line(to, "--port", 0, "use tcp");
}

/* Without its comment and its end. */
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
