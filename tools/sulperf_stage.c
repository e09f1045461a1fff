/* SPDX-License-Identifier: MIT */
/*
 * sulperf_stage.c - the time of an operation, stage by stage (--breakdown).
 *
 * Role:      takes samples of every stage, in a part of its own of each round.
 * Invariant: a stage is measured where nothing else happens; what the whole
 *            takes beyond their sum is shown as the rest.
 * Threads:   the rank's only one.
 *
 * Why not time stamps on the way: a stage takes as long as reading a few clocks
 * does, and the carrier would be another with them.  See sulperf(1).
 */
#include <stdio.h>
#include <string.h>

#include "sulperf.h"

enum {
	SAMPLES = 20, /* of each operation in a round */
	BYTES = 64
};

const struct perf_break_info perf_breaks[PERF_BREAKS] = {
	[PERF_BREAK_SYSTEM] = { "sys_64", PERF_sys_64 },
	[PERF_BREAK_PUT] = { "put_64", PERF_put_64 },
	[PERF_BREAK_GET] = { "get_4k", PERF_get_4k },
};

const struct perf_stage_info perf_stages[PERF_STAGES] = {
#define STAGE(name, on, doc) { #name, doc, PERF_ON_##on },
#include "sulperf_stage.def"
};

static void add(struct perf *p, enum perf_break b, enum perf_stage s, double ns)
{
	bench_add(&p->board->stage[b][s], ns / 1e3);
}

/* --- ranks that share memory -------------------------------------------------------------------- */

static void call(struct perf *p, enum perf_break b)
{
	uint64_t start;

	if (b == PERF_BREAK_GET && !p->leader)
		return;
	start = bench_now_ns();
	if (b == PERF_BREAK_SYSTEM)
		perf_send_message(p, BYTES);
	else if (b == PERF_BREAK_PUT)
		perf_put_and_ping(p, p->from, BYTES);
	else
		perf_get_once(p, PERF_PAGE);
	if (p->leader)
		add(p, b, PERF_STAGE_call, (double)perf_call_ns(p, start));
}

static void await_call(struct perf *p, enum perf_break b)
{
	if (b == PERF_BREAK_SYSTEM)
		perf_await_message(p);
	else if (b == PERF_BREAK_PUT)
		perf_await(p, &p->desk->ping, p->seq);
}

/* To and fro; the caller's part is timed. */
static void time_calls(struct perf *p, enum perf_break b)
{
	for (int i = 0; i < SAMPLES; i++) {
		p->seq += b == PERF_BREAK_PUT;
		if (!p->leader)
			await_call(p, b);
		call(p, b);
		if (p->leader)
			await_call(p, b);
	}
}

/* A cache line is one of the floors; a get waits for none. */
static void take_lines(struct perf *p)
{
	const struct bench_samples *line = &p->board->row[PERF_line].op;

	p->board->stage[PERF_BREAK_SYSTEM][PERF_STAGE_line] = *line;
	p->board->stage[PERF_BREAK_PUT][PERF_STAGE_line] = *line;
}

static void break_shm(struct perf *p)
{
	for (int b = 0; b < PERF_BREAKS; b++)
		time_calls(p, (enum perf_break)b);
	if (p->leader)
		take_lines(p);
	if (p->leader)
		perf_notify(p, offsetof(struct perf_desk, done), p->rows);
	else
		perf_await(p, &p->desk->done, p->rows);
}

/* --- udp ------------------------------------------------------------------------------------------ */

static void add_plain(struct perf_plain *to, const struct perf_way *w)
{
	bench_add(&to->half, (double)w->plain_round_ns / 2e3);
	bench_add(&to->send, (double)w->plain_send_ns / 1e3);
	bench_add(&to->receive, (double)w->plain_receive_ns / 1e3);
}

/* There, and of a get back. */
static void add_ways(struct perf *p, enum perf_break b,
		     const struct perf_way *way, int nr)
{
	double send = 0, receive = 0;

	for (int i = 0; i < nr; i++) {
		send += (double)way[i].send_ns;
		receive += (double)way[i].receive_ns;
		add_plain(&p->board->plain[b][i], &way[i]);
	}
	add(p, b, PERF_STAGE_send, send);
	add(p, b, PERF_STAGE_receive, receive);
}

static void break_core(struct perf *p, enum perf_break b,
		       struct perf_core *core, struct perf_steps *s)
{
	for (int i = 0; i < SAMPLES; i++) {
		perf_core_step(core, b, s);
		add(p, b, PERF_STAGE_issue, (double)s->issue_ns);
		add(p, b, PERF_STAGE_pack, (double)s->pack_ns);
		add(p, b, PERF_STAGE_execute, (double)s->execute_ns);
		if (s->ack_ns)
			add(p, b, PERF_STAGE_ack, (double)s->ack_ns);
	}
}

static void break_wire(struct perf *p, enum perf_break b,
		       struct perf_wire *wire, const struct perf_steps *s)
{
	int nr = s->answer_bytes ? 2 : 1;

	for (int i = 0; i < SAMPLES; i++) {
		struct perf_way way[2];

		if (perf_wire_times(wire, s->request_bytes, &way[0]) &&
		    (nr == 1 ||
		     perf_wire_times(wire, s->answer_bytes, &way[1])))
			add_ways(p, b, way, nr);
	}
}

static void break_udp(struct perf *p)
{
	struct perf_core *core = perf_core_open(p);
	struct perf_wire *wire = perf_wire_open(p);

	for (int b = 0; b < PERF_BREAKS; b++) {
		struct perf_steps s;

		break_core(p, (enum perf_break)b, core, &s);
		break_wire(p, (enum perf_break)b, wire, &s);
	}
	perf_wire_end(wire);
	perf_wire_close(wire);
	perf_core_close(core);
	perf_notify(p, offsetof(struct perf_desk, done), p->rows);
}

bool perf_is_broken_down(const struct perf *p)
{
	return sul_word_read(&p->desk->on.word) == (uint32_t)perf_on(p) + 1;
}

void perf_breakdown(struct perf *p)
{
	p->rows++;
	perf_arrivals_begin(p);
	perf_notify(p, offsetof(struct perf_desk, on),
		    (uint32_t)perf_on(p) + 1);
	perf_meet(p);
	if (!perf_is_broken_down(p))
		return; /* both see that */
	if (perf_on(p) == PERF_ON_NEAR || perf_on(p) == PERF_ON_KMOD)
		perf_break_kmod(p);
	else if (perf_on(p) == PERF_ON_SHM)
		break_shm(p);
	else if (p->leader)
		break_udp(p);
	else
		perf_wire_answer(p);
	perf_meet(p);
}

/* --- what it comes to --------------------------------------------------------------------------------- */

static bool belongs(enum perf_stage s, enum perf_on on)
{
	return perf_stages[s].on == on ||
	       (perf_stages[s].on == PERF_ON_KMOD && on == PERF_ON_NEAR) ||
	       (perf_stages[s].on == PERF_ON_AFTER && on == PERF_ON_UDP);
}

static struct perf_value value_of(const struct bench_samples *samples,
				  bool best)
{
	struct bench_summary s = bench_summarize(samples);

	return (struct perf_value){ best ? s.min : s.median, s.nr > 0 };
}

/* What is left of half a round trip without the calls; of both ways. */
static struct perf_value wire_of(const struct perf_plain way[2], bool best)
{
	struct perf_value all = { 0, false };

	for (int i = 0; i < 2; i++) {
		struct perf_value half = value_of(&way[i].half, best);

		all.known |= half.known;
		all.v += half.v - value_of(&way[i].send, best).v -
			 value_of(&way[i].receive, best).v;
	}
	return all;
}

void perf_breakdown_of(const struct perf_board *board, enum perf_on on,
		       enum perf_break b, bool best, struct perf_parts *out)
{
	memset(out, 0, sizeof(*out));
	for (int s = 0; s < PERF_STAGES; s++) {
		if (!belongs((enum perf_stage)s, on))
			continue;
		out->stage[s] = s == PERF_STAGE_wire ?
					wire_of(board->plain[b], best) :
					value_of(&board->stage[b][s], best);
		if (perf_stages[s].on != PERF_ON_AFTER)
			out->sum += out->stage[s].v;
	}
	out->whole = value_of(&board->taken[b], best);
	if (!out->whole.known)
		out->whole = value_of(&board->row[perf_breaks[b].row].op, best);
}
