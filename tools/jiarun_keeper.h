/* SPDX-License-Identifier: MIT */
/*
 * jiarun_keeper.h - a keeper's inside, and what differs between three of them.
 *
 *   alone   all ranks are here.
 *   hub     the front's keeper of a job with other hosts (jiarun_remote.c): its
 *           own ranks, if it has any, and a link to the keeper of each other
 *           host.  It decides what the job's failure was, and reports.
 *   host    the keeper of another host (jiarun_host.c): its ranks, and the link
 *           to the hub, which is its user.
 *
 * Every keeper has a block with all ranks in it.  What is new of a rank (its
 * state, its card) its keeper tells the hub, which tells the others; so
 * everybody's block is complete, and ranks wait for each other without knowing
 * where they are.  A failure goes the same way.
 */
#ifndef JIARUN_KEEPER_H
#define JIARUN_KEEPER_H

#include "jiarun.h"
#include "jiarun_loop.h"
#include "jiarun_wire.h"

struct jiarun_keeper;

/* What a keeper with others does besides.  Each may be NULL. */
struct jiarun_side {
	/* Ranks here may be in a new state. */
	void (*look)(struct jiarun_keeper *k);
	/* @rank, one of ours, has ended. */
	void (*ended)(struct jiarun_keeper *k, int rank);
	/* A child that is no rank has. */
	void (*child)(struct jiarun_keeper *k, pid_t pid, int status);
	/* The failure, k->text, has just been decided. */
	void (*decided)(struct jiarun_keeper *k);
	/* Asked again to end: at once. */
	void (*hurry)(struct jiarun_keeper *k);
	/* [ranks] lines on what ranks elsewhere wait for; NULL: no answer. */
	char **(*lines)(struct jiarun_keeper *k);
	/* After every sleep, which lasts at most @tick_ms. */
	void (*tick)(struct jiarun_keeper *k);
	int64_t tick_ms;
};

struct jiarun_keeper {
	const struct jiarun_options *o;
	const struct jiarun_inherited *in;
	const struct jiarun_side *side;
	void *others; /* the side's */
	struct jiarun_loop loop;
	struct sul_job *job;
	struct jiarun_ranks ranks;
	struct jiarun_sites *sites;
	struct jiarun_watch signals, front;
	pid_t labeller; /* 0: none, or it has ended */
	pid_t *spare; /* children that end_all() leaves alone */
	size_t nr_spare;
	int early; /* ranks that left without having attached */
	bool report; /* SIGUSR1 has come */
	bool hurry; /* asked again while ending */
	int64_t begun_ms, decided_ms; /* when the job, and its failure, was */
	bool learnt;
	uint64_t oom_kills; /* of the system, when the job began */
	int status; /* of the job */
	char *text; /* the first failure; NULL: none so far */
};

/* --- life (jiarun_keeper.c) ------------------------------------------------------ */

/* k->o and k->in are set; false with a message: this process cannot be a keeper.
 */
bool jiarun_keeper_open(struct jiarun_keeper *k, int sfd, pid_t front);
/* Make the block and say who is where, and list the ranks; false: it failed. */
bool jiarun_keeper_job(struct jiarun_keeper *k);
bool jiarun_keeper_start(struct jiarun_keeper *k); /* its ranks */
void jiarun_keeper_watch(struct jiarun_keeper *k); /* until it is over */
void jiarun_keeper_end(struct jiarun_keeper *k); /* what is left of ranks */
void jiarun_keeper_close(struct jiarun_keeper *k);

/* One sleep; @ms < 0: until something happens. */
void jiarun_keeper_wait(struct jiarun_keeper *k, int64_t ms);
/* Children that have ended. */
void jiarun_keeper_reap(struct jiarun_keeper *k);
/* Kill whatever is below us, but what is spared; false: there is nothing. */
bool jiarun_keeper_kill(struct jiarun_keeper *k, int sig);
/* Leave @pid alone, or not any more.  False: no memory. */
bool jiarun_keeper_spare(struct jiarun_keeper *k, pid_t pid);
void jiarun_keeper_unspare(struct jiarun_keeper *k, pid_t pid);
/* @text with its places named (malloc()ed). */
char *jiarun_keeper_render(struct jiarun_keeper *k, const char *text);

/* --- failure (jiarun_failure.c) --------------------------------------------------- */

/* This is the job's failure, unless there was one: false.  @text (malloc()ed) is
 * taken over. */
bool jiarun_fail(struct jiarun_keeper *k, int status, char *text);
/* The same, unless a rank was first; ends the waits of all ranks. */
bool jiarun_fail_by(struct jiarun_keeper *k, int rank, int status, char *text);
/* A rank has put its own text into the job: it is the one to print. */
bool jiarun_fail_as_told(struct jiarun_keeper *k);
void jiarun_fail_interrupted(struct jiarun_keeper *k, int sig);
/* @rank has ended, and how: does the job fail? */
void jiarun_fail_by_end(struct jiarun_keeper *k, int rank);
/* Somebody attached, and a rank has left that never did. */
void jiarun_fail_by_early(struct jiarun_keeper *k);
/* Processes that this system has killed for want of memory; 0: it does not say. */
uint64_t jiarun_oom_kills(void);

#endif /* JIARUN_KEEPER_H */
