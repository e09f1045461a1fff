/* SPDX-License-Identifier: MIT */
/*
 * test_sul_shm.c - the carrier for ranks of one host, with real processes.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sul_bench.h"
#include "sul_clock.h"
#include "tests.h"

static void with_processes(struct bench b, bench_fn *fn)
{
	bench_in(BENCH_PROCESSES, b, fn, NULL);
}

/* --- atomics ------------------------------------------------------------------ */

enum {
	ADDERS = 3,
	ADDS = 34000
};

static int adds(struct sul_port *p, void *ctx)
{
	uint64_t sum;

	(void)ctx;
	for (int i = 0; i < ADDS; i++)
		MUST(!sul_amo(p, 1, 0, 8, SUL_AMO_ADD, 1, 0, NULL));
	MUST(!sul_flush(p));
	MUST(!bench_meet(p, 1));
	MUST(!sul_get(p, 1, 0, 8, &sum, 8, NULL, 0));
	MUST(sum == ADDERS * (uint64_t)ADDS);
	return 0;
}

static void no_atomic_addition_is_lost(void)
{
	with_processes((struct bench){ .ranks = ADDERS }, adds);
}

/* --- marks: race 1 of the design, store buffering ------------------------------- */

enum {
	CELLS = 4000,
	CELL_BYTES = 64, /* flag of the owner, mark of the getter */
	CELLS_BYTES = CELLS * CELL_BYTES
};

/* Both reach cell @i at about the same time. */
static void keep_step(struct sul_port *p, uint32_t i)
{
	uint64_t *steps = (void *)((char *)sul_window(p, 0) + CELLS_BYTES);
	int other = !sul_rank(p);
	uint64_t mine = i;

	sul_put(p, other, 0, CELLS_BYTES, &mine, 8);
	for (int spins = 0; __atomic_load_n(steps, __ATOMIC_ACQUIRE) < i;)
		if (++spins % 256 == 0)
			sched_yield();
}

static int owner_and_getter(struct sul_port *p, void *ctx)
{
	char *mem = sul_window(p, 0);

	(void)ctx;
	for (uint32_t i = 0; i < CELLS; i++) {
		uint64_t at = i * (uint64_t)CELL_BYTES;
		struct sul_mark m = { .off = at + 8, .bits = 1 };
		uint64_t saw;

		keep_step(p, i + 1);
		if (sul_rank(p)) {
			MUST(!sul_get(p, 0, 0, at, &saw, 8, &m, 1));
		} else {
			__atomic_store_n((uint64_t *)(void *)(mem + at), 1,
					 __ATOMIC_RELAXED);
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			saw = __atomic_load_n(
				(uint64_t *)(void *)(mem + at + 8),
				__ATOMIC_RELAXED);
		}
		MUST(!sul_put(p, !sul_rank(p), 0, at + 16, &saw, 8));
		memcpy(mem + at + 24, &saw, 8);
	}
	MUST(!bench_meet(p, 1));
	for (uint32_t i = 0; i < CELLS; i++) {
		uint64_t saw[2];

		memcpy(saw, mem + i * CELL_BYTES + 16, 16);
		MUST(saw[0] || saw[1]); /* not both missed the other */
	}
	return 0;
}

static void getter_or_owner_sees_the_other(void)
{
	with_processes((struct bench){ .ranks = 2,
				       .bytes = CELLS_BYTES + 16384 },
		       owner_and_getter);
}

/* --- no system calls --------------------------------------------------------------- */

static void count_message(void *ctx, int from, const void *body, size_t len)
{
	(void)from, (void)body, (void)len;
	++*(unsigned int *)ctx;
}

static int everything_once(struct sul_port *p)
{
	struct sul_word *word = sul_window(p, 0);
	struct sul_run run = { 1, 5 };
	char buf[8192] = { 0 };

	return sul_put(p, 0, 0, 64, buf, 6000)			       ?:
		       sul_get(p, 0, 0, 64, buf, 6000, NULL, 0)	       ?:
		       sul_putv(p, 0, 0, 64, buf, &run, 1, NULL)       ?:
		       sul_amo(p, 0, 0, 0, SUL_AMO_ADD, 1, 0, NULL)    ?:
		       sul_notify(p, 0, 0, 0, 3)		       ?:
		       sul_flush(p)				       ?:
		       sul_send(p, 0, 0, buf, 100)		       ?:
		       sul_send(p, 1, 0, buf, 100)		       ?:
		       sul_notify(p, 1, 0, 0, sul_word_read(word) + 1) ?:
		       sul_wait(p, word, sul_word_read(word) - 1, -1);
}

enum {
	WARM_UP = 64, /* every slot of a ring */
	HOT = 50,
	DONE_AT = 16000 /* in rank 0's window */
};

/* From here on any call but read, write and exit is the end. */
static void forbid_system_calls(void)
{
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
}

static void hot_sender(struct sul_port *p, const unsigned int *messages)
{
	unsigned int before = *messages;
	uint64_t done = 1;
	int failed = 0;

	forbid_system_calls();
	for (int i = 0; i < HOT && !failed; i++)
		failed = everything_once(p) || sul_poll(p) < 0;
	sul_put(p, 0, 0, DONE_AT, &done, 8);
	syscall(SYS_exit, failed || *messages != before + HOT);
}

/* Polls and does not sleep: it would have to be woken. */
static int hot_receiver(struct sul_port *p, const unsigned int *messages)
{
	const uint64_t *done = (void *)((char *)sul_window(p, 0) + DONE_AT);
	time_t end = time(NULL) + 60;

	while (!__atomic_load_n(done, __ATOMIC_ACQUIRE) && time(NULL) < end) {
		MUST(sul_poll(p) >= 0);
		sched_yield();
	}
	MUST(*done);
	sul_poll(p);
	MUST(*messages == WARM_UP + HOT);
	return 0;
}

static int hot_operations(struct sul_port *p, void *ctx)
{
	unsigned int messages = 0;

	(void)ctx;
	MUST(!sul_handler(p, 0, count_message, &messages));
	for (int i = 0; sul_rank(p) && i < WARM_UP; i++) {
		MUST(!everything_once(p));
		MUST(sul_poll(p) >= 0);
	}
	if (sul_rank(p)) {
		uint64_t zero = 0;

		MUST(!sul_put(p, 0, 0, DONE_AT, &zero, 8));
	}
	MUST(!bench_meet(p, 1));
	if (!sul_rank(p))
		return hot_receiver(p, &messages);
	hot_sender(p, &messages);
	return __LINE__; /* not reached */
}

static int cold_operation(struct sul_port *p, void *ctx)
{
	(void)ctx;
	if (!sul_rank(p))
		return 0;
	forbid_system_calls();
	sul_put(p, 0, 0, 64, "cold", 4);
	syscall(SYS_exit, 0);
	return 0;
}

/* It makes system calls of its own. */
static bool under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

static void hot_memory_needs_no_system_call(void)
{
	struct bench b = { .ranks = 2 };

	if (!bench_has(BENCH_PROCESSES) || under_valgrind())
		return;
	CU_ASSERT_EQUAL(bench_run(BENCH_PROCESSES, &b, hot_operations, NULL),
			0);
	/* and the sandbox does notice */
	CU_ASSERT_NOT_EQUAL(
		bench_run(BENCH_PROCESSES, &b, cold_operation, NULL), 0);
}

/* --- pages of others -------------------------------------------------------------- */

enum {
	CHUNK = 4 /* pages */
};

static int get_page(struct sul_port *p, unsigned int page)
{
	static char to[4096];

	return sul_get(p, 0, 0, page * UINT64_C(4096), to, sizeof(to), NULL, 0);
}

/* Get page after page, the last one without a system call. */
static int gets(struct sul_port *p, const unsigned int *page)
{
	int failed;

	if (!sul_rank(p))
		return 0;
	while (page[1]) {
		MUST(!get_page(p, *page));
		page++;
	}
	forbid_system_calls();
	failed = get_page(p, *page);
	syscall(SYS_exit, failed != 0);
	return __LINE__; /* not reached */
}

static int gets_two(struct sul_port *p, void *ctx)
{
	(void)ctx;
	return gets(p, (const unsigned int[]){ 2, 1, 0 });
}

static int gets_three(struct sul_port *p, void *ctx)
{
	(void)ctx;
	return gets(p, (const unsigned int[]){ 2, 1, 3, 0 });
}

static int gets_elsewhere(struct sul_port *p, void *ctx)
{
	(void)ctx;
	return gets(p, (const unsigned int[]){ 2, 1, CHUNK + 1, 0 });
}

static int gets_what_was_forgotten(struct sul_port *p, void *ctx)
{
	(void)ctx;
	for (unsigned int i = 0; sul_rank(p) && i < CHUNK; i++)
		MUST(!get_page(p, i));
	sul_window_forget(p, 0, 0, 0, CHUNK * 4096);
	return gets(p, (const unsigned int[]){ 2, 0 });
}

static void the_second_page_of_a_chunk_makes_it_present(void)
{
	struct bench b = { .ranks = 2, .chunk = CHUNK };

	if (!bench_has(BENCH_PROCESSES) || under_valgrind())
		return;
	CU_ASSERT_EQUAL(bench_run(BENCH_PROCESSES, &b, gets_three, NULL), 0);
	/* not the first, and not the next chunk */
	CU_ASSERT_NOT_EQUAL(bench_run(BENCH_PROCESSES, &b, gets_two, NULL), 0);
	CU_ASSERT_NOT_EQUAL(
		bench_run(BENCH_PROCESSES, &b, gets_elsewhere, NULL), 0);
	CU_ASSERT_NOT_EQUAL(bench_run(BENCH_PROCESSES, &b,
				      gets_what_was_forgotten, NULL),
			    0);
}

/* --- sleeping ------------------------------------------------------------------------ */

enum {
	WAKES = 8,
	LOST_NS = 60000000 /* a lost wake-up would take 100 ms */
};

static int wake_sleeper(struct sul_port *p, uint32_t round)
{
	struct sul_word w = { 0, 0 };
	struct timespec nap = { 0, 1000000 };
	uint64_t now;

	while (w.sleepers == 0) {
		MUST(!sul_get(p, 1, 0, 0, &w, 8, NULL, 0));
		nanosleep(&nap, NULL);
	}
	now = sul_now_ns();
	MUST(!sul_put(p, 1, 0, 8, &now, 8));
	return sul_notify(p, 1, 0, 0, round);
}

static int sleeper_and_waker(struct sul_port *p, void *ctx)
{
	uint64_t *then = (uint64_t *)sul_window(p, 0) + 1;
	uint64_t best = UINT64_MAX, took;

	(void)ctx;
	for (uint32_t i = 1; i <= WAKES; i++) {
		if (sul_rank(p)) {
			MUST(!sul_wait(p, sul_window(p, 0), i - 1, 50000));
			took = sul_now_ns() - *then;
			best = took < best ? took : best;
		} else {
			MUST(!wake_sleeper(p, i));
		}
		MUST(!bench_meet(p, i));
	}
	MUST(!sul_rank(p) || best < LOST_NS);
	return 0;
}

static void a_sleeper_is_woken_at_once(void)
{
	with_processes((struct bench){ .ranks = 2 }, sleeper_and_waker);
}

static int wait_without_end(struct sul_port *p, void *ctx)
{
	(void)ctx;
	MUST(sul_wait(p, sul_window(p, 0), 0, -1) == -ECANCELED);
	return 0;
}

static void the_end_of_the_job_ends_a_wait(void)
{
	with_processes((struct bench){ .ranks = 2, .cancel = true },
		       wait_without_end);
}

/* --- one copy, limits, traces ------------------------------------------------------------ */

static int copies_into_another_process(struct sul_port *p, void *ctx)
{
	char buf[64] = "mine";
	uint64_t addr = (uintptr_t)buf;

	(void)ctx;
	if (sul_rank(p)) {
		MUST(!sul_put(p, 0, 0, 0, &addr, 8));
		MUST(!bench_meet(p, 1));
		MUST(!bench_meet(p, 2));
		MUST(!strcmp(buf, "another's") || !strcmp(buf, "mine"));
		return 0;
	}
	MUST(!bench_meet(p, 1));
	memcpy(&addr, sul_window(p, 0), 8);
	switch (p->ops->put_private(p, 1, addr, "another's", 10)) {
	case 0:
	case -EPERM:
	case -ENOSYS:
		break;
	default:
		MUST(0);
	}
	MUST(p->ops->put_private(p, 1, 8, "nowhere", 8) < 0);
	return bench_meet(p, 2);
}

static void the_single_copy_works_or_is_refused(void)
{
	with_processes((struct bench){ .ranks = 2 },
		       copies_into_another_process);
}

/* Open files with a path, other than memory. */
static int files_with_names(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int n = 0;

	if (!d)
		return -1;
	while ((e = readdir(d))) {
		char to[64] = "";

		if (readlinkat(dirfd(d), e->d_name, to, sizeof(to) - 1) > 0 &&
		    to[0] == '/' && strncmp(to, "/memfd:", 7))
			n++;
	}
	closedir(d);
	return n;
}

static bool maps_mention(const char *what)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	bool found = false;

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, what) != NULL;
	if (f)
		fclose(f);
	return found;
}

static int leaves_no_names(struct sul_port *p, void *ctx)
{
	uint64_t off;
	char back[4];
	int fd;

	MUST(files_with_names() == *(int *)ctx);
	MUST(!maps_mention("/dev/shm"));
	MUST(maps_mention("/memfd:jia-job (deleted)"));
	MUST(!sul_put(p, 1, 0, 40, "here", 4));
	MUST(!sul_window_file(p, 1, 0, &fd, &off));
	MUST(pread(fd, back, 4, (off_t)off + 40) == 4);
	MUST(!memcmp(back, "here", 4));
	return 0;
}

static void nothing_has_a_name_that_could_stay_behind(void)
{
	struct bench b = { .ranks = 2 };
	int names = files_with_names();

	if (bench_has(BENCH_PROCESSES))
		CU_ASSERT_EQUAL(bench_run(BENCH_PROCESSES, &b, leaves_no_names,
					  &names),
				0);
}

static int open_beyond_the_limit(struct sul_port *p, void *ctx)
{
	struct rlimit most = { 1 << 20, 1 << 20 };
	struct sul_config cfg = { .carrier = "shm",
				  .job = p->job,
				  .ranks = 1,
				  .windows = 1,
				  .window = { { .bytes = 4 << 20 } } };
	struct sul_port *second;

	(void)ctx;
	MUST(!setrlimit(RLIMIT_FSIZE, &most));
	MUST(sul_open(&second, &cfg) == -EFBIG);
	return 0;
}

static void a_file_size_limit_is_an_error_not_a_signal(void)
{
	with_processes((struct bench){ .ranks = 1 }, open_beyond_the_limit);
}

CU_TestInfo test_sul_shm[] = {
	{ "no atomic addition is lost", no_atomic_addition_is_lost },
	{ "getter or owner sees the other", getter_or_owner_sees_the_other },
	{ "hot memory needs no system call", hot_memory_needs_no_system_call },
	{ "the second page of a chunk makes it present",
	  the_second_page_of_a_chunk_makes_it_present },
	{ "a sleeper is woken at once", a_sleeper_is_woken_at_once },
	{ "the end of the job ends a wait", the_end_of_the_job_ends_a_wait },
	{ "the single copy works or is refused",
	  the_single_copy_works_or_is_refused },
	{ "nothing has a name that could stay behind",
	  nothing_has_a_name_that_could_stay_behind },
	{ "a file-size limit is an error, not a signal",
	  a_file_size_limit_is_an_error_not_a_signal },
	CU_TEST_INFO_NULL,
};
