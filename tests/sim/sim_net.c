/* SPDX-License-Identifier: MIT */
/*
 * sim_net.c - with a network: nodes that crash, and what was lost.
 *
 * Role: when a node has crashed, everybody else must end with an error that
 *       names it, and in time: unless all that he wanted of it had been done.
 */
#include "sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool has_crashed(const struct sim_run *run)
{
	return run->plan.crash_step &&
	       sul_simnet_crashed(run->world, (int)run->plan.crash_rank);
}

_Noreturn void sim_give_up(struct sim_node *n, int err, const char *text)
{
	struct sim_run *run = n->run;

	sim_trace(run, "node %d: %s: %s", n->rank, text, strerror(-err));
	if (!run->plan.net || !has_crashed(run) ||
	    (err != -EHOSTDOWN && err != -ECANCELED))
		sim_violation(run, "node %d gave up: %s (%d)", n->rank, text,
			      err);
	n->gave_up = true;
	n->gave_up_ns = sul_simnet_now_ns(run->world);
	run->gave_up++;
	sul_simnet_exit(run->world, n->rank);
}

/* --- after a crash ---------------------------------------------------------------- */

static bool all_threads(const struct sim_run *run, uint64_t rank, bool ended)
{
	uint64_t threads = run->plan.threads;

	for (uint64_t i = rank * threads; i < (rank + 1) * threads; i++)
		if (!(ended ? run->thread[i].ended : run->thread[i].at_last))
			return false;
	return true;
}

/* To a node that is stopped itself nobody is silent; and one that waits for it
 * may not yet have anything to ask of the node that has crashed. */
static uint64_t latest_end_ns(const struct sim_run *run)
{
	const struct sim_plan *p = &run->plan;

	return sul_simnet_crash_ns(run->world) + p->silence_ns + p->cancel_ns +
	       sul_simnet_stopped_ns(run->world) + 1000000000;
}

static void check_survivor(struct sim_run *run, const struct sim_node *n)
{
	const struct sim_plan *p = &run->plan;
	uint64_t latest = latest_end_ns(run);

	if (!n->gave_up) {
		if (!all_threads(run, (uint64_t)n->rank, true) ||
		    !all_threads(run, p->crash_rank, false))
			sim_violation(run, "node %d ended without an error",
				      n->rank);
		return;
	}
	if (sul_simnet_failed(run->world) != (int)p->crash_rank)
		sim_violation(run, "node %d crashed, and %d is said to have",
			      (int)p->crash_rank,
			      sul_simnet_failed(run->world));
	if (n->gave_up_ns > latest)
		sim_violation(run, "node %d gave up %" PRIu64 " ns too late",
			      n->rank, n->gave_up_ns - latest);
}

void sim_check_crash(struct sim_run *run)
{
	if (!has_crashed(run)) {
		sim_check(run); /* it would have come later */
		return;
	}
	for (uint64_t i = 0; i < run->plan.ranks; i++)
		if (i != run->plan.crash_rank)
			check_survivor(run, &run->node[i]);
}

/* --- counters ----------------------------------------------------------------------- */

void sim_add_wire(struct sim_run *run)
{
	const struct sul_simnet_stats *one = sul_simnet_stats(run->world);

#define SIMNET_COUNT(name, doc) run->wire.name += one->name;
#include "sul_simnet.def"
	sul_simnet_core_stats(run->world, &run->core);
}

void sim_print_wire(const struct sim_run *run)
{
	printf("wire:");
#define SIMNET_COUNT(name, doc) printf(" %s %" PRIu64, #name, run->wire.name);
#include "sul_simnet.def"
	printf("\ncore:");
#define NET(name, doc) printf(" %s %" PRIu64, #name, run->core.name);
#include "sul_net.def"
	printf("\n");
	if (run->gave_up)
		printf("%" PRIu64 " nodes gave up after a crash of another\n",
		       run->gave_up);
}
