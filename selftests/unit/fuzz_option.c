// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Fuzzer of the options of a TCP header. */
#include "fuzz.h"
#include "../../net/afrdma/proto/tcp_option.h"

/* Writing a parsed option, and parsing that, must give the same contents. */
static void check_found(const struct afr_tcp_option *found)
{
	struct afr_tcp_option again;
	u8 bytes[AFR_OPT_LEN];

	afr_tcp_option_write(bytes, found);
	MUST(!afr_tcp_option_find(bytes, sizeof(bytes), &again));
	MUST(again.nonce == found->nonce && again.server == found->server);
}

/*
 * Adds our option in front of @list, which has room for it. Then afr_tcp_option_find() must find
 * the option, and afr_tcp_option_check_room() must refuse a second one.
 */
static void check_added(const u8 *list, size_t len)
{
	struct afr_tcp_option ours = { .nonce = 0xfeed0000 + len, .server = len & 1 }, found;
	u8 *longer = malloc(len + AFR_OPT_LEN);

	afr_tcp_option_write(longer, &ours);
	memcpy(longer + AFR_OPT_LEN, list, len);
	MUST(!afr_tcp_option_find(longer, len + AFR_OPT_LEN, &found));
	MUST(found.nonce == ours.nonce && found.server == ours.server);
	MUST(afr_tcp_option_check_room(longer, len + AFR_OPT_LEN) == -EEXIST);
	free(longer);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct afr_tcp_option found = { .nonce = 1 };
	int got, room;
	struct edge edge;
	const u8 *list;

	if (size > 64)
		return -1;
	edge = edge_of(64);
	list = edge_put(&edge, data, size);
	got = afr_tcp_option_find(list, size, &found);
	room = afr_tcp_option_check_room(list, size);
	MUST(got == 0 || got == -ENOENT || got == -EPROTO || got == -EOPNOTSUPP);
	MUST(room == 0 || room == -EEXIST || room == -ENOSPC || room == -EPROTO);
	MUST(got == 0 || (found.nonce == 1 && !found.server));
	if (size > 40)
		MUST(got == -EPROTO && room == -EPROTO);
	if (room == -EPROTO)
		MUST(got == -EPROTO);
	if (got == 0)
		check_found(&found);
	if (got == 0 || got == -EOPNOTSUPP)
		MUST(room == -EEXIST);
	if (room == 0) {
		MUST(got == -ENOENT);
		check_added(list, size);
	}
	free(edge.block);
	return 0;
}
