/* SPDX-License-Identifier: MIT */
/*
 * dsm_lock.c - queue locks in the manager's window.
 *
 * Role:      a lock's words, at its manager (dsm_name.c), hold the tail of a
 *            queue of waiting threads (MCS: Mellor-Crummey and Scott, 1991),
 *            and the reference to its last release.  No thread of the manager
 *            takes part.
 * Invariant: a thread that holds the lock and finds its queue node's `next` set
 *            hands over directly: one hop, with the reference in the node.
 * Threads:   each thread of each rank has a queue node per nesting level.
 * Locks:     the rank mutex is taken for the pages, not while waiting; and not
 *            at all by a rank of one thread that has nothing to do for any page.
 *            (A signal handler of the program that faults in the midst of that
 *            can only add notices to the log behind the scope being released.)
 *
 * Who may write the word `last`?  Only the holder, before it takes itself off
 * the tail: then the lock is free and the next one finds it there.  A holder
 * that hands over has not written it, or its write was executed (the answer of
 * the compare-and-swap came back) before the successor could write.
 */
#include "dsm_queue.h"

enum {
	DEPTH_BITS = 6, /* DSM_NEST_MAX + 1 fits */
	SLOT_BITS = 9, /* the largest `threads` fits */
	NODES = DSM_NEST_MAX + 1 /* of a thread; the last for a condition */
};

uint32_t dsm_queue_token(const struct dsm_thread *t, uint32_t depth)
{
	return ((uint32_t)t->node->rank << SLOT_BITS | t->slot) << DEPTH_BITS |
	       (depth + 1);
}

int dsm_queue_rank(uint32_t token)
{
	return (int)(token >> (SLOT_BITS + DEPTH_BITS));
}

static uint32_t node_index(uint32_t token)
{
	uint32_t slot = token >> DEPTH_BITS & ((1u << SLOT_BITS) - 1);
	uint32_t depth = (token & ((1u << DEPTH_BITS) - 1)) - 1;

	return slot * NODES + depth;
}

uint64_t dsm_queue_off(const struct dsm_node *n, uint32_t token)
{
	return n->at.nodes + sizeof(struct dsm_queue_node) * node_index(token);
}

struct dsm_queue_node *dsm_queue_own(const struct dsm_node *n, uint32_t token)
{
	return (void *)(n->sync + dsm_queue_off(n, token));
}

void dsm_lock_layout(struct dsm_layout *at, const struct dsm_config *cfg)
{
	at->nodes = at->sync_bytes;
	at->sync_bytes += sizeof(struct dsm_queue_node) * cfg->threads * NODES;
}

uint64_t dsm_words_amo(struct dsm_node *n, struct dsm_words p,
		       enum sul_amo_op op, uint64_t to, uint64_t from)
{
	uint64_t was = 0;

	dsm_must(n,
		 sul_amo(n->port, p.rank, DSM_W_SYNC, p.off, op, to, from,
			 &was),
		 "working on a lock");
	dsm_must(n, sul_flush(n->port), "working on a lock");
	return was;
}

uint64_t dsm_words_get(struct dsm_node *n, struct dsm_words p)
{
	uint64_t v = 0;

	dsm_must(n,
		 sul_get(n->port, p.rank, DSM_W_SYNC, p.off, &v, sizeof(v),
			 NULL, 0),
		 "reading a lock");
	dsm_must(n, sul_flush(n->port), "reading a lock");
	return v;
}

/* Stand in the queue behind @before, and wait until it is our turn. */
static dsm_ref wait_turn(struct dsm_thread *t, dsm_name lock, uint32_t token,
			 uint32_t before)
{
	struct dsm_node *n = t->node;
	struct dsm_queue_node *q = dsm_queue_own(n, token);

	dsm_must(n,
		 sul_notify(n->port, dsm_queue_rank(before), DSM_W_SYNC,
			    dsm_queue_off(n, before) +
				    offsetof(struct dsm_queue_node, next),
			    token),
		 "queueing for a lock");
	dsm_must(n, sul_flush(n->port), "queueing for a lock");
	dsm_wait_word(n, &q->go, 0, DSM_WAIT_LOCK, (int64_t)lock,
		      dsm_queue_rank(before));
	dsm_stat_add(n->stats, locks_waited, 1);
	return __atomic_load_n(&q->last, __ATOMIC_RELAXED);
}

/* The lock's last release, read behind the operation that took it. */
static void get_last(struct dsm_node *n, struct dsm_words p, dsm_ref *last)
{
	dsm_must(n,
		 sul_get(n->port, p.rank, DSM_W_SYNC,
			 p.off + offsetof(struct dsm_lock_word, last), last,
			 sizeof(*last), NULL, 0),
		 "taking a lock");
}

static void reset(struct dsm_queue_node *q)
{
	__atomic_store_n(&q->go.value, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&q->next.value, 0, __ATOMIC_RELAXED);
}

dsm_ref dsm_queue_take(struct dsm_thread *t, dsm_name lock)
{
	struct dsm_node *n = t->node;
	struct dsm_words p = dsm_name_words(t, lock);
	uint32_t token = dsm_queue_token(t, t->depth);
	uint64_t before = 0;
	dsm_ref last = 0;

	reset(dsm_queue_own(n, token));
	dsm_must(n,
		 sul_amo(n->port, p.rank, DSM_W_SYNC, p.off, SUL_AMO_SWAP,
			 token, 0, &before),
		 "taking a lock");
	get_last(n, p, &last);
	dsm_must(n, sul_flush(n->port), "taking a lock");
	if (before)
		last = wait_turn(t, lock, token, (uint32_t)before);
	return last;
}

/* The lock is ours: what was done under it before becomes visible. */
static void open_scope(struct dsm_thread *t, dsm_name lock, dsm_ref last)
{
	t->scope[t->depth] = (struct dsm_scope){ .lock = lock,
						 .from = t->node->log_pos,
						 .prev = last };
	t->depth++;
}

static void acquire(struct dsm_thread *t, dsm_name lock, dsm_ref last,
		    uint64_t start)
{
	struct dsm_node *n = t->node;
	bool work = !dsm_alone(n) ||
		    (!n->cfg.hardware && dsm_log_news(n, lock, last));

	if (work)
		dsm_enter(n, t);
	open_scope(t, lock, last);
	if (work && !n->cfg.hardware) {
		dsm_log_acquire(n, lock, last);
		dsm_apply(n);
	}
	dsm_stat_add(n->stats, locks, 1);
	dsm_stat_add(n->stats, lock_ns, n->env->now_ns(n->env_ctx) - start);
	if (work)
		dsm_leave(n);
}

void dsm_lock(struct dsm_thread *t, dsm_name lock)
{
	struct dsm_node *n = t->node;
	uint64_t start = n->env->now_ns(n->env_ctx);

	acquire(t, lock, dsm_queue_take(t, lock), start);
}

bool dsm_trylock(struct dsm_thread *t, dsm_name lock)
{
	struct dsm_node *n = t->node;
	uint64_t start = n->env->now_ns(n->env_ctx);
	struct dsm_words p = dsm_name_words(t, lock);
	uint32_t token = dsm_queue_token(t, t->depth);
	uint64_t before = 0;
	dsm_ref last = 0;

	reset(dsm_queue_own(n, token));
	dsm_must(n,
		 sul_amo(n->port, p.rank, DSM_W_SYNC, p.off, SUL_AMO_CAS, token,
			 0, &before),
		 "trying a lock");
	get_last(n, p, &last);
	dsm_must(n, sul_flush(n->port), "trying a lock");
	if (before)
		return false;
	acquire(t, lock, last, start);
	return true;
}

/* True if nobody stood behind us: the lock is free now. */
static bool set_free(struct dsm_thread *t, dsm_name lock, uint32_t token,
		     dsm_ref last)
{
	struct dsm_node *n = t->node;
	struct dsm_words p = dsm_name_words(t, lock);
	uint64_t was = 0;

	dsm_must(n,
		 sul_put(n->port, p.rank, DSM_W_SYNC,
			 p.off + offsetof(struct dsm_lock_word, last), &last,
			 sizeof(last)),
		 "releasing a lock");
	dsm_must(n,
		 sul_amo(n->port, p.rank, DSM_W_SYNC, p.off, SUL_AMO_CAS, 0,
			 token, &was),
		 "releasing a lock");
	dsm_must(n, sul_flush(n->port), "releasing a lock");
	return was == token;
}

static void hand_over(struct dsm_thread *t, uint32_t next, dsm_ref last)
{
	struct dsm_node *n = t->node;
	uint64_t off = dsm_queue_off(n, next);

	dsm_must(n,
		 sul_put(n->port, dsm_queue_rank(next), DSM_W_SYNC,
			 off + offsetof(struct dsm_queue_node, last), &last,
			 sizeof(last)),
		 "handing a lock over");
	dsm_must(n,
		 sul_notify(n->port, dsm_queue_rank(next), DSM_W_SYNC,
			    off + offsetof(struct dsm_queue_node, go), 1),
		 "handing a lock over");
	dsm_must(n, sul_flush(n->port), "handing a lock over");
}

void dsm_queue_give(struct dsm_thread *t, dsm_name lock, dsm_ref last)
{
	struct dsm_node *n = t->node;
	uint32_t token = dsm_queue_token(t, t->depth);
	struct dsm_queue_node *q = dsm_queue_own(n, token);

	if (!sul_word_read(&q->next)) {
		if (set_free(t, lock, token, last))
			return;
		/* Somebody has swapped the tail and is about to tell us. */
		dsm_wait_word(n, &q->next, 0, DSM_WAIT_NEXT, (int64_t)lock, 0);
	}
	hand_over(t, sul_word_read(&q->next), last);
}

void dsm_unlock(struct dsm_thread *t, dsm_name lock)
{
	struct dsm_node *n = t->node;
	uint64_t start = n->env->now_ns(n->env_ctx);
	bool work = !dsm_alone(n) || !dsm_flush_idle(n);
	dsm_ref last = 0;

	if (work) {
		dsm_enter(n, t);
		dsm_flush(n);
	}
	t->depth--;
	if (!n->cfg.hardware)
		last = dsm_log_release(n, t, &t->scope[t->depth]);
	dsm_stat_add(n->stats, unlock_ns, n->env->now_ns(n->env_ctx) - start);
	if (work)
		dsm_leave(n);
	dsm_queue_give(t, lock, last);
}
