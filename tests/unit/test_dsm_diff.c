/* SPDX-License-Identifier: MIT */
/*
 * test_dsm_diff.c - every implementation of the diff against a byte-wise one.
 * What others write in the meantime: test_dsm_diff_race.c.
 */
#include <CUnit/Basic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests.h"
#include "unit_diff.h"
#include "unit_seed.h"

#define LEN_MAX 4096

static size_t plain_take(const unsigned char *frame, unsigned char *twin,
			 size_t len, uint32_t base, struct sul_run *runs,
			 size_t nr)
{
	for (size_t i = 0; i < len; i++) {
		uint32_t off = base + (uint32_t)i;

		if (frame[i] == twin[i])
			continue;
		twin[i] = frame[i];
		if (nr && runs[nr - 1].off + runs[nr - 1].len == off)
			runs[nr - 1].len++;
		else
			runs[nr++] = (struct sul_run){ off, 1 };
	}
	return nr;
}

static size_t plain_merge(unsigned char *frame, unsigned char *twin,
			  const unsigned char *news, size_t len)
{
	size_t changed = 0;

	for (size_t i = 0; i < len; i++) {
		if (news[i] == twin[i])
			continue;
		frame[i] = news[i];
		twin[i] = news[i];
		changed++;
	}
	return changed;
}

static void *get(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		abort();
	return p;
}

static void *copy(const void *from, size_t bytes)
{
	return memcpy(get(bytes), from, bytes);
}

/* @to differs from @from in the ways that programs make pages differ. */
static void change(struct unit_rng *r, unsigned char *to,
		   const unsigned char *from, size_t len)
{
	uint32_t n = (uint32_t)len, kind = unit_below(r, 6);
	uint32_t one_in = 1 + unit_below(r, 40);
	size_t at = unit_below(r, n), step = 1 + unit_below(r, 20);

	memcpy(to, from, len);
	switch (kind) {
	case 0: /* nothing */
		break;
	case 1: /* one run */
		for (size_t end = at + unit_below(r, n); at < len && at < end;)
			to[at++]++;
		break;
	case 2: /* every step-th byte */
		for (; at < len; at += step)
			to[at] ^= 0x80;
		break;
	case 3: /* everything */
		for (size_t i = 0; i < len; i++)
			to[i] = (unsigned char)~to[i];
		break;
	case 4: /* whole words */
		for (size_t i = 0; i < len; i++)
			if (i / 8 % step == 0)
				to[i]++;
		break;
	default: /* anything; some of it by a single bit */
		for (size_t i = 0; i < len; i++)
			if (unit_below(r, one_in) == 0)
				to[i] ^=
					(unsigned char)(1u << unit_below(r, 8));
	}
}

/* Two areas as large as they say they are, so that ASan and valgrind see any
 * access beyond; @a is random, @b is a changed copy. */
struct areas {
	size_t len;
	unsigned char *a, *b;
};

static struct areas areas_random(struct unit_rng *r)
{
	struct areas x = { .len = 8 * (size_t)unit_below(r, 40) };

	if (unit_below(r, 8) == 0)
		x.len = 8 * (1 + (size_t)unit_below(r, LEN_MAX / 8));
	x.a = get(x.len);
	x.b = get(x.len);
	for (size_t i = 0; i < x.len; i++)
		x.a[i] = (unsigned char)unit_next(r);
	if (x.len)
		change(r, x.b, x.a, x.len);
	return x;
}

static void areas_free(struct areas *x)
{
	free(x->a);
	free(x->b);
}

static bool same_runs(const struct sul_run *a, const struct sul_run *b,
		      size_t nr)
{
	return memcmp(a, b, nr * sizeof(*a)) == 0;
}

/* One take by @d of what @x says, with or without runs that are there. */
static bool take_agrees(const struct dsm_diff_impl *d, const struct areas *x,
			uint32_t base, bool old_run)
{
	size_t room = (DSM_DIFF_RUNS_MAX(x->len) + 1) * sizeof(struct sul_run);
	struct sul_run *want = get(room), *got = get(room);
	unsigned char *want_twin = copy(x->a, x->len);
	unsigned char *twin = copy(x->a, x->len);
	unsigned char *frame = copy(x->b, x->len);
	size_t nr = 0, want_nr;
	bool good;

	if (old_run) /* one that the first byte would continue */
		want[nr++] = (struct sul_run){ base - 3, 3 };
	memcpy(got, want, nr * sizeof(*got));
	want_nr = plain_take(x->b, want_twin, x->len, base, want, nr);
	nr = d->take(frame, twin, x->len, base, got, nr);
	good = nr == want_nr && same_runs(got, want, nr) &&
	       memcmp(twin, want_twin, x->len) == 0 &&
	       memcmp(frame, x->b, x->len) == 0;
	good = good && d->take(frame, twin, x->len, base, got, nr) == nr;
	free(want);
	free(got);
	free(want_twin);
	free(twin);
	free(frame);
	return good;
}

static void take_agrees_with_a_bytewise_one(void)
{
	struct unit_rng r = unit_rng("take");
	int bad = 0;

	for (int round = 0; round < 3000; round++) {
		struct areas x = areas_random(&r);
		uint32_t base = 8 + 8 * unit_below(&r, 1u << 18);

		FOR_EACH_IMPL(d)
		bad += !take_agrees(d, &x, base, round & 1);
		areas_free(&x);
	}
	CU_ASSERT_EQUAL(bad, 0);
}

static void any_agrees_with_memcmp(void)
{
	struct unit_rng r = unit_rng("any");
	int bad = 0;

	for (int round = 0; round < 3000; round++) {
		struct areas x = areas_random(&r);
		int differ = memcmp(x.a, x.b, x.len) != 0;

		FOR_EACH_IMPL(d)
		bad += d->any(x.a, x.b, x.len) != differ;
		areas_free(&x);
	}
	CU_ASSERT_EQUAL(bad, 0);
}

/* @x->a is the twin, @x->b the news; the frame has own changes besides. */
static bool merge_agrees(const struct dsm_diff_impl *d, const struct areas *x,
			 const unsigned char *own, bool watched)
{
	const unsigned char *before = watched ? own : x->a;
	unsigned char *want_frame = copy(before, x->len);
	unsigned char *want_twin = watched ? copy(x->a, x->len) : want_frame;
	unsigned char *frame = copy(before, x->len);
	unsigned char *twin = watched ? copy(x->a, x->len) : frame;
	size_t want = plain_merge(want_frame, want_twin, x->b, x->len);
	bool good = d->merge(frame, twin, x->b, x->len) == want &&
		    memcmp(frame, want_frame, x->len) == 0 &&
		    memcmp(twin, x->b, x->len) == 0 &&
		    memcmp(want_twin, x->b, x->len) == 0;

	if (watched) {
		free(want_twin);
		free(twin);
	}
	free(want_frame);
	free(frame);
	return good;
}

static void merge_agrees_with_a_bytewise_one(void)
{
	struct unit_rng r = unit_rng("merge");
	int bad = 0;

	for (int round = 0; round < 3000; round++) {
		struct areas x = areas_random(&r);
		unsigned char *own = get(x.len);

		if (x.len)
			change(&r, own, x.a, x.len);
		FOR_EACH_IMPL(d)
		{
			bad += !merge_agrees(d, &x, own, true);
			bad += !merge_agrees(d, &x, own, false);
		}
		areas_free(&x);
		free(own);
	}
	CU_ASSERT_EQUAL(bad, 0);
}

/* Every run of 1 to 160 bytes at every place of 320: blocks, words and tails
 * begin and end everywhere in it. */
static void a_run_anywhere_is_one_run(void)
{
	enum {
		AREA = 320,
		LONGEST = 160
	};
	unsigned char frame[AREA] __attribute__((aligned(8)));
	unsigned char twin[AREA] __attribute__((aligned(8)));
	struct sul_run runs[AREA / 2];
	int bad = 0;

	memset(twin, 0, sizeof(twin));
	FOR_EACH_IMPL(d)
	{
		for (uint32_t at = 0; at < AREA; at++) {
			for (uint32_t n = 1; n <= LONGEST && at + n <= AREA;
			     n++) {
				memset(frame, 0, sizeof(frame));
				memset(frame + at, 0xff, n);
				bad += !d->any(frame, twin, AREA);
				bad += d->take(frame, twin, AREA, 0, runs, 0) !=
				       1;
				bad += runs[0].off != at || runs[0].len != n;
				bad += memcmp(twin, frame, AREA) != 0;
				memset(twin + at, 0, n);
			}
		}
	}
	CU_ASSERT_EQUAL(bad, 0);
}

static void a_single_bit_is_found_in_every_byte(void)
{
	unsigned char frame[136] __attribute__((aligned(8))) = { 0 };
	unsigned char twin[136] __attribute__((aligned(8))) = { 0 };
	struct sul_run run;
	int bad = 0;

	FOR_EACH_IMPL(d)
	{
		for (size_t bit = 0; bit < 8 * sizeof(frame); bit++) {
			frame[bit / 8] = (unsigned char)(1u << bit % 8);
			bad += d->take(frame, twin, sizeof(frame), 0, &run,
				       0) != 1;
			bad += run.off != bit / 8 || run.len != 1;
			frame[bit / 8] = 0;
			twin[bit / 8] = 0;
		}
	}
	CU_ASSERT_EQUAL(bad, 0);
}

/* A page compared in slices gives the runs of the page compared at once. */
static void runs_continue_from_slice_to_slice(void)
{
	static const size_t slices[] = { 8, 16, 64, 72, 512 };
	struct unit_rng r = unit_rng("slices");
	unsigned char *a = get(LEN_MAX), *b = get(LEN_MAX);
	struct sul_run *want = get(LEN_MAX / 2 * sizeof(*want));
	struct sul_run *got = get(LEN_MAX / 2 * sizeof(*got));
	int bad = 0;

	for (int round = 0; round < 100; round++) {
		size_t slice = slices[unit_below(&r, 5)], want_nr;
		unsigned char *twin;

		memset(a, (int)unit_below(&r, 256), LEN_MAX);
		change(&r, b, a, LEN_MAX);
		twin = copy(a, LEN_MAX);
		want_nr = plain_take(b, twin, LEN_MAX, 4096, want, 0);
		free(twin);
		FOR_EACH_IMPL(d)
		{
			size_t nr = 0, n;

			twin = copy(a, LEN_MAX);
			for (size_t at = 0; at < LEN_MAX; at += n) {
				n = LEN_MAX - at < slice ? LEN_MAX - at : slice;
				nr = d->take(b + at, twin + at, n,
					     4096 + (uint32_t)at, got, nr);
			}
			bad += nr != want_nr || !same_runs(got, want, nr);
			bad += memcmp(twin, b, LEN_MAX) != 0;
			free(twin);
		}
	}
	CU_ASSERT_EQUAL(bad, 0);
	free(a);
	free(b);
	free(want);
	free(got);
}

static void every_other_byte_gives_the_most_runs(void)
{
	unsigned char *frame = get(LEN_MAX), *twin = get(LEN_MAX);
	struct sul_run *runs = get(DSM_DIFF_RUNS_MAX(LEN_MAX) * sizeof(*runs));

	FOR_EACH_IMPL(d)
	{
		for (int odd = 0; odd < 2; odd++) {
			memset(twin, 7, LEN_MAX);
			for (int i = 0; i < LEN_MAX; i++)
				frame[i] =
					(unsigned char)(i % 2 == odd ? 8 : 7);
			CU_ASSERT_EQUAL(d->take(frame, twin, LEN_MAX, 0, runs,
						0),
					DSM_DIFF_RUNS_MAX(LEN_MAX));
			CU_ASSERT_EQUAL(memcmp(frame, twin, LEN_MAX), 0);
		}
	}
	free(frame);
	free(twin);
	free(runs);
}

static void lengths_of_zero_do_nothing(void)
{
	FOR_EACH_IMPL(d)
	{
		CU_ASSERT_EQUAL(d->take(NULL, NULL, 0, 0, NULL, 0), 0);
		CU_ASSERT_EQUAL(d->any(NULL, NULL, 0), 0);
		CU_ASSERT_EQUAL(d->merge(NULL, NULL, NULL, 0), 0);
	}
}

/*
 * Two pages, the second without access: what lies before its beginning may be
 * accessed up to the last byte and no further.
 */
struct fenced {
	size_t page;
	unsigned char *mem;
	unsigned char *fence; /* where the second page begins */
};

static void fenced_open(struct fenced *f, int prot)
{
	f->page = (size_t)sysconf(_SC_PAGESIZE);
	f->mem = mmap(NULL, 2 * f->page, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (f->mem == MAP_FAILED)
		abort();
	f->fence = f->mem + f->page;
	if (mprotect(f->fence, f->page, prot))
		abort();
}

static void fenced_close(struct fenced *f)
{
	munmap(f->mem, 2 * f->page);
}

static void nothing_is_read_beyond_the_end(void)
{
	struct fenced frame, twin, news;
	struct sul_run runs[200];

	fenced_open(&frame, PROT_NONE);
	fenced_open(&twin, PROT_NONE);
	fenced_open(&news, PROT_NONE);
	FOR_EACH_IMPL(d)
	{
		for (size_t len = 8; len <= 392; len += 8) {
			unsigned char *f = frame.fence - len;
			unsigned char *t = twin.fence - len;
			unsigned char *n = news.fence - len;

			f[len - 1] = 1;
			CU_ASSERT(d->any(f, t, len));
			CU_ASSERT_EQUAL(d->take(f, t, len, 0, runs, 0), 1);
			CU_ASSERT_EQUAL(runs[0].off, len - 1);
			CU_ASSERT_EQUAL(d->merge(f, t, n, len), 1);
			CU_ASSERT_EQUAL(f[len - 1] | t[len - 1], 0);
		}
	}
	fenced_close(&frame);
	fenced_close(&twin);
	fenced_close(&news);
}

/*
 * The twin's second page is read only: a store to any word in it would be
 * fatal, although the block that it belongs to changed right before it.
 */
static void words_that_did_not_change_are_not_stored(void)
{
	struct fenced frame, twin;
	struct sul_run runs[8];

	fenced_open(&frame, PROT_READ);
	fenced_open(&twin, PROT_READ);
	FOR_EACH_IMPL(d)
	{
		for (size_t before = 8; before < 128; before += 8) {
			unsigned char *f = frame.fence - before;
			unsigned char *t = twin.fence - before;
			unsigned char news[192] __attribute__((aligned(8)));

			memset(f, 5, before);
			CU_ASSERT_EQUAL(d->take(f, t, 192, 0, runs, 0), 1);
			CU_ASSERT_EQUAL(runs[0].len, before);
			memset(news, 0, sizeof(news));
			CU_ASSERT_EQUAL(d->merge(f, t, news, 192), before);
			CU_ASSERT_EQUAL(d->merge(t, t, news, 192), 0);
		}
		CU_ASSERT_EQUAL(d->take(frame.fence, twin.fence, frame.page, 0,
					runs, 0),
				0);
		CU_ASSERT_EQUAL(d->merge(frame.fence, twin.fence, frame.fence,
					 frame.page),
				0);
	}
	fenced_close(&frame);
	fenced_close(&twin);
}

static void the_best_comes_first_and_portable_last(void)
{
	const struct dsm_diff_impl *last = NULL;

	CU_ASSERT_STRING_EQUAL(dsm_diff_name(), dsm_diff_impl(0)->name);
	FOR_EACH_IMPL(d)
	last = d;
	CU_ASSERT_STRING_EQUAL(last->name, "portable");
	CU_ASSERT_PTR_NULL(dsm_diff_impl(4));
	CU_ASSERT_PTR_NULL(dsm_diff_impl(UINT32_MAX));
#if defined(__x86_64__)
	CU_ASSERT_EQUAL(strcmp(dsm_diff_name(), "avx512") == 0,
			__builtin_cpu_supports("avx512bw") != 0);
	CU_ASSERT_STRING_NOT_EQUAL(dsm_diff_name(), "portable");
#endif
}

static void the_public_calls_use_the_best(void)
{
	struct unit_rng r = unit_rng("public");
	struct dsm_diff_impl all = { "public", dsm_diff_take, dsm_diff_any,
				     dsm_diff_merge };
	int bad = 0;

	for (int round = 0; round < 200; round++) {
		struct areas x = areas_random(&r);

		bad += !take_agrees(&all, &x, 64, false);
		bad += !merge_agrees(&all, &x, x.a, true);
		bad += all.any(x.a, x.b, x.len) !=
		       (memcmp(x.a, x.b, x.len) != 0);
		areas_free(&x);
	}
	CU_ASSERT_EQUAL(bad, 0);
}

CU_TestInfo test_dsm_diff[] = {
	{ "take agrees with a bytewise one", take_agrees_with_a_bytewise_one },
	{ "any agrees with memcmp", any_agrees_with_memcmp },
	{ "merge agrees with a bytewise one",
	  merge_agrees_with_a_bytewise_one },
	{ "a run anywhere is one run", a_run_anywhere_is_one_run },
	{ "a single bit is found in every byte",
	  a_single_bit_is_found_in_every_byte },
	{ "runs continue from slice to slice",
	  runs_continue_from_slice_to_slice },
	{ "every other byte gives the most runs",
	  every_other_byte_gives_the_most_runs },
	{ "lengths of zero do nothing", lengths_of_zero_do_nothing },
	{ "nothing is read beyond the end", nothing_is_read_beyond_the_end },
	{ "words that did not change are not stored",
	  words_that_did_not_change_are_not_stored },
	{ "the best comes first and portable last",
	  the_best_comes_first_and_portable_last },
	{ "the public calls use the best", the_public_calls_use_the_best },
	CU_TEST_INFO_NULL,
};
