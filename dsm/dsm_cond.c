/* SPDX-License-Identifier: MIT */
/*
 * dsm_cond.c - conditions: wait, with a lock released meanwhile, for a signal.
 *
 * Role:      the first word of a condition's name is the top of a stack of
 *            waiting threads: each has pushed its token and keeps in its queue
 *            node who was there before.  A signal pops one, a broadcast takes
 *            the whole stack.
 * Invariant: the upper half of the word changes with every push and pop, so a
 *            pop that has read an old node fails (no ABA).  A node is not used
 *            again before its thread was woken.
 * Threads:   any; a signaller need not hold the lock.
 * Locks:     none while waiting.
 *
 * Why no signal is lost: the waiter pushes itself before it releases the lock,
 * so whoever takes the lock after it and signals finds it.  Which waiter is
 * woken is not said; it is the one that came last.
 */
#include "dsm_queue.h"

enum {
	TURN_SHIFT = 32
};

static uint64_t next_word(uint64_t was, uint64_t token)
{
	return ((was >> TURN_SHIFT) + 1) << TURN_SHIFT | token;
}

static uint32_t top_of(uint64_t word)
{
	return (uint32_t)word;
}

static void push(struct dsm_node *n, struct dsm_words p, uint32_t token)
{
	struct dsm_queue_node *q = dsm_queue_own(n, token);
	uint64_t was, seen = dsm_words_get(n, p);

	do {
		was = seen;
		__atomic_store_n(&q->below, top_of(was), __ATOMIC_RELEASE);
		seen = dsm_words_amo(n, p, SUL_AMO_CAS, next_word(was, token),
				     was);
	} while (seen != was);
}

void dsm_cond_wait(struct dsm_thread *t, dsm_name cond)
{
	struct dsm_node *n = t->node;
	struct dsm_words p = dsm_name_words(t, cond | DSM_NAME_COND);
	dsm_name lock = t->scope[t->depth - 1].lock;
	uint32_t token = dsm_queue_token(t, t->depth);
	struct dsm_queue_node *q = dsm_queue_own(n, token);

	__atomic_store_n(&q->go.value, 0, __ATOMIC_RELAXED);
	if (!DSM_BROKEN(cond_late))
		push(n, p, token);
	dsm_unlock(t, lock);
	if (DSM_BROKEN(cond_late))
		push(n, p, token);
	dsm_wait_word(n, &q->go, 0, DSM_WAIT_COND, (int64_t)cond, 0);
	dsm_lock(t, lock);
}

static uint32_t below(struct dsm_node *n, uint32_t token)
{
	struct dsm_words p = { .rank = dsm_queue_rank(token),
			       .off = dsm_queue_off(n, token) +
				      offsetof(struct dsm_queue_node, below) };

	return (uint32_t)dsm_words_get(n, p);
}

static void wake(struct dsm_node *n, uint32_t token)
{
	dsm_must(n,
		 sul_notify(n->port, dsm_queue_rank(token), DSM_W_SYNC,
			    dsm_queue_off(n, token) +
				    offsetof(struct dsm_queue_node, go),
			    1),
		 "signalling a condition");
}

void dsm_cond_signal(struct dsm_thread *t, dsm_name cond)
{
	struct dsm_node *n = t->node;
	struct dsm_words p = dsm_name_words(t, cond | DSM_NAME_COND);
	uint64_t seen = dsm_words_get(n, p);

	while (top_of(seen)) {
		uint32_t token = top_of(seen);
		uint64_t was = seen;

		seen = dsm_words_amo(n, p, SUL_AMO_CAS,
				     next_word(was, below(n, token)), was);
		if (seen != was)
			continue;
		wake(n, token);
		dsm_must(n, sul_flush(n->port), "signalling a condition");
		return;
	}
}

void dsm_cond_broadcast(struct dsm_thread *t, dsm_name cond)
{
	struct dsm_node *n = t->node;
	struct dsm_words p = dsm_name_words(t, cond | DSM_NAME_COND);
	uint64_t was, seen = dsm_words_get(n, p);
	uint32_t token;

	do {
		was = seen;
		if (!top_of(was))
			return;
		seen = dsm_words_amo(n, p, SUL_AMO_CAS, next_word(was, 0), was);
	} while (seen != was);
	for (token = top_of(was); token;) {
		uint32_t next = below(n, token); /* before it may go on */

		wake(n, token);
		token = next;
	}
	dsm_must(n, sul_flush(n->port), "signalling a condition");
}
