/* SPDX-License-Identifier: MIT */
/*
 * sul_job.h - the control block of a job: who is there, who failed, and why.
 *
 * One memfd per job and host.  Its first pages are this control block; the
 * windows of the ranks follow (sul_shm.c).  The launcher (tools/jiarun) makes
 * the memfd with sul_job_create(), gives every rank the descriptor and the
 * variable JIA_JOB, watches the processes, and prints what the block says;
 * ranks attach with sul_job_attach() or, when nobody launched them, make a job
 * of one rank.
 *
 * Failure: whoever notices one calls sul_job_fail(); the first caller's text is
 * kept, everybody's waits end with -ECANCELED.  No lock, no allocation: it may
 * be called from a signal handler.
 *
 * Threads: all of it is safe from any thread of any rank.
 */
#ifndef SUL_JOB_H
#define SUL_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sul_abi.h"

#pragma GCC visibility push(default) /* what libsul.so exports */

enum {
	SUL_JOB_TEXT_MAX = 1024, /* bytes of the failure's text, with the 0 */
	SUL_JOB_NOTE_MAX = 160, /* bytes of what a rank is doing */
	SUL_JOB_PATH_MAX = 480, /* bytes of a program's name, with the 0 */
	SUL_JOB_BLOB_MAX = 1024, /* what ranks compare: parameters, addresses */
	SUL_JOB_HOST_MAX = 64, /* bytes of a host's name, with the 0 */
	SUL_JOB_ADDRESS_MAX = 256, /* bytes of how to reach a rank */
	SUL_JOB_KEY_BYTES = 16,
	SUL_JOB_COUNTERS_MAX = 128, /* 64-bit counters of a rank */
	SUL_JOB_MORE_BYTES = 60 << 10, /* sul_job_more() */
};

#define SUL_JOB_ENV "JIA_JOB" /* "1:RANK:RANKS:FD:LAUNCHER_PID" */
#define SUL_JOB_NONE "none" /* its other value: of no job, whoever started it */

enum sul_rank_state {
	SUL_RANK_NONE, /* the process has not attached (yet) */
	SUL_RANK_UP, /* attached */
	SUL_RANK_READY, /* its blob is there to be compared */
	SUL_RANK_EXITED, /* has said good-bye: the job does not need it */
};

/*
 * One rank's page(s) of the control block.  Written by that rank only; of a rank
 * of another host by the launcher, sul_job_mirror().
 */
struct sul_job_rank {
	_Atomic uint32_t state; /* enum sul_rank_state */
	_Atomic uint32_t pid;
	uint32_t host; /* sul_job_place() */
	_Atomic uint32_t cpu; /* on which it last waited, + 1: sul_spin.h */
	char host_name[SUL_JOB_HOST_MAX]; /* "": there is one host only */
	/* What it waits for: set before a wait that may be long, cleared after.
	 * Read by the launcher for its report; a torn text is harmless. */
	_Atomic uint64_t waiting_since_ns; /* CLOCK_MONOTONIC; 0: not waiting */
	_Atomic uint64_t waiting_site; /* return address of the jia_ call */
	char waiting[SUL_JOB_NOTE_MAX]; /* "lock 3, held by rank 1" */
	char last_word[SUL_JOB_NOTE_MAX]; /* of a rank that dies of a signal */
	char program[SUL_JOB_PATH_MAX]; /* it runs; "" if not to be found out */
	_Atomic uint32_t blob_len;
	unsigned char blob[SUL_JOB_BLOB_MAX];
	/* How ranks of other hosts reach it: the carrier's own format; there
	 * before the rank is READY. */
	uint32_t address_len;
	unsigned char address[SUL_JOB_ADDRESS_MAX];
	uint64_t counters[SUL_JOB_COUNTERS_MAX]; /* rows of dsm_stat.def */
};

struct sul_job; /* one process's view of the block */

/* --- launcher -------------------------------------------------------------- */
int sul_job_create(struct sul_job **out, int ranks); /* makes the memfd */
int sul_job_fd(const struct sul_job *j);
/*
 * In the child that will become @rank, between fork and exec: put a descriptor
 * that survives the exec at a high number, and JIA_JOB into the environment.
 */
int sul_job_hand_over(const struct sul_job *j, int rank);
/*
 * Several hosts.  Each has a launcher and a block of its own, with all ranks in
 * it.  Before any rank starts: this block is for the ranks of @host ...
 */
void sul_job_set_host(struct sul_job *j, int host);
/* ... and @rank runs on @host, called @name in messages (cut if too long). */
void sul_job_place(struct sul_job *j, int rank, int host, const char *name);
/* The job's secret: made at random by sul_job_create(); the launchers of the
 * other hosts are told and set it. */
void sul_job_set_key(struct sul_job *j,
		     const unsigned char key[SUL_JOB_KEY_BYTES]);
/*
 * What another host's launcher has told of its @rank: everything but host and
 * host_name is taken over, and then the state.  The state never falls.
 */
void sul_job_mirror(struct sul_job *j, int rank,
		    const struct sul_job_rank *theirs);

/* --- rank ------------------------------------------------------------------ */
/*
 * From the environment; without JIA_JOB, or if it says "none", a job of one
 * rank of its own.  Takes JIA_JOB out of the environment and marks the
 * descriptor close-on-exec.
 * -EINVAL: JIA_JOB is there and makes no sense.  -EBADF: its descriptor is not
 * a job's.  -EBUSY: another process has been this rank already.
 * sul_job_create()'s for a job of one's own.
 */
int sul_job_attach(struct sul_job **out);
/* False: a job of its own, or one without a launcher of ours (below). */
bool sul_job_launched(const struct sul_job *j);
void sul_job_close(struct sul_job *j); /* NULL is fine */

/*
 * Without a launcher of ours (sul_pmix.h) a rank makes the block, the others
 * find it.  The block in @fd of a job of @ranks; @fd is taken over on success.
 * -EBADF: it is none.
 */
int sul_job_open(struct sul_job **out, int fd, int ranks);
/* Become @rank.  -EBUSY: another process has been this rank already. */
int sul_job_enter(struct sul_job *j, int rank);

int sul_job_self(const struct sul_job *j); /* rank; -1 in the launcher */
int sul_job_ranks(const struct sul_job *j);
struct sul_job_rank *sul_job_rank(struct sul_job *j, int rank);
/* @rank runs on another host than this block's. */
bool sul_job_far(const struct sul_job *j, int rank);
const unsigned char *sul_job_key(const struct sul_job *j);
/* SUL_JOB_MORE_BYTES that the rank fills as it likes, zero at first, aligned to
 * a page; untouched they take no memory. */
void *sul_job_more(struct sul_job *j, int rank);
size_t sul_job_bytes(const struct sul_job *j); /* of the block, whole pages */

/* Wait until every rank is in @state or later; -ECANCELED, -ETIMEDOUT with the
 * first rank that is missing in *@missing. */
int sul_job_wait_all(struct sul_job *j, enum sul_rank_state state,
		     int timeout_ms, int *missing);
void sul_job_set_state(struct sul_job *j, enum sul_rank_state state);

/* --- failure --------------------------------------------------------------- */
/*
 * End the job: @rank is whose fault it is (-1: nobody's), @status the exit
 * status the job shall have.  True if this was the first failure.
 */
bool sul_job_fail(struct sul_job *j, int rank, int status, const char *text);
bool sul_job_failed(const struct sul_job *j);
/* After sul_job_failed(): rank, status and text of the first failure. */
void sul_job_failure(const struct sul_job *j, int *rank, int *status,
		     char text[SUL_JOB_TEXT_MAX]);
/* After sul_job_failed(), where no launcher does: print the text.  Of all who call,
 * the first does it (true); the others return when it is done. */
bool sul_job_tell(struct sul_job *j, void (*say)(const char *text));
/* The word that says it: nonzero after a failure; waiters watch it too. */
struct sul_word *sul_job_abort_word(struct sul_job *j);

#pragma GCC visibility pop

#endif /* SUL_JOB_H */
