/* SPDX-License-Identifier: MIT */
/*
 * sulperf_json.c - all of it as one JSON object.
 *
 * Role:      see sulperf(1) for the keys.
 * Invariant: what was not measured is absent.
 * Threads:   one.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sulperf.h"

static const char *const units[] = {
	[PERF_TIME] = "us",
	[PERF_BAND] = "MB/s",
	[PERF_RATE] = "million/s",
};

static const char *const vias[PERF_VIAS] = {
	[PERF_SUL] = "carrier",
	[PERF_LOCAL] = "local",
	[PERF_UDP] = "udp",
	[PERF_UDP_BLOCK] = "udp, blocking",
	[PERF_TCP] = "tcp",
	[PERF_TCP_BLOCK] = "tcp, blocking",
	[PERF_DGRAM] = "unix datagram",
	[PERF_DGRAM_BLOCK] = "unix datagram, blocking",
	[PERF_STREAM] = "unix stream",
	[PERF_STREAM_BLOCK] = "unix stream, blocking",
};

/* Adding to @o, whose failures add up in *bad. */
static void add(json_t *o, const char *key, json_t *v, int *bad)
{
	*bad |= json_object_set_new(o, key, v);
}

static void add_known(json_t *o, const char *key, double v, bool known,
		      int *bad)
{
	if (known)
		add(o, key, json_real(v), bad);
}

/* @o, or NULL if it is not whole. */
static json_t *whole(json_t *o, int bad)
{
	if (!bad)
		return o;
	json_decref(o);
	return NULL;
}

static json_t *json_counts(const struct perf_result *r, uint64_t here,
			   uint64_t there)
{
	return json_pack("{s:f, s:f}", "here", (double)here / r->ops, "there",
			 (double)there / r->ops);
}

static void add_counts(json_t *o, const struct perf *p, enum perf_row_id row,
		       int *bad)
{
	const struct perf_result *r = &p->board->row[row];

#define COUNT(name, where, doc)                 \
	if (perf_counted(p, PERF_##where, row)) \
		add(o, #name, json_counts(r, r->here.name, r->there.name), bad);
#include "sulperf_count.def"
}

static json_t *json_row(const struct perf *p, enum perf_row_id row)
{
	const struct perf_result *result = &p->board->row[row];
	struct perf_outcome l = perf_outcome(p->board, row);
	json_t *o = json_object();
	int bad = 0;

	add(o, "what", json_string(l.row->what), &bad);
	add(o, "via", json_string(vias[l.row->via]), &bad);
	add(o, "operation_bytes", json_integer((json_int_t)l.row->bytes), &bad);
	add(o, "us", bench_json(bench_summarize(&result->op)), &bad);
	add(o, "unit", json_string(units[l.row->unit]), &bad);
	add(o, "best", json_real(l.best), &bad);
	add(o, "median", json_real(l.median), &bad);
	add_known(o, "x_udp", l.udp, l.udp > 0, &bad);
	add_known(o, "x_udp_best", l.udp_best, l.udp_best > 0, &bad);
	add_known(o, "x_tcp", l.tcp, l.tcp > 0, &bad);
	add_known(o, "x_tcp_best", l.tcp_best, l.tcp_best > 0, &bad);
	add_counts(o, p, row, &bad);
	return whole(o, bad);
}

static json_t *json_rows(const struct perf *p)
{
	json_t *o = json_object();
	int bad = 0;

	for (int r = 0; r < PERF_ROWS; r++)
		if (p->board->row[r].op.nr)
			add(o, perf_rows[r].name,
			    json_row(p, (enum perf_row_id)r), &bad);
	return whole(o, bad);
}

static json_t *json_logp(const struct perf *p)
{
	struct perf_logp all[PERF_LOGPS];
	json_t *list = json_object();
	int bad = 0;

	perf_logp(p->board, perf_carrier(p), all);
	for (int i = 0; i < PERF_LOGPS; i++) {
		const struct perf_logp *l = &all[i];
		json_t *o = json_object();

		add_known(o, "o_send", l->send.v, l->send.known, &bad);
		add_known(o, "o_recv", l->recv.v, l->recv.known, &bad);
		add_known(o, "g", l->gap.v, l->gap.known, &bad);
		add_known(o, "L", l->latency.v, l->latency.known, &bad);
		add_known(o, "G_ns", l->byte_ns.v, l->byte_ns.known, &bad);
		add(list, i ? l->name : "carrier", o, &bad);
	}
	return whole(list, bad);
}

static json_t *json_parts(const struct perf *p, enum perf_break b, bool best)
{
	json_t *o = json_object(), *stages = json_object();
	struct perf_parts part;
	int bad = 0;

	perf_breakdown_of(p->board, perf_on(p), b, best, &part);
	for (int s = 0; s < PERF_STAGES; s++)
		add_known(stages, perf_stages[s].name, part.stage[s].v,
			  part.stage[s].known, &bad);
	add(o, "stages", stages, &bad);
	add(o, "sum", json_real(part.sum), &bad);
	add_known(o, "whole", part.whole.v, part.whole.known, &bad);
	return whole(o, bad);
}

static json_t *json_breakdown(const struct perf *p)
{
	json_t *o = json_object();
	int bad = 0;

	for (int b = 0; b < PERF_BREAKS; b++) {
		json_t *both = json_object();

		add(both, "median", json_parts(p, (enum perf_break)b, false),
		    &bad);
		add(both, "best", json_parts(p, (enum perf_break)b, true),
		    &bad);
		add(o, perf_breaks[b].name, both, &bad);
	}
	return whole(o, bad);
}

static json_t *json_figures(const struct perf *p)
{
	struct perf_figure all[PERF_FIGURES];
	json_t *list = json_array();
	int bad = 0;

	perf_figures(p->board, perf_has_mac(p), all);
	for (int i = 0; i < PERF_FIGURES; i++) {
		const struct perf_figure *f = &all[i];

		if (f->known)
			bad |= json_array_append_new(
				list,
				json_pack("{s:s, s:s, s:f, s:f, s:b, s:b}",
					  "what", f->what, "wanted", f->wanted,
					  "us", f->us, "limit_us", f->limit,
					  "met", f->met, "met_by_best",
					  f->met_by_best));
	}
	return whole(list, bad);
}

int perf_print_json(const struct perf *p)
{
	double load[3] = { 0 };
	json_t *all = json_object();
	int bad = 0;

	getloadavg(load, 3);
	add(all, "format", json_string("dajia-sulperf"), &bad);
	add(all, "version", json_integer(1), &bad);
	add(all, "carrier", json_string(perf_carrier(p)), &bad);
	if (perf_auth(p))
		add(all, "auth", json_string(perf_auth(p)), &bad);
	add(all, "peer", json_integer(p->other), &bad);
	add(all, "one_host", json_boolean(p->near), &bad);
	add(all, "processors", json_integer(sysconf(_SC_NPROCESSORS_ONLN)),
	    &bad);
	add(all, "load", json_real(load[0]), &bad);
	add(all, "rounds", json_integer(p->o->rounds), &bad);
	add(all, "lost_datagrams", json_integer(p->lost), &bad);
	add(all, "rows", json_rows(p), &bad);
	add(all, "logp", json_logp(p), &bad);
	if (p->o->breakdown)
		add(all, "breakdown",
		    perf_is_broken_down(p) ? json_breakdown(p) : json_null(),
		    &bad);
	add(all, "figures", json_figures(p), &bad);
	if (bad) {
		json_decref(all);
		return -ENOMEM;
	}
	bad = json_dumpf(all, stdout, JSON_INDENT(2));
	json_decref(all);
	return bad || putchar('\n') == EOF || fflush(stdout) ? -EIO : 0;
}
