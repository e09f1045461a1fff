/* SPDX-License-Identifier: MIT */
/*
 * cholesky.h - what is known of a factor before it is computed.
 *
 * Role: cholesky_symbolic.c makes it from the matrix; cholesky.c computes the
 *   factor.
 */
#ifndef CHOLESKY_H
#define CHOLESKY_H

#include <stdint.h>

/* Elements on and below the diagonal, by column: those of column j are begin[j]
 * .. begin[j + 1] - 1; the first of them is on the diagonal. */
struct lower {
	long n;
	long *begin;
	int32_t *row;
	double *value;
};

/* Columns that follow each other and have (nearly) the same rows below them:
 * @rows numbers of rows, of which the first @width are the columns themselves. */
struct panel {
	int32_t first, width, rows;
	int32_t parent; /* the panel of the first row below; -1: none */
	int owner;
	int32_t *row;
	double work; /* operations, roughly; with all panels below */
};

/* What panels shall look like. */
struct shape {
	long width; /* columns, at most */
	long slack; /* zeros among the elements, at most, in percent */
};

struct symbolic {
	struct lower a; /* the matrix, reordered */
	long panels;
	struct panel *panel;
	int32_t *panel_of; /* [column] */
	double elements; /* of the factor, with the zeros in panels */
};

/* Element (row, col), row >= col. */
struct element {
	int32_t row, col;
	double value;
};

/* The matrix of @count elements, reordered by @place[old] = new. */
void lower_make(struct lower *l, long n, const struct element *e, long count,
		const int32_t *place);
/* An order in which few elements lie far from the diagonal. */
void order_narrow(long n, const struct element *e, long count, int32_t *place);
/* An order for the points of a square grid in which halves come before the line
 * between them. */
void order_grid(long side, int32_t *place);
/* The panels of the factor of @s->a, dealt out to @ranks. */
void symbolic_make(struct symbolic *s, const struct shape *shape, int ranks);
void symbolic_free(struct symbolic *s);

#endif /* CHOLESKY_H */
