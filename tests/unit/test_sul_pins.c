/* SPDX-License-Identifier: MIT */
/*
 * test_sul_pins.c - the table of pinned pages, against a list that does the same.
 */
#include "sul_pins.h"
#include "tests.h"
#include "unit_seed.h"

enum {
	MOST = 64, /* pages of a table here */
	NAMES = 4 * MOST,
	STEPS = 20000
};

static struct sul_pins *new_table(uint32_t capacity)
{
	struct sul_pins *t = calloc(1, sizeof(*t));
	void *memory = calloc(1, sul_pins_bytes(capacity));

	REQUIRE(t && memory);
	sul_pins_init(t, capacity, memory);
	return t;
}

static void free_table(struct sul_pins *t)
{
	free(t->key); /* where the memory begins */
	free(t);
}

/* Something that is no page, but has an address of its own. */
static void *page_of(sul_pin_key key)
{
	return (void *)(uintptr_t)(key * 16 + 16);
}

static void add(struct sul_pins *t, sul_pin_key key)
{
	sul_pins_add(t, key, page_of(key), true);
}

static unsigned int take_all(struct sul_pins *t, sul_pin_key first,
			     sul_pin_key last)
{
	struct sul_pins_sweep sweep = { .first = first, .last = last };
	void *out[SUL_PINS_STEP];
	unsigned int all = 0;
	bool more;

	do
		all += sul_pins_take(t, &sweep, out, &more);
	while (more);
	return all;
}

static void bytes__grow_with_the_pages_and_stay_small(void)
{
	CU_ASSERT(sul_pins_bytes(1) >= 20);
	for (uint32_t n = 16; n <= 1 << 20; n *= 4) {
		CU_ASSERT(sul_pins_bytes(n) >= (size_t)n * 20);
		CU_ASSERT(sul_pins_bytes(n) <= (size_t)n * 24);
		CU_ASSERT(sul_pins_bytes(n + 1) <= (size_t)(n + 1) * 28);
	}
}

static void find__knows_windows_apart(void)
{
	struct sul_pins *t = new_table(4);
	sul_pin_key far = sul_pin_key_of(8, ((uint64_t)1 << 36) - 1);

	add(t, sul_pin_key_of(0, 7));
	CU_ASSERT_PTR_NULL(sul_pins_find(t, sul_pin_key_of(1, 7)));
	add(t, sul_pin_key_of(1, 7));
	add(t, far);
	CU_ASSERT_PTR_EQUAL(sul_pins_find(t, sul_pin_key_of(1, 7)),
			    page_of(sul_pin_key_of(1, 7)));
	CU_ASSERT_PTR_EQUAL(sul_pins_find(t, far), page_of(far));
	free_table(t);
}

static void evict__spares_what_was_looked_up(void)
{
	struct sul_pins *t = new_table(4);

	for (sul_pin_key k = 0; k < 4; k++)
		add(t, k);
	/* All are fresh: the hand goes around once, and the first one goes. */
	CU_ASSERT_PTR_EQUAL(sul_pins_evict(t), page_of(0));
	add(t, 4);
	sul_pins_find(t, 1);
	CU_ASSERT_PTR_EQUAL(sul_pins_evict(t), page_of(2));
	CU_ASSERT_PTR_EQUAL(sul_pins_evict(t), page_of(3));
	CU_ASSERT_PTR_NOT_NULL(sul_pins_find(t, 1));
	CU_ASSERT_EQUAL(t->used, 2);
	free_table(t);
}

/* What was put there for later goes before what somebody wanted, until somebody
 * wants it; to ask for it is not to want it. */
static void evict__begins_with_what_nobody_has_wanted(void)
{
	struct sul_pins *t = new_table(5);

	add(t, 0);
	for (sul_pin_key k = 1; k < 4; k++)
		sul_pins_add(t, k, page_of(k), false);
	add(t, 4);
	CU_ASSERT_PTR_EQUAL(sul_pins_find(t, 1), page_of(1));
	CU_ASSERT(sul_pins_has(t, 2) && sul_pins_has(t, 3));
	CU_ASSERT_FALSE(sul_pins_has(t, 5));
	CU_ASSERT_PTR_EQUAL(sul_pins_evict(t), page_of(2));
	CU_ASSERT_PTR_EQUAL(sul_pins_evict(t), page_of(3));
	CU_ASSERT_FALSE(sul_pins_has(t, 2) || sul_pins_has(t, 3));
	CU_ASSERT_EQUAL(t->used, 3);
	free_table(t);
}

static void evict__of_an_empty_table_is_nothing(void)
{
	struct sul_pins *t = new_table(2);

	CU_ASSERT_PTR_NULL(sul_pins_evict(t));
	add(t, 5);
	CU_ASSERT_PTR_EQUAL(sul_pins_evict(t), page_of(5));
	CU_ASSERT_PTR_NULL(sul_pins_evict(t));
	free_table(t);
}

static void take__leaves_what_is_outside(void)
{
	struct sul_pins *t = new_table(MOST);

	for (sul_pin_key k = 0; k < MOST; k++)
		add(t, k);
	CU_ASSERT_EQUAL(take_all(t, 10, 19), 10); /* by name */
	CU_ASSERT_EQUAL(take_all(t, 40, ~(sul_pin_key)0), 24); /* by place */
	CU_ASSERT_EQUAL(t->used, MOST - 34);
	CU_ASSERT_PTR_NOT_NULL(sul_pins_find(t, 9));
	CU_ASSERT_PTR_NULL(sul_pins_find(t, 10));
	CU_ASSERT_PTR_NULL(sul_pins_find(t, 19));
	CU_ASSERT_PTR_NOT_NULL(sul_pins_find(t, 20));
	CU_ASSERT_PTR_NOT_NULL(sul_pins_find(t, 39));
	CU_ASSERT_PTR_NULL(sul_pins_find(t, 40));
	free_table(t);
}

/* However large the table and the range: each step is short. */
static void take__is_done_in_short_steps(void)
{
	struct sul_pins *t = new_table(8 * SUL_PINS_LOOKS);
	struct sul_pins_sweep sweep = { .last = ~(sul_pin_key)0 };
	void *out[SUL_PINS_STEP];
	unsigned int steps = 0;
	bool more = true;

	add(t, 1);
	while (more && steps++ < 100)
		sul_pins_take(t, &sweep, out, &more);
	CU_ASSERT_EQUAL(t->used, 0);
	CU_ASSERT(steps >= 1 && steps <= 9);
	free_table(t);
}

/* --- random ---------------------------------------------------------------------- */

struct model {
	struct sul_pins *t;
	bool there[NAMES];
	uint32_t used;
};

static void forget(struct model *m, sul_pin_key key)
{
	REQUIRE(key < NAMES && m->there[key]);
	m->there[key] = false;
	m->used--;
}

static void forget_page(struct model *m, const void *page)
{
	forget(m, ((uintptr_t)page - 16) / 16);
}

static void step(struct model *m, struct unit_rng *r)
{
	sul_pin_key key = unit_below(r, NAMES), last;
	void *out[SUL_PINS_STEP];
	struct sul_pins_sweep sweep;
	bool more = true;

	switch (unit_below(r, 8)) {
	case 0:
		if (m->used)
			forget_page(m, sul_pins_evict(m->t));
		break;
	case 1:
		last = key + unit_below(r, 2 * MOST);
		sweep = (struct sul_pins_sweep){ .first = key, .last = last };
		while (more) {
			unsigned int n =
				sul_pins_take(m->t, &sweep, out, &more);

			while (n)
				forget_page(m, out[--n]);
		}
		for (; key <= last && key < NAMES; key++)
			CU_ASSERT(!m->there[key]);
		break;
	default:
		CU_ASSERT_EQUAL(sul_pins_has(m->t, key), m->there[key]);
		CU_ASSERT_EQUAL(sul_pins_find(m->t, key) != NULL,
				m->there[key]);
		if (m->there[key] || m->used == m->t->capacity)
			break;
		sul_pins_add(m->t, key, page_of(key), unit_below(r, 2));
		m->there[key] = true;
		m->used++;
	}
	CU_ASSERT_EQUAL(m->t->used, m->used);
}

static void random__does_as_the_list_does(void)
{
	struct unit_rng r = unit_rng("sul_pins");

	for (uint32_t capacity = 1; capacity <= MOST; capacity *= 4) {
		struct model m = { .t = new_table(capacity) };

		for (unsigned int i = 0; i < STEPS; i++)
			step(&m, &r);
		for (sul_pin_key k = 0; k < NAMES; k++)
			CU_ASSERT_EQUAL(sul_pins_find(m.t, k) != NULL,
					m.there[k]);
		free_table(m.t);
	}
}

CU_TestInfo test_sul_pins[] = {
	{ "bytes: grow with the pages and stay small",
	  bytes__grow_with_the_pages_and_stay_small },
	{ "find: knows windows apart", find__knows_windows_apart },
	{ "evict: spares what was looked up",
	  evict__spares_what_was_looked_up },
	{ "evict: begins with what nobody has wanted",
	  evict__begins_with_what_nobody_has_wanted },
	{ "evict: of an empty table is nothing",
	  evict__of_an_empty_table_is_nothing },
	{ "take: leaves what is outside", take__leaves_what_is_outside },
	{ "take: is done in short steps", take__is_done_in_short_steps },
	{ "random: does as the list does", random__does_as_the_list_does },
	CU_TEST_INFO_NULL,
};
