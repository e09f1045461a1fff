/* SPDX-License-Identifier: MIT */
/*
 * record.h - what shared memory must contain, kept where no protocol can err.
 *
 * Role: one memfd that all ranks of the job and the process that started it map
 *   MAP_SHARED: the hardware keeps it coherent.  It holds, for every item of
 *   shared memory, how often it was written (its value follows from that) and
 *   who may use it in this epoch; who holds each lock; who has reached which
 *   barrier; what each thread did last; and the first violation.
 * Invariant: a count is changed by the thread that the discipline of the item
 *   entitles to write it, right after the store to shared memory.
 * Threads: any.  Words are atomics.  Between a store to shared memory and the
 *   release that follows there is no read-modify-write and no full fence in
 *   here: it would hide a fence that the protocol forgot.
 * Locks: none.
 */
#ifndef ORACLE_RECORD_H
#define ORACLE_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	REC_THREADS = 256, /* of all ranks */
	REC_LOCKS = 8, /* in use in one round */
	REC_TOKENS = 4,
	REC_ITEMS = 8192, /* in one round */
	REC_EVENTS = 1024, /* kept per thread */
	REC_NEST = 3 /* locks held by one thread */
};

/* How an item may be used. */
enum {
	RULE_LOCK = 0, /* + lock: under that lock */
	RULE_EPOCH = REC_LOCKS, /* one writer, or readers, per epoch */
	RULE_TOKEN, /* + token: by whoever has that token */
	RULES = RULE_TOKEN + REC_TOKENS
};

enum event_kind {
#define EVENT(name, text, item) EV_##name,
#include "event.def"
	EV_KINDS
};

enum violation_kind {
	BAD_NOTHING,
	BAD_VALUE, /* an item has not the value last written */
	BAD_PADDING, /* a byte that nobody writes is not zero */
	BAD_LOCK, /* a lock was given to two threads */
	BAD_BARRIER, /* a barrier let somebody pass too early */
	BAD_SETUP /* the job is not as it was asked for */
};

struct record_event {
	uint64_t ns;
	uint32_t kind, arg, count;
};

/* Of one thread of the job, written by it alone. */
struct record_thread {
	_Alignas(64) _Atomic uint64_t entered; /* barriers reached */
	_Alignas(64) _Atomic uint64_t ops;
	uint32_t next_event;
	struct record_event event[REC_EVENTS];
};

struct record_truth {
	_Atomic uint64_t claim; /* RULE_EPOCH: see record_claim() */
	_Atomic uint32_t count; /* writes so far */
	_Atomic uint32_t writer; /* the last one: thread of the job */
};

/* The first violation.  Set by the thread that finds it, read by the parent. */
struct record_violation {
	_Atomic uint32_t state; /* 0 none, 1 being written, 2 complete */
	uint32_t kind, rank, thread, round, epoch, burst;
	uint32_t item, area, size, count, writer, verifying;
	uint64_t address, offset; /* of the item; offset in its area */
	uint64_t got, want, again; /* again: read once more, 1 ms later */
	uint32_t held[REC_NEST], nheld;
	char text[160];
};

struct record {
	/* Set before the job starts, then constant. */
	uint64_t seed, ops;
	uint32_t ranks, threads, pages, release, vary, first_round;

	/* Set by rank 0 between two barriers. */
	_Atomic uint32_t round, stop;

	_Atomic uint32_t holder[REC_LOCKS]; /* thread + 1, or 0 */
	_Atomic uint32_t token[REC_TOKENS]; /* see record_token_*() */
	struct record_violation bad;
	struct record_thread thread[REC_THREADS];
	struct record_truth truth[REC_ITEMS];
};

/* A new record in an inheritable memfd, or -errno. */
int record_create(struct record **out, int *fd);
int record_attach(struct record **out, int fd);
void record_close(struct record *rec, int fd);

/* Nothing written, no claims, token k lies under lock k % @nlocks. */
void record_reset(struct record *rec, uint32_t round, unsigned int nlocks);

/* Whether thread @me may read (or write) a RULE_EPOCH item in @epoch: a writer
 * excludes all others until the next barrier, readers exclude a writer. */
bool record_claim(struct record *rec, uint32_t item, uint32_t epoch,
		  uint32_t me, bool write);

/* Operations of all threads. */
uint64_t record_ops(struct record *rec);

void record_event(struct record_thread *thr, enum event_kind kind, uint32_t arg,
		  uint32_t count);

/* Token k: lies under a lock, or is with a thread. */
static inline uint32_t record_token_lies(uint32_t lock)
{
	return lock << 1;
}

static inline uint32_t record_token_with(uint32_t me)
{
	return me << 1 | 1;
}

#endif /* ORACLE_RECORD_H */
