/* SPDX-License-Identifier: MIT */
/*
 * test_sul_udp_silence.c - the carriers for other hosts: ranks that stop, and ranks
 * that leave.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sul_bench.h"
#include "tests.h"

static pid_t pid_of(const struct sul_port *p, int rank)
{
	return (pid_t)sul_job_rank(p->job, rank)->pid;
}

/* In a child, since nobody else is there to let @pid go on after @ms. */
static pid_t stop_for(pid_t pid, unsigned int ms)
{
	pid_t child;

	kill(pid, SIGSTOP);
	child = fork();
	if (!child) {
		usleep(ms * 1000);
		kill(pid, SIGCONT);
		_exit(0);
	}
	return child;
}

enum {
	STOP_MS = 700,
	ADDITIONS = 300
};

static int go_on_after_a_stop(struct sul_port *p, void *ctx)
{
	uint64_t *own = sul_window(p, 0), begin, was;
	int status;

	(void)ctx;
	MUST(!bench_meet(p, 1));
	if (!sul_rank(p)) {
		pid_t child;

		begin = bench_now_ms();
		child = stop_for(pid_of(p, 1), STOP_MS);
		for (uint64_t i = 0; i < ADDITIONS; i++) {
			MUST(!sul_amo(p, 1, 0, 0, SUL_AMO_ADD, 1, 0, &was));
			MUST(!sul_flush(p));
			MUST(was == i);
		}
		MUST(bench_now_ms() - begin >= STOP_MS);
		MUST(waitpid(child, &status, 0) == child);
	}
	MUST(!bench_meet(p, 2));
	MUST(!sul_rank(p) || own[0] == ADDITIONS);
	return 0;
}

static void a_stop_shorter_than_the_limit_loses_nothing(void)
{
	bench_over_networks((struct bench){ .ranks = 2,
					    .silence_ms = 3 * STOP_MS },
			    go_on_after_a_stop, NULL);
}

static int say_who_is_silent(struct sul_port *p, void *ctx)
{
	char text[SUL_JOB_TEXT_MAX];
	int rank, status;
	uint64_t begin;

	(void)ctx;
	MUST(!bench_meet(p, 1));
	if (sul_rank(p) == 1)
		return sul_wait(p, sul_window(p, 0), 0, -1) != -ECANCELED;
	if (sul_rank(p) == 2) {
		MUST(sul_wait(p, sul_window(p, 0), 0, -1) == -ECANCELED);
		return 0;
	}
	kill(pid_of(p, 1), SIGSTOP);
	begin = bench_now_ms();
	MUST(!sul_amo(p, 1, 0, 256, SUL_AMO_ADD, 1, 0, NULL));
	rank = sul_flush(p);
	kill(pid_of(p, 1), SIGCONT);
	MUST(rank == -EHOSTDOWN || rank == -ECANCELED);
	MUST(bench_now_ms() - begin >= 450 && bench_now_ms() - begin < 5000);
	MUST(sul_put(p, 1, 0, 256, &begin, 8) == -EHOSTDOWN);
	MUST(sul_job_failed(p->job));
	sul_job_failure(p->job, &rank, &status, text);
	MUST(rank == 1);
	MUST(!strncmp(text,
		      "rank 1 has been silent for 0.5 s (parameter silence)",
		      52));
	return 0;
}

static void a_longer_stop_ends_the_job_and_names_the_rank(void)
{
	bench_over_udp((struct bench){ .ranks = 3, .silence_ms = 500 },
		       say_who_is_silent, NULL);
}

/* Neither has ever sent the other anything. */
static int miss_who_was_never_talked_to(struct sul_port *p, void *ctx)
{
	uint64_t nothing;

	if (sul_rank(p)) {
		usleep(100000); /* the others have opened their ports */
		kill(getpid(), SIGSTOP);
		return 0;
	}
	if (*(bool *)ctx) {
		MUST(!sul_get(p, 1, 0, 0, &nothing, 0, NULL, 0));
		MUST(!sul_flush(p));
	}
	MUST(sul_wait(p, sul_window(p, 0), 0, 20000) == -ECANCELED);
	kill(pid_of(p, 1), SIGCONT);
	return 0;
}

static void a_silence_is_noticed_though_nothing_was_ever_sent(void)
{
	struct bench b = { .ranks = 2, .silence_ms = 400 };
	bool get = false;

	bench_over_udp(b, miss_who_was_never_talked_to, &get);
	get = true; /* of nothing: no packet */
	bench_over_udp(b, miss_who_was_never_talked_to, &get);
}

/* Rank *@ctx leaves while the other one has other things to do. */
static int need_who_has_left(struct sul_port *p, void *ctx)
{
	int rank, status, goes = *(int *)ctx;
	char text[SUL_JOB_TEXT_MAX], want[64];
	uint64_t v;

	MUST(!bench_meet(p, 1));
	if (sul_rank(p) == goes) {
		MUST(sul_leave(p, 1) == -ETIMEDOUT);
		return 0;
	}
	usleep(1500000); /* much longer than the silence limit */
	MUST(!sul_job_failed(p->job));
	MUST(sul_get(p, goes, 0, 256, &v, sizeof(v), NULL, 0) == -EHOSTDOWN);
	MUST(sul_job_failed(p->job));
	sul_job_failure(p->job, &rank, &status, text);
	MUST(rank == goes);
	snprintf(want, sizeof(want),
		 "rank %d has left the job, but rank %d still needs it", goes,
		 1 - goes);
	MUST(!strcmp(text, want));
	return 0;
}

static void who_has_left_is_not_silent_and_is_named_if_needed(void)
{
	for (int goes = 0; goes < 2; goes++)
		bench_over_networks((struct bench){ .ranks = 2,
						    .silence_ms = 400 },
				    need_who_has_left, &goes);
}

CU_TestInfo test_sul_udp_silence[] = {
	{ "a stop shorter than the limit loses nothing",
	  a_stop_shorter_than_the_limit_loses_nothing },
	{ "a longer stop ends the job and names the rank",
	  a_longer_stop_ends_the_job_and_names_the_rank },
	{ "a silence is noticed though nothing was ever sent",
	  a_silence_is_noticed_though_nothing_was_ever_sent },
	{ "who has left is not silent, and is named if needed",
	  who_has_left_is_not_silent_and_is_named_if_needed },
	CU_TEST_INFO_NULL,
};
