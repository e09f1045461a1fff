/* SPDX-License-Identifier: MIT */
/*
 * jiabench.h - what the parts of jiabench have in common.
 *
 * jiabench is two programs in one: started alone it is the *launcher*, which
 * starts itself under jiarun once for each number of ranks, mode and
 * repetition; there it is a *rank*.  Rank 0 measures and writes what it found
 * into a *board*, a file in memory that launcher and ranks share; it stays
 * through all repetitions, so that samples of different jobs, interleaved with
 * those of other modes, come together.  A rank without a launcher (jiarun -n 2
 * jiabench) makes a board of its own and prints it.
 *
 * How time is taken.  Every row is measured in repetitions, and in each of
 * them the *floor* that the row is compared with is measured, too, by the same
 * processes.  Events (faults, messages, ...) are differences of this rank's
 * counters, read outside of what is timed.  System calls are counted by a
 * tracer (bench_trace.c) in a run of its own, in which nothing is timed and
 * waits spin without end, so that they do not depend on how slow the tracer is.
 */
#ifndef JIABENCH_H
#define JIABENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench.h"

enum {
	BENCH_MODES = 16,
	BENCH_RANKS_MAX = 64
};

enum bench_row {
#define ROW(name, ...) BENCH_##name,
#include "jiabench.def"
	BENCH_ROWS
};

enum bench_floor {
	BENCH_FAULT, /* SIGSEGV, copy of a page, mprotect; page table ready */
	BENCH_SPIN, /* a cache line to another process and back */
	BENCH_WAKE, /* wake a sleeping process */
	BENCH_COPY, /* memcpy of 4 KiB */
	BENCH_FLOORS
};

enum bench_none {
	BENCH_NO_FAULT = 1,
	BENCH_NO_CALL = 2,
	BENCH_NO_PROTECT = 4
};

enum bench_event {
	BENCH_EV_FAULT,
	BENCH_EV_PROTECT,
	BENCH_EV_MSG,
	BENCH_EV_BYTES,
	BENCH_EV_VISIT, /* pages compared, refreshed or dropped */
	BENCH_EV_PACKET, /* over a network, sent and received */
	BENCH_EV_AGAIN, /* ... sent once more */
	BENCH_EV_WIRE, /* bytes in packets */
	BENCH_EV_CALL, /* system calls: from the traced run ... */
	BENCH_EV_WORK, /* ... those of them that did something */
	BENCH_EVENTS
};

struct bench_info {
	const char *name, *what;
	enum bench_floor floor;
	double ratio, us; /* figures to meet; 0: none */
	unsigned int none;
	double argo, factor;
};

struct bench_result {
	struct bench_samples op, floor;
	double events[BENCH_EVENTS]; /* in all, by @ops operations of rank 0 */
	double ops;
};

struct bench_board {
	struct bench_word ping, pong; /* of the floors */
	struct bench_word
		asked; /* of hand_over: who comes next is in the queue */
	struct bench_word got; /* ... in which turn the lock was got last */
	uint64_t gave_ns; /* ... and when the lock was given */
	bool counted; /* rank 0's system calls */
	struct bench_samples floor[BENCH_FLOORS];
	struct bench_result row[BENCH_ROWS];
};

/* What was asked for. */
struct bench_options {
	uint64_t rows; /* bit of enum bench_row */
	int ranks[BENCH_MODES], nr_ranks;
	int reps; /* of a row in a job */
	int repeat; /* jobs of a mode */
	bool hardware, count, big, json;
	struct bench_sets sets;
	int board; /* descriptor of the launcher's board, or -1 */
};

/* A rank at work. */
struct bench {
	const struct bench_options *o;
	struct bench_board *board;
	struct bench_trace *trace; /* NULL: system calls are not counted */
	struct bench_result *result; /* of the row under way; NULL: warming up */
	struct bench_floors *floors;
	enum bench_floor floor; /* of the row under way */
	int home; /* rank whose pages are "another home's" */
	uint64_t start_ns;
	uint64_t before[BENCH_EVENTS];
	unsigned char fill; /* never stored twice in a row */
};

const struct bench_info *bench_info(enum bench_row row);
const char *bench_floor_name(enum bench_floor f);

/* --- jiabench_sample.c -------------------------------------------------------- */

/* Rank 0 only; all of them do nothing while warming up. */
void bench_events_begin(struct bench *b);
void bench_events_end(struct bench *b, double ops);
void bench_time_begin(struct bench *b);
void bench_time_end(struct bench *b, double ops); /* one sample: time / @ops */

/* --- jiabench_floor.c: collective ------------------------------------------------ */

struct bench_floors *bench_floors_open(void);
void bench_floors_close(struct bench_floors *f);
/* Some samples of @kind into the board, and into @also unless that is NULL. */
void bench_floor_take(struct bench *b, enum bench_floor kind,
		      struct bench_samples *also);

/* --- jiabench_page.c, jiabench_sync.c: the rows, collective ------------------------- */

#define ROW(name, ...) void bench_row_##name(struct bench *b);
#include "jiabench.def"

/* --- jiabench_rank.c ----------------------------------------------------------------- */

int bench_rank_main(int argc, char **argv, const struct bench_options *o);

/* --- jiabench_launch.c ---------------------------------------------------------------- */

/* A number of ranks in one mode, and what was found. */
struct bench_mode {
	int ranks;
	bool hardware;
	struct bench_board *board;
	bool calls_known;
};
int bench_launch(const struct bench_options *o);
/* @fd: a new one is made if *fd is -1.  NULL on failure, errno is set. */
struct bench_board *bench_board_map(int *fd);

/* --- jiabench_print.c ------------------------------------------------------------------ */

/* @hw: the same ranks on hardware shared memory, @two: 2 ranks; or NULL. */
void bench_print_table(const struct bench_mode *m, const struct bench_mode *hw,
		       const struct bench_mode *two,
		       const struct bench_options *o);
/* 0 or -ENOMEM, -EIO. */
int bench_print_json(const struct bench_mode *modes, int nr,
		     const struct bench_options *o);

#endif /* JIABENCH_H */
