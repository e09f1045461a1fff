/* SPDX-License-Identifier: MIT */
/*
 * dsm_lock.c - queue locks in the manager's window.
 *
 * Role:      lock @l is managed by rank l mod ranks: its word holds the tail of
 *            a queue of waiting threads (MCS: Mellor-Crummey and Scott, 1991),
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
#include "dsm_node.h"

struct lock_word {
	uint64_t tail; /* token of the last in the queue; 0: free */
	dsm_ref last;
};

struct queue_node {
	struct sul_word go; /* 1: the lock is ours */
	struct sul_word next; /* token of the successor */
	dsm_ref last; /* stored before go */
	uint64_t pad[5]; /* a line of its own */
};

enum {
	DEPTH_BITS = 6, /* DSM_NEST_MAX fits */
	SLOT_BITS = 9 /* the largest `threads` fits */
};

static uint32_t make_token(const struct dsm_thread *t, uint32_t depth)
{
	return ((uint32_t)t->node->rank << SLOT_BITS | t->slot)
		       << DEPTH_BITS |
	       (depth + 1);
}

static int token_rank(uint32_t token)
{
	return (int)(token >> (SLOT_BITS + DEPTH_BITS));
}

static uint32_t node_index(uint32_t token)
{
	uint32_t slot = token >> DEPTH_BITS & ((1u << SLOT_BITS) - 1);
	uint32_t depth = (token & ((1u << DEPTH_BITS) - 1)) - 1;

	return slot * DSM_NEST_MAX + depth;
}

static uint64_t node_off(const struct dsm_node *n, uint32_t token)
{
	return n->at.nodes + sizeof(struct queue_node) * node_index(token);
}

static int manager_of(const struct dsm_node *n, uint32_t lock)
{
	return (int)(lock % (uint32_t)n->ranks);
}

static uint64_t lock_off(const struct dsm_node *n, uint32_t lock)
{
	return n->at.locks +
	       sizeof(struct lock_word) * (lock / (uint32_t)n->ranks);
}

void dsm_lock_layout(struct dsm_layout *at, const struct dsm_config *cfg,
		     int ranks)
{
	uint64_t locks = DSM_LOCKS / (unsigned int)ranks + 1;

	at->locks = at->sync_bytes;
	at->sync_bytes += (sizeof(struct lock_word) * locks + 63) &
			  ~UINT64_C(63);
	at->nodes = at->sync_bytes;
	at->sync_bytes +=
		sizeof(struct queue_node) * cfg->threads * DSM_NEST_MAX;
}

/* Stand in the queue behind @before, and wait until it is our turn. */
static dsm_ref wait_turn(struct dsm_thread *t, uint32_t lock, uint32_t token,
			 uint32_t before)
{
	struct dsm_node *n = t->node;
	struct queue_node *q = (void *)(n->sync + node_off(n, token));

	dsm_must(n, sul_notify(n->port, token_rank(before), DSM_W_SYNC,
			       node_off(n, before) +
				       offsetof(struct queue_node, next),
			       token),
		 "queueing for a lock");
	dsm_must(n, sul_flush(n->port), "queueing for a lock");
	dsm_wait_word(n, &q->go, 0, DSM_WAIT_LOCK, (int)lock,
		      token_rank(before));
	dsm_stat_add(n->stats, locks_waited, 1);
	return __atomic_load_n(&q->last, __ATOMIC_RELAXED);
}

/* The lock's last release, once the lock is ours. */
static dsm_ref take(struct dsm_thread *t, uint32_t lock)
{
	struct dsm_node *n = t->node;
	uint32_t token = make_token(t, t->depth);
	struct queue_node *q = (void *)(n->sync + node_off(n, token));
	uint64_t before = 0;
	dsm_ref last = 0;

	__atomic_store_n(&q->go.value, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&q->next.value, 0, __ATOMIC_RELAXED);
	dsm_must(n, sul_amo(n->port, manager_of(n, lock), DSM_W_SYNC,
			    lock_off(n, lock), SUL_AMO_SWAP, token, 0, &before),
		 "taking a lock");
	dsm_must(n, sul_get(n->port, manager_of(n, lock), DSM_W_SYNC,
			    lock_off(n, lock) +
				    offsetof(struct lock_word, last),
			    &last, sizeof(last), NULL, 0),
		 "taking a lock");
	dsm_must(n, sul_flush(n->port), "taking a lock");
	if (before)
		last = wait_turn(t, lock, token, (uint32_t)before);
	return last;
}

static void open_scope(struct dsm_thread *t, uint32_t lock, dsm_ref last)
{
	t->scope[t->depth] = (struct dsm_scope){ .lock = lock,
						 .from = t->node->log_pos,
						 .prev = last };
	t->depth++;
}

void dsm_lock(struct dsm_thread *t, uint32_t lock)
{
	struct dsm_node *n = t->node;
	uint64_t start = n->env->now_ns(n->env_ctx);
	dsm_ref last = take(t, lock);
	bool work = !dsm_alone(n) || (!n->cfg.hardware &&
				      dsm_log_news(n, lock, last));

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

/* True if nobody stood behind us: the lock is free now. */
static bool set_free(struct dsm_thread *t, uint32_t lock, uint32_t token,
		     dsm_ref last)
{
	struct dsm_node *n = t->node;
	uint64_t was = 0;

	dsm_must(n, sul_put(n->port, manager_of(n, lock), DSM_W_SYNC,
			    lock_off(n, lock) +
				    offsetof(struct lock_word, last),
			    &last, sizeof(last)),
		 "releasing a lock");
	dsm_must(n, sul_amo(n->port, manager_of(n, lock), DSM_W_SYNC,
			    lock_off(n, lock), SUL_AMO_CAS, 0, token, &was),
		 "releasing a lock");
	dsm_must(n, sul_flush(n->port), "releasing a lock");
	return was == token;
}

static void hand_over(struct dsm_thread *t, uint32_t next, dsm_ref last)
{
	struct dsm_node *n = t->node;
	uint64_t off = node_off(n, next);

	dsm_must(n, sul_put(n->port, token_rank(next), DSM_W_SYNC,
			    off + offsetof(struct queue_node, last), &last,
			    sizeof(last)),
		 "handing a lock over");
	dsm_must(n, sul_notify(n->port, token_rank(next), DSM_W_SYNC,
			       off + offsetof(struct queue_node, go), 1),
		 "handing a lock over");
	dsm_must(n, sul_flush(n->port), "handing a lock over");
}

static void give(struct dsm_thread *t, uint32_t lock, dsm_ref last)
{
	struct dsm_node *n = t->node;
	uint32_t token = make_token(t, t->depth);
	struct queue_node *q = (void *)(n->sync + node_off(n, token));

	if (!sul_word_read(&q->next)) {
		if (set_free(t, lock, token, last))
			return;
		/* Somebody has swapped the tail and is about to tell us. */
		dsm_wait_word(n, &q->next, 0, DSM_WAIT_NEXT, (int)lock, 0);
	}
	hand_over(t, sul_word_read(&q->next), last);
}

void dsm_unlock(struct dsm_thread *t, uint32_t lock)
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
	give(t, lock, last);
}
