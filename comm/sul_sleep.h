/* SPDX-License-Identifier: MIT */
/*
 * sul_sleep.h - waiting for a word in shared memory, and waking who waits.
 *
 * Spin for a bounded time, then sleep.  A sleeper counts itself in the word,
 * full fence, looks again, sleeps; a notifier stores, full fence, looks for
 * sleepers: one of the two sees the other.  (Dekker's pattern; on x86 the fence
 * is a locked instruction, on arm64 `dmb ish`.)  A sleep ends after 100 ms at
 * the latest, so that even a lost wake-up would only cost time.
 */
#ifndef SUL_SLEEP_H
#define SUL_SLEEP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sul_abi.h"
#include "sul_spin.h"

enum {
	SUL_WATCH_MAX = 2 /* words that one wait can watch */
};

/* A word, and the value it shall no longer have. */
struct sul_watch {
	struct sul_word *word;
	uint32_t old;
};

/* Whether one of the @nr words does no longer have it. */
static inline bool sul_watch_changed(const struct sul_watch *watch,
				     unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		if (__atomic_load_n(&watch[i].word->value, __ATOMIC_ACQUIRE) !=
		    watch[i].old)
			return true;
	return false;
}

/* No system call unless somebody sleeps.  True: somebody sleeps whom a futex does
 * not wake (SUL_WORD_SLEEPER); that is left to the caller. */
bool sul_sleep_notify(struct sul_word *word, uint32_t value);

/*
 * Until one of the @nr words (1 .. SUL_WATCH_MAX) differs from its old value
 * (0), @abort is not 0 (-ECANCELED), or @timeout_ms (<0: none) is over
 * (-ETIMEDOUT).  @spin: NULL: it sleeps at once.
 */
int sul_sleep_wait(const struct sul_watch *watch, unsigned int nr,
		   struct sul_word *abort, struct sul_spin *spin,
		   int timeout_ms);

/* Its first part: true if a word has changed.  Else @spun_ns is for
 * sul_spin_slept(), when it did. */
bool sul_sleep_spin(const struct sul_watch *watch, unsigned int nr,
		    const struct sul_word *abort, struct sul_spin *spin,
		    uint64_t *spun_ns);

/* For a wait in several parts: when it ends, and how much of it is left. */
uint64_t sul_sleep_end(int timeout_ms); /* <0: never */
int sul_sleep_left_ms(uint64_t end); /* rounded up; <0: for ever */

/* The signals that a program may handle, all but those of faults; block them. */
void sul_sleep_signals_blockable(sigset_t *out);
void sul_sleep_signals_block(sigset_t *before);

/* One copy into another process; -EPERM where that is forbidden. */
int sul_sleep_write_process(int pid, uint64_t addr, const void *src,
			    size_t len);

#endif /* SUL_SLEEP_H */
