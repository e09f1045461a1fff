/* SPDX-License-Identifier: MIT */
/* sul_launcher.c - see sul_launcher.h. */
#include "sul_launcher.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

static const struct row {
	const char *name, *rank, *ranks, *remedy;
} rows[] = {
#define LAUNCHER(name, rank, ranks, remedy) { name, rank, ranks, remedy },
#include "sul_launcher.def"
};

/* -1: not there, or no number. */
static int number(const char *variable)
{
	const char *text = getenv(variable);
	char *end;
	long n;

	if (!text || *text < '0' || *text > '9')
		return -1;
	n = strtol(text, &end, 10);
	return *end || n > INT_MAX ? -1 : (int)n;
}

bool sul_launcher_find(struct sul_launcher *out)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int rank = number(rows[i].rank), ranks = number(rows[i].ranks);

		if (rank < 0 || ranks <= rank)
			continue;
		*out = (struct sul_launcher){ rows[i].name, rows[i].remedy,
					      rank, ranks };
		return true;
	}
	return false;
}
