/* SPDX-License-Identifier: MIT */
/*
 * sim_program.c - the random program that each simulated thread runs.
 *
 * Role:      critical sections (nested ones too), accesses outside of them,
 *            barriers, and now and then a free and an allocation at a barrier.
 * Invariant: free of data races under the record's disciplines.
 */
#include "sim.h"

#include <inttypes.h>

static void doing(struct sim_thread *t, const char *what, uint64_t which)
{
	t->doing = what;
	t->doing_what = which;
	sim_trace(t->run, "node %d thread %d: %s %" PRIu64, t->node->rank,
		  t->slot, what, which);
}

static const char *rule_name(enum sim_rule rule)
{
	static const char *const names[] = { "lock", "epoch", "token" };

	return names[rule];
}

/* --- accesses ------------------------------------------------------------------------ */

static uint32_t byte_of(const struct sim_thread *t, const struct sim_item *it)
{
	return it->off & ((1u << t->run->plan.page_shift) - 1);
}

/* All of it anew, one byte, or back to what it was: a compare with the twin
 * then finds nothing, although somebody may have seen the value in passing. */
static uint64_t draw_value(struct sim_rng *rng, const struct sim_item *it)
{
	uint64_t value = sim_random(rng);

	switch (sim_below(rng, 4)) {
	case 0:
		return it->before;
	case 1:
		return value & sim_mask(it->size);
	default:
		value = it->truth ^ (value & 0xff) << 8 * sim_below(rng, 8);
		return value & sim_mask(it->size);
	}
}

static void store(struct sim_thread *t, struct sim_item *it, uint64_t value)
{
	sim_store(t, it, value);
	it->before = it->truth;
	it->truth = value;
	sim_trace(t->run,
		  "node %d thread %d: page %u byte %u size %u := 0x%" PRIx64,
		  t->node->rank, t->slot, sim_page(t, it), byte_of(t, it),
		  it->size, value);
}

/* Undone before anything is released: a value in passing (race 9). */
static void store_and_undo(struct sim_thread *t, struct sim_item *it)
{
	store(t, it, draw_value(&t->run->rng, it));
	if (!sim_chance(&t->run->rng, t->run->plan.undo_ppm))
		return;
	for (uint32_t i = sim_below(&t->run->rng, 8); i; i--)
		sul_sim_yield(t->run->world);
	store(t, it, it->before);
	t->run->ops++;
}

static void load(struct sim_thread *t, const struct sim_item *it)
{
	uint64_t got = sim_load(t, it);

	sim_trace(t->run,
		  "node %d thread %d: page %u byte %u size %u == 0x%" PRIx64,
		  t->node->rank, t->slot, sim_page(t, it), byte_of(t, it),
		  it->size, got);
	if (got == it->truth)
		return;
	sim_violation(
		t->run,
		"node %d thread %d load of page %u byte %u size %u (%s %u): got 0x%" PRIx64
		", want 0x%" PRIx64,
		t->node->rank, t->slot, sim_page(t, it), byte_of(t, it),
		it->size, rule_name(it->rule), it->which, got, it->truth);
}

static void access_item(struct sim_thread *t)
{
	struct sim_item *it = sim_record_choose(t);
	bool write = sim_below(&t->run->rng, 2);

	if (!it || !sim_record_may(t, it, write))
		return;
	if (write)
		store_and_undo(t, it);
	else
		load(t, it);
	t->run->ops++;
	sul_sim_point(t->run->world);
}

/* --- pages that are held accessible ---------------------------------------------------------- */

/* Does @other lie in @unit, of which @it is one item? */
static bool in_unit(const struct sim_thread *t, const struct sim_item *it,
		    const struct sim_item *other, uint32_t unit)
{
	return other->alloc == it->alloc &&
	       dsm_unit_of(t->node->dsm, sim_page(t, other)) == unit;
}

/* May @t write all items of the unit that @it is in?  It then says so. */
static bool may_overwrite(struct sim_thread *t, const struct sim_item *it,
			  uint32_t unit)
{
	struct sim_record *r = &t->run->record;

	for (uint32_t i = 0; i < r->nr_items; i++) {
		struct sim_item *other = &r->item[i];

		if (!in_unit(t, it, other, unit))
			continue;
		if (other->rule != SIM_RULE_EPOCH ||
		    !sim_record_may(t, other, true))
			return false;
	}
	return true;
}

static void overwrite(struct sim_thread *t, const struct sim_item *it,
		      uint32_t unit)
{
	struct sim_record *r = &t->run->record;

	for (uint32_t i = 0; i < r->nr_items; i++) {
		struct sim_item *other = &r->item[i];

		if (!in_unit(t, it, other, unit))
			continue;
		store(t, other, draw_value(&t->run->rng, other));
		sul_sim_point(t->run->world);
	}
}

/* Hold the unit of an item while others go on, and use it meanwhile. */
static void hold_unit(struct sim_thread *t)
{
	struct sim_item *it = sim_record_choose(t);
	bool write = sim_below(&t->run->rng, 2);
	enum dsm_touch mode = write ? DSM_TOUCH_WRITE : DSM_TOUCH_READ;
	struct dsm_node *n = t->node->dsm;
	uint64_t off, len;
	uint32_t unit;

	if (!it || !sim_record_may(t, it, write))
		return;
	unit = dsm_unit_of(n, sim_page(t, it));
	off = dsm_unit_off(n, unit);
	len = dsm_unit_bytes(n, unit);
	if (write && may_overwrite(t, it, unit))
		mode = DSM_TOUCH_OVERWRITE;
	doing(t, "touch", unit);
	if (dsm_touch(t->dsm, off, len, mode))
		return; /* larger than the cache */
	t->touched = sim_page(t, it) + 1;
	t->touched_rw = write;
	if (mode == DSM_TOUCH_OVERWRITE)
		overwrite(t, it, unit);
	for (uint32_t i = sim_below(&t->run->rng, 4); i; i--) {
		if (write)
			store_and_undo(t, it);
		else
			load(t, it);
		sul_sim_point(t->run->world);
		t->run->ops++;
	}
	t->touched = 0;
	if (dsm_untouch(t->dsm, off, len))
		sim_violation(t->run, "node %d thread %d does not hold unit %u",
			      t->node->rank, t->slot, unit);
}

/* --- locks ------------------------------------------------------------------------------ */

/* Who else may be inside now? */
static void check_alone(struct sim_thread *t, uint32_t l, bool read)
{
	struct sim_record *r = &t->run->record;

	if (r->holder[l] != SIM_NOBODY || (!read && r->readers[l]))
		sim_violation(t->run,
			      "node %d thread %d has lock %" PRIu64
			      ", which thread number %d and %d readers hold",
			      t->node->rank, t->slot, t->run->plan.lock[l],
			      r->holder[l], r->readers[l]);
}

static void wait_for(struct sim_thread *t, uint32_t l, bool read)
{
	dsm_name name = t->run->plan.lock[l];

	if (!sim_is_rw(&t->run->plan, l)) {
		if (!sim_below(&t->run->rng, 4) && dsm_trylock(t->dsm, name))
			return;
		dsm_lock(t->dsm, name);
	} else if (read) {
		dsm_rdlock(t->dsm, name);
	} else {
		dsm_wrlock(t->dsm, name);
	}
}

static void take(struct sim_thread *t, uint32_t l)
{
	struct sim_record *r = &t->run->record;
	bool read = sim_is_rw(&t->run->plan, l) && sim_below(&t->run->rng, 2);

	doing(t, read ? "rdlock" : "lock", t->run->plan.lock[l]);
	wait_for(t, l, read);
	doing(t, "has lock", t->run->plan.lock[l]);
	check_alone(t, l, read);
	if (read)
		r->readers[l]++;
	else
		r->holder[l] = t->id;
	t->reading[t->nr_held] = read;
	t->held[t->nr_held++] = l;
	t->run->ops++;
}

static void give(struct sim_thread *t)
{
	uint32_t l = t->held[--t->nr_held];
	dsm_name name = t->run->plan.lock[l];

	doing(t, "unlock", name);
	if (t->reading[t->nr_held])
		t->run->record.readers[l]--;
	else
		t->run->record.holder[l] = SIM_NOBODY;
	if (sim_is_rw(&t->run->plan, l))
		dsm_rwunlock(t->dsm, name);
	else
		dsm_unlock(t->dsm, name);
	t->run->ops++;
}

/*
 * Take the tokens that lie under the lock taken last; give some of one's own
 * back here.  What a reader gives back is not for others that read meanwhile.
 */
static void exchange_tokens(struct sim_thread *t, uint32_t lock)
{
	struct sim_record *r = &t->run->record;
	bool reading = t->reading[t->nr_held - 1];

	for (uint32_t i = 0; i < t->run->plan.locks; i++) {
		struct sim_token *k = &r->token[i];

		if (k->owner == SIM_NOBODY && k->lock == lock &&
		    !(reading && k->reading)) {
			k->owner = t->id;
		} else if (k->owner == t->id &&
			   sim_chance(&t->run->rng, 600000)) {
			*k = (struct sim_token){ SIM_NOBODY, lock, reading };
		}
	}
}

/* --- the condition ------------------------------------------------------------------------ */

static dsm_name condition(const struct sim_thread *t)
{
	return t->run->plan.lock[0] | UINT64_C(1) << 40;
}

static bool has_condition(const struct sim_thread *t)
{
	return t->run->plan.conds && !sim_is_rw(&t->run->plan, 0);
}

static void signal_condition(struct sim_thread *t, bool all)
{
	doing(t, all ? "broadcast" : "signal", 0);
	sim_record_signal(&t->run->record, all);
	if (all)
		dsm_cond_broadcast(t->dsm, condition(t));
	else
		dsm_cond_signal(t->dsm, condition(t));
}

/* With lock 0 alone in hand. */
static void use_condition(struct sim_thread *t)
{
	struct sim_record *r = &t->run->record;

	if (sim_below(&t->run->rng, 2)) {
		signal_condition(t, !sim_below(&t->run->rng, 3));
	} else if (sim_record_waits(r)) {
		doing(t, "cond wait", 0);
		r->holder[0] = SIM_NOBODY;
		dsm_cond_wait(t->dsm, condition(t));
		doing(t, "was woken", 0);
		sim_record_woken(t);
		check_alone(t, 0, false);
		r->holder[0] = t->id;
	}
	t->run->ops++;
}

/* From now on nobody may count on this thread. */
static void last_broadcast(struct sim_thread *t)
{
	take(t, 0);
	signal_condition(t, true);
	t->run->record.active--;
	give(t);
}

static void section(struct sim_thread *t)
{
	struct sim_rng *rng = &t->run->rng;
	uint32_t locks = (uint32_t)t->run->plan.locks;
	uint32_t left = 1 + sim_below(rng, SIM_NEST);

	/* Always in the order of their indices: no deadlock. */
	for (uint32_t l = sim_below(rng, locks); l < locks && left;
	     l += 1 + sim_below(rng, 2), left--) {
		take(t, l);
		if (!l && has_condition(t) && !sim_below(rng, 3))
			use_condition(t);
		for (uint32_t i = sim_below(rng, 4); i; i--)
			access_item(t);
		if (sim_chance(rng, t->run->plan.touch_ppm))
			hold_unit(t);
		exchange_tokens(t, l);
	}
	while (t->nr_held) {
		give(t);
		if (t->nr_held)
			access_item(t);
	}
}

/* --- flags ------------------------------------------------------------------------------------ */

/* Before rendezvous @nr one thread sets its flag, and others may wait for it;
 * those of the two before (one of them may have had none) have been seen by all
 * who wanted to. */
static void use_flag(struct sim_thread *t, uint32_t nr)
{
	struct sim_record *r = &t->run->record;

	if (!t->id) {
		dsm_flag_reset(t->node->dsm, (int)((nr - 1) % DSM_FLAGS));
		dsm_flag_reset(t->node->dsm,
			       (int)((nr + DSM_FLAGS - 2) % DSM_FLAGS));
		r->flag = nr;
		dsm_flag_set(t->node->dsm, (int)(nr % DSM_FLAGS));
	} else if (sim_below(&t->run->rng, 2)) {
		doing(t, "flag", nr % DSM_FLAGS);
		dsm_flag_wait(t->node->dsm, (int)(nr % DSM_FLAGS));
		if (r->flag != nr)
			sim_violation(
				t->run,
				"node %d thread %d went on before flag %u was set",
				t->node->rank, t->slot, nr % DSM_FLAGS);
	}
}

/* --- collective ----------------------------------------------------------------------------- */

static void rendezvous(struct sim_thread *t, enum dsm_meeting kind)
{
	doing(t, kind == DSM_MEET_WAIT ? "wait" : "barrier", t->meetings);
	sim_record_arrive(&t->run->record);
	dsm_barrier(t->dsm, kind);
	sim_record_depart(t, ++t->meetings, kind == DSM_MEET_BARRIER);
	t->run->ops++;
}

static void meet(struct sim_thread *t, enum dsm_meeting kind)
{
	if (has_condition(t))
		last_broadcast(t);
	if (t->run->plan.conds)
		use_flag(t, t->meetings + 1);
	rendezvous(t, kind);
}

/* The same on all nodes: drawn from seed, allocation, and how often. */
static void allocate(struct sim_thread *t, uint32_t a, uint32_t times)
{
	const struct sim_plan *p = &t->run->plan;
	struct sim_rng rng = { t->run->seed ^ (uint64_t)(times * 64 + a + 1)
						      << 40 };
	struct sim_alloc *known = &t->run->record.alloc[a];
	uint64_t bytes = (uint64_t)known->pages << p->page_shift;
	unsigned int order = sim_below(&rng, (uint32_t)p->order + 1);
	uint64_t unit = UINT64_C(1) << (order + p->page_shift);
	uint64_t block = bytes;
	int home = (int)sim_below(&rng, (uint32_t)p->ranks);
	uint32_t page;
	int err;

	if (p->homes == 0)
		block = bytes / p->ranks + 1;
	else if (p->homes == 1)
		block = unit;
	err = dsm_alloc(t->node->dsm, bytes, block, home, order, &page);
	if (err)
		sim_violation(t->run, "node %d cannot allocate: %d",
			      t->node->rank, err);
	if (known->made < times) {
		known->made = times;
		known->page = page;
	}
	if (known->page != page)
		sim_violation(t->run,
			      "node %d allocated page %u, others page %u",
			      t->node->rank, page, known->page);
}

/* One thread allocates for its node; the others go on when it has. */
static void allocated(struct sim_thread *t, uint32_t made)
{
	if (!t->slot)
		sul_sim_notify(t->run->world, &t->node->made, made);
	while (t->node->made.value != made)
		sul_sim_wait(t->run->world, &t->node->made,
			     t->node->made.value);
}

/* Not right after a barrier: others may still be refreshing their copies. */
static void reallocate(struct sim_thread *t, uint32_t epoch)
{
	struct sim_run *run = t->run;
	struct sim_rng rng = { run->seed ^ (uint64_t)epoch << 20 };
	uint32_t a;

	if (!sim_chance(&rng, run->plan.realloc_ppm))
		return;
	a = sim_below(&rng, (uint32_t)run->plan.allocs);
	meet(t, DSM_MEET_WAIT);
	if (!t->slot && dsm_free(t->node->dsm, run->record.alloc[a].page))
		sim_violation(run, "node %d cannot free page %u", t->node->rank,
			      run->record.alloc[a].page);
	/* Nobody acquires anything meanwhile: he might refresh a copy of his
	 * from a home that has let go already.  As in jia_free(). */
	rendezvous(t, DSM_MEET_WAIT);
	sim_record_free(&run->record, a, epoch + 2);
	if (!t->slot)
		allocate(t, a, epoch + 2);
	allocated(t, epoch + 2);
}

/* --- what else may happen at any time ------------------------------------------------ */

static void vary(struct sim_thread *t)
{
	struct sim_rng *rng = &t->run->rng;
	struct dsm_config *c = &t->node->dsm->cfg;

	if (sim_chance(rng, t->run->plan.vary_ppm)) {
		c->update = sim_below(rng, 3);
		c->keep = sim_below(rng, 9);
	}
	if (sim_chance(rng, t->run->plan.rejoin_ppm)) {
		dsm_thread_part(t->dsm);
		t->dsm = dsm_thread_join(t->node->dsm);
	}
}

void sim_program(void *arg)
{
	struct sim_thread *t = arg;
	struct sim_run *run = t->run;
	const struct sim_plan *p = &run->plan;

	t->dsm = dsm_thread_join(t->node->dsm);
	if (!t->slot)
		for (uint32_t a = 0; a < p->allocs; a++)
			allocate(t, a, 1);
	allocated(t, 1);
	for (uint32_t e = 0; e < p->epochs; e++) {
		for (uint32_t i = sim_below(&run->rng, (uint32_t)p->length + 1);
		     i; i--) {
			if (sim_chance(&run->rng, p->touch_ppm))
				hold_unit(t);
			else if (sim_chance(&run->rng, p->outside_ppm))
				access_item(t);
			else
				section(t);
		}
		/* At the end of an epoch, or in the midst of one. */
		if (e % 2)
			reallocate(t, e);
		meet(t, DSM_MEET_BARRIER);
		if (!(e % 2))
			reallocate(t, e);
		vary(t);
	}
	t->at_last = true;
	meet(t, DSM_MEET_BARRIER);
	t->ended = true;
	doing(t, "has ended", 0);
}
