/* SPDX-License-Identifier: MIT */
/* test_jiarun_json.c - the counters as JSON, read back by jansson. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "dsm_stat.h"
#include "jiarun_json.h"
#include "tests.h"

enum {
	RANKS = 3
};

static uint64_t words[RANKS][DSM_STAT_NR];
static const uint64_t *const counters[RANKS] = { words[0], words[1], words[2] };
static struct dsm_tally tallies[RANKS];
static const struct dsm_tally *const tally[RANKS] = { &tallies[0], &tallies[1],
						      &tallies[2] };
static const struct jiarun_counts counts = { counters, tally, RANKS, NULL };

static void fill(void)
{
	for (unsigned int r = 0; r < RANKS; r++)
		for (unsigned int i = 0; i < DSM_STAT_NR; i++)
			words[r][i] = 1000 * i + r;
}

static json_t *printed(void)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	json_error_t why;
	json_t *o;

	REQUIRE(f);
	CU_ASSERT_EQUAL(jiarun_json_print(f, &counts), 0);
	CU_ASSERT_EQUAL(fclose(f), 0);
	CU_ASSERT_EQUAL(text[len - 1], '\n');
	o = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	REQUIRE(o);
	free(text);
	return o;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "(missing)";
}

static json_int_t number_of(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static void every_counter_is_there_with_its_words_and_figures(void)
{
	json_t *o, *all;

	fill();
	o = printed();
	ASSERT_TEXT(text_of(o, "format"), "dajia-stats");
	CU_ASSERT_EQUAL(number_of(o, "version"), 1);
	CU_ASSERT_EQUAL(number_of(o, "ranks"), RANKS);
	all = json_object_get(o, "counters");
	CU_ASSERT_EQUAL(json_object_size(all), DSM_STAT_NR);
	for (unsigned int i = 0; i < DSM_STAT_NR; i++) {
		const struct dsm_stat_row *r = dsm_stat_row(i);
		json_t *c = json_object_get(all, r->name);
		json_t *ranks = json_object_get(c, "ranks");

		ASSERT_TEXT(text_of(c, "label"), r->label);
		ASSERT_TEXT(text_of(c, "unit"), r->unit);
		ASSERT_TEXT(text_of(c, "doc"), r->doc);
		CU_ASSERT_EQUAL(number_of(c, "total"), 3000 * i + 3);
		CU_ASSERT_EQUAL(json_array_size(ranks), RANKS);
		for (unsigned int k = 0; k < RANKS; k++)
			CU_ASSERT_EQUAL(
				json_integer_value(json_array_get(ranks, k)),
				1000 * i + k);
	}
	json_decref(o);
}

static json_int_t total_of(const json_t *o, const char *counter)
{
	return number_of(json_object_get(json_object_get(o, "counters"),
					 counter),
			 "total");
}

/* Rank 0 knows both, rank 1 one, rank 2 none. */
static void name_some(void)
{
	memset(tallies, 0, sizeof(tallies));
	for (unsigned int r = 0; r < 2; r++) {
		struct dsm_tally *t = &tallies[r];
		unsigned int row;

		if (!r) {
			dsm_tally_phase(t, &t->base, 10, "first");
			dsm_tally_place(t, "other", &row);
		}
		dsm_tally_phase(t, &t->base, 30, "sweep");
		t->phase[t->current - 1].sum.getp = 5 + r;
		dsm_tally_phase(t, &t->base, 100, NULL);
		CU_ASSERT_EQUAL(dsm_tally_place(t, "grid", &row), 0);
		t->place_bytes[row] = 8192;
		t->place[row].diffs = 7 + r;
		t->place[0].diffs = 1;
	}
}

static void phases_and_names_are_joined_over_the_ranks(void)
{
	json_t *o, *phases, *memory, *sweep, *grid;

	fill();
	name_some();
	o = printed();
	phases = json_object_get(o, "phases");
	CU_ASSERT_EQUAL(json_array_size(phases), 2);
	ASSERT_TEXT(text_of(json_array_get(phases, 0), "name"), "first");
	sweep = json_array_get(phases, 1);
	ASSERT_TEXT(text_of(sweep, "name"), "sweep");
	CU_ASSERT_EQUAL(total_of(sweep, "getp"), 11);
	CU_ASSERT_EQUAL(json_integer_value(json_array_get(
				json_object_get(sweep, "ns"), 0)),
			70);
	CU_ASSERT_EQUAL(json_integer_value(json_array_get(
				json_object_get(sweep, "begun"), 2)),
			0);
	memory = json_object_get(o, "memory");
	CU_ASSERT_EQUAL(json_array_size(memory), 3);
	CU_ASSERT(json_is_null(
		json_object_get(json_array_get(memory, 0), "name")));
	CU_ASSERT_EQUAL(total_of(json_array_get(memory, 0), "diffs"), 2);
	grid = json_array_get(memory, 2);
	ASSERT_TEXT(text_of(grid, "name"), "grid");
	CU_ASSERT_EQUAL(number_of(grid, "bytes"), 8192);
	CU_ASSERT_EQUAL(total_of(grid, "diffs"), 15);
	json_decref(o);
	memset(tallies, 0, sizeof(tallies));
}

static void spots_and_pages_have_figures_of_all_ranks(void)
{
	json_t *o, *lock, *page, *writers;

	fill();
	memset(tallies, 0, sizeof(tallies));
	for (unsigned int r = 0; r < 2; r++) {
		struct dsm_spots *s = &tallies[r].spots;

		dsm_spot_add(s, DSM_SPOT_lock, 0x1234, 3, 100 + r);
		dsm_spot_page(s, 5, 0)->count.getp = 7;
		dsm_spot_wrote(s, 5, 64 * r, 64 * r + 8);
		tallies[r].view = 0x550000000000;
	}
	dsm_tally_maker(&tallies[0], 4, 2, 0x4321);
	o = printed();
	lock = json_array_get(json_object_get(o, "spots"), 0);
	ASSERT_TEXT(text_of(lock, "what"), "lock 3");
	ASSERT_TEXT(text_of(lock, "site"), "0x1234");
	CU_ASSERT_EQUAL(json_integer_value(
				json_array_get(json_object_get(lock, "ns"), 1)),
			101);
	CU_ASSERT_EQUAL(json_integer_value(json_array_get(
				json_object_get(lock, "count"), 2)),
			0);
	page = json_array_get(json_object_get(o, "pages"), 0);
	ASSERT_TEXT(text_of(page, "address"), "0x550000005000");
	ASSERT_TEXT(text_of(page, "allocated"), "0x4321");
	CU_ASSERT_EQUAL(number_of(page, "offset"), 4096);
	CU_ASSERT(json_is_null(json_object_get(page, "name")));
	CU_ASSERT_EQUAL(number_of(json_object_get(page, "counters"), "getp"),
			14);
	writers = json_object_get(page, "writers");
	CU_ASSERT_EQUAL(json_array_size(writers), 2);
	CU_ASSERT_EQUAL(number_of(json_array_get(writers, 1), "from"), 64);
	CU_ASSERT_EQUAL(number_of(json_array_get(writers, 1), "to"), 72);
	json_decref(o);
	memset(tallies, 0, sizeof(tallies));
}

static void a_broken_table_is_bounded(void)
{
	json_t *o;

	fill();
	memset(tallies, 0xff, sizeof(tallies));
	o = printed();
	CU_ASSERT(json_array_size(json_object_get(o, "phases")) <=
		  DSM_PHASES_MAX);
	json_decref(o);
	memset(tallies, 0, sizeof(tallies));
}

static void a_counter_beyond_json_is_its_largest_number(void)
{
	json_t *o, *c;

	fill();
	words[1][0] = UINT64_MAX;
	words[0][0] = words[2][0] = 0;
	o = printed();
	c = json_object_get(json_object_get(o, "counters"),
			    dsm_stat_row(0)->name);
	CU_ASSERT_EQUAL(number_of(c, "total"), INT64_MAX);
	CU_ASSERT_EQUAL(json_integer_value(
				json_array_get(json_object_get(c, "ranks"), 1)),
			INT64_MAX);
	json_decref(o);
}

static void a_full_disk_is_an_error(void)
{
	FILE *f = fopen("/dev/full", "w");

	REQUIRE(f);
	fill();
	CU_ASSERT_EQUAL(jiarun_json_print(f, &counts), -EIO);
	fclose(f);
}

/* The @fail_at-th allocation fails, and all after it. */
static long allocations, fail_at;

static void *scarce_malloc(size_t n)
{
	return ++allocations >= fail_at ? NULL : malloc(n);
}

static void no_memory_is_an_error_wherever_it_happens(void)
{
	FILE *f = fopen("/dev/null", "w");
	int err = -ENOMEM;

	REQUIRE(f);
	fill();
	json_set_alloc_funcs(scarce_malloc, free);
	for (fail_at = 1; err && fail_at < 100000; fail_at++) {
		allocations = 0;
		err = jiarun_json_print(f, &counts);
		CU_ASSERT(!err || err == -ENOMEM || err == -EIO);
	}
	CU_ASSERT_EQUAL(err, 0);
	CU_ASSERT(fail_at > 5L * DSM_STAT_NR);
	json_set_alloc_funcs(malloc, free);
	fclose(f);
}

CU_TestInfo test_jiarun_json[] = {
	{ "every counter is there with its words and figures",
	  every_counter_is_there_with_its_words_and_figures },
	{ "phases and names are joined over the ranks",
	  phases_and_names_are_joined_over_the_ranks },
	{ "spots and pages have figures of all ranks",
	  spots_and_pages_have_figures_of_all_ranks },
	{ "a broken table is bounded", a_broken_table_is_bounded },
	{ "a counter beyond JSON is its largest number",
	  a_counter_beyond_json_is_its_largest_number },
	{ "a full disk is an error", a_full_disk_is_an_error },
	{ "no memory is an error wherever it happens",
	  no_memory_is_an_error_wherever_it_happens },
	CU_TEST_INFO_NULL,
};
