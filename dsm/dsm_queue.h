/* SPDX-License-Identifier: MIT */
/*
 * dsm_queue.h - how threads of all ranks stand in queues.
 *
 * Private to dsm_lock.c, dsm_keep.c, dsm_rwlock.c and dsm_cond.c.  A thread has a
 * *queue node* in its rank's SYNC window for each lock it may hold, and one more;
 * its rank has some for locks that it keeps, in *places*.  A *token* names a node
 * anywhere in the job.
 */
#ifndef DSM_QUEUE_H
#define DSM_QUEUE_H

#include "dsm_news.h"

enum {
	DSM_QUEUE_UNKNOWN =
		1 /* of a lock's word `last`: no reference is that */
};

/* The words of a lock. */
struct dsm_lock_word {
	uint64_t tail; /* token of the last in the queue; 0: free */
	dsm_ref last; /* its last release */
};

struct dsm_queue_node {
	struct sul_word go; /* 1: it is our turn */
	struct sul_word next; /* token of the successor */
	struct sul_word clear; /* 1: the last reader has left */
	uint64_t below; /* of a condition: the waiter that came before */
	dsm_ref word; /* what the lock's `last` is known to be, or UNKNOWN */
	uint64_t claim; /* of a place: see dsm_keep.c */
	uint64_t pad;
	dsm_ref last; /* stored before go, and with it: */
	struct dsm_news news[]; /* one, and only if there are any */
};

/* The node for what @t does with @depth locks in hand. */
uint32_t dsm_queue_token(const struct dsm_thread *t, uint32_t depth);
int dsm_queue_rank(uint32_t token);
uint64_t dsm_queue_off(const struct dsm_node *n, uint32_t token);
struct dsm_queue_node *dsm_queue_own(const struct dsm_node *n, uint32_t token);
/* The node of this rank's place @index; is @token one of a place, and of which? */
uint32_t dsm_queue_place(const struct dsm_node *n, uint32_t index);
bool dsm_queue_placed(uint32_t token);
uint32_t dsm_queue_index(uint32_t token);

/* Wait until the lock is ours; its last release.  What came along lies in our
 * node now.  No page is looked at. */
dsm_ref dsm_queue_take(struct dsm_thread *t, dsm_name lock);
/* What came along with the lock that @t took with @depth locks in hand; NULL:
 * nothing ever does. */
struct dsm_news *dsm_queue_news(const struct dsm_thread *t, uint32_t depth);
/* Pass it on, with @last; @t->depth is what it was in dsm_queue_take(). */
void dsm_queue_give(struct dsm_thread *t, dsm_name lock, dsm_ref last);

/* The lock that the node @token of this rank holds: set it free, if nobody stands
 * behind that, with the last release that lies in the node. */
bool dsm_queue_free(struct dsm_thread *t, dsm_name lock, uint32_t token);
/* Keep it, or hand it to whoever has come: a node of a place. */
void dsm_queue_pass(struct dsm_thread *t, uint32_t token);

/* --- dsm_keep.c ------------------------------------------------------------------- */

/* True: the lock was kept, and is ours, in the node *@token.  False: it has to be
 * asked for, with the node *@token, or if that is 0 with the thread's. */
bool dsm_keep_take(struct dsm_thread *t, dsm_name lock, uint32_t *token);
/* It is ours now, in @token. */
void dsm_keep_hold(struct dsm_node *n, dsm_name lock, uint32_t token);
/* It is released: 0, and it is kept; or to whom to hand it. */
uint32_t dsm_keep_give(struct dsm_node *n, uint32_t token);
/*
 * @token stands behind *@before.  True: there the lock was kept, and now it is
 * ours.  False: *@before is to be told that we stand behind it, and will hand it
 * to us; or that is 0, and it knows.
 */
bool dsm_keep_claim(struct dsm_thread *t, uint32_t token, uint32_t *before);
/* Take the lock if it is kept at @before, without standing in the queue. */
bool dsm_keep_try(struct dsm_thread *t, dsm_name lock, uint32_t token,
		  uint32_t before);

/* One atomic operation on a word of a name, executed when it returns; what the
 * word was. */
uint64_t dsm_words_amo(struct dsm_node *n, struct dsm_words p,
		       enum sul_amo_op op, uint64_t to, uint64_t from);
uint64_t dsm_words_get(struct dsm_node *n, struct dsm_words p);

#endif /* DSM_QUEUE_H */
