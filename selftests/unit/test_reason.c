// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
#include "../../net/afrdma/proto/portable.h"
#include "../../net/afrdma/proto/reason.h"
#include "tap.h"

static const unsigned int numbers[] = {
#define AFR_REASON(number, name, sentence, remedy) number,
	AFR_REASONS
#undef AFR_REASON
};

#define COUNT (sizeof(numbers) / sizeof(numbers[0]))

TEST(reason_name__every_number_has_one_of_its_own)
{
	unsigned int i, k;

	for (i = 0; i < COUNT; i++) {
		EXPECT(strcmp(afr_reason_name(numbers[i]), "UNKNOWN"));
		for (k = 0; k < i; k++)
			EXPECT(strcmp(afr_reason_name(numbers[i]), afr_reason_name(numbers[k])));
	}
	EXPECT(!strcmp(afr_reason_name(AFR_REASON_NONE), "NONE"));
	EXPECT(!strcmp(afr_reason_name(AFR_REASON_RESUME_BAD), "RESUME_BAD"));
}

TEST(reason_name__unknown_numbers)
{
	EXPECT(!strcmp(afr_reason_name(9999), "UNKNOWN"));
	EXPECT(!strcmp(afr_reason_name(U32_MAX), "UNKNOWN"));
}

TEST(reason_text__is_a_sentence_on_one_line)
{
	unsigned int i;

	for (i = 0; i < COUNT; i++) {
		EXPECT(strlen(afr_reason_text(numbers[i])) > 15);
		EXPECT(!strchr(afr_reason_text(numbers[i]), '\n'));
	}
}

TEST(reason_text__unknown_numbers)
{
	EXPECT(strstr(afr_reason_text(12345), "unknown"));
	EXPECT(strstr(afr_reason_text(U32_MAX), "unknown"));
}

TEST(reason_remedy__is_a_sentence_on_one_line_or_empty)
{
	unsigned int i, some = 0;
	const char *remedy;

	for (i = 0; i < COUNT; i++) {
		remedy = afr_reason_remedy(numbers[i]);
		some += *remedy != '\0';
		EXPECT(!*remedy || strlen(remedy) > 15);
		EXPECT(!strchr(remedy, '\n'));
		EXPECT(strcmp(remedy, afr_reason_text(numbers[i])));
	}
	EXPECT(some > COUNT / 2);
	EXPECT(!*afr_reason_remedy(AFR_REASON_NONE));
	EXPECT(strstr(afr_reason_remedy(AFR_REASON_UPGRADE_OFF), "net.afrdma.upgrade to 1"));
}

TEST(reason_remedy__unknown_numbers)
{
	EXPECT(strstr(afr_reason_remedy(12345), "update"));
	EXPECT(strstr(afr_reason_remedy(U32_MAX), "update"));
}
