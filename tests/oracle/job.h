/* SPDX-License-Identifier: MIT */
/*
 * job.h - one run of the oracle: start the ranks, watch them, judge.
 *
 * Role: the parent's side.  It makes the record, starts jiarun and tells the
 *   ranks where the record is, sees that the job makes progress, and prints what went wrong.
 * Threads: one.
 */
#ifndef ORACLE_JOB_H
#define ORACLE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

enum {
	JOB_SETS = 48,
	JOB_MAX_RANKS = 64
};

struct job {
	const char *self; /* path of this program */
	const char *jiarun; /* path of jiarun */
	bool own_jiarun; /* ... which is the one next to this program */
	const char *hosts; /* as jiarun -H has it; NULL: this one */
	unsigned int ranks, threads, pages; /* pages 0: by the seed */
	uint64_t ops, seed;
	uint32_t first_round;
	unsigned int stall_s; /* seconds without progress: hung */
	const char *set[JOB_SETS]; /* name=value */
	unsigned int nsets;
	bool vary; /* rounds change parameters with jia_set() */
	bool quiet; /* output of the ranks goes to /dev/null */
};

struct job_result {
	uint64_t ops;
	uint32_t rounds;
	double seconds;
};

/* 0: no violation; 1: one, which has been reported on stderr; -errno: the job
 * could not be started. */
int job_run(const struct job *job, struct job_result *out);

/* Whether the parameters ask for release consistency. */
bool job_is_release(const struct job *job);

/* report.c: what was found, who did what before it, and how to try again. */
void report_violation(const struct job *job, struct record *rec);
/* ... and where each thread is. */
void report_threads(const struct job *job, struct record *rec);
void report_replay(const struct job *job, uint32_t round);

#endif /* ORACLE_JOB_H */
