/* SPDX-License-Identifier: MIT */
/*
 * sul_memory.c - one-sided operations on memory that is mapped here.
 *
 * Role:    what an operation means once the target's memory can be addressed;
 *          used by every carrier that executes them with a CPU.  Pure.
 * Threads: any; the data copies race with the target's own threads by design:
 *          the protocol above says who may look at which bytes.
 * Locks:   none.
 */
#include "sul_memory.h"

/* An aligned word is read in one load: a lock's or a log's word is never seen
 * half written. */
void sul_memory_copy_out(void *dst, const void *src, size_t len)
{
	char *to = dst;

	if (len > 64 || (len | (uintptr_t)src) & 7) {
		memcpy(dst, src, len);
		return;
	}
	for (const uint64_t *word = src; len; len -= sizeof(*word)) {
		uint64_t v = __atomic_load_n(word++, __ATOMIC_ACQUIRE);

		memcpy(to, &v, sizeof(v));
		to += sizeof(v);
	}
}

/* A whole aligned word is stored at once: racy but benign readers of the
 * target never see half of a value (DESIGN, rule 3). */
static inline void store_run(char *dst, const char *src, size_t len)
{
	if (len < 8) { /* without a call: many runs are a byte or an int */
		for (size_t i = 0; i < len; i++)
			dst[i] = src[i];
		return;
	}
	if (len == 8 && !((uintptr_t)dst & 7)) {
		uint64_t v;

		memcpy(&v, src, sizeof(v));
		__atomic_store_n((uint64_t *)(void *)dst, v, __ATOMIC_RELAXED);
		return;
	}
	memcpy(dst, src, len);
}

void sul_memory_copy_in(void *dst, const void *src, size_t len)
{
	store_run(dst, src, len);
}

const void *sul_memory_run(void *dst, const void *src, struct sul_run run)
{
	store_run((char *)dst + run.off, src, run.len);
	return (const char *)src + run.len;
}

void sul_memory_runs(void *dst, const void *src, const struct sul_run *runs,
		     size_t nr_runs)
{
	for (size_t i = 0; i < nr_runs; i++)
		store_run((char *)dst + runs[i].off,
			  (const char *)src + runs[i].off, runs[i].len);
}

bool sul_memory_flag(const void *flag)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n((const unsigned char *)flag, __ATOMIC_ACQUIRE);
}

/* Bits that are set already: the line is left to those who read it. */
void sul_memory_mark(uint64_t *word, uint64_t bits)
{
	if ((__atomic_load_n(word, __ATOMIC_ACQUIRE) & bits) != bits)
		__atomic_fetch_or(word, bits, __ATOMIC_SEQ_CST);
}

void sul_memory_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void sul_memory_word(struct sul_word *word, uint32_t value)
{
	__atomic_store_n(&word->value, value, __ATOMIC_RELEASE);
}

uint64_t sul_memory_amo(uint64_t *word, enum sul_amo_op op, uint64_t operand,
			uint64_t comparand)
{
	switch (op) {
	case SUL_AMO_SWAP:
		return __atomic_exchange_n(word, operand, __ATOMIC_SEQ_CST);
	case SUL_AMO_CAS:
		__atomic_compare_exchange_n(word, &comparand, operand, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		return comparand;
	case SUL_AMO_ADD:
		return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
	case SUL_AMO_OR:
		return __atomic_fetch_or(word, operand, __ATOMIC_SEQ_CST);
	case SUL_AMO_ANDNOT:
		return __atomic_fetch_and(word, ~operand, __ATOMIC_SEQ_CST);
	case SUL_AMO_NR:
		break;
	}
	return 0;
}
