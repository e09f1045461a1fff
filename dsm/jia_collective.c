/* SPDX-License-Identifier: MIT */
/*
 * jia_collective.c - reductions, broadcasts, and sharing out work.
 *
 * Role:      messages up and down a tree of ranks that has the root at its top.
 * Invariant: a message of a collective call bears the number of the call, so
 *            that one which runs ahead cannot be taken for another.
 * Threads:   one thread of each rank makes a collective call.
 * Locks:     none of its own.
 */
#include "jia.h"

#include <stdlib.h>
#include <string.h>

#include "dsm_message.h"
#include "dsm_public.h"

/* --- the tree ------------------------------------------------------------------ */

struct tree {
	struct dsm_host *h;
	int root, tag;
};

/* A rank's place in the tree, counted from the root; and back. */
static int place_of(const struct tree *t)
{
	return (jia_pid - t->root + hostc) % hostc;
}

static int rank_at(const struct tree *t, int place)
{
	return (place + t->root) % hostc;
}

static int arity(const struct tree *t)
{
	return (int)t->h->node->cfg.tree ?: 1;
}

static int parent(const struct tree *t)
{
	return rank_at(t, (place_of(t) - 1) / arity(t));
}

/* Child @i, or -1. */
static int child(const struct tree *t, int i)
{
	int64_t place = (int64_t)place_of(t) * arity(t) + 1 + i;

	return i < arity(t) && place < hostc ? rank_at(t, (int)place) : -1;
}

static struct tree begin(struct dsm_host *h, enum dsm_call_kind kind,
			 uint64_t a, uint64_t b, uint64_t root,
			 const void *site)
{
	uint64_t args[3] = { a, b, root };

	if (kind == DSM_CALL_jia_bcast)
		args[1] = root;
	dsm_public_record(h, kind, args[0], args[1], args[2], site);
	return (struct tree){ .h = h,
			      .root = (int)root,
			      .tag = (int)(h->node->calls & INT32_MAX) };
}

static void send_to(const struct tree *t, int rank, const void *buf, size_t len)
{
	dsm_message_send(t->h, DSM_MESSAGE_OWN, rank, t->tag, buf, len);
}

static void receive(const struct tree *t, int rank, void *buf, size_t len)
{
	if (dsm_message_recv(t->h, DSM_MESSAGE_OWN, rank, t->tag, buf, len) !=
	    len)
		dsm_host_fail(t->h, "rank %d has another number of elements",
			      rank);
}

static void hand_down(const struct tree *t, void *buf, size_t len)
{
	if (jia_pid != t->root)
		receive(t, parent(t), buf, len);
	for (int i = 0; child(t, i) >= 0; i++)
		send_to(t, child(t, i), buf, len);
}

/* --- operations on elements ------------------------------------------------------ */

#define COMBINE(type)                                                         \
	static void combine_##type(void *into, const void *with, size_t nr,   \
				   int what)                                  \
	{                                                                     \
		type *a = into;                                               \
		const type *b = with;                                         \
                                                                              \
		for (size_t i = 0; i < nr; i++) {                             \
			if (what == SUM_INT)                                  \
				a[i] = (type)(a[i] + b[i]);                   \
			else if (what == MAX_INT ? b[i] > a[i] : b[i] < a[i]) \
				a[i] = b[i];                                  \
		}                                                             \
	}
typedef unsigned int wrapping; /* sums of ints wrap, as JIAJIA's do */
COMBINE(int)
COMBINE(wrapping)
COMBINE(float)
COMBINE(double)

struct operation {
	size_t size;
	int what; /* SUM_INT, MAX_INT or MIN_INT: the kind of any type */
	void (*combine)(void *into, const void *with, size_t nr, int what);
};

static struct operation operation(struct dsm_host *h, int op)
{
	int what = op % 10;

	if (op < 0 || what > MIN_INT || op / 10 > 2)
		dsm_host_fail(
			h,
			"operation %d does not exist; SUM_, MAX_ and MIN_ of _INT (0 to 2), _FLOAT (10 to 12) and _DOUBLE (20 to 22) do",
			op);
	switch (op / 10) {
	case 0:
		return (struct operation){ sizeof(int), what,
					   what == SUM_INT ? combine_wrapping :
							     combine_int };
	case 1:
		return (struct operation){ sizeof(float), what, combine_float };
	default:
		return (struct operation){ sizeof(double), what,
					   combine_double };
	}
}

static void *allocate(struct dsm_host *h, size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		dsm_host_fail(h,
			      "no memory for %zu bytes; see ulimit -d and -v",
			      bytes);
	return p;
}

/* @mine, of @nr elements, becomes the result, on all ranks. */
static void reduce(const struct tree *t, void *mine, size_t nr,
		   const struct operation *op)
{
	size_t bytes = nr * op->size;
	void *theirs = child(t, 0) < 0 ? NULL : allocate(t->h, bytes);

	for (int i = 0; child(t, i) >= 0; i++) {
		receive(t, child(t, i), theirs, bytes);
		op->combine(mine, theirs, nr, op->what);
	}
	free(theirs);
	if (jia_pid != t->root)
		send_to(t, parent(t), mine, bytes);
	hand_down(t, mine, bytes);
}

static void check_root(struct dsm_host *h, int root)
{
	if (root < 0 || root >= hostc)
		dsm_host_fail(h, "rank %d does not exist; 0 to %d do", root,
			      hostc - 1);
}

static size_t check_count(struct dsm_host *h, const char *what, int n,
			  const void *a, const void *b)
{
	if (n < 0)
		dsm_host_fail(h, "the %s %d is negative", what, n);
	if (n && (!a || !b))
		dsm_host_fail(h, "a buffer is NULL, and the %s %d", what, n);
	return (size_t)n;
}

void jia_reduce(const void *snd, void *rcv, int count, int op, int root)
{
	struct dsm_host *h = DSM_ENTER("jia_reduce");
	uint64_t start = dsm_host_now_ns();
	struct operation o = operation(h, op);
	size_t nr = check_count(h, "count", count, snd, rcv);
	struct tree t;
	void *mine;

	check_root(h, root);
	t = begin(h, DSM_CALL_jia_reduce, nr, (uint64_t)op, (uint64_t)root,
		  DSM_SITE);
	mine = allocate(h, nr * o.size);
	if (nr)
		memcpy(mine, snd, nr * o.size); /* may fault */
	reduce(&t, mine, nr, &o);
	if (nr)
		memcpy(rcv, mine, nr * o.size);
	free(mine);
	dsm_public_spent(h, DSM_SPOT_reduce, DSM_SITE, 0, start);
	dsm_public_leave();
}

void jia_bcast(void *buf, int len, int root)
{
	struct dsm_host *h = DSM_ENTER("jia_bcast");
	uint64_t start = dsm_host_now_ns();
	size_t bytes = check_count(h, "length", len, buf, buf);
	struct tree t;

	check_root(h, root);
	t = begin(h, DSM_CALL_jia_bcast, bytes, 0, (uint64_t)root, DSM_SITE);
	hand_down(&t, buf, bytes);
	dsm_public_spent(h, DSM_SPOT_bcast, DSM_SITE, 0, start);
	dsm_public_leave();
}

/* --- sharing out work ---------------------------------------------------------------- */

enum {
	PROBE_NS = 10000000, /* how long the power is measured: a few time
			      * slices of a processor that is shared */
	POWER_RATIO_MAX = 16, /* between two ranks: a rank that just did not
			       * get a processor is not that slow for long */
	PROBE_STEPS = 20000 /* between two looks at the clock */
};

/* Steps of simple arithmetic per nanosecond, right now and with whatever else
 * runs on this processor. */
static double measure_power(void)
{
	uint64_t start = dsm_host_now_ns(), now, x = start | 1, steps = 0;

	do {
		for (int i = 0; i < PROBE_STEPS; i++) {
			x = x * UINT64_C(6364136223846793005) + 1;
			__asm__ volatile("" : "+r"(x));
		}
		steps += PROBE_STEPS;
		now = dsm_host_now_ns();
	} while (now - start < PROBE_NS);
	return (double)steps / (double)(now - start);
}

static void bound_powers(struct dsm_host *h)
{
	double most = 0;

	for (int i = 0; i < hostc; i++)
		if (h->power[i] > most)
			most = h->power[i];
	for (int i = 0; i < hostc; i++)
		if (h->power[i] < most / POWER_RATIO_MAX)
			h->power[i] = most / POWER_RATIO_MAX;
}

void jia_loadcheck(void)
{
	static const struct operation sum = { sizeof(double), SUM_INT,
					      combine_double };
	struct dsm_host *h = DSM_ENTER("jia_loadcheck");
	struct tree t = begin(h, DSM_CALL_jia_loadcheck, 0, 0, 0, DSM_SITE);
	size_t nr = (size_t)hostc;

	if (!h->power)
		h->power = allocate(h, nr * sizeof(double));
	memset(h->power, 0, nr * sizeof(double));
	h->power[jia_pid] = measure_power();
	reduce(&t, h->power, nr, &sum);
	bound_powers(h);
	dsm_public_leave();
}

/* Of @nr things the first so many are for ranks below @rank. */
static int64_t share_before(const struct dsm_host *h, int64_t nr, int rank)
{
	double below = 0, all = 0;

	if (!h->balance || !h->power || rank == hostc)
		return nr * rank / hostc;
	for (int i = 0; i < hostc; i++) {
		all += h->power[i];
		if (i < rank)
			below += h->power[i];
	}
	return (int64_t)((double)nr * (below / all));
}

void jia_divtask(int *begin_at, int *end_at)
{
	struct dsm_host *h = DSM_ENTER("jia_divtask");
	int64_t first, nr;

	if (!begin_at || !end_at)
		dsm_host_fail(h, "begin and end must not be NULL");
	first = *begin_at;
	nr = *end_at - first + 1;
	if (nr < 0)
		dsm_host_fail(h, "the range %d to %d ends before it begins",
			      *begin_at, *end_at);
	*begin_at = (int)(first + share_before(h, nr, jia_pid));
	*end_at = (int)(first + share_before(h, nr, jia_pid + 1) - 1);
	dsm_public_leave();
}
