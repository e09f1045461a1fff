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
 * the compare-and-swap came back) before the successor could write.  It need not
 * be written when it is right already: who found the lock free, and has nothing
 * to publish.
 *
 * With the reference go the notices that fit (dsm_news.c), in the same operation:
 * behind it in the queue node and in the words of a numbered lock.  A named lock
 * has a place for them elsewhere.
 */
#include "dsm_queue.h"

enum {
	DEPTH_BITS = 6, /* DSM_NEST_MAX + 1 fits */
	SLOT_BITS = 9, /* the largest `threads` fits */
	NODES = DSM_NEST_MAX + 1, /* of a thread; the last for a condition */
	UNKNOWN = 1 /* of a lock's word `last`: no reference is that */
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
	return n->at.nodes + n->at.node_bytes * node_index(token);
}

struct dsm_queue_node *dsm_queue_own(const struct dsm_node *n, uint32_t token)
{
	return (void *)(n->sync + dsm_queue_off(n, token));
}

void dsm_lock_layout(struct dsm_layout *at, const struct dsm_config *cfg)
{
	/* On lines of its own. */
	at->node_bytes = (sizeof(struct dsm_queue_node) + at->news_bytes + 63) &
			 ~UINT64_C(63);
	at->nodes = at->sync_bytes;
	at->sync_bytes += at->node_bytes * cfg->threads * NODES;
}

struct dsm_news *dsm_queue_news(const struct dsm_thread *t, uint32_t depth)
{
	const struct dsm_node *n = t->node;

	return n->at.news_bytes ?
		       dsm_queue_own(n, dsm_queue_token(t, depth))->news :
		       NULL;
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
static void wait_turn(struct dsm_thread *t, dsm_name lock, uint32_t token,
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
	q->word = UNKNOWN;
}

/* Is what goes with a lock's words right behind them? */
static bool is_joined(struct dsm_words p)
{
	return p.news == p.off + sizeof(struct dsm_lock_word);
}

/* The lock's last release, and what goes with it: read behind the operation
 * that took the lock, into @q. */
static void get_last(struct dsm_node *n, struct dsm_words p,
		     struct dsm_queue_node *q)
{
	size_t news = n->at.news_bytes;
	size_t also = is_joined(p) ? news : 0;

	dsm_must(n,
		 sul_get(n->port, p.rank, DSM_W_SYNC,
			 p.off + offsetof(struct dsm_lock_word, last), &q->last,
			 sizeof(q->last) + also, NULL, 0),
		 "taking a lock");
	if (news != also)
		dsm_must(n,
			 sul_get(n->port, p.rank, DSM_W_SYNC, p.news, q->news,
				 news, NULL, 0),
			 "taking a lock");
}

static uint64_t now(const struct dsm_node *n)
{
	return n->env->now_ns(n->env_ctx);
}

/*
 * Ask for the lock, and for its last release; 0: it is ours, or who is before
 * us.  *start is when that began, unless it is over at once: a lock that is free
 * and managed here.  Two looks at the clock would cost as much as all the rest
 * of it.
 */
static uint32_t ask(struct dsm_thread *t, dsm_name lock, enum sul_amo_op op,
		    uint64_t *start)
{
	struct dsm_node *n = t->node;
	struct dsm_words p = dsm_name_words(t, lock);
	uint32_t token = dsm_queue_token(t, t->depth);
	struct dsm_queue_node *q = dsm_queue_own(n, token);
	uint64_t before = 0;

	*start = p.rank == n->rank ? 0 : now(n);
	__atomic_store_n(&q->go.value, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&q->next.value, 0, __ATOMIC_RELAXED);
	dsm_must(n,
		 sul_amo(n->port, p.rank, DSM_W_SYNC, p.off, op, token, 0,
			 &before),
		 "taking a lock");
	get_last(n, p, q);
	dsm_must(n, sul_flush(n->port), "taking a lock");
	q->word = q->last;
	if (before && !*start)
		*start = now(n);
	return (uint32_t)before;
}

/* It is ours: the release with which it came, and its news if there are any. */
static dsm_ref taken(const struct dsm_thread *t)
{
	const struct dsm_node *n = t->node;
	struct dsm_queue_node *q =
		dsm_queue_own(n, dsm_queue_token(t, t->depth));

	if (n->at.news_bytes)
		dsm_news_check(n, q->news, q->last);
	return q->last;
}

static dsm_ref take(struct dsm_thread *t, dsm_name lock, uint64_t *start)
{
	uint32_t before = ask(t, lock, SUL_AMO_SWAP, start);

	if (before)
		wait_turn(t, lock, dsm_queue_token(t, t->depth), before);
	return taken(t);
}

dsm_ref dsm_queue_take(struct dsm_thread *t, dsm_name lock)
{
	uint64_t start;

	return take(t, lock, &start);
}

/* The lock is ours: what was done under it before becomes visible. */
static void open_scope(struct dsm_thread *t, dsm_name lock, dsm_ref last)
{
	t->scope[t->depth] = (struct dsm_scope){ .lock = lock,
						 .from = t->node->log_pos,
						 .prev = last };
	t->depth++;
}

static void note_taken(struct dsm_thread *t, dsm_name lock, uint64_t ns)
{
	dsm_stat_add(t->node->stats, lock_ns, ns);
	dsm_spot_add(t->node->spots, DSM_SPOT_lock, t->site, lock, ns);
}

/* @start: 0, or when the time that counts began. */
static void acquire(struct dsm_thread *t, dsm_name lock, dsm_ref last,
		    uint64_t start)
{
	struct dsm_node *n = t->node;
	bool work = !dsm_alone(n) ||
		    (!n->cfg.hardware && dsm_log_news(n, lock, last));

	if (work && !start)
		start = now(n);
	if (work)
		dsm_enter(n, t);
	open_scope(t, lock, last);
	if (work && !n->cfg.hardware) {
		dsm_log_acquire(n, lock, last, dsm_queue_news(t, t->depth - 1));
		dsm_apply(n);
	}
	dsm_stat_add(n->stats, locks, 1);
	if (start)
		note_taken(t, lock, now(n) - start);
	if (work)
		dsm_leave(n);
}

void dsm_lock(struct dsm_thread *t, dsm_name lock)
{
	uint64_t start;
	dsm_ref last = take(t, lock, &start);

	acquire(t, lock, last, start);
}

bool dsm_trylock(struct dsm_thread *t, dsm_name lock)
{
	uint64_t start;

	if (ask(t, lock, SUL_AMO_CAS, &start))
		return false;
	acquire(t, lock, taken(t), start);
	return true;
}

/* How much of @q goes along with the reference in it. */
static size_t news_along(const struct dsm_node *n,
			 const struct dsm_queue_node *q)
{
	return n->at.news_bytes && q->news->ref == q->last ?
		       dsm_news_used(n, q->news) :
		       0;
}

static void put_last(struct dsm_node *n, struct dsm_words p,
		     const struct dsm_queue_node *q)
{
	size_t news = news_along(n, q);
	size_t also = is_joined(p) ? news : 0;

	if (news != also)
		dsm_must(n,
			 sul_put(n->port, p.rank, DSM_W_SYNC, p.news, q->news,
				 news),
			 "releasing a lock");
	dsm_must(n,
		 sul_put(n->port, p.rank, DSM_W_SYNC,
			 p.off + offsetof(struct dsm_lock_word, last), &q->last,
			 sizeof(q->last) + also),
		 "releasing a lock");
}

/* True if nobody stood behind us: the lock is free now. */
static bool set_free(struct dsm_thread *t, dsm_name lock, uint32_t token)
{
	struct dsm_node *n = t->node;
	struct dsm_queue_node *q = dsm_queue_own(n, token);
	struct dsm_words p = dsm_name_words(t, lock);
	uint64_t was = 0;

	if (q->word != q->last)
		put_last(n, p, q);
	dsm_must(n,
		 sul_amo(n->port, p.rank, DSM_W_SYNC, p.off, SUL_AMO_CAS, 0,
			 token, &was),
		 "releasing a lock");
	dsm_must(n, sul_flush(n->port), "releasing a lock");
	return was == token;
}

static void hand_over(struct dsm_node *n, const struct dsm_queue_node *q)
{
	uint32_t next = sul_word_read(&q->next);
	uint64_t off = dsm_queue_off(n, next);

	dsm_must(n,
		 sul_put(n->port, dsm_queue_rank(next), DSM_W_SYNC,
			 off + offsetof(struct dsm_queue_node, last), &q->last,
			 sizeof(q->last) + news_along(n, q)),
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

	q->last = last;
	if (!sul_word_read(&q->next)) {
		if (set_free(t, lock, token))
			return;
		/* Somebody has swapped the tail and is about to tell us. */
		dsm_wait_word(n, &q->next, 0, DSM_WAIT_NEXT, (int64_t)lock, 0);
	}
	hand_over(n, q);
}

/* Publish the scope that was just closed; what the lock carries from now on. */
static dsm_ref publish(struct dsm_thread *t)
{
	struct dsm_node *n = t->node;
	const struct dsm_scope *s = &t->scope[t->depth];
	struct dsm_news *news = dsm_queue_news(t, t->depth);
	dsm_ref ref;

	if (dsm_log_empty(n, s))
		return s->prev;
	ref = dsm_log_release(n, t, s);
	if (news)
		dsm_news_make(n, t, s, ref, news);
	return ref;
}

void dsm_unlock(struct dsm_thread *t, dsm_name lock)
{
	struct dsm_node *n = t->node;
	bool work = !dsm_alone(n) || !dsm_flush_idle(n);
	uint64_t start = work ? now(n) : 0;
	dsm_ref last = 0;

	if (work) {
		dsm_enter(n, t);
		dsm_flush(n);
	}
	t->depth--;
	if (!n->cfg.hardware)
		last = publish(t);
	if (work) {
		start = now(n) - start;
		dsm_stat_add(n->stats, unlock_ns, start);
		dsm_spot_add(n->spots, DSM_SPOT_unlock, t->site, lock, start);
		dsm_leave(n);
	}
	dsm_queue_give(t, lock, last);
}
