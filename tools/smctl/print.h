/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Prints objects as text or as JSON. The caller prints each field of an object by one call. A
 * filter consists of a name and a value; the name is the key of a field, or another name that
 * key_matches() accepts for that key. An object that does not match all filters is not printed.
 */
#ifndef SMCTL_PRINT_H
#define SMCTL_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum print_format {
	PRINT_TEXT,
	PRINT_JSON,
	PRINT_PRETTY,		/* JSON, indented */
};

struct print;

struct print *print_open(FILE *out, enum print_format format, char *const *filters, int n);
int print_close(struct print *p, const char **error);
void print_drop(struct print *p);

void print_begin(struct print *p);
void print_end(struct print *p);

void print_nest_begin(struct print *p, const char *key);
void print_nest_end(struct print *p);

void print_string(struct print *p, const char *key, const char *format, const char *value);
void print_u64(struct print *p, const char *key, const char *format, uint64_t value);
void print_flag(struct print *p, const char *key, const char *text, bool value);
void print_text(struct print *p, const char *text);

#endif /* SMCTL_PRINT_H */
