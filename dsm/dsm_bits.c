/* SPDX-License-Identifier: MIT */
/*
 * dsm_bits.c - a large sparse set of page numbers, walked in order.
 *
 * Role: bit i of level 0 is member i; bit w of level n + 1 says that word w of
 * level n is not 0.
 * Invariant: exactly that, after every call.  A word is stored to only when it
 * changes, so that storage nobody needed stays untouched.
 * Threads, locks: the caller's (the rank mutex).
 *
 * The top level is scanned word by word: 64 words for 2^24 members, 64 GiB of
 * pages.
 */
#include "dsm_bits.h"

#include <assert.h>

#define LEVELS 3
#define TOP (LEVELS - 1)
#define WORD_BITS 64u

/* Words of @level in a set of @bits members. */
static uint32_t level_words(uint32_t bits, unsigned int level)
{
	uint32_t words = bits;

	for (unsigned int l = 0; l <= level; l++)
		words = words / WORD_BITS + (words % WORD_BITS != 0);
	return words;
}

static uint64_t bit_of(uint32_t i)
{
	return (uint64_t)1 << (i % WORD_BITS);
}

size_t dsm_bits_bytes(uint32_t bits)
{
	size_t words = 0;

	for (unsigned int l = 0; l < LEVELS; l++)
		words += level_words(bits, l);
	return words * sizeof(uint64_t);
}

void dsm_bits_init(struct dsm_bits *b, uint32_t bits, void *zeroed)
{
	uint64_t *words = zeroed;

	b->bits = bits;
	b->members = 0;
	for (unsigned int l = 0; l < LEVELS; l++) {
		b->level[l] = words;
		words += level_words(bits, l);
	}
}

bool dsm_bits_test(const struct dsm_bits *b, uint32_t i)
{
	assert(i < b->bits);
	return b->level[0][i / WORD_BITS] & bit_of(i);
}

bool dsm_bits_set(struct dsm_bits *b, uint32_t i)
{
	if (dsm_bits_test(b, i))
		return false;
	b->members++;
	for (unsigned int l = 0; l < LEVELS; l++) {
		uint64_t *word = &b->level[l][i / WORD_BITS];
		bool known_above = *word != 0;

		*word |= bit_of(i);
		if (known_above)
			break;
		i /= WORD_BITS;
	}
	return true;
}

bool dsm_bits_clear(struct dsm_bits *b, uint32_t i)
{
	if (!dsm_bits_test(b, i))
		return false;
	b->members--;
	for (unsigned int l = 0; l < LEVELS; l++) {
		uint64_t *word = &b->level[l][i / WORD_BITS];

		*word &= ~bit_of(i);
		if (*word)
			break;
		i /= WORD_BITS;
	}
	return true;
}

/* The lowest member below bit @i of @level. */
static uint32_t descend(const struct dsm_bits *b, unsigned int level,
			uint32_t i)
{
	while (level-- > 0)
		i = i * WORD_BITS +
		    (uint32_t)__builtin_ctzll(b->level[level][i]);
	return i;
}

uint32_t dsm_bits_next(const struct dsm_bits *b, uint32_t from)
{
	unsigned int level = 0;
	uint32_t i = from;

	if (from >= b->bits)
		return DSM_BITS_END;
	for (;;) {
		uint32_t w = i / WORD_BITS;
		uint64_t rest;

		if (w >= level_words(b->bits, level))
			return DSM_BITS_END;
		rest = b->level[level][w] & UINT64_MAX << (i % WORD_BITS);
		if (rest)
			return descend(b, level,
				       w * WORD_BITS +
					       (uint32_t)__builtin_ctzll(rest));
		if (level < TOP) {
			level++;
			i = w + 1;
		} else {
			i = (w + 1) * WORD_BITS;
		}
	}
}

/* Zero word @w of @level and all that lies below it. */
static void word_empty(struct dsm_bits *b, unsigned int level, uint32_t w)
{
	if (level > 0)
		for (uint64_t rest = b->level[level][w]; rest; rest &= rest - 1)
			word_empty(b, level - 1,
				   w * WORD_BITS +
					   (uint32_t)__builtin_ctzll(rest));
	b->level[level][w] = 0;
}

void dsm_bits_empty(struct dsm_bits *b)
{
	uint32_t words = level_words(b->bits, TOP);

	for (uint32_t w = 0; w < words && b->members; w++)
		if (b->level[TOP][w])
			word_empty(b, TOP, w);
	b->members = 0;
}
