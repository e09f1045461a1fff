/* SPDX-License-Identifier: MIT */
/*
 * sor_mpi.c - apps/sor.c as one would write it by hand with MPI.
 *
 * Role: what make bench compares sor with.  The same arrays (a colour each, a
 *   band of rows for each rank), the same loop over a row, the same initial
 *   values; the edge rows of a colour are exchanged when it has been relaxed.
 * Invariant: the residuals printed are those of apps/sor.c.
 * Threads: one per rank.
 *
 * sor_mpi ROWS COLS ITERATIONS WARM: sweeps WARM and later are timed.
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define OMEGA 1.5F

struct sor {
	long rows, cols, iterations, warm;
	long half; /* cells of one colour in a row */
	long first, count; /* my rows */
	float *cell[2]; /* of rows first - 1 .. first + count, by colour */
	int rank, ranks;
};

static uint64_t hash(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static float initial(long row, long col)
{
	uint64_t h = hash((uint64_t)row << 32 | (uint64_t)col);

	return (float)((double)(h >> 11) * 0x1p-53);
}

static float *row_of(const struct sor *s, int colour, long row)
{
	return s->cell[colour] + (row - (s->first - 1)) * s->half;
}

static void setup(struct sor *s)
{
	long each = s->rows / s->ranks, more = s->rows % s->ranks;

	s->half = (s->cols + 3) / 2;
	s->first = each * s->rank + (s->rank < more ? s->rank : more) + 1;
	s->count = each + (s->rank < more);
	for (int c = 0; c < 2; c++) {
		s->cell[c] = calloc((size_t)((s->count + 2) * s->half),
				    sizeof(float));
		if (!s->cell[c])
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
	for (long i = s->first - 1; i <= s->first + s->count; i++)
		for (long j = 0; j < s->cols + 2; j++)
			row_of(s, (int)((i + j) & 1), i)[j / 2] = initial(i, j);
}

static float residual(float old, float up, float down, float left, float right)
{
	return 0.25F * ((up + down) + (left + right)) - old;
}

static void relax_row(const struct sor *s, long i, int colour)
{
	long odd = (i + colour) & 1, end = (s->cols - odd) / 2;
	const float *up = row_of(s, !colour, i - 1);
	const float *row = row_of(s, !colour, i);
	const float *down = row_of(s, !colour, i + 1);
	float *mine = row_of(s, colour, i);

	for (long k = 1 - odd; k <= end; k++)
		mine[k] += OMEGA * residual(mine[k], up[k], down[k],
					    row[k - 1 + odd], row[k + odd]);
}

/* My edge rows of @colour to the neighbours, theirs to me. */
static void exchange(const struct sor *s, int colour)
{
	int above = s->rank ? s->rank - 1 : MPI_PROC_NULL;
	int below = s->rank + 1 < s->ranks ? s->rank + 1 : MPI_PROC_NULL;
	long last = s->first + s->count - 1;
	int n = (int)s->half;

	MPI_Sendrecv(row_of(s, colour, s->first), n, MPI_FLOAT, above, 0,
		     row_of(s, colour, last + 1), n, MPI_FLOAT, below, 0,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(row_of(s, colour, last), n, MPI_FLOAT, below, 1,
		     row_of(s, colour, s->first - 1), n, MPI_FLOAT, above, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Of all ranks, on rank 0. */
static double all_residual(const struct sor *s)
{
	double sum = 0, all = 0;

	for (long i = s->first; i < s->first + s->count; i++)
		for (long j = 1; j <= s->cols; j++) {
			int c = (int)((i + j) & 1);

			sum += fabs((
				double)residual(row_of(s, c, i)[j / 2],
						row_of(s, !c, i - 1)[j / 2],
						row_of(s, !c, i + 1)[j / 2],
						row_of(s, !c, i)[(j - 1) / 2],
						row_of(s, !c, i)[(j + 1) / 2]));
		}
	MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	return all;
}

static double sweep_all(const struct sor *s)
{
	double begin = MPI_Wtime();

	for (long n = 0; n < s->iterations; n++) {
		if (n == s->warm) {
			MPI_Barrier(MPI_COMM_WORLD);
			begin = MPI_Wtime();
		}
		for (int colour = 0; colour < 2; colour++) {
			for (long i = s->first; i < s->first + s->count; i++)
				relax_row(s, i, colour);
			exchange(s, colour);
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	return MPI_Wtime() - begin;
}

int main(int argc, char **argv)
{
	struct sor s = { 0 };
	double before, after, seconds;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
	if (argc != 5) {
		fprintf(stderr, "usage: sor_mpi ROWS COLS ITERATIONS WARM\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	s.rows = strtol(argv[1], NULL, 10);
	s.cols = strtol(argv[2], NULL, 10);
	s.iterations = strtol(argv[3], NULL, 10);
	s.warm = strtol(argv[4], NULL, 10);
	setup(&s);
	before = all_residual(&s);
	seconds = sweep_all(&s);
	after = all_residual(&s);
	if (!s.rank)
		printf("sor_mpi: %ld x %ld floats, %ld iterations, residual %.4g -> %.4g, %d ranks: %.6f s\n",
		       s.rows, s.cols, s.iterations, before, after, s.ranks,
		       seconds);
	free(s.cell[0]);
	free(s.cell[1]);
	MPI_Finalize();
	return 0;
}
