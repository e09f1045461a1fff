/* SPDX-License-Identifier: MIT */
/* sul_bench.c - see sul_bench.h. */
#include "sul_bench.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	WINDOW_BYTES = 64 << 10,
	LATEST_S = 60, /* then the test has failed */
	MEETING_BYTES = 8 << 10, /* of the last of window 0: a word a rank */
};

struct rank_run {
	struct bench *b;
	bench_fn *fn;
	void *ctx;
	struct sul_job *job;
	struct sul_sim *sim;
	struct sul_port *port;
	int rank, result;
	pthread_t thread;
	pid_t pid;
};

static int open_port(struct rank_run *r)
{
	struct sul_config cfg = { .carrier = r->sim ? "sim" : "shm",
				  .job = r->job,
				  .sim = r->sim,
				  .rank = r->rank,
				  .ranks = r->b->ranks,
				  .spin_us = r->b->spin_us,
				  .windows = r->b->windows ?: 1 };

	for (unsigned int w = 0; w < cfg.windows; w++)
		cfg.window[w].bytes = r->b->bytes ?: WINDOW_BYTES;
	return sul_open(&r->port, &cfg);
}

static struct rank_run *runs_new(struct bench *b, bench_fn *fn, void *ctx)
{
	struct rank_run *r = calloc((size_t)b->ranks, sizeof(*r));

	for (int i = 0; r && i < b->ranks; i++) {
		r[i].b = b;
		r[i].fn = fn;
		r[i].ctx = ctx;
		r[i].rank = i;
	}
	return r;
}

static int first_failure(const struct rank_run *r, int ranks)
{
	for (int i = 0; i < ranks; i++)
		if (r[i].result)
			return r[i].result;
	return 0;
}

/* --- simulator ---------------------------------------------------------------- */

static void run_coroutine(void *arg)
{
	struct rank_run *r = arg;

	r->result = r->fn(r->port, r->ctx);
}

static int run_sim(struct bench *b, struct rank_run *r)
{
	struct sul_sim_config cfg = { .seed = b->seed,
				      .ranks = b->ranks,
				      .piece_ppm = b->whole ? 0 : 300000,
				      .yield_ppm = 300000 };
	struct sul_sim *sim;
	int err = sul_sim_new(&sim, &cfg);

	if (err)
		return err;
	for (int i = 0; i < b->ranks && !err; i++) {
		r[i].sim = sim;
		err = open_port(&r[i]);
		if (!err)
			err = sul_sim_spawn(sim, run_coroutine, &r[i]);
	}
	if (!err)
		err = sul_sim_run(sim, UINT64_C(100000000));
	b->steps = sul_sim_steps(sim);
	for (int i = 0; i < b->ranks; i++)
		sul_close(r[i].port);
	sul_sim_free(sim);
	return err ? err : first_failure(r, b->ranks);
}

/* --- threads ------------------------------------------------------------------- */

/* Who fails ends the job, so that the others do not wait for him. */
static void run_body(struct rank_run *r)
{
	r->result = r->fn(r->port, r->ctx);
	if (r->result)
		sul_job_fail(r->job, r->rank, 1, "a body failed");
}

static void *run_thread(void *arg)
{
	run_body(arg);
	return NULL;
}

static struct timespec in_ms(long ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

/* All waits end when the job does, so nobody hangs. */
static void watch_thread(struct rank_run *r, long ms)
{
	struct timespec end = in_ms(ms);

	if (!pthread_timedjoin_np(r->thread, NULL, &end))
		return;
	sul_job_fail(r->job, -1, 1, "the bench ends the job");
	pthread_join(r->thread, NULL);
	if (!r->b->cancel && !r->result)
		r->result = -ETIMEDOUT;
}

static int run_threads(struct bench *b, struct rank_run *r)
{
	struct sul_job *job;
	int err = sul_job_create(&job, b->ranks);

	if (err)
		return err;
	for (int i = 0; i < b->ranks && !err; i++) {
		r[i].job = job;
		err = open_port(&r[i]);
	}
	for (int i = 0; i < b->ranks && !err; i++)
		err = -pthread_create(&r[i].thread, NULL, run_thread, &r[i]);
	for (int i = 0; i < b->ranks && !err; i++)
		watch_thread(&r[i], b->cancel ? 100 : LATEST_S * 1000);
	for (int i = 0; i < b->ranks; i++)
		sul_close(r[i].port);
	sul_job_close(job);
	return err ? err : first_failure(r, b->ranks);
}

/* --- processes ----------------------------------------------------------------- */

static void run_child(struct rank_run *r)
{
	struct sul_job *parents = r->job;
	int err = sul_job_hand_over(parents, r->rank);

	if (!err)
		err = sul_job_attach(&r->job);
	if (!err)
		err = open_port(r);
	if (!err)
		run_body(r);
	else
		fprintf(stderr, "\n    rank %d: %s\n", r->rank, strerror(-err));
	sul_close(r->port);
	_exit(err || r->result);
}

static int wait_child(struct rank_run *r, long ms)
{
	struct timespec nap = { 0, 2000000 };
	int status;

	for (long i = 0; i < ms / 2; i++) {
		if (waitpid(r->pid, &status, WNOHANG) == r->pid)
			return status;
		nanosleep(&nap, NULL);
	}
	sul_job_fail(r->job, -1, 1, "the bench ends the job");
	if (!r->b->cancel) {
		sleep(1);
		kill(r->pid, SIGKILL);
	}
	waitpid(r->pid, &status, 0);
	return r->b->cancel ? status : -ETIMEDOUT;
}

static int run_processes(struct bench *b, struct rank_run *r)
{
	struct sul_job *job;
	int err = sul_job_create(&job, b->ranks);

	if (err)
		return err;
	fflush(NULL);
	for (int i = 0; i < b->ranks; i++) {
		r[i].job = job;
		r[i].pid = fork();
		if (!r[i].pid)
			run_child(&r[i]);
	}
	for (int i = 0; i < b->ranks; i++)
		r[i].result =
			wait_child(&r[i], b->cancel ? 100 : LATEST_S * 1000);
	sul_job_close(job);
	return first_failure(r, b->ranks);
}

int bench_run(enum bench_world w, struct bench *b, bench_fn *fn, void *ctx)
{
	struct rank_run *r = runs_new(b, fn, ctx);
	int err;

	if (!r)
		return -ENOMEM;
	if (w == BENCH_SIM)
		err = run_sim(b, r);
	else if (w == BENCH_THREADS)
		err = run_threads(b, r);
	else
		err = run_processes(b, r);
	free(r);
	return err;
}

void bench_everywhere(struct bench b, bench_fn *fn, void *ctx)
{
	static const enum bench_world all[] = { BENCH_SIM, BENCH_THREADS,
						BENCH_PROCESSES };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (bench_has(all[i]))
			CU_ASSERT_EQUAL(bench_run(all[i], &b, fn, ctx), 0);
}

void bench_seeds(struct bench b, unsigned int seeds, bench_fn *fn, void *ctx)
{
	for (b.seed = 0; b.seed < seeds && bench_has(BENCH_SIM); b.seed++) {
		int err = bench_run(BENCH_SIM, &b, fn, ctx);

		if (err)
			fprintf(stderr, "\n    SEED=%llu\n",
				(unsigned long long)b.seed);
		CU_ASSERT_EQUAL(err, 0);
	}
}

/* --- for bodies ------------------------------------------------------------------ */

bool bench_simulated(const struct sul_port *p)
{
	return !strcmp(sul_carrier(p), "sim");
}

void bench_nap(struct sul_port *p)
{
	struct timespec nap = { 0, 20000000 };

	if (!bench_simulated(p)) {
		nanosleep(&nap, NULL);
		return;
	}
	for (int i = 0; i < 10000; i++)
		sul_sim_yield(p->carrier);
}

int bench_meet(struct sul_port *p, uint32_t round)
{
	uint64_t base = p->window_bytes[0] - MEETING_BYTES;
	struct sul_word *words = (void *)((char *)sul_window(p, 0) + base);
	int ranks = sul_ranks(p), err = 0;

	if (sul_rank(p)) {
		err = sul_notify(p, 0, 0, base + (uint64_t)sul_rank(p) * 8,
				 round);
		return err ? err : sul_wait(p, words, round - 1, -1);
	}
	for (int r = 1; r < ranks && !err; r++)
		while (!err && sul_word_read(&words[r]) != round)
			err = sul_wait(p, &words[r], round - 1, -1);
	for (int r = 1; r < ranks && !err; r++)
		err = sul_notify(p, r, 0, base, round);
	return err;
}
