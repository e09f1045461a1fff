/* SPDX-License-Identifier: MIT */
/*
 * jiabench_sample.c - taking times and events, and what they come to.
 *
 * Role:      the only place that reads clock and counters.
 * Invariant: between reading the counters and starting the clock nothing of
 *            the row happens, and the clock is nearest to the operation.
 * Threads:   the rank's only one.
 */
#include "jiabench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jia.h"

/* What an event is made of: counters of jiarun --stats. */
static const char *const parts[BENCH_EV_CALL][4] = {
	[BENCH_EV_FAULT] = { "segv_local", "segv_remote" },
	[BENCH_EV_PROTECT] = { "protects" },
	[BENCH_EV_MSG] = { "msgs_sent" },
	[BENCH_EV_BYTES] = { "bytes_sent", "bytes_recv" },
	[BENCH_EV_VISIT] = { "compares", "refreshed", "invalidated" },
};

static const struct bench_info infos[BENCH_ROWS] = {
#define ROW(name, floor, ratio, us, none, argo, factor, what)           \
	{ #name, what,	BENCH_##floor, ratio, us, (unsigned int)(none), \
	  argo,	 factor },
#include "jiabench.def"
};

const struct bench_info *bench_info(enum bench_row row)
{
	return &infos[row];
}

const char *bench_floor_name(enum bench_floor f)
{
	static const char *const names[BENCH_FLOORS] = {
		[BENCH_FAULT] = "fault",
		[BENCH_SPIN] = "spin",
		[BENCH_WAKE] = "wake",
		[BENCH_COPY] = "copy",
	};

	return names[f];
}

uint64_t bench_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void bench_add(struct bench_samples *s, double us)
{
	if (s->nr < BENCH_SAMPLES)
		s->us[s->nr++] = (float)us;
}

static uint64_t event(enum bench_event e)
{
	uint64_t sum = 0;

	for (int i = 0; i < 4 && parts[e][i]; i++)
		sum += jia_counter(parts[e][i]);
	return sum;
}

static uint64_t calls(const struct bench *b)
{
	return __atomic_load_n(&b->board->calls, __ATOMIC_RELAXED);
}

void bench_events_begin(struct bench *b)
{
	if (!b->result)
		return;
	for (int e = 0; e < BENCH_EV_CALL; e++)
		b->before[e] = event((enum bench_event)e);
	b->before[BENCH_EV_CALL] =
		calls(b); /* the last: the others make some */
}

void bench_events_end(struct bench *b, double ops)
{
	if (!b->result)
		return;
	b->result->events[BENCH_EV_CALL] +=
		(double)(calls(b) - b->before[BENCH_EV_CALL]);
	for (int e = 0; e < BENCH_EV_CALL; e++)
		b->result->events[e] +=
			(double)(event((enum bench_event)e) - b->before[e]);
	b->result->ops += ops;
}

void bench_time_begin(struct bench *b)
{
	b->start_ns = bench_now_ns();
}

void bench_time_end(struct bench *b, double ops)
{
	uint64_t end = bench_now_ns();

	if (b->result)
		bench_add(&b->result->op,
			  (double)(end - b->start_ns) / 1e3 / ops);
}

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

struct bench_summary bench_summarize(const struct bench_samples *s)
{
	struct bench_summary sum = { .nr = s->nr };
	float *v = malloc((s->nr + 1) * sizeof(*v));

	if (!v || !s->nr) {
		sum.nr = 0;
		goto out;
	}
	memcpy(v, s->us, s->nr * sizeof(*v));
	qsort(v, s->nr, sizeof(*v), compare);
	sum.min = (double)v[0];
	sum.median = (double)v[s->nr / 2];
	for (uint32_t i = 0; i < s->nr; i++)
		sum.mean += (double)v[i] / s->nr;
	sum.p90 = (double)v[(uint64_t)s->nr * 9 / 10];
out:
	free(v);
	return sum;
}
