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

static json_t *job(const uint64_t *const counters[], int ranks)
{
	json_t *o = json_object();

	if (json_object_set_new(o, "format", json_string("dajia-stats")) ||
	    json_object_set_new(o, "version", json_integer(1)) ||
	    json_object_set_new(o, "ranks", json_integer(ranks)) ||
	    json_object_set_new(o, "counters", all_counters(counters, ranks))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

int jiarun_json_print(FILE *f, const uint64_t *const counters[], int ranks)
{
	json_t *o = job(counters, ranks);
	int failed;

	if (!o)
		return -ENOMEM;
	failed = json_dumpf(o, f, JSON_INDENT(2));
	json_decref(o);
	if (failed || fputc('\n', f) == EOF || fflush(f))
		return -EIO;
	return 0;
}
