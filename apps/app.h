/* SPDX-License-Identifier: MIT */
/*
 * app.h - what the programs in this folder share: options, timing, verdict, and
 * the shared memory they are written for, whoever provides it.
 *
 * Role: every program is one .c file with an app_main(), which describes its
 *   options in a table and then runs app_init(), app_begin(), the work,
 *   app_end(), app_verdict().  It is linked three times: NAME with app_dsm.c
 *   (ranks are processes, libjia), NAME-pthread with app_pthread.c (ranks are
 *   threads), NAME-serial with app_serial.c (one rank, nothing to wait for).
 *   All ranks run all of app_main(); nothing at file scope may be written.
 * Invariant: all ranks take the same way out, whether the run was good, wrong
 *   or refused, so that nobody waits at a barrier for a rank that has left.
 * Threads: one per rank.
 * Locks: a program's own, by number or by address; they do not nest.
 *
 * A run of one rank in the midst of a job, to compare with: app_alone() makes a
 * struct app for which the same code computes everything by itself, in memory
 * of its own.
 *
 * Exit status: 0 good, 1 a wrong result, 2 bad options or input.  Only rank 0
 * prints.  A good run prints one line with the word "verified" and the figure
 * behind it; a wrong one prints a line with the word WRONG on stderr.
 */
#ifndef APP_H
#define APP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	APP_GOOD = 0,
	APP_WRONG = 1,
	APP_REFUSED = 2
};

enum {
	APP_LOCKS = 1024, /* locks by number are 0 .. APP_LOCKS - 1 */
	APP_SUMS = 16, /* numbers that app_sum() and app_max() take, at most */
	APP_PAGE = 4096 /* allocations begin at a multiple of it */
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

struct app_backend;

/* What the measured part moved to and from this rank; zero where memory is
 * shared by the hardware. */
struct app_traffic {
	bool counted;
	double fetched; /* pages that were not here */
	double refreshed; /* pages that were, and have changed */
	double put_bytes; /* changes sent to other ranks' pages */
};

struct app {
	const char *name;
	const char *about; /* one line for --help */
	const struct app_opt *opts;
	size_t nopts;
	const char *operand; /* name of the one operand, or NULL: none */
	const char *operand_help;
	const char *output_help; /* what --output=FILE writes, or NULL: nothing */
	/* From here set by app_init(). */
	const char *operand_value; /* the operand or NULL */
	const char *output; /* the value of --output or NULL */
	bool test; /* --test was given */
	int rank, ranks;
	const struct app_backend *be;
	double begin, seconds; /* set by app_begin(), app_end() */
	struct app_traffic traffic; /* set by app_end() */
};

/* Every program's main program; returns the exit status. */
int app_main(int argc, char **argv);

/* --- start, measured part, end --------------------------------------------------- */

/* Join the job and read the options.  Returns on a good command line only. */
void app_init(struct app *a, int argc, char **argv);

/* Refuse the run (status 2): all ranks have found the same fault. */
__attribute__((format(printf, 2, 3))) _Noreturn void
app_refuse(const struct app *a, const char *fmt, ...);

/* From here the time and the counters run, as of JIAJIA's own programs: what
 * was set up before and what is checked after belongs to neither. */
void app_begin(struct app *a);
void app_end(struct app *a);

/* Rank 0: what was done, on how many ranks, how long it took. */
__attribute__((format(printf, 2, 3))) void app_report(const struct app *a,
						      const char *fmt, ...);

/* Rank 0: say whether the result is right, and the figure that shows it.  All
 * ranks leave here; the others pass @good = true.  Returns the exit status. */
__attribute__((format(printf, 3, 4))) int
app_verdict(const struct app *a, bool good, const char *fmt, ...);

/* Leave without a verdict; all ranks. */
int app_leave(const struct app *a, int status);

/* Seconds since some time. */
double app_clock(void);

/* The same program on one rank, which need not be all that there are. */
struct app app_alone(const struct app *a);

/* --- shared memory ------------------------------------------------------------------
 *
 * Collective; zeroed; whole pages, at least one, so that a rank without work
 * costs no special case.  It lives as long as the program.  @label names it in
 * the statistics.
 */

/* Memory whose home is @rank, all of it. */
void *app_malloc_on(const struct app *a, const char *label, int rank,
		    size_t bytes);
/* Memory in contiguous equal shares of all ranks. */
void *app_malloc(const struct app *a, const char *label, size_t bytes);

/* The calling rank is about to write all of the whole pages in the range: what
 * was there need not be fetched.  It is undefined until then. */
void app_overwrite(const struct app *a, void *p, size_t bytes);
/* The calling rank is about to read all of the range: what is not here comes
 * together, without a page fault each. */
void app_fetch(const struct app *a, const void *p, size_t bytes);

/* --- synchronisation ------------------------------------------------------------- */

void app_barrier(const struct app *a);
void app_lock(const struct app *a, int lock);
void app_unlock(const struct app *a, int lock);
void app_lock_at(const struct app *a, const void *addr);
void app_unlock_at(const struct app *a, const void *addr);
/* Release the lock taken with app_lock(), wait for app_wake(@cond), take it
 * again.  May return early. */
void app_wait(const struct app *a, const void *cond);
void app_wake(const struct app *a, const void *cond); /* all who wait */

/* Replace each of @n numbers by the sum (the largest) of all ranks'; collective.
 * The order of additions depends on the number of ranks only. */
void app_sum(const struct app *a, double *v, int n);
void app_max(const struct app *a, double *v, int n);

/* --- statistics ------------------------------------------------------------------- */

/* Set a parameter of libjia's, where there is one; collective. */
void app_set(const struct app *a, const char *name, const char *value);
/* Name what is done from now on. */
void app_phase(const struct app *a, const char *name);
/* --- small things -------------------------------------------------------------------- */

/* Rank @rank's share of @total things, in contiguous shares that differ by at
 * most one: *first .. *first + count - 1.  Returns the count, perhaps 0. */
long app_share(const struct app *a, long total, int rank, long *first);

/* Private memory, zeroed; running out of it ends the job. */
void *app_calloc(size_t n, size_t size);

/* End the whole job with a message, status 1, from any rank. */
__attribute__((format(printf, 1, 2))) _Noreturn void app_die(const char *fmt,
							     ...);

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

/* The larger of the two, or NaN if either is: fmax() would hide it. */
static inline double app_worse(double a, double b)
{
	return a > b || a != a ? a : b;
}

#endif /* APP_H */
