/* SPDX-License-Identifier: MIT */
/*
 * sulperf_run.c - one row: meet, warm up, take samples, compare notes.
 *
 * Role:      the table of rows; everything about one but what a sample of it is.
 * Invariant: both ranks do the same rows, and as many samples of each; words
 *            of the desks only grow, so none is missed.
 * Threads:   the rank's only one.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sulperf.h"

enum {
	COUNTED = 4, /* samples in the round that counts */
	LEAST = 3, /* samples in a round */
	WARM_SHARE = 4, /* a quarter of the samples more, first */
	ROUND_US = 20000, /* for the samples of a row, if they are slow */
	NAP_NS = 500000,
	FILL_BYTES = PERF_PAGE, /* a get is of that much, at most */
	STEPS = 1000, /* of computing, between two looks */
	ARRIVAL_NS = 20000,
	ARRIVAL_MAX_NS = 5000000,
};

const struct perf_row perf_rows[PERF_ROWS] = {
#define ROW(name, unit, via, fn, peer, bytes, batch, samples, udp, tcp, what) \
	{ #name, what,	PERF_##unit, PERF_##via, perf_##fn, PERF_##peer,      \
	  bytes, batch, samples,     PERF_##udp, PERF_##tcp },
#include "sulperf.def"
};

/* --- meeting --------------------------------------------------------------------------- */

static bool reached(uint32_t seen, uint32_t value)
{
	return (int32_t)(seen - value) >= 0;
}

void perf_await(struct perf *p, struct perf_word *w, uint32_t value)
{
	uint32_t seen;

	while (!reached(seen = sul_word_read(&w->word), value))
		perf_must(p, sul_wait(p->port, &w->word, seen, -1),
			  "waiting for the other rank");
}

void perf_notify(struct perf *p, size_t off, uint32_t value)
{
	perf_must(p, sul_notify(p->port, p->other, PERF_W_DESK, off, value),
		  "a notify");
}

void perf_meet(struct perf *p)
{
	p->meets++;
	perf_notify(p, offsetof(struct perf_desk, meet), p->meets);
	/* The other may be there already: then nothing else would send it. */
	perf_must(p, sul_flush(p->port), "a flush");
	perf_await(p, &p->desk->meet, p->meets);
}

bool perf_row_done(const struct perf *p)
{
	return reached(sul_word_read(&p->desk->done.word), p->rows);
}

/* --- what the peer does meanwhile --------------------------------------------------------- */

void perf_compute(struct perf *p)
{
	volatile uint64_t x = p->rows;

	while (!perf_row_done(p))
		for (int i = 0; i < STEPS; i++)
			x = x * UINT64_C(6364136223846793005) + 1;
}

static void nap(struct perf *p)
{
	const struct timespec t = { 0, NAP_NS };

	while (!perf_row_done(p)) {
		nanosleep(&t, NULL);
		perf_must(p, sul_poll(p->port), "polling");
	}
}

static void play(struct perf *p, const struct perf_row *r)
{
	for (int s = 0; s < p->warm + p->samples; s++)
		r->fn(p, r);
	while (perf_may_lose(r->via) && !perf_row_done(p)) {
		perf_must(p, sul_poll(p->port), "polling");
		perf_sock_again(p, r);
		sched_yield();
	}
	perf_await(p, &p->desk->done, p->rows);
}

static void follow(struct perf *p, const struct perf_row *r)
{
	switch (r->peer) {
	case PERF_PLAYS:
		play(p, r);
		break;
	case PERF_POLLS:
		perf_await(p, &p->desk->done, p->rows);
		break;
	case PERF_COMPUTES:
		perf_compute(p);
		break;
	case PERF_NAPS:
		nap(p);
		break;
	case PERF_SERVES:
		r->fn(p, r);
		break;
	}
}

/* --- the leader --------------------------------------------------------------------------- */

void perf_linger(uint64_t ns)
{
	uint64_t end = bench_now_ns() + ns;

	while (bench_now_ns() < end)
		;
}

void perf_arrivals_begin(struct perf *p)
{
	p->arrival_ns = ARRIVAL_NS;
}

void perf_let_arrive(const struct perf *p)
{
	perf_linger(p->arrival_ns);
}

void perf_was_late(struct perf *p)
{
	if (p->arrival_ns < ARRIVAL_MAX_NS)
		p->arrival_ns *= 2;
}

uint64_t perf_call_ns(const struct perf *p, uint64_t start)
{
	uint64_t ns = bench_now_ns() - start, clock = (uint64_t)p->clock_ns;

	return ns > clock ? ns - clock : 1;
}

/* Its time, all of it or what it has taken itself; and how many operations. */
static uint64_t sample_ns(struct perf *p, const struct perf_row *r, int s,
			  double *ops)
{
	uint64_t start = bench_now_ns(), ns;

	p->spoilt = false;
	p->ns = 0;
	p->last = s == p->warm + p->samples - 1;
	*ops = r->fn(p, r);
	ns = bench_now_ns() - start;
	return p->ns ? p->ns : ns;
}

/* All operations that were done, those that do not count included. */
static double lead(struct perf *p, const struct perf_row *r,
		   struct perf_result *result, bool counting)
{
	uint64_t start = bench_now_ns();
	double all = 0;

	perf_arrivals_begin(p);
	for (int s = 0; s < p->warm + p->samples; s++) {
		double ops, ns = (double)sample_ns(p, r, s, &ops);

		all += ops;
		if (s >= p->warm && !p->spoilt && !counting)
			bench_add(&result->op, ns / 1e3 / ops);
	}
	if (!counting)
		result->sample_us = (double)(bench_now_ns() - start) / 1e3 /
				    (p->warm + p->samples);
	return all;
}

/* --- counting ------------------------------------------------------------------------------ */

static struct perf_counts counts_now(const struct perf *p)
{
	struct perf_counts c = { .calls = 0 };

	perf_carrier_counts(p, &c);
	if (p->trace) {
		struct bench_calls t = bench_trace_read(p->trace);

		c.calls = t.busy;
		c.idle_calls = t.idle;
	}
	return c;
}

static struct perf_counts counts_since(const struct perf *p,
				       struct perf_counts old)
{
	struct perf_counts c = counts_now(p);

#define COUNT(name, where, doc) c.name -= old.name;
#include "sulperf_count.def"
	return c;
}

static void note_send(struct perf *p, const struct perf_counts *c)
{
	struct perf_note n = { *c, p->trace != NULL };

	perf_must(p,
		  sul_put(p->port, p->other, PERF_W_DESK,
			  offsetof(struct perf_desk, note), &n, sizeof(n)),
		  "a put");
	perf_must(p, sul_flush(p->port), "a flush");
}

/* --- a row ----------------------------------------------------------------------------------- */

bool perf_possible(const struct perf *p, const struct perf_row *r)
{
	return r->via == PERF_SUL || r->via == PERF_LOCAL || p->fd[r->via] >= 0;
}

/*
 * How many samples the leader wants.  The first round is to find out how long
 * one takes; on a slow machine or network there are fewer than the row says.
 */
static int samples_wanted(const struct perf *p, const struct perf_row *r,
			  bool counting)
{
	double us = p->board->row[r - perf_rows].sample_us;

	if (counting)
		return COUNTED;
	if (us <= 0)
		return LEAST;
	if (us * r->samples <= ROUND_US)
		return r->samples;
	return us * LEAST >= ROUND_US ? LEAST : (int)(ROUND_US / us);
}

/* The leader says how many; some more come first. */
static void agree(struct perf *p, const struct perf_row *r, bool counting)
{
	if (p->leader)
		perf_notify(p, offsetof(struct perf_desk, samples),
			    (uint32_t)samples_wanted(p, r, counting));
	perf_meet(p);
	p->samples = p->leader ? samples_wanted(p, r, counting) :
				 (int)sul_word_read(&p->desk->samples.word);
	p->warm = counting ? 0 : (p->samples + WARM_SHARE - 1) / WARM_SHARE;
}

/* Nothing of the row happens at the peer before it has begun to count. */
static struct perf_counts begin(struct perf *p)
{
	struct perf_counts before;

	if (p->leader)
		perf_await(p, &p->desk->go, p->rows);
	before = counts_now(p);
	if (p->leader)
		return before;
	perf_notify(p, offsetof(struct perf_desk, go), p->rows);
	/* A row over sockets looks nowhere else: nothing else would send it. */
	perf_must(p, sul_poll(p->port), "polling");
	return before;
}

static void keep_counts(struct perf *p, struct perf_result *result,
			const struct perf_counts *here, double ops)
{
	result->here = *here;
	result->there = p->desk->note.counts;
	result->ops = ops;
	result->traced = p->trace && p->desk->note.traced;
}

void perf_run(struct perf *p, enum perf_row_id row, bool counting)
{
	const struct perf_row *r = &perf_rows[row];
	struct perf_result *result = &p->board->row[row];
	struct perf_counts before, here;
	double ops = 0;

	p->row = r;
	p->rows++;
	/* What a get must find: another one each time. */
	memset(p->land, (int)(p->rows & 0xff), FILL_BYTES);
	agree(p, r, counting);
	before = begin(p);
	if (p->leader) {
		ops = lead(p, r, result, counting);
		here = counts_since(p, before);
		perf_notify(p, offsetof(struct perf_desk, done), p->rows);
	} else {
		follow(p, r);
		here = counts_since(p, before);
		note_send(p, &here);
	}
	perf_meet(p);
	if (p->leader)
		keep_counts(p, result, &here, ops);
	p->row = NULL;
}
