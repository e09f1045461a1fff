/* SPDX-License-Identifier: MIT */
/*
 * sulperf_rank.c - a rank: joins the job, runs the rows, the leader prints.
 *
 * Role:      libsul's port as the dsm layer opens it, but without the dsm.
 * Invariant: ranks that are not measured leave at once.
 * Threads:   one of ours; the carrier may have one.
 *
 * Waits spin for a long time, unless the parameter spin_us is given: what is
 * measured is a rank that is at its processor.  Memory that is worked on is
 * present before it counts, as it is in a program's steady state.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sulperf.h"

extern char **environ;

enum {
	MEET_MS = 60000,
	PART_MS = 3600000, /* ranks that are not measured wait for the others */
	LEAVE_MS = 10000,
	SPIN_US = 1000,
	SPIN_COUNT_US = 1000000, /* however slow the tracer is */
	CHUNK = 512, /* pages made present at once */
	CLOCKS = 101
};

/* --- failing ----------------------------------------------------------------------- */

static void say(const char *text)
{
	fprintf(stderr, "%s\n", text);
}

/* jiarun says it, or the library's keeper; a job of one rank has neither. */
_Noreturn void perf_fail(struct perf *p, const char *fmt, ...)
{
	char text[SUL_JOB_TEXT_MAX];
	int at = snprintf(text, sizeof(text), "sulperf: rank %d: %s%s", p->self,
			  p->row ? p->row->name : "", p->row ? ": " : "");
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + at, sizeof(text) - (size_t)at, fmt, ap);
	va_end(ap);
	if (sul_job_fail(p->job, p->self, 1, text) && !p->pmix &&
	    !sul_job_launched(p->job))
		say(text);
	if (p->pmix)
		sul_pmix_await_end();
	_exit(1);
}

void perf_must(struct perf *p, int err, const char *what)
{
	if (err == -ECANCELED) /* somebody else's failure: say nothing */
		_exit(1);
	if (err < 0)
		perf_fail(p, "%s: %s", what, strerror(-err));
}

/* Before there is a job to say it for us. */
static _Noreturn void give_up(const char *what, const char *why)
{
	fprintf(stderr, "sulperf: %s: %s\n", what, why);
	exit(1);
}

/* --- beginning ----------------------------------------------------------------------- */

static void attach(struct perf *p)
{
	char text[SUL_JOB_TEXT_MAX];
	int err;

	if (sul_pmix_here()) {
		if (sul_pmix_attach(&p->pmix, &p->job, say, text))
			give_up("PMIx", text);
		return;
	}
	err = sul_job_attach(&p->job);
	if (err)
		give_up("the job", strerror(-err));
}

static void join(struct perf *p)
{
	char text[DSM_CONFIG_ERR_MAX];

	attach(p);
	p->self = sul_job_self(p->job);
	if (dsm_config_load(&p->settings, environ, text))
		perf_fail(p, "%s", text);
	if (sul_job_ranks(p->job) <= p->o->peer)
		perf_fail(
			p,
			"it measures between ranks 0 and %d, and the job has %d",
			p->o->peer, sul_job_ranks(p->job));
	p->leader = !p->self;
	p->other = p->leader ? p->o->peer : 0;
	p->near = !sul_job_far(p->job, p->other);
}

/* As the dsm layer does: sockets are there, and known, before the rank is
 * READY. */
static void listen_for_others(struct perf *p)
{
	const struct dsm_config *c = &p->settings.value;
	struct sul_listen_config lc = {
		.job = p->job,
		.rank = p->self,
	};
	char why[SUL_WHY_MAX];

	dsm_config_listen(c, &lc);
	if (!sul_auth_known((enum sul_auth)c->auth))
		perf_fail(p, "auth=aead: this build has no libsodium");
	if (sul_listen(&p->listener, &lc, why))
		perf_fail(p, "listening on the network: %s", why);
}

static void wait_for_all(struct perf *p)
{
	int missing = 0, err;

	sul_job_set_state(p->job, SUL_RANK_READY);
	if (p->pmix)
		perf_must(p, sul_pmix_meet(p->pmix, MEET_MS),
			  "meeting the other hosts");
	err = sul_job_wait_all(p->job, SUL_RANK_READY, MEET_MS, &missing);
	if (err == -ETIMEDOUT)
		perf_fail(p, "rank %d has not come within %d s", missing,
			  MEET_MS / 1000);
	perf_must(p, err, "waiting for the other ranks");
}

static unsigned int spin_us(const struct perf *p)
{
	if (p->settings.origin[DSM_CONFIG_spin_us].source == DSM_SOURCE_DEFAULT)
		return p->o->count ? SPIN_COUNT_US : SPIN_US;
	return (unsigned int)p->settings.value.spin_us;
}

static void open_port(struct perf *p)
{
	const struct dsm_config *cfg = &p->settings.value;
	char why[SUL_WHY_MAX];
	struct sul_config c = {
		.carrier = "shm",
		.job = p->job,
		.rank = p->self,
		.ranks = sul_job_ranks(p->job),
		.spin_us = spin_us(p),
		.auth = (enum sul_auth)cfg->auth,
		.silence_ms = (unsigned int)cfg->silence * 1000,
		.no_handlers = !cfg->signals,
		.loss_ppm = (unsigned int)cfg->loss,
		.pin_bytes = cfg->pin,
		.trace = p->o->breakdown,
		.why = why,
		.windows = PERF_WINDOWS,
		.window = { [PERF_W_DESK] = { .bytes = PERF_PAGE },
			    [PERF_W_LAND] = { .bytes = PERF_BYTES_MAX,
					      .chunk = CHUNK } },
	};
	int err;

	listen_for_others(p);
	wait_for_all(p);
	c.listener = p->listener;
	err = sul_open(&p->port, &c);
	if (*why)
		fprintf(stderr, "rank %d: %s\n", p->self, why);
	perf_must(p, err, "opening the port");
	perf_must(p,
		  sul_window_prepare(p->port, PERF_W_LAND, 0, PERF_BYTES_MAX),
		  "memory for the window");
	p->desk = sul_window(p->port, PERF_W_DESK);
	p->land = sul_window(p->port, PERF_W_LAND);
	perf_handlers(p);
}

static char *memory(struct perf *p)
{
	char *m = mmap(NULL, PERF_BYTES_MAX, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (m == MAP_FAILED)
		perf_fail(p, "memory: %s", strerror(errno));
	memset(m, 1, PERF_BYTES_MAX);
	return m;
}

/* What lies between two looks at the clock that follow each other. */
static double clock_ns(void)
{
	struct bench_samples *s = calloc(1, sizeof(*s));
	double ns = 0;

	for (int i = 0; s && i < CLOCKS; i++) {
		uint64_t start = bench_now_ns();

		bench_add(s, (double)(bench_now_ns() - start) / 1e3);
	}
	if (s)
		ns = bench_summarize(s).median * 1e3;
	free(s);
	return ns;
}

/* Nobody is needed any more. */
static void part(struct perf *p)
{
	perf_must(p, sul_flush(p->port), "a flush");
	if (p->pmix)
		perf_must(p, sul_pmix_leave(p->pmix, PART_MS), "leaving");
	else
		sul_job_set_state(p->job, SUL_RANK_EXITED);
	p->pmix = NULL;
}

/* --- measuring ------------------------------------------------------------------------- */

static void run_round(struct perf *p, bool counting)
{
	for (int r = 0; r < PERF_ROWS; r++)
		if (p->o->row[r] && perf_possible(p, &perf_rows[r]))
			perf_run(p, (enum perf_row_id)r, counting);
}

/* Where tracing is forbidden there are no figures, and that is all. */
static void count(struct perf *p)
{
	int err = bench_trace_start(&p->trace);

	if (err != -EPERM)
		perf_must(p, err, "a process that counts system calls");
	perf_meet(p);
	run_round(p, true);
	bench_trace_stop(p->trace);
}

static void measure(struct perf *p)
{
	perf_net_open(p);
	for (int i = 0; i < p->o->rounds; i++) {
		run_round(p, false);
		if (p->o->breakdown)
			perf_breakdown(p);
	}
	if (p->o->count)
		count(p);
	perf_net_close(p);
}

static void report(struct perf *p)
{
	int err = 0;

	if (p->o->json)
		err = perf_print_json(p);
	else
		perf_print(p);
	if (p->o->figures && !p->o->json)
		perf_print_figures(p);
	if (err || fflush(stdout))
		perf_fail(p, "standard output: %s",
			  strerror(err ? -err : errno));
}

int perf_rank_main(const struct perf_options *o)
{
	struct perf p = { .o = o };

	join(&p);
	open_port(&p);
	if (p.leader || p.self == o->peer) {
		p.from = memory(&p);
		p.to = memory(&p);
		p.clock_ns = clock_ns();
		p.board = calloc(1, sizeof(*p.board));
		if (!p.board)
			perf_fail(&p, "memory: %s", strerror(errno));
		measure(&p);
		if (p.leader)
			report(&p);
		free(p.board);
	}
	part(&p);
	sul_leave(p.port, LEAVE_MS);
	sul_close(p.port);
	sul_job_close(p.job);
	return 0;
}
