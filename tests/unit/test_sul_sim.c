/* SPDX-License-Identifier: MIT */
/*
 * test_sul_sim.c - the simulator: what its seed decides, and what it does not.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sul_bench.h"
#include "tests.h"

/* --- seeds ----------------------------------------------------------------------- */

enum {
	RANKS = 3,
	ROUNDS = 50
};

struct story {
	uint64_t hash;
};

static void tell(struct story *s, uint64_t what)
{
	s->hash = (s->hash ^ what) * 0x100000001b3u;
}

static int take_part(struct sul_port *p, void *ctx)
{
	for (uint64_t i = 0; i < ROUNDS; i++) {
		int to = (int)(sul_sim_random(p->carrier) % RANKS);
		uint64_t old;

		MUST(!sul_amo(p, to, 0, 8, SUL_AMO_ADD, i, 0, &old));
		MUST(!sul_flush(p));
		sul_sim_point(p->carrier);
		tell(ctx, old * RANKS + (uint64_t)sul_rank(p));
	}
	return 0;
}

static struct story story_of(uint64_t seed, uint64_t *steps)
{
	struct bench b = { .ranks = RANKS, .seed = seed };
	struct story s = { 0 };

	CU_ASSERT_EQUAL(bench_run(BENCH_SIM, &b, take_part, &s), 0);
	*steps = b.steps;
	return s;
}

static void one_seed_is_one_execution(void)
{
	unsigned int different = 0;

	for (uint64_t seed = 0; seed < 20; seed++) {
		uint64_t steps[3];
		struct story a = story_of(seed, &steps[0]);
		struct story b = story_of(seed, &steps[1]);
		struct story c = story_of(seed + 1, &steps[2]);

		CU_ASSERT_EQUAL(a.hash, b.hash);
		CU_ASSERT_EQUAL(steps[0], steps[1]);
		different += a.hash != c.hash;
	}
	CU_ASSERT_EQUAL(different, 20);
}

/* --- order and time ----------------------------------------------------------------- */

static int writer_and_reader(struct sul_port *p, void *ctx)
{
	const uint64_t *mem = sul_window(p, 0);
	unsigned int *between = ctx;
	uint64_t v[ROUNDS], last = 0;

	if (!sul_rank(p)) {
		for (uint64_t i = 0; i < ROUNDS; i++) {
			v[i] = i + 1;
			MUST(!sul_put(p, 1, 0, 8, &v[i], 8));
			MUST(!sul_put(p, 1, 0, 0, &v[i], 8));
		}
		MUST(!sul_flush(p));
		return 0;
	}
	while (last < ROUNDS) {
		MUST(mem[0] >= last);
		MUST(mem[1] == mem[0] || mem[1] == mem[0] + 1);
		*between += mem[0] != last;
		last = mem[0];
		sul_sim_yield(p->carrier);
	}
	return 0;
}

static void a_link_keeps_the_order(void)
{
	unsigned int between = 0;

	if (!bench_has(BENCH_SIM))
		return;
	bench_seeds((struct bench){ .ranks = 2 }, 50, writer_and_reader,
		    &between);
	CU_ASSERT(between > 50 * 2); /* and takes its time */
}

/* Two targets: the later operation is sometimes there first. */
static int two_targets(struct sul_port *p, void *ctx)
{
	static const uint64_t one = 1;
	unsigned int *early = ctx;

	if (sul_rank(p) == 0) {
		MUST(!sul_put(p, 1, 0, 0, &one, 8));
		MUST(!sul_put(p, 2, 0, 0, &one, 8));
		return sul_flush(p);
	}
	if (sul_rank(p) == 2) { /* tell rank 1 as soon as it is here */
		while (!*(uint64_t *)sul_window(p, 0))
			sul_sim_yield(p->carrier);
		MUST(!sul_notify(p, 1, 0, 8, 1));
		return sul_flush(p);
	}
	MUST(!sul_wait(p, (struct sul_word *)sul_window(p, 0) + 1, 0, -1));
	*early += !*(uint64_t *)sul_window(p, 0);
	return 0;
}

static void links_do_not_wait_for_each_other(void)
{
	unsigned int early = 0;

	if (!bench_has(BENCH_SIM))
		return;
	bench_seeds((struct bench){ .ranks = 3 }, 50, two_targets, &early);
	CU_ASSERT(early > 0 && early < 50);
}

/* --- pieces -------------------------------------------------------------------------- */

enum {
	WIDTH = 64
};

static int filler_and_getter(struct sul_port *p, void *ctx)
{
	unsigned int *torn = ctx;
	unsigned char buf[WIDTH];

	for (int i = 0; i < ROUNDS; i++) {
		if (sul_rank(p)) {
			memset(sul_window(p, 0), i, WIDTH);
			sul_sim_yield(p->carrier);
			continue;
		}
		MUST(!sul_get(p, 1, 0, 0, buf, WIDTH, NULL, 0));
		MUST(!sul_flush(p));
		*torn += memcmp(buf, buf + 1, WIDTH - 1) != 0;
	}
	return 0;
}

static void gets_are_torn_unless_told_otherwise(void)
{
	struct bench b = { .ranks = 2 };
	unsigned int torn = 0;

	if (!bench_has(BENCH_SIM))
		return;
	bench_seeds(b, 20, filler_and_getter, &torn);
	CU_ASSERT(torn > 20);
	torn = 0;
	b.whole = true;
	bench_seeds(b, 20, filler_and_getter, &torn);
	CU_ASSERT_EQUAL(torn, 0);
}

/* Fills runs of the target, which raises the flag of the mirror meanwhile. */
struct parts {
	unsigned int none, some, all; /* of the mirror was written */
};

static int scatterer(struct sul_port *p, void *ctx)
{
	static const struct sul_run runs[] = { { 0, 40 },
					       { 41, 3 },
					       { 52, 12 } };
	static const struct sul_mirror mirror = { .window = 1,
						  .flag_window = 2 };
	char *frame = sul_window(p, 0), *copy = sul_window(p, 1);
	struct parts *seen = ctx;
	unsigned char src[WIDTH];
	unsigned int copied = 0;

	if (!sul_rank(p)) {
		memset(src, 1, WIDTH);
		MUST(!sul_putv(p, 1, 0, 0, src, runs, 3, &mirror));
		MUST(!sul_notify(p, 1, 0, WIDTH, 1));
		return sul_flush(p);
	}
	sul_sim_yield(p->carrier);
	*(char *)sul_window(p, 2) = 1;
	MUST(!sul_wait(p, (void *)(frame + WIDTH), 0, -1));
	for (int i = 0; i < WIDTH; i++) {
		MUST(frame[i] == (i < 40 || (i > 40 && i < 44) || i > 51));
		MUST(copy[i] == 0 || frame[i] == 1);
		MUST(i % 8 == 0 || i > 39 || copy[i] == copy[i - 1]);
		copied += copy[i] == 1;
	}
	seen->none += copied == 0;
	seen->some += copied && copied != 55;
	seen->all += copied == 55;
	return 0;
}

static void a_scatter_looks_at_the_flag_part_by_part(void)
{
	struct parts seen = { 0 };

	if (!bench_has(BENCH_SIM))
		return;
	bench_seeds((struct bench){ .ranks = 2, .windows = 3 }, 200, scatterer,
		    &seen);
	CU_ASSERT(seen.none > 0 && seen.some > 0 && seen.all > 0);
}

/* A source is read when the operation is executed, not when it is issued. */
static int hasty_writer(struct sul_port *p, void *ctx)
{
	unsigned int *late = ctx;
	uint64_t v = 1, back;

	if (sul_rank(p))
		return 0;
	MUST(!sul_put(p, 1, 0, 0, &v, 8));
	v = 2; /* before the flush: wrong */
	MUST(!sul_flush(p));
	MUST(!sul_get(p, 1, 0, 0, &back, 8, NULL, 0));
	MUST(!sul_flush(p));
	*late += back == 2;
	return 0;
}

static void changing_a_source_before_the_flush_shows(void)
{
	unsigned int late = 0;

	if (!bench_has(BENCH_SIM))
		return;
	bench_seeds((struct bench){ .ranks = 2 }, 20, hasty_writer, &late);
	CU_ASSERT(late > 0);
}

/* --- ends ------------------------------------------------------------------------------ */

static int wait_for_a_store(struct sul_port *p, void *ctx)
{
	uint64_t one = 1;

	(void)ctx;
	if (sul_rank(p))
		return sul_wait(p, sul_window(p, 0), 0, -1);
	for (int i = 0; i < 100; i++) /* rank 1 waits by then */
		sul_sim_yield(p->carrier);
	MUST(!sul_put(p, 1, 0, 0, &one, 8)); /* wakes nobody: no notify */
	return sul_flush(p);
}

static void waiting_for_nothing_is_a_deadlock(void)
{
	struct bench b = { .ranks = 2 };

	CU_ASSERT_EQUAL(bench_run(BENCH_SIM, &b, wait_for_a_store, NULL),
			-EDEADLK);
}

static void go_on_for_ever(void *sim)
{
	for (;;)
		sul_sim_yield(sim);
}

static void steps_can_be_limited(void)
{
	struct sul_sim_config cfg = { .ranks = 1 };
	struct sul_sim *s;

	CU_ASSERT_EQUAL_FATAL(sul_sim_new(&s, &cfg), 0);
	CU_ASSERT_EQUAL(sul_sim_run(s, 10), 0); /* nobody is there */
	CU_ASSERT_EQUAL(sul_sim_spawn(s, 0, go_on_for_ever, s), 0);
	CU_ASSERT_EQUAL(sul_sim_run(s, 1000), -ETIMEDOUT);
	CU_ASSERT_EQUAL(sul_sim_steps(s), 1000);
	sul_sim_free(s);
}

CU_TestInfo test_sul_sim[] = {
	{ "one seed is one execution", one_seed_is_one_execution },
	{ "a link keeps the order", a_link_keeps_the_order },
	{ "links do not wait for each other",
	  links_do_not_wait_for_each_other },
	{ "gets are torn unless told otherwise",
	  gets_are_torn_unless_told_otherwise },
	{ "a scatter looks at the flag part by part",
	  a_scatter_looks_at_the_flag_part_by_part },
	{ "changing a source before the flush shows",
	  changing_a_source_before_the_flush_shows },
	{ "waiting for nothing is a deadlock",
	  waiting_for_nothing_is_a_deadlock },
	{ "steps can be limited", steps_can_be_limited },
	CU_TEST_INFO_NULL,
};
