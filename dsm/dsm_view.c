/* SPDX-License-Identifier: MIT */
/*
 * dsm_view.c - what the program may do with which page.
 *
 * Role:      changes the protection of the application view, and keeps the
 *            number of its *borders* in bounds, the places where protection
 *            differs from one page to the next: between two of them lies a
 *            mapping of the process, and it may have 65,530 (vm.max_map_count).
 * Invariant: nobody may do more with a page than its state says (dsm_page.h).
 *            Who may do less finds it *hidden*: there is no access at all.
 * Threads:   the program's threads load and store meanwhile.
 * Locks:     the rank mutex is held.
 *
 * Hiding.  When there are too many borders, stretches of the region that have
 * many are made inaccessible, hundreds of mappings in one call.  That is all
 * that happens to their pages.  They are watched, compared, refreshed and
 * evicted as before, which goes through the system view; so no rule of the
 * protocol is concerned.  Who uses one next faults, and it is revealed, with
 * those beside it that the program may use in the same way.
 *
 * A stretch is hidden from its first border to its last: a call that begins or
 * ends within a mapping would split it, and could fail for the very reason for
 * which it is made.  What is held stays (dsm_touch.c), and, as long as there is
 * anything else, what threads have used last.
 */
#include "dsm_node.h"

#include <errno.h>
#include <string.h>

static enum dsm_access due(const struct dsm_node *n, uint32_t unit)
{
	static const enum dsm_access by_state[DSM_PG_NR] = {
		[DSM_PG_INVALID] = DSM_ACCESS_NONE,
		[DSM_PG_READ] = DSM_ACCESS_R,
		[DSM_PG_WATCH] = DSM_ACCESS_RW,
		[DSM_PG_OWN] = DSM_ACCESS_RW,
		[DSM_PG_HWATCH] = DSM_ACCESS_RW,
		[DSM_PG_HGUARD] = DSM_ACCESS_R,
	};

	return dsm_home(n, unit) < 0 ? DSM_ACCESS_NONE :
				       by_state[n->state[unit]];
}

bool dsm_view_hidden(const struct dsm_node *n, uint32_t unit)
{
	return n->access[unit] < due(n, unit);
}

/* --- borders ------------------------------------------------------------------ */

static bool is_border(const struct dsm_node *n, uint32_t page)
{
	return page && page < n->pages &&
	       n->access[page - 1] != n->access[page];
}

/* Does no mapping go on from the page before @page to @page? */
static bool is_edge(const struct dsm_node *n, uint32_t page)
{
	return !page || page == n->pages || is_border(n, page);
}

/* Those of [from, to], both ends included. */
static uint32_t borders(const struct dsm_node *n, uint32_t from, uint32_t to)
{
	uint32_t nr = 0;

	for (uint32_t p = from; p <= to; p++)
		nr += is_border(n, p);
	return nr;
}

/* The pages [from, to) have the access @access now. */
static void account(struct dsm_node *n, uint32_t from, uint32_t to,
		    enum dsm_access access)
{
	n->borders -= borders(n, from, to);
	memset(n->access + from, (int)access, to - from);
	n->borders += borders(n, from, to);
	dsm_stat_add(n->stats, protects, 1);
}

/* --- hiding -------------------------------------------------------------------- */

/* Pages that are about to change, and are left alone. */
struct span {
	uint32_t from, to;
};

static bool used_last(const struct dsm_node *n, uint32_t from, uint32_t to)
{
	for (uint32_t t = 0; t < n->thread_nr; t++)
		for (int i = 0; i < DSM_RECENT_PER_THREAD; i++)
			if (n->thread[t].recent[i] >= from &&
			    n->thread[t].recent[i] < to)
				return true;
	return false;
}

static bool held(const struct dsm_node *n, uint32_t from, uint32_t to)
{
	for (uint32_t p = from; p < to; p++)
		if (dsm_held(n, p))
			return true;
	return false;
}

/* How many borders there would be less if [from, to) were hidden. */
static uint32_t gain(const struct dsm_node *n, uint32_t from, uint32_t to)
{
	uint32_t left = 0;

	if (from)
		left += n->access[from - 1] != DSM_ACCESS_NONE;
	if (to < n->pages)
		left += n->access[to] != DSM_ACCESS_NONE;
	return borders(n, from, to) - left;
}

/* Hide what is between the first and the last border of [from, to), if that
 * makes at least @least borders less. */
static void hide(struct dsm_node *n, uint32_t from, uint32_t to, uint32_t least)
{
	while (from < to && !is_edge(n, from))
		from++;
	while (to > from && !is_edge(n, to))
		to--;
	if (from >= to || gain(n, from, to) < least || held(n, from, to))
		return;
	if (n->env->protect(n->env_ctx, from, to - from, DSM_ACCESS_NONE))
		return;
	for (uint32_t p = from; p < to; p++)
		dsm_stat_add(n->stats, hidden, n->access[p] != DSM_ACCESS_NONE);
	account(n, from, to, DSM_ACCESS_NONE);
}

/* The same in [from, to), a stretch, on both sides of @but. */
static void hide_around(struct dsm_node *n, uint32_t from, uint32_t to,
			uint32_t least, const struct span *but)
{
	if (but->from >= to || but->to <= from) {
		hide(n, from, to, least);
		return;
	}
	hide(n, from, but->from, least);
	hide(n, but->to, to, least);
}

/* Hide until there are at most @most borders, if that can be done: what is
 * worth it first, and what is in use last. */
static void fold(struct dsm_node *n, const struct span *but, uint64_t most)
{
	static const uint32_t least[] = { 64, 8, 1, 1 };
	uint32_t end = n->page_end > but->to ? n->page_end : but->to;
	uint32_t nr = (end - 1) / (1u << n->stretch_shift) + 1;

	for (unsigned int round = 0; round < 4; round++)
		for (uint32_t i = 0; i < nr && n->borders > most; i++) {
			uint32_t s = n->hide_hand++ % nr;
			uint32_t from = s << n->stretch_shift;
			uint32_t to = from + (1u << n->stretch_shift);

			if (to > n->pages)
				to = n->pages;
			if (round < 3 && used_last(n, from, to))
				continue;
			hide_around(n, from, to, least[round], but);
		}
}

/* The system says that there are too many mappings: the program must have made
 * many itself.  False: nothing can be done. */
static bool make_do(struct dsm_node *n, const struct span *but)
{
	uint64_t before = n->borders;

	n->borders_most = before - before / 8;
	fold(n, but, n->borders_most);
	return n->borders < before;
}

/* --- changing -------------------------------------------------------------------- */

static bool crowded(const struct dsm_node *n)
{
	return !n->cfg.hardware && n->borders + 2 > n->borders_most;
}

static void change(struct dsm_node *n, uint32_t page, uint32_t pages,
		   enum dsm_access access)
{
	struct span self = { page, page + pages };
	int err;

	if (crowded(n))
		fold(n, &self, n->borders_most - n->borders_most / 8);
	do
		err = n->env->protect(n->env_ctx, page, pages, access);
	while (err == -ENOMEM && !n->cfg.hardware && make_do(n, &self));
	if (err == -ENOMEM)
		dsm_die(n,
			"changing the protection of page %u: the process has too many mappings; raise vm.max_map_count, or use larger blocks (--set block)",
			page);
	dsm_must(n, err, "changing the protection of a page");
	account(n, page, page + pages, access);
}

void dsm_view_raise(struct dsm_node *n, uint32_t page, uint32_t pages,
		    enum dsm_access access)
{
	change(n, page, pages, access);
}

void dsm_view_lower(struct dsm_node *n, uint32_t page, uint32_t pages,
		    enum dsm_access access)
{
	uint32_t end = page + pages;

	while (page < end) {
		uint32_t to = page;

		while (to < end && n->access[to] > (uint8_t)access)
			to++;
		if (to > page)
			change(n, page, to - page, access);
		page = to + 1;
	}
}

void dsm_view_open(struct dsm_node *n, uint32_t page, uint32_t pages)
{
	if (!crowded(n))
		change(n, page, pages, DSM_ACCESS_RW);
}

/* May @unit be revealed along with another that is due @access? */
static bool goes_along(const struct dsm_node *n, uint32_t unit,
		       enum dsm_access access)
{
	return n->access[unit] == DSM_ACCESS_NONE && due(n, unit) == access;
}

void dsm_view_reveal(struct dsm_node *n, uint32_t unit)
{
	enum dsm_access access = due(n, unit);
	uint32_t stretch = 1u << n->stretch_shift;
	uint32_t first = unit & ~(stretch - 1), end = first + stretch;
	uint32_t from = unit, to = unit + dsm_unit_pages(n, unit);

	if (end > n->page_end)
		end = n->page_end;
	while (from > first && goes_along(n, dsm_unit_of(n, from - 1), access))
		from = dsm_unit_of(n, from - 1);
	while (to < end && goes_along(n, to, access))
		to += dsm_unit_pages(n, to);
	change(n, from, to - from, access);
	dsm_ready_view(n, unit, dsm_unit_pages(n, unit), access);
}
