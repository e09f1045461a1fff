/* SPDX-License-Identifier: MIT */
/*
 * threads.c - several threads of a rank use locks and barriers.
 *
 * Threads of all ranks increment shared counters under locks, and write bytes
 * of their own next to each other between barriers; one of them nests locks.
 */
#include <pthread.h>

#include "litmus.h"

enum {
	THREADS = 4,
	ROUNDS = 60,
	LOCKS = 3
};

static struct page *count;
static volatile unsigned char *own;

static void increment(int lock)
{
	jia_lock(lock);
	count[lock].value++;
	jia_unlock(lock);
}

static void *work(void *arg)
{
	int me = jia_pid * THREADS + (int)(long)arg, n = hostc * THREADS;

	for (int i = 1; i <= ROUNDS; i++) {
		own[me] = (unsigned char)(i + me);
		increment((me + i) % LOCKS);
		if ((long)arg == 0) {
			jia_lock(0);
			increment(2);
			count[0].other++;
			jia_unlock(0);
		}
		jia_barrier();
		for (int k = 0; k < n; k++)
			CHECK(own[k] == (unsigned char)(i + k),
			      "round %d: byte of thread %d is %d, not %d", i, k,
			      own[k], (unsigned char)(i + k));
		jia_barrier();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	int sum = 0;

	jia_init(argc, argv);
	count = litmus_pages(LOCKS, 1);
	own = jia_malloc_on(PAGE, PAGE, 0);
	CHECK(hostc * THREADS <= (int)PAGE, "too many ranks");
	jia_barrier();
	jia_threads(THREADS);
	for (long t = 1; t < THREADS; t++)
		CHECK(!pthread_create(&thread[t], NULL, work, (void *)t),
		      "no thread");
	work((void *)0);
	for (long t = 1; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	jia_threads(1);
	jia_barrier();
	for (int l = 0; l < LOCKS; l++)
		sum += count[l].value;
	CHECK(sum == hostc * ROUNDS * (THREADS + 1), "%d increments, not %d",
	      sum, hostc * ROUNDS * (THREADS + 1));
	CHECK(count[0].other == hostc * ROUNDS, "%d nested, not %d",
	      count[0].other, hostc * ROUNDS);
	jia_exit();
	return 0;
}
