/* SPDX-License-Identifier: MIT */
/*
 * sul_keeper.h - a thread that ends its rank with the job.
 *
 * Where jiarun starts the ranks, jiarun watches and ends them.  Where somebody
 * else does, each rank has a keeper, which
 *   looks after one neighbour, the next rank on this host that has not said
 *     good-bye: should it be gone, the job has failed;
 *   waits for the job's failure: then the first of the host's keepers prints it
 *     and tells the launcher, and all of them end their processes.
 *
 * Threads: start and stop are called by one thread.
 */
#ifndef SUL_KEEPER_H
#define SUL_KEEPER_H

#include "sul_job.h"

struct sul_keeper;

enum {
	SUL_KEEPER_END_MS = 3000, /* from a failure to the end, at the latest */
};

/**
 * struct sul_keeper_config - called by the keeper's thread after a failure.
 * @say:   print this text.
 * @abort: ask whoever has started the job to end it.
 */
struct sul_keeper_config {
	struct sul_job *job;
	void (*say)(const char *text);
	void (*abort)(void *ctx, int status, const char *text);
	void *ctx;
};

/* This process is a rank of the job.  -EAGAIN, -ENOMEM: no thread can be made. */
int sul_keeper_start(struct sul_keeper **out,
		     const struct sul_keeper_config *cfg);
/* The rank has said good-bye; NULL is fine. */
void sul_keeper_stop(struct sul_keeper *k);

#endif /* SUL_KEEPER_H */
