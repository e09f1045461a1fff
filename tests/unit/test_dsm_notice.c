/* SPDX-License-Identifier: MIT */
/* test_dsm_notice.c - merged notices: sorted, each unit once, who wrote it. */
#include <CUnit/Basic.h>
#include <stdbool.h>
#include <string.h>

#include "dsm_notice.h"
#include "tests.h"
#include "unit_seed.h"

#define UNITS 200 /* of the random lists */

static bool same_notice(struct dsm_notice a, struct dsm_notice b)
{
	return a.unit == b.unit && a.writer == b.writer && a.flags == b.flags;
}

static bool same_list(const struct dsm_notice *a, size_t na,
		      const struct dsm_notice *b, size_t nb)
{
	if (na != nb)
		return false;
	for (size_t i = 0; i < na; i++)
		if (!same_notice(a[i], b[i]))
			return false;
	return true;
}

static struct dsm_notice merge_one(struct dsm_notice a, struct dsm_notice b)
{
	struct dsm_notice out[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

	CU_ASSERT_EQUAL(dsm_notice_merge(out, &a, 1, &b, 1), 1);
	return out[0];
}

static void lists_interleave_in_order(void)
{
	const struct dsm_notice a[] = { { 1, 0, 0 },
					{ 5, 0, 1 },
					{ UINT32_MAX, 0, 0 } };
	const struct dsm_notice b[] = { { 0, 1, 1 }, { 7, 1, 0 } };
	const struct dsm_notice want[] = { { 0, 1, 1 },
					   { 1, 0, 0 },
					   { 5, 0, 1 },
					   { 7, 1, 0 },
					   { UINT32_MAX, 0, 0 } };
	struct dsm_notice out[5];

	CU_ASSERT(same_list(out, dsm_notice_merge(out, a, 3, b, 2), want, 5));
	CU_ASSERT(same_list(out, dsm_notice_merge(out, b, 2, a, 3), want, 5));
}

static void an_empty_list_adds_nothing(void)
{
	const struct dsm_notice a[] = { { 3, 2, DSM_NOTICE_VALID } };
	struct dsm_notice out[1];

	CU_ASSERT(same_list(out, dsm_notice_merge(out, a, 1, NULL, 0), a, 1));
	CU_ASSERT(same_list(out, dsm_notice_merge(out, NULL, 0, a, 1), a, 1));
	CU_ASSERT_EQUAL(dsm_notice_merge(out, NULL, 0, NULL, 0), 0);
}

static void two_writers_are_many_and_lose_the_flags(void)
{
	const struct dsm_notice r0 = { 9, 0, DSM_NOTICE_VALID };
	const struct dsm_notice r1 = { 9, 1, DSM_NOTICE_VALID };
	const struct dsm_notice many = { 9, DSM_WRITER_MANY, 0 };

	CU_ASSERT(same_notice(merge_one(r0, r1), many));
	CU_ASSERT(same_notice(merge_one(r0, many), many));
	CU_ASSERT(same_notice(merge_one(many, r1), many));
	CU_ASSERT(same_notice(merge_one(many, many), many));
}

static void one_writer_twice_stays_one_with_the_flags_both_have(void)
{
	const struct dsm_notice valid = { 9, 4, DSM_NOTICE_VALID };
	const struct dsm_notice gone = { 9, 4, 0 };

	CU_ASSERT(same_notice(merge_one(valid, valid), valid));
	CU_ASSERT(same_notice(merge_one(valid, gone), gone));
	CU_ASSERT(same_notice(merge_one(gone, valid), gone));
}

/* One slot per unit: the reference is a table, not a list. */
struct verdict {
	bool written;
	struct dsm_notice n;
};

static size_t random_list(struct unit_rng *r, struct dsm_notice *out)
{
	uint32_t density = 1 + unit_below(r, 20);
	size_t n = 0;

	for (uint32_t u = 0; u < UNITS; u++) {
		if (unit_below(r, density))
			continue;
		out[n].unit = u;
		out[n].writer = (uint16_t)unit_below(r, 3);
		out[n].flags = (uint16_t)unit_below(r, 2);
		if (unit_below(r, 8) == 0) {
			out[n].writer = DSM_WRITER_MANY;
			out[n].flags = 0;
		}
		n++;
	}
	return n;
}

static void record(struct verdict *v, const struct dsm_notice *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct verdict *at = &v[list[i].unit];

		if (!at->written)
			at->n = list[i];
		else if (at->n.writer == list[i].writer)
			at->n.flags &= list[i].flags;
		else
			at->n = (struct dsm_notice){ list[i].unit,
						     DSM_WRITER_MANY, 0 };
		at->written = true;
	}
}

static bool says(const struct verdict *v, const struct dsm_notice *list,
		 size_t n)
{
	size_t k = 0;

	for (uint32_t u = 0; u < UNITS; u++) {
		if (!v[u].written)
			continue;
		if (k == n || !same_notice(list[k], v[u].n))
			return false;
		k++;
	}
	return k == n;
}

static void random_lists_agree_with_a_table_in_any_order(void)
{
	struct unit_rng r = unit_rng("notices");
	struct dsm_notice l[3][UNITS], two[2 * UNITS], left[3 * UNITS],
		right[3 * UNITS];
	size_t n[3], nl, nr;

	for (int round = 0; round < 500; round++) {
		struct verdict v[UNITS];

		memset(v, 0, sizeof(v));
		for (int i = 0; i < 3; i++) {
			n[i] = random_list(&r, l[i]);
			record(v, l[i], n[i]);
		}
		nl = dsm_notice_merge(two, l[0], n[0], l[1], n[1]);
		nl = dsm_notice_merge(left, two, nl, l[2], n[2]);
		nr = dsm_notice_merge(two, l[2], n[2], l[1], n[1]);
		nr = dsm_notice_merge(right, l[0], n[0], two, nr);
		CU_ASSERT(says(v, left, nl));
		CU_ASSERT(same_list(left, nl, right, nr));
	}
}

CU_TestInfo test_dsm_notice[] = {
	{ "lists interleave in order", lists_interleave_in_order },
	{ "an empty list adds nothing", an_empty_list_adds_nothing },
	{ "two writers are many and lose the flags",
	  two_writers_are_many_and_lose_the_flags },
	{ "one writer twice stays one, with the flags both have",
	  one_writer_twice_stays_one_with_the_flags_both_have },
	{ "random lists agree with a table, in any order",
	  random_lists_agree_with_a_table_in_any_order },
	CU_TEST_INFO_NULL,
};
