/* SPDX-License-Identifier: MIT */
/*
 * dsm_heap.h - which pages of the region are allocated.
 *
 * First fit over a sorted array of pieces.  Deterministic: ranks that make the
 * same calls get the same answers, without a message.
 *
 * Pure.  Threads: the caller serialises.
 */
#ifndef DSM_HEAP_H
#define DSM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dsm_extent {
	uint32_t page, pages;
	bool used;
};

struct dsm_heap {
	struct dsm_extent *extent; /* sorted by page, no two free neighbours */
	size_t nr, max;
};

/* -ENOMEM. */
int dsm_heap_open(struct dsm_heap *h, uint32_t pages, size_t max);
void dsm_heap_close(struct dsm_heap *h);
/* @align: a power of two of pages.  -ENOMEM: no such piece; -ENOSPC: too many
 * pieces. */
int dsm_heap_take(struct dsm_heap *h, uint32_t pages, uint32_t align,
		  uint32_t *page);
/* -EINVAL: no allocation begins at @page. */
int dsm_heap_give(struct dsm_heap *h, uint32_t page, uint32_t *pages);
/* The allocation that @page is in; false: it is free. */
bool dsm_heap_find(const struct dsm_heap *h, uint32_t page,
		   struct dsm_extent *out);
uint64_t dsm_heap_used(const struct dsm_heap *h); /* pages */

#endif /* DSM_HEAP_H */
