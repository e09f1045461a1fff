/* SPDX-License-Identifier: MIT */
/*
 * first.c - a page gets its first reader while its home is writing it.
 *
 * Rank 0 is home of fresh pages: nobody shares them, so it writes them unseen.
 * Others fetch a page before rank 0 writes it in a critical section, and must
 * see the write after the lock has passed to them, and the write under no lock
 * after the barrier.
 */
#include "litmus.h"

enum {
	PAGES = 60
};

static void home(struct page *flag, struct page *p)
{
	jia_lock(5);
	litmus_sleep_us(300);
	p->value = 7;
	p->rest[0] = 1;
	flag->value++;
	jia_unlock(5);
	p->other = 9;
}

static void other(struct page *flag, struct page *p, int round)
{
	CHECK(p->rest[100] == 0, "a byte that nobody writes");
	litmus_lock_when(5, flag, round);
	CHECK(p->value == 7 && p->rest[0] == 1,
	      "rank %d round %d reads %d under the lock", jia_pid, round,
	      p->value);
	jia_unlock(5);
}

int main(int argc, char **argv)
{
	struct page *flag, *p;

	jia_init(argc, argv);
	flag = litmus_pages(1, 1);
	p = litmus_pages(PAGES, 0);
	jia_barrier();
	for (int i = 0; i < PAGES; i++) {
		if (jia_pid == 0)
			home(flag, &p[i]);
		else
			other(flag, &p[i], i + 1);
		jia_barrier();
		CHECK(p[i].other == 9, "rank %d page %d: %d after the barrier",
		      jia_pid, i, p[i].other);
		jia_barrier();
	}
	jia_exit();
	return 0;
}
