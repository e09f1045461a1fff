/* SPDX-License-Identifier: MIT */
/*
 * dsm_rwlock.c - reader-writer locks: many readers or one writer.
 *
 * Role:      a queue lock (dsm_lock.c) orders all who come.  A writer keeps it;
 *            a reader counts itself and passes it on at once.  So nobody
 *            overtakes: readers that come after a waiting writer wait for it.
 * Invariant: two more words, under the lock's name with DSM_NAME_READERS, hold
 *            the number of readers with the token of the writer that waits for
 *            the last of them, and the reference to the readers' last release.
 * Threads:   any thread of any rank.
 * Locks:     the rank mutex for the pages, not while waiting.
 *
 * What is published.  Writers publish with the lock, as with any lock.  What a
 * reader writes (nothing that the lock guards, but perhaps a count of its own)
 * is published too: readers leave in any order, so their releases form a chain
 * of their own.  Who takes the lock, for whichever purpose, applies both.
 */
#include "dsm_queue.h"

#define READERS UINT64_C(0xffffffff)

static struct dsm_words readers_of(struct dsm_thread *t, dsm_name lock)
{
	return dsm_name_words(t, lock | DSM_NAME_READERS);
}

static struct dsm_words chain_of(struct dsm_thread *t, dsm_name lock)
{
	struct dsm_words p = readers_of(t, lock);

	p.off += 8;
	return p;
}

/* Both chains are applied; the scope begins. */
static void acquire(struct dsm_thread *t, dsm_name lock, enum dsm_hold hold,
		    dsm_ref last, uint64_t start)
{
	struct dsm_node *n = t->node;
	dsm_ref readers = dsm_words_get(n, chain_of(t, lock));

	dsm_enter(n, t);
	t->scope[t->depth] = (struct dsm_scope){
		.lock = lock, .hold = hold, .from = n->log_pos, .prev = last
	};
	t->depth++;
	if (!n->cfg.hardware) {
		dsm_log_acquire(n, lock, last, dsm_queue_news(t, t->depth - 1));
		if (!DSM_BROKEN(readers_blind))
			dsm_log_acquire(n, lock | DSM_NAME_READERS, readers,
					NULL);
		dsm_apply(n);
	}
	dsm_stat_add(n->stats, locks, 1);
	start = n->env->now_ns(n->env_ctx) - start;
	dsm_stat_add(n->stats, lock_ns, start);
	dsm_spot_add(n->spots, DSM_SPOT_lock, t->site, lock, start);
	dsm_leave(n);
}

void dsm_rdlock(struct dsm_thread *t, dsm_name lock)
{
	struct dsm_node *n = t->node;
	uint64_t start = n->env->now_ns(n->env_ctx);
	dsm_ref last = dsm_queue_take(t, lock);

	dsm_words_amo(n, readers_of(t, lock), SUL_AMO_ADD, 1, 0);
	dsm_queue_give(t, lock, last);
	acquire(t, lock, DSM_HOLD_READ, last, start);
}

/* Nobody new can come in: the queue lock is ours. */
static void wait_for_readers(struct dsm_thread *t, dsm_name lock)
{
	struct dsm_node *n = t->node;
	struct dsm_words p = readers_of(t, lock);
	uint32_t token = dsm_queue_token(t, t->depth);
	struct dsm_queue_node *q = dsm_queue_own(n, token);
	uint64_t mark = (uint64_t)token << 32;

	if (!dsm_words_get(n, p) || DSM_BROKEN(writer_first))
		return;
	__atomic_store_n(&q->clear.value, 0, __ATOMIC_RELAXED);
	if (dsm_words_amo(n, p, SUL_AMO_OR, mark, 0) & READERS)
		dsm_wait_word(n, &q->clear, 0, DSM_WAIT_READERS, (int64_t)lock,
			      0);
	dsm_words_amo(n, p, SUL_AMO_ANDNOT, mark, 0);
}

void dsm_wrlock(struct dsm_thread *t, dsm_name lock)
{
	uint64_t start = t->node->env->now_ns(t->node->env_ctx);
	dsm_ref last = dsm_queue_take(t, lock);

	wait_for_readers(t, lock);
	acquire(t, lock, DSM_HOLD_WRITE, last, start);
}

/*
 * Put a release of ours in front of the readers' chain.  Those behind it have
 * left before us, and we learn of them first: whoever finds his own release in
 * a chain relies on having seen the older ones.
 */
static void publish(struct dsm_thread *t, dsm_name lock)
{
	struct dsm_node *n = t->node;
	struct dsm_scope s = t->scope[t->depth];
	struct dsm_words p = chain_of(t, lock);
	dsm_ref was = dsm_words_get(n, p);

	s.lock = lock | DSM_NAME_READERS;
	for (;;) {
		dsm_ref ref;

		s.prev = was;
		if (!DSM_BROKEN(reader_leaves))
			dsm_log_acquire(n, s.lock, was, NULL);
		dsm_apply(n);
		ref = dsm_log_release(n, t, &s);
		was = dsm_words_amo(n, p, SUL_AMO_CAS, ref, s.prev);
		if (was == s.prev)
			return;
		*dsm_name_seen(n, s.lock) = s.prev; /* not that one */
	}
}

/* The last one out wakes the writer that waits. */
static void leave(struct dsm_thread *t, dsm_name lock)
{
	struct dsm_node *n = t->node;
	uint64_t was = dsm_words_amo(n, readers_of(t, lock), SUL_AMO_ADD,
				     UINT64_MAX, 0);
	uint32_t writer = (uint32_t)(was >> 32);

	if ((was & READERS) != 1 || !writer)
		return;
	dsm_must(n,
		 sul_notify(n->port, dsm_queue_rank(writer), DSM_W_SYNC,
			    dsm_queue_off(n, writer) +
				    offsetof(struct dsm_queue_node, clear),
			    1),
		 "leaving a lock to its writer");
	dsm_must(n, sul_flush(n->port), "leaving a lock to its writer");
}

void dsm_rwunlock(struct dsm_thread *t, dsm_name lock)
{
	struct dsm_node *n = t->node;
	uint64_t start = n->env->now_ns(n->env_ctx);

	if (t->scope[t->depth - 1].hold != DSM_HOLD_READ) {
		dsm_unlock(t, lock);
		return;
	}
	dsm_enter(n, t);
	dsm_flush(n);
	t->depth--;
	if (!n->cfg.hardware)
		publish(t, lock);
	start = n->env->now_ns(n->env_ctx) - start;
	dsm_stat_add(n->stats, unlock_ns, start);
	dsm_spot_add(n->spots, DSM_SPOT_unlock, t->site, lock, start);
	dsm_leave(n);
	leave(t, lock);
}
