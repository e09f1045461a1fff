/* SPDX-License-Identifier: MIT */
/*
 * transitive.c - with release consistency visibility is transitive.
 *
 * Rank 0 writes x under no lock and tells rank 1 through lock 0; rank 1, which
 * does not look at x, tells rank 2 through lock 1, and so on; each reads x
 * outside any lock.  Run with consistency=release.
 */
#include "litmus.h"

enum {
	ROUNDS = 60
};

static void pass(struct page *flag, int i)
{
	jia_lock(jia_pid);
	flag[jia_pid].value = i;
	jia_unlock(jia_pid);
}

static void await(struct page *flag, int from, int i)
{
	litmus_lock_when(from, &flag[from], i);
	jia_unlock(from);
}

int main(int argc, char **argv)
{
	struct page *flag, *x;
	int last;

	jia_init(argc, argv);
	flag = litmus_pages(hostc, 1);
	x = litmus_pages(2, 2);
	last = hostc - 1;
	jia_barrier();
	for (int i = 1; i <= ROUNDS; i++) {
		if (jia_pid > 0) {
			await(flag, jia_pid - 1, i);
		} else {
			if (i > 1)
				await(flag, last, i - 1);
			x[0].value = i;
			x[1].other = -i;
		}
		/* the one in the middle is every other time none the wiser */
		if (jia_pid != 1 || i % 2)
			CHECK(x[0].value == i && x[1].other == -i,
			      "rank %d round %d reads %d and %d", jia_pid, i,
			      x[0].value, x[1].other);
		pass(flag, i);
	}
	jia_barrier();
	jia_exit();
	return 0;
}
