/* SPDX-License-Identifier: MIT */
/*
 * sim.c - the simulator's command: run after run, each from one seed.
 *
 * Role: options, the life of a run, and the report of a violation: its seed
 *       replays it (`sim --seed S --runs 1` and the other options given).
 */
#include "sim.h"

#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char usage[] =
	"usage: sim [--runs N | --ops N] [--seed S] [--net] [--crash N]\n"
	"           [--trace] [--quiet] [--set name=value] [OPTION...]\n"
	"       sim --scale N [...]\n"
	"Runs random programs on simulated nodes and checks every load.\n"
	"  --runs N   so many runs, seeds S, S+1, ... (default 1000)\n"
	"  --ops N    or until N loads, stores, locks, unlocks, barriers were made\n"
	"  --seed S   of the first run; default: a random one\n"
	"  --net      packets over a network that is not perfect\n"
	"  --crash N  ... and each run N times more: a node crashes at some step\n"
	"  --scale N  instead: barriers and locks on 10, 100, ... N nodes, counted\n"
	"Each of these fixes what would be drawn:\n";

/* --- reports -------------------------------------------------------------------------- */

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
	printf("replay: sim --seed 0x%" PRIx64 " --%s %" PRIu64, run->seed,
	       run->options->scale ? "scale" : "runs",
	       run->options->scale ? run->options->scale : 1);
	if (run->options->net)
		printf(" --net");
	for (unsigned int i = 0; i < run->options->nr_set; i++)
		printf(" --set %s", run->options->set[i]);
	if (run->plan.crash_step)
		printf(" --set crash_step=%" PRIu64
		       " --set crash_rank=%" PRIu64,
		       run->plan.crash_step, run->plan.crash_rank);
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

/* --- reports of what was done -------------------------------------------------------- */

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
#define OPTION(name, row, unit, net, doc) \
	fprintf(f, "  --%-10s %s\n", #name, doc);
#include "sim_option.def"
	fputs("  --set name=value, a parameter (dsm_config.def), or one of these:\n",
	      f);
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

/* A number in the unit of the option @name, or a word. */
static void fix_scaled(struct sim_options *o, const char *row, double unit,
		       const char *value)
{
	char text[32];
	char *end;
	double x = strtod(value, &end);

	if (unit == 0) {
		fix(o, row, value);
		return;
	}
	if (end == value || *end || x < 0 || x * unit > 1e18) {
		fprintf(stderr, "sim: '%s' is not a number\n", value);
		exit(2);
	}
	snprintf(text, sizeof(text), "%.0f", x * unit);
	fix(o, row, text);
}

enum shorthand {
	SHORTHAND_FIRST = 256, /* behind all characters */
#define OPTION(name, row, unit, net, doc) SHORTHAND_##name,
#include "sim_option.def"
};

static void shorthand(struct sim_options *o, int c, const char *value)
{
	switch (c) {
#define OPTION(name, row, unit, is_net, doc)      \
	case SHORTHAND_##name:                    \
		fix_scaled(o, #row, unit, value); \
		o->net |= is_net;                 \
		return;
#include "sim_option.def"
	default:
		explain(2);
	}
}

static void read_option(struct sim_options *o, int c, const char *value)
{
	switch (c) {
	case 'r':
		o->runs = number(value);
		break;
	case 'o':
		o->ops = number(value);
		break;
	case 's':
		o->seed = number(value);
		break;
	case 'c':
		o->scale = number(value);
		break;
	case 'C':
		o->crashes = number(value);
		o->net = true;
		break;
	case 'n':
		o->net = true;
		break;
	case 'S':
		fix(o, "", value);
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
		shorthand(o, c, value);
	}
}

static void read_options(struct sim_options *o, int argc, char **argv)
{
	static const struct option names[] = {
		{ "runs", required_argument, NULL, 'r' },
		{ "ops", required_argument, NULL, 'o' },
		{ "seed", required_argument, NULL, 's' },
		{ "scale", required_argument, NULL, 'c' },
		{ "crash", required_argument, NULL, 'C' },
		{ "net", no_argument, NULL, 'n' },
		{ "set", required_argument, NULL, 'S' },
		{ "trace", no_argument, NULL, 'T' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
#define OPTION(name, row, unit, net, doc) \
	{ #name, required_argument, NULL, SHORTHAND_##name },
#include "sim_option.def"
		{ NULL, 0, NULL, 0 }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
		read_option(o, c, optarg);
	if (optind < argc)
		explain(2);
}

static uint64_t run_all(struct sim_run *run)
{
	const struct sim_options *o = run->options;
	uint64_t runs;

	for (runs = 0; o->ops ? run->ops < o->ops : runs < o->runs; runs++)
		sim_run_once(run, o->seed + runs);
	return runs;
}

static bool first_seed(uint64_t *seed)
{
	const char *given = getenv("SEED");

	if (given) {
		*seed = number(given);
		return true;
	}
	if (getrandom(seed, sizeof(*seed), 0) < 0)
		return false;
	*seed >>= 16; /* shorter to type */
	return true;
}

int main(int argc, char **argv)
{
	struct sim_options o = { .runs = 1000 };
	struct dsm_stats stats = { 0 };
	struct sim_run *run = calloc(1, sizeof(*run));
	uint64_t runs;

	if (!run || !first_seed(&o.seed))
		return 2;
	read_options(&o, argc, argv);
	if (!o.scale) { /* keep what a world needed for the next one */
		mallopt(M_MMAP_THRESHOLD, 1 << 30);
		mallopt(M_TRIM_THRESHOLD, 1 << 30);
	}
	printf("SEED=0x%" PRIx64 "\n", o.seed);
	fflush(stdout);
	run->options = &o;
	run->stats = &stats;
	runs = o.scale ? sim_scale(run, o.seed) : run_all(run);
	printf("%" PRIu64 " runs, %" PRIu64 " operations, 0 violations\n", runs,
	       run->ops);
	if (o.net)
		sim_print_wire(run);
	if (!o.quiet)
		print_stats(&stats);
	free(run);
	for (unsigned int i = 0; i < o.nr_set; i++)
		free((void *)(uintptr_t)o.set[i]);
	return 0;
}
