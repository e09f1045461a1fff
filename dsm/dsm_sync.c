/* SPDX-License-Identifier: MIT */
/*
 * dsm_sync.c - the two sides of every synchronisation: release and acquire.
 *
 * Role:      *flush* brings what this rank has written to the homes and
 *            publishes notices; *apply* refreshes or drops the copies that
 *            notices of others name.
 * Invariant: when flush returns, everything has been executed at the homes.
 * Threads:   the program's other threads load, store and want to fault.
 * Locks:     the rank mutex is held.
 *
 * Watched and guarded.  A unit that was written stays writable and is compared
 * at every release (0.03-0.4 us a page, no fault, no mprotect); after `keep`
 * releases without a change it is guarded: read-only and without twin until the
 * next write faults.  With keep=0 every release guards: plain JIAJIA.
 *
 * Why there is no call that takes the diffs of several units, or gets several.
 * What is issued before a flush travels together anyway: over udp the 64 diffs
 * of a release leave in one datagram and are acknowledged by one, and the 256
 * gets of 64 refreshes, half a megabyte, take 20 with their answers.  Within a
 * host such a call could save 90 instructions a unit, of 1,850 that a release
 * takes and 1,190 that compare it.  And each unit has its own twin flag, which
 * is to be looked at after its frame was written.
 */
#include "dsm_node.h"

/* --- release ---------------------------------------------------------------------- */

static void begin_to_share(struct dsm_node *n, uint32_t unit)
{
	bool own = n->state[unit] == DSM_PG_OWN;

	dsm_stat_add(n->stats, shared_new, own);
	if (own && n->watched_pages >= n->cfg.watch_new && !dsm_held(n, unit)) {
		dsm_bits_set(&n->marked, unit);
		return;
	}
	if (n->state[unit] == DSM_PG_HWATCH && !DSM_BROKEN(shown_quiet))
		dsm_bits_set(&n->shown, unit);
	dsm_unit_event(n, unit, DSM_EV_SHARED, 0);
}

/* Those that it would be too much to watch: protected, without a twin.  They
 * may have been written, so the next write is not taken for the first. */
static void guard_shared(struct dsm_node *n)
{
	dsm_unit_lower_set(n, &n->marked, DSM_ACCESS_R);
	for (uint32_t u = dsm_bits_next(&n->marked, 0); u != DSM_BITS_END;
	     u = dsm_bits_next(&n->marked, u + 1)) {
		dsm_unit_event(n, u, DSM_EV_SHARED_MANY, DSM_ACT_LOWER_R);
		n->wrote[u] = DSM_WROTE;
	}
	dsm_stat_add(n->stats, guarded, n->marked.members);
	dsm_bits_empty(&n->marked);
}

/* A watched unit at a release; true if it shall be guarded. */
static bool compare(struct dsm_node *n, uint32_t unit)
{
	bool shown = dsm_bits_clear(&n->shown, unit);

	if (dsm_home_here(n, unit) && !dsm_dir_shared(n, unit)) {
		dsm_unit_event(n, unit, DSM_EV_UNSHARED, 0);
		dsm_stat_add(n->stats, shared_none, 1);
		return false;
	}
	if (shown) /* who got it may have got a value in passing (race 9) */
		dsm_log_notice(n, unit);
	if (!n->cfg.keep && !dsm_held(n, unit))
		return true;
	if (dsm_unit_publish(n, unit)) {
		if (!shown)
			dsm_log_notice(n, unit);
		n->idle[unit] = 0;
		return false;
	}
	if (dsm_held(n, unit))
		return false;
	/* Where copies are dropped, they are got again, which shows the page
	 * again, and so on: guarded at once, that ends. */
	if (shown && n->cfg.update == DSM_UPDATE_NEVER)
		return true;
	if (n->idle[unit] < UINT16_MAX)
		n->idle[unit]++;
	return n->idle[unit] >= n->cfg.keep;
}

/* Somebody may have got it before this release, or since it began. */
static void notice_if_shown(struct dsm_node *n, uint32_t unit)
{
	bool shown = dsm_bits_clear(&n->shown, unit);

	if (DSM_BROKEN(shown_quiet))
		return;
	if (dsm_home_here(n, unit) && dsm_dir_take(n, unit))
		shown = true;
	if (shown)
		dsm_log_notice(n, unit);
}

/* Protect first, compare after (race 4). */
static void guard_marked(struct dsm_node *n)
{
	if (DSM_BROKEN(guard_late)) {
		for (uint32_t u = dsm_bits_next(&n->marked, 0);
		     u != DSM_BITS_END; u = dsm_bits_next(&n->marked, u + 1))
			dsm_unit_event(n, u, DSM_EV_GUARD, DSM_ACT_LOWER_R);
		dsm_unit_lower_set(n, &n->marked, DSM_ACCESS_R);
		dsm_bits_empty(&n->marked);
		return;
	}
	dsm_unit_lower_set(n, &n->marked, DSM_ACCESS_R);
	for (uint32_t u = dsm_bits_next(&n->marked, 0); u != DSM_BITS_END;
	     u = dsm_bits_next(&n->marked, u + 1)) {
		notice_if_shown(n, u);
		dsm_unit_event(n, u, DSM_EV_GUARD, DSM_ACT_LOWER_R);
	}
	dsm_stat_add(n->stats, guarded, n->marked.members);
	dsm_bits_empty(&n->marked);
}

bool dsm_flush_idle(const struct dsm_node *n)
{
	return n->cfg.hardware || (!n->watched.members && !dsm_dir_news(n));
}

/* --- the budget of watching ---------------------------------------------------------
 *
 * Comparing pages that do not change may take `watch` percent of the time that
 * passed since the last release (rare barriers can afford many, frequent unlocks
 * few).  Beyond it, what was unchanged at the last release is guarded.
 *
 * That comes too late for a rank that writes ten thousand pages once: already
 * the next unlock would spend milliseconds on comparing them.  So of the pages
 * that are written for the first time only `watch_new` stay writable after the
 * release.  The others fault if they are written once more, and are then taken
 * for pages that are written again and again.  And of the home pages that others
 * have just begun to cache no more are watched: the rest does not even get a
 * twin.
 *
 * Both are decided before anything is compared: who protects first need not
 * compare twice.  Where the idle ones do not lie side by side, and each takes a
 * call, not all of them are guarded at once.
 */

static bool was_idle(const struct dsm_node *n, uint32_t unit)
{
	return n->idle[unit];
}

static bool is_new(const struct dsm_node *n, uint32_t unit)
{
	return !n->wrote[unit];
}

/* Mark what is @such until no more than @most of @pages pages are left, or
 * @runs calls will be needed; how many are left. */
static uint64_t mark(struct dsm_node *n, uint64_t pages, uint64_t most,
		     uint64_t runs,
		     bool (*such)(const struct dsm_node *n, uint32_t unit))
{
	uint32_t next = DSM_BITS_END;

	for (uint32_t u = dsm_bits_next(&n->watched, 0);
	     u != DSM_BITS_END && pages > most;
	     u = dsm_bits_next(&n->watched, u + 1)) {
		if (!such(n, u) || dsm_held(n, u))
			continue;
		if (dsm_home_here(n, u) && !dsm_dir_shared(n, u))
			continue; /* no longer watched in a moment */
		if (u != next && !runs--)
			break;
		dsm_bits_set(&n->marked, u);
		pages -= dsm_unit_pages(n, u);
		next = u + dsm_unit_pages(n, u);
	}
	return pages;
}

static void guard_beyond_budget(struct dsm_node *n)
{
	uint64_t passed = n->env->now_ns(n->env_ctx) - n->flush_ns;
	uint64_t may = passed * n->cfg.watch / 100 / DSM_COMPARE_NS;
	uint64_t pages = n->watched_pages;

	if (n->cfg.watch && pages > may + n->watch_min)
		pages = mark(n, pages, 0, DSM_GUARD_RUNS + pages / 8, was_idle);
	if (pages > n->cfg.watch_new)
		mark(n, pages, n->cfg.watch_new, UINT64_MAX, is_new);
	if (n->marked.members)
		guard_marked(n);
}

void dsm_flush(struct dsm_node *n)
{
	if (n->cfg.hardware)
		return;
	dsm_dir_scan(n, begin_to_share);
	if (n->marked.members)
		guard_shared(n);
	guard_beyond_budget(n);
	for (uint32_t u = dsm_bits_next(&n->watched, 0); u != DSM_BITS_END;
	     u = dsm_bits_next(&n->watched, u + 1)) {
		DSM_POINT(n);
		if (compare(n, u))
			dsm_bits_set(&n->marked, u);
	}
	if (n->marked.members)
		guard_marked(n);
	if (!DSM_BROKEN(leave_early))
		dsm_flush_port(n);
	n->flush_ns = n->env->now_ns(n->env_ctx);
}

/* --- acquire ---------------------------------------------------------------------- */

/*
 * A cached unit that somebody else has written: refresh it or drop it?  With
 * `adaptive`, refreshing goes on until it looks as if nobody used the copy; it
 * is dropped to see, and a fault then doubles the time to the next look.
 */
static bool shall_refresh(struct dsm_node *n, uint32_t unit)
{
	if (dsm_held(n, unit) && !DSM_BROKEN(held_dropped))
		return true;
	switch (n->cfg.update) {
	case DSM_UPDATE_ALWAYS:
		return true;
	case DSM_UPDATE_NEVER:
		return false;
	default:
		if (!n->probe[unit])
			n->probe[unit] = DSM_PROBE_FIRST;
		return n->age[unit] < n->probe[unit];
	}
}

static void refresh_pending(struct dsm_node *n)
{
	uint32_t batch[DSM_REFRESH_UNITS];
	size_t nr = 0, bytes = 0;

	for (uint32_t u = dsm_bits_next(&n->pending, 0); u != DSM_BITS_END;
	     u = dsm_bits_next(&n->pending, u + 1)) {
		if (n->whole[u]) { /* all of it will be ours */
			dsm_bits_clear(&n->pending, u);
			continue;
		}
		if (!shall_refresh(n, u))
			continue;
		if (nr == DSM_REFRESH_UNITS ||
		    bytes + dsm_unit_bytes(n, u) > n->scratch_bytes) {
			dsm_unit_refresh(n, batch, nr);
			nr = bytes = 0;
		}
		batch[nr++] = u;
		bytes += dsm_unit_bytes(n, u);
		dsm_bits_clear(&n->pending, u);
	}
	if (nr)
		dsm_unit_refresh(n, batch, nr);
}

static void drop_pending(struct dsm_node *n)
{
	dsm_unit_lower_set(n, &n->pending, DSM_ACCESS_NONE);
	for (uint32_t u = dsm_bits_next(&n->pending, 0); u != DSM_BITS_END;
	     u = dsm_bits_next(&n->pending, u + 1)) {
		dsm_unit_event(n, u, DSM_EV_DROP, DSM_ACT_LOWER_NONE);
		dsm_cache_dropped(n, u);
		dsm_count(n, u, invalidated, 1);
	}
	dsm_flush_port(n);
}

void dsm_apply(struct dsm_node *n)
{
	if (n->cfg.hardware || !n->pending.members)
		return;
	refresh_pending(n);
	if (n->pending.members)
		drop_pending(n);
	dsm_bits_empty(&n->pending);
}
