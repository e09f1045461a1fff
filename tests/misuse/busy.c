/* SPDX-License-Identifier: MIT */
/*
 * busy.c - a rank that locks, meets, faults and has threads, until it is killed.
 *
 * usage: misuse busy RANK MS exit0|exit3|abort: after MS milliseconds RANK ends
 * itself that way.  Checks its sums all the while.
 */
#include "misuse.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum {
	THREADS = 3,
	LOCKS = 4,
	ROUNDS = 8, /* between barriers */
	SECONDS = 60
};

static void *end_soon(void *arg)
{
	long ms = strtol(my_argv[3], NULL, 10);
	struct timespec nap = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&nap, NULL);
	if (!strcmp(my_argv[4], "abort"))
		abort();
	exit(!strcmp(my_argv[4], "exit3") ? 3 : 0);
	return arg;
}

static volatile unsigned char *counter(int lock)
{
	return shared + lock * PAGE;
}

static void rounds(int me)
{
	for (int r = 0; r < ROUNDS; r++) {
		int lock = (me + r) % LOCKS;

		jia_lock(lock);
		counter(lock)[0]++;
		jia_unlock(lock);
		for (int i = LOCKS; i < PAGES; i += 7)
			shared[i * PAGE + 100 + me]++;
	}
}

static void *work(void *arg)
{
	int me = jia_pid * THREADS + (int)(long)arg;
	unsigned char expect = 0;
	double end = (double)jia_clock() + SECONDS;

	while ((double)jia_clock() < end) {
		unsigned char sum = 0;

		rounds(me);
		jia_barrier();
		expect = (unsigned char)(expect + hostc * THREADS * ROUNDS);
		for (int i = 0; i < LOCKS; i++)
			sum = (unsigned char)(sum + counter(i)[0]);
		CHECK(sum == expect, "sum is %d, not %d", sum, expect);
		jia_barrier();
	}
	exit(0);
	return arg;
}

static void busy(void)
{
	pthread_t t;

	/* the driver's way to a victim */
	printf("rank %d %d\n", jia_pid, (int)getpid());
	fflush(stdout);
	if (my_argc > 4 && jia_pid == the_rank)
		CHECK(!pthread_create(&t, NULL, end_soon, NULL), "thread");
	jia_threads(THREADS);
	for (long k = 1; k < THREADS; k++)
		CHECK(!pthread_create(&t, NULL, work, (void *)k), "thread");
	work((void *)0);
}

const struct deed busy_deeds[] = {
	{ "busy", busy, ALL },
	{ NULL, NULL, ALL },
};
