/* SPDX-License-Identifier: MIT */
/* abi_wait.c - WAIT, WAKE and COUNT. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "abi.h"

enum {
	SOON_MS = 150,
	LATE_MS = 20000,
};

static struct sul_wait wait_for(uint64_t off, uint32_t old, unsigned int ms)
{
	struct sul_wait w = { .size = sizeof(w),
			      .nr = 1,
			      .timeout_ns = ms * UINT64_C(1000000) };

	w.word[0].off = off;
	w.word[0].old = old;
	return w;
}

static int wait_call(const struct abi_port *p, struct sul_wait w)
{
	return abi_call(p->fd, SUL_IOC_WAIT, &w);
}

#define WAIT_WITH(result, field, value)                           \
	do {                                                      \
		struct sul_wait w_ = wait_for(0, 1, LATE_MS);     \
		w_.field = (value);                               \
		IS(result, wait_call(&p, w_), #field " " #value); \
	} while (0)

void abi_wait_checks_every_argument(void)
{
	struct abi_port p = abi_started(0, 2);

	WAIT_WITH(0, nr, 1); /* it differs */
	WAIT_WITH(-EINVAL, nr, SUL_ABI_WORDS_MAX + 1);
	WAIT_WITH(-EINVAL, nr, UINT32_MAX);
	WAIT_WITH(-EINVAL, word[0].off, 4);
	WAIT_WITH(-EINVAL, word[0].off, ABI_WINDOW_BYTES);
	WAIT_WITH(-EINVAL, word[0].off, UINT64_MAX - 7);
	WAIT_WITH(-EINVAL, word[0].window, 1);
	WAIT_WITH(-EINVAL, word[0].window, UINT32_MAX);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void abi_a_wait_ends_in_time(void)
{
	struct abi_port p = abi_started(0, 2);
	int64_t begin = now_ms();

	IS(-ETIMEDOUT, wait_call(&p, wait_for(0, 0, SOON_MS)));
	CHECK(now_ms() - begin >= SOON_MS, "after %lld ms",
	      (long long)(now_ms() - begin));
	IS(-ETIMEDOUT, wait_call(&p, wait_for(0, 0, 0)), "no time at all");
}

static void nothing(int sig)
{
	(void)sig;
}

void abi_a_signal_ends_a_wait(void)
{
	struct abi_port p = abi_started(0, 2);
	struct sigaction sa = { .sa_handler = nothing };
	struct itimerspec soon = { .it_value = { 0, SOON_MS * 1000000L } };
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL,
			       .sigev_signo = SIGUSR1 };
	timer_t timer;

	sigaction(SIGUSR1, &sa, NULL);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) ||
	    timer_settime(timer, 0, &soon, NULL))
		abort();
	IS(-EINTR, wait_call(&p, wait_for(0, 0, LATE_MS)));
}

/* --- what wakes ---------------------------------------------------------------------- */

static void *notifies(void *arg)
{
	struct abi_port *p = arg;
	struct sul_op op = abi_op(SUL_OP_NOTIFY, 1, 64);

	usleep(SOON_MS * 1000);
	op.notify.value = 5;
	IS(0, abi_submit_one(p, op));
	return NULL;
}

static struct sul_word *word_at(struct abi_port *p, uint64_t off)
{
	return (struct sul_word *)(void *)(p->window + off);
}

static void while_running(void *(*fn)(void *arg), void *arg, int wanted,
			  const struct abi_port *p, struct sul_wait w)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, arg))
		abort();
	IS(wanted, wait_call(p, w));
	pthread_join(thread, NULL);
}

void abi_a_notify_wakes(void)
{
	struct abi_port p[2];

	abi_pair(p);
	__atomic_add_fetch(&word_at(&p[1], 64)->sleepers, SUL_WORD_SLEEPER,
			   __ATOMIC_SEQ_CST);
	while_running(notifies, &p[0], 0, &p[1], wait_for(64, 0, LATE_MS));
	IS(5, word_at(&p[1], 64)->value);
	IS(SUL_WORD_SLEEPER, word_at(&p[1], 64)->sleepers);
}

void abi_either_of_two_words_wakes(void)
{
	struct sul_wait w = wait_for(0, 0, LATE_MS);
	struct abi_port p[2];

	abi_pair(p);
	w.nr = 2;
	w.word[1].off = 64;
	word_at(&p[1], 0)->sleepers = SUL_WORD_SLEEPER;
	word_at(&p[1], 64)->sleepers = SUL_WORD_SLEEPER;
	while_running(notifies, &p[0], 0, &p[1], w);
}

static void *closes(void *arg)
{
	struct abi_port *p = arg;

	usleep(SOON_MS * 1000);
	abi_close(p);
	return NULL;
}

void abi_a_death_wakes(void)
{
	struct abi_port p[2];

	abi_pair(p);
	while_running(closes, &p[1], 0, &p[0], wait_for(0, 0, LATE_MS));
	IS(2, p[0].status->dead);
	IS(1, p[0].status->deaths);
	/* what has been seen does not wake again */
	{
		struct sul_wait w = wait_for(0, 0, SOON_MS);

		w.deaths = 1;
		IS(-ETIMEDOUT, wait_call(&p[0], w));
	}
}

static void *wakes(void *arg)
{
	struct abi_port *p = arg; /* two of them */
	struct sul_wake w = { .size = sizeof(w), .rank = 1 };

	usleep(SOON_MS * 1000);
	__atomic_store_n(&word_at(&p[1], 64)->value, 9, __ATOMIC_SEQ_CST);
	IS(0, abi_call(p[0].fd, SUL_IOC_WAKE, &w));
	return NULL;
}

void abi_wake_wakes(void)
{
	struct abi_port p[2];

	abi_pair(p);
	while_running(wakes, p, 0, &p[1], wait_for(64, 0, LATE_MS));
}

void abi_wake_checks_the_rank(void)
{
	struct abi_port p[2];
	struct sul_wake w = { .size = sizeof(w), .rank = 2 };

	abi_pair(p);
	IS(-EINVAL, abi_call(p[0].fd, SUL_IOC_WAKE, &w));
	w.rank = UINT32_MAX;
	IS(-EINVAL, abi_call(p[0].fd, SUL_IOC_WAKE, &w));
	w.rank = 0;
	IS(-EINVAL, abi_call(p[1].fd, SUL_IOC_WAKE, &w), "no peer of it");
	IS(0, abi_call(p[0].fd, SUL_IOC_WAKE, &w), "itself");
	w.rank = 1;
	abi_close(&p[1]);
	IS(-EHOSTDOWN, abi_call(p[0].fd, SUL_IOC_WAKE, &w));
}

/* --- counters ------------------------------------------------------------------------ */

void abi_counters_are_read(void)
{
	static const struct {
		const char *name, *doc;
	} rows[] = {
#define COUNTER(name, doc) { #name, doc },
#include "sul_counter.def"
#undef COUNTER
	};
	enum {
		ROWS = sizeof(rows) / sizeof(rows[0])
	};
	uint64_t values[ROWS + 4];
	struct sul_count c = { .size = sizeof(c), .nr = ROWS + 4 };
	struct abi_port p = abi_started(0, 2);

	memset(values, 0xee, sizeof(values));
	c.values = (uintptr_t)values;
	IS(0, abi_call(p.fd, SUL_IOC_COUNT, &c));
	IS(ROWS, c.nr);
	for (int i = 0; i < ROWS; i++)
		CHECK(values[i] < 1000, "%s is %llu", rows[i].name,
		      (unsigned long long)values[i]);
	CHECK(values[ROWS] == UINT64_C(0xeeeeeeeeeeeeeeee), "too many stored");
	memset(values, 0xee, sizeof(values));
	c.nr = 1;
	IS(0, abi_call(p.fd, SUL_IOC_COUNT, &c));
	CHECK(values[1] == UINT64_C(0xeeeeeeeeeeeeeeee), "too many stored");
	c.nr = ROWS;
	c.values = 0;
	IS(-EFAULT, abi_call(p.fd, SUL_IOC_COUNT, &c));
}
