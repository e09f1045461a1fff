/* SPDX-License-Identifier: MIT */
/* tests.h - the suites; one per source file, listed once in suites.def. */
#ifndef TESTS_H
#define TESTS_H

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether two texts are equal; if not, both are shown.  In main.c. */
bool same_text(const char *got, const char *expected);

#define ASSERT_TEXT(got, expected) CU_ASSERT(same_text(got, expected))

/* What the rest of a test cannot do without.  CUnit leaves the test by longjmp,
 * which analysers do not know; the abort is for them. */
#define REQUIRE(x)                       \
	do {                             \
		int holds_ = !!(x);      \
		CU_ASSERT_FATAL(holds_); \
		if (!holds_)             \
			abort();         \
	} while (0)

#define SUITE(name) extern CU_TestInfo test_##name[];
#include "suites.def"

#endif /* TESTS_H */
