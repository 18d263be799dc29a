// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Finds, writes and answers the AF_RDMA option in TCP headers, and checks whether a header may get
 * it. Headers may come from an untrusted peer: each length is checked before it is used, and
 * nothing is read beyond it.
 */
#include "tcp_option.h"

#define TCP_OPTIONS_MAX		40	/* at most 15 words of header, less 20 fixed bytes */
#define KIND_END		0
#define KIND_NOP		1
#define KIND_MD5		19
#define KIND_AO			29
#define KIND_FASTOPEN		34
#define FASTOPEN_EXID_HI	0xf9
#define FASTOPEN_EXID_LO	0x89

/* Iterator over an option list. The current option is the @len bytes from @at on. */
struct walk {
	const u8	*at;
	unsigned int	len;
	unsigned int	left;	/* bytes from @at to the end of the list */
};

static void walk_start(struct walk *w, const u8 *opts, unsigned int len)
{
	w->at = opts;
	w->len = 0;
	w->left = len;
}

/*
 * Advances to the next option that has a length. Returns 1; 0 at the end of the list; -EPROTO if
 * the list is malformed.
 */
static int walk_next(struct walk *w)
{
	w->at += w->len;
	w->left -= w->len;
	while (w->left && *w->at == KIND_NOP) {
		w->at++;
		w->left--;
	}
	w->len = 0;
	if (!w->left || *w->at == KIND_END)
		return 0;
	if (w->left < 2 || w->at[1] < 2 || w->at[1] > w->left)
		return -EPROTO;
	w->len = w->at[1];
	return 1;
}

static bool is_afrdma(const struct walk *w)
{
	static const u8 exid[4] = {
		AFR_OPT_EXID >> 24, (AFR_OPT_EXID >> 16) & 0xff,
		(AFR_OPT_EXID >> 8) & 0xff, AFR_OPT_EXID & 0xff,
	};

	return w->at[0] == AFR_OPT_KIND && w->len >= 2 + sizeof(exid) &&
	       !memcmp(w->at + 2, exid, sizeof(exid));
}

static int parse_option(const struct walk *w, struct afr_tcp_option *out)
{
	struct afr_wire_option wire;

	if (w->len != sizeof(wire))
		return -EPROTO;
	memcpy(&wire, w->at, sizeof(wire));
	if (wire.version != AFR_WIRE_VERSION)
		return -EOPNOTSUPP;
	if (wire.flags & ~AFR_OPT_ROLE_SERVER)
		return -EPROTO;

	out->nonce = be32_to_cpu(wire.nonce);
	out->server = wire.flags & AFR_OPT_ROLE_SERVER;
	return 0;
}

/**
 * afr_tcp_option_find() - find the AF_RDMA option in a TCP header
 * @opts: the bytes behind the fixed 20 bytes of the header
 * @len: bytes in @opts: doff * 4 - 20, 0 to 40
 * @out: filled on success only
 *
 * Follows RFC 9293 section 3.1 (option list) and RFC 6994 (the kind is shared: kind and experiment
 * identifier together identify the option).
 *
 * Context: any.
 * Return: 0; -ENOENT if the option is absent; -EPROTO if the list is malformed, or the option has a
 * wrong length or unknown flags or appears twice; -EOPNOTSUPP if its version is not
 * AFR_WIRE_VERSION.
 */
int afr_tcp_option_find(const u8 *opts, unsigned int len, struct afr_tcp_option *out)
{
	struct afr_tcp_option found = { 0 };
	bool seen = false;
	int verdict = 0;
	struct walk w;
	int step;

	if (len > TCP_OPTIONS_MAX)
		return -EPROTO;

	walk_start(&w, opts, len);
	while ((step = walk_next(&w)) > 0) {
		if (!is_afrdma(&w))
			continue;
		if (seen)
			return -EPROTO;
		seen = true;
		verdict = parse_option(&w, &found);
	}
	if (step)
		return step;
	if (!seen)
		return -ENOENT;
	if (!verdict)
		*out = found;
	return verdict;
}

/* Does this option exclude the AF_RDMA option? See afr_tcp_option_check_room(). */
static bool excludes_afrdma(const struct walk *w)
{
	switch (w->at[0]) {
	case KIND_MD5:
	case KIND_AO:
	case KIND_FASTOPEN:
		return true;
	case AFR_OPT_KIND:
		if (w->len >= 4 && w->at[2] == FASTOPEN_EXID_HI &&
		    w->at[3] == FASTOPEN_EXID_LO)
			return true;
		return is_afrdma(w);
	default:
		return false;
	}
}

/**
 * afr_tcp_option_check_room() - may the AF_RDMA option be added to this SYN or SYN-ACK?
 * @opts: the bytes behind the fixed 20 bytes of the header
 * @len: bytes in @opts: doff * 4 - 20, 0 to 40
 *
 * MD5 (RFC 2385) and TCP-AO (RFC 5925) sign the header. With a Fast Open cookie (RFC 7413: kind 34,
 * or kind 254 with identifier 0xf989) data may arrive before both ends have agreed.
 *
 * Context: any.
 * Return: 0 if so; -EEXIST if one of these options or the AF_RDMA option is present; -ENOSPC if
 * there is no space for AFR_OPT_LEN more bytes; -EPROTO if the list is malformed.
 */
int afr_tcp_option_check_room(const u8 *opts, unsigned int len)
{
	bool excluded = false;
	struct walk w;
	int step;

	if (len > TCP_OPTIONS_MAX)
		return -EPROTO;

	walk_start(&w, opts, len);
	while ((step = walk_next(&w)) > 0)
		excluded |= excludes_afrdma(&w);
	if (step)
		return step;
	if (excluded)
		return -EEXIST;
	return len + AFR_OPT_LEN > TCP_OPTIONS_MAX ? -ENOSPC : 0;
}

/**
 * afr_tcp_option_write() - write the AF_RDMA option
 * @to: AFR_OPT_LEN bytes, of any alignment
 * @opt: contents
 *
 * Context: any.
 */
void afr_tcp_option_write(u8 *to, const struct afr_tcp_option *opt)
{
	struct afr_wire_option wire = {
		.kind = AFR_OPT_KIND,
		.len = AFR_OPT_LEN,
		.exid = cpu_to_be32(AFR_OPT_EXID),
		.version = AFR_WIRE_VERSION,
		.flags = opt->server ? AFR_OPT_ROLE_SERVER : 0,
		.nonce = cpu_to_be32(opt->nonce),
	};

	memcpy(to, &wire, sizeof(wire));
}

/**
 * afr_tcp_option_answer() - compute the nonce with which the server answers
 * @nonce: the client's nonce
 *
 * The answer is no secret: it only distinguishes a server that understands the option from a
 * middlebox that echoes unknown options. The factor is odd, so different nonces have different
 * answers. The answer minus the nonce is nonce * (factor - 1) plus the summand. That is even plus
 * odd, thus never 0, so no nonce is its own answer.
 *
 * Context: any.
 * Return: a transform of @nonce, never @nonce itself.
 */
u32 afr_tcp_option_answer(u32 nonce)
{
	return nonce * 0x6b43a9b5u + 0x1d2f3b59u;
}
