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

#include "sul_clock.h"
#include "sul_udp.h"

enum {
	WINDOW_BYTES = 64 << 10,
	LATEST_S = 60, /* then the test has failed */
	MEETING_BYTES = 8 << 10, /* of the last of window 0: a word a rank */
	SILENCE_MS = 20000,
	LEAVE_MS = 1000,
	HOSTS = 2, /* of BENCH_MIXED: even ranks and odd ones */
};

struct rank_run {
	struct bench *b;
	bench_fn *fn;
	void *ctx;
	enum bench_world world;
	struct sul_job *job;
	struct sul_listener *listener;
	struct sul_sim *sim;
	const char *carrier;
	struct sul_port *port;
	int rank, result;
	pthread_t thread;
	pid_t pid;
};

static bool is_world(enum bench_world w, enum bench_world a, enum bench_world b,
		     enum bench_world c)
{
	return w == a || w == b || w == c;
}

static bool has_hosts(enum bench_world w)
{
	return is_world(w, BENCH_MIXED, BENCH_KMOD, BENCH_KMOD_UDP);
}

static bool has_module(const struct rank_run *r)
{
	if (r->b->without >> r->rank & 1)
		return false;
	if (r->world == BENCH_KMOD_UDP)
		return r->rank % HOSTS == 0;
	return r->world == BENCH_KMOD || r->world == BENCH_KMOD_THREADS;
}

static int listen_on(struct rank_run *r)
{
	bool everywhere = !has_hosts(r->world);
	struct sul_listen_config cfg = { .job = r->job,
					 .rank = r->rank,
					 .far = has_module(r) ? SUL_FAR_AUTO :
								SUL_FAR_UDP,
					 .kmod = &fake_sul,
					 .everywhere = everywhere,
					 .links = everywhere ? "" : "127.0.0.1",
					 .mtu = r->b->mtu,
					 .span = r->b->span };
	char why[SUL_WHY_MAX];
	int err = sul_listen(&r->listener, &cfg, why);

	if (err)
		fprintf(stderr, "\n    %s\n", why);
	return err;
}

static int open_port(struct rank_run *r)
{
	char why[SUL_WHY_MAX];
	struct sul_config cfg = { .carrier = r->carrier,
				  .job = r->job,
				  .sim = r->sim,
				  .rank = r->rank,
				  .ranks = r->b->ranks,
				  .spin_us = r->b->spin_us,
				  .listener = r->listener,
				  .auth = r->b->auth,
				  .silence_ms = r->b->silence_ms ?: SILENCE_MS,
				  .loss_ppm = r->b->loss_ppm,
				  .no_handlers = r->b->no_handlers,
				  .why = why,
				  .windows = r->b->windows ?: 1 };
	int err;

	for (unsigned int w = 0; w < cfg.windows; w++) {
		cfg.window[w].bytes = r->b->bytes ?: WINDOW_BYTES;
		cfg.window[w].chunk = r->b->chunk;
	}
	err = sul_open(&r->port, &cfg);
	if (err && *why)
		fprintf(stderr, "\n    rank %d: %s\n", r->rank, why);
	return err;
}

static struct rank_run *runs_new(enum bench_world w, struct bench *b,
				 bench_fn *fn, void *ctx)
{
	struct rank_run *r = calloc((size_t)b->ranks, sizeof(*r));

	for (int i = 0; r && i < b->ranks; i++) {
		r[i].b = b;
		r[i].fn = fn;
		r[i].ctx = ctx;
		r[i].world = w;
		r[i].rank = i;
		r[i].carrier = w == BENCH_SIM ? "sim" :
			       w == BENCH_NET ? "simnet" :
						"shm";
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

struct sul_simnet_config bench_quiet_wire(void)
{
	return (struct sul_simnet_config){ .latency_ns = 10000,
					   .jitter_ns = 1000,
					   .think_ns = 500,
					   .room = 64,
					   .packet_bytes = SUL_NET_PACKET_MIN,
					   .span = 16,
					   .paths = 1,
					   .silence_ns = UINT64_C(10000000000),
					   .cancel_ns = 1000000000 };
}

struct sul_simnet_config bench_bad_wire(void)
{
	struct sul_simnet_config c = bench_quiet_wire();

	c.loss_ppm = c.dup_ppm = c.corrupt_ppm = 50000;
	c.late_ppm = 200000;
	c.late_ns = 300000;
	c.cut_ns = c.stop_ns = 20000000;
	c.cut_for_ns = c.stop_for_ns = 50000000;
	return c;
}

static void look_at_net(struct bench *b, struct sul_sim *sim)
{
	b->net = (struct bench_net){ .wire = *sul_simnet_stats(sim),
				     .now_ns = sul_simnet_now_ns(sim),
				     .crash_ns = sul_simnet_crash_ns(sim),
				     .failed = sul_simnet_failed(sim) };
	sul_simnet_core_stats(sim, &b->net.core);
}

static int run_sim(struct bench *b, struct rank_run *r, bool net)
{
	struct sul_sim_config cfg = { .seed = b->seed,
				      .ranks = b->ranks,
				      .piece_ppm = b->whole ? 0 : 300000,
				      .yield_ppm = 300000,
				      .net = net,
				      .wire = b->wire ? *b->wire :
							bench_bad_wire() };
	struct sul_sim *sim;
	int err = sul_sim_new(&sim, &cfg);

	if (err)
		return err;
	for (int i = 0; i < b->ranks && !err; i++) {
		r[i].sim = sim;
		err = open_port(&r[i]);
		if (!err)
			err = sul_sim_spawn(sim, i, run_coroutine, &r[i]);
	}
	if (!err)
		err = sul_sim_run(sim, UINT64_C(100000000));
	b->steps = sul_sim_steps(sim);
	if (net)
		look_at_net(b, sim);
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
	if (!r->result && sul_flush(r->port) && !sul_job_failed(r->job))
		r->result = -EIO;
	if (r->result)
		sul_job_fail(r->job, r->rank, 1, "a body failed");
}

static void *run_thread(void *arg)
{
	struct rank_run *r = arg;

	r->result = open_port(r);
	if (r->result)
		sul_job_fail(r->job, r->rank, 1, "a port cannot be opened");
	else
		run_body(r);
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
	fake_sul_begin(&b->module);
	for (int i = 0; i < b->ranks && !err; i++) {
		r[i].job = job;
		if (r->world != BENCH_THREADS)
			err = listen_on(&r[i]);
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

static int start_child(struct rank_run *r)
{
	int err = sul_job_hand_over(r->job, r->rank);

	if (!err)
		err = sul_job_attach(&r->job);
	if (!err && r->world != BENCH_PROCESSES)
		err = listen_on(r);
	if (!err) {
		sul_job_set_state(r->job, SUL_RANK_READY);
		err = sul_job_wait_all(r->job, SUL_RANK_READY, LATEST_S * 1000,
				       NULL);
	}
	return err ? err : open_port(r);
}

static void run_child(struct rank_run *r)
{
	int err = start_child(r);

	if (err) {
		fprintf(stderr, "\n    rank %d: %s\n", r->rank, strerror(-err));
		_exit(1);
	}
	run_body(r);
	sul_job_set_state(r->job, SUL_RANK_EXITED);
	sul_leave(r->port, r->result ? 0 : LEAVE_MS);
	sul_close(r->port);
	_exit(r->result);
}

/* As the launchers of two hosts do: each block learns what is in the other, and
 * that the job has failed. */
static void mirror(struct sul_job *from, struct sul_job *to, int host)
{
	char text[SUL_JOB_TEXT_MAX];
	int rank, status;

	for (int r = host; r < sul_job_ranks(from); r += HOSTS)
		sul_job_mirror(to, r, sul_job_rank(from, r));
	if (!sul_job_failed(from))
		return;
	sul_job_failure(from, &rank, &status, text);
	sul_job_fail(to, rank, status, text);
}

/* A job for each host; all ranks are in each. */
struct hosts {
	struct sul_job *job[HOSTS];
	int nr;
};

static void hosts_close(struct hosts *h)
{
	while (h->nr)
		sul_job_close(h->job[--h->nr]);
}

static int hosts_open(struct hosts *h, int nr, int ranks)
{
	for (h->nr = 0; h->nr < nr; h->nr++) {
		int err = sul_job_create(&h->job[h->nr], ranks);

		if (err) {
			hosts_close(h);
			return err;
		}
		sul_job_set_host(h->job[h->nr], h->nr);
		sul_job_set_key(h->job[h->nr], sul_job_key(h->job[0]));
		for (int r = 0; r < ranks; r++)
			sul_job_place(h->job[h->nr], r, r % nr, "");
	}
	return 0;
}

static void hosts_mirror(struct hosts *h)
{
	if (h->nr < HOSTS)
		return;
	mirror(h->job[0], h->job[1], 0);
	mirror(h->job[1], h->job[0], 1);
}

static int wait_child(struct hosts *h, struct rank_run *r, long ms)
{
	struct timespec nap = { 0, 2000000 };
	int status;

	for (long i = 0; i < ms / 2; i++) {
		if (waitpid(r->pid, &status, WNOHANG) == r->pid)
			return status;
		hosts_mirror(h);
		nanosleep(&nap, NULL);
	}
	for (int i = 0; i < h->nr; i++)
		sul_job_fail(h->job[i], -1, 1, "the bench ends the job");
	if (!r->b->cancel) {
		sleep(1);
		kill(r->pid, SIGKILL);
	}
	waitpid(r->pid, &status, 0);
	return r->b->cancel ? status : -ETIMEDOUT;
}

static int run_processes(struct bench *b, struct rank_run *r)
{
	struct hosts h;
	int err = hosts_open(&h, has_hosts(r->world) ? HOSTS : 1, b->ranks);

	if (err)
		return err;
	fake_sul_begin(&b->module);
	fflush(NULL);
	for (int i = 0; i < b->ranks; i++) {
		r[i].job = h.job[i % h.nr];
		r[i].pid = fork();
		if (!r[i].pid)
			run_child(&r[i]);
	}
	for (int i = 0; i < b->ranks; i++)
		r[i].result = wait_child(&h, &r[i],
					 b->cancel ? 100 : LATEST_S * 1000);
	hosts_close(&h);
	return first_failure(r, b->ranks);
}

int bench_run(enum bench_world w, struct bench *b, bench_fn *fn, void *ctx)
{
	struct rank_run *r = runs_new(w, b, fn, ctx);
	int err;

	if (!r)
		return -ENOMEM;
	if (w == BENCH_SIM || w == BENCH_NET)
		err = run_sim(b, r, w == BENCH_NET);
	else if (is_world(w, BENCH_THREADS, BENCH_UDP_THREADS,
			  BENCH_KMOD_THREADS))
		err = run_threads(b, r);
	else
		err = run_processes(b, r);
	free(r);
	return err;
}

void bench_in(enum bench_world w, struct bench b, bench_fn *fn, void *ctx)
{
	if (bench_has(w))
		CU_ASSERT_EQUAL(bench_run(w, &b, fn, ctx), 0);
}

void bench_everywhere(struct bench b, bench_fn *fn, void *ctx)
{
	for (enum bench_world w = BENCH_SIM; w < BENCH_WORLDS; w++)
		bench_in(w, b, fn, ctx);
}

void bench_seeds(struct bench b, unsigned int seeds, bench_fn *fn, void *ctx)
{
	for (b.seed = 0; b.seed < seeds && bench_has(BENCH_SIM); b.seed++) {
		int err =
			bench_run(b.wire ? BENCH_NET : BENCH_SIM, &b, fn, ctx);

		if (err)
			fprintf(stderr, "\n    SEED=%llu\n",
				(unsigned long long)b.seed);
		CU_ASSERT_EQUAL(err, 0);
	}
}

void bench_over_udp(struct bench b, bench_fn *fn, void *ctx)
{
	bench_in(BENCH_UDP, b, fn, ctx);
}

void bench_over_networks(struct bench b, bench_fn *fn, void *ctx)
{
	bench_in(BENCH_UDP, b, fn, ctx);
	bench_in(BENCH_KMOD, b, fn, ctx);
	bench_in(BENCH_KMOD_UDP, b, fn, ctx);
}

void bench_with_module(struct bench b, bench_fn *fn, void *ctx)
{
	bench_in(BENCH_KMOD_THREADS, b, fn, ctx);
	bench_in(BENCH_KMOD, b, fn, ctx);
	bench_in(BENCH_KMOD_UDP, b, fn, ctx);
}

/* --- for bodies ------------------------------------------------------------------ */

uint64_t bench_now_ms(void)
{
	return sul_now_ns() / 1000000;
}

bool bench_simulated(const struct sul_port *p)
{
	return !strncmp(sul_carrier(p), "sim", 3);
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

int bench_compute_until(struct sul_port *p, const uint64_t *word)
{
	uint64_t end = bench_now_ms() + 20000;

	while (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
		if (bench_now_ms() > end || sul_job_failed(p->job))
			return -ETIMEDOUT;
	return 0;
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
	return err ? err : sul_flush(p);
}
