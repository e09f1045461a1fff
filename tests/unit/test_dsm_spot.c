/* SPDX-License-Identifier: MIT */
/* test_dsm_spot.c - the places and pages that cost most. */
#include "dsm_spot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jiarun_spot.h"
#include "tests.h"

enum {
	RANKS = 3,
	MANY = 100000
};

static struct dsm_tally tallies[RANKS];
static const struct dsm_tally *const tally[RANKS] = { &tallies[0], &tallies[1],
						      &tallies[2] };
static const struct jiarun_counts counts = { NULL, tally, RANKS, NULL };

static struct dsm_spots *spots_of(int rank)
{
	return &tallies[rank].spots;
}

static void begin(void)
{
	memset(tallies, 0, sizeof(tallies));
}

static char *printed(void)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	REQUIRE(f);
	jiarun_spots_print(f, &counts);
	fclose(f);
	return text;
}

static void a_dear_place_stays_among_many_cheap_ones(void)
{
	struct dsm_spot wanted = { .kind = DSM_SPOT_lock + 1,
				   .site = 77,
				   .lock = 3 };
	const struct dsm_spot *s;

	begin();
	for (uint64_t i = 0; i < MANY; i++) {
		dsm_spot_add(spots_of(0), DSM_SPOT_load, 1000 + i, 0, 20000);
		if (i % 100 == 0)
			dsm_spot_add(spots_of(0), DSM_SPOT_lock, 77, 3,
				     4000000);
	}
	s = jiarun_spot_of(&counts, 0, &wanted);
	REQUIRE(s);
	CU_ASSERT_EQUAL(s->count, MANY / 100);
	CU_ASSERT_EQUAL(s->ns, UINT64_C(4000000) * MANY / 100);
}

static void a_page_shared_all_the_time_stays_among_many_read_once(void)
{
	const struct dsm_hot *h;

	begin();
	for (uint32_t i = 0; i < MANY; i++) {
		struct dsm_hot *cold =
			dsm_spot_page(spots_of(0), 10 + i, DSM_COST_fault_read);

		if (cold)
			cold->count.fault_read++;
		for (int k = 0; k < 20; k++)
			dsm_spot_page(spots_of(0), 5, DSM_COST_together);
	}
	h = jiarun_hot_of(&counts, 0, 6);
	REQUIRE(h);
	CU_ASSERT_TRUE(h->weight > 1000);
}

static void a_row_of_a_page_begins_with_nothing_of_the_one_before(void)
{
	begin();
	for (uint32_t i = 0; i < MANY; i++) {
		struct dsm_hot *h = dsm_spot_page(spots_of(0), i, 1);

		if (!h)
			continue;
		CU_ASSERT_EQUAL(h->count.getp, 0);
		h->count.getp = 1;
	}
}

static void bytes_written_are_the_hull_of_all_changes(void)
{
	const struct dsm_hot *h;

	begin();
	dsm_spot_wrote(spots_of(0), 0, 100, 200);
	dsm_spot_wrote(spots_of(0), 0, 150, 160);
	dsm_spot_wrote(spots_of(0), 0, 40, 50);
	h = jiarun_hot_of(&counts, 0, 1);
	REQUIRE(h);
	CU_ASSERT_EQUAL(h->from, 40);
	CU_ASSERT_EQUAL(h->to, 200);
	CU_ASSERT_EQUAL(h->wrote, 3);
}

static void the_rank_that_others_wait_for_waits_least(void)
{
	struct jiarun_spot *s;

	begin();
	for (int r = 0; r < RANKS; r++)
		dsm_spot_add(spots_of(r), DSM_SPOT_barrier, 9, 0,
			     r == 1 ? 5 : 1000 + (uint64_t)r);
	dsm_spot_add(spots_of(2), DSM_SPOT_lock, 9, 4, 50);
	CU_ASSERT_EQUAL(jiarun_spots(&counts, &s), 2);
	CU_ASSERT_EQUAL(s[0].sum.ns, 2007);
	CU_ASSERT_EQUAL(s[0].sum.count, 3);
	CU_ASSERT_EQUAL(s[0].least_rank, 1);
	CU_ASSERT_EQUAL(s[0].most_rank, 2);
	CU_ASSERT_EQUAL(s[1].least, 0); /* the others took it never */
	CU_ASSERT_EQUAL(s[1].most, 50);
	free(s);
}

static void a_report_names_memory_writers_and_locks(void)
{
	char *text;

	begin();
	for (int r = 0; r < RANKS; r++) {
		uint32_t at = 100 * (uint32_t)r;

		tallies[r].view = 0x550000000000;
		dsm_tally_maker(&tallies[r], 2, 4, 0x1111);
		dsm_spot_wrote(spots_of(r), 3, at, at + 10);
		dsm_spot_add(spots_of(r), DSM_SPOT_lock, 0x2222, 0x550000001008,
			     1000);
	}
	dsm_spot_page(spots_of(0), 3, 0)->together = 12;
	text = printed();
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "lock at 0x550000001008, 0x2222"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text, "0x550000003000  memory of 0x1111 + 0x1000"));
	CU_ASSERT_PTR_NOT_NULL(strstr(
		text,
		"written by rank 0 bytes 0-9, rank 1 bytes 100-109, rank 2 bytes 200-209\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "false sharing"));
	free(text);
}

static void a_broken_table_is_no_row(void)
{
	char *text;

	memset(tallies, 0xff, sizeof(tallies));
	text = printed();
	CU_ASSERT_PTR_NULL(strstr(text, "where ranks wait"));
	free(text);
	begin();
	text = printed();
	ASSERT_TEXT(text, "");
	free(text);
}

CU_TestInfo test_dsm_spot[] = {
	{ "a dear place stays among many cheap ones",
	  a_dear_place_stays_among_many_cheap_ones },
	{ "a page shared all the time stays among many read once",
	  a_page_shared_all_the_time_stays_among_many_read_once },
	{ "a row of a page begins with nothing of the one before",
	  a_row_of_a_page_begins_with_nothing_of_the_one_before },
	{ "bytes written are the hull of all changes",
	  bytes_written_are_the_hull_of_all_changes },
	{ "the rank that others wait for waits least",
	  the_rank_that_others_wait_for_waits_least },
	{ "a report names memory, writers and locks",
	  a_report_names_memory_writers_and_locks },
	{ "a broken table is no row", a_broken_table_is_no_row },
	CU_TEST_INFO_NULL
};
