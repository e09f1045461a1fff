/* SPDX-License-Identifier: MIT */
/*
 * dsm_keep.c - locks that stay with the rank that had them last.
 *
 * Role:      who releases a lock that is managed elsewhere, and has nobody behind
 *            it, tells nobody: it keeps the lock, and takes it again without a
 *            message.  Most locks are taken again by who had them last (SPLASH's
 *            BARNES on 2 ranks: 96 of 100, RADIOSITY 93, FMM 89).
 * Invariant: the lock's word `tail` goes on naming the queue node, so whoever
 *            wants the lock comes to that node, and takes it there with one
 *            operation on the word `claim`.  The rank that keeps it takes no part.
 * Threads:   ranks of one thread keep locks.  Once there is a second one they
 *            take what they have kept as any other rank would.
 * Locks:     none; `claim` is changed by atomic operations only.
 *
 * A kept lock has a node of its own, in a *place* found by the hash of its name:
 * a thread's nodes go round.  The word `claim` of a node in a place is
 *
 *	0               held, or waited for; nobody is behind it
 *	KEPT | name     kept: whoever changes that has the lock
 *	TAKEN | token   by the node `token`, or held and that is next
 *	OVER            the lock is elsewhere, and what went with it was read
 *
 * Who finds KEPT reads the lock's last release in the node, and says OVER then:
 * before that the place is not used for anything else.  Who finds 0 waits to be
 * handed the lock, as behind any node.
 *
 * A lock that goes round is not kept: whoever takes it would have to ask once more.
 * So where others have come for what was kept, more and more are given back as ever
 * before one is kept again.
 *
 * Trying a lock must not wait, so it does not stand in the queue: it changes KEPT
 * to TAKEN itself, and only then puts itself in the place of the node at the tail.
 * Somebody who has stood there in between finds TAKEN, and goes on to the node
 * named there.  The one who is later of those two, reading and finding, says OVER:
 * the mark READ tells.
 */
#include "dsm_queue.h"

#include <string.h>

#define KEPT (UINT64_C(1) << 63)
#define TAKEN (UINT64_C(1) << 62)
#define READ (UINT64_C(1) << 61) /* with TAKEN */
#define OVER UINT64_C(1)

enum {
	SHY_MAX = 31
};

enum state {
	NONE, /* the place is free */
	HELD,
	HERE, /* kept, as far as we know */
	GONE /* somebody has taken it and may still be reading */
};

static bool cas(struct dsm_queue_node *q, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(&q->claim, &from, to, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static uint64_t claim_off(const struct dsm_node *n, uint32_t token)
{
	return dsm_queue_off(n, token) + offsetof(struct dsm_queue_node, claim);
}

/* @token is a node of a place, and what went with the lock was read there. */
static void set_over(struct dsm_node *n, uint32_t token)
{
	dsm_must(n,
		 sul_amo(n->port, dsm_queue_rank(token), DSM_W_SYNC,
			 claim_off(n, token), SUL_AMO_SWAP, OVER, 0, NULL),
		 "taking a lock");
}

/* --- the rank's own places ------------------------------------------------------ */

static struct dsm_kept *place_of(struct dsm_node *n, dsm_name lock,
				 uint32_t *token)
{
	/* Other bits than those that choose the rank. */
	uint32_t i = (uint32_t)((dsm_name_hash(lock) >> 20) % n->cfg.retain);

	*token = dsm_queue_place(n, i);
	return &n->kept[i];
}

static bool take_back(struct dsm_node *n, struct dsm_kept *k, uint32_t token)
{
	struct dsm_queue_node *q = dsm_queue_own(n, token);

	DSM_POINT(n);
	if (!cas(q, KEPT | k->lock, 0) && !DSM_BROKEN(keep_blind)) {
		k->state = GONE;
		k->pause = k->pause < SHY_MAX / 2 ? 2 * k->pause + 1 : SHY_MAX;
		k->shy = k->pause;
		return false;
	}
	k->state = HELD;
	k->pause = 0;
	return true;
}

/* The lock goes back to its manager, unless somebody has come for it. */
static void give_back(struct dsm_thread *t, struct dsm_kept *k, uint32_t token)
{
	if (take_back(t->node, k, token) && dsm_queue_free(t, k->lock, token))
		k->state = NONE;
	else if (k->state == HELD)
		dsm_queue_pass(t, token);
}

bool dsm_keep_take(struct dsm_thread *t, dsm_name lock, uint32_t *token)
{
	struct dsm_node *n = t->node;
	struct dsm_kept *k;
	uint32_t at;

	*token = 0;
	if (!n->cfg.retain || !dsm_alone(n) ||
	    dsm_name_manager(n, lock) == n->rank)
		return false;
	k = place_of(n, lock, &at);
	if (k->state == HERE && k->lock != lock) {
		give_back(t, k, at);
	} else if (k->state == HERE && take_back(n, k, at)) {
		*token = at;
		dsm_stat_add(n->stats, locks_kept, 1);
		return true;
	}
	if (k->state == GONE && (__atomic_load_n(&dsm_queue_own(n, at)->claim,
						 __ATOMIC_ACQUIRE) == OVER ||
				 DSM_BROKEN(keep_early)))
		k->state = NONE;
	if (k->state == NONE && k->shy)
		k->shy--;
	else if (k->state == NONE)
		*token = at;
	return false;
}

void dsm_keep_hold(struct dsm_node *n, dsm_name lock, uint32_t token)
{
	struct dsm_kept *k = &n->kept[dsm_queue_index(token)];

	k->lock = lock;
	k->state = HELD;
}

uint32_t dsm_keep_give(struct dsm_node *n, uint32_t token)
{
	struct dsm_queue_node *q = dsm_queue_own(n, token);
	struct dsm_kept *k = &n->kept[dsm_queue_index(token)];

	DSM_POINT(n);
	if (cas(q, 0, KEPT | k->lock)) {
		k->state = HERE;
		return 0;
	}
	k->state = NONE;
	return (uint32_t)__atomic_load_n(&q->claim, __ATOMIC_RELAXED);
}

/* --- those of other ranks ----------------------------------------------------------- */

/* A thread's next node is not in use: what is read goes there first. */
static struct dsm_queue_node *bounce_of(const struct dsm_thread *t)
{
	return dsm_queue_own(t->node, dsm_queue_token(t, t->depth + 1));
}

/* Change the claim of @at, then read what goes with the lock; what it was. */
static uint64_t change(struct dsm_thread *t, uint32_t at, enum sul_amo_op op,
		       uint64_t to, uint64_t from)
{
	struct dsm_node *n = t->node;
	struct dsm_queue_node *b = bounce_of(t);
	uint64_t was = 0;

	dsm_must(n,
		 sul_amo(n->port, dsm_queue_rank(at), DSM_W_SYNC,
			 claim_off(n, at), op, to, from, &was),
		 "taking a lock");
	dsm_must(n,
		 sul_get(n->port, dsm_queue_rank(at), DSM_W_SYNC,
			 dsm_queue_off(n, at) +
				 offsetof(struct dsm_queue_node, last),
			 &b->last, sizeof(b->last) + n->at.news_bytes, NULL, 0),
		 "taking a lock");
	dsm_must(n, sul_flush(n->port), "taking a lock");
	return was;
}

static void keep_read(const struct dsm_thread *t, uint32_t token)
{
	struct dsm_queue_node *q = dsm_queue_own(t->node, token);

	q->last = bounce_of(t)->last;
	memcpy(q->news, bounce_of(t)->news, t->node->at.news_bytes);
	q->word = DSM_QUEUE_UNKNOWN;
}

bool dsm_keep_claim(struct dsm_thread *t, uint32_t token, uint32_t *before)
{
	struct dsm_node *n = t->node;

	while (dsm_queue_placed(*before)) {
		uint64_t was =
			change(t, *before, SUL_AMO_SWAP, TAKEN | token, 0);

		if (was & KEPT) {
			keep_read(t, token);
			set_over(n, *before);
			return true;
		}
		if (was & READ)
			set_over(n, *before);
		*before = (uint32_t)was; /* 0: it will be handed to us */
	}
	return false;
}

bool dsm_keep_try(struct dsm_thread *t, dsm_name lock, uint32_t token,
		  uint32_t before)
{
	struct dsm_node *n = t->node;
	struct dsm_words p = dsm_name_words(t, lock);
	struct dsm_words claim = { .rank = dsm_queue_rank(before),
				   .off = claim_off(n, before) };

	if (!dsm_queue_placed(before) ||
	    change(t, before, SUL_AMO_CAS, TAKEN | token, KEPT | lock) !=
		    (KEPT | lock))
		return false;
	keep_read(t, token);
	if (dsm_words_amo(n, p, SUL_AMO_CAS, token, before) == before ||
	    dsm_words_amo(n, claim, SUL_AMO_CAS, TAKEN | READ | token,
			  TAKEN | token) != (TAKEN | token))
		set_over(n, before);
	return true;
}
