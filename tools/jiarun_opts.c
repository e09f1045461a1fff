/* SPDX-License-Identifier: MIT */
/*
 * jiarun_opts.c - the command line of jiarun.
 *
 * Parameters (--set, --config) are checked here, before anything is started,
 * by the same code that the ranks will read them with; what reaches the ranks
 * are the variables JIA_SET and JIA_CONFIG.
 */
#include "jiarun.h"

#include <ctype.h>
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
#include "jiarun_wire.h"
#include "sul.h"

enum {
	TIMEOUT_MAX_S = 1000000000, /* 31 years: beyond it nobody means it */
	ANSWER_MS = 30000, /* --host-timeout */
	HOST_KEEPER = 256 /* an option that only jiarun uses */
};

/* Letters of the table below that are options by themselves. */
static const char shorts[] = "nHxh";

/*
 * OPT(letter, long, argument, value, doc): letter 0: none; argument: 0 none,
 * 1 needed, 2 may be given with =.  Getopt, --help and the dispatch below come
 * from this table.
 */
#define OPTIONS(OPT)                                                          \
	OPT('n', "np", 1, "N", "start N ranks, 1 .. 1024")                    \
	OPT('H', "host", 1, "HOST[:N],...",                                   \
	    "run them on these hosts, at most N on each")                     \
	OPT('f', "hostfile", 1, "FILE",                                       \
	    "the same, a line for each: HOST [slots=N]")                      \
	OPT('x', "export", 1, "NAME[=VALUE]",                                 \
	    "give this variable to ranks on other hosts, too")                \
	OPT('r', "ssh", 1, "COMMAND", "how to reach hosts; ssh if not given") \
	OPT('P', "jiarun-path", 1, "PATH", "where jiarun is on other hosts")  \
	OPT('w', "host-timeout", 1, "SECONDS",                                \
	    "how long hosts may take to answer; 30 if not given")             \
	OPT('s', "set", 1, "NAME=VALUE", "set a parameter; may be repeated")  \
	OPT('c', "config", 1, "FILE", "read parameters from FILE")            \
	OPT('p', "list-parameters", 2, "file|roff",                           \
	    "print all parameters, their values and where from")              \
	OPT('S', "stats", 0, "", "print the ranks' counters at the end")      \
	OPT('F', "stats-file", 1, "FILE",                                     \
	    "write them to FILE, not to standard error")                      \
	OPT('J', "stats-format", 1, "json|text", "as JSON, or as a table")    \
	OPT('l', "label", 0, "", "put \"[rank] \" before every line")         \
	OPT('t', "timeout", 1, "SECONDS",                                     \
	    "end the job then, and say who waits where")                      \
	OPT('g', "debug", 2, "RANK", "run this rank (0) under gdb")           \
	OPT('N', "nodes", 1, "1",                                             \
	    "hardware shared memory, no protocol: the baseline")              \
	OPT('G', "share-globals", 0, "",                                      \
	    "global variables are shared memory (programs with jia.m4)")      \
	OPT('h', "help", 0, "", "print this")                                 \
	OPT('V', "version", 0, "", "print the version")

static const struct option long_options[] = {
#define OPT(letter, name, arg, value, doc) { name, arg, NULL, letter },
	OPTIONS(OPT)
#undef OPT
		{ "host-keeper", 0, NULL, HOST_KEEPER },
	{ NULL, 0, NULL, 0 }
};

struct reading {
	struct jiarun_options *o;
	const char *hostfile;
	char self[JIARUN_HOST_NAME_MAX + 1]; /* this host's name */
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

static void help_option(int letter, const char *name, const char *doc)
{
	bool alone = strchr(shorts, letter) != NULL;

	printf("  %c%c%s--%-28s  %s\n", alone ? '-' : ' ', alone ? letter : ' ',
	       alone ? ", " : "  ", name, doc);
}

static int help(void)
{
	printf("usage: jiarun [options] [--] program [arguments]\n"
	       "Start a program as the ranks of a job that share memory.\n\n");
#define OPT(letter, name, arg, value, doc)          \
	help_option(letter,                         \
		    arg == 0 ? name :               \
		    arg == 1 ? name "=" value :     \
			       name "[=" value "]", \
		    doc);
	OPTIONS(OPT)
#undef OPT
	printf("\nExit status: the program's; that of the first rank that "
	       "failed (128 + signal);\n124 time-out, 125 a host cannot be "
	       "used or was lost, 126 and 127 program\ncannot be run or "
	       "found, 2 bad option.\n");
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

/* Seconds, fractions too, as milliseconds. */
static int read_seconds(const char *option, const char *arg, int64_t *ms)
{
	char *stop;
	double s = strtod(arg, &stop);

	if (stop == arg || *stop || !isfinite(s) || s <= 0 || s > TIMEOUT_MAX_S)
		return refuse("--%s=%s: seconds, more than 0, at most %d",
			      option, arg, TIMEOUT_MAX_S);
	*ms = (int64_t)ceil(s * 1000);
	return -1;
}

static int read_hosts(struct reading *rd, const char *arg)
{
	char err[JIARUN_HOSTS_ERR_MAX];

	if (!jiarun_hosts_add(&rd->o->hosts, arg, rd->self, err))
		return refuse("-H %s: %s", arg, err);
	return -1;
}

static bool name_is_good(const char *name, size_t len)
{
	if (!len || (*name >= '0' && *name <= '9'))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_')
			return false;
	return true;
}

static int read_export(struct reading *rd, const char *arg)
{
	struct jiarun_options *o = rd->o;
	size_t len = strcspn(arg, "=");
	char **more = realloc(o->export, (o->exports + 1) * sizeof(*more));
	char *name = more ? strndup(arg, len) : NULL;

	if (more)
		o->export = more;
	if (!name)
		return refuse("out of memory");
	o->export[o->exports++] = name;
	if (!name_is_good(arg, len))
		return refuse("-x %s: NAME or NAME=VALUE, a name of letters, "
			      "digits and _",
			      arg);
	if (arg[len] && setenv(name, arg + len + 1, 1))
		return refuse("out of memory");
	if (!getenv(name))
		return refuse("-x %s: there is no such variable here", arg);
	return -1;
}

static int read_word(const char *option, const char *arg, const char **to)
{
	if (!arg[strspn(arg, " \t\n")])
		return refuse("--%s: its argument is empty", option);
	*to = arg;
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
	case 'H':
		return read_hosts(rd, optarg);
	case 'f':
		return read_word("hostfile", optarg, &rd->hostfile);
	case 'x':
		return read_export(rd, optarg);
	case 'r':
		return read_word("ssh", optarg, &rd->o->ssh);
	case 'P':
		return read_word("jiarun-path", optarg, &rd->o->path);
	case 'w':
		return read_seconds("host-timeout", optarg, &rd->o->answer_ms);
	case HOST_KEEPER:
		rd->o->host_keeper = true;
		return -1;
	case 't':
		return read_seconds("timeout", optarg, &rd->o->timeout_ms);
	case 'g':
		return read_debug(rd, optarg);
	case 'N':
		return read_nodes(rd, optarg);
	case 'G':
		return add_line(rd, "share_globals=yes");
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

/* Who runs where; -1: go on. */
static int place_ranks(struct reading *rd)
{
	struct jiarun_options *o = rd->o;
	char err[JIARUN_HOSTS_ERR_MAX];

	if (rd->hostfile && o->hosts.nr)
		return refuse("-H and --hostfile exclude each other");
	if (rd->hostfile &&
	    !jiarun_hosts_file(&o->hosts, rd->hostfile, rd->self, err))
		return refuse("--hostfile: %s", err);
	if (o->hosts.nr) {
		o->ranks = jiarun_hosts_place(&o->hosts, o->ranks, o->host_of,
					      SUL_RANKS_MAX, err);
		if (!o->ranks)
			return refuse("%s", err);
	}
	o->ranks = o->ranks ? o->ranks : 1;
	o->here = jiarun_hosts_here(&o->hosts);
	if (o->hosts.nr == 1 && o->here == 0)
		jiarun_hosts_free(&o->hosts);
	return -1;
}

/* Options that need each other. */
static int check_options(struct reading *rd)
{
	struct jiarun_options *o = rd->o;
	int status = place_ranks(rd);

	if (status >= 0)
		return status;
	/* Asking for a file or a format is asking for statistics. */
	o->stats = o->stats || rd->have_file || rd->have_format;
	if (o->debug_rank >= o->ranks)
		return refuse("--debug=%d: there are ranks 0 to %d",
			      o->debug_rank, o->ranks - 1);
	if (o->debug_rank >= 0 && o->hosts.nr &&
	    o->host_of[o->debug_rank] != o->here)
		return refuse("--debug=%d: this rank is on host %s; gdb needs "
			      "the terminal here",
			      o->debug_rank,
			      o->hosts.host[o->host_of[o->debug_rank]].name);
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
	if (s.value.hardware && rd->o->hosts.nr)
		return refuse(
			"--nodes=1 (hardware=1): all ranks must be on one "
			"host");
	rd->o->silence_ms = (int64_t)s.value.silence * 1000;
	if (!rd->o->list_parameters)
		return -1;
	rd->list(stdout, &s);
	if (fflush(stdout) == 0)
		return 0;
	fprintf(stderr, "jiarun: standard output: %s\n", strerror(errno));
	return 1;
}

static void options_begin(struct reading *rd)
{
	const char *ssh = getenv("JIA_SSH"), *path = getenv("JIA_RUN_PATH");

	*rd->o = (struct jiarun_options){
		.debug_rank = -1,
		.ssh = ssh && ssh[strspn(ssh, " \t\n")] ? ssh : "ssh",
		.path = path && *path ? path : NULL,
		.answer_ms = ANSWER_MS,
	};
	dsm_config_defaults(&rd->scratch);
	if (gethostname(rd->self, sizeof(rd->self)) < 0)
		snprintf(rd->self, sizeof(rd->self), "localhost");
	rd->self[sizeof(rd->self) - 1] = '\0';
}

/* Everything else comes over the channel. */
static int check_host_keeper(int argc)
{
	if (argc != 2 || isatty(STDIN_FILENO) || isatty(STDOUT_FILENO))
		return refuse("--host-keeper is how jiarun starts itself on "
			      "other hosts; it is not for people");
	return -1;
}

void jiarun_options_free(struct jiarun_options *o)
{
	jiarun_hosts_free(&o->hosts);
	for (size_t i = 0; i < o->exports; i++)
		free(o->export[i]);
	free(o->export);
}

int jiarun_options_read(struct jiarun_options *o, int argc, char **argv)
{
	struct reading rd = { .o = o };
	int status = -1, c;

	options_begin(&rd);
	opterr = 0;
	while (status < 0 && (c = getopt_long(argc, argv, "+:n:H:x:h",
					      long_options, NULL)) != -1)
		status = read_option(&rd, c, argv);
	if (status < 0 && optind < argc)
		o->argv = argv + optind;
	if (status < 0)
		status = o->host_keeper ? check_host_keeper(argc) :
					  check_options(&rd);
	if (status < 0 && !o->host_keeper)
		status = hand_on(&rd);
	free(rd.set);
	return status;
}
