/* SPDX-License-Identifier: MIT */
/*
 * test_bench.c - what the measuring tools share: counting, samples, patterns.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "tests.h"

enum {
	CALLS = 100
};

/* Sanitizers and valgrind make system calls of their own. */
static bool alone(void)
{
#if defined(__SANITIZE_THREAD__)
	return false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
	return false;
#endif
#endif
	const char *preload = getenv("LD_PRELOAD");

	return !preload || !strstr(preload, "vgpreload");
}

/* NULL: tracing is forbidden here, and a test has nothing to say. */
static struct bench_trace *trace(void)
{
	struct bench_trace *t = NULL;
	int err = bench_trace_start(&t);

	CU_ASSERT(err == 0 || err == -EPERM);
	return t;
}

static void system_calls_are_counted_exactly(void)
{
	struct bench_trace *t = trace();
	struct bench_calls a, b, c;

	if (!t)
		return;
	a = bench_trace_read(t);
	b = bench_trace_read(t);
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	c = bench_trace_read(t);
	bench_trace_stop(t);
	CU_ASSERT(c.busy - b.busy >= CALLS);
	if (alone()) {
		CU_ASSERT_EQUAL(b.busy - a.busy, 0);
		CU_ASSERT_EQUAL(c.busy - b.busy, CALLS);
		CU_ASSERT_EQUAL(c.idle - a.idle, 0);
	}
}

static void calls_that_find_nothing_are_idle(void)
{
	struct bench_trace *t = trace();
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct bench_calls a, b;
	uint64_t v;

	if (!t)
		return;
	a = bench_trace_read(t);
	for (int i = 0; i < CALLS; i++) {
		CU_ASSERT(read(fd, &v, sizeof(v)) < 0);
		sched_yield();
	}
	b = bench_trace_read(t);
	bench_trace_stop(t);
	close(fd);
	CU_ASSERT(b.idle - a.idle >= (uint64_t)2 * CALLS);
	if (alone()) {
		CU_ASSERT_EQUAL(b.idle - a.idle, 2 * CALLS);
		CU_ASSERT_EQUAL(b.busy - a.busy, 0);
	}
}

struct scene {
	struct bench_word there, go, done;
};

static void *call_when_told(void *arg)
{
	struct scene *s = arg;

	bench_set(&s->there, 1); /* what a thread's start calls is behind it */
	bench_await(&s->go, 1);
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	bench_set(&s->done, 1);
	bench_await(&s->go, 2);
	return NULL;
}

static void calls_of_other_threads_are_counted(void)
{
	struct scene s = { .go = { 0 } };
	struct bench_calls a, b;
	struct bench_trace *t;
	pthread_t thread;

	REQUIRE(!pthread_create(&thread, NULL, call_when_told, &s));
	bench_await(&s.there, 1);
	t = trace();
	if (t)
		a = bench_trace_read(t);
	bench_set(&s.go, 1);
	bench_await(&s.done, 1);
	if (t) {
		b = bench_trace_read(t);
		CU_ASSERT(b.busy - a.busy >= CALLS);
		if (alone())
			CU_ASSERT_EQUAL(b.busy - a.busy, CALLS);
	}
	bench_trace_stop(t);
	bench_set(&s.go, 2);
	pthread_join(thread, NULL);
}

static void calls_of_threads_that_start_later_are_counted(void)
{
	struct scene s = { .go = { 1 } };
	struct bench_trace *t = trace();
	struct bench_calls a, b;
	pthread_t thread[2];

	if (!t)
		return;
	a = bench_trace_read(t);
	for (int i = 0; i < 2; i++) {
		bench_set(&s.done, 0);
		REQUIRE(!pthread_create(&thread[i], NULL, call_when_told, &s));
		bench_await(&s.done, 1);
	}
	b = bench_trace_read(t);
	CU_ASSERT(b.busy - a.busy >= (uint64_t)2 * CALLS);
	bench_trace_stop(t);
	bench_set(&s.go, 2);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

static void a_stopped_trace_lets_the_process_go(void)
{
	for (int i = 0; i < 3; i++)
		bench_trace_stop(trace());
	CU_ASSERT(syscall(SYS_getppid) > 0);
}

static void the_summary_is_of_all_samples(void)
{
	struct bench_samples *s = calloc(1, sizeof(*s));
	struct bench_summary sum;

	REQUIRE(s);
	CU_ASSERT_EQUAL(bench_summarize(s).nr, 0);
	for (int i = 10; i >= 1; i--)
		bench_add(s, i);
	sum = bench_summarize(s);
	CU_ASSERT_EQUAL(sum.nr, 10);
	CU_ASSERT_EQUAL(sum.min, 1);
	CU_ASSERT_EQUAL(sum.median, 6);
	CU_ASSERT_EQUAL(sum.p90, 10);
	CU_ASSERT_DOUBLE_EQUAL(sum.mean, 5.5, 1e-9);
	free(s);
}

static void samples_beyond_the_room_are_dropped(void)
{
	struct bench_samples *s = calloc(1, sizeof(*s));

	REQUIRE(s);
	for (int i = 0; i < BENCH_SAMPLES + 5; i++)
		bench_add(s, 1);
	CU_ASSERT_EQUAL(s->nr, BENCH_SAMPLES);
	free(s);
}

static void patterns_are_those_of_the_shell(void)
{
	CU_ASSERT(bench_matches("get_8", "get_8"));
	CU_ASSERT(!bench_matches("get_8", "get_8_busy"));
	CU_ASSERT(bench_matches("get_*", "get_8"));
	CU_ASSERT(bench_matches("*", "get_8"));
	CU_ASSERT(bench_matches("*_busy", "get_8_busy"));
	CU_ASSERT(bench_matches("get_?", "get_8"));
	CU_ASSERT(!bench_matches("put_*", "get_8"));
	CU_ASSERT(!bench_matches("", "get_8"));
}

static const char *row_name(int row)
{
	static const char *const name[] = { "get_8", "get_4k", "put_8" };

	return name[row];
}

static void rows_are_those_of_the_list(void)
{
	char all[] = "*", some[] = "put_8,get_4*", both[] = "get_8,get_*";
	bool row[3] = { false, false, false };

	bench_take_rows(all, row, 3, row_name);
	CU_ASSERT(row[0] && row[1] && row[2]);
	bench_take_rows(some, row, 3, row_name);
	CU_ASSERT(!row[0] && row[1] && row[2]);
	bench_take_rows(both, row, 3, row_name);
	CU_ASSERT(row[0] && row[1] && !row[2]);
}

static void numbers_are_taken_up_to_both_ends(void)
{
	CU_ASSERT_EQUAL(bench_number("it", "-3", -3, 7), -3);
	CU_ASSERT_EQUAL(bench_number("it", "7", -3, 7), 7);
}

static void a_program_is_found_beside_this_one(void)
{
	char self[PATH_MAX], beside[PATH_MAX];

	CU_ASSERT(bench_find_beside("run", self, beside));
	ASSERT_TEXT(beside, self);
	CU_ASSERT(!bench_find_beside("no-such-program", self, beside));
}

CU_TestInfo test_bench[] = {
	{ "system calls are counted exactly",
	  system_calls_are_counted_exactly },
	{ "calls that find nothing are idle",
	  calls_that_find_nothing_are_idle },
	{ "calls of other threads are counted",
	  calls_of_other_threads_are_counted },
	{ "calls of threads that start later are counted",
	  calls_of_threads_that_start_later_are_counted },
	{ "a stopped trace lets the process go",
	  a_stopped_trace_lets_the_process_go },
	{ "the summary is of all samples", the_summary_is_of_all_samples },
	{ "samples beyond the room are dropped",
	  samples_beyond_the_room_are_dropped },
	{ "patterns are those of the shell", patterns_are_those_of_the_shell },
	{ "rows are those of the list", rows_are_those_of_the_list },
	{ "numbers are taken up to both ends",
	  numbers_are_taken_up_to_both_ends },
	{ "a program is found beside this one",
	  a_program_is_found_beside_this_one },
	CU_TEST_INFO_NULL,
};
