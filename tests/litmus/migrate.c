/* SPDX-License-Identifier: MIT */
/*
 * migrate.c - pages with one writer between barriers, a different one in turn.
 *
 * With migrate=yes their homes move to the writer; some pages have two writers
 * and stay; all ranks read all of them in between, or only some do.
 */
#include "litmus.h"

enum {
	PAGES = 24,
	ROUNDS = 60
};

static int writer(int page, int round)
{
	return (page + round / (1 + page % 3)) % hostc;
}

static int is_shared(int page, int round)
{
	return (page + round) % 5 == 0;
}

static void write_all(struct page *p, int i)
{
	for (int k = 0; k < PAGES; k++) {
		if (writer(k, i) == jia_pid) {
			p[k].value = i;
			p[k].rest[i] = (char)i;
		}
		if (is_shared(k, i) && writer(k + 1, i) == jia_pid)
			p[k].other = i;
	}
}

static void read_some(struct page *p, int last[PAGES], int i)
{
	for (int k = 0; k < PAGES; k++) {
		if (is_shared(k, i))
			last[k] = i;
		if ((i + k + jia_pid) % 3 == 0)
			continue;
		CHECK(p[k].value == i && p[k].rest[i] == (char)i &&
			      p[k].other == last[k],
		      "rank %d round %d page %d: %d %d %d, last shared %d",
		      jia_pid, i, k, p[k].value, p[k].rest[i], p[k].other,
		      last[k]);
	}
}

int main(int argc, char **argv)
{
	int last[PAGES] = { 0 };
	struct page *p;

	jia_init(argc, argv);
	p = jia_malloc_on((size_t)PAGES * PAGE, PAGE, 0);
	jia_barrier();
	for (int i = 1; i <= ROUNDS; i++) {
		write_all(p, i);
		jia_barrier();
		read_some(p, last, i);
		jia_barrier();
	}
	jia_exit();
	return 0;
}
