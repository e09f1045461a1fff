/* SPDX-License-Identifier: MIT */
/*
 * sul_pmix.h - a job whose ranks were started by mpirun, srun or the like.
 *
 * Such a launcher runs a PMIx server on every host; through it the ranks find
 * each other, and no jiarun is involved.  It starts processes and passes bytes
 * on; all the rest is done here:
 *
 *   the block     of a host is made by the lowest rank there, the *leader*, who
 *                 publishes where it can be found; the others open it through
 *                 /proc, which the system allows to processes of one user;
 *   other hosts   what their ranks have published is mirrored into the block by
 *                 the leader, so that sul_job_wait_all() and all the rest find
 *                 what they would find in a job of jiarun's;
 *   failure       is found, told and passed on by a keeper (sul_keeper.h).
 *
 * Trust.  The job's key is made by rank 0 and goes to the other hosts through
 * PMIx: the servers check that who asks is the job's user; between hosts it goes
 * over the launcher's own wire, which is as secret as that launcher makes it.
 * A job on one host publishes no key.
 *
 * Threads: one calls.  A keeper, and threads of the PMIx library, run besides.
 */
#ifndef SUL_PMIX_H
#define SUL_PMIX_H

#include "sul_job.h"

#pragma GCC visibility push(default) /* what libsul.so exports */

struct sul_pmix;

/* The environment says that a PMIx launcher has started this process, and not
 * that it is some rank's child. */
bool sul_pmix_here(void);

/*
 * Join the job: sul_job_attach()'s part.  Nothing in *@out: it has one rank, and
 * PMIx no further part in it.  After a failure of the job @say is called with
 * its text, by one rank of a host.  -errno with @text (SUL_JOB_TEXT_MAX), and
 * this process shall end with a status that is not 0.
 */
int sul_pmix_attach(struct sul_pmix **out, struct sul_job **job,
		    void (*say)(const char *text), char *text);

/*
 * This rank is READY: let the ranks of the other hosts know, and get to know
 * them.  sul_job_wait_all() then tells when all are.  -ECANCELED; -ETIMEDOUT:
 * a rank of some host is missing; -EPROTO: sul_pmix_said().
 */
int sul_pmix_meet(struct sul_pmix *p, int timeout_ms);
const char *sul_pmix_said(const struct sul_pmix *p);

/*
 * All ranks have come to the end: this one is EXITED, and so are soon those of
 * other hosts, as nobody leaves before all are here.  @p is gone, unless this
 * fails: as sul_pmix_meet().
 */
int sul_pmix_leave(struct sul_pmix *p, int timeout_ms);

/* After sul_job_fail(), before this process ends itself: time for the keepers to
 * do it properly.  Safe in a signal handler. */
void sul_pmix_await_end(void);

#pragma GCC visibility pop

#endif /* SUL_PMIX_H */
