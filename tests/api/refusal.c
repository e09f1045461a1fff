/* SPDX-License-Identifier: MIT */
/* refusal.c - what the calls refuse, and the message that says so. */
#include "api.h"

#include <limits.h>

static char c;
static int n;
static double d[4];

#define AT ((const void *)&d)
#define LAST (jia_pid == hostc - 1)

static const void *page_name(int i)
{
	return (const void *)(long)&shared[8 * i];
}

#define REFUSAL(ranks, who, name, pattern, ...) \
	static void name(void)                  \
	{                                       \
		__VA_ARGS__;                    \
	}
#include "refusal.def"

enum who {
	ALONE,
	ALL
};

static const struct refusal {
	int ranks;
	enum who who;
	const char *name, *pattern;
	void (*run)(void);
} refusals[] = {
#define REFUSAL(ranks, who, name, pattern, ...) \
	{ ranks, who, #name, pattern, name },
#include "refusal.def"
};

enum {
	NR = sizeof(refusals) / sizeof(refusals[0])
};

void refusals_list(void)
{
	for (int i = 0; i < NR; i++)
		printf("%d %s %s\n", refusals[i].ranks, refusals[i].name,
		       refusals[i].pattern);
}

void refusals_run(const char *name)
{
	for (int i = 0; i < NR; i++) {
		if (strcmp(name, refusals[i].name))
			continue;
		if (refusals[i].who == ALL || LAST)
			refusals[i].run();
		jia_barrier();
		return;
	}
	jia_error("no refusal is called %s", name);
}
