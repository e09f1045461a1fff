/* SPDX-License-Identifier: MIT */
/*
 * faults.c - what a page fault costs, its home being another rank: jiarun -n 2.
 *
 * Role:      rank 0 loads from the first page of each chunk, which also makes room for
 *            all of it here, and then from others of it, in no order; rank 1, their
 *            home, sleeps meanwhile.  First they were never fetched, so a module has
 *            to pin them; then they have been written anew, with update=never.
 * Invariant: a page has what its home has written.  With a clock that counts
 *            instructions, on one processor, a time is what was executed for the
 *            fault at both ends together.
 * Threads:   one a rank, and the runtime's.
 */
#include "kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jia.h"
#include "sul_clock.h"

enum {
	PAGE = 4096,
	CHUNK = 16, /* pages: the default of the parameter populate */
	FEW = 8, /* of each chunk are loaded */
	CHUNKS = 32,
	FAULTS = CHUNKS * FEW,
	ROUNDS = 2,
	HOME = 1,
};

static const unsigned int order[FEW] = { 9, 3, 13, 6, 11, 1, 15, 4 };

static const char *const counters[] = { "segv_remote", "segv_local",
					"msgs_sent", "packets_sent",
					"packets_recv" };
enum {
	COUNTERS = sizeof(counters) / sizeof(counters[0])
};

struct figures {
	uint64_t first_ns[CHUNKS]; /* of each chunk */
	uint64_t ns[FAULTS]; /* the others */
	unsigned int nr;
	uint64_t before[COUNTERS], events[COUNTERS];
};

static void count_from_here(struct figures *f)
{
	for (int i = 0; i < COUNTERS; i++)
		f->before[i] = jia_counter(counters[i]);
}

static void count_to_here(struct figures *f)
{
	for (int i = 0; i < COUNTERS; i++)
		f->events[i] += jia_counter(counters[i]) - f->before[i];
}

/* How long it took. */
static uint64_t load(const volatile unsigned char *at, int fill)
{
	uint64_t start = sul_now_ns();
	int is = *at;
	uint64_t ns = sul_now_ns() - start;

	if (is != fill)
		jia_error("a page begins with %d, and its home wrote %d", is,
			  fill);
	return ns;
}

/* Triangular numbers: each chunk once, no constant stride. */
static const unsigned char *chunk(const unsigned char *pages, unsigned int i)
{
	return pages + (size_t)(i * (i + 1) / 2 % CHUNKS * CHUNK) * PAGE;
}

static void take(struct figures *f, const unsigned char *pages, int fill)
{
	for (unsigned int c = 0; c < CHUNKS; c++) {
		const unsigned char *base = chunk(pages, c);

		f->first_ns[c] = load(base, fill);
		count_from_here(f);
		for (int i = 0; i < FEW; i++)
			f->ns[f->nr++] =
				load(base + (size_t)order[i] * PAGE, fill);
		count_to_here(f);
	}
}

static int in_order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void show_times(uint64_t *ns, unsigned int nr)
{
	const unsigned int middle = nr / 2;
	uint64_t all = 0;

	for (unsigned int i = 0; i < nr; i++)
		all += ns[i];
	qsort(ns, nr, sizeof(ns[0]), in_order);
	printf("least %.1f us, median %.1f us, mean %.1f us",
	       (double)ns[0] / 1e3, (double)ns[middle] / 1e3,
	       (double)all / nr / 1e3);
}

static void show(struct figures *f, const char *when)
{
	printf("%d faults, %s, on the first page of a chunk: ", CHUNKS, when);
	show_times(f->first_ns, CHUNKS);
	printf("\n%u faults, %s, on others: ", f->nr, when);
	show_times(f->ns, f->nr);
	printf("; of each:");
	for (int i = 0; i < COUNTERS; i++)
		printf(" %s %.2f", counters[i],
		       (double)f->events[i] / (double)f->nr);
	putchar('\n');
	fflush(stdout);
}

int kernel_faults(int argc, char **argv)
{
	static struct figures f[ROUNDS];
	unsigned char *pages;
	size_t bytes = (size_t)CHUNKS * CHUNK * PAGE;

	jia_init(argc, argv);
	if (hostc != 2)
		jia_error("it is for two ranks: jiarun -n 2");
	pages = jia_malloc_on(bytes, bytes, HOME);
	for (int r = 0; r < ROUNDS; r++) {
		if (jia_pid == HOME)
			memset(pages, r + 1, bytes);
		jia_barrier();
		if (!jia_pid)
			take(&f[r], pages, r + 1);
		jia_barrier();
	}
	if (!jia_pid) {
		show(&f[0], "never fetched");
		show(&f[1], "fetched before");
	}
	jia_exit();
	return 0;
}
