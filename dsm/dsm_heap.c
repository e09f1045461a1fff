/* SPDX-License-Identifier: MIT */
/* dsm_heap.c - see dsm_heap.h. */
#include "dsm_heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int dsm_heap_open(struct dsm_heap *h, uint32_t pages, size_t max)
{
	h->extent = calloc(max, sizeof(*h->extent));
	if (!h->extent)
		return -ENOMEM;
	h->max = max;
	h->nr = 1;
	h->extent[0] = (struct dsm_extent){ 0, pages, false };
	return 0;
}

void dsm_heap_close(struct dsm_heap *h)
{
	free(h->extent);
	h->extent = NULL;
}

static void insert(struct dsm_heap *h, size_t at, struct dsm_extent e)
{
	memmove(&h->extent[at + 1], &h->extent[at],
		(h->nr - at) * sizeof(*h->extent));
	h->extent[at] = e;
	h->nr++;
}

static void erase(struct dsm_heap *h, size_t at)
{
	h->nr--;
	memmove(&h->extent[at], &h->extent[at + 1],
		(h->nr - at) * sizeof(*h->extent));
}

/* Cut piece @at, which is free, so that [page, page + pages) is one of its
 * own; the index of that one. */
static size_t cut(struct dsm_heap *h, size_t at, uint32_t page, uint32_t pages)
{
	struct dsm_extent e = h->extent[at];

	if (e.page < page) {
		h->extent[at].pages = page - e.page;
		insert(h, ++at, (struct dsm_extent){ page, pages, false });
	} else {
		h->extent[at].pages = pages;
	}
	if (page + pages < e.page + e.pages)
		insert(h, at + 1,
		       (struct dsm_extent){ page + pages,
					    e.page + e.pages - page - pages,
					    false });
	return at;
}

int dsm_heap_take(struct dsm_heap *h, uint32_t pages, uint32_t align,
		  uint32_t *page)
{
	if (h->nr + 2 > h->max)
		return -ENOSPC;
	for (size_t i = 0; i < h->nr; i++) {
		const struct dsm_extent *e = &h->extent[i];
		uint64_t from = ((uint64_t)e->page + align - 1) &
				~((uint64_t)align - 1);
		size_t at;

		if (e->used || from + pages > (uint64_t)e->page + e->pages)
			continue;
		at = cut(h, i, (uint32_t)from, pages);
		h->extent[at].used = true;
		*page = (uint32_t)from;
		return 0;
	}
	return -ENOMEM;
}

static void join(struct dsm_heap *h, size_t at)
{
	if (at + 1 >= h->nr || h->extent[at].used || h->extent[at + 1].used)
		return;
	h->extent[at].pages += h->extent[at + 1].pages;
	erase(h, at + 1);
}

int dsm_heap_give(struct dsm_heap *h, uint32_t page, uint32_t *pages)
{
	for (size_t i = 0; i < h->nr; i++) {
		if (h->extent[i].page != page || !h->extent[i].used)
			continue;
		*pages = h->extent[i].pages;
		h->extent[i].used = false;
		join(h, i);
		if (i)
			join(h, i - 1);
		return 0;
	}
	return -EINVAL;
}

bool dsm_heap_find(const struct dsm_heap *h, uint32_t page,
		   struct dsm_extent *out)
{
	for (size_t i = 0; i < h->nr; i++) {
		const struct dsm_extent *e = &h->extent[i];

		if (page < e->page || page - e->page >= e->pages)
			continue;
		*out = *e;
		return e->used;
	}
	return false;
}

uint64_t dsm_heap_used(const struct dsm_heap *h)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < h->nr; i++)
		if (h->extent[i].used)
			pages += h->extent[i].pages;
	return pages;
}
