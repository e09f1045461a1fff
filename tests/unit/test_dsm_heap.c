/* SPDX-License-Identifier: MIT */
/* test_dsm_heap.c - the region's pages: given out once, given back, joined. */
#include <CUnit/Basic.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dsm_heap.h"
#include "tests.h"

static void first_fit_gives_the_lowest_place(void)
{
	struct dsm_heap h;
	uint32_t a, b, c, pages;

	CU_ASSERT_EQUAL_FATAL(dsm_heap_open(&h, 100, 50), 0);
	CU_ASSERT_EQUAL(dsm_heap_take(&h, 10, 1, &a), 0);
	CU_ASSERT_EQUAL(dsm_heap_take(&h, 10, 1, &b), 0);
	CU_ASSERT_EQUAL(dsm_heap_give(&h, a, &pages), 0);
	CU_ASSERT_EQUAL(pages, 10);
	CU_ASSERT_EQUAL(dsm_heap_take(&h, 5, 1, &c), 0);
	CU_ASSERT_EQUAL(a, 0);
	CU_ASSERT_EQUAL(b, 10);
	CU_ASSERT_EQUAL(c, 0);
	dsm_heap_close(&h);
}

static void alignment_is_kept_and_costs_nothing_for_others(void)
{
	struct dsm_heap h;
	uint32_t a, b, c;

	CU_ASSERT_EQUAL_FATAL(dsm_heap_open(&h, 100, 50), 0);
	CU_ASSERT_EQUAL(dsm_heap_take(&h, 1, 1, &a), 0);
	CU_ASSERT_EQUAL(dsm_heap_take(&h, 16, 16, &b), 0);
	CU_ASSERT_EQUAL(dsm_heap_take(&h, 3, 1, &c), 0);
	CU_ASSERT_EQUAL(b, 16);
	CU_ASSERT_EQUAL(c, 1);
	dsm_heap_close(&h);
}

static void a_full_region_and_too_many_pieces_are_told_apart(void)
{
	struct dsm_heap h;
	uint32_t page;

	CU_ASSERT_EQUAL_FATAL(dsm_heap_open(&h, 4, 50), 0);
	CU_ASSERT_EQUAL(dsm_heap_take(&h, 5, 1, &page), -ENOMEM);
	CU_ASSERT_EQUAL(dsm_heap_take(&h, 4, 1, &page), 0);
	CU_ASSERT_EQUAL(dsm_heap_take(&h, 1, 1, &page), -ENOMEM);
	dsm_heap_close(&h);
	CU_ASSERT_EQUAL_FATAL(dsm_heap_open(&h, 4, 2), 0);
	CU_ASSERT_EQUAL(dsm_heap_take(&h, 1, 1, &page), -ENOSPC);
	dsm_heap_close(&h);
}

static void only_the_start_of_an_allocation_can_be_given_back(void)
{
	struct dsm_heap h;
	struct dsm_extent e;
	uint32_t page, pages;

	CU_ASSERT_EQUAL_FATAL(dsm_heap_open(&h, 10, 50), 0);
	CU_ASSERT_EQUAL(dsm_heap_give(&h, 0, &pages), -EINVAL);
	CU_ASSERT_EQUAL(dsm_heap_take(&h, 3, 1, &page), 0);
	CU_ASSERT_EQUAL(dsm_heap_give(&h, 1, &pages), -EINVAL);
	CU_ASSERT(dsm_heap_find(&h, 2, &e));
	CU_ASSERT_EQUAL(e.page, 0);
	CU_ASSERT_FALSE(dsm_heap_find(&h, 3, &e));
	CU_ASSERT_FALSE(dsm_heap_find(&h, 10, &e));
	CU_ASSERT_EQUAL(dsm_heap_give(&h, 0, &pages), 0);
	CU_ASSERT_EQUAL(dsm_heap_give(&h, 0, &pages), -EINVAL);
	dsm_heap_close(&h);
}

enum {
	PAGES = 200,
	TAKEN = 40
};

/* Everything given back leaves one piece; nothing is given out twice. */
static void random_use_never_overlaps_and_leaves_one_piece(void)
{
	const char *env = getenv("SEED");
	unsigned int seed = env ? (unsigned int)strtoul(env, NULL, 0) : 7u;
	uint32_t at[TAKEN], len[TAKEN] = { 0 };
	char used[PAGES] = { 0 };
	struct dsm_heap h;

	printf("SEED=0x%x ", seed);
	CU_ASSERT_EQUAL_FATAL(dsm_heap_open(&h, PAGES, 2 * TAKEN + 4), 0);
	for (int step = 0; step < 20000; step++) {
		int i = rand_r(&seed) % TAKEN;
		uint32_t n = 1 + (uint32_t)rand_r(&seed) % 20, pages;

		if (len[i]) {
			CU_ASSERT_EQUAL(dsm_heap_give(&h, at[i], &pages), 0);
			CU_ASSERT_EQUAL(pages, len[i]);
			memset(used + at[i], 0, len[i]);
			len[i] = 0;
		} else if (!dsm_heap_take(&h, n, 1u << rand_r(&seed) % 4,
					  &at[i])) {
			len[i] = n;
			CU_ASSERT_PTR_NULL(memchr(used + at[i], 1, n));
			memset(used + at[i], 1, n);
		}
	}
	for (int i = 0; i < TAKEN; i++) {
		uint32_t pages;

		if (len[i])
			CU_ASSERT_EQUAL(dsm_heap_give(&h, at[i], &pages), 0);
	}
	CU_ASSERT_EQUAL(h.nr, 1);
	CU_ASSERT_EQUAL(dsm_heap_used(&h), 0);
	dsm_heap_close(&h);
}

CU_TestInfo test_dsm_heap[] = {
	{ "first fit gives the lowest place",
	  first_fit_gives_the_lowest_place },
	{ "alignment is kept and costs nothing for others",
	  alignment_is_kept_and_costs_nothing_for_others },
	{ "a full region and too many pieces are told apart",
	  a_full_region_and_too_many_pieces_are_told_apart },
	{ "only the start of an allocation can be given back",
	  only_the_start_of_an_allocation_can_be_given_back },
	{ "random use never overlaps and leaves one piece",
	  random_use_never_overlaps_and_leaves_one_piece },
	CU_TEST_INFO_NULL,
};
