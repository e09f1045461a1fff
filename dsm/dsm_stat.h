/* SPDX-License-Identifier: MIT */
/*
 * dsm_stat.h - the counters of a rank (rows: dsm_stat.def).
 *
 * A rank's counters lie in the job's memory (sul_job_rank.counters), one 64-bit
 * word per row, so that the launcher can print them whatever became of the
 * rank.  struct dsm_stats gives the words their names.
 *
 * Threads: dsm_stat_add() from any; readers may read meanwhile and see each
 * counter at some recent value.
 */
#ifndef DSM_STAT_H
#define DSM_STAT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct dsm_stats {
#define STAT(name, unit, label, doc) uint64_t name;
#include "dsm_stat.def"
};

enum {
	DSM_STAT_NR = sizeof(struct dsm_stats) / sizeof(uint64_t)
};

enum dsm_stat_unit {
	DSM_STAT_count,
	DSM_STAT_bytes,
	DSM_STAT_ns
};

struct dsm_stat_row {
	const char *name, *unit, *label, *doc; /* label: "" if it has none */
	enum dsm_stat_unit kind; /* what @unit names */
};

/* The @i-th row, 0 <= @i < DSM_STAT_NR. */
const struct dsm_stat_row *dsm_stat_row(unsigned int i);

/* Relaxed: a counter orders nothing. */
static inline void dsm_stat_add_u64(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

#define dsm_stat_add(stats, name, n) \
	dsm_stat_add_u64(&(stats)->name, (uint64_t)(n))

static inline uint64_t dsm_stat_read(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

void dsm_stat_zero(struct dsm_stats *s);

/* One row over @ranks ranks (at least 1); @counters[rank] are DSM_STAT_NR
 * words. */
struct dsm_stat_sum {
	uint64_t total, min, max;
};
struct dsm_stat_sum dsm_stat_sum(const uint64_t *const counters[], int ranks,
				 unsigned int i);

/*
 * jiarun --stats: a line per row in columns: name, JIAJIA's name, each rank (or
 * least and most, when there are more than DSM_STAT_COLUMNS), total, unit,
 * meaning.  Times are printed in milliseconds.
 */
enum {
	DSM_STAT_COLUMNS = 8
};
void dsm_stat_print(FILE *f, const uint64_t *const counters[], int ranks);

#endif /* DSM_STAT_H */
