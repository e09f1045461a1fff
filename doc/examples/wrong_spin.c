/* SPDX-License-Identifier: MIT */
/*
 * wrong_spin.c - wrong: waiting for a flag without a lock.
 *
 *   jiacc wrong_spin.c -o wrong_spin && jiarun -n 2 ./wrong_spin
 *   jiarun -n 2 ./wrong_spin right
 *
 * Rank 0 has read `flag`: it has a copy of the page.  Rank 1 sets the flag.  A
 * copy is brought up to date when its rank synchronises, and a loop that only
 * reads does not: it may run for ever.  volatile and C11 atomics do not help;
 * they are about the compiler and one machine's memory.
 *
 * Right: look under the lock under which the flag is set.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#define JIA_NO_MACROS
#include <jia.h>

enum {
	PAGE = 4096
};

static int look(volatile int *flag, int right)
{
	struct timespec nap = { 0, 1000000 };
	int v;

	if (right)
		jia_lock(0);
	v = *flag;
	if (right)
		jia_unlock(0);
	nanosleep(&nap, NULL);
	return v;
}

int main(int argc, char **argv)
{
	int right = argc > 1 && !strcmp(argv[1], "right");
	volatile int *flag;
	int set;

	jia_init(argc, argv);
	flag = jia_malloc_on(PAGE, PAGE, hostc - 1);
	set = *flag; /* every rank has the page now */
	jia_barrier();

	if (jia_pid == hostc - 1) {
		jia_lock(0);
		*flag = 1;
		jia_unlock(0);
	}
	jia_wait(); /* for the example: it is set by now */
	if (jia_pid == 0) {
		for (int i = 0; i < 200 && !set; i++)
			set = look(flag, right);
		printf("wrong_spin: rank 0 %s\n",
		       set ? "saw the flag" : "did not see the flag in 0.2 s");
	}
	jia_exit();
	return 0;
}
