/* SPDX-License-Identifier: MIT */
/*
 * dsm_diff.h - finding and merging changes, byte for byte.
 *
 * Byte-exact, because neighbouring bytes may have different writers (JIAJIA's
 * 4-byte units lose such writes).
 *
 * Other threads may be writing to a frame while it is compared (DESIGN's rules
 * 2 and 3, "torn diff" and "lost write under refresh").  Therefore every byte
 * of @frame and of @news is read exactly once, by a load of at most a vector's
 * width, and what was loaded is both compared and kept; and where others may
 * store, nothing is stored that did not change.  @twin is read before @frame or
 * @news: a remote writer stores the other way round, so its old value is never
 * put back into a twin.
 *
 * All lengths are multiples of 8; all pointers are 8-byte aligned.
 * Pure.  Threads: see each function.
 */
#ifndef DSM_DIFF_H
#define DSM_DIFF_H

#include <stddef.h>
#include <stdint.h>

#include "sul.h" /* struct sul_run */

/* Runs that a diff of @len bytes can have at most. */
#define DSM_DIFF_RUNS_MAX(len) ((len) / 2)

/*
 * Compare @frame with @twin; where they differ, store what was read from
 * @frame into @twin and append the run to @runs (offsets from @frame + @base
 * ... i.e. run.off = @base + position).  A run that continues the last one of
 * @runs extends it.  @nr: runs already in @runs.  Returns the new number.
 * Bytes of @twin that did not change are not stored to (a word-wide store that
 * rewrites equal neighbours is not allowed: a remote writer may be storing to
 * them).
 */
size_t dsm_diff_take(const void *frame, void *twin, size_t len, uint32_t base,
		     struct sul_run *runs, size_t nr);

/* Whether there is any difference; nothing is stored. */
int dsm_diff_any(const void *frame, const void *twin, size_t len);

/*
 * A refresh: where @news differs from @twin, store @news into @frame and
 * @twin.  Pass @twin == @frame for a page that is not watched.  Where a whole
 * aligned 8-byte word changed it is one 8-byte store; otherwise only the
 * changed bytes are stored to @frame.  To @twin, to which nobody else stores,
 * it is one 8-byte store in any case.  Returns in how many bytes @news differed
 * from @twin.
 */
size_t dsm_diff_merge(void *frame, void *twin, const void *news, size_t len);

/* Which implementation runs: "avx512", "avx2", "sse2" or "portable". Chosen
 * once, from the CPU; the tests run all that the CPU has. */
const char *dsm_diff_name(void);

/* For tests: the i-th implementation this CPU can run, or NULL past the last;
 * the last is always the portable one. */
struct dsm_diff_impl {
	const char *name;
	size_t (*take)(const void *frame, void *twin, size_t len, uint32_t base,
		       struct sul_run *runs, size_t nr);
	int (*any)(const void *frame, const void *twin, size_t len);
	size_t (*merge)(void *frame, void *twin, const void *news, size_t len);
};
const struct dsm_diff_impl *dsm_diff_impl(unsigned int i);

#endif /* DSM_DIFF_H */
