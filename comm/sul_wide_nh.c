/* SPDX-License-Identifier: MIT */
/*
 * sul_wide_nh.c - NH with the wide registers that a kernel does not use.
 *
 * Role:      pairs of words, four at a time, where the processor can; the rest is
 *            left to sul_nh.c.
 * Threads:   any; pure.
 */
#include "sul_nh.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum {
	WIDE = 4 /* pairs at a time */
};

static void add_sums(uint64_t *sum, __m128i low, __m128i high)
{
	uint64_t part[2];

	_mm_storeu_si128((__m128i *)part, _mm_add_epi64(low, high));
	*sum += part[0] + part[1];
}

__attribute__((target("avx2"))) static void add_wide(uint64_t sum[2],
						     const uint32_t *key,
						     const unsigned char *p,
						     size_t nr)
{
	__m256i a = _mm256_setzero_si256(), b = a;

	for (size_t i = 0; i < nr; i += WIDE) {
		const uint32_t *k = key + 2 * i;
		__m256i m = _mm256_loadu_si256((const void *)(p + 8 * i));
		__m256i x = _mm256_add_epi32(
			m, _mm256_loadu_si256((const void *)k));
		__m256i y = _mm256_add_epi32(
			m, _mm256_loadu_si256((const void *)(k + 2)));

		a = _mm256_add_epi64(
			a, _mm256_mul_epu32(x, _mm256_srli_epi64(x, 32)));
		b = _mm256_add_epi64(
			b, _mm256_mul_epu32(y, _mm256_srli_epi64(y, 32)));
	}
	add_sums(&sum[0], _mm256_castsi256_si128(a),
		 _mm256_extracti128_si256(a, 1));
	add_sums(&sum[1], _mm256_castsi256_si128(b),
		 _mm256_extracti128_si256(b, 1));
}

size_t sul_nh_wide(uint64_t sum[2], const uint32_t *key, const unsigned char *p,
		   size_t nr)
{
	nr -= nr % WIDE;
	if (!nr || !__builtin_cpu_supports("avx2"))
		return 0;
	add_wide(sum, key, p, nr);
	return nr;
}
#else
size_t sul_nh_wide(uint64_t sum[2], const uint32_t *key, const unsigned char *p,
		   size_t nr)
{
	(void)sum, (void)key, (void)p, (void)nr;
	return 0;
}
#endif
