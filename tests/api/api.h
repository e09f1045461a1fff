/* SPDX-License-Identifier: MIT */
/*
 * api.h - what the tests of the public calls share.
 *
 * A *case* is run by all ranks, between two barriers.  The part files have
 * tables of them; tests/api/run calls each by name.
 */
#ifndef API_H
#define API_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JIA_NO_MACROS
#include "jia.h"

enum {
	PAGE = 4096,
	PAGES = 64, /* of `shared` */
	THREADS = 3
};

struct api_case {
	const char *name;
	void (*run)(void);
};

/* Each ends with { NULL, NULL }. */
extern const struct api_case lock_cases[], cond_cases[], message_cases[],
	collective_cases[], touch_cases[], release_cases[], view_cases[],
	fault_cases[];

/* refusal.c: "ranks name pattern" lines; and do one. */
void refusals_list(void);
void refusals_run(const char *name);

extern volatile unsigned char *shared; /* PAGES pages, homes in turn */

/* A page of its own for an int that is counted under a lock. */
static inline volatile int *page_int(int page)
{
	return (volatile int *)(volatile void *)(shared + (size_t)page * PAGE);
}

#define CHECK(cond, ...)                                  \
	do {                                              \
		if (!(cond))                              \
			jia_error("check: " __VA_ARGS__); \
	} while (0)

/* Run @fn on THREADS threads of this rank, its number as argument. */
static inline void with_threads(void *(*fn)(void *))
{
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, fn, (void *)i), "no thread");
	for (long i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

#endif /* API_H */
