/* SPDX-License-Identifier: MIT */
/*
 * sim_record.c - what each load must return, and who may do what.
 *
 * Role:      keeps the last value of each item in synchronisation order, and
 *            the rules that keep the programs free of data races.
 * Invariant: nothing here looks at a node.
 */
#include "sim.h"

#include <string.h>

static const uint32_t sizes[] = { 1, 1, 2, 4, 8 };

static void draw_rule(struct sim_item *it, const struct sim_plan *p,
		      struct sim_rng *rng)
{
	bool tokens = p->cfg.consistency == DSM_CONSISTENCY_RELEASE;
	uint32_t locks = (uint32_t)p->locks;
	uint32_t at = sim_below(rng, locks + 1 + (tokens ? locks : 0));

	if (at < locks) {
		it->rule = SIM_RULE_LOCK;
		it->which = at;
	} else if (at == locks) {
		it->rule = SIM_RULE_EPOCH;
	} else {
		it->rule = SIM_RULE_TOKEN;
		it->which = at - locks - 1;
	}
}

/* Items side by side, somewhere in page @page of allocation @a. */
static void fill_page(struct sim_record *r, const struct sim_plan *p,
		      struct sim_rng *rng, uint32_t a, uint32_t page)
{
	uint32_t bytes = 1u << p->page_shift;
	uint32_t off = 8 * sim_below(rng, bytes / 8);
	uint32_t nr = 1 + sim_below(rng, (uint32_t)p->items);

	while (nr-- && r->nr_items < SIM_ITEMS_MAX) {
		struct sim_item *it = &r->item[r->nr_items];
		uint32_t size = sizes[sim_below(rng, 5)];

		off = (off + size - 1) & ~(size - 1);
		if (off + size > bytes)
			break;
		*it = (struct sim_item){ .alloc = a,
					 .off = page * bytes + off,
					 .size = size,
					 .writer = SIM_NOBODY,
					 .reader = SIM_NOBODY };
		draw_rule(it, p, rng);
		off += size;
		r->nr_items++;
	}
}

static struct sim_class list_class(struct sim_record *r, uint32_t *at,
				   enum sim_rule rule, uint32_t which)
{
	struct sim_class c = { .first = *at };

	for (uint32_t i = 0; i < r->nr_items; i++)
		if (r->item[i].rule == rule && r->item[i].which == which)
			r->list[(*at)++] = i;
	c.nr = *at - c.first;
	return c;
}

static void list_classes(struct sim_record *r, const struct sim_plan *p)
{
	uint32_t at = 0;

	r->of_epoch = list_class(r, &at, SIM_RULE_EPOCH, 0);
	for (uint32_t i = 0; i < p->locks; i++) {
		r->of_lock[i] = list_class(r, &at, SIM_RULE_LOCK, i);
		r->of_token[i] = list_class(r, &at, SIM_RULE_TOKEN, i);
		r->token[i] = (struct sim_token){ SIM_NOBODY, i, false };
		r->holder[i] = SIM_NOBODY;
		r->readers[i] = 0;
	}
}

void sim_record_make(struct sim_record *r, const struct sim_plan *p,
		     struct sim_rng *rng)
{
	r->nr_items = r->meetings = r->arrived = 0;
	r->waiting = r->woken = r->flag = 0;
	r->active = sim_threads(p);
	for (uint32_t a = 0; a < p->allocs; a++) {
		uint32_t units = 1 + sim_below(rng, (uint32_t)p->units);

		r->alloc[a] = (struct sim_alloc){ .pages = units << p->order };
		for (uint32_t i = 0; i < r->alloc[a].pages; i++)
			if (!p->order || sim_below(rng, 2))
				fill_page(r, p, rng, a, i);
	}
	list_classes(r, p);
}

struct sim_item *sim_record_choose(struct sim_thread *t)
{
	struct sim_record *r = &t->run->record;
	struct sim_rng *rng = &t->run->rng;
	const struct sim_class *from[1 + SIM_NEST + SIM_LOCKS_MAX];
	const struct sim_class *c;
	uint32_t nr = 0;

	from[nr++] = &r->of_epoch;
	for (uint32_t i = 0; i < t->nr_held; i++)
		from[nr++] = &r->of_lock[t->held[i]];
	for (uint32_t i = 0; i < t->run->plan.locks; i++)
		if (r->token[i].owner == t->id)
			from[nr++] = &r->of_token[i];
	c = from[sim_below(rng, nr)];
	if (!c->nr)
		return NULL;
	return &r->item[r->list[c->first + sim_below(rng, c->nr)]];
}

static bool holds_alone(const struct sim_thread *t, uint32_t lock)
{
	for (uint32_t i = 0; i < t->nr_held; i++)
		if (t->held[i] == lock)
			return !t->reading[i];
	return false;
}

bool sim_record_may(const struct sim_thread *t, struct sim_item *it, bool store)
{
	int thread = t->id;

	if (it->rule == SIM_RULE_LOCK)
		return !store || holds_alone(t, it->which);
	if (it->rule == SIM_RULE_TOKEN)
		return true;
	if (it->writer != SIM_NOBODY && it->writer != thread)
		return false;
	if (store) {
		if (it->reader != SIM_NOBODY && it->reader != thread)
			return false;
		it->writer = thread;
	} else if (it->reader == SIM_NOBODY) {
		it->reader = thread;
	} else if (it->reader != thread) {
		it->reader = SIM_MANY;
	}
	return true;
}

bool sim_record_waits(struct sim_record *r)
{
	if (r->active < 2)
		return false;
	r->active--;
	r->waiting++;
	return true;
}

void sim_record_signal(struct sim_record *r, bool all)
{
	uint32_t nr = all || !r->waiting ? r->waiting : 1;

	r->waiting -= nr;
	r->woken += nr;
	r->active += nr;
}

void sim_record_woken(struct sim_thread *t)
{
	if (!t->run->record.woken--)
		sim_violation(t->run,
			      "node %d thread %d was woken without a signal",
			      t->node->rank, t->slot);
}

void sim_record_arrive(struct sim_record *r)
{
	r->arrived++;
}

static void nobody_used(struct sim_item *it)
{
	it->writer = it->reader = SIM_NOBODY;
}

void sim_record_depart(struct sim_thread *t, uint32_t nr, bool epoch_ends)
{
	struct sim_record *r = &t->run->record;

	if (r->meetings == nr)
		return; /* somebody has left before us */
	if (r->arrived != sim_threads(&t->run->plan))
		sim_violation(
			t->run,
			"node %d thread %d left a rendezvous to which %u of %u threads had come",
			t->node->rank, t->slot, r->arrived,
			sim_threads(&t->run->plan));
	r->meetings = nr;
	r->arrived = 0;
	r->active = sim_threads(&t->run->plan);
	for (uint32_t i = 0; i < r->nr_items && epoch_ends; i++)
		nobody_used(&r->item[i]);
}

void sim_record_free(struct sim_record *r, uint32_t a, uint32_t made)
{
	if (r->alloc[a].freed == made)
		return; /* somebody has left the rendezvous before us */
	r->alloc[a].freed = made;
	for (uint32_t i = 0; i < r->nr_items; i++) {
		if (r->item[i].alloc != a)
			continue;
		r->item[i].truth = r->item[i].before = 0;
		nobody_used(&r->item[i]);
	}
}
