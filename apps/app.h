/* SPDX-License-Identifier: MIT */
/*
 * app.h - what the programs in this folder share: options, timing, verdict.
 *
 * Role: every program is one .c file that describes its options in a table and
 *   then runs app_init(), app_begin(), the work, app_end(), app_verdict().
 * Invariant: all ranks take the same way out, whether the run was good, wrong
 *   or refused, so that nobody waits at a barrier for a rank that has left.
 * Threads: one per rank.
 * Locks: none here; lock 0 is the programs' own.
 *
 * Exit status: 0 good, 1 a wrong result, 2 bad options or input.  Only rank 0
 * prints.  A good run prints one line with the word "verified" and the figure
 * behind it; a wrong one prints a line with the word WRONG on stderr.
 */
#ifndef APP_H
#define APP_H

#define JIA_NO_MACROS
#include "jia.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	APP_GOOD = 0,
	APP_WRONG = 1,
	APP_REFUSED = 2
};

/* One option.  A number (num set) has a default, a value for --test, and the
 * range that is accepted; a flag is a number with the range 0..1 and no @arg. */
struct app_opt {
	char letter; /* -n 5 */
	const char *name; /* --size 5, --size=5 */
	const char *arg; /* what --help calls the value; NULL: a flag */
	long *num; /* its place; a default below @min means "not given" */
	long dflt, test, min, max;
	const char *help;
};

struct app {
	const char *name;
	const char *about; /* one line for --help */
	const struct app_opt *opts;
	size_t nopts;
	const char *operand; /* name of the one operand, or NULL: none */
	const char *operand_help;
	const char *operand_value; /* set by app_init(): the operand or NULL */
	bool test; /* set by app_init(): --test was given */
	double begin, seconds; /* set by app_begin(), app_end() */
};

/* Leave the job with @status; all ranks must come here together. */
static inline _Noreturn void app_quit(int status)
{
	jia_exit();
	exit(status);
}

/* Refuse the run (status 2): all ranks have found the same fault. */
__attribute__((format(printf, 2, 3))) static inline _Noreturn void
app_refuse(const struct app *a, const char *fmt, ...)
{
	va_list ap;

	if (jia_pid == 0) {
		fprintf(stderr, "%s: ", a->name);
		va_start(ap, fmt);
		vfprintf(stderr, fmt, ap);
		va_end(ap);
		fprintf(stderr, "\nTry '%s --help'.\n", a->name);
	}
	app_quit(APP_REFUSED);
}

/* --- options ---------------------------------------------------------------- */

static inline void app_help_line(char letter, const char *name, const char *arg,
				 const char *help)
{
	char left[64];

	snprintf(left, sizeof(left), "%c%c%s--%s%s%s", letter ? '-' : ' ',
		 letter ? letter : ' ', letter ? ", " : "  ", name,
		 arg ? "=" : "", arg ? arg : "");
	printf("  %-26s %s", left, help);
}

static inline void app_help(const struct app *a)
{
	printf("usage: %s [options]%s%s\n%s\n\n", a->name,
	       a->operand ? " " : "", a->operand ? a->operand : "", a->about);
	if (a->operand)
		printf("  %-26s %s\n", a->operand, a->operand_help);
	for (size_t i = 0; i < a->nopts; i++) {
		const struct app_opt *o = &a->opts[i];

		app_help_line(o->letter, o->name, o->arg, o->help);
		if (o->arg && o->dflt < o->min)
			printf(" (%ld..%ld)", o->min, o->max);
		else if (o->arg)
			printf(" (%ld..%ld, default %ld)", o->min, o->max,
			       o->dflt);
		putchar('\n');
	}
	app_help_line('\0', "test", NULL,
		      "a small size, a few seconds at most\n");
	app_help_line('\0', "help", NULL, "this text\n");
	printf("\nExit status: 0 verified, 1 a wrong result, 2 bad options or "
	       "input.\n");
}

/* Parse @text for option @o, or refuse the run. */
static inline long app_number(const struct app *a, const struct app_opt *o,
			      const char *text)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (end == text || *end)
		app_refuse(a, "--%s: '%s' is not a whole number (%ld..%ld)",
			   o->name, text, o->min, o->max);
	if (errno || v < o->min || v > o->max)
		app_refuse(a, "--%s: %s is out of range (%ld..%ld)", o->name,
			   text, o->min, o->max);
	return v;
}

/* Does @arg name @o?  A value in the same word ("-n5", "--size=5") goes to
 * @value, which is NULL otherwise. */
static inline bool app_is_opt(const struct app_opt *o, const char *arg,
			      const char **value)
{
	size_t len = strlen(o->name);

	*value = NULL;
	if (arg[1] != '-') {
		if (!o->letter || arg[1] != o->letter)
			return false;
		if (arg[2])
			*value = arg + 2;
		return true;
	}
	if (strncmp(arg + 2, o->name, len) ||
	    (arg[2 + len] && arg[2 + len] != '='))
		return false;
	if (arg[2 + len])
		*value = arg + 2 + len + 1;
	return true;
}

/* Take argv[i] and its value; returns the index of the last word taken. */
static inline int app_take(struct app *a, int argc, char **argv, int i)
{
	const char *value;

	for (size_t k = 0; k < a->nopts; k++) {
		const struct app_opt *o = &a->opts[k];

		if (!app_is_opt(o, argv[i], &value))
			continue;
		if (!o->arg && value)
			app_refuse(a, "--%s takes no value ('%s')", o->name,
				   value);
		if (o->arg && !value) {
			if (i + 1 >= argc)
				app_refuse(a, "--%s needs a value (%ld..%ld)",
					   o->name, o->min, o->max);
			value = argv[++i];
		}
		*o->num = o->arg ? app_number(a, o, value) : 1;
		return i;
	}
	app_refuse(a, "unknown option '%s'", argv[i]);
}

static inline void app_take_operand(struct app *a, const char *arg)
{
	if (!a->operand)
		app_refuse(a, "unexpected argument '%s'", arg);
	if (a->operand_value)
		app_refuse(a, "one %s only: '%s' after '%s'", a->operand, arg,
			   a->operand_value);
	a->operand_value = arg;
}

static inline bool app_asked(int argc, char **argv, const char *what)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], what))
			return true;
	return false;
}

/* Join the job and read the options.  Returns on a good command line only. */
static inline void app_init(struct app *a, int argc, char **argv)
{
	bool words = false;

	jia_init(argc, argv);
	a->test = app_asked(argc, argv, "--test");
	if (app_asked(argc, argv, "--help")) {
		if (jia_pid == 0)
			app_help(a);
		app_quit(APP_GOOD);
	}
	for (size_t k = 0; k < a->nopts; k++)
		*a->opts[k].num = a->test ? a->opts[k].test : a->opts[k].dflt;
	for (int i = 1; i < argc; i++) {
		if (words || argv[i][0] != '-' || !argv[i][1])
			app_take_operand(a, argv[i]);
		else if (!strcmp(argv[i], "--"))
			words = true;
		else if (strcmp(argv[i], "--test"))
			i = app_take(a, argc, argv, i);
	}
}

/* --- the measured part ------------------------------------------------------ */

static inline double app_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* From here the time and the counters run, as of JIAJIA's own programs: what
 * was set up before and what is checked after belongs to neither. */
static inline void app_begin(struct app *a)
{
	jia_barrier();
	jia_startstat();
	a->begin = app_clock();
}

static inline void app_end(struct app *a)
{
	jia_barrier();
	a->seconds = app_clock() - a->begin;
	jia_stopstat();
}

/* Rank 0: what was done, on how many ranks, how long it took. */
__attribute__((format(printf, 2, 3))) static inline void
app_report(const struct app *a, const char *fmt, ...)
{
	va_list ap;

	if (jia_pid)
		return;
	printf("%s: ", a->name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf(", %d rank%s: %.6f s\n", hostc, hostc == 1 ? "" : "s",
	       a->seconds);
}

/* Rank 0: say whether the result is right, and the figure that shows it.  All
 * ranks leave here; the others pass @good = true.  Returns the exit status. */
__attribute__((format(printf, 3, 4))) static inline int
app_verdict(const struct app *a, bool good, const char *fmt, ...)
{
	FILE *out = good ? stdout : stderr;
	va_list ap;

	if (jia_pid == 0) {
		fprintf(out, "%s: %s: ", a->name, good ? "verified" : "WRONG");
		va_start(ap, fmt);
		vfprintf(out, fmt, ap);
		va_end(ap);
		fputc('\n', out);
	}
	jia_exit();
	return good ? APP_GOOD : APP_WRONG;
}

/* --- small things ----------------------------------------------------------- */

/* Rank @rank's share of @total things, in contiguous shares that differ by at
 * most one: *first .. *first + count - 1.  Returns the count, perhaps 0. */
static inline long app_share(long total, int rank, long *first)
{
	long each = total / hostc, more = total % hostc;

	*first = each * rank + (rank < more ? rank : more);
	return each + (rank < more);
}

/* Shared memory whose home is @rank, all of it; collective.  At least one page,
 * so that a rank without work costs no special case. */
static inline void *app_malloc_on(int rank, size_t bytes)
{
	size_t page = 4096, block = (bytes + page - 1) / page * page;

	if (!block)
		block = page;
	return jia_malloc_on(block, block, rank);
}

/* Private memory, zeroed; running out of it ends the job. */
static inline void *app_calloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		jia_error("no memory for %zu x %zu bytes of private data", n,
			  size);
	return p;
}

/* A number that depends on @x only, in which every bit of @x counts
 * (the finaliser of splitmix64). */
static inline uint64_t app_hash(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* The same as a fraction, 0 <= f < 1. */
static inline double app_fraction(uint64_t x)
{
	return (double)(app_hash(x) >> 11) * 0x1p-53;
}

#endif /* APP_H */
