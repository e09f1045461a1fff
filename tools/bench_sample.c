/* SPDX-License-Identifier: MIT */
/* bench_sample.c - samples of times, and what they come to; see bench.h. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

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
	sum.max = (double)v[s->nr - 1];
out:
	free(v);
	return sum;
}

json_t *bench_json(struct bench_summary s)
{
	return json_pack("{s:i, s:f, s:f, s:f, s:f, s:f}", "samples", (int)s.nr,
			 "min", s.min, "median", s.median, "p90", s.p90, "max",
			 s.max, "mean", s.mean);
}
