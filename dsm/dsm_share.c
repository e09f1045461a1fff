/* SPDX-License-Identifier: MIT */
/*
 * dsm_share.c - the program's global variables become shared memory.
 *
 * Role:      pages of the region are mapped where .data and .bss were.  From
 *            then on they are pages as all others, at other addresses in the
 *            application view (dsm_host_at); nothing else knows.
 * Invariant: nothing of the program's runs meanwhile, and nothing here or below
 *            has a variable of its own there: libjia is a library of its own.
 * Threads:   the first of each rank, before main().
 */
#include "dsm_crew.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "dsm_public.h"

enum {
	PAGE_BYTES = 4096
};

static struct dsm_part whole_pages(const struct dsm_part *p)
{
	uintptr_t from = (uintptr_t)p->at & ~(uintptr_t)(PAGE_BYTES - 1);
	uintptr_t to = ((uintptr_t)p->at + p->bytes + PAGE_BYTES - 1) &
		       ~(uintptr_t)(PAGE_BYTES - 1);

	return (struct dsm_part){ (char *)from, to - from };
}

/* The largest: where there is another it is a piece of a table of the loader's
 * that came to lie before what it makes read-only. */
static struct dsm_part find_globals(struct dsm_host *h,
				    const struct dsm_program *p)
{
	struct dsm_part most = { 0 };

	for (unsigned int i = 0; i < p->nr_parts; i++)
		if (p->part[i].bytes > most.bytes)
			most = p->part[i];
	if (!most.bytes)
		dsm_host_fail(h,
			      "the program has no global variables to share");
	return whole_pages(&most);
}

static void fill(struct dsm_host *h, const struct dsm_part *globals,
		 uint32_t page)
{
	if (h->node->rank == 0)
		memcpy(h->node->frame + ((uint64_t)page << 12), globals->at,
		       globals->bytes);
}

static void map(struct dsm_host *h, const struct dsm_part *globals,
		uint32_t page)
{
	static const int prot[] = {
		[DSM_ACCESS_NONE] = PROT_NONE,
		[DSM_ACCESS_R] = PROT_READ,
		[DSM_ACCESS_RW] = PROT_READ | PROT_WRITE,
	};
	int owner = h->settings.value.hardware ? 0 : h->node->rank, fd;
	uint64_t off;
	int err = sul_window_file(h->port, owner, DSM_W_FRAME, &fd, &off);

	if (!err &&
	    mmap(globals->at, globals->bytes, prot[h->node->access[page]],
		 MAP_SHARED | MAP_FIXED, fd,
		 (off_t)(off + ((uint64_t)page << 12))) == MAP_FAILED)
		err = -errno;
	if (err)
		dsm_host_fail(h, "sharing the program's global variables: %s",
			      strerror(-err));
	h->alias = globals->at;
	h->alias_page = page;
	h->alias_pages = (uint32_t)(globals->bytes >> 12);
	h->tally->alias = (uintptr_t)h->alias;
	h->tally->alias_page = h->alias_page;
	h->tally->alias_pages = h->alias_pages;
}

void dsm_share_globals(struct dsm_host *h, const struct dsm_program *p,
		       const void *site)
{
	struct dsm_part globals = find_globals(h, p);
	char *at =
		dsm_public_allocate(h, globals.bytes, globals.bytes, 0, site);
	uint32_t page = (uint32_t)((uint64_t)(at - h->base) >> 12);

	fill(h, &globals, page);
	map(h, &globals, page);
	/* Nobody asks for what is not there yet. */
	dsm_public_meet(h, DSM_MEET_WAIT, site);
}
