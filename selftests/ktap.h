/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Functions that write KTAP. All test programs in C that print KTAP use them. */
#ifndef AFR_TEST_KTAP_H
#define AFR_TEST_KTAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static inline void ktap_begin(unsigned int count)
{
	printf("KTAP version 1\n1..%u\n", count);
}

/*
 * Prints the result of test @number. @format and its arguments make the name of the test. If
 * @number is 0, "-" is printed instead: the test has no number.
 */
__attribute__((format(printf, 3, 4)))
static inline void ktap_result(bool good, unsigned int number, const char *format, ...)
{
	va_list args;

	printf("%sok ", good ? "" : "not ");
	if (number)
		printf("%u ", number);
	else
		printf("- ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

#endif /* AFR_TEST_KTAP_H */
