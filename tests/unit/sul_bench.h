/* SPDX-License-Identifier: MIT */
/*
 * sul_bench.h - one test body, run by every rank of a small job in any world.
 *
 * A body is what a rank does; it returns 0, or the line of what went wrong
 * (MUST() does that).  The bench opens the port, calls the body, closes.
 */
#ifndef SUL_BENCH_H
#define SUL_BENCH_H

#include <stdio.h>

#include "sul_carrier.h"
#include "sul_sim.h"

enum bench_world {
	BENCH_SIM, /* coroutines, simulated network */
	BENCH_THREADS, /* threads of this process, a port each, carrier shm */
	BENCH_PROCESSES /* forked children, carrier shm */
};

#if defined(__SANITIZE_THREAD__)
#define BENCH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BENCH_TSAN 1
#endif
#endif
#ifndef BENCH_TSAN
#define BENCH_TSAN 0
#endif

/* ThreadSanitizer knows neither the coroutines nor children of threads. */
static inline bool bench_has(enum bench_world w)
{
	return !BENCH_TSAN || w == BENCH_THREADS;
}

typedef int bench_fn(struct sul_port *p, void *ctx);

struct bench {
	int ranks;
	unsigned int windows; /* at least 1 is opened */
	size_t bytes; /* of each; 0: 64 KiB */
	uint64_t seed; /* of the simulator */
	bool whole; /* it does no operation in pieces */
	uint64_t steps; /* out: it has made */
	unsigned int spin_us;
	bool cancel; /* end the job after 100 ms: waits shall notice */
};

/*
 * 0 if every rank returned 0; else what one of them returned, -ETIMEDOUT if
 * they did not come to an end, -EDEADLK if the simulator says so.
 */
int bench_run(enum bench_world w, struct bench *b, bench_fn *fn, void *ctx);

/* Asserts (CUnit) that it goes well in all worlds; with seeds 0 .. @seeds - 1. */
void bench_everywhere(struct bench b, bench_fn *fn, void *ctx);
void bench_seeds(struct bench b, unsigned int seeds, bench_fn *fn, void *ctx);

bool bench_simulated(const struct sul_port *p);
/* Let the others do something for a while, without making progress. */
void bench_nap(struct sul_port *p);
/* Rank 0 lets all go on when all have come; uses the end of window 0. */
int bench_meet(struct sul_port *p, uint32_t round);

/* For bodies, in any world; REQUIRE() of tests.h is for the test itself. */
#define MUST(what)                                                       \
	do {                                                             \
		if (!(what)) {                                           \
			fprintf(stderr, "\n    %s:%d: rank %d: %s\n",    \
				__FILE__, __LINE__, sul_rank(p), #what); \
			return __LINE__;                                 \
		}                                                        \
	} while (0)

#endif /* SUL_BENCH_H */
