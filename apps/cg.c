/* SPDX-License-Identifier: MIT */
/*
 * cg.c - conjugate gradients with a sparse matrix: the smallest eigenvalue of a
 * random one, as the NAS benchmark CG, or a system with a matrix from a file.
 *
 * Role: the irregular gather: each rank has rows of the matrix by itself, and
 *   reads the elements of one shared vector that their columns name: all over.
 * Invariant: the shared vector is written by its owners after a sum that all
 *   ranks have added to, so after all have read it; and read after a barrier.
 * Threads: one per rank.
 * Locks: none.
 *
 * The random matrix is the one that the NAS report describes: a sum of outer
 * products of sparse random vectors, weighted from 1 down to 0.1, less a shift.
 * Inverse iteration with 25 steps of conjugate gradients each gives zeta.
 *
 * After: Hestenes and Stiefel, Methods of conjugate gradients for solving linear
 * systems, J. Res. NBS 49 (1952); Bailey et al., The NAS parallel benchmarks,
 * RNR-94-007 (1994).
 * In the statistics: each rank refreshes nearly all of the vector each step; no
 * faults after the first ones; diffs only of the pages in which the shares of
 * two ranks meet; three waits for all ranks a step.
 */
#include "app.h"

#include <math.h>

#include "matrix_market.h"

#define CONDITION 0.1 /* of the random matrix: NAS's rcond */
#define SEED 314159265u
#define FACTOR 1220703125u /* 5^13 */
#define MASK ((1ull << 46) - 1)

enum {
	STEPS = 25 /* of conjugate gradients, for the random matrix */
};

/* What is allowed: of zeta (as NAS does), and of the residual of a system. */
#define ZETA_ERROR 1e-10
#define SYSTEM_ERROR 1e-8
/* The residual, by its recurrence, with which a system counts as solved. */
#define SYSTEM_SOLVED 1e-10

/* My rows: the elements of row i are begin[i - first] .. begin[i - first + 1]. */
struct rows {
	long *begin;
	int *col;
	double *value;
};

struct cg {
	const struct app *app;
	long n, nonzeros, shift, iterations;
	long first, count; /* my rows */
	struct rows rows;
	double *shared; /* the vector that is multiplied by the matrix */
	double *x, *z, *r, *q; /* private: my elements of the others */
};

/* NAS's published results. */
static const struct known {
	long n, nonzeros, shift, iterations;
	double zeta;
} known[] = {
	{ 1400, 7, 10, 15, 8.5971775078648 },
	{ 7000, 8, 12, 15, 10.362595087124 },
	{ 14000, 11, 20, 15, 17.130235054029 },
	{ 75000, 13, 60, 75, 22.712745482631 },
};

/* --- the matrix ---------------------------------------------------------------------- */

/* A list that grows; later sorted by row. */
struct list {
	struct mm_element *element;
	size_t count, room;
};

static void list_add(struct list *l, long row, long col, double value)
{
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : 1024;
		struct mm_element *e =
			realloc(l->element, room * sizeof(*l->element));

		if (!e)
			app_die("no memory for %zu elements", room);
		l->element = e;
		l->room = room;
	}
	l->element[l->count++] = (struct mm_element){ row, col, value };
}

static int by_row(const void *a, const void *b)
{
	const struct mm_element *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return (x->col > y->col) - (x->col < y->col);
}

/* My rows of what is on the list: what has one place is added up. */
static void rows_make(struct cg *c, struct list *l)
{
	size_t left = 0;

	if (l->count)
		qsort(l->element, l->count, sizeof(*l->element), by_row);
	for (size_t i = 0; i < l->count; i++) {
		struct mm_element *e = &l->element[i];

		if (left && !by_row(&l->element[left - 1], e))
			l->element[left - 1].value += e->value;
		else
			l->element[left++] = *e;
	}
	c->rows.col = app_calloc(left, sizeof(int));
	c->rows.value = app_calloc(left, sizeof(double));
	c->rows.begin = app_calloc((size_t)c->count + 1, sizeof(long));
	for (size_t i = 0; i < left; i++) {
		c->rows.begin[l->element[i].row - c->first + 1] = (long)i + 1;
		c->rows.col[i] = (int)l->element[i].col;
		c->rows.value[i] = l->element[i].value;
	}
	free(l->element);
	for (long i = 1; i <= c->count; i++) /* a row may be empty */
		if (c->rows.begin[i] < c->rows.begin[i - 1])
			c->rows.begin[i] = c->rows.begin[i - 1];
}

static bool is_mine(const struct cg *c, long row)
{
	return row >= c->first && row < c->first + c->count;
}

static double next(uint64_t *state)
{
	*state = *state * FACTOR & MASK;
	return (double)*state * 0x1p-46;
}

/* A random vector of @nonzeros elements, and then element @must of 0.5. */
static int sparse_vector(const struct cg *c, uint64_t *state, long must,
			 long *at, double *value)
{
	long space = 2, count = 0, i;

	while (space < c->n)
		space *= 2;
	while (count < c->nonzeros) {
		double v = next(state);
		long place = (long)(next(state) * (double)space);

		for (i = 0; i < count && at[i] != place; i++)
			;
		if (place >= c->n || i < count)
			continue;
		at[count] = place;
		value[count++] = v;
	}
	for (i = 0; i < count && at[i] != must; i++)
		;
	at[i] = must;
	value[i] = 0.5;
	return (int)(i == count ? count + 1 : count);
}

/* Every rank makes the whole matrix and keeps its rows. */
static void random_rows(struct cg *c)
{
	double weight = 1, ratio = pow(CONDITION, 1 / (double)c->n);
	double *value = app_calloc((size_t)c->nonzeros + 1, sizeof(*value));
	long *at = app_calloc((size_t)c->nonzeros + 1, sizeof(*at));
	uint64_t state = SEED;
	struct list l = { 0 };

	next(&state);
	for (long k = 0; k < c->n; k++) {
		int count = sparse_vector(c, &state, k, at, value);

		for (int i = 0; i < count; i++)
			for (int j = 0; j < count && is_mine(c, at[i]); j++)
				list_add(&l, at[i], at[j],
					 weight * value[j] * value[i]);
		if (is_mine(c, k))
			list_add(&l, k, k, CONDITION - (double)c->shift);
		weight *= ratio;
	}
	free(at);
	free(value);
	rows_make(c, &l);
}

static void rows_of(struct cg *c, const struct mm_matrix *m)
{
	struct list l = { 0 };

	for (long i = 0; i < m->count; i++) {
		const struct mm_element *e = &m->element[i];

		if (is_mine(c, e->row))
			list_add(&l, e->row, e->col, e->value);
		if (e->row != e->col && is_mine(c, e->col))
			list_add(&l, e->col, e->row, e->value);
	}
	rows_make(c, &l);
}

/* --- vectors: my elements -------------------------------------------------------------- */

static double *vector(const struct cg *c)
{
	return app_calloc((size_t)c->count, sizeof(double));
}

static void prepare(struct cg *c, const struct app *a)
{
	c->app = a;
	c->count = app_share(a, c->n, a->rank, &c->first);
	c->shared = app_malloc(a, "vector", (size_t)c->n * sizeof(double));
	c->x = vector(c);
	c->z = vector(c);
	c->r = vector(c);
	c->q = vector(c);
}

static void release(struct cg *c)
{
	free(c->rows.begin);
	free(c->rows.col);
	free(c->rows.value);
	free(c->x);
	free(c->z);
	free(c->r);
	free(c->q);
}

static double dot(const struct cg *c, const double *a, const double *b)
{
	double sum = 0;

	for (long i = 0; i < c->count; i++)
		sum += a[i] * b[i];
	app_sum(c->app, &sum, 1);
	return sum;
}

/* q = A shared, for my rows. */
static void multiply(const struct cg *c)
{
	const double *shared = c->shared, *value = c->rows.value;
	const int *col = c->rows.col;

	for (long i = 0; i < c->count; i++) {
		double sum = 0;

		for (long k = c->rows.begin[i]; k < c->rows.begin[i + 1]; k++)
			sum += value[k] * shared[col[k]];
		c->q[i] = sum;
	}
}

/* --- conjugate gradients ------------------------------------------------------------- */

/* Solve A z = x from z = 0, in @steps steps or until the residual is @enough of
 * x; returns the steps done. */
static long solve(struct cg *c, long steps, double enough)
{
	double *p = c->shared + c->first, rho, start;
	long step = 0;

	for (long i = 0; i < c->count; i++) {
		c->z[i] = 0;
		c->r[i] = p[i] = c->x[i];
	}
	rho = start = dot(c, c->r, c->r);
	for (; step < steps && rho > enough * enough * start; step++) {
		double alpha, before = rho;

		app_barrier(c->app);
		multiply(c);
		alpha = rho / dot(c, p, c->q);
		for (long i = 0; i < c->count; i++) {
			c->z[i] += alpha * p[i];
			c->r[i] -= alpha * c->q[i];
		}
		rho = dot(c, c->r, c->r);
		for (long i = 0; i < c->count; i++)
			p[i] = c->r[i] + rho / before * p[i];
	}
	return step;
}

/* Inverse iteration: the eigenvalue next to the shift. */
static double eigenvalue(struct cg *c)
{
	double zeta = 0;

	for (long i = 0; i < c->count; i++)
		c->x[i] = 1;
	for (long n = 0; n < c->iterations; n++) {
		double norm;

		solve(c, STEPS, 0);
		zeta = (double)c->shift + 1 / dot(c, c->x, c->z);
		norm = sqrt(dot(c, c->z, c->z));
		for (long i = 0; i < c->count; i++)
			c->x[i] = c->z[i] / norm;
	}
	return zeta;
}

/* --- the random matrix ----------------------------------------------------------------- */

/* The result that is known, or that one rank gets. */
static double reference(const struct app *a, const struct cg *c,
			const char **who)
{
	struct app alone = app_alone(a);
	struct cg serial = *c;
	double zeta;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].n == c->n && known[i].nonzeros == c->nonzeros &&
		    known[i].shift == c->shift &&
		    known[i].iterations == c->iterations) {
			*who = "NAS's published result";
			return known[i].zeta;
		}
	*who = "a serial run";
	prepare(&serial, &alone);
	random_rows(&serial);
	zeta = eigenvalue(&serial);
	release(&serial);
	return zeta;
}

static int run_random(struct app *a, struct cg *c)
{
	double zeta, want = 0, limit;
	const char *who = "";

	if (c->nonzeros > c->n / 2)
		app_refuse(a, "--nonzeros=%ld of %ld rows: half at most",
			   c->nonzeros, c->n);
	prepare(c, a);
	random_rows(c);
	app_begin(a);
	zeta = eigenvalue(c);
	app_end(a);
	app_report(a, "%ld rows, %ld iterations of %d steps", c->n,
		   c->iterations, STEPS);
	if (a->rank == 0)
		want = reference(a, c, &who);
	release(c);
	limit = ZETA_ERROR * fabs(want);
	return app_verdict(a, a->rank || fabs(zeta - want) <= limit,
			   "zeta %.9f, %.9f by %s", zeta, want, who);
}

/* --- a matrix from a file -------------------------------------------------------------- */

/* Rank 0, by itself: |A x - A 1| / |A 1| in the largest-element norm, for the
 * x in shared memory. */
static double system_residual(const struct cg *c, const struct mm_matrix *m)
{
	double *want = app_calloc((size_t)c->n, sizeof(double));
	double *got = app_calloc((size_t)c->n, sizeof(double));
	double residual = 0, norm = 0;

	for (long i = 0; i < m->count; i++) {
		const struct mm_element *e = &m->element[i];

		want[e->row] += e->value;
		got[e->row] += e->value * c->shared[e->col];
		if (e->row == e->col)
			continue;
		want[e->col] += e->value;
		got[e->col] += e->value * c->shared[e->row];
	}
	for (long i = 0; i < c->n; i++) {
		residual = app_worse(residual, fabs(got[i] - want[i]));
		norm = app_worse(norm, fabs(want[i]));
	}
	free(want);
	free(got);
	return norm > 0 ? residual / norm : residual;
}

/* x = A 1 */
static void right_side(struct cg *c)
{
	for (long i = 0; i < c->count; i++)
		c->shared[c->first + i] = 1;
	app_barrier(c->app);
	multiply(c);
	memcpy(c->x, c->q, (size_t)c->count * sizeof(double));
	app_barrier(c->app);
}

static int run_file(struct app *a, struct cg *c)
{
	struct mm_matrix m = mm_load(a, a->operand_value);
	double residual = 0;
	long steps;

	c->n = m.n;
	prepare(c, a);
	rows_of(c, &m);
	right_side(c);
	app_begin(a);
	steps = solve(c, 20 * c->n, SYSTEM_SOLVED);
	app_end(a);
	memcpy(c->shared + c->first, c->z, (size_t)c->count * sizeof(double));
	app_barrier(a);
	app_report(a, "%ld rows, %ld elements of %s, %ld steps", m.n, m.count,
		   a->operand_value, steps);
	if (a->rank == 0)
		residual = system_residual(c, &m);
	release(c);
	return app_verdict(a, residual < SYSTEM_ERROR,
			   "the residual of the system is %s %.0e",
			   residual < SYSTEM_ERROR ? "below" : "above",
			   SYSTEM_ERROR);
}

int app_main(int argc, char **argv)
{
	struct cg c = { 0 };
	const struct app_opt opts[] = {
		{ 'n', "size", "N", &c.n, 7000, 1400, 8, 10000000,
		  "rows of the random matrix" },
		{ 'z', "nonzeros", "Z", &c.nonzeros, 8, 7, 1, 100,
		  "elements of each random vector" },
		{ 's', "shift", "S", &c.shift, 12, 10, 1, 1000,
		  "what the eigenvalue is near to" },
		{ 'i', "iterations", "N", &c.iterations, 15, 15, 1, 10000,
		  "inverse iterations" },
	};
	struct app a = { .name = "cg",
			 .about = "Conjugate gradients: the eigenvalue of a "
				  "random sparse matrix, as the NAS benchmark "
				  "CG (7000 8 12 15\nis class W, 14000 11 20 "
				  "15 is A), or the solution of a system.",
			 .opts = opts,
			 .nopts = sizeof(opts) / sizeof(opts[0]),
			 .operand = "FILE",
			 .operand_help = "a symmetric positive definite matrix "
					 "in Matrix Market format" };

	app_init(&a, argc, argv);
	return a.operand_value ? run_file(&a, &c) : run_random(&a, &c);
}
