/* SPDX-License-Identifier: MIT */
/*
 * worker.h - one thread of the random program.
 *
 * Role: does one thread's part of a round with jia_lock(), jia_unlock(),
 *   jia_barrier(), loads and stores, and checks each load against the record.
 * Invariant: what a thread tries in burst b of epoch e is a function of the
 *   seed; only whether the discipline allows it depends on the others.
 * Threads: a worker belongs to its thread.
 */
#ifndef ORACLE_WORKER_H
#define ORACLE_WORKER_H

#include "plan.h"
#include "record.h"

struct worker {
	struct record *rec;
	const struct plan *plan;
	struct record_thread *me;
	uint32_t rank, thread, id; /* id: of all threads of the job */
	uint32_t epoch, burst;
	unsigned int held[REC_NEST], nheld;
	uint64_t ops;
	bool verifying;
};

/* @w has rec, rank and thread set.  Runs all epochs of @plan. */
void worker_run(struct worker *w, const struct plan *plan);

/* jia_barrier() that checks that it holds back whom it must: all threads with
 * @alone false; else only the first thread of each rank calls. */
void worker_barrier(struct worker *w, bool alone);

/* End the job: something is wrong that is not the value of an item. */
void worker_refuse(struct worker *w, enum violation_kind kind, const char *fmt,
		   ...) __attribute__((format(printf, 3, 4), noreturn));

#endif /* ORACLE_WORKER_H */
