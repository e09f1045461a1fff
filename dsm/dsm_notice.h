/* SPDX-License-Identifier: MIT */
/*
 * dsm_notice.h - lists of write notices, and merging them at a barrier.
 *
 * A notice says: this unit was written in the epoch that ends here, by this
 * rank (or by several).  A list is sorted by unit, each unit once.  Up the
 * barrier's tree the lists of the children are merged with one's own; the
 * result says of every unit who wrote it.
 *
 * Pure.
 */
#ifndef DSM_NOTICE_H
#define DSM_NOTICE_H

#include <stddef.h>
#include <stdint.h>

#define DSM_WRITER_MANY 0xffff /* more than one rank wrote it */

enum {
	DSM_NOTICE_VALID = 1 /* the (only) writer still has a valid copy */
};

struct dsm_notice {
	uint32_t unit; /* page number of the unit's first page */
	uint16_t writer; /* rank, or DSM_WRITER_MANY */
	uint16_t flags; /* DSM_NOTICE_* */
};

/*
 * Merge @a (@na) and @b (@nb), both sorted, into @out, which has room for
 * @na + @nb.  A unit in both with different writers becomes DSM_WRITER_MANY
 * without flags; with the same writer it keeps the flags that both have.
 * Associative and commutative.  Returns the length.  @out overlaps neither.
 */
size_t dsm_notice_merge(struct dsm_notice *out, const struct dsm_notice *a,
			size_t na, const struct dsm_notice *b, size_t nb);

#endif /* DSM_NOTICE_H */
