/* SPDX-License-Identifier: MIT */
/*
 * dsm_spot.h - which places of the program, and which pages, cost most.
 *
 * The counters (dsm_stat.def) say how much, these tables where: a row for each
 * line of the program that waits at a barrier, for a lock (a row per lock), for a
 * message and so on, or faults; and a row for each page, with what was counted for
 * it, which of its bytes this rank has changed, and from where it faulted last.
 * Ranks whose bytes in one page do not overlap share it for no reason.
 *
 * Tables are small, and keep what is dear.  A row has a weight, the cost of what
 * was counted in it; what finds no free row takes its own cost off the lightest
 * of those it could have, and has that row once nothing is left of it.  So
 * whatever costs more than all that is forgotten around it stays.
 *
 * They are part of struct dsm_tally, where the launcher finds them.
 *
 * Pure.  Threads: the caller serialises (the rank mutex); the launcher reads
 * meanwhile, and takes a row that is being written for what it is.
 */
#ifndef DSM_SPOT_H
#define DSM_SPOT_H

#include <stddef.h>
#include <stdint.h>

enum dsm_spot_kind {
#define SPOT(name, text, which) DSM_SPOT_##name,
#include "dsm_spot.def"
	DSM_SPOT_NR
};

enum {
	DSM_SPOT_WAYS = 8, /* rows that one key may have */
	DSM_SPOTS_MAX = 128, /* places of the program */
	DSM_HOT_MAX = 128, /* pages */
	DSM_MAKERS_MAX = 64 /* allocations: the last ones */
};

/* Counters of a page or an allocation (dsm_place.def), and what one of each
 * costs, roughly, in units of a quarter of a microsecond. */
struct dsm_place {
#define PLACE(name, cost) uint64_t name;
#include "dsm_place.def"
};
enum {
#define PLACE(name, cost) DSM_COST_##name = (cost),
#include "dsm_place.def"
	DSM_COST_wrote = 1,
	DSM_COST_together = 8
};

struct dsm_spot {
	uint64_t site; /* return address of the call; of a fault: one beyond
			  the instruction's first byte */
	uint64_t lock; /* name of the lock, condition or flag; else 0 */
	uint32_t kind; /* enum dsm_spot_kind, + 1; 0: the row is free */
	uint32_t spare;
	uint64_t weight;
	uint64_t count, ns;
};

struct dsm_hot {
	uint64_t page; /* the first of a unit, + 1; 0: the row is free */
	uint64_t weight;
	struct dsm_place count;
	uint64_t wrote; /* releases that found it changed here */
	uint64_t together; /* barriers that found it written by several ranks
			      (counted by rank 0) */
	uint32_t from, to; /* bytes of the unit changed here: [from, to) */
	uint64_t load_site, store_site; /* of the last faults, or 0 */
	uint32_t place; /* row of its named allocation */
	uint32_t bytes; /* of the unit */
};

struct dsm_maker { /* where memory was allocated */
	uint64_t page, pages; /* pages 0: no row */
	uint64_t site;
};

struct dsm_spots {
	struct dsm_spot spot[DSM_SPOTS_MAX];
	struct dsm_hot hot[DSM_HOT_MAX];
};

/* --- counting: @s is NULL where nobody will look (no `jiarun --stats`) ------------- */

void dsm_spot_add_to(struct dsm_spots *s, enum dsm_spot_kind kind,
		     uint64_t site, uint64_t lock, uint64_t ns);
struct dsm_hot *dsm_spot_page_of(struct dsm_spots *s, uint32_t page,
				 uint32_t cost);
void dsm_spot_wrote_to(struct dsm_spots *s, uint32_t page, uint32_t from,
		       uint32_t to);

/* What was done at @site took @ns; @lock: which lock, condition or flag, or 0. */
static inline void dsm_spot_add(struct dsm_spots *s, enum dsm_spot_kind kind,
				uint64_t site, uint64_t lock, uint64_t ns)
{
	if (s)
		dsm_spot_add_to(s, kind, site, lock, ns);
}

/* The row of the unit that begins at @page, its weight grown by @cost; NULL: it
 * has none. */
static inline struct dsm_hot *dsm_spot_page(struct dsm_spots *s, uint32_t page,
					    uint32_t cost)
{
	return s ? dsm_spot_page_of(s, page, cost) : NULL;
}

/* Bytes [@from, @to) of the unit at @page were found changed by this rank. */
static inline void dsm_spot_wrote(struct dsm_spots *s, uint32_t page,
				  uint32_t from, uint32_t to)
{
	if (s)
		dsm_spot_wrote_to(s, page, from, to);
}

#endif /* DSM_SPOT_H */
