/* SPDX-License-Identifier: MIT */
/*
 * sul_nh.h - NH: a universal hash, several times faster than SipHash.
 *
 * J. Black, S. Halevi, H. Krawczyk, T. Krovetz, P. Rogaway, "UMAC: Fast and
 * Secure Message Authentication", 1999 (the hash of RFC 4418).  With a secret
 * key, two different blocks have the same digest with a probability of 2^-32; a
 * second pass with the key shifted by a pair (Toeplitz) makes that 2^-64.  It is
 * no authentication code by itself: its digests go into one (sul_net_code.c),
 * together with the length of what was hashed.
 */
#ifndef SUL_NH_H
#define SUL_NH_H

#include "sul_mac.h"

enum {
	SUL_NH_BLOCK_BYTES = 1024, /* a digest of 16 bytes is made of each */
	SUL_NH_KEY_WORDS = SUL_NH_BLOCK_BYTES / 4 + 2
};

struct sul_nh_key {
	uint32_t word[SUL_NH_KEY_WORDS];
};

struct sul_nh {
	const struct sul_nh_key *key;
	uint64_t sum[2]; /* of the block so far */
	uint32_t at; /* bytes of it */
};

/* The words are made from @seed, which serves no other purpose. */
void sul_nh_key_make(struct sul_nh_key *out, const struct sul_mac_key *seed);

void sul_nh_begin(struct sul_nh *h, const struct sul_nh_key *key);
/* @len is a multiple of 8, but for the last piece.  The digest of each block
 * that is complete goes to @m. */
void sul_nh_add(struct sul_nh *h, const void *data, size_t len,
		struct sul_mac *m);
/* The digest of the last block, which may be shorter. */
void sul_nh_end(struct sul_nh *h, struct sul_mac *m);

/* sul_wide_nh.c: add the sums of both passes over the first so many of @nr pairs
 * of one block; none in a kernel. */
#ifdef __KERNEL__
static inline size_t sul_nh_wide(uint64_t sum[2], const uint32_t *key,
				 const unsigned char *p, size_t nr)
{
	(void)sum, (void)key, (void)p, (void)nr;
	return 0;
}
#else
size_t sul_nh_wide(uint64_t sum[2], const uint32_t *key, const unsigned char *p,
		   size_t nr);
#endif

#endif /* SUL_NH_H */
