/* SPDX-License-Identifier: MIT */
/*
 * jiarun_plan.h - what another host has to know to run its ranks of a job.
 *
 * The front's keeper makes it and tells it, message by message; the other host's
 * keeper puts it together again, and makes itself what the user's shell was: its
 * directory, limits, and of the environment what is the job's (JIA_*) or was
 * asked for (jiarun -x).
 *
 * Nothing of it is on a command line: the key is a secret, arguments may be.
 */
#ifndef JIARUN_PLAN_H
#define JIARUN_PLAN_H

#include "jiarun.h"
#include "jiarun_wire.h"

struct jiarun_strings {
	char **at; /* NULL behind the last */
	size_t nr;
};

/**
 * struct jiarun_plan - a job as another host sees it.
 * @host:       which of the @hosts it is for.
 * @input_rank: gets standard input; @ranks: nobody does.
 * @limit:      soft limits, RLIM_INFINITY as UINT64_MAX; @limits: which of them
 *              are known.
 * @bytes:      of all strings, bounded.
 * @complete:   nothing is missing.
 */
struct jiarun_plan {
	int ranks, hosts, host, input_rank;
	int64_t silence_ms;
	bool stats, begun, placed, complete;
	unsigned char key[SUL_JOB_KEY_BYTES];
	unsigned char places[2 * SUL_RANKS_MAX]; /* each rank's host */
	uint64_t limit[JIARUN_LIMITS];
	uint32_t limits;
	struct jiarun_strings name, variable, argument;
	char *directory;
	size_t bytes;
};

int jiarun_plan_host_of(const struct jiarun_plan *p, int rank);

/* What @o asks for; the key is @job's.  -ENOMEM, or what getcwd() said. */
int jiarun_plan_make(struct jiarun_plan *p, const struct jiarun_options *o,
		     const struct jiarun_inherited *in,
		     const struct sul_job *job);
/* Message @i, from 0, for @host; false: there is none. */
bool jiarun_plan_message(const struct jiarun_plan *p, int host, size_t i,
			 struct jiarun_message *m);

/* The next of those messages; 0, or -EPROTO with the reason. */
int jiarun_plan_take(struct jiarun_plan *p, const struct jiarun_message *m,
		     char why[JIARUN_WHY_MAX]);
/* This process becomes what it says: NULL, or why not (malloc()ed). */
char *jiarun_plan_apply(const struct jiarun_plan *p,
			struct jiarun_inherited *in);
void jiarun_plan_free(struct jiarun_plan *p);

#endif /* JIARUN_PLAN_H */
