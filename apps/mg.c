/* SPDX-License-Identifier: MIT */
/*
 * mg.c - Poisson's equation on a periodic cube by multigrid, as the NAS
 * benchmark MG.
 *
 * Role: the program with many barriers and several grids: neighbours exchange
 *   planes of large grids and, four barriers later, of one of an eighth the size.
 * Invariant: a plane is written by its owner only (but the residual of the first
 *   grid that is rank 0's alone); a barrier lies between that and others' reading
 *   it, and before it is written again.
 * Threads: one per rank.
 * Locks: none.
 *
 * A grid of n^3 points is n planes, dealt out in bands; a plane has its periodic
 * edges in it, the neighbours' planes are read where they are.  Grids that are
 * small belong to rank 0 alone: to wait for others takes longer than to do their
 * work.  A cycle: restrict the residual down to 2^3 points, then go up again:
 * interpolate, residual, smooth.  The right side is +1 at ten random points and -1
 * at ten others.
 *
 * After: Brandt, Multi-level adaptive solutions to boundary-value problems, Math.
 * Comp. 31 (1977); Bailey et al., The NAS parallel benchmarks, RNR-94-007 (1994).
 * In the statistics: two planes refreshed per rank, grid and step; no faults
 * after the first cycle, no diffs; four barriers per cycle and grid that is not
 * rank 0's.
 */
#include "app.h"

#include <math.h>

#define SEED 314159265u
#define FACTOR 1220703125u /* 5^13 */
#define MASK ((1ull << 46) - 1)

enum {
	LEVELS = 11, /* the largest grid has 2^(LEVELS - 1) points a side */
	SOLO = 16, /* grids of so many points a side belong to rank 0 */
	CHARGES = 10 /* points with +1, and with -1 */
};

/* What is allowed of the final norm (as NAS does), and of rounding in it. */
#define NORM_ERROR 1e-8
#define NORM_ROUNDING 1e-14

/* Planes of (n + 2)^2 numbers: point (i, j) is at (i + 1) * (n + 2) + j + 1. */
struct grid {
	long n;
	double **plane; /* this rank's pointers to all planes */
};

struct mg {
	const struct app *app;
	long levels, cycles;
	struct grid u[LEVELS], r[LEVELS],
		v; /* [level]: 2^level points a side */
	double *line[2]; /* private: sums of a row of points */
};

/* Weights of a point, its 6, 12 and 8 neighbours at distances 1, 2 and 3. */
static const double laplace[4] = { -8.0 / 3, 0, 1.0 / 6, 1.0 / 12 };
static const double smoother[4] = { -3.0 / 8, 1.0 / 32, -1.0 / 64, 0 };
static const double restriction[4] = { 0.5, 0.25, 0.125, 0.0625 };

/* NAS's published results. */
static const struct known {
	long levels, cycles;
	double norm;
} known[] = {
	{ 5, 4, 0.5307707005734e-4 },
	{ 7, 4, 0.6467329375339e-5 },
	{ 8, 4, 0.2433365309069e-5 },
};

/* --- grids ------------------------------------------------------------------------------ */

static size_t plane_size(const struct grid *g)
{
	return (size_t)(g->n + 2) * (size_t)(g->n + 2);
}

/* Plane @k of a periodic grid, -1 <= k <= n. */
static double *plane(const struct grid *g, long k)
{
	return g->plane[(k + g->n) % g->n];
}

static bool is_solo(const struct grid *g)
{
	return g->n <= SOLO;
}

/* The planes of @rank: *first .. *first + count - 1.  Returns the count. */
static long planes_of(const struct app *a, const struct grid *g, int rank,
		      long *first)
{
	if (!is_solo(g))
		return app_share(a, g->n, rank, first);
	*first = 0;
	return rank ? 0 : g->n;
}

static long my_planes(const struct mg *m, const struct grid *g, long *first)
{
	return planes_of(m->app, g, m->app->rank, first);
}

/* All have done their part of what @g gets. */
static void meet(const struct mg *m, const struct grid *g)
{
	if (!is_solo(g))
		app_barrier(m->app);
}

static void grid_make(const struct app *a, struct grid *g, const char *label,
		      long n)
{
	long first;

	g->n = n;
	g->plane = app_calloc((size_t)n, sizeof(*g->plane));
	for (int rank = 0; rank < a->ranks; rank++) {
		long count = planes_of(a, g, rank, &first);
		double *p = app_malloc_on(a, label, rank,
					  (size_t)count * plane_size(g) *
						  sizeof(double));

		for (long i = 0; i < count; i++)
			g->plane[first + i] = p + (size_t)i * plane_size(g);
	}
}

/* Copy the periodic edges of a plane. */
static void wrap(const struct grid *g, double *p)
{
	long n = g->n, w = n + 2;

	for (long i = 1; i <= n; i++) {
		p[i * w] = p[i * w + n];
		p[i * w + n + 1] = p[i * w + 1];
	}
	memcpy(p, p + n * w, (size_t)w * sizeof(*p));
	memcpy(p + (n + 1) * w, p + w, (size_t)w * sizeof(*p));
}

/* --- one row of points ------------------------------------------------------------------- */

/* The neighbours of each point of row @i in its own column: those at distance 1
 * but for the row itself, and those at distance 2. */
static void add_columns(const struct grid *g, long k, long i, double *near,
			double *far)
{
	long w = g->n + 2;
	const double *lo = plane(g, k - 1) + i * w, *at = plane(g, k) + i * w;
	const double *hi = plane(g, k + 1) + i * w;

	for (long j = 0; j < w; j++) {
		near[j] = at[j - w] + at[j + w] + lo[j] + hi[j];
		far[j] = lo[j - w] + lo[j + w] + hi[j - w] + hi[j + w];
	}
}

/* The weighted sum of a point and its neighbours; row[j] is the point. */
static inline double weigh(const double *weight, const double *row,
			   const double *near, const double *far, long j)
{
	return weight[0] * row[j] +
	       weight[1] * (row[j - 1] + row[j + 1] + near[j]) +
	       weight[2] * (near[j - 1] + near[j + 1] + far[j]) +
	       weight[3] * (far[j - 1] + far[j + 1]);
}

/* --- operations on my planes ---------------------------------------------------------- */

/* r = v - A u; r and v may be the same. */
static void residual(const struct mg *m, const struct grid *u,
		     const struct grid *v, struct grid *r)
{
	long first, count = my_planes(m, u, &first);
	double *near = m->line[0], *far = m->line[1];
	long w = u->n + 2;

	for (long k = first; k < first + count; k++) {
		for (long i = 1; i <= u->n; i++) {
			const double *row = plane(u, k) + i * w;
			const double *from = plane(v, k) + i * w;
			double *to = plane(r, k) + i * w;

			add_columns(u, k, i, near, far);
			for (long j = 1; j <= u->n; j++)
				to[j] = from[j] -
					weigh(laplace, row, near, far, j);
		}
		wrap(r, plane(r, k));
	}
	meet(m, u);
}

/* u += S r */
static void smooth(const struct mg *m, const struct grid *r, struct grid *u)
{
	long first, count = my_planes(m, u, &first);
	double *near = m->line[0], *far = m->line[1];
	long w = u->n + 2;

	for (long k = first; k < first + count; k++) {
		for (long i = 1; i <= u->n; i++) {
			const double *row = plane(r, k) + i * w;
			double *to = plane(u, k) + i * w;

			add_columns(r, k, i, near, far);
			for (long j = 1; j <= u->n; j++)
				to[j] += weigh(smoother, row, near, far, j);
		}
		wrap(u, plane(u, k));
	}
	meet(m, u);
}

/* The coarse planes that this rank computes: its own, or if rank 0 has all of
 * them, those that lie on its fine planes, which are far more to read for
 * another.  Coarse plane k lies on fine plane 2k + 1. */
static long planes_below(const struct mg *m, const struct grid *fine,
			 const struct grid *coarse, long *first)
{
	long end, count;

	if (!is_solo(coarse) || is_solo(fine))
		return my_planes(m, coarse, first);
	count = my_planes(m, fine, first);
	end = (*first + count) / 2;
	*first /= 2;
	return end - *first;
}

/* Coarse point i lies on fine point 2i + 1. */
static void restrict_to(const struct mg *m, const struct grid *fine,
			struct grid *coarse)
{
	long first, count = planes_below(m, fine, coarse, &first);
	double *near = m->line[0], *far = m->line[1];
	long w = fine->n + 2;

	for (long k = first; k < first + count; k++) {
		for (long i = 1; i <= coarse->n; i++) {
			const double *row = plane(fine, 2 * k + 1) + 2 * i * w;
			double *to = plane(coarse, k) + i * (coarse->n + 2);

			add_columns(fine, 2 * k + 1, 2 * i, near, far);
			for (long j = 1; j <= coarse->n; j++)
				to[j] = weigh(restriction, row, near, far,
					      2 * j);
		}
		wrap(coarse, plane(coarse, k));
	}
	meet(m, fine);
}

/* fine += the coarse grid, interpolated.  A fine row between two coarse ones is
 * the mean of both; one that lies on a coarse row has it twice. */
static void interpolate(const struct mg *m, const struct grid *coarse,
			struct grid *fine)
{
	long first, count = my_planes(m, fine, &first);
	long w = coarse->n + 2;
	double *mean = m->line[0];

	for (long k = first; k < first + count; k++) {
		const double *hi = plane(coarse, k / 2);
		const double *lo = k & 1 ? hi : plane(coarse, k / 2 - 1);

		for (long i = 0; i < fine->n; i++) {
			double *to = plane(fine, k) + (i + 1) * (fine->n + 2);
			long up = (i + 1) / 2 * w, down = (i / 2 + 1) * w;

			for (long j = 0; j < w; j++)
				mean[j] = 0.25 * (lo[up + j] + lo[down + j] +
						  hi[up + j] + hi[down + j]);
			for (long j = 0; j < coarse->n; j++) {
				to[2 * j + 1] += 0.5 * (mean[j] + mean[j + 1]);
				to[2 * j + 2] += mean[j + 1];
			}
		}
		wrap(fine, plane(fine, k));
	}
	meet(m, fine);
}

static void clear(const struct mg *m, struct grid *g)
{
	long first, count = my_planes(m, g, &first);

	for (long k = first; k < first + count; k++)
		memset(g->plane[k], 0, plane_size(g) * sizeof(double));
}

static double norm(const struct mg *m, const struct grid *g)
{
	long first, count = my_planes(m, g, &first);
	double sum = 0, n = (double)g->n;

	for (long k = first; k < first + count; k++)
		for (long i = 1; i <= g->n; i++)
			for (long j = 1; j <= g->n; j++) {
				double x = g->plane[k][i * (g->n + 2) + j];

				sum += x * x;
			}
	app_sum(m->app, &sum, 1);
	return sqrt(sum / (n * n * n));
}

/* --- the solution -------------------------------------------------------------------------- */

/* From the residual on the finest grid, better values there. */
static void cycle(struct mg *m)
{
	long top = m->levels;

	for (long l = top; l > 1; l--)
		restrict_to(m, &m->r[l], &m->r[l - 1]);
	clear(m, &m->u[1]);
	smooth(m, &m->r[1], &m->u[1]);
	for (long l = 2; l <= top; l++) {
		if (l < top)
			clear(m, &m->u[l]);
		if (is_solo(&m->u[l - 1]) && !is_solo(&m->u[l]))
			app_barrier(m->app);
		interpolate(m, &m->u[l - 1], &m->u[l]);
		residual(m, &m->u[l], l < top ? &m->r[l] : &m->v, &m->r[l]);
		smooth(m, &m->r[l], &m->u[l]);
	}
}

/* The norm of the residual after all cycles. */
static double solve(struct mg *m)
{
	struct grid *u = &m->u[m->levels], *r = &m->r[m->levels];

	residual(m, u, &m->v, r);
	for (long i = 0; i < m->cycles; i++) {
		cycle(m);
		residual(m, u, &m->v, r);
	}
	return norm(m, r);
}

/* --- the right side --------------------------------------------------------------------------- */

/* The CHARGES extreme numbers met so far, the least extreme first. */
struct extremes {
	double sign, value[CHARGES];
	long at[CHARGES];
};

static void extremes_see(struct extremes *e, double value, long at)
{
	int i = 0;

	value *= e->sign;
	if (value <= e->value[0])
		return;
	for (; i + 1 < CHARGES && e->value[i + 1] < value; i++) {
		e->value[i] = e->value[i + 1];
		e->at[i] = e->at[i + 1];
	}
	e->value[i] = value;
	e->at[i] = at;
}

static void place(struct mg *m, const struct extremes *e)
{
	long n = m->v.n, first, count = my_planes(m, &m->v, &first);

	for (int i = 0; i < CHARGES; i++) {
		long k = e->at[i] / (n * n), row = e->at[i] / n % n;

		if (k >= first && k < first + count)
			m->v.plane[k][(row + 1) * (n + 2) + e->at[i] % n + 1] =
				e->sign;
	}
}

/* +1 and -1 where the largest and smallest of n^3 random numbers are. */
static void charge(struct mg *m)
{
	struct extremes most = { .sign = 1 }, least = { .sign = -1 };
	long n = m->v.n, first, count = my_planes(m, &m->v, &first);
	uint64_t state = SEED;

	for (int i = 0; i < CHARGES; i++)
		least.value[i] = -1; /* below all that come, which are 0 .. 1 */
	for (long i = 0; i < n * n * n; i++) {
		double value;

		state = state * FACTOR & MASK;
		value = (double)state * 0x1p-46;
		extremes_see(&most, value, i);
		extremes_see(&least, value, i);
	}
	place(m, &most);
	place(m, &least);
	for (long k = first; k < first + count; k++)
		wrap(&m->v, m->v.plane[k]);
	app_barrier(m->app);
}

static void prepare(struct mg *m, const struct app *a)
{
	size_t width = (1ul << m->levels) + 2;

	/* Planes are read and written again and again: none is dropped to see
	 * whether it is used, nor protected because a release finds no change. */
	app_set(a, "update", "always");
	app_set(a, "watch", "0");
	m->app = a;
	for (long l = 1; l <= m->levels; l++) {
		grid_make(a, &m->u[l], "solution", 1l << l);
		grid_make(a, &m->r[l], "residual", 1l << l);
		clear(m, &m->u[l]); /* so that the memory is there */
		clear(m, &m->r[l]);
	}
	grid_make(a, &m->v, "right side", 1l << m->levels);
	for (int i = 0; i < 2; i++)
		m->line[i] = app_calloc(width, sizeof(double));
	charge(m);
}

static void release(struct mg *m)
{
	for (long l = 1; l <= m->levels; l++) {
		free(m->u[l].plane);
		free(m->r[l].plane);
	}
	free(m->v.plane);
	free(m->line[0]);
	free(m->line[1]);
}

/* The result that is known, or that one rank gets. */
static double reference(const struct app *a, const struct mg *m,
			const char **who)
{
	struct mg serial = { .levels = m->levels, .cycles = m->cycles };
	struct app alone = app_alone(a);
	double result;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].levels == m->levels &&
		    known[i].cycles == m->cycles) {
			*who = "NAS's published result";
			return known[i].norm;
		}
	*who = "a serial run";
	prepare(&serial, &alone);
	result = solve(&serial);
	release(&serial);
	return result;
}

int app_main(int argc, char **argv)
{
	struct mg m = { 0 };
	const struct app_opt opts[] = {
		{ 'm', "log2-size", "M", &m.levels, 7, 5, 2, LEVELS - 1,
		  "2^M points a side" },
		{ 'i', "iterations", "N", &m.cycles, 4, 4, 1, 1000, "cycles" },
	};
	struct app a = { .name = "mg",
			 .about = "Poisson's equation by multigrid, as the NAS "
				  "benchmark MG (-m 7 is class W, 8 is A).",
			 .opts = opts,
			 .nopts = sizeof(opts) / sizeof(opts[0]) };
	double result, want = 0;
	const char *who = "";

	app_init(&a, argc, argv);
	prepare(&m, &a);
	app_begin(&a);
	result = solve(&m);
	app_end(&a);
	app_report(&a, "%ld^3 points, %ld cycles", m.v.n, m.cycles);
	if (a.rank == 0)
		want = reference(&a, &m, &who);
	release(&m);
	return app_verdict(&a,
			   a.rank || fabs(result - want) <=
					     NORM_ERROR * want + NORM_ROUNDING,
			   "the residual's norm is %.9e, %.9e by %s", result,
			   want, who);
}
