/* SPDX-License-Identifier: MIT */
/*
 * test_sul_sleep.c - waiting for words, and waking who waits.
 */
#include "sul_sleep.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests.h"

enum {
	AGES_MS = 20000, /* far more than any test takes */
	SLEEPERS = 3
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct scene {
	struct sul_word word, second, abort;
	unsigned int nr;
	int result[SLEEPERS];
	pthread_t thread[SLEEPERS];
};

struct actor {
	struct scene *scene;
	int nr;
};

static void *sleep_on_words(void *arg)
{
	struct actor *a = arg;
	struct scene *s = a->scene;
	struct sul_watch w[] = { { &s->word, 0 }, { &s->second, 0 } };

	s->result[a->nr] = sul_sleep_wait(w, s->nr, &s->abort, NULL, AGES_MS);
	return NULL;
}

static uint32_t sleepers(const struct sul_word *w)
{
	return __atomic_load_n(&w->sleepers, __ATOMIC_ACQUIRE);
}

/* Let them all sleep on @nr words, notify @wake, see what they got. */
static void play(struct scene *s, unsigned int nr, struct sul_word *wake,
		 int expected)
{
	struct timespec nap = { 0, 2000000 };
	struct actor a[SLEEPERS];
	uint64_t start;

	s->nr = nr;
	for (int i = 0; i < SLEEPERS; i++) {
		a[i] = (struct actor){ s, i };
		CU_ASSERT_EQUAL(pthread_create(&s->thread[i], NULL,
					       sleep_on_words, &a[i]),
				0);
	}
	while (sleepers(&s->word) < SLEEPERS)
		nanosleep(&nap, NULL);
	nanosleep(&nap, NULL);
	start = now_ms();
	sul_sleep_notify(wake, 1);
	for (int i = 0; i < SLEEPERS; i++) {
		pthread_join(s->thread[i], NULL);
		CU_ASSERT_EQUAL(s->result[i], expected);
	}
	CU_ASSERT(now_ms() - start < AGES_MS / 2);
	CU_ASSERT_EQUAL(sleepers(&s->word), 0);
	CU_ASSERT_EQUAL(sleepers(&s->second), 0);
}

static void all_sleepers_of_a_word_are_woken(void)
{
	struct scene s = { 0 };

	play(&s, 1, &s.word, 0);
}

static void either_of_two_words_wakes(void)
{
	struct scene one = { 0 }, two = { 0 };

	play(&one, 2, &one.word, 0);
	play(&two, 2, &two.second, 0);
}

static void the_abort_word_ends_a_sleep(void)
{
	struct scene s = { 0 };

	play(&s, 2, &s.abort, -ECANCELED);
}

static void a_word_that_differs_is_no_wait(void)
{
	struct sul_word word = { 5, 0 }, abort = { 0, 0 };
	struct sul_watch w = { &word, 4 };
	struct sul_spin spin;

	sul_spin_init(&spin, 50, NULL, 0);
	CU_ASSERT_EQUAL(sul_sleep_wait(&w, 1, &abort, NULL, -1), 0);
	abort.value = 1; /* what is there is there */
	CU_ASSERT_EQUAL(sul_sleep_wait(&w, 1, &abort, &spin, -1), 0);
	w.old = 5;
	CU_ASSERT_EQUAL(sul_sleep_wait(&w, 1, &abort, &spin, -1), -ECANCELED);
}

static void a_wait_ends_in_time(void)
{
	struct sul_word word = { 0, 0 }, abort = { 0, 0 };
	struct sul_watch w = { &word, 0 };
	uint64_t start = now_ms();
	struct sul_spin spin;

	sul_spin_init(&spin, 10, NULL, 0);
	spin.yield = true;
	CU_ASSERT_EQUAL(sul_sleep_wait(&w, 1, &abort, NULL, 0), -ETIMEDOUT);
	CU_ASSERT_EQUAL(sul_sleep_wait(&w, 1, &abort, &spin, 130), -ETIMEDOUT);
	CU_ASSERT(now_ms() - start >= 129);
	CU_ASSERT_EQUAL(word.sleepers, 0);
}

static void what_is_left_counts_down(void)
{
	uint64_t end = sul_sleep_end(AGES_MS);

	CU_ASSERT_EQUAL(sul_sleep_end(-1), UINT64_MAX);
	CU_ASSERT(sul_sleep_left_ms(UINT64_MAX) < 0);
	CU_ASSERT(sul_sleep_left_ms(end) <= AGES_MS);
	CU_ASSERT(sul_sleep_left_ms(end) > AGES_MS / 2);
	CU_ASSERT_EQUAL(sul_sleep_left_ms(1), 0);
}

/* --- a kernel that watches one word only --------------------------------------------- */

static int forbid_futex_waitv(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 449, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(f) / sizeof(f[0]), f };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return -errno;
	return 0;
}

static void *notify_second(void *arg)
{
	struct scene *s = arg;

	while (!sleepers(&s->second))
		usleep(1000);
	sul_sleep_notify(&s->second, 1);
	return NULL;
}

static int wait_with_old_kernel(void)
{
	struct scene s = { 0 };
	struct sul_watch w[] = { { &s.word, 0 }, { &s.second, 0 } };
	pthread_t t;

	if (forbid_futex_waitv())
		return 1;
	if (syscall(449, NULL, 0, 0, NULL, 0) != -1 || errno != ENOSYS)
		return 2;
	if (sul_sleep_wait(w, 1, &s.abort, NULL, 20) != -ETIMEDOUT)
		return 3;
	if (pthread_create(&t, NULL, notify_second, &s))
		return 4;
	if (sul_sleep_wait(w, 2, &s.abort, NULL, AGES_MS))
		return 5;
	pthread_join(t, NULL);
	return 0;
}

static void without_futex_waitv_waits_work_too(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(wait_with_old_kernel());
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
}

static void a_write_into_a_process_says_what_is_wrong(void)
{
	char here[16] = "";
	uint64_t addr = (uintptr_t)here;
	int err = sul_sleep_write_process(getpid(), addr, "there", 6);

	if (!err) {
		CU_ASSERT_STRING_EQUAL(here, "there");
		CU_ASSERT_EQUAL(sul_sleep_write_process(getpid(), 8, "x", 1),
				-EFAULT);
		CU_ASSERT_EQUAL(sul_sleep_write_process(0x7ffffff0, addr, "x",
							1),
				-ESRCH);
	} else {
		CU_ASSERT(err == -EPERM || err == -ENOSYS);
	}
}

CU_TestInfo test_sul_sleep[] = {
	{ "all sleepers of a word are woken",
	  all_sleepers_of_a_word_are_woken },
	{ "either of two words wakes", either_of_two_words_wakes },
	{ "the abort word ends a sleep", the_abort_word_ends_a_sleep },
	{ "a word that differs is no wait", a_word_that_differs_is_no_wait },
	{ "a wait ends in time", a_wait_ends_in_time },
	{ "what is left counts down", what_is_left_counts_down },
	{ "without futex_waitv waits work too",
	  without_futex_waitv_waits_work_too },
	{ "a write into a process says what is wrong",
	  a_write_into_a_process_says_what_is_wrong },
	CU_TEST_INFO_NULL,
};
