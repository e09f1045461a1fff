/* SPDX-License-Identifier: MIT */
/* bench_option.c - what both programs read in the same way; see bench.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

_Noreturn void bench_refuse(const char *what, const char *value)
{
	const char *self = program_invocation_short_name;

	fprintf(stderr, "%s: %s: %s\nTry '%s --help'.\n", self, what, value,
		self);
	exit(2);
}

int bench_number(const char *what, const char *text, int min, int max)
{
	char *end, range[80];
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < min || n > max) {
		snprintf(range, sizeof(range), "%s must be %d..%d", what, min,
			 max);
		bench_refuse(range, text);
	}
	return (int)n;
}

void bench_take_rows(char *list, bool *row, int nr, bench_row_name *name)
{
	char *rest = list;

	memset(row, 0, (size_t)nr * sizeof(*row));
	for (char *s; (s = strsep(&rest, ","));) {
		bool found = false;

		for (int r = 0; r < nr; r++)
			if (bench_matches(s, name(r)))
				found = row[r] = true;
		if (!found)
			bench_refuse("no such row (--list prints them)", s);
	}
}

void bench_take_set(struct bench_sets *sets, const char *pair)
{
	if (sets->nr == BENCH_SETS || !strchr(pair, '='))
		bench_refuse("--set wants name=value, at most 32", pair);
	sets->pair[sets->nr++] = pair;
}

_Noreturn void bench_take_word(int c, void (*list)(void), const char *usage)
{
	switch (c) {
	case 'l':
		list();
		exit(0);
	case 'h':
		fputs(usage, stdout);
		exit(0);
	default:
		fprintf(stderr, "Try '%s --help'.\n",
			program_invocation_short_name);
		exit(2);
	}
}
