/* SPDX-License-Identifier: MIT */
/*
 * mm_mpi.c - apps/mm.c as one would write it by hand with MPI.
 *
 * Role: what make bench compares mm with: the same bands, tiles and loop; what
 *   the others have of B is gathered before, which belongs to the time, as it
 *   belongs to that of apps/mm.c to fetch it.
 * Invariant: a rank writes its own rows only; every element is checked.
 * Threads: one per rank.
 *
 * mm_mpi N
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	TILE = 128,
	ROWS_MAX = 32768
};

struct mm {
	long n, first, count; /* my rows */
	uint32_t *a, *c; /* my rows */
	uint32_t *b; /* all of it */
	int rank, ranks;
};

/* Alike in apps/mm.c, which says why it is a function. */
static __attribute__((noinline)) void add_multiple(uint32_t *restrict c,
						   const uint32_t *restrict b,
						   uint32_t a, long nr)
{
	const uint32_t *end = b + nr;

	while (b < end)
		*c++ += a * *b++;
}

static void multiply_tile(const struct mm *m, long i, long k0, long j0)
{
	long k1 = k0 + TILE < m->n ? k0 + TILE : m->n;
	long j1 = j0 + TILE < m->n ? j0 + TILE : m->n;

	for (long k = k0; k < k1; k++)
		add_multiple(m->c + i * m->n + j0, m->b + k * m->n + j0,
			     m->a[i * m->n + k], j1 - j0);
}

static void multiply(const struct mm *m)
{
	for (long k = 0; k < m->n; k += TILE)
		for (long j = 0; j < m->n; j += TILE)
			for (long i = 0; i < m->count; i++)
				multiply_tile(m, i, k, j);
}

/* As in apps/mm.c: A[i][k] = i + 2k + 1 and B[k][j] = 3k + 5j + 2 */
static uint32_t c_value(long n, long i, long j)
{
	uint64_t m = (uint64_t)n, u = (uint64_t)i + 1;
	uint64_t v = 5 * (uint64_t)j + 2;
	uint64_t s1 = m * (m - 1) / 2, six_s2 = (m - 1) * m * (2 * m - 1);

	return (uint32_t)(m * u * v + (3 * u + 2 * v) * s1 + six_s2);
}

static void *rows(long count, long n)
{
	void *p = calloc((size_t)(count * n) + 1, sizeof(uint32_t));

	if (!p)
		MPI_Abort(MPI_COMM_WORLD, 1);
	return p;
}

/* The first row of @rank's; of the rank after the last: how many there are. */
static long first_row(const struct mm *m, long rank)
{
	return m->n * rank / m->ranks;
}

static void setup(struct mm *m)
{
	m->first = first_row(m, m->rank);
	m->count = first_row(m, m->rank + 1) - m->first;
	m->a = rows(m->count, m->n);
	m->b = rows(m->n, m->n);
	m->c = rows(m->count, m->n);
	for (long i = 0; i < m->count; i++)
		for (long j = 0; j < m->n; j++) {
			long row = m->first + i;

			m->a[i * m->n + j] = (uint32_t)(row + 2 * j + 1);
			m->b[row * m->n + j] = (uint32_t)(3 * row + 5 * j + 2);
		}
}

/* Counted in rows: numbers would not fit into an int. */
static void gather(const struct mm *m)
{
	int *count = calloc((size_t)m->ranks, sizeof(*count));
	int *first = calloc((size_t)m->ranks, sizeof(*first));
	MPI_Datatype row;

	if (!count || !first)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int r = 0; r < m->ranks; r++) {
		first[r] = (int)first_row(m, r);
		count[r] = (int)first_row(m, r + 1) - first[r];
	}
	MPI_Type_contiguous((int)m->n, MPI_UINT32_T, &row);
	MPI_Type_commit(&row);
	MPI_Allgatherv(MPI_IN_PLACE, 0, row, m->b, count, first, row,
		       MPI_COMM_WORLD);
	MPI_Type_free(&row);
	free(first);
	free(count);
}

static double run(const struct mm *m)
{
	double begin;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	gather(m);
	multiply(m);
	MPI_Barrier(MPI_COMM_WORLD);
	return MPI_Wtime() - begin;
}

/* Of all ranks, on all ranks. */
static long wrong_elements(const struct mm *m)
{
	long wrong = 0, all = 0;

	for (long i = 0; i < m->count; i++)
		for (long j = 0; j < m->n; j++)
			wrong += m->c[i * m->n + j] !=
				 c_value(m->n, m->first + i, j);
	MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	return all;
}

int main(int argc, char **argv)
{
	struct mm m = { 0 };
	double seconds;
	long wrong;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &m.ranks);
	m.n = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
	if (m.n < 1 || m.n > ROWS_MAX) {
		fprintf(stderr, "usage: mm_mpi N\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	setup(&m);
	seconds = run(&m);
	wrong = wrong_elements(&m);
	if (!m.rank)
		printf("mm_mpi: %ld x %ld integers, %d ranks: %.6f s\n", m.n,
		       m.n, m.ranks, seconds);
	if (!m.rank && wrong)
		fprintf(stderr, "mm_mpi: WRONG: %ld elements\n", wrong);
	free(m.a);
	free(m.b);
	free(m.c);
	MPI_Finalize();
	return wrong != 0;
}
