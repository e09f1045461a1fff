/* SPDX-License-Identifier: MIT */
/*
 * test_sul_path.c - round trips, and paths that die and come back.
 */
#include "sul_path.h"
#include "tests.h"

enum {
	US = 1000,
	MS = 1000 * US
};

static void timeout__follows_the_round_trips(void)
{
	struct sul_rtt r = { 0 };

	CU_ASSERT_EQUAL(sul_rtt_timeout(&r, 0), 20 * MS);
	sul_rtt_sample(&r, 10 * MS);
	CU_ASSERT_EQUAL(r.smooth_ns, 10 * MS);
	CU_ASSERT_EQUAL(sul_rtt_timeout(&r, 5 * MS), (10 + 4 * 5 + 5) * MS);
	for (int i = 0; i < 100; i++)
		sul_rtt_sample(&r, 10 * MS);
	CU_ASSERT(sul_rtt_timeout(&r, 0) < 11 * MS); /* steady: no slack */
	for (int i = 0; i < 100; i++)
		sul_rtt_sample(&r, i % 2 ? 20 * MS : 10 * MS);
	CU_ASSERT(r.smooth_ns > 14 * MS && r.smooth_ns < 16 * MS);
	CU_ASSERT(sul_rtt_timeout(&r, 0) > 30 * MS); /* unsteady: a lot */
	CU_ASSERT_EQUAL(r.least_ns, 10 * MS);
}

static void timeout__is_never_shorter_than_a_turn_of_the_scheduler(void)
{
	struct sul_rtt r = { 0 };

	for (int i = 0; i < 100; i++)
		sul_rtt_sample(&r, 20 * US);
	CU_ASSERT_EQUAL(sul_rtt_timeout(&r, 0), 1 * MS);
	CU_ASSERT_EQUAL(sul_rtt_timeout(&r, 10 * MS), 11 * MS);
}

static void seen__ignores_old_news(void)
{
	struct sul_paths p;

	sul_paths_init(&p, 1);
	sul_paths_seen(&p, 0, 100 * US, 10 * US, 150 * US);
	CU_ASSERT_EQUAL(p.rtt.smooth_ns, 40 * US);
	CU_ASSERT_EQUAL(p.trip_ns, 50 * US);
	sul_paths_seen(&p, 0, 90 * US, 0, 900 * US);
	sul_paths_seen(&p, 0, 100 * US, 0, 900 * US);
	sul_paths_seen(&p, 1, 200 * US, 0, 900 * US); /* no such path */
	CU_ASSERT_EQUAL(p.seen_ns, 100 * US);
	CU_ASSERT_EQUAL(p.rtt.smooth_ns, 40 * US);
}

static void pick__takes_turns(void)
{
	struct sul_paths p;
	unsigned int used[3] = { 0 }, changes = 0, last = 0;

	sul_paths_init(&p, 3);
	for (int i = 0; i < 480; i++) {
		unsigned int path = sul_paths_pick(&p, -1);

		used[path]++;
		changes += path != last;
		last = path;
	}
	CU_ASSERT(used[0] == 160 && used[1] == 160 && used[2] == 160);
	CU_ASSERT(changes < 31); /* batches stay together */
	CU_ASSERT_NOT_EQUAL(sul_paths_pick(&p, (int)last), last);
}

/* Path 1 is silent, path 0 is heard. */
static void lose(struct sul_paths *p, int packets, uint64_t now_ns)
{
	sul_paths_seen(p, 0, now_ns - 50 * US, 0, now_ns);
	for (int i = 0; i < packets; i++)
		sul_paths_lost(p, 1, now_ns);
}

static bool is_used(struct sul_paths *p, unsigned int path)
{
	for (int i = 0; i < 100; i++)
		if (sul_paths_pick(p, -1) == path)
			return true;
	return false;
}

static void lost__puts_a_path_aside_and_tries_it_ever_more_rarely(void)
{
	struct sul_paths p;
	uint64_t now = 1000 * MS, wait = 0;

	sul_paths_init(&p, 2);
	lose(&p, 7, now);
	CU_ASSERT(is_used(&p, 1));
	CU_ASSERT_EQUAL(sul_paths_deadline(&p), UINT64_MAX);
	lose(&p, 1, now);
	CU_ASSERT(!is_used(&p, 1));
	for (int i = 0; i < 12; i++) {
		uint64_t at = sul_paths_deadline(&p);

		CU_ASSERT(at - now >= wait);
		wait = at - now;
		CU_ASSERT_EQUAL(sul_paths_retry(&p, at - 1), -1);
		CU_ASSERT_EQUAL(sul_paths_retry(&p, at), 1);
		now = at;
	}
	CU_ASSERT_EQUAL(wait, (uint64_t)5000 * MS);
	sul_paths_seen(&p, 1, now, 0, now + 50 * US);
	CU_ASSERT(is_used(&p, 1));
	CU_ASSERT_EQUAL(sul_paths_deadline(&p), UINT64_MAX);
}

static void lost__keeps_the_last_path(void)
{
	struct sul_paths p;

	sul_paths_init(&p, 2);
	lose(&p, 8, 1000 * MS);
	for (int i = 0; i < 100; i++)
		sul_paths_lost(&p, 0, 2000 * MS);
	CU_ASSERT(is_used(&p, 0));
	sul_paths_init(&p, 1);
	for (int i = 0; i < 100; i++)
		sul_paths_lost(&p, 0, 2000 * MS);
	CU_ASSERT(is_used(&p, 0));
}

CU_TestInfo test_sul_path[] = {
	{ "timeout: follows the round trips",
	  timeout__follows_the_round_trips },
	{ "timeout: is never shorter than a turn of the scheduler",
	  timeout__is_never_shorter_than_a_turn_of_the_scheduler },
	{ "seen: ignores old news", seen__ignores_old_news },
	{ "pick: takes turns", pick__takes_turns },
	{ "lost: puts a path aside and tries it ever more rarely",
	  lost__puts_a_path_aside_and_tries_it_ever_more_rarely },
	{ "lost: keeps the last path", lost__keeps_the_last_path },
	CU_TEST_INFO_NULL,
};
