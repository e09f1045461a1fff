/* SPDX-License-Identifier: MIT */
/*
 * jiarun_failure.c - what the job's failure was.
 *
 * Invariant: the first failure is decided once (keeper.text is set) and never
 *   changed; from then on ranks are only being ended.
 *
 * Whose fault is it?  A rank that ends badly may have told why before
 * (sul_job_fail()); that text is the better one.  A rank that is killed by a
 * signal that we are about to get as well (Ctrl-C reaches the whole group) has
 * not failed; so a death by such a signal waits a moment for ours.
 */
#include "jiarun_keeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
	SAME_SIGNAL_MS = 50, /* a signal to a group reaches all within this */
	DYING_MS = 500, /* a rank with a fault, its core dump included */
	CLAIMED_MS = 100, /* a rank that writes its failure's text */
};

static void nap_ms(int ms)
{
	poll(NULL, 0, ms);
}

bool jiarun_fail(struct jiarun_keeper *k, int status, char *text)
{
	if (k->text) {
		free(text);
		return false;
	}
	k->text = text ? text : strdup("the job failed (no memory to say why)");
	k->status = status;
	k->decided_ms = jiarun_now_ms();
	if (k->side->decided)
		k->side->decided(k);
	return true;
}

/* Processes that the system has killed for want of memory since it started; 0:
 * it does not say. */
uint64_t jiarun_oom_kills(void)
{
	static const char name[] = "oom_kill ";
	FILE *f = fopen("/proc/vmstat", "re");
	uint64_t nr = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, sizeof(name) - 1))
			nr = strtoull(line + sizeof(name) - 1, NULL, 10);
	if (f)
		fclose(f);
	return nr;
}

/* How @rank has ended, and whether the system may have done it. */
static char *end_text(struct jiarun_keeper *k, int rank)
{
	const struct jiarun_rank *r = &k->ranks.rank[rank];
	char *text = jiarun_report_end(k->job, r, rank), *more;

	if (!text || !WIFSIGNALED(r->status) ||
	    WTERMSIG(r->status) != SIGKILL ||
	    jiarun_oom_kills() == k->oom_kills)
		return text;
	more = jiarun_text(
		"%s; the system has killed processes for want of memory since the job began: see dmesg(1), and the limits of the cgroup",
		text);
	if (!more)
		return text;
	free(text);
	return more;
}

/* 128 + signal, or the exit status. */
static int status_of(const struct jiarun_rank *r)
{
	return WIFSIGNALED(r->status) ? 128 + WTERMSIG(r->status) :
					WEXITSTATUS(r->status);
}

/* @rank has a fault that is none of the runtime's and is about to die of it, as
 * it would without us; what it dies of is the message. */
static char *death_text(struct jiarun_keeper *k, int rank, int *status)
{
	struct jiarun_rank *r = &k->ranks.rank[rank];
	int64_t end = jiarun_now_ms() + DYING_MS;
	int got;

	while (!r->far && !r->ended && jiarun_now_ms() < end) {
		if (waitpid(r->pid, &got, WNOHANG) != r->pid) {
			nap_ms(2);
			continue;
		}
		jiarun_ranks_ended(&k->ranks, r->pid, got);
		if (k->side->ended)
			k->side->ended(k, rank);
	}
	if (!r->ended || !status_of(r))
		return jiarun_report_failed(k->job, r, rank);
	*status = status_of(r);
	return end_text(k, rank);
}

bool jiarun_fail_as_told(struct jiarun_keeper *k)
{
	int rank, status;
	char *text;

	if (!sul_job_failed(k->job))
		return false;
	text = jiarun_report_failure(k->job, &k->ranks, &rank, &status);
	if (!text && rank >= 0)
		text = death_text(k, rank, &status);
	jiarun_fail(k, status, text);
	return true;
}

bool jiarun_fail_by(struct jiarun_keeper *k, int rank, int status, char *text)
{
	int64_t end = jiarun_now_ms() + CLAIMED_MS;

	if (k->text || !k->job ||
	    sul_job_fail(k->job, rank, status, text ? text : ""))
		return jiarun_fail(k, status, text);
	while (!sul_job_failed(k->job) && jiarun_now_ms() < end)
		nap_ms(1);
	if (!jiarun_fail_as_told(k)) /* it died while writing */
		return jiarun_fail(k, status, text);
	free(text);
	return false;
}

void jiarun_fail_interrupted(struct jiarun_keeper *k, int sig)
{
	jiarun_fail_by(k, -1, 128 + sig,
		       jiarun_text("ended by signal %d (%s)%s", sig,
				   strsignal(sig), k->o->where));
}

static bool stops_us(int sig)
{
	return sig == SIGINT || sig == SIGTERM || sig == SIGHUP ||
	       sig == SIGQUIT;
}

/* A rank died of a signal that ends jobs: are we meant too? */
static bool same_signal_for_us(struct jiarun_keeper *k)
{
	int64_t end = jiarun_now_ms() + SAME_SIGNAL_MS;
	int got;

	do {
		while ((got = jiarun_signal_next(k->signals.fd, k->in,
						 k->o->debug_rank >= 0)))
			if (stops_us(got)) {
				jiarun_fail_interrupted(k, got);
				return true;
			}
		nap_ms(5);
	} while (jiarun_now_ms() < end);
	return false;
}

void jiarun_fail_by_end(struct jiarun_keeper *k, int rank)
{
	const struct jiarun_rank *r = &k->ranks.rank[rank];
	uint32_t state = atomic_load(&sul_job_rank(k->job, rank)->state);
	int status = 1;

	if (k->text)
		return;
	if (WIFSIGNALED(r->status)) {
		status = 128 + WTERMSIG(r->status);
		if (stops_us(WTERMSIG(r->status)) && same_signal_for_us(k))
			return;
	} else if (WEXITSTATUS(r->status)) {
		status = WEXITSTATUS(r->status);
	} else if (state == SUL_RANK_EXITED) {
		return;
	} else if (state == SUL_RANK_NONE) {
		k->early++;
		return; /* fine if nobody attaches: jiarun_fail_by_early() */
	}
	jiarun_fail_by(k, rank, status, end_text(k, rank));
}

static bool anybody_attached(struct jiarun_keeper *k)
{
	for (int r = 0; r < k->ranks.nr; r++) {
		if (atomic_load(&sul_job_rank(k->job, r)->state))
			return true;
	}
	return false;
}

void jiarun_fail_by_early(struct jiarun_keeper *k)
{
	if (k->text || !k->early || !anybody_attached(k))
		return;
	for (int r = 0; r < k->ranks.nr; r++) {
		const struct jiarun_rank *rank = &k->ranks.rank[r];

		if (rank->ended && rank->status == 0 &&
		    !atomic_load(&sul_job_rank(k->job, r)->state)) {
			jiarun_fail_by(k, r, 1,
				       jiarun_report_end(k->job, rank, r));
			return;
		}
	}
}
