/* SPDX-License-Identifier: MIT */
/*
 * jiabench_print.c - the table and the JSON object.
 *
 * Role:      what was measured, next to its floor, the hardware, the figure to
 *            meet and ArgoDSM.  "met" is for reading: nothing fails by it.
 * Invariant: a figure that was not measured is "-" (JSON: absent), never 0.
 * Threads:   one.
 */
#include "jiabench.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Fewer events per operation than this are none: the ends of a measurement. */
#define NONE 0.01

static const char *const event_names[BENCH_EVENTS] = {
	[BENCH_EV_FAULT] = "faults", [BENCH_EV_PROTECT] = "mprotects",
	[BENCH_EV_MSG] = "messages", [BENCH_EV_BYTES] = "bytes",
	[BENCH_EV_VISIT] = "pages",  [BENCH_EV_PACKET] = "packets",
	[BENCH_EV_AGAIN] = "resent", [BENCH_EV_WIRE] = "wire_bytes",
	[BENCH_EV_CALL] = "calls",   [BENCH_EV_WORK] = "busy_calls",
};

enum verdict {
	NO_FIGURE,
	MET,
	NOT_MET
};

struct line {
	const struct bench_info *info;
	struct bench_summary op, floor;
	double event[BENCH_EVENTS]; /* per operation */
	bool known[BENCH_EVENTS];
	double ratio, best; /* medians, minima; 0: unknown */
};

static struct line line_of(const struct bench_mode *m, enum bench_row row)
{
	const struct bench_result *r = &m->board->row[row];
	struct line l = { .info = bench_info(row),
			  .op = bench_summarize(&r->op),
			  .floor = bench_summarize(&r->floor) };

	for (int e = 0; e < BENCH_EVENTS; e++) {
		l.known[e] = r->ops > 0 &&
			     (e < BENCH_EV_CALL || m->calls_known);
		l.event[e] = l.known[e] ? r->events[e] / r->ops : 0;
	}
	if (l.op.nr && l.floor.nr && l.floor.median > 0)
		l.ratio = l.op.median / l.floor.median;
	if (l.op.nr && l.floor.nr && l.floor.min > 0)
		l.best = l.op.min / l.floor.min;
	return l;
}

/* Is event @e one that must not happen, and did it? */
static bool breaks(const struct line *l, enum bench_event e,
		   enum bench_none bit)
{
	return l->info->none & bit && l->known[e] && l->event[e] > NONE;
}

/* The figures are for 2 ranks. */
static enum verdict figure(const struct line *l)
{
	const struct bench_info *i = l->info;

	if (i->ratio <= 0 && i->us <= 0 && !i->none)
		return NO_FIGURE;
	if (i->ratio > 0 && l->ratio > i->ratio)
		return NOT_MET;
	if (i->us > 0 && l->op.median > i->us)
		return NOT_MET;
	if (breaks(l, BENCH_EV_FAULT, BENCH_NO_FAULT) ||
	    breaks(l, BENCH_EV_CALL, BENCH_NO_CALL) ||
	    breaks(l, BENCH_EV_PROTECT, BENCH_NO_PROTECT))
		return NOT_MET;
	return MET;
}

static void figure_text(const struct bench_info *i, char *out, size_t room)
{
	size_t n = 0;

	out[0] = '\0';
	if (i->ratio > 0)
		n += (size_t)snprintf(out + n, room - n, "%.4gx", i->ratio);
	if (i->us > 0)
		n += (size_t)snprintf(out + n, room - n, "%.4g us", i->us);
	if (i->none)
		snprintf(out + n, room - n, "%s0 %s%s%s", n ? ", " : "",
			 i->none & BENCH_NO_FAULT ? "flt" : "",
			 i->none & BENCH_NO_PROTECT ? "+mpr" : "",
			 i->none & BENCH_NO_CALL ? "calls" : "");
}

static enum verdict argo(const struct line *l)
{
	if (l->info->argo <= 0)
		return NO_FIGURE;
	return l->op.median * l->info->factor <= l->info->argo ? MET : NOT_MET;
}

static const char *verdict_text(enum verdict v)
{
	return v == NO_FIGURE ? "" : v == MET ? "met" : "NOT met";
}

/* --- the table --------------------------------------------------------------------- */

static void print_floors(const struct bench_mode *m)
{
	printf("floors, us (min/median):");
	for (int f = 0; f < BENCH_FLOORS; f++) {
		struct bench_summary s = bench_summarize(&m->board->floor[f]);

		printf("  %s %.2f/%.2f", bench_floor_name((enum bench_floor)f),
		       s.min, s.median);
	}
	printf("\n");
}

static void print_head(const struct bench_mode *m)
{
	double load[3] = { 0 };

	getloadavg(load, 3);
	printf("\n%d ranks on %ld cores, load %.1f; microseconds per operation, events of rank 0\n",
	       m->ranks, sysconf(_SC_NPROCESSORS_ONLN), load[0]);
	print_floors(m);
	printf("%-15s %7s %7s %7s %7s %7s %6s %6s %6s %7s %6s %6s %6s %6s %6s %6s  %-17s %-8s %s\n",
	       "row", "min", "median", "p90", "max", "mean", "floor", "x",
	       "x min", "hw", "faults", "calls", "mprot", "msgs", "bytes",
	       "pages", "figure", "", "ArgoDSM");
}

/* With more ranks: at most 10 times the time of 2, times ranks per core. */
static double most_of_two(const struct bench_mode *m)
{
	double share = (double)m->ranks / (double)sysconf(_SC_NPROCESSORS_ONLN);

	return 10 * (share > 1 ? share : 1);
}

static void print_line(const struct line *l, const struct bench_mode *m,
		       const struct bench_summary *hw,
		       const struct bench_summary *two)
{
	char text[64] = "";

	printf("%-15s", l->info->name);
	bench_print_number(l->op.min, true, 7);
	bench_print_number(l->op.median, true, 7);
	bench_print_number(l->op.p90, true, 7);
	bench_print_number(l->op.max, true, 7);
	bench_print_number(l->op.mean, true, 7);
	printf(" %6s", bench_floor_name(l->info->floor));
	bench_print_number(l->ratio, l->ratio > 0, 6);
	bench_print_number(l->best, l->best > 0, 6);
	bench_print_number(hw->median, hw->nr, 7);
	bench_print_number(l->event[BENCH_EV_FAULT], l->known[BENCH_EV_FAULT],
			   6);
	bench_print_number(l->event[BENCH_EV_CALL], l->known[BENCH_EV_CALL], 6);
	bench_print_number(l->event[BENCH_EV_PROTECT],
			   l->known[BENCH_EV_PROTECT], 6);
	bench_print_number(l->event[BENCH_EV_MSG], l->known[BENCH_EV_MSG], 6);
	bench_print_number(l->event[BENCH_EV_BYTES], l->known[BENCH_EV_BYTES],
			   6);
	bench_print_number(l->event[BENCH_EV_VISIT], l->known[BENCH_EV_VISIT],
			   6);
	if (m->ranks == 2) {
		figure_text(l->info, text, sizeof(text));
		printf("  %-17s %-8s", text, verdict_text(figure(l)));
		if (l->info->argo > 0)
			printf(" %.4g/%.0f %s", l->info->argo, l->info->factor,
			       verdict_text(argo(l)));
	} else if (two->median > 0) {
		double x = l->op.median / two->median;

		snprintf(text, sizeof(text), "%.1fx of 2 ranks", x);
		printf("  %-17s %-8s", text,
		       verdict_text(x <= most_of_two(m) ? MET : NOT_MET));
	}
	printf("\n");
}

static struct bench_summary times_of(const struct bench_mode *m,
				     enum bench_row row)
{
	return m ? bench_summarize(&m->board->row[row].op) :
		   (struct bench_summary){ 0 };
}

/* A barrier's time must not grow with what is cached. */
static void print_growth(const struct bench_mode *m)
{
	struct bench_summary small = times_of(m, BENCH_barrier_64m);
	struct bench_summary big = times_of(m, BENCH_barrier_4g);

	if (small.nr && big.nr)
		printf("barrier_4g is %.2fx of barrier_64m, of the minima %.2fx: figure 2x, %s\n",
		       big.median / small.median, big.min / small.min,
		       verdict_text(big.median <= 2 * small.median ? MET :
								     NOT_MET));
}

/* What goes over a network, if anything does. */
static void print_network(const struct bench_mode *m,
			  const struct bench_options *o)
{
	static const enum bench_event columns[] = {
		BENCH_EV_PACKET, BENCH_EV_AGAIN, BENCH_EV_WIRE, BENCH_EV_WORK
	};
	bool head = false;

	for (int i = 0; i < BENCH_ROWS; i++) {
		struct line l = line_of(m, (enum bench_row)i);

		if (!(o->rows & UINT64_C(1) << i) ||
		    l.event[BENCH_EV_PACKET] <= NONE)
			continue;
		if (!head)
			printf("\nnetwork, per operation\n%-15s %10s %10s %10s %10s\n",
			       "row", "packets", "resent", "bytes", "calls");
		head = true;
		printf("%-15s", l.info->name);
		for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]);
		     c++)
			bench_print_number(l.event[columns[c]],
					   l.known[columns[c]], 10);
		printf("\n");
	}
}

void bench_print_table(const struct bench_mode *m, const struct bench_mode *hw,
		       const struct bench_mode *two,
		       const struct bench_options *o)
{
	print_head(m);
	for (int i = 0; i < BENCH_ROWS; i++) {
		enum bench_row row = (enum bench_row)i;
		struct bench_summary h = times_of(hw, row);
		struct bench_summary t = times_of(two, row);
		struct line l = line_of(m, row);

		if (o->rows & UINT64_C(1) << i && l.op.nr)
			print_line(&l, m, &h, &t);
	}
	print_growth(m);
	print_network(m, o);
}

/* --- JSON ----------------------------------------------------------------------------- */

static int json_verdict(json_t *o, const char *key, enum verdict v)
{
	return v == NO_FIGURE ?
		       0 :
		       json_object_set_new(o, key, json_boolean(v == MET));
}

static json_t *json_line(const struct line *l, bool judged)
{
	json_t *o = json_object(), *events = json_object();
	int bad = 0;

	bad |= json_object_set_new(o, "what", json_string(l->info->what));
	bad |= json_object_set_new(o, "us", bench_json(l->op));
	bad |= json_object_set_new(
		o, "floor", json_string(bench_floor_name(l->info->floor)));
	bad |= json_object_set_new(o, "floor_us", bench_json(l->floor));
	if (l->ratio > 0)
		bad |= json_object_set_new(o, "ratio", json_real(l->ratio));
	if (l->best > 0)
		bad |= json_object_set_new(o, "ratio_min", json_real(l->best));
	for (int e = 0; e < BENCH_EVENTS; e++)
		if (l->known[e])
			bad |= json_object_set_new(events, event_names[e],
						   json_real(l->event[e]));
	bad |= json_object_set_new(o, "events", events);
	if (judged) {
		bad |= json_verdict(o, "met", figure(l));
		bad |= json_verdict(o, "argodsm_met", argo(l));
	}
	if (!bad)
		return o;
	json_decref(o);
	return NULL;
}

static json_t *json_rows(const struct bench_mode *m,
			 const struct bench_options *o)
{
	json_t *rows = json_object();
	int bad = 0;

	for (int r = 0; r < BENCH_ROWS && !bad; r++) {
		struct line l = line_of(m, (enum bench_row)r);

		if (o->rows & UINT64_C(1) << r && l.op.nr)
			bad = json_object_set_new(
				rows, l.info->name,
				json_line(&l, m->ranks == 2 && !m->hardware));
	}
	if (!bad)
		return rows;
	json_decref(rows);
	return NULL;
}

static json_t *json_mode(const struct bench_mode *m,
			 const struct bench_options *o)
{
	json_t *mode = json_object(), *floors = json_object();
	int bad = 0;

	for (int f = 0; f < BENCH_FLOORS; f++)
		bad |= json_object_set_new(
			floors, bench_floor_name((enum bench_floor)f),
			bench_json(bench_summarize(&m->board->floor[f])));
	bad |= json_object_set_new(mode, "ranks", json_integer(m->ranks));
	bad |= json_object_set_new(mode, "hardware", json_boolean(m->hardware));
	bad |= json_object_set_new(mode, "floors", floors);
	bad |= json_object_set_new(mode, "rows", json_rows(m, o));
	if (!bad)
		return mode;
	json_decref(mode);
	return NULL;
}

int bench_print_json(const struct bench_mode *modes, int nr,
		     const struct bench_options *o)
{
	double load[3] = { 0 };
	json_t *list = json_array(), *all;
	int bad = 0;

	getloadavg(load, 3);
	for (int i = 0; i < nr; i++)
		bad |= json_array_append_new(list, json_mode(&modes[i], o));
	all = json_pack("{s:s, s:i, s:s, s:i, s:f, s:o}", "format",
			"dajia-bench", "version", 1, "unit", "us", "cores",
			(int)sysconf(_SC_NPROCESSORS_ONLN), "load", load[0],
			"modes", list);
	if (!all || bad) {
		json_decref(all);
		return -ENOMEM;
	}
	bad = json_dumpf(all, stdout, JSON_INDENT(2));
	json_decref(all);
	return bad || putchar('\n') == EOF || fflush(stdout) ? -EIO : 0;
}
