/* SPDX-License-Identifier: MIT */
/*
 * net_trace.c - a message between namespaces leaves its times at both ends; what its
 * stages take.
 *
 * One task does both ends in turn, as in `time`: so nothing counts but what there is
 * to do, and not who runs when.  In a machine whose clock counts instructions (QEMU's
 * -icount shift=0) they are what is printed.
 */
#include <stdlib.h>
#include <string.h>

#include "net.h"
#include "sul_clock.h"

enum {
	MESSAGES = 201,
	WARM = 1000, /* beyond a tick: routes are remembered from the next one on */
};

enum stage {
	TRAP,
	COPY_IN,
	CHECKS,
	BUILDING,
	WAY,
	GENUINE,
	STORING,
	SEEN,
	WHOLE,
	STAGES
};

static const char *const names[STAGES] = {
	[TRAP] = "the trap",
	[COPY_IN] = "copying in",
	[CHECKS] = "checks",
	[BUILDING] = "a packet, its code",
	[WAY] = "UDP, IP, veth, both ends",
	[GENUINE] = "code, order, acknowledgements",
	[STORING] = "storing",
	[SEEN] = "answers, returns, the look",
	[WHOLE] = "the whole",
};

static uint64_t stamp(const struct net_side *s, enum sul_trace_at at)
{
	return __atomic_load_n(&s->status->trace[at], __ATOMIC_ACQUIRE);
}

/* The times of those stages are there, none before the one before it. */
static bool in_order(const struct net_side *s, int from, int to, uint64_t last)
{
	bool ok = true;

	for (int at = from; at <= to; at++) {
		uint64_t ns = stamp(s, (enum sul_trace_at)at);

		if (!ns || ns < last) {
			printf("# rank %d: stage %d at %llu, the one before it at %llu\n",
			       s->rank, at, (unsigned long long)ns,
			       (unsigned long long)last);
			ok = false;
		}
		last = ns;
	}
	return ok;
}

/* Of a get: what it asks for goes one way, the data the other. */
static bool leaves_its_times(struct net_side s[2])
{
	uint64_t built;

	net_get(&s[0], 0, 0, 0, sizeof(uint64_t), NULL, 0);
	built = stamp(&s[0], SUL_TRACE_BUILT);
	return in_order(&s[0], SUL_TRACE_ENTER, SUL_TRACE_SENT, 1) &&
	       net_flush(&s[0]) &&
	       in_order(&s[1], SUL_TRACE_ARRIVED, SUL_TRACE_STORED, 1) &&
	       in_order(&s[0], SUL_TRACE_ARRIVED, SUL_TRACE_STORED, built);
}

/* --- what the stages take ------------------------------------------------------------ */

static void throw_word(struct net_side s[2], int from, uint64_t value,
		       uint64_t out[STAGES])
{
	const uint64_t *word = (void *)s[1 - from].window[0];
	uint64_t t[STAGES + 1] = { sul_now_ns() };

	net_put(&s[from], 0, 0, &value, sizeof(value));
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		;
	t[SEEN + 1] = sul_now_ns();
	for (int at = SUL_TRACE_ENTER; at <= SUL_TRACE_BUILT; at++)
		t[TRAP + 1 + at - SUL_TRACE_ENTER] =
			stamp(&s[from], (enum sul_trace_at)at);
	for (int at = SUL_TRACE_ARRIVED; at <= SUL_TRACE_STORED; at++)
		t[WAY + 1 + at - SUL_TRACE_ARRIVED] =
			stamp(&s[1 - from], (enum sul_trace_at)at);
	for (int i = 0; i < WHOLE; i++)
		out[i] = t[i + 1] - t[i];
	out[WHOLE] = t[SEEN + 1] - t[0];
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void time_stages(struct net_side s[2])
{
	static uint64_t taken[STAGES][MESSAGES];
	uint64_t value = 1, one[STAGES];

	for (int i = -WARM; i < MESSAGES; i++) {
		throw_word(s, i & 1, ++value, one);
		for (int k = 0; k < STAGES && i >= 0; k++)
			taken[k][i] = one[k];
	}
	for (int k = 0; k < STAGES; k++) {
		qsort(taken[k], MESSAGES, sizeof(taken[k][0]), by_value);
		printf("# %-30s %6llu ns\n", names[k],
		       (unsigned long long)taken[k][MESSAGES / 2]);
	}
}

int net_trace(const struct net_config *cfg)
{
	struct net_config traced = *cfg;
	struct net_side s[2];
	bool ok;

	traced.trace = true;
	net_sides_open(s, &traced);
	ok = leaves_its_times(s);
	if (ok)
		time_stages(s);
	net_sides_close(s);
	return !ok;
}
