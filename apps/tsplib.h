/* SPDX-License-Identifier: MIT */
/*
 * tsplib.h - read symmetric problems in the format of TSPLIB.
 *
 * Role: turns a file into a matrix of whole distances, as TSPLIB defines them.
 * Invariant: a problem that was read is complete, symmetric and has distances
 *   of 0 .. TSP_FAR, so that no tour overflows an int; whatever else a file says
 *   is refused with its line.
 * Threads: any, one per reader.
 * Locks: none.
 *
 * Read are NODE_COORD_SECTION with EUC_2D, CEIL_2D, ATT, GEO and
 * EDGE_WEIGHT_SECTION (EXPLICIT) with five matrix formats.
 */
#ifndef TSPLIB_H
#define TSPLIB_H

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text_file.h"

enum {
	TSP_MAX = 64, /* cities; a set of them is one word */
	TSPLIB_LINE = 4096, /* bytes of a line, beyond its first 255 */
	TSP_FAR = 10000000 /* longest distance; times TSP_MAX fits an int */
};

struct tsp_problem {
	int n;
	char name[64];
	int dist[TSP_MAX][TSP_MAX];
};

struct tsplib_file {
	struct text_file in;
	char type[32], format[32];
	struct tsp_problem *p;
	bool complete; /* a section has given the distances */
};

/* --- distances ------------------------------------------------------------------ */

static double euc_2d(const double *a, const double *b)
{
	return floor(hypot(a[0] - b[0], a[1] - b[1]) + 0.5);
}

static double ceil_2d(const double *a, const double *b)
{
	return ceil(hypot(a[0] - b[0], a[1] - b[1]));
}

/* ATT: rounded, but never down. */
static double att(const double *a, const double *b)
{
	double dx = a[0] - b[0], dy = a[1] - b[1];

	return ceil(sqrt((dx * dx + dy * dy) / 10));
}

/* GEO coordinates are DDD.MM, degrees and minutes; TSPLIB's own value of pi. */
static double geo_radians(double x)
{
	double degrees = trunc(x);

	return 3.141592 * (degrees + 5 * (x - degrees) / 3) / 180;
}

static double geo(const double *a, const double *b)
{
	double lat_a = geo_radians(a[0]), lat_b = geo_radians(b[0]);
	double q1 = cos(geo_radians(a[1]) - geo_radians(b[1]));
	double q2 = cos(lat_a - lat_b), q3 = cos(lat_a + lat_b);
	double c = 0.5 * ((1 + q1) * q2 - (1 - q1) * q3);

	return floor(6378.388 * acos(fmax(-1, fmin(1, c))) + 1);
}

static const struct tsplib_metric {
	const char *name;
	double (*distance)(const double *a, const double *b);
} tsplib_metrics[] = {
	{ "EUC_2D", euc_2d },
	{ "CEIL_2D", ceil_2d },
	{ "ATT", att },
	{ "GEO", geo },
};

/* Which columns of row i a matrix format lists: from i * from_i + from to
 * i * end_i + end - 1, where end counts from n if end_i is 0. */
static const struct tsplib_format {
	const char *name;
	int from_i, from, end_i, end;
} tsplib_formats[] = {
	{ "FULL_MATRIX", 0, 0, 0, 0 },	  { "UPPER_ROW", 1, 1, 0, 0 },
	{ "UPPER_DIAG_ROW", 1, 0, 0, 0 }, { "LOWER_ROW", 0, 0, 1, 0 },
	{ "LOWER_DIAG_ROW", 0, 0, 1, 1 },
};

/* --- sections ------------------------------------------------------------------- */

/* The next number of a section, on this line or a later one. */
static int tsplib_number(struct tsplib_file *t, double *out)
{
	char word[40], *end;
	size_t len = 0;
	int c;

	while ((c = getc(t->in.f)) != EOF && isspace(c))
		t->in.line += c == '\n';
	for (; c != EOF && !isspace(c); c = getc(t->in.f)) {
		if (len == sizeof(word) - 1)
			return text_bad(&t->in,
					"a number of more than %zu digits",
					len);
		word[len++] = (char)c;
	}
	ungetc(c, t->in.f);
	word[len] = '\0';
	if (!len)
		return text_bad(&t->in,
				"the file ends in the middle of a section");
	*out = strtod(word, &end);
	if (*end || !isfinite(*out) || fabs(*out) > TSP_FAR)
		return text_bad(&t->in, "'%s' is not a number (at most %d)",
				word, TSP_FAR);
	return 0;
}

static int tsplib_set(struct tsplib_file *t, int i, int j, double d)
{
	if (d < 0 || d > TSP_FAR || d != trunc(d))
		return text_bad(&t->in,
				"the distance %g between %d and %d is not a "
				"whole number (0..%d)",
				d, i + 1, j + 1, TSP_FAR);
	t->p->dist[i][j] = (int)d;
	return 0;
}

static int tsplib_weights(struct tsplib_file *t)
{
	const struct tsplib_format *f = tsplib_formats;
	const struct tsplib_format *last =
		f + sizeof(tsplib_formats) / sizeof(*f);
	int n = t->p->n, err = 0;
	double d;

	if (strcmp(t->type, "EXPLICIT") != 0)
		return text_bad(&t->in,
				"a matrix, but EDGE_WEIGHT_TYPE is '%s'",
				t->type);
	while (f < last && strcmp(f->name, t->format) != 0)
		f++;
	if (f == last)
		return text_bad(&t->in, "EDGE_WEIGHT_FORMAT '%s' is not known",
				t->format);
	for (int i = 0; i < n; i++)
		for (int j = i * f->from_i + f->from;
		     j < (f->end_i ? i + f->end : n); j++) {
			err = tsplib_number(t, &d);
			if (!err)
				err = tsplib_set(t, i, j, d);
			if (err)
				return err;
			if (strcmp(f->name, "FULL_MATRIX") != 0)
				t->p->dist[j][i] = (int)d;
		}
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			if (t->p->dist[i][j] != t->p->dist[j][i])
				return text_bad(&t->in,
						"the matrix is not symmetric "
						"(%d, %d)",
						i + 1, j + 1);
	t->complete = true;
	return 0;
}

static int tsplib_coordinates(struct tsplib_file *t, double at[][2])
{
	double number;

	for (int i = 0; i < t->p->n; i++) {
		if (tsplib_number(t, &number) || tsplib_number(t, &at[i][0]) ||
		    tsplib_number(t, &at[i][1]))
			return -EINVAL;
		if (number != i + 1)
			return text_bad(&t->in, "city %g where %d is expected",
					number, i + 1);
	}
	return 0;
}

static int tsplib_nodes(struct tsplib_file *t)
{
	const struct tsplib_metric *m = tsplib_metrics;
	const struct tsplib_metric *last =
		m + sizeof(tsplib_metrics) / sizeof(*m);
	double at[TSP_MAX][2] = { { 0 } };
	int err = tsplib_coordinates(t, at);

	if (err || !strcmp(t->type, "EXPLICIT"))
		return err;
	while (m < last && strcmp(m->name, t->type) != 0)
		m++;
	if (m == last)
		return text_bad(&t->in, "EDGE_WEIGHT_TYPE '%s' is not known",
				t->type);
	for (int i = 0; !err && i < t->p->n; i++)
		for (int j = 0; !err && j < t->p->n; j++)
			err = tsplib_set(t, i, j,
					 i == j ? 0 :
						  m->distance(at[i], at[j]));
	t->complete = !err;
	return err;
}

static int tsplib_section(struct tsplib_file *t, const char *key)
{
	double unused[TSP_MAX][2];
	int err;

	if (!t->p->n)
		return text_bad(&t->in, "%s before DIMENSION", key);
	t->in.line++; /* from here it is the line being read, not the one before */
	if (!strcmp(key, "NODE_COORD_SECTION"))
		err = tsplib_nodes(t);
	else if (!strcmp(key, "EDGE_WEIGHT_SECTION"))
		err = tsplib_weights(t);
	else if (!strcmp(key, "DISPLAY_DATA_SECTION"))
		err = tsplib_coordinates(t, unused);
	else
		err = text_bad(&t->in, "%s is not supported", key);
	t->in.line--;
	return err;
}

/* --- the specification part --------------------------------------------------- */

static int tsplib_dimension(struct tsplib_file *t, const char *value)
{
	char *end;
	long n = strtol(value, &end, 10);

	if (end == value || *end || n < 3 || n > TSP_MAX)
		return text_bad(&t->in,
				"DIMENSION '%s' is out of range (3..%d)", value,
				TSP_MAX);
	t->p->n = (int)n;
	return 0;
}

static int tsplib_entry(struct tsplib_file *t, const char *key,
			const char *value)
{
	size_t len = strlen(key);

	if (!strcmp(key, "NAME"))
		snprintf(t->p->name, sizeof(t->p->name), "%s", value);
	else if (!strcmp(key, "TYPE") && strcmp(value, "TSP") != 0)
		return text_bad(&t->in, "TYPE '%s' is not TSP", value);
	else if (!strcmp(key, "DIMENSION"))
		return tsplib_dimension(t, value);
	else if (!strcmp(key, "EDGE_WEIGHT_TYPE"))
		snprintf(t->type, sizeof(t->type), "%s", value);
	else if (!strcmp(key, "EDGE_WEIGHT_FORMAT"))
		snprintf(t->format, sizeof(t->format), "%s", value);
	else if (len > 8 && !strcmp(key + len - 8, "_SECTION"))
		return tsplib_section(t, key);
	else if (strcmp(key, "TYPE") != 0 && strcmp(key, "COMMENT") != 0 &&
		 strcmp(key, "NODE_COORD_TYPE") != 0 &&
		 strcmp(key, "DISPLAY_DATA_TYPE") != 0)
		return text_bad(&t->in, "'%s' is not a TSPLIB keyword", key);
	return 0;
}

/* Cut "KEY : value" in two, without the spaces around; value may be "". */
static char *tsplib_split(char *line)
{
	size_t len = strlen(line);
	char *value;

	while (len && isspace((unsigned char)line[len - 1]))
		line[--len] = '\0';
	value = line + strcspn(line, ":");
	if (*value)
		*value++ = '\0';
	while (isspace((unsigned char)*value))
		value++;
	len = strlen(line);
	while (len && isspace((unsigned char)line[len - 1]))
		line[--len] = '\0';
	return value;
}

/* A comment may be longer than the buffer; what is beyond does not count. */
static int tsplib_skip_line(struct tsplib_file *t)
{
	for (int i = 0; i < TSPLIB_LINE; i++) {
		int c = getc(t->in.f);

		if (c == EOF || c == '\n')
			return 0;
	}
	return text_bad(&t->in, "the line is longer than %d bytes",
			TSPLIB_LINE);
}

static int tsplib_lines(struct tsplib_file *t)
{
	char line[256], *value, *key;
	int err = 0;

	while (!err && fgets(line, sizeof(line), t->in.f)) {
		t->in.line++;
		if (!strchr(line, '\n'))
			err = tsplib_skip_line(t);
		key = line + strspn(line, " \t");
		value = tsplib_split(key);
		if (!err && !strcmp(key, "EOF"))
			break;
		if (!err && *key)
			err = tsplib_entry(t, key, value);
	}
	if (!err && ferror(t->in.f))
		err = text_bad(&t->in, "cannot read: %s", strerror(errno));
	if (!err && !t->complete)
		err = text_bad(&t->in, "the file ends without distances");
	return err;
}

/* Read @path into @p.  0, or a negative errno and a text in @why[@size]. */
static int tsplib_read(const char *path, struct tsp_problem *p, char *why,
		       size_t size)
{
	struct tsplib_file t = {
		.in = { .path = path, .why = why, .size = size }, .p = p
	};
	int err;

	memset(p, 0, sizeof(*p));
	err = text_open(&t.in);
	if (err)
		return err;
	err = tsplib_lines(&t);
	fclose(t.in.f);
	return err;
}

#endif /* TSPLIB_H */
