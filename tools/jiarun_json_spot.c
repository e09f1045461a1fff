/* SPDX-License-Identifier: MIT */
/*
 * jiarun_json_spot.c - see jiarun_json_spot.h.
 *
 * Invariant: as in jiarun_json.c, what could not be made is a NULL that the next
 *            *_new setter refuses; the setter frees what it is given either way.
 */
#include "jiarun_json_spot.h"

#include <inttypes.h>
#include <stdlib.h>

static json_t *number(uint64_t v)
{
	return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

/* What is not UTF-8 is no text for JSON. */
static json_t *text(const char *s)
{
	json_t *o = *s ? json_string(s) : json_null();

	return o ? o : json_string("?");
}

static json_t *site(const struct jiarun_counts *c, uint64_t at)
{
	char buf[JIARUN_SPOT_TEXT];

	return text(jiarun_spot_site(c, at, buf, sizeof(buf)));
}

/* Frees @o unless all went well. */
static json_t *unless(bool failed, json_t *o)
{
	if (!failed)
		return o;
	json_decref(o);
	return NULL;
}

/* --- places of the program ------------------------------------------------------- */

static json_t *of_ranks(const struct jiarun_counts *c, const struct dsm_spot *s,
			bool ns)
{
	json_t *list = json_array();
	bool failed = false;

	for (int r = 0; r < c->ranks; r++) {
		const struct dsm_spot *own = jiarun_spot_of(c, r, s);
		uint64_t v = !own ? 0 : ns ? own->ns : own->count;

		failed |= json_array_append_new(list, number(v)) != 0;
	}
	return unless(failed, list);
}

static json_t *spot(const struct jiarun_counts *c, const struct dsm_spot *s)
{
	json_t *o = json_object();
	char what[64];

	jiarun_spot_what(s, what, sizeof(what));
	return unless(
		json_object_set_new(o, "what", text(what)) ||
			json_object_set_new(o, "site", site(c, s->site)) ||
			json_object_set_new(o, "count",
					    of_ranks(c, s, false)) ||
			json_object_set_new(o, "ns", of_ranks(c, s, true)),
		o);
}

json_t *jiarun_json_spots(const struct jiarun_counts *c)
{
	json_t *list = json_array();
	struct jiarun_spot *s;
	int nr = jiarun_spots(c, &s);
	bool failed = false;

	for (int i = 0; i < nr; i++)
		failed |= json_array_append_new(list, spot(c, &s[i].sum)) != 0;
	free(s);
	return unless(failed, list);
}

/* --- pages ----------------------------------------------------------------------------- */

static json_t *writer(int rank, const struct dsm_hot *h)
{
	json_t *o = json_object();

	return unless(json_object_set_new(o, "rank", json_integer(rank)) ||
			      json_object_set_new(o, "releases",
						  number(h->wrote)) ||
			      json_object_set_new(o, "from", number(h->from)) ||
			      json_object_set_new(o, "to", number(h->to)),
		      o);
}

static json_t *writers(const struct jiarun_counts *c, uint64_t page)
{
	json_t *list = json_array();
	bool failed = false;

	for (int r = 0; r < c->ranks; r++) {
		const struct dsm_hot *h = jiarun_hot_of(c, r, page);

		if (h && h->wrote)
			failed |= json_array_append_new(list, writer(r, h)) !=
				  0;
	}
	return unless(failed, list);
}

static json_t *counters(const struct dsm_hot *h)
{
	const uint64_t *words = (const uint64_t *)&h->count;
	json_t *o = json_object();
	bool failed = false;

	for (unsigned int i = 0; i < DSM_PLACE_NR; i++)
		failed |= json_object_set_new(
				  o, dsm_stat_row(dsm_place_stat(i))->name,
				  number(words[i])) != 0;
	return unless(failed, o);
}

static json_t *page(const struct jiarun_counts *c, const struct dsm_hot *h)
{
	json_t *o = json_object();
	struct jiarun_where w;
	char address[32];

	jiarun_hot_where(c, h, &w);
	snprintf(address, sizeof(address), "0x%" PRIx64, w.address);
	return unless(
		json_object_set_new(o, "address", text(address)) ||
			json_object_set_new(o, "bytes", number(h->bytes)) ||
			json_object_set_new(o, "name", text(w.name)) ||
			json_object_set_new(o, "allocated", site(c, w.site)) ||
			json_object_set_new(o, "offset", number(w.offset)) ||
			json_object_set_new(o, "together",
					    number(h->together)) ||
			json_object_set_new(o, "counters", counters(h)) ||
			json_object_set_new(o, "load", site(c, h->load_site)) ||
			json_object_set_new(o, "store",
					    site(c, h->store_site)) ||
			json_object_set_new(o, "writers", writers(c, h->page)),
		o);
}

json_t *jiarun_json_pages(const struct jiarun_counts *c)
{
	json_t *list = json_array();
	struct jiarun_hot *h;
	int nr = jiarun_hots(c, &h);
	bool failed = false;

	for (int i = 0; i < nr; i++)
		failed |= json_array_append_new(list, page(c, &h[i].sum)) != 0;
	free(h);
	return unless(failed, list);
}
