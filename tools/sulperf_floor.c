/* SPDX-License-Identifier: MIT */
/*
 * sulperf_floor.c - what the machine itself takes: nothing can be faster.
 *
 * Role:    a cache line to another thread, waking a thread, a null system call,
 *          copying; all within the leader, while the peer naps.
 * Threads: the leader's, and one more for the time of a sample.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sulperf.h"

enum {
	ASLEEP_NS = 50000, /* after that a thread that wants to sleeps */
};

struct pair {
	struct bench_word ping, pong;
	uint32_t rounds;
};

static pthread_t start(struct perf *p, void *(*fn)(void *), struct pair *pair)
{
	pthread_t t;
	int err = pthread_create(&t, NULL, fn, pair);

	perf_must(p, -err, "a thread");
	return t;
}

static void *answer(void *arg)
{
	struct pair *pair = arg;

	for (uint32_t i = 1; i <= pair->rounds; i++) {
		bench_await(&pair->ping, i);
		bench_set(&pair->pong, i);
	}
	return NULL;
}

double perf_line(struct perf *p, const struct perf_row *r)
{
	struct pair pair = { .rounds = (uint32_t)r->batch + 1 };
	pthread_t t = start(p, answer, &pair);
	uint64_t begin = 0;

	for (uint32_t i = 1; i <= pair.rounds; i++) {
		bench_set(&pair.ping, i);
		bench_await(&pair.pong, i);
		if (i == 1) /* the thread runs */
			begin = bench_now_ns();
	}
	p->ns = bench_now_ns() - begin;
	pthread_join(t, NULL);
	return 2 * r->batch;
}

static void *wake_up(void *arg)
{
	struct pair *pair = arg;

	for (uint32_t i = 1; i <= pair->rounds; i++) {
		bench_await_sleeping(&pair->ping, i);
		bench_set(&pair->pong, i);
	}
	return NULL;
}

double perf_wake(struct perf *p, const struct perf_row *r)
{
	struct pair pair = { .rounds = (uint32_t)r->batch };
	pthread_t t = start(p, wake_up, &pair);

	for (uint32_t i = 1; i <= pair.rounds; i++) {
		uint64_t begin;

		perf_linger(ASLEEP_NS);
		begin = bench_now_ns();
		bench_set_and_wake(&pair.ping, i);
		bench_await(&pair.pong, i);
		p->ns += bench_now_ns() - begin;
	}
	pthread_join(t, NULL);
	return r->batch;
}

double perf_call(struct perf *p, const struct perf_row *r)
{
	(void)p;
	for (int i = 0; i < r->batch; i++)
		syscall(SYS_getppid);
	return r->batch;
}

double perf_copy(struct perf *p, const struct perf_row *r)
{
	for (int i = 0; i < r->batch; i++) {
		size_t at = (size_t)i * r->bytes;

		memcpy(p->to + at, p->from + at, r->bytes);
		__asm__ volatile("" : : "r"(p->to) : "memory");
	}
	return r->batch;
}
