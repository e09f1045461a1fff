/* SPDX-License-Identifier: MIT */
/*
 * dsm_bits.h - a large sparse set of page numbers, walked in order.
 *
 * Three levels of 64-bit words (a summary bit says that a word below is not 0),
 * so that walking a set costs what is in it, not what could be.  The storage is
 * given by the caller: zero-filled memory that is only touched where needed.
 *
 * Pure.  Threads: the caller serialises (the rank mutex).
 */
#ifndef DSM_BITS_H
#define DSM_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dsm_bits {
	uint64_t *level[3]; /* [0]: the bits; [1], [2]: summaries */
	uint32_t bits; /* members are 0 .. bits-1 */
	uint32_t members; /* how many are in the set */
};

#define DSM_BITS_END UINT32_MAX

/* Bytes of zero-filled storage that a set of @bits members needs. */
size_t dsm_bits_bytes(uint32_t bits);
void dsm_bits_init(struct dsm_bits *b, uint32_t bits, void *zeroed);

bool dsm_bits_test(const struct dsm_bits *b, uint32_t i);
bool dsm_bits_set(struct dsm_bits *b, uint32_t i); /* true: it was not there */
bool dsm_bits_clear(struct dsm_bits *b, uint32_t i); /* true: it was there */

/* The first member >= @from, or DSM_BITS_END.  Members may be removed while
 * walking: for (i = next(b, 0); i != END; i = next(b, i + 1)). */
uint32_t dsm_bits_next(const struct dsm_bits *b, uint32_t from);

/* Remove all members; costs what is in the set. */
void dsm_bits_empty(struct dsm_bits *b);

#endif /* DSM_BITS_H */
