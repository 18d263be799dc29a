/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * TEST(function__case) { EXPECT(...); } defines a test case. Each test_NAME.c is a test program,
 * for NAME.c or NAME.h of the proto layer. This header contains its main(), which runs the cases
 * in order and writes KTAP.
 */
#ifndef TAP_H
#define TAP_H

#include <stdlib.h>

#include "../ktap.h"

#define TAP_CASES 128

static struct { const char *name; void (*run)(void); } tap_cases[TAP_CASES];
static int tap_count, tap_failed;

static void tap_add(const char *name, void (*run)(void))
{
	if (tap_count == TAP_CASES)
		abort();
	tap_cases[tap_count].name = name;
	tap_cases[tap_count++].run = run;
}

#define TEST(name) \
	static void name(void); \
	static __attribute__((constructor)) void add_##name(void) { tap_add(#name, name); } \
	static void name(void)

#define EXPECT(ok) do { \
	if (!(ok)) { \
		printf("# %s:%d: %s\n", __FILE__, __LINE__, #ok); \
		tap_failed = 1; \
	} } while (0)

#define EXPECT_EQ(got, want) do { \
	long long got_ = (got), want_ = (want); \
	if (got_ != want_) { \
		printf("# %s:%d: %s is %lld, expected %s = %lld\n", __FILE__, __LINE__, #got, \
		       got_, #want, want_); \
		tap_failed = 1; \
	} } while (0)

int main(void)
{
	int failed = 0, i;

	ktap_begin(tap_count);
	for (i = 0; i < tap_count; i++) {
		tap_failed = 0;
		tap_cases[i].run();
		failed += tap_failed;
		ktap_result(!tap_failed, i + 1, "%s", tap_cases[i].name);
	}
	return failed ? 1 : 0;
}

#endif /* TAP_H */
