/* SPDX-License-Identifier: MIT */
/*
 * jiarun_far.h - the hub's records of the other hosts (jiarun_remote.c, their
 * life; jiarun_far.c, what they say).
 */
#ifndef JIARUN_FAR_H
#define JIARUN_FAR_H

#include "jiarun_flow.h"
#include "jiarun_keeper.h"
#include "jiarun_link.h"
#include "jiarun_ssh.h"

/**
 * struct jiarun_far - another host.
 * @errors:  a pipe for what its ssh says: the labeller's end, the ssh's end.
 * @opened:  there is a link.
 * @going:   it has been told of the job.
 * @done:    it has ended its part.
 * @lost:    that is why the job fails, or nobody cares any more.
 * @ended:   its ssh has, with @status, at @gone_ms.
 * @alive:   ranks there that have not ended.
 * @held:    bytes of output that it has sent and that are still here.
 * @answered: the last question that it has.
 * @failed:  the job's failure is of there: it may find better words.
 */
struct jiarun_far {
	struct jiarun_keeper *k;
	const char *name;
	int index;
	int errors[2];
	struct jiarun_ssh ssh;
	struct jiarun_link link;
	bool opened, going, done, lost, ended, failed;
	int status;
	int64_t gone_ms;
	int alive;
	size_t held;
	uint64_t answered;
};

/**
 * struct jiarun_remote - all of them.
 * @drip:   [2 * ranks] of far ranks: standard output and errors.
 * @told:   [ranks] of ranks here: the state that all hosts know.
 * @line:   [ranks] of the last report; NULL: no answer.
 * @feeder: reads our standard input, if that goes to another host.
 * @input, @credit: what it has read, and how much we may send of it.
 */
struct jiarun_remote {
	struct jiarun_far *far;
	int nr;
	struct jiarun_drip *drip;
	uint32_t *told;
	char **line;
	uint64_t question;
	pid_t feeder;
	struct jiarun_tap input;
	size_t credit;
	bool closing; /* no host is missed any more */
	struct jiarun_side side;
};

/* The other host that @rank runs on; NULL: it is here. */
struct jiarun_far *jiarun_far_of(struct jiarun_keeper *k, int rank);

/* A message from host @ctx: struct jiarun_link's take(). */
int jiarun_far_take(void *ctx, const struct jiarun_message *m,
		    char why[JIARUN_WHY_MAX]);
/* Tell all hosts but @but (may be NULL). */
void jiarun_far_tell(struct jiarun_remote *rm, const struct jiarun_far *but,
		     const struct jiarun_message *m);
/* A drip has got rid of output: struct jiarun_drip's taken(). */
void jiarun_far_drained(void *ctx, int id, size_t n, bool gone);

#endif /* JIARUN_FAR_H */
