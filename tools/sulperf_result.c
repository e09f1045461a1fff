/* SPDX-License-Identifier: MIT */
/*
 * sulperf_result.c - what the samples come to: ratios, LogP, figures.
 *
 * Role:      arithmetic only.
 * Invariant: what was not measured is unknown, never 0.
 * Threads:   one.
 */
#include <stdio.h>

#include "sulperf.h"

static struct bench_summary times_of(const struct perf_board *b,
				     enum perf_row_id row)
{
	if (row == PERF_NONE)
		return (struct bench_summary){ .nr = 0 };
	return bench_summarize(&b->row[row].op);
}

/* --- a row ----------------------------------------------------------------------------------- */

static double in_unit(const struct perf_row *r, double us)
{
	switch (r->unit) {
	case PERF_BAND:
		return us > 0 ? (double)r->bytes / us : 0;
	case PERF_RATE:
		return us > 0 ? 1 / us : 0;
	default:
		return us;
	}
}

/* How many times row @other's result @r's is. */
static double ratio(const struct perf_row *r, double us, enum perf_row_id other,
		    double other_us)
{
	double theirs = in_unit(&perf_rows[other], other_us);

	return theirs > 0 ? in_unit(r, us) / theirs : 0;
}

struct perf_outcome perf_outcome(const struct perf_board *b,
				 enum perf_row_id row)
{
	const struct perf_row *r = &perf_rows[row];
	struct bench_summary s = times_of(b, row);
	struct bench_summary udp = times_of(b, r->udp);
	struct bench_summary tcp = times_of(b, r->tcp);
	struct perf_outcome l = { .row = r, .samples = s.nr };

	if (!s.nr)
		return l;
	l.best = in_unit(r, s.min);
	l.median = in_unit(r, s.median);
	l.p90 = in_unit(r, s.p90);
	l.mean = in_unit(r, s.mean);
	if (udp.nr) {
		l.udp = ratio(r, s.median, r->udp, udp.median);
		l.udp_best = ratio(r, s.min, r->udp, udp.min);
	}
	if (tcp.nr) {
		l.tcp = ratio(r, s.median, r->tcp, tcp.median);
		l.tcp_best = ratio(r, s.min, r->tcp, tcp.min);
	}
	return l;
}

/* --- LogP -------------------------------------------------------------------------------------- */

/* The rows that the parameters come from. */
struct logp_rows {
	enum perf_row_id send, recv, gap, one_way, small, large;
};

static const struct logp_rows logp_rows[PERF_LOGPS] = {
	{ PERF_sys_send, PERF_sys_recv, PERF_rate_sys_8, PERF_sys_8,
	  PERF_bw_put_64k, PERF_bw_put_1m },
	{ PERF_udp_send, PERF_udp_recv, PERF_rate_udp_8, PERF_udp_8,
	  PERF_rate_udp_8, PERF_bw_udp_1400 },
	{ PERF_tcp_send, PERF_tcp_recv, PERF_rate_tcp_8, PERF_tcp_8,
	  PERF_bw_tcp_64k, PERF_bw_tcp_1m },
};

static struct perf_value median(const struct perf_board *b,
				enum perf_row_id row)
{
	struct bench_summary s = times_of(b, row);

	return (struct perf_value){ s.median, s.nr > 0 };
}

static struct perf_value slope_ns(const struct perf_board *board,
				  const struct logp_rows *r)
{
	struct perf_value a = median(board, r->small),
			  b = median(board, r->large);
	double bytes = (double)perf_rows[r->large].bytes -
		       (double)perf_rows[r->small].bytes;

	return (struct perf_value){ (b.v - a.v) * 1e3 / bytes,
				    a.known && b.known };
}

void perf_logp(const struct perf_board *b, const char *carrier,
	       struct perf_logp out[PERF_LOGPS])
{
	const char *const names[PERF_LOGPS] = { carrier, "UDP", "TCP" };

	for (int i = 0; i < PERF_LOGPS; i++) {
		const struct logp_rows *r = &logp_rows[i];
		struct perf_logp *l = &out[i];
		struct perf_value one_way = median(b, r->one_way);

		l->name = names[i];
		l->send = median(b, r->send);
		l->recv = median(b, r->recv);
		l->gap = median(b, r->gap);
		l->byte_ns = slope_ns(b, r);
		l->latency.v = one_way.v - l->send.v - l->recv.v;
		l->latency.known = one_way.known && l->send.known &&
				   l->recv.known;
	}
}

/* --- figures -------------------------------------------------------------------------------------- */

/* A sum of rows' times, less others'; PERF_NONE ends a list. */
struct sum {
	enum perf_row_id plus[2], minus[1];
};
#define ROWS1(a)                         \
	{                                \
		{ PERF_##a, PERF_NONE }, \
		{                        \
			PERF_NONE        \
		}                        \
	}
#define ROWS2(a, b)                     \
	{                               \
		{ PERF_##a, PERF_##b }, \
		{                       \
			PERF_NONE       \
		}                       \
	}
#define LESS(a, b)                       \
	{                                \
		{ PERF_##a, PERF_NONE }, \
		{                        \
			PERF_##b         \
		}                        \
	}

enum best_of {
	AS_IT_IS,
	FASTEST /* of the two rows, instead of their sum */
};

struct wish {
	const char *what, *wanted;
	struct sum of, floor;
	enum best_of floor_is;
	double times, times_mac; /* with a MAC over each packet; 0: the same */
};

static const struct wish wishes[PERF_FIGURES] = {
	{ "64 bytes on the system channel, one way", "1.3x a spinning UDP pair",
	  ROWS1(sys_64), ROWS1(udp_64), AS_IT_IS, 1.3, 0 },
	{ "put of 64 bytes and notify, one way", "1.3x a spinning UDP pair",
	  ROWS1(put_64), ROWS1(udp_64), AS_IT_IS, 1.3, 0 },
	{ "puts of 1 MiB", "0.8x TCP's bandwidth (0.45x with a MAC)",
	  ROWS1(bw_put_1m), ROWS2(bw_tcp_1m, bw_tcp_1m_block), FASTEST, 1 / 0.8,
	  1 / 0.45 },
	{ "1 MiB on the normal channel",
	  "0.8x TCP's bandwidth (0.45x with a MAC)", ROWS1(bw_normal_1m),
	  ROWS2(bw_tcp_1m, bw_tcp_1m_block), FASTEST, 1 / 0.8, 1 / 0.45 },
	{ "page from a rank that polls",
	  "2.5x (64 bytes one way + 4 KiB one way)", ROWS1(get_4k),
	  ROWS2(put_64, put_4k), AS_IT_IS, 2.5, 0 },
	{ "page from a rank that computes, more than that",
	  "1.3x waking a thread", LESS(get_4k_busy, get_4k), ROWS1(wake),
	  AS_IT_IS, 1.3, 0 },
};

static double time_of(const struct perf_board *b, enum perf_row_id row,
		      bool best, bool *known)
{
	struct bench_summary s = times_of(b, row);

	*known &= s.nr > 0;
	return best ? s.min : s.median;
}

static double sum_of(const struct perf_board *b, const struct sum *s,
		     enum best_of how, bool best, bool *known)
{
	double v = time_of(b, s->plus[0], best, known);

	if (s->plus[1] != PERF_NONE) {
		double w = time_of(b, s->plus[1], best, known);

		v = how == FASTEST ? (v < w ? v : w) : v + w;
	}
	if (s->minus[0] != PERF_NONE)
		v -= time_of(b, s->minus[0], best, known);
	return v;
}

void perf_figures(const struct perf_board *b, bool mac,
		  struct perf_figure out[PERF_FIGURES])
{
	for (int i = 0; i < PERF_FIGURES; i++) {
		const struct wish *w = &wishes[i];
		struct perf_figure *f = &out[i];
		double times = w->times_mac > 0 && mac ? w->times_mac :
							 w->times;

		*f = (struct perf_figure){ .what = w->what,
					   .wanted = w->wanted,
					   .known = true };
		f->us = sum_of(b, &w->of, AS_IT_IS, false, &f->known);
		f->us_best = sum_of(b, &w->of, AS_IT_IS, true, &f->known);
		f->limit = times *
			   sum_of(b, &w->floor, w->floor_is, false, &f->known);
		f->limit_best = times * sum_of(b, &w->floor, w->floor_is, true,
					       &f->known);
		if (f->limit <= 0) /* the noise is greater */
			f->known = false;
		f->met = f->us <= f->limit;
		f->met_by_best = f->us_best <= f->limit_best;
	}
}
