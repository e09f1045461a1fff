/* SPDX-License-Identifier: MIT */
/*
 * dsm_news.h - what a lock brings along: the last notices, inline.
 *
 * Private to dsm_news.c, dsm_log.c and the files about locks.
 */
#ifndef DSM_NEWS_H
#define DSM_NEWS_H

#include "dsm_node.h"

/* What belongs to the release @ref; more follows, see dsm_news.c. */
struct dsm_news {
	uint64_t sum; /* over all the rest */
	dsm_ref ref; /* 0: nothing */
	uint32_t nr; /* notices in it */
	uint32_t releases; /* scope mode: whose notices all are in it */
};

/* @ref is what the lock carries: make @w what belongs to it, or nothing. */
void dsm_news_check(const struct dsm_node *n, struct dsm_news *w, dsm_ref ref);
/* Bytes of @w that need to be copied. */
size_t dsm_news_used(const struct dsm_node *n, const struct dsm_news *w);
/* @ref was published for @s, which was taken with @w: make it @ref's. */
void dsm_news_make(const struct dsm_node *n, const struct dsm_thread *t,
		   const struct dsm_scope *s, dsm_ref ref, struct dsm_news *w);

/*
 * Scope mode: how many releases of the lock have their notices in @w, the
 * youngest first; the notices of number @i, and the release before it.
 */
const uint32_t *dsm_news_units(const struct dsm_news *w, uint32_t i,
			       uint32_t *nr);
dsm_ref dsm_news_before(const struct dsm_news *w, uint32_t i);

/*
 * Release mode: the vector; and all notices up to it that this rank has not
 * seen, DSM_CARRY_MAX at most, or -1 if @w does not have them all.
 */
const uint64_t *dsm_news_vector(const struct dsm_news *w);
int dsm_news_unseen(const struct dsm_node *n, const struct dsm_news *w,
		    uint64_t *heard);
/* A notice by @rank at @pos of its epoch, published or read; as @heard has it
 * above.  To be remembered for those who take a lock from us. */
uint64_t dsm_news_heard(uint32_t unit, int rank, uint64_t pos);
static inline uint32_t dsm_news_unit(uint64_t heard)
{
	return (uint32_t)heard;
}
void dsm_news_remember(struct dsm_node *n, uint64_t heard);

#endif /* DSM_NEWS_H */
