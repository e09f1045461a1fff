/* SPDX-License-Identifier: MIT */
/* calls.c - calls of jia.h that are refused. */
#include "misuse.h"

#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

DEED(lock_minus_one, jia_lock(-1))
DEED(lock_too_big, jia_lock(Maxlocks))
DEED(lock_huge, jia_lock(INT_MAX))
DEED(unlock_minus_one, jia_unlock(-1))
DEED(unlock_too_big, jia_unlock(Maxlocks))
DEED(lock_twice, jia_lock(3); jia_lock(3))
DEED(unlock_not_held, jia_unlock(3))
DEED(unlock_out_of_order, jia_lock(3); jia_lock(4); jia_unlock(3))
DEED(barrier_with_lock, jia_lock(3); jia_barrier())
DEED(wait_with_lock, jia_lock(3); jia_wait())
DEED(exit_with_lock, jia_lock(3); jia_exit())
DEED(free_with_lock, jia_lock(3); jia_free(NULL))
DEED(malloc_zero, jia_malloc(0))
DEED(malloc_huge, jia_malloc(SIZE_MAX))
DEED(malloc_region, jia_malloc((size_t)64 << 30))
DEED(malloc_on_no_block, jia_malloc_on(PAGE, 0, 0))
DEED(malloc_on_no_rank, jia_malloc_on(PAGE, PAGE, hostc))
DEED(malloc_on_minus_one, jia_malloc_on(PAGE, PAGE, -1))
DEED(malloc_on_huge, jia_malloc_on(SIZE_MAX - 5000, SIZE_MAX, 0))
DEED(alloc_zero, jia_alloc(0))
DEED(alloc_negative, jia_alloc(INT_MIN))
DEED(alloc1_negative, jia_alloc1(-1))
DEED(alloc2_no_block, jia_alloc2(PAGE, 0))
DEED(alloc2_negative_block, jia_alloc2(PAGE, -PAGE))
DEED(alloc2p_no_rank, jia_alloc2p(PAGE, hostc))
DEED(alloc2p_minus_one, jia_alloc2p(PAGE, -1))
DEED(alloc3_no_rank, jia_alloc3(PAGE, PAGE, 1000000))
DEED(free_inside, jia_free((char *)(uintptr_t)shared + PAGE))
DEED(free_odd, jia_free((char *)(uintptr_t)shared + 1))
DEED(free_private, jia_free(&the_rank))
DEED(free_beyond, jia_free((char *)(uintptr_t)shared + PAGES * PAGE))
DEED(threads_zero, jia_threads(0))
DEED(threads_minus_one, jia_threads(-1))
DEED(threads_too_many, jia_threads(65))
DEED(threads_small_cache, jia_threads(3))
DEED(exit_with_threads, jia_threads(2); jia_exit())
DEED(free_with_threads, jia_threads(2); jia_free(NULL))
DEED(init_twice, jia_init(my_argc, my_argv))
DEED(config_bad_key, jia_config(5, ON))
DEED(config_minus_one, jia_config(-1, ON))
DEED(config_bad_value, jia_config(HMIG, 2))
DEED(phase_empty, jia_phase(""))
DEED(phase_long, jia_phase("0123456789012345678901234567890123456789"))
DEED(name_null, jia_name((void *)(uintptr_t)shared, NULL))
DEED(name_steers, jia_name((void *)(uintptr_t)shared, "\033[31m"))
DEED(name_private, jia_name(&the_rank, "x"))
DEED(name_inside, jia_name((char *)(uintptr_t)shared + PAGE, "x"))
DEED(name_of_null, jia_name(NULL, "x"))
DEED(set_unknown, jia_set("cahce", "1m"))
DEED(set_bad_value, jia_set("keep", "lots"))
DEED(set_out_of_range, jia_set("block", "4m"))
DEED(set_at_start_only, jia_set("cache", "1m"))
DEED(set_null, jia_set(NULL, "1"))
DEED(set_null_value, jia_set("keep", NULL))
DEED(set_empty, jia_set("", ""))
DEED(set_too_big_for_cache, jia_threads(4); jia_set("block", "1m"))
DEED(error_text, jia_error("no %s at %d\n", "bread", 7))
DEED(error_lines, jia_error("first\nsecond\n"))
DEED(error_empty, jia_error("%s", ""))

static void nest_too_deep(void)
{
	for (int i = 0; i < 33; i++)
		jia_lock(i);
	puts("went on after nest_too_deep");
}

static void phase_many(void)
{
	char name[8];

	for (int i = 0; i < 33; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		jia_phase(name);
	}
	puts("went on after phase_many");
}

static void name_many(void)
{
	char name[8];

	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		jia_name((void *)(uintptr_t)shared, name);
	}
	puts("went on after name_many");
}

static void free_twice(void)
{
	void *p = jia_malloc(PAGE);

	jia_free(p);
	jia_free(p);
	puts("went on after free_twice");
}

static void error_long(void)
{
	char text[3000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	jia_error("%s", text);
}

/* What --timeout reports: one holds the lock, one wants it, the rest have come
 * to the barrier. */
static void holds_a_lock_for_ever(void)
{
	int held;

	if (jia_pid == the_rank) {
		jia_lock(5);
		jia_lock(6);
		shared[0] = 1;
		jia_unlock(6);
		for (;;)
			pause();
	}
	do {
		jia_lock(6);
		held = shared[0];
		jia_unlock(6);
	} while (!held);
	if (jia_pid == (the_rank + 1) % hostc) {
		jia_lock(5); /* PLACE lock */
		jia_unlock(5);
	}
	jia_barrier(); /* PLACE barrier */
	puts("went on after holds_a_lock_for_ever");
}

/* --- at the wrong time ------------------------------------------------------- */

DEED(lock_before_init, jia_lock(1))
DEED(unlock_before_init, jia_unlock(1))
DEED(barrier_before_init, jia_barrier())
DEED(wait_before_init, jia_wait())
DEED(alloc_before_init, jia_alloc(PAGE))
DEED(malloc_before_init, jia_malloc(PAGE))
DEED(free_before_init, jia_free(NULL))
DEED(exit_before_init, jia_exit())
DEED(config_before_init, jia_config(HMIG, ON))
DEED(set_before_init, jia_set("keep", "1"))
DEED(threads_before_init, jia_threads(1))
DEED(startstat_before_init, jia_startstat())
DEED(stopstat_before_init, jia_stopstat())
DEED(error_before_init, jia_error("nothing works"))
DEED(lock_after_exit, setup(); jia_exit(); jia_lock(1))
DEED(unlock_after_exit, setup(); jia_exit(); jia_unlock(1))
DEED(barrier_after_exit, setup(); jia_exit(); jia_barrier())
DEED(wait_after_exit, setup(); jia_exit(); jia_wait())
DEED(malloc_after_exit, setup(); jia_exit(); jia_malloc(PAGE))
DEED(exit_after_exit, setup(); jia_exit(); jia_exit())
DEED(set_after_exit, setup(); jia_exit(); jia_set("keep", "1"))
DEED(init_after_exit, setup(); jia_exit(); jia_init(my_argc, my_argv))
DEED(error_after_exit, setup(); jia_exit(); jia_error("too late"))

/* --- threads ----------------------------------------------------------------- */

static void *hold_and_end(void *arg)
{
	jia_lock(7);
	return arg;
}

static void thread_ends_with_lock(void)
{
	pthread_t t;

	if (!pthread_create(&t, NULL, hold_and_end, NULL))
		pthread_join(t, NULL);
	puts("went on after thread_ends_with_lock");
}

static void main_ends_with_lock(void)
{
	jia_lock(7);
	pthread_exit(NULL);
}

static void *unlock_anothers(void *arg)
{
	jia_unlock(7);
	return arg;
}

static void unlock_by_another_thread(void)
{
	pthread_t t;

	jia_lock(7);
	if (!pthread_create(&t, NULL, unlock_anothers, NULL))
		pthread_join(t, NULL);
	puts("went on after unlock_by_another_thread");
}

static pthread_barrier_t all_here;

/* A page of its own: each thread faults. */
static void *touch_and_stay(void *arg)
{
	shared[(long)arg * hostc * PAGE] += 1;
	pthread_barrier_wait(&all_here);
	return arg;
}

/* Run with threads=4: main and four more. */
static void too_many_threads(void)
{
	pthread_t t[4];

	pthread_barrier_init(&all_here, NULL, 5);
	for (long i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, touch_and_stay, (void *)i))
			return;
	pthread_barrier_wait(&all_here);
	puts("went on after too_many_threads");
}

static void *lock_and_stay(void *arg)
{
	jia_lock((int)(long)arg);
	jia_unlock((int)(long)arg);
	pthread_barrier_wait(&all_here);
	return arg;
}

static void too_many_locking_threads(void)
{
	pthread_t t[4];

	pthread_barrier_init(&all_here, NULL, 5);
	for (long i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, lock_and_stay, (void *)i))
			return;
	pthread_barrier_wait(&all_here);
	puts("went on after too_many_locking_threads");
}

static void *meet(void *arg)
{
	jia_barrier();
	return arg;
}

static void threads_at_a_barrier(void)
{
	pthread_t t;

	jia_threads(2);
	if (pthread_create(&t, NULL, meet, NULL))
		return;
	usleep(300000);
	jia_threads(1);
	puts("went on after threads_at_a_barrier");
}

#define ROW(name, who)           \
	{                        \
#name, name, who \
	}
const struct deed call_deeds[] = {
	ROW(lock_minus_one, ONE),
	ROW(lock_too_big, ONE),
	ROW(lock_huge, ONE),
	ROW(unlock_minus_one, ONE),
	ROW(unlock_too_big, ONE),
	ROW(lock_twice, ONE),
	ROW(unlock_not_held, ONE),
	ROW(unlock_out_of_order, ONE),
	ROW(barrier_with_lock, ONE),
	ROW(wait_with_lock, ONE),
	ROW(exit_with_lock, ONE),
	ROW(free_with_lock, ONE),
	ROW(nest_too_deep, ONE),
	ROW(malloc_zero, ONE),
	ROW(malloc_huge, ONE),
	ROW(malloc_region, ONE),
	ROW(malloc_on_no_block, ONE),
	ROW(malloc_on_no_rank, ONE),
	ROW(malloc_on_minus_one, ONE),
	ROW(malloc_on_huge, ONE),
	ROW(alloc_zero, ONE),
	ROW(alloc_negative, ONE),
	ROW(alloc1_negative, ONE),
	ROW(alloc2_no_block, ONE),
	ROW(alloc2_negative_block, ONE),
	ROW(alloc2p_no_rank, ONE),
	ROW(alloc2p_minus_one, ONE),
	ROW(alloc3_no_rank, ONE),
	ROW(free_inside, ONE),
	ROW(free_odd, ONE),
	ROW(free_private, ONE),
	ROW(free_beyond, ONE),
	ROW(free_twice, ALL),
	ROW(threads_zero, ONE),
	ROW(threads_minus_one, ONE),
	ROW(threads_too_many, ONE),
	ROW(threads_small_cache, ONE),
	ROW(exit_with_threads, ONE),
	ROW(free_with_threads, ONE),
	ROW(init_twice, ONE),
	ROW(config_bad_key, ONE),
	ROW(config_minus_one, ONE),
	ROW(config_bad_value, ONE),
	ROW(phase_empty, ONE),
	ROW(phase_long, ONE),
	ROW(phase_many, ONE),
	ROW(name_null, ONE),
	ROW(name_steers, ONE),
	ROW(name_private, ONE),
	ROW(name_inside, ONE),
	ROW(name_of_null, ONE),
	ROW(name_many, ONE),
	ROW(set_unknown, ONE),
	ROW(set_bad_value, ONE),
	ROW(set_out_of_range, ONE),
	ROW(set_at_start_only, ONE),
	ROW(set_null, ONE),
	ROW(set_null_value, ONE),
	ROW(set_empty, ONE),
	ROW(set_too_big_for_cache, ONE),
	ROW(error_text, ONE),
	ROW(error_lines, ONE),
	ROW(error_empty, ONE),
	ROW(error_long, ONE),
	ROW(holds_a_lock_for_ever, ALL),
	ROW(lock_before_init, RAW),
	ROW(unlock_before_init, RAW),
	ROW(barrier_before_init, RAW),
	ROW(wait_before_init, RAW),
	ROW(alloc_before_init, RAW),
	ROW(malloc_before_init, RAW),
	ROW(free_before_init, RAW),
	ROW(exit_before_init, RAW),
	ROW(config_before_init, RAW),
	ROW(set_before_init, RAW),
	ROW(threads_before_init, RAW),
	ROW(startstat_before_init, RAW),
	ROW(stopstat_before_init, RAW),
	ROW(error_before_init, RAW),
	ROW(lock_after_exit, RAW),
	ROW(unlock_after_exit, RAW),
	ROW(barrier_after_exit, RAW),
	ROW(wait_after_exit, RAW),
	ROW(malloc_after_exit, RAW),
	ROW(exit_after_exit, RAW),
	ROW(set_after_exit, RAW),
	ROW(init_after_exit, RAW),
	ROW(error_after_exit, RAW),
	ROW(thread_ends_with_lock, ONE),
	ROW(main_ends_with_lock, ONE),
	ROW(unlock_by_another_thread, ONE),
	ROW(too_many_threads, ONE),
	ROW(too_many_locking_threads, ONE),
	ROW(threads_at_a_barrier, ONE),
	{ NULL, NULL, ONE },
};
