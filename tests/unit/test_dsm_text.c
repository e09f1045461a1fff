/* SPDX-License-Identifier: MIT */
/* test_dsm_text.c - messages in a fixed buffer. */
#include <stdlib.h>

#include "dsm_text.h"
#include "tests.h"

static void a_text_that_fits_is_whole(void)
{
	char buf[6];
	struct dsm_text t;

	dsm_text_init(&t, buf, sizeof(buf));
	ASSERT_TEXT(buf, "");
	dsm_text_puts(&t, "ab");
	dsm_text_puts(&t, "cde");
	ASSERT_TEXT(buf, "abcde");
}

static void a_text_that_does_not_fit_ends_in_dots(void)
{
	/* On the heap, so that a sanitizer sees a byte too many. */
	for (size_t size = 4; size < 12; size++) {
		char *buf = malloc(size);
		struct dsm_text t;

		REQUIRE(buf);
		dsm_text_init(&t, buf, size);
		dsm_text_puts(&t, "0123456789ab");
		dsm_text_put_u64(&t, UINT64_MAX);
		dsm_text_quote(&t, "\x01\x02", 2);
		CU_ASSERT_EQUAL(strlen(buf), size - 1);
		CU_ASSERT_EQUAL(t.len, size - 1);
		ASSERT_TEXT(buf + size - 4, "...");
		CU_ASSERT(!strncmp(buf, "0123456789ab", size - 4));
		free(buf);
	}
}

static void numbers_are_decimal(void)
{
	char buf[64];
	struct dsm_text t;

	dsm_text_init(&t, buf, sizeof(buf));
	dsm_text_put_u64(&t, 0);
	dsm_text_puts(&t, " ");
	dsm_text_put_u64(&t, 1024);
	dsm_text_puts(&t, " ");
	dsm_text_put_u64(&t, UINT64_MAX);
	ASSERT_TEXT(buf, "0 1024 18446744073709551615");
}

static void sizes_take_the_largest_unit_that_is_exact(void)
{
	static const struct {
		uint64_t v;
		const char *text;
	} cases[] = {
		{ 0, "0" },	      { 1, "1" },
		{ 1023, "1023" },     { 1024, "1k" },
		{ 1025, "1025" },     { 1536, "1536" },
		{ 64 << 10, "64k" },  { (1 << 20) + 1024, "1025k" },
		{ 2 << 20, "2m" },    { 160ull << 30, "160g" },
		{ 3ull << 40, "3t" }, { 1ull << 60, "1048576t" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char buf[32];
		struct dsm_text t;

		dsm_text_init(&t, buf, sizeof(buf));
		dsm_text_put_size(&t, cases[i].v);
		ASSERT_TEXT(buf, cases[i].text);
	}
}

static void bytes_from_outside_are_escaped(void)
{
	static const char bytes[] = "a b\\\n\t\r\0\x1b[31m\x7f\xc3\xa4~";
	char buf[128];
	struct dsm_text t;

	dsm_text_init(&t, buf, sizeof(buf));
	dsm_text_quote(&t, bytes, sizeof(bytes) - 1);
	ASSERT_TEXT(buf, "a b\\\\\\n\\t\\x0d\\x00\\x1b[31m\\x7f\\xc3\\xa4~");
}

static void long_bytes_from_outside_are_cut(void)
{
	char bytes[DSM_TEXT_QUOTE_MAX + 1], buf[256];
	struct dsm_text t;

	memset(bytes, 'x', sizeof(bytes));
	dsm_text_init(&t, buf, sizeof(buf));
	dsm_text_quote(&t, bytes, DSM_TEXT_QUOTE_MAX);
	CU_ASSERT_EQUAL(t.len, DSM_TEXT_QUOTE_MAX);
	dsm_text_init(&t, buf, sizeof(buf));
	dsm_text_quote(&t, bytes, DSM_TEXT_QUOTE_MAX + 1);
	CU_ASSERT_EQUAL(t.len, DSM_TEXT_QUOTE_MAX + 3);
	ASSERT_TEXT(buf + t.len - 4, "x...");
	/* An escape is never cut in its middle. */
	memset(bytes, 1, sizeof(bytes));
	dsm_text_init(&t, buf, sizeof(buf));
	dsm_text_puts(&t, "");
	dsm_text_quote(&t, bytes, sizeof(bytes));
	ASSERT_TEXT(buf + t.len - 7, "\\x01...");
	CU_ASSERT_EQUAL(t.len, DSM_TEXT_QUOTE_MAX + 3);
}

static unsigned int distance(const char *a, const char *b)
{
	unsigned int d = dsm_text_distance(a, strlen(a), b, strlen(b));

	CU_ASSERT_EQUAL(d, dsm_text_distance(b, strlen(b), a, strlen(a)));
	return d;
}

static void the_distance_of_words_counts_edits(void)
{
	CU_ASSERT_EQUAL(distance("cache", "cache"), 0);
	CU_ASSERT_EQUAL(distance("cache", "CACHE"), 0);
	CU_ASSERT_EQUAL(distance("", ""), 0);
	CU_ASSERT_EQUAL(distance("", "tree"), 4);
	CU_ASSERT_EQUAL(distance("cahce", "cache"), 1); /* swap */
	CU_ASSERT_EQUAL(distance("cach", "cache"), 1);
	CU_ASSERT_EQUAL(distance("caache", "cache"), 1);
	CU_ASSERT_EQUAL(distance("kache", "cache"), 1);
	CU_ASSERT_EQUAL(distance("kitten", "sitting"), 3);
	CU_ASSERT_EQUAL(distance("ab", "cd"), 2);
}

static void very_long_words_have_a_distance_too(void)
{
	char a[5000];

	memset(a, 'a', sizeof(a));
	CU_ASSERT_EQUAL(dsm_text_distance(a, sizeof(a), "b", 1),
			DSM_TEXT_WORD_MAX);
	CU_ASSERT_EQUAL(dsm_text_distance(a, sizeof(a), a, sizeof(a)), 0);
}

static void words_are_the_same_whatever_their_case(void)
{
	CU_ASSERT(dsm_text_same("Yes", 3, "yES", 3));
	CU_ASSERT(!dsm_text_same("yes", 3, "ye", 2));
	CU_ASSERT(!dsm_text_same("yes", 3, "yez", 3));
	CU_ASSERT(!dsm_text_same("[", 1, "{", 1));
}

CU_TestInfo test_dsm_text[] = {
	{ "a text that fits is whole", a_text_that_fits_is_whole },
	{ "a text that does not fit ends in dots",
	  a_text_that_does_not_fit_ends_in_dots },
	{ "numbers are decimal", numbers_are_decimal },
	{ "sizes take the largest unit that is exact",
	  sizes_take_the_largest_unit_that_is_exact },
	{ "bytes from outside are escaped", bytes_from_outside_are_escaped },
	{ "long bytes from outside are cut", long_bytes_from_outside_are_cut },
	{ "the distance of words counts edits",
	  the_distance_of_words_counts_edits },
	{ "very long words have a distance too",
	  very_long_words_have_a_distance_too },
	{ "words are the same whatever their case",
	  words_are_the_same_whatever_their_case },
	CU_TEST_INFO_NULL,
};
