/* SPDX-License-Identifier: MIT */
/*
 * wrong_lock.c - wrong: written under one lock, read under another.
 *
 *   jiacc wrong_lock.c -o wrong_lock && jiarun -n 2 ./wrong_lock
 *   jiarun -n 2 ./wrong_lock right
 *
 * Rank 1 writes `data` under lock 1, and then says so in `news`, under lock 0.
 * Rank 0 reads both under lock 0.  A lock brings what was written while *that
 * lock* was held: `news`.  Nothing says that `data` has to be new as well; if
 * rank 0 has a copy of its page, it may go on seeing the copy.
 *
 * Right: read data under the lock under which it is written.  (With --set
 * consistency=release the wrong version is right, too: an unlock then makes
 * visible all that its rank has written before.)
 */
#include <stdio.h>
#include <string.h>
#define JIA_NO_MACROS
#include <jia.h>

enum {
	ROUNDS = 100,
	PAGE = 4096
};

int main(int argc, char **argv)
{
	int right = argc > 1 && !strcmp(argv[1], "right");
	volatile int *data, *news;
	int old = 0;

	jia_init(argc, argv);
	data = jia_malloc_on(PAGE, PAGE, hostc - 1);
	news = jia_malloc_on(PAGE, PAGE, 0);

	if (jia_pid == 1) {
		for (int i = 1; i <= ROUNDS; i++) {
			jia_lock(1);
			*data = i;
			jia_unlock(1);
			jia_lock(0);
			*news = i;
			jia_unlock(0);
		}
	}
	if (jia_pid == 0 && hostc > 1) {
		for (int seen = 0; seen < ROUNDS;) {
			int value;

			jia_lock(0);
			seen = *news;
			value = *data;
			jia_unlock(0);
			if (right) {
				jia_lock(1);
				value = *data;
				jia_unlock(1);
			}
			old += value < seen;
		}
		printf("wrong_lock: rank 0 saw old data %s\n",
		       old ? "at least once" : "never");
	}
	jia_exit();
	return 0;
}
