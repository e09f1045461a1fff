/* SPDX-License-Identifier: MIT */
/*
 * sul_clock.h - time, and passing it, for the files that may: not those
 * of the core (sul_pure.h).
 */
#ifndef SUL_CLOCK_H
#define SUL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Since some moment before this host's processes began. */
static inline uint64_t sul_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Between two looks at memory: leave the core to its other thread. */
static inline void sul_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif /* SUL_CLOCK_H */
