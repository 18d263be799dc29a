/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of smctl share: one show function per object. */
#ifndef SMCTL_H
#define SMCTL_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "nl.h"
#include "print.h"

enum {
	EXIT_OK		= 0,
	EXIT_USAGE	= 1,	/* wrong usage, or filters that nothing matches */
	EXIT_KERNEL	= 2,	/* the kernel said no */
};

struct reasons;

struct smctl {
	struct nl	*nl;
	struct print	*print;
	struct reasons	*reasons;
};

/* nl_message_fn's: print one object, @arg is the struct smctl. */
nl_message_fn conn_show, link_show, dev_show, stat_show, reason_show, info_show;

/* smctl run [OPTIONS] [--] PROGRAM [ARGS]: the status for exit(). */
int run_program(int argc, char **argv);
void run_help(FILE *out);

/* Is "@words" something to do to an @object? Then do it; *@status is for exit(). */
bool act_on(const char *object, char **words, int n, int *status);
void act_help(FILE *out);

/* Say why the kernel did not answer: returns EXIT_KERNEL. */
int kernel_error(int err);

/* The list of reasons, from the kernel. NULL, and *@err is negative errno. */
struct reasons *reasons_load(struct nl *nl, int *err);
void reasons_free(struct reasons *reasons);

/* Fields that several objects have (fields.c). */

/* KEY and KEY_port, as "address:port"; "*" if @attr is NULL. */
void field_endpoint(struct print *p, const char *key, const struct nlattr *attr);
/* The name of @value in @names, which ends with NULL; its number if it has none. */
void field_name(struct print *p, const char *key, const char *format,
		const char *const *names, uint32_t value);
/* A reason, if @attr is there: KEY is its name, KEY_number, KEY_text. */
void field_reason(struct smctl *smctl, const char *key, const struct nlattr *attr);
/* The same, with KEY_peer: is it the peer's, who has told it? */
void field_reason_of(struct smctl *smctl, const char *key, const struct nlattr *attr, bool peer);
/* Bytes in hexadecimal. */
void field_hex(struct print *p, const char *key, const char *format, const struct nlattr *attr);

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define U64			"%" PRIu64

#endif /* SMCTL_H */
