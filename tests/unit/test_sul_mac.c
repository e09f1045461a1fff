/* SPDX-License-Identifier: MIT */
/*
 * test_sul_mac.c - SipHash-2-4 against its authors' vectors; keys from keys.
 */
#include "sul_mac.h"
#include "tests.h"
#include "unit_seed.h"

static struct sul_mac_key counting_key(void)
{
	unsigned char bytes[SUL_MAC_KEY_BYTES];

	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	return sul_mac_key(bytes);
}

static uint64_t code_of(const void *data, size_t len)
{
	struct sul_mac_key key = counting_key();
	struct sul_mac m;

	sul_mac_begin(&m, &key);
	sul_mac_add(&m, data, len);
	return sul_mac_end(&m);
}

/* Of the bytes 0, 1, 2, ... under the key 0, 1, ... 15; [15] is the one in the
 * paper's appendix, the others are from the authors' reference vectors. */
static void codes_are_those_of_the_paper(void)
{
	static const struct {
		size_t len;
		uint64_t code;
	} vectors[] = {
		{ 0, 0x726fdb47dd0e0e31 }, { 1, 0x74f839c593dc67fd },
		{ 2, 0x0d6c8009d9a94f5a }, { 3, 0x85676696d7fb7e2d },
		{ 4, 0xcf2794e0277187b7 }, { 5, 0x18765564cd99a68d },
		{ 6, 0xcbc9466e58fee3ce }, { 7, 0xab0200f58b01d137 },
		{ 8, 0x93f5f5799a932462 }, { 15, 0xa129ca6149be45e5 },
	};
	unsigned char data[16];

	for (unsigned int i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)i;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		CU_ASSERT_EQUAL(code_of(data, vectors[i].len), vectors[i].code);
}

static void add__does_not_care_how_the_input_is_cut(void)
{
	struct unit_rng r = unit_rng("cuts");
	struct sul_mac_key key = counting_key();
	unsigned char data[300];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)unit_next(&r);
	for (int round = 0; round < 2000; round++) {
		size_t len = unit_below(&r, sizeof(data) + 1), at = 0;
		struct sul_mac m;

		sul_mac_begin(&m, &key);
		while (at < len) {
			size_t n = unit_below(&r, (uint32_t)(len - at) + 1);

			sul_mac_add(&m, data + at, n);
			at += n;
		}
		CU_ASSERT_EQUAL(sul_mac_end(&m), code_of(data, len));
	}
}

static void two__is_the_code_of_both_behind_each_other(void)
{
	struct unit_rng r = unit_rng("two");
	struct sul_mac_key key = counting_key();
	unsigned char data[200];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)unit_next(&r);
	for (size_t nr = 0; nr <= 9; nr++)
		for (size_t len = 0; len <= sizeof(data) - 8 * nr; len++)
			CU_ASSERT_EQUAL(sul_mac_two(key.k, data, nr,
						    data + 8 * nr, len),
					code_of(data, 8 * nr + len));
}

static void derive__gives_each_use_another_key(void)
{
	struct sul_mac_key key = counting_key();
	uint64_t a[2] = { 1, 2 }, b[2] = { 2, 1 };

	CU_ASSERT_EQUAL(sul_mac_derive(&key, a, 2, 0),
			sul_mac_derive(&key, a, 2, 0));
	CU_ASSERT_NOT_EQUAL(sul_mac_derive(&key, a, 2, 0),
			    sul_mac_derive(&key, a, 2, 1));
	CU_ASSERT_NOT_EQUAL(sul_mac_derive(&key, a, 2, 0),
			    sul_mac_derive(&key, b, 2, 0));
	CU_ASSERT_NOT_EQUAL(sul_mac_derive(&key, a, 1, 2),
			    sul_mac_derive(&key, a, 2, 0));
	key.k[1] ^= 1;
	CU_ASSERT_NOT_EQUAL(sul_mac_derive(&key, a, 2, 0), code_of(a, 16));
}

CU_TestInfo test_sul_mac[] = {
	{ "codes are those of the paper", codes_are_those_of_the_paper },
	{ "add: does not care how the input is cut",
	  add__does_not_care_how_the_input_is_cut },
	{ "two: is the code of both behind each other",
	  two__is_the_code_of_both_behind_each_other },
	{ "derive: gives each use another key",
	  derive__gives_each_use_another_key },
	CU_TEST_INFO_NULL,
};
