/* SPDX-License-Identifier: MIT */
/*
 * sul_keeper.c - see sul_keeper.h.
 *
 * Role:      one thread a process.
 * Invariant: a neighbour is looked after by the first living rank before it, so
 *            whatever dies is noticed as long as one rank lives.
 * Threads:   the keeper's own, with all signals blocked: a handler of the
 *            program shall not run there, and a fault in it is a bug of ours.
 */
#include "sul_keeper.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sul_sleep.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum {
	LOOK_MS = 100, /* how often it looks at its neighbour */
	/* From the failure to the end: the launcher has been asked and ends the
	 * processes in its own way, which has fewer words. */
	LAUNCHER_MS = 500,
};

struct sul_keeper {
	struct sul_keeper_config cfg;
	pthread_t thread;
	struct sul_word stop;
	int neighbour; /* rank; -1: nobody (yet) */
	int pidfd; /* of it; -1: the system has none */
};

static void nap(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

/* --- the neighbour ---------------------------------------------------------------- */

static bool is_there(struct sul_job *job, int rank)
{
	struct sul_job_rank *r = sul_job_rank(job, rank);

	return !sul_job_far(job, rank) && atomic_load(&r->pid) &&
	       atomic_load(&r->state) < SUL_RANK_EXITED;
}

/* The next rank of this host that is there; -1: there is no other. */
static int next_neighbour(struct sul_job *job)
{
	int ranks = sul_job_ranks(job), self = sul_job_self(job);

	for (int i = 1; i < ranks; i++)
		if (is_there(job, (self + i) % ranks))
			return (self + i) % ranks;
	return -1;
}

static pid_t pid_of(const struct sul_keeper *k)
{
	return (pid_t)atomic_load(&sul_job_rank(k->cfg.job, k->neighbour)->pid);
}

static void neighbour_take(struct sul_keeper *k, int rank)
{
	if (k->pidfd >= 0)
		close(k->pidfd);
	k->pidfd = -1;
	k->neighbour = rank;
	if (rank >= 0)
		k->pidfd = (int)syscall(SYS_pidfd_open, pid_of(k), 0);
}

static bool neighbour_gone(const struct sul_keeper *k)
{
	struct pollfd p = { .fd = k->pidfd, .events = POLLIN };

	if (k->pidfd >= 0)
		return poll(&p, 1, 0) == 1;
	return kill(pid_of(k), 0) < 0 && errno == ESRCH;
}

static void report_gone(struct sul_keeper *k)
{
	struct sul_job_rank *r = sul_job_rank(k->cfg.job, k->neighbour);
	char text[SUL_JOB_TEXT_MAX], word[SUL_JOB_NOTE_MAX];

	memcpy(word, r->last_word, sizeof(word));
	word[sizeof(word) - 1] = '\0';
	snprintf(
		text, sizeof(text),
		"rank %d (pid %d)%s%s was killed, crashed or left without jia_exit()%s%s",
		k->neighbour, (int)pid_of(k), r->host_name[0] ? " on " : "",
		r->host_name, word[0] ? ": " : "", word);
	sul_job_fail(k->cfg.job, k->neighbour, 1, text);
}

/* Its good-bye comes before its end: so look at that first, and once more. */
static void look_after(struct sul_keeper *k)
{
	int next = next_neighbour(k->cfg.job);

	if (next != k->neighbour)
		neighbour_take(k, next);
	if (next >= 0 && neighbour_gone(k) && is_there(k->cfg.job, next))
		report_gone(k);
}

/* --- the end --------------------------------------------------------------------------- */

static _Noreturn void end(const struct sul_keeper *k)
{
	char text[SUL_JOB_TEXT_MAX];
	int rank, status;

	sul_job_failure(k->cfg.job, &rank, &status, text);
	if (sul_job_tell(k->cfg.job, k->cfg.say))
		k->cfg.abort(k->cfg.ctx, status, text);
	nap(LAUNCHER_MS);
	_exit(status ? status : 1);
}

static void *keep(void *arg)
{
	struct sul_keeper *k = arg;
	struct sul_watch stop = { &k->stop, 0 };
	int err;

	for (;;) {
		err = sul_sleep_wait(&stop, 1, sul_job_abort_word(k->cfg.job),
				     NULL, LOOK_MS);
		if (!err)
			return NULL;
		if (err == -ECANCELED)
			end(k);
		look_after(k);
	}
}

int sul_keeper_start(struct sul_keeper **out,
		     const struct sul_keeper_config *cfg)
{
	struct sul_keeper *k = calloc(1, sizeof(*k));
	sigset_t all, before;
	int err;

	if (!k)
		return -ENOMEM;
	k->cfg = *cfg;
	k->neighbour = -1;
	k->pidfd = -1;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&k->thread, NULL, keep, k);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		free(k);
		return -err;
	}
	*out = k;
	return 0;
}

void sul_keeper_stop(struct sul_keeper *k)
{
	if (!k)
		return;
	sul_sleep_notify(&k->stop, 1);
	pthread_join(k->thread, NULL);
	neighbour_take(k, -1);
	free(k);
}
