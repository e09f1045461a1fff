/* SPDX-License-Identifier: MIT */
/*
 * sul_simnet_world.c - the clock, the nodes, and what goes wrong with them.
 *
 * Role:      takes the earliest event from the queue and lets it happen: to a
 *            node that runs, to one that is stopped (then it waits until the
 *            node goes on, as far as its socket has room), to one that has
 *            crashed (then it is nothing).
 * Invariant: time never goes back; between two events nobody does anything.
 * Threads:   one.
 */
#include <errno.h>
#include <stdlib.h>

#include "sul_simnet.h"

enum {
	SHORTEST =
		10 /* a fault may be 2^SHORTEST times shorter than it may be */
};

/* --- time ------------------------------------------------------------------------- */

uint64_t sul_simnet_now_ns(const struct sul_sim *s)
{
	return s->net->now;
}

uint64_t sul_simnet_time(struct sul_sim *s, uint64_t most)
{
	return (uint64_t)((__extension__(unsigned __int128) sul_sim_random(s) *
			   (most + 1)) >>
			  64);
}

static void push(struct sul_sim *s, struct sul_sim_queue *q,
		 struct sul_sim_event e)
{
	if (sul_sim_queue_push(q, e))
		s->net->error = -ENOMEM;
}

void sul_simnet_at(struct sul_sim *s, uint64_t delay_ns, int kind, int rank,
		   uint64_t which, void *what)
{
	push(s, &s->net->queue,
	     (struct sul_sim_event){ .at = s->net->now + delay_ns,
				     .tie = sul_sim_random(s),
				     .kind = kind,
				     .rank = rank,
				     .which = which,
				     .what = what });
}

/* How long somebody who can go on takes to do so. */
static uint64_t think(struct sul_sim *s, bool slow)
{
	uint64_t most = sul_simnet_cfg(s)->think_ns;

	return 1 + sul_simnet_time(s, slow ? SUL_SIM_SLOW * most : most);
}

void sul_simnet_ready(struct sul_sim *s, uint32_t i)
{
	const struct sul_sim_task *t = &s->tasks[i];
	bool slow = t->slow || s->net->node[t->rank].slow;

	sul_simnet_at(s, think(s, slow), SUL_SIMNET_TASK, t->rank, i, NULL);
}

void sul_simnet_pump_soon(struct sul_sim *s, int rank)
{
	sul_simnet_pump_at(s, rank,
			   s->net->now + think(s, s->net->node[rank].slow));
}

void sul_simnet_pump_at(struct sul_sim *s, int rank, uint64_t at)
{
	struct sul_simnet_node *n = &s->net->node[rank];

	if (at >= n->pump_at || n->crashed)
		return;
	n->pump_at = at;
	sul_simnet_at(s, at - s->net->now, SUL_SIMNET_PUMP, rank, at, NULL);
}

/* --- the world --------------------------------------------------------------------- */

static uint64_t shorter(struct sul_sim *s, uint64_t most)
{
	return 1 + (sul_simnet_time(s, most) >> sul_sim_below(s, SHORTEST));
}

/* The next fault of its kind, if there are any: not before it has been well for
 * as long as it was not. */
static void next_fault(struct sul_sim *s, int kind, uint64_t mean,
		       uint64_t after)
{
	if (mean)
		sul_simnet_at(s, after + mean / 2 + sul_simnet_time(s, mean),
			      kind, 0, 0, NULL);
}

static void open_nodes(struct sul_sim *s)
{
	unsigned int most = (unsigned int)sul_simnet_cfg(s)->packet_bytes;

	for (int r = 0; r < s->cfg.ranks; r++) {
		struct sul_simnet_node *n = &s->net->node[r];

		n->last = &n->first;
		n->pump_at = UINT64_MAX;
		n->slow = sul_sim_draw_slow(s);
		n->session = 1 + sul_sim_below(s, UINT32_MAX);
		n->packet_bytes =
			SUL_NET_PACKET_MIN +
			sul_sim_below(s, most + 1 - SUL_NET_PACKET_MIN);
	}
}

int sul_simnet_new(struct sul_sim *s)
{
	const struct sul_simnet_config *c = sul_simnet_cfg(s);
	struct sul_simnet *net;

	if (c->packet_bytes < SUL_NET_PACKET_MIN ||
	    c->packet_bytes > SUL_NET_PACKET_MAX)
		return -EINVAL;
	net = calloc(1, sizeof(*net));
	if (!net)
		return -ENOMEM;
	s->net = net;
	net->node = calloc((size_t)s->cfg.ranks, sizeof(*net->node));
	if (!net->node)
		return -ENOMEM;
	net->failed = -1;
	for (int i = 0; i < SUL_NET_KEY_BYTES; i++)
		net->key[i] = (unsigned char)sul_sim_below(s, 256);
	open_nodes(s);
	next_fault(s, SUL_SIMNET_CUT, c->cut_ns, 0);
	next_fault(s, SUL_SIMNET_STOP, c->stop_ns, 0);
	return net->error;
}

static void free_queue(struct sul_sim_queue *q)
{
	for (size_t i = 0; i < q->nr; i++)
		free(q->heap[i].what);
	free(q->heap);
}

void sul_simnet_free(struct sul_sim *s)
{
	if (!s->net)
		return;
	for (int r = 0; s->net->node && r < s->cfg.ranks; r++)
		free_queue(&s->net->node[r].kept);
	free_queue(&s->net->queue);
	free(s->net->node);
	free(s->net);
}

/* --- partitions ----------------------------------------------------------------------- */

static void cut(struct sul_sim *s)
{
	static const enum sul_simnet_cut_kind kinds[] = { SUL_SIMNET_HALVES,
							  SUL_SIMNET_ALONE,
							  SUL_SIMNET_ONE_WAY,
							  SUL_SIMNET_PATH };
	const struct sul_simnet_config *c = sul_simnet_cfg(s);
	struct sul_simnet_cut *now = &s->net->cut;
	uint64_t for_ns = shorter(s, c->cut_for_ns);
	uint32_t ranks = (uint32_t)s->cfg.ranks;

	now->kind = kinds[sul_sim_below(s, c->paths > 1 ? 4 : 3)];
	now->salt = sul_sim_random(s);
	now->a = (int)sul_sim_below(
		s, now->kind == SUL_SIMNET_PATH ? (uint32_t)c->paths : ranks);
	now->b = (int)sul_sim_below(s, ranks);
	s->net->stats.cuts++;
	sul_simnet_at(s, for_ns, SUL_SIMNET_HEAL, 0, for_ns, NULL);
}

static void heal(struct sul_sim *s, uint64_t was_for_ns)
{
	s->net->cut.kind = SUL_SIMNET_WHOLE;
	next_fault(s, SUL_SIMNET_CUT, sul_simnet_cfg(s)->cut_ns, was_for_ns);
}

/* --- nodes that stop -------------------------------------------------------------------- */

static void stop(struct sul_sim *s)
{
	int rank = (int)sul_sim_below(s, (uint32_t)s->cfg.ranks);
	uint64_t for_ns = shorter(s, sul_simnet_cfg(s)->stop_for_ns);

	s->net->node[rank].stopped = true;
	s->net->stats.stops++;
	sul_simnet_at(s, for_ns, SUL_SIMNET_GO, rank, for_ns, NULL);
}

/* What it has missed happens now, in the same order. */
static void go_on(struct sul_sim *s, int rank, uint64_t was_for_ns)
{
	struct sul_simnet_node *n = &s->net->node[rank];
	struct sul_sim_event e;

	n->stopped = false;
	if (s->steps >= sul_simnet_cfg(s)->crash_step)
		s->net->stopped_ns += was_for_ns;
	for (uint64_t i = 0; sul_sim_queue_pop(&n->kept, &e); i++) {
		e.at = s->net->now + i;
		push(s, &s->net->queue, e);
	}
	n->kept_packets = 0;
	n->pump_at = UINT64_MAX;
	sul_simnet_pump_soon(s, rank);
	next_fault(s, SUL_SIMNET_STOP, sul_simnet_cfg(s)->stop_ns, was_for_ns);
}

static void keep(struct sul_sim *s, struct sul_simnet_node *n,
		 struct sul_sim_event e)
{
	if (e.kind == SUL_SIMNET_PUMP)
		return;
	if (e.kind == SUL_SIMNET_PACKET &&
	    n->kept_packets++ >= sul_simnet_cfg(s)->room) {
		s->net->stats.overrun++;
		free(e.what);
		return;
	}
	push(s, &n->kept, e);
}

/* --- nodes that end ----------------------------------------------------------------------- */

static void crash(struct sul_sim *s, int rank)
{
	s->net->node[rank].crashed = true;
	sul_sim_kill(s, rank);
}

_Noreturn void sul_simnet_exit(struct sul_sim *s, int rank)
{
	crash(s, rank);
	for (;;)
		sul_coro_pause(s->tasks[s->current].coro);
}

bool sul_simnet_crashed(const struct sul_sim *s, int rank)
{
	return s->net->node[rank].crashed;
}

uint64_t sul_simnet_crash_ns(const struct sul_sim *s)
{
	return s->net->crash_ns;
}

uint64_t sul_simnet_stopped_ns(const struct sul_sim *s)
{
	return s->net->stopped_ns;
}

int sul_simnet_failed(const struct sul_sim *s)
{
	return s->net->failed;
}

static void cancel(struct sul_sim *s, int rank)
{
	s->net->node[rank].cancelled = true;
	sul_sim_wake_rank(s, rank);
}

void sul_simnet_fail(struct sul_sim *s, int rank, int dead)
{
	if (s->net->failed >= 0)
		return;
	s->net->failed = dead;
	for (int r = 0; r < s->cfg.ranks; r++)
		sul_simnet_at(s,
			      r == rank ?
				      0 :
				      sul_simnet_time(
					      s, sul_simnet_cfg(s)->cancel_ns),
			      SUL_SIMNET_CANCEL, r, 0, NULL);
}

/* --- events ----------------------------------------------------------------------------------- */

static void happen_to_node(struct sul_sim *s, struct sul_sim_event e)
{
	switch (e.kind) {
	case SUL_SIMNET_TASK:
		if (s->tasks[e.which].state == SUL_SIM_READY)
			sul_sim_resume(s, (uint32_t)e.which);
		break;
	case SUL_SIMNET_PACKET:
		sul_simnet_arrive(s, e.rank, e.what);
		break;
	case SUL_SIMNET_PUMP: /* unless an earlier one was wanted since */
		if (e.which == s->net->node[e.rank].pump_at)
			sul_simnet_pump(s, e.rank);
		break;
	case SUL_SIMNET_CANCEL:
		cancel(s, e.rank);
		break;
	}
}

static void happen(struct sul_sim *s, struct sul_sim_event e)
{
	struct sul_simnet_node *n = &s->net->node[e.rank];

	switch (e.kind) {
	case SUL_SIMNET_CUT:
		cut(s);
		break;
	case SUL_SIMNET_HEAL:
		heal(s, e.which);
		break;
	case SUL_SIMNET_STOP:
		stop(s);
		break;
	case SUL_SIMNET_GO:
		go_on(s, e.rank, e.which);
		break;
	default:
		if (n->crashed)
			free(e.what);
		else if (n->stopped)
			keep(s, n, e);
		else
			happen_to_node(s, e);
	}
}

bool sul_simnet_step(struct sul_sim *s)
{
	const struct sul_simnet_config *c = sul_simnet_cfg(s);
	struct sul_sim_event e;

	if (c->crash_step == s->steps) {
		s->net->crash_ns = s->net->now;
		crash(s, (int)c->crash_rank);
	}
	if (!sul_sim_queue_pop(&s->net->queue, &e))
		return false;
	s->net->now = e.at;
	happen(s, e);
	return true;
}

const struct sul_simnet_stats *sul_simnet_stats(const struct sul_sim *s)
{
	return &s->net->stats;
}

void sul_simnet_core_stats(const struct sul_sim *s, struct sul_net_stats *sum)
{
	uint64_t *to = (uint64_t *)sum;

	for (int r = 0; r < s->cfg.ranks; r++) {
		const struct sul_net *n = s->net->node[r].net;
		const uint64_t *from = n ? (const uint64_t *)sul_net_stats(n) :
					   NULL;

		for (size_t i = 0; n && i < sizeof(*sum) / sizeof(*to); i++)
			to[i] += from[i];
	}
}
