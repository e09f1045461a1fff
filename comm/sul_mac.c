/* SPDX-License-Identifier: MIT */
/*
 * sul_mac.c - SipHash-2-4.
 *
 * Role:    the authentication code of packets, and keys made from the job's.
 * Threads: any; all state is the caller's.
 */
#include "sul_mac.h"

/* "somepseudorandomlygeneratedbytes" */
#define START_0 0x736f6d6570736575u
#define START_1 0x646f72616e646f6du
#define START_2 0x6c7967656e657261u
#define START_3 0x7465646279746573u

static inline uint64_t rotate(uint64_t x, unsigned int n)
{
	return x << n | x >> (64 - n);
}

static inline uint64_t load(const void *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return SUL_LE64(v);
}

/* On variables, so that the state stays in registers. */
#define ROUND(v0, v1, v2, v3)        \
	do {                         \
		v0 += v1;            \
		v2 += v3;            \
		v1 = rotate(v1, 13); \
		v3 = rotate(v3, 16); \
		v1 ^= v0;            \
		v3 ^= v2;            \
		v0 = rotate(v0, 32); \
		v2 += v1;            \
		v0 += v3;            \
		v1 = rotate(v1, 17); \
		v3 = rotate(v3, 21); \
		v1 ^= v2;            \
		v3 ^= v0;            \
		v2 = rotate(v2, 32); \
	} while (0)

#define TAKE(v0, v1, v2, v3, word)     \
	do {                           \
		uint64_t w_ = (word);  \
                                       \
		v3 ^= w_;              \
		ROUND(v0, v1, v2, v3); \
		ROUND(v0, v1, v2, v3); \
		v0 ^= w_;              \
	} while (0)

struct sul_mac_key sul_mac_key(const unsigned char bytes[SUL_MAC_KEY_BYTES])
{
	return (struct sul_mac_key){ { load(bytes), load(bytes + 8) } };
}

void sul_mac_begin(struct sul_mac *m, const struct sul_mac_key *key)
{
	m->v[0] = key->k[0] ^ START_0;
	m->v[1] = key->k[1] ^ START_1;
	m->v[2] = key->k[0] ^ START_2;
	m->v[3] = key->k[1] ^ START_3;
	m->rest = 0;
	m->len = 0;
}

static void add_words(struct sul_mac *m, const unsigned char *p, size_t nr)
{
	uint64_t v0 = m->v[0], v1 = m->v[1], v2 = m->v[2], v3 = m->v[3];

	for (; nr; nr--, p += 8)
		TAKE(v0, v1, v2, v3, load(p));
	m->v[0] = v0;
	m->v[1] = v1;
	m->v[2] = v2;
	m->v[3] = v3;
}

static void add_byte(struct sul_mac *m, unsigned char byte)
{
	uint64_t whole;

	m->rest |= (uint64_t)byte << 8 * (m->len & 7);
	m->len++;
	if (m->len & 7)
		return;
	whole = SUL_LE64(m->rest);
	add_words(m, (const unsigned char *)&whole, 1);
	m->rest = 0;
}

void sul_mac_add(struct sul_mac *m, const void *data, size_t len)
{
	const unsigned char *p = data;

	if (!len) /* of nothing, there may be no address */
		return;
	for (; len && (m->len & 7); len--)
		add_byte(m, *p++);
	add_words(m, p, len / 8);
	p += len & ~(size_t)7;
	m->len += len & ~(size_t)7;
	for (len &= 7; len; len--)
		add_byte(m, *p++);
}

uint64_t sul_mac_end(struct sul_mac *m)
{
	uint64_t last = SUL_LE64(m->rest | m->len << 56);

	add_words(m, (const unsigned char *)&last, 1);
	m->v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		ROUND(m->v[0], m->v[1], m->v[2], m->v[3]);
	return m->v[0] ^ m->v[1] ^ m->v[2] ^ m->v[3];
}

/* As the functions above, but that the state never leaves the registers.  Most of
 * its statements are the macros': NOLINTNEXTLINE(readability-function-size) */
uint64_t sul_mac_two(const uint64_t key[2], const void *first, size_t nr,
		     const void *second, size_t len)
{
	const unsigned char *p = first, *q = second;
	uint64_t last = (uint64_t)(8 * nr + len) << 56;
	uint64_t v0 = key[0] ^ START_0, v1 = key[1] ^ START_1,
		 v2 = key[0] ^ START_2, v3 = key[1] ^ START_3;

	for (; nr; nr--, p += 8)
		TAKE(v0, v1, v2, v3, load(p));
	for (; len >= 8; len -= 8, q += 8)
		TAKE(v0, v1, v2, v3, load(q));
	for (unsigned int i = 0; i < len; i++)
		last |= (uint64_t)q[i] << 8 * i;
	TAKE(v0, v1, v2, v3, last);
	v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		ROUND(v0, v1, v2, v3);
	return v0 ^ v1 ^ v2 ^ v3;
}

uint64_t sul_mac_derive(const struct sul_mac_key *key, const uint64_t *words,
			size_t nr, uint64_t index)
{
	struct sul_mac m;
	uint64_t w;

	sul_mac_begin(&m, key);
	for (size_t i = 0; i < nr; i++) {
		w = SUL_LE64(words[i]);
		sul_mac_add(&m, &w, sizeof(w));
	}
	w = SUL_LE64(index);
	sul_mac_add(&m, &w, sizeof(w));
	return sul_mac_end(&m);
}
