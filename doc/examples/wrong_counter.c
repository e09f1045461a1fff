/* SPDX-License-Identifier: MIT */
/*
 * wrong_counter.c - wrong: several ranks change one variable without a lock.
 *
 *   jiacc wrong_counter.c -o wrong_counter && jiarun -n 2 ./wrong_counter
 *   jiarun -n 2 ./wrong_counter right
 *
 * Several ranks may write to one *page* at the same time, even to neighbouring
 * bytes: what each has changed is put together.  But not to one *variable*: each
 * adds to the value that it saw last, and one of the results remains.  Even that
 * is only so for a single byte; a variable of several bytes may be put together
 * from more than one result.
 *
 * Right: change it under a lock.
 */
#include <stdio.h>
#include <string.h>
#define JIA_NO_MACROS
#include <jia.h>

enum {
	ROUNDS = 100
};

int main(int argc, char **argv)
{
	int right = argc > 1 && !strcmp(argv[1], "right");
	int *counter;

	jia_init(argc, argv);
	counter = jia_malloc(sizeof(*counter));

	for (int i = 0; i < ROUNDS; i++) {
		if (right)
			jia_lock(0);
		++*counter;
		if (right)
			jia_unlock(0);
		jia_barrier();
	}
	if (jia_pid == 0)
		printf("wrong_counter: %s\n", *counter == ROUNDS * hostc ?
						      "all were counted" :
						      "some were lost");
	jia_exit();
	return 0;
}
