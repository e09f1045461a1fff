/* SPDX-License-Identifier: MIT */
/* test_dsm_news.c - what a lock brings along, and for whom it is. */
#include <CUnit/Basic.h>

#include "dsm_news.h"
#include "tests.h"

enum {
	RANKS = 4,
	LOG = 256,
	WORDS = 128, /* of the largest record */
	EPOCH = 5
};

/* A rank that publishes, and the record that comes and goes with its lock. */
struct world {
	struct dsm_node node;
	struct dsm_thread thread;
	uint64_t sync[LOG / 2], seen[RANKS];
	union {
		struct dsm_news news;
		uint64_t words[WORDS];
	};
};

static struct world *world_open(int rank, uint64_t carry, uint64_t mode)
{
	struct world *w = calloc(1, sizeof(*w));

	REQUIRE(w);
	w->node = (struct dsm_node){
		.rank = rank,
		.ranks = RANKS,
		.epoch = EPOCH,
		.cfg = { .carry = carry, .log = LOG, .consistency = mode },
		.sync = (char *)w->sync,
		.seen_pos = w->seen,
	};
	return w;
}

static dsm_ref ref_of(int rank, uint32_t nr)
{
	return (uint64_t)(unsigned int)rank << 54 | (uint64_t)EPOCH << 32 | nr;
}

#define LIST(...) ((const uint32_t[]){ __VA_ARGS__ })

/* Release number @nr by rank @rank, with notices of @units, ended by 0. */
static void publish(struct world *w, int rank, uint32_t nr, dsm_ref prev,
		    const uint32_t *units)
{
	struct dsm_scope s = { .from = w->node.log_pos, .prev = prev };
	uint32_t *log = (void *)w->sync;

	w->node.rank = rank;
	for (; *units; units++)
		log[w->node.log_pos++ % LOG] = *units;
	dsm_news_make(&w->node, &w->thread, &s, ref_of(rank, nr), &w->news);
}

static void check_units(const struct world *w, uint32_t i,
			const uint32_t *units)
{
	uint32_t nr, k;
	const uint32_t *got = dsm_news_units(&w->news, i, &nr);

	for (k = 0; units[k]; k++)
		CU_ASSERT(k < nr && got[k] == units[k]);
	CU_ASSERT_EQUAL(k, nr);
}

static void a_record_is_taken_for_its_own_release_only(void)
{
	struct world *w = world_open(0, 16, DSM_CONSISTENCY_SCOPE);

	publish(w, 0, 1, 0, LIST(7, 0));
	dsm_news_check(&w->node, &w->news, ref_of(0, 1));
	CU_ASSERT_EQUAL(w->news.ref, ref_of(0, 1));
	dsm_news_check(&w->node, &w->news, ref_of(0, 2));
	CU_ASSERT_EQUAL(w->news.ref, 0);
	free(w);
}

static void a_record_of_which_a_word_is_another_is_none(void)
{
	for (int mode = 0; mode < 2; mode++) {
		struct world *w = world_open(0, 16, (uint64_t)mode);
		size_t used;

		for (uint32_t i = 1; i < 6; i++)
			dsm_news_remember(&w->node, dsm_news_heard(i, 2, i));
		publish(w, 0, 1, ref_of(1, 9), LIST(7, 8, 9, 0));
		used = dsm_news_used(&w->node, &w->news) / 8;
		CU_ASSERT(used > 5 && used <= WORDS);
		for (size_t i = 0; i < used; i++) {
			uint64_t was = w->words[i];

			w->words[i] = was ^ UINT64_C(1) << (i * 7 % 64);
			dsm_news_check(&w->node, &w->news, ref_of(0, 1));
			CU_ASSERT_EQUAL(w->news.ref, 0);
			w->news.ref = ref_of(0, 1);
			w->words[i] = was;
		}
		dsm_news_check(&w->node, &w->news, ref_of(0, 1));
		CU_ASSERT_EQUAL(w->news.ref, ref_of(0, 1));
		free(w);
	}
}

static void a_record_grows_with_the_lock_until_all_ranks_are_served(void)
{
	struct world *w = world_open(0, 16, DSM_CONSISTENCY_SCOPE);

	publish(w, 0, 1, 0, LIST(1, 2, 0));
	publish(w, 1, 1, ref_of(0, 1), LIST(3, 0));
	publish(w, 2, 1, ref_of(1, 1), LIST(4, 1, 0));
	CU_ASSERT_EQUAL(w->news.releases, 3);
	check_units(w, 0, LIST(4, 1, 0));
	check_units(w, 1, LIST(3, 0));
	check_units(w, 2,
		    LIST(2, 0)); /* 1 is there already, by who was later */
	CU_ASSERT_EQUAL(dsm_news_before(&w->news, 1), ref_of(0, 1));
	CU_ASSERT_EQUAL(dsm_news_before(&w->news, 2), 0);
	publish(w, 3, 1, ref_of(2, 1), LIST(5, 0));
	publish(w, 0, 2, ref_of(3, 1), LIST(0));
	CU_ASSERT_EQUAL(w->news.releases, 3);
	check_units(w, 0, LIST(0));
	check_units(w, 1, LIST(5, 0));
	check_units(w, 2, LIST(4, 1, 0));
	CU_ASSERT_EQUAL(dsm_news_before(&w->news, 2), ref_of(1, 1));
	free(w);
}

static void what_does_not_fit_is_left_out_from_the_oldest_on(void)
{
	struct world *w = world_open(0, 3, DSM_CONSISTENCY_SCOPE);

	publish(w, 0, 1, 0, LIST(1, 2, 0));
	publish(w, 1, 1, ref_of(0, 1), LIST(3, 4, 0));
	CU_ASSERT_EQUAL(w->news.releases, 1);
	check_units(w, 0, LIST(3, 4, 0));
	CU_ASSERT_EQUAL(dsm_news_before(&w->news, 0), ref_of(0, 1));
	publish(w, 2, 1, ref_of(1, 1), LIST(5, 6, 7, 8, 0));
	CU_ASSERT_EQUAL(w->news.releases, 0);
	publish(w, 3, 1, ref_of(2, 1), LIST(9, 0));
	CU_ASSERT_EQUAL(w->news.releases, 1);
	free(w);
}

static void a_record_that_is_not_the_last_releases_is_not_extended(void)
{
	struct world *w = world_open(0, 16, DSM_CONSISTENCY_SCOPE);

	publish(w, 0, 1, 0, LIST(1, 0));
	publish(w, 1, 1, ref_of(2, 1), LIST(2, 0));
	CU_ASSERT_EQUAL(w->news.releases, 1);
	CU_ASSERT_EQUAL(dsm_news_before(&w->news, 0), ref_of(2, 1));
	free(w);
}

/* Rank 1 knows rank 2 up to 10 + @nr, and the reader up to 10. */
static int unseen(int nr, uint64_t carry, int skip, uint64_t *heard)
{
	struct world *w = world_open(1, carry, DSM_CONSISTENCY_RELEASE);
	int got;

	for (int i = nr - 1; i >= 0; i--)
		if (i != skip)
			dsm_news_remember(&w->node,
					  dsm_news_heard(100 + (uint32_t)i, 2,
							 10 + (uint64_t)i));
	w->seen[2] = 10 + (uint64_t)nr;
	publish(w, 1, 1, 0, LIST(0));
	w->node.rank = 0;
	w->seen[2] = 10;
	got = dsm_news_unseen(&w->node, &w->news, heard);
	free(w);
	return got;
}

static void all_positions_that_are_missing_are_found(void)
{
	uint64_t heard[DSM_CARRY_MAX], sum = 0;

	CU_ASSERT_EQUAL_FATAL(unseen(16, 16, -1, heard), 16);
	for (int i = 0; i < 16; i++)
		sum += dsm_news_unit(heard[i]);
	CU_ASSERT_EQUAL(sum, 16 * 100 + 120);
	CU_ASSERT_EQUAL(unseen(64, 64, -1, heard), 64);
	CU_ASSERT_EQUAL(unseen(0, 16, -1, heard), 0);
}

static void one_position_that_is_missing_makes_it_useless(void)
{
	uint64_t heard[DSM_CARRY_MAX];

	for (int i = 0; i < 16; i++)
		CU_ASSERT_EQUAL(unseen(16, 16, i, heard), -1);
	CU_ASSERT_EQUAL(unseen(17, 16, -1, heard), -1);
	CU_ASSERT_EQUAL(unseen(65, 64, -1, heard), -1);
}

static void a_position_that_is_there_twice_counts_once(void)
{
	struct world *w = world_open(1, 16, DSM_CONSISTENCY_RELEASE);
	uint64_t heard[DSM_CARRY_MAX];

	dsm_news_remember(&w->node, dsm_news_heard(7, 2, 0));
	dsm_news_remember(&w->node, dsm_news_heard(7, 2, 0));
	w->seen[2] = 2;
	publish(w, 1, 1, 0, LIST(0));
	w->node.rank = 0;
	w->seen[2] = 0;
	CU_ASSERT_EQUAL(dsm_news_unseen(&w->node, &w->news, heard), -1);
	free(w);
}

CU_TestInfo test_dsm_news[] = {
	{ "a record is taken for its own release only",
	  a_record_is_taken_for_its_own_release_only },
	{ "a record of which a word is another is none",
	  a_record_of_which_a_word_is_another_is_none },
	{ "a record grows with the lock until all ranks are served",
	  a_record_grows_with_the_lock_until_all_ranks_are_served },
	{ "what does not fit is left out from the oldest on",
	  what_does_not_fit_is_left_out_from_the_oldest_on },
	{ "a record that is not the last release's is not extended",
	  a_record_that_is_not_the_last_releases_is_not_extended },
	{ "all positions that are missing are found",
	  all_positions_that_are_missing_are_found },
	{ "one position that is missing makes it useless",
	  one_position_that_is_missing_makes_it_useless },
	{ "a position that is there twice counts once",
	  a_position_that_is_there_twice_counts_once },
	CU_TEST_INFO_NULL,
};
