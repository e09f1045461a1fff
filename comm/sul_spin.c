/* SPDX-License-Identifier: MIT */
/* sul_spin.c - see sul_spin.h. */
#include "sul_spin.h"

#include <sched.h>
#include <unistd.h>

static uint32_t get(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static void set(uint32_t *at, uint32_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
}

/* --- who is where ---------------------------------------------------------------- */

static void publish_place(const struct sul_spin *s)
{
	struct sul_job_rank *self = sul_job_rank(s->job, s->rank);
	uint32_t cpu = (uint32_t)(sched_getcpu() + 1);

	if (atomic_load_explicit(&self->cpu, memory_order_relaxed) != cpu)
		atomic_store_explicit(&self->cpu, cpu, memory_order_relaxed);
}

/* Where the other ranks of this host are; a hint, they may have moved. */
static void places_of_others(const struct sul_spin *s, cpu_set_t *out)
{
	CPU_ZERO(out);
	for (int r = 0; r < sul_job_ranks(s->job); r++) {
		uint32_t cpu = atomic_load_explicit(
			&sul_job_rank(s->job, r)->cpu, memory_order_relaxed);

		if (cpu && cpu <= CPU_SETSIZE && r != s->rank &&
		    !sul_job_far(s->job, r))
			CPU_SET(cpu - 1, out);
	}
}

/* The next one of @mine behind @cpu that is not among @theirs; @cpu: none. */
static unsigned int free_place(unsigned int cpu, const cpu_set_t *mine,
			       const cpu_set_t *theirs)
{
	unsigned int at = cpu;

	do
		at = (at + 1) % CPU_SETSIZE;
	while (at != cpu && (!CPU_ISSET(at, mine) || CPU_ISSET(at, theirs)));
	return at;
}

/* The thread may go on to wherever it might before: it is only sent away once.
 * False: nobody else is here, or there is no other place. */
static bool leave_place(const struct sul_spin *s)
{
	unsigned int cpu = (unsigned int)sched_getcpu(), to;
	cpu_set_t mine, theirs, one;

	places_of_others(s, &theirs);
	if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &theirs) ||
	    sched_getaffinity(0, sizeof(mine), &mine))
		return false;
	to = free_place(cpu, &mine, &theirs);
	if (to == cpu)
		return false;
	CPU_ZERO(&one);
	CPU_SET(to, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return false;
	sched_setaffinity(0, sizeof(mine), &mine);
	publish_place(s);
	return true;
}

/* --- whether it is worth while --------------------------------------------------------- */

/* More ranks here than processors? */
static bool is_crowded(struct sul_job *job)
{
	unsigned int here = 0;

	for (int r = 0; job && r < sul_job_ranks(job); r++)
		here += !sul_job_far(job, r);
	return here > sul_spin_processors();
}

void sul_spin_init(struct sul_spin *s, unsigned int us, struct sul_job *job,
		   int rank)
{
	*s = (struct sul_spin){ .us = us,
				.job = job,
				.rank = rank,
				.yield = is_crowded(job),
				.pause = SUL_SPIN_REST_FIRST };
}

uint64_t sul_spin_begin(struct sul_spin *s)
{
	uint32_t rest = get(&s->rest);

	if (s->job && !s->yield)
		publish_place(s);
	if (!rest)
		return s->us * UINT64_C(1000);
	set(&s->rest, rest - 1);
	return 0;
}

void sul_spin_found(struct sul_spin *s)
{
	if (!get(&s->vain) && !get(&s->moved))
		return;
	set(&s->vain, 0);
	set(&s->moved, 0);
	set(&s->pause, SUL_SPIN_REST_FIRST);
}

void sul_spin_slept(struct sul_spin *s, uint64_t spun_ns, uint64_t slept_ns)
{
	uint32_t vain = get(&s->vain) + 1, pause = get(&s->pause);
	bool before = get(&s->moved);

	if (slept_ns >= spun_ns)
		return; /* nobody was kept waiting: it just takes long */
	set(&s->vain, vain);
	if (vain < SUL_SPIN_VAIN)
		return;
	set(&s->moved, s->job && !s->yield && leave_place(s));
	if (get(&s->moved) && !before)
		return;
	set(&s->rest, pause);
	if (pause < SUL_SPIN_REST_MAX)
		set(&s->pause, 2 * pause);
}

unsigned int sul_spin_processors(void)
{
	cpu_set_t *set;
	long all = sysconf(_SC_NPROCESSORS_CONF), nr = 0;
	size_t bytes;

	if (all < 1 || !(set = CPU_ALLOC((size_t)all)))
		return 1;
	bytes = CPU_ALLOC_SIZE((size_t)all);
	if (!sched_getaffinity(0, bytes, set))
		nr = CPU_COUNT_S(bytes, set);
	else
		nr = sysconf(_SC_NPROCESSORS_ONLN);
	CPU_FREE(set);
	return nr > 0 ? (unsigned int)nr : 1;
}
