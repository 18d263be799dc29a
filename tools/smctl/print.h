/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The print layer: every field is printed once, by its key, and comes out as
 * text or as JSON. The same keys serve as filters: an object that does not
 * match all of them is dropped.
 */
#ifndef SMCTL_PRINT_H
#define SMCTL_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum print_format {
	PRINT_TEXT,
	PRINT_JSON,
	PRINT_PRETTY,		/* JSON for people */
};

struct print;

/* @filters: @n strings KEY VALUE KEY VALUE ..., n even, kept by the caller. NULL without memory. */
struct print *print_open(FILE *out, enum print_format format, char *const *filters, int n);
/*
 * Write what is left and free @p. Returns 0, or 1 when filters let nothing
 * through, or 2 when the output could not be written; a sentence is in *@error.
 */
int print_close(struct print *p, const char **error);
/* Free @p without writing what is left. */
void print_drop(struct print *p);

/* An object begins and ends; fields come between. */
void print_begin(struct print *p);
void print_end(struct print *p);

/* An object inside the object. */
void print_nest_begin(struct print *p, const char *key);
void print_nest_end(struct print *p);

/* @format prints the value as text; NULL: the field is in JSON and filters only. */
void print_string(struct print *p, const char *key, const char *format, const char *value);
void print_u64(struct print *p, const char *key, const char *format, uint64_t value);
/* @text is printed if @value is true. */
void print_flag(struct print *p, const char *key, const char *text, bool value);

/* Text between fields. */
void print_text(struct print *p, const char *text);

#endif /* SMCTL_PRINT_H */
