/* SPDX-License-Identifier: MIT */
/*
 * sul_pure.h - all that the network core may use of its surroundings.
 *
 * The files that include this and no other system header (sul_wire, sul_mac,
 * sul_nh, sul_path, sul_engine, sul_memory, sul_net*) are compiled into libsul
 * and into the kernel module alike: types, error numbers, memcpy(), memset(),
 * memcmp(); nothing else, no floating point, no memory but what they are given.
 * tests/tools/check-pure sees to it.
 */
#ifndef SUL_PURE_H
#define SUL_PURE_H

#ifdef __KERNEL__
#include <linux/types.h>

#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/string.h>
#ifndef UINT32_MAX
#define UINT32_MAX U32_MAX
#endif
#ifndef UINT64_MAX
#define UINT64_MAX U64_MAX
#endif
#else
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#endif

/* Numbers on the wire are little-endian. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SUL_LE16(x) ((uint16_t)(x))
#define SUL_LE32(x) ((uint32_t)(x))
#define SUL_LE64(x) ((uint64_t)(x))
#else
#define SUL_LE16(x) __builtin_bswap16(x)
#define SUL_LE32(x) __builtin_bswap32(x)
#define SUL_LE64(x) __builtin_bswap64(x)
#endif

#endif /* SUL_PURE_H */
