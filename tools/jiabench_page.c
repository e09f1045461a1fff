/* SPDX-License-Identifier: MIT */
/*
 * jiabench_page.c - the rows about pages: read, written, released.
 *
 * Role:      rank 0 does what is measured, on pages whose home is another rank.
 * Invariant: a page that is read cold has been written by its home, is on
 *            memory that was given back before, and was never touched here.
 * Threads:   the rank's only one.  All rows are collective.
 *
 * While rank 0 measures, the others sleep in jia_wait().
 */
#include "jiabench.h"

#include <string.h>

#include "jia.h"

enum {
	PAGE = 4096,
	CHUNK = 16, /* pages: the default of the parameter `populate` */
	CHUNKS = 16, /* in a repetition, a power of two */
	RUNS = 4, /* in a repetition */
	FEW = 8, /* pages out of order in a chunk */
	DIRTY = 64, /* pages in a release */
	WARM = 5, /* iterations before it counts */
	MANY = 10000, /* watched pages */
	MANY_UNLOCKS = 6 /* below the default of `keep` */
};

/* In no order that could be foreseen, the first page of a chunk left out. */
static const unsigned int order[FEW] = { 9, 3, 13, 6, 11, 1, 15, 4 };

struct fresh {
	void *alloc;
	volatile char *page; /* at the start of a chunk */
};

static volatile char *at(const struct fresh *f, unsigned int page)
{
	return f->page + (size_t)page * PAGE;
}

/* Triangular numbers: each chunk once, no constant stride. */
static unsigned int chunk(unsigned int i)
{
	return i * (i + 1) / 2 % CHUNKS * CHUNK;
}

/* @pages of another home, all written there, never touched here. */
static struct fresh fresh_open(struct bench *b, unsigned int pages)
{
	size_t bytes = (size_t)(pages + CHUNK) * PAGE;
	size_t align = (size_t)CHUNK * PAGE;
	struct fresh f;

	f.alloc = jia_malloc_on(bytes, bytes, b->home);
	f.page = (volatile char *)f.alloc +
		 (align - (uintptr_t)f.alloc % align) % align;
	b->fill++;
	if (jia_pid == b->home)
		for (unsigned int p = 0; p < pages; p++)
			memset((char *)f.alloc +
				       (at(&f, p) - (volatile char *)f.alloc),
			       b->fill, PAGE);
	jia_barrier();
	return f;
}

static void fresh_close(struct fresh *f)
{
	jia_wait();
	jia_free(f->alloc);
}

/* A load that must have the home's value. */
static void load(const struct bench *b, const volatile char *p)
{
	if ((unsigned char)*p != b->fill)
		jia_error("a page read as %d, and its home wrote %d",
			  (unsigned char)*p, b->fill);
}

/* --- cold pages ----------------------------------------------------------------- */

void bench_row_read_first(struct bench *b)
{
	struct fresh f = fresh_open(b, CHUNKS * CHUNK);

	if (!jia_pid) {
		bench_events_begin(b);
		for (unsigned int i = 0; i < CHUNKS; i++) {
			const volatile char *p = at(&f, chunk(i));

			bench_time_begin(b);
			load(b, p);
			bench_time_end(b, 1);
		}
		bench_events_end(b, CHUNKS);
	}
	fresh_close(&f);
}

enum use {
	LOAD,
	STORE,
	LOAD_THEN_STORE
};

/* Pages out of order in chunks whose first page has been loaded. */
static void use_cold(struct bench *b, enum use use)
{
	struct fresh f = fresh_open(b, CHUNKS * CHUNK);

	for (unsigned int c = 0; c < CHUNKS && !jia_pid; c++) {
		volatile char *base = at(&f, chunk(c));

		load(b, base);
		for (int i = 0; i < FEW && use == LOAD_THEN_STORE; i++)
			load(b, base + (size_t)order[i] * PAGE);
		bench_events_begin(b);
		for (int i = 0; i < FEW; i++) {
			volatile char *p = base + (size_t)order[i] * PAGE;

			bench_time_begin(b);
			if (use == LOAD)
				load(b, p);
			else
				*p = 1;
			bench_time_end(b, 1);
		}
		bench_events_end(b, FEW);
	}
	fresh_close(&f);
}

void bench_row_read_chunk(struct bench *b)
{
	use_cold(b, LOAD);
}

void bench_row_write_first(struct bench *b)
{
	use_cold(b, STORE);
}

void bench_row_write_upgrade(struct bench *b)
{
	use_cold(b, LOAD_THEN_STORE);
}

/* How far ahead is fetched may grow with the run: a run is one sample. */
void bench_row_read_sequence(struct bench *b)
{
	for (int run = 0; run < RUNS; run++) {
		struct fresh f = fresh_open(b, CHUNKS * CHUNK);

		if (!jia_pid) {
			bench_events_begin(b);
			bench_time_begin(b);
			for (unsigned int p = 0; p < CHUNKS * CHUNK; p++)
				load(b, at(&f, p));
			bench_time_end(b, CHUNKS * CHUNK);
			bench_events_end(b, CHUNKS * CHUNK);
		}
		fresh_close(&f);
	}
}

/* --- pages in steady use ---------------------------------------------------------- */

/* Do nothing that counts while @i is a warming up. */
static void warm(struct bench *b, struct bench_result *result, int i)
{
	b->result = i < WARM ? NULL : result;
}

void bench_row_read_again(struct bench *b)
{
	struct bench_result *result = b->result;
	struct fresh f = fresh_open(b, DIRTY);

	for (int i = 0; i < WARM + 10; i++) {
		warm(b, result, i);
		b->fill++;
		for (unsigned int p = 0; p < DIRTY && jia_pid == b->home; p++)
			*at(&f, p) = (char)b->fill;
		jia_wait();
		if (jia_pid) {
			jia_barrier();
		} else {
			bench_events_begin(b);
			bench_time_begin(b);
			jia_barrier();
			for (unsigned int p = 0; p < DIRTY; p++)
				load(b, at(&f, p));
			bench_time_end(b, DIRTY);
			bench_events_end(b, DIRTY);
		}
		jia_barrier();
	}
	b->result = result;
	fresh_close(&f);
}

/* A lock whose manager is rank @rank. */
static int lock_of(int rank)
{
	return hostc + rank;
}

void bench_row_rewrite(struct bench *b)
{
	struct bench_result *result = b->result;
	struct fresh f = fresh_open(b, DIRTY);

	for (int i = 0; i < WARM + 20 && !jia_pid; i++) {
		warm(b, result, i);
		b->fill++;
		jia_lock(lock_of(0));
		bench_events_begin(b);
		bench_time_begin(b);
		for (unsigned int p = 0; p < DIRTY; p++)
			*at(&f, p) = (char)b->fill;
		bench_time_end(b, DIRTY);
		bench_events_end(b, DIRTY);
		jia_unlock(lock_of(0));
	}
	b->result = result;
	fresh_close(&f);
}

/* --- release ------------------------------------------------------------------------- */

/* Change bytes @from, @from + @step, ... in runs of @run, to the page's end or
 * for @runs runs. */
static void scribble(struct bench *b, volatile char *p, int runs, int run,
		     int step)
{
	for (int r = 0; r < runs; r++)
		for (int i = 0; i < run; i++)
			p[r * step + i] = (char)b->fill;
}

/* @runs runs of @run bytes, @step bytes apart, in each of DIRTY pages. */
static void release(struct bench *b, int runs, int run, int step)
{
	struct bench_result *result = b->result;
	struct fresh f = fresh_open(b, DIRTY);

	for (int i = 0; i < WARM + 10 && !jia_pid; i++) {
		warm(b, result, i);
		b->fill++;
		jia_lock(lock_of(0));
		for (unsigned int p = 0; p < DIRTY; p++)
			scribble(b, at(&f, p), runs, run, step);
		bench_events_begin(b);
		bench_time_begin(b);
		jia_unlock(lock_of(0));
		bench_time_end(b, DIRTY);
		bench_events_end(b, DIRTY);
	}
	b->result = result;
	fresh_close(&f);
}

void bench_row_release_1(struct bench *b)
{
	release(b, 1, 64, PAGE);
}

void bench_row_release_64(struct bench *b)
{
	release(b, 64, 8, 64);
}

void bench_row_release_bytes(struct bench *b)
{
	release(b, PAGE / 2, 1, 2);
}

/*
 * All pages are written and released, so that they are watched; then unlocks
 * follow with one of them dirty, fewer than it takes by default to guard a page.
 */
void bench_row_unlock_watched(struct bench *b)
{
	struct fresh f = fresh_open(b, MANY);

	b->fill++;
	if (!jia_pid) {
		jia_lock(lock_of(0));
		for (unsigned int p = 0; p < MANY; p++)
			*at(&f, p) = (char)b->fill;
		jia_unlock(lock_of(0));
	}
	for (int i = 0; i < MANY_UNLOCKS && !jia_pid; i++) {
		b->fill++;
		jia_lock(lock_of(0));
		*at(&f, MANY / 2) = (char)b->fill;
		bench_events_begin(b);
		bench_time_begin(b);
		jia_unlock(lock_of(0));
		bench_time_end(b, 1);
		bench_events_end(b, 1);
	}
	fresh_close(&f);
}
