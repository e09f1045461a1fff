/* SPDX-License-Identifier: MIT */
/*
 * dsm_ready.c - pages made present before they are needed.
 *
 * Role:      knows which pages have their places in memory and page tables, so
 *            that nothing is asked of the system twice; and decides when those
 *            of a whole chunk (parameter `populate`) are made at once.
 * Invariant: hints only.  A page that is not ready costs a trap or a call more
 *            when it is used, one that is ready in vain some memory.
 * Threads:   any.
 * Locks:     the rank mutex is held.
 *
 * When.  A page that is cached for the first time needs a frame, a place in the
 * page table of both views, and if it is to be written a twin.  Made one by one
 * these cost as much as the fault itself; made for a chunk at once, half of
 * that, but only if the pages are used.  So the first page of a chunk gets its
 * own, and when a second one is used out of order (faults in order are repaired
 * in runs anyway) the rest of the chunk is made along with it.
 *
 * Budget.  Ready in vain may be as many pages as were of use, and
 * DSM_AHEAD_FREE.  Of use is the third page of a chunk and each one after it,
 * whether or not it was made ahead: so a program that begins to use its chunks
 * gets them again.  With a small cache nothing is made ahead.
 */
#include "dsm_node.h"

/* What is ready of a page, in dsm_node.ready. */
enum {
	VIEW = 1, /* a place in the page table of the application view */
	TWIN = 2, /* memory for its twin */
	AHEAD_SHIFT = 2 /* the same bits up there: not used so far */
};

struct span {
	uint32_t from, end;
};

static bool has(const struct dsm_node *n, uint32_t page, unsigned int what)
{
	return n->ready[page] & what;
}

static bool same_home(const struct dsm_node *n, uint32_t unit, uint32_t page)
{
	return n->home[dsm_unit_of(n, page)] == n->home[unit];
}

/* The chunk of @unit, as far as its neighbours are at home where it is. */
static struct span chunk_of(const struct dsm_node *n, uint32_t unit)
{
	uint32_t pages = (uint32_t)(n->cfg.populate >> n->page_shift) ?: 1;
	uint32_t first = unit & ~(pages - 1), end = first + pages;
	struct span s = { unit, unit };

	if (end > n->page_end)
		end = n->page_end;
	while (s.from > first && same_home(n, unit, s.from - 1))
		s.from--;
	while (s.end < end && same_home(n, unit, s.end))
		s.end++;
	return s;
}

static bool within_budget(const struct dsm_node *n, uint32_t pages)
{
	return n->ahead_made + pages <= 2 * n->ahead_useful + DSM_AHEAD_FREE &&
	       n->cached_pages + pages <= n->cache_pages / 2;
}

/*
 * @unit needs @what now.  True: so will, it seems, those of @s that have not
 * got it, since others of them have.
 */
static bool chunk_is_used(struct dsm_node *n, uint32_t unit, struct span s,
			  unsigned int what)
{
	uint32_t own = dsm_unit_pages(n, unit), there = 0, missing;

	for (uint32_t p = s.from; p < s.end; p++)
		there += has(n, p, what);
	missing = s.end - s.from - there;
	if (there >= 2 * own)
		n->ahead_useful += own;
	return there && missing > own && within_budget(n, missing - own);
}

static void mark(struct dsm_node *n, struct span s, unsigned int what,
		 unsigned int ahead)
{
	for (uint32_t p = s.from; p < s.end; p++) {
		if (has(n, p, what))
			continue;
		n->ready[p] |= (uint8_t)(what | ahead);
		if (ahead) {
			n->ahead_made++;
			dsm_stat_add(n->stats, ahead, 1);
		}
	}
}

static void mark_used(struct dsm_node *n, uint32_t page, unsigned int what)
{
	unsigned int ahead = what << AHEAD_SHIFT;

	if (!has(n, page, ahead))
		return;
	n->ready[page] &= (uint8_t)~ahead;
	n->ahead_useful++;
}

static int prepare(struct dsm_node *n, enum dsm_window w, struct span s)
{
	return sul_window_prepare(n->port, w, dsm_unit_off(n, s.from),
				  (size_t)(s.end - s.from) << n->page_shift);
}

static struct span span_of(const struct dsm_node *n, uint32_t unit)
{
	return (struct span){ unit, unit + dsm_unit_pages(n, unit) };
}

/* Those of them that the program may not touch, in as few calls as can be. */
static void map(struct dsm_node *n, struct span s)
{
	uint32_t from = s.from;

	for (uint32_t u = s.from; u < s.end; u += dsm_unit_pages(n, u)) {
		if (n->state[u] == DSM_PG_INVALID)
			continue;
		if (from < u)
			n->env->map(n->env_ctx, from, u - from);
		from = u + dsm_unit_pages(n, u);
	}
	if (from < s.end)
		n->env->map(n->env_ctx, from, s.end - from);
}

void dsm_ready_chunk(struct dsm_node *n, uint32_t unit)
{
	struct span s = chunk_of(n, unit);

	if (has(n, unit, VIEW) || !chunk_is_used(n, unit, s, VIEW))
		return;
	if (prepare(n, DSM_W_FRAME, s))
		return; /* no memory for more than is needed */
	if (n->env->map)
		map(n, s);
	mark(n, span_of(n, unit), VIEW, 0);
	mark(n, s, VIEW, VIEW << AHEAD_SHIFT);
}

void dsm_ready_twin(struct dsm_node *n, uint32_t unit)
{
	struct span own = span_of(n, unit), s = chunk_of(n, unit);

	for (uint32_t p = own.from; p < own.end; p++)
		mark_used(n, p, TWIN);
	if (has(n, unit, TWIN))
		return;
	if (chunk_is_used(n, unit, s, TWIN) && !prepare(n, DSM_W_TWIN, s)) {
		mark(n, own, TWIN, 0);
		mark(n, s, TWIN, TWIN << AHEAD_SHIFT);
		return;
	}
	dsm_must(n, prepare(n, DSM_W_TWIN, own), "making room for a page");
	mark(n, own, TWIN, 0);
}

void dsm_ready_view(struct dsm_node *n, uint32_t page, uint32_t pages,
		    enum dsm_access access)
{
	struct span s = { page, page + pages };
	bool all = true;

	for (uint32_t p = s.from; p < s.end; p++) {
		all &= has(n, p, VIEW);
		mark_used(n, p, VIEW);
	}
	if (all)
		return;
	if (n->env->warm)
		n->env->warm(n->env_ctx, page, pages, access);
	mark(n, s, VIEW, 0);
}

void dsm_ready_forget(struct dsm_node *n, uint32_t page, uint32_t pages)
{
	for (uint32_t p = page; p < page + pages; p++)
		n->ready[p] = 0;
}
