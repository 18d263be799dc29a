/* SPDX-License-Identifier: GPL-2.0 */
/* Generic netlink requests to the family "afrdma". Errors are negative errno. */
#ifndef SMCTL_NL_H
#define SMCTL_NL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/netlink.h>

#define NL_ATTRS	64	/* more than any message has */

struct nl;

/* Called for each message; @attr is indexed by AFRDMA_A_*, NULL where there is none. */
typedef void nl_message_fn(const struct nlattr *const *attr, void *arg);

/* -ENOENT: the module is not loaded. */
int nl_open(struct nl **nl);
void nl_close(struct nl *nl);

/* @cmd is AFRDMA_CMD_*; @dump: all there are, else one. */
int nl_get(struct nl *nl, uint8_t cmd, bool dump, nl_message_fn *fn, void *arg);

struct nl_value {
	uint16_t	attr;		/* AFRDMA_A_* */
	bool		wide;		/* 8 bytes, not 4 */
	uint64_t	value;
};

/* Ask for a change: @cmd with the @n attributes of @values. */
int nl_set(struct nl *nl, uint8_t cmd, const struct nl_value *values, size_t n);

/* Values of attributes; 0, false, "" when @attr is NULL or too short. */
uint16_t nl_u16(const struct nlattr *attr);
uint32_t nl_u32(const struct nlattr *attr);
uint64_t nl_u64(const struct nlattr *attr);	/* 4 bytes or 8, as the kernel's "uint" */
const char *nl_string(const struct nlattr *attr);
const void *nl_binary(const struct nlattr *attr, size_t *len);

/* The attributes inside @attr, by number; @into holds NL_ATTRS. */
void nl_nest(const struct nlattr *attr, const struct nlattr **into);

#endif /* SMCTL_NL_H */
