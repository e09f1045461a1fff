/* SPDX-License-Identifier: MIT */
/*
 * main.c - runs every suite, or those whose names are given.
 *
 *   run [-l] [SUITE[:TEST] ...]
 *
 * -l lists suites and tests.  A test's name is its sentence or its number in
 * the list, from 1.  Exit status: 0 all passed, 1 a failure, 2 wrong usage.
 */
#include <CUnit/Basic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests.h"

static CU_SuiteInfo suites[] = {
#define SUITE(name) { #name, NULL, NULL, NULL, NULL, test_##name },
#include "suites.def"
	CU_SUITE_INFO_NULL,
};

bool same_text(const char *got, const char *expected)
{
	if (got && !strcmp(got, expected))
		return true;
	printf("\n--- expected\n%s\n--- got\n%s\n", expected,
	       got ? got : "(nothing)");
	return false;
}

static void list(void)
{
	for (const CU_SuiteInfo *s = suites; s->pName; s++) {
		printf("%s\n", s->pName);
		for (int i = 0; s->pTests[i].pName; i++)
			printf("  %2d %s\n", i + 1, s->pTests[i].pName);
	}
}

/* By its sentence, or by its number. */
static CU_pTest find_test(CU_pSuite s, const char *name)
{
	char *end;
	unsigned long nr = strtoul(name, &end, 10);

	if (*end || !nr)
		return CU_get_test(s, name);
	return CU_get_test_at_pos(s, (unsigned int)nr);
}

/* "suite" or "suite:test"; false if there is none of that name. */
static bool run_named(char *arg)
{
	char *colon = strchr(arg, ':');
	CU_pSuite s;
	CU_pTest t;

	if (colon)
		*colon = 0;
	s = CU_get_suite(arg);
	if (!s)
		return false;
	if (!colon)
		return CU_basic_run_suite(s) == CUE_SUCCESS;
	t = find_test(s, colon + 1);
	return t && CU_basic_run_test(s, t) == CUE_SUCCESS;
}

static int finish(int status)
{
	CU_cleanup_registry();
	return status;
}

/* CUnit forgets the figures of one run when the next begins. */
static int run_all_named(int argc, char **argv)
{
	unsigned int failures = 0;

	for (int i = 1; i < argc; i++) {
		if (!run_named(argv[i])) {
			fprintf(stderr, "no suite or test '%s' (-l lists)\n",
				argv[i]);
			return 2;
		}
		failures += CU_get_number_of_failures();
	}
	return failures ? 1 : 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && !strcmp(argv[1], "-l")) {
		list();
		return 0;
	}
	if (CU_initialize_registry() || CU_register_suites(suites)) {
		fprintf(stderr, "CUnit: %s\n", CU_get_error_msg());
		return finish(2);
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	if (argc > 1)
		return finish(run_all_named(argc, argv));
	CU_basic_run_tests();
	return finish(CU_get_number_of_failures() ||
				      CU_get_number_of_suites_failed() ?
			      1 :
			      0);
}
