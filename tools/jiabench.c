/* SPDX-License-Identifier: MIT */
/*
 * jiabench.c - what each operation of the shared memory costs.
 *
 * Role:    options and the exit status: 0, 1 a job failed, 2 usage.
 * Threads: one.
 *
 * See jiabench.h for how it measures, jiabench.def for what.
 */
#include "jiabench.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPT_REPS = 256,
	OPT_SET,
	OPT_BOARD
};

static const struct option long_options[] = {
	{ "np", required_argument, NULL, 'n' },
	{ "rows", required_argument, NULL, 'r' },
	{ "repeat", required_argument, NULL, 'R' },
	{ "reps", required_argument, NULL, OPT_REPS },
	{ "set", required_argument, NULL, OPT_SET },
	{ "hardware", no_argument, NULL, 'w' },
	{ "count", no_argument, NULL, 'c' },
	{ "big", no_argument, NULL, 'b' },
	{ "json", no_argument, NULL, 'j' },
	{ "list", no_argument, NULL, 'l' },
	{ "board", required_argument, NULL, OPT_BOARD },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char usage_text[] =
	"usage: jiabench [options]\n"
	"       jiarun -n N jiabench [--rows LIST] [--reps N] [--json]\n"
	"What each operation costs: time, faults, calls, messages, bytes.\n"
	"\n"
	"  -n, --np=LIST         numbers of ranks, 2 .. 64 (2)\n"
	"  -r, --rows=LIST       these rows only; with * and ? as in the shell\n"
	"  -R, --repeat=N        jobs for each number of ranks (2)\n"
	"      --reps=N          repetitions of a row in a job (5)\n"
	"      --set=NAME=VALUE  a parameter of the jobs, as jiarun has it\n"
	"  -w, --hardware        the same with --nodes=1, in turn\n"
	"  -c, --count           count system calls, in a traced run on 2 ranks\n"
	"  -b, --big             with barrier_4g: takes 13 GiB of memory\n"
	"  -j, --json            print JSON\n"
	"  -l, --list            say what the rows are\n"
	"      --help            print this\n"
	"\n"
	"Exit status: 0, 1 a job failed, 2 bad option.\n";

static void take_ranks(struct bench_options *o, char *list)
{
	char *rest = list;

	o->nr_ranks = 0;
	for (char *s; (s = strsep(&rest, ","));) {
		if (o->nr_ranks == BENCH_MODES)
			bench_refuse("too many numbers of ranks", s);
		o->ranks[o->nr_ranks++] = bench_number("a number of ranks", s,
						       2, BENCH_RANKS_MAX);
	}
}

static const char *row_name(int row)
{
	return bench_info((enum bench_row)row)->name;
}

static void take_rows(struct bench_options *o, char *list)
{
	bool row[BENCH_ROWS];

	bench_take_rows(list, row, BENCH_ROWS, row_name);
	o->rows = 0;
	for (int r = 0; r < BENCH_ROWS; r++)
		o->rows |= (uint64_t)row[r] << r;
}

static void list_rows(void)
{
	for (int r = 0; r < BENCH_ROWS; r++) {
		const struct bench_info *i = bench_info((enum bench_row)r);

		printf("%-15s (%s) %s\n", i->name, bench_floor_name(i->floor),
		       i->what);
	}
}

static void take_option(struct bench_options *o, int c)
{
	switch (c) {
	case 'n':
		take_ranks(o, optarg);
		break;
	case 'r':
		take_rows(o, optarg);
		break;
	case 'R':
		o->repeat = bench_number("--repeat", optarg, 1, 1000);
		break;
	case OPT_REPS:
		o->reps = bench_number("--reps", optarg, 1, 1000);
		break;
	case OPT_SET:
		bench_take_set(&o->sets, optarg);
		break;
	case 'w':
		o->hardware = true;
		break;
	case 'c':
		o->count = true;
		break;
	case 'b':
		o->big = true;
		break;
	case 'j':
		o->json = true;
		break;
	case OPT_BOARD:
		o->board = bench_number("--board", optarg, 0, INT_MAX);
		break;
	default:
		bench_take_word(c, list_rows, usage_text);
	}
}

/* Rows named in full are wanted; of "all", the big one is not. */
static void settle(struct bench_options *o)
{
	uint64_t big = UINT64_C(1) << BENCH_barrier_4g;

	if (o->rows == UINT64_MAX)
		o->rows = ((UINT64_C(1) << BENCH_ROWS) - 1) & ~big;
	if (o->big)
		o->rows |= big;
}

int main(int argc, char **argv)
{
	struct bench_options o = { .rows = UINT64_MAX,
				   .ranks = { 2 },
				   .nr_ranks = 1,
				   .reps = 5,
				   .repeat = 2,
				   .board = -1 };
	int c;

	while ((c = getopt_long(argc, argv, "n:r:R:wcbjlh", long_options,
				NULL)) != -1)
		take_option(&o, c);
	if (optind < argc)
		bench_refuse("not an option", argv[optind]);
	settle(&o);
	if (getenv("JIA_JOB"))
		return bench_rank_main(argc, argv, &o);
	return bench_launch(&o);
}
