/* SPDX-License-Identifier: MIT */
/*
 * message.c - message passing through locks, in a ring of all ranks.
 *
 * The payload is several pages, written with no lock of their own but inside
 * the critical section that sets the flag; it is read inside the one that
 * finds the flag set.
 */
#include "litmus.h"

enum {
	PAYLOAD = 3 * PAGE / (int)sizeof(int),
	LAPS = 40
};

static void fill(volatile int *data, int lap)
{
	for (int k = 0; k < PAYLOAD; k += 1 + lap % 5)
		data[k] = lap * PAYLOAD + k;
}

static void check(const volatile int *data, int lap)
{
	for (int k = 0; k < PAYLOAD; k += 1 + lap % 5)
		CHECK(data[k] == lap * PAYLOAD + k,
		      "rank %d lap %d word %d: %d, must be %d", jia_pid, lap, k,
		      data[k], lap * PAYLOAD + k);
}

int main(int argc, char **argv)
{
	int before, left;
	struct page *flag;
	volatile int **data;

	jia_init(argc, argv);
	data = calloc((size_t)hostc, sizeof(*data));
	CHECK(data, "no memory");
	flag = litmus_pages(hostc, 0);
	for (int r = 0; r < hostc; r++)
		data[r] = jia_malloc_on(PAYLOAD * sizeof(int), PAGE, r);
	before = (jia_pid + hostc - 1) % hostc;
	left = jia_pid;
	jia_barrier();
	for (int lap = 1; lap <= LAPS; lap++) {
		/* rank 0 starts each lap, the others pass it on */
		if (jia_pid > 0) {
			litmus_lock_when(before, &flag[before], lap);
			check(data[before], lap);
			jia_unlock(before);
		}
		jia_lock(left);
		fill(data[left], lap);
		flag[left].value = lap;
		jia_unlock(left);
		if (jia_pid == 0) {
			litmus_lock_when(before, &flag[before], lap);
			check(data[before], lap);
			jia_unlock(before);
		}
	}
	jia_exit();
	free(data);
	return 0;
}
