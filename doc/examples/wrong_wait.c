/* SPDX-License-Identifier: MIT */
/*
 * wrong_wait.c - wrong: jia_wait() where a barrier is meant.
 *
 *   jiacc wrong_wait.c -o wrong_wait && jiarun -n 2 ./wrong_wait
 *   jiarun -n 2 ./wrong_wait right
 *
 * jia_wait() makes all ranks meet and nothing else: it neither publishes what a
 * rank has written nor brings its copies up to date.  It is for things outside
 * of shared memory (all have opened their files, now the clock starts).
 *
 * Right: jia_barrier().
 */
#include <stdio.h>
#include <string.h>
#define JIA_NO_MACROS
#include <jia.h>

enum {
	PAGE = 4096
};

int main(int argc, char **argv)
{
	int right = argc > 1 && !strcmp(argv[1], "right");
	volatile int *value;
	int before;

	jia_init(argc, argv);
	value = jia_malloc_on(PAGE, PAGE, hostc - 1);
	before = *value; /* every rank has the page now */
	jia_barrier();

	if (jia_pid == hostc - 1)
		*value = before + 1;
	if (right)
		jia_barrier();
	else
		jia_wait();
	if (jia_pid == 0)
		printf("wrong_wait: rank 0 sees the %s value\n",
		       *value == before + 1 ? "new" : "old");
	jia_exit();
	return 0;
}
