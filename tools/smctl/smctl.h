/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Declarations that the files of smctl share. */
#ifndef SMCTL_H
#define SMCTL_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "nl.h"
#include "print.h"

enum {
	EXIT_OK		= 0,
	/*
	 * wrong usage, rules that are wrong or cannot be read, no usable preload library, or
	 * filters that no object matches
	 */
	EXIT_USAGE	= 1,
	/* a request to the kernel or a write of the output failed, or there is no memory */
	EXIT_KERNEL	= 2,
};

struct reasons;

struct smctl {
	struct nl	*nl;
	struct print	*print;
	struct reasons	*reasons;
};

/* Each prints one object; @arg is the struct smctl. */
nl_message_fn conn_show, link_show, dev_show, stat_show, reason_show, info_show;

int run_program(int argc, char **argv);
void run_help(FILE *out);

bool act_on(const char *object, char **words, int n, int *status);
void action_help(FILE *out);

int kernel_error(int err);

struct reasons *reasons_load(struct nl *nl, int *err);
void reasons_free(struct reasons *reasons);

void field_endpoint(struct print *p, const char *key, const struct nlattr *attr);
void field_name(struct print *p, const char *key, const char *format,
		const char *const *names, uint32_t value);
void field_reason(struct smctl *smctl, const char *key, const struct nlattr *attr);
void field_reason_and_peer(struct smctl *smctl, const char *key, const struct nlattr *attr,
			   bool peer);
void field_hex(struct print *p, const char *key, const char *format, const struct nlattr *attr);

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define U64			"%" PRIu64

#endif /* SMCTL_H */
