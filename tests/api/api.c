/* SPDX-License-Identifier: MIT */
/*
 * api.c - the public calls beyond the core, tried on all ranks.
 *
 * usage: api CASE; ends with 0 if all is well.  `api --list` names the cases.
 * `api --refuse NAME` does what must end the job; `api --refusals` lists them.
 * See tests/api/run.
 */
#include "api.h"

volatile unsigned char *shared;

static const struct api_case *const tables[] = {
	lock_cases,  cond_cases,    message_cases, collective_cases,
	touch_cases, release_cases, view_cases,	   fault_cases,
};

static const struct api_case *find(const char *name)
{
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		for (const struct api_case *c = tables[t]; c->name; c++)
			if (!strcmp(c->name, name))
				return c;
	return NULL;
}

static int list(void)
{
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		for (const struct api_case *c = tables[t]; c->name; c++)
			puts(c->name);
	return 0;
}

int main(int argc, char **argv)
{
	const struct api_case *c = argc > 1 ? find(argv[1]) : NULL;

	if (argc > 1 && !strcmp(argv[1], "--list"))
		return list();
	if (argc > 1 && !strcmp(argv[1], "--refusals")) {
		refusals_list();
		return 0;
	}
	if (!c && argc != 3) {
		fprintf(stderr,
			"usage: api CASE | --list | --refusals | --refuse NAME\n");
		return 2;
	}
	jia_init(argc, argv);
	shared = jia_malloc_on((size_t)PAGES * PAGE, PAGE, 0);
	jia_barrier();
	if (c)
		c->run();
	else
		refusals_run(argv[2]);
	jia_barrier();
	jia_exit();
	return 0;
}
