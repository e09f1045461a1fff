/* SPDX-License-Identifier: MIT */
/*
 * sim.c - the simulator's command: run after run, each from one seed.
 *
 * Role: options, the life of a run, and the report of a violation: its seed
 *       replays it (`sim --seed S --runs 1` and the other options given).
 */
#include "sim.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
	STEPS_MAX = 5 * 1000 * 1000 /* without a single operation */
};

static const char usage[] =
	"usage: sim [--runs N | --ops N] [--seed S] [--nodes N] [--threads T]\n"
	"           [--mode scope|release] [--set name=value] [--trace] [--quiet]\n"
	"Runs random programs on simulated nodes and checks every load.\n"
	"  --runs N   so many runs, seeds S, S+1, ... (default 1000)\n"
	"  --ops N    or until N loads, stores, locks, unlocks, barriers were made\n"
	"  --seed S   of the first run; default: a random one\n"
	"  --set      fix a parameter (dsm_config.def), or one of the plan:\n";

/* --- reports -------------------------------------------------------------------------- */

static void print_waits(struct sim_run *run)
{
	for (uint32_t i = 0; i < sim_threads(&run->plan); i++) {
		struct sim_thread *t = &run->thread[i];

		if (t->doing)
			printf("  node %d thread %d: %s %" PRIu64 "\n",
			       t->node->rank, t->slot, t->doing, t->doing_what);
	}
}

_Noreturn void sim_violation(struct sim_run *run, const char *fmt, ...)
{
	va_list ap;

	printf("VIOLATION SEED=0x%" PRIx64 " step %" PRIu64 ": ", run->seed,
	       run->world ? sul_sim_steps(run->world) : 0);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\nplan:");
	sim_plan_print(&run->plan);
	printf("replay: sim --seed 0x%" PRIx64 " --runs 1", run->seed);
	for (unsigned int i = 0; i < run->options->nr_set; i++)
		printf(" --set %s", run->options->set[i]);
	printf("\n");
	fflush(stdout);
	_Exit(1);
}

void sim_trace(struct sim_run *run, const char *fmt, ...)
{
	va_list ap;

	if (!run->options->trace)
		return;
	printf("%8" PRIu64 " ", sul_sim_steps(run->world));
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

/* --- a run ------------------------------------------------------------------------------ */

static void start_thread(struct sim_run *run, struct sim_node *n, int slot)
{
	int id = n->rank * (int)run->plan.threads + slot;
	struct sim_thread *t = &run->thread[id];

	*t = (struct sim_thread){
		.run = run, .node = n, .id = id, .slot = slot
	};
	if (sul_sim_spawn(run->world, sim_program, t))
		sim_violation(run, "not enough memory");
}

static void add_stats(struct sim_run *run, const struct dsm_node *n)
{
	uint64_t *sum = (uint64_t *)run->stats;
	const uint64_t *one = (const uint64_t *)n->stats;

	for (unsigned int i = 0; i < DSM_STAT_NR; i++)
		sum[i] += one[i];
}

static int run_world(struct sim_run *run)
{
	uint64_t before;
	int err;

	do {
		before = run->ops;
		err = sul_sim_run(run->world, STEPS_MAX);
	} while (err == -ETIMEDOUT && run->ops > before);
	return err;
}

static void run_once(struct sim_run *run, uint64_t seed)
{
	struct sul_sim_config cfg = { .seed = seed ^ 0x51u };
	int err;

	run->seed = seed;
	run->world = NULL;
	run->rng.state = seed ^ 0xa2u << 8;
	sim_plan_make(&run->plan, seed, run->options);
	cfg.ranks = (int)run->plan.ranks;
	cfg.piece_ppm = (uint32_t)run->plan.piece_ppm;
	cfg.yield_ppm = (uint32_t)run->plan.yield_ppm;
	cfg.slow_ppm = (uint32_t)run->plan.slow_ppm;
	sim_record_make(&run->record, &run->plan, &run->rng);
	if (sul_sim_new(&run->world, &cfg))
		sim_violation(run, "not enough memory");
	for (uint64_t i = 0; i < run->plan.ranks; i++) {
		sim_node_open(run, (int)i);
		for (uint64_t k = 0; k < run->plan.threads; k++)
			start_thread(run, &run->node[i], (int)k);
	}
	err = run_world(run);
	if (err) {
		print_waits(run);
		sim_violation(run, "%s",
			      err == -EDEADLK ? "deadlock" : "no progress");
	}
	sim_check(run);
	for (uint64_t i = 0; i < run->plan.ranks; i++) {
		add_stats(run, run->node[i].dsm);
		sim_node_close(&run->node[i]);
	}
	sul_sim_free(run->world);
}

static void print_stats(const struct dsm_stats *s)
{
#define STAT(name, unit, label, doc) printf(" %s %" PRIu64, #name, s->name);
#include "dsm_stat.def"
	printf("\n");
}

/* --- options ------------------------------------------------------------------------------ */

static _Noreturn void explain(int status)
{
	FILE *f = status ? stderr : stdout;

	fputs(usage, f);
#define PLAN(name, doc) fprintf(f, "    %-12s %s\n", #name, doc);
#include "sim_plan.def"
	exit(status);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	if (end == text || *end) {
		fprintf(stderr, "sim: '%s' is not a number\n", text);
		exit(2);
	}
	return n;
}

static void fix(struct sim_options *o, const char *name, const char *value)
{
	struct sim_plan scratch;
	char *pair;

	if (asprintf(&pair, "%s%s%s", name, *name ? "=" : "", value) < 0)
		exit(2);
	if (o->nr_set == sizeof(o->set) / sizeof(o->set[0]) ||
	    sim_plan_set(&scratch, pair)) {
		fprintf(stderr, "sim: cannot set '%s'\n", pair);
		exit(2);
	}
	o->set[o->nr_set++] = pair;
}

static void read_options(struct sim_options *o, int argc, char **argv)
{
	static const struct option names[] = {
		{ "runs", required_argument, NULL, 'r' },
		{ "ops", required_argument, NULL, 'o' },
		{ "seed", required_argument, NULL, 's' },
		{ "nodes", required_argument, NULL, 'n' },
		{ "threads", required_argument, NULL, 't' },
		{ "mode", required_argument, NULL, 'm' },
		{ "set", required_argument, NULL, 'S' },
		{ "trace", no_argument, NULL, 'T' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 'r':
			o->runs = number(optarg);
			break;
		case 'o':
			o->ops = number(optarg);
			break;
		case 's':
			o->seed = number(optarg);
			break;
		case 'n':
			fix(o, "ranks", optarg);
			break;
		case 't':
			fix(o, "threads", optarg);
			break;
		case 'm':
			fix(o, "consistency", optarg);
			break;
		case 'S':
			fix(o, "", optarg);
			break;
		case 'T':
			o->trace = true;
			break;
		case 'q':
			o->quiet = true;
			break;
		case 'h':
			explain(0);
		default:
			explain(2);
		}
	}
	if (optind < argc)
		explain(2);
}

int main(int argc, char **argv)
{
	struct sim_options o = { .runs = 1000 };
	struct dsm_stats stats = { 0 };
	struct sim_run *run = calloc(1, sizeof(*run));
	uint64_t runs = 0;

	if (!run || getrandom(&o.seed, sizeof(o.seed), 0) < 0)
		return 2;
	o.seed >>= 16; /* shorter to type */
	read_options(&o, argc, argv);
	/* Keep what a world needed for the next one. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	printf("SEED=0x%" PRIx64 "\n", o.seed);
	fflush(stdout);
	run->options = &o;
	run->stats = &stats;
	for (; o.ops ? run->ops < o.ops : runs < o.runs; runs++)
		run_once(run, o.seed + runs);
	printf("%" PRIu64 " runs, %" PRIu64 " operations, 0 violations\n", runs,
	       run->ops);
	if (!o.quiet)
		print_stats(&stats);
	free(run);
	for (unsigned int i = 0; i < o.nr_set; i++)
		free((void *)(uintptr_t)o.set[i]);
	return 0;
}
