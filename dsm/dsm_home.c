/* SPDX-License-Identifier: MIT */
/*
 * dsm_home.c - where pages live: allocation, freeing, and homes that move.
 *
 * Role:      collective calls on memory.  No message: every rank computes the
 *            same from the same calls (allocation) or the same merged notices
 *            (migration).
 * Invariant: a page that is not allocated has no home, no access, no memory.
 * Threads:   one thread of a rank makes a collective call.
 * Locks:     takes the rank mutex, except dsm_home_move(), which is called with
 *            it held.
 *
 * A rank may be ahead of another in an allocation and fetch a page of which the
 * other, its home, has not heard.  That is harmless: the page is zero in the
 * window, and the registration waits in the directory (dsm_dir.c).
 */
#include "dsm_node.h"

#include <errno.h>

static void give_home(struct dsm_node *n, uint32_t page, uint32_t pages,
		      int home, unsigned int order)
{
	bool here = home == n->rank;

	for (uint32_t p = page; p < page + pages; p++) {
		n->home[p] = (uint16_t)(home + 1);
		n->order[p] = (uint8_t)order;
		n->state[p] = here ? DSM_PG_OWN : DSM_PG_INVALID;
	}
	if (here || n->cfg.hardware)
		dsm_view_open(n, page, pages);
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* How an allocation is cut: blocks of one size, or of one size a round. */
struct cut {
	uint64_t block;
	const int *rounds; /* NULL: all of @block */
};

/* Pages of the block number @nr. */
static uint32_t block_pages(const struct dsm_node *n, const struct cut *cut,
			    uint64_t unit_bytes, uint32_t nr)
{
	uint64_t bytes =
		cut->rounds ? (uint64_t)cut->rounds[nr / (uint32_t)n->ranks] :
			      cut->block;

	return (uint32_t)(round_up(bytes, unit_bytes) >> n->page_shift);
}

static int alloc(struct dsm_node *n, uint64_t bytes, const struct cut *cut,
		 int home, unsigned int order, uint32_t *page)
{
	uint64_t unit_bytes = UINT64_C(1) << (n->page_shift + order);
	uint64_t region = (uint64_t)n->pages << n->page_shift;
	uint32_t pages, first, p = 0;
	int err;

	if (!bytes || order > DSM_UNIT_ORDER_MAX || home < 0 ||
	    home >= n->ranks)
		return -EINVAL;
	if (bytes > region || round_up(bytes, unit_bytes) > region)
		return -ENOMEM;
	pages = (uint32_t)(round_up(bytes, unit_bytes) >> n->page_shift);

	dsm_enter(n, NULL);
	err = dsm_heap_take(&n->heap, pages, 1u << order, &first);
	for (uint32_t i = 0; !err && p < pages; i++) {
		uint32_t nr = block_pages(n, cut, unit_bytes, i);

		if (nr > pages - p)
			nr = pages - p;
		give_home(n, first + p, nr, home, order);
		home = (home + 1) % n->ranks;
		p += nr;
	}
	if (!err && n->page_end < first + pages)
		n->page_end = first + pages;
	if (!err)
		*page = first;
	dsm_leave(n);
	return err;
}

int dsm_alloc(struct dsm_node *n, uint64_t bytes, uint64_t block, int home,
	      unsigned int order, uint32_t *page)
{
	struct cut cut = { .block = block < bytes ? block : bytes };

	return block ? alloc(n, bytes, &cut, home, order, page) : -EINVAL;
}

int dsm_alloc_rounds(struct dsm_node *n, uint64_t bytes, const int *block,
		     int home, unsigned int order, uint32_t *page)
{
	struct cut cut = { .rounds = block };

	return alloc(n, bytes, &cut, home, order, page);
}

/* Its home gives its memory back, like we do. */
static void forget_home(struct dsm_node *n, uint32_t unit)
{
	uint64_t off = dsm_unit_off(n, unit);
	size_t len = dsm_unit_bytes(n, unit);

	sul_window_forget(n->port, dsm_home(n, unit), DSM_W_FRAME, off, len);
	sul_window_forget(n->port, dsm_home(n, unit), DSM_W_TWIN, off, len);
}

static void forget_unit(struct dsm_node *n, uint32_t unit)
{
	if (!dsm_home_here(n, unit))
		forget_home(n, unit);
	if (dsm_bits_clear(&n->cached, unit))
		n->cached_pages -= dsm_unit_pages(n, unit);
	if (dsm_bits_clear(&n->watched, unit))
		n->watched_pages -= dsm_unit_pages(n, unit);
	dsm_bits_clear(&n->written, unit);
	dsm_bits_clear(&n->dropped, unit);
	*dsm_dir_flag(n, unit) = 0;
	dsm_dir_forget(n, unit);
	n->enrolled[unit] = 0;
	n->age[unit] = n->probe[unit] = n->idle[unit] = 0;
	n->wrote[unit] = 0;
	n->whole[unit] = 0;
	n->holds[unit] = 0;
}

int dsm_free(struct dsm_node *n, uint32_t page)
{
	uint32_t pages;
	int err;

	dsm_enter(n, NULL);
	err = dsm_heap_give(&n->heap, page, &pages);
	if (err)
		goto leave;
	dsm_view_lower(n, page, pages, DSM_ACCESS_NONE);
	for (uint32_t p = page; p < page + pages; p += dsm_unit_pages(n, p))
		forget_unit(n, p);
	dsm_must(n,
		 sul_window_discard(n->port, DSM_W_FRAME, dsm_unit_off(n, page),
				    (size_t)pages << n->page_shift),
		 "freeing memory");
	dsm_must(n,
		 sul_window_discard(n->port, DSM_W_TWIN, dsm_unit_off(n, page),
				    (size_t)pages << n->page_shift),
		 "freeing memory");
	dsm_ready_forget(n, page, pages);
	for (uint32_t p = page; p < page + pages; p++) {
		n->home[p] = 0;
		n->order[p] = 0;
		n->place_of[p] = 0;
		n->state[p] = DSM_PG_INVALID;
	}
leave:
	dsm_leave(n);
	return err;
}

/*
 * @unit's home moves to rank @to, at a barrier.  Everybody knows, from the same
 * notices.  Who leaves the barrier early may register at the new home before
 * that has come to this point: then the home finds a sharer, and goes on
 * comparing the page.  The old home's frame becomes an ordinary copy; like all
 * others it is refreshed or dropped next, and registers anew.
 */
void dsm_home_move(struct dsm_node *n, uint32_t unit, int to)
{
	bool was_here = dsm_home_here(n, unit);

	n->home[unit] = (uint16_t)(to + 1);
	n->enrolled[unit] = 0;
	if (was_here) {
		dsm_unit_event(n, unit, DSM_EV_LOSE, 0);
		dsm_dir_forget(n, unit);
		dsm_stat_add(n->stats, migrated_out, 1);
	}
	if (to == n->rank) {
		bool shared = dsm_dir_shared(n, unit);

		dsm_unit_event(n, unit,
			       shared ? DSM_EV_GAIN_SHARED : DSM_EV_GAIN, 0);
		dsm_stat_add(n->stats, migrated_in, 1);
	}
}
