/* SPDX-License-Identifier: MIT */
/* jiarun_spot_print.c - where a job spent its time, for people. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jiarun_spot.h"

enum {
	LINES_MAX = 16, /* places of the program */
	PAGES_MAX = 8,
	WRITERS_MAX = 8, /* ranks that are named */
	PLACE_WIDTH = 50
};

static void put_ms(FILE *f, uint64_t ns)
{
	fprintf(f, "  %9" PRIu64 ".%03" PRIu64, ns / 1000000, ns / 1000 % 1000);
}

static void put_of_rank(FILE *f, uint64_t ns, int rank, int ranks)
{
	if (ranks == 1)
		return;
	put_ms(f, ns);
	fprintf(f, " %5d", rank);
}

static void spot_line(FILE *f, const struct jiarun_counts *c,
		      const struct jiarun_spot *s)
{
	char what[64], site[JIARUN_SPOT_TEXT], text[2 * JIARUN_SPOT_TEXT];

	jiarun_spot_what(&s->sum, what, sizeof(what));
	jiarun_spot_site(c, s->sum.site, site, sizeof(site));
	snprintf(text, sizeof(text), "%s%s%s", what, site[0] ? ", " : "", site);
	fprintf(f, "%-*s  %9" PRIu64, PLACE_WIDTH, text, s->sum.count);
	put_ms(f, s->sum.ns);
	fprintf(f, "  %9.1f", (double)s->sum.ns / 1e3 / (double)s->sum.count);
	put_of_rank(f, s->least, s->least_rank, c->ranks);
	put_of_rank(f, s->most, s->most_rank, c->ranks);
	fputc('\n', f);
}

static void print_spots(FILE *f, const struct jiarun_counts *c)
{
	struct jiarun_spot *s;
	int nr = jiarun_spots(c, &s);

	if (nr) {
		fprintf(f, "\n%-*s  %9s  %13s  %9s", PLACE_WIDTH,
			"where ranks wait and fault", "count", "total ms",
			"us each");
		fputs(c->ranks > 1 ?
			      "       least ms  rank        most ms  rank\n" :
			      "\n",
		      f);
	}
	for (int i = 0; i < nr && i < LINES_MAX; i++)
		spot_line(f, c, &s[i]);
	if (nr > LINES_MAX)
		fprintf(f, "and %d more places that took less\n",
			nr - LINES_MAX);
	free(s);
}

/* --- pages ----------------------------------------------------------------------------- */

/* "grid + 0x3000", or who allocated it. */
static void put_memory(FILE *f, const struct jiarun_counts *c,
		       const struct jiarun_where *w)
{
	char site[JIARUN_SPOT_TEXT], text[2 * JIARUN_SPOT_TEXT];

	if (w->name[0])
		snprintf(text, sizeof(text), "%s + 0x%" PRIx64, w->name,
			 w->offset);
	else if (w->site)
		snprintf(text, sizeof(text), "memory of %s + 0x%" PRIx64,
			 jiarun_spot_site(c, w->site, site, sizeof(site)),
			 w->offset);
	else
		snprintf(text, sizeof(text), "%s", "");
	fprintf(f, "0x%-12" PRIx64 "  %-36s", w->address, text);
}

/* Who changed which of its bytes. */
static void put_writers(FILE *f, const struct jiarun_counts *c, uint64_t page)
{
	int named = 0;

	for (int r = 0; r < c->ranks; r++) {
		const struct dsm_hot *h = jiarun_hot_of(c, r, page);

		if (!h || !h->wrote)
			continue;
		if (named++ == WRITERS_MAX) {
			fputs(", and more ranks", f);
			break;
		}
		fprintf(f, "%s rank %d bytes %" PRIu32 "-%" PRIu32,
			named == 1 ? "  written by" : ",", r, h->from,
			h->to ? h->to - 1 : 0);
	}
	if (named)
		fputc('\n', f);
}

static void put_faults(FILE *f, const struct jiarun_counts *c,
		       const struct dsm_hot *h)
{
	char site[JIARUN_SPOT_TEXT];

	if (h->store_site)
		fprintf(f, "  a store that faulted: %s\n",
			jiarun_spot_site(c, h->store_site, site, sizeof(site)));
	if (h->load_site)
		fprintf(f, "  a load that faulted: %s\n",
			jiarun_spot_site(c, h->load_site, site, sizeof(site)));
}

static void page_lines(FILE *f, const struct jiarun_counts *c,
		       const struct dsm_hot *h)
{
	struct jiarun_where w;

	jiarun_hot_where(c, h, &w);
	put_memory(f, c, &w);
	fprintf(f,
		"  %7" PRIu64 "  %7" PRIu64 "  %9" PRIu64 "  %7" PRIu64
		"  %8" PRIu64 "\n",
		h->count.fault_read + h->count.fault_write, h->count.getp,
		h->count.refreshed, h->wrote, h->together);
	put_writers(f, c, h->page);
	put_faults(f, c, h);
}

/* Pages that cost next to nothing against the first would hide it. */
static bool worth_a_line(const struct jiarun_hot *h, int i)
{
	return jiarun_hot_cost(&h[i].sum) >= jiarun_hot_cost(&h[0].sum) / 16;
}

static void print_pages(FILE *f, const struct jiarun_counts *c)
{
	struct jiarun_hot *h;
	int nr = jiarun_hots(c, &h);
	bool together = false;

	if (nr)
		fprintf(f, "\n%-14s  %-36s  %7s  %7s  %9s  %7s  %8s\n",
			"dearest pages", "in", "faults", "getp", "refreshed",
			"written", "together");
	for (int i = 0; i < nr && i < PAGES_MAX && worth_a_line(h, i); i++) {
		page_lines(f, c, &h[i].sum);
		together |= h[i].sum.together > 0;
	}
	if (together)
		fputs("together: between two barriers by several ranks; bytes are the first to the last: where they do not overlap, or are every other one, it is false sharing (jia_tuning(7))\n",
		      f);
	free(h);
}

void jiarun_spots_print(FILE *f, const struct jiarun_counts *c)
{
	print_spots(f, c);
	print_pages(f, c);
}
