/* SPDX-License-Identifier: MIT */
/* sul_sleep.c - see sul_sleep.h. */
#include "sul_sleep.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "sul_clock.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

enum {
	SLEEP_MAX_MS = 100,
	SLEEP_BLIND_MS = 1, /* when the system cannot watch two words */
	SPINS_PER_LOOK = 32 /* at the clock: it costs as much as the spins */
};

/* As in the kernel's futex_waitv(2); our headers may be older. */
struct waiter {
	uint64_t val;
	uint64_t uaddr;
	uint32_t flags;
	uint32_t reserved;
};
#define WAITER_U32 2 /* FUTEX2_SIZE_U32, shared between processes */

static uint32_t value_of(const struct sul_word *w)
{
	return __atomic_load_n(&w->value, __ATOMIC_ACQUIRE);
}

bool sul_sleep_notify(struct sul_word *word, uint32_t value)
{
	uint32_t sleepers;

	__atomic_store_n(&word->value, value, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	sleepers = __atomic_load_n(&word->sleepers, __ATOMIC_RELAXED);
	if (!sleepers)
		return false;
	if (sleepers % SUL_WORD_SLEEPER)
		syscall(SYS_futex, &word->value, FUTEX_WAKE, INT_MAX, NULL,
			NULL, 0);
	return sleepers >= SUL_WORD_SLEEPER;
}

/* Before Linux 5.16 one word at a time: the abort waits 100 ms, and with a
 * second word the sleeps are short. */
static void doze_blind(const struct sul_watch *watch, unsigned int nr,
		       uint64_t ns)
{
	uint64_t most = SLEEP_BLIND_MS * UINT64_C(1000000);
	struct timespec span;

	if (nr > 1 && ns > most)
		ns = most;
	span.tv_sec = (time_t)(ns / 1000000000u);
	span.tv_nsec = (long)(ns % 1000000000u);
	syscall(SYS_futex, &watch->word->value, FUTEX_WAIT, watch->old, &span,
		NULL, 0);
}

/* Sleep while no word has changed and @abort is 0, at most @ns. */
static void doze(const struct sul_watch *watch, unsigned int nr,
		 struct sul_word *abort, uint64_t ns)
{
	struct waiter w[SUL_WATCH_MAX + 1] = {
		{ 0, (uintptr_t)&abort->value, WAITER_U32, 0 },
	};
	uint64_t until = sul_now_ns() + ns;
	struct timespec deadline = { (time_t)(until / 1000000000u),
				     (long)(until % 1000000000u) };

	for (unsigned int i = 0; i < nr; i++)
		w[i + 1] = (struct waiter){ watch[i].old,
					    (uintptr_t)&watch[i].word->value,
					    WAITER_U32, 0 };
	if (syscall(SYS_futex_waitv, w, nr + 1, 0, &deadline, CLOCK_MONOTONIC) <
		    0 &&
	    errno == ENOSYS)
		doze_blind(watch, nr, ns);
}

/* A first look costs nothing; no clock is read before it was in vain. */
static bool look(const struct sul_watch *watch, unsigned int nr)
{
	for (int i = 0; i < SPINS_PER_LOOK; i++) {
		if (sul_watch_changed(watch, nr))
			return true;
		sul_relax();
	}
	return false;
}

/* For @ns; false: in vain. */
static bool spin(const struct sul_watch *watch, unsigned int nr,
		 const struct sul_word *abort, struct sul_spin *s, uint64_t ns)
{
	uint64_t end = sul_now_ns() + ns;

	while (ns && !value_of(abort)) {
		if (s->yield)
			sched_yield();
		if (look(watch, nr)) {
			sul_spin_found(s);
			return true;
		}
		if (sul_now_ns() >= end)
			break;
	}
	return false;
}

uint64_t sul_sleep_end(int timeout_ms)
{
	if (timeout_ms < 0)
		return UINT64_MAX;
	return sul_now_ns() + (uint64_t)timeout_ms * 1000000u;
}

int sul_sleep_left_ms(uint64_t end)
{
	uint64_t now;

	if (end == UINT64_MAX)
		return -1;
	now = sul_now_ns();
	return now < end ? (int)((end - now + 999999u) / 1000000u) : 0;
}

bool sul_sleep_spin(const struct sul_watch *watch, unsigned int nr,
		    const struct sul_word *abort, struct sul_spin *s,
		    uint64_t *spun_ns)
{
	*spun_ns = 0;
	if (look(watch, nr))
		return true;
	if (s)
		*spun_ns = sul_spin_begin(s);
	return spin(watch, nr, abort, s, *spun_ns);
}

int sul_sleep_wait(const struct sul_watch *watch, unsigned int nr,
		   struct sul_word *abort, struct sul_spin *s, int timeout_ms)
{
	uint64_t spun, begin, end;
	int err = 0;

	if (sul_sleep_spin(watch, nr, abort, s, &spun))
		return 0;
	begin = sul_now_ns();
	end = sul_sleep_end(timeout_ms);
	for (unsigned int i = 0; i < nr; i++)
		__atomic_fetch_add(&watch[i].word->sleepers, 1,
				   __ATOMIC_SEQ_CST);
	while (!sul_watch_changed(watch, nr)) {
		uint64_t now = sul_now_ns();
		uint64_t most = SLEEP_MAX_MS * UINT64_C(1000000);

		if (value_of(abort)) {
			err = -ECANCELED;
			break;
		}
		if (now >= end) {
			err = -ETIMEDOUT;
			break;
		}
		doze(watch, nr, abort, end - now < most ? end - now : most);
	}
	for (unsigned int i = 0; i < nr; i++)
		__atomic_fetch_sub(&watch[i].word->sleepers, 1,
				   __ATOMIC_SEQ_CST);
	if (s && !err)
		sul_spin_slept(s, spun, sul_now_ns() - begin);
	return err;
}

void sul_sleep_signals_blockable(sigset_t *out)
{
	static const int faults[] = { SIGSEGV, SIGBUS,	SIGFPE, SIGILL,
				      SIGTRAP, SIGABRT, SIGSYS };

	sigfillset(out);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(out, faults[i]);
}

void sul_sleep_signals_block(sigset_t *before)
{
	sigset_t block;

	sul_sleep_signals_blockable(&block);
	pthread_sigmask(SIG_BLOCK, &block, before);
}

int sul_sleep_write_process(int pid, uint64_t addr, const void *src, size_t len)
{
	size_t done = 0;

	while (done < len) {
		struct iovec from = {
			(void *)(uintptr_t)((uintptr_t)src + done), len - done
		};
		struct iovec to = { (void *)(uintptr_t)(addr + done),
				    len - done };
		ssize_t n = process_vm_writev(pid, &from, 1, &to, 1, 0);

		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}
