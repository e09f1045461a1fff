/* SPDX-License-Identifier: MIT */
/* lock.c - try-locks, locks by address, reader-writer locks. */
#include <sched.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "api.h"

enum {
	ROUNDS = 200,
	MANY = 5000
};

/* --- try-locks ------------------------------------------------------------------- */

static void trylock_finds_a_free_lock(void)
{
	if (!jia_pid) {
		CHECK(jia_trylock(5) == 1, "a free lock was not taken");
		CHECK(jia_trylock(5) == 0, "a lock was taken twice");
		CHECK(jia_trylock_at((void *)(long)shared) == 1, "not free");
		jia_unlock_at((void *)(long)shared);
		jia_unlock(5);
		CHECK(jia_trylock(5) == 1, "not free again");
		jia_unlock(5);
	}
}

static void trylock_does_not_wait(void)
{
	char c = 0;

	if (hostc == 1)
		return;
	if (!jia_pid) {
		jia_lock(5);
		for (int r = 1; r < hostc; r++)
			jia_send(&c, 1, r, 0);
		for (int r = 1; r < hostc; r++)
			jia_recv(&c, 1, r, 1);
		jia_unlock(5);
	} else {
		jia_recv(&c, 1, 0, 0);
		CHECK(jia_trylock(5) == 0, "a held lock was taken");
		jia_send(&c, 1, 0, 1);
	}
}

static void trylock_excludes_and_publishes(void)
{
	volatile int *count = page_int(1);

	for (int i = 0; i < ROUNDS; i++) {
		while (!jia_trylock(7))
			sched_yield();
		++*count;
		jia_unlock(7);
		if (i % 3 == 0) { /* among ordinary takers */
			jia_lock(7);
			++*count;
			jia_unlock(7);
		}
	}
	jia_barrier();
	CHECK(*count == hostc * (ROUNDS + (ROUNDS + 2) / 3), "counted %d",
	      *count);
}

/* --- by address --------------------------------------------------------------------- */

static void address_locks_exclude_and_publish(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		int p = (i + jia_pid) % 8;

		jia_lock_at((void *)(long)page_int(p));
		++*page_int(p);
		jia_unlock_at((void *)(long)page_int(p));
	}
	jia_barrier();
	for (int p = 0; p < 8; p++)
		CHECK(*page_int(p) == hostc * ROUNDS / 8, "page %d: %d", p,
		      *page_int(p));
}

static void *count_by_address(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int p = (i + (int)(long)arg) % 8;

		jia_lock_at((void *)(long)page_int(p));
		jia_lock(p);
		++*page_int(p);
		jia_unlock(p);
		jia_unlock_at((void *)(long)page_int(p));
	}
	return NULL;
}

static void threads_share_address_locks(void)
{
	with_threads(count_by_address);
	jia_barrier();
	for (int p = 0; p < 8; p++)
		CHECK(*page_int(p) == hostc * THREADS * ROUNDS / 8,
		      "page %d: %d", p, *page_int(p));
}

static char names[MANY * 8]; /* the same address on all ranks */

/* All make the same names at the same time. */
static void many_new_names_at_once(void)
{
	volatile int *count = page_int(3);

	for (int i = 0; i < MANY; i++) {
		int k = jia_pid % 2 ? MANY - 1 - i : i;

		jia_lock_at(&names[k * 8]);
		jia_unlock_at(&names[k * 8]);
	}
	for (int i = 0; i < MANY; i += 50) {
		jia_lock_at(&names[i * 8]);
		count[i / 50]++; /* each int has its lock */
		jia_unlock_at(&names[i * 8]);
	}
	jia_barrier();
	for (int i = 0; i < MANY / 50; i++)
		CHECK(count[i] == hostc, "lock %d was passed %d times", i,
		      count[i]);
}

/* Bytes of the job's memory that exist: it is a file without a name. */
static long long job_bytes(void)
{
	long long sum = 0;

	for (int fd = 0; fd < 512; fd++) {
		struct stat st;

		if (!fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_nlink)
			sum += st.st_blocks * 512LL;
	}
	return sum;
}

static void a_million_address_locks_take_little(void)
{
	enum {
		MILLION = 1000000
	};
	char *base = (char *)0x100000000000; /* nothing is stored there */
	long long before = job_bytes(), used;

	jia_barrier();
	for (long i = jia_pid; i < MILLION; i += hostc) {
		jia_lock_at(base + 64 * i);
		jia_unlock_at(base + 64 * i);
	}
	jia_barrier();
	used = job_bytes() - before;
	CHECK(used > MILLION * 16LL, "%lld bytes: that cannot be all", used);
	CHECK(used <= 64LL << 20, "%lld bytes", used);
}

/* --- readers and writers ------------------------------------------------------------ */

static void readers_are_inside_together(void)
{
	char c = 0;

	jia_rdlock(9);
	if (!jia_pid) {
		for (int r = 1; r < hostc; r++)
			jia_recv(&c, 1, r, 0);
		for (int r = 1; r < hostc; r++)
			jia_send(&c, 1, r, 1);
	} else {
		jia_send(&c, 1, 0, 0);
		jia_recv(&c, 1, 0, 1);
	}
	jia_rwunlock(9);
}

static void *read_and_write(void *arg)
{
	void *name = (void *)(long)page_int(20);
	volatile int *a = page_int(10), *b = page_int(11);

	for (int i = 0; i < ROUNDS; i++) {
		if ((i + (long)arg) % 4) {
			jia_rdlock_at(name);
			CHECK(*a == *b, "a reader sees %d and %d", *a, *b);
		} else {
			jia_wrlock_at(name);
			++*a;
			++*b;
		}
		jia_rwunlock_at(name);
	}
	return NULL;
}

static void writers_are_alone(void)
{
	read_and_write((void *)(long)jia_pid);
	jia_barrier();
	CHECK(*page_int(10) == hostc * ROUNDS / 4, "%d writes", *page_int(10));
}

static void threads_read_and_write(void)
{
	with_threads(read_and_write);
	jia_barrier();
	CHECK(*page_int(10) == hostc * THREADS * ROUNDS / 4, "%d writes",
	      *page_int(10));
}

static void read_locks_nest_with_others(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		jia_lock(1);
		jia_rdlock(2);
		jia_wrlock(3);
		++*page_int(4);
		jia_rwunlock(3);
		jia_rwunlock(2);
		jia_unlock(1);
	}
	jia_barrier();
	CHECK(*page_int(4) == hostc * ROUNDS, "counted %d", *page_int(4));
}

/* What a reader wrote (a place of its own) is seen by the next writer. */
static void what_a_reader_wrote_is_published(void)
{
	volatile unsigned char *mine = shared + 30 * PAGE;
	int sum = 0;

	jia_wrlock(4); /* everybody has a copy */
	for (int r = 0; r < hostc; r++)
		sum += mine[r];
	*page_int(31) += 0 * sum;
	jia_rwunlock(4);
	jia_wait();
	jia_rdlock(4);
	mine[jia_pid] = (unsigned char)(jia_pid + 1);
	jia_rwunlock(4);
	jia_wait();
	jia_wrlock(4);
	for (int r = 0; r < hostc; r++)
		CHECK(mine[r] == r + 1, "byte of rank %d is %d", r, mine[r]);
	jia_rwunlock(4);
}

#define ROW(name)           \
	{                   \
#name, name \
	}
/* --- what a lock brings along ------------------------------------------------- */

static void take(bool named)
{
	if (named)
		jia_lock_at((const void *)(uintptr_t)shared);
	else
		jia_lock(1);
}

static void give(bool named)
{
	if (named)
		jia_unlock_at((const void *)(uintptr_t)shared);
	else
		jia_unlock(1);
}

/* Messages for taking a lock that brings news of a page that is not cached. */
static void take_after_others(bool named, int round, unsigned long most)
{
	unsigned long before;

	if (!jia_pid) {
		take(named);
		page_int(1)[round]++;
		give(named);
	}
	jia_wait();
	before = jia_counter("msgs_sent");
	if (jia_pid == hostc - 1)
		take(named);
	/* Who uses a name first has to find its place. */
	CHECK(round < 2 || jia_counter("msgs_sent") - before <= most,
	      "%lu messages, and %lu are enough",
	      jia_counter("msgs_sent") - before, most);
	if (jia_pid == hostc - 1)
		give(named);
	jia_wait();
}

/* Swap, last release; a named lock has its notices elsewhere.  Rank 0 has kept it:
 * the claim there, what lies there, and that it was read.  There once were four
 * more, one after the other, for the release, the log and its head. */
static void a_lock_brings_its_notices_along(void)
{
	for (int i = 0; i < 8; i++) {
		take_after_others(false, i, 5);
		take_after_others(true, i, 6);
	}
}

/* --- who keeps a lock ------------------------------------------------------------- */

enum {
	AGAIN = 100
};

/* Messages for taking lock @l AGAIN times, when it was ours already. */
static unsigned long count_alone(const int *l, bool named)
{
	unsigned long before = 0;

	for (int i = 0; i <= AGAIN; i++) {
		if (named)
			jia_lock_at(l);
		else
			jia_lock(*l);
		if (named)
			jia_unlock_at(l);
		else
			jia_unlock(*l);
		if (!i)
			before = jia_counter("msgs_sent");
	}
	return jia_counter("msgs_sent") - before;
}

/* Each rank its own ones, which others manage, or not. */
static void a_lock_is_taken_again_without_a_message(void)
{
	static const int named[64];
	int at = jia_pid * 64 % (Maxlocks - 64);

	for (int i = 0; i < 64; i++) {
		int lock = at + i;

		CHECK(!count_alone(&lock, false), "lock %d: messages", lock);
	}
	for (int i = jia_pid; i < 64; i += hostc)
		CHECK(!count_alone(&named[i], true), "name %d: messages", i);
	jia_barrier();
}

/* All ranks want what one of them has kept, and wait, or try. */
static void a_lock_that_was_kept_goes_to_who_wants_it(void)
{
	volatile int *sum = page_int(1);

	for (int r = 0; r < ROUNDS; r++) {
		if (jia_pid == r % hostc)
			for (int l = 1; l < 20; l++) {
				jia_lock(l);
				sum[l]++;
				jia_unlock(l);
			}
		jia_wait();
		if (jia_pid == (r + 1) % hostc)
			for (int l = 1; l < 20; l++) {
				CHECK(jia_trylock(l), "lock %d is not free", l);
				sum[l]++;
				jia_unlock(l);
			}
		jia_wait();
		for (int l = 1; l < 20; l++) {
			jia_lock(l);
			sum[l]++;
			jia_unlock(l);
		}
	}
	jia_barrier();
	for (int l = 1; l < 20; l++)
		CHECK(sum[l] == ROUNDS * (hostc + 2), "%d under lock %d",
		      sum[l], l);
}

/* Counts under locks that the rank has kept, and one that it holds meanwhile. */
static void threads_take_what_their_rank_has_kept(void)
{
	for (int p = 0; p < 8; p++) {
		jia_lock(p);
		jia_unlock(p);
		jia_lock_at((void *)(long)page_int(p));
		jia_unlock_at((void *)(long)page_int(p));
	}
	jia_lock(20 + 2 * jia_pid + 1);
	with_threads(count_by_address);
	jia_unlock(20 + 2 * jia_pid + 1);
	jia_barrier();
	for (int p = 0; p < 8; p++)
		CHECK(*page_int(p) == hostc * THREADS * ROUNDS / 8,
		      "page %d: %d", p, *page_int(p));
}

const struct api_case lock_cases[] = {
	ROW(trylock_finds_a_free_lock),
	ROW(trylock_does_not_wait),
	ROW(trylock_excludes_and_publishes),
	ROW(address_locks_exclude_and_publish),
	ROW(threads_share_address_locks),
	ROW(many_new_names_at_once),
	ROW(a_lock_brings_its_notices_along),
	ROW(a_lock_is_taken_again_without_a_message),
	ROW(a_lock_that_was_kept_goes_to_who_wants_it),
	ROW(threads_take_what_their_rank_has_kept),
	ROW(a_million_address_locks_take_little),
	ROW(readers_are_inside_together),
	ROW(writers_are_alone),
	ROW(threads_read_and_write),
	ROW(read_locks_nest_with_others),
	ROW(what_a_reader_wrote_is_published),
	{ NULL, NULL },
};
