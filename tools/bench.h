/* SPDX-License-Identifier: MIT */
/*
 * bench.h - what jiabench and sulperf have in common.
 *
 * tools/bench_*.c are linked into both: samples and what they come to, words
 * that two processes hand each other, a tracer that counts system calls, small
 * things about texts, and options.
 *
 * Threads: one, unless said otherwise.
 */
#ifndef BENCH_H
#define BENCH_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	BENCH_SAMPLES = 8192, /* of a row, over all repetitions */
	BENCH_SETS = 32, /* --set options */
};

/* --- bench_sample.c ------------------------------------------------------------- */

struct bench_samples {
	uint32_t nr;
	float us[BENCH_SAMPLES];
};

struct bench_summary {
	uint32_t nr;
	double min, median, p90, max, mean;
};

uint64_t bench_now_ns(void);
void bench_add(struct bench_samples *s, double us); /* dropped when full */
struct bench_summary bench_summarize(const struct bench_samples *s);
json_t *bench_json(struct bench_summary s); /* NULL: no memory */

/* --- bench_word.c: from one thread or process to another ------------------------- */

/* A word on a cache line of its own. */
struct bench_word {
	_Alignas(64) uint32_t value;
};

/* One sets a word, another spins until it is @v. */
void bench_set(struct bench_word *w, uint32_t v);
void bench_await(const struct bench_word *w, uint32_t v);
/* The same with one that sleeps. */
void bench_set_and_wake(struct bench_word *w, uint32_t v);
void bench_await_sleeping(struct bench_word *w, uint32_t v);

/* --- bench_trace.c: system calls of this process ---------------------------------- */

/*
 * What the process's threads have asked the system for.  A call that found
 * nothing to do (-EAGAIN: a look at a socket; sched_yield) is idle: how many
 * there are says how long somebody waited, not what was done.
 */
struct bench_calls {
	uint64_t busy, idle;
};

struct bench_trace; /* opaque */

/*
 * Count from now on, in a child that traces this process: every system call
 * takes many times as long.  -EPERM: tracing is forbidden.  -errno of fork().
 * Of threads that start meanwhile the calls are counted, too, all but the first
 * moments of them.
 */
int bench_trace_start(struct bench_trace **out);
void bench_trace_stop(struct bench_trace *t); /* NULL is fine */
struct bench_calls bench_trace_read(const struct bench_trace *t);

/* --- bench_text.c ------------------------------------------------------------------ */

/* Is @name what @pattern says, as the shell has patterns? */
bool bench_matches(const char *pattern, const char *name);
/* The path of this program, and of @name in the same folder; false: it is not
 * there or cannot be run. */
bool bench_find_beside(const char *name, char self[PATH_MAX],
		       char beside[PATH_MAX]);
/* " 12.3", right-aligned in @width columns; " -" if it is not known. */
void bench_print_number(double v, bool known, int width);

/* --- bench_option.c: the command line; what is wrong ends the program with 2 -------- */

/* Parameters of the jobs, "name=value"; of the command line, not copied. */
struct bench_sets {
	const char *pair[BENCH_SETS];
	int nr;
};

typedef const char *bench_row_name(int row);

_Noreturn void bench_refuse(const char *what, const char *value);
int bench_number(const char *what, const char *text, int min, int max);
/* Those of @nr rows that @list names, with commas in between; it is taken apart. */
void bench_take_rows(char *list, bool *row, int nr, bench_row_name *name);
void bench_take_set(struct bench_sets *sets, const char *pair);
/* --list, --help, or a word that getopt(3) has complained of. */
_Noreturn void bench_take_word(int c, void (*list)(void), const char *usage);

#endif /* BENCH_H */
