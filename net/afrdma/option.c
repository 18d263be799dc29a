// SPDX-License-Identifier: GPL-2.0
/*
 * Our TCP option. The bytes come from a stranger: nothing is read beyond what
 * the lengths, themselves checked first, allow.
 */
#include "option.h"

#define TCP_OPTIONS_MAX		40	/* 15 words of header less the fixed 20 bytes */
#define KIND_END		0
#define KIND_NOP		1
#define KIND_MD5		19
#define KIND_AO			29
#define KIND_FASTOPEN		34
#define FASTOPEN_EXID_HI	0xf9
#define FASTOPEN_EXID_LO	0x89

/* A walk over an option list: the current option is len bytes from at on. */
struct walk {
	const u8	*at;
	unsigned int	len;
	unsigned int	left;	/* bytes from at to the end of the list */
};

static void walk_start(struct walk *w, const u8 *opts, unsigned int len)
{
	w->at = opts;
	w->len = 0;
	w->left = len;
}

/* Step to the next option that has a length: 1, or 0 at the end, or -EPROTO. */
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

static bool is_ours(const struct walk *w)
{
	static const u8 exid[4] = {
		AFR_OPT_EXID >> 24, (AFR_OPT_EXID >> 16) & 0xff,
		(AFR_OPT_EXID >> 8) & 0xff, AFR_OPT_EXID & 0xff,
	};

	return w->at[0] == AFR_OPT_KIND && w->len >= 2 + sizeof(exid) &&
	       !memcmp(w->at + 2, exid, sizeof(exid));
}

static int read_ours(const struct walk *w, struct afr_option *out)
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
 * afr_option_find() - find our option in a TCP header
 * @opts: the bytes behind the fixed 20 of the header
 * @len: how many, 0 to 40
 * @out: filled on success only
 *
 * Follows RFC 9293 section 3.1 (option list) and RFC 6994 (shared kinds: only
 * kind and experiment identifier together make an option ours).
 *
 * Returns: 0; -ENOENT without our option; -EPROTO if the list is malformed, or
 * ours has a wrong length, unknown flags or appears twice; -EOPNOTSUPP if its
 * version is not ours.
 */
int afr_option_find(const u8 *opts, unsigned int len, struct afr_option *out)
{
	struct afr_option found = { 0 };
	bool seen = false;
	int verdict = 0;
	struct walk w;
	int step;

	if (len > TCP_OPTIONS_MAX)
		return -EPROTO;

	walk_start(&w, opts, len);
	while ((step = walk_next(&w)) > 0) {
		if (!is_ours(&w))
			continue;
		if (seen)
			return -EPROTO;
		seen = true;
		verdict = read_ours(&w, &found);
	}
	if (step)
		return step;
	if (!seen)
		return -ENOENT;
	if (!verdict)
		*out = found;
	return verdict;
}

/* Options beside which ours must not stand, see afr_option_room(). */
static bool excludes_ours(const struct walk *w)
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
		return is_ours(w);
	default:
		return false;
	}
}

/**
 * afr_option_room() - may our option be added to this SYN or SYN-ACK
 * @opts: the bytes behind the fixed 20 of the header
 * @len: how many, 0 to 40
 *
 * MD5 (RFC 2385) and TCP-AO (RFC 5925) sign the header; a Fast Open cookie
 * (RFC 7413) means that data may come before we could agree.
 *
 * Returns: 0; -EEXIST when one of those or our own option is there; -ENOSPC
 * when AFR_OPT_LEN more bytes do not fit; -EPROTO for a malformed list.
 */
int afr_option_room(const u8 *opts, unsigned int len)
{
	bool excluded = false;
	struct walk w;
	int step;

	if (len > TCP_OPTIONS_MAX)
		return -EPROTO;

	walk_start(&w, opts, len);
	while ((step = walk_next(&w)) > 0)
		excluded |= excludes_ours(&w);
	if (step)
		return step;
	if (excluded)
		return -EEXIST;
	return len + AFR_OPT_LEN > TCP_OPTIONS_MAX ? -ENOSPC : 0;
}

/**
 * afr_option_write() - write our option
 * @to: AFR_OPT_LEN bytes, of any alignment
 * @opt: what to say
 */
void afr_option_write(u8 *to, const struct afr_option *opt)
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
 * afr_option_answer() - the nonce a server answers with
 * @nonce: the client's
 *
 * Not a secret: it only tells a server that understood the option from a box
 * that repeats what it does not know. The factor is odd, so that two nonces
 * never have the same answer; nonce * (factor - 1) is even and the summand odd,
 * so that no nonce is its own answer.
 *
 * Returns: a transform of @nonce, never @nonce itself.
 */
u32 afr_option_answer(u32 nonce)
{
	return nonce * 0x6b43a9b5u + 0x1d2f3b59u;
}
