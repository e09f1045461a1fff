/* SPDX-License-Identifier: MIT */
/*
 * mm.c - C = A * B for square matrices of 32-bit integers.
 *
 * Role: the program that reads much and writes little: a rank owns a band of
 *   rows of all three matrices, and reads all of B.
 * Invariant: a rank writes rows it owns only, and A and B not after the barrier
 *   that ends the filling.
 * Threads: one per rank.
 * Locks: lock 0 guards the shared count of wrong elements.
 *
 * Why unsigned: arithmetic modulo 2^32 never overflows, so that the closed form
 * that every element is checked against is exact at any size.
 *
 * In the statistics: each rank fetches the others' shares of B once, no diffs,
 * no fault on C.
 */
#include "app.h"

/* A tile of B, TILE x TILE elements, stays in the second level cache. */
enum {
	TILE = 128
};

struct mm {
	long n;
	uint32_t **a, **b, **c; /* this rank's pointers to all rows */
	long first, count; /* my rows */
	long *wrong; /* shared: elements found wrong */
};

/* A[i][k] = i + 2k + 1 and B[k][j] = 3k + 5j + 2 */
static uint32_t a_value(long i, long k)
{
	return (uint32_t)(i + 2 * k + 1);
}

static uint32_t b_value(long k, long j)
{
	return (uint32_t)(3 * k + 5 * j + 2);
}

/* The sum over k of (u + 2k)(3k + v), u = i + 1, v = 5j + 2: with
 * S1 = sum of k, S2 = sum of k^2 it is n u v + (3u + 2v) S1 + 6 S2. */
static uint32_t c_value(long n, long i, long j)
{
	uint64_t m = (uint64_t)n, u = (uint64_t)i + 1;
	uint64_t v = 5 * (uint64_t)j + 2;
	uint64_t s1 = m * (m - 1) / 2, six_s2 = (m - 1) * m * (2 * m - 1);

	return (uint32_t)(m * u * v + (3 * u + 2 * v) * s1 + six_s2);
}

/* A matrix of which each rank has its own rows at home. */
static uint32_t **matrix(const struct app *a, const char *label, long n)
{
	uint32_t **row = app_calloc((size_t)n, sizeof(*row));
	long first, count;

	for (int rank = 0; rank < a->ranks; rank++) {
		uint32_t *p;

		count = app_share(a, n, rank, &first);
		if (!count)
			continue;
		p = app_malloc_on(a, label, rank,
				  (size_t)(count * n) * sizeof(*p));
		for (long i = first; i < first + count; i++, p += n)
			row[i] = p;
	}
	return row;
}

static void fill(const struct mm *m)
{
	for (long i = m->first; i < m->first + m->count; i++)
		for (long j = 0; j < m->n; j++) {
			m->a[i][j] = a_value(i, j);
			m->b[i][j] = b_value(i, j);
		}
}

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

/* Add what one tile of B contributes to row @i of C. */
static void multiply_tile(const struct mm *m, long i, long k0, long j0)
{
	long k1 = k0 + TILE < m->n ? k0 + TILE : m->n;
	long j1 = j0 + TILE < m->n ? j0 + TILE : m->n;

	for (long k = k0; k < k1; k++)
		add_multiple(m->c[i] + j0, m->b[k] + j0, m->a[i][k], j1 - j0);
}

static void multiply(const struct mm *m)
{
	for (long k = 0; k < m->n; k += TILE)
		for (long j = 0; j < m->n; j += TILE)
			for (long i = m->first; i < m->first + m->count; i++)
				multiply_tile(m, i, k, j);
}

/* Every rank checks its own rows. */
static void check(const struct app *a, const struct mm *m)
{
	long wrong = 0;

	for (long i = m->first; i < m->first + m->count; i++)
		for (long j = 0; j < m->n; j++)
			wrong += m->c[i][j] != c_value(m->n, i, j);
	app_lock(a, 0);
	*m->wrong += wrong;
	app_unlock(a, 0);
	app_barrier(a);
}

int app_main(int argc, char **argv)
{
	struct mm m = { 0 };
	const struct app_opt opts[] = {
		{ 'n', "size", "N", &m.n, 768, 150, 1, 32768,
		  "rows and columns of the matrices" },
	};
	struct app a = { .name = "mm",
			 .about = "C = A * B for square matrices of 32-bit "
				  "integers, every element checked.",
			 .opts = opts,
			 .nopts = sizeof(opts) / sizeof(opts[0]) };
	int status;

	app_init(&a, argc, argv);
	m.count = app_share(&a, m.n, a.rank, &m.first);
	m.a = matrix(&a, "A", m.n);
	m.b = matrix(&a, "B", m.n);
	m.c = matrix(&a, "C", m.n);
	m.wrong = app_malloc_on(&a, "wrong", 0, sizeof(*m.wrong));
	fill(&m);
	app_begin(&a);
	multiply(&m);
	app_end(&a);
	app_report(&a, "%ld x %ld integers", m.n, m.n);
	check(&a, &m);
	status = app_verdict(&a, a.rank || !*m.wrong,
			     "%ld of %ld elements differ from the closed form, "
			     "the last is %u",
			     *m.wrong, m.n * m.n, m.c[m.n - 1][m.n - 1]);
	free(m.c);
	free(m.b);
	free(m.a);
	return status;
}
