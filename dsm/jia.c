/* SPDX-License-Identifier: MIT */
/*
 * jia.c - the public calls: check what the program says, then do it.
 *
 * Role:    everything that a wrong argument or a call at the wrong time can do
 *          is found here; below, arguments are right.
 * Threads: any thread may call lock, unlock and barrier; collective calls are
 *          made by one thread of each rank.
 * Locks:   none of its own.
 */
#include "jia.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "dsm_call.h"
#include "dsm_host.h"

_Static_assert((int)Maxlocks == (int)DSM_LOCKS, "jia.h promises the limit");

int jia_pid;
int hostc = 1;
int jia_lock_index;

static void refuse_child(struct dsm_host *h)
{
	if (h->child)
		dsm_host_fail(
			h,
			"called by a forked child, which is not a rank; it may only exec or exit");
}

/* The host, if the call may be made now; else the job ends. */
static struct dsm_host *enter(const char *call, const void *site)
{
	struct dsm_host *h = dsm_host_current;

	dsm_host_entered(call, site);
	if (!h)
		dsm_host_fail(NULL, "called before jia_init()");
	refuse_child(h);
	if (h->exited)
		dsm_host_fail(h, "called after jia_exit()");
	return h;
}

static void leave(void)
{
	dsm_host_entered(NULL, NULL);
}

#define ENTER(call) enter(call, __builtin_return_address(0))

static void record(struct dsm_host *h, enum dsm_call_kind kind, uint64_t a,
		   uint64_t b, uint64_t c, const void *site)
{
	uint64_t args[3] = { a, b, c };

	dsm_enter(h->node, NULL);
	dsm_call_record(h->node, kind, args, (uintptr_t)site);
	dsm_leave(h->node);
}

/* One thread speaks for its rank; the others would be missed. */
static void refuse_threads(struct dsm_host *h)
{
	if (h->node->threads != 1)
		dsm_host_fail(
			h,
			"%u threads are declared; go back to jia_threads(1) first",
			h->node->threads);
}

static void meet(struct dsm_host *h, enum dsm_meeting kind, const void *site)
{
	struct dsm_thread *t = dsm_host_thread(h);

	if (t->depth)
		dsm_host_fail(h,
			      "called while holding lock %u; release it first",
			      t->scope[t->depth - 1].lock);
	t->site = (uintptr_t)site;
	dsm_barrier(t, kind);
}

/* --- start and end ----------------------------------------------------------------- */

void jia_init(int argc, char **argv)
{
	struct dsm_host *h = dsm_host_current;

	(void)argc, (void)argv;
	dsm_host_entered("jia_init", __builtin_return_address(0));
	if (h) {
		refuse_child(h);
		dsm_host_fail(h, "called twice");
	}
	h = dsm_host_open();
	jia_pid = sul_job_self(h->job);
	hostc = sul_job_ranks(h->job);
	dsm_host_thread(h);
	leave();
}

void jia_exit(void)
{
	struct dsm_host *h = ENTER("jia_exit");

	refuse_threads(h);
	meet(h, DSM_MEET_EXIT, __builtin_return_address(0));
	dsm_enter(h->node, NULL);
	dsm_host_phase(h, NULL);
	dsm_leave(h->node);
	h->exited = true;
	sul_job_set_state(h->job, SUL_RANK_EXITED);
	leave();
}

void jia_error(const char *fmt, ...)
{
	static const char cut[] = "...";
	char text[SUL_JOB_TEXT_MAX / 2];
	size_t len;
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) >= (int)sizeof(text))
		memcpy(text + sizeof(text) - sizeof(cut), cut, sizeof(cut));
	va_end(ap);
	len = strlen(text);
	while (len && text[len - 1] == '\n')
		text[--len] = 0;
	dsm_host_entered("jia_error", __builtin_return_address(0));
	dsm_host_fail(dsm_host_current, "%s", text);
}

/* --- memory -------------------------------------------------------------------------- */

static unsigned int unit_order(const struct dsm_host *h)
{
	unsigned int order = 0;

	while ((UINT64_C(4096) << order) < h->settings.value.block)
		order++;
	return order;
}

static void *allocate(struct dsm_host *h, uint64_t bytes, uint64_t block,
		      int64_t home, const void *site)
{
	uint32_t page;
	int err;

	if (!bytes)
		dsm_host_fail(h, "0 bytes were asked for");
	if (!block)
		dsm_host_fail(h, "the block size is 0; at least 1 byte");
	if (home < 0 || home >= hostc)
		dsm_host_fail(h, "rank %lld does not exist; 0 to %d do",
			      (long long)home, hostc - 1);
	record(h, DSM_CALL_jia_alloc, bytes, block, (uint64_t)home, site);
	err = dsm_alloc(h->node, bytes, block, (int)home, unit_order(h), &page);
	if (err == -ENOSPC)
		dsm_host_fail(h, "more than %d pieces of memory are allocated",
			      DSM_EXTENTS_MAX);
	if (err)
		dsm_host_fail(
			h,
			"%" PRIu64 " bytes do not fit: the region has %" PRIu64
			", of which %" PRIu64 " are in use; raise --set region",
			bytes, h->settings.value.region,
			dsm_heap_used(&h->node->heap) << 12);
	leave();
	return h->base + ((uint64_t)page << 12);
}

/* JIAJIA's sizes are ints; what is below 0 was meant to be more than 2 GiB. */
static uint64_t size_of(struct dsm_host *h, const char *what, int n)
{
	if (n < 0)
		dsm_host_fail(
			h,
			"the %s %d is negative; use jia_malloc() for 2 GiB and more",
			what, n);
	return (uint64_t)n;
}

static unsigned long allocate_int(struct dsm_host *h, int size, int block,
				  int home, const void *site)
{
	uint64_t bytes = size_of(h, "size", size);

	return (unsigned long)allocate(
		h, bytes, size_of(h, "block size", block), home, site);
}

unsigned long jia_alloc3(int size, int block, int starthost)
{
	struct dsm_host *h = ENTER("jia_alloc3");

	return allocate_int(h, size, block, starthost,
			    __builtin_return_address(0));
}

unsigned long jia_alloc2(int size, int block)
{
	struct dsm_host *h = ENTER("jia_alloc2");

	return allocate_int(h, size, block, 0, __builtin_return_address(0));
}

unsigned long jia_alloc2p(int size, int proc)
{
	struct dsm_host *h = ENTER("jia_alloc2p");

	return allocate_int(h, size, size, proc, __builtin_return_address(0));
}

unsigned long jia_alloc1(int size)
{
	struct dsm_host *h = ENTER("jia_alloc1");

	return allocate_int(h, size, size, 0, __builtin_return_address(0));
}

unsigned long jia_alloc(int size)
{
	struct dsm_host *h = ENTER("jia_alloc");
	int home = (int)(h->call_nr++ % (unsigned int)hostc);

	return allocate_int(h, size, size, home, __builtin_return_address(0));
}

void *jia_malloc(size_t bytes)
{
	struct dsm_host *h = ENTER("jia_malloc");
	uint64_t share = bytes / (unsigned int)hostc +
			 (bytes % (unsigned int)hostc != 0);

	return allocate(h, bytes, share ? share : 1, 0,
			__builtin_return_address(0));
}

void *jia_malloc_on(size_t bytes, size_t block, int home)
{
	struct dsm_host *h = ENTER("jia_malloc_on");

	return allocate(h, bytes, block, home, __builtin_return_address(0));
}

static struct dsm_extent allocation_at(struct dsm_host *h, const void *ptr)
{
	uint64_t off = (uint64_t)((const char *)ptr - h->base);
	struct dsm_extent e;

	if (off >= h->bytes || off & 4095 ||
	    !dsm_heap_find(&h->node->heap, (uint32_t)(off >> 12), &e) ||
	    e.page != off >> 12)
		dsm_host_fail(h, "%p is not the start of an allocation", ptr);
	return e;
}

void jia_free(void *ptr)
{
	struct dsm_host *h = ENTER("jia_free");
	const void *site = __builtin_return_address(0);
	struct dsm_extent e = { 0 };

	refuse_threads(h);
	if (ptr)
		e = allocation_at(h, ptr);
	record(h, DSM_CALL_jia_free, (uintptr_t)ptr, 0, 0, site);
	meet(h, DSM_MEET_BARRIER, site);
	if (ptr) {
		/* When a rank has left the barrier, others may still be
		 * refreshing copies from it; and nobody is given these pages
		 * again before all have let go. */
		meet(h, DSM_MEET_WAIT, site);
		dsm_free(h->node, e.page);
		meet(h, DSM_MEET_WAIT, site);
	}
	leave();
}

/* --- synchronisation ------------------------------------------------------------------- */

static void check_lock(struct dsm_host *h, int lock)
{
	if (lock < 0 || lock >= Maxlocks)
		dsm_host_fail(h, "lock %d does not exist; 0 to %d do", lock,
			      Maxlocks - 1);
}

void jia_lock(int lock)
{
	struct dsm_host *h = ENTER("jia_lock");
	struct dsm_thread *t = dsm_host_thread(h);

	check_lock(h, lock);
	for (uint32_t i = 0; i < t->depth; i++)
		if (t->scope[i].lock == (uint32_t)lock)
			dsm_host_fail(h,
				      "lock %d is held by this thread already",
				      lock);
	if (t->depth == DSM_NEST_MAX)
		dsm_host_fail(h, "more than %d locks held at once",
			      DSM_NEST_MAX);
	dsm_lock(t, (uint32_t)lock);
	dsm_tally_hold(h->tally, t->slot, t->depth - 1, lock,
		       (uintptr_t)__builtin_return_address(0));
	leave();
}

void jia_unlock(int lock)
{
	struct dsm_host *h = ENTER("jia_unlock");
	struct dsm_thread *t = dsm_host_thread(h);

	check_lock(h, lock);
	if (!t->depth)
		dsm_host_fail(h, "lock %d is not held by this thread", lock);
	if (t->scope[t->depth - 1].lock != (uint32_t)lock)
		dsm_host_fail(
			h,
			"lock %d cannot be released now: lock %u was taken last and goes first",
			lock, t->scope[t->depth - 1].lock);
	dsm_tally_hold(h->tally, t->slot, t->depth - 1, -1, 0);
	dsm_unlock(t, (uint32_t)lock);
	leave();
}

void jia_barrier(void)
{
	struct dsm_host *h = ENTER("jia_barrier");

	meet(h, DSM_MEET_BARRIER, __builtin_return_address(0));
	leave();
}

void jia_wait(void)
{
	struct dsm_host *h = ENTER("jia_wait");

	meet(h, DSM_MEET_WAIT, __builtin_return_address(0));
	leave();
}

/* Each thread needs a few units that are not evicted under it. */
static void check_threads(struct dsm_host *h, int n)
{
	const struct dsm_config *c = &h->settings.value;
	uint64_t least;

	if (n < 1 || n > (int)c->threads)
		dsm_host_fail(
			h,
			"%d threads were declared; 1 to %d are allowed (--set threads)",
			n, (int)c->threads);
	least = dsm_config_cache_min(c, (unsigned int)n);
	if (c->cache < least)
		dsm_host_fail(h,
			      "%d threads need a cache of at least %" PRIu64
			      " bytes, and it has %" PRIu64
			      "; raise --set cache",
			      n, least, c->cache);
}

void jia_threads(int n)
{
	struct dsm_host *h = ENTER("jia_threads");

	check_threads(h, n);
	dsm_enter(h->node, NULL);
	if (h->node->meeting) {
		dsm_leave(h->node);
		dsm_host_fail(h, "called while threads wait at a barrier");
	}
	h->node->threads = (uint32_t)n;
	dsm_leave(h->node);
	leave();
}

/* --- settings and measurement --------------------------------------------------------------- */

static void change(struct dsm_host *h, const char *name, const char *value,
		   const void *site)
{
	struct dsm_config before = h->settings.value;
	const uint64_t *was = (const uint64_t *)&before;
	const uint64_t *now = (const uint64_t *)&h->settings.value;
	char text[DSM_CONFIG_ERR_MAX];
	uint64_t row = 0;

	if (dsm_config_change(&h->settings, name, value, text))
		dsm_host_fail(h, "%s", text);
	while (row < DSM_CONFIG_NR && was[row] == now[row])
		row++;
	record(h, DSM_CALL_jia_set, row, row < DSM_CONFIG_NR ? now[row] : 0, 0,
	       site);
	if (h->node->threads > 1) /* a larger unit needs a larger cache */
		check_threads(h, (int)h->node->threads);
	dsm_enter(h->node, NULL);
	h->node->cfg = h->settings.value;
	dsm_leave(h->node);
}

void jia_set(const char *name, const char *value)
{
	struct dsm_host *h = ENTER("jia_set");

	if (!name || !value)
		dsm_host_fail(h, "name and value must not be NULL");
	change(h, name, value, __builtin_return_address(0));
	leave();
}

void jia_config(int key, int value)
{
	struct dsm_host *h = ENTER("jia_config");

	if (value != ON && value != OFF)
		dsm_host_fail(h, "the value %d is neither ON (1) nor OFF (0)",
			      value);
	switch (key) {
	case HMIG:
		change(h, "migrate", value ? "yes" : "no",
		       __builtin_return_address(0));
		break;
	case ADWD: /* unshared home pages are never looked at */
	case BROADCAST: /* barriers are trees */
	case LOADBAL:
	case WVEC:
		break;
	default:
		dsm_host_fail(
			h,
			"key %d does not exist; HMIG, ADWD, BROADCAST, LOADBAL and WVEC (0 to 4) do",
			key);
	}
	leave();
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t since_start_ns(const struct dsm_host *h)
{
	return now_ns() - h->start_ns;
}

float jia_clock(void)
{
	const struct dsm_host *h = dsm_host_current;

	return h ? (float)((double)since_start_ns(h) / 1e9) : 0.0f;
}

unsigned int jia_startstat(void)
{
	struct dsm_host *h = ENTER("jia_startstat");

	dsm_enter(h->node, NULL);
	h->node->stats =
		(void *)sul_job_rank(h->job, sul_job_self(h->job))->counters;
	h->node->place = h->tally->place;
	dsm_stat_zero(h->node->stats);
	sul_stats_read(h->port, &h->node->port_base);
	dsm_tally_start(h->tally, h->node->stats, now_ns());
	dsm_leave(h->node);
	leave();
	return (unsigned int)(since_start_ns(h) / 1000);
}

unsigned int jia_stopstat(void)
{
	struct dsm_host *h = ENTER("jia_stopstat");

	dsm_enter(h->node, NULL);
	dsm_stats_update(h->node);
	dsm_tally_stop(h->tally, h->node->stats, now_ns());
	h->node->stats = &h->node->own_stats; /* counts on, unseen */
	h->node->place = h->node->own_place;
	dsm_leave(h->node);
	leave();
	return (unsigned int)(since_start_ns(h) / 1000);
}

unsigned long jia_counter(const char *name)
{
	struct dsm_host *h = ENTER("jia_counter");
	unsigned int i = 0;
	uint64_t v;

	if (!name)
		dsm_host_fail(h, "the name must not be NULL");
	while (i < DSM_STAT_NR && strcmp(dsm_stat_row(i)->name, name))
		i++;
	if (i == DSM_STAT_NR)
		dsm_host_fail(h, "no counter is called %s; see jiarun --stats",
			      name);
	dsm_enter(h->node, NULL);
	dsm_stats_update(h->node);
	v = dsm_stat_read((const uint64_t *)h->node->stats + i);
	dsm_leave(h->node);
	leave();
	return v;
}

/* --- names for the statistics ---------------------------------------------------------------- */

static void check_name(struct dsm_host *h, const char *name)
{
	if (!name)
		dsm_host_fail(h, "the name must not be NULL");
	if (!dsm_tally_name_ok(name))
		dsm_host_fail(
			h,
			"a name has 1 to %d printable bytes, unlike \"%.40s\"",
			DSM_TALLY_NAME_MAX - 1, name);
}

void jia_phase(const char *name)
{
	struct dsm_host *h = ENTER("jia_phase");
	int err;

	if (name)
		check_name(h, name);
	dsm_enter(h->node, NULL);
	err = dsm_host_phase(h, name);
	dsm_leave(h->node);
	if (err)
		dsm_host_fail(h, "more than %d phases have been named",
			      DSM_PHASES_MAX);
	leave();
}

void jia_name(const void *ptr, const char *name)
{
	struct dsm_host *h = ENTER("jia_name");
	unsigned int row = 0;
	struct dsm_extent e;
	int err;

	check_name(h, name);
	e = allocation_at(h, ptr);
	dsm_enter(h->node, NULL);
	err = dsm_tally_place(h->tally, name, &row);
	if (!err) {
		memset(h->node->place_of + e.page, (int)row, e.pages);
		h->tally->place_bytes[row] += (uint64_t)e.pages << 12;
	}
	dsm_leave(h->node);
	if (err)
		dsm_host_fail(h, "more than %d names have been given",
			      DSM_PLACES_MAX - 1);
	leave();
}
