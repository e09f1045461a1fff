/* SPDX-License-Identifier: MIT */
/*
 * dsm_cache.c - page faults, and the limit of what is cached.
 *
 * Role:      repairs a fault; when the cache is full, evicts first.
 * Invariant: what a thread faulted on last is not evicted, so that an
 *            instruction which needs several pages gets them all.
 * Threads:   any thread of the rank may fault, several on the same page: who
 *            comes second finds it repaired.
 * Locks:     takes the rank mutex.
 *
 * History.  Where copies are dropped by notices (update=never) a rank that goes
 * through the same pages again and again faults on all of them again and again.
 * So what is dropped is remembered, and when one of these units faults others
 * that were fetched in the same epoch are fetched along, in runs, twice as many
 * each time that proves right: n faults become log n.  Whether a unit so fetched
 * was used nobody sees; so it is left out the next time, and if it faults then,
 * only every third, fifth, ninth ... time from then on.
 */
#include "dsm_node.h"

#include <errno.h>

static bool recently_used(const struct dsm_node *n, uint32_t unit)
{
	for (uint32_t t = 0; t < n->thread_nr; t++)
		for (int i = 0; i < DSM_RECENT_PER_THREAD; i++)
			if (n->thread[t].recent[i] == unit)
				return true;
	return false;
}

void dsm_cache_discard(struct dsm_node *n, uint32_t unit)
{
	uint64_t off = dsm_unit_off(n, unit);
	size_t len = dsm_unit_bytes(n, unit);

	dsm_must(n, sul_window_discard(n->port, DSM_W_FRAME, off, len),
		 "giving back the memory of a page");
	dsm_must(n, sul_window_discard(n->port, DSM_W_TWIN, off, len),
		 "giving back the memory of a twin");
	dsm_ready_forget(n, unit, dsm_unit_pages(n, unit));
}

/* The next victim of a clock that goes round the cached units. */
static uint32_t next_victim(struct dsm_node *n)
{
	uint32_t tried = 0;

	while (tried++ < 2 * n->cached.members + 2) {
		uint32_t unit = dsm_bits_next(&n->cached, n->evict_hand);

		if (unit == DSM_BITS_END) {
			n->evict_hand = 0;
			continue;
		}
		n->evict_hand = unit + 1;
		if (!recently_used(n, unit) && !dsm_held(n, unit) &&
		    !dsm_bits_test(&n->marked, unit))
			return unit;
	}
	return DSM_BITS_END;
}

static void evict_marked(struct dsm_node *n)
{
	dsm_unit_lower_set(n, &n->marked, DSM_ACCESS_NONE);
	for (uint32_t u = dsm_bits_next(&n->marked, 0); u != DSM_BITS_END;
	     u = dsm_bits_next(&n->marked, u + 1)) {
		if (n->state[u] == DSM_PG_WATCH)
			dsm_stat_add(n->stats, evicted_rw, 1);
		else
			dsm_stat_add(n->stats, evicted_ro, 1);
		dsm_unit_event(n, u, DSM_EV_DROP, DSM_ACT_LOWER_NONE);
	}
	/* The diffs are read from the twins: executed before those go. */
	dsm_flush_port(n);
	for (uint32_t u = dsm_bits_next(&n->marked, 0); u != DSM_BITS_END;
	     u = dsm_bits_next(&n->marked, u + 1))
		dsm_cache_discard(n, u);
	dsm_bits_empty(&n->marked);
}

/* Evict until @pages more fit, and some more so as not to come back soon. */
static void make_room(struct dsm_node *n, uint32_t pages)
{
	uint64_t most = n->cache_pages > pages ? n->cache_pages - pages : 0;
	uint64_t left = n->cached_pages;

	if (left <= most)
		return;
	most -= most >> DSM_EVICT_SHIFT;
	while (left > most) {
		uint32_t unit = next_victim(n);

		if (unit == DSM_BITS_END)
			break; /* all of it in use: over the limit for once */
		dsm_bits_set(&n->marked, unit);
		left -= dsm_unit_pages(n, unit);
	}
	evict_marked(n);
}

static enum dsm_page_event event_of(const struct dsm_node *n, uint32_t unit,
				    bool store)
{
	if (!store && n->state[unit] == DSM_PG_INVALID && n->cfg.predict &&
	    n->wrote[unit] & DSM_WROTE)
		return DSM_EV_STORE; /* it will be, so save the second fault */
	if (!store)
		return DSM_EV_LOAD;
	if (dsm_home_here(n, unit) && dsm_dir_shared(n, unit))
		return DSM_EV_STORE_SHARED;
	return DSM_EV_STORE;
}

/* Could @unit be repaired along with @first, in the same way? */
static bool alike(const struct dsm_node *n, uint32_t first, uint32_t unit,
		  bool store)
{
	return unit < n->page_end && dsm_home(n, unit) >= 0 &&
	       n->order[unit] == n->order[first] &&
	       n->state[unit] == n->state[first] &&
	       dsm_home_here(n, unit) == dsm_home_here(n, first) &&
	       event_of(n, unit, store) == event_of(n, first, store);
}

/*
 * How many units, from @unit on, to repair.  Where a thread's faults come in
 * sequence they are repaired in runs, each twice as long as the last: a fault
 * costs as much as copying 50 pages.
 */
static uint32_t run_length(const struct dsm_node *n, struct dsm_thread *t,
			   uint32_t unit, bool store)
{
	uint32_t step = dsm_unit_pages(n, unit), most, nr = 1;

	if (!t || unit != t->next_fault || !n->cfg.prefetch) {
		if (t)
			t->run = 1;
		return 1;
	}
	most = 2 * t->run;
	if (most > n->cfg.prefetch + 1)
		most = (uint32_t)n->cfg.prefetch + 1;
	if ((uint64_t)most * step > n->cache_pages / 4)
		most = (uint32_t)(n->cache_pages / 4 / step) ?: 1;
	while (nr < most && alike(n, unit, unit + nr * step, store))
		nr++;
	t->run = most;
	return nr;
}

static void repair_run(struct dsm_node *n, uint32_t unit, uint32_t nr,
		       enum dsm_page_event e, enum dsm_fetch why)
{
	const unsigned int raise = DSM_ACT_RAISE_R | DSM_ACT_RAISE_RW;
	const struct dsm_page_rule *rule =
		dsm_page_rule((enum dsm_page_state)n->state[unit], e);
	uint32_t step = dsm_unit_pages(n, unit);

	if (rule->kind == DSM_RULE_GO && rule->acts & DSM_ACT_FETCH)
		dsm_unit_fetch(n, unit, nr, rule->acts & DSM_ACT_TWIN, why);
	if (rule->kind == DSM_RULE_GO && rule->acts & DSM_ACT_ENROL)
		dsm_unit_enrol(n, unit, nr);
	for (uint32_t i = 0; i < nr; i++)
		dsm_unit_event(n, unit + i * step, e,
			       DSM_ACT_FETCH | DSM_ACT_ENROL | raise);
	if (rule->kind == DSM_RULE_GO && rule->acts & raise)
		dsm_unit_raise(n, unit, nr * step,
			       rule->acts & DSM_ACT_RAISE_RW ? DSM_ACCESS_RW :
							       DSM_ACCESS_R);
}

/* --- history ----------------------------------------------------------------- */

void dsm_cache_dropped(struct dsm_node *n, uint32_t unit)
{
	if (!n->cfg.history)
		return;
	n->recall = 1;
	if (!n->probe[unit])
		n->probe[unit] = DSM_RECALL_FIRST;
	if (n->age[unit] < n->probe[unit])
		dsm_bits_set(&n->dropped, unit);
}

/* Was @unit fetched in @epoch, and dropped since? */
static bool is_missed(const struct dsm_node *n, uint32_t unit, uint16_t epoch)
{
	return dsm_bits_test(&n->dropped, unit) && n->fetched[unit] == epoch &&
	       n->state[unit] == DSM_PG_INVALID && dsm_home(n, unit) >= 0 &&
	       !dsm_home_here(n, unit);
}

/* How many units from @unit on, at most @most, can be fetched together. */
static uint32_t recall_length(const struct dsm_node *n, uint32_t unit,
			      uint32_t most, uint16_t epoch)
{
	uint32_t step = dsm_unit_pages(n, unit), nr = 1;

	while (nr < most && alike(n, unit, unit + nr * step, false) &&
	       is_missed(n, unit + nr * step, epoch))
		nr++;
	return nr;
}

/* True: it was done. */
static bool recall(struct dsm_node *n, uint32_t unit, uint32_t nr)
{
	uint64_t pages = (uint64_t)nr * dsm_unit_pages(n, unit);

	if (n->cached_pages + pages > n->cache_pages)
		return false; /* nothing is evicted for it */
	repair_run(n, unit, nr, event_of(n, unit, false), DSM_FETCH_RECALL);
	dsm_stat_add(n->stats, recalled, nr);
	return true;
}

/* One of what was fetched in @epoch, and dropped since, has been used again. */
static void recall_others(struct dsm_node *n, uint32_t unit, uint16_t epoch)
{
	uint32_t left = n->recall, looks = left + DSM_RECALL_LOOKS;
	uint32_t most = (uint32_t)n->cfg.history;

	n->recall = 2 * left < most ? 2 * left : most;
	for (; left && looks && n->dropped.members; looks--) {
		uint32_t nr;

		unit = dsm_bits_next(&n->dropped, unit + 1);
		if (unit == DSM_BITS_END) /* round to the first */
			unit = dsm_bits_next(&n->dropped, 0);
		if (!is_missed(n, unit, epoch))
			continue;
		nr = recall_length(n, unit,
				   left < DSM_RUN_MAX ? left : DSM_RUN_MAX,
				   epoch);
		if (!recall(n, unit, nr))
			return;
		left -= nr;
	}
}

/* --- faults ------------------------------------------------------------------- */

static void repair(struct dsm_node *n, struct dsm_thread *t, uint32_t unit,
		   bool store)
{
	uint32_t nr = run_length(n, t, unit, store);
	uint32_t pages = nr * dsm_unit_pages(n, unit);
	bool again = dsm_bits_test(&n->dropped, unit);
	uint16_t last = n->fetched[unit];

	if (t) {
		t->recent[t->recent_at++ % DSM_RECENT_PER_THREAD] = unit;
		t->next_fault = unit + pages;
	}
	if (n->state[unit] == DSM_PG_INVALID) {
		make_room(n, pages);
		if (nr == 1)
			dsm_ready_chunk(n, unit);
	}
	repair_run(n, unit, nr, event_of(n, unit, store), DSM_FETCH_FAULT);
	if (again)
		recall_others(n, unit, last);
	if (dsm_view_hidden(n, unit))
		dsm_view_reveal(n, unit);
	dsm_stat_add(n->stats, prefetched, nr - 1);
	if (store)
		dsm_count(n, unit, fault_write, 1);
	else
		dsm_count(n, unit, fault_read, 1);
	if (dsm_home_here(n, unit))
		dsm_stat_add(n->stats, segv_local, 1);
	else
		dsm_stat_add(n->stats, segv_remote, 1);
}

void dsm_cache_overwrite(struct dsm_node *n, struct dsm_thread *t,
			 uint32_t unit, uint32_t nr)
{
	t->recent[t->recent_at++ % DSM_RECENT_PER_THREAD] = unit;
	make_room(n, nr * dsm_unit_pages(n, unit));
	repair_run(n, unit, nr, DSM_EV_OVERWRITE, DSM_FETCH_FAULT);
}

/* From where the program faulted, and for which page. */
static void note_spot(struct dsm_node *n, const struct dsm_thread *t,
		      uint32_t unit, bool store, uint64_t ns)
{
	struct dsm_hot *hot = dsm_spot_page(n->spots, unit, 0);

	dsm_spot_add(n->spots, store ? DSM_SPOT_store : DSM_SPOT_load,
		     t->fault_site, 0, ns);
	if (!hot)
		return;
	if (store)
		hot->store_site = t->fault_site;
	else
		hot->load_site = t->fault_site;
	hot->place = n->place_of[unit];
	hot->bytes = (uint32_t)dsm_unit_bytes(n, unit);
}

int dsm_fault(struct dsm_node *n, struct dsm_thread *t, uint32_t page,
	      bool store)
{
	uint64_t start = n->env->now_ns(n->env_ctx), ns;
	uint32_t unit;
	int err = 0;

	dsm_enter(n, t);
	unit = dsm_unit_of(n, page);
	if (dsm_home(n, unit) < 0)
		err = -EFAULT;
	else
		repair(n, t, unit, store);
	ns = n->env->now_ns(n->env_ctx) - start;
	dsm_stat_add(n->stats, segv_ns, ns);
	if (!err)
		note_spot(n, t, unit, store, ns);
	dsm_leave(n);
	return err;
}
