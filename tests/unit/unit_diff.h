/* SPDX-License-Identifier: MIT */
/* unit_diff.h - for tests that go through all implementations of the diff. */
#ifndef UNIT_DIFF_H
#define UNIT_DIFF_H

#include "dsm_diff.h"

/* All that this CPU can run; @d is each in turn. */
#define FOR_EACH_IMPL(d)                                          \
	for (const struct dsm_diff_impl *d = dsm_diff_impl(0); d; \
	     d = unit_diff_after(d))

static inline const struct dsm_diff_impl *
unit_diff_after(const struct dsm_diff_impl *d)
{
	unsigned int i = 0;

	while (dsm_diff_impl(i) != d)
		i++;
	return dsm_diff_impl(i + 1);
}

#endif /* UNIT_DIFF_H */
