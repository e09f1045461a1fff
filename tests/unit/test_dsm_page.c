/* SPDX-License-Identifier: MIT */
/* test_dsm_page.c - the rules of dsm_page.c: no holes, no dead ends. */
#include <CUnit/Basic.h>
#include <stdbool.h>

#include "dsm_page.h"
#include "tests.h"

#define EACH_CELL(s, e)                     \
	for (int s = 0; s < DSM_PG_NR; s++) \
		for (int e = 0; e < DSM_EV_NR; e++)

static const struct dsm_page_rule *rule(int s, int e)
{
	return dsm_page_rule((enum dsm_page_state)s, (enum dsm_page_event)e);
}

static bool is_home(int s)
{
	return s == DSM_PG_OWN || s == DSM_PG_HWATCH || s == DSM_PG_HGUARD;
}

static bool has_twin(int s)
{
	return s == DSM_PG_WATCH || s == DSM_PG_HWATCH;
}

static bool is_writable(int s)
{
	return has_twin(s) || s == DSM_PG_OWN;
}

static void every_cell_is_filled_and_says_why(void)
{
	EACH_CELL(s, e)
	{
		CU_ASSERT(rule(s, e)->kind != DSM_RULE_HOLE);
		CU_ASSERT_PTR_NOT_NULL(rule(s, e)->why);
	}
}

static void every_state_can_be_reached_and_left(void)
{
	/* A page begins as its home's own, or as nobody's copy. */
	unsigned int reached = 1u << DSM_PG_INVALID | 1u << DSM_PG_OWN;
	unsigned int left = 0;

	for (int round = 0; round < DSM_PG_NR; round++)
		EACH_CELL(s, e)
		{
			const struct dsm_page_rule *r = rule(s, e);

			if (r->kind != DSM_RULE_GO || !(reached & 1u << s))
				continue;
			reached |= 1u << r->next;
			if ((int)r->next != s)
				left |= 1u << s;
		}
	CU_ASSERT_EQUAL(reached, (1u << DSM_PG_NR) - 1);
	CU_ASSERT_EQUAL(left, (1u << DSM_PG_NR) - 1);
}

static void a_written_page_never_goes_away_without_its_diff(void)
{
	EACH_CELL(s, e)
	{
		const struct dsm_page_rule *r = rule(s, e);

		if (r->kind != DSM_RULE_GO || !has_twin(s) ||
		    has_twin((int)r->next))
			continue;
		/* A home moves between flush and the next write. */
		CU_ASSERT(r->acts & DSM_ACT_DIFF || e == DSM_EV_GAIN);
	}
}

static void a_twin_lives_exactly_as_long_as_the_page_is_watched(void)
{
	EACH_CELL(s, e)
	{
		const struct dsm_page_rule *r = rule(s, e);

		if (r->kind != DSM_RULE_GO)
			continue;
		CU_ASSERT_EQUAL(!has_twin(s) && has_twin((int)r->next),
				!!(r->acts & DSM_ACT_TWIN));
		CU_ASSERT_EQUAL(has_twin(s) && !has_twin((int)r->next),
				!!(r->acts & DSM_ACT_UNTWIN));
	}
}

static void access_is_lowered_before_a_compare_and_raised_after_a_twin(void)
{
	EACH_CELL(s, e)
	{
		const struct dsm_page_rule *r = rule(s, e);
		unsigned int lower = DSM_ACT_LOWER_NONE | DSM_ACT_LOWER_R;
		unsigned int raise = DSM_ACT_RAISE_R | DSM_ACT_RAISE_RW;

		if (r->kind != DSM_RULE_GO)
			continue;
		CU_ASSERT_EQUAL(is_writable(s) && !is_writable((int)r->next),
				!!(r->acts & lower && is_writable(s)));
		CU_ASSERT_EQUAL(!is_writable(s) && is_writable((int)r->next),
				!!(r->acts & DSM_ACT_RAISE_RW));
		CU_ASSERT(!(r->acts & lower && r->acts & raise));
	}
}

static void a_copy_registers_when_it_comes_and_deregisters_when_it_goes(void)
{
	EACH_CELL(s, e)
	{
		const struct dsm_page_rule *r = rule(s, e);
		bool goes = s != DSM_PG_INVALID && r->next == DSM_PG_INVALID;

		if (r->kind != DSM_RULE_GO)
			continue;
		CU_ASSERT_EQUAL(s == DSM_PG_INVALID,
				!!(r->acts & (DSM_ACT_FETCH | DSM_ACT_ENROL)));
		CU_ASSERT_EQUAL(goes, !!(r->acts & DSM_ACT_DEREGISTER));
	}
}

static void cached_pages_are_counted_in_and_out(void)
{
	EACH_CELL(s, e)
	{
		const struct dsm_page_rule *r = rule(s, e);
		bool was = s != DSM_PG_INVALID && !is_home(s);
		bool is = r->next != DSM_PG_INVALID && !is_home((int)r->next);

		if (r->kind != DSM_RULE_GO)
			continue;
		CU_ASSERT_EQUAL(!was && is, !!(r->acts & DSM_ACT_CACHED));
		CU_ASSERT_EQUAL(was && !is, !!(r->acts & DSM_ACT_UNCACHED));
	}
}

static void names_are_those_of_the_table(void)
{
	CU_ASSERT_STRING_EQUAL(dsm_page_state_name(DSM_PG_HWATCH), "HWATCH");
	CU_ASSERT_STRING_EQUAL(dsm_page_event_name(DSM_EV_LOSE), "LOSE");
	CU_ASSERT_STRING_EQUAL(dsm_page_state_name(DSM_PG_NR), "?");
	CU_ASSERT_STRING_EQUAL(dsm_page_event_name(DSM_EV_NR), "?");
}

CU_TestInfo test_dsm_page[] = {
	{ "every cell is filled and says why",
	  every_cell_is_filled_and_says_why },
	{ "every state can be reached and left",
	  every_state_can_be_reached_and_left },
	{ "a written page never goes away without its diff",
	  a_written_page_never_goes_away_without_its_diff },
	{ "a twin lives exactly as long as the page is watched",
	  a_twin_lives_exactly_as_long_as_the_page_is_watched },
	{ "access is lowered before a compare and raised after a twin",
	  access_is_lowered_before_a_compare_and_raised_after_a_twin },
	{ "a copy registers when it comes and deregisters when it goes",
	  a_copy_registers_when_it_comes_and_deregisters_when_it_goes },
	{ "cached pages are counted in and out",
	  cached_pages_are_counted_in_and_out },
	{ "names are those of the table", names_are_those_of_the_table },
	CU_TEST_INFO_NULL,
};
