/* SPDX-License-Identifier: MIT */
/*
 * mm_threads.c - apps/mm.c with threads of one process.
 *
 * Role: what make bench compares mm with: the same tiles and the same loop, on
 *   memory that is shared by the machine.
 * Invariant: a thread writes its own rows only; every element is checked.
 * Threads: as many as asked for, joined before the check.
 *
 * mm_threads N THREADS
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	TILE = 128,
	THREADS_MAX = 64
};

struct band {
	long n, first, count;
	const uint32_t *a, *b;
	uint32_t *c;
	pthread_t thread;
};

/*
 * c[] += a * b[].  A function of its own, alike in apps/mm.c and
 * tests/bench/mm_threads.c: how the compiler addresses memory in this loop makes
 * a tenth of the time.
 */
static __attribute__((noinline)) void add_multiple(uint32_t *restrict c,
						   const uint32_t *restrict b,
						   uint32_t a, long nr)
{
	const uint32_t *end = b + nr;

	while (b < end)
		*c++ += a * *b++;
}

static void multiply_tile(const struct band *m, long i, long k0, long j0)
{
	long k1 = k0 + TILE < m->n ? k0 + TILE : m->n;
	long j1 = j0 + TILE < m->n ? j0 + TILE : m->n;

	for (long k = k0; k < k1; k++)
		add_multiple(m->c + i * m->n + j0, m->b + k * m->n + j0,
			     m->a[i * m->n + k], j1 - j0);
}

static void *multiply(void *arg)
{
	const struct band *m = arg;

	for (long k = 0; k < m->n; k += TILE)
		for (long j = 0; j < m->n; j += TILE)
			for (long i = m->first; i < m->first + m->count; i++)
				multiply_tile(m, i, k, j);
	return NULL;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* As in apps/mm.c: A[i][k] = i + 2k + 1 and B[k][j] = 3k + 5j + 2 */
static uint32_t c_value(long n, long i, long j)
{
	uint64_t m = (uint64_t)n, u = (uint64_t)i + 1;
	uint64_t v = 5 * (uint64_t)j + 2;
	uint64_t s1 = m * (m - 1) / 2, six_s2 = (m - 1) * m * (2 * m - 1);

	return (uint32_t)(m * u * v + (3 * u + 2 * v) * s1 + six_s2);
}

static double run(struct band *bands, long n, long threads)
{
	double begin = now();

	for (long t = 0; t < threads; t++) {
		bands[t].first = n * t / threads;
		bands[t].count = n * (t + 1) / threads - bands[t].first;
		if (pthread_create(&bands[t].thread, NULL, multiply, &bands[t]))
			abort();
	}
	for (long t = 0; t < threads; t++)
		pthread_join(bands[t].thread, NULL);
	return now() - begin;
}

int main(int argc, char **argv)
{
	struct band bands[THREADS_MAX];
	long n = argc == 3 ? strtol(argv[1], NULL, 10) : 0;
	long threads = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	uint32_t *a, *b, *c;
	long wrong = 0;
	double seconds;

	if (n < 1 || n > 32768 || threads < 1 || threads > THREADS_MAX) {
		fprintf(stderr, "usage: mm_threads N THREADS\n");
		return 2;
	}
	a = malloc((size_t)(n * n) * sizeof(*a));
	b = malloc((size_t)(n * n) * sizeof(*b));
	c = malloc((size_t)(n * n) * sizeof(*c));
	if (!a || !b || !c)
		abort();
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++) {
			a[i * n + j] = (uint32_t)(i + 2 * j + 1);
			b[i * n + j] = (uint32_t)(3 * i + 5 * j + 2);
			c[i * n + j] = 0;
		}
	for (long t = 0; t < threads; t++)
		bands[t] = (struct band){ .n = n, .a = a, .b = b, .c = c };
	seconds = run(bands, n, threads);
	for (long i = 0; i < n * n; i++)
		wrong += c[i] != c_value(n, i / n, i % n);
	printf("mm_threads: %ld x %ld integers, %ld threads: %.6f s\n", n, n,
	       threads, seconds);
	if (wrong)
		fprintf(stderr, "mm_threads: WRONG: %ld elements\n", wrong);
	free(a);
	free(b);
	free(c);
	return wrong != 0;
}
