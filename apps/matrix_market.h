/* SPDX-License-Identifier: MIT */
/*
 * matrix_market.h - read sparse symmetric matrices in the format of Matrix
 * Market.
 *
 * Role: turns a file into a list of the elements on and below the diagonal.
 * Invariant: a matrix that was read is square, has one finite value for each
 *   place at most, and a positive diagonal; whatever else a file says is refused
 *   with its line.
 * Threads: any, one per reader.
 * Locks: none.
 *
 * Read are "matrix coordinate real|integer|pattern symmetric|general"; a general
 * matrix must be symmetric, value for value.  A pattern has no values: it gets
 * -1 beside the diagonal, and on it one more than there are beside it, which is
 * positive definite.
 *
 * Why our own: the one library in Debian that reads the format (CHOLMOD) brings
 * a sparse direct solver and BLAS, of which cg and cholesky want to be examples.
 */
#ifndef MATRIX_MARKET_H
#define MATRIX_MARKET_H

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "app.h"
#include "text_file.h"

enum {
	MM_SIZE_MAX = 50000000, /* rows */
	MM_LINE_MAX = 1024 /* bytes, as the format says */
};

/* An element; row >= col, from 0. */
struct mm_element {
	long row, col;
	double value;
};

struct mm_matrix {
	long n, count;
	struct mm_element *element; /* by column, then by row */
};

struct mm_file {
	struct text_file in;
	bool pattern, general;
	struct mm_matrix *m;
};

/* --- lines --------------------------------------------------------------------- */

static bool mm_is_blank(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '\0';
}

/* The next line that is no comment and not empty. */
static int mm_line(struct mm_file *t, char *line)
{
	int err;

	do
		err = text_line(&t->in, line, MM_LINE_MAX + 1);
	while (!err && (*line == '%' || mm_is_blank(line)));
	return err;
}

/* "%%MatrixMarket matrix coordinate FIELD SYMMETRY" */
static int mm_header(struct mm_file *t)
{
	char line[MM_LINE_MAX + 1], word[5][32] = { "", "", "", "", "" };

	t->in.line = 1;
	if (!fgets(line, sizeof(line), t->in.f) ||
	    sscanf(line, "%31s %31s %31s %31s %31s", word[0], word[1], word[2],
		   word[3], word[4]) != 5 ||
	    strcmp(word[0], "%%MatrixMarket") != 0)
		return text_bad(&t->in,
				"no '%%%%MatrixMarket' header of five words");
	if (strcasecmp(word[1], "matrix") || strcasecmp(word[2], "coordinate"))
		return text_bad(&t->in,
				"'%s %s', but 'matrix coordinate' is needed",
				word[1], word[2]);
	t->pattern = !strcasecmp(word[3], "pattern");
	t->general = !strcasecmp(word[4], "general");
	if (!t->pattern && strcasecmp(word[3], "real") &&
	    strcasecmp(word[3], "integer"))
		return text_bad(&t->in,
				"values are '%s', not real, integer, pattern",
				word[3]);
	if (!t->general && strcasecmp(word[4], "symmetric"))
		return text_bad(&t->in, "the matrix is '%s', not symmetric",
				word[4]);
	return 0;
}

static int mm_size(struct mm_file *t)
{
	char line[MM_LINE_MAX + 1], *at = line, *end;
	long rows, cols = 0, count = 0;
	int err = mm_line(t, line);

	if (err)
		return err;
	rows = strtol(at, &end, 10);
	if (end != at)
		cols = strtol(at = end, &end, 10);
	if (end != at)
		count = strtol(at = end, &end, 10);
	if (end == at || !mm_is_blank(end))
		return text_bad(&t->in, "not a size: rows, columns, elements");
	if (rows < 1 || rows > MM_SIZE_MAX || rows != cols)
		return text_bad(&t->in,
				"%ld x %ld: not square, of 1 to %d rows", rows,
				cols, MM_SIZE_MAX);
	if (count < 1 || (double)count > (double)rows * (double)cols)
		return text_bad(&t->in, "%ld elements of %ld x %ld", count,
				rows, cols);
	t->m->n = rows;
	t->m->count = count;
	return 0;
}

static int mm_element(struct mm_file *t, struct mm_element *e)
{
	char line[MM_LINE_MAX + 1], *at = line, *end;
	int err = mm_line(t, line);

	if (err)
		return err;
	e->row = strtol(at, &end, 10) - 1;
	if (end != at)
		e->col = strtol(at = end, &end, 10) - 1;
	if (end != at && !t->pattern)
		e->value = strtod(at = end, &end);
	if (end == at || !mm_is_blank(end))
		return text_bad(&t->in, "not an element: row, column%s",
				t->pattern ? "" : ", value");
	if (e->row < 0 || e->row >= t->m->n || e->col < 0 || e->col >= t->m->n)
		return text_bad(&t->in, "element (%ld, %ld) of %ld rows",
				e->row + 1, e->col + 1, t->m->n);
	if (!t->pattern && !isfinite(e->value))
		return text_bad(&t->in, "the value is not finite");
	if (!t->general && e->row < e->col)
		return text_bad(&t->in,
				"element (%ld, %ld) is above the diagonal",
				e->row + 1, e->col + 1);
	return 0;
}

/* --- what was read ------------------------------------------------------------------ */

/* By column and row of the lower triangle; of two that mirror each other the
 * one below comes first. */
static int mm_by_place(const void *a, const void *b)
{
	const struct mm_element *x = a, *y = b;
	long xc = x->row < x->col ? x->row : x->col;
	long yc = y->row < y->col ? y->row : y->col;
	long xr = x->row < x->col ? x->col : x->row;
	long yr = y->row < y->col ? y->col : y->row;

	if (xc != yc)
		return xc < yc ? -1 : 1;
	if (xr != yr)
		return xr < yr ? -1 : 1;
	return (x->row < x->col) - (y->row < y->col);
}

/* Of a general matrix the lower triangle, if the upper one is its mirror. */
static int mm_fold(struct mm_file *t)
{
	struct mm_matrix *m = t->m;
	long left = 0;

	for (long i = 0; i < m->count; i++) {
		struct mm_element *e = &m->element[i], *next = e + 1;

		m->element[left++] = *e;
		if (e->row == e->col)
			continue;
		if (i + 1 == m->count || e->row < e->col ||
		    next->row != e->col || next->col != e->row ||
		    (!t->pattern &&
		     (next->value < e->value || next->value > e->value)))
			return text_bad(&t->in,
					"the matrix is not symmetric at (%ld, "
					"%ld)",
					e->row + 1, e->col + 1);
		i++;
	}
	m->count = left;
	return 0;
}

/* The values of a pattern, which must have a diagonal. */
static void mm_fill(struct mm_matrix *m, long *beside)
{
	for (long i = 0; i < m->count; i++)
		if (m->element[i].row != m->element[i].col) {
			beside[m->element[i].row]++;
			beside[m->element[i].col]++;
		}
	for (long i = 0; i < m->count; i++) {
		struct mm_element *e = &m->element[i];

		e->value = e->row == e->col ? 1 + (double)beside[e->row] : -1;
	}
}

static int mm_check(struct mm_file *t)
{
	struct mm_matrix *m = t->m;
	long diagonal = 0;

	for (long i = 0; i < m->count; i++) {
		const struct mm_element *e = &m->element[i];

		if (i && e->row == e[-1].row && e->col == e[-1].col)
			return text_bad(&t->in,
					"element (%ld, %ld) is there twice",
					e->row + 1, e->col + 1);
		if (e->row != e->col)
			continue;
		if (!t->pattern && e->value <= 0)
			return text_bad(&t->in,
					"element (%ld, %ld) is %g: the matrix "
					"is not positive definite",
					e->row + 1, e->row + 1, e->value);
		diagonal++;
	}
	if (diagonal != m->n)
		return text_bad(&t->in, "%ld elements on a diagonal of %ld",
				diagonal, m->n);
	return 0;
}

static int mm_elements(struct mm_file *t)
{
	struct mm_matrix *m = t->m;
	long *beside;
	int err = 0;

	for (long i = 0; !err && i < m->count; i++)
		err = mm_element(t, &m->element[i]);
	if (err)
		return err;
	qsort(m->element, (size_t)m->count, sizeof(*m->element), mm_by_place);
	if (t->general)
		err = mm_fold(t);
	if (!err)
		err = mm_check(t);
	if (err || !t->pattern)
		return err;
	beside = calloc((size_t)m->n, sizeof(*beside));
	if (!beside)
		return text_bad(&t->in, "no memory for %ld rows", m->n);
	mm_fill(m, beside);
	free(beside);
	return 0;
}

/* Read @path into @m, whose elements are to be freed.  0, or a negative errno
 * and a text in @why[@size]. */
static int mm_read(const char *path, struct mm_matrix *m, char *why,
		   size_t size)
{
	struct mm_file t = { .in = { .path = path, .why = why, .size = size },
			     .m = m };
	int err;

	memset(m, 0, sizeof(*m));
	err = text_open(&t.in);
	if (err)
		return err;
	err = mm_header(&t);
	if (!err)
		err = mm_size(&t);
	if (!err) {
		m->element = calloc((size_t)m->count, sizeof(*m->element));
		err = m->element ? mm_elements(&t) :
				   text_bad(&t.in, "no memory for %ld elements",
					    m->count);
	}
	fclose(t.in.f);
	if (err) {
		free(m->element);
		m->element = NULL;
	}
	return err;
}

/* --- for all ranks -------------------------------------------------------------- */

struct mm_news {
	bool bad;
	char why[256];
	long n, count;
};

/* Rank 0 reads @path; all ranks get the matrix, in shared memory at rank 0, or
 * refuse the run. */
static struct mm_matrix mm_load(const struct app *a, const char *path)
{
	struct mm_news *news =
		app_malloc_on(a, "matrix size", 0, sizeof(*news));
	struct mm_matrix mine = { 0 }, all;

	if (a->rank == 0) {
		news->bad =
			mm_read(path, &mine, news->why, sizeof(news->why)) != 0;
		news->n = mine.n;
		news->count = mine.count;
	}
	app_barrier(a);
	if (news->bad)
		app_refuse(a, "%s", news->why);
	all.n = news->n;
	all.count = news->count;
	all.element = app_malloc_on(a, "matrix", 0,
				    (size_t)all.count * sizeof(*all.element));
	if (mine.element) /* rank 0 */
		memcpy(all.element, mine.element,
		       (size_t)all.count * sizeof(*all.element));
	free(mine.element);
	app_barrier(a);
	return all;
}

#endif /* MATRIX_MARKET_H */
