/* SPDX-License-Identifier: MIT */
/*
 * litmus.h - what the litmus programs share.
 *
 * Each is a small program over jia.h, run by `jiarun -n N`; it ends with 0 when
 * all ranks saw what the memory model promises, else the job ends with 1 and a
 * line that says what was seen.  tests/litmus/run has the list.
 */
#ifndef LITMUS_H
#define LITMUS_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define JIA_NO_MACROS
#include "jia.h"

enum {
	PAGE = 4096
};

#define CHECK(cond, ...)                                   \
	do {                                               \
		if (!(cond))                               \
			jia_error("litmus: " __VA_ARGS__); \
	} while (0)

/* One page per element, so that neighbours share none. */
struct page {
	volatile int value;
	volatile int other;
	char rest[PAGE - 2 * sizeof(int)];
};

static inline struct page *litmus_pages(int n, int home)
{
	return jia_malloc_on((size_t)n * PAGE, (size_t)n * PAGE, home % hostc);
}

/* Take @lock until @p->value is at least @want; returns with the lock held. */
static inline void litmus_lock_when(int lock, struct page *p, int want)
{
	for (;;) {
		jia_lock(lock);
		if (p->value >= want)
			return;
		jia_unlock(lock);
		sched_yield();
	}
}

static inline void litmus_sleep_us(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

#endif /* LITMUS_H */
