/* SPDX-License-Identifier: MIT */
/*
 * plan.h - one round of random work: its memory, items, locks and habits.
 *
 * Role: everything about a round that all ranks must agree on, made from the
 *   seed by each of them (and by the parent, for its report).
 * Invariant: items do not overlap; plan_make() with the same arguments gives
 *   the same plan in every process, except for area.base.
 * Threads: constant after plan_alloc().
 */
#ifndef ORACLE_PLAN_H
#define ORACLE_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "record.h"
#include "rng.h"

enum {
	PLAN_AREAS = 4,
	PLAN_PAGE = 4096
};

/* Which call allocates an area. */
enum area_kind {
	AREA_SHARES,
	AREA_BLOCKS,
	AREA_ONE_HOME,
	AREA_OLD_CALL
};

/* An item is a value of 1, 2, 4 or 8 bytes, at any address. */
struct item {
	uint32_t offset; /* in its area */
	uint8_t area, size, rule;
};

struct area {
	enum area_kind kind;
	uint32_t bytes, block;
	int home;
	unsigned char *base; /* shared memory */
	uint16_t *owner; /* per byte: item + 1, or 0 */
};

/* What a thread does to lose time at random points. */
enum delay {
	DELAY_NONE,
	DELAY_SPIN,
	DELAY_YIELD,
	DELAY_SLEEP,
	DELAYS
};

struct plan {
	uint64_t seed;
	uint32_t round;
	unsigned int ranks, threads;

	unsigned int nareas, nlocks, ntokens, nitems;
	struct area area[PLAN_AREAS];
	int lock_id[REC_LOCKS]; /* ascending: the order they nest in */
	struct item item[REC_ITEMS];
	/* Items by rule, in order of address: list[first[r]] .. */
	unsigned int first[RULES], count[RULES];
	uint16_t list[REC_ITEMS];

	unsigned int stride; /* items lie on every stride-th page */
	unsigned int epochs, bursts; /* bursts per epoch and thread: 0 .. 2x */
	unsigned int accesses; /* per burst, at most */
	unsigned int write_percent, lock_percent, nest_percent;
	unsigned int blink_percent; /* critical sections that change nothing */
	unsigned int own_percent; /* epoch writes kept to one rank a page */
	unsigned int look_percent; /* epochs after which all is verified */
	unsigned int
		sweep_percent; /* bursts that go through the items of a rule */
	enum delay delay;
	bool barrier_after_alloc, wait_first;
};

/* @pages 0: as the seed has it.  NULL when there is no memory. */
struct plan *plan_make(uint64_t seed, uint32_t round, unsigned int ranks,
		       unsigned int threads, unsigned int pages, bool release);
void plan_free(struct plan *plan);

/* Collective: allocate (and free) the areas in shared memory. */
void plan_alloc(struct plan *plan);
void plan_release(struct plan *plan);

/* The value of an item after @count writes: 0 after none.  Those of 2^size
 * writes in a row all differ, or those of plan_period() writes. */
unsigned int plan_period(const struct plan *plan, uint32_t item); /* 0: none */
uint64_t plan_value(const struct plan *plan, uint32_t item, uint32_t count);

/* "lock 2 (id 77)", "epoch", "token 1" */
const char *plan_rule_text(const struct plan *plan, unsigned int rule,
			   char *buf, size_t len);

#endif /* ORACLE_PLAN_H */
