/* SPDX-License-Identifier: MIT */
/*
 * cholesky.c - the factor L of a sparse matrix A = L L^T, by panels.
 *
 * Role: the task graph: a panel is ready when all panels that change it have
 *   done so; whoever owns it factors it, and for each panel that its rows reach
 *   computes the product of two parts of it, which is subtracted there.
 * Invariant: a panel is written by its owner only.  What another rank has to
 *   subtract it adds up by itself until it has all of its part, and then puts
 *   that, with the owner's lock held, into a place that nobody else writes.
 * Threads: one per rank.
 * Locks: one per rank, by number, which guards what was sent to it.
 *
 * A panel is some columns with the same rows (with --slack, nearly the same): a
 * dense block.  Subtrees of panels are dealt out as a whole, and large panels in
 * turn; so most changes are of a rank's own panels, which takes neither lock nor
 * message, and each rank sends one sum for each panel of others that it changes,
 * however many of its panels do.
 *
 * After: Ashcraft, Eisenstat and Liu, A fan-in algorithm for distributed sparse
 * numerical factorization (1990); Rothberg and Gupta, An efficient block-oriented
 * approach to parallel sparse Cholesky factorization (1993).
 * In the statistics: locks are the sums that were sent, and looks for them; diffs
 * are these sums, whole pages of them, which nobody fetches; time in locks
 * includes waiting for work.
 */
#include "app.h"

#include <math.h>

#include "cholesky.h"
#include "matrix_market.h"

enum {
	GRID_MAX = 4096
};

/* What is allowed of |A - L L^T|, as a part of |A| (in Frobenius' norm). */
#define ERROR_MAX 1e-13

/* What others have added up for panels of a rank: item[0 .. count - 1], which are
 * not changed any more.  Elements of @panel begin at page @page of its sums. */
struct inbox {
	long count;
	struct sum {
		int32_t panel, page;
	} item[];
};

/* This rank's part in a panel. */
struct part {
	double *to; /* where its changes are added up; NULL: there are none yet */
	int32_t changes; /* that it still has to make */
	int32_t missing; /* its own panel: ranks that have not done their part */
	int32_t page; /* another's panel: where its owner wants the sum */
};

struct cholesky {
	const struct app *app;
	long side; /* of the grid */
	struct shape shape;
	struct symbolic s;
	/* Shared: pointers of this rank. */
	double **panel; /* [panel]: its elements, by columns of @rows */
	char **sums; /* [rank]: elements that others have added up for it */
	struct inbox **inbox; /* [rank] */
	/* Private. */
	struct part *part; /* [panel] */
	double *update;
	int32_t *at; /* [row]: where it is in the panel that is changed */
	int32_t *ready; /* panels of mine: ready[0 .. waiting - 1] */
	long waiting;
	long mine; /* panels of mine that are not done */
	long seen; /* of what is in my inbox */
};

/* --- who changes what ----------------------------------------------------------------------- */

/* The rows of @p from @from on that are columns of one panel: the end of them. */
static int32_t end_of_part(const struct symbolic *s, const struct panel *p,
			   int32_t from)
{
	int32_t to = s->panel_of[p->row[from]];

	while (from < p->rows && s->panel_of[p->row[from]] == to)
		from++;
	return from;
}

/* [panel]: how many of @rank's panels change it. */
static void count_changes(const struct symbolic *s, int rank, int32_t *count)
{
	memset(count, 0, (size_t)s->panels * sizeof(*count));
	for (long k = 0; k < s->panels; k++) {
		const struct panel *p = &s->panel[k];

		if (p->owner != rank)
			continue;
		for (int32_t i = p->width; i < p->rows;
		     i = end_of_part(s, p, i))
			count[s->panel_of[p->row[i]]]++;
	}
}

static size_t elements_of(const struct panel *p)
{
	return (size_t)p->rows * (size_t)p->width;
}

static size_t pages_of(const struct panel *p)
{
	return (elements_of(p) * sizeof(double) + APP_PAGE - 1) / APP_PAGE;
}

/* What is sent to each rank: pages of elements, and how many sums. */
struct load {
	size_t pages, sums;
};

/* @count[panel]: changes that @rank makes. */
static void plan_rank(struct cholesky *c, int rank, const int32_t *count,
		      struct load *load)
{
	for (long k = 0; k < c->s.panels; k++) {
		const struct panel *p = &c->s.panel[k];
		struct part *part = &c->part[k];
		struct load *to = &load[p->owner];

		if (!count[k])
			continue;
		part->missing++;
		if (rank == c->app->rank)
			part->changes = count[k];
		if (p->owner == rank)
			continue;
		if (rank == c->app->rank)
			part->page = (int32_t)to->pages;
		to->pages += pages_of(p);
		to->sums++;
	}
}

/* --- memory --------------------------------------------------------------------------------- */

/* A rank's panels lie together. */
static void allocate_rank(struct cholesky *c, int rank, const struct load *load)
{
	const struct app *a = c->app;
	size_t size = 0;
	long count = 0;
	double *p;

	for (long k = 0; k < c->s.panels; k++)
		if (c->s.panel[k].owner == rank) {
			size += elements_of(&c->s.panel[k]);
			count++;
		}
	p = app_malloc_on(a, "panels", rank, size * sizeof(*p));
	c->sums[rank] = app_malloc_on(a, "sums", rank, load->pages * APP_PAGE);
	c->inbox[rank] = app_malloc_on(a, "inboxes", rank,
				       sizeof(struct inbox) +
					       load->sums * sizeof(struct sum));
	for (long k = 0; k < c->s.panels; k++)
		if (c->s.panel[k].owner == rank) {
			c->panel[k] = p;
			p += elements_of(&c->s.panel[k]);
		}
	if (rank != a->rank)
		return;
	c->mine = count;
	c->ready = app_calloc((size_t)count, sizeof(*c->ready));
}

static void allocate(struct cholesky *c)
{
	size_t ranks = (size_t)c->app->ranks, panels = (size_t)c->s.panels;
	struct load *load = app_calloc(ranks, sizeof(*load));
	int32_t *count = app_calloc(panels, sizeof(*count));

	c->panel = app_calloc(panels, sizeof(*c->panel));
	c->part = app_calloc(panels, sizeof(*c->part));
	c->sums = app_calloc(ranks, sizeof(*c->sums));
	c->inbox = app_calloc(ranks, sizeof(struct inbox *));
	for (int rank = 0; rank < c->app->ranks; rank++) {
		count_changes(&c->s, rank, count);
		plan_rank(c, rank, count, load);
	}
	for (int rank = 0; rank < c->app->ranks; rank++)
		allocate_rank(c, rank, &load[rank]);
	free(count);
	free(load);
}

/* My panels begin as the matrix; those that nobody changes are ready, the first
 * on top. */
static void fill(struct cholesky *c)
{
	const struct lower *a = &c->s.a;

	for (int32_t k = (int32_t)c->s.panels - 1; k >= 0; k--) {
		const struct panel *p = &c->s.panel[k];

		if (p->owner != c->app->rank)
			continue;
		c->part[k].to = c->panel[k];
		if (!c->part[k].missing)
			c->ready[c->waiting++] = k;
		for (int32_t i = 0; i < p->rows; i++)
			c->at[p->row[i]] = i;
		for (int32_t j = 0; j < p->width; j++)
			for (long e = a->begin[p->first + j];
			     e < a->begin[p->first + j + 1]; e++)
				c->panel[k][(long)j * p->rows +
					    c->at[a->row[e]]] = a->value[e];
	}
}

static void prepare(struct cholesky *c)
{
	size_t largest = 0;

	/* What was sent is not used any more by who sent it. */
	app_set(c->app, "update", "never");
	symbolic_make(&c->s, &c->shape, c->app->ranks);
	c->at = app_calloc((size_t)c->s.a.n, sizeof(*c->at));
	for (long k = 0; k < c->s.panels; k++) {
		size_t rows = (size_t)c->s.panel[k].rows;

		largest = rows > largest ? rows : largest;
	}
	c->update = app_calloc(largest, sizeof(*c->update));
	allocate(c);
	fill(c);
}

static void release(struct cholesky *c)
{
	symbolic_free(&c->s);
	free(c->panel);
	free(c->part);
	free(c->sums);
	free(c->inbox);
	free(c->ready);
	free(c->at);
	free(c->update);
}

/* --- panels --------------------------------------------------------------------------------- */

/* y -= f x */
static void subtract(double *restrict y, const double *restrict x, double f,
		     long count)
{
	for (long i = 0; i < count; i++)
		y[i] -= f * x[i];
}

static void factor(const struct panel *p, double *l)
{
	for (int32_t j = 0; j < p->width; j++) {
		double *col = l + (long)j * p->rows, root;

		for (int32_t k = 0; k < j; k++) {
			const double *other = l + (long)k * p->rows;

			subtract(col + j, other + j, other[j], p->rows - j);
		}
		if (!(col[j] > 0))
			app_die("the matrix is not positive definite: pivot "
				"%d is %g",
				p->first + j + 1, col[j]);
		root = sqrt(col[j]);
		for (int32_t i = j; i < p->rows; i++)
			col[i] /= root;
	}
}

/* A rank has done its part in panel @k of mine. */
static void arrived(struct cholesky *c, int32_t k)
{
	if (!--c->part[k].missing)
		c->ready[c->waiting++] = k;
}

/* All that I subtract from panel @k of another rank is added up. */
static void send(struct cholesky *c, int32_t k)
{
	const struct panel *p = &c->s.panel[k];
	struct part *part = &c->part[k];
	struct inbox *box = c->inbox[p->owner];
	char *to = c->sums[p->owner] + (size_t)part->page * APP_PAGE;

	app_lock(c->app, p->owner);
	app_overwrite(c->app, to, pages_of(p) * APP_PAGE);
	memcpy(to, part->to, elements_of(p) * sizeof(*part->to));
	box->item[box->count++] = (struct sum){ k, part->page };
	app_wake(c->app, box);
	app_unlock(c->app, p->owner);
	free(part->to);
	part->to = NULL;
}

/* Wait for what others have added up for my panels, and add it there. */
static void receive(struct cholesky *c)
{
	int me = c->app->rank;
	const struct inbox *box = c->inbox[me];
	long count;

	app_lock(c->app, me);
	while (box->count == c->seen)
		app_wait(c->app, box);
	count = box->count;
	app_unlock(c->app, me);
	for (; c->seen < count; c->seen++) {
		const struct sum *sum = &box->item[c->seen];
		const double *x =
			(void *)(c->sums[me] + (size_t)sum->page * APP_PAGE);

		subtract(c->panel[sum->panel], x, -1,
			 (long)elements_of(&c->s.panel[sum->panel]));
		arrived(c, sum->panel);
	}
}

/* Subtract from panel @k, or from what is added up for it, what panel @p changes
 * there: its rows @from .. @end - 1 are columns of it. */
static void change(struct cholesky *c, const struct panel *p, const double *l,
		   int32_t k, int32_t from, int32_t end)
{
	const struct panel *to = &c->s.panel[k];
	struct part *part = &c->part[k];

	if (!part->to)
		part->to = app_calloc(elements_of(to), sizeof(*part->to));
	for (int32_t i = 0; i < to->rows; i++)
		c->at[to->row[i]] = i;
	for (int32_t j = from; j < end; j++) {
		double *col =
			part->to + (long)(p->row[j] - to->first) * to->rows;

		memset(c->update, 0,
		       (size_t)(p->rows - j) * sizeof(*c->update));
		for (int32_t x = 0; x < p->width; x++)
			subtract(c->update, l + (long)x * p->rows + j,
				 l[(long)x * p->rows + j], p->rows - j);
		for (int32_t i = j; i < p->rows; i++)
			col[c->at[p->row[i]]] += c->update[i - j];
	}
	if (--part->changes)
		return;
	if (to->owner == c->app->rank)
		arrived(c, k);
	else
		send(c, k);
}

static void work_on(struct cholesky *c, int32_t k)
{
	const struct panel *p = &c->s.panel[k];
	int32_t end;

	factor(p, c->panel[k]);
	for (int32_t from = p->width; from < p->rows; from = end) {
		end = end_of_part(&c->s, p, from);
		change(c, p, c->panel[k], c->s.panel_of[p->row[from]], from,
		       end);
	}
}

static void factorize(struct cholesky *c)
{
	while (c->mine) {
		if (!c->waiting)
			receive(c);
		if (!c->waiting)
			continue;
		work_on(c, c->ready[--c->waiting]);
		c->mine--;
	}
}

/* --- the check: rank 0 ----------------------------------------------------------------------- */

/* Columns of L by the row where they go on; each is on one list. */
struct lists {
	int32_t *first; /* [row]: a column, or -1 */
	int32_t *next; /* [column] */
	int32_t *at; /* [column]: which of its panel's rows that is */
};

static void lists_add(struct lists *l, const struct panel *p, int32_t column,
		      int32_t at)
{
	l->at[column] = at;
	if (at >= p->rows)
		return;
	l->next[column] = l->first[p->row[at]];
	l->first[p->row[at]] = column;
}

/* Subtract from w[] column @j of L L^T on and below the diagonal, and move the
 * columns that have a part in it on. */
static void subtract_product(const struct cholesky *c, struct lists *l,
			     int32_t j, double *w)
{
	const struct panel *own = &c->s.panel[c->s.panel_of[j]];

	lists_add(l, own, j, j - own->first);
	for (int32_t k = l->first[j], next; k >= 0; k = next) {
		const struct panel *p = &c->s.panel[c->s.panel_of[k]];
		const double *col = c->panel[c->s.panel_of[k]] +
				    (long)(k - p->first) * p->rows;
		int32_t at = l->at[k];

		next = l->next[k];
		for (int32_t i = at; i < p->rows; i++)
			w[p->row[i]] -= col[at] * col[i];
		lists_add(l, p, k, at + 1);
	}
}

/* |A - L L^T| / |A| */
static double error_of(const struct cholesky *c)
{
	const struct lower *a = &c->s.a;
	size_t n = (size_t)a->n;
	double *w = app_calloc(n, sizeof(*w)), off = 0, all = 0;
	struct lists l = { app_calloc(n, sizeof(int32_t)),
			   app_calloc(n, sizeof(int32_t)),
			   app_calloc(n, sizeof(int32_t)) };

	memset(l.first, -1, n * sizeof(*l.first));
	for (int32_t j = 0; j < a->n; j++) {
		const struct panel *own;

		for (long e = a->begin[j]; e < a->begin[j + 1]; e++) {
			w[a->row[e]] += a->value[e];
			all += (a->row[e] == j ? 1 : 2) * a->value[e] *
			       a->value[e];
		}
		subtract_product(c, &l, j, w);
		/* What should be nowhere else shows in a later column. */
		own = &c->s.panel[c->s.panel_of[j]];
		for (int32_t i = j - own->first; i < own->rows; i++) {
			double x = w[own->row[i]];

			off += (own->row[i] == j ? 1 : 2) * x * x;
			w[own->row[i]] = 0;
		}
	}
	free(l.first);
	free(l.next);
	free(l.at);
	free(w);
	return sqrt(off / all);
}

/* --- the matrix ------------------------------------------------------------------------------- */

/* Neighbours on a grid are -1 or a little less, the diagonal 4 and a little
 * more. */
static void make_grid(struct cholesky *c)
{
	long side = c->side, n = side * side, count = 0;
	struct element *e = app_calloc((size_t)n * 3, sizeof(*e));
	int32_t *place = app_calloc((size_t)n, sizeof(*place));

	for (int32_t i = 0; i < n; i++) {
		int32_t down = i + (int32_t)side;
		double some = app_fraction((uint64_t)i);

		e[count++] = (struct element){ i, i, 4 + 0.1 * some };
		if (i % side + 1 < side)
			e[count++] =
				(struct element){ i + 1, i, -1 + 0.1 * some };
		if (down < n)
			e[count++] =
				(struct element){ down, i, -1 + 0.2 * some };
	}
	order_grid(side, place);
	lower_make(&c->s.a, n, e, count, place);
	free(place);
	free(e);
}

static void take_file(struct cholesky *c, const char *path)
{
	struct mm_matrix m = mm_load(c->app, path);
	struct element *e = app_calloc((size_t)m.count, sizeof(*e));
	int32_t *place = app_calloc((size_t)m.n, sizeof(*place));

	for (long i = 0; i < m.count; i++)
		e[i] = (struct element){ (int32_t)m.element[i].row,
					 (int32_t)m.element[i].col,
					 m.element[i].value };
	order_narrow(m.n, e, m.count, place);
	lower_make(&c->s.a, m.n, e, m.count, place);
	free(place);
	free(e);
}

int app_main(int argc, char **argv)
{
	struct cholesky c = { 0 };
	const struct app_opt opts[] = {
		{ 'g', "grid", "N", &c.side, 128, 32, 1, GRID_MAX,
		  "the matrix of a grid of N x N points, without FILE" },
		{ 'w', "width", "N", &c.shape.width, 32, 32, 1, 1024,
		  "columns of a panel, at most" },
		{ 's', "slack", "P", &c.shape.slack, 20, 20, 0, 100,
		  "zeros that a panel may have to be wider, in percent" },
	};
	struct app a = { .name = "cholesky",
			 .about = "The Cholesky factor of a sparse matrix, "
				  "multiplied out and compared.",
			 .opts = opts,
			 .nopts = sizeof(opts) / sizeof(opts[0]),
			 .operand = "FILE",
			 .operand_help = "a symmetric positive definite matrix "
					 "in Matrix Market format" };
	double error = 0;

	app_init(&a, argc, argv);
	if (a.ranks > APP_LOCKS)
		app_refuse(&a, "%d ranks: at most %d", a.ranks, APP_LOCKS);
	c.app = &a;
	if (a.operand_value)
		take_file(&c, a.operand_value);
	else
		make_grid(&c);
	prepare(&c);
	app_begin(&a);
	factorize(&c);
	app_end(&a);
	app_report(&a, "%ld rows, %ld elements, %.0f in the factor, %ld panels",
		   c.s.a.n, c.s.a.begin[c.s.a.n], c.s.elements, c.s.panels);
	if (a.rank == 0)
		error = error_of(&c);
	release(&c);
	return app_verdict(&a, error <= ERROR_MAX, "|A - L L^T| is %s %.0e |A|",
			   error <= ERROR_MAX ? "below" : "above", ERROR_MAX);
}
