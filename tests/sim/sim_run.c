/* SPDX-License-Identifier: MIT */
/*
 * sim_run.c - the life of a run: a world, its nodes and threads, their end.
 *
 * Role: makes what the plan says, lets it run, and has it checked.
 */
#include "sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	STEPS_MAX = 5 * 1000 * 1000 /* without a single operation */
};

static void start_thread(struct sim_run *run, struct sim_node *n, int slot,
			 void (*program)(void *arg))
{
	int id = n->rank * (int)run->plan.threads + slot;
	struct sim_thread *t = &run->thread[id];

	*t = (struct sim_thread){
		.run = run, .node = n, .id = id, .slot = slot
	};
	if (sul_sim_spawn(run->world, n->rank, program, t))
		sim_violation(run, "not enough memory");
}

void sim_world_open(struct sim_run *run, void (*program)(void *arg))
{
	const struct sim_plan *p = &run->plan;
	struct sul_sim_config cfg = { .seed = run->seed ^ 0x51u,
				      .ranks = (int)p->ranks,
				      .piece_ppm = (uint32_t)p->piece_ppm,
				      .yield_ppm = (uint32_t)p->yield_ppm,
				      .slow_ppm = (uint32_t)p->slow_ppm,
				      .net = p->net };

#define SIMNET(name, doc) cfg.wire.name = p->name;
#include "sul_simnet.def"
	if (sul_sim_new(&run->world, &cfg))
		sim_violation(run, "not enough memory");
	for (uint64_t i = 0; i < p->ranks; i++) {
		sim_node_open(run, (int)i);
		for (uint64_t k = 0; k < p->threads; k++)
			start_thread(run, &run->node[i], (int)k, program);
	}
}

static void add_stats(struct sim_run *run, const struct dsm_node *n)
{
	uint64_t *sum = (uint64_t *)run->stats;
	const uint64_t *one = (const uint64_t *)n->stats;

	for (unsigned int i = 0; i < DSM_STAT_NR; i++)
		sum[i] += one[i];
}

void sim_world_close(struct sim_run *run)
{
	if (run->plan.net)
		sim_add_wire(run);
	for (uint64_t i = 0; i < run->plan.ranks; i++) {
		add_stats(run, run->node[i].dsm);
		sim_node_close(&run->node[i]);
	}
	sul_sim_free(run->world);
	run->world = NULL;
}

static void print_waits(struct sim_run *run)
{
	for (uint32_t i = 0; i < sim_threads(&run->plan); i++) {
		struct sim_thread *t = &run->thread[i];

		if (t->doing)
			printf("  node %d thread %d: %s %" PRIu64 "\n",
			       t->node->rank, t->slot, t->doing, t->doing_what);
	}
}

void sim_world_run(struct sim_run *run)
{
	uint64_t before;
	int err;

	do {
		before = run->ops;
		err = sul_sim_run(run->world, STEPS_MAX);
	} while (err == -ETIMEDOUT && run->ops > before);
	if (!err)
		return;
	print_waits(run);
	sim_violation(run, "%s", err == -EDEADLK ? "deadlock" : "no progress");
}

/* How many steps it took. */
static uint64_t run_plan(struct sim_run *run)
{
	uint64_t steps;

	run->rng.state = run->seed ^ 0xa2u << 8;
	sim_record_make(&run->record, &run->plan, &run->rng);
	sim_world_open(run, sim_program);
	sim_world_run(run);
	if (run->plan.crash_step)
		sim_check_crash(run);
	else
		sim_check(run);
	steps = sul_sim_steps(run->world);
	sim_world_close(run);
	return steps;
}

void sim_run_once(struct sim_run *run, uint64_t seed)
{
	struct sim_rng rng = { seed ^ 0xc5u << 16 };
	struct sim_plan *p = &run->plan;
	uint64_t steps;

	run->seed = seed;
	run->world = NULL;
	sim_plan_make(p, seed, run->options);
	steps = run_plan(run);
	for (uint64_t i = 0; i < run->options->crashes; i++) {
		p->crash_step = 1 + sim_random(&rng) % steps;
		p->crash_rank = sim_below(&rng, (uint32_t)p->ranks);
		run_plan(run);
	}
}
