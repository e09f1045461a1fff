/* SPDX-License-Identifier: MIT */
/*
 * before.c - a write made before a lock is taken survives the acquire and is
 * seen by all after the barrier.
 *
 * Every rank has its own ints in a page that others write under a lock, so the
 * acquire finds a notice for a page with unpublished writes of its own.
 */
#include "litmus.h"

enum {
	ROUNDS = 100,
	EACH = 8
};

int main(int argc, char **argv)
{
	volatile int *own;
	struct page *shared;

	jia_init(argc, argv);
	shared = litmus_pages(1, 1);
	own = (volatile int *)shared->rest;
	CHECK((size_t)hostc * EACH * sizeof(int) <= sizeof(shared->rest),
	      "too many ranks");
	jia_barrier();
	for (int i = 1; i <= ROUNDS; i++) {
		for (int k = 0; k < EACH; k++)
			own[k * hostc + jia_pid] = i;
		jia_lock(3);
		shared->value++;
		jia_unlock(3);
		for (int k = 0; k < EACH; k++)
			CHECK(own[k * hostc + jia_pid] == i,
			      "rank %d lost its own write of round %d", jia_pid,
			      i);
		jia_barrier();
		for (int k = 0; k < EACH * hostc; k++)
			CHECK(own[k] == i, "int %d of rank %d is %d, not %d", k,
			      k % hostc, own[k], i);
		CHECK(shared->value == i * hostc, "counter %d, must be %d",
		      shared->value, i * hostc);
		jia_barrier();
	}
	jia_exit();
	return 0;
}
