/* SPDX-License-Identifier: MIT */
/*
 * bench_word.c - words from hand to hand; see bench.h.
 *
 * Threads: one sets a word, one waits for it; of one process or of two.
 */
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

static uint32_t value(const struct bench_word *w)
{
	return __atomic_load_n(&w->value, __ATOMIC_ACQUIRE);
}

void bench_set(struct bench_word *w, uint32_t v)
{
	__atomic_store_n(&w->value, v, __ATOMIC_RELEASE);
}

/* On one core the other does not run while this one spins. */
void bench_await(const struct bench_word *w, uint32_t v)
{
	for (unsigned int i = 1; value(w) != v; i++)
		if (!(i & 0xfff))
			sched_yield();
}

void bench_await_sleeping(struct bench_word *w, uint32_t v)
{
	uint32_t seen;

	while ((seen = value(w)) != v)
		syscall(SYS_futex, &w->value, FUTEX_WAIT, seen, NULL, NULL, 0);
}

void bench_set_and_wake(struct bench_word *w, uint32_t v)
{
	bench_set(w, v);
	syscall(SYS_futex, &w->value, FUTEX_WAKE, 1, NULL, NULL, 0);
}
