/* SPDX-License-Identifier: MIT */
/*
 * jiabench_sync.c - the rows about locks and barriers.
 *
 * Role:      the time of rank 0, or of all from a common start to the end.
 * Invariant: what the ranks did to shared memory meanwhile is checked: a lock
 *            that is fast and does not exclude is no lock.
 * Threads:   the rank's only one.  All rows are collective.
 */
#include "jiabench.h"

#include <inttypes.h>
#include <string.h>

#include "jia.h"

enum {
	PAGE = 4096,
	PAIRS = 200, /* lock + unlock in a sample */
	INCREMENTS = 500, /* of each rank, in a sample */
	TURNS = 100, /* of each rank, in a sample */
	BARRIERS = 40,
	DIRTY = 64,
	WARM = 5
};

static int lock_of(int rank)
{
	return hostc + rank;
}

/* --- locks ------------------------------------------------------------------------- */

static void lock_free(struct bench *b, int manager)
{
	int lock = lock_of(manager);

	jia_wait();
	if (!jia_pid) {
		bench_events_begin(b);
		bench_time_begin(b);
		for (int i = 0; i < PAIRS; i++) {
			jia_lock(lock);
			jia_unlock(lock);
		}
		bench_time_end(b, PAIRS);
		bench_events_end(b, PAIRS);
	}
	jia_wait();
}

void bench_row_lock_local(struct bench *b)
{
	lock_free(b, 0);
}

void bench_row_lock_remote(struct bench *b)
{
	lock_free(b, b->home);
}

static void check(const uint32_t *shared, uint32_t want, const char *what)
{
	if (*shared != want)
		jia_error("%s: %" PRIu32 ", and it must be %" PRIu32, what,
			  *shared, want);
}

/* Each rank does @each of something by @fn(word); timed from when all are there
 * until the last is done, per thing done by anybody. */
static void contend(struct bench *b, const char *what, int each,
		    void (*fn)(uint32_t *word, int each))
{
	struct bench_result *result = b->result;
	uint32_t *word = jia_malloc_on(PAGE, PAGE, b->home);

	for (int i = 0; i < 3; i++) {
		b->result = i ? result : NULL; /* first once to warm up */
		if (!jia_pid)
			bench_events_begin(b);
		jia_wait();
		if (!jia_pid)
			bench_time_begin(b);
		fn(word, each);
		if (!jia_pid)
			bench_events_end(b, each);
		jia_wait();
		if (!jia_pid)
			bench_time_end(b, (double)each * hostc);
	}
	b->result = result;
	jia_barrier();
	check(word, (uint32_t)(3 * each * hostc), what);
	jia_free(word);
}

static void increment(uint32_t *word, int each)
{
	for (int i = 0; i < each; i++) {
		jia_lock(lock_of(0));
		++*word;
		jia_unlock(lock_of(0));
	}
}

void bench_row_lock_counter(struct bench *b)
{
	contend(b, "lock_counter", INCREMENTS, increment);
}

/* Whose turn it is not has taken the lock in vain: it counts as time. */
static void take_turns(uint32_t *word, int each)
{
	for (int mine = 0; mine < each;) {
		jia_lock(lock_of(0));
		if (*word % (uint32_t)hostc == (uint32_t)jia_pid) {
			++*word;
			mine++;
		}
		jia_unlock(lock_of(0));
	}
}

void bench_row_hand_over(struct bench *b)
{
	contend(b, "hand_over", TURNS, take_turns);
}

/* --- barriers ------------------------------------------------------------------------ */

/* @n meetings, one after the other; each is a sample. */
static void meetings(struct bench *b, int n, void (*meet)(void))
{
	meet();
	if (!jia_pid)
		bench_events_begin(b);
	for (int i = 0; i < n; i++) {
		if (!jia_pid)
			bench_time_begin(b);
		meet();
		if (!jia_pid)
			bench_time_end(b, 1);
	}
	if (!jia_pid)
		bench_events_end(b, n);
}

void bench_row_wait(struct bench *b)
{
	meetings(b, BARRIERS, jia_wait);
}

void bench_row_barrier(struct bench *b)
{
	meetings(b, BARRIERS, jia_barrier);
}

void bench_row_barrier_dirty(struct bench *b)
{
	struct bench_result *result = b->result;
	char *p = jia_malloc_on((size_t)DIRTY * PAGE, (size_t)DIRTY * PAGE,
				b->home);

	for (int i = 0; i < WARM + 10; i++) {
		b->result = i < WARM ? NULL : result;
		b->fill++;
		for (size_t k = 0; k < DIRTY && !jia_pid; k++)
			memset(p + k * PAGE, b->fill, 64);
		jia_wait();
		if (!jia_pid) {
			bench_events_begin(b);
			bench_time_begin(b);
		}
		jia_barrier();
		if (!jia_pid) {
			bench_time_end(b, 1);
			bench_events_end(b, 1);
		}
		if ((unsigned char)p[(DIRTY - 1) * PAGE] != b->fill)
			jia_error("barrier_dirty: a write was not seen");
		jia_barrier();
	}
	b->result = result;
	jia_free(p);
}

/* Rank 0 caches @mib of the other's pages, of which nobody writes any. */
static void barrier_cached(struct bench *b, size_t mib)
{
	size_t bytes = mib << 20;
	volatile char *p = jia_malloc_on(bytes, bytes, b->home);
	int sum = 0;

	for (size_t at = 0; at < bytes && !jia_pid; at += PAGE)
		sum += p[at];
	if (sum)
		jia_error("fresh memory is not zero");
	/* The homes notice what is shared now, once. */
	for (int i = 0; i < WARM; i++)
		jia_barrier();
	meetings(b, BARRIERS, jia_barrier);
	jia_free((void *)(uintptr_t)p);
}

void bench_row_barrier_64m(struct bench *b)
{
	barrier_cached(b, 64);
}

void bench_row_barrier_4g(struct bench *b)
{
	barrier_cached(b, 4096);
}
