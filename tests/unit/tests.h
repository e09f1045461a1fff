/* SPDX-License-Identifier: MIT */
/* tests.h - the suites; one per source file, listed once in suites.def. */
#ifndef TESTS_H
#define TESTS_H

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

/* Two texts are equal; if not, both are shown. */
#define ASSERT_TEXT(got, expected)                                             \
	do {                                                                   \
		const char *got_ = (got), *expected_ = (expected);             \
		if (strcmp(got_, expected_))                                   \
			printf("\n--- expected\n%s\n--- got\n%s\n", expected_, \
			       got_);                                          \
		CU_ASSERT_STRING_EQUAL(got_, expected_);                       \
	} while (0)

#define SUITE(name) extern CU_TestInfo test_##name[];
#include "suites.def"

#endif /* TESTS_H */
