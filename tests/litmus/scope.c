/* SPDX-License-Identifier: MIT */
/*
 * scope.c - JIAJIA's scope litmus.
 *
 * Rank 1 writes y under lock 1, then x under lock 0.  Whoever then takes lock 0
 * sees x.  It may or may not see y: with scope consistency nothing is promised
 * but an older value, with release consistency (argument "release") y is fresh.
 */
#include "litmus.h"

enum {
	ROUNDS = 300
};

static void writer(struct page *x, struct page *y, struct page *x2)
{
	for (int i = 1; i <= ROUNDS; i++) {
		jia_lock(1);
		y->value = i;
		jia_unlock(1);
		jia_lock(0);
		x2->value = i;
		x->value = i;
		jia_unlock(0);
	}
}

static void reader(struct page *x, struct page *y, struct page *x2, int release)
{
	for (int i = 0, seen = 0; i < ROUNDS; i = x->value) {
		jia_lock(0);
		CHECK(x->value >= i, "x went back from %d to %d", i, x->value);
		CHECK(x2->value == x->value, "x is %d and x2 is %d", x->value,
		      x2->value);
		CHECK(y->value >= seen, "y went back from %d to %d", seen,
		      y->value);
		CHECK(!release || y->value >= x->value,
		      "x is %d and y, written before, is %d", x->value,
		      y->value);
		seen = y->value;
		jia_unlock(0);
		sched_yield();
	}
}

int main(int argc, char **argv)
{
	struct page *x, *y, *x2;

	jia_init(argc, argv);
	x = litmus_pages(1, 0);
	y = litmus_pages(1, 1);
	x2 = litmus_pages(1, 1);
	jia_barrier();
	if (jia_pid == 1)
		writer(x, y, x2);
	else
		reader(x, y, x2, argc > 1 && !strcmp(argv[1], "release"));
	jia_barrier();
	CHECK(y->value == ROUNDS, "after the barrier y is %d", y->value);
	jia_exit();
	return 0;
}
