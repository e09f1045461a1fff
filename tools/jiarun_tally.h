/* SPDX-License-Identifier: MIT */
/*
 * jiarun_tally.h - counters by phase and by named allocation, over all ranks.
 *
 * Ranks fill struct dsm_tally (dsm_tally.h) each for itself; here rows with the
 * same name belong together.  The tables are memory of processes that may be
 * broken: counts are bounded and names cleaned.
 */
#ifndef JIARUN_TALLY_H
#define JIARUN_TALLY_H

#include <stdint.h>
#include <stdio.h>

#include "dsm_tally.h"

struct jiarun_sites;

enum {
	JIARUN_NAMES_MAX = 128 /* different names in one report */
};

/* What the ranks have left: [ranks] each. */
struct jiarun_counts {
	const uint64_t *const *counters; /* DSM_STAT_NR words */
	const struct dsm_tally *const *tally; /* NULL: there are none */
	int ranks;
	struct jiarun_sites *sites; /* names places; NULL: as they are */
};

/* The names in use, in the order of their first appearance. */
struct jiarun_names {
	char name[JIARUN_NAMES_MAX][DSM_TALLY_NAME_MAX];
	int nr;
};

/* A name as a rank has left it, without what steers a terminal. */
void jiarun_tally_clean(char out[DSM_TALLY_NAME_MAX], const char *raw);

enum jiarun_tally_kind {
	JIARUN_PHASES,
	JIARUN_PLACES /* the first is "": memory without a name */
};

void jiarun_tally_names(struct jiarun_names *out, enum jiarun_tally_kind kind,
			const struct jiarun_counts *c);

/* The figure of one rank; 0 if it does not have the name. */
enum {
	JIARUN_ENTERED = -1, /* phases: how often */
	JIARUN_NS = -2, /* phases: time */
	JIARUN_BYTES = -3 /* places: allocated */
};
/* @column: one of these, or a row of dsm_stat.def (phases), or of dsm_place.def
 * (places). */
uint64_t jiarun_tally_figure(const struct jiarun_counts *c, int rank,
			     enum jiarun_tally_kind kind, const char *name,
			     int column);

/* Two tables, for people; nothing where nothing was named. */
void jiarun_tally_print(FILE *f, const struct jiarun_counts *c);

#endif /* JIARUN_TALLY_H */
