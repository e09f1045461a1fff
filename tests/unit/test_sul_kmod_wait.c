/* SPDX-License-Identifier: MIT */
/*
 * test_sul_kmod_wait.c - who sleeps in the kernel module (sul_fake.h) is woken, and
 * is told when a rank has gone.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "sul_bench.h"
#include "tests.h"

/* --- sleeping -------------------------------------------------------------------------------- */

enum {
	ROUNDS = 300
};

/* Rank 0 and the last one, asleep in turn. */
static int play(struct sul_port *p, void *ctx)
{
	struct sul_word *word = sul_window(p, 0);
	int last = sul_ranks(p) - 1, other = sul_rank(p) ? 0 : last;
	uint64_t begin = bench_now_ms(), *most_ms = ctx;

	for (uint32_t i = 1; i <= ROUNDS && (!sul_rank(p) || !other); i++) {
		if (!sul_rank(p))
			MUST(!sul_notify(p, other, 0, 0, i));
		MUST(!sul_wait(p, word, i - 1, 20000));
		if (sul_rank(p) == last)
			MUST(!sul_notify(p, other, 0, 0, i));
		else if (sul_rank(p))
			break;
	}
	MUST(bench_now_ms() - begin < *most_ms);
	return bench_meet(p, 1);
}

static int play_and_wake(struct sul_port *p, void *ctx)
{
	int err = sul_rank(p) == 1 ? bench_meet(p, 1) : play(p, ctx);

	MUST(!err);
	MUST(sul_rank(p) == 1 || fake_sul_calls(SUL_IOC_WAKE));
	return 0;
}

static int play_blind(struct sul_port *p, void *ctx)
{
	return sul_rank(p) == 1 ? bench_meet(p, 1) : play(p, ctx);
}

/* A nap is 100 ms: if it were not for the wakes, it would take 30 s or more. */
static void a_sleeper_is_woken_by_whoever_stores(void)
{
	struct bench b = { .ranks = 2 };
	uint64_t most_ms = 10000;

	bench_with_module(b, play, &most_ms); /* by the module's hand */
	b.ranks = 3; /* 0 and 2 share a host: by their own */
	bench_in(BENCH_KMOD, b, play_and_wake, &most_ms);
}

static void who_cannot_wake_is_looked_out_for(void)
{
	struct bench b = { .ranks = 3, .without = 1u << 2 };
	uint64_t most_ms = 10000;

	bench_in(BENCH_KMOD, b, play_blind, &most_ms);
}

static void *notify_after_a_while(void *arg)
{
	struct sul_port *p = arg;

	bench_nap(p);
	sul_notify(p, sul_rank(p), 0, 0, 1);
	return NULL;
}

static int own_thread_wakes(struct sul_port *p, void *ctx)
{
	struct sul_word *word = sul_window(p, 0);
	uint64_t best = UINT64_MAX;
	pthread_t t;

	(void)ctx;
	for (int i = 0; i < 10 && best >= 90; i++) {
		uint64_t begin = bench_now_ms();

		word->value = 0;
		MUST(!pthread_create(&t, NULL, notify_after_a_while, p));
		MUST(!sul_wait(p, word, 0, 20000));
		if (bench_now_ms() - begin < best)
			best = bench_now_ms() - begin;
		pthread_join(t, NULL);
	}
	MUST(best < 90); /* not by the end of a nap */
	return bench_meet(p, 1);
}

static void a_thread_of_ones_own_rank_wakes_a_sleeper(void)
{
	bench_with_module((struct bench){ .ranks = 2 }, own_thread_wakes, NULL);
}

/* --- ranks that go ------------------------------------------------------------------------------ */

static int see_death(struct sul_port *p, void *ctx)
{
	char text[SUL_JOB_TEXT_MAX];
	int rank, status, err;
	uint64_t v = 1;

	MUST(!bench_meet(p, 1));
	if (sul_rank(p)) {
		MUST(sul_wait(p, sul_window(p, 0), 0, -1) == -ECANCELED);
		return 0;
	}
	fake_sul_kill(1);
	err = sul_put(p, 1, 0, 64, &v, 8) ?: sul_flush(p);
	MUST(err == -EHOSTDOWN || err == -ECANCELED);
	MUST(sul_wait(p, sul_window(p, 0), 0, -1) == -ECANCELED);
	sul_job_failure(p->job, &rank, &status, text);
	MUST(rank == 1);
	MUST(strstr(text, ctx));
	MUST(sul_put(p, 1, 0, 64, &v, 8) || sul_flush(p) < 0);
	return 0;
}

static void a_dead_rank_ends_the_job(void)
{
	struct bench b = { .ranks = 2, .silence_ms = 5000 };
	char gone[] = "has closed its port of /dev/sul";
	char silent[] = "rank 1 has been silent for 5 s";

	bench_in(BENCH_KMOD_THREADS, b, see_death, gone);
	bench_in(BENCH_KMOD, b, see_death, silent);
}

/* Rank 1 has said good-bye before; that rank 2 dies then is noticed all the same. */
static int see_the_second_death(struct sul_port *p, void *ctx)
{
	char text[SUL_JOB_TEXT_MAX];
	int rank, status;

	(void)ctx;
	MUST(!bench_meet(p, 1));
	while (sul_rank(p) == 1) { /* it has gone, and sees nothing */
		if (sul_job_failed(p->job))
			return 0;
		usleep(1000);
	}
	if (!sul_rank(p)) {
		atomic_store(&sul_job_rank(p->job, 1)->state, SUL_RANK_EXITED);
		fake_sul_kill(1);
		MUST(sul_wait(p, sul_window(p, 0), 0, 300) == -ETIMEDOUT);
		fake_sul_kill(2);
	}
	MUST(sul_wait(p, sul_window(p, 0), 0, 20000) == -ECANCELED);
	sul_job_failure(p->job, &rank, &status, text);
	MUST(rank == 2);
	return 0;
}

static void a_death_behind_a_good_bye_is_noticed(void)
{
	bench_in(BENCH_KMOD_THREADS,
		 (struct bench){ .ranks = 3, .silence_ms = 5000 },
		 see_the_second_death, NULL);
}

static int see_given_up(struct sul_port *p, void *ctx)
{
	char text[SUL_JOB_TEXT_MAX];
	struct sul_word *word = sul_window(p, 0);
	int rank, status;

	(void)ctx;
	MUST(!bench_meet(p, 1));
	if (sul_rank(p)) { /* not before 0 has come out of the meeting, too */
		MUST(!sul_wait(p, word, 0, 20000));
		fake_sul_give_up(1);
	} else {
		MUST(!sul_notify(p, 1, 0, 0, 1));
	}
	MUST(sul_wait(p, word, (uint32_t)sul_rank(p), -1) == -ECANCELED);
	sul_job_failure(p->job, &rank, &status, text);
	MUST(rank == 1);
	MUST(strstr(text, "memory that others are to work on"));
	return 0;
}

static void a_rank_whose_port_is_given_up_says_why(void)
{
	bench_in(BENCH_KMOD, (struct bench){ .ranks = 2 }, see_given_up, NULL);
}

CU_TestInfo test_sul_kmod_wait[] = {
	{ "a sleeper is woken by whoever stores",
	  a_sleeper_is_woken_by_whoever_stores },
	{ "who cannot wake is looked out for",
	  who_cannot_wake_is_looked_out_for },
	{ "a thread of one's own rank wakes a sleeper",
	  a_thread_of_ones_own_rank_wakes_a_sleeper },
	{ "a dead rank ends the job", a_dead_rank_ends_the_job },
	{ "a death behind a good-bye is noticed",
	  a_death_behind_a_good_bye_is_noticed },
	{ "a rank whose port is given up says why",
	  a_rank_whose_port_is_given_up_says_why },
	CU_TEST_INFO_NULL,
};
