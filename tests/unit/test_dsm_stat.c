/* SPDX-License-Identifier: MIT */
/* test_dsm_stat.c - counting, adding up, and the table. */
#include <pthread.h>
#include <stdlib.h>

#include "dsm_stat.h"
#include "tests.h"

enum {
	RANKS_MAX = 12
};

/* A few ranks' counters: counter i of rank r is r + 1, times @scale. */
struct bench {
	uint64_t words[RANKS_MAX][DSM_STAT_NR];
	const uint64_t *counters[RANKS_MAX];
};

static void bench_fill(struct bench *b, uint64_t scale)
{
	for (unsigned int r = 0; r < RANKS_MAX; r++) {
		b->counters[r] = b->words[r];
		for (unsigned int i = 0; i < DSM_STAT_NR; i++)
			b->words[r][i] = (r + 1) * scale;
	}
}

static unsigned int row_of(const char *name)
{
	for (unsigned int i = 0; i < DSM_STAT_NR; i++)
		if (!strcmp(dsm_stat_row(i)->name, name))
			return i;
	CU_FAIL_FATAL("no such counter");
	return 0;
}

static const struct dsm_stat_row expected[DSM_STAT_NR] = {
#define STAT(name, unit, label, doc) \
	{ #name, #unit, label, doc, DSM_STAT_##unit },
#include "dsm_stat.def"
};

static void the_words_of_a_rank_are_the_rows_in_order(void)
{
	struct dsm_stats s;
	uint64_t words[DSM_STAT_NR];
	uint64_t n = 0;

	memset(&s, 0, sizeof(s));
#define STAT(name, unit, label, doc) s.name = n++;
#include "dsm_stat.def"
	CU_ASSERT_EQUAL(n, DSM_STAT_NR);
	memcpy(words, &s, sizeof(words));
	for (unsigned int i = 0; i < DSM_STAT_NR; i++) {
		const struct dsm_stat_row *r = dsm_stat_row(i);

		CU_ASSERT_EQUAL(words[i], i);
		ASSERT_TEXT(r->name, expected[i].name);
		ASSERT_TEXT(r->unit, expected[i].unit);
		ASSERT_TEXT(r->label, expected[i].label);
		ASSERT_TEXT(r->doc, expected[i].doc);
		CU_ASSERT_EQUAL(r->kind, expected[i].kind);
	}
}

static void counters_grow_and_are_zeroed(void)
{
	struct dsm_stats s;

	memset(&s, 0xff, sizeof(s));
	dsm_stat_zero(&s);
#define STAT(name, unit, label, doc) CU_ASSERT_EQUAL(s.name, 0);
#include "dsm_stat.def"
	dsm_stat_add(&s, diffs, 3);
	dsm_stat_add(&s, diffs, 4);
	CU_ASSERT_EQUAL(dsm_stat_read(&s.diffs), 7);
	CU_ASSERT_EQUAL(s.diff_runs, 0);
}

enum {
	TIMES = 1000000
};

struct counting {
	struct dsm_stats stats;
	pthread_barrier_t start;
};

static void *count(void *arg)
{
	struct counting *c = arg;

	pthread_barrier_wait(&c->start);
	for (int i = 0; i < TIMES; i++) {
		dsm_stat_add(&c->stats, getp, 1);
		/* So that no compiler makes one addition of them all. */
		__asm__ volatile("" ::: "memory");
	}
	return NULL;
}

static void threads_lose_no_count(void)
{
	struct counting c;
	pthread_t other;

	dsm_stat_zero(&c.stats);
	CU_ASSERT_EQUAL_FATAL(pthread_barrier_init(&c.start, NULL, 2), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&other, NULL, count, &c), 0);
	count(&c);
	CU_ASSERT_EQUAL(pthread_join(other, NULL), 0);
	CU_ASSERT_EQUAL(c.stats.getp, 2ull * TIMES);
	pthread_barrier_destroy(&c.start);
}

static void a_sum_has_total_least_and_most(void)
{
	struct bench b;
	struct dsm_stat_sum sum;

	bench_fill(&b, 10);
	sum = dsm_stat_sum(b.counters, 3, row_of("locks"));
	CU_ASSERT_EQUAL(sum.total, 60);
	CU_ASSERT_EQUAL(sum.min, 10);
	CU_ASSERT_EQUAL(sum.max, 30);
	b.words[0][row_of("locks")] = 50;
	sum = dsm_stat_sum(b.counters, 3, row_of("locks"));
	CU_ASSERT_EQUAL(sum.min, 20);
	CU_ASSERT_EQUAL(sum.max, 50);
	sum = dsm_stat_sum(b.counters, 1, row_of("locks"));
	CU_ASSERT_EQUAL(sum.total, 50);
	CU_ASSERT_EQUAL(sum.min, 50);
}

static char *table(const struct bench *b, int ranks)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	REQUIRE(f);
	dsm_stat_print(f, b->counters, ranks);
	CU_ASSERT_EQUAL(fclose(f), 0);
	return text;
}

/*
 * The line that begins with @name and a blank, each run of blanks as one; how
 * many characters stand before the column of the unit: the same in all lines.
 */
static size_t line_of(const char *text, const char *name, const char *unit,
		      char out[256])
{
	size_t n = strlen(name);
	const char *end;

	while (strncmp(text, name, n) != 0 || text[n] != ' ') {
		text = strchr(text, '\n');
		REQUIRE(text);
		text++;
	}
	end = strstr(text, unit);
	REQUIRE(end);
	n = 0;
	for (const char *p = text; *p != '\n' && n < 255; p++)
		if (*p != ' ' || p[1] != ' ')
			out[n++] = *p;
	out[n] = 0;
	return (size_t)(end - text);
}

static void the_table_has_a_column_per_rank(void)
{
	struct bench b;
	char *text, line[256];
	size_t lines = 0, at;

	bench_fill(&b, 1500000);
	text = table(&b, 2);
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	CU_ASSERT_EQUAL(lines, DSM_STAT_NR + 1);
	at = line_of(text, "counter", "unit", line);
	ASSERT_TEXT(line, "counter JIAJIA rank 0 rank 1 total unit meaning");
	CU_ASSERT_EQUAL(line_of(text, "segv_remote", "count", line), at);
	ASSERT_TEXT(line, "segv_remote SEGVs (remote) 1500000 3000000 4500000 "
			  "count page faults on pages whose home is elsewhere");
	CU_ASSERT_EQUAL(line_of(text, "diff_bytes", "bytes  c", line), at);
	ASSERT_TEXT(line, "diff_bytes 1500000 3000000 4500000 bytes changed "
			  "bytes in those diffs");
	CU_ASSERT_EQUAL(line_of(text, "lock_ns", "ms", line), at);
	ASSERT_TEXT(line, "lock_ns Lock time 1.500 3.000 4.500 ms time in "
			  "taking locks");
	free(text);
}

static void many_ranks_give_least_and_most(void)
{
	struct bench b;
	char *text, line[256];
	size_t at;

	bench_fill(&b, 1);
	text = table(&b, DSM_STAT_COLUMNS);
	line_of(text, "locks", "count", line);
	ASSERT_TEXT(line, "locks Locks 1 2 3 4 5 6 7 8 36 count locks taken");
	free(text);
	text = table(&b, DSM_STAT_COLUMNS + 1);
	at = line_of(text, "counter", "unit", line);
	ASSERT_TEXT(line, "counter JIAJIA least most total unit meaning");
	CU_ASSERT_EQUAL(line_of(text, "locks", "count", line), at);
	ASSERT_TEXT(line, "locks Locks 1 9 45 count locks taken");
	free(text);
}

static void the_largest_figures_keep_the_columns(void)
{
	struct bench b;
	char *text, line[256];
	size_t at;

	bench_fill(&b, 0);
	b.words[0][row_of("bytes_sent")] = UINT64_MAX;
	b.words[0][row_of("segv_ns")] = UINT64_MAX;
	text = table(&b, 1);
	at = line_of(text, "counter", "unit", line);
	CU_ASSERT_EQUAL(line_of(text, "bytes_sent", "bytes ", line), at);
	ASSERT_TEXT(line, "bytes_sent Bytes Sent 18446744073709551615 "
			  "18446744073709551615 bytes bytes written to other "
			  "ranks");
	CU_ASSERT_EQUAL(line_of(text, "segv_ns", "ms", line), at);
	ASSERT_TEXT(line, "segv_ns SEGV time 18446744073709.551 "
			  "18446744073709.551 ms time in page faults");
	CU_ASSERT_EQUAL(line_of(text, "locks", "count", line), at);
	free(text);
}

CU_TestInfo test_dsm_stat[] = {
	{ "the words of a rank are the rows in order",
	  the_words_of_a_rank_are_the_rows_in_order },
	{ "counters grow and are zeroed", counters_grow_and_are_zeroed },
	{ "threads lose no count", threads_lose_no_count },
	{ "a sum has total, least and most", a_sum_has_total_least_and_most },
	{ "the table has a column per rank", the_table_has_a_column_per_rank },
	{ "many ranks give least and most", many_ranks_give_least_and_most },
	{ "the largest figures keep the columns",
	  the_largest_figures_keep_the_columns },
	CU_TEST_INFO_NULL,
};
