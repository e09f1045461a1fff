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
	TURNS = 50, /* to and fro */
	HELD = 1000, /* no turn: rank 0 has the lock, it can begin */
	BARRIERS = 40,
	DIRTY = 64,
	WARM = 5
};

static int lock_of(int rank)
{
	return hostc + rank;
}

/* --- locks ------------------------------------------------------------------------- */

/* @nr times, the next one of the same manager each time if there is a @step. */
static void take_and_give(int lock, int nr, int step)
{
	for (int i = 0; i < nr; i++) {
		jia_lock(lock + i * step);
		jia_unlock(lock + i * step);
	}
}

static void lock_free(struct bench *b, int lock, int nr, int step)
{
	jia_wait();
	if (!jia_pid) {
		bench_events_begin(b);
		bench_time_begin(b);
		take_and_give(lock, nr, step);
		bench_time_end(b, nr);
		bench_events_end(b, nr);
	}
	jia_wait();
}

void bench_row_lock_local(struct bench *b)
{
	lock_free(b, lock_of(0), PAIRS, 0);
}

void bench_row_lock_again(struct bench *b)
{
	int lock = lock_of(b->home);

	if (!jia_pid)
		take_and_give(lock, WARM, 0);
	lock_free(b, lock, PAIRS, 0);
}

/* Each once: a second time it would be with us. */
void bench_row_lock_remote(struct bench *b)
{
	int lock = lock_of(b->home), nr = Maxlocks / hostc - 1;

	if (nr > PAIRS)
		nr = PAIRS;
	if (jia_pid == b->home)
		take_and_give(lock, nr, hostc);
	lock_free(b, lock, nr, hostc);
}

static void increment(uint32_t *word, int each)
{
	for (int i = 0; i < each; i++) {
		jia_lock(lock_of(0));
		++*word;
		jia_unlock(lock_of(0));
	}
}

/* Timed from when all are there until the last is done, per increment of
 * anybody. */
void bench_row_lock_counter(struct bench *b)
{
	const int each = INCREMENTS;
	struct bench_result *result = b->result;
	uint32_t *word = jia_malloc_on(PAGE, PAGE, b->home);

	for (int i = 0; i < 3; i++) {
		b->result = i ? result : NULL; /* first once to warm up */
		if (!jia_pid)
			bench_events_begin(b);
		jia_wait();
		if (!jia_pid)
			bench_time_begin(b);
		increment(word, each);
		if (!jia_pid)
			bench_events_end(b, each);
		jia_wait();
		if (!jia_pid)
			bench_time_end(b, (double)each * hostc);
	}
	b->result = result;
	jia_barrier();
	if (*word != (uint32_t)(3 * each * hostc))
		jia_error("lock_counter: %" PRIu32 ", and it must be %d", *word,
			  3 * each * hostc);
	jia_free(word);
}

/* --- from hand to hand ------------------------------------------------------------------
 *
 * Rank 0 and another give a lock to and fro.  Who wants it says so on the board
 * and queues; the holder sees that, gives him time to queue (or to fall
 * asleep), writes to the page that the lock guards, notes the time and unlocks.
 * Rank 0 takes the samples in which it is the one who gets the lock.
 */

static void linger(uint64_t us)
{
	uint64_t end = bench_now_ns() + us * 1000;

	while (bench_now_ns() < end)
		;
}

static void give(struct bench *b, uint32_t i, uint64_t pause_us,
		 volatile uint32_t *word)
{
	bench_await(&b->board->asked, i);
	linger(pause_us);
	*word = i;
	__atomic_store_n(&b->board->gave_ns, bench_now_ns(), __ATOMIC_RELEASE);
	jia_unlock(lock_of(0));
}

static void get(struct bench *b, uint32_t i, volatile uint32_t *word)
{
	uint64_t start, end;
	uint32_t seen;

	/* He whom we gave it to has it: else we could overtake him. */
	bench_await(&b->board->got, i - 1);
	bench_set(&b->board->asked, i);
	jia_lock(lock_of(0));
	bench_set(&b->board->got, i);
	seen = *word;
	end = bench_now_ns();
	start = __atomic_load_n(&b->board->gave_ns, __ATOMIC_ACQUIRE);
	if (seen != i)
		jia_error("hand_over: %" PRIu32 " was seen, and %" PRIu32
			  " was written",
			  seen, i);
	if (b->result && !jia_pid)
		bench_add(&b->result->op, (double)(end - start) / 1e3);
}

static void to_and_fro(struct bench *b, uint64_t pause_us,
		       volatile uint32_t *word)
{
	struct bench_result *result = b->result;
	bool gives = !jia_pid;

	for (uint32_t i = 1; i <= 2 * TURNS; i++, gives = !gives) {
		b->result = i <= 2 * WARM ? NULL : result;
		if (i == 2 * WARM + 1 && !jia_pid)
			bench_events_begin(b);
		if (gives)
			give(b, i, pause_us, word);
		else
			get(b, i, word);
	}
	if (!jia_pid)
		bench_events_end(b, 2 * (TURNS - WARM));
}

static void hand_over(struct bench *b, uint64_t pause_us)
{
	uint32_t *word = jia_malloc_on(PAGE, PAGE, b->home);

	if (!jia_pid) {
		bench_set(&b->board->asked, 0);
		bench_set(&b->board->got, 0);
	}
	jia_barrier();
	if (!jia_pid) {
		jia_lock(lock_of(0));
		bench_set(&b->board->asked, HELD);
		to_and_fro(b, pause_us, word);
		jia_unlock(lock_of(0));
	} else if (jia_pid == b->home) {
		bench_await(&b->board->asked, HELD);
		to_and_fro(b, pause_us, word);
	}
	jia_wait();
	jia_free(word);
}

void bench_row_hand_over(struct bench *b)
{
	hand_over(b, 10);
}

void bench_row_hand_over_wake(struct bench *b)
{
	hand_over(b, 300);
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
		if ((unsigned char)p[(size_t)(DIRTY - 1) * PAGE] != b->fill)
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
