// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
#include "../../net/afrdma/proto/tcp_option.h"
#include "tap.h"

/* Parses exactly @len bytes on the heap, so that ASan detects reads beyond them. */
static int find(const void *opts, unsigned int len, struct afr_tcp_option *out)
{
	u8 *copy = malloc(len ? len : 1);
	int got;

	memcpy(copy, opts, len);
	got = afr_tcp_option_find(copy + (len ? 0 : 1), len, out);
	free(copy);
	return got;
}

static int room(const void *opts, unsigned int len)
{
	u8 *copy = malloc(len ? len : 1);
	int got;

	memcpy(copy, opts, len);
	got = afr_tcp_option_check_room(copy + (len ? 0 : 1), len);
	free(copy);
	return got;
}

#define FIND(bytes, out)	find(bytes, sizeof(bytes) - 1, out)
#define ROOM(bytes)		room(bytes, sizeof(bytes) - 1)

#define OURS	"\xfe\x0c\xaf\x4d\x41\xd7\x01\x00\x12\x34\x56\x78"
#define ANSWER	"\xfe\x0c\xaf\x4d\x41\xd7\x01\x01\x12\x34\x56\x78"
#define MSS	"\x02\x04\x05\xb4"
#define SACK	"\x04\x02"
#define STAMPS	"\x08\x0a\x00\x00\x00\x01\x00\x00\x00\x02"

TEST(option_find__alone_and_among_others)
{
	struct afr_tcp_option o;

	EXPECT_EQ(FIND(OURS, &o), 0);
	EXPECT(o.nonce == 0x12345678 && !o.server);
	EXPECT_EQ(FIND(ANSWER, &o), 0);
	EXPECT(o.nonce == 0x12345678 && o.server);
	EXPECT_EQ(FIND(MSS SACK STAMPS "\x01\x03\x03\x07" OURS, &o), 0);
	EXPECT_EQ(FIND(OURS MSS SACK STAMPS, &o), 0);
	EXPECT_EQ(FIND("\x01\x01\x01" OURS "\x00\xff\xff", &o), 0);
}

TEST(option_find__none)
{
	struct afr_tcp_option o = { .nonce = 7 };

	EXPECT_EQ(FIND("", &o), -ENOENT);
	EXPECT_EQ(FIND("\x01\x01\x01\x01", &o), -ENOENT);
	EXPECT_EQ(FIND(MSS SACK STAMPS, &o), -ENOENT);
	EXPECT_EQ(FIND("\x00" OURS, &o), -ENOENT);
	EXPECT_EQ(FIND("\xfd\x0c\xaf\x4d\x41\xd7\x01\x00\x12\x34\x56\x78", &o), -ENOENT);
	EXPECT_EQ(FIND("\xfe\x0c\xaf\x4d\x41\xd8\x01\x00\x12\x34\x56\x78", &o), -ENOENT);
	EXPECT_EQ(FIND("\xfe\x04\xf9\x89", &o), -ENOENT);
	EXPECT_EQ(FIND("\xfe\x02", &o), -ENOENT);
	EXPECT_EQ(o.nonce, 7);
}

TEST(option_find__malformed_list)
{
	struct afr_tcp_option o;

	EXPECT_EQ(FIND("\x02", &o), -EPROTO);
	EXPECT_EQ(FIND("\x02\x00", &o), -EPROTO);
	EXPECT_EQ(FIND("\x02\x01", &o), -EPROTO);
	EXPECT_EQ(FIND("\x02\x04\x05", &o), -EPROTO);
	EXPECT_EQ(FIND("\x02\xff\x05\xb4", &o), -EPROTO);
	EXPECT_EQ(FIND(OURS "\x08\x0a", &o), -EPROTO);
	EXPECT_EQ(FIND(OURS "\x08", &o), -EPROTO);
}

TEST(option_find__ours_but_wrong)
{
	struct afr_tcp_option o;

	EXPECT_EQ(FIND("\xfe\x06\xaf\x4d\x41\xd7", &o), -EPROTO);
	EXPECT_EQ(FIND("\xfe\x0b\xaf\x4d\x41\xd7\x01\x00\x12\x34\x56", &o), -EPROTO);
	EXPECT_EQ(FIND("\xfe\x0d\xaf\x4d\x41\xd7\x01\x00\x12\x34\x56\x78\x00", &o), -EPROTO);
	EXPECT_EQ(FIND("\xfe\x0c\xaf\x4d\x41\xd7\x01\x02\x12\x34\x56\x78", &o), -EPROTO);
	EXPECT_EQ(FIND("\xfe\x0c\xaf\x4d\x41\xd7\x01\x81\x12\x34\x56\x78", &o), -EPROTO);
	EXPECT_EQ(FIND(OURS OURS, &o), -EPROTO);
	EXPECT_EQ(FIND(OURS MSS ANSWER, &o), -EPROTO);
}

TEST(option_find__another_version)
{
	struct afr_tcp_option o;

	EXPECT_EQ(FIND("\xfe\x0c\xaf\x4d\x41\xd7\x02\x00\x12\x34\x56\x78", &o), -EOPNOTSUPP);
	/* Flags of another version are not checked, but the rest of the list is. */
	EXPECT_EQ(FIND("\xfe\x0c\xaf\x4d\x41\xd7\x02\xff\x12\x34\x56\x78", &o), -EOPNOTSUPP);
	EXPECT_EQ(FIND("\xfe\x0c\xaf\x4d\x41\xd7\x02\x00\x12\x34\x56\x78\x02", &o), -EPROTO);
}

TEST(option_find__longer_than_a_header)
{
	struct afr_tcp_option o;
	u8 nops[60];

	memset(nops, 1, sizeof(nops));
	EXPECT_EQ(find(nops, 40, &o), -ENOENT);
	EXPECT_EQ(find(nops, 41, &o), -EPROTO);
	EXPECT_EQ(find(nops, 60, &o), -EPROTO);
}

TEST(option_room__fits)
{
	EXPECT_EQ(ROOM(""), 0);
	EXPECT_EQ(ROOM(MSS SACK STAMPS "\x01\x03\x03\x07"), 0);
	EXPECT_EQ(ROOM("\x01\x01\x01\x01\x01\x01\x01\x01" STAMPS STAMPS), 0);
	EXPECT_EQ(ROOM("\xfe\x04\x12\x34"), 0);
}

TEST(option_room__does_not_fit)
{
	u8 nops[40];

	memset(nops, 1, sizeof(nops));
	EXPECT_EQ(room(nops, 28), 0);
	EXPECT_EQ(room(nops, 29), -ENOSPC);
	EXPECT_EQ(room(nops, 40), -ENOSPC);
}

TEST(option_room__beside_what_excludes_us)
{
	EXPECT_EQ(ROOM("\x13\x12" "0123456789abcdef"), -EEXIST);
	EXPECT_EQ(ROOM(MSS "\x1d\x04\x01\x01"), -EEXIST);
	EXPECT_EQ(ROOM("\x22\x02"), -EEXIST);
	EXPECT_EQ(ROOM("\x22\x0a" "12345678"), -EEXIST);
	EXPECT_EQ(ROOM("\xfe\x04\xf9\x89"), -EEXIST);
	EXPECT_EQ(ROOM("\xfe\x0c\xf9\x89" "12345678"), -EEXIST);
	EXPECT_EQ(ROOM(OURS), -EEXIST);
	EXPECT_EQ(ROOM(OURS OURS OURS), -EEXIST);
	EXPECT_EQ(ROOM("\xfe\x03\xf9\x00"), 0);
}

TEST(option_room__malformed_list)
{
	u8 nops[41];

	memset(nops, 1, sizeof(nops));
	EXPECT_EQ(room(nops, 41), -EPROTO);
	EXPECT_EQ(ROOM("\x02\x04\x05"), -EPROTO);
	EXPECT_EQ(ROOM(OURS "\x02\x00"), -EPROTO);
}

TEST(option_write__reads_back)
{
	static const u32 nonces[] = { 0, 1, 0x12345678, U32_MAX };
	struct afr_tcp_option in, out;
	u8 bytes[1 + AFR_OPT_LEN];
	int i;

	for (i = 0; i < 8; i++) {
		in.nonce = nonces[i / 2];
		in.server = i & 1;
		afr_tcp_option_write(bytes + 1, &in);
		EXPECT_EQ(find(bytes + 1, AFR_OPT_LEN, &out), 0);
		EXPECT(out.nonce == in.nonce && out.server == in.server);
	}
	in.nonce = 0x12345678;
	in.server = false;
	afr_tcp_option_write(bytes, &in);
	EXPECT(!memcmp(bytes, OURS, AFR_OPT_LEN));
}

TEST(option_answer__never_the_nonce_and_never_shared)
{
	u32 i, nonce = 0;

	for (i = 0; i < 1000000; i++, nonce += 0x9e3779b1) {
		EXPECT(afr_tcp_option_answer(nonce) != nonce);
		EXPECT(afr_tcp_option_answer(nonce) != afr_tcp_option_answer(nonce + 1));
		EXPECT(afr_tcp_option_answer(nonce) != afr_tcp_option_answer(nonce ^ 0x80000000));
	}
	EXPECT(afr_tcp_option_answer(0) && afr_tcp_option_answer(U32_MAX) != U32_MAX);
}
