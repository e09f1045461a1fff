/* SPDX-License-Identifier: MIT */
/*
 * plan.c - see plan.h.
 *
 * Items come in clusters of neighbours without a gap, with different rules:
 * that is where a diff in units larger than a byte, or a refresh that stores
 * too much, does damage.  Clusters like the ends of pages, and some items
 * straddle them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

/* --- memory ------------------------------------------------------------------ */

/* Log-uniform: as many small numbers as large ones. */
static unsigned int log_uniform(struct rng *r, unsigned int bits)
{
	return 1 + rng_below(r, 1u << rng_below(r, bits));
}

static void make_area(struct plan *p, struct area *a, unsigned int pages,
		      struct rng *r)
{
	static const unsigned int blocks[] = { 1, 1, 2, 3, 16 };

	pages *= p->stride;
	a->kind = (enum area_kind)rng_below(r, 4);
	a->home = (int)rng_below(r, p->ranks);
	a->bytes = pages * PLAN_PAGE;
	if (rng_percent(r, 30))
		a->bytes -= rng_below(r, 200);
	if (a->kind == AREA_ONE_HOME)
		a->block = pages * PLAN_PAGE;
	else
		a->block = blocks[rng_below(r, 5)] * PLAN_PAGE;
}

static bool make_areas(struct plan *p, unsigned int pages, struct rng *r)
{
	if (!pages)
		pages = log_uniform(r, 8);
	p->stride = pages <= 32 && rng_percent(r, 25) ? 16 : 1;
	p->nareas = rng_between(r, 1, pages < PLAN_AREAS ? pages : PLAN_AREAS);
	for (unsigned int i = 0; i < p->nareas; i++) {
		struct area *a = &p->area[i];
		unsigned int part = pages / (p->nareas - i);

		make_area(p, a, part, r);
		pages -= part;
		a->owner = calloc(a->bytes, sizeof(*a->owner));
		if (!a->owner)
			return false;
	}
	return true;
}

/* --- items --------------------------------------------------------------------- */

/* How often each rule is drawn in this round; some rounds are nearly pure. */
static void make_weights(const struct plan *p, unsigned int weight[RULES],
			 struct rng *r)
{
	unsigned int locks = rng_below(r, 3) * 4 + 1;
	unsigned int epoch = rng_below(r, 3) * 12 + 1;
	unsigned int tokens = rng_below(r, 3) * 4 + 1;

	memset(weight, 0, RULES * sizeof(*weight));
	for (unsigned int l = 0; l < p->nlocks; l++)
		weight[RULE_LOCK + l] = locks;
	weight[RULE_EPOCH] = epoch;
	for (unsigned int k = 0; k < p->ntokens; k++)
		weight[RULE_TOKEN + k] = tokens;
}

static uint8_t draw_rule(const unsigned int weight[RULES], struct rng *r)
{
	unsigned int sum = 0, x;
	uint8_t rule = 0;

	for (unsigned int i = 0; i < RULES; i++)
		sum += weight[i];
	x = rng_below(r, sum);
	while (x >= weight[rule])
		x -= weight[rule++];
	return rule;
}

static bool is_free(const struct area *a, uint32_t offset, unsigned int size)
{
	if (offset + size > a->bytes)
		return false;
	for (unsigned int b = 0; b < size; b++)
		if (a->owner[offset + b])
			return false;
	return true;
}

static void put_item(struct plan *p, unsigned int area, uint32_t offset,
		     unsigned int size, uint8_t rule)
{
	struct area *a = &p->area[area];

	if (p->nitems == REC_ITEMS || !is_free(a, offset, size))
		return;
	p->item[p->nitems++] = (struct item){
		.offset = offset,
		.area = (uint8_t)area,
		.size = (uint8_t)size,
		.rule = rule,
	};
	for (unsigned int b = 0; b < size; b++)
		a->owner[offset + b] = (uint16_t)p->nitems;
}

static void put_cluster(struct plan *p, unsigned int area, uint32_t page,
			const unsigned int weight[RULES], unsigned int most,
			struct rng *r)
{
	unsigned int n = rng_between(r, 1, most), where = rng_below(r, 4);
	bool mixed = rng_percent(r, 75);
	uint8_t rule = draw_rule(weight, r);
	uint32_t offset = page * PLAN_PAGE;

	if (where == 0)
		offset += PLAN_PAGE - rng_below(r, 40);
	else if (where > 1)
		offset += rng_below(r, PLAN_PAGE);
	while (n--) {
		unsigned int size = 1u << rng_below(r, 4);

		if (mixed)
			rule = draw_rule(weight, r);
		if (!rng_percent(r, 10))
			offset = (offset + size - 1) & ~(size - 1);
		put_item(p, area, offset, size, rule);
		offset += size;
		if (rng_percent(r, 20))
			offset += rng_below(r, 16);
	}
}

static void make_items(struct plan *p, struct rng *r)
{
	unsigned int weight[RULES];
	unsigned int clusters = rng_between(r, 1, 3);
	unsigned int most = 2u << rng_below(r, 5);

	make_weights(p, weight, r);
	/* Something to do for every rule, whatever the dice say. */
	for (unsigned int i = 0; i < RULES; i++)
		if (weight[i])
			put_item(p, 0, i * 2, 2, (uint8_t)i);
	for (unsigned int i = 0; i < p->nareas; i++)
		for (uint32_t page = 0; page < p->area[i].bytes / PLAN_PAGE;
		     page += p->stride)
			for (unsigned int c = 0; c < clusters; c++)
				put_cluster(p, i, page, weight, most, r);
}

static int by_address(const void *x, const void *y)
{
	const struct item *a = x, *b = y;

	if (a->area != b->area)
		return a->area < b->area ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Sort the items by address, and list them by rule in that order. */
static void list_items(struct plan *p)
{
	unsigned int n = 0;

	qsort(p->item, p->nitems, sizeof(*p->item), by_address);
	for (unsigned int x = 0; x < p->nitems; x++)
		for (unsigned int b = 0; b < p->item[x].size; b++)
			p->area[p->item[x].area].owner[p->item[x].offset + b] =
				(uint16_t)(x + 1);
	for (unsigned int rule = 0; rule < RULES; rule++) {
		p->first[rule] = n;
		for (unsigned int x = 0; x < p->nitems; x++)
			if (p->item[x].rule == rule)
				p->list[n++] = (uint16_t)x;
		p->count[rule] = n - p->first[rule];
	}
}

/* --- habits ---------------------------------------------------------------------- */

static int by_id(const void *x, const void *y)
{
	const int *a = x, *b = y;

	return *a < *b ? -1 : *a > *b;
}

/* Ids far apart (other managers) or neighbours; Maxlocks is 1024. */
static void make_locks(struct plan *p, struct rng *r)
{
	unsigned int step = rng_percent(r, 50) ? 1 : 1 + rng_below(r, 100);
	unsigned int id = rng_below(r, 100);

	p->nlocks = rng_between(r, 1, REC_LOCKS);
	for (unsigned int l = 0; l < p->nlocks; l++) {
		p->lock_id[l] = (int)id;
		id += 1 + rng_below(r, step);
	}
	qsort(p->lock_id, p->nlocks, sizeof(*p->lock_id), by_id);
}

static unsigned int one_of(struct rng *r, unsigned int a, unsigned int b,
			   unsigned int c)
{
	unsigned int x = rng_below(r, 3);

	return x == 0 ? a : x == 1 ? b : c;
}

static void make_habits(struct plan *p, struct rng *r)
{
	unsigned int ops = 400u << rng_below(r, 6);
	unsigned int workers = p->ranks * p->threads;

	p->accesses = one_of(r, 3, 8, 24);
	p->epochs = rng_between(r, 2, 8);
	p->bursts = ops / (p->epochs * workers * (p->accesses / 2 + 2)) + 1;
	p->write_percent = one_of(r, 15, 50, 85);
	p->lock_percent = one_of(r, 20, 50, 90);
	p->nest_percent = one_of(r, 0, 30, 70);
	p->blink_percent = one_of(r, 0, 5, 50);
	p->own_percent = one_of(r, 0, 0, 95);
	p->look_percent = one_of(r, 0, 10, 40);
	p->sweep_percent = one_of(r, 0, 3, 10);
	p->delay = (enum delay)rng_below(r, 2 * DELAYS);
	if (p->delay >= DELAYS)
		p->delay = DELAY_NONE;
	p->barrier_after_alloc = rng_percent(r, 50);
	p->wait_first = rng_percent(r, 30);
}

struct plan *plan_make(uint64_t seed, uint32_t round, unsigned int ranks,
		       unsigned int threads, unsigned int pages, bool release)
{
	struct plan *p = calloc(1, sizeof(*p));
	struct rng r = rng_at(seed, round, 0, 0);

	if (!p)
		return NULL;
	p->seed = seed;
	p->round = round;
	p->ranks = ranks;
	p->threads = threads;
	make_locks(p, &r);
	p->ntokens = release ? rng_between(&r, 1, REC_TOKENS) : 0;
	make_habits(p, &r);
	if (!make_areas(p, pages, &r)) {
		plan_free(p);
		return NULL;
	}
	make_items(p, &r);
	list_items(p);
	return p;
}

void plan_free(struct plan *p)
{
	if (!p)
		return;
	for (unsigned int i = 0; i < p->nareas; i++)
		free(p->area[i].owner);
	free(p);
}

static uint64_t item_hash(const struct plan *p, uint32_t item)
{
	return rng_mix(p->seed ^ ((uint64_t)p->round << 20 ^ item));
}

/* A quarter of the items come back to a value: who was shown one in passing
 * must not keep it (race 9). */
unsigned int plan_period(const struct plan *p, uint32_t item)
{
	uint64_t h = item_hash(p, item);

	return h >> 62 ? 0 : h >> 61 & 1 ? 2 : 3;
}

uint64_t plan_value(const struct plan *p, uint32_t item, uint32_t count)
{
	unsigned int bits = p->item[item].size * 8u;
	unsigned int period = plan_period(p, item);

	if (period)
		count %= period;
	return ((item_hash(p, item) | 1) * count) & (~0ull >> (64 - bits));
}

const char *plan_rule_text(const struct plan *p, unsigned int rule, char *buf,
			   size_t len)
{
	if (rule < RULE_EPOCH)
		snprintf(buf, len, "guarded by lock %u (id %d)", rule,
			 p->lock_id[rule]);
	else if (rule == RULE_EPOCH)
		snprintf(buf, len, "one writer or many readers per epoch");
	else
		snprintf(buf, len, "token %u", rule - RULE_TOKEN);
	return buf;
}
