/* SPDX-License-Identifier: MIT */
/*
 * counters.c - counters in one page, each under a lock of its own.
 *
 * False sharing at its worst: every counter is incremented by all ranks, under
 * its lock, next to counters that others increment at the same time.
 */
#include "litmus.h"

enum {
	COUNTERS = 5,
	ROUNDS = 400
};

int main(int argc, char **argv)
{
	unsigned int r;
	int sum = 0;
	volatile short *count;
	int mine[COUNTERS] = { 0 };
	struct page *total;

	jia_init(argc, argv);
	count = jia_malloc_on(PAGE, PAGE, hostc - 1);
	total = litmus_pages(COUNTERS, 0);
	jia_barrier();
	r = (unsigned int)jia_pid * 2654435761u + 1;
	for (int i = 0; i < ROUNDS; i++) {
		int k = (int)((r = r * 1103515245u + 12345u) >> 16) % COUNTERS;

		jia_lock(10 + k);
		count[k]++;
		jia_unlock(10 + k);
		mine[k]++;
	}
	for (int k = 0; k < COUNTERS; k++) {
		jia_lock(0);
		total[k].value += mine[k];
		jia_unlock(0);
	}
	jia_barrier();
	for (int k = 0; k < COUNTERS; k++) {
		CHECK(count[k] == total[k].value, "counter %d is %d, not %d", k,
		      count[k], total[k].value);
		sum += count[k];
	}
	CHECK(sum == ROUNDS * hostc, "%d increments, not %d", sum,
	      ROUNDS * hostc);
	jia_exit();
	return 0;
}
