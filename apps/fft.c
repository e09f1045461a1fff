/* SPDX-License-Identifier: MIT */
/*
 * fft.c - the Fourier transform of 2^M complex numbers, by the six-step method.
 *
 * Role: the program that sends everything everywhere: three times each rank
 *   reads a part of every other rank's rows, and writes its own rows only.
 * Invariant: a matrix is written once, before the barrier in front of the
 *   transpose that reads it, and not again.  So there are no diffs, and what was
 *   read from others need not be kept.
 * Threads: one per rank.
 * Locks: none.
 *
 * The numbers are a matrix of N1 x N2.  Transpose; transform the rows; multiply
 * element (j, k) by the N-th root of one to the power of jk; transpose; transform
 * the rows; transpose.  The result is in natural order, and the inverse is the
 * same from the other matrix back, with conjugate roots.
 *
 * A rank's rows are cut into blocks of columns, one for each rank that will read
 * them as its own: each lies together, so it is fetched in sequence, and no page
 * of it in vain.  A few rows at a time are gathered from the blocks of all ranks,
 * transformed where they fit into the second level cache, and stored as blocks.
 *
 * After: Bailey, FFTs in external or hierarchical memory, J. Supercomputing 4
 * (1990); blocks: Woo, Singh and Henry, The performance advantages of integrating
 * block data transfer in cache-coherent multiprocessors (1994); rows by Stockham's
 * autosort: Cochran et al., What is the fast Fourier transform? (1967).
 * In the statistics: bytes received are 3 (P-1)/P of the data; pages fetched, in
 * long runs; no diffs, nothing refreshed, no write faults.
 */
#include "app.h"

#include <math.h>

enum {
	STRIP = 16, /* rows that are gathered at a time */
	GAP = 4, /* numbers between them: or all would fall into one cache set */
	STEPS = 3, /* transposes */
	SAMPLES = 8 /* results that are computed by the definition, too */
};

/* What is allowed of the typical size of a result, the root of N. */
#define ERROR_MAX 1e-10

struct cx {
	double re, im;
};

/* Block (r, q) has columns @q's share of the rows that are rank @r's, row by
 * row; its home is @r.  So (r, q) is what @q reads in the next transpose. */
struct matrix {
	long rows, cols;
	struct cx **block; /* [r * ranks + q]: this rank's pointers */
};

/* The n-th roots of one, in two steps: root k is low[k % width] times
 * high[k / width]. */
struct roots {
	long n, width;
	struct cx *low, *high;
};

struct fft {
	const struct app *app;
	long m, n;
	long warm; /* transforms before time and counters start */
	/* The numbers, two steps on the way, the result; every other one has
	 * N1 rows. */
	struct matrix at[STEPS + 1];
	struct roots roots;
	/* Private. */
	struct cx *table[2]; /* roots for rows of at[0] and of at[1] */
	struct cx *strip, *scratch; /* STRIP rows; one row */
	long pitch; /* from a row of strip to the next */
};

static struct cx times(struct cx x, struct cx y)
{
	return (struct cx){ x.re * y.re - x.im * y.im,
			    x.re * y.im + x.im * y.re };
}

static struct cx unit(double turns)
{
	double angle = -2 * M_PI * turns;

	return (struct cx){ cos(angle), sin(angle) };
}

static void roots_make(struct roots *r, long n)
{
	long high;

	r->n = n;
	for (r->width = 1; r->width * r->width < n;)
		r->width *= 2;
	high = n / r->width;
	r->low = app_calloc((size_t)r->width, sizeof(*r->low));
	r->high = app_calloc((size_t)high, sizeof(*r->high));
	for (long i = 0; i < r->width; i++)
		r->low[i] = unit((double)i / (double)n);
	for (long i = 0; i < high; i++)
		r->high[i] = unit((double)(i * r->width) / (double)n);
}

static struct cx root(const struct roots *r, long k)
{
	return times(r->low[k % r->width], r->high[k / r->width]);
}

/* --- rows ----------------------------------------------------------------------- */

/* One stage: butterflies @half apart, of which @done results lie together. */
static void stage(const struct cx *restrict x, struct cx *restrict y, long half,
		  long done, const struct cx *w, double sign)
{
	for (long p = 0; p < half; p++) {
		struct cx f = { w[p * done].re, sign * w[p * done].im };
		const struct cx *lo = x + done * p, *hi = lo + done * half;
		struct cx *out = y + done * 2 * p;

		for (long q = 0; q < done; q++) {
			struct cx d = { lo[q].re - hi[q].re,
					lo[q].im - hi[q].im };

			out[q].re = lo[q].re + hi[q].re;
			out[q].im = lo[q].im + hi[q].im;
			out[q + done].re = d.re * f.re - d.im * f.im;
			out[q + done].im = d.re * f.im + d.im * f.re;
		}
	}
}

/* Transform @x[@n] in place; @w are the n-th roots.  @sign -1: the inverse. */
static void transform_row(struct cx *x, struct cx *scratch, const struct cx *w,
			  long n, double sign)
{
	struct cx *from = x, *to = scratch;

	for (long half = n / 2, done = 1; half; half /= 2, done *= 2) {
		struct cx *swap = from;

		stage(from, to, half, done, w, sign);
		from = to;
		to = swap;
	}
	if (from != x)
		memcpy(x, from, (size_t)n * sizeof(*x));
}

/* Multiply element (j, k) of a row by root jk. */
static void twiddle(const struct fft *f, struct cx *row, long j, long cols,
		    double sign)
{
	for (long k = 0; k < cols; k++) {
		struct cx w = root(&f->roots, j * k);

		w.im *= sign;
		row[k] = times(row[k], w);
	}
}

/* --- blocks ----------------------------------------------------------------------- */

static void matrix_make(const struct app *a, struct matrix *m,
			const char *label, long rows, long cols)
{
	long first;

	m->rows = rows;
	m->cols = cols;
	m->block = app_calloc((size_t)a->ranks * (size_t)a->ranks,
			      sizeof(struct cx *));
	for (int r = 0; r < a->ranks; r++)
		for (int q = 0; q < a->ranks; q++) {
			long size = app_share(a, rows, r, &first) *
				    app_share(a, cols, q, &first);

			m->block[r * a->ranks + q] = app_malloc_on(
				a, label, r, (size_t)size * sizeof(struct cx));
		}
}

/* The rank whose share of @total things number @i is in; *first and *count are
 * that share. */
static int rank_of(const struct app *a, long total, long i, long *first,
		   long *count)
{
	int rank = 0;

	*count = app_share(a, total, 0, first);
	while (i >= *first + *count)
		*count = app_share(a, total, ++rank, first);
	return rank;
}

static struct cx element(const struct app *a, const struct matrix *m, long i,
			 long j)
{
	long row, col, rows, cols;
	int r = rank_of(a, m->rows, i, &row, &rows);
	int q = rank_of(a, m->cols, j, &col, &cols);

	return m->block[r * a->ranks + q][(i - row) * cols + j - col];
}

/* Rows @i .. @i + @count - 1 of mine, from f->strip into @m. */
static void store(const struct fft *f, struct matrix *m, long i, long count)
{
	const struct app *a = f->app;
	long row, col;

	app_share(a, m->rows, a->rank, &row);
	for (int q = 0; q < a->ranks; q++) {
		long cols = app_share(a, m->cols, q, &col);
		struct cx *to =
			m->block[a->rank * a->ranks + q] + (i - row) * cols;

		for (long k = 0; k < count; k++, to += cols)
			memcpy(to, f->strip + k * f->pitch + col,
			       (size_t)cols * sizeof(*to));
	}
}

/* Columns @i .. @i + @count - 1 of @m, which are mine, into f->strip as rows:
 * from the block of each rank a piece of each row. */
static void gather(const struct fft *f, const struct matrix *m, long i,
		   long count)
{
	const struct app *a = f->app;
	long row, col, cols = app_share(a, m->cols, a->rank, &col);

	for (int r = 0; r < a->ranks; r++) {
		long rows = app_share(a, m->rows, r, &row);
		const struct cx *from =
			m->block[r * a->ranks + a->rank] + i - col;

		for (long j = row; j < row + rows; j++, from += cols)
			for (long k = 0; k < count; k++)
				f->strip[k * f->pitch + j] = from[k];
	}
}

/* Others' blocks that I am about to read; each rank begins with the next one's,
 * so that not all read from the same one. */
static void fetch(const struct app *a, const struct matrix *m)
{
	long first, cols = app_share(a, m->cols, a->rank, &first);

	for (int i = 1; i < a->ranks; i++) {
		int r = (a->rank + i) % a->ranks;
		long rows = app_share(a, m->rows, r, &first);

		app_fetch(a, m->block[r * a->ranks + a->rank],
			  (size_t)(rows * cols) * sizeof(struct cx));
	}
}

/* --- the whole ---------------------------------------------------------------------- */

/* Transpose @from to @to; transform the rows if @table has their roots, and if
 * @turn multiply by roots of all. */
static void step(const struct fft *f, const struct matrix *from,
		 struct matrix *to, const struct cx *table, bool turn,
		 double sign)
{
	long first, rows = app_share(f->app, to->rows, f->app->rank, &first);

	app_barrier(f->app);
	app_phase(f->app, "fetch");
	fetch(f->app, from);
	app_phase(f->app, "rows");
	for (long i = first, count; i < first + rows; i += count) {
		count = first + rows - i < STRIP ? first + rows - i : STRIP;
		gather(f, from, i, count);
		for (long k = 0; k < count; k++) {
			struct cx *row = f->strip + k * f->pitch;

			if (table)
				transform_row(row, f->scratch, table, to->cols,
					      sign);
			if (turn)
				twiddle(f, row, i + k, to->cols, sign);
		}
		store(f, to, i, count);
	}
}

/* From the numbers to the result, or (@sign -1) back. */
static void transform(struct fft *f, double sign)
{
	for (int i = 0; i < STEPS; i++) {
		int from = sign > 0 ? i : STEPS - i;
		int to = sign > 0 ? i + 1 : STEPS - i - 1;

		step(f, &f->at[from], &f->at[to],
		     i < 2 ? f->table[to % 2] : NULL, i == 0, sign);
	}
}

static struct cx *row_table(long n)
{
	struct cx *w = app_calloc((size_t)n / 2 + 1, sizeof(*w));

	for (long k = 0; k < n / 2; k++)
		w[k] = unit((double)k / (double)n);
	return w;
}

static struct cx input(long i)
{
	return (struct cx){ app_fraction(2 * (uint64_t)i) - 0.5,
			    app_fraction(2 * (uint64_t)i + 1) - 0.5 };
}

/* My numbers; and 0 to all that will be written, so that the memory is there. */
static void fill(struct fft *f)
{
	for (int at = STEPS; at >= 0; at--) {
		struct matrix *m = &f->at[at];
		long first, count;

		count = app_share(f->app, m->rows, f->app->rank, &first);
		for (long i = first; i < first + count; i++) {
			for (long j = 0; at == 0 && j < m->cols; j++)
				f->strip[j] = input(i * m->cols + j);
			store(f, m, i, 1);
		}
	}
}

/* What others write is read once, and what was read is not written again: no
 * copy is kept up to date, nor is anything watched for changes.  Blocks of others
 * are read from end to end, so a unit may be large; and no unit is read but these. */
static void prepare(struct fft *f, const struct app *a)
{
	static const char *const label[] = { "numbers", "first transpose",
					     "second transpose", "result" };
	long rows = 1l << f->m / 2, cols = 1l << (f->m - f->m / 2);

	app_set(a, "update", "never");
	app_set(a, "watch_new", "0");
	app_set(a, "block", "64k");
	app_set(a, "prefetch", "0");
	f->app = a;
	f->n = rows * cols;
	for (int i = 0; i <= STEPS; i++)
		matrix_make(a, &f->at[i], label[i], i % 2 ? cols : rows,
			    i % 2 ? rows : cols);
	roots_make(&f->roots, f->n);
	f->table[0] = row_table(cols);
	f->table[1] = row_table(rows);
	f->scratch = app_calloc((size_t)cols, sizeof(*f->scratch));
	f->pitch = cols + GAP;
	f->strip = app_calloc((size_t)f->pitch * STRIP, sizeof(*f->strip));
	fill(f);
}

static void release(struct fft *f)
{
	free(f->scratch);
	free(f->strip);
	free(f->table[0]);
	free(f->table[1]);
	free(f->roots.low);
	free(f->roots.high);
	for (int i = 0; i <= STEPS; i++)
		free(f->at[i].block);
}

/* --- the check ----------------------------------------------------------------------- */

/* Result @k by the definition. */
static struct cx by_definition(const struct fft *f, long k)
{
	struct cx sum = { 0, 0 };

	for (long i = 0; i < f->n; i++) {
		/* i k mod n, without overflow: n is a power of two */
		uint64_t power = (uint64_t)i * (uint64_t)k &
				 ((uint64_t)f->n - 1);
		struct cx t = times(input(i), root(&f->roots, (long)power));

		sum.re += t.re;
		sum.im += t.im;
	}
	return sum;
}

/* Rank 0: the largest difference of some results from the definition, in roots
 * of N. */
static double sample_error(const struct fft *f)
{
	const struct matrix *m = &f->at[STEPS];
	double worst = 0;

	for (int s = 0; s < SAMPLES; s++) {
		long k = s ? (long)(app_hash((uint64_t)s) &
				    ((uint64_t)f->n - 1)) :
			     1 % f->n;
		struct cx want = by_definition(f, k);
		struct cx got = element(f->app, m, k / m->cols, k % m->cols);

		worst = app_worse(worst,
				  hypot(got.re - want.re, got.im - want.im));
	}
	return worst / sqrt((double)f->n);
}

/* The sum of the squares of the results over N times that of the numbers, which
 * is 1 (Parseval). */
static double energy_ratio(const struct fft *f)
{
	const struct matrix *m = &f->at[STEPS];
	long first, count = app_share(f->app, m->rows, f->app->rank, &first);
	double v[2] = { 0, 0 };

	for (long i = first; i < first + count; i++)
		for (long j = 0; j < m->cols; j++) {
			struct cx x = element(f->app, m, i, j);
			struct cx y = input(i * m->cols + j);

			v[0] += x.re * x.re + x.im * x.im;
			v[1] += y.re * y.re + y.im * y.im;
		}
	app_sum(f->app, v, 2);
	return v[0] / v[1] / (double)f->n;
}

/* The largest difference of the inverse from the numbers. */
static double inverse_error(struct fft *f)
{
	const struct matrix *m = &f->at[0];
	long first, count = app_share(f->app, m->rows, f->app->rank, &first);
	double worst = 0, n = (double)f->n;

	transform(f, -1);
	for (long i = first; i < first + count; i++)
		for (long j = 0; j < m->cols; j++) {
			struct cx got = element(f->app, m, i, j);
			struct cx want = input(i * m->cols + j);

			worst = app_worse(worst, hypot(got.re / n - want.re,
						       got.im / n - want.im));
		}
	app_max(f->app, &worst, 1);
	return worst;
}

int app_main(int argc, char **argv)
{
	struct fft f = { 0 };
	const struct app_opt opts[] = {
		{ 'm', "log2-size", "M", &f.m, 18, 14, 1, 30,
		  "2^M complex numbers" },
		{ 'w', "warm", "N", &f.warm, 0, 0, 0, 1000,
		  "transforms before time and counters start: then all "
		  "memory is there" },
	};
	struct app a = { .name = "fft",
			 .about = "The Fourier transform of 2^M complex "
				  "numbers, by the six-step method.",
			 .opts = opts,
			 .nopts = sizeof(opts) / sizeof(opts[0]) };
	double samples = 0, energy, inverse;
	bool good;

	app_init(&a, argc, argv);
	prepare(&f, &a);
	for (long i = 0; i < f.warm; i++) {
		transform(&f, 1);
		app_barrier(&a);
		fill(&f);
	}
	app_begin(&a);
	transform(&f, 1);
	app_end(&a);
	app_report(&a, "2^%ld complex doubles, %ld x %ld", f.m, f.at[0].rows,
		   f.at[0].cols);
	if (a.rank == 0)
		samples = sample_error(&f);
	energy = energy_ratio(&f);
	inverse = inverse_error(&f);
	good = samples < ERROR_MAX && fabs(energy - 1) < ERROR_MAX &&
	       inverse < ERROR_MAX;
	release(&f);
	return app_verdict(&a, good,
			   "off the definition by %.1e, energy ratio %.9f, "
			   "inverse off by %.1e (limit %.0e)",
			   samples, energy, inverse, ERROR_MAX);
}
