/* SPDX-License-Identifier: MIT */
/*
 * misuse.c - a program that does wrong what can be done wrong.
 *
 * usage: misuse DEED [RANK [ARGUMENTS]]: all ranks start up; then RANK (or
 * every rank, as the deed's table says) does the deed and the others wait at a
 * barrier.  Ends with 0 if all is well.  See tests/misuse/run.
 */
#include "misuse.h"

volatile unsigned char *shared;
int the_rank, my_argc;
char **my_argv;

static const struct deed *const tables[] = {
	call_deeds,  differ_deeds, fault_deeds, child_deeds,
	limit_deeds, good_deeds,   busy_deeds,
};

void setup(void)
{
	jia_init(my_argc, my_argv);
	shared = jia_malloc_on((size_t)PAGES * PAGE, PAGE, 0);
	jia_barrier();
}

static const struct deed *find(const char *name)
{
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		for (const struct deed *d = tables[t]; d->name; d++)
			if (!strcmp(d->name, name))
				return d;
	return NULL;
}

int main(int argc, char **argv)
{
	const struct deed *d = argc > 1 ? find(argv[1]) : NULL;

	if (!d) {
		fprintf(stderr, "usage: misuse DEED [RANK [ARGUMENTS]]\n");
		return 40;
	}
	the_rank = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
	my_argc = argc;
	my_argv = argv;
	if (d->who == RAW) {
		d->run();
		return 0;
	}
	setup();
	if (d->who == ALL || jia_pid == the_rank)
		d->run();
	jia_barrier();
	jia_exit();
	return 0;
}
