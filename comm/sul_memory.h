/* SPDX-License-Identifier: MIT */
/*
 * sul_memory.h - what executing an operation on mapped memory means.
 *
 * Shared by the carriers that do it with a CPU of their own, and pure.
 */
#ifndef SUL_MEMORY_H
#define SUL_MEMORY_H

#include "sul_pure.h"

#include "sul_abi.h"

/* A get's data. */
void sul_memory_copy_out(void *dst, const void *src, size_t len);
/* A put's data. */
void sul_memory_copy_in(void *dst, const void *src, size_t len);
/* A putv: each run lies in the source where it lies in the target ... */
void sul_memory_runs(void *dst, const void *src, const struct sul_run *runs,
		     size_t nr_runs);
/* ... or one behind the other: where the next one begins. */
const void *sul_memory_run(void *dst, const void *src, struct sul_run run);
/* Is the byte set that says whether there is a mirror?  What was written
 * before is there before it is read. */
bool sul_memory_flag(const void *flag);
/* Set bits of a word, as a mark does; then sul_memory_fence(), once. */
void sul_memory_mark(uint64_t *word, uint64_t bits);
void sul_memory_fence(void);
/* What was written before is there before the word has this value. */
void sul_memory_word(struct sul_word *word, uint32_t value);
uint64_t sul_memory_amo(uint64_t *word, enum sul_amo_op op, uint64_t operand,
			uint64_t comparand);

#endif /* SUL_MEMORY_H */
