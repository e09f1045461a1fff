/* SPDX-License-Identifier: MIT */
/* jiarun_tally.c - see jiarun_tally.h. */
#include "jiarun_tally.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	COLUMNS = 8, /* phases side by side */
	FIGURE_MAX = 32
};

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Rows of @t that are in use; memory without a name has one in any case. */
static uint32_t rows_of(const struct dsm_tally *t, enum jiarun_tally_kind kind)
{
	if (kind == JIARUN_PHASES)
		return least(t->phases, DSM_PHASES_MAX);
	return t->places ? least(t->places, DSM_PLACES_MAX) : 1;
}

static const char *raw_name(const struct dsm_tally *t,
			    enum jiarun_tally_kind kind, uint32_t row)
{
	return kind == JIARUN_PHASES ? t->phase[row].name : t->place_name[row];
}

void jiarun_tally_clean(char out[DSM_TALLY_NAME_MAX], const char *raw)
{
	int i;

	for (i = 0; i < DSM_TALLY_NAME_MAX - 1 && raw[i]; i++) {
		unsigned char ch = (unsigned char)raw[i];

		out[i] = (ch < ' ' || ch == 127) ? '?' : raw[i];
	}
	out[i] = '\0';
}

static void add_name(struct jiarun_names *out, const char *name)
{
	for (int i = 0; i < out->nr; i++)
		if (!strcmp(out->name[i], name))
			return;
	if (out->nr < JIARUN_NAMES_MAX)
		snprintf(out->name[out->nr++], sizeof(out->name[0]), "%s",
			 name);
}

void jiarun_tally_names(struct jiarun_names *out, enum jiarun_tally_kind kind,
			const struct jiarun_counts *c)
{
	char name[DSM_TALLY_NAME_MAX];

	out->nr = 0;
	for (int r = 0; c->tally && r < c->ranks; r++)
		for (uint32_t i = 0; i < rows_of(c->tally[r], kind); i++) {
			jiarun_tally_clean(name,
					   raw_name(c->tally[r], kind, i));
			add_name(out, name);
		}
}

/* A rank that was ended in the middle of a phase has not closed it. */
static uint64_t phase_counter(const struct dsm_tally *t, uint32_t row,
			      const uint64_t *counters, int i)
{
	const uint64_t *sum = (const uint64_t *)&t->phase[row].sum;
	const uint64_t *base = (const uint64_t *)&t->base;
	uint64_t v = dsm_stat_read(&sum[i]), now = dsm_stat_read(&counters[i]);

	if (t->current == row + 1 && !t->stopped && now > base[i])
		v += now - base[i];
	return v;
}

static uint64_t phase_figure(const struct dsm_tally *t, uint32_t row,
			     const uint64_t *counters, int column)
{
	switch (column) {
	case JIARUN_ENTERED:
		return t->phase[row].entered;
	case JIARUN_NS:
		return t->phase[row].ns;
	default:
		return phase_counter(t, row, counters, column);
	}
}

static uint64_t place_figure(const struct dsm_tally *t, uint32_t row,
			     int column)
{
	const uint64_t *words = (const uint64_t *)&t->place[row];

	if (column == JIARUN_BYTES)
		return t->place_bytes[row];
	return dsm_stat_read(&words[column]);
}

uint64_t jiarun_tally_figure(const struct jiarun_counts *c, int rank,
			     enum jiarun_tally_kind kind, const char *name,
			     int column)
{
	const struct dsm_tally *t = c->tally[rank];
	char own[DSM_TALLY_NAME_MAX];

	for (uint32_t i = 0; i < rows_of(t, kind); i++) {
		jiarun_tally_clean(own, raw_name(t, kind, i));
		if (strcmp(own, name) != 0)
			continue;
		return kind == JIARUN_PHASES ?
			       phase_figure(t, i, c->counters[rank], column) :
			       place_figure(t, i, column);
	}
	return 0;
}

/* Ranks together: counters add up; how often, how long and how large are the
 * largest of any rank. */
static uint64_t together(const struct jiarun_counts *c,
			 enum jiarun_tally_kind kind, const char *name,
			 int column)
{
	uint64_t sum = 0, most = 0;

	for (int r = 0; r < c->ranks; r++) {
		uint64_t v = jiarun_tally_figure(c, r, kind, name, column);

		sum += v;
		most = v > most ? v : most;
	}
	return column < 0 ? most : sum;
}

/* --- for people --------------------------------------------------------------------- */

static void put_figure(FILE *f, int width, bool time, uint64_t v)
{
	char buf[FIGURE_MAX];

	if (time)
		snprintf(buf, sizeof(buf), "%" PRIu64 ".%03" PRIu64,
			 v / 1000000, v / 1000 % 1000);
	else
		snprintf(buf, sizeof(buf), "%" PRIu64, v);
	fprintf(f, "  %*s", width, buf);
}

static int name_width(const struct jiarun_names *n, int from, int end)
{
	size_t width = sizeof("1234567.890") - 1;

	for (int i = from; i < end; i++)
		if (strlen(n->name[i]) > width)
			width = strlen(n->name[i]);
	return (int)width;
}

/* One line: what @column was in the phases @from .. @end-1; left out when it
 * was nothing. */
static void phase_line(FILE *f, const struct jiarun_counts *c,
		       const struct jiarun_names *n, int from, int end,
		       int column, const struct dsm_stat_row *row)
{
	uint64_t v[COLUMNS], any = 0;
	int width = name_width(n, from, end);

	for (int i = from; i < end; i++) {
		v[i - from] = together(c, JIARUN_PHASES, n->name[i], column);
		any |= v[i - from];
	}
	if (!any)
		return;
	fprintf(f, "%-14s", row->name);
	for (int i = from; i < end; i++)
		put_figure(f, width, row->kind == DSM_STAT_ns, v[i - from]);
	fprintf(f, "  %-5s  %s\n", row->kind == DSM_STAT_ns ? "ms" : row->unit,
		row->doc);
}

static void phase_block(FILE *f, const struct jiarun_counts *c,
			const struct jiarun_names *n, int from, int end)
{
	static const struct dsm_stat_row entered = {
		"begun", "count", "", "times that a rank began the phase",
		DSM_STAT_count
	};
	static const struct dsm_stat_row time = {
		"time", "ns", "", "time in it, of the rank that was longest",
		DSM_STAT_ns
	};

	fprintf(f, "\n%-14s", "phase");
	for (int i = from; i < end; i++)
		fprintf(f, "  %*s", name_width(n, from, end), n->name[i]);
	fprintf(f, "  %-5s  %s\n", "unit", "meaning (all ranks together)");
	phase_line(f, c, n, from, end, JIARUN_ENTERED, &entered);
	phase_line(f, c, n, from, end, JIARUN_NS, &time);
	for (int i = 0; i < DSM_STAT_NR; i++)
		phase_line(f, c, n, from, end, i,
			   dsm_stat_row((unsigned int)i));
}

static void place_line(FILE *f, const struct jiarun_counts *c, const char *name,
		       int width)
{
	fprintf(f, "%-*s", width, *name ? name : "(no name)");
	if (*name)
		put_figure(f, 14, false,
			   together(c, JIARUN_PLACES, name, JIARUN_BYTES));
	else
		fprintf(f, "  %14s", "");
	for (int i = 0; i < DSM_PLACE_NR; i++)
		put_figure(f, 11, false, together(c, JIARUN_PLACES, name, i));
	fputc('\n', f);
}

static void print_places(FILE *f, const struct jiarun_counts *c,
			 const struct jiarun_names *n)
{
	int width = name_width(n, 0, n->nr);

	fprintf(f, "\n%-*s  %14s", width, "memory", "bytes");
	for (unsigned int i = 0; i < DSM_PLACE_NR; i++)
		fprintf(f, "  %11s", dsm_stat_row(dsm_place_stat(i))->name);
	fputc('\n', f);
	for (int i = 1; i < n->nr; i++)
		place_line(f, c, n->name[i], width);
	place_line(f, c, "", width);
}

void jiarun_tally_print(FILE *f, const struct jiarun_counts *c)
{
	struct jiarun_names n;

	jiarun_tally_names(&n, JIARUN_PHASES, c);
	for (int from = 0; from < n.nr; from += COLUMNS)
		phase_block(f, c, &n, from,
			    from + COLUMNS < n.nr ? from + COLUMNS : n.nr);
	if (n.nr == JIARUN_NAMES_MAX)
		fputs("... and more phases, perhaps\n", f);
	jiarun_tally_names(&n, JIARUN_PLACES, c);
	if (n.nr > 1)
		print_places(f, c, &n);
	if (n.nr == JIARUN_NAMES_MAX)
		fputs("... and more names, perhaps\n", f);
}
