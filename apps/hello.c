/* SPDX-License-Identifier: MIT */
/* hello: every rank adds its number to one shared word, rank 0 prints it. */
#include <stdio.h>
#include <string.h>
#include "jia.h"

/* Anything but --test is answered with how to call it; returns the status. */
static int usage(const char *arg)
{
	int bad = strcmp(arg, "--help") != 0;

	if (jia_pid == 0 && bad)
		fprintf(stderr, "hello: unknown argument '%s'\n", arg);
	if (jia_pid == 0)
		fprintf(bad ? stderr : stdout,
			"usage: hello [--test] [--help]\n"
			"Every rank adds its number to one shared word under a "
			"lock; rank 0 prints the sum.\n");
	jia_exit();
	return bad ? 2 : 0;
}

int main(int argc, char **argv)
{
	int expected, sum;
	int *total;

	jia_init(argc, argv);
	if (argc > 1 && strcmp(argv[1], "--test") != 0)
		return usage(argv[1]);
	total = jia_malloc(sizeof(*total));

	jia_lock(0);
	*total += jia_pid + 1;
	jia_unlock(0);
	jia_barrier();

	sum = *total;
	expected = hostc * (hostc + 1) / 2;
	if (jia_pid == 0)
		printf("hello from %d ranks: the sum is %d, %s\n", hostc, sum,
		       sum == expected ? "verified" : "which is WRONG");
	jia_exit();
	return sum != expected;
}
