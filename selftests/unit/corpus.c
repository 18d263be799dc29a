// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * "corpus DIRECTORY" writes the seeds of the fuzzers: files in the existing folders
 * DIRECTORY/{option,hello,frame}, most of them encoded by the functions of net/afrdma/proto.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../net/afrdma/proto/hello.h"
#include "../../net/afrdma/proto/tcp_option.h"
#include "../frame_samples.h"

static const char *directory;

/* Writes seed @number of the fuzzer @kind. */
static void save(const char *kind, int number, const u8 *bytes, size_t len)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s/%03d", directory, kind, number);
	file = fopen(path, "wb");
	if (!file || fwrite(bytes, 1, len, file) != len || fclose(file)) {
		perror(path);
		exit(1);
	}
}

static void save_options(void)
{
	static const u8 usual[] = {
		2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7
	};
	static const u8 excluded[] = { 0xfe, 4, 0xf9, 0x89, 34, 2, 29, 4, 1, 1, 19, 18 };
	struct afr_tcp_option ours = { .nonce = 0x01020304 };
	u8 list[64];

	save("option", 0, usual, sizeof(usual));
	save("option", 1, excluded, sizeof(excluded));
	afr_tcp_option_write(list, &ours);
	save("option", 2, list, AFR_OPT_LEN);
	ours.server = true;
	memcpy(list, usual, sizeof(usual));
	afr_tcp_option_write(list + sizeof(usual), &ours);
	save("option", 3, list, sizeof(usual) + AFR_OPT_LEN);
	afr_tcp_option_write(list, &ours);
	afr_tcp_option_write(list + AFR_OPT_LEN, &ours);
	save("option", 4, list, 2 * AFR_OPT_LEN);
}

static void save_hellos(void)
{
	struct afr_hello hello = {
		.proof = afr_hello_proof(0x5eed, false), .ring = AFR_RING_MIN, .length = 64,
	};
	u8 bytes[1 + sizeof(struct afr_wire_hello)] = { 0 };
	struct afr_wire_hello wire;

	bytes[0] = 1;
	save("hello", 0, bytes, sizeof(bytes));
	bytes[0] = 0;
	save("hello", 1, bytes, 20);
	afr_hello_write(&wire, &hello);
	memcpy(bytes + 1, &wire, sizeof(wire));
	save("hello", 2, bytes, sizeof(bytes));
}

static void save_frames(void)
{
	static const struct afr_frame more[] = {
		{ .type = AFR_FRAME_ATTACHED, .attach = { .epoch = 1, .ring = 2 * AFR_RING_MIN,
			.span = 4 * AFR_RING_MIN } },
		{ .type = AFR_FRAME_ATTACHED, .attach = { .epoch = 1, .reason = 31 } },
		{ .type = AFR_FRAME_MOVE, .move = { .epoch = 3, .start = 9 } },
		{ .type = AFR_FRAME_BLOCKED },
		{ .type = AFR_FRAME_SERVICE, .flags = AFR_FRAME_OPTIONAL, .port = 4321 },
		{ .type = 200, .flags = AFR_FRAME_OPTIONAL, .length = 3 },
	};
	u8 one[1 + AFR_FRAME_HEAD_MAX + 10], all[2048] = { 0 };
	size_t at = 1;
	int i;

	for (i = 1; i < AFR_FRAME_NEXT + (int)(sizeof(more) / sizeof(more[0])); i++) {
		const struct afr_frame *frame = i < AFR_FRAME_NEXT ? &frame_samples[i] :
						&more[i - AFR_FRAME_NEXT];
		size_t len;

		memset(one, 0, sizeof(one));
		len = afr_frame_write(one + 1, frame) + frame->length;
		save("frame", i, one, 1 + len);
		memcpy(all + at, one + 1, len);
		at += len;
	}
	save("frame", 0, all, at);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	directory = argv[1];
	save_options();
	save_hellos();
	save_frames();
	return 0;
}
