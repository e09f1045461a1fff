/* SPDX-License-Identifier: MIT */
/*
 * sulperf_print.c - the tables.
 *
 * Role:      what was measured, next to the sockets of the same run.
 * Invariant: a figure that was not measured is "-", never 0.
 * Threads:   one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sulperf.h"

static void print_head(const struct perf *p)
{
	double load[3] = { 0 };

	getloadavg(load, 3);
	printf("carrier %s%s%s, ranks 0 and %d on %s, %ld processors, load %.1f, %d rounds\n",
	       perf_carrier(p), perf_auth(p) ? ", auth=" : "",
	       perf_auth(p) ? perf_auth(p) : "", p->other,
	       p->near ? "one host" : "two hosts",
	       sysconf(_SC_NPROCESSORS_ONLN), load[0], p->o->rounds);
	if (p->lost)
		printf("%u datagrams of the UDP rows were lost; their samples do not count\n",
		       p->lost);
}

/* --- rows -------------------------------------------------------------------------------------- */

static const char *const units[] = {
	[PERF_TIME] = "time, us",
	[PERF_BAND] = "bandwidth, MB/s",
	[PERF_RATE] = "rate, million/s",
};

static void print_columns(enum perf_unit u)
{
	printf("\n%-16s %7s %7s %7s %7s %7s %7s %7s %7s %6s %6s %7s %6s %8s\n",
	       units[u], "best", "median", "90%", "mean", "x UDP", "best",
	       "x TCP", "best", "calls", "there", "packets", "there", "bytes");
}

/* Per operation.  Of a network all bytes of its packets, else those of data. */
static void print_counts(const struct perf *p, enum perf_row_id row)
{
	const struct perf_result *r = &p->board->row[row];
	double ops = r->ops > 0 ? r->ops : 1;
	bool calls = perf_counted(p, PERF_TRACED, row);
	bool net = perf_counted(p, PERF_NET, row);
	uint64_t bytes = net ? r->here.wire_out + r->there.wire_out :
			       r->here.bytes_out + r->here.bytes_in +
					 r->there.bytes_out + r->there.bytes_in;

	bench_print_number((double)r->here.calls / ops, calls, 6);
	bench_print_number((double)r->there.calls / ops, calls, 6);
	bench_print_number((double)r->here.packets_out / ops, net, 7);
	bench_print_number((double)r->there.packets_out / ops, net, 6);
	bench_print_number((double)bytes / ops, perf_counted(p, PERF_PORT, row),
			   8);
}

static void print_line(const struct perf *p, enum perf_row_id row)
{
	struct perf_outcome l = perf_outcome(p->board, row);

	if (!l.samples)
		return;
	printf("%-16s", l.row->name);
	bench_print_number(l.best, true, 7);
	bench_print_number(l.median, true, 7);
	bench_print_number(l.p90, true, 7);
	bench_print_number(l.mean, true, 7);
	bench_print_number(l.udp, l.udp > 0, 7);
	bench_print_number(l.udp_best, l.udp_best > 0, 7);
	bench_print_number(l.tcp, l.tcp > 0, 7);
	bench_print_number(l.tcp_best, l.tcp_best > 0, 7);
	print_counts(p, row);
	printf("\n");
}

static void print_unit(const struct perf *p, enum perf_unit u)
{
	bool any = false;

	for (int r = 0; r < PERF_ROWS; r++) {
		if (perf_rows[r].unit != u || !p->board->row[r].op.nr)
			continue;
		if (!any)
			print_columns(u);
		any = true;
		print_line(p, (enum perf_row_id)r);
	}
}

/* --- LogP --------------------------------------------------------------------------------------- */

static void print_value(struct perf_value v)
{
	bench_print_number(v.v, v.known, 7);
}

static bool knows(const struct perf_logp *l)
{
	return l->send.known || l->recv.known || l->gap.known ||
	       l->latency.known || l->byte_ns.known;
}

static void print_logp(const struct perf *p)
{
	struct perf_logp l[PERF_LOGPS];

	perf_logp(p->board, perf_carrier(p), l);
	if (!knows(&l[0]) && !knows(&l[1]) && !knows(&l[2]))
		return;
	printf("\n%-16s %7s %7s %7s %7s %7s\n", "LogP, us", "o send", "o recv",
	       "g", "L", "G ns/B");
	for (int i = 0; i < PERF_LOGPS; i++) {
		printf("%-16s", l[i].name);
		print_value(l[i].send);
		print_value(l[i].recv);
		print_value(l[i].gap);
		print_value(l[i].latency);
		bench_print_number(l[i].byte_ns.v, l[i].byte_ns.known, 7);
		printf("\n");
	}
}

/* --- breakdown ---------------------------------------------------------------------------------- */

/* A column for the median and one for the best of each operation. */
enum {
	PARTS = 2 * PERF_BREAKS
};

static void print_stage(const struct perf_parts part[PARTS], enum perf_stage s)
{
	bool any = false;

	for (int i = 0; i < PARTS; i++)
		any |= part[i].stage[s].known;
	if (!any)
		return;
	printf("%-16s", perf_stages[s].name);
	for (int i = 0; i < PARTS; i++)
		print_value(part[i].stage[s]);
	printf("  %s%s\n",
	       perf_stages[s].on == PERF_ON_AFTER ? "(not in the sum) " : "",
	       perf_stages[s].doc);
}

/* @trapped: over kmod. */
static void print_rest(const struct perf_parts part[PARTS], bool trapped)
{
	printf("%-16s", "sum");
	for (int i = 0; i < PARTS; i++)
		bench_print_number(part[i].sum, true, 7);
	printf("\n%-16s", "whole");
	for (int i = 0; i < PARTS; i++)
		print_value(part[i].whole);
	printf("  %s\n%-16s",
	       trapped ? "the same operations, from the call to the look" :
			 "the row of that name",
	       "rest");
	for (int i = 0; i < PARTS; i++)
		bench_print_number(part[i].whole.v - part[i].sum,
				   part[i].whole.known, 7);
	printf("  locks, clocks, waiting, and all that is between\n");
}

static void print_traps(const struct perf_board *b)
{
	struct bench_summary trap = bench_summarize(&b->trap);

	if (!trap.nr)
		return;
	printf("\n%-16s %7s %7s  %s\n", "batches, us", "median", "trap, %",
	       "puts of 8 bytes given to the module at once, and the share of a trap that does nothing");
	for (int i = 0; i < PERF_BATCHES; i++) {
		struct bench_summary s = bench_summarize(&b->batch[i]);

		printf("%-16d", perf_batches[i]);
		bench_print_number(s.median, s.nr > 0, 7);
		bench_print_number(100 * trap.median / s.median, s.median > 0,
				   7);
		printf("\n");
	}
}

static void print_breakdown(const struct perf *p)
{
	struct perf_parts part[PARTS];

	printf("\n%-16s", "breakdown, us");
	for (int i = 0; i < PARTS; i++) {
		perf_breakdown_of(p->board, perf_on(p),
				  (enum perf_break)(i / 2), i % 2, &part[i]);
		printf(" %7s", i % 2 ? "best" : perf_breaks[i / 2].name);
	}
	printf("\n");
	for (int s = 0; s < PERF_STAGES; s++)
		print_stage(part, (enum perf_stage)s);
	print_rest(part, p->board->trap.nr > 0);
	print_traps(p->board);
}

void perf_print(const struct perf *p)
{
	print_head(p);
	print_unit(p, PERF_TIME);
	print_unit(p, PERF_BAND);
	print_unit(p, PERF_RATE);
	print_logp(p);
	if (p->o->breakdown && perf_is_broken_down(p))
		print_breakdown(p);
	else if (p->o->breakdown)
		printf("\nno breakdown: the other rank's carrier is not %s\n",
		       perf_carrier(p));
}

/* --- figures ------------------------------------------------------------------------------------- */

static void print_figure(const struct perf_figure *f)
{
	if (!f->known) {
		printf("-        %s: not measured\n", f->what);
		return;
	}
	printf("%-8s %s: %.2f us, wanted at most %.2f: %s; of the least times %.2f of %.2f, %s\n",
	       f->met ? "met" : "NOT met", f->what, f->us, f->limit, f->wanted,
	       f->us_best, f->limit_best, f->met_by_best ? "met" : "NOT met");
}

void perf_print_figures(const struct perf *p)
{
	struct perf_figure f[PERF_FIGURES];

	perf_figures(p->board, perf_has_mac(p), f);
	printf("\nfigures\n");
	for (int i = 0; i < PERF_FIGURES; i++)
		print_figure(&f[i]);
}
