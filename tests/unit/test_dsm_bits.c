/* SPDX-License-Identifier: MIT */
/* test_dsm_bits.c - the set of pages does what an array of bool does. */
#include <CUnit/Basic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dsm_bits.h"
#include "tests.h"
#include "unit_seed.h"

/* A word's, a summary's and a top word's edge, and 64 GiB of pages. */
static const uint32_t sizes[] = {
	1, 63, 64, 65, 64 * 64, 64 * 64 + 1, 4096 * 64 + 1, 1u << 24,
};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* The set under test and the array that says what must be in it. */
struct pair {
	struct dsm_bits b;
	void *storage;
	bool *in;
	uint32_t members;
};

/* The storage is just large enough, so that ASan and valgrind watch its end. */
static void pair_open(struct pair *p, uint32_t bits)
{
	p->storage = calloc(1, dsm_bits_bytes(bits));
	p->in = calloc(bits, sizeof(*p->in));
	p->members = 0;
	if (!p->storage || !p->in)
		abort();
	dsm_bits_init(&p->b, bits, p->storage);
}

static void pair_close(struct pair *p)
{
	free(p->storage);
	free(p->in);
}

static bool pair_set(struct pair *p, uint32_t i)
{
	bool fresh = !p->in[i];

	p->in[i] = true;
	p->members += fresh;
	return dsm_bits_set(&p->b, i) == fresh;
}

static bool pair_clear(struct pair *p, uint32_t i)
{
	bool was = p->in[i];

	p->in[i] = false;
	p->members -= was;
	return dsm_bits_clear(&p->b, i) == was;
}

static uint32_t plain_next(const struct pair *p, uint32_t from)
{
	const bool *at;

	if (from >= p->b.bits)
		return DSM_BITS_END;
	at = memchr(p->in + from, true, p->b.bits - from);
	return at ? (uint32_t)(at - p->in) : DSM_BITS_END;
}

static bool pair_agrees(const struct pair *p)
{
	uint32_t want = 0, got = 0, n = 0;

	for (;; want++, got++, n++) {
		want = plain_next(p, want);
		got = dsm_bits_next(&p->b, got);
		if (got != want)
			return false;
		if (got == DSM_BITS_END)
			return n == p->members && n == p->b.members;
	}
}

static bool storage_is_zero(const struct pair *p)
{
	const uint64_t *word = p->storage;
	size_t words = dsm_bits_bytes(p->b.bits) / sizeof(*word);

	for (size_t i = 0; i < words; i++)
		if (word[i])
			return false;
	return true;
}

/* Positions that favour the edges of words and of the set. */
static uint32_t some_member(struct unit_rng *r, uint32_t bits)
{
	uint32_t i = unit_below(r, bits);

	switch (unit_below(r, 8)) {
	case 0:
		return i & ~63u;
	case 1:
		return (i | 63) < bits ? i | 63 : bits - 1;
	case 2:
		return (i | 4095) < bits ? i | 4095 : bits - 1;
	case 3:
		return bits - 1;
	default:
		return i;
	}
}

static void random_use_agrees_with_an_array(void)
{
	struct unit_rng r = unit_rng("bits");

	for (size_t s = 0; s < SIZES; s++) {
		struct pair p;
		int bad = 0;

		pair_open(&p, sizes[s]);
		for (int op = 0; op < 3000; op++) {
			uint32_t i = some_member(&r, sizes[s]);

			if (unit_below(&r, 3))
				bad += !pair_set(&p, i);
			else
				bad += !pair_clear(&p, i);
			i = some_member(&r, sizes[s]);
			bad += dsm_bits_test(&p.b, i) != p.in[i];
			if (sizes[s] <= 4097)
				bad += dsm_bits_next(&p.b, i) !=
				       plain_next(&p, i);
		}
		CU_ASSERT_EQUAL(bad, 0);
		CU_ASSERT(pair_agrees(&p));
		dsm_bits_empty(&p.b);
		memset(p.in, 0, sizes[s]);
		p.members = 0;
		CU_ASSERT(pair_agrees(&p));
		CU_ASSERT(storage_is_zero(&p));
		pair_close(&p);
	}
}

static void clearing_the_last_member_leaves_nothing_behind(void)
{
	for (size_t s = 1; s < SIZES; s++) {
		struct pair p;

		pair_open(&p, sizes[s]);
		CU_ASSERT(pair_set(&p, sizes[s] - 1));
		CU_ASSERT(pair_set(&p, 0));
		CU_ASSERT(pair_agrees(&p));
		CU_ASSERT(pair_clear(&p, 0));
		CU_ASSERT(pair_agrees(&p));
		CU_ASSERT(pair_clear(&p, sizes[s] - 1));
		CU_ASSERT(storage_is_zero(&p));
		CU_ASSERT_EQUAL(p.b.members, 0);
		pair_close(&p);
	}
}

static void walking_ends_at_and_beyond_the_end(void)
{
	for (size_t s = 0; s < SIZES; s++) {
		uint32_t bits = sizes[s];
		struct pair p;

		pair_open(&p, bits);
		CU_ASSERT_EQUAL(dsm_bits_next(&p.b, 0), DSM_BITS_END);
		CU_ASSERT(pair_set(&p, bits - 1));
		CU_ASSERT_EQUAL(dsm_bits_next(&p.b, bits - 1), bits - 1);
		CU_ASSERT_EQUAL(dsm_bits_next(&p.b, bits), DSM_BITS_END);
		CU_ASSERT_EQUAL(dsm_bits_next(&p.b, UINT32_MAX), DSM_BITS_END);
		pair_close(&p);
	}
}

/* Every walk removes the member it stands on, earlier ones, and ones that it
 * would have come to. */
static void members_can_be_removed_while_walking(void)
{
	struct unit_rng r = unit_rng("walk");

	for (size_t s = 0; s < SIZES; s++) {
		struct pair p;
		int bad = 0;

		pair_open(&p, sizes[s]);
		for (int n = 0; n < 2000; n++)
			bad += !pair_set(&p, some_member(&r, sizes[s]));
		for (uint32_t i = dsm_bits_next(&p.b, 0), from = 0;
		     i != DSM_BITS_END; i = dsm_bits_next(&p.b, from)) {
			bad += i != plain_next(&p, from);
			from = i + 1;
			if (unit_below(&r, 2))
				bad += !pair_clear(&p, i);
			bad += !pair_clear(&p, some_member(&r, sizes[s]));
		}
		CU_ASSERT_EQUAL(bad, 0);
		CU_ASSERT(pair_agrees(&p));
		pair_close(&p);
	}
}

static void a_full_set_walks_every_member(void)
{
	for (size_t s = 0; s + 1 < SIZES; s++) {
		struct pair p;
		uint32_t n = 0;

		pair_open(&p, sizes[s]);
		for (uint32_t i = 0; i < sizes[s]; i++)
			n += pair_set(&p, i);
		CU_ASSERT_EQUAL(n, sizes[s]);
		CU_ASSERT(pair_agrees(&p));
		dsm_bits_empty(&p.b);
		CU_ASSERT(storage_is_zero(&p));
		pair_close(&p);
	}
}

/* Pages of @mem that exist. */
static size_t pages_present(void *mem, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t pages = (bytes + page - 1) / page, present = 0;
	unsigned char *vec = calloc(pages, 1);

	if (!vec || mincore(mem, bytes, vec))
		abort();
	for (size_t i = 0; i < pages; i++)
		present += vec[i] & 1;
	free(vec);
	return present;
}

/* The largest set there can be, half a gigabyte of storage: only what three
 * members need of it is ever there. */
static void storage_is_touched_only_where_needed(void)
{
	const uint32_t bits = UINT32_MAX;
	const uint32_t at[] = { 7, 1u << 31, bits - 1 };
	size_t bytes = dsm_bits_bytes(bits);
	struct dsm_bits b;
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CU_ASSERT_NOT_EQUAL_FATAL(mem, MAP_FAILED);
	(void)madvise(mem, bytes, MADV_NOHUGEPAGE);
	dsm_bits_init(&b, bits, mem);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(dsm_bits_set(&b, at[i]));
	CU_ASSERT_EQUAL(dsm_bits_next(&b, 0), at[0]);
	CU_ASSERT_EQUAL(dsm_bits_next(&b, at[0] + 1), at[1]);
	CU_ASSERT_EQUAL(dsm_bits_next(&b, at[1] + 1), at[2]);
	CU_ASSERT_EQUAL(dsm_bits_next(&b, at[2] + 1), DSM_BITS_END);
	dsm_bits_empty(&b);
	CU_ASSERT_EQUAL(dsm_bits_next(&b, 0), DSM_BITS_END);
	/* 2 lower levels of 3 members, and the top level's 32 or 33 pages */
	CU_ASSERT(pages_present(mem, bytes) <= 3 * 2 + 33);
	munmap(mem, bytes);
}

CU_TestInfo test_dsm_bits[] = {
	{ "random use agrees with an array", random_use_agrees_with_an_array },
	{ "clearing the last member leaves nothing behind",
	  clearing_the_last_member_leaves_nothing_behind },
	{ "walking ends at and beyond the end",
	  walking_ends_at_and_beyond_the_end },
	{ "members can be removed while walking",
	  members_can_be_removed_while_walking },
	{ "a full set walks every member", a_full_set_walks_every_member },
	{ "storage is touched only where needed",
	  storage_is_touched_only_where_needed },
	CU_TEST_INFO_NULL,
};
