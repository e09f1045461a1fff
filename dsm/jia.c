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

#include "dsm_crew.h"
#include "dsm_public.h"

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
struct dsm_host *dsm_public_enter(const char *call, const void *site)
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

void dsm_public_leave(void)
{
	dsm_host_entered(NULL, NULL);
}

void dsm_public_spent(struct dsm_host *h, enum dsm_spot_kind kind,
		      const void *site, uint64_t which, uint64_t start_ns)
{
	uint64_t ns = dsm_host_now_ns() - start_ns;

	if (!h->spots)
		return;
	dsm_enter(h->node, NULL);
	dsm_spot_add(h->node->spots, kind, (uintptr_t)site, which, ns);
	dsm_leave(h->node);
}

void dsm_public_record(struct dsm_host *h, enum dsm_call_kind kind, uint64_t a,
		       uint64_t b, uint64_t c, const void *site)
{
	uint64_t args[3] = { a, b, c };

	dsm_enter(h->node, NULL);
	dsm_call_record(h->node, kind, args, (uintptr_t)site);
	dsm_leave(h->node);
}

void dsm_public_refuse_threads(struct dsm_host *h)
{
	if (h->node->threads != 1)
		dsm_host_fail(
			h,
			"%u threads are declared; go back to jia_threads(1) first",
			h->node->threads);
}

struct dsm_thread *dsm_public_sync_first(struct dsm_host *h)
{
	struct dsm_thread *t = dsm_host_thread(h);

	if (h->crew)
		dsm_crew_await_turn(h);
	if (t->held_nr)
		dsm_untouch_all(t);
	return t;
}

struct dsm_thread *dsm_public_sync(struct dsm_host *h)
{
	struct dsm_thread *t = dsm_public_sync_first(h);

	if (h->crew)
		dsm_crew_pass_turn(h);
	return t;
}

void dsm_public_meet(struct dsm_host *h, enum dsm_meeting kind,
		     const void *site)
{
	struct dsm_thread *t = dsm_public_sync(h);
	char text[DSM_NAME_TEXT];

	if (t->depth) {
		dsm_name_text(t->scope[t->depth - 1].lock, text, sizeof(text));
		dsm_host_fail(h,
			      "called while holding lock %s; release it first",
			      text);
	}
	t->site = (uintptr_t)site;
	dsm_barrier(t, kind);
}

/* --- start and end ----------------------------------------------------------------- */

void jia_init(int argc, char **argv)
{
	struct dsm_host *h = dsm_host_current;

	(void)argc, (void)argv;
	dsm_host_entered("jia_init", DSM_SITE);
	if (h) {
		refuse_child(h);
		dsm_host_fail(h, "called twice");
	}
	h = dsm_host_open();
	jia_pid = sul_job_self(h->job);
	hostc = sul_job_ranks(h->job);
	dsm_host_thread(h);
	dsm_public_leave();
}

static void end(struct dsm_host *h, const void *site)
{
	dsm_public_refuse_threads(h);
	dsm_public_meet(h, DSM_MEET_EXIT, site);
	dsm_enter(h->node, NULL);
	dsm_host_phase(h, NULL);
	dsm_flush_port(h->node);
	dsm_leave(h->node);
	h->exited = true;
	dsm_start_part(h);
	dsm_public_leave();
}

/*
 * Many a program written in old C falls off the end of main() behind its call of
 * jia_exit(); its exit status is then what a function's result is left in, and
 * shall be 0.  So what jia.h declares as void returns an int in fact.
 */
JIA_API int exit_with_0(void) __asm__("jia_exit");
JIA_API int main_end_with_0(void) __asm__("jia_main_end");

int exit_with_0(void)
{
	end(DSM_ENTER("jia_exit"), DSM_SITE);
	return 0;
}

int main_end_with_0(void)
{
	const struct dsm_host *h = dsm_host_current;

	if (!h || !h->exited)
		end(DSM_ENTER("jia_main_end"), DSM_SITE);
	return 0;
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
	dsm_host_entered("jia_error", DSM_SITE);
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

/* The address of what was allocated, unless it was not. */
static void *finish(struct dsm_host *h, uint64_t bytes, int err, uint32_t page,
		    const void *site)
{
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
	dsm_tally_maker(h->tally, page, (bytes + 4095) >> 12, (uintptr_t)site);
	dsm_public_leave();
	return h->base + ((uint64_t)page << 12);
}

static void check_home(struct dsm_host *h, uint64_t bytes, int64_t home)
{
	if (!bytes)
		dsm_host_fail(h, "0 bytes were asked for");
	if (home < 0 || home >= hostc)
		dsm_host_fail(h, "rank %lld does not exist; 0 to %d do",
			      (long long)home, hostc - 1);
}

void *dsm_public_allocate(struct dsm_host *h, uint64_t bytes, uint64_t block,
			  int64_t home, const void *site)
{
	uint32_t page;
	int err;

	if (bytes && !block)
		dsm_host_fail(h, "the block size is 0; at least 1 byte");
	check_home(h, bytes, home);
	dsm_public_record(h, DSM_CALL_jia_alloc, bytes, block, (uint64_t)home,
			  site);
	err = dsm_alloc(h->node, bytes, block, (int)home, unit_order(h), &page);
	return finish(h, bytes, err, page, site);
}

/* JIAJIA's sizes are ints; what is below 0 was meant to be more than 2 GiB. */
uint64_t dsm_public_size(struct dsm_host *h, const char *what, int n)
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
	uint64_t bytes = dsm_public_size(h, "size", size);

	return (unsigned long)dsm_public_allocate(
		h, bytes, dsm_public_size(h, "block size", block), home, site);
}

unsigned long jia_alloc3(int size, int block, int starthost)
{
	struct dsm_host *h = DSM_ENTER("jia_alloc3");

	return allocate_int(h, size, block, starthost, DSM_SITE);
}

unsigned long jia_alloc2(int size, int block)
{
	struct dsm_host *h = DSM_ENTER("jia_alloc2");

	return allocate_int(h, size, block, 0, DSM_SITE);
}

unsigned long jia_alloc2p(int size, int proc)
{
	struct dsm_host *h = DSM_ENTER("jia_alloc2p");

	return allocate_int(h, size, size, proc, DSM_SITE);
}

unsigned long jia_alloc1(int size)
{
	struct dsm_host *h = DSM_ENTER("jia_alloc1");

	return allocate_int(h, size, size, 0, DSM_SITE);
}

unsigned long jia_alloc(int size)
{
	struct dsm_host *h = DSM_ENTER("jia_alloc");
	int home = (int)(h->call_nr++ % (unsigned int)hostc);

	return allocate_int(h, size, size, home, DSM_SITE);
}

/* The rounds that @bytes take, checked; mixed into one number. */
static uint64_t check_rounds(struct dsm_host *h, uint64_t bytes,
			     const int *block)
{
	uint64_t unit = UINT64_C(4096) << unit_order(h), hash = 0, used = 0;

	if (!block)
		dsm_host_fail(h, "the block sizes must not be NULL");
	for (uint64_t i = 0; used < bytes; i++) {
		uint64_t b = dsm_public_size(h, "block size", block[i]);

		if (!b)
			dsm_host_fail(
				h,
				"the block size of round %llu is 0; at least 1 byte",
				(unsigned long long)i);
		used += (b + unit - 1) / unit * unit * (unsigned int)hostc;
		hash = dsm_name_hash(hash + b);
	}
	return hash;
}

unsigned long jia_alloc3b(int size, int *block, int starthost)
{
	struct dsm_host *h = DSM_ENTER("jia_alloc3b");
	uint64_t bytes = dsm_public_size(h, "size", size), hash;
	uint32_t page;
	int err;

	check_home(h, bytes, starthost);
	hash = check_rounds(h, bytes, block);
	dsm_public_record(h, DSM_CALL_jia_alloc3b, bytes, hash,
			  (uint64_t)starthost, DSM_SITE);
	err = dsm_alloc_rounds(h->node, bytes, block, starthost, unit_order(h),
			       &page);
	return (unsigned long)finish(h, bytes, err, page, DSM_SITE);
}

void *jia_malloc(size_t bytes)
{
	struct dsm_host *h = DSM_ENTER("jia_malloc");
	uint64_t share = bytes / (unsigned int)hostc +
			 (bytes % (unsigned int)hostc != 0);

	return dsm_public_allocate(h, bytes, share ? share : 1, 0, DSM_SITE);
}

void *jia_malloc_on(size_t bytes, size_t block, int home)
{
	struct dsm_host *h = DSM_ENTER("jia_malloc_on");

	return dsm_public_allocate(h, bytes, block, home, DSM_SITE);
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
	struct dsm_host *h = DSM_ENTER("jia_free");
	const void *site = DSM_SITE;
	struct dsm_extent e = { 0 };

	dsm_public_refuse_threads(h);
	if (ptr)
		e = allocation_at(h, ptr);
	dsm_public_record(h, DSM_CALL_jia_free, (uintptr_t)ptr, 0, 0, site);
	dsm_public_meet(h, DSM_MEET_BARRIER, site);
	if (ptr) {
		/* When a rank has left the barrier, others may still be
		 * refreshing copies from it; and nobody is given these pages
		 * again before all have let go. */
		dsm_public_meet(h, DSM_MEET_WAIT, site);
		dsm_free(h->node, e.page);
		dsm_public_meet(h, DSM_MEET_WAIT, site);
	}
	dsm_public_leave();
}

/* --- synchronisation ------------------------------------------------------------------- */

void jia_barrier(void)
{
	struct dsm_host *h = DSM_ENTER("jia_barrier");

	dsm_public_meet(h, DSM_MEET_BARRIER, DSM_SITE);
	dsm_public_leave();
}

void jia_wait(void)
{
	struct dsm_host *h = DSM_ENTER("jia_wait");

	dsm_public_meet(h, DSM_MEET_WAIT, DSM_SITE);
	dsm_public_leave();
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
	struct dsm_host *h = DSM_ENTER("jia_threads");

	check_threads(h, n);
	dsm_enter(h->node, NULL);
	if (h->node->meeting) {
		dsm_leave(h->node);
		dsm_host_fail(h, "called while threads wait at a barrier");
	}
	h->node->threads = (uint32_t)n;
	dsm_leave(h->node);
	dsm_public_leave();
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
	dsm_public_record(h, DSM_CALL_jia_set, row,
			  row < DSM_CONFIG_NR ? now[row] : 0, 0, site);
	if (h->node->threads > 1) /* a larger unit needs a larger cache */
		check_threads(h, (int)h->node->threads);
	dsm_enter(h->node, NULL);
	h->node->cfg = h->settings.value;
	dsm_leave(h->node);
}

void jia_set(const char *name, const char *value)
{
	struct dsm_host *h = DSM_ENTER("jia_set");

	if (!name || !value)
		dsm_host_fail(h, "name and value must not be NULL");
	change(h, name, value, DSM_SITE);
	dsm_public_leave();
}

void jia_config(int key, int value)
{
	struct dsm_host *h = DSM_ENTER("jia_config");

	if (value != ON && value != OFF)
		dsm_host_fail(h, "the value %d is neither ON (1) nor OFF (0)",
			      value);
	switch (key) {
	case HMIG:
		change(h, "migrate", value ? "yes" : "no", DSM_SITE);
		break;
	case WVEC: /* a refresh stores into a copy only what has changed */
		if (value)
			change(h, "update", "always", DSM_SITE);
		else if (h->settings.value.update == DSM_UPDATE_ALWAYS)
			change(h, "update", "adaptive", DSM_SITE);
		break;
	case LOADBAL:
		h->balance = value;
		/* fall through */
	case ADWD: /* unshared home pages are never looked at */
	case BROADCAST: /* barriers are trees */
		dsm_public_record(h, DSM_CALL_jia_config, (uint64_t)key,
				  (uint64_t)value, 0, DSM_SITE);
		break;
	default:
		dsm_host_fail(
			h,
			"key %d does not exist; HMIG, ADWD, BROADCAST, LOADBAL and WVEC (0 to 4) do",
			key);
	}
	dsm_public_leave();
}

static uint64_t since_start_ns(const struct dsm_host *h)
{
	return dsm_host_now_ns() - h->start_ns;
}

float jia_clock(void)
{
	const struct dsm_host *h = dsm_host_current;

	return h ? (float)((double)since_start_ns(h) / 1e9) : 0.0f;
}

unsigned int jia_startstat(void)
{
	struct dsm_host *h = DSM_ENTER("jia_startstat");

	dsm_enter(h->node, NULL);
	h->node->stats =
		(void *)sul_job_rank(h->job, sul_job_self(h->job))->counters;
	h->node->place = h->tally->place;
	h->node->spots = h->spots ? &h->tally->spots : NULL;
	dsm_stat_zero(h->node->stats);
	sul_stats_read(h->port, &h->node->port_base);
	dsm_tally_start(h->tally, h->node->stats, dsm_host_now_ns());
	dsm_leave(h->node);
	dsm_public_leave();
	return (unsigned int)(since_start_ns(h) / 1000);
}

unsigned int jia_stopstat(void)
{
	struct dsm_host *h = DSM_ENTER("jia_stopstat");

	dsm_enter(h->node, NULL);
	dsm_stats_update(h->node);
	dsm_tally_stop(h->tally, h->node->stats, dsm_host_now_ns());
	h->node->stats = &h->node->own_stats; /* counts on, unseen */
	h->node->place = h->node->own_place;
	h->node->spots = NULL;
	dsm_leave(h->node);
	dsm_public_leave();
	return (unsigned int)(since_start_ns(h) / 1000);
}

unsigned long jia_counter(const char *name)
{
	struct dsm_host *h = DSM_ENTER("jia_counter");
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
	dsm_public_leave();
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
	struct dsm_host *h = DSM_ENTER("jia_phase");
	int err;

	if (name)
		check_name(h, name);
	dsm_enter(h->node, NULL);
	err = dsm_host_phase(h, name);
	dsm_leave(h->node);
	if (err)
		dsm_host_fail(h, "more than %d phases have been named",
			      DSM_PHASES_MAX);
	dsm_public_leave();
}

void jia_name(const void *ptr, const char *name)
{
	struct dsm_host *h = DSM_ENTER("jia_name");
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
	dsm_public_leave();
}
