/* SPDX-License-Identifier: MIT */
/*
 * sul_mac.h - SipHash-2-4: a 64-bit authentication code under a 128-bit key.
 *
 * J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", 2012.
 * Pieces are taken one behind the other; how the input was cut does not matter.
 */
#ifndef SUL_MAC_H
#define SUL_MAC_H

#include "sul_pure.h"

enum {
	SUL_MAC_KEY_BYTES = 16
};

struct sul_mac_key {
	uint64_t k[2];
};

struct sul_mac {
	uint64_t v[4];
	uint64_t rest; /* bytes that do not fill a word yet */
	uint64_t len; /* bytes so far */
};

struct sul_mac_key sul_mac_key(const unsigned char bytes[SUL_MAC_KEY_BYTES]);

void sul_mac_begin(struct sul_mac *m, const struct sul_mac_key *key);
void sul_mac_add(struct sul_mac *m, const void *data, size_t len);
uint64_t sul_mac_end(struct sul_mac *m);

/* The code of @nr words and @len bytes behind them, wherever those lie: what is
 * short takes half as long as piece by piece. */
uint64_t sul_mac_two(const uint64_t key[2], const void *first, size_t nr,
		     const void *second, size_t len);

/* The @index-th word of what @key yields for @words: keys made from a key. */
uint64_t sul_mac_derive(const struct sul_mac_key *key, const uint64_t *words,
			size_t nr, uint64_t index);

#endif /* SUL_MAC_H */
