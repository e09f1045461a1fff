/* SPDX-License-Identifier: MIT */
/*
 * jiabench_sample.c - taking times and events, and what they come to.
 *
 * Role:      the only place that reads clock and counters.
 * Invariant: between reading the counters and starting the clock nothing of
 *            the row happens, and the clock is nearest to the operation.
 * Threads:   the rank's only one.
 */
#include "jiabench.h"

#include "jia.h"

/* What an event is made of: counters of jiarun --stats. */
static const char *const parts[BENCH_EV_CALL][4] = {
	[BENCH_EV_FAULT] = { "segv_local", "segv_remote" },
	[BENCH_EV_PROTECT] = { "protects" },
	[BENCH_EV_MSG] = { "msgs_sent" },
	[BENCH_EV_BYTES] = { "bytes_sent", "bytes_recv" },
	[BENCH_EV_VISIT] = { "compares", "refreshed", "invalidated" },
	[BENCH_EV_PACKET] = { "packets_sent", "packets_recv" },
	[BENCH_EV_AGAIN] = { "packets_again" },
	[BENCH_EV_WIRE] = { "wire_sent", "wire_recv" },
};

static const struct bench_info infos[BENCH_ROWS] = {
#define ROW(name, floor, ratio, us, none, argo, factor, what)           \
	{ #name, what,	BENCH_##floor, ratio, us, (unsigned int)(none), \
	  argo,	 factor },
#include "jiabench.def"
};

const struct bench_info *bench_info(enum bench_row row)
{
	return &infos[row];
}

const char *bench_floor_name(enum bench_floor f)
{
	static const char *const names[BENCH_FLOORS] = {
		[BENCH_FAULT] = "fault",
		[BENCH_SPIN] = "spin",
		[BENCH_WAKE] = "wake",
		[BENCH_COPY] = "copy",
	};

	return names[f];
}

static uint64_t event(enum bench_event e)
{
	uint64_t sum = 0;

	for (int i = 0; i < 4 && parts[e][i]; i++)
		sum += jia_counter(parts[e][i]);
	return sum;
}

static struct bench_calls calls(const struct bench *b)
{
	return b->trace ? bench_trace_read(b->trace) :
			  (struct bench_calls){ 0 };
}

void bench_events_begin(struct bench *b)
{
	struct bench_calls c;

	if (!b->result)
		return;
	for (int e = 0; e < BENCH_EV_CALL; e++)
		b->before[e] = event((enum bench_event)e);
	c = calls(b); /* the last: the others make some */
	b->before[BENCH_EV_CALL] = c.busy + c.idle;
	b->before[BENCH_EV_WORK] = c.busy;
}

void bench_events_end(struct bench *b, double ops)
{
	struct bench_calls c;

	if (!b->result)
		return;
	c = calls(b);
	b->result->events[BENCH_EV_CALL] +=
		(double)(c.busy + c.idle - b->before[BENCH_EV_CALL]);
	b->result->events[BENCH_EV_WORK] +=
		(double)(c.busy - b->before[BENCH_EV_WORK]);
	for (int e = 0; e < BENCH_EV_CALL; e++)
		b->result->events[e] +=
			(double)(event((enum bench_event)e) - b->before[e]);
	b->result->ops += ops;
}

void bench_time_begin(struct bench *b)
{
	b->start_ns = bench_now_ns();
}

void bench_time_end(struct bench *b, double ops)
{
	uint64_t end = bench_now_ns();

	if (b->result)
		bench_add(&b->result->op,
			  (double)(end - b->start_ns) / 1e3 / ops);
}
