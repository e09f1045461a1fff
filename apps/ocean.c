/* SPDX-License-Identifier: MIT */
/*
 * ocean.c - currents of a square basin that the wind drives, in one layer.
 *
 * Role: the program of nearest neighbours: each rank has a band of rows of all
 *   grids, reads one row above and one below, and meets the others hundreds of
 *   times.
 * Invariant: a row is written by its owner only (but the source of the first
 *   grid that is rank 0's alone); a sweep writes points of one colour and reads, of
 *   other rows, the other colour only; a barrier ends it.
 * Threads: one per rank.
 * Locks: none.
 *
 * The vorticity is carried along by the current, turned by the planet, driven by
 * the wind, slowed by the bottom and mixed (Adams-Bashforth steps; the transport
 * in Arakawa's form, which neither makes nor destroys energy).  The stream
 * function follows from Laplace(stream) = vorticity, by multigrid: red-black
 * Gauss-Seidel, and since the residual of one colour is 0 then, half of it is
 * what the next coarser grid gets.  Grids that are small belong to rank 0 alone:
 * to wait for neighbours takes longer than to do their work.
 *
 * After: Stommel, The westward intensification of wind-driven ocean currents,
 * Trans. AGU 29 (1948); Arakawa, Computational design for long-term numerical
 * integration of the equations of fluid motion, J. Comp. Physics 1 (1966);
 * Brandt, Math. Comp. 31 (1977).
 * In the statistics: no faults after the first step; a few rows refreshed at
 * each barrier; diffs of that one source only; most of the time in barriers if the grid is small.
 */
#include "app.h"

#include <math.h>

enum {
	LEVELS = 16, /* grids, at most */
	SOLO = 65, /* grids of so many points a side belong to rank 0 */
	COARSEST = 17, /* the last grid has so many points a side, at most */
	BEFORE = 2, /* sweeps over both colours before and after */
	AFTER = 1,
	CYCLES = 50 /* a solution takes so many cycles, at most */
};

/* In units of the basin's size and of the time that a wave takes to cross it. */
#define STEP 0.05 /* of time */
#define INERTIA 1e-3 /* how much transport matters */
#define FRICTION 0.02 /* of the bottom */
#define MIXING 2.7e-5
#define MIXING_STABLE 0.1 /* of the spacing squared in a step */
/* A residual of this part of the vorticity counts as solved. */
#define SOLVED 1e-6

struct grid {
	long n; /* points a side, with the shore */
	double h; /* between points */
	double **stream, **source; /* [row]: pointers of this rank */
};

struct ocean {
	const struct app *app;
	long size, steps;
	int levels;
	struct grid grid[LEVELS]; /* the finest first; its source: vorticity */
	double *change, *before; /* private: of the vorticity of my rows */
	long cycles; /* so far */
};

/* --- whose rows ---------------------------------------------------------------------- */

static bool is_solo(const struct grid *g)
{
	return g->n <= SOLO;
}

/* The rows of @rank that are not shore. */
static long rows_of(const struct ocean *o, const struct grid *g, int rank,
		    long *first)
{
	long count;

	if (is_solo(g)) {
		*first = 1;
		return rank ? 0 : g->n - 2;
	}
	count = app_share(o->app, g->n - 2, rank, first);
	++*first;
	return count;
}

static long my_rows(const struct ocean *o, const struct grid *g, long *first)
{
	return rows_of(o, g, o->app->rank, first);
}

static void meet(const struct ocean *o, const struct grid *g)
{
	if (!is_solo(g))
		app_barrier(o->app);
}

/* The rows of a rank lie together, the shore with its neighbours. */
static double **field(const struct ocean *o, const struct grid *g,
		      const char *label)
{
	double **row = app_calloc((size_t)g->n, sizeof(*row));

	for (int rank = 0; rank < o->app->ranks; rank++) {
		long first, count = rows_of(o, g, rank, &first), end;
		double *p;

		if (!count)
			continue;
		end = first + count == g->n - 1 ? g->n : first + count;
		first = first == 1 ? 0 : first;
		p = app_malloc_on(o->app, label, rank,
				  (size_t)((end - first) * g->n) * sizeof(*p));
		for (long i = first; i < end; i++, p += g->n)
			row[i] = p;
	}
	return row;
}

/* --- the stream function ---------------------------------------------------------------- */

/* Relax the points of one colour. */
static void relax(const struct ocean *o, const struct grid *g, int colour)
{
	long first, count = my_rows(o, g, &first);
	double square = g->h * g->h;

	for (long i = first; i < first + count; i++) {
		const double *up = g->stream[i - 1], *down = g->stream[i + 1];
		const double *source = g->source[i];
		double *at = g->stream[i];

		for (long j = 1 + ((i + 1 + colour) & 1); j < g->n - 1; j += 2)
			at[j] = 0.25 *
				((up[j] + down[j]) + (at[j - 1] + at[j + 1]) -
				 square * source[j]);
	}
	meet(o, g);
}

static double residual(const struct grid *g, long i, long j)
{
	const double *at = g->stream[i];

	return g->source[i][j] - ((g->stream[i - 1][j] + g->stream[i + 1][j]) +
				  (at[j - 1] + at[j + 1]) - 4 * at[j]) /
					 (g->h * g->h);
}

/* The coarse rows for which this rank computes the source: its own, or if rank 0
 * has all of them, those that lie on its fine rows (which are far more to read
 * for another than one coarse row is to write). */
static long rows_below(const struct ocean *o, const struct grid *fine,
		       const struct grid *coarse, long *first)
{
	long end, count;

	if (!is_solo(coarse) || is_solo(fine))
		return my_rows(o, coarse, first);
	count = my_rows(o, fine, first);
	end = (*first + count - 1) / 2 + 1;
	*first = (*first + 1) / 2;
	return end > *first ? end - *first : 0;
}

/* The source of the coarser grid, and nothing to begin with there. */
static void coarsen(const struct ocean *o, const struct grid *fine,
		    const struct grid *coarse)
{
	long first, count = rows_below(o, fine, coarse, &first);

	for (long i = first; i < first + count; i++)
		for (long j = 1; j < coarse->n - 1; j++)
			coarse->source[i][j] =
				0.5 * residual(fine, 2 * i, 2 * j);
	count = my_rows(o, coarse, &first);
	for (long i = first; i < first + count; i++)
		memset(coarse->stream[i] + 1, 0,
		       (size_t)(coarse->n - 2) * sizeof(double));
	meet(o, fine);
}

/* Add the coarser grid's stream to the finer one's, interpolated: a row between
 * two coarse ones is the mean of both, one on a coarse row has it twice. */
static void refine(const struct ocean *o, const struct grid *coarse,
		   const struct grid *fine)
{
	long first, count = my_rows(o, fine, &first);

	for (long i = first; i < first + count; i++) {
		const double *up = coarse->stream[i / 2];
		const double *down = coarse->stream[(i + 1) / 2];
		double *at = fine->stream[i];

		for (long j = 1; j < fine->n - 1; j++)
			at[j] += 0.25 * ((up[j / 2] + down[j / 2]) +
					 (up[(j + 1) / 2] + down[(j + 1) / 2]));
	}
	meet(o, fine);
}

static void smooth(const struct ocean *o, const struct grid *g, long sweeps)
{
	for (long i = 0; i < sweeps; i++)
		for (int colour = 0; colour < 2; colour++)
			relax(o, g, colour);
}

/* One V cycle: down, then up again. */
static void cycle(const struct ocean *o)
{
	const struct grid *g = o->grid;
	int last = o->levels - 1;

	for (int l = 0; l < last; l++) {
		smooth(o, &g[l], BEFORE);
		coarsen(o, &g[l], &g[l + 1]);
	}
	smooth(o, &g[last], 2 * g[last].n);
	for (int l = last; l > 0; l--) {
		if (is_solo(&g[l]) && !is_solo(&g[l - 1]))
			app_barrier(o->app);
		refine(o, &g[l], &g[l - 1]);
		smooth(o, &g[l - 1], AFTER);
	}
	if (is_solo(g))
		app_barrier(o->app);
}

/* The largest residual of all, as a part of the largest vorticity. */
static double worst_residual(const struct ocean *o)
{
	const struct grid *g = o->grid;
	long first, count = my_rows(o, g, &first);
	double v[2] = { 0, 0 };

	for (long i = first; i < first + count; i++)
		for (long j = 1; j < g->n - 1; j++) {
			v[0] = app_worse(v[0], fabs(residual(g, i, j)));
			v[1] = app_worse(v[1], fabs(g->source[i][j]));
		}
	app_max(o->app, v, 2);
	return v[1] > 0 ? v[0] / v[1] : v[0];
}

static void solve(struct ocean *o)
{
	for (int i = 0; i < CYCLES && worst_residual(o) > SOLVED; i++) {
		cycle(o);
		o->cycles++;
	}
}

/* --- the vorticity ------------------------------------------------------------------------ */

/* Arakawa's form of what transport changes at (i, j), times 12 h^2. */
static double transport(const struct grid *g, long i, long j)
{
	const double *pn = g->stream[i + 1] + j, *zn = g->source[i + 1] + j;
	const double *p = g->stream[i] + j, *z = g->source[i] + j;
	const double *ps = g->stream[i - 1] + j, *zs = g->source[i - 1] + j;
	double a = (p[1] - p[-1]) * (zn[0] - zs[0]) -
		   (pn[0] - ps[0]) * (z[1] - z[-1]);
	double b = p[1] * (zn[1] - zs[1]) - p[-1] * (zn[-1] - zs[-1]) -
		   pn[0] * (zn[1] - zn[-1]) + ps[0] * (zs[1] - zs[-1]);
	double c = pn[1] * (zn[0] - z[1]) - ps[-1] * (z[-1] - zs[0]) -
		   pn[-1] * (zn[0] - z[-1]) + ps[1] * (z[1] - zs[0]);

	return a + b + c;
}

/* The change of the vorticity of a row with time. */
static void change_row(const struct grid *g, long i, double *change)
{
	double square = g->h * g->h, wind = -sin(M_PI * g->h * (double)i);
	double mixing = fmin(MIXING, MIXING_STABLE * square / STEP);

	for (long j = 1; j < g->n - 1; j++) {
		const double *z = g->source[i] + j;
		double spread = (g->source[i - 1][j] + g->source[i + 1][j]) +
				(z[-1] + z[1]) - 4 * z[0];
		double turn = (g->stream[i][j + 1] - g->stream[i][j - 1]) /
			      (2 * g->h);

		change[j] = wind - turn - FRICTION * z[0] +
			    mixing * spread / square -
			    INERTIA * transport(g, i, j) / (12 * square);
	}
}

/* One step of time: the changes from what is; then the new vorticity. */
static void advance(struct ocean *o, bool first_step)
{
	const struct grid *g = o->grid;
	long first, count = my_rows(o, g, &first);
	double *swap = o->before;

	o->before = o->change;
	o->change = swap;
	for (long i = 0; i < count; i++)
		change_row(g, first + i, o->change + i * g->n);
	app_barrier(o->app);
	for (long i = 0; i < count; i++)
		for (long j = 1; j < g->n - 1; j++) {
			double now = o->change[i * g->n + j];
			double old = o->before[i * g->n + j];

			g->source[first + i][j] +=
				STEP *
				(first_step ? now : 1.5 * now - 0.5 * old);
		}
	app_barrier(o->app);
}

static void run(struct ocean *o)
{
	for (long i = 0; i < o->steps; i++) {
		app_phase(o->app, "vorticity");
		advance(o, i == 0);
		app_phase(o->app, "stream");
		solve(o);
	}
}

/* --- the whole ----------------------------------------------------------------------------- */

/* How many grids @size points make, each of half the spaces of the one before;
 * 0 if the last is too large. */
static int count_levels(long size)
{
	int levels = 1;

	for (; size > 3 && (size - 1) % 2 == 0 && levels < LEVELS; levels++)
		size = (size - 1) / 2 + 1;
	return size <= COARSEST ? levels : 0;
}

/* The next size from @size on that has enough grids. */
static long good_size(long size)
{
	while (!count_levels(size))
		size++;
	return size;
}

static void prepare(struct ocean *o, const struct app *a)
{
	long n = o->size, rows;

	/* Rows are read and written again and again, some of them only once in
	 * hundreds of barriers: none is dropped to see whether it is used, nor
	 * protected to see whether it is written. */
	app_set(a, "update", "always");
	app_set(a, "keep", "1000000");
	o->app = a;
	o->levels = count_levels(n);
	for (int l = 0; l < o->levels; l++, n = (n - 1) / 2 + 1) {
		struct grid *g = &o->grid[l];

		g->n = n;
		g->h = 1 / (double)(n - 1);
		g->stream = field(o, g, l ? "coarse stream" : "stream");
		g->source = field(o, g, l ? "coarse source" : "vorticity");
	}
	rows = my_rows(o, o->grid, &n);
	o->change = app_calloc((size_t)(rows * o->size), sizeof(double));
	o->before = app_calloc((size_t)(rows * o->size), sizeof(double));
	o->cycles = 0;
}

static void release(struct ocean *o)
{
	for (int l = 0; l < o->levels; l++) {
		free(o->grid[l].stream);
		free(o->grid[l].source);
	}
	free(o->change);
	free(o->before);
}

/* Rank 0: how many numbers differ in a bit from those of a serial run. */
static long differences(const struct app *a, const struct ocean *o)
{
	struct app alone = app_alone(a);
	struct ocean serial = { .size = o->size, .steps = o->steps };
	long bad = 0;

	prepare(&serial, &alone);
	run(&serial);
	for (long i = 1; i < o->size - 1; i++)
		for (long j = 1; j < o->size - 1; j++) {
			const struct grid *x = o->grid, *y = serial.grid;

			bad += memcmp(&x->stream[i][j], &y->stream[i][j],
				      sizeof(double)) != 0;
			bad += memcmp(&x->source[i][j], &y->source[i][j],
				      sizeof(double)) != 0;
		}
	bad += serial.cycles != o->cycles;
	release(&serial);
	return bad;
}

int app_main(int argc, char **argv)
{
	struct ocean o = { 0 };
	const struct app_opt opts[] = {
		{ 'n', "size", "N", &o.size, 257, 65, 3, 16385,
		  "points a side, one more than a multiple of a power of 2" },
		{ 's', "steps", "N", &o.steps, 10, 4, 1, 100000,
		  "steps of time" },
	};
	struct app a = { .name = "ocean",
			 .about = "Currents of a square basin, driven by the "
				  "wind, compared with a serial run.",
			 .opts = opts,
			 .nopts = sizeof(opts) / sizeof(opts[0]) };
	double worst;
	long bad = 0;

	app_init(&a, argc, argv);
	if (!count_levels(o.size))
		app_refuse(&a,
			   "--size=%ld: %ld spaces cannot be halved often "
			   "enough; the next size that works is %ld",
			   o.size, o.size - 1, good_size(o.size));
	prepare(&o, &a);
	app_begin(&a);
	run(&o);
	app_end(&a);
	app_report(&a, "%ld x %ld points, %ld steps, %ld cycles", o.size,
		   o.size, o.steps, o.cycles);
	worst = worst_residual(&o);
	if (a.rank == 0)
		bad = differences(&a, &o);
	app_barrier(&a);
	release(&o);
	return app_verdict(&a, !bad && worst <= SOLVED,
			   "%ld of %ld numbers differ from a serial run, "
			   "residual %.1e (limit %.0e)",
			   bad, 2 * (o.size - 2) * (o.size - 2), worst, SOLVED);
}
