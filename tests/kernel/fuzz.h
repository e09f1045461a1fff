/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h - what the parts that do things at random share.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oracle/rng.h"

static inline void fuzz_bytes(struct rng *r, void *at, size_t len)
{
	unsigned char *to = at;

	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)rng_next(r);
}

/* [COUNT [SEED]] of a command line: the seed from the clock if it is not given. */
struct fuzz_plan {
	uint64_t count, seed;
};
struct fuzz_plan fuzz_plan(const char *part, int argc, char **argv,
			   uint64_t count);

/* How many pages are pinned by anybody (/proc/vmstat). */
long fuzz_pages_pinned(void);
/* No port is left, and no more pages are pinned than before: others may have let go
 * of theirs.  What it takes a kernel to let go of what was under way is waited for,
 * and what is left is said. */
bool fuzz_all_gone(long pinned_before);

#endif /* FUZZ_H */
