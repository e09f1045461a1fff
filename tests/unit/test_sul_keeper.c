/* SPDX-License-Identifier: MIT */
/*
 * test_sul_keeper.c - ranks that nobody but their keepers watches.
 *
 * Ranks are forked processes.  What a keeper says and whom it asks to end the
 * job is counted in the rank's counters.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sul_keeper.h"
#include "tests.h"

enum {
	RANKS = 4,
	TOLD = 0, /* counters */
	ASKED = 1,
};

static struct sul_job *mine; /* say() has no argument of ours */
static struct sul_keeper *keeper;

static void count(int counter)
{
	sul_job_rank(mine, sul_job_self(mine))->counters[counter]++;
}

static void say(const char *text)
{
	(void)text;
	count(TOLD);
}

static void ask(void *ctx, int status, const char *text)
{
	(void)ctx, (void)status, (void)text;
	count(ASKED);
}

static void be_rank(const struct sul_job *job, int rank, void (*deed)(void))
{
	struct sul_keeper_config cfg = { .say = say, .abort = ask };
	int fd = dup(sul_job_fd(job));

	if (sul_job_open(&mine, fd, RANKS) || sul_job_enter(mine, rank))
		_exit(100);
	cfg.job = mine;
	if (sul_keeper_start(&keeper, &cfg) ||
	    sul_job_wait_all(mine, SUL_RANK_UP, 10000, NULL) == -ETIMEDOUT)
		_exit(101);
	deed();
	_exit(0);
}

/* All ranks do @deed; their ends as from waitpid(). */
static void run(struct sul_job *job, void (*deed)(void), int status[RANKS])
{
	pid_t pid[RANKS];

	for (int r = 0; r < RANKS; r++) {
		pid[r] = fork();
		if (pid[r] == 0)
			be_rank(job, r, deed);
	}
	for (int r = 0; r < RANKS; r++)
		REQUIRE(waitpid(pid[r], &status[r], 0) == pid[r]);
}

static uint64_t total(struct sul_job *job, int counter)
{
	uint64_t sum = 0;

	for (int r = 0; r < RANKS; r++)
		sum += sul_job_rank(job, r)->counters[counter];
	return sum;
}

/* One failure, told by one, and all have ended with its status; @rank is whose
 * fault it is. */
static void failed_once(struct sul_job *job, const int status[RANKS], int rank,
			int code)
{
	char text[SUL_JOB_TEXT_MAX], name[32];
	int who, what;

	REQUIRE(sul_job_failed(job));
	sul_job_failure(job, &who, &what, text);
	CU_ASSERT_EQUAL(who, rank);
	snprintf(name, sizeof(name), "rank %d", rank);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, name));
	CU_ASSERT_EQUAL(total(job, TOLD), 1);
	CU_ASSERT_EQUAL(total(job, ASKED), 1);
	for (int r = 0; r < RANKS; r++)
		CU_ASSERT(WIFSIGNALED(status[r]) ||
			  WEXITSTATUS(status[r]) == code);
}

static void rank_2_is_killed(void)
{
	if (sul_job_self(mine) == 2)
		raise(SIGKILL);
	pause();
}

static void death__is_told_once_and_ends_all(void)
{
	struct sul_job *job;
	int status[RANKS];

	REQUIRE(sul_job_create(&job, RANKS) == 0);
	run(job, rank_2_is_killed, status);
	failed_once(job, status, 2, 1);
	CU_ASSERT(WIFSIGNALED(status[2]));
	sul_job_close(job);
}

/* Ranks 1 and 2 die; whom rank 1 looked after is not looked at any more. */
static void neighbours_are_killed(void)
{
	if (sul_job_self(mine) == 1) {
		sul_keeper_stop(keeper);
		kill((pid_t)sul_job_rank(mine, 2)->pid, SIGKILL);
		raise(SIGKILL);
	}
	pause();
}

static void death__of_two_neighbours(void)
{
	struct sul_job *job;
	int status[RANKS];

	REQUIRE(sul_job_create(&job, RANKS) == 0);
	run(job, neighbours_are_killed, status);
	failed_once(job, status, 1, 1);
	CU_ASSERT(WIFSIGNALED(status[2]));
	sul_job_close(job);
}

static void rank_3_leaves_in_silence(void)
{
	if (sul_job_self(mine) == 3)
		_exit(0);
	pause();
}

static void leaving__without_good_bye(void)
{
	struct sul_job *job;
	int status[RANKS];

	REQUIRE(sul_job_create(&job, RANKS) == 0);
	run(job, rank_3_leaves_in_silence, status);
	CU_ASSERT_EQUAL(status[3], 0);
	status[3] = status[0];
	failed_once(job, status, 3, 1);
	sul_job_close(job);
}

/* Rank 0 ends long after the others have been looked at. */
static void all_leave_well(void)
{
	struct timespec look = { 0, 300000000 };

	sul_job_set_state(mine, SUL_RANK_EXITED);
	sul_keeper_stop(keeper);
	if (sul_job_self(mine) == 0)
		nanosleep(&look, NULL);
}

static void leaving__with_good_bye(void)
{
	struct sul_job *job;
	int status[RANKS];

	REQUIRE(sul_job_create(&job, RANKS) == 0);
	run(job, all_leave_well, status);
	CU_ASSERT_FALSE(sul_job_failed(job));
	for (int r = 0; r < RANKS; r++)
		CU_ASSERT_EQUAL(status[r], 0);
	sul_job_close(job);
}

static void rank_0_fails(void)
{
	if (sul_job_self(mine) == 0)
		sul_job_fail(mine, 0, 42, "rank 0 is tired");
	for (;;)
		pause();
}

static void failure__ends_ranks_that_wait_for_nothing(void)
{
	struct sul_job *job;
	int status[RANKS];

	REQUIRE(sul_job_create(&job, RANKS) == 0);
	run(job, rank_0_fails, status);
	failed_once(job, status, 0, 42);
	for (int r = 0; r < RANKS; r++)
		CU_ASSERT(WIFEXITED(status[r]));
	sul_job_close(job);
}

CU_TestInfo test_sul_keeper[] = {
	{ "death__is_told_once_and_ends_all",
	  death__is_told_once_and_ends_all },
	{ "death__of_two_neighbours", death__of_two_neighbours },
	{ "leaving__without_good_bye", leaving__without_good_bye },
	{ "leaving__with_good_bye", leaving__with_good_bye },
	{ "failure__ends_ranks_that_wait_for_nothing",
	  failure__ends_ranks_that_wait_for_nothing },
	CU_TEST_INFO_NULL,
};
