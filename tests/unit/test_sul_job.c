/* SPDX-License-Identifier: MIT */
/*
 * test_sul_job.c - the control block of a job, as launcher and as rank.
 *
 * Ranks are forked processes: a job is shared by processes, not by threads.
 * Each reports with its exit status; 0: all was as it should be.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sul.h"
#include "sul_job.h"
#include "tests.h"

/* Run @rank_main as all ranks of @job; how many did not exit with 0. */
static int run_ranks(struct sul_job *job, int (*rank_main)(struct sul_job *))
{
	int bad = 0, status;
	struct sul_job *mine;

	for (int r = 0; r < sul_job_ranks(job); r++) {
		if (fork() == 0) {
			if (sul_job_hand_over(job, r) || sul_job_attach(&mine))
				_exit(100);
			_exit(rank_main(mine));
		}
	}
	while (wait(&status) > 0)
		bad += status != 0;
	return bad;
}

static void create__out_of_range(void)
{
	struct sul_job *job = NULL;

	CU_ASSERT_EQUAL(sul_job_create(&job, 0), -EINVAL);
	CU_ASSERT_EQUAL(sul_job_create(&job, -1), -EINVAL);
	CU_ASSERT_EQUAL(sul_job_create(&job, SUL_RANKS_MAX + 1), -EINVAL);
	CU_ASSERT_PTR_NULL(job);
	sul_job_close(NULL);
}

static void create__is_nobodys_rank(void)
{
	struct sul_job *job;

	REQUIRE(sul_job_create(&job, SUL_RANKS_MAX) == 0);
	CU_ASSERT_EQUAL(sul_job_self(job), -1);
	CU_ASSERT_EQUAL(sul_job_ranks(job), SUL_RANKS_MAX);
	CU_ASSERT_FALSE(sul_job_launched(job));
	CU_ASSERT_EQUAL(sul_job_bytes(job) % (size_t)sysconf(_SC_PAGESIZE), 0);
	/* It can grow, for the windows, and not shrink. */
	CU_ASSERT_EQUAL(ftruncate(sul_job_fd(job), 1 << 30), 0);
	CU_ASSERT_EQUAL(ftruncate(sul_job_fd(job), 4096), -1);
	sul_job_close(job);
}

static void attach__without_launcher(void)
{
	struct sul_job *job;

	unsetenv(SUL_JOB_ENV);
	REQUIRE(sul_job_attach(&job) == 0);
	CU_ASSERT_EQUAL(sul_job_self(job), 0);
	CU_ASSERT_EQUAL(sul_job_ranks(job), 1);
	CU_ASSERT_FALSE(sul_job_launched(job));
	CU_ASSERT_EQUAL(sul_job_rank(job, 0)->state, SUL_RANK_UP);
	CU_ASSERT_EQUAL(sul_job_rank(job, 0)->pid, (uint32_t)getpid());
	CU_ASSERT(sul_job_fd(job) >= 200);
	CU_ASSERT_EQUAL(sul_job_wait_all(job, SUL_RANK_UP, 0, NULL), 0);
	sul_job_close(job);
}

static void attach__as_a_child_of_a_rank(void)
{
	struct sul_job *job;

	setenv(SUL_JOB_ENV, SUL_JOB_NONE, 1);
	REQUIRE(sul_job_attach(&job) == 0);
	CU_ASSERT_EQUAL(sul_job_ranks(job), 1);
	CU_ASSERT_FALSE(sul_job_launched(job));
	unsetenv(SUL_JOB_ENV);
	sul_job_close(job);
}

/* As a rank does that has found the descriptor somewhere. */
static void open__a_block_that_somebody_has_made(void)
{
	struct sul_job *job, *mine = NULL, *twin;
	int fd;

	REQUIRE(sul_job_create(&job, 3) == 0);
	fd = dup(sul_job_fd(job));
	CU_ASSERT_EQUAL(sul_job_open(&mine, fd, 2), -EBADF);
	CU_ASSERT_EQUAL(sul_job_open(&mine, fd, 0), -EINVAL);
	CU_ASSERT_EQUAL(sul_job_open(&mine, STDIN_FILENO, 3), -EBADF);
	CU_ASSERT_PTR_NULL(mine);
	REQUIRE(sul_job_open(&mine, fd, 3) == 0);
	CU_ASSERT_EQUAL(sul_job_self(mine), -1);
	CU_ASSERT_EQUAL(sul_job_enter(mine, 3), -EINVAL);
	CU_ASSERT_EQUAL(sul_job_enter(mine, 2), 0);
	CU_ASSERT_EQUAL(sul_job_self(mine), 2);
	CU_ASSERT_FALSE(sul_job_launched(mine));
	CU_ASSERT(sul_job_fd(mine) >= 200);
	CU_ASSERT_EQUAL(fcntl(sul_job_fd(mine), F_GETFD), FD_CLOEXEC);
	CU_ASSERT_EQUAL(sul_job_rank(job, 2)->state, SUL_RANK_UP);
	REQUIRE(sul_job_open(&twin, dup(sul_job_fd(job)), 3) == 0);
	CU_ASSERT_EQUAL(sul_job_enter(twin, 2), -EBUSY);
	sul_job_close(twin);
	sul_job_close(mine);
	sul_job_close(job);
}

static int told;

static void say(const char *text)
{
	told += !strcmp(text, "tell it");
}

static int tell_and_count(struct sul_job *job)
{
	bool teller = sul_job_tell(job, say);

	if (teller)
		sul_job_rank(job, sul_job_self(job))->counters[0] = 1;
	return told == teller ? 0 : 1;
}

static void tell__one_of_all_does(void)
{
	uint64_t tellers = 0;
	struct sul_job *job;

	REQUIRE(sul_job_create(&job, 8) == 0);
	sul_job_fail(job, 0, 1, "tell it");
	CU_ASSERT_EQUAL(run_ranks(job, tell_and_count), 0);
	for (int r = 0; r < 8; r++)
		tellers += sul_job_rank(job, r)->counters[0];
	CU_ASSERT_EQUAL(tellers, 1);
	CU_ASSERT_FALSE(sul_job_tell(job, say));
	CU_ASSERT_EQUAL(told, 0);
	sul_job_close(job);
}

static void hand_over__not_a_rank(void)
{
	struct sul_job *job;

	REQUIRE(sul_job_create(&job, 2) == 0);
	CU_ASSERT_EQUAL(sul_job_hand_over(job, -1), -EINVAL);
	CU_ASSERT_EQUAL(sul_job_hand_over(job, 2), -EINVAL);
	CU_ASSERT_PTR_NULL(getenv(SUL_JOB_ENV));
	sul_job_close(job);
}

static void attach__a_rank_that_is_there_already(void)
{
	struct sul_job *job, *first, *second = NULL;

	REQUIRE(sul_job_create(&job, 2) == 0);
	REQUIRE(sul_job_hand_over(job, 1) == 0);
	REQUIRE(sul_job_attach(&first) == 0);
	CU_ASSERT_EQUAL(sul_job_self(first), 1);
	CU_ASSERT_TRUE(sul_job_launched(first));
	CU_ASSERT_PTR_NULL(getenv(SUL_JOB_ENV));
	REQUIRE(sul_job_hand_over(job, 1) == 0);
	CU_ASSERT_EQUAL(sul_job_attach(&second), -EBUSY);
	CU_ASSERT_PTR_NULL(second);
	unsetenv(SUL_JOB_ENV);
	sul_job_close(first);
	sul_job_close(job);
}

static void wait_all__names_who_is_missing(void)
{
	struct sul_job *job, *mine;
	int missing = -1;

	REQUIRE(sul_job_create(&job, 3) == 0);
	REQUIRE(sul_job_hand_over(job, 0) == 0);
	REQUIRE(sul_job_attach(&mine) == 0);
	CU_ASSERT_EQUAL(sul_job_wait_all(job, SUL_RANK_NONE, 0, NULL), 0);
	CU_ASSERT_EQUAL(sul_job_wait_all(job, SUL_RANK_UP, 20, &missing),
			-ETIMEDOUT);
	CU_ASSERT_EQUAL(missing, 1);
	sul_job_close(mine);
	sul_job_close(job);
}

static int pass_all_states(struct sul_job *job)
{
	for (int s = SUL_RANK_UP; s <= SUL_RANK_EXITED; s++) {
		sul_job_set_state(job, (enum sul_rank_state)s);
		/* Backwards is not possible. */
		sul_job_set_state(job, SUL_RANK_NONE);
		if (sul_job_wait_all(job, (enum sul_rank_state)s, 10000, NULL))
			return s;
	}
	return 0;
}

static void wait_all__ranks_go_step_by_step(void)
{
	struct sul_job *job;

	REQUIRE(sul_job_create(&job, 8) == 0);
	CU_ASSERT_EQUAL(run_ranks(job, pass_all_states), 0);
	CU_ASSERT_EQUAL(sul_job_wait_all(job, SUL_RANK_EXITED, 0, NULL), 0);
	sul_job_close(job);
}

static int skip_a_state(struct sul_job *job)
{
	if (sul_job_self(job) == 0)
		sul_job_set_state(job, SUL_RANK_EXITED);
	else
		pass_all_states(job);
	return sul_job_wait_all(job, SUL_RANK_EXITED, 10000, NULL);
}

static void wait_all__a_later_state_counts(void)
{
	struct sul_job *job;

	REQUIRE(sul_job_create(&job, 3) == 0);
	CU_ASSERT_EQUAL(run_ranks(job, skip_a_state), 0);
	sul_job_close(job);
}

static int all_fail_one_wins(struct sul_job *job)
{
	char text[32];

	snprintf(text, sizeof(text), "by %d", sul_job_self(job));
	if (sul_job_fail(job, sul_job_self(job), 10 + sul_job_self(job), text))
		sul_job_rank(job, sul_job_self(job))->counters[0] = 1;
	/* Nobody gets there: the wait ends with the failure. */
	return sul_job_wait_all(job, SUL_RANK_EXITED, 10000, NULL) ==
			       -ECANCELED ?
		       0 :
		       1;
}

static void fail__only_the_first_is_kept(void)
{
	char text[SUL_JOB_TEXT_MAX], expected[32];
	int rank, status, winners = 0;
	struct sul_job *job;

	REQUIRE(sul_job_create(&job, 8) == 0);
	CU_ASSERT_FALSE(sul_job_failed(job));
	CU_ASSERT_EQUAL(run_ranks(job, all_fail_one_wins), 0);
	CU_ASSERT_TRUE(sul_job_failed(job));
	CU_ASSERT_NOT_EQUAL(sul_job_abort_word(job)->value, 0);
	sul_job_failure(job, &rank, &status, text);
	for (int r = 0; r < 8; r++)
		winners += sul_job_rank(job, r)->counters[0] == 1;
	CU_ASSERT_EQUAL(winners, 1);
	CU_ASSERT_EQUAL(sul_job_rank(job, rank)->counters[0], 1);
	CU_ASSERT_EQUAL(status, 10 + rank);
	snprintf(expected, sizeof(expected), "by %d", rank);
	ASSERT_TEXT(text, expected);
	CU_ASSERT_FALSE(sul_job_fail(job, -1, 1, "too late"));
	sul_job_close(job);
}

static int wait_for_a_failure(struct sul_job *job)
{
	if (sul_job_self(job) == 0) {
		usleep(50000); /* the others sleep by now */
		sul_job_fail(job, 0, 1, "now");
	}
	return sul_job_wait_all(job, SUL_RANK_EXITED, -1, NULL) == -ECANCELED ?
		       0 :
		       1;
}

static void fail__wakes_who_sleeps(void)
{
	struct sul_job *job;

	REQUIRE(sul_job_create(&job, 4) == 0);
	CU_ASSERT_EQUAL(run_ranks(job, wait_for_a_failure), 0);
	sul_job_close(job);
}

static void fail__a_long_text_is_cut_and_errno_kept(void)
{
	char text[SUL_JOB_TEXT_MAX], *endless = malloc(100000);
	struct sul_job *job;
	int rank, status;

	REQUIRE(endless);
	REQUIRE(sul_job_create(&job, 1) == 0);
	memset(endless, 'x', 99999);
	endless[99999] = '\0';
	errno = EXDEV;
	CU_ASSERT_TRUE(sul_job_fail(job, -1, 77, endless));
	CU_ASSERT_EQUAL(errno, EXDEV);
	sul_job_failure(job, &rank, &status, text);
	CU_ASSERT_EQUAL(strlen(text), SUL_JOB_TEXT_MAX - 1);
	CU_ASSERT_EQUAL(rank, -1);
	CU_ASSERT_EQUAL(status, 77);
	free(endless);
	sul_job_close(job);
}

static void mirror__a_rank_of_another_host(void)
{
	struct sul_job *job, *mine;
	struct sul_job_rank theirs = { .state = SUL_RANK_READY, .pid = 77 };
	unsigned char key[SUL_JOB_KEY_BYTES] = { 1, 2, 3 };

	REQUIRE(sul_job_create(&job, 2) == 0);
	sul_job_set_host(job, 1);
	sul_job_set_key(job, key);
	sul_job_place(job, 0, 0, "front");
	sul_job_place(job, 1, 1, "back");
	CU_ASSERT_TRUE(sul_job_far(job, 0));
	CU_ASSERT_FALSE(sul_job_far(job, 1));
	REQUIRE(sul_job_hand_over(job, 1) == 0);
	REQUIRE(sul_job_attach(&mine) == 0);
	CU_ASSERT_EQUAL(memcmp(sul_job_key(mine), key, sizeof(key)), 0);
	sul_job_set_state(mine, SUL_RANK_READY);
	CU_ASSERT_EQUAL(sul_job_wait_all(mine, SUL_RANK_READY, 0, NULL),
			-ETIMEDOUT);
	strcpy(theirs.host_name, "nonsense");
	theirs.host = 1;
	theirs.blob[5] = 55;
	sul_job_mirror(job, 0, &theirs);
	CU_ASSERT_EQUAL(sul_job_wait_all(mine, SUL_RANK_READY, 0, NULL), 0);
	CU_ASSERT_EQUAL(sul_job_rank(mine, 0)->blob[5], 55);
	CU_ASSERT_EQUAL(sul_job_rank(mine, 0)->pid, 77);
	ASSERT_TEXT(sul_job_rank(mine, 0)->host_name, "front");
	theirs.state = SUL_RANK_UP;
	sul_job_mirror(job, 0, &theirs);
	CU_ASSERT_EQUAL(sul_job_rank(mine, 0)->state, SUL_RANK_READY);
	sul_job_close(mine);
	sul_job_close(job);
}

static void create__every_job_has_a_key_of_its_own(void)
{
	struct sul_job *one, *two;

	REQUIRE(sul_job_create(&one, 1) == 0);
	REQUIRE(sul_job_create(&two, 1) == 0);
	CU_ASSERT_NOT_EQUAL(memcmp(sul_job_key(one), sul_job_key(two),
				   SUL_JOB_KEY_BYTES),
			    0);
	sul_job_close(one);
	sul_job_close(two);
}

CU_TestInfo test_sul_job[] = {
	{ "mirror__a_rank_of_another_host", mirror__a_rank_of_another_host },
	{ "create__every_job_has_a_key_of_its_own",
	  create__every_job_has_a_key_of_its_own },
	{ "create__out_of_range", create__out_of_range },
	{ "create__is_nobodys_rank", create__is_nobodys_rank },
	{ "attach__without_launcher", attach__without_launcher },
	{ "attach__as_a_child_of_a_rank", attach__as_a_child_of_a_rank },
	{ "open__a_block_that_somebody_has_made",
	  open__a_block_that_somebody_has_made },
	{ "tell__one_of_all_does", tell__one_of_all_does },
	{ "hand_over__not_a_rank", hand_over__not_a_rank },
	{ "attach__a_rank_that_is_there_already",
	  attach__a_rank_that_is_there_already },
	{ "wait_all__names_who_is_missing", wait_all__names_who_is_missing },
	{ "wait_all__ranks_go_step_by_step", wait_all__ranks_go_step_by_step },
	{ "wait_all__a_later_state_counts", wait_all__a_later_state_counts },
	{ "fail__only_the_first_is_kept", fail__only_the_first_is_kept },
	{ "fail__wakes_who_sleeps", fail__wakes_who_sleeps },
	{ "fail__a_long_text_is_cut_and_errno_kept",
	  fail__a_long_text_is_cut_and_errno_kept },
	CU_TEST_INFO_NULL,
};
