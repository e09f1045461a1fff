/* SPDX-License-Identifier: MIT */
/*
 * lu.c - LU factorization of a dense matrix without pivoting, by blocks.
 *
 * Role: the program with one writer for everything: blocks are dealt to a grid
 *   of ranks, each is contiguous in memory and at home where it is written.
 *   With --plain the matrix lies in memory by rows instead: then a page belongs
 *   to several ranks, which is false sharing.
 * Invariant: a block is written by its owner only; others read it only after
 *   the barrier that follows its last change.  So there are no diffs, and a
 *   block that was fetched stays valid.
 * Threads: one per rank.
 * Locks: none.
 *
 * Step k: the owner of the diagonal block factors it; barrier; the owners of
 * the blocks right of and below it solve with it; barrier; all ranks update
 * their blocks further down and right.  The next diagonal block was updated by
 * the rank that factors it, so a step has two barriers.
 *
 * The matrix is a formula with a dominant diagonal: it needs no pivoting, and
 * rank 0 can make it again to check the residual of a solve.
 *
 * After: Dongarra, Gustavson and Karp, Implementing linear algebra algorithms
 * for dense matrices on a vector pipeline machine, SIAM Review 26 (1984); the
 * contiguous blocks: Woo, Singh and Hennessy, The performance advantages of
 * integrating block data transfer in cache-coherent multiprocessors (1994).
 * In the statistics: the pages fetched, which the program compares with those
 * that must be because each rank writes its own blocks only; no diffs.  With
 * --plain: diffs, pages written by several ranks, and far more fetches.
 */
#include "app.h"

#include <float.h>
#include <math.h>

/* The scaled residual (as LINPACK defines it) that counts as solved; correct
 * runs stay well under 1. */
#define RESIDUAL_MAX 16.0

struct lu {
	const struct app *app;
	long n, b; /* rows, rows of a block */
	long nb; /* blocks in a row: the last may be narrower */
	int grid_rows, grid_cols;
	long prefetch;
	long plain; /* the matrix lies in memory by rows */
	long stride; /* from a row of a block to the next */
	double **block; /* [i * nb + j]: this rank's pointers to all blocks */
};

static double element(long n, long i, long j)
{
	double f = app_fraction((uint64_t)i << 32 | (uint64_t)j) - 0.5;

	return i == j ? f + (double)n / 2 + 1 : f;
}

static double *block_of(const struct lu *m, long i, long j)
{
	return m->block[i * m->nb + j];
}

/* Rows of block row @i, and columns of block column @i. */
static long extent(const struct lu *m, long i)
{
	long left = m->n - i * m->b;

	return left < m->b ? left : m->b;
}

static int owner(const struct lu *m, long i, long j)
{
	return (int)(i % m->grid_rows) * m->grid_cols + (int)(j % m->grid_cols);
}

static bool is_mine(const struct lu *m, long i, long j)
{
	return owner(m, i, j) == m->app->rank;
}

/* The grid of all ranks that is nearest to a square, wider than high. */
static void choose_grid(struct lu *m)
{
	m->grid_rows = 1;
	for (int r = 2; r * r <= m->app->ranks; r++)
		if (m->app->ranks % r == 0)
			m->grid_rows = r;
	m->grid_cols = m->app->ranks / m->grid_rows;
}

/* The @n-th block in the order in which they become final: those of a step are
 * the one on the diagonal, the rest of its column, the rest of its row. */
static void nth_final(const struct lu *m, long n, long *i, long *j)
{
	long k = 0, more;

	while (n > (more = 2 * (m->nb - k - 1))) {
		n -= more + 1;
		k++;
	}
	more /= 2;
	*i = n <= more ? k + n : k;
	*j = n <= more ? k : k + n - more;
}

/* One allocation per rank holds its blocks, in the order in which they become
 * final: what is fetched along with a block can be used at the same time. */
static void allocate_blocks(struct lu *m)
{
	size_t size = (size_t)(m->b * m->b);
	size_t *used = app_calloc((size_t)m->app->ranks, sizeof(*used));
	double **base = app_calloc((size_t)m->app->ranks, sizeof(*base));

	for (long i = 0; i < m->nb; i++)
		for (long j = 0; j < m->nb; j++)
			used[owner(m, i, j)] += size;
	for (int r = 0; r < m->app->ranks; r++) {
		base[r] = app_malloc_on(m->app, "blocks", r,
					used[r] * sizeof(double));
		used[r] = 0;
	}
	for (long n = 0; n < m->nb * m->nb; n++) {
		long i, j;
		int r;

		nth_final(m, n, &i, &j);
		r = owner(m, i, j);
		m->block[i * m->nb + j] = base[r] + used[r];
		used[r] += size;
	}
	free(base);
	free(used);
}

static void allocate_plain(struct lu *m)
{
	double *base = app_malloc(m->app, "matrix",
				  (size_t)(m->n * m->n) * sizeof(double));

	for (long i = 0; i < m->nb; i++)
		for (long j = 0; j < m->nb; j++)
			m->block[i * m->nb + j] =
				base + i * m->b * m->n + j * m->b;
}

static void allocate(struct lu *m)
{
	m->block = app_calloc((size_t)(m->nb * m->nb), sizeof(*m->block));
	m->stride = m->plain ? m->n : m->b;
	if (m->plain)
		allocate_plain(m);
	else
		allocate_blocks(m);
}

static void fill_block(const struct lu *m, long bi, long bj)
{
	double *a = block_of(m, bi, bj);

	for (long i = 0; i < extent(m, bi); i++)
		for (long j = 0; j < extent(m, bj); j++)
			a[i * m->stride + j] =
				element(m->n, bi * m->b + i, bj * m->b + j);
}

static void fill(const struct lu *m)
{
	for (long i = 0; i < m->nb; i++)
		for (long j = 0; j < m->nb; j++)
			if (is_mine(m, i, j))
				fill_block(m, i, j);
}

/* --- the four kernels: rows of a block are @b apart ------------------------- */

/* y -= f * x */
static void subtract(double *restrict y, const double *restrict x, double f,
		     long count)
{
	for (long j = 0; j < count; j++)
		y[j] -= f * x[j];
}

static void factor(double *a, long b, long size)
{
	for (long k = 0; k < size; k++)
		for (long i = k + 1; i < size; i++) {
			double *row = a + i * b;

			row[k] /= a[k * b + k];
			subtract(row + k + 1, a + k * b + k + 1, row[k],
				 size - k - 1);
		}
}

/* a = L^-1 a, L the unit lower triangle of @diag. */
static void solve_right(double *a, const double *diag, long b, long rows,
			long cols)
{
	for (long k = 0; k < rows; k++)
		for (long i = k + 1; i < rows; i++)
			subtract(a + i * b, a + k * b, diag[i * b + k], cols);
}

/* a = a U^-1, U the upper triangle of @diag. */
static void solve_below(double *a, const double *diag, long b, long rows,
			long cols)
{
	for (long i = 0; i < rows; i++) {
		double *row = a + i * b;

		for (long k = 0; k < cols; k++) {
			row[k] /= diag[k * b + k];
			subtract(row + k + 1, diag + k * b + k + 1, row[k],
				 cols - k - 1);
		}
	}
}

/* Block (i, j) -= block (i, k) * block (k, j). */
static void update(const struct lu *m, long i, long j, long k)
{
	const double *left = block_of(m, i, k), *top = block_of(m, k, j);
	long rows = extent(m, i), cols = extent(m, j), inner = extent(m, k);
	double *a = block_of(m, i, j);

	for (long r = 0; r < rows; r++)
		for (long x = 0; x < inner; x++)
			subtract(a + r * m->stride, top + x * m->stride,
				 left[r * m->stride + x], cols);
}

/* --- the factorization ---------------------------------------------------------- */

static void solve_perimeter(const struct lu *m, long k)
{
	const double *diag = block_of(m, k, k);
	long size = extent(m, k);

	for (long i = k + 1; i < m->nb; i++) {
		if (is_mine(m, k, i))
			solve_right(block_of(m, k, i), diag, m->stride, size,
				    extent(m, i));
		if (is_mine(m, i, k))
			solve_below(block_of(m, i, k), diag, m->stride,
				    extent(m, i), size);
	}
}

static void update_interior(const struct lu *m, long k)
{
	for (long i = k + 1; i < m->nb; i++)
		for (long j = k + 1; j < m->nb; j++)
			if (is_mine(m, i, j))
				update(m, i, j, k);
}

static void factorize(const struct lu *m)
{
	for (long k = 0; k < m->nb; k++) {
		if (is_mine(m, k, k))
			factor(block_of(m, k, k), m->stride, extent(m, k));
		app_barrier(m->app);
		if (k + 1 == m->nb)
			break;
		solve_perimeter(m, k);
		app_barrier(m->app);
		update_interior(m, k);
	}
}

/* --- what has to be fetched ----------------------------------------------------

 * Whoever writes a block reads the two blocks that each step updates it with.
 * They are final then, so one fetch of each page is enough, and with contiguous
 * blocks none less will do: their pages have other homes.
 */

static bool owns_in_row(const struct lu *m, long i, long from)
{
	for (long j = from; j < m->nb && j < from + m->grid_cols; j++)
		if (is_mine(m, i, j))
			return true;
	return false;
}

static bool owns_in_column(const struct lu *m, long j, long from)
{
	for (long i = from; i < m->nb && i < from + m->grid_rows; i++)
		if (is_mine(m, i, j))
			return true;
	return false;
}

static bool is_read(const struct lu *m, long i, long j)
{
	if (i > j)
		return owns_in_row(m, i, j + 1);
	if (i < j)
		return owns_in_column(m, j, i + 1);
	return owns_in_row(m, i, i + 1) || owns_in_column(m, i, i + 1);
}

/* The distinct pages of other ranks' blocks that this rank reads.  Blocks of a
 * rank follow each other in the order in which they are met here. */
static double pages_to_fetch(const struct lu *m)
{
	uintptr_t *last = app_calloc((size_t)m->app->ranks, sizeof(*last));
	size_t bytes = (size_t)(m->b * m->b) * sizeof(double);
	double pages = 0;

	for (long n = 0; n < m->nb * m->nb; n++) {
		uintptr_t from, to;
		long i, j;
		int r;

		nth_final(m, n, &i, &j);
		r = owner(m, i, j);
		if (r == m->app->rank || !is_read(m, i, j))
			continue;
		from = (uintptr_t)block_of(m, i, j);
		to = (from + bytes - 1) / APP_PAGE;
		from /= APP_PAGE;
		from = last[r] == from ? from + 1 : from;
		pages += (double)(to + 1 - from);
		last[r] = to;
	}
	free(last);
	return pages;
}

static void report_fetches(const struct app *a, const struct lu *m)
{
	double v[2] = { a->traffic.fetched, 0 };

	if (!a->traffic.counted)
		return;
	v[1] = m->plain ? 0 : pages_to_fetch(m);
	app_sum(a, v, 2);
	if (a->rank)
		return;
	printf("lu: pages fetched by %d ranks: %.0f", a->ranks, v[0]);
	if (!m->plain)
		printf(", at least %.0f by the owners of what they compute",
		       v[1]);
	putchar('\n');
}

/* --- the check, by rank 0 -------------------------------------------------------- */

static double factored(const struct lu *m, long i, long j)
{
	return block_of(m, i / m->b, j / m->b)[i % m->b * m->stride + j % m->b];
}

/* x = U^-1 L^-1 x */
static void solve(const struct lu *m, double *x)
{
	for (long i = 0; i < m->n; i++)
		for (long j = 0; j < i; j++)
			x[i] -= factored(m, i, j) * x[j];
	for (long i = m->n - 1; i >= 0; i--) {
		for (long j = i + 1; j < m->n; j++)
			x[i] -= factored(m, i, j) * x[j];
		x[i] /= factored(m, i, i);
	}
}

/* |Ax - b| / (eps n (|A| |x| + |b|)) in the largest-element norms, for a b of
 * random numbers.  Not a number if any part of the factors that counts is. */
static double scaled_residual(const struct lu *m)
{
	double *x = app_calloc((size_t)m->n, sizeof(*x));
	double *rhs = app_calloc((size_t)m->n, sizeof(*rhs));
	double a_norm = 0, x_norm = 0, b_norm = 0, r_norm = 0;

	for (long i = 0; i < m->n; i++)
		x[i] = rhs[i] = app_fraction(~(uint64_t)i) - 0.5;
	solve(m, x);
	for (long i = 0; i < m->n; i++) {
		double r = -rhs[i], row = 0;

		for (long j = 0; j < m->n; j++) {
			double e = element(m->n, i, j);

			r += e * x[j];
			row += fabs(e);
		}
		a_norm = app_worse(a_norm, row);
		x_norm = app_worse(x_norm, fabs(x[i]));
		b_norm = app_worse(b_norm, fabs(rhs[i]));
		r_norm = app_worse(r_norm, fabs(r));
	}
	free(rhs);
	free(x);
	return r_norm /
	       (DBL_EPSILON * (double)m->n * (a_norm * x_norm + b_norm));
}

int app_main(int argc, char **argv)
{
	struct lu m = { 0 };
	const struct app_opt opts[] = {
		{ 'n', "size", "N", &m.n, 768, 200, 1, 32768,
		  "rows and columns of the matrix" },
		{ 'b', "block", "B", &m.b, 32, 16, 1, 1024,
		  "rows and columns of a block" },
		{ 'p', "prefetch", "N", &m.prefetch, 2, 2, 0, 64,
		  "libjia's parameter: pages fetched ahead, at most; more are "
		  "fewer faults, but some of the pages are not final" },
		{ '\0', "plain", NULL, &m.plain, 0, 0, 0, 1,
		  "the matrix by rows, not by blocks" },
	};
	struct app a = { .name = "lu",
			 .about = "Blocked LU factorization of a dense matrix "
				  "of doubles, checked by the residual of a "
				  "solve.",
			 .opts = opts,
			 .nopts = sizeof(opts) / sizeof(opts[0]) };
	double residual = 0;
	char prefetch[24];

	app_init(&a, argc, argv);
	m.app = &a;
	m.nb = (m.n + m.b - 1) / m.b;
	snprintf(prefetch, sizeof(prefetch), "%ld", m.prefetch);
	app_set(&a, "prefetch", prefetch);
	choose_grid(&m);
	allocate(&m);
	fill(&m);
	app_begin(&a);
	factorize(&m);
	app_end(&a);
	app_report(&a, "%ld x %ld doubles, blocks of %ld, %d x %d grid", m.n,
		   m.n, m.b, m.grid_rows, m.grid_cols);
	report_fetches(&a, &m);
	if (a.rank == 0)
		residual = scaled_residual(&m);
	free(m.block);
	return app_verdict(&a, residual < RESIDUAL_MAX,
			   "scaled residual %.4f (limit %.0f)", residual,
			   RESIDUAL_MAX);
}
