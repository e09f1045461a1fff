/* SPDX-License-Identifier: MIT */
/*
 * nested.c - inner scopes merge outward.
 *
 * A rank holds lock 0, writes a, takes lock 1 inside, writes b, gives lock 1
 * back, writes c, gives lock 0 back.  Whoever takes lock 0 next sees all three,
 * whoever takes lock 1 next sees b at least.
 */
#include "litmus.h"

enum {
	ROUNDS = 150
};

static void under_outer(struct page *a, struct page *b, struct page *c)
{
	int n;

	jia_lock(0);
	n = a->value;
	CHECK(b->value >= n, "a is %d and b is %d under the outer lock", n,
	      b->value);
	CHECK(c->value == n, "a is %d and c is %d under the outer lock", n,
	      c->value);
	a->value = n + 1;
	jia_lock(1);
	CHECK(a->value == n + 1, "own write lost at the inner lock: %d, not %d",
	      a->value, n + 1);
	b->value++;
	b->other++;
	jia_unlock(1);
	CHECK(a->value == n + 1, "own write lost at the inner unlock");
	c->value = n + 1;
	jia_unlock(0);
}

static void under_inner(struct page *b)
{
	jia_lock(1);
	CHECK(b->value == b->other, "b is %d and %d under the inner lock",
	      b->value, b->other);
	b->value++;
	b->other++;
	jia_unlock(1);
}

int main(int argc, char **argv)
{
	struct page *a, *b, *c;

	jia_init(argc, argv);
	a = litmus_pages(1, 0);
	b = litmus_pages(1, 1);
	c = litmus_pages(1, 2);
	jia_barrier();
	for (int i = 0; i < ROUNDS; i++) {
		under_outer(a, b, c);
		if (i % 3 == jia_pid % 3)
			under_inner(b);
	}
	jia_barrier();
	CHECK(a->value == ROUNDS * hostc, "a is %d, must be %d", a->value,
	      ROUNDS * hostc);
	CHECK(c->value == ROUNDS * hostc, "c is %d, must be %d", c->value,
	      ROUNDS * hostc);
	CHECK(b->value == b->other && b->value >= a->value, "b is %d and %d",
	      b->value, b->other);
	jia_exit();
	return 0;
}
