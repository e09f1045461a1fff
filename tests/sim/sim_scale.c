/* SPDX-License-Identifier: MIT */
/*
 * sim_scale.c - barriers and locks on 10, 100, 1,000 nodes, counted.
 *
 * Role:      every epoch as many units are written, however many nodes there
 *            are: each by one node, and read by another after the barrier.
 *            Then locks go round the nodes, which count under them.  What the
 *            barriers took must not be more than a tree of n nodes needs;
 *            what a lock took is printed.
 */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	/* Of a node and its parent: arrive (put, notify), read the list, be let
	 * go (put, notify), read the result. */
	MESSAGES_OF_NODE = 6,
	/* ... and the bytes of that without the lists. */
	BYTES_OF_NODE = 72,
	/* To write a unit somewhere, send it home, read it somewhere else, and
	 * drop the copies, at most. */
	MESSAGES_OF_UNIT = 20,
	BYTES_OF_UNIT = 512,
	ROUNDS_NET = 4
};

static struct sim_count count_of(const struct sim_thread *t)
{
	struct sul_stats s;

	sul_stats_read(t->node->port, &s);
	return (struct sim_count){ s.operations, s.bytes_out + s.bytes_in };
}

/* What @t has done since it had done @before. */
static void add_since(struct sim_count *sum, const struct sim_thread *t,
		      struct sim_count before)
{
	struct sim_count now = count_of(t);

	sum->messages += now.messages - before.messages;
	sum->bytes += now.bytes - before.bytes;
}

/* --- the program of a node -------------------------------------------------------- */

static void meet(struct sim_thread *t)
{
	dsm_barrier(t->dsm, DSM_MEET_BARRIER);
	t->run->ops++;
}

static uint64_t draw(uint64_t epoch, uint32_t unit)
{
	struct sim_rng rng = { epoch << 32 | unit };

	return sim_random(&rng);
}

/* Units that are written by turns; behind them is one for each lock. */
static uint32_t units_of(const struct sim_run *run)
{
	return (uint32_t)(run->plan.units - run->plan.locks);
}

static struct sim_item item_of(const struct sim_run *run, uint32_t unit)
{
	return (struct sim_item){ .off = unit << run->plan.page_shift,
				  .size = 8 };
}

static void write_units(struct sim_thread *t, uint64_t epoch)
{
	for (uint32_t u = 0; u < units_of(t->run); u++) {
		struct sim_item it = item_of(t->run, u);
		uint64_t value = draw(epoch, u);

		if (value % t->run->plan.ranks == (unsigned int)t->id)
			sim_store(t, &it, value);
	}
}

static void expect(struct sim_thread *t, uint32_t unit, uint64_t want)
{
	struct sim_item it = item_of(t->run, unit);
	uint64_t got = sim_load(t, &it);

	if (got != want)
		sim_violation(t->run,
			      "node %d: unit %u is %#" PRIx64
			      ", want %#" PRIx64,
			      t->id, unit, got, want);
	t->run->ops++;
}

static void read_units(struct sim_thread *t, uint64_t epoch)
{
	for (uint32_t u = 0; u < units_of(t->run); u++) {
		uint64_t value = draw(epoch, u);

		if ((value >> 32) % t->run->plan.ranks == (unsigned int)t->id)
			expect(t, u, value);
	}
}

static void count_under(struct sim_thread *t, uint32_t lock)
{
	struct sim_item it = item_of(t->run, units_of(t->run) + lock);

	dsm_lock(t->dsm, t->run->plan.lock[lock]);
	sim_store(t, &it, sim_load(t, &it) + 1);
	sul_sim_point(t->run->world);
	dsm_unlock(t->dsm, t->run->plan.lock[lock]);
	t->run->ops++;
}

/*
 * Without a network each lock goes round all nodes.  Whoever takes a lock looks
 * at all its releases of this epoch, on whatever node: with a network, where
 * each node would then have a link to each other one, a lock goes round those
 * that share its number, some of them in each epoch.
 */
static uint64_t rounds_of(const struct sim_plan *p)
{
	return p->net ? ROUNDS_NET : 1;
}

static bool takes(const struct sim_thread *t, uint32_t lock, uint64_t round)
{
	const struct sim_plan *p = &t->run->plan;
	uint64_t id = (uint64_t)t->id;

	return !p->net ||
	       (id % p->locks == lock && id / p->locks % ROUNDS_NET == round);
}

static void take_locks(struct sim_thread *t, uint64_t round)
{
	struct sim_count before = count_of(t);

	for (uint32_t l = 0; l < t->run->plan.locks; l++)
		if (takes(t, l, round))
			count_under(t, l);
	add_since(&t->run->of_locks, t, before);
	meet(t);
}

/* How many nodes have taken @lock. */
static uint64_t holders_of(const struct sim_plan *p, uint32_t lock)
{
	if (!p->net)
		return p->ranks;
	return p->ranks / p->locks + (lock < p->ranks % p->locks);
}

static void allocate(struct sim_thread *t)
{
	uint64_t unit = UINT64_C(1) << t->run->plan.page_shift;
	struct sim_alloc *a = &t->run->record.alloc[0];

	if (dsm_alloc(t->node->dsm, t->run->plan.units * unit, unit, 0, 0,
		      &a->page))
		sim_violation(t->run, "node %d cannot allocate", t->id);
}

static void program(void *arg)
{
	struct sim_thread *t = arg;
	struct sim_run *run = t->run;
	struct sim_count before;

	t->dsm = dsm_thread_join(t->node->dsm);
	allocate(t);
	meet(t);
	before = count_of(t);
	for (uint64_t e = 0; e < run->plan.epochs; e++) {
		write_units(t, e);
		meet(t);
		read_units(t, e);
		meet(t);
	}
	add_since(&run->of_barriers, t, before);
	for (uint64_t r = 0; r < rounds_of(&run->plan); r++)
		take_locks(t, r);
	for (uint32_t l = 0; l < run->plan.locks; l++)
		if (!run->plan.net || (uint32_t)t->id % run->plan.locks == l)
			expect(t, units_of(run) + l, holders_of(&run->plan, l));
	meet(t);
}

/* --- what it took --------------------------------------------------------------------- */

static uint64_t depth_of(const struct sim_plan *p)
{
	uint64_t depth = 0;

	for (uint64_t n = p->ranks - 1; n; n = (n - 1) / p->cfg.tree)
		depth++;
	return depth;
}

/*
 * The tree's messages are O(n).  So are its bytes: each notice goes up at most
 * as many levels as there are, and down to every node.
 */
static void judge(struct sim_run *run)
{
	const struct sim_plan *p = &run->plan;
	uint64_t units = p->epochs * units_of(run);
	uint64_t notices = 2 * units; /* written; and shared by its reader */
	uint64_t meetings = 2 * p->epochs, nodes = p->ranks - 1;
	struct sim_count most = {
		.messages = meetings * nodes * MESSAGES_OF_NODE +
			    units * MESSAGES_OF_UNIT,
		.bytes = meetings * nodes * BYTES_OF_NODE +
			 units * BYTES_OF_UNIT +
			 notices * (nodes + depth_of(p)) *
				 sizeof(struct dsm_notice),
	};

	if (run->of_barriers.messages > most.messages ||
	    run->of_barriers.bytes > most.bytes)
		sim_violation(run,
			      "barriers took %" PRIu64 " messages and %" PRIu64
			      " bytes, not at most %" PRIu64 " and %" PRIu64,
			      run->of_barriers.messages, run->of_barriers.bytes,
			      most.messages, most.bytes);
}

static void print(const struct sim_run *run)
{
	double barriers = (double)(2 * run->plan.epochs * run->plan.ranks);
	double locks = (double)((run->plan.net ? 1 : run->plan.locks) *
				run->plan.ranks);

	printf("%5" PRIu64
	       " nodes: a barrier %.1f messages and %.0f bytes a node; a lock %.1f messages and %.0f bytes for each holder\n",
	       run->plan.ranks, (double)run->of_barriers.messages / barriers,
	       (double)run->of_barriers.bytes / barriers,
	       (double)run->of_locks.messages / locks,
	       (double)run->of_locks.bytes / locks);
	fflush(stdout);
}

static void run_scale(struct sim_run *run, uint64_t seed, uint64_t ranks)
{
	run->seed = seed;
	run->rng.state = seed;
	sim_plan_scale(&run->plan, seed, ranks, run->options);
	run->record.nr_items = 0;
	run->of_barriers = run->of_locks = (struct sim_count){ 0 };
	sim_world_open(run, program);
	sim_world_run(run);
	sim_check(run);
	sim_world_close(run);
	print(run);
	judge(run);
}

uint64_t sim_scale(struct sim_run *run, uint64_t seed)
{
	uint64_t runs = 0;

	for (uint64_t n = 10; n <= run->options->scale; n *= 10, runs++)
		run_scale(run, seed, n);
	return runs;
}
