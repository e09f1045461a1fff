/* SPDX-License-Identifier: MIT */
/*
 * dsm_queue.h - how threads of all ranks stand in queues.
 *
 * Private to dsm_lock.c, dsm_rwlock.c and dsm_cond.c.  A thread has a *queue
 * node* in its rank's SYNC window for each lock it may hold, and one more; a
 * *token* names a node anywhere in the job.
 */
#ifndef DSM_QUEUE_H
#define DSM_QUEUE_H

#include "dsm_news.h"

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
	dsm_ref word; /* what the lock's `last` is known to be, or 1 */
	uint64_t pad[2];
	dsm_ref last; /* stored before go, and with it: */
	struct dsm_news news[]; /* one, and only if there are any */
};

/* The node for what @t does with @depth locks in hand. */
uint32_t dsm_queue_token(const struct dsm_thread *t, uint32_t depth);
int dsm_queue_rank(uint32_t token);
uint64_t dsm_queue_off(const struct dsm_node *n, uint32_t token);
struct dsm_queue_node *dsm_queue_own(const struct dsm_node *n, uint32_t token);

/* Wait until the lock is ours; its last release.  What came along lies in our
 * node now.  No page is looked at. */
dsm_ref dsm_queue_take(struct dsm_thread *t, dsm_name lock);
/* What came along with the lock that @t took with @depth locks in hand; NULL:
 * nothing ever does. */
struct dsm_news *dsm_queue_news(const struct dsm_thread *t, uint32_t depth);
/* Pass it on, with @last; @t->depth is what it was in dsm_queue_take(). */
void dsm_queue_give(struct dsm_thread *t, dsm_name lock, dsm_ref last);

/* One atomic operation on a word of a name, executed when it returns; what the
 * word was. */
uint64_t dsm_words_amo(struct dsm_node *n, struct dsm_words p,
		       enum sul_amo_op op, uint64_t to, uint64_t from);
uint64_t dsm_words_get(struct dsm_node *n, struct dsm_words p);

#endif /* DSM_QUEUE_H */
