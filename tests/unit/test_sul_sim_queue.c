/* SPDX-License-Identifier: MIT */
/*
 * test_sul_sim_queue.c - what happens next in a simulated world.
 */
#include "sul_sim_queue.h"

#include "tests.h"
#include "unit_seed.h"

enum {
	EVENTS = 2000,
	TIMES = 100 /* so that many happen at once */
};

static bool later(const struct sul_sim_event *a, const struct sul_sim_event *b)
{
	return a->at != b->at ? a->at > b->at : a->tie > b->tie;
}

static void events_come_by_time_and_then_by_number(void)
{
	struct unit_rng rng = unit_rng("events");
	struct sul_sim_queue q = { 0 };
	struct sul_sim_event last = { 0 }, e;
	uint64_t pushed = 0, popped = 0;

	while (popped < EVENTS) {
		/* More of them at first; never one before what has happened. */
		if (pushed < EVENTS && unit_below(&rng, 3)) {
			e = (struct sul_sim_event){
				.at = last.at + unit_below(&rng, TIMES) + 1,
				.tie = unit_next(&rng),
				.which = ++pushed,
			};
			CU_ASSERT_EQUAL(sul_sim_queue_push(&q, e), 0);
		} else if (sul_sim_queue_pop(&q, &e)) {
			CU_ASSERT(!later(&last, &e));
			last = e;
			popped++;
		}
	}
	CU_ASSERT(!sul_sim_queue_pop(&q, &e));
	free(q.heap);
}

CU_TestInfo test_sul_sim_queue[] = {
	{ "events come by time and then by number",
	  events_come_by_time_and_then_by_number },
	CU_TEST_INFO_NULL,
};
