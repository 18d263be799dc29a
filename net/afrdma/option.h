/* SPDX-License-Identifier: GPL-2.0 */
/* Our TCP option: find it, write it, answer it (RFC 9293 section 3.2, RFC 6994). */
#ifndef AFR_OPTION_H
#define AFR_OPTION_H

#include "pure.h"
#include "wire.h"

struct afr_option {
	u32	nonce;
	bool	server;		/* AFR_OPT_ROLE_SERVER was set */
};

/*
 * Search the options of a TCP header. @opts points behind the fixed 20 bytes,
 * @len is doff * 4 - 20 (0..40).
 * Returns 0 and fills @out; -ENOENT without our option; -EPROTO if the option
 * list is malformed or ours has a wrong length, appears twice or has flags we do
 * not know; -EOPNOTSUPP if its version is not ours.
 */
int afr_option_find(const u8 *opts, unsigned int len, struct afr_option *out);

/*
 * Why a SYN must be left alone, or 0: -EEXIST when MD5 (19), TCP-AO (29), a TFO
 * cookie (34, or 254 with magic 0xf989) or our own option is there, -ENOSPC when
 * AFR_OPT_LEN more bytes do not fit 40, -EPROTO when the list is malformed.
 */
int afr_option_room(const u8 *opts, unsigned int len);

/* Write the AFR_OPT_LEN bytes. */
void afr_option_write(u8 *to, const struct afr_option *opt);

/* What the server answers to @nonce; never @nonce itself. */
u32 afr_option_answer(u32 nonce);

#endif /* AFR_OPTION_H */
