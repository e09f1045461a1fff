/* SPDX-License-Identifier: MIT */
/*
 * dsm_diff.c - finding and merging changes, byte for byte.
 *
 * Role: compare two areas in blocks of 64 bytes.  One function per instruction
 * set turns a block into a mask (bit i: byte i changed) and into the words that
 * it read; all the rest (runs, stores, tails) is common and inlined into each.
 * Invariant: what was compared is what is kept.  See "why each byte is read
 * once, and the twin first" below.
 * Threads: any; the memory may be written to by others meanwhile.
 * Locks: none.
 *
 * Why each byte is read once, and the twin first
 * ----------------------------------------------
 * While a page is compared, other threads of the rank write to the frame, and
 * at a home other ranks write to the frame and then to the twin.  If a byte
 * were read twice, it could differ from the twin when it is compared and be
 * another when it is kept: the twin would have a value that no run has
 * reported (a lost write), or a run would report what did not change.  So all
 * reads are volatile (or atomic), and only what they returned is used.
 *
 * The twin's bytes are read before the frame's: a remote writer's change, which
 * comes frame first, is then seen in both, in neither, or in the frame alone,
 * and in that last case it is the new value that goes into the twin.  The other
 * way round we could see it in the twin alone and put the old value back, and
 * the page would look changed by us at the next release.  On x86 loads stay in
 * program order, elsewhere the twin is read with acquire loads.
 *
 * Stores are as narrow as the change: a whole word where all its 8 bytes
 * changed, single bytes elsewhere (AVX-512's masked store writes only the bytes
 * of its mask), since the bytes between them may have other writers.
 */
#include "dsm_diff.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/*
 * The reads race with the application's writes by design (above), and the
 * stores with those of remote writers to neighbouring bytes: what the thread
 * sanitizer would report here is what this file exists for.
 */
#define RACY __attribute__((no_sanitize("thread")))
#define INLINE static inline __attribute__((always_inline)) RACY

#define BLOCK 64 /* bytes; one bit each in a mask */
#define WORD 8
#define BLOCK_WORDS (BLOCK / WORD)

typedef uint64_t __attribute__((may_alias)) shared_word;

/*
 * The words of a block as they were read; aligned so that a vector can be put
 * there and taken out again whole.
 */
struct block {
	uint64_t word[BLOCK_WORDS];
} __attribute__((aligned(BLOCK)));

/* Read @twin, then @now, each byte once; return the mask of the bytes in which
 * they differ and, unless that is 0, what @now was. */
typedef uint64_t (*block_fn)(const void *now, const void *twin,
			     struct block *read);

/* Store the bytes of @read that are in @mask to @to, and no others. */
typedef void (*keep_fn)(void *to, const struct block *read, uint64_t mask);

INLINE uint64_t word_read(const void *p)
{
	return *(const volatile shared_word *)p;
}

INLINE uint64_t word_read_first(const void *p)
{
	return __atomic_load_n((const shared_word *)p, __ATOMIC_ACQUIRE);
}

/* Bit i: the byte at address i is not 0 in @x, a word as it lies in memory. */
INLINE unsigned int word_mask(uint64_t x)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	x = __builtin_bswap64(x);
#endif
	x |= x >> 4;
	x |= x >> 2;
	x |= x >> 1;
	x &= 0x0101010101010101u;
	/* bit 8i goes to bit 56 + i; no two partial products meet */
	return (unsigned int)((x * 0x0102040810204080u) >> 56);
}

INLINE void word_write(void *p, uint64_t word)
{
	*(volatile shared_word *)p = word;
}

INLINE void word_keep(void *to, uint64_t word, unsigned int mask)
{
	volatile unsigned char *out = to;
	unsigned char byte[WORD];

	if (mask == 0xff) {
		word_write(to, word);
		return;
	}
	memcpy(byte, &word, sizeof(byte));
	for (; mask; mask &= mask - 1) {
		int i = __builtin_ctz(mask);

		out[i] = byte[i];
	}
}

INLINE void keep_words(void *to, const struct block *read, uint64_t mask)
{
	char *out = to;

	if (mask == UINT64_MAX) {
		for (size_t i = 0; i < BLOCK_WORDS; i++)
			word_write(out + i * WORD, read->word[i]);
		return;
	}
	for (size_t i = 0; mask; i++, mask >>= WORD)
		if (mask & 0xff)
			word_keep(out + i * WORD, read->word[i],
				  (unsigned int)(mask & 0xff));
}

/* The same where nobody else stores: whole words, with no look at each byte. */
INLINE void keep_changed_words(void *to, const struct block *read,
			       uint64_t mask)
{
	char *out = to;

	for (size_t i = 0; mask; i++, mask >>= WORD)
		if (mask & 0xff)
			word_write(out + i * WORD, read->word[i]);
}

INLINE uint32_t lowest_bit(uint64_t mask)
{
	return mask ? (uint32_t)__builtin_ctzll(mask) : BLOCK;
}

/*
 * Append the runs of @mask (not 0), whose bit 0 is the byte at @off.  Not
 * inlined: the loops that look for changes then keep all they need in registers.
 */
static __attribute__((noinline)) size_t
runs_append(struct sul_run *runs, size_t nr, uint32_t off, uint64_t mask)
{
	uint64_t first = mask & ~(mask << 1);
	uint64_t after = ~mask & mask << 1; /* none: up to the block's end */
	uint32_t start = lowest_bit(first);

	if (nr && (uint64_t)runs[nr - 1].off + runs[nr - 1].len ==
			  (uint64_t)off + start) {
		runs[nr - 1].len += lowest_bit(after) - start;
		first &= first - 1;
		after &= after - 1;
	}
	for (; first; first &= first - 1, after &= after - 1) {
		start = lowest_bit(first);
		runs[nr].off = off + start;
		runs[nr].len = lowest_bit(after) - start;
		nr++;
	}
	return nr;
}

/* The last words of an area, fewer than a block. */
INLINE unsigned int tail_mask(const void *now, const void *twin, uint64_t *read)
{
	uint64_t old = word_read_first(twin);

	*read = word_read(now);
	return *read == old ? 0 : word_mask(*read ^ old);
}

INLINE size_t take(block_fn block, keep_fn keep, const char *frame, char *twin,
		   size_t len, uint32_t base, struct sul_run *runs, size_t nr)
{
	struct block read;
	size_t at = 0;

	for (; len - at >= BLOCK; at += BLOCK) {
		uint64_t mask = block(frame + at, twin + at, &read);

		if (!mask)
			continue;
		keep(twin + at, &read, mask);
		nr = runs_append(runs, nr, base + (uint32_t)at, mask);
	}
	for (; at < len; at += WORD) {
		unsigned int mask =
			tail_mask(frame + at, twin + at, &read.word[0]);

		if (!mask)
			continue;
		word_keep(twin + at, read.word[0], mask);
		nr = runs_append(runs, nr, base + (uint32_t)at, mask);
	}
	return nr;
}

INLINE int any(block_fn block, const char *frame, const char *twin, size_t len)
{
	struct block read;
	size_t at = 0;

	for (; len - at >= BLOCK; at += BLOCK)
		if (block(frame + at, twin + at, &read))
			return 1;
	for (; at < len; at += WORD)
		if (tail_mask(frame + at, twin + at, &read.word[0]))
			return 1;
	return 0;
}

/*
 * Words are kept one by one even where a vector could be stored whole: only a
 * word-wide store promises that a racing reader never sees half a value.  With
 * @twin == @frame there is one store, not two: a second would undo what another
 * thread wrote in between.  That one, and what goes into a twin, may be a whole
 * word where a part of it changed: a page that is not watched is read-only here,
 * and to the twin of a copy nobody else stores.  Of a number that changed a
 * little some bytes are as they were, others each time, and to store those one
 * by one takes ten times as long.
 */
INLINE size_t merge(block_fn block, char *frame, char *twin, const char *news,
		    size_t len)
{
	struct block read;
	size_t at = 0, changed = 0;

	for (; len - at >= BLOCK; at += BLOCK) {
		uint64_t mask = block(news + at, twin + at, &read);

		if (!mask)
			continue;
		if (twin != frame)
			keep_words(frame + at, &read, mask);
		keep_changed_words(twin + at, &read, mask);
		changed += (size_t)__builtin_popcountll(mask);
	}
	for (; at < len; at += WORD) {
		unsigned int mask =
			tail_mask(news + at, twin + at, &read.word[0]);

		if (!mask)
			continue;
		if (twin != frame)
			word_keep(frame + at, read.word[0], mask);
		word_write(twin + at, read.word[0]);
		changed += (size_t)__builtin_popcount(mask);
	}
	return changed;
}

/* Word @i of both, kept in @read; the bits in which they differ. */
INLINE uint64_t word_diff(const void *now, const void *twin, struct block *read,
			  size_t i)
{
	uint64_t old = word_read_first((const char *)twin + i * WORD);

	read->word[i] = word_read((const char *)now + i * WORD);
	return read->word[i] ^ old;
}

INLINE uint64_t block_portable(const void *now, const void *twin,
			       struct block *read)
{
	uint64_t diff[BLOCK_WORDS] = {
		word_diff(now, twin, read, 0), word_diff(now, twin, read, 1),
		word_diff(now, twin, read, 2), word_diff(now, twin, read, 3),
		word_diff(now, twin, read, 4), word_diff(now, twin, read, 5),
		word_diff(now, twin, read, 6), word_diff(now, twin, read, 7),
	};
	uint64_t mask = 0;

	if (!(diff[0] | diff[1] | diff[2] | diff[3] | diff[4] | diff[5] |
	      diff[6] | diff[7]))
		return 0;
	for (size_t i = 0; i < BLOCK_WORDS; i++)
		mask |= (uint64_t)word_mask(diff[i]) << (i * WORD);
	return mask;
}

/*
 * The three functions of an implementation.  The function pointers are
 * constants where take() and the others are inlined, so nothing is called.
 */
#define IMPLEMENTATION(isa, target, keep)                                     \
	target RACY static size_t take_##isa(const void *frame, void *twin,   \
					     size_t len, uint32_t base,       \
					     struct sul_run *runs, size_t nr) \
	{                                                                     \
		return take(block_##isa, keep, frame, twin, len, base, runs,  \
			    nr);                                              \
	}                                                                     \
	target RACY static int any_##isa(const void *frame, const void *twin, \
					 size_t len)                          \
	{                                                                     \
		return any(block_##isa, frame, twin, len);                    \
	}                                                                     \
	target RACY static size_t merge_##isa(void *frame, void *twin,        \
					      const void *news, size_t len)   \
	{                                                                     \
		return merge(block_##isa, frame, twin, news, len);            \
	}

IMPLEMENTATION(portable, , keep_words)

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2,bmi,popcnt")))
#define AVX512 __attribute__((target("avx512bw,bmi,popcnt")))

/* Vectors at addresses that are multiples of 8 only. */
typedef long long __attribute__((vector_size(16), aligned(8), may_alias)) vec16;
typedef long long __attribute__((vector_size(32), aligned(8), may_alias)) vec32;
typedef long long __attribute__((vector_size(64), aligned(8), may_alias)) vec64;

/* Vector @i of both, kept in @read; the mask of the bytes that are equal. */
INLINE uint64_t same_sse2(const void *now, const void *twin, struct block *read,
			  int i)
{
	__m128i b = (__m128i)((const volatile vec16 *)twin)[i];
	__m128i a = (__m128i)((const volatile vec16 *)now)[i];

	_mm_store_si128((__m128i *)read + i, a);
	return (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(a, b))
	       << (16 * i);
}

INLINE uint64_t block_sse2(const void *now, const void *twin,
			   struct block *read)
{
	return ~(same_sse2(now, twin, read, 0) | same_sse2(now, twin, read, 1) |
		 same_sse2(now, twin, read, 2) | same_sse2(now, twin, read, 3));
}

AVX2 INLINE uint64_t block_avx2(const void *now, const void *twin,
				struct block *read)
{
	__m256i b0 = (__m256i)((const volatile vec32 *)twin)[0];
	__m256i b1 = (__m256i)((const volatile vec32 *)twin)[1];
	__m256i a0 = (__m256i)((const volatile vec32 *)now)[0];
	__m256i a1 = (__m256i)((const volatile vec32 *)now)[1];
	__m256i same0 = _mm256_cmpeq_epi8(a0, b0);
	__m256i same1 = _mm256_cmpeq_epi8(a1, b1);

	if (_mm256_movemask_epi8(_mm256_and_si256(same0, same1)) == -1)
		return 0;
	_mm256_store_si256((__m256i *)read->word, a0);
	_mm256_store_si256((__m256i *)(read->word + 4), a1);
	return ~((uint64_t)(uint32_t)_mm256_movemask_epi8(same0) |
		 (uint64_t)(uint32_t)_mm256_movemask_epi8(same1) << 32);
}

AVX512 INLINE uint64_t block_avx512(const void *now, const void *twin,
				    struct block *read)
{
	__m512i b = (__m512i) * (const volatile vec64 *)twin;
	__m512i a = (__m512i) * (const volatile vec64 *)now;
	uint64_t mask = _mm512_cmpneq_epi8_mask(a, b);

	if (mask)
		_mm512_store_si512(read->word, a);
	return mask;
}

AVX512 INLINE void keep_avx512(void *to, const struct block *read,
			       uint64_t mask)
{
	_mm512_mask_storeu_epi8(to, mask, _mm512_load_si512(read->word));
}

IMPLEMENTATION(sse2, , keep_words)
IMPLEMENTATION(avx2, AVX2, keep_words)
IMPLEMENTATION(avx512, AVX512, keep_avx512)

#endif /* __x86_64__ */

/* The best first; the last one runs everywhere. */
enum diff_isa {
	ISA_AVX512,
	ISA_AVX2,
	ISA_SSE2,
	ISA_PORTABLE
};

#define ROW(isa)                                         \
	{                                                \
#isa, take_##isa, any_##isa, merge_##isa \
	}
static const struct dsm_diff_impl impls[] = {
#if defined(__x86_64__)
	[ISA_AVX512] = ROW(avx512),
	[ISA_AVX2] = ROW(avx2),
	[ISA_SSE2] = ROW(sse2),
#endif
	[ISA_PORTABLE] = ROW(portable),
};

/* Asked at every call instead of being remembered in a variable: it is a load
 * and a test of what the compiler's start-up code found out about the CPU. */
INLINE bool cpu_runs(enum diff_isa isa)
{
#if defined(__x86_64__)
	if (isa == ISA_SSE2)
		return true;
	if (isa <= ISA_AVX2 && !(__builtin_cpu_supports("bmi") &&
				 __builtin_cpu_supports("popcnt")))
		return false;
	if (isa == ISA_AVX512)
		return __builtin_cpu_supports("avx512bw");
	if (isa == ISA_AVX2)
		return __builtin_cpu_supports("avx2");
#endif
	return isa == ISA_PORTABLE;
}

INLINE const struct dsm_diff_impl *best(void)
{
	if (cpu_runs(ISA_AVX512))
		return &impls[ISA_AVX512];
	if (cpu_runs(ISA_AVX2))
		return &impls[ISA_AVX2];
	if (cpu_runs(ISA_SSE2))
		return &impls[ISA_SSE2];
	return &impls[ISA_PORTABLE];
}

const struct dsm_diff_impl *dsm_diff_impl(unsigned int i)
{
	for (int isa = ISA_AVX512; isa <= ISA_PORTABLE; isa++)
		if (cpu_runs((enum diff_isa)isa) && i-- == 0)
			return &impls[isa];
	return NULL;
}

const char *dsm_diff_name(void)
{
	return best()->name;
}

size_t dsm_diff_take(const void *frame, void *twin, size_t len, uint32_t base,
		     struct sul_run *runs, size_t nr)
{
	return best()->take(frame, twin, len, base, runs, nr);
}

int dsm_diff_any(const void *frame, const void *twin, size_t len)
{
	return best()->any(frame, twin, len);
}

size_t dsm_diff_merge(void *frame, void *twin, const void *news, size_t len)
{
	return best()->merge(frame, twin, news, len);
}
