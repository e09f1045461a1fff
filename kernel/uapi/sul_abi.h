/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * sul_abi.h - the vocabulary of one-sided operations.
 *
 * A *window* is a range of memory that one rank owns and that the others may
 * work on with one-sided operations.  The operations are the same whoever
 * executes them at the target (the requester's own CPU, a kernel, an agent
 * thread, a simulator), so their operands are described once, here, in
 * fixed-size types that user space and a kernel can share.
 *
 * Rules for every structure below: only fixed-size __u/__s types, natural
 * alignment, no unnamed padding, and a size pinned at the end of the file.
 */
#ifndef SUL_ABI_H
#define SUL_ABI_H

#include <linux/types.h>

/**
 * struct sul_run - one run of bytes of a scattered put.
 * @off: offset in bytes from the operation's base offset.
 * @len: how many bytes; never 0.
 */
struct sul_run {
	__u32 off;
	__u32 len;
};

/**
 * struct sul_mark - bits that a get sets at its target before it reads.
 * @window: window of the target that holds the 64-bit word.
 * @bits:   which bits of the word are set (the word is OR-ed, atomically).
 * @off:    offset of the word in the window, a multiple of 8.
 *
 * The marks of one get are set in their order, each followed by a full fence,
 * and the data is read after the last of them.  A mark whose bits are set
 * already need not be stored.
 */
struct sul_mark {
	__u64 off;
	__u64 bits;
	__u32 window;
	__u32 reserved;
};

/**
 * struct sul_mirror - a second place for the bytes of a scattered put.
 * @flag_off:    offset of a byte in @flag_window.
 * @window:      window that gets the same runs at the same offsets, if ...
 * @flag_window: ... that byte, read after the first place was written and a
 *               full fence, is not 0.
 */
struct sul_mirror {
	__u64 flag_off;
	__u32 window;
	__u32 flag_window;
};

/* Atomic operations on aligned 64-bit words of a window. */
enum sul_amo_op {
	SUL_AMO_SWAP,
	SUL_AMO_CAS, /* store the operand if the word equals the comparand */
	SUL_AMO_ADD,
	SUL_AMO_OR,
	SUL_AMO_ANDNOT, /* clear the bits of the operand */
	SUL_AMO_NR
};

/**
 * struct sul_word - a word somebody waits for.
 * @value:    what is waited for; written by notify.
 * @sleepers: how many sleep on @value (they count themselves).
 */
struct sul_word {
	__u32 value;
	__u32 sleepers;
};

#ifdef __KERNEL__
#define SUL_SIZE_ASSERT(type, bytes) static_assert(sizeof(type) == (bytes))
#elif defined(__cplusplus)
#define SUL_SIZE_ASSERT(type, bytes) static_assert(sizeof(type) == (bytes), "")
#else
#define SUL_SIZE_ASSERT(type, bytes) \
	_Static_assert(sizeof(type) == (bytes), "size of " #type)
#endif
SUL_SIZE_ASSERT(struct sul_run, 8);
SUL_SIZE_ASSERT(struct sul_mark, 24);
SUL_SIZE_ASSERT(struct sul_mirror, 16);
SUL_SIZE_ASSERT(struct sul_word, 8);

#endif /* SUL_ABI_H */
