/* SPDX-License-Identifier: MIT */
/* dsm_limits.h - every limit of the runtime by name, with its reason. */
#ifndef DSM_LIMITS_H
#define DSM_LIMITS_H

enum {
	/* Locks a thread may hold at once: their queue nodes are preallocated.
	 * The deepest nesting seen in SPLASH is 3. */
	DSM_NEST_MAX = 32,
	/* Pages of the largest unit of coherence, 2 MiB of 4 KiB pages: the
	 * scratch memory for one refresh and one diff grows with it. */
	DSM_UNIT_ORDER_MAX = 9,
	/* Runs of changed bytes collected before a flush: 512 KiB of list. */
	DSM_RUNS_MIN = 1 << 16,
	/* Bytes fetched together in one refresh: fits the L2 cache. */
	DSM_REFRESH_BYTES = 256 << 10,
	DSM_REFRESH_UNITS = DSM_REFRESH_BYTES >> 12,
	/* A thread's last faults are never evicted: one instruction may need
	 * that many pages at once (two operands that each cross a border). */
	DSM_RECENT_PER_THREAD = 8,
	/* Units evicted together, as a fraction of the cache (1/64): spreads
	 * the flush over many. */
	DSM_EVICT_SHIFT = 6,
	/* Refreshes of a cached unit before it is dropped to see whether it is
	 * still used: first (64 refreshes cost as much as the fault that follows
	 * a wrong guess), and at most (doubled each time it was). */
	DSM_PROBE_FIRST = 64,
	DSM_PROBE_MAX = 4096,
	/* How often a dropped unit is fetched again unasked before it is left
	 * out to see, at first: nothing speaks for it yet. */
	DSM_RECALL_FIRST = 1,
	/* Dropped units looked at, at one fault, besides those fetched: 10 ns
	 * each, so that all of it stays below the price of the fault. */
	DSM_RECALL_LOOKS = 64,
	/* Numbered locks: jia.h promises as many (Maxlocks). */
	DSM_LOCKS = 1024,
	/* Ranges that a thread holds accessible at once. */
	DSM_HELD_MAX = 16,
	/* Places of names that a thread remembers, 16 bytes each: BARNES has 23,000
	 * locks, and a walk to the manager's table is a round trip or more. */
	DSM_KNOWN = 4096,
	/* Names whose last release a rank remembers: 256 KiB. */
	DSM_SEEN = 1 << 14,
	/* Sticky flags, JIAJIA's condition variables: it has as many. */
	DSM_FLAGS = 16,
	/* Shared counters, for ANL's self-scheduled loops (GSINIT). */
	DSM_COUNTS = 64,
	/* Notices that come with a lock, at most; releases that they are from;
	 * places for them at a manager, shared by all named locks (a power of
	 * two); and ranks, beyond which a vector is too much. */
	DSM_CARRY_MAX = 64,
	DSM_NEWS_RELEASES = 8,
	DSM_NEWS_SLOTS = 1024,
	DSM_NEWS_RANKS = 64,
	/* Notices read from a log at once: one page. */
	DSM_INCOMING = 1024,
	/* What comparing one page that did not change takes, ns: between 40
	 * (cached) and 400; and pages that are always watched. */
	DSM_COMPARE_NS = 200,
	DSM_WATCH_MIN = 32,
	/* Calls of 1 us with which a release may guard idle pages, at least. */
	DSM_GUARD_RUNS = 256,
	/* Pages that may be made ready in vain, beyond as many as were of use:
	 * 1 MiB, the chunks of 16 wrong guesses. */
	DSM_AHEAD_FREE = 256,
	/* Units repaired together, at most: the largest `prefetch`, and one. */
	DSM_RUN_MAX = 65,
	/* Pieces of the heap, allocated or free. */
	DSM_EXTENTS_MAX = 1 << 16,
	/* Collective calls that a rank remembers, for naming a difference. */
	DSM_CALLS_KEPT = 64,
	/* A wait that took longer is written down for the hang report, ms. */
	DSM_NOTE_AFTER_MS = 50,
};

#endif /* DSM_LIMITS_H */
