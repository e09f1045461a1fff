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

void sul_spin_init(struct sul_spin *s, unsigned int us, bool yield)
{
	*s = (struct sul_spin){ .us = us,
				.yield = yield,
				.pause = SUL_SPIN_REST_FIRST };
}

uint64_t sul_spin_begin(struct sul_spin *s)
{
	uint32_t rest = get(&s->rest);

	if (!rest)
		return s->us * UINT64_C(1000);
	set(&s->rest, rest - 1);
	return 0;
}

void sul_spin_found(struct sul_spin *s)
{
	if (!get(&s->vain))
		return;
	set(&s->vain, 0);
	set(&s->pause, SUL_SPIN_REST_FIRST);
}

void sul_spin_slept(struct sul_spin *s, uint64_t spun_ns, uint64_t slept_ns)
{
	uint32_t vain = get(&s->vain) + 1, pause = get(&s->pause);

	if (slept_ns >= spun_ns)
		return; /* nobody was kept waiting: it just takes long */
	set(&s->vain, vain);
	if (vain < SUL_SPIN_VAIN)
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
