/* SPDX-License-Identifier: MIT */
/* jiarun_spot.c - see jiarun_spot.h: rows of all ranks put together. */
#include "jiarun_spot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dsm_limits.h"
#include "jiarun.h"

static const struct {
	const char *text;
	bool which;
} kinds[DSM_SPOT_NR] = {
#define SPOT(name, text, which) { text, which },
#include "dsm_spot.def"
};

uint64_t jiarun_hot_cost(const struct dsm_hot *h)
{
	uint64_t cost =
		h->wrote * DSM_COST_wrote + h->together * DSM_COST_together;

#define PLACE(name, each) cost += h->count.name * DSM_COST_##name;
#include "dsm_place.def"
	return cost;
}

/* --- rows of a rank ------------------------------------------------------------- */

static bool spot_ok(const struct dsm_spot *s)
{
	return s->kind && s->kind <= DSM_SPOT_NR && s->count;
}

static bool same_spot(const struct dsm_spot *a, const struct dsm_spot *b)
{
	return a->kind == b->kind && a->site == b->site && a->lock == b->lock;
}

const struct dsm_spot *jiarun_spot_of(const struct jiarun_counts *c, int rank,
				      const struct dsm_spot *spot)
{
	const struct dsm_spot *s = c->tally[rank]->spots.spot;

	for (int i = 0; i < DSM_SPOTS_MAX; i++)
		if (spot_ok(&s[i]) && same_spot(&s[i], spot))
			return &s[i];
	return NULL;
}

const struct dsm_hot *jiarun_hot_of(const struct jiarun_counts *c, int rank,
				    uint64_t page)
{
	const struct dsm_hot *h = c->tally[rank]->spots.hot;

	for (int i = 0; i < DSM_HOT_MAX; i++)
		if (h[i].page == page)
			return &h[i];
	return NULL;
}

/* --- places of the program, together ---------------------------------------------- */

static int find_spot(const struct jiarun_spot *all, int nr,
		     const struct dsm_spot *s)
{
	int i = 0;

	while (i < nr && !same_spot(&all[i].sum, s))
		i++;
	return i;
}

static void add_spot(struct jiarun_spot *all, int *nr, const struct dsm_spot *s)
{
	int i = find_spot(all, *nr, s);

	if (i == JIARUN_SPOTS_MAX)
		return;
	if (i == *nr) {
		all[i] = (struct jiarun_spot){ .sum = *s };
		++*nr;
		return;
	}
	all[i].sum.count += s->count;
	all[i].sum.ns += s->ns;
}

/* Ranks that have no row have spent nothing there. */
static void find_extremes(const struct jiarun_counts *c, struct jiarun_spot *s)
{
	for (int r = 0; r < c->ranks; r++) {
		const struct dsm_spot *own = jiarun_spot_of(c, r, &s->sum);
		uint64_t ns = own ? own->ns : 0;

		if (!r || ns < s->least) {
			s->least = ns;
			s->least_rank = r;
		}
		if (!r || ns > s->most) {
			s->most = ns;
			s->most_rank = r;
		}
	}
}

static int by_time(const void *a, const void *b)
{
	const struct jiarun_spot *x = a, *y = b;

	return (x->sum.ns < y->sum.ns) - (x->sum.ns > y->sum.ns);
}

int jiarun_spots(const struct jiarun_counts *c, struct jiarun_spot **out)
{
	int nr = 0;

	*out = calloc(JIARUN_SPOTS_MAX, sizeof(**out));
	for (int r = 0; *out && c->tally && r < c->ranks; r++)
		for (int i = 0; i < DSM_SPOTS_MAX; i++) {
			struct dsm_spot s = c->tally[r]->spots.spot[i];

			if (spot_ok(&s))
				add_spot(*out, &nr, &s);
		}
	for (int i = 0; i < nr; i++)
		find_extremes(c, &(*out)[i]);
	if (nr)
		qsort(*out, (size_t)nr, sizeof(**out), by_time);
	return nr;
}

/* --- pages, together ----------------------------------------------------------------- */

static void sum_hot(struct dsm_hot *to, const struct dsm_hot *h)
{
#define PLACE(name, cost) to->count.name += h->count.name;
#include "dsm_place.def"
	to->wrote += h->wrote;
	to->together += h->together;
	if (!to->store_site)
		to->store_site = h->store_site;
	if (!to->load_site)
		to->load_site = h->load_site;
	if (!to->place)
		to->place = h->place;
	if (h->bytes)
		to->bytes = h->bytes;
}

static void add_hot(struct jiarun_hot *all, int *nr, const struct dsm_hot *h)
{
	int i = 0;

	while (i < *nr && all[i].sum.page != h->page)
		i++;
	if (i == JIARUN_SPOTS_MAX)
		return;
	if (i == *nr) {
		all[i] = (struct jiarun_hot){ .sum = *h };
		++*nr;
	} else {
		sum_hot(&all[i].sum, h);
	}
	all[i].writers += h->wrote > 0;
}

static int by_cost(const void *a, const void *b)
{
	const struct jiarun_hot *x = a, *y = b;
	uint64_t cx = jiarun_hot_cost(&x->sum), cy = jiarun_hot_cost(&y->sum);

	if (cx == cy) /* the same job gives the same report */
		return (x->sum.page > y->sum.page) -
		       (x->sum.page < y->sum.page);
	return (cx < cy) - (cx > cy);
}

int jiarun_hots(const struct jiarun_counts *c, struct jiarun_hot **out)
{
	int nr = 0;

	*out = calloc(JIARUN_SPOTS_MAX, sizeof(**out));
	for (int r = 0; *out && c->tally && r < c->ranks; r++)
		for (int i = 0; i < DSM_HOT_MAX; i++)
			if (c->tally[r]->spots.hot[i].page)
				add_hot(*out, &nr, &c->tally[r]->spots.hot[i]);
	if (nr)
		qsort(*out, (size_t)nr, sizeof(**out), by_cost);
	return nr;
}

/* The youngest allocation with @page, as one rank has noted it. */
static const struct dsm_maker *maker_of(const struct dsm_tally *t,
					uint64_t page)
{
	for (uint64_t i = 0; i < DSM_MAKERS_MAX && i < t->makers; i++) {
		const struct dsm_maker *o =
			&t->maker[(t->makers - 1 - i) % DSM_MAKERS_MAX];

		if (page >= o->page && page - o->page < o->pages)
			return o;
	}
	return NULL;
}

static uint64_t address_of(const struct dsm_tally *t, uint64_t page)
{
	if (page - t->alias_page < t->alias_pages)
		return t->alias + ((page - t->alias_page) << 12);
	return t->view + (page << 12);
}

void jiarun_hot_where(const struct jiarun_counts *c, const struct dsm_hot *hot,
		      struct jiarun_where *w)
{
	const struct dsm_tally *t = c->tally[0];
	uint64_t page = hot->page - 1;
	const struct dsm_maker *o = NULL;

	*w = (struct jiarun_where){ .address = address_of(t, page) };
	for (int r = 0; r < c->ranks && !o; r++)
		o = maker_of(c->tally[r], page);
	if (o) {
		w->offset = (page - o->page) << 12;
		w->site = o->site;
	}
	for (int r = 0; r < c->ranks && !w->name[0]; r++) {
		const struct dsm_hot *own = jiarun_hot_of(c, r, hot->page);
		uint32_t row = own ? own->place : 0;

		if (row && row < DSM_PLACES_MAX)
			jiarun_tally_clean(w->name,
					   c->tally[r]->place_name[row]);
	}
}

/* --- texts ----------------------------------------------------------------------------- */

void jiarun_spot_what(const struct dsm_spot *spot, char *out, size_t room)
{
	const char *text = kinds[spot->kind - 1].text;
	uint64_t bare = spot->lock & ((UINT64_C(1) << 60) - 1);

	if (!kinds[spot->kind - 1].which)
		snprintf(out, room, "%s", text);
	else if (bare < DSM_LOCKS)
		snprintf(out, room, "%s %" PRIu64, text, bare);
	else
		snprintf(out, room, "%s at 0x%" PRIx64, text, bare);
}

const char *jiarun_spot_site(const struct jiarun_counts *c, uint64_t site,
			     char *out, size_t room)
{
	if (!site)
		snprintf(out, room, "%s", "");
	else if (c->sites)
		snprintf(out, room, "%s", jiarun_site_text(c->sites, site));
	else
		snprintf(out, room, "0x%" PRIx64, site);
	return out;
}
