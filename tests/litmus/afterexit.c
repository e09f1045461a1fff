/* SPDX-License-Identifier: MIT */
/*
 * afterexit.c - shared memory can be read and written after jia_exit().
 *
 * Also pages this rank never touched before, and pages whose home has ended in
 * the meantime.  What is read is what was written before jia_exit().
 */
#include "litmus.h"

enum {
	PAGES = 16
};

int main(int argc, char **argv)
{
	struct page *p;
	int me;

	jia_init(argc, argv);
	me = jia_pid;
	p = jia_malloc_on((size_t)PAGES * PAGE, PAGE, 0);
	jia_barrier();
	for (int k = 0; k < PAGES; k++)
		if (k % hostc == me)
			p[k].value = k + 1;
	jia_barrier();
	for (int k = 0; k < PAGES; k += 2)
		CHECK(p[k].value == k + 1, "page %d is %d", k, p[k].value);
	jia_exit();
	/* the last to look finds the others gone */
	litmus_sleep_us(20000L * me);
	for (int k = 0; k < PAGES; k++) {
		if (p[k].value != k + 1) {
			fprintf(stderr, "litmus: page %d is %d after exit\n", k,
				p[k].value);
			return 1;
		}
		p[k].other = me + 100;
		if (p[k].other != me + 100)
			return 1;
	}
	return 0;
}
