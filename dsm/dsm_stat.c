/* SPDX-License-Identifier: MIT */
/*
 * dsm_stat.c - adding up and printing the counters of dsm_stat.def.
 *
 * Role:      all that has to know the list of counters, by reading its rows.
 * Threads:   counters may grow while they are printed; each is read once per
 *            figure, so a total may be a little newer than its parts.
 */
#include "dsm_stat.h"

#include <inttypes.h>
#include <string.h>

#include "sul_job.h" /* struct sul_job_rank */

_Static_assert(sizeof(struct dsm_stats) <=
		       sizeof(((struct sul_job_rank *)0)->counters),
	       "the counters of a rank fit into its page of the job");

static const struct dsm_stat_row rows[DSM_STAT_NR] = {
#define STAT(name, unit, label, doc) \
	{ #name, #unit, label, doc, DSM_STAT_##unit },
#include "dsm_stat.def"
};

const struct dsm_stat_row *dsm_stat_row(unsigned int i)
{
	return &rows[i];
}

void dsm_stat_zero(struct dsm_stats *s)
{
#define STAT(name, unit, label, doc) \
	__atomic_store_n(&s->name, (uint64_t)0, __ATOMIC_RELAXED);
#include "dsm_stat.def"
}

struct dsm_stat_sum dsm_stat_sum(const uint64_t *const counters[], int ranks,
				 unsigned int i)
{
	struct dsm_stat_sum sum = { .min = UINT64_MAX };

	for (int rank = 0; rank < ranks; rank++) {
		uint64_t v = dsm_stat_read(&counters[rank][i]);

		sum.total += v;
		if (v < sum.min)
			sum.min = v;
		if (v > sum.max)
			sum.max = v;
	}
	return sum;
}

/* --- the table --------------------------------------------------------------
 *
 * The figures of a line are its ranks, or least and most, and then the total;
 * all columns of figures are as wide as the widest figure needs.
 */

enum {
	FIGURES_MAX = DSM_STAT_COLUMNS + 1,
	FIGURE_MAX = 32 /* bytes of a printed figure */
};

static int figures_of(const uint64_t *const counters[], int ranks,
		      unsigned int i, uint64_t out[FIGURES_MAX])
{
	struct dsm_stat_sum sum = dsm_stat_sum(counters, ranks, i);
	int n = 0;

	if (ranks > DSM_STAT_COLUMNS) {
		out[n++] = sum.min;
		out[n++] = sum.max;
	} else {
		for (int rank = 0; rank < ranks; rank++)
			out[n++] = dsm_stat_read(&counters[rank][i]);
	}
	out[n++] = sum.total;
	return n;
}

static void head_of(char buf[FIGURE_MAX], int ranks, int col, int figures)
{
	if (col == figures - 1)
		snprintf(buf, FIGURE_MAX, "total");
	else if (ranks > DSM_STAT_COLUMNS)
		snprintf(buf, FIGURE_MAX, "%s", col ? "most" : "least");
	else
		snprintf(buf, FIGURE_MAX, "rank %d", col);
}

/* A time in milliseconds, to the microsecond; others as they are. */
static void format(char buf[FIGURE_MAX], enum dsm_stat_unit unit, uint64_t v)
{
	if (unit == DSM_STAT_ns)
		snprintf(buf, FIGURE_MAX, "%" PRIu64 ".%03" PRIu64, v / 1000000,
			 v / 1000 % 1000);
	else
		snprintf(buf, FIGURE_MAX, "%" PRIu64, v);
}

static size_t longest(size_t a, const char *s)
{
	size_t b = strlen(s);

	return a > b ? a : b;
}

struct widths {
	int name, label, figure;
};

static struct widths widths_of(const uint64_t *const counters[], int ranks)
{
	size_t name = 0, label = 0, figure = strlen("rank 0");

	for (unsigned int i = 0; i < DSM_STAT_NR; i++) {
		uint64_t v[FIGURES_MAX];
		int n = figures_of(counters, ranks, i, v);

		name = longest(name, rows[i].name);
		label = longest(label, rows[i].label);
		for (int k = 0; k < n; k++) {
			char buf[FIGURE_MAX];

			format(buf, rows[i].kind, v[k]);
			figure = longest(figure, buf);
		}
	}
	return (struct widths){ (int)name, (int)label, (int)figure };
}

static void print_head(FILE *f, int ranks, struct widths w)
{
	int n = ranks > DSM_STAT_COLUMNS ? 3 : ranks + 1;

	fprintf(f, "%-*s  %-*s", w.name, "counter", w.label, "JIAJIA");
	for (int k = 0; k < n; k++) {
		char buf[FIGURE_MAX];

		head_of(buf, ranks, k, n);
		fprintf(f, "  %*s", w.figure, buf);
	}
	fprintf(f, "  %-5s  %s\n", "unit", "meaning");
}

static void print_row(FILE *f, const uint64_t *const counters[], int ranks,
		      unsigned int i, struct widths w)
{
	const struct dsm_stat_row *r = &rows[i];
	uint64_t v[FIGURES_MAX];
	int n = figures_of(counters, ranks, i, v);

	fprintf(f, "%-*s  %-*s", w.name, r->name, w.label, r->label);
	for (int k = 0; k < n; k++) {
		char buf[FIGURE_MAX];

		format(buf, r->kind, v[k]);
		fprintf(f, "  %*s", w.figure, buf);
	}
	fprintf(f, "  %-5s  %s\n", r->kind == DSM_STAT_ns ? "ms" : r->unit,
		r->doc);
}

void dsm_stat_print(FILE *f, const uint64_t *const counters[], int ranks)
{
	struct widths w = widths_of(counters, ranks);

	print_head(f, ranks, w);
	for (unsigned int i = 0; i < DSM_STAT_NR; i++)
		print_row(f, counters, ranks, i, w);
}
