/* SPDX-License-Identifier: MIT */
/*
 * oracle.c - random programs over real processes, against a record.
 *
 * Role: options and the exit status: 0 no violation, 1 a violation, 2 usage.
 *   job.c starts the ranks; rank.c is what they do; record.c is what must be.
 *
 * The idea: random programs that have no data race (each item of memory is
 * used by one discipline) run with jia.h only, and every load is compared with
 * the last value stored in the order that the synchronisation gives.  The
 * disciplines are the protocol model's; items lie side by side, to the byte.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "job.h"
#include "matrix.h"
#include "rank.h"
#include "rng.h"

struct options {
	struct job job;
	unsigned int repeat, configs;
	uint64_t ops_total;
	bool matrix;
	const char *record; /* of a rank; NULL: this is no rank */
};

enum {
	OPT_PAGES = 256,
	OPT_JIARUN,
	OPT_MATRIX,
	OPT_TOTAL,
	OPT_CONFIGS,
	OPT_FIRST,
	OPT_REPEAT,
	OPT_STALL,
	OPT_VARY,
	OPT_QUIET,
	OPT_HOSTS,
	OPT_CHILD
};

static const struct option long_options[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "threads", required_argument, NULL, 't' },
	{ "ops", required_argument, NULL, 'o' },
	{ "seed", required_argument, NULL, 's' },
	{ "set", required_argument, NULL, 'S' },
	{ "pages", required_argument, NULL, OPT_PAGES },
	{ "jiarun", required_argument, NULL, OPT_JIARUN },
	{ "matrix", no_argument, NULL, OPT_MATRIX },
	{ "ops-total", required_argument, NULL, OPT_TOTAL },
	{ "configs", required_argument, NULL, OPT_CONFIGS },
	{ "first-round", required_argument, NULL, OPT_FIRST },
	{ "repeat", required_argument, NULL, OPT_REPEAT },
	{ "stall", required_argument, NULL, OPT_STALL },
	{ "vary", no_argument, NULL, OPT_VARY },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	{ "hosts", required_argument, NULL, OPT_HOSTS },
	{ "child", required_argument, NULL, OPT_CHILD },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char usage_text[] =
	"usage: oracle [--ranks N] [--threads T] [--ops N] [--seed S]\n"
	"              [--set name=value ...] [--pages P] [--repeat N]\n"
	"       oracle --matrix [--ops-total N] [--configs N] [--seed S] [--set ...]\n"
	"\n"
	"Random data-race-free programs over real processes; every load is checked.\n"
	"  --ranks N        processes, 1..64 (2)\n"
	"  --threads T      threads in each, 1..64; at most 256 in all (1)\n"
	"  --ops N          loads, stores, locks, unlocks and barriers in all (100000)\n"
	"  --seed S         what the threads do (SEED, or from the clock)\n"
	"  --set name=value a parameter of the job, as jiarun has it\n"
	"  --pages P        pages in each round, 1..2048 (random)\n"
	"  --vary           rounds change update, keep, migrate and block (jia_set)\n"
	"  --repeat N       run N times, stop at the first violation (1)\n"
	"  --first-round R  begin with round R of that seed (0)\n"
	"  --stall S        seconds without progress that count as hung (60)\n"
	"  --hosts LIST     ranks run there, as jiarun -H has it; the hosts must be names\n"
	"                   of this machine, since all ranks look at one record\n"
	"  --quiet          discard what jiarun and the ranks print on stderr\n"
	"  --jiarun PATH    (../bin/jiarun, from where this program is)\n"
	"  --matrix         over ranks, threads and both ends of every parameter\n"
	"  --ops-total N    ... with so many operations in all (100000)\n"
	"  --configs N      ... and so many configurations (all pairs of values)\n"
	"exit status: 0 no violation, 1 a violation, 2 usage\n";

static _Noreturn void refuse(const char *what, const char *value)
{
	fprintf(stderr, "oracle: %s: %s (see --help)\n", what, value);
	exit(2);
}

static uint64_t number(const char *name, const char *text, uint64_t min,
		       uint64_t max)
{
	char what[80], *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || n < min ||
	    n > max) {
		snprintf(what, sizeof(what), "%s must be %" PRIu64 "..%" PRIu64,
			 name, min, max);
		refuse(what, text);
	}
	return n;
}

static void add_set(struct job *job, const char *text)
{
	if (!strchr(text, '='))
		refuse("--set wants name=value", text);
	if (job->nsets == JOB_SETS)
		refuse("too many --set", text);
	job->set[job->nsets++] = text;
}

static void take_rare_option(struct options *o, int c)
{
	switch (c) {
	case OPT_TOTAL:
		o->ops_total = number("--ops-total", optarg, 1, UINT64_MAX);
		break;
	case OPT_CONFIGS:
		o->configs =
			(unsigned int)number("--configs", optarg, 1, 100000);
		break;
	case OPT_FIRST:
		o->job.first_round =
			(uint32_t)number("--first-round", optarg, 0, 1u << 30);
		break;
	case OPT_REPEAT:
		o->repeat =
			(unsigned int)number("--repeat", optarg, 1, 1u << 30);
		break;
	case OPT_STALL:
		o->job.stall_s =
			(unsigned int)number("--stall", optarg, 1, 86400);
		break;
	case OPT_VARY:
		o->job.vary = true;
		break;
	case OPT_HOSTS:
		o->job.hosts = optarg;
		break;
	case OPT_CHILD:
		o->record = optarg;
		break;
	case 'h':
		fputs(usage_text, stdout);
		exit(0);
	default:
		exit(2);
	}
}

static void take_option(struct options *o, int c)
{
	switch (c) {
	case 'n':
		o->job.ranks = (unsigned int)number("--ranks", optarg, 1,
						    JOB_MAX_RANKS);
		break;
	case 't':
		o->job.threads =
			(unsigned int)number("--threads", optarg, 1, 64);
		break;
	case 'o':
		o->job.ops = number("--ops", optarg, 1, UINT64_MAX);
		break;
	case 's':
		o->job.seed = number("--seed", optarg, 0, UINT64_MAX);
		break;
	case 'S':
		add_set(&o->job, optarg);
		break;
	case OPT_PAGES:
		o->job.pages = (unsigned int)number("--pages", optarg, 1, 2048);
		break;
	case OPT_JIARUN:
		o->job.jiarun = optarg;
		break;
	case OPT_MATRIX:
		o->matrix = true;
		break;
	case OPT_QUIET:
		o->job.quiet = true;
		break;
	default:
		take_rare_option(o, c);
	}
}

static void parse(struct options *o, int argc, char **argv)
{
	int c;

	/* "+": no permuting, as argv goes on to the ranks untouched */
	while ((c = getopt_long(argc, argv, "+", long_options, NULL)) != -1)
		take_option(o, c);
	if (optind < argc)
		refuse("not an option", argv[optind]);
	if (o->job.ranks * o->job.threads > REC_THREADS)
		refuse("at most 256 threads in all", "--ranks times --threads");
}

/* This program, and jiarun next to its folder. */
static void find_paths(struct job *job, char self[PATH_MAX],
		       char jiarun[PATH_MAX + 16])
{
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);
	char *slash;

	if (n < 0)
		refuse("cannot find", "/proc/self/exe");
	self[n] = '\0';
	job->self = self;
	slash = strrchr(self, '/');
	snprintf(jiarun, PATH_MAX + 16, "%.*s/../bin/jiarun",
		 (int)(slash - self), self);
	job->own_jiarun = !job->jiarun;
	if (job->own_jiarun)
		job->jiarun = jiarun;
	if (access(job->jiarun, X_OK))
		refuse("cannot run", job->jiarun);
}

static uint64_t first_seed(void)
{
	const char *given = getenv("SEED");
	struct timespec ts;

	if (given)
		return number("SEED", given, 0, UINT64_MAX);
	clock_gettime(CLOCK_REALTIME, &ts);
	return rng_mix((uint64_t)ts.tv_nsec << 32 ^ (uint64_t)ts.tv_sec ^
		       (uint64_t)getpid() << 20);
}

static int run_once(const struct job *job)
{
	struct job_result res = { 0 };
	int rc = job_run(job, &res);

	if (rc < 0)
		return rc;
	printf("oracle: %" PRIu64
	       " operations, %d violations, %u rounds, %.2f s, %.0f operations/s\n",
	       res.ops, rc, res.rounds, res.seconds,
	       (double)res.ops / res.seconds);
	return rc;
}

int main(int argc, char **argv)
{
	static char self[PATH_MAX], jiarun[PATH_MAX + 16];
	struct options o = {
		.job = { .ranks = 2,
			 .threads = 1,
			 .ops = 100000,
			 .stall_s = 60 },
		.repeat = 1,
		.ops_total = 100000,
	};
	int rc = 0;

	o.job.seed = first_seed();
	parse(&o, argc, argv);
	if (o.record)
		return rank_main(argc, argv, o.record);
	find_paths(&o.job, self, jiarun);
	printf("SEED=0x%" PRIx64 "\n", o.job.seed);
	fflush(stdout);
	if (o.matrix)
		rc = matrix_run(&o.job, o.ops_total, o.configs);
	else
		for (unsigned int i = 0; i < o.repeat && !rc; i++)
			rc = run_once(&o.job);
	if (rc < 0)
		fprintf(stderr, "oracle: cannot start the job: %s\n",
			strerror(-rc));
	return rc ? 1 : 0;
}
