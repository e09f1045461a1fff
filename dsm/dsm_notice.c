/* SPDX-License-Identifier: MIT */
/*
 * dsm_notice.c - lists of write notices, and merging them at a barrier.
 *
 * Role: one merge of two sorted lists.
 * Invariant: the result depends on what the lists say and not on which of them
 * came first, so every shape of the barrier's tree leads to the same verdict,
 * and all ranks derive the same migrations from it.
 * Threads: any.  Locks: none.
 */
#include "dsm_notice.h"

static struct dsm_notice notice_join(struct dsm_notice a, struct dsm_notice b)
{
	if (a.writer != b.writer || a.writer == DSM_WRITER_MANY) {
		a.writer = DSM_WRITER_MANY;
		a.flags = 0;
	} else {
		/* a flag gives a permission: only if both times it was given */
		a.flags &= b.flags;
	}
	return a;
}

size_t dsm_notice_merge(struct dsm_notice *out, const struct dsm_notice *a,
			size_t na, const struct dsm_notice *b, size_t nb)
{
	size_t i = 0, k = 0, n = 0;

	while (i < na && k < nb) {
		if (a[i].unit < b[k].unit)
			out[n++] = a[i++];
		else if (a[i].unit > b[k].unit)
			out[n++] = b[k++];
		else
			out[n++] = notice_join(a[i++], b[k++]);
	}
	while (i < na)
		out[n++] = a[i++];
	while (k < nb)
		out[n++] = b[k++];
	return n;
}
