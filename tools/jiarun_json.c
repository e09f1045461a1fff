/* SPDX-License-Identifier: MIT */
/*
 * jiarun_json.c - the counters of a job as JSON.
 *
 * Role:      builds the object that jiarun_json.h describes and prints it.
 * Invariant: a failed allocation of jansson leaves a NULL, which its *_new
 *            setters refuse and free; so each step is checked once, by that.
 * Threads:   the caller's.
 */
#include "jiarun_json.h"

#include <errno.h>
#include <jansson.h>

#include "dsm_stat.h"
#include "jiarun_json_spot.h"

static json_t *number(uint64_t v)
{
	return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

static json_t *rank_values(const uint64_t *const counters[], int ranks,
			   unsigned int i)
{
	json_t *list = json_array();

	for (int rank = 0; rank < ranks; rank++)
		if (json_array_append_new(
			    list, number(dsm_stat_read(&counters[rank][i])))) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static json_t *counter(const uint64_t *const counters[], int ranks,
		       unsigned int i)
{
	const struct dsm_stat_row *r = dsm_stat_row(i);
	json_t *o = json_object();

	if (json_object_set_new(o, "label", json_string(r->label)) ||
	    json_object_set_new(o, "unit", json_string(r->unit)) ||
	    json_object_set_new(o, "doc", json_string(r->doc)) ||
	    json_object_set_new(o, "ranks", rank_values(counters, ranks, i)) ||
	    json_object_set_new(
		    o, "total",
		    number(dsm_stat_sum(counters, ranks, i).total))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static json_t *all_counters(const uint64_t *const counters[], int ranks)
{
	json_t *o = json_object();

	for (unsigned int i = 0; i < DSM_STAT_NR; i++)
		if (json_object_set_new(o, dsm_stat_row(i)->name,
					counter(counters, ranks, i))) {
			json_decref(o);
			return NULL;
		}
	return o;
}

/* --- phases and names ------------------------------------------------------------ */

/* A name that is not UTF-8 loses what is not ASCII. */
static json_t *text_of(const char *name)
{
	json_t *text = json_string(name);
	char ascii[DSM_TALLY_NAME_MAX];
	int i;

	if (text)
		return text;
	for (i = 0; i < DSM_TALLY_NAME_MAX - 1 && name[i]; i++)
		ascii[i] = (unsigned char)name[i] < 128 ? name[i] : '?';
	ascii[i] = '\0';
	return json_string(ascii);
}

static json_t *tally_values(const struct jiarun_counts *c,
			    enum jiarun_tally_kind kind, const char *name,
			    int column)
{
	json_t *list = json_array();

	for (int rank = 0; rank < c->ranks; rank++)
		if (json_array_append_new(
			    list, number(jiarun_tally_figure(c, rank, kind,
							     name, column)))) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static uint64_t tally_total(const struct jiarun_counts *c,
			    enum jiarun_tally_kind kind, const char *name,
			    int column)
{
	uint64_t sum = 0;

	for (int rank = 0; rank < c->ranks; rank++)
		sum += jiarun_tally_figure(c, rank, kind, name, column);
	return sum;
}

static json_t *tally_counter(const struct jiarun_counts *c,
			     enum jiarun_tally_kind kind, const char *name,
			     int column)
{
	json_t *o = json_object();

	if (json_object_set_new(o, "ranks",
				tally_values(c, kind, name, column)) ||
	    json_object_set_new(o, "total",
				number(tally_total(c, kind, name, column)))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static json_t *tally_counters(const struct jiarun_counts *c,
			      enum jiarun_tally_kind kind, const char *name)
{
	unsigned int nr = kind == JIARUN_PHASES ? DSM_STAT_NR : DSM_PLACE_NR;
	json_t *o = json_object();

	for (unsigned int i = 0; i < nr; i++) {
		unsigned int row = kind == JIARUN_PHASES ? i :
							   dsm_place_stat(i);

		if (json_object_set_new(o, dsm_stat_row(row)->name,
					tally_counter(c, kind, name, (int)i))) {
			json_decref(o);
			return NULL;
		}
	}
	return o;
}

static json_t *phase(const struct jiarun_counts *c, const char *name)
{
	json_t *o = json_object();

	if (json_object_set_new(o, "name", text_of(name)) ||
	    json_object_set_new(o, "begun",
				tally_values(c, JIARUN_PHASES, name,
					     JIARUN_ENTERED)) ||
	    json_object_set_new(
		    o, "ns", tally_values(c, JIARUN_PHASES, name, JIARUN_NS)) ||
	    json_object_set_new(o, "counters",
				tally_counters(c, JIARUN_PHASES, name))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* Each rank that gave the name has counted the allocation's bytes. */
static uint64_t place_bytes(const struct jiarun_counts *c, const char *name)
{
	uint64_t most = 0;

	for (int rank = 0; rank < c->ranks; rank++) {
		uint64_t v = jiarun_tally_figure(c, rank, JIARUN_PLACES, name,
						 JIARUN_BYTES);

		most = v > most ? v : most;
	}
	return most;
}

static json_t *place(const struct jiarun_counts *c, const char *name)
{
	json_t *o = json_object();

	if (json_object_set_new(o, "name",
				*name ? text_of(name) : json_null()) ||
	    json_object_set_new(o, "bytes", number(place_bytes(c, name))) ||
	    json_object_set_new(o, "counters",
				tally_counters(c, JIARUN_PLACES, name))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static json_t *tally(const struct jiarun_counts *c, enum jiarun_tally_kind kind)
{
	json_t *list = json_array();
	struct jiarun_names n;

	jiarun_tally_names(&n, kind, c);
	for (int i = 0; i < n.nr; i++)
		if (json_array_append_new(list, kind == JIARUN_PHASES ?
							phase(c, n.name[i]) :
							place(c, n.name[i]))) {
			json_decref(list);
			return NULL;
		}
	return list;
}

/* --- all of it ---------------------------------------------------------------------- */

static json_t *job(const struct jiarun_counts *c)
{
	json_t *o = json_object();

	if (json_object_set_new(o, "format", json_string("dajia-stats")) ||
	    json_object_set_new(o, "version", json_integer(1)) ||
	    json_object_set_new(o, "ranks", json_integer(c->ranks)) ||
	    json_object_set_new(o, "counters",
				all_counters(c->counters, c->ranks)) ||
	    json_object_set_new(o, "phases", tally(c, JIARUN_PHASES)) ||
	    json_object_set_new(o, "memory", tally(c, JIARUN_PLACES)) ||
	    json_object_set_new(o, "spots", jiarun_json_spots(c)) ||
	    json_object_set_new(o, "pages", jiarun_json_pages(c))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

int jiarun_json_print(FILE *f, const struct jiarun_counts *c)
{
	json_t *o = job(c);
	int failed;

	if (!o)
		return -ENOMEM;
	failed = json_dumpf(o, f, JSON_INDENT(2));
	json_decref(o);
	if (failed || fputc('\n', f) == EOF || fflush(f))
		return -EIO;
	return 0;
}
