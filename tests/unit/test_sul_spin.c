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

	sul_spin_init(&s, US, NULL, 0);
	CU_ASSERT_EQUAL(sul_spin_begin(&s), NS);
	sul_spin_init(&s, 0, NULL, 0);
	CU_ASSERT_EQUAL(sul_spin_begin(&s), 0);
}

static void who_is_waited_for_in_vain_is_let_run(void)
{
	struct sul_spin s;

	sul_spin_init(&s, US, NULL, 0);
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

	sul_spin_init(&s, US, NULL, 0);
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

	sul_spin_init(&s, US, NULL, 0);
	for (int i = 0; i < 10 * SUL_SPIN_VAIN; i++) {
		CU_ASSERT_EQUAL(sul_spin_begin(&s), NS);
		sul_spin_slept(&s, NS, NS);
	}
}

/* A job of two ranks, of which rank 1 says that it is here. */
static struct sul_job *job_on_one_processor(void)
{
	struct sul_job *job;

	CU_ASSERT_EQUAL_FATAL(sul_job_create(&job, 2), 0);
	sul_job_rank(job, 1)->cpu = (uint32_t)sched_getcpu() + 1;
	return job;
}

static void stay_here(cpu_set_t *before)
{
	cpu_set_t here;

	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(*before), before), 0);
	CPU_ZERO(&here);
	CPU_SET((size_t)sched_getcpu(), &here);
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(here), &here), 0);
}

static void two_ranks_on_one_processor_part(void)
{
	cpu_set_t before, after;
	struct sul_job *job;
	struct sul_spin s;
	uint32_t theirs;

	if (sul_spin_processors() < 2)
		return;
	stay_here(&before); /* so that nobody else moves us ... */
	job = job_on_one_processor();
	theirs = sul_job_rank(job, 1)->cpu;
	sul_spin_init(&s, US, job, 0);
	s.yield = false;
	for (int i = 0; i < SUL_SPIN_VAIN - 1; i++)
		CU_ASSERT_EQUAL(rests(&s), 0);
	CU_ASSERT_EQUAL(sul_job_rank(job, 0)->cpu, theirs);
	sched_setaffinity(0, sizeof(before), &before); /* ... but we may */
	CU_ASSERT_EQUAL(rests(&s), 0);
	CU_ASSERT_NOT_EQUAL(sul_job_rank(job, 0)->cpu, theirs);
	CU_ASSERT_EQUAL(sched_getaffinity(0, sizeof(after), &after), 0);
	CU_ASSERT(CPU_EQUAL(&before, &after));
	CU_ASSERT_EQUAL(sul_spin_begin(&s), NS); /* and spins on */
	sul_job_close(job);
}

static void who_may_not_leave_his_processor_sleeps(void)
{
	struct sul_job *job;
	struct sul_spin s;
	cpu_set_t before;

	stay_here(&before);
	job = job_on_one_processor();
	sul_spin_init(&s, US, job, 0);
	s.yield = false;
	for (int i = 0; i < SUL_SPIN_VAIN; i++)
		CU_ASSERT_EQUAL(rests(&s), 0);
	CU_ASSERT_EQUAL(rests(&s), SUL_SPIN_REST_FIRST);
	sul_job_close(job);
	sched_setaffinity(0, sizeof(before), &before);
}

static void who_is_alone_on_his_processor_stays(void)
{
	struct sul_job *job;
	struct sul_spin s;
	cpu_set_t before;

	stay_here(&before);
	job = job_on_one_processor();
	sul_job_rank(job, 1)->cpu = CPU_SETSIZE;
	sul_spin_init(&s, US, job, 0);
	s.yield = false;
	sched_setaffinity(0, sizeof(before), &before);
	for (int i = 0; i < SUL_SPIN_VAIN; i++)
		CU_ASSERT_EQUAL(rests(&s), 0);
	CU_ASSERT_EQUAL(s.moved, 0);
	sul_job_close(job);
}

static void processors_are_those_that_may_be_used(void)
{
	cpu_set_t all, one;

	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(all), &all), 0);
	CU_ASSERT_EQUAL(sul_spin_processors(), (unsigned int)CPU_COUNT(&all));
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
	{ "two ranks on one processor part", two_ranks_on_one_processor_part },
	{ "who may not leave his processor sleeps",
	  who_may_not_leave_his_processor_sleeps },
	{ "who is alone on his processor stays",
	  who_is_alone_on_his_processor_stays },
	{ "processors are those that may be used",
	  processors_are_those_that_may_be_used },
	CU_TEST_INFO_NULL,
};
