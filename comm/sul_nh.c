/* SPDX-License-Identifier: MIT */
/*
 * sul_nh.c - the universal hash of sul_nh.h.
 *
 * Role:      digests of blocks, at one multiplication of 32 bits for each pair
 *            of words and pass.
 * Threads:   any; all state is the caller's.
 */
#include "sul_nh.h"

void sul_nh_key_make(struct sul_nh_key *out, const struct sul_mac_key *seed)
{
	for (uint32_t i = 0; i < SUL_NH_KEY_WORDS; i += 2) {
		uint64_t pair = sul_mac_derive(seed, NULL, 0, i);

		out->word[i] = (uint32_t)pair;
		out->word[i + 1] = (uint32_t)(pair >> 32);
	}
}

static void begin_block(struct sul_nh *h)
{
	h->sum[0] = h->sum[1] = 0;
	h->at = 0;
}

void sul_nh_begin(struct sul_nh *h, const struct sul_nh_key *key)
{
	h->key = key;
	begin_block(h);
}

/* Pairs of words of one block. */
static void add_pairs(struct sul_nh *h, const unsigned char *p, size_t nr)
{
	const uint32_t *key = &h->key->word[h->at / 4];
	uint64_t a = 0, b = 0;

	for (size_t i = sul_nh_wide(h->sum, key, p, nr); i < nr; i++) {
		uint64_t pair;
		uint32_t x, y;

		memcpy(&pair, p + 8 * i, sizeof(pair));
		pair = SUL_LE64(pair);
		x = (uint32_t)pair;
		y = (uint32_t)(pair >> 32);
		a += (uint64_t)(uint32_t)(x + key[2 * i]) *
		     (uint32_t)(y + key[2 * i + 1]);
		b += (uint64_t)(uint32_t)(x + key[2 * i + 2]) *
		     (uint32_t)(y + key[2 * i + 3]);
	}
	h->sum[0] += a;
	h->sum[1] += b;
	h->at += (uint32_t)(8 * nr);
}

static void end_block(struct sul_nh *h, struct sul_mac *m)
{
	uint64_t digest[2] = { SUL_LE64(h->sum[0]), SUL_LE64(h->sum[1]) };

	sul_mac_add(m, digest, sizeof(digest));
	begin_block(h);
}

void sul_nh_add(struct sul_nh *h, const void *data, size_t len,
		struct sul_mac *m)
{
	const unsigned char *p = data;
	unsigned char last[8] = { 0 };

	while (len >= 8) {
		size_t n = SUL_NH_BLOCK_BYTES - h->at;

		n = n < len ? n : len & ~(size_t)7;
		add_pairs(h, p, n / 8);
		p += n;
		len -= n;
		if (h->at == SUL_NH_BLOCK_BYTES)
			end_block(h, m);
	}
	if (!len)
		return;
	memcpy(last, p, len);
	add_pairs(h, last, 1);
}

void sul_nh_end(struct sul_nh *h, struct sul_mac *m)
{
	if (h->at)
		end_block(h, m);
}
