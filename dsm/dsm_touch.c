/* SPDX-License-Identifier: MIT */
/*
 * dsm_touch.c - ranges that are held accessible, for system calls.
 *
 * Role:      a system call does not fault on a protected page, it fails.  So a
 *            range is made accessible ahead of it, and held: its units are not
 *            evicted, dropped or guarded, only refreshed in place.
 * Invariant: a unit's count of holds is the number of held ranges of threads in
 *            which it lies.
 * Threads:   each thread holds its own ranges.
 * Locks:     takes the rank mutex.
 *
 * Overwriting.  A unit that is not here, and will be written from end to end,
 * need not be fetched: it becomes a writable copy with whatever is in its frame,
 * and its next diff is all of it (n->whole), since its twin never equalled the
 * home's page and says nothing about what has changed.  For the same reason it
 * is not refreshed before.  Nor need a copy that is here be compared with its
 * twin then: what was overwritten is sent as it is.
 */
#include "dsm_node.h"

#include <errno.h>

static bool is_store(enum dsm_touch mode)
{
	return mode != DSM_TOUCH_READ;
}

static bool accessible(const struct dsm_node *n, uint32_t unit, bool store)
{
	return n->access[unit] >= (store ? DSM_ACCESS_RW : DSM_ACCESS_R);
}

static uint32_t first_page(const struct dsm_node *n, const struct dsm_range *r)
{
	return (uint32_t)(r->from >> n->page_shift);
}

static uint32_t end_page(const struct dsm_node *n, const struct dsm_range *r)
{
	return (uint32_t)((r->to + (1u << n->page_shift) - 1) >> n->page_shift);
}

static bool within(const struct dsm_node *n, uint32_t unit,
		   const struct dsm_range *r)
{
	uint64_t off = dsm_unit_off(n, unit);

	return off >= r->from && off + dsm_unit_bytes(n, unit) <= r->to;
}

/* How many units from @unit on can be overwritten together, none of which is
 * here; 0: @unit cannot. */
static uint32_t overwritable(const struct dsm_node *n, uint32_t unit,
			     const struct dsm_range *r)
{
	uint32_t step = dsm_unit_pages(n, unit), nr = 0, at = unit;

	while (at < end_page(n, r) && nr < DSM_RUN_MAX &&
	       (!nr || (uint64_t)(nr + 1) * step <= n->cache_pages / 4) &&
	       n->order[at] == n->order[unit] && !dsm_home_here(n, at) &&
	       n->state[at] == DSM_PG_INVALID && within(n, at, r)) {
		at += step;
		nr++;
	}
	return nr;
}

/* All of @unit will be written. */
static void overwrite(struct dsm_thread *t, uint32_t unit,
		      const struct dsm_range *r)
{
	struct dsm_node *n = t->node;
	uint32_t nr = overwritable(n, unit, r);

	if (nr)
		dsm_cache_overwrite(n, t, unit, nr);
	else if (n->state[unit] == DSM_PG_WATCH && within(n, unit, r))
		n->whole[unit] = !DSM_BROKEN(overwrite_diff);
}

/* Hold what is accessible from @unit on; the first unit that is not. */
static uint32_t hold(struct dsm_thread *t, uint32_t unit,
		     const struct dsm_range *r, enum dsm_touch mode)
{
	struct dsm_node *n = t->node;

	while (unit < end_page(n, r)) {
		if (mode == DSM_TOUCH_OVERWRITE)
			overwrite(t, unit, r);
		if (!accessible(n, unit, is_store(mode)))
			break;
		n->holds[unit]++;
		unit += dsm_unit_pages(n, unit);
	}
	return unit;
}

static bool is_allocated(const struct dsm_node *n, const struct dsm_range *r)
{
	for (uint32_t p = first_page(n, r); p < end_page(n, r); p++)
		if (p >= n->pages || dsm_home(n, dsm_unit_of(n, p)) < 0)
			return false;
	return true;
}

int dsm_touch(struct dsm_thread *t, uint64_t off, uint64_t len,
	      enum dsm_touch mode)
{
	struct dsm_node *n = t->node;
	struct dsm_range r = { off, off + len };
	uint32_t unit;
	bool is;

	dsm_enter(n, t);
	is = is_allocated(n, &r);
	unit = dsm_unit_of(n, first_page(n, &r));
	dsm_leave(n);
	if (!is)
		return -EFAULT;
	if (n->cfg.hardware)
		return 0;
	if (end_page(n, &r) - unit > n->cache_pages)
		return -ENOSPC;
	if (t->held_nr == DSM_HELD_MAX)
		return -EMFILE;
	for (;;) {
		dsm_enter(n, t);
		unit = hold(t, unit, &r, mode);
		dsm_leave(n);
		if (unit >= end_page(n, &r))
			break;
		dsm_must(n, dsm_fault(n, t, unit, is_store(mode)),
			 "touching memory that is being freed");
	}
	t->held[t->held_nr++] = r;
	return 0;
}

static void release(struct dsm_thread *t, uint32_t i)
{
	const struct dsm_range *r = &t->held[i];
	struct dsm_node *n = t->node;
	uint32_t unit;

	dsm_enter(n, t);
	unit = dsm_unit_of(n, first_page(n, r));
	while (unit < end_page(n, r)) {
		if (n->holds[unit]) /* 0: it was freed meanwhile */
			n->holds[unit]--;
		unit += dsm_unit_pages(n, unit);
	}
	dsm_leave(n);
	t->held[i] = t->held[--t->held_nr];
}

int dsm_untouch(struct dsm_thread *t, uint64_t off, uint64_t len)
{
	if (t->node->cfg.hardware)
		return 0;
	for (uint32_t i = 0; i < t->held_nr; i++)
		if (t->held[i].from == off && t->held[i].to == off + len) {
			release(t, i);
			return 0;
		}
	return -ENOENT;
}

void dsm_untouch_all(struct dsm_thread *t)
{
	while (t->held_nr)
		release(t, t->held_nr - 1);
}
