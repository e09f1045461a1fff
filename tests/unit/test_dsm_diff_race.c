/* SPDX-License-Identifier: MIT */
/*
 * test_dsm_diff_race.c - diff and refresh while others write to the memory.
 *
 * Without threads or luck: the CPU's trap flag stops the call after each of its
 * instructions, and the signal handler plays the other writer at the k-th of
 * them; k goes through all.  A byte that is read twice, a neighbour that is
 * rewritten with what it was, a word that is stored in parts: each shows at
 * some k.  x86 only: elsewhere a process cannot step itself (and the portable
 * code is the same).  Not under the thread sanitizer, whose runtime holds locks
 * in which the handler would then wait for itself.
 */
#include <CUnit/Basic.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "tests.h"
#include "unit_diff.h"
#include "unit_seed.h"

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN
#elif defined(__has_feature) /* clang */
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN
#endif
#endif
#if defined(__x86_64__) && !defined(UNDER_TSAN)
#define CAN_STEP
#endif

#ifdef CAN_STEP
#define STEP_AREA 72 /* a block and a word */
#define TRAP_FLAG 0x100
#define STEPS_MAX 60000 /* twice what one sweep may take; see there */

struct stage {
	unsigned char frame[STEP_AREA], twin[STEP_AREA], news[STEP_AREA];
	struct sul_run runs[DSM_DIFF_RUNS_MAX(STEP_AREA)];
	size_t nr;
	bool late; /* the other writer came after the first byte's store */
	bool torn; /* half a word was seen */
} __attribute__((aligned(64)));

/* What the handler does once, at step @at, or (if not NULL) at each. */
struct other_writer {
	void (*write)(struct stage *s);
	void (*look)(struct stage *s);
};

static struct {
	volatile bool on, inside;
	volatile unsigned int step, at;
	const struct other_writer *other;
	struct stage *stage;
} stepper;

static void on_step(int sig, siginfo_t *info, void *context)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	(void)sig;
	(void)info;
	if (!stepper.on) {
		*flags &= ~TRAP_FLAG;
		return;
	}
	*flags |= TRAP_FLAG;
	if (!stepper.inside)
		return;
	if (stepper.other->look)
		stepper.other->look(stepper.stage);
	if (stepper.step++ < stepper.at)
		return;
	stepper.other->write(stepper.stage);
	*flags &= ~TRAP_FLAG; /* nothing more to do: go on at full speed */
}

typedef void (*call_fn)(const struct dsm_diff_impl *d, struct stage *s);

/* Run @call with the other writer at instruction @at; returns how many
 * instructions there were. */
static unsigned int step_through(call_fn call, const struct dsm_diff_impl *d,
				 struct stage *s,
				 const struct other_writer *other,
				 unsigned int at)
{
	struct sigaction act = { .sa_sigaction = on_step,
				 .sa_flags = SA_SIGINFO },
			 old;

	sigaction(SIGTRAP, &act, &old);
	stepper.other = other;
	stepper.stage = s;
	stepper.at = at;
	stepper.step = 0;
	stepper.on = true;
	raise(SIGTRAP); /* the handler sets the trap flag */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	stepper.inside = true;
	call(d, s);
	stepper.inside = false;
	stepper.on = false; /* the next trap clears the flag */
	/* or the caller's look at the stage could begin before this */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	sigaction(SIGTRAP, &old, NULL);
	return stepper.step;
}

static void stage_set(struct stage *s)
{
	memset(s, 0, sizeof(*s));
	for (unsigned int i = 0; i < STEP_AREA; i++)
		s->twin[i] = (unsigned char)(i + 1);
	memcpy(s->frame, s->twin, STEP_AREA);
	memcpy(s->news, s->twin, STEP_AREA);
}

/* Changes one word in part, one as a whole, one of the tail in part. */
static void stage_change(unsigned char *area)
{
	static const unsigned char at[] = {
		0, 8, 9, 10, 11, 12, 13, 14, 15, 67
	};

	for (size_t i = 0; i < sizeof(at); i++)
		area[at[i]] ^= 0xf0;
}

/* Some that it changes; some that it does not, in and between such words. */
static const unsigned char changed_at[] = { 0, 9, 67 };
static const unsigned char kept_at[] = { 1, 24, 40, 62, 66 };

static bool under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

/*
 * Returns at how many instructions the outcome was wrong.  Each takes a call
 * of its own, so the whole grows with the square of a call's instructions: of a
 * slow one (-O0, sanitizers) a random choice of them must do.
 */
static int sweep(struct unit_rng *rng, call_fn call,
		 const struct dsm_diff_impl *d, void (*set)(struct stage *s),
		 const struct other_writer *other,
		 bool (*right)(const struct stage *s))
{
	static struct stage s;
	unsigned int total, stride, tested = 0;
	int wrong = 0;

	set(&s);
	total = step_through(call, d, &s, other, UINT32_MAX);
	if (under_valgrind())
		return 0; /* it does not emulate the trap flag */
	stride = 1 + (unsigned int)((uint64_t)total * total / STEPS_MAX);
	for (unsigned int at = unit_below(rng, stride); at < total;
	     at += stride) {
		set(&s);
		if (step_through(call, d, &s, other, at) <= at)
			break; /* it ended before: the first call is longer */
		wrong += !right(&s);
		tested++;
	}
	return tested < 5 ? -1 : wrong; /* -1: there was no test */
}

static void call_take(const struct dsm_diff_impl *d, struct stage *s)
{
	s->nr = d->take(s->frame, s->twin, STEP_AREA, 0, s->runs, 0);
}

static void call_merge(const struct dsm_diff_impl *d, struct stage *s)
{
	d->merge(s->frame, s->twin, s->news, STEP_AREA);
}

static void call_merge_unwatched(const struct dsm_diff_impl *d, struct stage *s)
{
	d->merge(s->frame, s->frame, s->news, STEP_AREA);
}

static void set_take(struct stage *s)
{
	stage_set(s);
	stage_change(s->frame);
}

static void set_merge(struct stage *s)
{
	stage_set(s);
	stage_change(s->news);
}

static bool reported(const struct stage *s, unsigned int at)
{
	for (size_t i = 0; i < s->nr; i++)
		if (at >= s->runs[i].off &&
		    at < s->runs[i].off + s->runs[i].len)
			return true;
	return false;
}

static void remote_diff(struct stage *s)
{
	for (size_t i = 0; i < sizeof(kept_at); i++) {
		s->frame[kept_at[i]] = 0xaa;
		s->twin[kept_at[i]] = 0xaa;
	}
}

static bool twin_has_the_remote_diff(const struct stage *s)
{
	return memcmp(s->frame, s->twin, STEP_AREA) == 0 &&
	       s->twin[kept_at[0]] == 0xaa;
}

/* At a home: neither the old value nor anything else gets over it. */
static void take_leaves_a_remote_writers_bytes_alone(void)
{
	struct unit_rng r = unit_rng("remote writer");
	static const struct other_writer other = { remote_diff, NULL };

	FOR_EACH_IMPL(d)
	CU_ASSERT_EQUAL(sweep(&r, call_take, d, set_take, &other,
			      twin_has_the_remote_diff),
			0);
}

/* The application takes its changes back, and makes others. */
static void own_writes(struct stage *s)
{
	for (size_t i = 0; i < sizeof(changed_at); i++)
		s->frame[changed_at[i]] ^= 0xf0;
	for (size_t i = 0; i < sizeof(kept_at); i++)
		s->frame[kept_at[i]] = 0xbb;
}

/* What is reported is in the twin, and what is not is not. */
static bool runs_and_twin_agree(const struct stage *s)
{
	for (unsigned int i = 0; i < STEP_AREA; i++)
		if (reported(s, i) != (s->twin[i] != (unsigned char)(i + 1)))
			return false;
	return true;
}

static void take_reads_each_byte_once(void)
{
	struct unit_rng r = unit_rng("own writes");
	static const struct other_writer other = { own_writes, NULL };

	FOR_EACH_IMPL(d)
	CU_ASSERT_EQUAL(sweep(&r, call_take, d, set_take, &other,
			      runs_and_twin_agree),
			0);
}

static void own_bytes(struct stage *s)
{
	for (size_t i = 0; i < sizeof(kept_at); i++)
		s->frame[kept_at[i]] = 0xcc;
}

static bool frame_has_own_bytes_and_the_news(const struct stage *s)
{
	unsigned char want[STEP_AREA];

	memcpy(want, s->news, STEP_AREA);
	for (size_t i = 0; i < sizeof(kept_at); i++)
		want[kept_at[i]] = 0xcc;
	return memcmp(s->frame, want, STEP_AREA) == 0 &&
	       memcmp(s->twin, s->news, STEP_AREA) == 0;
}

static void merge_keeps_bytes_written_meanwhile(void)
{
	struct unit_rng r = unit_rng("own bytes");
	static const struct other_writer other = { own_bytes, NULL };

	FOR_EACH_IMPL(d)
	CU_ASSERT_EQUAL(sweep(&r, call_merge, d, set_merge, &other,
			      frame_has_own_bytes_and_the_news),
			0);
}

/* The news are changing: either value will do, but the same for both. */
static void news_change(struct stage *s)
{
	for (size_t i = 0; i < sizeof(changed_at); i++)
		s->news[changed_at[i]] ^= 0xf0;
	for (size_t i = 0; i < sizeof(kept_at); i++)
		s->news[kept_at[i]] = 0xdd;
}

static bool frame_and_twin_got_the_same(const struct stage *s)
{
	return memcmp(s->frame, s->twin, STEP_AREA) == 0;
}

static void merge_reads_the_news_once(void)
{
	struct unit_rng r = unit_rng("changing news");
	static const struct other_writer other = { news_change, NULL };

	FOR_EACH_IMPL(d)
	CU_ASSERT_EQUAL(sweep(&r, call_merge, d, set_merge, &other,
			      frame_and_twin_got_the_same),
			0);
}

static void note_half_words(struct stage *s)
{
	uint64_t word, old = 0, new = 0;

	memcpy(&word, s->frame + 8, 8);
	memcpy(&new, s->news + 8, 8);
	for (unsigned int i = 0; i < 8; i++)
		old |= (uint64_t)(9 + i) << 8 * i;
	s->torn |= word != old && word != new;
}

static void merge_stores_a_whole_word_at_once(void)
{
	static const struct other_writer other = { NULL, note_half_words };
	static struct stage s;

	FOR_EACH_IMPL(d)
	{
		set_merge(&s);
		step_through(call_merge, d, &s, &other, UINT32_MAX);
		CU_ASSERT(!s.torn);
		CU_ASSERT_EQUAL(memcmp(s.frame, s.news, STEP_AREA), 0);
	}
}

static void merge_of_an_unwatched_page_shows_no_half_number(void)
{
	static const struct other_writer other = { NULL, note_half_words };
	static struct stage s;

	FOR_EACH_IMPL(d)
	{
		set_merge(&s);
		for (unsigned int i = 8; i < 16; i++) /* every other byte */
			s.news[i] = (unsigned char)(s.frame[i] ^ (i % 2) << 7);
		step_through(call_merge_unwatched, d, &s, &other, UINT32_MAX);
		CU_ASSERT(!s.torn);
		CU_ASSERT_EQUAL(memcmp(s.frame, s.news, STEP_AREA), 0);
	}
}

static void write_after_the_refresh(struct stage *s)
{
	s->late = s->frame[0] == s->news[0];
	s->frame[0] = 0xee;
	s->frame[9] = 0xee;
}

static bool late_write_stays(const struct stage *s)
{
	return !s->late || s->frame[0] == 0xee;
}

static void merge_of_an_unwatched_page_stores_once(void)
{
	struct unit_rng r = unit_rng("late write");
	static const struct other_writer other = { write_after_the_refresh,
						   NULL };

	FOR_EACH_IMPL(d)
	CU_ASSERT_EQUAL(sweep(&r, call_merge_unwatched, d, set_merge, &other,
			      late_write_stays),
			0);
}
#endif /* CAN_STEP */

CU_TestInfo test_dsm_diff_race[] = {
#ifdef CAN_STEP
	{ "take leaves a remote writer's bytes alone",
	  take_leaves_a_remote_writers_bytes_alone },
	{ "take reads each byte once", take_reads_each_byte_once },
	{ "merge keeps bytes written meanwhile",
	  merge_keeps_bytes_written_meanwhile },
	{ "merge reads the news once", merge_reads_the_news_once },
	{ "merge stores a whole word at once",
	  merge_stores_a_whole_word_at_once },
	{ "merge of an unwatched page shows no half number",
	  merge_of_an_unwatched_page_shows_no_half_number },
	{ "merge of an unwatched page stores once",
	  merge_of_an_unwatched_page_stores_once },
#endif
	CU_TEST_INFO_NULL,
};
