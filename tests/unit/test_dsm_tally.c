/* SPDX-License-Identifier: MIT */
/* test_dsm_tally.c - counters by phase and by name. */
#include "dsm_tally.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jiarun_tally.h"
#include "tests.h"

static struct dsm_tally t;
static struct dsm_stats now;

static void begin(void)
{
	memset(&t, 0, sizeof(t));
	memset(&now, 0, sizeof(now));
}

static void a_phase_gets_what_is_counted_in_it(void)
{
	begin();
	now.locks = 5; /* before any phase */
	CU_ASSERT_EQUAL(dsm_tally_phase(&t, &now, 100, "a"), 0);
	now.locks += 3;
	now.segv_ns += 10;
	CU_ASSERT_EQUAL(dsm_tally_phase(&t, &now, 150, "b"), 0);
	now.locks += 1;
	CU_ASSERT_EQUAL(dsm_tally_phase(&t, &now, 160, "a"), 0);
	now.locks += 4;
	CU_ASSERT_EQUAL(dsm_tally_phase(&t, &now, 200, NULL), 0);
	now.locks += 100;
	CU_ASSERT_EQUAL(dsm_tally_phase(&t, &now, 1000, NULL), 0);
	CU_ASSERT_EQUAL(t.phases, 2);
	CU_ASSERT_EQUAL(t.phase[0].entered, 2);
	CU_ASSERT_EQUAL(t.phase[0].ns, 90);
	CU_ASSERT_EQUAL(t.phase[0].sum.locks, 7);
	CU_ASSERT_EQUAL(t.phase[0].sum.segv_ns, 10);
	CU_ASSERT_EQUAL(t.phase[1].entered, 1);
	CU_ASSERT_EQUAL(t.phase[1].ns, 10);
	CU_ASSERT_EQUAL(t.phase[1].sum.locks, 1);
}

static void start_begins_at_zero_in_the_middle_of_a_phase(void)
{
	begin();
	dsm_tally_phase(&t, &now, 0, "a");
	now.locks = 9;
	t.place[0].getp = 3;
	memset(&now, 0, sizeof(now)); /* as jia_startstat() does */
	dsm_tally_start(&t, &now, 50);
	CU_ASSERT_EQUAL(t.place[0].getp, 0);
	now.locks = 2;
	dsm_tally_phase(&t, &now, 60, NULL);
	CU_ASSERT_EQUAL(t.phase[0].entered, 1);
	CU_ASSERT_EQUAL(t.phase[0].ns, 10);
	CU_ASSERT_EQUAL(t.phase[0].sum.locks, 2);
}

static void nothing_is_added_between_stop_and_start(void)
{
	begin();
	dsm_tally_phase(&t, &now, 0, "a");
	now.locks = 2;
	dsm_tally_stop(&t, &now, 10);
	now.locks = 50;
	dsm_tally_phase(&t, &now, 20, "b");
	now.locks = 70;
	dsm_tally_phase(&t, &now, 30, "a");
	CU_ASSERT_EQUAL(t.phase[0].sum.locks, 2);
	CU_ASSERT_EQUAL(t.phase[0].ns, 10);
	CU_ASSERT_EQUAL(t.phase[0].entered, 1);
	CU_ASSERT_EQUAL(t.phase[1].sum.locks, 0);
	CU_ASSERT_EQUAL(t.phase[1].entered, 0);
	dsm_tally_start(&t, &now, 40);
	now.locks = 71;
	dsm_tally_phase(&t, &now, 45, NULL);
	CU_ASSERT_EQUAL(t.phase[0].sum.locks, 1);
	CU_ASSERT_EQUAL(t.phase[0].ns, 5);
}

static void there_is_an_end_to_phases_and_names(void)
{
	char name[DSM_TALLY_NAME_MAX];
	unsigned int row = 77;

	begin();
	for (int i = 0; i < DSM_PHASES_MAX; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		CU_ASSERT_EQUAL(dsm_tally_phase(&t, &now, 0, name), 0);
	}
	CU_ASSERT_EQUAL(dsm_tally_phase(&t, &now, 0, "more"), -ENOSPC);
	CU_ASSERT_EQUAL(dsm_tally_phase(&t, &now, 0, "p0"), 0);
	for (int i = 1; i < DSM_PLACES_MAX; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		CU_ASSERT_EQUAL(dsm_tally_place(&t, name, &row), 0);
		CU_ASSERT_EQUAL(row, (unsigned int)i);
	}
	CU_ASSERT_EQUAL(dsm_tally_place(&t, "more", &row), -ENOSPC);
	CU_ASSERT_EQUAL(dsm_tally_place(&t, "n7", &row), 0);
	CU_ASSERT_EQUAL(row, 7);
}

static void names_are_short_and_printable(void)
{
	char longest[DSM_TALLY_NAME_MAX + 1];

	memset(longest, 'x', sizeof(longest));
	longest[DSM_TALLY_NAME_MAX - 1] = '\0';
	CU_ASSERT_TRUE(dsm_tally_name_ok(longest));
	longest[DSM_TALLY_NAME_MAX - 1] = 'x';
	longest[DSM_TALLY_NAME_MAX] = '\0';
	CU_ASSERT_FALSE(dsm_tally_name_ok(longest));
	CU_ASSERT_TRUE(dsm_tally_name_ok("two words"));
	CU_ASSERT_FALSE(dsm_tally_name_ok(""));
	CU_ASSERT_FALSE(dsm_tally_name_ok("a\nb"));
	CU_ASSERT_FALSE(dsm_tally_name_ok("\033[31m"));
}

static void every_counter_of_a_place_is_one_of_the_rank(void)
{
	static const char *const names[] = {
#define PLACE(name, cost) #name,
#include "dsm_place.def"
	};

	for (unsigned int i = 0; i < DSM_PLACE_NR; i++)
		ASSERT_TEXT(dsm_stat_row(dsm_place_stat(i))->name, names[i]);
}

static void a_phase_that_never_ended_shows_what_came_so_far(void)
{
	const uint64_t *counters[1] = { (const uint64_t *)&now };
	const struct dsm_tally *const tally[1] = { &t };
	struct jiarun_counts c = { counters, tally, 1, NULL };
	unsigned int locks = 0;

	while (strcmp(dsm_stat_row(locks)->name, "locks") != 0)
		locks++;
	begin();
	now.locks = 1;
	dsm_tally_phase(&t, &now, 0, "a");
	now.locks = 4;
	CU_ASSERT_EQUAL(
		jiarun_tally_figure(&c, 0, JIARUN_PHASES, "a", (int)locks), 3);
	CU_ASSERT_EQUAL(
		jiarun_tally_figure(&c, 0, JIARUN_PHASES, "b", (int)locks), 0);
}

static void the_tables_show_what_was_named_only(void)
{
	const uint64_t *counters[1] = { (const uint64_t *)&now };
	const struct dsm_tally *const tally[1] = { &t };
	struct jiarun_counts c = { counters, tally, 1, NULL };
	unsigned int row = 0;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	REQUIRE(f);
	begin();
	jiarun_tally_print(f, &c);
	fflush(f);
	CU_ASSERT_EQUAL(len, 0);
	dsm_tally_phase(&t, &now, 0, "sweep");
	now.locks = 4;
	dsm_tally_phase(&t, &now, 3000, NULL);
	dsm_tally_place(&t, "grid", &row);
	t.place[row].diffs = 42;
	jiarun_tally_print(f, &c);
	fclose(f);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "sweep"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "0.003  ms"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "locks"));
	CU_ASSERT_PTR_NULL(strstr(text, "barriers")); /* was nothing */
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "grid"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "42"));
	free(text);
}

CU_TestInfo test_dsm_tally[] = {
	{ "a phase gets what is counted in it",
	  a_phase_gets_what_is_counted_in_it },
	{ "start begins at zero, in the middle of a phase, too",
	  start_begins_at_zero_in_the_middle_of_a_phase },
	{ "nothing is added between stop and start",
	  nothing_is_added_between_stop_and_start },
	{ "there is an end to phases and names",
	  there_is_an_end_to_phases_and_names },
	{ "names are short and printable", names_are_short_and_printable },
	{ "every counter of a place is one of the rank",
	  every_counter_of_a_place_is_one_of_the_rank },
	{ "a phase that never ended shows what came so far",
	  a_phase_that_never_ended_shows_what_came_so_far },
	{ "the tables show what was named only",
	  the_tables_show_what_was_named_only },
	CU_TEST_INFO_NULL,
};
