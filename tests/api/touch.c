/* SPDX-License-Identifier: MIT */
/* touch.c - jia_touch() and jia_untouch(). */
#include <errno.h>
#include <unistd.h>

#include "api.h"

enum {
	BYTES = 20 * PAGE,
	HALF = BYTES / 2
};

static int pipe_end[2];
static unsigned char *area; /* BYTES of each rank, homes in turn */

static void begin(void)
{
	CHECK(!pipe(pipe_end), "no pipe");
	area = jia_malloc_on((size_t)BYTES * (size_t)hostc, PAGE, 1 % hostc);
	jia_barrier();
}

/* What a rank puts into the pipe, and somebody else into memory. */
static unsigned char byte(int round, int i)
{
	return (unsigned char)(round * 13 + jia_pid * 7 + i + (i >> 8));
}

static void fill_pipe(int round, int len)
{
	static unsigned char buf[BYTES];

	for (int i = 0; i < len; i++)
		buf[i] = byte(round, i);
	CHECK(write(pipe_end[1], buf, (size_t)len) == len, "a full pipe");
}

static void read_into(unsigned char *at, int len, int mode)
{
	jia_touch(at, (size_t)len, mode);
	for (int got = 0, n; got < len; got += n) {
		n = (int)read(pipe_end[0], at + got, (size_t)(len - got));
		CHECK(n > 0, "read(2): %s", strerror(errno));
	}
	jia_untouch(at, (size_t)len);
}

/* All others look at what rank @r has read. */
static void check_all(int round, int skip, int len)
{
	for (int k = 0; k < hostc; k++) {
		int r = (jia_pid + k) % hostc, me = jia_pid;
		const unsigned char *p = area + (size_t)BYTES * (size_t)r;

		jia_pid = r; /* byte() is of that rank */
		for (int i = 0; i < len; i++)
			CHECK(p[skip + i] == byte(round, i),
			      "round %d rank %d byte %d is %d", round, r, i,
			      p[skip + i]);
		jia_pid = me;
	}
}

static void read_rounds(int mode)
{
	begin();
	for (int round = 1; round <= 8; round++) {
		int skip = round % 3 ? round * 1000 : 0;
		int len = round % 2 ? HALF : HALF + 3 * PAGE + 77;

		unsigned char *at = area + (size_t)BYTES * (size_t)jia_pid;

		fill_pipe(round, len);
		read_into(at + skip, len, mode);
		jia_barrier();
		check_all(round, skip, len);
		jia_barrier();
	}
}

static void read_2_into_shared_memory(void)
{
	read_rounds(JIA_WRITE);
}

static void read_2_overwrites_without_fetching(void)
{
	read_rounds(JIA_OVERWRITE);
}

/* Old bytes here that happen to be the new ones must be sent, too. */
static void what_is_overwritten_is_sent_whole(void)
{
	unsigned char *at;

	begin();
	at = area; /* the same pages for all, one after the other */
	for (int round = 0; round < 6 * hostc; round++) {
		unsigned char old = (unsigned char)(round % 3);

		if (round % hostc == jia_pid) {
			jia_lock(1);
			jia_touch(at + 100, HALF, JIA_OVERWRITE);
			memset(at + 100, old, HALF);
			jia_untouch(at + 100, HALF);
			jia_unlock(1);
		}
		jia_wait();
		jia_lock(1);
		CHECK(!at[99] && !at[100 + HALF], "too much was written");
		for (int i = 0; i < HALF; i++)
			CHECK(at[100 + i] == old, "round %d byte %d: %d", round,
			      i, at[100 + i]);
		jia_unlock(1);
		jia_wait();
	}
}

/* Every other byte is as it was: that is no reason to send them one by one. */
static void an_overwritten_copy_is_sent_in_one_piece(void)
{
	begin();
	for (int round = 1; round <= 4; round++) {
		unsigned long before = jia_counter("diff_runs");

		if (jia_pid == 0) {
			jia_touch(area, HALF, JIA_OVERWRITE);
			for (int i = 0; i < HALF; i++)
				area[i] = (unsigned char)(i % 2 ? 7 : round);
			jia_untouch(area, HALF);
		}
		jia_barrier();
		CHECK(jia_counter("diff_runs") - before <= HALF / PAGE,
		      "round %d: %lu pieces", round,
		      jia_counter("diff_runs") - before);
		for (int i = 0; i < HALF; i++)
			CHECK(area[i] == (i % 2 ? 7 : round),
			      "round %d byte %d: %d", round, i, area[i]);
		jia_barrier();
	}
}

static void write_2_from_shared_memory(void)
{
	static unsigned char buf[BYTES];
	unsigned char *at;

	begin();
	at = area + (size_t)BYTES * (size_t)jia_pid;
	for (int i = 0; i < HALF; i++)
		at[i] = byte(9, i);
	jia_barrier();
	at = area + (size_t)BYTES * (size_t)((jia_pid + 1) % hostc);
	jia_touch(at, HALF, JIA_READ);
	CHECK(write(pipe_end[1], at, HALF) == HALF, "write(2): %s",
	      strerror(errno));
	jia_untouch(at, HALF);
	CHECK(read(pipe_end[0], buf, BYTES) == HALF, "read");
	CHECK(!memcmp(buf, at, HALF), "other bytes");
}

/* Another thread's locks must not take the pages away meanwhile. */
static volatile int stop;

static void *lock_on(void *arg)
{
	volatile int *count = page_int(2);

	while (!stop) {
		jia_lock(3);
		++*count;
		for (int r = 0; r < hostc; r++)
			area[(size_t)BYTES * (size_t)r + BYTES - 1]++;
		jia_unlock(3);
	}
	return arg;
}

static void a_held_range_stays_accessible(void)
{
	unsigned char *at, buf[8];
	pthread_t t;

	begin();
	at = area + (size_t)BYTES * (size_t)jia_pid;
	CHECK(!pthread_create(&t, NULL, lock_on, NULL), "no thread");
	for (int round = 0; round < 200; round++) {
		int n = 0;

		/* The last page is written by all, under the lock. */
		jia_touch(at, BYTES, round % 2 ? JIA_WRITE : JIA_READ);
		for (int i = 0; i < 20; i++) {
			n = (int)write(pipe_end[1],
				       at + (size_t)PAGE * (size_t)i, 8);
			CHECK(n == 8, "write(2): %s", strerror(errno));
			n = (int)read(
				pipe_end[0],
				round % 2 ? at + (size_t)PAGE * (size_t)i : buf,
				8);
			CHECK(n == 8, "read(2): %s", strerror(errno));
		}
		jia_untouch(at, BYTES);
	}
	stop = 1;
	pthread_join(t, NULL);
}

/* Ranges overlap, are many, and end with the next synchronisation. */
static void holds_end_with_a_synchronisation(void)
{
	begin();
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 16; i++)
			jia_touch(area + 100 * i, 5000, i % 3);
		if (round % 2) {
			jia_lock(1);
			jia_unlock(1);
		} else {
			jia_barrier();
		}
	}
	jia_touch(area, 0, JIA_WRITE);
	jia_untouch(area, 0);
}

#define ROW(name)           \
	{                   \
#name, name \
	}
const struct api_case touch_cases[] = {
	ROW(read_2_into_shared_memory),
	ROW(read_2_overwrites_without_fetching),
	ROW(what_is_overwritten_is_sent_whole),
	ROW(an_overwritten_copy_is_sent_in_one_piece),
	ROW(write_2_from_shared_memory),
	ROW(a_held_range_stays_accessible),
	ROW(holds_end_with_a_synchronisation),
	{ NULL, NULL },
};
