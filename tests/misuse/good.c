/* SPDX-License-Identifier: MIT */
/* good.c - what looks odd and must work. */
#include "misuse.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void errno_is_kept(void)
{
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < PAGES; i++) {
			errno = 4242;
			shared[i * PAGE + jia_pid] += shared[i * PAGE + 100];
			CHECK(errno == 4242, "page %d: errno is %d", i, errno);
		}
		jia_barrier();
	}
}

/* --- threads ----------------------------------------------------------------- */

enum {
	CROWD = 8
};

static pthread_barrier_t start;

static void *look_at_all(void *arg)
{
	long sum = 0;

	for (int i = 0; i < PAGES; i++) {
		pthread_barrier_wait(&start);
		sum += shared[i * PAGE];
	}
	for (int i = 0; i < PAGES; i++) {
		pthread_barrier_wait(&start);
		shared[i * PAGE + 100 + jia_pid * CROWD + (int)(long)arg]++;
	}
	return (void *)sum;
}

static void crowd_faults_on_one_page(void)
{
	pthread_t t[CROWD];
	void *sum;
	int n;

	for (int i = jia_pid; i < PAGES; i += hostc)
		shared[i * PAGE] = (unsigned char)i;
	jia_barrier();
	pthread_barrier_init(&start, NULL, CROWD);
	for (long k = 0; k < CROWD; k++)
		CHECK(!pthread_create(&t[k], NULL, look_at_all, (void *)k),
		      "thread");
	for (int k = 0; k < CROWD; k++) {
		pthread_join(t[k], &sum);
		CHECK((long)sum == PAGES * (PAGES - 1) / 2, "thread %d: %ld", k,
		      (long)sum);
	}
	jia_barrier();
	for (int i = 0; i < PAGES; i++) {
		n = 0;
		for (int k = 0; k < CROWD * hostc; k++)
			n += shared[i * PAGE + 100 + k];
		CHECK(n == CROWD * hostc, "page %d: %d stores", i, n);
	}
}

static void *lock_once(void *arg)
{
	jia_lock(9);
	shared[PAGE]++;
	jia_unlock(9);
	return arg;
}

/* Run with threads=4: slots come back. */
static void many_short_threads(void)
{
	pthread_t t[3];

	for (int i = 0; i < 80; i++) {
		for (int k = 0; k < 3; k++)
			CHECK(!pthread_create(&t[k], NULL, lock_once, NULL),
			      "thread");
		for (int k = 0; k < 3; k++)
			pthread_join(t[k], NULL);
	}
	jia_barrier();
	CHECK(shared[PAGE] == (unsigned char)(240 * hostc), "%d increments",
	      shared[PAGE]);
}

static pthread_key_t key;

static void use_shared_late(void *arg)
{
	(void)arg;
	lock_once(NULL);
}

static void *leave_a_value(void *arg)
{
	pthread_setspecific(key, &key);
	lock_once(arg);
	return NULL;
}

/* The key is younger than the library's own, so its destructor runs later. */
static void destructors_of_a_thread_use_shared_memory(void)
{
	pthread_t t;

	pthread_key_create(&key, use_shared_late);
	for (int i = 0; i < 20; i++) {
		CHECK(!pthread_create(&t, NULL, leave_a_value, NULL), "thread");
		pthread_join(t, NULL);
	}
	jia_barrier();
	CHECK(shared[PAGE] == 40 * hostc, "%d increments", shared[PAGE]);
}

static void *barriers(void *arg)
{
	for (int i = 0; i < 5; i++)
		jia_barrier();
	return arg;
}

static void number_of_threads_changes(void)
{
	static const int numbers[] = { 3, 1, 4, 2, 1 };
	pthread_t t[4];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		jia_threads(numbers[i]);
		for (int k = 1; k < numbers[i]; k++)
			CHECK(!pthread_create(&t[k], NULL, barriers, NULL),
			      "thread");
		barriers(NULL);
		for (int k = 1; k < numbers[i]; k++)
			pthread_join(t[k], NULL);
		jia_threads(1);
		shared[i * PAGE + (size_t)jia_pid] = 1;
		jia_barrier();
		for (int r = 0; r < hostc; r++)
			CHECK(shared[i * PAGE + (size_t)r] == 1, "round %d",
			      (int)i);
	}
}

/* --- signals ----------------------------------------------------------------- */

/* A page each for the handlers of the ranks. */
static volatile unsigned int *tick_page(int rank)
{
	return (volatile unsigned int *)(uintptr_t)(shared + rank * PAGE);
}

static volatile sig_atomic_t ticks;

static void on_tick(int sig)
{
	int saved = errno;
	unsigned int sum = 0;

	(void)sig;
	ticks++;
	tick_page(jia_pid)[0]++;
	for (int r = 0; r < hostc; r++)
		sum += tick_page(r)[0];
	tick_page(jia_pid)[1] = sum;
	errno = saved;
}

static void tick_every(int us)
{
	struct itimerval t = { { 0, us }, { 0, us } };

	CHECK(!setitimer(ITIMER_REAL, &t, NULL), "setitimer");
}

static void signal_handler_uses_shared_memory(void)
{
	struct sigaction sa = { .sa_handler = on_tick };
	volatile unsigned char *sum = shared + 20 * PAGE;
	struct timespec now, end;
	unsigned int rounds = 0;

	sigaction(SIGALRM, &sa, NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += 1;
	tick_every(100);
	do {
		jia_lock(2);
		sum[0]++;
		sum[PAGE]++;
		jia_unlock(2);
		for (int i = 30; i < 40; i++)
			shared[i * PAGE + jia_pid]++;
		jia_barrier();
		CHECK(sum[0] == sum[PAGE], "%d is not %d", sum[0], sum[PAGE]);
		CHECK(sum[0] == (unsigned char)(++rounds * (unsigned)hostc),
		      "round %u: sum is %d", rounds, sum[0]);
		if (jia_pid == 0) {
			clock_gettime(CLOCK_MONOTONIC, &now);
			sum[2 * PAGE] = now.tv_sec > end.tv_sec ||
					(now.tv_sec == end.tv_sec &&
					 now.tv_nsec > end.tv_nsec);
		}
		jia_barrier();
	} while (!sum[2 * PAGE]);
	tick_every(0);
	jia_barrier();
	CHECK(tick_page(jia_pid)[0] == (unsigned int)ticks, "ticks were lost");
	tick_page(jia_pid)[2] = (unsigned int)ticks;
	jia_barrier();
	for (int r = 0; r < hostc; r++)
		CHECK(tick_page(r)[0] == tick_page(r)[2] && tick_page(r)[0],
		      "rank %d: %u ticks seen, %u made", r, tick_page(r)[0],
		      tick_page(r)[2]);
}

static void signal_handler_uses_shared_memory_beside_messages(void)
{
	struct sigaction sa = { .sa_handler = on_tick };
	int right = (jia_pid + 1) % hostc, left = (jia_pid + hostc - 1) % hostc;
	char out[300] = { 0 }, in[300];

	sigaction(SIGALRM, &sa, NULL);
	jia_barrier();
	tick_every(100);
	for (int i = 0; i < 3000; i++) {
		out[0] = (char)i;
		jia_send(out, (int)sizeof(out), right, 7);
		jia_recv(in, (int)sizeof(in), left, 7);
		CHECK(in[0] == out[0], "message %d: %d", i, in[0]);
	}
	tick_every(0);
	jia_barrier();
	CHECK(tick_page(jia_pid)[0] == (unsigned int)ticks, "ticks were lost");
}

/* Or a fault within malloc(), in a handler of a signal, would wait for ever. */
static void a_fault_asks_the_heap_for_nothing(void)
{
	size_t before;

	for (int i = jia_pid; i < PAGES; i += hostc)
		shared[i * PAGE] = (unsigned char)i;
	jia_barrier();
	before = mallinfo2().uordblks;
	for (int i = 0; i < PAGES; i++)
		shared[i * PAGE + 100 + jia_pid] += shared[i * PAGE];
	CHECK(mallinfo2().uordblks == before, "%zu bytes became %zu", before,
	      mallinfo2().uordblks);
}

static void on_tick_only(int sig)
{
	(void)sig;
	ticks++;
}

/* Without SA_RESTART every sleep of the waiting ranks is interrupted. */
static void waits_are_not_interrupted(void)
{
	struct sigaction sa = { .sa_handler = on_tick_only };
	struct timespec nap = { 0, 300000000 };

	sigaction(SIGALRM, &sa, NULL);
	if (jia_pid != 0)
		tick_every(1000);
	jia_barrier();
	if (jia_pid == 0) {
		jia_lock(4);
		nanosleep(&nap, NULL);
		shared[0] = 77;
		jia_unlock(4);
		jia_wait();
		nanosleep(&nap, NULL);
		shared[1] = 78;
	} else {
		jia_wait();
		jia_lock(4);
		CHECK(shared[0] == 77, "the lock came early");
		jia_unlock(4);
	}
	jia_barrier();
	CHECK(shared[1] == 78, "the barrier came early");
	CHECK(jia_pid == 0 || ticks > 20, "%d ticks", (int)ticks);
	tick_every(0);
}

/* --- system calls ------------------------------------------------------------ */

/* jia(7), CAVEATS: the kernel does not fault pages in for us. */
static void read_into_shared_memory(void)
{
	char text[PAGE], *at = (char *)(uintptr_t)shared + 3 * PAGE;
	int here = 3 % hostc == jia_pid, ends[2];
	ssize_t n;

	memset(text, 'x', sizeof(text));
	CHECK(!pipe(ends), "pipe");
	CHECK(write(ends[1], text, 100) == 100, "write");
	errno = 0;
	n = read(ends[0], at, 100);
	if (here || hostc == 1)
		CHECK(n == 100, "home: %d, %s", (int)n, strerror(errno));
	else
		CHECK(n < 0 && errno == EFAULT, "not EFAULT: %d, %s", (int)n,
		      strerror(errno));
	jia_barrier();
	if (n < 0) {
		at[0] = 'y'; /* a store makes the page writable */
		n = read(ends[0], at, 100);
		CHECK(n == 100 && !memcmp(at, text, 100),
		      "after a store: %d, %s", (int)n, strerror(errno));
	}
	jia_barrier();
	CHECK(!memcmp(at, text, 100), "what read(2) stored is not seen");
	n = write(ends[1], at, 100);
	CHECK(n == 100, "write(2) from a page just read: %d", (int)n);
	close(ends[0]);
	close(ends[1]);
}

/* --- after jia_exit() -------------------------------------------------------- */

static void memory_works_after_jia_exit(void)
{
	volatile unsigned char *p;
	struct timespec nap;

	setup();
	p = jia_malloc_on((size_t)200 * PAGE, (size_t)10 * PAGE, 0);
	for (int i = 0; i < 200; i++)
		if (i % hostc == jia_pid)
			p[i * PAGE] = (unsigned char)(i + 1);
	jia_exit();
	/* rank 0 has gone when the others look */
	nap = (struct timespec){ 0, 150000000L * jia_pid };
	nanosleep(&nap, NULL);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 200; i++)
			if (p[i * PAGE] != (unsigned char)(i + 1)) {
				fprintf(stderr, "page %d is %d\n", i,
					p[i * PAGE]);
				exit(9);
			}
	for (int i = 0; i < 200; i++)
		p[i * PAGE + 8 + jia_pid] = (unsigned char)i;
	for (int i = 0; i < 200; i++)
		if (p[i * PAGE + 8 + jia_pid] != (unsigned char)i)
			exit(10);
}

static void nothing(void)
{
}

static void clock_before_init(void)
{
	CHECK(jia_clock() >= 0, "jia_clock");
	setup();
	jia_exit();
	CHECK(jia_clock() >= 0, "jia_clock");
}

#define ROW(name, who)           \
	{                        \
#name, name, who \
	}
const struct deed good_deeds[] = {
	ROW(errno_is_kept, ALL),
	ROW(crowd_faults_on_one_page, ALL),
	ROW(many_short_threads, ALL),
	ROW(destructors_of_a_thread_use_shared_memory, ALL),
	ROW(number_of_threads_changes, ALL),
	ROW(signal_handler_uses_shared_memory, ALL),
	ROW(signal_handler_uses_shared_memory_beside_messages, ALL),
	ROW(a_fault_asks_the_heap_for_nothing, ALL),
	ROW(waits_are_not_interrupted, ALL),
	ROW(read_into_shared_memory, ALL),
	ROW(memory_works_after_jia_exit, RAW),
	ROW(clock_before_init, RAW),
	ROW(nothing, ALL),
	{ NULL, NULL, ONE },
};
