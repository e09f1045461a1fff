/* SPDX-License-Identifier: MIT */
/* sul_heap.h - the core's memory (struct sul_net_env), where there is a heap. */
#ifndef SUL_HEAP_H
#define SUL_HEAP_H

#include <stdlib.h>

static inline void *sul_heap_alloc(void *ctx, size_t bytes)
{
	(void)ctx;
	return calloc(1, bytes);
}

static inline void sul_heap_free(void *ctx, void *at, size_t bytes)
{
	(void)ctx, (void)bytes;
	free(at);
}

#endif /* SUL_HEAP_H */
