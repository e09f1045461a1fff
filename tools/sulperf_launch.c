/* SPDX-License-Identifier: MIT */
/*
 * sulperf_launch.c - started alone: become jiarun, which starts us again.
 *
 * Role:    the command line of a job of two ranks on this host.
 * Threads: one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sulperf.h"

enum {
	WORDS = 64 + 2 * BENCH_SETS
};

struct line {
	const char *word[WORDS];
	int nr;
};

static void add(struct line *l, const char *word)
{
	if (l->nr < WORDS - 1)
		l->word[l->nr++] = word;
}

/* The list that bench_take_rows() has taken apart, as names. */
static char *rows_text(const struct perf_options *o)
{
	static char text[32 * PERF_ROWS];
	size_t len = 0;

	for (int r = 0; r < PERF_ROWS; r++)
		if (o->row[r])
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"%s%s", len ? "," : "",
						perf_rows[r].name);
	return text;
}

static void add_own(struct line *l, const struct perf_options *o)
{
	static char rounds[32];

	snprintf(rounds, sizeof(rounds), "--rounds=%d", o->rounds);
	add(l, rounds);
	add(l, "--rows");
	add(l, rows_text(o));
	if (o->count)
		add(l, "--count");
	if (o->breakdown)
		add(l, "--breakdown");
	if (o->figures)
		add(l, "--figures");
	if (o->json)
		add(l, "--json");
}

_Noreturn void perf_launch(const struct perf_options *o)
{
	static char self[PATH_MAX], jiarun[PATH_MAX], carrier[64];
	struct line l = { .nr = 0 };

	if (o->peer != 1) {
		fputs("sulperf: --peer is for jobs of more ranks, started with jiarun\n",
		      stderr);
		exit(2);
	}
	if (!bench_find_beside("jiarun", self, jiarun)) {
		fprintf(stderr, "sulperf: cannot run %s\n", jiarun);
		exit(1);
	}
	add(&l, jiarun);
	add(&l, "--np=2");
	if (o->carrier) {
		snprintf(carrier, sizeof(carrier), "carrier=%s", o->carrier);
		add(&l, "--set");
		add(&l, carrier);
	}
	for (int i = 0; i < o->sets.nr; i++) {
		add(&l, "--set");
		add(&l, o->sets.pair[i]);
	}
	add(&l, self);
	add_own(&l, o);
	execv(jiarun, (char *const *)(uintptr_t)l.word);
	perror("sulperf: jiarun");
	exit(1);
}
