/* SPDX-License-Identifier: MIT */
/*
 * jiarun_spot.h - where a job spent its time, over all ranks: places of the
 * program, and pages.
 *
 * Ranks fill struct dsm_spots (dsm_spot.h) each for itself; here rows of the same
 * place or page belong together.  As with jiarun_tally.h the tables are memory of
 * processes that may be broken: what is no row is left out.
 */
#ifndef JIARUN_SPOT_H
#define JIARUN_SPOT_H

#include "jiarun_tally.h"

enum {
	JIARUN_SPOTS_MAX = 1024, /* in one report */
	JIARUN_SPOT_TEXT = 400 /* bytes of a text */
};

struct jiarun_spot {
	struct dsm_spot sum; /* of all ranks */
	uint64_t least, most; /* nanoseconds of one rank */
	int least_rank, most_rank;
};

struct jiarun_hot {
	struct dsm_hot sum; /* of all ranks; the bytes are the first writer's */
	int writers; /* ranks that changed it */
};

/* The dearest first; how many, at most JIARUN_SPOTS_MAX.  @out is malloc()ed; NULL
 * where there is nothing, or no memory. */
int jiarun_spots(const struct jiarun_counts *c, struct jiarun_spot **out);
int jiarun_hots(const struct jiarun_counts *c, struct jiarun_hot **out);

/* What is counted for a page, as weight (dsm_spot.h); what a rank's table keeps as
 * weight is less, by what it has forgotten. */
uint64_t jiarun_hot_cost(const struct dsm_hot *h);

/* The rows of one rank; NULL: it has none for this. */
const struct dsm_spot *jiarun_spot_of(const struct jiarun_counts *c, int rank,
				      const struct dsm_spot *spot);
const struct dsm_hot *jiarun_hot_of(const struct jiarun_counts *c, int rank,
				    uint64_t page);

/* "barrier", "load", ...; of a lock, which one: "lock 3", "lock at 0x...". */
void jiarun_spot_what(const struct dsm_spot *spot, char *out, size_t room);
/* A place in the program; "" for 0. */
const char *jiarun_spot_site(const struct jiarun_counts *c, uint64_t site,
			     char *out, size_t room);

/* Where a page is: in the program's memory, and in which allocation. */
struct jiarun_where {
	uint64_t address;
	uint64_t offset; /* in the allocation, bytes */
	uint64_t site; /* who made it; 0: not known */
	char name[DSM_TALLY_NAME_MAX]; /* jia_name(); or "" */
};
void jiarun_hot_where(const struct jiarun_counts *c, const struct dsm_hot *hot,
		      struct jiarun_where *w);

/* Two tables, for people; nothing where there is nothing. */
void jiarun_spots_print(FILE *f, const struct jiarun_counts *c);

#endif /* JIARUN_SPOT_H */
