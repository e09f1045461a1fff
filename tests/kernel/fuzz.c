/* SPDX-License-Identifier: MIT */
/* fuzz.c - see fuzz.h. */
#include "fuzz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	GONE_MS = 3000,
	TICK_MS = 20,
};

struct fuzz_plan fuzz_plan(const char *part, int argc, char **argv,
			   uint64_t count)
{
	struct fuzz_plan p = { .count = count };
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	p.seed = (uint64_t)t.tv_nsec ^ (uint64_t)t.tv_sec << 20;
	if (argc > 1)
		p.count = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		p.seed = strtoull(argv[2], NULL, 0);
	printf("# %s %" PRIu64 " SEED=%#" PRIx64 "\n", part, p.count, p.seed);
	return p;
}

/* The number behind @name in a file of such lines; -1: it is not there. */
static long number_in(const char *path, const char *name)
{
	char line[256];
	size_t len = strlen(name);
	long value = -1;
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && line[len] == ' ')
			value = strtol(line + len, NULL, 10);
	if (f)
		fclose(f);
	return value;
}

/* Each processor counts for itself for a while; this adds it all up now. */
static void add_up(void)
{
	FILE *f = fopen("/proc/sys/vm/stat_refresh", "re");

	if (f) {
		fgetc(f);
		fclose(f);
	}
}

long fuzz_pages_pinned(void)
{
	add_up();
	return number_in("/proc/vmstat", "nr_foll_pin_acquired") -
	       number_in("/proc/vmstat", "nr_foll_pin_released");
}

bool fuzz_all_gone(long pinned_before)
{
	long ports = 0, pinned = 0, all = 0;

	for (int ms = 0; ms < GONE_MS; ms += TICK_MS) {
		ports = number_in("/proc/net/sul", "ports");
		pinned = number_in("/proc/net/sul", "pinned_pages");
		all = fuzz_pages_pinned();
		if (!ports && !pinned && all <= pinned_before)
			return true;
		usleep(TICK_MS * 1000);
	}
	printf("# left: %ld ports with %ld pinned pages; in all %ld, before %ld\n",
	       ports, pinned, all, pinned_before);
	return false;
}
