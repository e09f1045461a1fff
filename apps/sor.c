/* SPDX-License-Identifier: MIT */
/*
 * sor.c - red-black successive over-relaxation of a rectangle with fixed edges.
 *
 * Role: the regular program: each rank owns a band of rows and reads, each half
 *   sweep, one row of the neighbour above and one of the neighbour below.
 * Invariant: a half sweep writes cells of one colour and reads, of other rows,
 *   the other colour only; a barrier ends it.  So no cell is read by one rank
 *   while another writes it.
 * Threads: one per rank.
 * Locks: lock 0 guards the shared sums.
 *
 * Why two arrays: the colours lie in arrays of their own, so a neighbour's row
 * that a rank reads is not written during the same half sweep, and a row of
 * 2046 cells and its two edges is one page of each colour.  A row's home is the
 * rank that writes it: no diffs, one page per neighbour and half sweep.
 *
 * The result must be *bitwise* the one of a serial run: every cell goes through
 * the same operations on the same values whatever the number of ranks.
 *
 * After: Young, Iterative methods for solving partial difference equations of
 * elliptic type, Trans. AMS 76 (1954).
 * In the statistics: a rank refreshes two pages a half sweep, and faults on none
 * after the first few.
 */
#include "app.h"

#include <math.h>

/* Over-relaxation factor, between 1 and 2. */
#define OMEGA 1.5F

struct sums {
	double before, after; /* sums of |residual| over all cells */
};

/* Rows 0 and rows + 1, columns 0 and cols + 1 are the fixed edges. */
struct sor {
	const struct app *app;
	long rows, cols, iterations;
	long warm; /* sweeps before time and counters start */
	long half; /* cells of one colour in a row */
	float **cell[2]; /* [colour][row]: this rank's pointers to all rows */
	float *guess[2]; /* private: what is above and below my rows at first */
	long first, count; /* my rows: first .. first + count - 1 */
	struct sums *sums; /* shared */
};

/* The initial value of a cell: rough, so that a wrong neighbour shows. */
static float initial(long row, long col)
{
	return (float)app_fraction((uint64_t)row << 32 | (uint64_t)col);
}

/* What is missing for a cell to be the mean of its neighbours. */
static float residual(float old, float up, float down, float left, float right)
{
	return 0.25F * ((up + down) + (left + right)) - old;
}

/* The cells of @colour in a row are its columns 2k + shift(), k = 0, 1, ... */
static long shift(long row, int colour)
{
	return (row + colour) & 1;
}

/* --- the shared grid --------------------------------------------------------- */

/* The rows a rank owns: its share of the inner rows, and the fixed row next to
 * them for the ranks at the two ends. */
static void owned(const struct sor *s, int rank, long *first, long *end)
{
	long count = app_share(s->app, s->rows, rank, first);

	*first += 1;
	*end = *first + count;
	if (count && *first == 1)
		*first = 0;
	if (count && *end == s->rows + 1)
		*end = s->rows + 2;
}

static void allocate(struct sor *s)
{
	size_t row_bytes = (size_t)s->half * sizeof(float);
	size_t rows = (size_t)s->rows + 2;
	long first, end;

	for (int colour = 0; colour < 2; colour++)
		s->cell[colour] = app_calloc(rows, sizeof(float *));
	for (int rank = 0; rank < s->app->ranks; rank++) {
		owned(s, rank, &first, &end);
		if (first == end)
			continue;
		for (int colour = 0; colour < 2; colour++) {
			float *p = app_malloc_on(s->app, "cells", rank,
						 (size_t)(end - first) *
							 row_bytes);

			for (long i = first; i < end; i++, p += s->half)
				s->cell[colour][i] = p;
		}
	}
	s->sums = app_malloc_on(s->app, "sums", 0, sizeof(*s->sums));
	s->count = app_share(s->app, s->rows, s->app->rank, &s->first);
	s->first += 1;
	for (int side = 0; side < 2; side++)
		s->guess[side] = app_calloc((size_t)s->half, sizeof(float));
}

static void release(struct sor *s)
{
	for (int i = 0; i < 2; i++) {
		free(s->guess[i]);
		free(s->cell[i]);
	}
}

static void fill(struct sor *s)
{
	long first, end;

	owned(s, s->app->rank, &first, &end);
	for (long i = first; i < end; i++)
		for (long j = 0; j < s->cols + 2; j++)
			/* allocate() gave every row a place. */
			/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
			s->cell[(i + j) & 1][i][j / 2] = initial(i, j);
}

/* The cells of @colour in a row that nobody has changed yet. */
static void fill_guess(const struct sor *s, long row, int colour, float *guess)
{
	for (long j = shift(row, colour); j < s->cols + 2; j += 2)
		guess[j / 2] = initial(row, j);
}

/* Relax the cells of one colour in row @i between the rows @up and @down of the
 * other colour. */
static void relax_row(struct sor *s, long i, int colour, const float *up,
		      const float *down)
{
	long odd = shift(i, colour), end = (s->cols - odd) / 2;
	const float *row = s->cell[!colour][i];
	float *mine = s->cell[colour][i];

	for (long k = 1 - odd; k <= end; k++)
		mine[k] += OMEGA * residual(mine[k], up[k], down[k],
					    row[k - 1 + odd], row[k + odd]);
}

/* Relax the cells of one colour in my rows. */
static void half_sweep(struct sor *s, int colour)
{
	for (long i = s->first; i < s->first + s->count; i++)
		relax_row(s, i, colour, s->cell[!colour][i - 1],
			  s->cell[!colour][i + 1]);
}

/* The first half sweep reads the neighbours' rows as they were filled: every
 * rank can tell that itself, which saves fetching them. */
static void first_half_sweep(struct sor *s)
{
	long last = s->first + s->count - 1;

	fill_guess(s, s->first - 1, 1, s->guess[0]);
	fill_guess(s, last + 1, 1, s->guess[1]);
	for (long i = s->first; i <= last; i++)
		relax_row(s, i, 0,
			  i == s->first ? s->guess[0] : s->cell[1][i - 1],
			  i == last ? s->guess[1] : s->cell[1][i + 1]);
	/* release() frees what allocate() allocated. */
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
}

/* The sum of |residual| over my cells.  Reads my neighbours' edge rows. */
static double my_residual(const struct sor *s)
{
	double sum = 0;

	for (long i = s->first; i < s->first + s->count; i++)
		for (long j = 1; j <= s->cols; j++) {
			int colour = (int)((i + j) & 1);
			float *const *other = s->cell[!colour];
			float r = residual(s->cell[colour][i][j / 2],
					   other[i - 1][j / 2],
					   other[i + 1][j / 2],
					   other[i][(j - 1) / 2],
					   other[i][(j + 1) / 2]);

			sum += fabs((double)r);
		}
	return sum;
}

static void add(const struct sor *s, double *shared, double mine)
{
	app_lock(s->app, 0);
	*shared += mine;
	app_unlock(s->app, 0);
}

static void sweep(struct sor *s, long n)
{
	for (int colour = 0; colour < 2; colour++) {
		if (n == 0 && colour == 0)
			first_half_sweep(s);
		else
			half_sweep(s, colour);
		app_barrier(s->app);
	}
}

static void run(struct app *a, struct sor *s)
{
	fill(s);
	app_barrier(s->app);
	add(s, &s->sums->before, my_residual(s));
	app_barrier(s->app); /* nobody reads the edges as they were any more */
	for (long n = 0; n < s->iterations; n++) {
		if (n == s->warm)
			app_begin(a);
		sweep(s, n);
	}
	if (s->warm >= s->iterations)
		app_begin(a); /* there is nothing to time */
	app_end(a);
	add(s, &s->sums->after, my_residual(s));
	app_barrier(s->app);
}

/* --- the serial run ---------------------------------------------------------- */

static void serial_sweep(const struct sor *s, float *grid, int colour)
{
	long width = s->cols + 2;

	for (long i = 1; i <= s->rows; i++)
		for (long j = 1; j <= s->cols; j++) {
			float *c = grid + i * width + j;

			if (((i + j) & 1) == colour)
				*c += OMEGA * residual(*c, c[-width], c[width],
						       c[-1], c[1]);
		}
}

static uint32_t bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

/* How many cells, edges included, differ in a bit from a serial run. */
static long differences(const struct sor *s)
{
	long width = s->cols + 2, height = s->rows + 2, bad = 0;
	float *grid = app_calloc((size_t)(width * height), sizeof(float));

	for (long i = 0; i < height; i++)
		for (long j = 0; j < width; j++)
			grid[i * width + j] = initial(i, j);
	for (long n = 0; n < s->iterations; n++)
		for (int colour = 0; colour < 2; colour++)
			serial_sweep(s, grid, colour);
	for (long i = 0; i < height; i++)
		for (long j = 0; j < width; j++)
			bad += bits(grid[i * width + j]) !=
			       bits(s->cell[(i + j) & 1][i][j / 2]);
	free(grid);
	return bad;
}

int app_main(int argc, char **argv)
{
	struct sor s = { 0 };
	const struct app_opt opts[] = {
		{ 'r', "rows", "N", &s.rows, 1022, 62, 1, 1000000,
		  "inner rows" },
		{ 'c', "cols", "N", &s.cols, 2046, 126, 1, 1000000,
		  "inner columns" },
		{ 'i', "iterations", "N", &s.iterations, 50, 10, 0, 1000000,
		  "sweeps over both colours" },
		{ 'w', "warm", "N", &s.warm, 0, 0, 0, 1000000,
		  "sweeps before time and counters start" },
	};
	struct app a = { .name = "sor",
			 .about = "Red-black successive over-relaxation of "
				  "floats, compared with a serial run.",
			 .opts = opts,
			 .nopts = sizeof(opts) / sizeof(opts[0]) };
	long bad = 0;

	app_init(&a, argc, argv);
	s.app = &a;
	s.half = (s.cols + 3) / 2;
	allocate(&s);
	run(&a, &s);
	app_report(&a,
		   "%ld x %ld floats, %ld iterations, residual %.4g -> %.4g",
		   s.rows, s.cols, s.iterations, s.sums->before, s.sums->after);
	if (a.rank == 0)
		bad = differences(&s);
	release(&s);
	return app_verdict(&a, !bad,
			   "%ld of %ld cells differ from a serial run", bad,
			   (s.rows + 2) * (s.cols + 2));
}
