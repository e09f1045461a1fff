/* SPDX-License-Identifier: MIT */
/* release.c - what a release looks at. */
#include "api.h"

enum {
	MANY = 3000,
	NEW = 1024, /* the default of watch_new */
	FEW = 40,
	TRIES = 1000
};

/* Unlock with one of the pages dirty; how many were compared. */
static unsigned long dirty_one(volatile unsigned char *p, int i)
{
	unsigned long before;

	jia_lock(1);
	p[(size_t)(MANY / 2) * PAGE] = (unsigned char)i;
	before = jia_counter("compares");
	jia_unlock(1);
	return jia_counter("compares") - before;
}

/* It once took 15 ms to compare them all, and to compare them again after they
 * had been write-protected. */
static void an_unlock_after_many_writes_compares_few_pages(void)
{
	volatile unsigned char *p =
		jia_malloc_on((size_t)MANY * PAGE, (size_t)MANY * PAGE, 0);
	unsigned long nr = MANY;

	if (jia_pid == hostc - 1) {
		jia_lock(1);
		for (int i = 0; i < MANY; i++)
			p[(size_t)i * PAGE] = 1;
		jia_unlock(1);
		/* How soon the rest is let go depends on the time. */
		for (int i = 0; i < TRIES && nr > FEW; i++) {
			nr = dirty_one(p, i);
			CHECK(nr <= NEW + 1, "%lu pages were compared", nr);
		}
		CHECK(nr <= FEW, "%lu pages are still compared", nr);
	}
	jia_barrier();
	for (int i = 0; i < MANY; i++)
		CHECK(i == MANY / 2 || p[(size_t)i * PAGE] == 1,
		      "page %d was not written", i);
	jia_free((void *)(uintptr_t)p);
}

/* What was written at home and is then read by all needs no twins, or it would
 * take its memory twice. */
static void a_home_that_many_read_makes_few_twins(void)
{
	volatile unsigned char *p =
		jia_malloc_on((size_t)MANY * PAGE, (size_t)MANY * PAGE, 0);
	unsigned long twins = jia_counter("twins");

	for (int i = 0; i < MANY && !jia_pid; i++)
		p[(size_t)i * PAGE] = (unsigned char)i;
	jia_barrier();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++)
			CHECK(p[(size_t)i * PAGE] == (unsigned char)(i + round),
			      "page %d is %d in round %d", i,
			      p[(size_t)i * PAGE], round);
		jia_barrier();
		if (!round && !jia_pid)
			CHECK(jia_counter("twins") - twins <= NEW + PAGES,
			      "%lu twins", jia_counter("twins") - twins);
		for (int i = 0; i < MANY && !jia_pid; i++)
			p[(size_t)i * PAGE]++;
		jia_barrier();
	}
	jia_free((void *)(uintptr_t)p);
}

const struct api_case release_cases[] = {
	{ "a_home_that_many_read_makes_few_twins",
	  a_home_that_many_read_makes_few_twins },
	{ "an_unlock_after_many_writes_compares_few_pages",
	  an_unlock_after_many_writes_compares_few_pages },
	{ NULL, NULL },
};
