/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of smctl run share. */
#ifndef SMCTL_RUN_H
#define SMCTL_RUN_H

#include "../common/rules.h"

#define RULES_FILE	"/etc/afrdma/run.conf"

/* As shells do when a program cannot be started. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

/* How a program makes its system calls. */
enum program_kind {
	PROGRAM_DYNAMIC,	/* by the C library, which can be preloaded */
	PROGRAM_STATIC,
	PROGRAM_GO,		/* by itself, dynamic or not */
	PROGRAM_FOREIGN,	/* ELF of another machine, or of 32 bits */
	PROGRAM_UNKNOWN,	/* neither ELF nor a script */
	PROGRAM_MISSING,	/* not there, or not to be read */
};

/* Of what execvp() would start as @name; for a script, of its interpreter. */
enum program_kind program_kind(const char *name);

/* The rules, and their lines for the preload library. */
struct run_rules {
	struct rules	rules;
	char		lines[RULES_TEXT];
	bool		from_file;	/* --rules was given */
};

/* Each returns -1 after a complaint. @source is for that: a file or an option. */
int run_rules_line(struct run_rules *to, const char *source, unsigned int number,
		   const char *line);
int run_rules_ports(struct run_rules *to, const char *ports);
/* @must: it is an error that there is no such file. */
int run_rules_file(struct run_rules *to, const char *path, bool must);

/* Say why @program cannot be started: the status for exit(). */
int cannot_run(const char *program, int err);

/* Start @argv under a supervisor: the status for exit(), when all it started is gone. */
int supervise(char **argv, const struct rules *rules);

/* In the program-to-be: a descriptor that hears of its calls, or -1. */
int filter_install(bool where);
/* Of the supervisor: answer one call that came to @listener. */
void notify_answer(int listener, const struct rules *rules);

#endif /* SMCTL_RUN_H */
