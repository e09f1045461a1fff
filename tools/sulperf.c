/* SPDX-License-Identifier: MIT */
/*
 * sulperf.c - what messages between two ranks cost, next to sockets.
 *
 * Role:    options and the exit status: 0, 1 the job failed, 2 usage.
 * Threads: one.
 *
 * See sulperf.h for how it measures, sulperf.def for what.
 */
#include "sulperf.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPT_CARRIER = 256,
	OPT_SET,
	OPT_PEER
};

static const struct option long_options[] = {
	{ "rows", required_argument, NULL, 'r' },
	{ "rounds", required_argument, NULL, 'R' },
	{ "carrier", required_argument, NULL, OPT_CARRIER },
	{ "set", required_argument, NULL, OPT_SET },
	{ "peer", required_argument, NULL, OPT_PEER },
	{ "count", no_argument, NULL, 'c' },
	{ "breakdown", no_argument, NULL, 'b' },
	{ "figures", no_argument, NULL, 'f' },
	{ "json", no_argument, NULL, 'j' },
	{ "list", no_argument, NULL, 'l' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char usage_text[] =
	"usage: sulperf [options]\n"
	"       jiarun -n 2 [jiarun's options] sulperf [options]\n"
	"What messages between two ranks cost, next to UDP, TCP and Unix sockets\n"
	"between the same two processes.\n"
	"\n"
	"  -r, --rows=LIST       these rows only; with * and ? as in the shell\n"
	"  -R, --rounds=N        how often each row is measured (10)\n"
	"      --carrier=NAME    of the job that is started\n"
	"      --set=NAME=VALUE  a parameter of that job, as jiarun has it\n"
	"      --peer=RANK       measure between rank 0 and this one (1)\n"
	"  -c, --count           count system calls, in a round of its own\n"
	"  -b, --breakdown       where the time of three operations goes\n"
	"  -f, --figures         say which figures of the project are met\n"
	"  -j, --json            print JSON\n"
	"  -l, --list            say what the rows are\n"
	"      --help            print this\n"
	"\n"
	"Exit status: 0, 1 the job failed, 2 bad option.\n";

static const char *row_name(int row)
{
	return perf_rows[row].name;
}

static void list_rows(void)
{
	for (int r = 0; r < PERF_ROWS; r++)
		printf("%-16s %s\n", perf_rows[r].name, perf_rows[r].what);
}

static void take_option(struct perf_options *o, int c)
{
	switch (c) {
	case 'r':
		bench_take_rows(optarg, o->row, PERF_ROWS, row_name);
		break;
	case 'R':
		o->rounds = bench_number("--rounds", optarg, 1, 1000);
		break;
	case OPT_CARRIER:
		o->carrier = optarg;
		break;
	case OPT_SET:
		bench_take_set(&o->sets, optarg);
		break;
	case OPT_PEER:
		o->peer = bench_number("--peer", optarg, 1, SUL_RANKS_MAX - 1);
		break;
	case 'c':
		o->count = true;
		break;
	case 'b':
		o->breakdown = true;
		break;
	case 'f':
		o->figures = true;
		break;
	case 'j':
		o->json = true;
		break;
	default:
		bench_take_word(c, list_rows, usage_text);
	}
}

/* The breakdown's operations are measured as a whole, too. */
static void settle(struct perf_options *o)
{
	for (int b = 0; b < PERF_BREAKS && o->breakdown; b++)
		o->row[perf_breaks[b].row] = true;
	o->row[PERF_line] |= o->breakdown;
}

int main(int argc, char **argv)
{
	struct perf_options o = { .rounds = 10, .peer = 1 };
	int c;

	memset(o.row, 1, sizeof(o.row));
	while ((c = getopt_long(argc, argv, "r:R:cbfjlh", long_options,
				NULL)) != -1)
		take_option(&o, c);
	if (optind < argc)
		bench_refuse("not an option", argv[optind]);
	settle(&o);
	if (!getenv(SUL_JOB_ENV) && !sul_pmix_here())
		perf_launch(&o);
	if (o.carrier || o.sets.nr)
		bench_refuse("--carrier and --set are for jiarun here",
			     o.carrier ? o.carrier : o.sets.pair[0]);
	return perf_rank_main(&o);
}
