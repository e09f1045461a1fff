/* SPDX-License-Identifier: MIT */
/*
 * sul_pages.h - memory that does not come from the heap.
 *
 * For what a handler of a signal may come to need, by a fault or a message: it may
 * have interrupted malloc(), whose lock its own thread has then.
 */
#ifndef SUL_PAGES_H
#define SUL_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/* Zeroed; NULL: there is none. */
static inline void *sul_pages_new(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static inline void sul_pages_free(void *at, size_t bytes)
{
	if (at)
		munmap(at, bytes);
}

#endif /* SUL_PAGES_H */
