/* SPDX-License-Identifier: MIT */
/*
 * jiarun_remote.h - the hub's side of a job with other hosts.
 *
 * All of these do nothing if every rank is here.  In this order:
 */
#ifndef JIARUN_REMOTE_H
#define JIARUN_REMOTE_H

#include "jiarun_keeper.h"

/* What is needed before the first process is made; false: the job failed. */
bool jiarun_remote_open(struct jiarun_keeper *k);
/* The labeller shall read what the ssh's say; false: no memory or pipes. */
bool jiarun_remote_outputs(struct jiarun_keeper *k, struct jiarun_output *out);
/* Reach all hosts and tell them of the job; false: it failed. */
bool jiarun_remote_start(struct jiarun_keeper *k);
/* Wait for the hosts to end their part, and see to it. */
void jiarun_remote_end(struct jiarun_keeper *k);
void jiarun_remote_close(struct jiarun_keeper *k);

#endif /* JIARUN_REMOTE_H */
