/* SPDX-License-Identifier: MIT */
/*
 * sim_check.c - after a run: is what the nodes know of each other consistent?
 *
 * Role:      the last thing all threads did was a barrier, so every copy equals
 *            its home, and every home equals the record; and the sets, flags,
 *            counts and access rights of a node follow from its states.
 */
#include "sim.h"

#include <string.h>

static enum dsm_access access_of(enum dsm_page_state s)
{
	switch (s) {
	case DSM_PG_INVALID:
	case DSM_PG_NR:
		break;
	case DSM_PG_READ:
	case DSM_PG_HGUARD:
		return DSM_ACCESS_R;
	case DSM_PG_WATCH:
	case DSM_PG_OWN:
	case DSM_PG_HWATCH:
		return DSM_ACCESS_RW;
	}
	return DSM_ACCESS_NONE;
}

static void expect(struct sim_node *n, uint32_t unit, bool is, const char *what)
{
	if (!is)
		sim_violation(n->run,
			      "at the end node %d, unit %u in state %s: %s",
			      n->rank, unit,
			      dsm_page_state_name(n->dsm->state[unit]), what);
}

static bool registered(const struct sim_node *n, uint32_t unit)
{
	const struct sim_node *home = &n->run->node[dsm_home(n->dsm, unit)];
	const struct dsm_node *d = home->dsm;
	uint64_t at = d->at.leaf + 8 * (unit * d->at.leaf_words +
					(unsigned int)n->rank / 64);
	uint64_t word;

	memcpy(&word, d->dir + at, sizeof(word));
	return word >> (n->rank % 64) & 1;
}

static void check_copy(struct sim_node *n, uint32_t unit)
{
	struct dsm_node *d = n->dsm;
	const struct dsm_node *home = n->run->node[dsm_home(d, unit)].dsm;
	uint64_t off = dsm_unit_off(d, unit);

	expect(n, unit, registered(n, unit), "not registered at its home");
	expect(n, unit,
	       !memcmp(home->frame + off, d->frame + off,
		       dsm_unit_bytes(d, unit)),
	       "the copy differs from its home");
}

static void check_unit(struct sim_node *n, uint32_t unit)
{
	struct dsm_node *d = n->dsm;
	enum dsm_page_state s = d->state[unit];
	bool watched = s == DSM_PG_WATCH || s == DSM_PG_HWATCH;
	bool copy = s == DSM_PG_WATCH || s == DSM_PG_READ;
	bool home = s == DSM_PG_OWN || s == DSM_PG_HWATCH || s == DSM_PG_HGUARD;

	expect(n, unit, home == dsm_home_here(d, unit), "home or not?");
	expect(n, unit, watched == dsm_bits_test(&d->watched, unit),
	       "the set of watched units is wrong");
	expect(n, unit, watched == (bool)*dsm_dir_flag(d, unit),
	       "the twin flag is wrong");
	expect(n, unit, copy == dsm_bits_test(&d->cached, unit),
	       "the set of cached units is wrong");
	for (uint32_t i = 0; i < dsm_unit_pages(d, unit); i++)
		expect(n, unit,
		       n->access[unit + i] == access_of(s) ||
			       (n->access[unit + i] == DSM_ACCESS_NONE &&
				dsm_view_hidden(d, unit)),
		       "the access right is wrong");
	if (copy)
		check_copy(n, unit);
}

static void check_node(struct sim_node *n)
{
	struct dsm_node *d = n->dsm;
	uint64_t cached = 0, watched = 0, borders = 0;

	for (uint32_t u = 0; u < d->pages; u += dsm_unit_pages(d, u)) {
		if (dsm_home(d, u) < 0) {
			expect(n, u, n->access[u] == DSM_ACCESS_NONE,
			       "not allocated and yet accessible");
			continue;
		}
		check_unit(n, u);
		if (dsm_bits_test(&d->cached, u))
			cached += dsm_unit_pages(d, u);
		if (dsm_bits_test(&d->watched, u))
			watched += dsm_unit_pages(d, u);
	}
	for (uint32_t p = 1; p < d->pages; p++)
		borders += n->access[p - 1] != n->access[p];
	if (borders != d->borders ||
	    memcmp(n->access, d->access, d->pages) != 0)
		sim_violation(n->run,
			      "at the end node %d counts %u borders of %u",
			      n->rank, (uint32_t)d->borders, (uint32_t)borders);
	if (watched != d->watched_pages)
		sim_violation(
			n->run,
			"at the end node %d counts %u watched pages of %u",
			n->rank, (uint32_t)d->watched_pages, (uint32_t)watched);
	if (cached != d->cached_pages || d->pending.members ||
	    d->marked.members)
		sim_violation(
			n->run,
			"at the end node %d counts %u cached pages of %u, pending %u, marked %u",
			n->rank, (uint32_t)d->cached_pages, (uint32_t)cached,
			d->pending.members, d->marked.members);
}

static void check_item(struct sim_run *run, const struct sim_item *it)
{
	const struct sim_alloc *a = &run->record.alloc[it->alloc];
	uint32_t shift = (uint32_t)run->plan.page_shift;
	uint32_t page = a->page + (it->off >> shift);
	const struct dsm_node *d = run->node[0].dsm;
	int home = dsm_home(d, dsm_unit_of(d, page));
	uint64_t got = 0;

	memcpy(&got,
	       run->node[home].dsm->frame + ((uint64_t)a->page << shift) +
		       it->off,
	       it->size);
	if (got != it->truth)
		sim_violation(
			run,
			"at the end page %u at its home, node %d, offset %u size %u (rule %d %u): 0x%llx, want 0x%llx",
			page, home, it->off, it->size, (int)it->rule, it->which,
			(unsigned long long)got, (unsigned long long)it->truth);
}

void sim_check(struct sim_run *run)
{
	for (uint64_t i = 0; i < run->plan.ranks; i++)
		check_node(&run->node[i]);
	for (uint32_t i = 0; i < run->record.nr_items; i++)
		check_item(run, &run->record.item[i]);
}
