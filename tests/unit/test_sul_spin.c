/* SPDX-License-Identifier: MIT */
/* test_sul_spin.c - when waits stop spinning, and when they try again. */
#include "sul_spin.h"

#include <sched.h>

#include "tests.h"

enum {
	US = 40,
	NS = US * 1000
};

/* Waits until the next one that spins, all that sleep being soon woken. */
static unsigned int rests(struct sul_spin *s)
{
	unsigned int nr = 0;
	uint64_t spun;

	while (!(spun = sul_spin_begin(s)) && nr < 10000) {
		sul_spin_slept(s, spun, NS / 8);
		nr++;
	}
	sul_spin_slept(s, spun, NS / 8);
	return nr;
}

static void a_wait_spins_as_long_as_it_is_told(void)
{
	struct sul_spin s;

	sul_spin_init(&s, US, false);
	CU_ASSERT_EQUAL(sul_spin_begin(&s), NS);
	sul_spin_init(&s, 0, false);
	CU_ASSERT_EQUAL(sul_spin_begin(&s), 0);
}

static void who_is_waited_for_in_vain_is_let_run(void)
{
	struct sul_spin s;

	sul_spin_init(&s, US, false);
	for (int i = 0; i < SUL_SPIN_VAIN; i++)
		CU_ASSERT_EQUAL(rests(&s), 0);
	for (unsigned int nr = SUL_SPIN_REST_FIRST; nr < SUL_SPIN_REST_MAX;
	     nr *= 2)
		CU_ASSERT_EQUAL(rests(&s), nr);
	CU_ASSERT_EQUAL(rests(&s), SUL_SPIN_REST_MAX);
	CU_ASSERT_EQUAL(rests(&s), SUL_SPIN_REST_MAX);
}

static void spinning_that_works_is_taken_up_again(void)
{
	struct sul_spin s;

	sul_spin_init(&s, US, false);
	for (int i = 0; i < SUL_SPIN_VAIN + 2; i++)
		rests(&s);
	while (!sul_spin_begin(&s))
		;
	sul_spin_found(&s);
	for (int i = 0; i < SUL_SPIN_VAIN; i++)
		CU_ASSERT_EQUAL(rests(&s), 0);
	CU_ASSERT_EQUAL(rests(&s), SUL_SPIN_REST_FIRST);
}

static void a_long_sleep_says_nothing(void)
{
	struct sul_spin s;

	sul_spin_init(&s, US, false);
	for (int i = 0; i < 10 * SUL_SPIN_VAIN; i++) {
		CU_ASSERT_EQUAL(sul_spin_begin(&s), NS);
		sul_spin_slept(&s, NS, NS);
	}
}

static void processors_are_those_that_may_be_used(void)
{
	cpu_set_t all, one;

	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(all), &all), 0);
	CU_ASSERT_EQUAL(sul_spin_processors(), CPU_COUNT(&all));
	CPU_ZERO(&one);
	for (size_t i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(one), &one), 0);
	CU_ASSERT_EQUAL(sul_spin_processors(), 1);
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(all), &all), 0);
}

CU_TestInfo test_sul_spin[] = {
	{ "a wait spins as long as it is told",
	  a_wait_spins_as_long_as_it_is_told },
	{ "who is waited for in vain is let run",
	  who_is_waited_for_in_vain_is_let_run },
	{ "spinning that works is taken up again",
	  spinning_that_works_is_taken_up_again },
	{ "a long sleep says nothing", a_long_sleep_says_nothing },
	{ "processors are those that may be used",
	  processors_are_those_that_may_be_used },
	CU_TEST_INFO_NULL,
};
