/* SPDX-License-Identifier: MIT */
/* view.c - more stretches of different protection than mappings are allowed. */
#include "api.h"

enum {
	GIB_PAGES = 1 << 18,
	MAPS = 65530, /* the default of vm.max_map_count */
	TURNS = 2
};

static unsigned long number_in(const char *path, const char *name)
{
	char line[256];
	unsigned long nr = 0;
	FILE *f = fopen(path, "r");

	CHECK(f, "no %s", path);
	while (!nr && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			nr = strtoul(line + strlen(name), NULL, 10);
	fclose(f);
	return nr;
}

static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int c, nr = 0;

	CHECK(f, "no list of mappings");
	while ((c = getc(f)) != EOF)
		nr += c == '\n';
	fclose(f);
	return nr;
}

static int value_of(int page, int turn)
{
	return page * 7 + turn + 1;
}

/* Its home is another rank's for every second page: what is not read from there
 * is not accessible here, what is read is read-only, the rest writable. */
static void alternating_protections_over_1_gib_work(void)
{
	volatile int *p;
	size_t step = PAGE / sizeof(*p);
	int other = jia_pid ^ 1, most = 0;

	if (number_in("/proc/meminfo", "MemAvailable:") >> 20 < 4) {
		if (!jia_pid)
			puts("# skipped: it takes 4 GiB of memory");
		return;
	}
	p = jia_malloc_on((size_t)GIB_PAGES * PAGE, PAGE, 0);
	for (int turn = 0; turn < TURNS; turn++) {
		for (int i = jia_pid; i < GIB_PAGES; i += 2)
			p[(size_t)i * step] = value_of(i, turn);
		jia_barrier();
		for (int i = other + 2 * turn; i < GIB_PAGES; i += 4)
			CHECK(p[(size_t)i * step] == value_of(i, turn),
			      "page %d has %d", i, p[(size_t)i * step]);
		if (mappings() > most)
			most = mappings();
		jia_barrier();
	}
	printf("# rank %d had %d mappings, and hid %lu pages\n", jia_pid, most,
	       jia_counter("hidden"));
	CHECK(most < MAPS, "%d mappings are more than there may be", most);
	CHECK(most > MAPS / 2, "%d mappings are no reason to hide", most);
	CHECK(jia_counter("hidden"), "no page was hidden");
	jia_barrier();
	jia_free((void *)(uintptr_t)p);
}

const struct api_case view_cases[] = {
	{ "alternating_protections_over_1_gib_work",
	  alternating_protections_over_1_gib_work },
	{ NULL, NULL },
};
