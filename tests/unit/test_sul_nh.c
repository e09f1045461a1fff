/* SPDX-License-Identifier: MIT */
/*
 * test_sul_nh.c - NH against its definition; the code of a packet made of it.
 */
#include "sul_net_link.h"
#include "sul_nh.h"
#include "tests.h"
#include "unit_seed.h"

static const struct sul_mac_key mac_key = { { 1, 2 } };

static struct sul_nh_key some_key(struct unit_rng *r)
{
	struct sul_mac_key seed = { { unit_next(r), unit_next(r) } };
	struct sul_nh_key key;

	sul_nh_key_make(&key, &seed);
	return key;
}

/* RFC 4418's words and sums, pairs as in the paper: word 2i with word 2i + 1. */
static uint64_t by_definition(const struct sul_nh_key *key, unsigned int pass,
			      const unsigned char *block, size_t len)
{
	unsigned char padded[SUL_NH_BLOCK_BYTES] = { 0 };
	uint64_t sum = 0;

	memcpy(padded, block, len);
	for (size_t i = 0; i < (len + 7) / 8; i++) {
		uint32_t m[2] = { 0 };

		for (int w = 0; w < 2; w++) {
			for (int k = 3; k >= 0; k--)
				m[w] = m[w] << 8 |
				       padded[8 * i + 4 * (size_t)w + (size_t)k];
			m[w] += key->word[2 * pass + 2 * i + (size_t)w];
		}
		sum += (uint64_t)m[0] * m[1];
	}
	return sum;
}

static uint64_t code_by_definition(const struct sul_nh_key *key,
				   const unsigned char *data, size_t len)
{
	struct sul_mac m;

	sul_mac_begin(&m, &mac_key);
	for (size_t at = 0; at < len; at += SUL_NH_BLOCK_BYTES) {
		size_t n = len - at < SUL_NH_BLOCK_BYTES ? len - at :
							   SUL_NH_BLOCK_BYTES;

		for (unsigned int pass = 0; pass < 2; pass++) {
			uint64_t sum = SUL_LE64(
				by_definition(key, pass, data + at, n));

			sul_mac_add(&m, &sum, sizeof(sum));
		}
	}
	return sul_mac_end(&m);
}

static uint64_t code_in_pieces(struct unit_rng *r, const struct sul_nh_key *key,
			       const unsigned char *data, size_t len)
{
	struct sul_mac m;
	struct sul_nh h;
	size_t at = 0;

	sul_mac_begin(&m, &mac_key);
	sul_nh_begin(&h, key);
	while (at < len) {
		size_t n = 8 * (size_t)unit_below(r, 100);

		n = n < len - at ? n : len - at;
		sul_nh_add(&h, data + at, n, &m);
		at += n;
	}
	sul_nh_end(&h, &m);
	return sul_mac_end(&m);
}

static void digests_are_those_of_the_definition(void)
{
	struct unit_rng r = unit_rng("digests");
	struct sul_nh_key key = some_key(&r);
	unsigned char data[3000];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)unit_next(&r);
	for (size_t len = 1; len < sizeof(data); len += 1 + len % 13)
		CU_ASSERT_EQUAL(code_in_pieces(&r, &key, data, len),
				code_by_definition(&key, data, len));
	/* All ones overflow every sum. */
	memset(data, 0xff, sizeof(data));
	CU_ASSERT_EQUAL(code_in_pieces(&r, &key, data, 2048),
			code_by_definition(&key, data, 2048));
}

static void keys_differ_and_use_their_whole_seed(void)
{
	struct sul_mac_key seed = { { 1, 2 } };
	struct sul_nh_key a, b;

	sul_nh_key_make(&a, &seed);
	for (int half = 0; half < 2; half++) {
		struct sul_mac_key other = seed;
		unsigned int same = 0;

		other.k[half] ^= 1;
		sul_nh_key_make(&b, &other);
		for (int i = 0; i < SUL_NH_KEY_WORDS; i++)
			same += a.word[i] == b.word[i];
		CU_ASSERT_EQUAL(same, 0);
	}
	for (int i = 1; i < SUL_NH_KEY_WORDS; i++)
		CU_ASSERT_NOT_EQUAL(a.word[i], a.word[i - 1]);
}

/* --- the code of a packet ------------------------------------------------------------ */

static void code__does_not_care_how_the_payload_is_cut(void)
{
	struct unit_rng r = unit_rng("pieces");
	uint64_t key[SUL_NET_KEY_WORDS] = { 1, 2, 3, 4 };
	struct sul_nh_key bulk = some_key(&r);
	unsigned char head[64] = { 0 }, data[2000];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)unit_next(&r);
	for (int i = 0; i < 2000; i++) {
		size_t len = unit_below(&r, sizeof(data));
		size_t first =
			8 * (size_t)unit_below(&r, (uint32_t)len / 8 + 1);

		CU_ASSERT_EQUAL(sul_net_code(key, &bulk, head, data, first,
					     data + first, len - first),
				sul_net_code(key, &bulk, head, data, len, NULL,
					     0));
	}
}

/* Every bit of header and payload, in a short packet and in long ones. */
static void code__depends_on_every_bit(void)
{
	static const size_t lens[] = { 24, 128, 129, 1024, 1031, 2100 };
	struct unit_rng r = unit_rng("bits");
	uint64_t key[SUL_NET_KEY_WORDS] = { 1, 2, 3, 4 };
	struct sul_nh_key bulk = some_key(&r);
	unsigned char packet[64 + 2100] = { 0 };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t len = lens[i];
		uint64_t code = sul_net_code(key, &bulk, packet, packet + 64,
					     len, NULL, 0);

		for (size_t bit = 0; bit < 8 * (64 + len); bit++) {
			packet[bit / 8] ^= (unsigned char)(1 << bit % 8);
			CU_ASSERT_NOT_EQUAL(sul_net_code(key, &bulk, packet,
							 packet + 64, len, NULL,
							 0),
					    code);
			packet[bit / 8] ^= (unsigned char)(1 << bit % 8);
		}
	}
}

static void code__depends_on_both_keys(void)
{
	struct unit_rng r = unit_rng("keys");
	uint64_t key[SUL_NET_KEY_WORDS] = { 1, 2, 3, 4 };
	uint64_t other[SUL_NET_KEY_WORDS] = { 1, 3, 3, 4 };
	struct sul_nh_key a = some_key(&r), b = some_key(&r);
	unsigned char head[64] = { 0 }, data[1000] = { 0 };

	CU_ASSERT_NOT_EQUAL(sul_net_code(key, &a, head, data, 1000, NULL, 0),
			    sul_net_code(key, &b, head, data, 1000, NULL, 0));
	CU_ASSERT_NOT_EQUAL(sul_net_code(key, &a, head, data, 1000, NULL, 0),
			    sul_net_code(other, &a, head, data, 1000, NULL, 0));
	CU_ASSERT_NOT_EQUAL(sul_net_code(key, &a, head, data, 100, NULL, 0),
			    sul_net_code(other, &a, head, data, 100, NULL, 0));
}

CU_TestInfo test_sul_nh[] = {
	{ "digests are those of the definition",
	  digests_are_those_of_the_definition },
	{ "keys differ and use their whole seed",
	  keys_differ_and_use_their_whole_seed },
	{ "code: does not care how the payload is cut",
	  code__does_not_care_how_the_payload_is_cut },
	{ "code: depends on every bit", code__depends_on_every_bit },
	{ "code: depends on both keys", code__depends_on_both_keys },
	CU_TEST_INFO_NULL,
};
