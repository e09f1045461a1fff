/* SPDX-License-Identifier: MIT */
/*
 * sulperf_kmod.c - for --breakdown: where an operation over kmod spends its time.
 *
 * Role:      the module notes times on the way (SUL_PORT_TRACE), by the clock that
 *            is ours, too; the other rank sends its own, and when it has seen what
 *            was sent.  So the stages of a sample add up to all of it.
 * Invariant: times that are not in their order do not count: of another packet, or
 *            of another machine's clock.
 * Threads:   the rank's only one.
 */
#include "sul_kmod.h"
#include "sulperf.h"

enum {
	SAMPLES = 20, /* of each operation in a round */
	BYTES = 64,
	TRAP_BYTES = 8,
};

const int perf_batches[PERF_BATCHES] = { 1, 4, 16 };

static void add(struct perf *p, enum perf_break b, enum perf_stage s,
		uint64_t from, uint64_t to)
{
	if (from && to >= from)
		bench_add(&p->board->stage[b][s], (double)(to - from) / 1e3);
}

static void read_trace(const struct perf *p, uint64_t out[SUL_TRACE_NR])
{
	const struct sul_status *s = sul_kmod_of(p->port)->status;

	for (int i = 0; i < SUL_TRACE_NR; i++)
		out[i] = __atomic_load_n(&s->trace[i], __ATOMIC_ACQUIRE);
}

/* --- the requester's part --------------------------------------------------------------- */

static void add_submit(struct perf *p, enum perf_break b, uint64_t start,
		       const uint64_t t[SUL_TRACE_NR])
{
	add(p, b, PERF_STAGE_trap, start, t[SUL_TRACE_ENTER]);
	add(p, b, PERF_STAGE_copy_in, t[SUL_TRACE_ENTER], t[SUL_TRACE_COPIED]);
	add(p, b, PERF_STAGE_checks, t[SUL_TRACE_COPIED], t[SUL_TRACE_CHECKED]);
}

/* @in: of the rank that the packets come to; of a get, this one. */
static void add_packets(struct perf *p, enum perf_break b,
			const uint64_t out[SUL_TRACE_NR],
			const uint64_t in[SUL_TRACE_NR], uint64_t seen)
{
	uint64_t made = out[SUL_TRACE_BUILT] - out[SUL_TRACE_CHECKED];
	uint64_t known = in[SUL_TRACE_GENUINE] - in[SUL_TRACE_ARRIVED];

	if (in[SUL_TRACE_ARRIVED] < out[SUL_TRACE_BUILT] ||
	    in[SUL_TRACE_GENUINE] < in[SUL_TRACE_ARRIVED] ||
	    in[SUL_TRACE_STORED] < in[SUL_TRACE_GENUINE] ||
	    seen < in[SUL_TRACE_STORED])
		return;
	add(p, b, PERF_STAGE_protocol, 1, 1 + made + known);
	add(p, b, PERF_STAGE_driver, out[SUL_TRACE_BUILT],
	    in[SUL_TRACE_ARRIVED]);
	add(p, b, PERF_STAGE_copy_out, in[SUL_TRACE_GENUINE],
	    in[SUL_TRACE_STORED]);
	add(p, b, PERF_STAGE_poll, in[SUL_TRACE_STORED], seen);
}

/* On one host there are no packets: it is done when it is built. */
static void add_sample(struct perf *p, enum perf_break b, uint64_t start,
		       const uint64_t out[SUL_TRACE_NR],
		       const uint64_t in[SUL_TRACE_NR], uint64_t seen)
{
	if (seen > start)
		bench_add(&p->board->taken[b], (double)(seen - start) / 1e3);
	add_submit(p, b, start, out);
	if (perf_on(p) == PERF_ON_KMOD) {
		add_packets(p, b, out, in, seen);
		return;
	}
	add(p, b, PERF_STAGE_copy_out, out[SUL_TRACE_CHECKED],
	    out[SUL_TRACE_BUILT]);
	add(p, b, PERF_STAGE_poll, out[SUL_TRACE_BUILT], seen);
}

static void sample_get(struct perf *p)
{
	uint64_t start = bench_now_ns(), t[SUL_TRACE_NR];

	perf_get_once(p, PERF_PAGE);
	read_trace(p, t);
	add_sample(p, PERF_BREAK_GET, start, t, t, bench_now_ns());
}

/* --- there and back ------------------------------------------------------------------------ */

static void give(struct perf *p, enum perf_break b)
{
	if (b == PERF_BREAK_SYSTEM)
		perf_send_message(p, BYTES);
	else
		perf_put_and_ping(p, p->from, BYTES);
	perf_must(p, sul_poll(p->port) < 0 ? -1 : 0, "sending");
}

static void await(struct perf *p, enum perf_break b)
{
	if (b == PERF_BREAK_SYSTEM)
		perf_await_message(p);
	else
		perf_await(p, &p->desk->ping, p->seq);
}

/* The peer's times are in its desk before its answer leaves. */
static void answer(struct perf *p, enum perf_break b)
{
	await(p, b);
	p->desk->seen_ns = bench_now_ns();
	read_trace(p, p->desk->trace);
	give(p, b);
}

static void ask_for_times(struct perf *p, uint64_t trace[SUL_TRACE_NR],
			  uint64_t *seen)
{
	perf_must(p,
		  sul_get(p->port, p->other, PERF_W_DESK,
			  offsetof(struct perf_desk, trace), trace,
			  sizeof(p->desk->trace), NULL, 0),
		  "the other's times");
	perf_must(p,
		  sul_get(p->port, p->other, PERF_W_DESK,
			  offsetof(struct perf_desk, seen_ns), seen,
			  sizeof(*seen), NULL, 0),
		  "the other's times");
	perf_must(p, sul_flush(p->port), "the other's times");
}

static void sample(struct perf *p, enum perf_break b)
{
	uint64_t start = bench_now_ns(), out[SUL_TRACE_NR], in[SUL_TRACE_NR];
	uint64_t seen;

	give(p, b);
	read_trace(p, out);
	await(p, b);
	ask_for_times(p, in, &seen);
	add_sample(p, b, start, out, in, seen);
}

/* --- the share of the trap ------------------------------------------------------------------- */

static void time_traps(struct perf *p)
{
	struct sul_kmod *k = sul_kmod_of(p->port);

	for (int i = 0; i < SAMPLES; i++) {
		uint64_t start = bench_now_ns();

		sul_kmod_call(k, SUL_IOC_NULL, NULL);
		bench_add(&p->board->trap,
			  (double)perf_call_ns(p, start) / 1e3);
		for (int n = 0; n < PERF_BATCHES; n++) {
			start = bench_now_ns();
			for (int m = 0; m < perf_batches[n]; m++)
				perf_must(p,
					  sul_put(p->port, p->other,
						  PERF_W_LAND, 0, p->from,
						  TRAP_BYTES),
					  "a put");
			p->port->far_ops->push(p->port);
			bench_add(&p->board->batch[n],
				  (double)perf_call_ns(p, start) / 1e3);
			perf_must(p, sul_flush(p->port), "a flush");
		}
	}
}

void perf_break_kmod(struct perf *p)
{
	for (int b = PERF_BREAK_SYSTEM; b <= PERF_BREAK_PUT; b++)
		for (int i = 0; i < SAMPLES; i++) {
			p->seq += b == PERF_BREAK_PUT;
			if (p->leader)
				sample(p, (enum perf_break)b);
			else
				answer(p, (enum perf_break)b);
		}
	if (!p->leader) {
		perf_await(p, &p->desk->done, p->rows);
		return;
	}
	for (int i = 0; i < SAMPLES; i++)
		sample_get(p);
	time_traps(p);
	perf_notify(p, offsetof(struct perf_desk, done), p->rows);
}
