/* SPDX-License-Identifier: MIT */
/*
 * test_sul_leave.c - ranks of a job over udp leave: none too early, none waits too
 * long, nothing of them is left.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "sul_bench.h"
#include "tests.h"

static int count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = -2; /* . and .. */

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static int leave_no_thread(struct sul_port *p, void *ctx)
{
	(void)ctx;
	MUST(!bench_meet(p, 1));
	MUST(count_threads() == 2);
	MUST(!sul_leave(p, 10000));
	/* Who has been joined may be listed for a moment longer. */
	for (int i = 0; i < 1000 && count_threads() != 1; i++)
		usleep(1000);
	MUST(count_threads() == 1);
	return 0;
}

static void nobodys_thread_is_there_after_leaving(void)
{
	bench_over_udp((struct bench){ .ranks = 2 }, leave_no_thread, NULL);
	bench_over_udp((struct bench){ .ranks = 13 }, leave_no_thread, NULL);
}

/* The others need not wait for who goes at once, even if packets get lost. */
static int meet_and_go(struct sul_port *p, void *ctx)
{
	uint64_t begin;

	(void)ctx;
	MUST(!bench_meet(p, 1));
	begin = bench_now_ms();
	MUST(!bench_meet(p, 2));
	sul_leave(p, 2000);
	MUST(bench_now_ms() - begin < 1500);
	return 0;
}

static void who_leaves_keeps_nobody_waiting(void)
{
	for (int i = 0; i < 5; i++)
		bench_over_networks((struct bench){ .ranks = 3,
						    .loss_ppm = 20000 },
				    meet_and_go, NULL);
}

/* What is at another rank can be read as long as that waits for us. */
static int read_late(struct sul_port *p, void *ctx)
{
	uint64_t *own = sul_window(p, 0), seen = 0;

	(void)ctx;
	own[1] = 77;
	MUST(!bench_meet(p, 1));
	if (!sul_rank(p)) {
		usleep(100000);
		MUST(!sul_get(p, 1, 0, 8, &seen, 8, NULL, 0));
		MUST(!sul_flush(p));
		MUST(seen == 77);
	}
	MUST(!sul_leave(p, 10000));
	return 0;
}

static void who_leaves_is_there_until_all_leave(void)
{
	bench_over_networks((struct bench){ .ranks = 2 }, read_late, NULL);
}

static int leave_in_vain(struct sul_port *p, void *ctx)
{
	uint64_t begin = bench_now_ms();

	(void)ctx;
	MUST(!bench_meet(p, 1));
	if (sul_rank(p) == 1) {
		kill(getpid(), SIGKILL);
	} else {
		MUST(sul_leave(p, 200) == -ETIMEDOUT);
		MUST(bench_now_ms() - begin < 5000);
	}
	_exit(sul_rank(p) == 1);
}

static void leaving_does_not_wait_for_ever(void)
{
	struct bench b = { .ranks = 2 };

	if (bench_has(BENCH_UDP)) /* the killed one's status */
		CU_ASSERT_EQUAL(bench_run(BENCH_UDP, &b, leave_in_vain, NULL),
				SIGKILL);
}

CU_TestInfo test_sul_leave[] = {
	{ "nobody's thread is there after leaving",
	  nobodys_thread_is_there_after_leaving },
	{ "who leaves keeps nobody waiting", who_leaves_keeps_nobody_waiting },
	{ "who leaves is there until all leave",
	  who_leaves_is_there_until_all_leave },
	{ "leaving does not wait for ever", leaving_does_not_wait_for_ever },
	CU_TEST_INFO_NULL,
};
