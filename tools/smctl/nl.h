/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Generic netlink requests to the family "afrdma". Errors are negative errno. */
#ifndef SMCTL_NL_H
#define SMCTL_NL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/netlink.h>

#define NL_ATTRS	64	/* more than any message of the family has */

struct nl;

/*
 * nl_get() calls this for each object. @attr is indexed by AFRDMA_A_*; an entry is NULL if the
 * object lacks that attribute.
 */
typedef void nl_message_fn(const struct nlattr *const *attr, void *arg);

int nl_open(struct nl **nl);
void nl_close(struct nl *nl);

int nl_get(struct nl *nl, uint8_t cmd, bool dump, nl_message_fn *fn, void *arg);

struct nl_value {
	uint16_t	attr;		/* AFRDMA_A_* */
	bool		wide;		/* 8 bytes, else 4 */
	uint64_t	value;
};

int nl_set(struct nl *nl, uint8_t cmd, const struct nl_value *values, size_t n);

uint16_t nl_u16(const struct nlattr *attr);
uint32_t nl_u32(const struct nlattr *attr);
uint64_t nl_u64(const struct nlattr *attr);
const char *nl_string(const struct nlattr *attr);
const void *nl_binary(const struct nlattr *attr, size_t *len);
void nl_nest(const struct nlattr *attr, const struct nlattr **into);

#endif /* SMCTL_NL_H */
