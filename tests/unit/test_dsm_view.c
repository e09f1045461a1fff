/* SPDX-License-Identifier: MIT */
/*
 * test_dsm_view.c - protections, and what is hidden when there are too many.
 *
 * The kernel is played by a small model: a list of the places where one mapping
 * ends and the next begins, of which it allows so many.  As the real one it
 * splits at both ends of a change before it merges, and leaves the first split
 * behind when there is no room for the second.
 */
#include <CUnit/Basic.h>
#include <errno.h>

#include "dsm_node.h"
#include "tests.h"
#include "unit_seed.h"

enum {
	NR = 2048, /* pages */
	SHIFT = 6, /* log2 of the pages of a stretch */
	STEPS = 20000
};

struct world {
	struct dsm_node node;
	struct dsm_stats stats;
	uint8_t prot[NR]; /* of the kernel */
	bool split[NR + 1];
	uint32_t splits, most, refused;
	uint8_t access[NR], state[NR], order[NR], ready[NR];
	uint16_t home[NR], holds[NR];
};

static bool split_at(struct world *w, uint32_t page)
{
	if (!page || page == NR || w->split[page])
		return true;
	if (w->splits >= w->most)
		return false;
	w->split[page] = true;
	w->splits++;
	return true;
}

static void merge_at(struct world *w, uint32_t page)
{
	if (page && page < NR && w->split[page] &&
	    w->prot[page - 1] == w->prot[page]) {
		w->split[page] = false;
		w->splits--;
	}
}

static int protect(void *ctx, uint32_t page, uint32_t pages,
		   enum dsm_access access)
{
	struct world *w = ctx;

	if (!split_at(w, page) || !split_at(w, page + pages)) {
		w->refused++;
		return -ENOMEM;
	}
	memset(w->prot + page, (int)access, pages);
	for (uint32_t p = page; p <= page + pages; p++)
		merge_at(w, p);
	return 0;
}

__attribute__((noreturn)) static void fail(void *ctx, int err, const char *text)
{
	(void)ctx;
	printf("%d: %s\n", err, text);
	abort();
}

static const struct dsm_env env = { .protect = protect, .fail = fail };

static struct world *world_open(uint32_t most)
{
	struct world *w = calloc(1, sizeof(*w));

	REQUIRE(w);
	w->most = most;
	w->node = (struct dsm_node){ .env = &env,
				     .env_ctx = w,
				     .page_shift = 12,
				     .pages = NR,
				     .page_end = NR,
				     .stats = &w->stats,
				     .state = w->state,
				     .access = w->access,
				     .ready = w->ready,
				     .order = w->order,
				     .home = w->home,
				     .holds = w->holds,
				     .borders_most = UINT32_MAX,
				     .stretch_shift = SHIFT };
	for (int p = 0; p < NR; p++)
		w->home[p] = 1;
	return w;
}

/* As the protocol does it: first less, then the state, then more. */
static void set_state(struct world *w, uint32_t page, enum dsm_page_state to,
		      enum dsm_access due)
{
	if (w->access[page] > (uint8_t)due)
		dsm_view_lower(&w->node, page, 1, due);
	w->state[page] = (uint8_t)to;
	if (w->access[page] < (uint8_t)due)
		dsm_view_raise(&w->node, page, 1, due);
}

static void set_every_second(struct world *w, uint32_t from, uint32_t to)
{
	for (uint32_t p = from; p < to; p += 2)
		set_state(w, p, DSM_PG_READ, DSM_ACCESS_R);
}

static void check(const struct world *w)
{
	uint32_t nr = 0;
	bool same = true;

	for (int p = 1; p < NR; p++)
		nr += w->access[p - 1] != w->access[p];
	for (int p = 0; p < NR; p++)
		same &= w->access[p] == w->prot[p];
	CU_ASSERT(same);
	CU_ASSERT_EQUAL(w->node.borders, nr);
}

static void random_protections_never_need_more_mappings_than_there_are(void)
{
	static const struct {
		enum dsm_page_state state;
		enum dsm_access access;
	} to[] = { { DSM_PG_INVALID, DSM_ACCESS_NONE },
		   { DSM_PG_READ, DSM_ACCESS_R },
		   { DSM_PG_WATCH, DSM_ACCESS_RW } };
	struct unit_rng rng = unit_rng(__func__);

	for (uint32_t most = 80; most <= 1280; most *= 2) {
		struct world *w = world_open(most);

		for (int i = 0; i < STEPS; i++) {
			uint32_t page = unit_below(&rng, NR);
			uint32_t k = unit_below(&rng, 3);

			if (most == 320) /* bounds of its own come first */
				w->node.borders_most = most / 2;
			set_state(w, page, to[k].state, to[k].access);
			if (dsm_view_hidden(&w->node, page))
				dsm_view_reveal(&w->node, page);
			CU_ASSERT_EQUAL(w->access[page], (uint8_t)to[k].access);
		}
		check(w);
		CU_ASSERT(w->stats.hidden > 0);
		if (most == 320)
			CU_ASSERT_EQUAL(w->refused, 0)
		else
			CU_ASSERT(w->refused > 0);
		free(w);
	}
}

static void hiding_begins_where_there_is_most_to_gain(void)
{
	struct world *w = world_open(NR);

	set_every_second(w, 0, 20);
	set_every_second(w, 512, 576);
	w->node.borders_most = w->node.borders;
	set_state(w, 1000, DSM_PG_READ, DSM_ACCESS_R);
	CU_ASSERT_EQUAL(w->access[10], DSM_ACCESS_R);
	CU_ASSERT_EQUAL(w->access[514], DSM_ACCESS_NONE);
	CU_ASSERT(dsm_view_hidden(&w->node, 514));
	CU_ASSERT_EQUAL(w->state[514], DSM_PG_READ);
	CU_ASSERT_EQUAL(w->stats.hidden, 32);
	check(w);
	free(w);
}

static void hiding_takes_no_mapping_itself(void)
{
	struct world *w = world_open(NR);

	set_every_second(w, 70, 90);
	w->most = w->splits;
	set_state(w, 1000, DSM_PG_READ, DSM_ACCESS_R);
	CU_ASSERT_EQUAL(w->access[1000], DSM_ACCESS_R);
	CU_ASSERT_EQUAL(w->access[80], DSM_ACCESS_NONE);
	check(w);
	free(w);
}

static void what_is_held_or_was_used_last_is_not_hidden(void)
{
	struct dsm_thread thread = { 0 };
	struct world *w = world_open(NR);

	for (int i = 0; i < DSM_RECENT_PER_THREAD; i++)
		thread.recent[i] = DSM_BITS_END;
	thread.recent[3] = 66;
	w->node.thread = &thread;
	w->node.thread_nr = 1;
	w->holds[2] = 1;
	set_every_second(w, 0, 192);
	w->node.borders_most = w->node.borders;
	set_state(w, 1000, DSM_PG_READ, DSM_ACCESS_R);
	CU_ASSERT_EQUAL(w->access[2], DSM_ACCESS_R);
	CU_ASSERT_EQUAL(w->access[66], DSM_ACCESS_R);
	CU_ASSERT_EQUAL(w->access[130], DSM_ACCESS_NONE);
	/* If there is nothing else, what was used last; never what is held. */
	w->node.borders_most = 8;
	set_state(w, 1002, DSM_PG_READ, DSM_ACCESS_R);
	CU_ASSERT_EQUAL(w->access[2], DSM_ACCESS_R);
	CU_ASSERT_EQUAL(w->access[66], DSM_ACCESS_NONE);
	check(w);
	free(w);
}

static void less_access_does_not_reveal(void)
{
	struct world *w = world_open(NR);

	dsm_view_raise(&w->node, 100, 3, DSM_ACCESS_RW);
	memset(w->state + 100, DSM_PG_WATCH, 3);
	dsm_view_lower(&w->node, 101, 1, DSM_ACCESS_NONE); /* as if hidden */
	dsm_view_lower(&w->node, 100, 3, DSM_ACCESS_R);
	CU_ASSERT_EQUAL(w->access[100], DSM_ACCESS_R);
	CU_ASSERT_EQUAL(w->access[101], DSM_ACCESS_NONE);
	CU_ASSERT_EQUAL(w->access[102], DSM_ACCESS_R);
	check(w);
	free(w);
}

static void neighbours_that_are_due_the_same_are_revealed_together(void)
{
	struct world *w = world_open(NR);

	memset(w->state + 120, DSM_PG_READ, 16);
	w->state[124] = DSM_PG_WATCH;
	dsm_view_reveal(&w->node, 126);
	CU_ASSERT_EQUAL(w->access[124], DSM_ACCESS_NONE);
	for (int p = 125; p < 128; p++)
		CU_ASSERT_EQUAL(w->access[p], DSM_ACCESS_R);
	CU_ASSERT_EQUAL(w->access[128], DSM_ACCESS_NONE); /* next stretch */
	CU_ASSERT_EQUAL(w->stats.protects, 1);
	check(w);
	free(w);
}

CU_TestInfo test_dsm_view[] = {
	{ "random protections never need more mappings than there are",
	  random_protections_never_need_more_mappings_than_there_are },
	{ "hiding begins where there is most to gain",
	  hiding_begins_where_there_is_most_to_gain },
	{ "hiding takes no mapping itself", hiding_takes_no_mapping_itself },
	{ "what is held or was used last is not hidden",
	  what_is_held_or_was_used_last_is_not_hidden },
	{ "less access does not reveal", less_access_does_not_reveal },
	{ "neighbours that are due the same are revealed together",
	  neighbours_that_are_due_the_same_are_revealed_together },
	CU_TEST_INFO_NULL,
};
