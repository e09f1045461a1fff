/* SPDX-License-Identifier: MIT */
/*
 * dsm_tally.h - counters by phase of the program, and by named allocation.
 *
 * jia_phase("sweep") begins a phase: what a rank counts from then on is added to
 * that phase's row, until the next.  Nothing is done per event: where a phase
 * ends, the difference of all counters is taken.  jia_name(ptr, "grid") gives an
 * allocation a row of its own for the counters of dsm_place.def; which row a
 * page has is one byte per page (dsm_node.place_of), looked at where something
 * is counted that costs thousands of times as much.
 *
 * The tables lie in the job's memory (sul_job_more()), so that the launcher can
 * print them whatever became of the rank.  So do the locks that the rank holds,
 * for the launcher's report on who waits for whom.
 *
 * Pure.  Threads: the caller serialises (the rank mutex); counters of a place
 * are added to with dsm_stat_add(); the launcher reads meanwhile.
 */
#ifndef DSM_TALLY_H
#define DSM_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "dsm_spot.h"
#include "dsm_stat.h"

enum {
	DSM_TALLY_NAME_MAX = 32, /* bytes of a name, with the 0 */
	DSM_PHASES_MAX = 32, /* of a rank: more than anybody reads */
	DSM_PLACES_MAX = 64, /* the first is memory without a name */
	DSM_HELD_THREADS = 16, /* whose locks are noted: these slots, */
	DSM_HELD_DEPTH = 4 /* and the outermost locks of each */
};

enum {
	DSM_PLACE_NR = sizeof(struct dsm_place) / sizeof(uint64_t)
};

/* The row of dsm_stat.def that counter @i of a place is, 0 .. DSM_PLACE_NR-1. */
unsigned int dsm_place_stat(unsigned int i);

struct dsm_phase {
	char name[DSM_TALLY_NAME_MAX];
	uint64_t entered; /* how often */
	uint64_t ns; /* time in it, up to the last time it ended */
	struct dsm_stats sum; /* likewise */
};

struct dsm_held {
	uint64_t lock; /* number or address, + 1; 0: none */
	uint64_t site; /* return address of the call that took it */
};

struct dsm_tally {
	uint32_t phases, places; /* rows in use; place 0 is always there */
	uint32_t current; /* phase + 1; 0: none */
	uint32_t stopped; /* jia_stopstat() */
	uint64_t since_ns; /* when the present phase began, or was zeroed */
	struct dsm_stats base; /* the counters then */
	struct dsm_phase phase[DSM_PHASES_MAX];
	char place_name[DSM_PLACES_MAX][DSM_TALLY_NAME_MAX];
	uint64_t place_bytes[DSM_PLACES_MAX];
	struct dsm_place place[DSM_PLACES_MAX];
	struct dsm_held held[DSM_HELD_THREADS][DSM_HELD_DEPTH];
	struct dsm_spots spots;
	/* Where pages are, and who allocated them. */
	uint64_t view, alias, alias_page, alias_pages; /* see dsm_host.h */
	uint64_t makers; /* allocations noted so far; the last ones are kept */
	struct dsm_maker maker[DSM_MAKERS_MAX];
};

/* 1 to DSM_TALLY_NAME_MAX-1 bytes, printable. */
bool dsm_tally_name_ok(const char *name);

/*
 * The phase @name begins (or goes on), the present one ends; NULL: none begins.
 * @now: the rank's counters; @ns: the time.  -ENOSPC: too many phases.
 */
int dsm_tally_phase(struct dsm_tally *t, const struct dsm_stats *now,
		    uint64_t ns, const char *name);
/* The row of @name; -ENOSPC: too many. */
int dsm_tally_place(struct dsm_tally *t, const char *name, unsigned int *row);

/* Memory was allocated: @pages from @page on, by the call at @site. */
void dsm_tally_maker(struct dsm_tally *t, uint64_t page, uint64_t pages,
		     uint64_t site);

/* All figures begin at 0 again, and are counted from here. */
void dsm_tally_start(struct dsm_tally *t, const struct dsm_stats *now,
		     uint64_t ns);
/* They stay as they are until the next start. */
void dsm_tally_stop(struct dsm_tally *t, const struct dsm_stats *now,
		    uint64_t ns);

/* Thread slot @slot has taken @lock (a number or an address) as its @depth-th (0:
 * outermost) at @site, or, @lock < 0, has released that one. */
static inline void dsm_tally_hold(struct dsm_tally *t, uint32_t slot,
				  uint32_t depth, int64_t lock, uintptr_t site)
{
	struct dsm_held *h;

	if (slot >= DSM_HELD_THREADS || depth >= DSM_HELD_DEPTH)
		return;
	h = &t->held[slot][depth];
	h->site = site;
	__atomic_store_n(&h->lock, (uint64_t)(lock + 1), __ATOMIC_RELEASE);
}

#endif /* DSM_TALLY_H */
