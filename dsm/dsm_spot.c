/* SPDX-License-Identifier: MIT */
/* dsm_spot.c - see dsm_spot.h. */
#include "dsm_spot.h"

#include <stdbool.h>

enum {
	SPOT_NS = 250 /* a unit of weight */
};

static uint64_t mix(uint64_t z) /* splitmix64's last steps */
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* True: nothing is left of a row of this weight. */
static bool worn(uint64_t *weight, uint64_t cost)
{
	if (*weight > cost) {
		*weight -= cost;
		return false;
	}
	return true;
}

/* --- places of the program ------------------------------------------------------- */

static bool spot_is(const struct dsm_spot *p, uint32_t kind, uint64_t site,
		    uint64_t lock)
{
	return p->kind == kind && p->site == site && p->lock == lock;
}

static struct dsm_spot *spot_row(struct dsm_spots *s, uint32_t kind,
				 uint64_t site, uint64_t lock, uint64_t cost)
{
	uint64_t set =
		mix(site + mix(lock + kind)) % (DSM_SPOTS_MAX / DSM_SPOT_WAYS);
	struct dsm_spot *p = &s->spot[set * DSM_SPOT_WAYS], *least = p;

	for (int i = 0; i < DSM_SPOT_WAYS; i++, p++) {
		if (spot_is(p, kind, site, lock))
			return p;
		if (!p->kind || (least->kind && p->weight < least->weight))
			least = p;
	}
	if (least->kind && !worn(&least->weight, cost))
		return NULL;
	*least = (struct dsm_spot){ .site = site, .lock = lock, .kind = kind };
	return least;
}

void dsm_spot_add_to(struct dsm_spots *s, enum dsm_spot_kind kind,
		     uint64_t site, uint64_t lock, uint64_t ns)
{
	uint64_t cost = ns / SPOT_NS + 1;
	struct dsm_spot *p = spot_row(s, (uint32_t)kind + 1, site, lock, cost);

	if (!p)
		return;
	p->weight += cost;
	p->count++;
	p->ns += ns;
}

/* --- pages --------------------------------------------------------------------------- */

struct dsm_hot *dsm_spot_page_of(struct dsm_spots *s, uint32_t page,
				 uint32_t cost)
{
	uint64_t key = (uint64_t)page + 1;
	uint64_t set = mix(key) % (DSM_HOT_MAX / DSM_SPOT_WAYS);
	struct dsm_hot *h = &s->hot[set * DSM_SPOT_WAYS], *least = h;

	for (int i = 0; i < DSM_SPOT_WAYS; i++, h++) {
		if (h->page == key) {
			h->weight += cost;
			return h;
		}
		if (!h->page || (least->page && h->weight < least->weight))
			least = h;
	}
	if (least->page && !worn(&least->weight, cost))
		return NULL;
	*least = (struct dsm_hot){ .page = key, .weight = cost };
	return least;
}

void dsm_spot_wrote_to(struct dsm_spots *s, uint32_t page, uint32_t from,
		       uint32_t to)
{
	struct dsm_hot *h = dsm_spot_page_of(s, page, DSM_COST_wrote);

	if (!h)
		return;
	if (!h->wrote++ || from < h->from)
		h->from = from;
	if (to > h->to)
		h->to = to;
}
