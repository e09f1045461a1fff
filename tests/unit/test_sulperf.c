/* SPDX-License-Identifier: MIT */
/*
 * test_sulperf.c - what samples come to: ratios, LogP, figures, stages.
 */
#include <stdlib.h>

#include "sulperf.h"
#include "tests.h"

#define NEAR(a, b) CU_ASSERT_DOUBLE_EQUAL(a, b, 1e-4)

static struct perf_board *board_new(void)
{
	struct perf_board *b = calloc(1, sizeof(*b));

	REQUIRE(b);
	return b;
}

/* Median @us, least @us / 2. */
static void measured(struct perf_board *b, enum perf_row_id row, double us)
{
	for (int i = 0; i < 3; i++)
		bench_add(&b->row[row].op, i ? us : us / 2);
}

static void a_row_is_compared_with_its_sockets(void)
{
	struct perf_board *b = board_new();
	struct perf_outcome o;

	measured(b, PERF_put_64, 3);
	measured(b, PERF_udp_64, 4);
	o = perf_outcome(b, PERF_put_64);
	NEAR(o.median, 3);
	NEAR(o.best, 1.5);
	NEAR(o.udp, 0.75);
	NEAR(o.udp_best, 0.75);
	CU_ASSERT_EQUAL(o.tcp, 0); /* unknown */
	CU_ASSERT_EQUAL(perf_outcome(b, PERF_put_8).samples, 0);
	free(b);
}

static void bandwidths_are_compared_by_the_byte(void)
{
	struct perf_board *b = board_new();
	struct perf_outcome o;

	measured(b, PERF_bw_put_4k, 4);
	measured(b, PERF_bw_udp_1400, 7);
	o = perf_outcome(b, PERF_bw_put_4k);
	NEAR(o.median, 1024);
	NEAR(o.best, 2048);
	NEAR(o.udp, 1024 / 200.0);
	free(b);
}

static void a_rate_is_the_reverse_of_a_time(void)
{
	struct perf_board *b = board_new();
	struct perf_outcome o;

	measured(b, PERF_rate_put_64, 0.5);
	measured(b, PERF_rate_tcp_64, 2);
	o = perf_outcome(b, PERF_rate_put_64);
	NEAR(o.median, 2);
	NEAR(o.tcp, 4);
	free(b);
}

static void logp_takes_the_overheads_off_the_way(void)
{
	struct perf_board *b = board_new();
	struct perf_logp l[PERF_LOGPS];

	measured(b, PERF_sys_8, 5);
	measured(b, PERF_sys_send, 1);
	measured(b, PERF_sys_recv, 1.5);
	measured(b, PERF_bw_put_64k, 100);
	measured(b, PERF_bw_put_1m, 100 + 0.5e-3 * (1048576 - 65536));
	perf_logp(b, "udp", l);
	ASSERT_TEXT(l[0].name, "udp");
	CU_ASSERT(l[0].latency.known && l[0].byte_ns.known);
	NEAR(l[0].latency.v, 2.5);
	NEAR(l[0].byte_ns.v, 0.5);
	CU_ASSERT(!l[0].gap.known);
	CU_ASSERT(!l[1].latency.known);
	free(b);
}

static const struct perf_figure *figure(const struct perf_board *b, bool mac,
					int nr)
{
	static struct perf_figure f[PERF_FIGURES];

	perf_figures(b, mac, f);
	return &f[nr];
}

static void a_figure_is_met_up_to_its_limit(void)
{
	struct perf_board *b = board_new();

	CU_ASSERT(!figure(b, false, 0)->known);
	measured(b, PERF_sys_64, 13);
	CU_ASSERT(!figure(b, false, 0)->known);
	measured(b, PERF_udp_64, 10.01);
	CU_ASSERT(figure(b, false, 0)->known && figure(b, false, 0)->met);
	free(b);
	b = board_new();
	measured(b, PERF_sys_64, 13);
	measured(b, PERF_udp_64, 9.99);
	CU_ASSERT(figure(b, false, 0)->known && !figure(b, false, 0)->met);
	free(b);
}

static void tcp_is_the_faster_of_spinning_and_blocking(void)
{
	struct perf_board *b = board_new();

	measured(b, PERF_bw_put_1m, 300);
	measured(b, PERF_bw_tcp_1m, 1000);
	measured(b, PERF_bw_tcp_1m_block, 200);
	NEAR(figure(b, false, 2)->limit, 200 / 0.8);
	CU_ASSERT(!figure(b, false, 2)->met);
	NEAR(figure(b, true, 2)->limit, 200 / 0.45);
	CU_ASSERT(figure(b, true, 2)->met);
	free(b);
}

static void a_computing_home_may_add_a_wake_up(void)
{
	struct perf_board *b = board_new();

	measured(b, PERF_get_4k, 10);
	measured(b, PERF_get_4k_busy, 22);
	measured(b, PERF_wake, 10);
	NEAR(figure(b, false, 5)->us, 12);
	NEAR(figure(b, false, 5)->limit, 13);
	CU_ASSERT(figure(b, false, 5)->met);
	free(b);
}

static void a_limit_below_nothing_judges_nobody(void)
{
	struct perf_board *b = board_new();

	measured(b, PERF_get_4k, 10);
	measured(b, PERF_get_4k_busy, 22);
	measured(b, PERF_wake, 0);
	CU_ASSERT(!figure(b, false, 5)->known);
	free(b);
}

static void the_wire_is_what_the_calls_leave_over(void)
{
	struct perf_board *b = board_new();
	struct perf_plain *way = b->plain[PERF_BREAK_GET];
	struct perf_parts parts;

	for (int i = 0; i < 2; i++) {
		bench_add(&way[i].half, 10);
		bench_add(&way[i].send, 3);
		bench_add(&way[i].receive, 2);
	}
	bench_add(&b->stage[PERF_BREAK_GET][PERF_STAGE_send], 6);
	bench_add(&b->stage[PERF_BREAK_GET][PERF_STAGE_ack], 100);
	bench_add(&b->stage[PERF_BREAK_GET][PERF_STAGE_call], 1000);
	measured(b, PERF_get_4k, 20);
	perf_breakdown_of(b, PERF_ON_UDP, PERF_BREAK_GET, false, &parts);
	NEAR(parts.stage[PERF_STAGE_wire].v, 10);
	CU_ASSERT(parts.stage[PERF_STAGE_ack].known);
	CU_ASSERT(!parts.stage[PERF_STAGE_call].known); /* of shm */
	CU_ASSERT(!parts.stage[PERF_STAGE_issue].known);
	NEAR(parts.sum, 16);
	NEAR(parts.whole.v, 20);
	free(b);
}

static void every_row_can_be_measured(void)
{
	for (int r = 0; r < PERF_ROWS; r++) {
		const struct perf_row *row = &perf_rows[r];

		CU_ASSERT(row->fn && row->batch > 0 && row->samples > 0);
		CU_ASSERT(row->bytes * (size_t)row->batch <= PERF_BYTES_MAX);
		/* Only sockets are compared with, of the same unit. */
		if (row->udp != PERF_NONE) {
			CU_ASSERT_EQUAL(perf_rows[row->udp].via, PERF_UDP);
			CU_ASSERT_EQUAL(perf_rows[row->udp].unit, row->unit);
		}
		if (row->tcp != PERF_NONE) {
			CU_ASSERT_EQUAL(perf_rows[row->tcp].via, PERF_TCP);
			CU_ASSERT_EQUAL(perf_rows[row->tcp].unit, row->unit);
		}
	}
}

CU_TestInfo test_sulperf[] = {
	{ "a row is compared with its sockets",
	  a_row_is_compared_with_its_sockets },
	{ "bandwidths are compared by the byte",
	  bandwidths_are_compared_by_the_byte },
	{ "a rate is the reverse of a time", a_rate_is_the_reverse_of_a_time },
	{ "LogP takes the overheads off the way",
	  logp_takes_the_overheads_off_the_way },
	{ "a figure is met up to its limit", a_figure_is_met_up_to_its_limit },
	{ "TCP is the faster of spinning and blocking",
	  tcp_is_the_faster_of_spinning_and_blocking },
	{ "a computing home may add a wake-up",
	  a_computing_home_may_add_a_wake_up },
	{ "a limit below nothing judges nobody",
	  a_limit_below_nothing_judges_nobody },
	{ "the wire is what the calls leave over",
	  the_wire_is_what_the_calls_leave_over },
	{ "every row can be measured", every_row_can_be_measured },
	CU_TEST_INFO_NULL,
};
