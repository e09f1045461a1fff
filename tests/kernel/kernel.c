/* SPDX-License-Identifier: MIT */
/*
 * kernel.c - which part is meant (kernel.def).
 *
 * Role: `kernel PART ARGUMENTS`; the part's exit status, 2 for wrong use.
 */
#include "kernel.h"

#include <stdio.h>
#include <string.h>

struct part {
	const char *word, *use, *what;
	int (*fn)(int argc, char **argv);
};

static const struct part parts[] = {
#define PART(name, word, use, what) { word, use, what, kernel_##name },
#include "kernel.def"
};

enum {
	PARTS = sizeof(parts) / sizeof(parts[0])
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; argc > 1 && i < PARTS; i++)
		if (!strcmp(argv[1], parts[i].word))
			return parts[i].fn(argc - 1, argv + 1);
	for (int i = 0; i < PARTS; i++)
		fprintf(stderr, "%s kernel %s %s\n          %s\n",
			i ? "      " : "usage:", parts[i].word, parts[i].use,
			parts[i].what);
	return 2;
}
