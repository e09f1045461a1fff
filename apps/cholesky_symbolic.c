/* SPDX-License-Identifier: MIT */
/*
 * cholesky_symbolic.c - in which order to eliminate, what the factor will look
 * like, and who computes what.
 *
 * Role: cholesky.h says it.
 * Invariant: the result depends on the matrix and the number of ranks only, so
 *   each rank makes it for itself.
 * Threads: any, each with memory of its own.
 * Locks: none.
 *
 * After: George, Nested dissection of a regular finite element mesh (1973);
 * Cuthill and McKee, Reducing the bandwidth of sparse symmetric matrices (1969);
 * Liu, The role of elimination trees in sparse factorization (1990).
 */
#include "cholesky.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"

enum {
	SUBTREES = 4 /* for each rank, at least, are dealt out as a whole */
};

/* --- the matrix ------------------------------------------------------------------------ */

void lower_make(struct lower *l, long n, const struct element *e, long count,
		const int32_t *place)
{
	long *at = app_calloc((size_t)n + 1, sizeof(*at));

	l->n = n;
	l->begin = app_calloc((size_t)n + 2, sizeof(*l->begin));
	l->row = app_calloc((size_t)count, sizeof(*l->row));
	l->value = app_calloc((size_t)count, sizeof(*l->value));
	for (int pass = 0; pass < 3; pass++) {
		/* Count; then the diagonal, which comes first; then the rest. */
		for (long i = 0; i < count; i++) {
			int32_t r = place[e[i].row], c = place[e[i].col];
			int32_t col = r < c ? r : c, row = r < c ? c : r;

			if (pass == 0) {
				l->begin[col + 1]++;
			} else if ((pass == 1) == (row == col)) {
				l->row[at[col]] = row;
				l->value[at[col]++] = e[i].value;
			}
		}
		for (long j = 0; pass == 0 && j < n; j++) {
			l->begin[j + 1] += l->begin[j];
			at[j] = l->begin[j];
		}
	}
	free(at);
}

/* --- orders --------------------------------------------------------------------------------- */

/* Number the points x0 .. x1 - 1, y0 .. y1 - 1 from @next on. */
static int32_t dissect(long side, int32_t *place, int32_t next, long x0,
		       long x1, long y0, long y1)
{
	bool across = x1 - x0 >= y1 - y0;
	long middle = across ? (x0 + x1) / 2 : (y0 + y1) / 2;

	if (x0 >= x1 || y0 >= y1)
		return next;
	if (across) {
		next = dissect(side, place, next, x0, middle, y0, y1);
		next = dissect(side, place, next, middle + 1, x1, y0, y1);
		for (long y = y0; y < y1; y++)
			place[y * side + middle] = next++;
	} else {
		next = dissect(side, place, next, x0, x1, y0, middle);
		next = dissect(side, place, next, x0, x1, middle + 1, y1);
		for (long x = x0; x < x1; x++)
			place[middle * side + x] = next++;
	}
	return next;
}

void order_grid(long side, int32_t *place)
{
	dissect(side, place, 0, 0, side, 0, side);
}

/* The neighbours of row i: of[begin[i]] .. of[begin[i + 1] - 1]. */
struct graph {
	long n, *begin;
	int32_t *of;
};

static void graph_make(struct graph *g, long n, const struct element *e,
		       long count)
{
	long *at = app_calloc((size_t)n + 1, sizeof(*at));

	g->n = n;
	g->begin = app_calloc((size_t)n + 1, sizeof(*g->begin));
	g->of = app_calloc(2 * (size_t)count, sizeof(*g->of));
	for (long i = 0; i < count; i++)
		if (e[i].row != e[i].col) {
			g->begin[e[i].row + 1]++;
			g->begin[e[i].col + 1]++;
		}
	for (long i = 0; i < n; i++)
		at[i + 1] = g->begin[i + 1] += g->begin[i];
	for (long i = 0; i < count; i++)
		if (e[i].row != e[i].col) {
			g->of[at[e[i].row]++] = e[i].col;
			g->of[at[e[i].col]++] = e[i].row;
		}
	free(at);
}

static long degree(const struct graph *g, int32_t i)
{
	return g->begin[i + 1] - g->begin[i];
}

/* Number, from @next on, all that can be reached from @start and has no number:
 * the nearest first, and of those the ones with few neighbours. */
static int32_t walk(const struct graph *g, int32_t start, int32_t *place,
		    int32_t *queue, int32_t next)
{
	int32_t head = next, tail = next;

	queue[tail] = start;
	place[start] = tail++;
	for (; head < tail; head++) {
		int32_t i = queue[head], from = tail;

		for (long k = g->begin[i]; k < g->begin[i + 1]; k++) {
			int32_t j = g->of[k], at = tail;

			if (place[j] >= 0)
				continue;
			for (; at > from &&
			       degree(g, queue[at - 1]) > degree(g, j);
			     at--)
				queue[at] = queue[at - 1];
			queue[at] = j;
			place[j] = tail++;
		}
	}
	return tail;
}

void order_narrow(long n, const struct element *e, long count, int32_t *place)
{
	int32_t *queue = app_calloc((size_t)n, sizeof(*queue)), next = 0;
	struct graph g;

	graph_make(&g, n, e, count);
	memset(place, -1, (size_t)n * sizeof(*place));
	for (int32_t i = 0; i < n; i++) {
		int32_t end;

		if (place[i] >= 0)
			continue;
		/* Once to find what is farthest away, once from there. */
		end = walk(&g, i, place, queue, next);
		for (int32_t k = next; k < end; k++)
			place[queue[k]] = -1;
		next = walk(&g, queue[end - 1], place, queue, next);
	}
	for (int32_t i = 0; i < n; i++) /* the last first: fewer new elements */
		place[queue[i]] = (int32_t)n - 1 - i;
	free(g.begin);
	free(g.of);
	free(queue);
}

/* --- the factor's columns --------------------------------------------------------------------- */

/* The rows below the diagonal of each column of the factor. */
struct columns {
	int32_t **row, *count, *child, *sibling;
};

static int by_number(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Rows that are marked with @j are in @row already. */
static int32_t add_rows(int32_t *row, int32_t count, const int32_t *more,
			long n, int32_t j, int32_t *mark)
{
	for (long i = 0; i < n; i++)
		if (more[i] > j && mark[more[i]] != j) {
			mark[more[i]] = j;
			row[count++] = more[i];
		}
	return count;
}

/* A column has its own rows, and those of all whose first row it is. */
static void columns_make(struct columns *c, const struct lower *a)
{
	size_t n = (size_t)a->n;
	int32_t *mark = app_calloc(n, sizeof(*mark));
	int32_t *row = app_calloc(n, sizeof(*row));

	c->row = app_calloc(n, sizeof(*c->row));
	c->count = app_calloc(n, sizeof(*c->count));
	c->child = app_calloc(n, sizeof(*c->child));
	c->sibling = app_calloc(n, sizeof(*c->sibling));
	memset(mark, -1, n * sizeof(*mark));
	memset(c->child, -1, n * sizeof(*c->child));
	for (int32_t j = 0; j < a->n; j++) {
		int32_t count = add_rows(row, 0, a->row + a->begin[j],
					 a->begin[j + 1] - a->begin[j], j,
					 mark);

		for (int32_t k = c->child[j]; k >= 0; k = c->sibling[k])
			count = add_rows(row, count, c->row[k], c->count[k], j,
					 mark);
		qsort(row, (size_t)count, sizeof(*row), by_number);
		c->row[j] = app_calloc((size_t)count, sizeof(*row));
		c->count[j] = count;
		memcpy(c->row[j], row, (size_t)count * sizeof(*row));
		if (count) {
			c->sibling[j] = c->child[row[0]];
			c->child[row[0]] = j;
		}
	}
	free(mark);
	free(row);
}

static void columns_free(struct columns *c, long n)
{
	for (long j = 0; j < n; j++)
		free(c->row[j]);
	free(c->row);
	free(c->count);
	free(c->child);
	free(c->sibling);
}

/* --- panels ------------------------------------------------------------------------------------- */

/* How many columns from @first on make a panel.  Each must be the first row of
 * the one before, so that it has all rows of that one; what it has beyond them
 * are zeros of all before. */
static int32_t panel_width(const struct symbolic *s, const struct columns *c,
			   const struct shape *shape, int32_t first)
{
	double elements = c->count[first] + 1, zeros = 0;
	int32_t width = 1;

	for (int32_t j = first; j + 1 < s->a.n && width < shape->width; j++) {
		int32_t more;

		if (!c->count[j] || c->row[j][0] != j + 1)
			break;
		more = c->count[j + 1] + 1 - c->count[j];
		zeros += (double)more * width;
		elements += (double)more * width + c->count[j + 1] + 1;
		if (100 * zeros > (double)shape->slack * elements)
			break;
		width++;
	}
	return width;
}

static void panel_make(struct symbolic *s, const struct columns *c,
		       int32_t first, int32_t width)
{
	struct panel *p = &s->panel[s->panels];
	int32_t last = first + width - 1;
	double rows;

	p->first = first;
	p->width = width;
	p->rows = width + c->count[last];
	p->row = app_calloc((size_t)p->rows, sizeof(*p->row));
	for (int32_t j = 0; j < width; j++)
		p->row[j] = first + j;
	memcpy(p->row + width, c->row[last],
	       (size_t)c->count[last] * sizeof(*p->row));
	rows = p->rows;
	p->work = rows * rows * width;
	s->elements += rows * width - 0.5 * width * (width - 1);
	for (int32_t j = first; j <= last; j++)
		s->panel_of[j] = (int32_t)s->panels;
	s->panels++;
}

/* Who is above whom, and the work of all that is below. */
static void find_parents(struct symbolic *s)
{
	for (long k = 0; k < s->panels; k++) {
		struct panel *p = &s->panel[k];

		p->parent = p->rows > p->width ? s->panel_of[p->row[p->width]] :
						 -1;
		if (p->parent >= 0)
			s->panel[p->parent].work += p->work;
	}
}

/* Large panels and what is above them in turn; what is below, as a whole, to
 * whoever has least. */
static void deal(struct symbolic *s, int ranks)
{
	double *load = app_calloc((size_t)ranks, sizeof(*load)), all = 0;
	int next = 0;

	for (long k = 0; k < s->panels; k++)
		all += s->panel[k].parent < 0 ? s->panel[k].work : 0;
	for (long k = s->panels - 1; k >= 0; k--) {
		struct panel *p = &s->panel[k];
		double large = all / (SUBTREES * ranks);

		if (p->work > large) {
			p->owner = next++ % ranks;
		} else if (p->parent >= 0 &&
			   s->panel[p->parent].work <= large) {
			p->owner = s->panel[p->parent].owner;
		} else {
			p->owner = 0;
			for (int r = 1; r < ranks; r++)
				if (load[r] < load[p->owner])
					p->owner = r;
			load[p->owner] += p->work;
		}
	}
	free(load);
}

void symbolic_make(struct symbolic *s, const struct shape *shape, int ranks)
{
	size_t n = (size_t)s->a.n;
	struct columns c;

	columns_make(&c, &s->a);
	s->panels = 0;
	s->panel = app_calloc(n, sizeof(*s->panel));
	s->panel_of = app_calloc(n, sizeof(*s->panel_of));
	for (int32_t j = 0, width; j < s->a.n; j += width) {
		width = panel_width(s, &c, shape, j);
		panel_make(s, &c, j, width);
	}
	columns_free(&c, s->a.n);
	find_parents(s);
	deal(s, ranks);
}

void symbolic_free(struct symbolic *s)
{
	for (long k = 0; k < s->panels; k++)
		free(s->panel[k].row);
	free(s->panel);
	free(s->panel_of);
	free(s->a.begin);
	free(s->a.row);
	free(s->a.value);
}
