/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Declarations that the files of "smctl run" share. */
#ifndef SMCTL_RUN_H
#define SMCTL_RUN_H

#include "../common/rules.h"

#define RULES_FILE	"/etc/afrdma/run.conf"

/* The status that shells return if a program cannot be started. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

/* Kinds of programs. The first three differ in how they make system calls. */
enum program_kind {
	PROGRAM_DYNAMIC,	/* through the dynamic C library: a library can be preloaded */
	PROGRAM_STATIC,		/* through code linked statically: no library can be preloaded */
	PROGRAM_GO,		/* directly, even if dynamically linked */
	PROGRAM_FOREIGN,	/* ELF for another machine, word size or byte order */
	PROGRAM_UNKNOWN,	/* neither ELF nor a script, or scripts nested too deeply */
	PROGRAM_MISSING,	/* not in PATH; or it or a script's interpreter cannot be opened */
};

enum program_kind program_kind(const char *name);

/* The rules, parsed, and as text for the preload library. */
struct run_rules {
	struct rules	rules;
	char		lines[RULES_TEXT];
	bool		from_file;	/* --rules was given */
};

int run_rules_line(struct run_rules *to, const char *source, unsigned int number,
		   const char *line);
int run_rules_option(struct run_rules *to, const char *source, const char *words,
		     const char *argument);
int run_rules_ports(struct run_rules *to, const char *ports);
int run_rules_file(struct run_rules *to, const char *path, bool must);

int cannot_run(const char *program, int err);

int supervise(char **argv, const struct rules *rules);

int filter_install(bool where);
void notify_answer(int listener, const struct rules *rules);

#endif /* SMCTL_RUN_H */
