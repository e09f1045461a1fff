/* SPDX-License-Identifier: MIT */
/*
 * jiarun_opts.c - the command line of jiarun.
 *
 * Parameters (--set, --config) are checked here, before anything is started,
 * by the same code that the ranks will read them with; what reaches the ranks
 * are the variables JIA_SET and JIA_CONFIG.
 */
#include "jiarun.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dsm_config.h"
#include "jia.h"
#include "sul.h"

enum {
	TIMEOUT_MAX_S = 1000000000 /* 31 years: beyond it nobody means it */
};

/*
 * OPT(letter, long, argument, value, doc): letter 0: none; argument: 0 none,
 * 1 needed, 2 may be given with =.  Getopt, --help and the dispatch below come
 * from this table.
 */
#define OPTIONS(OPT)                                                         \
	OPT('n', "np", 1, "N", "start N ranks, 1 .. 1024")                   \
	OPT('s', "set", 1, "NAME=VALUE", "set a parameter; may be repeated") \
	OPT('c', "config", 1, "FILE", "read parameters from FILE")           \
	OPT('p', "list-parameters", 2, "file|roff",                          \
	    "print all parameters, their values and where from")             \
	OPT('S', "stats", 0, "", "print the ranks' counters at the end")     \
	OPT('F', "stats-file", 1, "FILE",                                    \
	    "write them to FILE, not to standard error")                     \
	OPT('J', "stats-format", 1, "json|text", "as JSON, or as a table")   \
	OPT('l', "label", 0, "", "put \"[rank] \" before every line")        \
	OPT('t', "timeout", 1, "SECONDS",                                    \
	    "end the job then, and say who waits where")                     \
	OPT('g', "debug", 2, "RANK", "run this rank (0) under gdb")          \
	OPT('N', "nodes", 1, "1",                                            \
	    "hardware shared memory, no protocol: the baseline")             \
	OPT('h', "help", 0, "", "print this")                                \
	OPT('V', "version", 0, "", "print the version")

static const struct option long_options[] = {
#define OPT(letter, name, arg, value, doc) { name, arg, NULL, letter },
	OPTIONS(OPT)
#undef OPT
		{ NULL, 0, NULL, 0 }
};

struct reading {
	struct jiarun_options *o;
	struct dsm_settings scratch; /* for checking --set, one by one */
	char *set; /* the lines of JIA_SET */
	void (*list)(FILE *f, const struct dsm_settings *s);
	bool have_file, have_format;
};

/* What jiarun(1) says of them; a test compares. */
static void list_roff(FILE *f, const struct dsm_settings *s)
{
	(void)s;
	dsm_config_roff(f);
	fputs(".SH ENVIRONMENT\n", f);
	dsm_config_roff_env(f);
}

static int refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int refuse(const char *fmt, ...)
{
	va_list ap;

	fputs("jiarun: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return JIARUN_USAGE;
}

static int help(void)
{
	printf("usage: jiarun [options] [--] program [arguments]\n"
	       "Start a program as the ranks of a job that share memory.\n\n");
#define OPT(letter, name, arg, value, doc)                                \
	printf("  %s%-*s  %s\n", letter == 'n' ? "-n, --" : "    --", 28, \
	       arg == 0 ? name :                                          \
	       arg == 1 ? name "=" value :                                \
			  name "[=" value "]",                            \
	       doc);
	OPTIONS(OPT)
#undef OPT
	printf("\nExit status: the program's; that of the first rank that "
	       "failed (128 + signal);\n124 time-out, 126 and 127 program "
	       "cannot be run or found, 2 bad option.\n");
	return 0;
}

/* @text as a whole number from @min to @max; false: it is none. */
static bool number(const char *text, long min, long max, long *out)
{
	char *stop;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtol(text, &stop, 10);
	return !errno && !*stop && *out >= min && *out <= max;
}

static int read_ranks(struct reading *rd, const char *arg)
{
	long n;

	if (!number(arg, 1, SUL_RANKS_MAX, &n))
		return refuse("-n %s: how many ranks: a number from 1 to %d",
			      arg, SUL_RANKS_MAX);
	rd->o->ranks = (int)n;
	return -1;
}

/* One more line for JIA_SET. */
static int add_line(struct reading *rd, const char *line)
{
	char *all;

	if (rd->set)
		all = jiarun_text("%s\n%s", rd->set, line);
	else
		all = strdup(line);
	if (!all)
		return refuse("out of memory");
	free(rd->set);
	rd->set = all;
	return -1;
}

static int read_set(struct reading *rd, const char *arg)
{
	char err[DSM_CONFIG_ERR_MAX];

	if (strchr(arg, '\n'))
		return refuse("--set: one name=value, not several lines");
	if (dsm_config_set_pair(&rd->scratch, arg, DSM_SOURCE_JIARUN, err))
		return refuse("%s", err);
	return add_line(rd, arg);
}

static int read_config(const char *arg)
{
	if (!*arg)
		return refuse("--config: the name of a file is missing");
	return setenv("JIA_CONFIG", arg, 1) ? refuse("out of memory") : -1;
}

static int read_timeout(struct reading *rd, const char *arg)
{
	char *stop;
	double s = strtod(arg, &stop);

	if (stop == arg || *stop || !isfinite(s) || s <= 0 || s > TIMEOUT_MAX_S)
		return refuse("--timeout=%s: seconds, more than 0, at most %d",
			      arg, TIMEOUT_MAX_S);
	rd->o->timeout_ms = (int64_t)ceil(s * 1000);
	return -1;
}

static int read_debug(struct reading *rd, const char *arg)
{
	long rank = 0;

	if (arg && !number(arg, 0, SUL_RANKS_MAX - 1, &rank))
		return refuse("--debug=%s: which rank: a number from 0", arg);
	rd->o->debug_rank = (int)rank;
	return -1;
}

static int read_format(struct reading *rd, const char *arg)
{
	rd->o->stats_json = strcmp(arg, "json") == 0;
	rd->have_format = true;
	if (!rd->o->stats_json && strcmp(arg, "text") != 0)
		return refuse("--stats-format=%s: json or text", arg);
	return -1;
}

static int read_list(struct reading *rd, const char *arg)
{
	rd->o->list_parameters = true;
	if (!arg)
		rd->list = dsm_config_list;
	else if (strcmp(arg, "file") == 0)
		rd->list = dsm_config_values;
	else if (strcmp(arg, "roff") == 0)
		rd->list = list_roff;
	else
		return refuse("--list-parameters=%s: file, roff or nothing",
			      arg);
	return -1;
}

static int read_nodes(struct reading *rd, const char *arg)
{
	if (strcmp(arg, "1") != 0)
		return refuse("--nodes=%s: only 1 makes sense on one host",
			      arg);
	return add_line(rd, "hardware=1");
}

static int read_stats_file(struct reading *rd, const char *arg)
{
	if (!*arg)
		return refuse("--stats-file: the name of a file is missing");
	rd->o->stats_file = arg;
	rd->have_file = true;
	return -1;
}

static int bad_option(int c, char **argv)
{
	const char *arg = argv[optind - 1];

	if (c == ':')
		return refuse("%s: its argument is missing", arg);
	if (optopt && optopt < 128 && arg[1] != '-')
		return refuse("-%c: no such option; see jiarun --help", optopt);
	return refuse("%s: no such option, or one that takes no argument; see "
		      "jiarun --help",
		      arg);
}

/* -1: go on. */
static int read_option(struct reading *rd, int c, char **argv)
{
	switch (c) {
	case 'n':
		return read_ranks(rd, optarg);
	case 's':
		return read_set(rd, optarg);
	case 'c':
		return read_config(optarg);
	case 'F':
		return read_stats_file(rd, optarg);
	case 'J':
		return read_format(rd, optarg);
	case 't':
		return read_timeout(rd, optarg);
	case 'g':
		return read_debug(rd, optarg);
	case 'N':
		return read_nodes(rd, optarg);
	case 'p':
		return read_list(rd, optarg);
	case 'S':
		rd->o->stats = true;
		return -1;
	case 'l':
		rd->o->label = true;
		return -1;
	case 'h':
		return help();
	case 'V':
		printf("jiarun (dajia) %d.%d\n", JIA_VERSION_MAJOR,
		       JIA_VERSION_MINOR);
		return 0;
	default:
		return bad_option(c, argv);
	}
}

/* Options that need each other. */
static int check_options(struct reading *rd)
{
	struct jiarun_options *o = rd->o;

	/* Asking for a file or a format is asking for statistics. */
	o->stats = o->stats || rd->have_file || rd->have_format;
	if (o->debug_rank >= o->ranks)
		return refuse("--debug=%d: there are ranks 0 to %d",
			      o->debug_rank, o->ranks - 1);
	if (o->debug_rank >= 0 && o->label)
		return refuse("--label and --debug exclude each other: gdb "
			      "needs the terminal");
	if (!o->argv && !o->list_parameters)
		return refuse("which program?  usage: jiarun [options] [--] "
			      "program [arguments]");
	if (o->argv && !*o->argv[0])
		return refuse("the program's name is empty");
	return -1;
}

/* What the ranks will read, read here first. */
static int hand_on(struct reading *rd)
{
	struct dsm_settings s;
	char err[DSM_CONFIG_ERR_MAX];
	int full = 0;

	if (rd->set)
		full = setenv("JIA_SET", rd->set, 1);
	else
		unsetenv("JIA_SET");
	unsetenv("JIA_STATS");
	if (rd->o->stats)
		full |= setenv("JIA_STATS", "1", 1);
	unsetenv(SUL_JOB_ENV);
	if (full)
		return refuse("out of memory");
	if (dsm_config_load(&s, environ, err))
		return refuse("%s", err);
	if (!rd->o->list_parameters)
		return -1;
	rd->list(stdout, &s);
	if (fflush(stdout) == 0)
		return 0;
	fprintf(stderr, "jiarun: standard output: %s\n", strerror(errno));
	return 1;
}

int jiarun_options_read(struct jiarun_options *o, int argc, char **argv)
{
	struct reading rd = { .o = o };
	int status = -1, c;

	*o = (struct jiarun_options){ .ranks = 1, .debug_rank = -1 };
	dsm_config_defaults(&rd.scratch);
	opterr = 0;
	while (status < 0 &&
	       (c = getopt_long(argc, argv, "+:n:h", long_options, NULL)) != -1)
		status = read_option(&rd, c, argv);
	if (status < 0 && optind < argc)
		o->argv = argv + optind;
	if (status < 0)
		status = check_options(&rd);
	if (status < 0)
		status = hand_on(&rd);
	free(rd.set);
	return status;
}
